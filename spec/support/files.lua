-- spec/support/files.lua: whole files, for specs and the other files of spec/support.
local _M = {}

--- Writes all of a file; `mode` is that of io.open ("wb").
function _M.write(path, text, mode)
  local f = assert(io.open(path, mode or "wb"))
  f:write(text)
  f:close()
end

function _M.append(path, text) _M.write(path, text, "ab") end

--- All of a file, or nil when it cannot be opened.
function _M.read(path)
  local f = io.open(path, "rb")
  if not f then return nil end
  local text = f:read "*a"
  f:close()
  return text
end

--- A path below /tmp (or $TMPDIR) where nothing is yet.
function _M.unused()
  local path = os.tmpname()
  os.remove(path)
  return path
end

--- A new empty folder there, for the caller to remove.
function _M.tmpdir()
  local path = _M.unused()
  assert(os.execute("mkdir -p " .. path) == 0)
  return path
end

function _M.rm(dir) os.execute("rm -rf '" .. dir .. "'") end

return _M
