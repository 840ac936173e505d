-- spec/fault/17_internal_topics_spec.lua: what compaction, deaths and other writers may leave in the config topic (row 17 of the
-- fault matrix): the worker starts, names what it skips by topic and offset, and every connector whose configuration is
-- there runs with a whole set of tasks. Each sequence is a connector of one topic.
-- Elsewhere: several partitions and cleanup.policy=delete (refused as in Java), garbage in all three topics:
-- spec/kafka/bad_input_spec.lua, spec/kafka/storage_spec.lua; the rules one by one: spec/unit/config_store_spec.lua.
local http = require "spec.support.http"
local kafka = require "spec.support.kafka"
local matrix = require "spec.support.matrix"
local proc = require "spec.support.proc"
local records = require "spec.support.records"

local all = os.getenv "LC_ALL_TESTS"

describe("a config topic", function()
  local broker, dir
  setup(function()
    broker = kafka.broker()
    dir = proc.tmpdir "internal"
  end)

  local function config(name, file)
    proc.write(dir .. "/" .. (file or name) .. ".txt", (file or name) .. "\n")
    return { name = name, ["connector.class"] = "FileStreamSource", file = dir .. "/" .. (file or name) .. ".txt",
      topic = name .. "-topic", ["tasks.max"] = "1", ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter" }
  end
  local function connector(name) return { key = "connector-" .. name, value = http.encode { properties = config(name) } } end
  local function task(name, file)
    local c = config(name, file)
    c["task.class"] = "org.apache.kafka.connect.file.FileStreamSourceTask"
    return { key = ("task-%s-0"):format(name), value = http.encode { properties = c } }
  end
  local function commit(name, n) return { key = "commit-" .. name, value = ('{"tasks":%d}'):format(n or 1) } end

  -- What is in the topic, and the connectors that must run afterwards.
  local cases = {
    { "plain", function(n) return { connector(n), task(n), commit(n) } end, true },
    { "tasks-before-connector", function(n) return { task(n), commit(n), connector(n) } end, true }, -- KAFKA-17719
    { "task-compacted-away", function(n) return { connector(n), commit(n) } end, true }, -- KAFKA-17676
    { "some-tasks-compacted-away", function(n) return { connector(n), task(n), commit(n, 3) } end, true },
    { "no-commit", function(n) return { connector(n), task(n) } end, true },
    { "commit-first", function(n) return { commit(n), connector(n), task(n) } end, true },
    { "tombstone-compacted-away", function(n) return { task(n, "old-" .. n), commit(n) } end, false }, -- KAFKA-16838
    { "deleted", function(n) return { connector(n), task(n), commit(n), { key = "connector-" .. n } } end, false },
    { "deleted-and-made-again", function(n)
      return { connector(n), task(n, "old-" .. n), commit(n), { key = "connector-" .. n }, connector(n) }
    end, true },
    { "no-config-but-target", function(n) return { { key = "target-state-" .. n, value = '{"state":"PAUSED"}' } } end, false },
  }

  it("after compaction, deaths and deletions: what is configured runs, nothing else", function()
    matrix.case({ row = 17, fault = "config topic", mode = "compacted, cut, deleted", lost = 0 }, function(t)
      local worker = kafka.worker { broker = broker }
      assert.equal(0, worker:stop())
      local topic = worker.id .. "-configs"
      local list, want, bad = {}, {}, {}
      for _, c in ipairs(cases) do
        local name = worker.id .. "-" .. c[1]
        for _, r in ipairs(c[2](name)) do list[#list + 1] = r end
        if c[3] then want[#want + 1] = name end
      end
      local base = #records.read(broker.bootstrap, topic, 0)
      for _, r in ipairs { { key = "connector-" .. want[1], value = "{" }, { key = "bogus", value = "{}" },
        { key = "task-" .. want[1] .. "-x", value = '{"properties":{}}' } } do
        list[#list + 1] = r
        bad[#bad + 1] = #list
      end
      -- offsets: what was there, session keys of the worker among them
      local before = records.read(broker.bootstrap, topic, base)
      local first = #before > 0 and before[#before].offset + 1 or 0
      records.produce(broker.bootstrap, topic, list)
      local began = proc.now()
      worker:start()
      for _, name in ipairs(want) do worker:wait_running(name) end
      t.seconds = proc.now() - began
      local _, _, names = worker:request("GET", "/connectors")
      table.sort(names)
      table.sort(want)
      assert.same(want, names)
      for _, name in ipairs(want) do
        proc.wait_for("the line of " .. name, function() return #broker:values(name .. "-topic") > 0 end)
        assert.same({ name }, broker:values(name .. "-topic")) -- not that of an old task
      end
      for _, at in ipairs(bad) do
        assert.matches(("%s%%-0 offset %d skipped"):format(topic:gsub("%p", "%%%0"), first + at - 1), worker:log())
      end
      -- the one whose tombstone was compacted away, made again, does not get its old task
      local again = worker.id .. "-tombstone-compacted-away"
      assert.equal(201, (worker:request("PUT", "/connectors/" .. again .. "/config", config(again))))
      worker:wait_running(again)
      proc.wait_for("its line", function() return #broker:values(again .. "-topic") > 0 end)
      assert.same({ again }, broker:values(again .. "-topic"))
      -- all of it is right for the next worker, too
      assert.equal(0, worker:stop())
      worker:start()
      for _, name in ipairs(want) do worker:wait_running(name) end
      assert.equal(0, worker:stop())
      t.n = #cases
    end)
  end)

  if all then
    for _, kind in ipairs { "configs", "status", "offsets" } do
      it(("deleted while the worker runs (%s): it stays, its log names the topic, lines flow"):format(kind), function()
        matrix.case({ row = 17, fault = "topic deleted", mode = kind }, function(t)
          local worker = kafka.worker { broker = broker }
          local name = worker.id .. "-flow"
          assert.equal(201, (worker:request("PUT", "/connectors/" .. name .. "/config", config(name))))
          worker:wait_running(name)
          assert.is_true(broker:tool("org.apache.kafka.tools.TopicCommand", "--delete", "--topic", worker.id .. "-" .. kind))
          local n = 1
          proc.stays("the worker", function()
            n = n + 1
            proc.append(dir .. "/" .. name .. ".txt", n .. "\n")
            return worker.process:alive()
          end, 5)
          proc.wait_for("lines", function() return #broker:values(name .. "-topic") == n end, 60)
          assert.matches(worker.id .. "-" .. kind, worker:log(), 1, true)
          assert.equal(200, (worker:request("GET", "/connectors")))
          assert.equal(0, worker:stop())
          t.lines, t.lost = n, 0
        end)
      end)
    end
  end
end)
