-- bench/source.lua: FileStreamSource + JsonConverter into a topic of one partition, beside kcat and Java.
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"

local function worker_round(m, broker, what, worker, file)
  local topic = kafka.unique("bench-" .. what)
  local name = kafka.unique "src"
  local pid = worker.process.pid
  local cpu, start = m.cpu(pid), proc.now()
  local code, text = worker:request("PUT", "/connectors/" .. name .. "/config",
    { ["connector.class"] = "FileStreamSource", file = file, topic = topic })
  assert(code == 201, text)
  m.wait_count(broker, topic, m.lines, worker.process)
  local seconds, spent = proc.now() - start, m.cpu(pid) - cpu
  local rss, peak = m.rss(pid)
  assert(m.count(broker, topic) == m.lines, "not exactly once each")
  m.result { bench = "source", what = what, records = m.lines, seconds = m.round(seconds),
    records_per_s = m.round(m.lines / seconds, 0), cpu_ns_per_record = m.round(spent / m.lines * 1e9, 0),
    rss_mb = m.round(rss, 1), peak_rss_mb = m.round(peak, 1) }
  worker:request("DELETE", "/connectors/" .. name)
  return topic
end

local function kcat_round(m, broker, file)
  local topic = kafka.unique "bench-kcat"
  local out = proc.root .. "/time"
  local start = proc.now()
  local _, status = proc.run(("bash -c 'TIMEFORMAT=\"%%U %%S\"; time kcat -b %s -P -t %s -l %s' 2> %s"):format(
    broker.bootstrap, topic, file, out))
  assert(status == 0, proc.read(out))
  m.wait_count(broker, topic, m.lines)
  local seconds = proc.now() - start
  local user, sys = proc.read(out):match "([%d.]+) ([%d.]+)%s*$"
  m.result { bench = "source", what = "kcat", records = m.lines, seconds = m.round(seconds),
    records_per_s = m.round(m.lines / seconds, 0),
    cpu_ns_per_record = m.round((tonumber(user) + tonumber(sys)) / m.lines * 1e9, 0) }
end

return function(m)
  local broker = kafka.broker { own = true, tuned = true, settings = { "num.partitions=1" } }
  local file, wrapped = m.file(m.lines, 100), m.wrapped(m.lines, 100)
  local ours = kafka.worker { broker = broker }
  local java = m.java and kafka.worker { broker = broker, java = true, tuned = true }
  worker_round(m, broker, "warm-up", ours, m.file(10000, 100) and file)
  for _ = 1, m.rounds do
    worker_round(m, broker, "ours", ours, file)
    kcat_round(m, broker, wrapped)
  end
  if java then
    for _ = 1, math.max(1, m.rounds - 1) do worker_round(m, broker, "java", java, file) end
    java:stop()
  end
  ours:stop()
  broker:stop()
  m.at_end(function()
    local function ratio(key, a, b)
      local x, y = m.median("source", a, key), m.median("source", b, key)
      return x and y and m.round(x / y)
    end
    m.result { bench = "source", what = "ratios", ours_to_java_rate = ratio("records_per_s", "ours", "java"),
      ours_to_kcat_rate = ratio("records_per_s", "ours", "kcat"),
      ours_to_kcat_cpu = ratio("cpu_ns_per_record", "ours", "kcat"),
      ours_to_java_cpu = ratio("cpu_ns_per_record", "ours", "java") }
  end)
end
