-- The file connectors as the worker runs them: declaration, start, poll, put, stop.
local k = require "spec.support.connect"
local ffi, core = k.ffi, k.core

describe("connectors/file", function()
  local dir, set, scripts
  setup(function() set = k.scan() end)
  before_each(function() dir, scripts = k.tmpdir(), {} end)
  after_each(function()
    for _, s in ipairs(scripts) do s:free() end
    collectgarbage()
    k.rm(dir)
  end)

  local function script(name, role, host)
    local s = k.script(k.find(set, name), role, host)
    scripts[#scripts + 1] = s
    return s
  end

  local function source(config, offsets)
    local s = script("FileStreamSource", "source", {
      offset_get = function(partition) return offsets and offsets[partition] end,
    })
    s:start(config)
    return s
  end

  local function failure(fn, ...)
    local ok, err = pcall(fn, ...)
    assert.is_false(ok)
    return err
  end

  it("source: a record a line, Kafka's offsets", function()
    local path = dir .. "/a.txt"
    k.write(path, "O-1 created\nO-2 created\nO-3 created\n")
    local s = source { file = path, topic = "orders", ["tasks.max"] = "1", name = "file-src" }
    local b = s:poll()
    assert.equal(3, b.n)
    local r = b.records[2]
    assert.same({ "orders", "O-3 created", '{"position":36}', '{"filename":"' .. path .. '"}' },
      { ffi.string(r.topic), k.value(r), k.offset(r), ffi.string(r.u.src.partition.json) })
    assert.equal(-1, tonumber(r.timestamp)) -- the producer's time
    assert.is_nil(s:poll())
    s:stop()
  end)

  it("source: goes on at the stored position", function()
    local path = dir .. "/a.txt"
    k.write(path, "one\ntwo\n")
    local s = source({ file = path, topic = "t" }, { ['{"filename":"' .. path .. '"}'] = '{"position":4}' })
    local b = s:poll()
    assert.same({ 1, "two" }, { b.n, k.value(b.records[0]) })
  end)

  it("source: positions that are no integers fail, as in Java", function()
    for _, offset in ipairs { '{"position":"4"}', '{"position":4.5}', '{"position":3.0}',
      '{"position":3e0}', '{"position":true}' } do
      local path = dir .. "/a.txt"
      local err = failure(source, { file = path, topic = "t" }, { ['{"filename":"' .. path .. '"}'] = offset })
      assert.equal("Offset position is the incorrect type", err.message)
      assert.equal("fatal", err.kind)
    end
    source({ file = dir .. "/b", topic = "t" }, { ['{"filename":"' .. dir .. '/b"}'] = '{"other":1}' })
  end)

  it("source: records carry the wall clock where a transform or predicate may look at it", function()
    local P = "org.apache.kafka.connect.transforms."
    local function stamped(config)
      k.write(dir .. "/a", "x\n")
      config.file, config.topic = dir .. "/a", "t"
      local before = os.time() * 1000
      local t = tonumber(source(config):poll().records[0].timestamp)
      assert.is_true(t == -1 or t >= before)
      return t ~= -1
    end
    assert.is_false(stamped {})
    assert.is_true(stamped { transforms = "ts" })
    assert.is_true(stamped { transforms = "a", ["transforms.a.type"] = "my.Own" })
    assert.is_true(stamped { transforms = "a", ["transforms.a.type"] = P .. "TimestampRouter" })
    local two = { transforms = " a, b", ["transforms.a.type"] = P .. "HoistField$Value", ["transforms.a.field"] = "x",
      ["transforms.b.type"] = P .. "InsertField$Value", ["transforms.b.static.field"] = "y",
      ["transforms.c.type"] = "my.Own" }
    assert.is_false(stamped(two))
    two["transforms.b.timestamp.field"] = "t"
    assert.is_true(stamped(two))
    two["transforms.b.timestamp.field"], two["transforms.a.predicate"] = nil, "p"
    two["predicates.p.type"] = P .. "predicates.RecordIsTombstone"
    assert.is_false(stamped(two))
    two["predicates.p.type"] = "my.Predicate"
    assert.is_true(stamped(two))
  end)

  it("source: batch.size lines a poll", function()
    k.write(dir .. "/a", "1\n2\n3\n4\n5\n")
    for size, want in pairs { ["2"] = 2, ["0"] = 1, ["-5"] = 1, ["100"] = 5 } do
      local s = source { file = dir .. "/a", topic = "t", ["batch.size"] = size }
      assert.equal(want, s:poll().n)
    end
  end)

  it("source: a line that no producer would take fails the task, or is skipped under errors.tolerance=all", function()
    k.write(dir .. "/a", ("x"):rep(2000) .. "\nshort\n")
    local function large(config)
      local s = script("FileStreamSource", "source", { max_request_size = 1000, offset_get = function() end })
      s:start(config)
      return s
    end
    local s = large { file = dir .. "/a", topic = "t" }
    local err = failure(s.poll, s)
    assert.equal("fatal", err.kind)
    assert.equal("A line of 2000 bytes at position 0 of " .. dir
      .. "/a is larger than max.request.size (1000 bytes)", err.message)
    s = large { file = dir .. "/a", topic = "t", ["errors.tolerance"] = "all" }
    k.logged(function()
      local b = s:poll()
      assert.same({ 1, "short" }, { b.n, k.value(b.records[0]) })
    end)
  end)

  it("source: one task with the connector's config", function()
    local s = script("FileStreamSource", "connector")
    local config = { file = "f", topic = "t", ["tasks.max"] = "3" }
    assert.same({ config }, s:task_configs(config, 3))
    local log = k.logged(function() s:start(config) end)
    assert.matches("Starting file source connector reading from f", log)
    log = k.logged(function() s:start { topic = "t" } end)
    assert.matches("reading from standard input", log)
  end)

  it("sink: appends lines; a task for each of tasks.max", function()
    local s = script("FileStreamSink", "sink")
    s:start { file = dir .. "/out" }
    s:open { { "t", 0 } }
    s:put(k.sink_batch { "a", "b" })
    s:put(k.sink_batch {})
    assert.same({ ["t-0"] = 2 }, s:pre_commit { { "t", 0, 2 } })
    s:put(k.sink_batch({ nil }, 1))
    s:close { { "t", 0 } }
    s:stop()
    assert.equal("a\nb\nnull\n", k.read(dir .. "/out"))
    local c = script("FileStreamSink", "connector")
    local config = { file = "f", topics = "a,b" }
    assert.same({ config, config, config }, c:task_configs(config, 3))
  end)

  it("sink: a file that cannot be made fails the task; a full disk is tried again", function()
    local s = script("FileStreamSink", "sink")
    local err = failure(s.start, s, { file = dir .. "/no/such/x" })
    assert.equal("Couldn't find or create file '" .. dir .. "/no/such/x' for FileStreamSinkTask", err.message)
    assert.equal("fatal", err.kind)
    assert.equal("Caused by: java.nio.file.NoSuchFileException: " .. dir .. "/no/such/x: No such file or directory\n",
      err.detail)
    s:stop()
    s = script("FileStreamSink", "sink")
    err = failure(s.start, s, { file = dir })
    assert.equal("Caused by: java.nio.file.FileSystemException: " .. dir .. ": Is a directory\n", err.detail)
    s:stop()
    s = script("FileStreamSink", "sink")
    s:start { file = "/dev/full" }
    err = failure(s.put, s, k.sink_batch { "a" })
    assert.equal("retriable", err.kind)
    assert.matches("/dev/full: No space left on device", err.message)
  end)

  it("offsets: Kafka's checks, in its order", function()
    local connect = require "connect"
    local chunk = assert(loadfile "connectors/file/init.lua")
    local source_decl, sink_decl = unpack(chunk())
    local function check(config, partition, offset)
      return select(2, pcall(source_decl.alter_offsets, config, { { partition = partition, offset = offset } }))
    end
    local file, p = { file = "f" }, { filename = "f" }
    assert.equal("Offsets cannot be modified if the 'file' configuration is unspecified. This is because stdin is used "
      .. "for input and offsets are not tracked.", tostring(check({}, p, { position = 1 })))
    assert.is_true(check(file, connect.null, connect.null))
    assert.equal("Offset objects should either be null or contain the key 'position'", tostring(check(file, p, {})))
    assert.equal("The value for the 'position' key in the offset is expected to be a Long value",
      tostring(check(file, p, { position = "1" })))
    assert.equal("The value for the 'position' key in the offset should be a non-negative value",
      tostring(check(file, p, { position = -1 })))
    assert.equal("Partition objects cannot be null", tostring(check(file, connect.null, { position = 1 })))
    assert.equal("Partition objects should contain the key 'filename'", tostring(check(file, {}, { position = 1 })))
    assert.is_true(check(file, p, { position = 1 }))
    assert.is_true(sink_decl.alter_offsets())
    assert.is_not_nil(core)
  end)
end)
