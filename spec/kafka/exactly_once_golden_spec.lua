-- spec/kafka/exactly_once_golden_spec.lua: the recorded lab of exactly-once sources (golden/eos/lab.jsonl): what consumers of
-- both isolation levels see after each step, offsets included, up to the graceful stop. Partitions of offsets topics
-- hang on the file's path, so they are compared by connector; where two share a partition, without the offsets.
local golden = require "spec.support.golden"
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"
local with = require "spec.support.with"

local function steps()
  local out = {}
  for _, d in ipairs(golden.cases "eos/lab.jsonl") do
    if d.step then out[#out + 1] = d end
  end
  return out
end

local function connector_of(r)
  return r.key and r.key ~= golden.null and r.key:match '^%["([^"]*)"' or "records"
end

-- "offset value" of each record, by connector for offsets topics, else in one list.
local function group(records, without_offsets)
  local out = {}
  for _, r in ipairs(records) do
    local key = connector_of(r)
    out[key] = out[key] or {}
    table.insert(out[key], without_offsets and r.value or ("%d %s"):format(r.offset, r.value))
  end
  return out
end

local function share_a_partition(records)
  local owner = {}
  for _, r in ipairs(records) do
    local key = connector_of(r)
    if (owner[r.partition] or key) ~= key then return true end
    owner[r.partition] = key
  end
  return false
end

local function read(broker, topic, level)
  local out = proc.run(("timeout 60 kcat -b %s -C -q -e -t %s -X isolation.level=%s -f '%%o\\t%%p\\t%%k\\t%%s\\n' 2>/dev/null"):format(
    broker.bootstrap, topic, level))
  local list = {}
  for offset, partition, key, value in out:gmatch "(%d+)\t(%d+)\t([^\t\n]*)\t([^\n]*)\n" do
    list[#list + 1] = { offset = tonumber(offset), partition = partition, key = key ~= "" and key or nil, value = value }
  end
  return list
end

describe("the recorded exactly-once lab", function()
  it("shows the same records at the same offsets after each step", function()
    local recorded = steps()
    local broker = kafka.broker { own = true }
    local worker = kafka.worker { broker = broker, id = "connect-cluster", config = {
      ["exactly.once.source.support"] = "enabled", ["offset.flush.interval.ms"] = 60000,
      ["offset.storage.topic"] = "connect-offsets" } }
    local dir = proc.tmpdir "golden"
    local function lines(name, text) proc.append(dir .. "/" .. name:sub(1, 1) .. ".txt", text) end
    local function create(name, more)
      local c = with({ ["connector.class"] = "FileStreamSource", ["tasks.max"] = "1", topic = "g-" .. name,
        file = dir .. "/" .. name:sub(1, 1) .. ".txt", ["exactly.once.support"] = "required",
        ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter" }, more)
      local code, text = worker:request("PUT", "/connectors/" .. name .. "/config", c)
      assert(code == 201, text)
    end
    local function compare(step)
      for topic, levels in pairs(step.topics) do
        for level, want in pairs(levels) do
          local expected, got
          local ok = pcall(proc.wait_for, "", function()
            local records = read(broker, topic, level)
            local shared = share_a_partition(records)
            expected, got = group(want.records, shared), group(records, shared)
            return pcall(assert.same, expected, got)
          end, 20)
          if not ok then assert.same(expected, got, step.step .. ": " .. topic .. " " .. level) end
        end
      end
    end
    for _, name in ipairs { "poll", "intv", "cust" } do
      lines(name, ("%s1\n%s2\n"):format(name:sub(1, 1), name:sub(1, 1)))
    end
    create("poll", { ["transaction.boundary"] = "poll" })
    create("intv", { ["transaction.boundary"] = "interval", ["transaction.boundary.interval.ms"] = "600000" })
    create("cust", { ["offsets.storage.topic"] = "g-cust-offsets" })
    for _, name in ipairs { "poll", "intv", "cust" } do worker:wait_running(name) end
    assert.truthy(recorded[1].step:find("^started"))
    compare(recorded[1])
    for _, name in ipairs { "poll", "intv", "cust" } do lines(name, name:sub(1, 1) .. "3\n") end
    compare(recorded[2])
    worker:kill()
    compare(recorded[3])
    lines("poll", "p4\n")
    lines("intv", "i4\n")
    worker:start()
    for _, name in ipairs { "poll", "intv", "cust" } do worker:wait_running(name) end
    compare(recorded[4])
    assert.equal(204, (worker:request("PUT", "/connectors/intv/stop")))
    assert.truthy(recorded[5].step:find("stopped gracefully", 1, true))
    compare(recorded[5])
    assert.equal(0, worker:stop())
    broker:stop()
  end)
end)
