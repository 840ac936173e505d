-- spec/fault/09_io_spec.lua: open, read, write, fsync, rename and close fail at the N-th call (EIO, ENOSPC, EINTR, EBUSY, short
-- reads and writes), once and from there on, for the offset file of standalone mode, the files of FileStream connectors
-- and the files of configuration (row 9 of the fault matrix): no crash, no descriptor left open, offsets never ahead of
-- data, and the next try works when the fault is gone.
local core = require "spec.support.core"
local fault_calls = require "spec.support.fault_calls"
local matrix = require "spec.support.matrix"
local proc = require "spec.support.proc"
local C, ffi = core.load { "base/err.h", "base/buf.h", "base/log.h", "base/props.h", "data/record.h", "config/properties.h",
  "cli/connector_file.h", "storage/offset_store.h", "file/line_reader.h", "file/line_writer.h" }

local errors = { open = { "EIO", "EINTR", "EMFILE", "EACCES" }, read = { "EIO", "EINTR", "SHORT" },
  write = { "EIO", "ENOSPC", "EINTR", "SHORT" }, fsync = { "EIO", "ENOSPC" }, rename = { "EIO", "ENOSPC", "EBUSY" },
  close = { "EIO", "EINTR" }, ftruncate = { "EIO" } }

-- op(arm, disarm) with the N-th call failing, for every N until none fails; f.calls: which calls, f.path: of which files.
local function each(f, call, error_name, persistent)
  local mode = ("%s %s%s"):format(call, error_name, persistent and ", persistent" or "")
  local n, failed = 0
  repeat
    n, failed = n + 1, 0
    f.before()
    local open, names = fault_calls.descriptors()
    local function disarm()
      local _, hit = fault_calls.disarm()
      failed = math.max(failed, hit)
    end
    local function arm()
      fault_calls.arm { calls = call, nth = n, error = error_name, persistent = persistent, path = f.path }
    end
    local ok, why = pcall(f.op, arm, disarm)
    disarm()
    if not ok then
      error(("%s at call %d: %s"):format(mode, n, type(why) == "table" and why.message or tostring(why)), 0)
    end
    local now, now_names = fault_calls.descriptors()
    assert(now == open, ("%s at call %d: a descriptor stays open: %s; before: %s"):format(mode, n, now_names, names))
  until failed == 0 or n > 300
  return n - 1
end

local function sweep(f)
  for _, call in ipairs(f.calls) do
    matrix.case({ row = 9, fault = call .. " at N", mode = f.name, note = table.concat(errors[call], ", ") }, function(t)
      t.n = 0
      for _, e in ipairs(errors[call]) do
        t.n = t.n + each(f, call, e, false)
        if e ~= "EINTR" then t.n = t.n + each(f, call, e, true) end
      end
    end)
  end
end

describe("calls that fail for", function()
  setup(function() C.lc_log_set_level(nil, "off") end)
  teardown(function() C.lc_log_set_level(nil, "info") end)

  it("the offset file: the old or the new offsets are in it, and the store says which", function()
    local dir = proc.tmpdir "io"
    local file = dir .. "/offsets"
    local result
    local done = ffi.cast("lc_offset_done_fn *", function(_, err)
      result = err == nil or core.msg(ffi.cast("lc_err_t *", err))
    end)
    local function set(s, position)
      local e = ffi.new "lc_offset_entry_t[1]"
      local partition, offset = '{"f":"a"}', ('{"position":%d}'):format(position)
      e[0].partition, e[0].offset = partition, offset
      result = nil
      s.ops.set(s, "c", e, 1, done, nil)
      return result
    end
    local function start()
      local s, err = C.lc_offset_store_file_new(file), core.err()
      if s.ops.start(s, nil, err) ~= 0 then
        s.ops.stop(s)
        return nil, core.msg(err)
      end
      return s
    end
    local texts = {}
    for i = 1, 3 do
      local s = start()
      assert.is_true(set(s, i))
      s.ops.stop(s)
      texts[i] = proc.read(file)
    end
    sweep { name = "offset file", calls = { "open", "read", "write", "fsync", "rename", "close" }, path = "/offsets",
      before = function() proc.write(file, texts[1]) end,
      op = function(arm, disarm)
        arm()
        local s, why = start()
        if not s then
          assert(why:find(file, 1, true), "the file is not named: " .. why)
          disarm()
          assert(proc.read(file) == texts[1], "a failed start changed the file")
          s = assert(start())
          assert(set(s, 2) == true)
        else
          local now = 1
          for i = 2, 3 do
            local said = set(s, i)
            local text = proc.read(file)
            assert(text == texts[i] or text == texts[now], "the file is neither the old nor the new one")
            if said == true then assert(text == texts[i], "written, but it is not there")
            else assert(said:find(file, 1, true), "the file is not named: " .. said) end
            now = text == texts[i] and i or now
          end
        end
        disarm()
        assert(set(s, 3) == true, "no offsets are written though the fault is gone")
        s.ops.stop(s)
        assert(proc.read(file) == texts[3])
        assert(proc.read(file .. ".tmp") == nil, "a temporary file stays")
      end }
    -- where the folder takes no other file, it is rewritten in place: still whole when the disk is full
    local s = assert(start())
    proc.write(file, texts[1])
    fault_calls.arm { calls = "rename", nth = 1, persistent = true, error = "EBUSY", path = "/offsets" }
    assert.is_true(set(s, 2))
    assert.equal(texts[2], proc.read(file))
    local big = ('{"position":"%s"}'):format(("x"):rep(1000))
    local e = ffi.new "lc_offset_entry_t[1]"
    local partition = '{"f":"b"}'
    e[0].partition, e[0].offset = partition, big
    fault_calls.arm { calls = "open", nth = 1, error = "EACCES", path = "/offsets", room = 400 }
    s.ops.set(s, "c", e, 1, done, nil)
    assert.matches("No space left", result)
    assert.equal(texts[2], proc.read(file))
    fault_calls.disarm()
    assert.is_true(set(s, 3))
    s.ops.stop(s)
    done:free()
  end)

  it("the file of a source: every line once, positions never beyond what was handed out", function()
    local dir = proc.tmpdir "io"
    local path, topic = dir .. "/source.txt", "t"
    local lines = {}
    for i = 1, 4000 do lines[i] = i .. (" "):rep(i % 400) .. "x" end
    proc.write(path, table.concat(lines, "\n") .. "\n")
    sweep { name = "source file", calls = { "open", "read", "close" }, path = "/source.txt", before = function() end,
      op = function(arm, disarm)
        local out, position, faults, r = {}, 0, 0, nil
        local function open()
          local conf = ffi.new "lc_line_reader_conf_t"
          conf.path, conf.topic, conf.batch_size, conf.position = path, topic, 370, position
          r = C.lc_line_reader_new(conf)
        end
        open()
        arm()
        local batch = ffi.new "lc_batch_t *[1]"
        while #out < #lines do
          local err = core.err()
          if C.lc_line_reader_poll(r, batch, err) < 0 then
            assert(core.msg(err):find(path, 1, true), "the file is not named: " .. core.msg(err))
            assert(C.lc_line_reader_position(r) == position or C.lc_line_reader_position(r) == 0)
            faults = faults + 1
            if err.kind ~= C.LC_RETRIABLE then -- the task is FAILED; somebody restarts it
              C.lc_line_reader_free(r)
              open()
            end
            if faults > 3 then disarm() end
          elseif batch[0] ~= nil then
            for i = 0, batch[0].n - 1 do
              local v = batch[0].records[i].value
              out[#out + 1] = ffi.string(v.u.s, v.len)
            end
            position = tonumber(C.lc_line_reader_position(r))
            C.lc_batch_unref(batch[0])
          end
        end
        C.lc_line_reader_free(r)
        assert(table.concat(out, "\n") == table.concat(lines, "\n"), "lines are lost, twice or in another order")
      end }
  end)

  it("the file of a sink: every line once, a batch whole or not at all", function()
    local dir = proc.tmpdir "io"
    local path = dir .. "/sink.txt"
    sweep { name = "sink file", calls = { "open", "write", "close" }, path = "/sink.txt",
      before = function() os.remove(path) end,
      op = function(arm, disarm)
        local keep, faults, w, want = {}, 0, nil, {}
        arm()
        local function open()
          while not w do
            local err = core.err()
            w = C.lc_line_writer_new(path, nil, err)
            if w == nil then
              w = nil
              assert((core.msg(err) .. ffi.string(err.detail)):find(path, 1, true))
              faults = faults + 1
              if faults > 3 then disarm() end
            end
          end
        end
        open()
        for k = 1, 5 do
          local b = C.lc_batch_new(10)
          for i = 1, 10 do
            local r = C.lc_batch_add(b)
            local text = ("%d-%d"):format(k, i)
            keep[#keep + 1], want[#want + 1] = text, text
            r.value.type, r.value.len, r.value.u.s = C.LC_STRING, #text, text
          end
          while true do
            local err = core.err()
            if C.lc_line_writer_write(w, b, err) == 0 then break end
            assert(err.kind == C.LC_RETRIABLE, core.msg(err))
            assert(core.msg(err):find(path, 1, true), "the file is not named: " .. core.msg(err))
            assert(#proc.read(path) == (k == 1 and 0 or #(table.concat(want, "\n", 1, (k - 1) * 10) .. "\n")),
              "a part of the batch stays in the file")
            faults = faults + 1
            if faults > 3 then disarm() end
          end
          C.lc_batch_unref(b)
        end
        assert(#keep == 50)
        C.lc_line_writer_free(w)
        assert(proc.read(path) == table.concat(want, "\n") .. "\n", "lines are lost or twice")
      end }
  end)

  it("files of configuration: all of it, or an error that names the file", function()
    local dir = proc.tmpdir "io"
    local worker, connector = dir .. "/worker.properties", dir .. "/connector.json"
    local text = {}
    for i = 1, 3000 do text[i] = ("key.%d=value %d"):format(i, i) end
    proc.write(worker, table.concat(text, "\n") .. "\n")
    proc.write(connector, '{"name":"c","connector.class":"X","long":"' .. ("y"):rep(200000) .. '"}')
    for name, load in pairs {
      ["worker.properties"] = function()
        local props, err = ffi.new "lc_props_t *[1]", core.err()
        if C.lc_properties_load(worker, props, err) ~= 0 then return core.msg(err) end
        local n = tonumber(C.lc_props_count(props[0]))
        C.lc_props_free(props[0])
        return n
      end,
      ["connector.json"] = function()
        local f, err = ffi.new "lc_connector_file_t", core.err()
        if C.lc_connector_file_load(connector, f, err) ~= 0 then return core.msg(err) end
        local n = #ffi.string(C.lc_props_get(f.config, "long"))
        C.lc_connector_file_free(f)
        return n
      end,
    } do
      local whole = load()
      assert.is_number(whole)
      sweep { name = name, calls = { "open", "read", "close" }, path = "/" .. name, before = function() end,
        op = function(arm, disarm)
          arm()
          local got = load()
          if got ~= whole then
            assert(type(got) == "string" and got:find(dir .. "/" .. name, 1, true), "a part was taken for the whole: " .. got)
          end
          disarm()
          assert(load() == whole)
        end }
    end
  end)
end)
