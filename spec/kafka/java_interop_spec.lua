-- spec/kafka/java_interop_spec.lua: a cluster left by the Java worker is continued, and the other way round.
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"

local function envelope(line)
  return '{"schema":{"type":"string","optional":false},"payload":"' .. line .. '"}'
end

local function take_over(first_java)
  local broker = kafka.broker()
  local id = kafka.unique "moved"
  -- a sink's consumer group outlives the connector: other names in each run
  local src, snk, idle = kafka.unique "src", kafka.unique "snk", kafka.unique "idle"
  local dir, topic = proc.tmpdir "moved", kafka.unique "moved-lines"
  local file, out = dir .. "/in.txt", dir .. "/out.txt"
  proc.write(file, "first\nsecond\n")
  local one = kafka.worker { broker = broker, id = id, java = first_java }
  assert.equal(201, (one:request("PUT", "/connectors/" .. src .. "/config", { ["connector.class"] = "FileStreamSource",
    ["tasks.max"] = "1", file = file, topic = topic })))
  assert.equal(201, (one:request("PUT", "/connectors/" .. snk .. "/config", { ["connector.class"] = "FileStreamSink",
    ["tasks.max"] = "1", file = out, topics = topic })))
  assert.equal(201, (one:request("PUT", "/connectors/" .. idle .. "/config", { ["connector.class"] = "FileStreamSource",
    ["tasks.max"] = "1", file = dir .. "/none.txt", topic = topic })))
  one:wait_running(src)
  one:wait_running(snk)
  one:wait_running(idle)
  assert.equal(202, (one:request("PUT", "/connectors/" .. idle .. "/pause")))
  one:wait_running(idle, 1, "PAUSED")
  proc.wait_for("both lines in the sink", function() return proc.read(out) == "first\nsecond\n" end)
  proc.wait_for("the source's offset", function()
    local o = one:offsets(src)
    return o and o[1] and o[1].offset.position == 13
  end)
  proc.wait_for("the sink's offset", function()
    local o = one:offsets(snk)
    return o and o[1] and o[1].offset.kafka_offset == 2
  end)
  local _, _, config = one:request("GET", "/connectors/" .. src .. "/config")
  local _, _, tasks = one:request("GET", "/connectors/" .. src .. "/tasks")
  local _, _, topics = one:request("GET", "/connectors/" .. src .. "/topics")
  one:stop()

  proc.append(file, "third\n")
  local two = kafka.worker { broker = broker, id = id, java = not first_java }
  two:wait_running(src)
  two:wait_running(snk)
  two:wait_running(idle, 1, "PAUSED")
  local _, _, config2 = two:request("GET", "/connectors/" .. src .. "/config")
  local _, _, tasks2 = two:request("GET", "/connectors/" .. src .. "/tasks")
  local _, _, topics2 = two:request("GET", "/connectors/" .. src .. "/topics")
  assert.same(config, config2)
  assert.same(tasks, tasks2)
  assert.same(topics, topics2)
  proc.wait_for("the third line, once", function() return proc.read(out) == "first\nsecond\nthird\n" end)
  assert.same({ envelope "first", envelope "second", envelope "third" }, broker:values(topic))
  -- one key of one partition: the offset was continued, not begun anew
  proc.wait_for("the new offset", function()
    local o = two:offsets(src)
    return o and #o == 1 and o[1].offset.position == 19
  end)
  local partitions = {}
  for _, r in ipairs(broker:records(id .. "-offsets")) do
    if r.key == '["' .. src .. '",{"filename":"' .. file .. '"}]' then partitions[r.partition] = true end
  end
  local n = 0
  for _ in pairs(partitions) do n = n + 1 end
  assert.equal(1, n)
  assert.equal(204, (two:request("DELETE", "/connectors/" .. idle)))
  proc.wait_for("the deletion", function() return two:request("GET", "/connectors/" .. idle) == 404 end)
  two:stop()
end

describe("a cluster of the Java worker", function()
  it("is continued by ours", function() take_over(true) end)
end)

describe("a cluster of ours", function()
  it("is continued by the Java worker", function() take_over(false) end)
end)
