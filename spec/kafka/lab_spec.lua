-- spec/kafka/lab_spec.lua: the labs that people run by hand, on the real Kafka. By hand: ./dev kafka start,
-- build/luaconnect distributed config/connect-distributed.properties, then the requests below with curl.
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"

local function envelope(line)
  return '{"schema":{"type":"string","optional":false},"payload":"' .. line .. '"}'
end

local function source(file, topic)
  return { ["connector.class"] = "FileStreamSource", ["tasks.max"] = "1", file = file, topic = topic }
end

local function by_key(records, key)
  local found
  for _, r in ipairs(records) do if r.key == key then found = r end end
  return found
end

describe("lab 1: FileStreamSource with offsets", function()
  local broker, worker, file, topic
  setup(function()
    broker = kafka.broker()
    -- the lab's plugin.path: a .jar and a folder
    local dir = proc.tmpdir "plugins"
    proc.write(dir .. "/connect-file-4.3.1.jar", "not for us")
    worker = kafka.worker { broker = broker, config = { ["offset.flush.interval.ms"] = 2000,
      ["plugin.path"] = dir .. "/connect-file-4.3.1.jar," .. dir } }
    file, topic = proc.tmpdir "lab" .. "/orders.txt", kafka.unique "orders"
    proc.write(file, "O-1 created\nO-2 created\nO-3 created\n")
  end)
  teardown(function() worker:stop() end)

  it("answers PUT config with the name, the config and no tasks yet", function()
    local code, text, json = worker:request("PUT", "/connectors/file-src/config", source(file, topic))
    assert.equal(201, code)
    assert.equal("file-src", json.name)
    assert.matches('"tasks":%[%]', text)
    assert.equal("source", json.type)
    assert.equal("FileStreamSource", json.config["connector.class"])
  end)

  it("runs, with offsets [] before the first flush or the position after it", function()
    worker:wait_running "file-src"
    for _, o in ipairs(worker:offsets "file-src") do assert.equal(36, o.offset.position) end
  end)

  it("writes null keys and the JSON envelope", function()
    proc.wait_for("three records", function() return #broker:records(topic) >= 3 end)
    local records = broker:records(topic)
    assert.equal(3, #records)
    for i, r in ipairs(records) do
      assert.is_nil(r.key)
      assert.equal(envelope(("O-%d created"):format(i)), r.value)
    end
  end)

  it("shows position 36 after the flush, in REST and in the offsets topic", function()
    local offsets = proc.wait_for("the flush", function()
      local o = worker:offsets "file-src"
      return o and #o == 1 and o
    end)
    assert.same({ partition = { filename = file }, offset = { position = 36 } }, offsets[1])
    local r = by_key(broker:records(worker.id .. "-offsets"), '["file-src",{"filename":"' .. file .. '"}]')
    assert.equal('{"position":36}', r.value)
  end)

  it("after a graceful restart only the new line is new", function()
    assert.equal(0, worker:stop())
    worker:start()
    worker:wait_running "file-src"
    proc.append(file, "O-4 created\n")
    proc.wait_for("O-4", function() return #broker:records(topic) >= 4 end)
    local values = broker:values(topic)
    assert.equal(4, #values)
    assert.equal(envelope "O-4 created", values[4])
  end)

  it("continues at the stored offset when deleted and created again", function()
    proc.wait_for("the flush", function()
      local o = worker:offsets "file-src"
      return o and o[1] and o[1].offset.position == 48
    end)
    assert.equal(204, (worker:request("DELETE", "/connectors/file-src")))
    proc.wait_for("the deletion", function() return not worker:status "file-src" end)
    proc.append(file, "O-5 created\n")
    assert.equal(201, (worker:request("PUT", "/connectors/file-src/config", source(file, topic))))
    proc.wait_for("O-5", function() return #broker:records(topic) >= 5 end)
    local values = broker:values(topic)
    assert.equal(5, #values)
    assert.equal(envelope "O-5 created", values[5])
  end)
end)

describe("lab 2: SIGKILL between two flushes", function()
  it("sends again what was not committed and loses nothing", function()
    local broker = kafka.broker()
    local worker = kafka.worker { broker = broker, config = { ["offset.flush.interval.ms"] = 60000 } }
    local file, topic = proc.tmpdir "lab" .. "/orders.txt", kafka.unique "orders"
    proc.write(file, "O-1 created\nO-2 created\nO-3 created\n")
    worker:request("PUT", "/connectors/file-src/config", source(file, topic))
    proc.wait_for("O-3", function() return #broker:records(topic) >= 3 end)
    assert.equal(0, worker:stop()) -- commits 36
    worker:start()
    worker:wait_running "file-src"
    assert.equal(36, worker:offsets "file-src"[1].offset.position)
    proc.append(file, "O-4 created\nO-5 created\nO-6 created\n")
    proc.wait_for("O-6", function() return #broker:records(topic) >= 6 end)
    assert.equal(36, worker:offsets "file-src"[1].offset.position)
    worker:kill()
    worker:start()
    proc.wait_for("O-4 to O-6 again", function() return #broker:records(topic) >= 9 end)
    local values = broker:values(topic)
    assert.equal(9, #values)
    for i = 1, 6 do assert.equal(envelope(("O-%d created"):format(i)), values[i]) end
    for i = 4, 6 do assert.equal(envelope(("O-%d created"):format(i)), values[i + 3]) end
    assert.equal(0, worker:stop())
  end)
end)

describe("FileStreamSink", function()
  it("writes the lines a source sent, and its group holds the offsets", function()
    local broker = kafka.broker()
    local worker = kafka.worker { broker = broker, config = { ["offset.flush.interval.ms"] = 1000 } }
    local dir, topic = proc.tmpdir "sink", kafka.unique "lines"
    proc.write(dir .. "/in.txt", "one\ntwo \"quoted\"\nthr\xc3\xa9e\n\n")
    local src, snk = kafka.unique "src", kafka.unique "snk"
    worker:request("PUT", "/connectors/" .. src .. "/config", source(dir .. "/in.txt", topic))
    local code = worker:request("PUT", "/connectors/" .. snk .. "/config",
      { ["connector.class"] = "FileStreamSink", ["tasks.max"] = "1", file = dir .. "/out.txt", topics = topic })
    assert.equal(201, code)
    proc.wait_for("the sink's file", function()
      return proc.read(dir .. "/out.txt") == "one\ntwo \"quoted\"\nthr\xc3\xa9e\n\n"
    end)
    local offsets = proc.wait_for("the sink's offsets", function()
      local o = worker:offsets(snk)
      return o and o[1] and o[1].offset.kafka_offset == 4 and o
    end)
    assert.same({ kafka_topic = topic, kafka_partition = 0 }, offsets[1].partition)
    -- restart: nothing is written twice
    assert.equal(0, worker:stop())
    worker:start()
    worker:wait_running(snk)
    proc.append(dir .. "/in.txt", "five\n")
    proc.wait_for("five", function() return (proc.read(dir .. "/out.txt") or ""):find "five\n" end)
    assert.equal("one\ntwo \"quoted\"\nthr\xc3\xa9e\n\nfive\n", proc.read(dir .. "/out.txt"))
    assert.equal(0, worker:stop())
  end)

  it("pauses, resumes and stops; a stopped connector has no tasks", function()
    local broker = kafka.broker()
    local worker = kafka.worker { broker = broker }
    local dir, topic = proc.tmpdir "pause", kafka.unique "paused"
    proc.write(dir .. "/in.txt", "1\n")
    worker:request("PUT", "/connectors/p/config", source(dir .. "/in.txt", topic))
    worker:wait_running "p"
    proc.wait_for("line 1", function() return #broker:records(topic) == 1 end)
    assert.equal(202, (worker:request("PUT", "/connectors/p/pause")))
    worker:wait_running("p", 1, "PAUSED")
    proc.append(dir .. "/in.txt", "2\n")
    proc.stays("the topic at one record", function() return #broker:records(topic) == 1 end, 3)
    assert.equal(202, (worker:request("PUT", "/connectors/p/resume")))
    worker:wait_running "p"
    proc.wait_for("line 2", function() return #broker:records(topic) == 2 end)
    assert.equal(204, (worker:request("PUT", "/connectors/p/stop")))
    proc.wait_for("STOPPED", function()
      local s = worker:status "p"
      return s and s.connector.state == "STOPPED" and #s.tasks == 0
    end)
    proc.append(dir .. "/in.txt", "3\n")
    assert.equal(202, (worker:request("PUT", "/connectors/p/resume")))
    worker:wait_running "p"
    proc.wait_for("line 3", function() return #broker:records(topic) == 3 end)
    assert.equal(3, #broker:values(topic))
    assert.equal(0, worker:stop())
  end)
end)
