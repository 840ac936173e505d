-- connect/host.lua: outside a worker (busted, a REPL) there is no host; a worker puts its own table here.
local _M = { outside = true }

local levels = { error = "ERROR", warn = "WARN", info = "INFO", debug = "DEBUG" }

function _M.log(level, text)
  if level ~= "debug" then io.stderr:write(levels[level], " ", text, "\n") end
end

function _M.sleep() return false end

function _M.stopping() return false end

return _M
