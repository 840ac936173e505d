-- bench/idle.lua: memory and processor time of a worker without connectors.
local kafka = require "spec.support.kafka"
local ffi = require "ffi"

local function idle(m, what, worker)
  ffi.C.usleep(5000000)
  local cpu = m.cpu(worker.process.pid)
  ffi.C.usleep(10000000)
  local rss = m.rss(worker.process.pid)
  m.result { bench = "idle", what = what, rss_mb = m.round(rss, 1),
    cpu_percent = m.round((m.cpu(worker.process.pid) - cpu) / 10 * 100) }
  worker:stop()
end

return function(m)
  local broker = kafka.broker { own = true }
  idle(m, "ours", kafka.worker { broker = broker })
  if m.java then idle(m, "java", kafka.worker { broker = broker, java = true }) end
  broker:stop()
end
