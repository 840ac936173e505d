-- spec/support/tcp_proxy.lua: a TCP proxy between a worker and the broker that breaks on demand.
-- local p = tcp_proxy.start { target = broker_port }; p.port is where clients connect;
-- p:set "cut", p:set "blackhole", p:set "hold", p:set "pass", p:set("latency", 200), p:set("slice", 1)...: all
-- commands are in tcp_proxy.py's head.
local proc = require "spec.support.proc"

local _M = {}

local Proxy = {}
Proxy.__index = Proxy

--- The proxy's answer behind "ok" once the command is in force.
function Proxy:set(...)
  local line = table.concat({ ... }, " ")
  local out, status = proc.run(("bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d && echo %s >&3 && head -n 1 <&3' 2>&1"):format(
    self.control, line))
  local answer = status == 0 and out:match "^ok ?(.-)\n"
  if not answer then error(("the proxy answered %q to %s: %s"):format(out, line, self.process:log()), 2) end
  return answer
end

--- start { target = port, port = port to listen on (default: a free one) }
function _M.start(t)
  local p = setmetatable({ port = t.port or proc.free_port(), control = proc.free_port() }, Proxy)
  p.process = proc.start { "python3", "spec/support/tcp_proxy.py", p.port, t.target, p.control, name = "proxy" }
  proc.wait_for("the proxy", function()
    if not p.process:alive() then error("the proxy ended: " .. p.process:log()) end
    return pcall(p.set, p, "count")
  end)
  return p
end

function Proxy:stop() return self.process:stop(60) end

return _M
