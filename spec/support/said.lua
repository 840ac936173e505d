-- spec/support/said.lua: what a plugin of the spec's has written into a file.
local worker = require "spec.support.worker"

--- said, wait_said of the file that path() names at the time: all of its text; wait for a pattern (or plain text) in it.
return function(path)
  local function said()
    local f = assert(io.open(path()))
    local text = f:read "*a"
    f:close()
    return text
  end
  local function wait_said(pattern, plain)
    worker.eventually(function() return said():find(pattern, 1, plain) end, said)
  end
  return said, wait_said
end
