-- spec/fault/kill_spec.lua: the worker is killed (SIGKILL) at each named step of the record path and started
-- again: nothing is lost, and twice comes at most what one flush interval sent (row 1 of the fault matrix,
-- at-least-once). --all kills at the 1st, 2nd and 10th passage.
local kafka = require "spec.support.kafka"
local oracle = require "spec.support.oracle"
local proc = require "spec.support.proc"

local all = os.getenv "LC_ALL_TESTS"
local points = all and { "source.after_poll", "source.after_send", "source.before_offset_write",
  "source.after_offset_write", "sink.after_put", "sink.before_commit", "sink.after_commit" }
  or { "source.after_send", "source.before_offset_write", "sink.after_put", "sink.before_commit" }
local passages = all and { 1, 2, 10 } or { 2 }

local function lines_of(path)
  local t = {}
  for l in (proc.read(path) or ""):gmatch "[^\n]+" do t[#t + 1] = l end
  return t
end

describe("a worker killed at", function()
  for _, point in ipairs(points) do
    for _, n in ipairs(passages) do
      it(("%s, passage %d, loses nothing"):format(point, n), function()
        local broker = kafka.broker()
        local worker = kafka.worker { broker = broker, config = { ["offset.flush.interval.ms"] = 500 },
          env = { LC_FAULT_KILL = ("%s:%d"):format(point, n) } }
        local dir, topic = proc.tmpdir "kill", kafka.unique "kill"
        local src, snk = kafka.unique "src", kafka.unique "snk"
        local file, count = dir .. "/in.txt", 0
        local function write()
          proc.append(file, table.concat(oracle.lines("K", count + 1, count + 50), "\n") .. "\n")
          count = count + 50
        end
        write()
        worker:request("PUT", "/connectors/" .. src .. "/config", { ["connector.class"] = "FileStreamSource",
          file = file, topic = topic, ["batch.size"] = 20 })
        worker:request("PUT", "/connectors/" .. snk .. "/config", { ["connector.class"] = "FileStreamSink",
          file = dir .. "/out.txt", topics = topic, ["consumer.override.session.timeout.ms"] = 6000 })
        proc.wait_for("the fault at " .. point, function()
          if not worker.process:alive() then return true end
          write()
        end, 60)
        assert.equal(137, worker.process:wait(5))
        worker.env = nil
        worker:start()
        proc.wait_for("every line in the topic and in the file", function()
          return #oracle.check(broker:values(topic), "K", count).lost == 0
            and #oracle.check(lines_of(dir .. "/out.txt"), "K", count).lost == 0
        end, 90)
        assert.equal(0, worker:stop())
        local r = oracle.check(broker:values(topic), "K", count)
        assert.same({}, r.lost)
        assert.equal(0, r.disorder)
      end)
    end
  end
end)
