-- bench/sink.lua: FileStreamSink of 2,000,000 enveloped strings into a file, ours beside Java.
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"

local function round(m, what, worker, topic, size)
  local out = proc.root .. "/sink-" .. what
  os.remove(out)
  local name = kafka.unique "snk"
  local pid = worker.process.pid
  local start = proc.now()
  local code, text = worker:request("PUT", "/connectors/" .. name .. "/config",
    { ["connector.class"] = "FileStreamSink", file = out, topics = topic })
  assert(code == 201, text)
  -- the rate counts from the first byte: joining the consumer group is not what is measured
  local function bytes()
    local f = io.open(out, "rb")
    if not f then return 0 end
    local n = f:seek "end"
    f:close()
    return n
  end
  proc.wait_for("the first line", function() return bytes() > 0 end, 120)
  local first, had = proc.now(), bytes()
  local cpu = m.cpu(pid)
  proc.wait_for("all lines", function() return bytes() >= size end, 300)
  local seconds, spent = proc.now() - first, m.cpu(pid) - cpu
  local records = m.lines * (size - had) / size
  local rss, peak = m.rss(pid)
  assert(bytes() == size, "not every line once")
  m.result { bench = "sink", what = what, records = m.lines, seconds = m.round(seconds),
    seconds_with_join = m.round(proc.now() - start), records_per_s = m.round(records / seconds, 0),
    cpu_ns_per_record = m.round(spent / records * 1e9, 0), rss_mb = m.round(rss, 1), peak_rss_mb = m.round(peak, 1) }
  worker:request("DELETE", "/connectors/" .. name)
  os.remove(out)
end

return function(m)
  local broker = kafka.broker { own = true, tuned = true, settings = { "num.partitions=1" } }
  local topic = kafka.unique "bench-sink"
  local _, status = proc.run(("kcat -b %s -P -t %s -l %s"):format(broker.bootstrap, topic, m.wrapped(m.lines, 100)))
  assert(status == 0)
  m.wait_count(broker, topic, m.lines)
  local ours = kafka.worker { broker = broker }
  local java = m.java and kafka.worker { broker = broker, java = true, tuned = true }
  round(m, "warm-up", ours, topic, m.lines * 100)
  for _ = 1, m.rounds do round(m, "ours", ours, topic, m.lines * 100) end
  if java then
    for _ = 1, math.max(1, m.rounds - 1) do round(m, "java", java, topic, m.lines * 100) end
    java:stop()
  end
  ours:stop()
  broker:stop()
  m.at_end(function()
    local a, b = m.median("sink", "ours", "records_per_s"), m.median("sink", "java", "records_per_s")
    m.result { bench = "sink", what = "ratios", ours_to_java_rate = a and b and m.round(a / b) }
  end)
end
