-- spec/fault/exactly_once_spec.lua: kill -9 at every fault point of an exactly-once task, and the broker killed inside its
-- transactions: lines are numbered, and a read_committed consumer sees each once and in order (rows 1, 15 of the
-- fault matrix). LC_ALL_TESTS=1 (./dev test --all): more points of time, both boundaries each.
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"

local all = os.getenv "LC_ALL_TESTS"

local function committed(broker, topic)
  local out = proc.run(("timeout 60 kcat -b %s -C -q -e -t %s -X isolation.level=read_committed 2>/dev/null"):format(
    broker.bootstrap, topic))
  local n = 0
  for line in out:gmatch "[^\n]+" do
    n = n + 1
    assert(line == tostring(n), ("committed record %d is %s"):format(n, line))
  end
  return n
end

local points = { "config.before_commit", "source.after_fencing", "source.after_init", "source.after_poll",
  "source.after_begin", "source.after_send", "source.before_commit", "source.after_commit" }
if not all then points = { "source.after_init", "source.before_commit", "source.after_commit" } end
local boundaries = { poll = { ["transaction.boundary"] = "poll" },
  interval = { ["transaction.boundary"] = "interval", ["transaction.boundary.interval.ms"] = "200" } }

describe("exactly-once sources", function()
  local broker
  setup(function() broker = kafka.broker { own = true } end)
  teardown(function() if broker.process:alive() then broker:stop() end end)

  local function start(env)
    return kafka.worker { broker = broker, env = env, start = false, config = {
      ["exactly.once.source.support"] = "enabled", ["session.timeout.ms"] = 6000, ["heartbeat.interval.ms"] = 1500,
      ["scheduled.rebalance.max.delay.ms"] = 0 } }
  end

  -- Lines go on while the worker runs; it is killed where `env` says, and started again without that.
  local function survive(env, boundary)
    local worker = start(env)
    local file, topic = proc.tmpdir "eos" .. "/n.txt", kafka.unique "eos"
    local n = 0
    local function append(count)
      local t = {}
      for i = 1, count do t[i] = n + i end
      n = n + count
      proc.append(file, table.concat(t, "\n") .. "\n")
    end
    append(100)
    worker:start(false)
    local config = { ["connector.class"] = "FileStreamSource", file = file, topic = topic, ["batch.size"] = "30",
      ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter" }
    for k, v in pairs(boundaries[boundary]) do config[k] = v end
    local created
    local function create()
      created = created or (worker:request("PUT", "/connectors/n/config", config)) == 201
    end
    proc.wait_for("the kill", function()
      create()
      append(20)
      return not worker.process:alive()
    end, 60)
    worker.env = nil
    append(50)
    worker:start()
    proc.wait_for("the connector", function() create(); return created or worker:status "n" end, 30)
    local began = proc.now()
    proc.wait_for("all lines", function() return committed(broker, topic) == n end, 60)
    print(("%s %s: %d lines once, %.1f s after the start"):format(env.LC_FAULT_KILL, boundary, n, proc.now() - began))
    assert.equal(0, worker:stop())
    assert.equal(n, committed(broker, topic))
  end

  for _, point in ipairs(points) do
    -- these are passed once a start
    local early = point:find "fencing" or point:find "init" or point:find "config"
    for _, n in ipairs(early and { 1 } or all and { 1, 2, 10 } or { 2 }) do
      for _, boundary in ipairs(all and not early and { "poll", "interval" } or { n == 2 and "interval" or "poll" }) do
        it(("survive kill -9 at %s:%d, %s"):format(point, n, boundary), function()
          survive({ LC_FAULT_KILL = point .. ":" .. n }, boundary)
        end)
      end
    end
  end

  it("survive kill -9 of the broker inside transactions", function()
    local worker = start()
    local file, topic = proc.tmpdir "eos" .. "/n.txt", kafka.unique "eos"
    local n = 0
    local function append(count)
      for _ = 1, count do
        n = n + 1
        proc.append(file, n .. "\n")
      end
    end
    append(50)
    worker:start()
    worker:request("PUT", "/connectors/n/config", { ["connector.class"] = "FileStreamSource", file = file, topic = topic,
      ["batch.size"] = "7", ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter",
      ["transaction.boundary"] = "interval", ["transaction.boundary.interval.ms"] = "500" })
    worker:wait_running "n"
    for _ = 1, all and 5 or 1 do
      append(30)
      broker:stop "KILL"
      append(30)
      broker:start()
      append(30)
      proc.wait_for("all lines", function()
        local s = worker:status "n"
        if s and s.tasks[1] and s.tasks[1].state == "FAILED" then -- a transaction that the broker gave up
          worker:request("POST", "/connectors/n/tasks/0/restart")
        end
        return committed(broker, topic) == n
      end, 120)
    end
    assert.equal(0, worker:stop())
  end)
end)
