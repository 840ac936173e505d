-- spec/support/compile.lua: a few lines of C for what Lua cannot do in a spec: callbacks that come on other
-- threads. The code sees core/ and is linked against nothing: symbols of the core, and of the libraries it needs, come
-- from the core, which is loaded globally before.
local ffi = require "ffi"
local core = require "spec.support.core"
local files = require "spec.support.files"
local library = require "spec.support.library"

local _M = {}

--- Builds `source` and loads it; `cdef` declares what the spec calls. Returns the namespace.
function _M.library(source, cdef)
  local name = files.unused()
  files.write(name .. ".c", source)
  local cc = os.getenv "CC" or "cc"
  local flags = os.getenv "LC_SPEC_CFLAGS" or ""
  assert(os.execute(("env -u LD_PRELOAD %s -std=c11 -D_GNU_SOURCE -O1 -g %s -fPIC -shared -Icore -o %s.so %s.c")
    :format(cc, flags, name, name)) == 0, "the C part of the spec does not compile")
  ffi.cdef(cdef)
  core.lib()
  local lib = library.load(name .. ".so")
  os.remove(name .. ".c")
  os.remove(name .. ".so")
  return lib
end

return _M
