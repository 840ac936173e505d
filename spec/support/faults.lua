-- spec/support/faults.lua: what the specs of the fault matrix share. A flow is numbered lines on their way from a file
-- through a source, a topic and a sink into another file; after a fault it tells what is lost, twice or out of order, and
-- which of that its mode allows.
--
--   local w = faults.worker { broker = b, mode = "eos-poll" }
--   local f = faults.flow { broker = b, worker = w, mode = "eos-poll" }
--   f:append(100); f:create(); ...; f:wait(); f:judge(case)
local kafka = require "spec.support.kafka"
local matrix = require "spec.support.matrix"
local oracle = require "spec.support.oracle"
local proc = require "spec.support.proc"
local with = require "spec.support.with"

local _M = {}

--- How a source promises its offsets: at least once, or exactly once with a transaction a poll or an interval.
_M.modes = { "at-least-once", "eos-poll", "eos-interval" }
_M.restart_limit = 10 -- seconds, of docs/faults.md: a figure, more than that makes a line "slow"

local all, alo, eos = _M.modes, { "at-least-once" }, { "eos-poll", "eos-interval" }

--- Every LC_FAULT of core/ (spec/fault/kill_spec.lua fails when one is missing here). modes: where it is passed; kind: of
-- the flow that passes it; again: what makes it be passed once more, "restart" of the task or "reconfigure"; behind: passing
-- it the second time means that offsets were stored before.
_M.points = {
  { name = "config.before_commit", modes = eos, again = "reconfigure" },
  { name = "config.after_task_records", modes = all, again = "reconfigure" },
  { name = "status.before_send", modes = all, again = "restart" },
  { name = "source.after_fencing", modes = eos, again = "restart" },
  { name = "source.after_init", modes = eos, again = "restart" },
  { name = "source.after_poll", modes = all },
  { name = "source.after_begin", modes = eos },
  { name = "source.after_send", modes = all },
  { name = "source.before_commit", modes = eos },
  { name = "source.after_commit", modes = eos },
  { name = "source.before_offset_write", modes = alo, behind = "source" },
  { name = "offsets.before_send", modes = all, own_offsets = true },
  { name = "offsets.after_ack", modes = all, own_offsets = true },
  { name = "source.after_offset_write", modes = alo, behind = "source" },
  { name = "offset_file.before_rename", modes = { "standalone" }, behind = "source" },
  { name = "sink.after_put", modes = all },
  { name = "sink.before_commit", modes = all, behind = "sink" },
  { name = "sink.after_commit", modes = all, behind = "sink" },
  { name = "letters.after_send", modes = all, kind = "letters-source" },
  { name = "letters.acked", modes = all, kind = "letters-source" },
  { name = "letters.after_send", modes = alo, kind = "letters-sink" },
  { name = "letters.acked", modes = alo, kind = "letters-sink" },
  { name = "source.before_offset_write", modes = alo, kind = "letters-source", behind = "source" },
  { name = "source.before_commit", modes = eos, kind = "letters-source" },
  { name = "sink.before_commit", modes = alo, kind = "letters-sink", behind = "sink" },
  { name = "sink.after_commit", modes = alo, kind = "letters-sink", behind = "sink" },
}

--- The entry of a point; kind: of those with several, the one of this kind.
function _M.point(name, kind)
  for _, p in ipairs(_M.points) do if p.name == name and (not kind or p.kind == kind) then return p end end
  error("no fault point " .. name)
end

-- ---- the broker and workers --------------------------------------------------------------------------------------

local broker
--- The broker of all fault specs of a run, running, also after one of them has stopped it. broker.behind is the port that
-- a proxy on broker.proxy_port leads to; clients that begin there stay there.
function _M.broker()
  if not broker then
    local behind, proxied = proc.free_port(), proc.free_port()
    broker = kafka.broker { own = true, proxied = { port = behind, advertised = proxied } }
    broker.behind, broker.proxy_port = behind, proxied
  end
  if not broker.process:alive() then broker:start() end
  return broker
end

--- worker { broker =, mode =, env =, id =, config = }: not started yet.
function _M.worker(t)
  local config = with({ ["session.timeout.ms"] = 6000, ["heartbeat.interval.ms"] = 1500, ["offset.flush.interval.ms"] = 300,
    ["scheduled.rebalance.max.delay.ms"] = 0, ["offset.storage.partitions"] = 1, ["status.storage.partitions"] = 1,
    ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter",
    ["exactly.once.source.support"] = t.mode:find "^eos" and "enabled" or nil }, t.config)
  return kafka.worker { broker = t.broker, id = t.id, env = t.env, config = config, start = false,
    standalone = t.mode == "standalone" }
end

--- Resident memory of a worker in MB.
function _M.rss(worker)
  local text = proc.read(("/proc/%d/status"):format(worker.process.pid)) or ""
  return (tonumber(text:match "VmRSS:%s+(%d+) kB") or 0) / 1024
end

-- ---- flows -------------------------------------------------------------------------------------------------------

local Flow = {}
Flow.__index = Flow

--- flow { broker =, worker =, mode =, kind = "lines", own_offsets = bool, source = {k=v}, sink = {k=v} }
-- kind "lines": every line arrives in the file; "letters-source", "letters-sink": each second line is one that the source
-- cannot transform, or the sink not convert, and is in a dead letter queue. own_offsets: in exactly-once modes the
-- connector has an offsets topic of its own. source, sink: more settings.
function _M.flow(t)
  local name, dir = kafka.unique "flow", proc.tmpdir "flow"
  local f = setmetatable({ broker = t.broker, worker = t.worker, mode = t.mode, kind = t.kind or "lines", name = name,
    n = 0, reached = 0, ends = { [0] = 0 }, file = dir .. "/in.txt", out = dir .. "/out.txt", topic = name,
    letters = name .. "-letters", created = {} }, Flow)
  proc.write(f.file, "")
  local source = { ["connector.class"] = "FileStreamSource", file = f.file, topic = f.topic, ["batch.size"] = 50 }
  local sink = { ["connector.class"] = "FileStreamSink", file = f.out, topics = f.topic,
    ["consumer.override.session.timeout.ms"] = 6000, ["consumer.override.heartbeat.interval.ms"] = 1500 }
  if f:exactly_once() then
    source["transaction.boundary"] = f.mode:match "^eos%-(%a+)$"
    source["transaction.boundary.interval.ms"] = 300
    sink["consumer.override.isolation.level"] = "read_committed"
    if t.own_offsets then source["offsets.storage.topic"] = name .. "-offsets" end
  end
  if f.kind == "letters-source" then
    source.transforms, source["transforms.t.type"], source["transforms.t.spec"] = "t", "Cast$Value", "int32"
    source["errors.deadletterqueue.source.topic.name"] = f.letters
  elseif f.kind == "letters-sink" then
    sink["value.converter"] = "org.apache.kafka.connect.json.JsonConverter"
    sink["value.converter.schemas.enable"] = "false"
    sink["errors.deadletterqueue.topic.name"] = f.letters
  end
  if f.kind ~= "lines" then
    for _, c in ipairs { source, sink } do
      c["errors.tolerance"], c["errors.deadletterqueue.topic.replication.factor"] = "all", 1
    end
  end
  f.connectors = { { name = name .. "-src", config = with(source, t.source) }, { name = name .. "-snk",
    config = with(sink, t.sink) } }
  return f
end

function Flow:exactly_once() return self.mode:find "^eos" ~= nil end

local function good(i) return i % 2 == 1 end
local function bad(i) return i % 2 == 0 end

--- Append `count` lines to the source's file. pad: so many more bytes in each.
function Flow:append(count, pad)
  local t, at = {}, self.ends[self.n]
  for i = self.n + 1, self.n + count do
    local line = ("F-%d created%s"):format(i, pad and (" " .. ("x"):rep(pad)) or "")
    if self.kind == "letters-source" and good(i) then line = tostring(i)
    elseif self.kind == "letters-sink" and good(i) then line = '"' .. line .. '"' end
    t[#t + 1] = line
    at = at + #line + 1
    self.ends[i] = at
  end
  self.n = self.n + count
  proc.append(self.file, table.concat(t, "\n") .. "\n")
end

--- Create what is not there yet of the connectors; true when both are.
function Flow:create()
  local there = true
  for _, c in ipairs(self.connectors) do
    if not self.created[c.name] then
      local code = self.worker:request("PUT", "/connectors/" .. c.name .. "/config", c.config)
      self.created[c.name] = code == 200 or code == 201
    end
    there = there and self.created[c.name]
  end
  return there
end

--- A standalone worker has forgotten them with its end.
function Flow:forget()
  if self.worker.standalone then self.created = {} end
end

--- New settings for the source, that change nothing but the set of tasks.
function Flow:reconfigure()
  local c = self.connectors[1]
  c.config["batch.size"] = c.config["batch.size"] % 90 + 10
  self.worker:request("PUT", "/connectors/" .. c.name .. "/config", c.config)
end

function Flow:restart()
  self.worker:request("POST", "/connectors/" .. self.connectors[1].name .. "/tasks/0/restart")
end

--- The states of both connectors and their tasks, as text; true as second when none of them is FAILED.
function Flow:states(worker)
  local t, well = {}, true
  for _, c in ipairs(self.connectors) do
    local s = (worker or self.worker):status(c.name)
    local states = { s and s.connector.state or "no status" }
    for _, task in ipairs(s and s.tasks or {}) do
      states[#states + 1] = task.state
      if task.trace then states[#states + 1] = task.trace:match "^[^\n]*\n?[^\n]*" end
    end
    local text = table.concat(states, " ")
    if text:find("FAILED", 1, true) then well = false end
    t[#t + 1] = c.name .. " " .. text
  end
  return table.concat(t, ", "), well
end

-- Lines of the sink's file; the number of a good one of letters-source is all of it.
local function numbered(text, kind)
  if kind == "letters-source" and text:find "^%d+$" then return "F-" .. text .. " created" end
  return text
end

--- The largest number in the sink's file, looking at its end only.
function Flow:look()
  local h = io.open(self.out, "rb")
  if not h then return self.reached end
  local size = h:seek "end"
  h:seek("set", math.max(0, size - 20000))
  for line in h:read("*a"):gmatch "([^\n]*)\n" do
    local i = tonumber(numbered(line, self.kind):match "^F%-(%d+) created")
    if i and i > self.reached then self.reached = i end
  end
  h:close()
  return self.reached
end

local function lines_of(path)
  local t = {}
  for l in (proc.read(path) or ""):gmatch "[^\n]+" do t[#t + 1] = l end
  return t
end

function Flow:arrived()
  local last = self.n
  if self.kind ~= "lines" and bad(last) then last = last - 1 end
  return self:look() >= last
    and (self.kind == "lines" or #oracle.check(self.broker:values(self.letters), "F", self.n, bad).lost == 0)
end

--- Wait until all lines are where they belong. Raises when for `seconds` (30) none comes any more, with what REST says.
function Flow:wait(seconds)
  local limit, best, since = (seconds or 30) * proc.slow, self:look(), proc.now()
  proc.wait_for("all lines of " .. self.name, function()
    if self:look() > best then best, since = self.reached, proc.now() end
    if self:arrived() then return true end
    if proc.now() - since > limit then
      error(("stuck: no line came for %d s after %d of %d; %s"):format(limit, best, self.n, (self:states())), 0)
    end
  end, 3600)
end

--- Up to which line the source's offsets are stored.
function Flow:committed()
  local position
  if self.worker.standalone then
    position = (proc.read(self.worker.offsets_file) or ""):match '"position":(%d+)'
  else
    local key = ('["%s",{"filename":"%s"}]'):format(self.connectors[1].name, self.file)
    local own = self.connectors[1].config["offsets.storage.topic"]
    for _, r in ipairs(self.broker:records(own or self.worker.id .. "-offsets")) do
      if r.key == key then position = r.value:match '"position":(%d+)' end
    end
  end
  position = tonumber(position or 0)
  local low, high = 0, self.n
  while low < high do
    local middle = math.floor((low + high) / 2)
    if self.ends[middle] < position then low = middle + 1 else high = middle end
  end
  assert(self.ends[low] == position, ("position %d is not the end of a line"):format(position))
  return low
end

--- What came out. lines: written; lost: numbers that are missing in the topic, the sink's file or the letters;
-- duplicates, disorder: of the topic, read committed; again: lines that are in the sink's file more than once.
function Flow:figures()
  local values = self.broker:values(self.topic)
  for i, v in ipairs(values) do values[i] = numbered(v, self.kind) end
  local topic = oracle.check(values, "F", self.n, self.kind == "letters-source" and good or nil)
  local lines = lines_of(self.out)
  for i, l in ipairs(lines) do lines[i] = numbered(l, self.kind) end
  local out = oracle.check(lines, "F", self.n, self.kind ~= "lines" and good or nil)
  local lost = {}
  for _, list in ipairs { topic.lost, out.lost, self.kind ~= "lines" and
    oracle.check(self.broker:values(self.letters), "F", self.n, bad).lost or {} } do
    for _, i in ipairs(list) do lost[i] = true end
  end
  local count = 0
  for _ in pairs(lost) do count = count + 1 end
  return { lines = self.n, lost = count, duplicates = topic.duplicates, disorder = topic.disorder,
    again = out.duplicates, sink_disorder = out.disorder, largest = topic.largest }
end

--- Fill in the figures of a case of the matrix, and raise when one is against the rules: nothing lost or out of order;
-- exactly once nothing twice, else at most `most` lines (default: any number).
function Flow:judge(t, most)
  local r = self:figures()
  t.lines, t.lost, t.duplicates, t.disorder = r.lines, r.lost, r.duplicates, r.disorder
  if r.again > 0 then t.note = (t.note and t.note .. "; " or "") .. r.again .. " again in the sink's file" end
  assert(r.lost == 0, r.lost .. " lines lost")
  assert(r.disorder == 0 and r.sink_disorder == 0, "lines out of order")
  if self:exactly_once() then assert(r.duplicates == 0, r.duplicates .. " lines twice")
  elseif most then assert(r.duplicates <= most, ("%d lines twice, at most %d may be"):format(r.duplicates, most)) end
  return r
end

--- Wait, then judge; the figures are filled in also when lines do not come.
function Flow:wait_and_judge(t, most, seconds)
  local ok, why = pcall(self.wait, self, seconds)
  if not ok then
    local r = self:figures()
    t.lines, t.lost, t.duplicates, t.disorder = r.lines, r.lost, r.duplicates, r.disorder
    error(why, 0)
  end
  return self:judge(t, most)
end

-- ---- a worker that ends at a fault point --------------------------------------------------------------------------

--- Start the worker with LC_FAULT_KILL or LC_FAULT_TERM (`variable`) set to the point's n-th passage, and lines going until it
-- has ended: its flow, its exit status.
function _M.end_at(t, variable, point, n)
  t.env = { [variable] = point.name .. ":" .. n }
  local worker = _M.worker(t)
  local flow = _M.flow { broker = t.broker, worker = worker, mode = t.mode, kind = point.kind,
    own_offsets = point.own_offsets }
  local next_time = 0
  flow:append(50)
  worker:start(false)
  proc.wait_for(("the worker to end at %s:%d"):format(point.name, n), function()
    flow:append(10)
    if flow:create() and point.again and proc.now() > next_time then
      flow[point.again](flow)
      next_time = proc.now() + 0.3
    end
    return not worker.process:alive()
  end, 90 * proc.slow)
  worker.env = nil
  return flow, worker.process:wait(60)
end

--- Start the flow's worker again: seconds until lines that are written now are through.
function _M.start_again(flow)
  local before, began = flow.n, proc.now()
  flow:append(50)
  flow:forget()
  flow.worker:start(false)
  proc.wait_for("a line through the restarted worker", function()
    if not flow.worker.process:alive() then error("the worker ended: " .. flow.worker:log():sub(-3000), 0) end
    flow:create()
    return flow:look() > before
  end, 90 * proc.slow)
  return proc.now() - began
end

-- ---- all modes at once under one fault -----------------------------------------------------------------------------

local Field = {}
Field.__index = Field

--- field { broker =, config =, modes = }: a flow a mode, all RUNNING, on a worker for each of: at least once, exactly once,
-- standalone. modes: default faults.modes. To be stopped.
function _M.field(t)
  local f = setmetatable({ workers = {}, flows = {} }, Field)
  local of = {}
  for i, mode in ipairs(t.modes or _M.modes) do
    local kind = mode:match "^eos" or mode
    if not of[kind] then
      of[kind] = _M.worker { broker = t.broker, mode = mode, config = t.config }
      f.workers[#f.workers + 1] = of[kind]
      of[kind]:start(false)
    end
    f.flows[i] = _M.flow { broker = t.broker, worker = of[kind], mode = mode }
  end
  f:append(100)
  for _, flow in ipairs(f.flows) do
    proc.wait_for("connectors of " .. flow.mode, function() return flow:create() end, 90 * proc.slow)
  end
  f:each(function(flow) flow:wait(60) end)
  return f
end

function Field:append(count, pad) for _, flow in ipairs(self.flows) do flow:append(count, pad) end end

--- Call f(flow) for all flows, side by side.
function Field:each(f)
  local jobs = {}
  for i, flow in ipairs(self.flows) do jobs[i] = function() f(flow) end end
  proc.together(jobs)
end

--- A line of the matrix for each mode: t = { row =, fault =, n = }, f(case, flow).
function Field:cases(t, f)
  self:each(function(flow)
    local case = with({ mode = flow.mode }, t)
    matrix.case(case, function() f(case, flow) end)
  end)
end

--- The longest that one of the usual requests to one of the workers took, in seconds.
function Field:rest()
  local longest = 0
  for _, flow in ipairs(self.flows) do
    local name = flow.connectors[1].name
    for _, path in ipairs { "/", "/connectors", "/connectors/" .. name, "/connectors/" .. name .. "/status" } do
      local began = proc.now()
      local code = flow.worker:request("GET", path)
      assert(code == 200, ("GET %s: %d"):format(path, code))
      longest = math.max(longest, proc.now() - began)
    end
  end
  return longest
end

function Field:stop()
  for _, w in ipairs(self.workers) do w.process:signal "TERM" end
  for _, w in ipairs(self.workers) do
    local status = w.process:wait(60)
    assert(status == 0, ("the worker ended with status %d: %s"):format(status, w:log():sub(-3000)))
  end
end

return _M
