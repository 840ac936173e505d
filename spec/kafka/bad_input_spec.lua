-- spec/kafka/bad_input_spec.lua: what users and networks get wrong: clear errors, exit statuses, never a
-- hang, never a loss.
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"
local golden = require "spec.support.golden"
local with = require "spec.support.with"

local program = os.getenv "LUACONNECT" or os.getenv "PWD" .. "/build/luaconnect"
local all = os.getenv "LC_ALL_TESTS"

local function run(args, seconds)
  local t = { program, name = "start" }
  for _, a in ipairs(args) do t[#t + 1] = a end
  local p = proc.start(t)
  return p:wait(seconds or 30), p:log()
end

describe("a start that cannot work", function()
  it("says how it is used, status 1, without an argument or with --help", function()
    local status, log = run { "distributed" }
    assert.equal(1, status)
    assert.matches("Usage: ", log)
    status = run { "distributed", "--help" }
    assert.equal(1, status)
  end)

  it("names a missing, unreadable or impossible file, status 2", function()
    local status, log = run { "distributed", "/nowhere/worker.properties" }
    assert.equal(2, status)
    assert.matches("Stopping due to error", log)
    assert.matches("NoSuchFileException: /nowhere/worker.properties", log, 1, true)
    local dir = proc.tmpdir "folder"
    status, log = run { "distributed", dir }
    assert.equal(2, status)
    assert.matches(dir, log, 1, true)
  end)

  -- every recorded start-up failure of configuration: exit status and the exception's line
  for _, case in ipairs(golden.cases "standalone/distributed-start-failures.jsonl") do
    local line = case.exit == 2 and (case.stdout_nonlog_warn_error or ""):match "\n(org%.apache[^\n]*ConfigException[^\n]*)"
    local short = case.files["worker.properties"] and line and not line:find "JVM"
      and not line:find("Class ", 1, true) and not line:find("KeyGenerator", 1, true)
    if short and (all or case.name:find "missing" or case.name:find "rest" or case.name:find "topic") then
      it("answers like Java: " .. case.name, function()
        local dir = proc.tmpdir "start"
        for name, text in pairs(case.files) do proc.write(dir .. "/" .. name, text) end
        local p = proc.start { "sh", "-c", "cd " .. dir .. " && exec " .. program .. " distributed worker.properties",
          name = "start" }
        local status = p:wait(60)
        assert.equal(2, status)
        assert.matches(line:gsub("^org[%w%.]-%.(%w+Exception: )", "%1"), p:log(), 1, true)
      end)
    end
  end

  it("refuses hosts that nobody knows, status 2", function()
    local w = kafka.worker { broker = { bootstrap = "no.such.host.invalid:9092" }, start = false }
    w:start(false)
    assert.equal(2, w.process:wait(60))
    assert.matches("Couldn't resolve server no.such.host.invalid:9092", w:log(), 1, true)
    assert.matches("No resolvable bootstrap urls given in bootstrap.servers", w:log(), 1, true)
  end)

  it("names the port that is taken, status not 0", function()
    local broker = kafka.broker()
    local one = kafka.worker { broker = broker }
    local two = kafka.worker { broker = broker, port = one.port, start = false }
    two:start(false)
    local status = two.process:wait(30)
    assert.is_true(status == 1 or status == 2)
    assert.matches(tostring(one.port), two:log(), 1, true)
    assert.is_true(one:healthy())
    assert.equal(0, one:stop())
  end)

  it("refuses a config topic with several partitions and one that is not compacted, by Java's texts", function()
    local broker = kafka.broker()
    local id = kafka.unique "several"
    local admin = ("%s kafka run org.apache.kafka.tools.TopicCommand --bootstrap-server %s --create --topic "):format(
      "./dev", broker.bootstrap)
    assert.equal(0, select(2, proc.run(admin .. id .. "-configs --partitions 3 --config cleanup.policy=compact > /dev/null")))
    local w = kafka.worker { broker = broker, id = id, start = false }
    w:start(false)
    assert.equal(1, w.process:wait(60))
    assert.matches("required to have a single partition in order to guarantee consistency of connector " ..
      "configurations, but found 3 partitions", w:log(), 1, true)
    id = kafka.unique "deleting"
    assert.equal(0, select(2, proc.run(admin .. id .. "-offsets --partitions 5 --config cleanup.policy=delete > /dev/null")))
    w = kafka.worker { broker = broker, id = id, start = false }
    w:start(false)
    assert.equal(1, w.process:wait(60))
    assert.matches("is required to have 'cleanup.policy=compact' to guarantee consistency and durability of source " ..
      "connector offsets, but found the topic currently has 'cleanup.policy=delete'", w:log(), 1, true)
  end)

  it("gives up on unreachable brokers after a minute with status 2, and at once on SIGTERM", function()
    local port = proc.free_port()
    local w = kafka.worker { broker = { bootstrap = "127.0.0.1:" .. port }, start = false }
    w:start(false)
    proc.wait_for("a message that names the broker", function()
      return w:log():find("127.0.0.1:" .. port, 1, true)
    end, 30)
    if all then
      assert.equal(2, w.process:wait(90))
      assert.matches("Failed to connect to and describe Kafka cluster. Check worker's broker connection and " ..
        "security properties.", w:log(), 1, true)
    else
      w.process:signal "TERM"
      assert.equal(0, w.process:wait(60))
    end
  end)

  it("ends on SIGTERM at any moment of the start", function()
    local broker = kafka.broker()
    -- "early": from the first instruction on; the kernel and the loader come before ours, death by the signal is right there
    for _, from in ipairs { "early", "ours" } do
      for _, us in ipairs(from == "early" and { 1000, 20000, 60000 } or { 0, 20000, 60000, 120000, 200000, 400000, 800000 }) do
        local w = kafka.worker { broker = broker, start = false }
        w:start(false)
        local function ours()
          local mask = (proc.read("/proc/" .. w.process.pid .. "/status") or ""):match "\nSigBlk:%s*(%x+)"
          return mask and bit.band(tonumber(mask:sub(-4), 16), 0x4000) ~= 0 -- SIGTERM
        end
        if from == "ours" then proc.wait_for("the worker to care for SIGTERM", ours) end
        require "ffi".C.usleep(us)
        local cares = ours()
        w.process:signal "TERM"
        local status = w.process:wait(60)
        assert.is_true(status == 0 or (not cares and status == 143),
          ("%s, %d us: status %s\n%s"):format(from, us, status, w:log()))
      end
    end
  end)
end)

describe("garbage in the internal topics", function()
  it("is named by topic, partition and offset, and the worker runs", function()
    local broker = kafka.broker()
    local worker = kafka.worker { broker = broker }
    local dir, topic = proc.tmpdir "garbage", kafka.unique "garbage"
    proc.write(dir .. "/in.txt", "1\n")
    worker:request("PUT", "/connectors/g/config", { ["connector.class"] = "FileStreamSource", file = dir .. "/in.txt",
      topic = topic })
    worker:wait_running "g"
    proc.wait_for("the offset", function() local o = worker:offsets "g"; return o and #o == 1 end)
    worker:stop()
    local keys = { "connector-x", "connector-", "task-", "task-g-abc", "task-g-99999999999999999999", "commit-g", "bogus",
      "session-key", "target-state-g", "restart-connector-g", "tasks-fencing-g", "logger-cluster-", "status-connector-",
      "status-task-g-x", "status-task-g-0", "status-topic-", "status-topic-a", '["g"]', '["g",{}]', '["g",[]]', "[1,2,3]",
      '{"a":1}', "[", "" }
    local values = { "{", "null", "[]", "5", '"x"', '{"properties":5}', '{"properties":{"a":{}}}', '{"tasks":"x"}',
      '{"tasks":-1}', '{"tasks":99999999999}', '{"state":"BOGUS"}', '{"state":5,"generation":"x","worker_id":{}}', "\255\254" }
    for _, kind in ipairs { "configs", "offsets", "status" } do
      local file = dir .. "/records"
      local lines = {}
      for _, k in ipairs(keys) do
        -- a commit or target state for the real connector is no garbage when its value is right
        for _, v in ipairs(values) do lines[#lines + 1] = k .. "\t" .. v end
      end
      proc.write(file, table.concat(lines, "\n") .. "\n")
      local _, status = proc.run(("kcat -b %s -P -t %s -K '\t' -l %s"):format(broker.bootstrap,
        worker.id .. "-" .. kind, file))
      assert.equal(0, status)
    end
    worker:start()
    assert.matches(worker.id .. "-configs", worker:log(), 1, true)
    local code = worker:request("GET", "/connectors")
    assert.equal(200, code)
    -- still able to work
    worker:request("PUT", "/connectors/g2/config", { ["connector.class"] = "FileStreamSource",
      file = dir .. "/in.txt", topic = topic })
    worker:wait_running "g2"
    assert.equal(0, worker:stop())
  end)
end)

describe("the connector's file", function()
  local broker, worker, dir
  setup(function()
    broker = kafka.broker()
    worker = kafka.worker { broker = broker }
    dir = proc.tmpdir "files"
  end)
  teardown(function() worker:stop() end)

  local function create(name, file, topic, more)
    local c = with({ ["connector.class"] = "FileStreamSource", file = file, topic = topic }, more)
    local code, text = worker:request("PUT", "/connectors/" .. name .. "/config", c)
    assert.equal(201, code, text)
    proc.wait_for("a task of " .. name, function()
      local s = worker:status(name)
      return s and s.tasks[1] and s.tasks[1].state ~= "UNASSIGNED"
    end)
  end

  it("may be a folder: the task runs, the log names it, nothing is read", function()
    create("folder", dir, kafka.unique "folder")
    proc.wait_for("a warning", function() return worker:log():find(dir, 1, true) end)
    assert.equal("RUNNING", worker:status "folder".tasks[1].state)
    assert.equal(204, (worker:request("DELETE", "/connectors/folder")))
  end)

  it("may be a fifo, whose silence never blocks a stop", function()
    local topic = kafka.unique "fifo"
    assert.equal(0, os.execute("mkfifo " .. dir .. "/fifo"))
    create("fifo", dir .. "/fifo", topic)
    local writer = proc.start { "sh", "-c", "exec 3>" .. dir .. "/fifo; echo one >&3; echo two >&3; sleep 600", name = "writer" }
    proc.wait_for("two records", function() return #broker:records(topic) == 2 end)
    local start = proc.now()
    assert.equal(204, (worker:request("DELETE", "/connectors/fifo")))
    proc.wait_for("the deletion", function() return not worker:status "fifo" end)
    assert.is_true(proc.now() - start < 30)
    assert.is_nil(worker:log():find("Graceful stop of task fifo", 1, true))
    writer:signal "KILL"
  end)

  it("may be deleted while it is read and come back", function()
    local topic, file = kafka.unique "gone", dir .. "/gone.txt"
    proc.write(file, "1\n")
    create("gone", file, topic)
    proc.wait_for("1", function() return #broker:records(topic) == 1 end)
    os.remove(file)
    proc.stays("the task", function() return worker:status "gone".tasks[1].state == "RUNNING" end, 2)
    proc.write(file, "2\n")
    proc.wait_for("2", function() return #broker:records(topic) == 2 end)
    worker:request("DELETE", "/connectors/gone")
  end)

  it("may hold a line above max.request.size: the task fails with size, file and position", function()
    local topic, file = kafka.unique "long", dir .. "/long.txt"
    proc.write(file, "short\n" .. ("x"):rep(1100000) .. "\nafter\n")
    create("long", file, topic)
    local s = proc.wait_for("FAILED", function()
      local s = worker:status "long"
      return s.tasks[1] and s.tasks[1].state == "FAILED" and s
    end)
    assert.matches(file, s.tasks[1].trace, 1, true)
    assert.matches("1100000", s.tasks[1].trace, 1, true)
    assert.matches("position 6", s.tasks[1].trace, 1, true)
    worker:request("DELETE", "/connectors/long")
    local tolerant = kafka.unique "tolerant"
    create("tolerant", file, tolerant, { ["errors.tolerance"] = "all" })
    proc.wait_for("the line after", function() return #broker:records(tolerant) == 2 end)
    worker:request("DELETE", "/connectors/tolerant")
  end)

  it("may go to a topic that takes only small batches: no line is lost, the one that is too large is skipped or named",
    function()
      local topic, file, lines = kafka.unique "small", dir .. "/small.txt", {}
      for i = 1, 3000 do lines[i] = i .. (" "):rep(100) end
      lines[2000] = "2000" .. ("y"):rep(30000)
      proc.write(file, table.concat(lines, "\n") .. "\n")
      broker:produce(topic, { "0" })
      assert(broker:topic_setting(topic, "max.message.bytes=20000"))
      local string = { ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter" }
      create("small", file, topic, string)
      local s = proc.wait_for("FAILED", function()
        local s = worker:status "small"
        return s.tasks[1] and s.tasks[1].state == "FAILED" and s
      end)
      assert.matches("RecordTooLargeException", s.tasks[1].trace, 1, true)
      -- the position behind the line before it, and the line itself
      local at = #table.concat(lines, "\n", 1, 2000) + 1
      assert.matches('offset {"position":' .. at .. "}", s.tasks[1].trace, 1, true)
      worker:request("DELETE", "/connectors/small")
      local tolerant = kafka.unique "small"
      broker:produce(tolerant, { "0" })
      assert(broker:topic_setting(tolerant, "max.message.bytes=20000"))
      string["errors.tolerance"] = "all"
      create("small-all", file, tolerant, string)
      local values = proc.wait_for("all but one", function()
        local values = broker:values(tolerant)
        return #values >= 3000 and values
      end)
      assert.equal(3000, #values)
      for i = 1, 3000 do assert.equal(i <= 2000 and i - 1 or i, tonumber(values[i])) end
      worker:request("DELETE", "/connectors/small-all")
    end)

  it("may hold NUL and invalid UTF-8: the record has U+FFFD as Java's has", function()
    local topic, file = kafka.unique "bytes", dir .. "/bytes.txt"
    proc.write(file, "a\0b\n\255\n\195\40\n\r\nlast")
    create("bytes", file, topic, { ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter" })
    proc.wait_for("four lines", function() return #broker:records(topic) == 4 end)
    assert.same({ "a\0b", "\239\191\189", "\239\191\189(", "" }, broker:values(topic))
    worker:request("DELETE", "/connectors/bytes")
  end)

  it("of a sink may be on a full disk: the task says so, the records stay in the topic", function()
    local topic = kafka.unique "full"
    broker:produce(topic, { '{"schema":{"type":"string","optional":false},"payload":"x"}' })
    worker:request("PUT", "/connectors/full/config", { ["connector.class"] = "FileStreamSink", file = "/dev/full",
      topics = topic })
    proc.wait_for("a message that names the file", function()
      return worker:log():find("/dev/full", 1, true) and worker:log():find("No space left", 1, true)
    end)
    local o = worker:offsets "full"
    assert.is_true(o == nil or #o == 0 or o[1].offset.kafka_offset == 0)
    worker:request("DELETE", "/connectors/full")
  end)
end)

describe("SIGTERM", function()
  it("ends the worker soon though the broker hangs and a request waits for it", function()
    local broker = kafka.broker { own = true }
    local worker = kafka.worker { broker = broker, config = { ["task.shutdown.graceful.timeout.ms"] = 3000 } }
    local dir, topic = proc.tmpdir "hang", kafka.unique "hang"
    proc.write(dir .. "/in.txt", "1\n")
    worker:request("PUT", "/connectors/h/config", { ["connector.class"] = "FileStreamSource", file = dir .. "/in.txt",
      topic = topic })
    worker:wait_running "h"
    proc.wait_for("line 1", function() return #broker:records(topic) == 1 end)
    broker.process:signal "STOP"
    proc.run("curl -s -m 2 -X PUT " .. worker.url .. "/connectors/h/pause")
    local start = proc.now()
    worker.process:signal "TERM"
    assert.equal(0, worker.process:wait(60))
    assert.is_true(proc.now() - start < 40, ("it took %.1f s"):format(proc.now() - start))
    broker.process:signal "CONT"
    broker:stop()
  end)
end)

describe("REST", function()
  local broker, worker
  setup(function()
    broker = kafka.broker()
    worker = kafka.worker { broker = broker }
  end)
  teardown(function() worker:stop() end)

  it("refuses bodies of 10 MB, half requests and bad JSON, and stays well", function()
    local rss = function() return tonumber((proc.read("/proc/" .. worker.process.pid .. "/status") or ""):match "VmRSS:%s+(%d+)") end
    local code = worker:request("POST", "/connectors", '{"name":"big","config":{"x":"' .. ("y"):rep(10000000) .. '"}}')
    assert.is_true(code >= 400)
    for _ = 1, 20 do
      proc.run(("bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d; printf \"POST /connectors HTTP/1.1\\r\\nHost: x\\r\\n" ..
        "Content-Length: 100\\r\\nContent-Type: application/json\\r\\n\\r\\n{\" >&3'"):format(worker.port))
    end
    for _, bad in ipairs { "{", "[]", '"x"', '{"name":5}', '{"name":"a","config":[]}', '{"name":"a","config":{"a":{}}}', "\255",
      "", '{"name":"a","bogus":1}' } do
      code = worker:request("POST", "/connectors", bad)
      assert.is_true(code == 400 or code == 500, bad .. " gave " .. code)
    end
    assert.equal(200, (worker:request("GET", "/health")))
    local before = rss()
    for _ = 1, 10 do worker:request("POST", "/connectors", '{"name":"big","config":{"x":"' .. ("y"):rep(1000000) .. '"}') end
    -- the address sanitizer keeps what was freed
    local limit = os.getenv "LC_PRESET" == "asan" and 300000 or 30000
    assert.is_true(rss() - before < limit, "memory grew by " .. (rss() - before) .. " kB")
    assert.is_true(worker.process:alive())
  end)
end)
