-- bench/cluster.lua: three workers of one group, ours beside the Java worker's, one after the other on one
-- broker: creating 100 connectors, SIGKILL of a worker, a fourth worker that joins 500 connectors, memory.
-- LC_BENCH_CONNECTORS (500) is the size of the large cluster, LC_BENCH_OURS=0 leaves ours out.
local ffi = require "ffi"
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"

local CREATED = 100
local LARGE = tonumber(os.getenv "LC_BENCH_CONNECTORS" or 500)
local POLL_US = 50000

ffi.cdef [[
typedef struct { long s, us; } lcb_timeval;
int gettimeofday(lcb_timeval *t, void *zone);
]]

--- Seconds since 1970: broker logs are written in them.
local function wall()
  local t = ffi.new "lcb_timeval"
  ffi.C.gettimeofday(t, nil)
  return tonumber(t.s) + tonumber(t.us) * 1e-6
end

--- All statuses as one worker shows them: connectors and tasks RUNNING on each worker id, and how many there
-- are. Not decoded: that would take the processor from the workers.
local function statuses(worker)
  local text = proc.run("curl -s --max-time 60 " .. proc.quote(worker.url .. "/connectors?expand=status"))
  local r = { connectors = {}, tasks = {}, nconnectors = 0, ntasks = 0 }
  local function add(set, count, id)
    set[id] = (set[id] or 0) + 1
    r[count] = r[count] + 1
  end
  for id in text:gmatch '"connector":{"state":"RUNNING","worker_id":"([^"]+)"' do
    add(r.connectors, "nconnectors", id)
  end
  for id in text:gmatch '"id":%d+,"state":"RUNNING","worker_id":"([^"]+)"' do add(r.tasks, "ntasks", id) end
  return r
end

local function worker_id(worker) return "127.0.0.1:" .. worker.port end

local function settled(worker, n, absent)
  local s = statuses(worker)
  if s.nconnectors ~= n or s.ntasks ~= n then return false end
  if absent and (s.connectors[absent] or s.tasks[absent]) then return false end
  return s
end

local function wait_for(what, f, seconds)
  local stop = proc.now() + (seconds or 300)
  while true do
    local got = f()
    if got then return got end
    if proc.now() > stop then error("waited for " .. what) end
    ffi.C.usleep(POLL_US)
  end
end

--- PUT connectors from..to, one client after the other over the workers, each with a connection of its own.
-- A 409 is what a client has to live with during a rebalance: it asks again 100 ms later. Returns how often.
local function put(workers, dir, prefix, from, to)
  local todo, again = {}, 0
  for i = from, to do todo[#todo + 1] = i end
  while #todo > 0 do
    local lines, answers = {}, dir .. "/answers"
    for k, i in ipairs(todo) do
      local file, name = ("%s/%s-%d.txt"):format(dir, prefix, i), ("%s-%d"):format(prefix, i)
      proc.write(file, "")
      if k > 1 then lines[#lines + 1] = "next" end
      lines[#lines + 1] = ('url = "%s/connectors/%s/config"'):format(workers[i % #workers + 1].url, name)
      lines[#lines + 1] = 'request = "PUT"\nsilent'
      lines[#lines + 1] = 'output = "' .. dir .. "/answer-" .. i .. '"'
      lines[#lines + 1] = 'write-out = "' .. i .. ' %{http_code}\\n"'
      lines[#lines + 1] = 'header = "Content-Type: application/json"'
      lines[#lines + 1] = ('data = "{\\"connector.class\\":\\"FileStreamSource\\",\\"tasks.max\\":\\"1\\",' ..
        '\\"file\\":\\"%s\\",\\"topic\\":\\"bench-cluster\\"}"'):format(file)
    end
    proc.write(dir .. "/put.curl", table.concat(lines, "\n") .. "\n")
    proc.run(("curl -K %s/put.curl > %s"):format(dir, answers))
    todo = {}
    for i, code in (proc.read(answers) or ""):gmatch "(%d+) (%d+)\n" do
      if code == "409" or code == "000" then
        todo[#todo + 1] = tonumber(i)
      elseif code ~= "201" and code ~= "200" then
        error(("PUT %s-%s: %s %s"):format(prefix, i, code, proc.read(dir .. "/answer-" .. i)))
      end
    end
    again = again + #todo
    if #todo > 0 then ffi.C.usleep(100000) end
  end
  return again
end

--- Least and most of the numbers of a set, of the workers given.
local function spread(set, workers)
  local least, most = math.huge, 0
  for _, w in ipairs(workers) do
    local n = set[worker_id(w)] or 0
    least, most = math.min(least, n), math.max(most, n)
  end
  return least, most
end

--- Wall clock of the broker's line about the first member of `group` that joins after byte `at` of its log.
local function joined(broker, group, at)
  local log = broker.process:log():sub(at + 1)
  local y, mo, d, h, mi, s, ms = log:match("%[(%d+)-(%d+)-(%d+) (%d+):(%d+):(%d+),(%d+)%] INFO [^\n]*" ..
    "with unknown member id joins group " .. group:gsub("%p", "%%%0"))
  return y and os.time { year = y, month = mo, day = d, hour = h, min = mi, sec = s } + tonumber(ms) / 1000
end

local function cluster(broker, java, n, delay)
  local workers, id = {}, kafka.unique(java and "java" or "ours")
  local function one()
    return kafka.worker { broker = broker, id = id, java = java, heap = "256m", start = false,
      config = { ["session.timeout.ms"] = 6000, ["heartbeat.interval.ms"] = 2000,
        ["scheduled.rebalance.max.delay.ms"] = delay, ["offset.flush.interval.ms"] = 10000 } }
  end
  for i = 1, n do workers[i] = one():start() end
  return workers, one
end

local function kill_and_wait(m, what, workers, n, delay)
  local victim = table.remove(workers)
  local tasks = statuses(workers[1]).tasks[worker_id(victim)]
  local start = proc.now()
  victim.process:signal "KILL"
  wait_for("the tasks of the killed worker", function() return settled(workers[1], n, worker_id(victim)) end)
  m.result { bench = "cluster", what = what .. " kill", delay_ms = delay, session_ms = 6000, connectors = n,
    moved_tasks = tasks, seconds = m.round(proc.now() - start) }
  victim.process:wait(30)
end

local function create(m, what, workers, dir, prefix, n)
  local start = proc.now()
  local again = put(workers, dir, prefix, 1, n)
  local created = proc.now() - start
  wait_for("all to run", function() return settled(workers[1], n) end)
  m.result { bench = "cluster", what = what .. " create", connectors = n, workers = #workers,
    answers_409 = again, created_s = m.round(created), seconds = m.round(proc.now() - start) }
end

local function memory(m, what, workers, n)
  local sum, list = 0, {}
  ffi.C.usleep(5000000) -- after the rush
  for i, w in ipairs(workers) do
    local rss = m.rss(w.process.pid)
    list[i] = m.round(rss, 1)
    sum = sum + rss
  end
  m.result { bench = "cluster", what = what .. " memory", connectors = n, workers = #workers, rss_mb = list,
    mean_mb = m.round(sum / #workers, 1) }
end

local function stop(workers)
  for _, w in ipairs(workers) do w.process:signal "TERM" end
  for _, w in ipairs(workers) do w:stop() end
end

--- A fourth worker joins a cluster of three with `n` connectors of a task each.
local function join(m, what, broker, workers, one, n)
  local fourth, at = one(), #broker.process:log()
  local start = wall()
  fourth:start(false)
  workers[#workers + 1] = fourth
  local balanced = wait_for("a balanced cluster", function()
    local s = settled(workers[1], n)
    if not s then return false end
    local least, most = spread(s.tasks, workers)
    local cleast, cmost = spread(s.connectors, workers)
    return most - least <= 1 and cmost - cleast <= 1 and { least, most }
  end)
  local finish, join_at = wall(), joined(broker, fourth.id, at)
  m.result { bench = "cluster", what = what .. " join", connectors = n, from_start_s = m.round(finish - start),
    from_join_s = join_at and m.round(finish - join_at), least = balanced[1], most = balanced[2] }
end

local function run(m, broker, java)
  local what, dir = java and "java" or "ours", proc.tmpdir "cluster"
  for _, delay in ipairs { 3000, 0 } do
    local workers, one = cluster(broker, java, 3, delay)
    create(m, what, workers, dir, "small" .. delay, CREATED)
    kill_and_wait(m, what, workers, CREATED, delay)
    if delay == 0 then
      workers[3] = one():start()
      local start = proc.now()
      put(workers, dir, "small" .. delay, CREATED + 1, LARGE)
      wait_for("all to run", function() return settled(workers[1], LARGE) end)
      m.result { bench = "cluster", what = what .. " create more", connectors = LARGE - CREATED,
        seconds = m.round(proc.now() - start) }
      memory(m, what, workers, LARGE)
      join(m, what, broker, workers, one, LARGE)
      memory(m, what, workers, LARGE)
    end
    stop(workers)
  end
end

return function(m)
  local broker = kafka.broker { own = true, settings = { "num.partitions=1" } }
  if m.java then run(m, broker, true) end
  if os.getenv "LC_BENCH_OURS" ~= "0" then run(m, broker, false) end
  broker:stop()
  m.at_end(function()
    local function ratio(name, key, delay)
      local function value(side)
        local w = side .. " " .. name
        return m.median("cluster", w, key, delay)
      end
      local ours, java = value "ours", value "java"
      return ours and java and m.round(java / ours)
    end
    m.result { bench = "cluster", what = "ratios java / ours", create = ratio("create", "seconds"),
      kill_delay_0 = ratio("kill", "seconds", 0), kill_delay_3000 = ratio("kill", "seconds", 3000),
      join_from_start = ratio("join", "from_start_s"), join_from_join = ratio("join", "from_join_s"),
      memory = ratio("memory", "mean_mb") }
  end)
end
