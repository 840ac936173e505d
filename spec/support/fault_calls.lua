-- spec/support/fault_calls.lua: the N-th malloc, read, write... of the core fails (spec/support/fault_calls.c), in this
-- process, in a child of it, or in a worker. Counted are only calls that the core itself makes.
local ffi = require "ffi"
local core = require "spec.support.core"
local files = require "spec.support.files"
local library = require "spec.support.library"
local proc = require "spec.support.proc"

ffi.cdef [[
typedef struct fault_block {
        int32_t armed, calls;
        int64_t nth;
        int32_t persistent, error, checked, unused;
        int64_t count, failed;
        char path[256], thread[16];
        int64_t room;
} fault_block_t;
extern fault_block_t *fault_calls;
int fault_calls_install(void);
int fault_calls_leaks(void);
int fork(void);
void _exit(int status);
int waitpid(int pid, int *status, int options);
unsigned alarm(unsigned seconds);
int dup2(int from, int to);
int open(const char *path, int flags, ...);
int fcntl(int fd, int what, ...);
void *mmap(void *, size_t, int, int, int, long);
int munmap(void *, size_t);
]]

local _M = {}

local CALLS = { malloc = 0, open = 1, read = 2, write = 3, fsync = 4, rename = 5, close = 6, ftruncate = 7 }
--- Error codes by name; SHORT: a read or write of fewer bytes.
_M.errors = { SHORT = 0, EINTR = 4, EIO = 5, ENOMEM = 12, EACCES = 13, EBUSY = 16, EMFILE = 24, ENOSPC = 28, EDQUOT = 122 }

local object
--- The shared library, for LD_PRELOAD.
function _M.object()
  if not object then
    object = proc.tmpdir "fault_calls" .. "/fault_calls.so"
    local cc = os.getenv "CC" or "cc"
    assert(os.execute(("env -u LD_PRELOAD %s -std=c11 -D_GNU_SOURCE -O1 -g -Wall -Wextra -Werror -Wno-format-truncation "
      .. "-fPIC -shared -o %s spec/support/fault_calls.c -ldl"):format(cc, object)) == 0, "fault_calls.c does not compile")
  end
  return object
end

local function fill(b, t)
  b.armed = 0
  b.count, b.failed = 0, 0
  b.calls = 0
  for call in (t.calls or ""):gmatch "%a+" do b.calls = bit.bor(b.calls, bit.lshift(1, CALLS[call])) end
  b.nth, b.persistent = t.nth or 0, t.persistent and 1 or 0
  b.error = _M.errors[t.error or "EIO"]
  b.checked = t.only == "checked" and 1 or t.only == "unchecked" and 2 or 0
  ffi.copy(b.path, t.path or "")
  ffi.copy(b.thread, (t.thread or ""):sub(1, 15))
  b.room = t.room or -1
  b.armed = (t.nth or t.room) and 1 or 0
end

local lib
local function here()
  if not lib then
    core.lib()
    lib = library.load(_M.object())
    assert(lib.fault_calls_install() > 0, "the core's calls were not found")
  end
  return lib.fault_calls
end

--- arm { calls = "read write", nth =, persistent =, error = "EIO", path = part of a file name, thread = begin of a thread's
-- name, only = "checked"|"unchecked" (malloc beside, by lc_malloc and its kin), room = bytes that writes still take before
-- ENOSPC }: in this process, from now.
function _M.arm(t) fill(here(), t) end

--- No more. Returns how many calls were counted and how many failed.
function _M.disarm()
  local b = here()
  b.armed = 0
  return tonumber(b.count), tonumber(b.failed)
end

--- Runs f() in a forked child, at most `seconds` (default 30). Returns what became of it: { exit = status } or { signal = n },
-- with text = what it wrote to stderr and stdout, and what f returned (a string) or why it failed (then exit is 9).
function _M.child(f, seconds)
  here()
  local file = os.tmpname()
  io.stdout:flush()
  local pid = ffi.C.fork()
  if pid == 0 then
    ffi.C.alarm(seconds or 30)
    local fd = ffi.C.open(file, 1025, ffi.cast("int", 384)) -- O_WRONLY | O_APPEND
    ffi.C.dup2(fd, 1)
    ffi.C.dup2(fd, 2)
    local ok, result = pcall(f)
    lib.fault_calls.armed = 0
    if ok and os.getenv "LC_PRESET" == "asan" then
      collectgarbage()
      if lib.fault_calls_leaks() ~= 0 then ok = false end
    end
    if result then files.append(file, tostring(result)) end
    ffi.C._exit(ok and 0 or 9)
  end
  assert(pid > 0, "no fork")
  local status = ffi.new "int[1]"
  while ffi.C.waitpid(pid, status, 0) ~= pid do end
  local text = proc.read(file)
  os.remove(file)
  local s = status[0]
  local signal = bit.band(s, 127)
  return { exit = signal == 0 and bit.band(bit.rshift(s, 8), 255) or nil, signal = signal ~= 0 and signal or nil, text = text }
end

--- Open descriptors of this process, of the first 1024: how many, and which as text.
function _M.descriptors()
  local list = {}
  for fd = 0, 1023 do if ffi.C.fcntl(fd, 1) >= 0 then list[#list + 1] = fd end end
  return #list, table.concat(list, " ")
end

local Remote = {}
Remote.__index = Remote

--- For a worker: env to start it with, and :arm{}, :disarm(), :counts() while it runs.
function _M.remote()
  local file = proc.tmpdir "remote" .. "/block"
  local size = ffi.sizeof "fault_block_t"
  proc.write(file, ("\0"):rep(size))
  local fd = ffi.C.open(file, 2)
  local p = ffi.C.mmap(nil, size, 3, 1, fd, 0)
  ffi.C.close(fd)
  assert(ffi.cast("intptr_t", p) ~= -1, "no mmap")
  local b = ffi.gc(ffi.cast("fault_block_t *", p), function(x) ffi.C.munmap(x, size) end)
  b.room = -1
  -- the address sanitizer wants to be the first library
  local preload = os.getenv "LD_PRELOAD"
  if os.getenv "LC_PRESET" == "asan" and not preload then
    preload = (proc.run("cc -print-file-name=libasan.so")):match "%S+"
  end
  return setmetatable({ block = b, env = { LC_FAULT_CALLS = file,
    LD_PRELOAD = (preload and preload .. ":" or "") .. _M.object() } }, Remote)
end

function Remote:arm(t) fill(self.block, t) end
function Remote:disarm() self.block.armed = 0; return self:counts() end
function Remote:counts() return tonumber(self.block.count), tonumber(self.block.failed) end

return _M
