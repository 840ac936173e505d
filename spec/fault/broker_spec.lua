-- spec/fault/broker_spec.lua: the broker is late, restarts while lines flow, or is gone for a minute: nothing
-- is lost, no task fails, the log says what is being waited for (row 4 of the fault matrix).
local kafka = require "spec.support.kafka"
local oracle = require "spec.support.oracle"
local proc = require "spec.support.proc"

local all = os.getenv "LC_ALL_TESTS"

describe("the broker", function()
  local broker, dir
  setup(function()
    broker = kafka.broker { own = true }
    dir = proc.tmpdir "outage"
  end)
  teardown(function() if broker.process:alive() then broker:stop() end end)

  it("may start after the worker, which says what it waits for", function()
    broker:stop()
    local worker = kafka.worker { broker = broker, start = false }
    worker:start(false)
    proc.wait_for("a message that names the broker", function()
      return worker:log():find(broker.bootstrap, 1, true)
    end, 30)
    proc.stays("the worker", function() return worker.process:alive() and not worker:healthy() end, 3)
    broker:start()
    proc.wait_for("the worker", function() return worker:healthy() end, 60)
    assert.equal(0, worker:stop())
  end)

  it("may restart or be gone while lines flow: nothing lost, nothing FAILED", function()
    local worker = kafka.worker { broker = broker }
    local file, topic = dir .. "/lines.txt", kafka.unique "flow"
    proc.write(file, "")
    worker:request("PUT", "/connectors/flow/config", { ["connector.class"] = "FileStreamSource", file = file,
      topic = topic })
    worker:request("PUT", "/connectors/flow-out/config", { ["connector.class"] = "FileStreamSink",
      file = dir .. "/out.txt", topics = topic })
    worker:wait_running "flow"
    worker:wait_running "flow-out"
    local n = 0
    local function write(count)
      proc.append(file, table.concat(oracle.lines("L", n + 1, n + count), "\n") .. "\n")
      n = n + count
    end
    local function no_failure()
      for _, name in ipairs { "flow", "flow-out" } do
        local s = worker:status(name)
        if s then
          for _, t in ipairs(s.tasks) do assert.not_equal("FAILED", t.state) end
          assert.not_equal("FAILED", s.connector.state)
        end
      end
    end
    for _, gap in ipairs(all and { 0, 60 } or { 0, 8 }) do
      for _ = 1, 10 do write(200) end
      broker:stop()
      for _ = 1, 5 do write(200) end
      if gap > 0 then proc.stays("the worker", function() write(10); return worker.process:alive() end, gap) end
      no_failure()
      broker:start()
      write(200)
      proc.wait_for(("all %d lines in the topic and in the file"):format(n), function()
        local out = proc.read(dir .. "/out.txt") or ""
        return out:find("L-" .. n .. " created\n", 1, true)
      end, 120)
      no_failure()
    end
    worker:wait_running("flow", 1, "RUNNING", 120)
    worker:wait_running("flow-out", 1, "RUNNING", 120)
    local r = oracle.check(broker:values(topic), "L", n)
    assert.same({}, r.lost)
    assert.equal(0, r.disorder)
    local lines = {}
    for l in proc.read(dir .. "/out.txt"):gmatch "[^\n]+" do lines[#lines + 1] = l end
    assert.same({}, oracle.check(lines, "L", n).lost)
    assert.equal(0, worker:stop())
  end)
end)
