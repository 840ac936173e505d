-- connect/host.lua: outside a worker (busted, a REPL) there is no host; a worker puts its own table here.
local _M = { outside = true }

local levels = { error = "ERROR", warn = "WARN", info = "INFO", debug = "DEBUG" }

function _M.log(level, text)
  if level ~= "debug" then io.stderr:write(levels[level], " ", text, "\n") end
end

function _M.sleep() return false end

function _M.stopping() return false end

function _M.exists(path)
  local f = io.open(path, "r")
  if f then f:close() end
  return f ~= nil
end

function _M.load(path)
  local chunk, err = loadfile(path)
  if not chunk then error(err, 0) end
  return chunk
end

return _M
