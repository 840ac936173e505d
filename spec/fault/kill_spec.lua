-- spec/fault/kill_spec.lua: the worker ends itself at each named step of the path of records, offsets, settings and
-- letters, by SIGKILL and by SIGTERM, and is started again (rows 1 and 2 of the fault matrix). Killed: nothing is lost;
-- exactly once nothing comes twice, else at most what was sent since the last offsets. Asked to end: nothing comes twice
-- in any mode, and the status is 0. --all: every point at its 1st, 2nd and 10th passage.
local faults = require "spec.support.faults"
local matrix = require "spec.support.matrix"
local proc = require "spec.support.proc"

local all = os.getenv "LC_ALL_TESTS"
local graceful_ms = 5000

local function chosen(names)
  if all then return faults.points end
  local t = {}
  for _, name in ipairs(names) do t[#t + 1] = faults.point(name:match "^[^:]+", name:match ":(.+)$") end
  return t
end

-- The modes of a point side by side, one line of the matrix each; the points of the short run, too, six at a time.
local function each(points, row, fault, f)
  local function add(jobs, broker, point, n)
    local what = point.name .. (point.kind and " (" .. point.kind .. ")" or "")
    for _, mode in ipairs(point.modes) do
      jobs[#jobs + 1] = function()
        matrix.case({ row = row, fault = fault .. " at " .. what, mode = mode, n = n }, function(case)
          f(case, broker, point, mode, n)
        end)
      end
    end
  end
  if not all then
    return it("some fault points, passage 2", function()
      local jobs = {}
      for _, point in ipairs(points) do add(jobs, faults.broker(), point, 2) end
      for i = 1, #jobs, 6 do proc.together { unpack(jobs, i, math.min(i + 5, #jobs)) } end
    end)
  end
  for _, point in ipairs(points) do
    for _, n in ipairs { 1, 2, 10 } do
      it(("%s %s, passage %d"):format(point.name, point.kind or "", n), function()
        local jobs = {}
        add(jobs, faults.broker(), point, n)
        proc.together(jobs)
      end)
    end
  end
end

describe("the list of fault points", function()
  it("names every LC_FAULT of core, and no other", function()
    local named, there = {}, {}
    for _, p in ipairs(faults.points) do named[p.name] = true end
    for name in proc.run "grep -rhoE 'LC_FAULT\\(\"[^\"]+\"\\)' core":gmatch '"([^"]+)"' do there[name] = true end
    assert.same(there, named)
  end)
end)

describe("a worker killed at", function()
  each(chosen { "source.after_send", "source.after_commit", "source.before_offset_write", "sink.before_commit",
    "letters.acked:letters-source" }, 1, "kill -9", function(case, broker, point, mode, n)
    local flow, status = faults.end_at({ broker = broker, mode = mode }, "LC_FAULT_KILL", point, n)
    assert.equal(137, status)
    local before = flow:figures()
    local delivered = flow:look()
    local committed = flow:committed()
    case.limit, case.seconds = faults.restart_limit, faults.start_again(flow)
    local most = not flow:exactly_once() and before.largest - committed or nil
    if most then case.note = ("at most %d"):format(most) end
    local r = flow:wait_and_judge(case, most)
    if point.behind == "source" and n > 1 then assert(committed > 0, "no offset was stored before") end
    if point.behind == "sink" and n > 1 then
      -- what is twice in the topic is so in the file, too
      assert(r.again - r.duplicates < delivered, "the sink began again at the first line, as if it had committed nothing")
    end
    assert.equal(0, flow.worker:stop())
  end)
end)

-- Seconds of a day of a log line.
local function at(log, text)
  local line = log:match("[^\n]*" .. text)
  local h, m, s, ms = line:match "(%d%d):(%d%d):(%d%d),(%d%d%d)"
  return h * 3600 + m * 60 + s + ms / 1000
end

describe("a worker that gets SIGTERM at", function()
  each(chosen { "source.after_send", "source.before_commit" }, 2, "SIGTERM", function(case, broker, point, mode, n)
    local flow, status = faults.end_at({ broker = broker, mode = mode,
      config = { ["task.shutdown.graceful.timeout.ms"] = graceful_ms } }, "LC_FAULT_TERM", point, n)
    assert.equal(0, status)
    local log = flow.worker:log()
    case.limit = graceful_ms / 1000 + 1
    case.seconds = (at(log, "Kafka Connect stopped") - at(log, "SIGTERM received")) % 86400
    case.note = ("restart %.1f s"):format(faults.start_again(flow))
    local r = flow:wait_and_judge(case, 0)
    assert(r.again == 0, r.again .. " lines twice in the sink's file")
    assert.equal(0, flow.worker:stop())
  end)
end)
