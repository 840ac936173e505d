-- spec/kafka/exactly_once_spec.lua: exactly-once sources on the real Kafka. Lab 3 is the one that people run by hand.
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"

local enabled = { ["exactly.once.source.support"] = "enabled", ["offset.flush.interval.ms"] = 60000 }

local function with(t, more)
  local out = {}
  for k, v in pairs(t) do out[k] = v end
  for k, v in pairs(more or {}) do out[k] = v end
  return out
end

local function source(file, topic, more)
  return with({ ["connector.class"] = "FileStreamSource", ["tasks.max"] = "1", file = file, topic = topic,
    ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter" }, more)
end

-- What a read_committed consumer sees.
local function committed(broker, topic)
  local out = proc.run(("timeout 60 kcat -b %s -C -q -e -t %s -X isolation.level=read_committed 2>/dev/null"):format(
    broker.bootstrap, topic))
  local list = {}
  for line in out:gmatch "[^\n]+" do list[#list + 1] = line end
  return list
end

local function wait_committed(broker, topic, n)
  proc.wait_for(n .. " committed records in " .. topic, function() return #committed(broker, topic) >= n end)
  return committed(broker, topic)
end

local function transactions(broker)
  local out = kafka.tool { "org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", broker.bootstrap, "list" }
  local states = {}
  for id, state in out:gmatch "\n(%S+)%s+%d+%s+%d+%s+(%S+)" do states[id] = state end
  return states, out
end

local function keys(broker, worker, prefix)
  local out = {}
  for _, r in ipairs(broker:records(worker.id .. "-configs")) do
    if r.key:sub(1, #prefix) == prefix then out[#out + 1] = r.value end
  end
  return out
end

describe("lab 3: an exactly-once FileStreamSource", function()
  local broker, worker, file, topic
  setup(function()
    broker = kafka.broker()
    worker = kafka.worker { broker = broker, config = enabled }
    file, topic = proc.tmpdir "lab" .. "/e.txt", kafka.unique "eos"
    proc.write(file, "E-1 created\nE-2 created\n")
  end)
  teardown(function() worker:stop() end)

  it("commits each poll: the position is there though the flush interval is a minute", function()
    local code = worker:request("PUT", "/connectors/eos-src/config", source(file, topic,
      { ["exactly.once.support"] = "required", ["transaction.boundary"] = "poll" }))
    assert.equal(201, code)
    worker:wait_running "eos-src"
    wait_committed(broker, topic, 2)
    proc.append(file, "E-3 created\nE-4 created\n")
    wait_committed(broker, topic, 4)
    local offsets = proc.wait_for("position 48", function()
      local o = worker:offsets "eos-src"
      return o and o[1] and o[1].offset.position == 48 and o
    end, 10)
    assert.same({ { partition = { filename = file }, offset = { position = 48 } } }, offsets)
  end)

  it("shows both transactional ids as committed, and a task count record", function()
    local states, out = transactions(broker)
    assert.equal("CompleteCommit", states["connect-cluster-" .. worker.id], out)
    assert.equal("CompleteCommit", states[worker.id .. "-eos-src-0"], out)
    assert.same({ '{"task-count":1}' }, keys(broker, worker, "tasks-fencing-eos-src"))
  end)

  it("after SIGKILL and a new start every line is there once", function()
    worker:kill()
    worker:start()
    worker:wait_running "eos-src"
    proc.append(file, "E-5 created\n")
    assert.same({ "E-1 created", "E-2 created", "E-3 created", "E-4 created", "E-5 created" },
      wait_committed(broker, topic, 5))
    assert.equal(0, worker:stop())
    worker:start()
    worker:wait_running "eos-src"
    assert.equal(60, worker:offsets "eos-src"[1].offset.position)
    assert.equal(5, #committed(broker, topic))
  end)
end)
