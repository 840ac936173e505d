-- spec/kafka/mixed_spec.lua: the Java worker and ours in one group, each of them as leader and as follower.
-- Lines flow through sources and a sink the whole time; at the end none may be missing (spec/support/oracle).
-- One cluster lives through all of it, so the cases depend on the ones before them.
-- LC_ALL_TESTS=1 (./dev test --all): a longer walk of joins, stops and kills.
local kafka = require "spec.support.kafka"
local oracle = require "spec.support.oracle"
local proc = require "spec.support.proc"
local with = require "spec.support.with"

local SOURCES = 5
local all_tests = os.getenv "LC_ALL_TESTS" ~= nil

local Cluster = {}
Cluster.__index = Cluster

local function new_cluster(config)
  local c = setmetatable({ broker = kafka.broker(), id = kafka.unique "mixed", dir = proc.tmpdir "mixed",
    names = {}, fed = 0, members = {}, config = config or {} }, Cluster)
  c.out = c.dir .. "/out.txt"
  c.plugins = c.dir .. "/plugins"
  os.execute("mkdir -p " .. c.plugins)
  proc.write(c.plugins .. "/only_ours.lua", [[
local connect = require "connect"
return connect.source {
  name = "OnlyOurs", class = "example.OnlyOurs", version = "1.0.0",
  task = { start = function() end, poll = function() return nil end, stop = function() end },
}
]])
  return c
end

--- A worker of the group: java or ours, up and a member.
function Cluster:add(java, config)
  local all = with(with({ ["session.timeout.ms"] = 6000, ["heartbeat.interval.ms"] = 1000,
    ["scheduled.rebalance.max.delay.ms"] = 1000, ["plugin.path"] = java and kafka.java_plugins or self.plugins },
    self.config), config)
  local w = kafka.worker { broker = self.broker, id = self.id, java = java, heap = "256m", config = all }
  w.worker_id = "127.0.0.1:" .. w.port
  self.members[#self.members + 1] = w
  return w
end

function Cluster:forget(worker)
  for i, w in ipairs(self.members) do if w == worker then table.remove(self.members, i) end end
end

--- A request as a patient client sends it: again while a rebalance is in the way. Status, text, JSON.
function Cluster:call(worker, method, path, body)
  local code, text, json
  proc.wait_for(method .. " " .. path .. " to be answered", function()
    code, text, json = worker:request(method, path, body)
    local momentary = code == 409 and not text:find "already exists"
    return code ~= 0 and not momentary and not text:find "a rebalance is expected"
  end, 60)
  return code, text, json
end

--- Append lines to the file of every source.
function Cluster:feed(n)
  n = n or 10
  for i = 1, SOURCES do
    local lines = oracle.lines("s" .. i, self.fed + 1, self.fed + n)
    proc.append(("%s/%d.txt"):format(self.dir, i), table.concat(lines, "\n") .. "\n")
  end
  self.fed = self.fed + n
end

function Cluster:topic(i) return ("%s-lines-%d"):format(self.id, i) end
function Cluster:source(i) return ("%s-src-%d"):format(self.id, i) end

function Cluster:source_config(i)
  return { ["connector.class"] = "FileStreamSource", ["tasks.max"] = "1",
    file = ("%s/%d.txt"):format(self.dir, i), topic = self:topic(i) }
end

--- SOURCES sources and a sink of their topics, created through the workers in turn.
function Cluster:create(workers)
  local topics = {}
  for i = 1, SOURCES do
    proc.write(("%s/%d.txt"):format(self.dir, i), "")
    local name = self:source(i)
    assert.equal(201, (self:call(workers[i % #workers + 1], "PUT", "/connectors/" .. name .. "/config",
      self:source_config(i))))
    self.names[#self.names + 1], topics[i] = name, self:topic(i)
  end
  self.sink = self.id .. "-sink"
  local code = self:call(workers[1], "POST", "/connectors", { name = self.sink, config = {
    ["connector.class"] = "org.apache.kafka.connect.file.FileStreamSinkConnector", ["tasks.max"] = "1",
    file = self.out, topics = table.concat(topics, ","), ["consumer.override.metadata.max.age.ms"] = "1000",
    -- a killed sink's consumer keeps its partitions for so long
    ["consumer.override.session.timeout.ms"] = "6000" } })
  assert.equal(201, code)
  self.names[#self.names + 1] = self.sink
end

--- What runs where, as `via` shows it, once every connector and task of `names` runs on one of `workers`:
-- { connectors = {name = worker id}, tasks = {...} }; else nil and what is wrong.
local function owners(via, names, workers)
  local ids, r = {}, { connectors = {}, tasks = {} }
  for _, w in ipairs(workers) do ids[w.worker_id] = true end
  local _, text, json = via:request("GET", "/connectors?expand=status")
  if not json then return nil, text end
  for _, name in ipairs(names) do
    local s = json[name] and json[name].status
    if not s then return nil, name .. " has no status" end
    if s.connector.state ~= "RUNNING" or not ids[s.connector.worker_id] then
      return nil, name .. " is " .. s.connector.state .. " on " .. s.connector.worker_id
    end
    if #s.tasks ~= 1 then return nil, name .. " has " .. #s.tasks .. " tasks" end
    local t = s.tasks[1]
    if t.state ~= "RUNNING" or not ids[t.worker_id] then
      return nil, name .. "-0 is " .. t.state .. " on " .. t.worker_id .. " " .. tostring(t.trace)
    end
    r.connectors[name], r.tasks[name] = s.connector.worker_id, t.worker_id
  end
  return r
end

local function count(set, id)
  local n = 0
  for _, owner in pairs(set) do if owner == id then n = n + 1 end end
  return n
end

local function spread(set, workers)
  local least, most = math.huge, 0
  for _, w in ipairs(workers) do
    local n = count(set, w.worker_id)
    least, most = math.min(least, n), math.max(most, n)
  end
  return most - least
end

--- Wait until all of it runs, evenly, on the workers that are up, and every one of them says the same.
-- `names` besides the standing ones.
function Cluster:settle(what, names)
  local got, why
  local all, seconds = {}, 60
  for _, list in ipairs { self.names, names or {} } do for _, name in ipairs(list) do all[#all + 1] = name end end
  local start = proc.now()
  local ok = pcall(proc.wait_for, what, function()
    local first
    for _, via in ipairs(self.members) do
      got, why = owners(via, all, self.members)
      if not got then return false end
      if spread(got.connectors, self.members) > 1 or spread(got.tasks, self.members) > 1 then
        why = "the work is not even"
        return false
      end
      for _, name in ipairs(all) do
        if first and (first.connectors[name] ~= got.connectors[name] or first.tasks[name] ~= got.tasks[name]) then
          why = "the workers disagree about " .. name
          return false
        end
      end
      first = got
    end
    return true
  end, seconds)
  if not ok then error(("%s: after %d s %s"):format(what, seconds, tostring(why)), 2) end
  print(("   %s: %.1f s"):format(what, proc.now() - start))
  return got
end

--- Every line fed so far is in its topic and in the sink's file.
function Cluster:all_there(what)
  for i = 1, SOURCES do
    local r
    local ok = pcall(proc.wait_for, "", function()
      r = oracle.check(self.broker:values(self:topic(i)), "s" .. i, self.fed)
      return #r.lost == 0
    end, 60)
    if not ok then error(("%s: lines of source %d lost: %s"):format(what, i, table.concat(r.lost, " ")), 2) end
  end
  local lost
  local ok = pcall(proc.wait_for, "", function()
    local lines = {}
    for line in (proc.read(self.out) or ""):gmatch "[^\n]+" do lines[#lines + 1] = line end
    lost = 0
    for i = 1, SOURCES do lost = lost + #oracle.check(lines, "s" .. i, self.fed).lost end
    return lost == 0
  end, 60)
  if not ok then error(("%s: %d lines did not reach the sink's file"):format(what, lost), 2) end
end

--- A request between workers with this signature: the status.
local function internal(worker, connector, signature, algorithm)
  local cmd = ("curl -s -o /dev/null -w '%%{http_code}' --max-time 100 -X POST %s/connectors/%s/tasks " ..
    "-H 'Content-Type: application/json' --data-binary '[{\"file\":\"/nowhere\"}]'"):format(worker.url, connector)
  if signature then cmd = cmd .. " -H 'X-Connect-Authorization: " .. signature .. "'" end
  if algorithm then cmd = cmd .. " -H 'X-Connect-Request-Signature-Algorithm: " .. algorithm .. "'" end
  return tonumber((proc.run(cmd)))
end

local function refuses_wrong_signatures(worker, connector)
  local wrong = ("A"):rep(43) .. "=" -- 32 bytes of zeros
  assert.equal(400, internal(worker, connector))
  assert.equal(400, internal(worker, connector, wrong, "HmacNONE"))
  assert.equal(403, internal(worker, connector, wrong, "HmacSHA256"))
  local _, _, tasks = worker:request("GET", "/connectors/" .. connector .. "/tasks")
  for _, t in ipairs(tasks) do assert.not_equal("/nowhere", t.config.file) end
end

--- The name of a source whose instance runs on `worker`.
local function instance_on(map, worker)
  for name, id in pairs(map.connectors) do
    if id == worker.worker_id and name:find "%-src%-" then return name end
  end
  error("no connector instance runs on " .. worker.worker_id)
end

--- New task configs of a connector whose instance is on a follower have to reach the leader signed: change the
-- config and see it in the committed task configs, as every worker shows them.
function Cluster:republish(name, from)
  self.changes = (self.changes or 1999) + 1
  local size = tostring(self.changes)
  assert.equal(200, (self:call(from, "PATCH", "/connectors/" .. name .. "/config", { ["batch.size"] = size })))
  for _, w in ipairs(self.members) do
    proc.wait_for("the new task configs of " .. name .. " on " .. w.worker_id, function()
      local _, _, tasks = w:request("GET", "/connectors/" .. name .. "/tasks")
      return tasks and tasks[1] and tasks[1].config["batch.size"] == size
    end)
  end
end

local function wait_state(via, name, state, tasks, task_state)
  local s
  local ok = pcall(proc.wait_for, "", function()
    s = via:status(name)
    if not s or s.connector.state ~= state or #s.tasks ~= tasks then return false end
    for _, t in ipairs(s.tasks) do if t.state ~= (task_state or state) then return false end end
    return true
  end, 60)
  if not ok then error(("%s is not %s: %s"):format(name, state, require "spec.support.http".encode(s or {})), 2) end
end

--- Everything REST can do to a connector, asked of `from`, seen on `other`.
function Cluster:operate(from, other)
  -- a new name each time: Java's source hangs on an offset that lies behind the end of a file
  local name = kafka.unique(self.id .. "-op")
  local path, file = "/connectors/" .. name, self.dir .. "/" .. name .. ".txt"
  local config = { ["connector.class"] = "FileStreamSource", ["tasks.max"] = "1", file = file, topic = name }
  proc.write(file, "one\n")
  local code, text, json = self:call(from, "POST", "/connectors", { name = name, config = config })
  assert.equal(201, code, text)
  assert.equal(name, json.name)
  wait_state(other, name, "RUNNING", 1)
  code, text = self:call(from, "POST", "/connectors", { name = name, config = config })
  assert.equal(409, code)
  assert.truthy(text:find "already exists")
  config["batch.size"] = "1000"
  code, text = self:call(from, "PUT", path .. "/config", config)
  assert.equal(200, code, text)
  code, text = self:call(from, "PATCH", path .. "/config", { ["batch.size"] = "1001" })
  assert.equal(200, code, text)
  proc.wait_for("the patched config", function()
    local _, _, c = other:request("GET", path .. "/config")
    return c and c["batch.size"] == "1001"
  end)
  proc.wait_for("the patched task config", function()
    local _, _, t = other:request("GET", path .. "/tasks")
    return t and t[1] and t[1].config["batch.size"] == "1001"
  end)
  assert.equal(400, (self:call(from, "PUT", path .. "/config", { ["connector.class"] = "NoSuchClass" })))
  assert.equal(202, (self:call(from, "PUT", path .. "/pause")))
  wait_state(other, name, "PAUSED", 1)
  assert.equal(202, (self:call(from, "PUT", path .. "/resume")))
  wait_state(other, name, "RUNNING", 1)
  assert.equal(204, (self:call(from, "POST", path .. "/restart")))
  wait_state(other, name, "RUNNING", 1)
  assert.equal(204, (self:call(from, "POST", path .. "/tasks/0/restart")))
  wait_state(other, name, "RUNNING", 1)
  code, text, json = self:call(from, "POST", path .. "/restart?includeTasks=true")
  assert.equal(202, code, text)
  assert.equal("RESTARTING", json.connector.state)
  assert.equal("RESTARTING", json.tasks[1].state)
  wait_state(other, name, "RUNNING", 1)
  assert.equal(404, (self:call(from, "POST", path .. "/tasks/7/restart")))
  proc.append(file, "two\n")
  for _, w in ipairs { from, other } do
    proc.wait_for("the offset", function()
      local o = w:offsets(name)
      return o and o[1] and o[1].offset.position == 8
    end)
  end
  code, text = self:call(from, "PUT", path .. "/stop")
  assert.equal(204, code, text)
  wait_state(other, name, "STOPPED", 0)
  assert.equal(202, (self:call(from, "PUT", path .. "/resume")))
  wait_state(other, name, "RUNNING", 1)
  assert.equal(204, (self:call(from, "DELETE", path)))
  proc.wait_for("the deletion", function()
    return other:request("GET", path) == 404 and other:request("GET", path .. "/status") == 404
  end)
  assert.equal(404, (self:call(from, "DELETE", path)))
  local wanted = { "one", "two" }
  local seen = {}
  for _, v in ipairs(self.broker:values(name)) do
    for _, w in ipairs(wanted) do if v:find('"' .. w .. '"', 1, true) then seen[w] = true end end
  end
  assert.same({ one = true, two = true }, seen)
end

local function session_keys(c)
  local n = 0
  for _, r in ipairs(c.broker:records(c.id .. "-configs")) do if r.key == "session-key" then n = n + 1 end end
  return n
end

local function alive(worker)
  assert.truthy(worker.process:alive(), "the worker ended: " .. worker.process:log():sub(-2000))
  assert.truthy(worker:healthy())
end

--- The leader a worker of ours has last said it follows, or that it leads.
local function leads(worker)
  local last
  for line in worker:log():gmatch "[^\n]*Joined group at generation[^\n]*" do last = line end
  return last and last:find " as leader" ~= nil
end

describe("Java and ours in one group:", function()
  local c, java, ours, second

  setup(function() c = new_cluster { ["inter.worker.key.ttl.ms"] = 15000 } end)
  teardown(function() for _, w in ipairs(c.members) do pcall(w.kill, w) end end)

  it("Java leads, ours follows, and both have half of it", function()
    java = c:add(true)
    ours = c:add(false)
    c:create { java, ours }
    c:feed()
    local map = c:settle "java leads"
    assert.falsy(leads(ours))
    assert.equal(3, count(map.connectors, ours.worker_id))
    assert.equal(3, count(map.tasks, java.worker_id))
    c:all_there "java leads"
  end)

  it("everything can be done through the follower, ours", function()
    c:operate(ours, java)
    c:feed()
  end)

  it("everything can be done through the leader, Java", function() c:operate(java, ours) end)

  it("Java takes our signed task configs, and no others", function()
    local map = c:settle "before"
    c:republish(instance_on(map, ours), ours)
    refuses_wrong_signatures(java, c:source(1))
    refuses_wrong_signatures(ours, c:source(1))
  end)

  it("Java's key is rotated, and ours signs with the new one", function()
    local before = session_keys(c)
    proc.wait_for("another session key", function() return session_keys(c) > before end)
    local map = c:settle "after the rotation"
    c:republish(instance_on(map, ours), java)
  end)

  it("log levels for the cluster reach both", function()
    for _, from in ipairs { ours, java } do
      local other, level = from == ours and java or ours, from == ours and "DEBUG" or "WARN"
      -- a logger that both know under one name: what a plugin's connector logs through
      local path = "/admin/loggers/org.apache.kafka.connect.file"
      assert.equal(204, (c:call(from, "PUT", path .. "?scope=cluster", { level = level })))
      for _, w in ipairs { from, other } do
        proc.wait_for("the level on " .. w.worker_id, function()
          local _, _, json = w:request("GET", path)
          return json and json.level == level
        end, 20)
      end
    end
  end)

  it("a class we do not have is FAILED with a clear trace, and nothing else suffers", function()
    local names = {}
    for i = 1, 4 do
      names[i] = ("%s-beat-%d"):format(c.id, i)
      local code, text = c:call(java, "PUT", "/connectors/" .. names[i] .. "/config", {
        ["connector.class"] = "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector", ["tasks.max"] = "1",
        ["source.cluster.alias"] = "a", ["target.cluster.alias"] = "b",
        ["target.cluster.bootstrap.servers"] = c.broker.bootstrap,
        ["source.cluster.bootstrap.servers"] = c.broker.bootstrap, ["heartbeats.topic.replication.factor"] = "1",
        ["emit.heartbeats.interval.seconds"] = "1" })
      assert.equal(201, code, text)
    end
    local failed, running
    proc.wait_for("each of the four to run or to fail", function()
      failed, running = {}, {}
      for _, name in ipairs(names) do
        local s = java:status(name)
        if s and s.connector.state == "FAILED" then failed[#failed + 1] = s end
        if s and s.connector.state == "RUNNING" and s.connector.worker_id == java.worker_id then
          running[#running + 1] = s
        end
      end
      return #failed + #running == 4 and #failed > 0
    end)
    for _, s in ipairs(failed) do
      assert.equal(ours.worker_id, s.connector.worker_id)
      assert.truthy(s.connector.trace:find("MirrorHeartbeatConnector", 1, true), s.connector.trace)
      assert.truthy(s.connector.trace:find("Failed to find any class that implements Connector", 1, true))
    end
    alive(ours)
    c.beats = names
    c:feed()
  end)

  it("the leader, Java, stops: ours leads and has all of it that it can run", function()
    java:stop()
    c:forget(java)
    c:settle "java stopped"
    assert.truthy(leads(ours))
    c:feed()
    c:all_there "ours alone"
  end)

  it("Java comes back as follower: it gets its share, and the classes that only it has", function()
    java = c:add(true)
    local map = c:settle("java follows", c.beats)
    assert.truthy(leads(ours))
    for _, name in ipairs(c.beats) do
      assert.equal(java.worker_id, map.connectors[name])
      assert.equal(java.worker_id, map.tasks[name])
    end
    proc.wait_for("heartbeats", function()
      local out = proc.run(("kcat -b %s -Q -t heartbeats:0:-1 2>/dev/null"):format(c.broker.bootstrap))
      return (tonumber(out:match "offset (%d+)") or 0) > 0
    end)
    for _, name in ipairs(c.beats) do assert.equal(204, (c:call(java, "DELETE", "/connectors/" .. name))) end
    c:feed()
    c:settle "the heartbeats deleted"
  end)

  it("ours gives a class that only ours has to ours, and refuses what nobody has", function()
    local names = {}
    for i = 1, 3 do
      names[i] = ("%s-lua-%d"):format(c.id, i)
      local code, text = c:call(ours, "PUT", "/connectors/" .. names[i] .. "/config",
        { ["connector.class"] = "example.OnlyOurs", ["tasks.max"] = "1" })
      assert.equal(201, code, text)
    end
    for _, name in ipairs(names) do
      wait_state(java, name, "RUNNING", 1)
      local s = java:status(name)
      assert.equal(ours.worker_id, s.connector.worker_id)
      assert.equal(ours.worker_id, s.tasks[1].worker_id)
    end
    for _, name in ipairs(names) do assert.equal(204, (c:call(java, "DELETE", "/connectors/" .. name))) end
    for _, w in ipairs { ours, java } do
      assert.equal(400, (c:call(w, "PUT", "/connectors/" .. c.id .. "-none/config",
        { ["connector.class"] = "example.Nobody" })))
    end
    second = c:add(false)
    c:feed()
    c:settle "a second of ours joined"
  end)

  it("Java's signed task configs are taken by ours, and no others", function()
    local map = c:settle "three workers"
    c:republish(instance_on(map, java), java)
    refuses_wrong_signatures(ours, c:source(1))
    refuses_wrong_signatures(java, c:source(1))
    local before = session_keys(c)
    proc.wait_for("another session key", function() return session_keys(c) > before end)
    c:republish(instance_on(c:settle "after the rotation", java), ours)
  end)

  it("everything can be done through the follower, Java, and through the leader, ours", function()
    c:operate(java, ours)
    c:operate(ours, java)
    c:feed()
  end)

  it("a worker of ours is killed, then Java", function()
    second:kill()
    c:forget(second)
    c:feed()
    c:settle "ours killed"
    java:kill()
    c:forget(java)
    c:feed()
    c:settle "java killed"
    c:all_there "after the kills"
  end)
end)

if all_tests then
  describe("a longer walk:", function()
    local c

    teardown(function() for _, w in ipairs(c.members) do pcall(w.kill, w) end end)

    it("whoever joins, stops or is killed, in whatever order, no line is lost", function()
      c = new_cluster { ["inter.worker.key.ttl.ms"] = 10000 }
      c:add(false)
      c:add(true)
      c:create(c.members)
      c:feed()
      c:settle "ours leads"
      -- which member goes, how, and what comes instead
      for round, step in ipairs { { 1, "kill", true }, { 1, "stop", false }, { 2, "kill", false }, { 1, "kill", true },
        { 2, "stop", true }, { 1, "stop", false } } do
        local gone = c.members[step[1] ]
        gone[step[2] ](gone)
        c:forget(gone)
        c:feed()
        c:settle(("round %d: %s of %s"):format(round, step[2], gone.java and "java" or "ours"))
        local new = c:add(step[3])
        c:feed()
        local map = c:settle(("round %d: %s joined"):format(round, new.java and "java" or "ours"))
        c:republish(instance_on(map, new), c.members[1])
        c:all_there("round " .. round)
      end
    end)
  end)
end

describe("other protocols:", function()
  local c

  teardown(function() for _, w in ipairs(c.members) do pcall(w.kill, w) end end)

  -- one eager worker makes the whole group eager, Java's sessioned one included
  it("eager and compatible workers of ours beside a sessioned one of Java's", function()
    c = new_cluster()
    c:add(true)
    local ours = c:add(false, { ["connect.protocol"] = "eager" })
    c:create(c.members)
    c:feed()
    c:settle "eager"
    assert.truthy(ours:log():find("with protocol version 0", 1, true))
    c:operate(ours, c.members[1])
    c:republish(instance_on(c:settle "eager, worked on", ours), ours)
    ours:stop()
    c:forget(ours)
    ours = c:add(false, { ["connect.protocol"] = "compatible" })
    c:feed()
    -- A Java worker remembers task configs that changed while the group was eager. Back in a cooperative group it
    -- stops all tasks of these connectors and starts them in the next rebalance only: here is one.
    c:republish(c:source(1), ours)
    local map = c:settle "compatible"
    assert.truthy(ours:log():find("with protocol version 1", 1, true))
    c:operate(ours, c.members[1])
    c:republish(instance_on(map, ours), ours)
    c.members[1]:kill()
    c:forget(c.members[1])
    c:feed()
    c:settle "compatible, Java killed"
    c:all_there "compatible"
  end)
end)
