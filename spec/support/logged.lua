-- spec/support/logged.lua: what the core logs (core/base/log.c) while a function runs.
local core = require "spec.support.core"
local files = require "spec.support.files"
local C, ffi = core.load { "base/log.h" }
ffi.cdef "int fileno(void *stream);"

--- The lines, as text; an error of `fn` is raised when the log is as it was again.
return function(fn)
  local name = os.tmpname()
  local f = assert(io.open(name, "ab"))
  C.lc_log_set_fd(ffi.C.fileno(f))
  local ok, err = pcall(fn)
  C.lc_log_set_fd(1)
  f:close()
  local out = files.read(name)
  os.remove(name)
  if not ok then error(err, 0) end
  return out
end
