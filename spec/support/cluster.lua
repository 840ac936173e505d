-- spec/support/cluster.lua: several workers of ours as one cluster, lines flowing through it, and the truth about
-- who runs what.
--
-- The truth is not asked of REST: a task that runs is a thread named CONNECTOR-N in /proc/PID/task, a connector
-- instance is in its worker's log between "Creating connector X" and its stop. settle() waits until the REST of
-- every worker, that truth and the config agree and stay so; while it waits it looks for tasks that two workers run.
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"
local with = require "spec.support.with"

local _M = {}

local Cluster = {}
Cluster.__index = Cluster

_M.slow = proc.slow

--- Print a line into the spec's output.
function _M.say(fmt, ...)
  io.write("\n  ", fmt:format(...))
  io.flush()
end

-- ---- workers ---------------------------------------------------------------------------------------------------

--- new { broker =, n = 3, config = { k = v } }: n workers of one group, started together; config is every worker's.
function _M.new(t)
  local self = setmetatable({ broker = t.broker or kafka.broker(), id = kafka.unique "cluster", workers = {},
    config = t.config or {}, flows = {}, sinks = {}, want = {}, values = {}, overlaps = {} }, Cluster)
  for _ = 1, t.n or 3 do self:add { wait = false } end
  self:wait_healthy()
  return self
end

--- What happens to the cluster now: settle() tells the time since then.
function Cluster:happens() self.since = proc.now() end

--- One more worker. t: wait = false (do not wait until it is healthy), config = its own settings, port =.
function Cluster:add(t)
  t = t or {}
  local config = with(with({ ["session.timeout.ms"] = 6000, ["heartbeat.interval.ms"] = 2000,
    ["scheduled.rebalance.max.delay.ms"] = 2000, ["offset.flush.interval.ms"] = 1000,
    ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter" }, self.config), t.config)
  local w = kafka.worker { broker = self.broker, id = self.id, config = config, start = false, port = t.port }
  w.index, w.worker_id = #self.workers + 1, "127.0.0.1:" .. w.port
  self:happens()
  self.workers[w.index] = w
  self:start(w, t.wait)
  return w
end

--- Start a worker that ended.
function Cluster:start(w, wait)
  w.connectors, w.frozen, w.leads, w.generation = {}, false, false, -1
  w.log_at = #(proc.read(w.dir .. "/log") or "")
  w:start(wait)
end

function Cluster:wait_healthy()
  for _, w in ipairs(self:live()) do
    proc.wait_for("the worker on " .. w.url, function()
      if not w.process:alive() then error("the worker ended: " .. w:log():sub(-3000)) end
      return w:healthy()
    end, 60 * _M.slow)
  end
end

--- Workers whose process runs (frozen ones too).
function Cluster:live()
  local t = {}
  for _, w in ipairs(self.workers) do if w.process and w.process:alive() then t[#t + 1] = w end end
  return t
end

--- Those that can answer.
function Cluster:awake()
  local t = {}
  for _, w in ipairs(self:live()) do if not w.frozen then t[#t + 1] = w end end
  return t
end

--- SIGTERM; the exit status must be 0.
function Cluster:term(w)
  self:happens()
  local status = w:stop()
  if status ~= 0 then error(("%s ended with status %d: %s"):format(w.url, status, w:log():sub(-3000)), 2) end
end

function Cluster:kill(w)
  self:happens()
  return w:kill()
end

function Cluster:freeze(w)
  self:happens()
  w.process:signal "STOP"
  w.frozen = true
end

function Cluster:thaw(w)
  self:happens()
  w.process:signal "CONT"
  w.frozen = false
end

local function read_log(w)
  local f = io.open(w.dir .. "/log", "rb")
  if not f then return end
  f:seek("set", w.log_at)
  local text = f:read "*a"
  f:close()
  local whole = text:match "^.*\n" or ""
  w.log_at = w.log_at + #whole
  for line in whole:gmatch "[^\n]+" do
    local name = line:match "WORKER +Creating connector (%S+) of type"
    if name then w.connectors[name] = true end
    name = line:match "WORKER +Stopping connector (%S+)" or line:match "Completed shutdown for WorkerConnector{id=(.-)}"
    if name then w.connectors[name] = nil end
    local generation, role = line:match "Joined group at generation (%d+) .- as (%a+)"
    if generation then w.generation, w.leads = tonumber(generation), role == "leader" end
  end
end

--- The worker that leads, by the workers' logs; nil while none does. Second: a follower.
function Cluster:leader()
  local leader, follower
  for _, w in ipairs(self:awake()) do
    read_log(w)
    if w.leads and (not leader or w.generation > leader.generation) then leader = w end
  end
  for _, w in ipairs(self:awake()) do if w ~= leader then follower = follower or w end end
  return leader, follower
end

-- ---- REST ------------------------------------------------------------------------------------------------------

--- Request that is sent again while the answer is 409 (a rebalance): status, text, JSON.
function Cluster:request(w, method, path, body)
  local stop = proc.now() + 60 * _M.slow
  while true do
    local code, text, json = w:request(method, path, body)
    if code ~= 409 or proc.now() > stop then return code, text, json end
    proc.stays("", function() return true end, 0.3)
  end
end

--- PUT the connector's config, through any worker (default: the leader).
function Cluster:put(name, config, w)
  local code, text = self:request(w or self:leader() or self:awake()[1], "PUT", "/connectors/" .. name .. "/config",
    config)
  if code ~= 200 and code ~= 201 then error(("PUT %s answered %d %s"):format(name, code, text), 2) end
  self.want[name] = "RUNNING"
end

-- ---- truth -----------------------------------------------------------------------------------------------------

--- What the processes run: tasks and connectors as { ["name-0"] = { worker, ... } }, { ["name"] = { worker, ... } }.
function Cluster:truth()
  local awake, pids, tasks, connectors = self:awake(), {}, {}, {}
  for i, w in ipairs(awake) do pids[i] = w.process.pid end
  local out = proc.run(("for p in %s; do echo \"= $p\"; cat /proc/$p/task/*/comm 2>/dev/null; done"):format(
    table.concat(pids, " ")))
  local at = 0
  -- once a worker: threads that a task's thread makes bear its name until they set their own
  local function add(t, key, w)
    t[key] = t[key] or {}
    if t[key][#t[key]] ~= w then table.insert(t[key], w) end
  end
  for line in out:gmatch "[^\n]+" do
    if line:find "^= " then at = at + 1
    elseif line:find "%-%d+$" and not line:find "^rdk:" then add(tasks, line, awake[at]) end
  end
  for _, w in ipairs(awake) do
    read_log(w)
    for name in pairs(w.connectors) do add(connectors, name, w) end
  end
  return tasks, connectors
end

local function both(list) return #list > 1 and list[1].url .. " and " .. list[2].url end

-- A task seen in two processes: only if it is still in all of them when looked at again did they run it together.
local function watch(self, tasks)
  local again
  for key, owners in pairs(tasks) do
    if #owners > 1 then
      again = again or self:truth()
      if again[key] and #again[key] > 1 then self.overlaps[key] = both(again[key]) end
    end
  end
end

--- Look once for tasks that two workers run.
function Cluster:watch() watch(self, (self:truth())) end

--- Why the cluster has not settled, or nil.
function Cluster:unsettled()
  local tasks, connectors = self:truth()
  watch(self, tasks)
  local expected = 0
  for _, w in ipairs(self:awake()) do
    local code, text, all = w:request("GET", "/connectors?expand=info&expand=status")
    if code ~= 200 then return ("GET /connectors on %s: %d %s"):format(w.url, code, text) end
    for name in pairs(all) do
      if not self.want[name] then return ("%s has %s, which should not be"):format(w.url, name) end
    end
    expected = 0
    for name, state in pairs(self.want) do
      local c = all[name]
      if not c or not c.status or not c.info then return ("%s lacks %s"):format(w.url, name) end
      local is = c.status.connector
      local function where(what, s, owners)
        if s.state ~= state then return ("%s is %s on %s by %s"):format(what, s.state, s.worker_id, w.url) end
        if state == "STOPPED" then return nil end
        if not owners then return what .. " runs nowhere" end
        if #owners > 1 then return ("%s runs on %s"):format(what, both(owners)) end
        if owners[1].worker_id ~= s.worker_id then
          return ("%s runs on %s, %s says %s"):format(what, owners[1].url, w.url, s.worker_id)
        end
      end
      local bad = where(name, is, connectors[name])
      if bad then return bad end
      local ntasks = state == "STOPPED" and 0 or 1
      if #c.status.tasks ~= ntasks then return ("%s has %d tasks by %s"):format(name, #c.status.tasks, w.url) end
      for _, task in ipairs(c.status.tasks) do
        expected = expected + 1
        local key = ("%s-%d"):format(name, task.id)
        bad = where(key, task, tasks[key])
        if bad then return bad end
      end
    end
  end
  for key in pairs(tasks) do expected, tasks[key] = expected - 1, key end
  if expected ~= 0 then
    local names = {}
    for key in pairs(tasks) do if not self.want[key:match "^(.*)%-"] then names[#names + 1] = key end end
    return "tasks run that nobody wants: " .. table.concat(names, " ")
  end
end

--- Wait until everything in `want` is in its state, once, where every worker says it is, and stays so for 1.5 s.
-- Returns the seconds until then, counted from what happened last.
function Cluster:settle(seconds)
  local start = proc.now()
  local stop, since = start + (seconds or 60) * _M.slow, nil
  local happened = self.since or start
  self.since = nil
  while true do
    local why = self:unsettled()
    local now = proc.now()
    if why then since = nil
    elseif not since then since = now
    elseif now - since > 1.5 then return since - happened end
    if why and now > stop then error(("not settled after %d s: %s"):format(now - start, why), 2) end
    proc.stays("", function() return true end, 0.1)
  end
end

--- How many tasks and connectors each worker runs: { [worker] = n }.
function Cluster:load()
  local n = {}
  for _, w in ipairs(self:awake()) do n[w] = 0 end
  for _, set in ipairs { self:truth() } do
    for _, owners in pairs(set) do
      for _, w in ipairs(owners) do n[w] = n[w] + 1 end
    end
  end
  return n
end

--- Names of the connectors whose task runs on that worker.
function Cluster:tasks_of(w)
  local names = {}
  for key, owners in pairs((self:truth())) do
    if owners[1] == w then names[#names + 1] = key:match "^(.*)%-" end
  end
  return names
end

-- ---- lines -----------------------------------------------------------------------------------------------------

--- Connectors with lines flowing: t.flows sources that read growing files (3 to a topic), t.sinks that write the
-- topics to files, t.idle sources whose file does not grow; t.rate lines a second in all.
function Cluster:topology(t)
  self.dir = proc.tmpdir "lines"
  local arguments = { "python3", "spec/support/line_writer.py", t.rate or 120, name = "writer", dir = self.dir }
  self.topics = {}
  for i = 1, t.flows do
    local name = ("f%02d"):format(i)
    local n = math.ceil(i / 3)
    self.topics[n] = self.topics[n] or self.id .. "-t" .. n
    local flow = { name = name, file = ("%s/%s.txt"):format(self.dir, name), topic = self.topics[n] }
    proc.write(flow.file, "")
    self.flows[i] = flow
    arguments[#arguments + 1] = flow.file .. "=" .. name
    self:put(name, { ["connector.class"] = "FileStreamSource", file = flow.file, topic = flow.topic })
  end
  for i = 1, t.sinks do
    local sink = { name = ("k%02d"):format(i), file = ("%s/out%02d.txt"):format(self.dir, i),
      topic = self.topics[(i - 1) % #self.topics + 1] }
    self.sinks[i] = sink
    proc.write(sink.file, "")
    self:put(sink.name, { ["connector.class"] = "FileStreamSink", file = sink.file, topics = sink.topic,
      ["consumer.override.session.timeout.ms"] = 6000, ["consumer.override.heartbeat.interval.ms"] = 2000 })
  end
  proc.write(self.dir .. "/idle.txt", "")
  for i = 1, t.idle or 0 do
    self:put(("i%02d"):format(i), { ["connector.class"] = "FileStreamSource", file = self.dir .. "/idle.txt",
      topic = self.id .. "-idle" })
  end
  self.writer = proc.start(arguments)
end

-- The records of a topic that were not read yet: up to the end of now, which moves on while lines flow.
local function read_topic(self, topic)
  local values = self.values[topic] or {}
  self.values[topic] = values
  local bootstrap = self.broker.bootstrap
  local out = proc.run(("kcat -b %s -Q -t %s:0:-1 2>/dev/null"):format(bootstrap, topic))
  local n = (tonumber(out:match "offset (%d+)") or 0) - #values
  if n <= 0 then return values end
  out = proc.run(("kcat -b %s -C -q -t %s -p 0 -o %d -c %d -f '%%s\\n' 2>/dev/null"):format(bootstrap, topic, #values, n))
  for line in out:gmatch "[^\n]+" do values[#values + 1] = line end
  return values
end

--- Where everything is now: { lines = { [prefix] = n }, records = { [topic] = n }, bytes = { [sink name] = n } }.
function Cluster:mark()
  local m = { lines = {}, records = {}, bytes = {} }
  for _, f in ipairs(self.flows) do
    local last
    for n in (proc.read(f.file) or ""):sub(-200):gmatch("%-(%d+) created\n") do last = tonumber(n) end
    m.lines[f.name] = last or 0
  end
  for _, topic in ipairs(self.topics) do m.records[topic] = #read_topic(self, topic) end
  for _, s in ipairs(self.sinks) do m.bytes[s.name] = #(proc.read(s.file) or "") end
  return m
end

-- Calls f(prefix, n) for each line in the text of a sink; a killed worker may have left half a line.
local function each_line(text, f)
  for prefix, n in text:gmatch "(f%d%d)%-(%d+) created\n" do f(prefix, tonumber(n)) end
end

-- What of the lines 1..n of each prefix is missing among those that `walk` calls back with; nil: nothing.
local function missing(lines, prefixes, walk)
  local seen = {}
  for _, p in ipairs(prefixes) do seen[p] = {} end
  walk(function(prefix, n) if seen[prefix] then seen[prefix][n] = true end end)
  for _, p in ipairs(prefixes) do
    for i = 1, lines[p] do if not seen[p][i] then return ("%s-%d of %d"):format(p, i, lines[p]) end end
  end
end

local function prefixes_of(self, topic)
  local t = {}
  for _, f in ipairs(self.flows) do if f.topic == topic then t[#t + 1] = f.name end end
  return t
end

local function each_value(values, f)
  for i, v in ipairs(values) do
    local prefix, n = v:match "^(f%d%d)%-(%d+) created$"
    if prefix then f(prefix, tonumber(n), i) end
  end
end

--- Every line that is in the files now comes to its topic and to the sinks' files: waits for that, raises with what is
-- lost. Nothing is out of order but what is sent again.
function Cluster:no_line_lost(seconds)
  local m = self:mark()
  local why
  local function arrived()
    for _, topic in ipairs(self.topics) do
      local values = read_topic(self, topic)
      why = missing(m.lines, prefixes_of(self, topic), function(f) each_value(values, f) end)
      if why then
        why = why .. " is not in " .. topic
        return false
      end
    end
    for _, s in ipairs(self.sinks) do
      local text = proc.read(s.file) or ""
      why = missing(m.lines, prefixes_of(self, s.topic), function(f) each_line(text, f) end)
      if why then
        why = why .. " is not in the file of " .. s.name
        return false
      end
    end
    return true
  end
  local stop = proc.now() + (seconds or 60) * _M.slow
  while not arrived() do
    if proc.now() > stop then error("lost: " .. why, 2) end
    proc.stays("", function() return true end, 0.3)
  end
  for _, topic in ipairs(self.topics) do
    local largest, seen = {}, {}
    each_value(self.values[topic], function(prefix, n)
      local key = prefix .. n
      if n < (largest[prefix] or 0) and not seen[key] then error(("%s-%d is out of order"):format(prefix, n), 2) end
      seen[key], largest[prefix] = true, math.max(n, largest[prefix] or 0)
    end)
  end
end

--- What the zombie wrote: lines that were written to the files after mark `frozen` appear once, and after mark
-- `thawed` nothing goes back, in topics and in sinks' files. Returns a list of what is wrong. Lines from before
-- `frozen` may come again: librdkafka may have had them in its queue, and sends before anybody can stop it.
function Cluster:written_twice(frozen, thawed)
  local bad = {}
  local function check(what, walk, at)
    local seen, largest = {}, {}
    walk(function(prefix, n, i)
      local key = prefix .. "-" .. n
      if seen[key] and n > frozen.lines[prefix] then bad[#bad + 1] = ("%s twice in %s"):format(key, what)
      elseif i > at and n <= (largest[prefix] or 0) and n > frozen.lines[prefix] then
        bad[#bad + 1] = ("%s after %d in %s"):format(key, largest[prefix], what)
      end
      seen[key], largest[prefix] = true, math.max(n, largest[prefix] or 0)
    end)
  end
  for _, topic in ipairs(self.topics) do
    local values = read_topic(self, topic)
    check(topic, function(f) each_value(values, f) end, thawed.records[topic])
  end
  for _, s in ipairs(self.sinks) do
    local text = proc.read(s.file) or ""
    check(s.name, function(f)
      for at, prefix, n in text:gmatch "()(f%d%d)%-(%d+) created\n" do f(prefix, tonumber(n), at) end
    end, thawed.bytes[s.name])
  end
  return bad
end

-- ---- the end ---------------------------------------------------------------------------------------------------

--- Tasks that two workers ran at the same time since the last call: a text, "" if none.
function Cluster:take_overlaps()
  local t = {}
  for key, where in pairs(self.overlaps) do t[#t + 1] = key .. " on " .. where end
  self.overlaps = {}
  return table.concat(t, ", ")
end

--- What a sanitizer reported in any worker's log, or nil.
function Cluster:reports()
  for _, w in ipairs(self.workers) do
    local text = proc.read(w.dir .. "/log") or ""
    local at = text:find("WARNING: ThreadSanitizer", 1, true) or text:find("ERROR: AddressSanitizer", 1, true)
      or text:find("ERROR: LeakSanitizer", 1, true) or text:find("runtime error: ", 1, true)
    if at then return text:sub(at, at + 6000) end
  end
end

--- Stop the writer and all workers (exit status 0, together); nothing was reported by a sanitizer.
function Cluster:stop()
  if self.writer then self.writer:stop() end
  local live = self:live()
  for _, w in ipairs(live) do
    if w.frozen then self:thaw(w) end
    w.process:signal "TERM"
  end
  local bad
  for _, w in ipairs(live) do
    local status = w.process:wait(60 * _M.slow)
    if status ~= 0 then bad = bad or ("%s ended with status %d: %s"):format(w.url, status, w:log():sub(-3000)) end
  end
  bad = self:reports() or bad
  if bad then error(bad, 2) end
end

return _M
