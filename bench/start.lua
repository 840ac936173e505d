-- bench/start.lua: exec to GET /health 200, creating the internal topics and with them there.
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"
local ffi = require "ffi"

-- A poll by curl costs about 10 ms; one shell loop keeps it at that.
local function start_ms(worker)
  local out = proc.run(("bash -c 's=$(date +%%s%%N); %s distributed %s > %s/log 2>&1 & echo $!; " ..
    "until curl -sf %s/health > /dev/null; do sleep 0.002; done; echo $((($(date +%%s%%N) - s) / 1000))'"):format(
    os.getenv "LUACONNECT", worker.file, worker.dir, worker.url))
  local pid, us = out:match "^(%d+)%s+(%d+)"
  ffi.C.kill(tonumber(pid), 15)
  proc.wait_for("the end of the worker", function() return ffi.C.kill(tonumber(pid), 0) ~= 0 end, 30)
  return tonumber(us) / 1000
end

return function(m)
  local broker = kafka.broker { own = true }
  for _ = 1, math.max(3, m.rounds) do
    local worker = kafka.worker { broker = broker, start = false }
    m.result { bench = "start", what = "topics created", ms = m.round(start_ms(worker), 0) }
    for _ = 1, 2 do m.result { bench = "start", what = "topics there", ms = m.round(start_ms(worker), 0) } end
  end
  broker:stop()
  m.at_end(function()
    m.result { bench = "start", what = "medians", created_ms = m.median("start", "topics created", "ms"),
      there_ms = m.median("start", "topics there", "ms") }
  end)
end
