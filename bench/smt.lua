-- bench/smt.lua: FileStreamSource, StringConverter lines as they are, and through HoistField, InsertField and
-- ReplaceField into JsonConverter with and without schemas; the same chain beside the Java worker.
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"
local with = require "spec.support.with"

local P = "org.apache.kafka.connect.transforms."
local chain = {
  transforms = "hoist,insert,replace",
  ["transforms.hoist.type"] = P .. "HoistField$Value", ["transforms.hoist.field"] = "line",
  ["transforms.insert.type"] = P .. "InsertField$Value", ["transforms.insert.static.field"] = "src",
  ["transforms.insert.static.value"] = "file", ["transforms.insert.topic.field"] = "topic",
  ["transforms.replace.type"] = P .. "ReplaceField$Value", ["transforms.replace.renames"] = "line:text",
}
local json = "org.apache.kafka.connect.json.JsonConverter"
local variants = {
  { "plain", { ["value.converter"] = json, ["value.converter.schemas.enable"] = "false" } },
  { "chain", { ["value.converter"] = json, ["value.converter.schemas.enable"] = "false" }, true },
  { "chain-schemas", { ["value.converter"] = json, ["value.converter.schemas.enable"] = "true" }, true },
}

local function round(m, broker, what, worker, file, variant)
  local topic, name = kafka.unique "bench-smt", kafka.unique "smt"
  local config = with(with({ ["connector.class"] = "FileStreamSource", file = file, topic = topic }, variant[2]),
    variant[3] and chain)
  local pid = worker.process.pid
  local cpu, start = m.cpu(pid), proc.now()
  local code, text = worker:request("PUT", "/connectors/" .. name .. "/config", config)
  assert(code == 201, text)
  m.wait_count(broker, topic, m.lines, worker.process)
  local seconds, spent = proc.now() - start, m.cpu(pid) - cpu
  assert(m.count(broker, topic) == m.lines, "not exactly once each")
  m.result { bench = "smt", what = what .. "-" .. variant[1], records = m.lines, seconds = m.round(seconds),
    records_per_s = m.round(m.lines / seconds, 0), cpu_ns_per_record = m.round(spent / m.lines * 1e9, 0) }
  worker:request("DELETE", "/connectors/" .. name)
end

return function(m)
  -- what was counted may go: a round with schemas writes a gigabyte
  local broker = kafka.broker { own = true, tuned = true, settings = { "num.partitions=1",
    "log.segment.bytes=134217728", "log.retention.bytes=268435456", "log.retention.check.interval.ms=5000",
    "log.segment.delete.delay.ms=1000" } }
  local file = m.file(m.lines, 100)
  local ours = kafka.worker { broker = broker }
  local java = m.java and kafka.worker { broker = broker, java = true, tuned = true }
  -- the broker's compilers and its heap need some gigabytes before it is as fast as it gets
  for _ = 1, 2 do
    for _, v in ipairs(variants) do round(m, broker, "warm-up", ours, file, v) end
  end
  if java then round(m, broker, "java-warm-up", java, file, variants[2]) end
  for _ = 1, m.rounds do
    for _, v in ipairs(variants) do
      round(m, broker, "ours", ours, file, v)
      if java then round(m, broker, "java", java, file, v) end
    end
  end
  ours:stop()
  if java then java:stop() end
  broker:stop()
  m.at_end(function()
    local function ratio(key, v)
      local x, y = m.median("smt", "ours-" .. v, key), m.median("smt", "java-" .. v, key)
      return x and y and m.round(x / y)
    end
    local plain = m.median("smt", "ours-plain", "cpu_ns_per_record")
    local chained = m.median("smt", "ours-chain", "cpu_ns_per_record")
    m.result { bench = "smt", what = "ratios", chain_rate_to_java = ratio("records_per_s", "chain"),
      chain_cpu_to_java = ratio("cpu_ns_per_record", "chain"),
      chain_schemas_rate_to_java = ratio("records_per_s", "chain-schemas"),
      chain_schemas_cpu_to_java = ratio("cpu_ns_per_record", "chain-schemas"),
      chain_cost_ns = plain and chained and m.round(chained - plain, 0) }
  end)
  require "bench.chain"(m)
  require "bench.json"(m)
end
