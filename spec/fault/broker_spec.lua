-- spec/fault/broker_spec.lua: the broker is late, restarts, is killed or is gone while lines flow in all modes: nothing is
-- lost, exactly once nothing comes twice, no task fails for what may be tried again, memory stays within the queues'
-- limits (row 4 of the fault matrix). --all: every outage, and one of two minutes.
local faults = require "spec.support.faults"
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"

local all = os.getenv "LC_ALL_TESTS"
local recovery_limit = 30

describe("the broker", function()
  local broker
  setup(function() broker = faults.broker() end)

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

  -- An outage: stopped by `signal`, started after `gap` seconds. flood: so many lines of 1 kB wait meanwhile, several times
  -- what a producer's queue may hold. A worker of a cluster stops its tasks when it has lost its coordinator, a standalone
  -- one goes on reading.
  local function outage(t)
    local field = faults.field { broker = broker, modes = t.modes }
    finally(function()
      for _, w in ipairs(field.workers) do if w.process:alive() then w:kill() end end
    end)
    for _ = 1, 5 do field:append(100) end
    local before, most = {}, {}
    for _, w in ipairs(field.workers) do before[w] = faults.rss(w) end
    broker:stop(t.signal)
    field:append(100)
    if t.flood then field:append(t.flood, 1000) end
    local function watch()
      for _, w in ipairs(field.workers) do
        assert(w.process:alive(), "the worker ended: " .. w:log():sub(-3000))
        most[w] = math.max(most[w] or 0, faults.rss(w))
      end
      return true
    end
    proc.stays("the workers", function() field:append(2); return watch() end, t.gap)
    local seen = {}
    for _, flow in ipairs(field.flows) do seen[flow] = flow:look() end
    broker:start()
    local back = proc.now()
    field:cases({ row = 4, fault = t.name, limit = recovery_limit }, function(case, flow)
      flow:append(2)
      local failed
      proc.wait_for("the next line", function()
        watch()
        local states, well = flow:states()
        if not well and not failed then
          failed = states
          -- a transaction of which the broker has given up is the task's end, as in Java: somebody restarts it
          assert(flow:exactly_once() and t.may_fail, states)
          flow:restart()
        end
        return flow:look() > seen[flow]
      end, 120 * proc.slow)
      case.seconds = proc.now() - back
      flow:wait(60)
      local old, new = before[flow.worker], most[flow.worker]
      case.note = ("%sRSS %.0f, at most %.0f MB"):format(failed and "task FAILED and was restarted; " or "", old, new)
      flow:judge(case)
      local states, well = flow:states()
      assert(well, states)
      -- what waits: 16 MB a producer, in librdkafka's messages and in the batches that they point into
      assert(not t.flood or new - old < 60, case.note)
    end)
    field:stop()
  end

  -- The only broker of a cluster, when it is asked to stop, forgets the ends of transactions that it is just committing
  -- ("Couldn't find leader endpoint for partitions ... can be skipped" in its log): they hang, and whoever reads committed
  -- offsets, a Java worker too, waits until somebody aborts them (docs/faults.md). So exactly once it is killed.
  for _, t in ipairs(all and {
    { name = "broker restarted", gap = 0, modes = { "at-least-once", "standalone" } },
    { name = "broker restarted by kill -9", gap = 0, signal = "KILL" },
    { name = "broker gone 8 s", gap = 8, signal = "KILL" },
    { name = "broker gone 20 s, 100 MB wait", gap = 20, signal = "KILL", flood = 100000,
      modes = { "at-least-once", "standalone" } },
    { name = "broker gone 120 s", gap = 120, signal = "KILL", may_fail = true },
  } or { { name = "broker gone 8 s", gap = 8, signal = "KILL" } }) do
    it(("may be away: %s"):format(t.name), function() outage(t) end)
  end
end)
