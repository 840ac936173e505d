-- spec/support/library.lua: shared libraries for specs and for the small programs they start. What ffi.load gives belongs to
-- the collector, which unloads the library when nothing names it any more, and all of them when the Lua state ends: under
-- the feet of threads that still run in them. A spec's library therefore stays for as long as the process.
local ffi = require "ffi"
ffi.cdef "void *dlopen(const char *path, int flags); char *dlerror(void);"

-- Lazy, as ffi.load does: what a spec compiles may name functions of the core, which comes later.
local RTLD_LAZY, RTLD_GLOBAL, RTLD_NODELETE = 0x1, 0x100, 0x1000
local dlerror = ffi.C.dlerror -- found now: to look it up after a failure would be a call of the loader that forgets why

local _M = {}

--- Loads the library at `path` (a path, no bare name) for the rest of the process; `global`: others may use its symbols,
-- as ffi.C does. Returns the namespace; an error says what the loader says.
function _M.load(path, global)
  local flags = RTLD_LAZY + RTLD_NODELETE + (global and RTLD_GLOBAL or 0)
  if ffi.C.dlopen(path, flags) == nil then error(ffi.string(dlerror()), 2) end
  return ffi.load(path, global)
end

--- The core: the library named by $LUACONNECT_LIB (default build/libluaconnect.so), for ffi.C too.
function _M.core() return _M.load(os.getenv "LUACONNECT_LIB" or "./build/libluaconnect.so", true) end

return _M
