-- bench/many.lua: 200 FileStream connectors on one worker.
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"
local ffi = require "ffi"

return function(m)
  local broker = kafka.broker { own = true, settings = { "num.partitions=1" } }
  local worker = kafka.worker { broker = broker }
  local dir, n = proc.tmpdir "many", 200
  local pid, start = worker.process.pid, proc.now()
  for i = 1, n do
    proc.write(("%s/%d.txt"):format(dir, i), ("line of %d\n"):format(i))
    local code, text = worker:request("PUT", "/connectors/many-" .. i .. "/config",
      { ["connector.class"] = "FileStreamSource", file = ("%s/%d.txt"):format(dir, i), topic = "many" })
    assert(code == 201, text)
  end
  local created = proc.now() - start
  proc.wait_for("all to run", function()
    local _, text = worker:request("GET", "/connectors?expand=status")
    local _, running = text:gsub('"id":%d+,"state":"RUNNING"', "")
    return running == n
  end, 120)
  local seconds = proc.now() - start
  m.wait_count(broker, "many", n, worker.process)
  ffi.C.usleep(5000000)
  local cpu = m.cpu(pid)
  ffi.C.usleep(20000000)
  local percent = (m.cpu(pid) - cpu) / 20 * 100
  local rss = m.rss(pid)
  local _, text = worker:request("GET", "/connectors?expand=status")
  local _, running = text:gsub('"id":%d+,"state":"RUNNING"', "")
  m.result { bench = "many", what = "ours", connectors = n, running = running, created_s = m.round(created),
    running_s = m.round(seconds), rss_mb = m.round(rss, 1), cpu_percent_idle = m.round(percent) }
  start = proc.now()
  worker:stop()
  m.result { bench = "many", what = "stop", seconds = m.round(proc.now() - start) }
  broker:stop()
end
