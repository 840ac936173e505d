-- spec/support/standalone.lua: a standalone worker on the embedded broker (no Kafka, no JVM) or on one of the spec's.
local proc = require "spec.support.proc"
local http = require "spec.support.http"

local _M = {}
_M.program = os.getenv "LUACONNECT" or "build/luaconnect"

--- Text of a worker.properties; `more` replaces and adds keys, false removes one.
function _M.properties(dir, port, more)
  local p = {
    ["bootstrap.servers"] = "127.0.0.1:1",
    ["key.converter"] = "org.apache.kafka.connect.storage.StringConverter",
    ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter",
    ["offset.storage.file.filename"] = dir .. "/offsets",
    ["offset.flush.interval.ms"] = "1000",
    listeners = "http://127.0.0.1:" .. port,
  }
  for k, v in pairs(more or {}) do p[k] = v or nil end
  local lines = {}
  for k, v in pairs(p) do lines[#lines + 1] = k .. "=" .. v end
  table.sort(lines)
  return table.concat(lines, "\n") .. "\n"
end

--- start { topics = {...}, files = {...}, properties = {...}, dir =, env =, bootstrap =, log = }: the worker, its port in .port and
-- url(path); on the embedded broker unless bootstrap names another. Wait with healthy().
function _M.start(t)
  t = t or {}
  local w = { dir = t.dir or proc.tmpdir "standalone", port = t.port or proc.free_port() }
  local file = w.dir .. "/worker.properties"
  proc.write(file, _M.properties(w.dir, w.port, t.properties))
  local args = { _M.program, "standalone", name = "standalone", dir = w.dir, env = t.env, log = t.log }
  if t.bootstrap then proc.append(file, "bootstrap.servers=" .. t.bootstrap .. "\n")
  else args[#args + 1] = "--embedded-broker=" .. table.concat(t.topics or {}, ",") end
  args[#args + 1] = file
  for _, f in ipairs(t.files or {}) do args[#args + 1] = f end
  w.process = proc.start(args)
  function w.url(path) return "http://127.0.0.1:" .. w.port .. path end
  function w.request(method, path, body) return http.request(method, w.url(path), body) end
  function w.healthy(seconds)
    return proc.wait_for("/health", function()
      if not w.process:alive() then error("the worker ended: " .. w.process:log()) end
      return w.request("GET", "/health") == 200
    end, seconds or 60)
  end
  return w
end

return _M
