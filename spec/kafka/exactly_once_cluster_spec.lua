-- spec/kafka/exactly_once_cluster_spec.lua: exactly-once sources in clusters that change: the rolling upgrade from
-- disabled over preparing to enabled, workers that differ, sets of tasks that grow and shrink, connectors that are
-- deleted, all with lines flowing.
local eos = require "spec.support.eos"
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"
local with = require "spec.support.with"

local quick = { ["session.timeout.ms"] = 6000, ["heartbeat.interval.ms"] = 1500, ["scheduled.rebalance.max.delay.ms"] = 0,
  ["offset.flush.interval.ms"] = 500 }
local TEXT = "This worker does not have exactly-once source support enabled."

-- Stop the worker and start it with another exactly.once.source.support.
local function restart_with(worker, mode)
  assert.equal(0, worker:stop())
  local text = proc.read(worker.file):gsub("exactly%.once%.source%.support=%a+", "exactly.once.source.support=" .. mode)
  proc.write(worker.file, text)
  worker:start()
end

-- As a patient client asks.
local function call(worker, method, path, body)
  local code, text, json
  proc.wait_for(method .. " " .. path, function()
    code, text, json = worker:request(method, path, body)
    return code ~= 409
  end)
  return code, text, json
end

local function put(worker, name, config)
  local code, text = call(worker, "PUT", "/connectors/" .. name .. "/config", config)
  assert(code == 201 or code == 200, text)
end

-- The transactional ids of tasks that the coordinator knows.
local function task_ids(broker, id)
  local n = 0
  for name in pairs(eos.transactions(broker)) do if name:find(id .. "-", 1, true) == 1 then n = n + 1 end end
  return n
end

describe("a cluster of three", function()
  it("becomes exactly-once in two rolling restarts, with lines flowing", function()
    local broker, id, dir = kafka.broker(), kafka.unique "upgrade", proc.tmpdir "upgrade"
    local workers, flows = {}, {}
    for i = 1, 3 do
      workers[i] = kafka.worker { broker = broker, id = id, config = with(quick, { ["exactly.once.source.support"] = "disabled" }) }
    end
    for i = 1, 3 do
      flows[i] = eos.flow(dir .. "/" .. i, kafka.unique "up")
      put(workers[i % 3 + 1], id .. i, eos.source(flows[i].file, flows[i].topic))
    end
    local function append(n) for _, f in ipairs(flows) do f:append(n) end end
    local function complete()
      for _, f in ipairs(flows) do
        assert.equal(f.n, eos.numbered(eos.wait_committed(broker, f.topic, f.n)))
      end
    end
    -- required is refused, in the answer to a validation, too, until this worker has "enabled"
    local function refused(worker, yes)
      local required = eos.source(flows[1].file, flows[1].topic, { ["exactly.once.support"] = "required", name = "r" })
      local code, _, json = worker:request("PUT", "/connector-plugins/FileStreamSource/config/validate", required)
      assert.equal(200, code)
      for _, c in ipairs(json.configs) do
        if c.value.name == "exactly.once.support" then assert.same(yes and { TEXT } or {}, c.value.errors) end
      end
      if not yes then return end
      local text
      code, text = call(worker, "PUT", "/connectors/r/config", required)
      assert.equal(400, code)
      assert.matches(TEXT, text, 1, true)
      assert.equal(404, (call(worker, "GET", "/connectors/r")))
    end
    local function everywhere(what, ...)
      for _, w in ipairs(workers) do what(w, ...) end
    end

    append(3)
    complete()
    everywhere(refused, true)
    for _, mode in ipairs { "preparing", "enabled" } do
      for i, w in ipairs(workers) do
        append(2)
        restart_with(w, mode)
        refused(w, mode ~= "enabled")
        append(2)
        complete()
        -- every worker shows and changes everything while they differ
        everywhere(function(other)
          assert.equal(200, (call(other, "GET", "/connectors/" .. id .. "1/config")))
          assert.equal(200, (call(other, "GET", "/connectors/" .. id .. i .. "/offsets")))
        end)
        put(workers[i % 3 + 1], id .. i, eos.source(flows[i].file, flows[i].topic, { ["batch.size"] = tostring(1000 + i) }))
        append(1)
        complete()
      end
      if mode == "preparing" then
        assert.equal(0, task_ids(broker, id)) -- only the leader's writes are transactions by now
        assert.equal("CompleteCommit", eos.transactions(broker)["connect-cluster-" .. id])
        assert.same({}, eos.config_values(broker, id, "tasks-fencing-"))
        everywhere(refused, true)
      end
    end
    everywhere(refused, false)
    for _, f in ipairs(flows) do assert.is_true(f.n > 20) end
    assert.equal(3, task_ids(broker, id))
    assert.is_true(#eos.config_values(broker, id, "tasks-fencing-") >= 3)
    -- and back, as it came
    for _, w in ipairs(workers) do
      restart_with(w, "preparing")
      append(1)
      complete()
    end
    everywhere(function(w) assert.equal(0, w:stop()) end)
  end)

  it("works with an enabled one among disabled ones, though nobody should", function()
    local broker, id, dir = kafka.broker(), kafka.unique "differ", proc.tmpdir "differ"
    local function add(mode)
      return kafka.worker { broker = broker, id = id, config = with(quick, { ["exactly.once.source.support"] = mode }) }
    end
    local off, on, flows = add "disabled", add "enabled", {}
    for i = 1, 4 do
      flows[i] = eos.flow(dir .. "/" .. i, kafka.unique "diff")
      put(on, id .. i, eos.source(flows[i].file, flows[i].topic))
      flows[i]:append(3)
    end
    local where = {}
    for i, f in ipairs(flows) do
      where[off:wait_running(id .. i).tasks[1].worker_id] = true
      assert.equal(3, eos.numbered(eos.wait_committed(broker, f.topic, 3)))
    end
    assert.is_true(where["127.0.0.1:" .. on.port] and where["127.0.0.1:" .. off.port])
    -- the tasks of the enabled one write in transactions, after asking a leader that is not exactly-once itself
    assert.equal(2, task_ids(broker, id))
    assert.equal(2, #eos.config_values(broker, id, "tasks-fencing-"))
    assert.is_nil(eos.transactions(broker)["connect-cluster-" .. id])
    assert.equal(0, off:stop())
    for i, f in ipairs(flows) do
      f:append(2)
      on:wait_running(id .. i)
      assert.equal(5, eos.numbered(eos.wait_committed(broker, f.topic, 5)))
    end
    assert.equal(0, on:stop())
  end)
end)

-- Each task has the numbers of its slices; there are SLICES of them in all, dealt to the tasks.
local slices = [[
local connect = require "connect"
local Task = {}
function Task:start(ctx)
  self.ctx, self.slices = ctx, {}
  for s in ctx.config.slices:gmatch "%d+" do
    local o = ctx.offsets:get { s = s }
    self.slices[#self.slices + 1] = { s = s, at = o and o.at or 0 }
  end
end
function Task:poll()
  local f = io.open(self.ctx.config.limit)
  local limit = f and tonumber(f:read "*a") or 0
  if f then f:close() end
  local out = {}
  for _, x in ipairs(self.slices) do
    if x.at < limit then
      x.at = x.at + 1
      out[#out + 1] = { topic = self.ctx.config.topic, value = x.s .. "-" .. x.at, source_partition = { s = x.s },
        source_offset = { at = x.at } }
    end
  end
  return #out > 0 and out or nil
end
return connect.source { name = "Slices", class = "Slices", version = "1", task = Task, exactly_once = true,
  task_configs = function(config, max)
    local out = {}
    for i = 1, math.min(max, 6) do out[i] = { slices = "", topic = config.topic, limit = config.limit } end
    for s = 1, 6 do
      local c = out[(s - 1) % #out + 1]
      c.slices = c.slices .. " " .. s
    end
    return out
  end,
  config = { { "topic", type = "string", doc = "" }, { "limit", type = "string", doc = "" },
    { "slices", type = "string", default = "", doc = "" } } }
]]

describe("exactly-once tasks of a connector", function()
  local broker, workers, dir, plugins
  setup(function()
    broker = kafka.broker()
    plugins = proc.tmpdir "plugins"
    dir = proc.tmpdir "slices"
    proc.write(plugins .. "/slices.lua", slices)
    local id = kafka.unique "sets"
    workers = {}
    for i = 1, 2 do
      workers[i] = kafka.worker { broker = broker, id = id, config = with(with(eos.enabled, quick),
        { ["plugin.path"] = plugins }) }
    end
  end)
  teardown(function() for _, w in ipairs(workers) do assert.equal(0, w:stop()) end end)

  for _, boundary in ipairs { "poll", "interval" } do
    it("become more and fewer with records flowing, each record once (boundary " .. boundary .. ")", function()
      local name, topic, limit = "sl-" .. boundary, kafka.unique "sl", dir .. "/" .. boundary
      local feeder = proc.start { "bash", "-c",
        ("i=0; while [ ! -e %s.stop ]; do i=$((i + 1)); echo -n $i > %s.new; mv %s.new %s; sleep 0.1; done")
          :format(limit, limit, limit, limit), name = "feeder", dir = dir }
      -- by the offsets: a consumer of a topic that grows all the time does not find its end
      local function progress()
        local sum = 0
        for _, o in ipairs(workers[1]:offsets(name)) do sum = sum + o.offset.at end
        return sum
      end
      local counts = { 2, 5, 1, 3 }
      for i, n in ipairs(counts) do
        put(workers[i % 2 + 1], name, { ["connector.class"] = "Slices", topic = topic, limit = limit, ["tasks.max"] = tostring(n),
          ["transaction.boundary"] = boundary, ["transaction.boundary.interval.ms"] = "1000",
          ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter" })
        workers[1]:wait_running(name, n)
        local before = progress()
        proc.wait_for("more records", function() return progress() > before + 12 end)
      end
      proc.write(limit .. ".stop", "")
      assert.equal(0, feeder:wait(60))
      local all = 6 * tonumber(proc.read(limit))
      local records, seen = eos.wait_committed(broker, topic, all), {}
      for s = 1, 6 do seen[tostring(s)] = 0 end
      for _, v in ipairs(records) do
        local s, at = v:match "^(%d)%-(%d+)$"
        assert(tonumber(at) == seen[s] + 1, v .. " after " .. seen[s])
        seen[s] = tonumber(at)
      end
      assert.equal(all, #records)
      assert.same({ '{"task-count":2}', '{"task-count":5}', '{"task-count":1}', '{"task-count":3}' },
        eos.config_values(broker, workers[1].id, "tasks-fencing-" .. name))
    end)
  end

  it("commit what they have when the connector is deleted in the middle of a transaction", function()
    local f = eos.flow(dir .. "/deleted", kafka.unique "deleted")
    local config = eos.source(f.file, f.topic, { ["transaction.boundary"] = "interval",
      ["transaction.boundary.interval.ms"] = "600000" })
    put(workers[1], "deleted", config)
    workers[1]:wait_running "deleted"
    f:append(5)
    proc.wait_for("records in an open transaction", function() return #eos.all(broker, f.topic) == 5 end)
    assert.equal(0, #eos.committed(broker, f.topic))
    assert.equal(204, (call(workers[2], "DELETE", "/connectors/deleted")))
    assert.equal(5, eos.numbered(eos.wait_committed(broker, f.topic, 5)))
    for _, w in ipairs(workers) do proc.wait_for("it to be gone", function() return not w:status "deleted" end) end
    f:append(2)
    put(workers[2], "deleted", with(config, { ["transaction.boundary"] = "poll" })) -- its offsets have stayed
    assert.equal(7, eos.numbered(eos.wait_committed(broker, f.topic, 7)))
    call(workers[1], "DELETE", "/connectors/deleted")
  end)

  it("go on where they were after a restart by REST in the middle of a transaction", function()
    local f = eos.flow(dir .. "/restarted", kafka.unique "restarted")
    put(workers[1], "restarted", eos.source(f.file, f.topic, { ["transaction.boundary"] = "interval",
      ["transaction.boundary.interval.ms"] = "700" }))
    workers[1]:wait_running "restarted"
    for i = 1, 6 do
      f:append(10)
      local path = i % 2 == 0 and "/tasks/0/restart" or "/restart?includeTasks=true"
      assert.is_true((call(workers[i % 2 + 1], "POST", "/connectors/restarted" .. path)) < 300)
      f:append(10)
      workers[1]:wait_running "restarted"
    end
    assert.equal(f.n, eos.numbered(eos.wait_committed(broker, f.topic, f.n)))
    call(workers[1], "DELETE", "/connectors/restarted")
  end)
end)
