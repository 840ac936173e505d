-- spec/support/kafka.lua: the real Kafka 4.3.1, the real Connect worker, and ours, for specs.
-- kafka.broker() is shared by the specs of one run and started by the first; kafka.broker { own = true }
-- is the caller's to stop and restart.
local proc = require "spec.support.proc"
local http = require "spec.support.http"

local _M = {}

local home = os.getenv "LC_KAFKA_HOME" or (os.getenv "HOME" .. "/.cache/luaconnect/kafka-4.3.1")
local program = os.getenv "LUACONNECT" or "build/luaconnect"

-- What Kafka's start scripts give every JVM, with their heaps. Specs use less: a small heap, and no second compiler.
local tuned = { "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
  "-XX:+ExplicitGCInvokesConcurrent", "-Djava.awt.headless=true" }

local function java(t)
  local cmd = { "java" }
  local heap = t.tuned and { "-Xms" .. t.tuned, "-Xmx" .. t.heap } or { "-Xmx" .. (t.heap or "384m") }
  for _, a in ipairs(heap) do cmd[#cmd + 1] = a end
  for _, a in ipairs(t.tuned and tuned or { "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1" }) do cmd[#cmd + 1] = a end
  for _, a in ipairs { "-Dlog4j2.configurationFile=" .. home .. "/log4j2.yaml", "-cp", home .. "/lib/*" } do
    cmd[#cmd + 1] = a
  end
  for _, a in ipairs(t) do cmd[#cmd + 1] = a end
  cmd.name, cmd.dir = t.name, t.dir
  return proc.start(cmd)
end

local Broker = {}
Broker.__index = Broker

local function port_open(port)
  local _, status = proc.run(("bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d' 2>/dev/null"):format(port))
  return status == 0
end

function Broker:start()
  self.process = java { "kafka.Kafka", self.dir .. "/server.properties", name = "broker", dir = self.dir,
    tuned = self.tuned and "1G", heap = self.tuned and "1G" }
  proc.wait_for("the broker on port " .. self.port, function()
    if not self.process:alive() then error("the broker ended: " .. self.process:log():sub(-2000)) end
    return port_open(self.port)
  end, 120)
  return self
end

--- Stop: TERM, or name = "KILL".
function Broker:stop(name)
  if name then
    self.process:signal(name)
    return self.process:wait(60)
  end
  return self.process:stop(60)
end

--- All records of a topic as {key=, value=, partition=, offset=} (key, value nil when null), by kcat.
function Broker:records(topic)
  local out = proc.run(("timeout 60 kcat -b %s -C -q -e -t %s -Z -f '%%p\\t%%o\\t%%K\\t%%S\\n%%k\\n%%s\\n' 2>/dev/null"):format(
    self.bootstrap, topic))
  local list, at = {}, 1
  while at <= #out do
    local p, o, kl, vl, next_at = out:match("^(%d+)\t(%d+)\t(%-?%d+)\t(%-?%d+)\n()", at)
    if not p then break end
    -- -Z prints NULL for null, lengths are -1 then
    local function field(len, i)
      len = tonumber(len)
      if len < 0 then
        local nul = out:match("^NULL\n()", i)
        return nil, nul or i + 1
      end
      return out:sub(i, i + len - 1), i + len + 1
    end
    local r = { partition = tonumber(p), offset = tonumber(o) }
    r.key, next_at = field(kl, next_at)
    r.value, next_at = field(vl, next_at)
    list[#list + 1] = r
    at = next_at
  end
  return list
end

--- Run one of Kafka's tools: broker:tool("kafka.admin.AclCommand", "--add", ...). true when it worked.
function Broker:tool(class, ...)
  local p = java { class, "--bootstrap-server", self.bootstrap, name = "tool", dir = self.dir, ... }
  return p:wait(60) == 0, p:log()
end

--- Change a setting of a topic: "max.message.bytes=600". true when it worked.
function Broker:topic_setting(topic, setting)
  return (self:tool("kafka.admin.ConfigCommand", "--alter", "--entity-type", "topics", "--entity-name", topic,
    "--add-config", setting))
end

--- Values only, in partition and offset order.
function Broker:values(topic)
  local t = {}
  for i, r in ipairs(self:records(topic)) do t[i] = r.value or "null" end
  return t
end

--- Produce lines (no key) with kcat.
function Broker:produce(topic, lines)
  local file = os.tmpname()
  proc.write(file, table.concat(lines, "\n") .. "\n")
  local _, status = proc.run(("kcat -b %s -P -t %s -l %s 2>&1"):format(self.bootstrap, topic, file))
  os.remove(file)
  assert(status == 0, "kcat -P failed")
end

local shared
--- broker { own = true, settings = { "k=v" }, port = }: with proxied = { port =, advertised = } it has a second
-- listener on `port`, and tells its clients there to connect to `advertised`, the port of a proxy. tuned = true: the
-- JVM options of Kafka's own start scripts (benchmarks).
function _M.broker(t)
  t = t or {}
  if not t.own and shared then return shared end
  assert(proc.read(home .. "/ready"), "no Kafka in " .. home .. ": run ./dev kafka fetch")
  local port, controller = t.port or proc.free_port(), proc.free_port()
  local dir = proc.tmpdir "broker"
  local b = setmetatable({ port = port, dir = dir, tuned = t.tuned, bootstrap = "127.0.0.1:" .. port }, Broker)
  local lines = {
    "process.roles=broker,controller", "node.id=1", "controller.quorum.voters=1@127.0.0.1:" .. controller,
    ("listeners=PLAINTEXT://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d"):format(port, controller),
    "advertised.listeners=PLAINTEXT://127.0.0.1:" .. port, "controller.listener.names=CONTROLLER",
    "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT", "log.dirs=" .. dir .. "/data",
    "offsets.topic.replication.factor=1", "offsets.topic.num.partitions=5",
    "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
    "group.initial.rebalance.delay.ms=0",
    "log.retention.ms=-1", -- recorded timestamps are old
  }
  if t.proxied then -- the last line of a name counts
    for _, s in ipairs {
      ("listeners=PLAINTEXT://127.0.0.1:%d,PROXIED://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d"):format(port,
        t.proxied.port, controller),
      ("advertised.listeners=PLAINTEXT://127.0.0.1:%d,PROXIED://127.0.0.1:%d"):format(port, t.proxied.advertised),
      "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT",
      "inter.broker.listener.name=PLAINTEXT",
    } do lines[#lines + 1] = s end
  end
  for _, s in ipairs(t.settings or {}) do lines[#lines + 1] = s end
  proc.write(dir .. "/server.properties", table.concat(lines, "\n") .. "\n")
  local format = java { "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c",
    dir .. "/server.properties", name = "format", dir = dir }
  assert(format:wait(60) == 0, "StorageTool: " .. format:log())
  b:start()
  if not t.own then shared = b end
  return b
end

--- tool { "class", "argument", ... }: what one of Kafka's command line tools prints.
function _M.tool(t)
  t.name, t.dir, t.heap = "tool", proc.tmpdir "tool", "128m"
  local process = java(t)
  assert(process:wait(60) == 0, process:log())
  return process:log()
end

local names = 0
--- A name nobody else in this run uses.
function _M.unique(prefix)
  names = names + 1
  return ("%s-%d-%d"):format(prefix, os.time() % 100000, names)
end

local Worker = {}
Worker.__index = Worker

--- request(method, path, body): status, text, JSON. Asked again, as clients do, while a rebalance is in the way: a busy host
-- can put a worker out of its group at any time.
function Worker:request(method, path, body)
  local stop = proc.now() + 60
  while true do
    local code, text, json = http.request(method, self.url .. path, body)
    if code ~= 409 or not text:find("stale configuration", 1, true) or proc.now() > stop then return code, text, json end
    proc.stays("", function() return true end, 0.3)
  end
end

function Worker:healthy()
  return (http.request("GET", self.url .. "/health")) == 200
end

function Worker:log() return self.process:log() end

--- Start the process and wait until /health is 200 (t.wait == false: do not wait).
function Worker:start(wait)
  if self.java then
    self.process = java { "org.apache.kafka.connect.cli.ConnectDistributed", self.file, name = "connect-java",
      dir = self.dir, heap = self.heap or self.tuned and "2G",
        tuned = self.tuned and "256M" }
  else
    self.process = proc.start { program, self.standalone and "standalone" or "distributed", self.file, name = "worker",
      dir = self.dir, env = self.env }
  end
  if wait ~= false then
    proc.wait_for("the worker on " .. self.url, function()
      if not self.process:alive() then error("the worker ended: " .. self.process:log():sub(-3000)) end
      return self:healthy()
    end, self.java and 300 or 120) -- a busy host lets a Java worker take two minutes and a half
  end
  return self
end

--- Graceful stop; returns the exit status.
function Worker:stop() return self.process:stop(60) end

function Worker:kill()
  self.process:signal "KILL"
  return self.process:wait(60)
end

--- Status JSON of a connector, or nil.
function Worker:status(name)
  local code, _, json = self:request("GET", "/connectors/" .. name .. "/status")
  return code == 200 and json or nil
end

--- Wait until the connector and `tasks` tasks are in `state`.
function Worker:wait_running(name, tasks, state, seconds)
  state = state or "RUNNING"
  return proc.wait_for(("connector %s to be %s"):format(name, state), function()
    local s = self:status(name)
    if not s or s.connector.state ~= state or #s.tasks ~= (tasks or 1) then return false end
    for _, t in ipairs(s.tasks) do if t.state ~= state then return false end end
    return s
  end, seconds or 60)
end

--- Source offsets as GET /offsets shows them.
function Worker:offsets(name)
  local _, _, json = self:request("GET", "/connectors/" .. name .. "/offsets")
  return json and json.offsets
end

--- Where ./dev kafka fetch has put MirrorMaker's connectors, for a Java worker's plugin.path.
_M.java_plugins = home .. "/plugins," .. home .. "/mirror"

--- worker { broker =, id = "group", java = bool, standalone = bool, config = {k=v}, start = false, env =, heap = "256m",
-- tuned = }: the lab's settings on this broker; all workers of one id share group and internal topics. A standalone
-- one keeps its offsets in the file .offsets_file, and forgets its connectors.
function _M.worker(t)
  local port = t.port or proc.free_port()
  local id = t.id or _M.unique "w"
  local dir = proc.tmpdir(t.java and "connect-java" or "worker")
  local config = {
    ["bootstrap.servers"] = t.broker.bootstrap, ["group.id"] = id,
    ["listeners"] = "http://127.0.0.1:" .. port, ["rest.advertised.host.name"] = "127.0.0.1",
    ["key.converter"] = "org.apache.kafka.connect.json.JsonConverter",
    ["value.converter"] = "org.apache.kafka.connect.json.JsonConverter",
    ["config.storage.topic"] = id .. "-configs", ["offset.storage.topic"] = id .. "-offsets",
    ["status.storage.topic"] = id .. "-status", ["config.storage.replication.factor"] = 1,
    ["offset.storage.replication.factor"] = 1, ["status.storage.replication.factor"] = 1,
    ["offset.flush.interval.ms"] = 1000, ["scheduled.rebalance.max.delay.ms"] = 3000,
  }
  local offsets_file = t.standalone and dir .. "/offsets" or nil
  config["offset.storage.file.filename"] = offsets_file
  if t.java then config["plugin.path"] = home .. "/plugins" end
  for k, v in pairs(t.config or {}) do config[k] = v end
  local lines = {}
  for k, v in pairs(config) do lines[#lines + 1] = k .. "=" .. tostring(v) end
  table.sort(lines)
  proc.write(dir .. "/worker.properties", table.concat(lines, "\n") .. "\n")
  local w = setmetatable({ port = port, id = id, dir = dir, java = t.java, env = t.env, heap = t.heap,
    tuned = t.tuned, standalone = t.standalone, offsets_file = offsets_file,
    file = dir .. "/worker.properties", url = "http://127.0.0.1:" .. port }, Worker)
  if t.start ~= false then w:start() end
  return w
end

return _M
