-- spec/fault/exactly_once_spec.lua: the broker killed inside transactions: lines are numbered, and a read_committed consumer
-- sees each once and in order (row 4 of the fault matrix).
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

describe("exactly-once sources", function()
  local broker
  setup(function() broker = kafka.broker { own = true } end)
  teardown(function() if broker.process:alive() then broker:stop() end end)

  local function start(env)
    return kafka.worker { broker = broker, env = env, start = false, config = {
      ["exactly.once.source.support"] = "enabled", ["session.timeout.ms"] = 6000, ["heartbeat.interval.ms"] = 1500,
      ["scheduled.rebalance.max.delay.ms"] = 0 } }
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
