-- bench/measure.lua: processor time, memory, medians and JSON lines for the benchmarks.
local proc = require "spec.support.proc"
local http = require "spec.support.http"
local ffi = require "ffi"

local _M = { lines = tonumber(os.getenv "LC_BENCH_LINES" or 2000000),
  rounds = tonumber(os.getenv "LC_BENCH_ROUNDS" or 3), java = os.getenv "LC_BENCH_JAVA" ~= "0" }

local ticks = tonumber((proc.run "getconf CLK_TCK"))
local results = {}

--- Seconds of processor time (user + system, all threads) of a process so far.
function _M.cpu(pid)
  local stat = proc.read("/proc/" .. pid .. "/stat"):match "%) (.*)"
  local f = {}
  for w in stat:gmatch "%S+" do f[#f + 1] = w end
  return (tonumber(f[12]) + tonumber(f[13])) / ticks
end

--- Resident memory now and at its highest, MB.
function _M.rss(pid)
  local s = proc.read("/proc/" .. pid .. "/status") or ""
  return (tonumber(s:match "VmRSS:%s+(%d+)") or 0) / 1024, (tonumber(s:match "VmHWM:%s+(%d+)") or 0) / 1024
end

--- Sum of the topic's end offsets.
function _M.count(broker, topic)
  local out = proc.run(("kcat -b %s -Q -t %s:0:-1 2>/dev/null"):format(broker.bootstrap, topic))
  return tonumber(out:match "offset (%d+)") or 0
end

--- Print one result line; `t.bench` and `t.what` name it.
function _M.result(t)
  results[#results + 1] = t
  print(http.encode(t))
  io.flush()
end

--- Median of field `key` of results with this bench and what (and delay_ms, if given); nil when there are none.
function _M.median(bench, what, key, delay_ms)
  local v = {}
  for _, r in ipairs(results) do
    local wanted = r.bench == bench and r.what == what and (not delay_ms or r.delay_ms == delay_ms)
    if wanted and r[key] then v[#v + 1] = r[key] end
  end
  table.sort(v)
  return v[math.floor(#v / 2) + 1]
end

local summaries = {}
--- f() is called at the end and prints ratios.
function _M.at_end(f) summaries[#summaries + 1] = f end
function _M.summary() for _, f in ipairs(summaries) do f() end end

function _M.round(x, digits)
  local m = 10 ^ (digits or 2)
  return math.floor(x * m + 0.5) / m
end

--- A file of n lines of `width` bytes (line end included) that repeat no line; made once a run.
function _M.file(n, width)
  local path = proc.root .. "/lines-" .. n
  if not proc.read(path .. ".ready") then
    local f = assert(io.open(path, "wb"))
    local filler = ("abcdefghij klmnopqrst uvwxyz "):rep(8)
    local part = {}
    for i = 1, n do
      local head = ("%09d "):format(i)
      part[#part + 1] = head .. filler:sub(1, width - 1 - #head) .. "\n"
      if #part == 10000 then
        f:write(table.concat(part))
        part = {}
      end
    end
    f:write(table.concat(part))
    f:close()
    proc.write(path .. ".ready", "")
  end
  return path
end

--- The same lines in the JSON envelope, as kcat gets them.
function _M.wrapped(n, width)
  local path = _M.file(n, width)
  if not proc.read(path .. ".wrapped.ready") then
    local f = assert(io.open(path .. ".wrapped", "wb"))
    for line in io.lines(path) do
      f:write('{"schema":{"type":"string","optional":false},"payload":"', line, '"}\n')
    end
    f:close()
    proc.write(path .. ".wrapped.ready", "")
  end
  return path .. ".wrapped"
end

--- Wait for n records in a topic. Asking costs a kcat, so what is left at the rate so far says when to ask again.
function _M.wait_count(broker, topic, n, process, seconds)
  local start = proc.now()
  return proc.wait_for(n .. " records in " .. topic, function()
    if process and not process:alive() then error("ended: " .. process:log():sub(-2000)) end
    local had = _M.count(broker, topic)
    if had >= n then return true end
    local left = had > 0 and (n - had) * (proc.now() - start) / had or 0.05
    ffi.C.usleep(math.min(left * 0.7, 1) * 1e6)
    return false
  end, seconds or 300)
end

return _M
