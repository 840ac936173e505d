-- spec/fault/10_memory_spec.lua: malloc fails at the N-th call, once and from there on, in storage, on the way of a batch and
-- in a running worker (row 10 of the fault matrix). What decides: nothing but an error that says so, or the end of the
-- process with "out of memory"; never a crash, a wrong result, or offsets that were not written. --all: every N.
local core = require "spec.support.core"
local fault_calls = require "spec.support.fault_calls"
local http = require "spec.support.http"
local kafka = require "spec.support.kafka"
local matrix = require "spec.support.matrix"
local oracle = require "spec.support.oracle"
local proc = require "spec.support.proc"
local standalone = require "spec.support.standalone"
local C, ffi = core.load { "base/err.h", "base/buf.h", "base/log.h", "data/record.h", "convert/converter.h", "convert/json.h",
  "runtime/tracker.h",
  "storage/config_state.h", "storage/offset_store.h", "storage/status_cache.h", "file/line_reader.h", "file/line_writer.h" }

local all = os.getenv "LC_ALL_TESTS"

-- What an operation came to under failing calls: the result of a good run, an error about memory, the end of the process.
local function fine(child, good, what)
  if child.exit == 0 then
    local result = child.text:match "result (.*)$"
    if result == good or (result or ""):lower():find "memory" then return end
    error(("%s: result %s, not %s\n%s"):format(what, result, good, child.text:sub(1, 2000)), 0)
  end
  if child.signal == 6 and child.text:find "luaconnect: out of memory\n" then return "ended" end
  error(("%s: exit %s, signal %s: %s"):format(what, child.exit, child.signal, child.text:sub(1, 2000)), 0)
end

-- For every N: op(arm) in a child with the N-th malloc failing after it called arm(); `after` looks at what is left, in
-- this process.
local function sweep(name, op, after)
  local function run(nth, persistent)
    return fault_calls.child(function()
      C.lc_log_set_level(nil, "off")
      local result = op(function() fault_calls.arm { calls = "malloc", nth = nth, persistent = persistent } end)
      local count, failed = fault_calls.disarm()
      return ("count %d failed %d result %s"):format(count, failed, result)
    end)
  end
  local clean = run(1000000000)
  assert(clean.exit == 0, clean.text .. tostring(clean.signal))
  local n, good = clean.text:match "^count (%d+) failed 0 result (.*)$"
  assert(n, clean.text)
  n = tonumber(n)
  local step = all and 1 or math.max(1, math.floor(n / 25))
  for _, persistent in ipairs { false, true } do
    matrix.case({ row = 10, fault = "malloc at N", mode = name .. (persistent and ", persistent" or ", once"), n = n },
      function(t)
        local ended, tried = 0, 0
        for i = 1, n, step do
          local child = run(i, persistent)
          tried = tried + 1
          if fine(child, good, ("malloc %d of %d"):format(i, n)) then ended = ended + 1 end
          if after then after(child) end
        end
        t.note = ("%d tried: %d ended the process with a message"):format(tried, ended)
      end)
  end
end

local function errtext(err) return core.msg(err) end

describe("malloc failing at any call of", function()
  describe("storage:", function()
    local function offsets_of(file)
      local s = C.lc_offset_store_file_new(file)
      local err = core.err()
      if s.ops.start(s, nil, err) ~= 0 then
        return errtext(err), s
      end
      local out = {}
      for i = 1, 30 do
        local b = ffi.new "lc_buf_t"
        local rc = s.ops.get(s, "c", ('{"f":"%d"}'):format(i), b, err)
        out[i] = rc == 1 and C.lc_buf_reserve(b, 0) == 0 and ffi.string(b.p, b.len) or rc < 0 and errtext(err) or "-"
        if b.oom then out[i] = "memory" end
        C.lc_buf_free(b)
      end
      return table.concat(out, " "), s
    end
    local kept
    local done = ffi.cast("lc_offset_done_fn *", function(_, err)
      kept = err == nil or core.msg(ffi.cast("lc_err_t *", err))
    end)
    local function set(s, position)
      local e = ffi.new "lc_offset_entry_t[30]"
      local keep = {}
      for i = 0, 29 do
        keep[i], keep[i + 100] = ('{"f":"%d"}'):format(i + 1), ('{"position":%d}'):format(position)
        e[i].partition, e[i].offset = keep[i], keep[i + 100]
      end
      s.ops.set(s, "c", e, 30, done, nil)
      return kept
    end

    it("the offset file keeps the old or has the new offsets, and says which", function()
      local dir = proc.tmpdir "memory"
      local file = dir .. "/offsets"
      local _, s = offsets_of(file)
      set(s, 1)
      s.ops.stop(s)
      local old = proc.read(file)
      _, s = offsets_of(file)
      set(s, 2)
      s.ops.stop(s)
      local new = proc.read(file)
      proc.write(file, old)
      sweep("offset file", function(arm)
        arm()
        local text, store = offsets_of(file)
        local ok = text:find "memory" and text or set(store, 2)
        store.ops.stop(store)
        return ok == true and "written" or ok
      end, function(child)
        local now = proc.read(file)
        assert(now == old or now == new, "the file is neither the old nor the new one")
        if child.text:find "result written" then assert(now == new, "written, but it is not in the file") end
        proc.write(file, old)
      end)
    end)

    it("the state of the config topic is right, or the worker ends", function()
      sweep("config state", function(arm)
        arm()
        local s = C.lc_config_state_new "t"
        local offset = 0
        local function put(key, value)
          local change = ffi.new "lc_config_change_t"
          C.lc_config_state_apply(s, key, #key, value, value and #value or 0, 0, offset, change)
          C.lc_config_change_clear(change)
          offset = offset + 1
        end
        put("session-key", '{"key":"YWJj","algorithm":"HmacSHA256","creation-timestamp":5}')
        for _, name in ipairs { "a", "b-c" } do
          put("target-state-" .. name, '{"state":"PAUSED","state.v2":"PAUSED"}')
          put("connector-" .. name, '{"properties":{"k":"v","connector.class":"X","long":"' .. ("x"):rep(300) .. '"}}')
          put("task-" .. name .. "-0", '{"properties":{"t":"0"}}')
          put("task-" .. name .. "-1", '{"properties":{"t":"1"}}')
          put("commit-" .. name, '{"tasks":2}')
          put("tasks-fencing-" .. name, '{"task-count":2}')
        end
        put("connector-a", nil)
        local shot = C.lc_config_state_snapshot(s)
        local c = C.lc_config_snapshot_find(shot, "b-c")
        local out = ("%d %d %s"):format(tonumber(shot.offset), tonumber(shot.n), tostring(shot.session_key ~= nil and
          ffi.string(shot.session_key)))
        if c ~= nil then
          out = ("%s %d %s %s %d"):format(out, C.lc_config_connector_task_count(c), core.table(c.tasks[1]).t,
            ffi.string(C.lc_target_state_name(c.target)), #core.table(c.config).long)
        end
        C.lc_config_snapshot_unref(shot)
        C.lc_config_state_free(s)
        return out
      end)
    end)

    it("the status cache is right, or the worker ends", function()
      sweep("status cache", function(arm)
        arm()
        local s = C.lc_status_cache_new "t"
        local offset = 0
        local function put(key, value)
          C.lc_status_cache_apply(s, key, #key, value, value and #value or 0, 0, offset)
          offset = offset + 1
        end
        for i = 0, 5 do
          put("status-task-a-" .. i, ('{"state":"FAILED","trace":"%s","worker_id":"w:1","generation":%d}'):format(
            ("t"):rep(100 * i), i))
        end
        put("status-connector-a", '{"state":"RUNNING","trace":null,"worker_id":"w:1","generation":3,"version":"4.3.1"}')
        put("status-topic-t:connector-a", '{"topic":{"name":"t","connector":"a","task":0,"discoverTimestamp":1}}')
        local st, out = ffi.new "lc_status_t", {}
        for i = -1, 5 do
          if C.lc_status_cache_get(s, "a", i, st) then
            out[#out + 1] = ("%s %d %d"):format(ffi.string(C.lc_state_name(st.state)), st.generation,
              st.trace ~= nil and #ffi.string(st.trace) or 0)
            C.lc_status_clear(st)
          else
            out[#out + 1] = "none"
          end
        end
        local key, value = ffi.new "lc_buf_t", ffi.new "lc_buf_t"
        C.lc_status_cache_get(s, "a", 5, st)
        C.lc_status_key(key, "a", 5)
        C.lc_status_value(value, st)
        out[#out + 1] = (key.oom or value.oom) and "memory" or ffi.string(key.p) .. ffi.string(value.p)
        C.lc_status_clear(st)
        C.lc_buf_free(key)
        C.lc_buf_free(value)
        out[#out + 1] = tostring(C.lc_status_cache_has_topic(s, "a", "t"))
        C.lc_status_cache_free(s)
        return table.concat(out, "; ")
      end)
    end)
  end)

  describe("a batch:", function()
    it("its records are all there or it says so", function()
      sweep("record batch", function(arm)
        arm()
        local p = C.lc_source_partition_new('{"f":"a"}', 9)
        local b = C.lc_batch_new(2)
        if b == nil then
          C.lc_source_partition_unref(p)
          return "memory"
        end
        local failed = false
        for i = 1, 300 do
          local r = C.lc_batch_add(b)
          if r == nil then
            failed = true
            break
          end
          local text = C.lc_arena_dup(b.arena, ("x"):rep(i), i)
          if text == nil or C.lc_batch_hold_partition(b, p) < 0 then
            failed = true
            break
          end
          r.value.type, r.value.len, r.value.u.s = C.LC_STRING, i, text
          r.u.src.partition = p
        end
        failed = failed or C.lc_batch_keep_given(b) < 0
        local bytes = 0
        for i = 0, b.n - 1 do bytes = bytes + #ffi.string(b.records[i].value.u.s or "", b.records[i].value.len) end
        local out = failed and "memory" or ("%d %d"):format(b.n, bytes)
        C.lc_batch_unref(b)
        C.lc_source_partition_unref(p)
        return out
      end)
    end)

    it("the tracker commits what was acknowledged, or nothing", function()
      sweep("tracker", function(arm)
        arm()
        local t, err = C.lc_tracker_new(), core.err()
        local b = C.lc_batch_new(100)
        if b == nil then
          C.lc_tracker_free(t)
          return "memory"
        end
        b.offset_field = "position"
        for i = 0, 99 do
          local r = C.lc_batch_add(b)
          r.topic = "t"
          r.u.src.offset.type, r.u.src.offset.u.i = C.LC_INT64, i
          local p = C.lc_source_partition_new(('{"f":"%d"}'):format(i % 7), #('{"f":"%d"}'):format(i % 7))
          r.u.src.partition = p
          local held = C.lc_batch_hold_partition(b, p) == 0
          C.lc_source_partition_unref(p)
          if not held then
            C.lc_batch_unref(b)
            C.lc_tracker_free(t)
            return "memory"
          end
        end
        C.lc_tracker_submit(t, b.records, 100)
        for i = 0, 99 do
          C.lc_batch_ref(b)
          b.records[i].state = 2
        end
        for i = 0, 49 do C.lc_tracker_ack(t, b.records + i) end
        local out = C.lc_tracker_harvest(t, err) < 0 and errtext(err) or "harvested"
        local e = ffi.new "const lc_offset_entry_t *[1]"
        local n = tonumber(C.lc_tracker_begin(t, e))
        for i = 0, n - 1 do
          local position = tonumber(ffi.string(e[0][i].offset):match '^{"position":(%d+)}$')
          assert(position and position < 50, "offset " .. ffi.string(e[0][i].offset))
        end
        C.lc_tracker_end(t, true)
        C.lc_batch_unref(b)
        C.lc_tracker_free(t)
        return out
      end)
    end)

    local function converter(class, config)
      local cls = C.lc_converter_class_find(class)
      local err = core.err()
      local cv = cls.create(cls, core.props(config), "value", err)
      return cv ~= nil and cv or nil, err
    end

    -- bytes to data and back: an error about memory is never about the record (that would be skipped)
    local function round_trip(class, config, list)
      sweep(class:match "%w+$" .. (next(config) and " " .. next(config) or ""), function(arm)
        local cv = assert(converter(class, config))
        arm()
        local out = {}
        for i, text in ipairs(list) do
          local arena = ffi.new "lc_arena_t"
          C.lc_arena_init(arena)
          local schema, value = ffi.new "const lc_schema_t *[1]", ffi.new "lc_value_t"
          local err = core.err()
          local keep = text
          local bytes = ffi.new("lc_slice_t", { keep, #keep })
          if cv.cls.to_connect(cv, "t", nil, bytes, arena, schema, value, err) < 0 then
            out[i] = errtext(err)
            assert(err.kind == C.LC_FATAL, "a failing malloc counts as a bad record: " .. out[i])
          else
            local back = ffi.new "lc_slice_t"
            if cv.cls.from_connect(cv, "t", nil, schema[0], value, arena, back, err) < 0 then
              out[i] = errtext(err)
              assert(err.kind == C.LC_FATAL, "a failing malloc counts as a bad record: " .. out[i])
            else
              out[i] = back.p == nil and "null" or ffi.string(back.p, back.len)
            end
          end
          C.lc_arena_free(arena)
        end
        cv.cls.destroy(cv)
        for _, o in ipairs(out) do if o:lower():find "memory" then return o end end
        return table.concat(out, "\n")
      end)
    end

    it("JsonConverter with schemas", function()
      round_trip("org.apache.kafka.connect.json.JsonConverter", {}, {
        '{"schema":{"type":"struct","fields":[{"field":"a","type":"int32"},{"field":"b","type":"string","optional":true},'
          .. '{"field":"d","type":"bytes","name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":'
          .. '{"scale":"2","connect.decimal.precision":"30"}},{"field":"l","type":"array","items":{"type":"int64"}},'
          .. '{"field":"m","type":"map","keys":{"type":"string"},"values":{"type":"double"},"default":{}}]},'
          .. '"payload":{"a":1,"b":"x\\u00e9","d":"MTIzNDU2Nzg5MDEyMzQ1Njc4OTA=","l":[1,2,3],"m":{"k":1.5,"j":2}}}',
        '{"schema":{"type":"string","optional":false},"payload":"' .. ("y"):rep(5000) .. '"}',
      })
    end)
    it("JsonConverter without schemas", function()
      round_trip("org.apache.kafka.connect.json.JsonConverter", { ["schemas.enable"] = "false" }, {
        '{"a":{"b":[1,2,{"c":null,"d":1.25}],"e":"' .. ("z"):rep(3000) .. '"},"n":12345678901234567890,"u":"\\ud83d\\ude00"}',
        "[" .. ("1,"):rep(500) .. "2]", '"text"',
      })
    end)
    it("StringConverter", function()
      round_trip("org.apache.kafka.connect.storage.StringConverter", {}, { "abc", "\255\254" .. ("x"):rep(1000), "" })
    end)
    it("SimpleHeaderConverter", function()
      round_trip("org.apache.kafka.connect.storage.SimpleHeaderConverter", {}, { "abc", "[1,2,3]", '{"a":1,"b":"c"}', "1.5" })
    end)

    it("lines of a file: all of them, none twice, or an error", function()
      local dir = proc.tmpdir "lines"
      local list = {}
      for i = 1, 3000 do list[i] = "line " .. i .. ("x"):rep(i % 300) end
      list[1500] = ("long"):rep(200000)
      proc.write(dir .. "/in", table.concat(list, "\n") .. "\n")
      local good = table.concat(list, "\n") .. "\n"
      sweep("line reader and writer", function(arm)
        arm()
        local err = core.err()
        local conf = ffi.new "lc_line_reader_conf_t"
        local path, topic = dir .. "/in", "t"
        conf.path, conf.topic, conf.batch_size = path, topic, 400
        local r = C.lc_line_reader_new(conf)
        local w = C.lc_line_writer_new(dir .. "/out", nil, err)
        if w == nil then return errtext(err) end
        local out, done = ffi.new "lc_batch_t *[1]", nil
        local bytes = 0
        while not done and bytes < #good do
          local before = C.lc_line_reader_position(r)
          if C.lc_line_reader_poll(r, out, err) < 0 then
            done = errtext(err)
            assert(C.lc_line_reader_position(r) == before, "lines were passed without being handed out")
          elseif out[0] == nil then
            done = "nothing more"
          else
            if C.lc_line_writer_write(w, out[0], err) < 0 then done = errtext(err)
            else bytes = tonumber(C.lc_line_reader_position(r)) end
            C.lc_batch_unref(out[0])
          end
        end
        C.lc_line_writer_free(w)
        C.lc_line_reader_free(r)
        local text = proc.read(dir .. "/out")
        assert(text == good:sub(1, bytes), ("%d bytes read, %d written"):format(bytes, #text))
        return done or "all"
      end, function() os.remove(dir .. "/out") end)
    end)

    it("JSON, written and read", function()
      local text = '{"b":[1,2.5,"x",null,true,{"c":{}}],"a":"' .. ("\\u00e9"):rep(400) .. '","n":123456789012345678901234567890}'
      sweep("JSON", function(arm)
        arm()
        local doc, err, b = ffi.new "lc_json_t *[1]", core.err(), ffi.new "lc_buf_t"
        if C.lc_json_parse(text, #text, 0, doc, err) < 0 then return errtext(err) end
        C.lc_json_write(b, doc[0])
        C.lc_json_write_canonical(b, doc[0])
        C.lc_json_free(doc[0])
        local out = b.oom and "memory" or ffi.string(b.p, b.len)
        C.lc_buf_free(b)
        return out
      end)
    end)
  end)
end)

-- A worker whose task's thread cannot get memory: where the size is a record's, the task says so and is FAILED at most;
-- for bookkeeping the worker ends with a message. Nothing is lost either way.
describe("malloc failing in a task of a running worker", function()
  local broker
  setup(function() broker = kafka.broker() end)

  local function json(config) return http.encode(config) end

  -- lines flow; `hit(n)` arms the n-th call; returns the figures
  local function run(kind, only, persistent, numbers)
    local remote, dir = fault_calls.remote(), proc.tmpdir("memory-" .. kind)
    local topic, name = kafka.unique("memory-" .. kind), kafka.unique(kind:sub(1, 2))
    local file, out = dir .. "/in.txt", dir .. "/out.txt"
    proc.write(file, "")
    local config = kind == "source" and { ["connector.class"] = "FileStreamSource", file = file, topic = topic,
      ["batch.size"] = 20 } or { ["connector.class"] = "FileStreamSink", file = out, topics = topic,
      ["consumer.override.session.timeout.ms"] = 6000 }
    config.name = name
    proc.write(dir .. "/connector.json", json(config))
    local count, fails, deaths = 0, 0, 0
    local function write()
      local list = oracle.lines("M", count + 1, count + 40)
      if kind == "source" then proc.append(file, table.concat(list, "\n") .. "\n") else broker:produce(topic, list) end
      count = count + 40
    end
    write()
    local worker
    local function start()
      worker = standalone.start { dir = dir, env = remote.env, bootstrap = broker.bootstrap, files = { dir .. "/connector.json" },
        properties = { ["offset.flush.interval.ms"] = "200" } }
      worker.healthy()
    end
    local function task()
      local code, _, s = worker.request("GET", "/connectors/" .. name .. "/status")
      return code == 200 and s.tasks[1]
    end
    local function restart()
      worker.request("POST", ("/connectors/%s/tasks/0/restart"):format(name))
      proc.wait_for("the task to run", function() local t = task(); return t and t.state == "RUNNING" end, 30)
    end
    local function seen()
      local t = {}
      if kind == "source" then return broker:values(topic) end
      for l in (proc.read(out) or ""):gmatch "[^\n]+" do t[#t + 1] = l end
      return t
    end
    local function arrived() return #oracle.check(seen(), "M", count).lost == 0 end
    start()
    proc.wait_for("the first lines", arrived, 60)
    for _, n in ipairs(numbers) do
      remote:arm { calls = "malloc", only = only, persistent = persistent, nth = n, thread = name .. "-0" }
      local state
      for _ = 1, 3 do
        write()
        pcall(proc.wait_for, "the fault", function()
          if not worker.process:alive() then return true end
          local _, failed = remote:counts()
          local t = task()
          state = t and t.state
          return failed > 0 and (not persistent or state == "FAILED")
        end, 1.5)
        if select(2, remote:counts()) > 0 or not worker.process:alive() then break end
      end
      pcall(proc.wait_for, "what comes of it", function()
        if not worker.process:alive() then return true end
        local t = task()
        return t and t.state == "FAILED" or arrived()
      end, 10)
      remote:disarm()
      if not worker.process:alive() then
        assert.equal(134, worker.process:wait(60))
        assert.matches("luaconnect: out of memory\n", worker.process:log():sub(-200), 1, true)
        assert.not_equal("checked", only, "a record's memory ended the worker at malloc " .. n)
        deaths = deaths + 1
        start()
      else
        local t = task()
        if t.state == "FAILED" then
          assert.matches("[Mm]emory", t.trace)
          fails = fails + 1
          restart()
        end
      end
      proc.wait_for(("all %d lines after malloc %d"):format(count, n), arrived, 30)
    end
    assert.equal(0, worker.process:stop())
    local r = oracle.check(seen(), "M", count)
    assert.same({}, r.lost)
    return { lines = count, lost = #r.lost, duplicates = r.duplicates, disorder = r.disorder,
      note = ("%d tried: %d FAILED tasks, %d ends"):format(#numbers, fails, deaths) }
  end

  local function numbers(from, to, step)
    local t = {}
    for i = from, to, step do t[#t + 1] = i end
    return t
  end

  for _, kind in ipairs { "source", "sink" } do
    for _, only in ipairs { "checked", "unchecked" } do
      for _, persistent in ipairs(all and { false, true } or { only == "checked" }) do
        local mode = ("%s task, %s%s"):format(kind, only == "checked" and "of records" or "bookkeeping",
          persistent and ", persistent" or ", once")
        local tried = all and numbers(1, 20, 1) or only == "checked" and { 2, 6 } or kind == "source" and { 3 } or {}
        if #tried > 0 then
          it(mode, function()
            matrix.case({ row = 10, fault = "malloc at N", mode = mode }, function(t)
              for k, v in pairs(run(kind, only, persistent, tried)) do t[k] = v end
            end)
          end)
        end
      end
    end
  end
end)
