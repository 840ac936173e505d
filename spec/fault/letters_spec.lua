-- spec/fault/letters_spec.lua: the worker is killed (SIGKILL) between a bad record, its letter and the commit of offsets:
-- every record is in the target or in the dead letter queue, for sinks and for sources. --all: more points and passages.
local kafka = require "spec.support.kafka"
local oracle = require "spec.support.oracle"
local proc = require "spec.support.proc"

local all = os.getenv "LC_ALL_TESTS"
local points = all and {
  sink = { "letters.after_send", "letters.acked", "sink.after_put", "sink.before_commit", "sink.after_commit" },
  source = { "letters.after_send", "letters.acked", "source.after_send", "source.before_offset_write" },
} or { sink = { "letters.after_send", "sink.before_commit" }, source = { "letters.acked" } }
local passages = all and { 1, 2, 10 } or { 2 }

local function lines_of(path)
  local t = {}
  for l in (proc.read(path) or ""):gmatch "[^\n]+" do t[#t + 1] = l end
  return t
end

-- every second one is bad: good ones keep their number, bad ones theirs, so that each list can be checked by itself
local function mixed(from, to, good)
  local t = {}
  for i = from, to do
    t[#t + 1] = good:format(i)
    t[#t + 1] = ("B-%d bad"):format(i)
  end
  return t
end

local function check(values, prefix, n) return #oracle.check(values, prefix, n).lost == 0 end

describe("a worker killed at", function()
  local function run(kind, point, n)
    local broker = kafka.broker()
    local worker = kafka.worker { broker = broker, config = { ["offset.flush.interval.ms"] = 500 },
      env = { LC_FAULT_KILL = ("%s:%d"):format(point, n) } }
    local dir, topic, name = proc.tmpdir "letters", kafka.unique "letters", kafka.unique(kind)
    local count = 0
    local config = { ["errors.tolerance"] = "all", ["errors.deadletterqueue.topic.replication.factor"] = "1" }
    local write, good_values
    if kind == "sink" then
      config["connector.class"], config.topics, config.file = "FileStreamSink", topic, dir .. "/out.txt"
      config["value.converter"] = "org.apache.kafka.connect.json.JsonConverter"
      config["value.converter.schemas.enable"] = "false"
      config["consumer.override.session.timeout.ms"] = 6000
      config["errors.deadletterqueue.topic.name"] = topic .. "-dlq"
      function write()
        broker:produce(topic, mixed(count + 1, count + 20, '"G-%d good"'))
        count = count + 20
      end
      function good_values() return lines_of(dir .. "/out.txt") end
    else
      config["connector.class"], config.topic, config.file = "FileStreamSource", topic, dir .. "/in.txt"
      config.transforms, config["transforms.t.type"], config["transforms.t.spec"] = "t", "Cast$Value", "int32"
      config["errors.deadletterqueue.source.topic.name"] = topic .. "-dlq"
      config["batch.size"] = 7
      function write()
        proc.append(dir .. "/in.txt", table.concat(mixed(count + 1, count + 20, "%d"), "\n") .. "\n")
        count = count + 20
      end
      function good_values()
        local t = {}
        for i, v in ipairs(broker:values(topic)) do t[i] = "G-" .. (v:match '"payload":(%d+)}' or "?") .. " good" end
        return t
      end
    end
    write()
    worker:request("PUT", "/connectors/" .. name .. "/config", config)
    proc.wait_for("the fault at " .. point, function()
      if not worker.process:alive() then return true end
      write()
    end, 60)
    assert.equal(137, worker.process:wait(5))
    worker.env = nil
    worker:start()
    proc.wait_for("every good record in its place and every bad one in the queue", function()
      return check(broker:values(topic .. "-dlq"), "B", count) and check(good_values(), "G", count)
    end, 90)
    assert.equal(0, worker:stop())
  end

  for _, kind in ipairs { "sink", "source" } do
    for _, point in ipairs(points[kind]) do
      for _, n in ipairs(passages) do
        it(("%s of a %s, passage %d, loses no record"):format(point, kind, n), function() run(kind, point, n) end)
      end
    end
  end
end)
