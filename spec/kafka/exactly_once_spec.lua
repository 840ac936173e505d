-- spec/kafka/exactly_once_spec.lua: exactly-once sources on the real Kafka. Lab 3 is the one that people run by hand.
local eos = require "spec.support.eos"
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"
local with = require "spec.support.with"

local enabled, source = eos.enabled, eos.source
local committed, all, wait_committed, transactions = eos.committed, eos.all, eos.wait_committed, eos.transactions
local numbered = eos.numbered

local function keys(broker, worker, prefix) return eos.config_values(broker, worker.id, prefix) end

describe("lab 3: an exactly-once FileStreamSource", function()
  local broker, worker, file, topic
  setup(function()
    broker = kafka.broker()
    worker = kafka.worker { broker = broker, config = enabled }
    file, topic = proc.tmpdir "lab" .. "/e.txt", kafka.unique "eos"
    proc.write(file, "E-1 created\nE-2 created\n")
  end)
  teardown(function() worker:stop() end)

  it("commits each poll: the position is there though the flush interval is a minute", function()
    local code = worker:request("PUT", "/connectors/eos-src/config", source(file, topic,
      { ["exactly.once.support"] = "required", ["transaction.boundary"] = "poll" }))
    assert.equal(201, code)
    worker:wait_running "eos-src"
    wait_committed(broker, topic, 2)
    proc.append(file, "E-3 created\nE-4 created\n")
    wait_committed(broker, topic, 4)
    local offsets = proc.wait_for("position 48", function()
      local o = worker:offsets "eos-src"
      return o and o[1] and o[1].offset.position == 48 and o
    end, 10)
    assert.same({ { partition = { filename = file }, offset = { position = 48 } } }, offsets)
  end)

  it("shows both transactional ids as committed, and a task count record", function()
    local states, out = transactions(broker)
    assert.equal("CompleteCommit", states["connect-cluster-" .. worker.id], out)
    assert.equal("CompleteCommit", states[worker.id .. "-eos-src-0"], out)
    assert.same({ '{"task-count":1}' }, keys(broker, worker, "tasks-fencing-eos-src"))
  end)

  it("after SIGKILL and a new start every line is there once", function()
    worker:kill()
    worker:start()
    worker:wait_running "eos-src"
    proc.append(file, "E-5 created\n")
    assert.same({ "E-1 created", "E-2 created", "E-3 created", "E-4 created", "E-5 created" },
      wait_committed(broker, topic, 5))
    assert.equal(0, worker:stop())
    worker:start()
    worker:wait_running "eos-src"
    assert.equal(60, worker:offsets "eos-src"[1].offset.position)
    assert.equal(5, #committed(broker, topic))
  end)
end)

-- A source that defines its own boundaries: `script` lists what each poll returns, "record" or "record:commit" or
-- "record:abort", and "|commit" or "|abort" for the batch.
local bounded = [[
local connect = require "connect"
local Task = {}
function Task:start(ctx)
  self.ctx = ctx
  local o = ctx.offsets:get { s = "1" }
  self.at = o and o.at or 0
  self.polls = {}
  for p in (ctx.config.script .. ";"):gmatch "([^;]*);" do self.polls[#self.polls + 1] = p end
end
function Task:poll()
  local line = self.polls[self.at + 1]
  if not line then return nil end
  self.at = self.at + 1
  local out, batch = {}, line:match "|(%w+)"
  for item in line:gsub("|.*", ""):gmatch "%S+" do
    local value, what = item:match "^([^:]+):?(%w*)$"
    local r = { topic = self.ctx.config.topic, value = value, source_partition = { s = "1" },
      source_offset = { at = self.at } }
    out[#out + 1] = r
    if what ~= "" then self.ctx.transaction[what](self.ctx.transaction, r) end
  end
  if batch then self.ctx.transaction[batch](self.ctx.transaction) end
  return out
end
return connect.source { name = "Bounded", class = "Bounded", version = "1", task = Task,
  exactly_once = true, transaction_boundaries = true,
  config = { { "topic", type = "string", doc = "" }, { "script", type = "string", doc = "" } } }
]]

-- Four polls of 3,000 records of 10 kB, more than the producer's queue takes at once.
local heavy = [[
local connect = require "connect"
local Task = {}
function Task:start(ctx)
  self.ctx = ctx
  local o = ctx.offsets:get { s = "1" }
  self.at = o and o.at or 0
end
function Task:poll()
  if self.at >= 12000 then return nil end
  local out = {}
  for i = 1, 3000 do
    self.at = self.at + 1
    out[i] = { topic = self.ctx.config.topic, value = self.at .. ":" .. ("x"):rep(10000), source_partition = { s = "1" },
      source_offset = { at = self.at } }
  end
  return out
end
return connect.source { name = "Heavy", class = "Heavy", version = "1", task = Task, exactly_once = true,
  config = { { "topic", type = "string", doc = "" } } }
]]

describe("exactly-once sources", function()
  local broker, worker, dir
  setup(function()
    broker = kafka.broker()
    dir = proc.tmpdir "plugins"
    proc.write(dir .. "/bounded.lua", bounded)
    proc.write(dir .. "/heavy.lua", heavy)
    worker = kafka.worker { broker = broker, config = with(enabled, { ["plugin.path"] = dir }) }
  end)
  teardown(function() worker:stop() end)

  local function create(name, config)
    local code, text = worker:request("PUT", "/connectors/" .. name .. "/config", config)
    assert(code == 201 or code == 200, text)
    worker:wait_running(name)
  end

  it("paused, stopped and restarted amid a poll larger than the producer's queue deliver each record once", function()
    local topic = kafka.unique "heavy"
    create("heavy", { ["connector.class"] = "Heavy", topic = topic, ["transaction.boundary"] = "poll",
      ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter" })
    for i, verb in ipairs { "pause", "resume", "stop", "resume", "pause", "resume" } do
      worker:request("PUT", "/connectors/heavy/" .. verb)
      if i == 2 then worker:request("POST", "/connectors/heavy/tasks/0/restart") end
    end
    local got = proc.wait_for("12000 records", function()
      local values = committed(broker, topic)
      return #values >= 12000 and values
    end, 120)
    for i, v in ipairs(got) do assert.equal(i, tonumber(v:match "^%d+")) end
    worker:request("DELETE", "/connectors/heavy")
  end)

  it("fail at once when the broker refuses a record amid a poll, and nothing of the poll is committed", function()
    local file, n = proc.tmpdir "refused" .. "/r.txt", 12
    proc.write(file, ("x"):rep(1500000) .. "\nsmall\n")
    local topics = {}
    for i = 1, n do
      topics[i] = kafka.unique "refused" -- each a new one: its first request may have to be tried again
      assert.equal(201, (worker:request("PUT", "/connectors/refused" .. i .. "/config", source(file, topics[i],
        { ["producer.override.max.request.size"] = "5000000" }))))
    end
    for i = 1, n do
      local s = proc.wait_for("refused" .. i .. " to be FAILED", function()
        local s = worker:status("refused" .. i)
        return s and s.tasks[1] and s.tasks[1].state == "FAILED" and s
      end, 40) -- less than a transaction's 60 s
      assert.matches("Caused by: org.apache.kafka.common.errors.RecordTooLargeException: ", s.tasks[1].trace, 1, true)
    end
    local states = proc.wait_for("the ends of the transactions", function()
      local states = transactions(broker)
      for i = 1, n do
        if states[("%s-refused%d-0"):format(worker.id, i)] == "Ongoing" then return false end
      end
      return states
    end, 40)
    for i = 1, n do
      assert.not_equal("CompleteCommit", states[("%s-refused%d-0"):format(worker.id, i)])
      assert.same({}, committed(broker, topics[i]))
      assert.same({}, worker:offsets("refused" .. i))
      worker:request("DELETE", "/connectors/refused" .. i)
    end
  end)

  -- Java's batches are of 16 kB, ours of up to 1 MB, and Java splits what is refused.
  for _, boundary in ipairs { "poll", "interval" } do
    it(("may write to a topic that takes only small batches (%s): each line once, the one that is too large is named")
      :format(boundary), function()
        local topic, file, lines = kafka.unique "small", proc.tmpdir "small" .. "/s.txt", {}
        for i = 1, 5000 do lines[i] = i .. (" "):rep(100) end
        proc.write(file, table.concat(lines, "\n") .. "\n")
        broker:produce(topic, { "0" })
        assert(broker:topic_setting(topic, "max.message.bytes=20000"))
        local name = "small-" .. boundary
        create(name, source(file, topic, { ["transaction.boundary"] = boundary,
          ["transaction.boundary.interval.ms"] = boundary == "interval" and "500" or nil }))
        local values = proc.wait_for("5001 records", function()
          local values = committed(broker, topic)
          return #values >= 5001 and values
        end)
        for i = 0, 5000 do assert.equal(i, tonumber(values[i + 1])) end
        assert.equal("RUNNING", worker:status(name).tasks[1].state)
        local f = assert(io.open(file, "a"))
        f:write("good\n", ("y"):rep(30000), "\n")
        f:close()
        local trace = proc.wait_for("FAILED", function()
          local s = worker:status(name)
          return s.tasks[1] and s.tasks[1].state == "FAILED" and s.tasks[1].trace
        end)
        assert.matches("Caused by: org.apache.kafka.common.errors.RecordTooLargeException: ", trace, 1, true)
        worker:request("DELETE", "/connectors/" .. name)
      end)
  end

  it("may find out of it amid a large file: they begin again and never fail", function()
    local n, file, names = 60000, proc.tmpdir "amid" .. "/a.txt", {}
    local f = assert(io.open(file, "w"))
    for i = 1, n do f:write(i, (" "):rep(100), "\n") end
    f:close()
    for i = 1, 4 do
      local topic, boundary = kafka.unique "amid", i % 2 == 0 and "poll" or "interval"
      broker:produce(topic, { "0" })
      assert(broker:topic_setting(topic, "max.message.bytes=20000"))
      create("amid" .. i, source(file, topic, { ["transaction.boundary"] = boundary,
        ["transaction.boundary.interval.ms"] = boundary == "interval" and "1000" or nil }))
      names[i] = topic
    end
    for i, topic in ipairs(names) do
      proc.wait_for("position at the end of amid" .. i, function()
        local s = worker:status("amid" .. i)
        assert.not_equal("FAILED", s.tasks[1] and s.tasks[1].state, s.tasks[1] and s.tasks[1].trace)
        local o = worker:offsets("amid" .. i)
        return o and o[1] and o[1].offset.position == #proc.read(file)
      end, 120)
      local values = committed(broker, topic)
      assert.equal(n + 1, #values)
      for k = 0, n do assert.equal(k, tonumber(values[k + 1])) end
      worker:request("DELETE", "/connectors/amid" .. i)
    end
  end)

  it("keep a transaction of an interval open, and commit it when they are stopped", function()
    local file, topic = proc.tmpdir "intv" .. "/i.txt", kafka.unique "intv"
    proc.write(file, "i1\ni2\n")
    create("intv", source(file, topic, { ["transaction.boundary"] = "interval",
      ["transaction.boundary.interval.ms"] = "600000" }))
    proc.wait_for("i2", function() return #all(broker, topic) == 2 end)
    assert.equal(0, #committed(broker, topic))
    assert.same({}, worker:offsets "intv")
    assert.equal(204, (worker:request("PUT", "/connectors/intv/stop")))
    assert.same({ "i1", "i2" }, wait_committed(broker, topic, 2))
    proc.wait_for("the offset", function()
      local o = worker:offsets "intv"
      return o[1] and o[1].offset.position == 6
    end)
    assert.equal(202, (worker:request("PUT", "/connectors/intv/resume")))
    worker:wait_running "intv"
    proc.append(file, "i3\n")
    proc.wait_for("i3", function() return #all(broker, topic) >= 3 end)
    assert.equal(202, (worker:request("PUT", "/connectors/intv/pause")))
    assert.same({ "i1", "i2", "i3" }, wait_committed(broker, topic, 3))
  end)

  it("commit when the interval is over, also while nothing new comes", function()
    local file, topic = proc.tmpdir "intv" .. "/i.txt", kafka.unique "intv"
    proc.write(file, "i1\n")
    create("short", source(file, topic, { ["transaction.boundary"] = "interval",
      ["transaction.boundary.interval.ms"] = "1500" }))
    assert.same({ "i1" }, wait_committed(broker, topic, 1))
  end)

  it("end transactions where the connector says, per batch and per record", function()
    local topic = kafka.unique "bound"
    create("bound", { ["connector.class"] = "Bounded", topic = topic, ["transaction.boundary"] = "connector",
      ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter",
      script = "a1 a2;a3|commit;b1 b2;b3|abort;c1:commit c2 c3:abort c4;c5|commit" })
    assert.same({ "a1", "a2", "a3", "c1", "c4", "c5" }, wait_committed(broker, topic, 6))
    assert.equal(11, #all(broker, topic))
    assert.same({ partition = { s = "1" }, offset = { at = 6 } }, worker:offsets "bound"[1])
  end)

  it("have no ctx.transaction where the worker sets the boundaries", function()
    local topic = kafka.unique "wrong"
    worker:request("PUT", "/connectors/wrong/config", { ["connector.class"] = "Bounded", topic = topic,
      ["transaction.boundary"] = "poll", script = "a1|commit" })
    local s = proc.wait_for("FAILED", function()
      local st = worker:status "wrong"
      return st and st.tasks[1] and st.tasks[1].state == "FAILED" and st
    end)
    assert.truthy(s.tasks[1].trace:find("transaction", 1, true), s.tasks[1].trace)
  end)

  it("write to an offsets topic of their own in the transaction, and to the worker's after it", function()
    local file, topic, own = proc.tmpdir "own" .. "/c.txt", kafka.unique "own", kafka.unique "own-offsets"
    proc.write(file, "c1\nc2\n")
    create("own", source(file, topic, { ["offsets.storage.topic"] = own }))
    assert.same({ "c1", "c2" }, wait_committed(broker, topic, 2))
    local key = '["own",{"filename":"' .. file .. '"}]'
    local function has(t)
      for _, r in ipairs(broker:records(t)) do if r.key == key then return r.value end end
    end
    proc.wait_for("its offset", function() return has(own) == '{"position":6}' end)
    proc.wait_for("the worker's", function() return has(worker.id .. "-offsets") == '{"position":6}' end)
    assert.equal(6, worker:offsets "own"[1].offset.position)
    -- a restart reads it there
    assert.equal(204, (worker:request("POST", "/connectors/own/restart?includeTasks=false")))
    worker:request("POST", "/connectors/own/tasks/0/restart")
    worker:wait_running "own"
    proc.append(file, "c3\n")
    assert.same({ "c1", "c2", "c3" }, wait_committed(broker, topic, 3))
  end)

  it("may not write to the offsets topic", function()
    local file = proc.tmpdir "loop" .. "/l.txt"
    proc.write(file, "x\n")
    worker:request("PUT", "/connectors/loop/config", source(file, worker.id .. "-offsets"))
    local s = proc.wait_for("FAILED", function()
      local st = worker:status "loop"
      return st and st.tasks[1] and st.tasks[1].state == "FAILED" and st
    end)
    assert.truthy(s.tasks[1].trace:find("^org.apache.kafka.connect.errors.ConnectException: Source tasks may not "
      .. "produce to their own offsets topics when exactly%-once support is enabled"), s.tasks[1].trace)
  end)

  it("give up a transaction that holds a record the broker will not take", function()
    local topic = kafka.unique "big"
    worker:request("PUT", "/connectors/big/config", { ["connector.class"] = "Bounded", topic = topic,
      ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter", script = "s1 " .. ("x"):rep(3000),
      ["producer.override.max.request.size"] = "2000" })
    local s = proc.wait_for("FAILED", function()
      local st = worker:status "big"
      return st and st.tasks[1] and st.tasks[1].state == "FAILED" and st
    end)
    local trace = s.tasks[1].trace
    assert.truthy(trace:find("^org.apache.kafka.connect.errors.ConnectException: Failed to flush offsets and/or "
      .. "records for task big%-0"), trace)
    assert.truthy(trace:find("Caused by: org.apache.kafka.common.errors.RecordTooLargeException", 1, true), trace)
    assert.equal(0, #committed(broker, topic))
    assert.same({}, worker:offsets "big")
    worker:request("DELETE", "/connectors/big")
  end)
end)

local many = [[
local connect = require "connect"
local Task = {}
function Task:start(ctx)
  self.ctx, self.key = ctx, { s = ctx.config.slice }
  local o = ctx.offsets:get(self.key)
  self.at = o and o.at or 0
end
function Task:poll()
  if self.at >= tonumber(self.ctx.config.count) then return nil end
  self.at = self.at + 1
  return { { topic = self.ctx.config.topic, value = self.ctx.config.slice .. "-" .. self.at, source_partition = self.key,
    source_offset = { at = self.at } } }
end
return connect.source { name = "Many", class = "Many", version = "1", task = Task, exactly_once = true,
  task_configs = function(config, max)
    local out = {}
    for i = 1, max do out[i] = { slice = tostring(i), topic = config.topic, count = config.count } end
    return out
  end,
  config = { { "topic", type = "string", doc = "" }, { "count", type = "string", doc = "" },
    { "slice", type = "string", default = "", doc = "" } } }
]]

describe("sets of tasks", function()
  it("are fenced before the next one writes", function()
    local broker, dir = kafka.broker(), proc.tmpdir "many"
    proc.write(dir .. "/many.lua", many)
    local worker = kafka.worker { broker = broker, config = with(enabled, { ["plugin.path"] = dir }) }
    local topic = kafka.unique "many"
    local function put(tasks, count)
      local code, text = worker:request("PUT", "/connectors/many/config", { ["connector.class"] = "Many", topic = topic,
        count = tostring(count), ["tasks.max"] = tostring(tasks),
        ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter" })
      assert(code == 201 or code == 200, text)
    end
    put(3, 2)
    worker:wait_running("many", 3)
    wait_committed(broker, topic, 6)
    put(2, 4)
    worker:wait_running("many", 2)
    wait_committed(broker, topic, 10)
    put(4, 5)
    worker:wait_running("many", 4)
    local seen, records = {}, wait_committed(broker, topic, 20)
    for _, v in ipairs(records) do
      assert.is_nil(seen[v], v)
      seen[v] = true
    end
    assert.equal(20, #records)
    assert.same({ '{"task-count":3}', '{"task-count":2}', '{"task-count":4}' }, keys(broker, worker, "tasks-fencing-many"))
    assert.truthy(worker:log():find("Performing a round of zombie fencing for connector many: 3 producers", 1, true))
    assert.equal(0, worker:stop())
  end)
end)

describe("a Java worker and ours with exactly-once sources", function()
  it("fence for each other, and go on where the other one's transactions ended", function()
    local broker, id = kafka.broker(), kafka.unique "mixed"
    local config = with(enabled, { ["scheduled.rebalance.max.delay.ms"] = 0 })
    local java = kafka.worker { broker = broker, id = id, java = true, config = config }
    local ours = kafka.worker { broker = broker, id = id, config = config }
    local dir, flows = proc.tmpdir "mixed", {}
    local function append(count)
      for _, f in ipairs(flows) do
        for _ = 1, count do
          f.n = f.n + 1
          proc.append(f.file, f.n .. "\n")
        end
      end
    end
    local function complete()
      for _, f in ipairs(flows) do
        wait_committed(broker, f.topic, f.n)
        assert.equal(f.n, numbered(committed(broker, f.topic)))
      end
    end
    local function put(w, f, more)
      local code, text
      proc.wait_for("the config of " .. f.name, function()
        code, text = w:request("PUT", "/connectors/" .. f.name .. "/config", source(f.file, f.topic, more))
        return code ~= 409
      end)
      assert(code == 201 or code == 200, text)
    end
    for i = 1, 4 do
      flows[i] = { name = "x" .. i, file = dir .. "/" .. i, topic = kafka.unique "mix", n = 0 }
      proc.append(flows[i].file, "")
      put(ours, flows[i])
    end
    append(3)
    complete()
    local where = {}
    for _, f in ipairs(flows) do where[ours:wait_running(f.name).tasks[1].worker_id] = true end
    assert.is_true(where["127.0.0.1:" .. java.port] and where["127.0.0.1:" .. ours.port], "one worker has it all")
    for _, f in ipairs(flows) do put(java, f, { ["batch.size"] = "1000" }) end -- new sets of tasks
    append(3)
    complete()
    assert.equal(0, ours:stop())
    append(3)
    complete()
    ours:start()
    append(3)
    assert.truthy(java:stop())
    complete()
    for _, f in ipairs(flows) do put(ours, f, { ["batch.size"] = "1001" }) end -- ours leads now
    append(3)
    complete()
    assert.equal(0, ours:stop())
  end)
end)
