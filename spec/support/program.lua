-- spec/support/program.lua: the program as a user runs it in a folder.
local proc = require "spec.support.proc"
local program = require("spec.support.standalone").program

if program:sub(1, 1) ~= "/" then program = os.getenv "PWD" .. "/" .. program end

local _M = { path = program }

--- Runs `luaconnect ARGS` in `dir` with `input` for at most a minute: stdout, status, stderr.
function _M.run(dir, args, input)
  proc.write(dir .. "/in", input or "")
  local status = os.execute(("cd %s && timeout -k 5 60 %s %s < in > out 2> err"):format(dir, program, args))
  if status > 255 then status = math.floor(status / 256) end
  return proc.read(dir .. "/out"), status, proc.read(dir .. "/err")
end

return _M
