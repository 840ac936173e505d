-- bench/eos.lua: exactly-once FileStreamSource, boundaries poll and interval (1000 ms), and how long a single line
-- takes to a read_committed consumer: ours and the Java worker by turns on one broker.
local ffi = require "ffi"
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"
local with = require "spec.support.with"

local single = tonumber(os.getenv "LC_BENCH_SINGLE" or 40)
local committed = "-X isolation.level=read_committed"
local boundaries = {
  { "interval", { ["transaction.boundary"] = "interval", ["transaction.boundary.interval.ms"] = "1000" } },
  { "poll", { ["transaction.boundary"] = "poll" } },
}

local function create(worker, boundary, file, topic)
  local name = kafka.unique "eos"
  local config = with({ ["connector.class"] = "FileStreamSource", file = file, topic = topic,
    ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter",
    ["exactly.once.support"] = "required" }, boundary[2])
  local code, text = worker:request("PUT", "/connectors/" .. name .. "/config", config)
  assert(code == 201, text)
  return name
end

-- The task is not to be counted when the next one is: wait until it is gone.
local function delete(worker, name)
  worker:request("DELETE", "/connectors/" .. name)
  proc.wait_for(name .. " to be gone", function()
    return (worker:request("GET", "/connectors/" .. name .. "/status")) == 404
  end, 60)
end

-- The end of a topic as read_committed sees it: markers of transactions count.
local function stable(broker, topic)
  local out = proc.run(("kcat -b %s -Q -t %s:0:-1 %s 2>/dev/null"):format(broker.bootstrap, topic, committed))
  return tonumber(out:match "offset (%d+)") or 0
end

local function records(broker, topic)
  return tonumber((proc.run(("kcat -b %s -C -q -e -t %s %s 2>/dev/null | wc -l"):format(broker.bootstrap, topic,
    committed))))
end

-- Seconds counted from the first committed record: start of the task and fencing are no matter of rates.
local function round(m, broker, what, worker, file, boundary)
  local topic = kafka.unique("bench-eos-" .. boundary[1])
  local pid = worker.process.pid
  local cpu, asked = m.cpu(pid), proc.now()
  local name = create(worker, boundary, file, topic)
  local had, start = 0, nil
  proc.wait_for(m.lines .. " committed records", function()
    had = stable(broker, topic)
    if had > 0 and not start then start = proc.now() end
    if had >= m.lines then return true end
    local left = start and (m.lines - had) * (proc.now() - asked) / had or 0.02
    ffi.C.usleep(math.max(1e4, math.min(left * 0.5, 0.5) * 1e6))
  end, 600)
  local seconds, spent = proc.now() - asked, m.cpu(pid) - cpu
  local marks
  proc.wait_for("the last transaction", function()
    marks = stable(broker, topic)
    return marks >= m.lines + 1 and marks == m.count(broker, topic)
  end, 60)
  delete(worker, name)
  local n = records(broker, topic)
  assert(n == m.lines, ("%d committed records of %d"):format(n, m.lines))
  m.result { bench = "eos", what = what .. "-" .. boundary[1], records = m.lines, seconds = m.round(seconds),
    first_s = m.round(start - asked), records_per_s = m.round(m.lines / seconds, 0),
    transactions = marks - m.lines, cpu_ns_per_record = m.round(spent / m.lines * 1e9, 0) }
end

local consumers = {} -- closing one waits for its end, which is the broker's

-- One line at a time, each appended when the one before has been read: with the time of the source's own rest in it,
-- and one after another behind it without. Median and 90th of a hundred ms.
local function latency(m, broker, what, worker, boundary)
  local file, topic = proc.tmpdir "single" .. "/n.txt", kafka.unique "bench-eos-single"
  proc.write(file, "first\n")
  local name = create(worker, boundary, file, topic)
  proc.wait_for("the first line", function() return stable(broker, topic) > 0 end, 60)
  local consumer = assert(io.popen(("exec kcat -u -b %s -C -q -t %s %s -X fetch.wait.max.ms=500 2>/dev/null"):format(
    broker.bootstrap, topic, committed)))
  assert(consumer:read "*l" == "first")
  local times = {}
  for i = 1, single do
    ffi.C.usleep(300000 + (i * 377) % 1000 * 1000) -- not in step with anything
    local line, start = "line " .. i, proc.now()
    proc.append(file, line .. "\n")
    assert(consumer:read "*l" == line)
    times[i] = (proc.now() - start) * 1000
  end
  table.sort(times)
  delete(worker, name)
  consumers[#consumers + 1] = consumer
  m.result { bench = "eos", what = what .. "-single-" .. boundary[1], records = single,
    median_ms = m.round(times[math.ceil(single / 2)], 1), p90_ms = m.round(times[math.ceil(single * 0.9)], 1),
    best_ms = m.round(times[1], 1), worst_ms = m.round(times[single], 1) }
end

return function(m)
  local broker = kafka.broker { own = true, tuned = true, settings = { "num.partitions=1",
    "log.segment.bytes=134217728", "log.retention.bytes=268435456", "log.retention.check.interval.ms=5000",
    "log.segment.delete.delay.ms=1000" } }
  local file = m.file(m.lines, 100)
  local config = { ["exactly.once.source.support"] = "enabled" }
  local ours = kafka.worker { broker = broker, config = config }
  local java = m.java and kafka.worker { broker = broker, java = true, tuned = true, config = config }
  local workers = { { "ours", ours } }
  if java then workers[2] = { "java", java } end
  for _, b in ipairs(boundaries) do
    for _, w in ipairs(workers) do round(m, broker, "warm-up-" .. w[1], w[2], file, b) end
  end
  for _ = 1, m.rounds do
    for _, b in ipairs(boundaries) do
      for _, w in ipairs(workers) do round(m, broker, w[1], w[2], file, b) end
    end
  end
  for _, b in ipairs(boundaries) do
    for _, w in ipairs(workers) do latency(m, broker, w[1], w[2], b) end
  end
  ours:stop()
  if java then java:stop() end
  broker:stop()
  m.at_end(function()
    local r = { bench = "eos", what = "ratios" }
    for _, b in ipairs(boundaries) do
      local function ratio(key, infix)
        local x = m.median("eos", "ours-" .. infix .. b[1], key)
        local y = m.median("eos", "java-" .. infix .. b[1], key)
        return x and y and m.round(x / y)
      end
      r[b[1] .. "_rate_to_java"] = ratio("records_per_s", "")
      r[b[1] .. "_cpu_to_java"] = ratio("cpu_ns_per_record", "")
      r[b[1] .. "_single_median_to_java"] = ratio("median_ms", "single-")
    end
    m.result(r)
  end)
end
