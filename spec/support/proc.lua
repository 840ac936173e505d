-- spec/support/proc.lua: processes, ports, files and waiting for specs. Every process started here leaves
-- its pid in $LC_TEST_DIR/pids until it ended, so that ./dev test ends what a broken spec left.
local ffi = require "ffi"
local files = require "spec.support.files"

local _M = {}

ffi.cdef [[
int usleep(unsigned int us);
int kill(int pid, int sig);
int socket(int domain, int type, int protocol);
int bind(int fd, const void *addr, unsigned int len);
int getsockname(int fd, void *addr, unsigned int *len);
int close(int fd);
int getpid(void);
typedef struct { long s, ns; } lcs_timespec;
int clock_gettime(int id, lcs_timespec *t);
]]

local SIGNALS = { TERM = 15, KILL = 9, INT = 2, STOP = 19, CONT = 18, HUP = 1 }

--- Monotonic seconds.
function _M.now()
  local t = ffi.new "lcs_timespec"
  ffi.C.clock_gettime(1, t)
  return tonumber(t.s) + tonumber(t.ns) * 1e-9
end

local preset = os.getenv "LC_PRESET"
--- By how much waiting may take longer with a sanitizer.
_M.slow = preset == "tsan" and 4 or preset == "asan" and 2 or 1

local together = setmetatable({}, { __mode = "k" })

-- A moment; the others of together() go on in it.
local function pause(us)
  if coroutine.running() and together[coroutine.running()] then coroutine.yield() else ffi.C.usleep(us) end
end

--- together { f, g, ... }: call them all, each going on while the others wait (wait_for, stays). When all have ended,
-- raises what the first that failed raised.
function _M.together(list)
  local threads, failed, why = {}, false, nil
  for i, f in ipairs(list) do
    threads[i] = coroutine.create(f)
    together[threads[i]] = true
  end
  while #threads > 0 do
    for i = #threads, 1, -1 do
      local ok, e = coroutine.resume(threads[i])
      if not ok and not failed then failed, why = true, e end
      if coroutine.status(threads[i]) == "dead" then table.remove(threads, i) end
    end
    ffi.C.usleep(20000)
  end
  if failed then error(why, 0) end
end

--- Poll `f` until it answers something true, at most `seconds` (default 60); returns that, else raises
-- with `what`.
function _M.wait_for(what, f, seconds)
  local stop = _M.now() + (seconds or 60)
  while true do
    local got = f()
    if got then return got end
    if _M.now() > stop then error("waited " .. (seconds or 60) .. " s for " .. what, 2) end
    pause(20000)
  end
end

--- True for `seconds` as long as f() stays true; raises `what` when it does not.
function _M.stays(what, f, seconds)
  local stop = _M.now() + seconds
  while _M.now() < stop do
    if not f() then error(what .. " did not stay", 2) end
    pause(50000)
  end
end

local root = os.getenv "LC_TEST_DIR"
if not root then
  local p = assert(io.popen "mktemp -d /tmp/luaconnect-spec.XXXXXX")
  root = p:read "*l"
  p:close()
end
os.execute("mkdir -p " .. root .. "/pids")
_M.root = root

local dirs = 0
--- A new empty folder below the test directory.
function _M.tmpdir(name)
  dirs = dirs + 1
  local d = ("%s/%d-%d-%s"):format(root, ffi.C.getpid(), dirs, name or "dir")
  assert(os.execute("mkdir -p " .. d) == 0)
  return d
end

_M.write, _M.append, _M.read = files.write, files.append, files.read

function _M.quote(s) return "'" .. tostring(s):gsub("'", "'\\''") .. "'" end

--- Output (stdout) and exit status of a shell command.
function _M.run(cmd)
  local p = assert(io.popen(cmd .. "; echo \"|$?\""))
  local out = p:read "*a"
  p:close()
  local text, status = out:match "^(.*)|(%d+)\n$"
  return text, tonumber(status)
end

-- Ports are taken below the range of those that the kernel gives to outgoing connections: what a broker is to listen on
-- after its restart, a client that calls it meanwhile would else be given for its own end now and then. Each is held for as long
-- as this process lives, by an abstract socket of its name, which other processes of these specs respect.
local SOCK_CLOEXEC = 0x80000
local next_port

local function hold(port)
  local name = "luaconnect-spec-port-" .. port
  local addr = ffi.new("uint8_t[64]", { 1, 0, 0 })
  ffi.copy(addr + 3, name, #name)
  local fd = ffi.C.socket(1, 1 + SOCK_CLOEXEC, 0)
  assert(fd >= 0, "no socket")
  if ffi.C.bind(fd, addr, 3 + #name) == 0 then return true end
  ffi.C.close(fd)
  return false
end

local function unused(port)
  local fd = ffi.C.socket(2, 1 + SOCK_CLOEXEC, 0)
  local addr = ffi.new("uint8_t[16]", { 2, 0, math.floor(port / 256), port % 256, 127, 0, 0, 1 })
  local ok = ffi.C.bind(fd, addr, 16) == 0
  ffi.C.close(fd)
  return ok
end

--- A TCP port nobody listens on; no other caller gets it while this process lives.
function _M.free_port()
  local f = io.open "/proc/sys/net/ipv4/ip_local_port_range"
  local low, high = 32768, 60999
  if f then
    low, high = f:read("*n", "*n")
    f:close()
  end
  local first, last = 10000, low - 1
  if last - first < 5000 then first, last = low, high end -- nothing outside of it to speak of
  next_port = next_port or first + (ffi.C.getpid() * 7919 + math.floor(_M.now() * 1000)) % (last - first)
  for _ = first, last do
    local port = next_port
    next_port = port < last and port + 1 or first
    if unused(port) and hold(port) then return port end
  end
  error "no free port"
end

local Process = {}
Process.__index = Process

function Process:alive()
  return ffi.C.kill(self.pid, 0) == 0 and _M.read(self.status_file) == nil
end

--- Send a signal by name ("TERM").
function Process:signal(name) return ffi.C.kill(self.pid, SIGNALS[name]) end

--- Exit status (128 + signal when killed); waits up to `seconds`.
function Process:wait(seconds)
  local status = _M.wait_for("the end of pid " .. self.pid .. " (" .. self.name .. ")", function()
    local s = _M.read(self.status_file)
    return s and s:match "^(%d+)\n"
  end, seconds)
  os.remove(self.pid_file)
  return tonumber(status)
end

--- TERM, then KILL after `seconds` (default 30). Returns the exit status.
function Process:stop(seconds)
  if not self:alive() then return self:wait(30) end
  self:signal "TERM"
  local ok, status = pcall(self.wait, self, seconds or 30)
  if ok then return status end
  self:signal "CONT"
  self:signal "KILL"
  return self:wait(30)
end

function Process:log() return _M.read(self.log_file) or "" end

local running = {}

--- start { "program", "arg", ..., name=, log=, env={K=V}, dir= }: a process in the background.
function _M.start(t)
  local name = t.name or t[1]:match "[^/]+$"
  local dir = t.dir or _M.tmpdir(name)
  local p = setmetatable({ name = name, dir = dir, log_file = t.log or dir .. "/log",
    status_file = os.tmpname() }, Process)
  os.remove(p.status_file)
  local cmd = {}
  for k, v in pairs(t.env or {}) do cmd[#cmd + 1] = k .. "=" .. _M.quote(v) end
  table.sort(cmd)
  if #cmd > 0 then table.insert(cmd, 1, "env") end
  for _, a in ipairs(t) do cmd[#cmd + 1] = _M.quote(a) end
  local pidfile = dir .. "/pid." .. name
  os.remove(pidfile)
  local line = ("( sh -c %s >> %s 2>&1 < %s; echo $? > %s.new; mv %s.new %s ) > /dev/null 2>&1 &"):format(
    _M.quote("echo $$ > " .. pidfile .. "; exec " .. table.concat(cmd, " ")), _M.quote(p.log_file),
    t.stdin and _M.quote(t.stdin) or "/dev/null", p.status_file, p.status_file, p.status_file)
  os.execute(line)
  p.pid = tonumber(_M.wait_for("the pid of " .. name, function()
    return (_M.read(pidfile) or ""):match "^(%d+)\n"
  end, 10))
  p.pid_file = root .. "/pids/" .. p.pid
  _M.write(p.pid_file, name .. "\n")
  running[#running + 1] = p
  return p
end

--- End everything this spec run started (called at the end of the suite).
function _M.stop_all()
  for i = #running, 1, -1 do
    if running[i]:alive() then
      running[i]:signal "CONT"
      running[i]:signal "KILL"
    end
    pcall(running[i].wait, running[i], 10)
  end
  running = {}
end

return _M
