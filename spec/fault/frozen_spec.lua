-- spec/fault/frozen_spec.lua: of two workers the one that runs the source is frozen (SIGSTOP) for longer than its session, the
-- other takes over, and it comes back (row 3 of the fault matrix): nothing is lost, exactly once nothing comes twice, the
-- old task is fenced and writes no offsets any more, the thawed worker takes part again. --all: each mode, twice, the second
-- time for a minute.
local faults = require "spec.support.faults"
local matrix = require "spec.support.matrix"
local proc = require "spec.support.proc"
local kafka = require "spec.support.kafka"

local all = os.getenv "LC_ALL_TESTS"
local takeover_limit = 6 + 10 -- its session, and what a restart may take

describe("a worker frozen for longer than its session", function()
  -- Which of two workers runs the source's task, as worker `asked` says; nil: none.
  local function owner(workers, flow, asked)
    local s = workers[asked]:status(flow.connectors[1].name)
    local task = s and s.tasks[1]
    for i, w in ipairs(workers) do
      if task and task.state == "RUNNING" and task.worker_id == "127.0.0.1:" .. w.port then return i end
    end
  end

  -- Positions as they were written to the offsets topic, aborted ones left out.
  local function positions(flow)
    local t = {}
    for _, r in ipairs(flow.broker:records(flow.worker.id .. "-offsets")) do
      if r.key:find(flow.connectors[1].name, 1, true) then t[#t + 1] = tonumber(r.value:match '"position":(%d+)') end
    end
    return t
  end

  -- The end of the topic, behind open transactions.
  local function high(flow)
    local out = proc.run(("kcat -b %s -Q -t %s:0:-1 -X isolation.level=read_uncommitted 2>/dev/null"):format(flow.broker.bootstrap,
      flow.topic))
    return tonumber(out:match "offset (%d+)")
  end

  local function freeze(case, flow, workers, rounds)
    for round = 1, rounds do
      case.n = round
      local frozen = proc.wait_for("an owner", function() return owner(workers, flow, 1) end)
      local other = 3 - frozen
      flow.worker = workers[other] -- who answers
      flow:append(20)
      flow:wait()
      local past = high(flow)
      flow:append(20)
      proc.wait_for("lines on their way, in a transaction or not", function() return high(flow) > past end)
      workers[frozen].process:signal "STOP"
      local began = proc.now()
      proc.wait_for("the other worker to take over", function()
        flow:append(2)
        return owner(workers, flow, other) == other
      end, 60 * proc.slow)
      local before = flow.n
      flow:append(2)
      proc.wait_for("a line through the other worker", function() return flow:look() > before end, 60 * proc.slow)
      case.seconds = math.max(case.seconds or 0, proc.now() - began)
      if round > 1 then proc.stays("the other's task", function() return true end, 60 - (proc.now() - began)) end
      flow:append(20)
      flow:wait()
      local stored = #positions(flow)
      workers[frozen].process:signal "CONT"
      for _ = 1, 10 do
        flow:append(5)
        proc.stays("a moment", function() return true end, 0.1)
      end
      flow:wait()
      proc.wait_for("both in the group", function()
        return workers[frozen]:healthy() and owner(workers, flow, frozen) and owner(workers, flow, other)
      end)
      local list = positions(flow)
      for i = stored + 1, #list do
        assert(list[i] >= list[i - 1], ("offset %d was written after %d"):format(list[i], list[i - 1]))
      end
      flow.worker = workers[frozen]
      flow:reconfigure() -- also through the thawed one, whoever leads
      flow:append(5)
      flow:wait()
    end
    flow:judge(case)
    if flow.mode == "eos-interval" then -- its transaction was open when it was frozen
      local log = workers[1]:log() .. workers[2]:log()
      assert.truthy(log:find("Failed to flush offsets and/or records for task " .. flow.connectors[1].name, 1, true))
      assert.truthy(log:find("ProducerFencedException", 1, true))
    end
  end

  local modes = all and faults.modes or { "eos-interval" }
  it("is replaced, and comes back", function()
    local broker, jobs = faults.broker(), {}
    for i, mode in ipairs(modes) do
      jobs[i] = function()
        matrix.case({ row = 3, fault = "owner frozen", mode = mode, limit = takeover_limit }, function(case)
          local id, workers = kafka.unique "frozen", {}
          -- an open transaction of the frozen one must be there when it comes back
          local flow = faults.flow { broker = broker, mode = mode, source = { ["transaction.boundary.interval.ms"] =
            mode == "eos-interval" and 3000 or nil } }
          for k = 1, 2 do
            workers[k] = faults.worker { broker = broker, mode = mode, id = id }
            workers[k]:start(false)
          end
          flow.worker = workers[1]
          flow:append(20)
          proc.wait_for("the connectors", function() return flow:create() end, 60 * proc.slow)
          flow:wait(60)
          freeze(case, flow, workers, all and 2 or 1)
          for _, w in ipairs(workers) do w.process:signal "TERM" end
          for _, w in ipairs(workers) do assert.equal(0, w.process:wait(60)) end
        end)
      end
    end
    proc.together(jobs)
  end)
end)
