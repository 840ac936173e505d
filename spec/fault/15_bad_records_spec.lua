-- spec/fault/15_bad_records_spec.lua: bad records (invalid UTF-8, NUL, 100 and 1001 deep JSON, duplicate keys, NaN, 1e400, lone
-- surrogates, nothing, tombstones; --all: 50 MB) on a sink with JsonConverter and on a source with a transform, each with
-- tolerance none and all, with a dead letter queue and without (row 15 of the fault matrix). Which of them Kafka
-- Connect's converter takes, and with which error it refuses the others, is recorded: spec/golden/bad_values.jsonl.
-- And the queue that cannot take a letter (row 16), what spec/kafka/dlq_spec.lua and spec/unit/letters_spec.lua leave: after
-- it was mended a restart loses nothing.
local golden = require "spec.support.golden"
local inputs = require "spec.golden.bad_values"
local kafka = require "spec.support.kafka"
local matrix = require "spec.support.matrix"
local proc = require "spec.support.proc"
local records = require "spec.support.records"
local with = require "spec.support.with"

local all = os.getenv "LC_ALL_TESTS"

local names = { "utf8-ff", "utf8-c3", "nul", "nul-in-text", "nul-escaped", "array-100-deep", "object-100-deep", "array-1001-deep",
  "duplicate-keys", "number-NaN", "number-1e400", "surrogate-high", "surrogate-raw", "surrogate-key", "empty", "part-{" }
local REQUIRED = { "topic", "partition", "offset", "connector.name", "task.id", "stage", "class.name", "exception.class.name",
  "exception.message", "exception.stacktrace" }

-- Corpus with what Java's JsonConverter (schemas.enable=false) says: { name, bytes, error = { class, message } or nil }
local function corpus()
  local bytes, recorded = {}, {}
  for _, v in ipairs(inputs.every) do bytes[v.name] = v.bytes end
  for _, c in ipairs(golden.cases "bad_values.jsonl") do
    if c.converter == "JsonConverter" and c.role == "value" and c.config == "schemas.enable=false" then recorded[c.name] = c end
  end
  local out = {}
  for i, name in ipairs(names) do
    assert(recorded[name] and bytes[name], name)
    local e = recorded[name].error
    out[i] = { name = name, bytes = bytes[name], error = e and e ~= golden.null and e or nil }
  end
  return out
end

describe("bad records", function()
  local broker, worker, dir
  setup(function()
    broker = kafka.broker()
    dir = proc.tmpdir "bad"
    worker = kafka.worker { broker = broker }
  end)
  teardown(function() assert.equal(0, worker:stop()) end)

  local function put(name, config)
    local code, text = worker:request("PUT", "/connectors/" .. name .. "/config", config)
    assert.is_true(code == 201 or code == 200, text)
  end
  local function sink(topic, name, more)
    local c = with({ ["connector.class"] = "FileStreamSink", topics = topic, file = dir .. "/" .. name .. ".out",
      ["value.converter"] = "org.apache.kafka.connect.json.JsonConverter", ["value.converter.schemas.enable"] = "false",
      ["key.converter"] = "org.apache.kafka.connect.storage.StringConverter",
      ["errors.deadletterqueue.topic.replication.factor"] = "1" }, more)
    put(name, c)
  end
  local function task(name)
    local s = worker:status(name)
    return s and s.tasks[1]
  end
  local function wait_failed(name)
    return proc.wait_for(name .. " to be FAILED", function()
      local t = task(name)
      return t and t.state == "FAILED" and t
    end).trace
  end
  local function committed(name)
    local o = worker:offsets(name)
    return o and o[1] and o[1].offset.kafka_offset or 0
  end
  local function wait_committed(name, n)
    proc.wait_for(("%s to have committed %d"):format(name, n), function()
      local t = task(name)
      if t and t.state == "FAILED" then error(t.trace, 0) end
      return committed(name) == n
    end)
  end
  local function header(r, name)
    for _, h in ipairs(r.headers) do if h[1] == "__connect.errors." .. name then return h[2] or golden.null end end
  end

  it("of a sink: skipped, or where the task stops, and in the queue as they came", function()
    local list = corpus()
    local everything, bad, alone = kafka.unique "bad", {}, {}
    local messages = {}
    for i, v in ipairs(list) do
      messages[#messages + 1] = { value = ('{"good":%d}'):format(i) }
      messages[#messages + 1] = { key = "k" .. i, value = v.bytes, timestamp = 1700000000000 + i, headers = { { "h", "\255" } } }
      if v.error then bad[#bad + 1] = { at = #messages - 1, v = v, message = messages[#messages] } end
    end
    messages[#messages + 1] = { key = "tombstone" }
    messages[#messages + 1] = { value = '{"good":"last"}' }
    records.produce(broker.bootstrap, everything, messages)
    sink(everything, everything .. "-skip", { ["errors.tolerance"] = "all" })
    sink(everything, everything .. "-queue", { ["errors.tolerance"] = "all",
      ["errors.deadletterqueue.topic.name"] = everything .. "-dlq", ["errors.deadletterqueue.context.headers.enable"] = "true" })
    -- one of each kind alone, without tolerance
    for i, b in ipairs(bad) do
      if all or i % 3 == 1 then
        local topic = kafka.unique "alone"
        alone[#alone + 1] = { topic = topic, v = b.v, queue = #alone % 2 == 0 }
        records.produce(broker.bootstrap, topic, { { value = '"before"' }, { value = b.v.bytes }, { value = '"behind"' } })
        sink(topic, topic, alone[#alone].queue and { ["errors.deadletterqueue.topic.name"] = topic .. "-dlq",
          ["errors.deadletterqueue.context.headers.enable"] = "true" } or {})
      end
    end

    for _, a in ipairs(alone) do
      matrix.case({ row = 15, fault = "bad record", mode = "sink, none" .. (a.queue and ", queue" or ""), note = a.v.name },
        function(t)
          local trace = wait_failed(a.topic)
          assert.equal(1, (trace:find("org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler\n", 1,
            true)))
          local e, from = a.v.error, 1
          while e and e ~= golden.null do -- the recorded causes, in their order
            local first = (e.message ~= golden.null and e.message or ""):match "^[^\n]*"
            local line = ("Caused by: %s: %s"):format(e.class, first):gsub(": $", "")
            local at = trace:find(line, from, true)
            assert(at, ("the trace lacks %s: %s"):format(line, trace))
            from, e = at, e.cause
          end
          assert.is_true(committed(a.topic) <= 1)
          if a.queue then
            local got = records.read(broker.bootstrap, a.topic .. "-dlq", 1)
            assert.equal(a.v.bytes, got[1].value)
            assert.equal("1", header(got[1], "offset"))
          end
          t.lines, t.lost = 3, 0
        end)
    end

    matrix.case({ row = 15, fault = "bad record", mode = "sink, all", note = ("%d of %d bad"):format(#bad, #messages) }, function(t)
      for _, name in ipairs { everything .. "-skip", everything .. "-queue" } do
        wait_committed(name, #messages)
        local lines = {}
        for l in (proc.read(dir .. "/" .. name .. ".out") or ""):gmatch "[^\n]+" do lines[#lines + 1] = l end
        assert.equal(#messages - #bad, #lines, name)
        for i = 1, #list do assert.is_truthy(table.concat(lines, "\n"):find("{good=" .. i .. "}", 1, true)) end
        assert.equal("{good=last}", lines[#lines])
      end
      t.lines, t.lost = #messages, 0
    end)
    matrix.case({ row = 15, fault = "bad record", mode = "sink, all, queue", note = "bytes and ten headers" }, function(t)
      local got = records.read(broker.bootstrap, everything .. "-dlq", #bad)
      assert.equal(#bad, #got)
      for i, b in ipairs(bad) do
        local m = b.message
        assert.same({ m.key, m.value, m.timestamp, m.headers[1] }, { got[i].key, got[i].value, got[i].timestamp,
          got[i].headers[1] }, b.v.name)
        for _, h in ipairs(REQUIRED) do assert.is_not_nil(header(got[i], h), h) end
        assert.equal(1 + #REQUIRED, #got[i].headers)
        assert.same({ everything, "0", tostring(b.at), everything .. "-queue", "0", "VALUE_CONVERTER",
          "org.apache.kafka.connect.json.JsonConverter", b.v.error.class }, { header(got[i], "topic"), header(got[i], "partition"),
          header(got[i], "offset"), header(got[i], "connector.name"), header(got[i], "task.id"), header(got[i], "stage"),
          header(got[i], "class.name"), header(got[i], "exception.class.name") })
        if b.v.error.message ~= golden.null then assert.equal(b.v.error.message, header(got[i], "exception.message")) end
      end
      t.lines, t.lost = #bad, 0
    end)
    for _, a in ipairs(alone) do worker:request("DELETE", "/connectors/" .. a.topic) end
    for _, n in ipairs { "-skip", "-queue" } do worker:request("DELETE", "/connectors/" .. everything .. n) end
  end)

  it("of a source: skipped, or where the task stops", function()
    local topic = kafka.unique "src"
    local file = dir .. "/" .. topic .. ".txt"
    local lines = { "1", "\255\254", "2", "a\0b", "", "3", "NaN", "4", "1e400", "5" }
    proc.write(file, table.concat(lines, "\n") .. "\n")
    local function source(name, more)
      local c = with({ ["connector.class"] = "FileStreamSource", file = file, topic = name, transforms = "t",
        ["transforms.t.type"] = "Cast$Value", ["transforms.t.spec"] = "int32" }, more)
      put(name, c)
    end
    source(topic)
    source(topic .. "-all", { ["errors.tolerance"] = "all" })
    source(topic .. "-queue", { ["errors.tolerance"] = "all", ["errors.deadletterqueue.source.topic.name"] = topic .. "-dlq",
      ["errors.deadletterqueue.topic.replication.factor"] = "1" })
    local function payloads(name)
      local t = {}
      for i, v in ipairs(broker:values(name)) do t[i] = v:match '"payload":(.-)}$' end
      return t
    end
    matrix.case({ row = 15, fault = "bad record", mode = "source, none" }, function(t)
      local trace = wait_failed(topic)
      assert.matches("Tolerance exceeded in error handler\n", trace)
      assert.matches("\nCaused by: org.apache.kafka.connect.errors.DataException: ", trace, 1, true)
      assert.same({ "1" }, payloads(topic))
      local o = worker:offsets(topic)
      assert.is_true(o == nil or #o == 0 or o[1].offset.position <= 2)
      t.lines, t.lost = #lines, 0
    end)
    matrix.case({ row = 15, fault = "bad record", mode = "source, all" }, function(t)
      proc.wait_for("what is good", function() return #payloads(topic .. "-all") == 5 end)
      assert.same({ "1", "2", "3", "4", "5" }, payloads(topic .. "-all"))
      assert.equal("RUNNING", task(topic .. "-all").state)
      t.lines, t.lost = #lines, 0
    end)
    matrix.case({ row = 15, fault = "bad record", mode = "source, all, queue" }, function(t)
      local got = records.read(broker.bootstrap, topic .. "-dlq", 5)
      assert.equal(5, #got)
      assert.same({ "1", "2", "3", "4", "5" }, payloads(topic .. "-queue"))
      t.lines, t.lost = #lines, 0
    end)
    for _, n in ipairs { "", "-all", "-queue" } do worker:request("DELETE", "/connectors/" .. topic .. n) end
  end)

  if all then
    it("of 50 MB: put, or in the queue whole", function()
      local topic = kafka.unique "huge"
      local size = 50 * 1024 * 1024
      for _, name in ipairs { topic, topic .. "-dlq" } do
        assert.is_true(broker:tool("org.apache.kafka.tools.TopicCommand", "--create", "--topic", name, "--partitions", "1",
          "--config", "max.message.bytes=60000000"))
      end
      local good, bad = dir .. "/good", dir .. "/bad"
      proc.write(good, '"' .. ("x"):rep(size) .. '"')
      proc.write(bad, '"' .. ("y"):rep(size))
      for _, f in ipairs { good, bad } do
        local out, status = proc.run(("kcat -b %s -P -t %s -X message.max.bytes=60000000 -X batch.num.messages=1 %s 2>&1"):format(
          broker.bootstrap, topic, f))
        assert.equal(0, status, out)
      end
      records.produce(broker.bootstrap, topic, { { value = '"last"' } })
      matrix.case({ row = 15, fault = "bad record", mode = "sink, all, queue", note = "50 MB" }, function(t)
        sink(topic, topic, { ["errors.tolerance"] = "all", ["errors.deadletterqueue.topic.name"] = topic .. "-dlq",
          ["producer.override.max.request.size"] = "60000000", ["producer.override.buffer.memory"] = "120000000",
          ["consumer.override.max.partition.fetch.bytes"] = "60000000" })
        wait_committed(topic, 3)
        local text = proc.read(dir .. "/" .. topic .. ".out")
        assert.equal(size + 1 + 5, #text)
        local _, out = proc.run(("kcat -b %s -C -q -e -t %s-dlq -X fetch.message.max.bytes=100000000 "
          .. "-X receive.message.max.bytes=200000000 > %s/letter"):format(broker.bootstrap, topic, dir))
        assert.equal(0, out)
        assert.equal(size + 2, #proc.read(dir .. "/letter")) -- kcat's newline
        t.lines, t.lost = 3, 0
      end)
      worker:request("DELETE", "/connectors/" .. topic)
    end)
  end

  describe("whose queue", function()
    local function restart(name)
      worker:request("POST", ("/connectors/%s/tasks/0/restart"):format(name))
      worker:wait_running(name)
    end
    local function mended(t, topic, n, letters)
      restart(topic)
      wait_committed(topic, n)
      local got = broker:values(topic .. "-dlq")
      assert.equal(letters, #got)
      t.lines, t.lost, t.note = n, 0, "FAILED; mended and restarted: all there"
    end
    local function config(topic, more)
      return with({ ["errors.tolerance"] = "all", ["errors.deadletterqueue.topic.name"] = topic .. "-dlq",
        ["errors.deadletterqueue.context.headers.enable"] = "true" }, more)
    end

    it("cannot be created: FAILED at the start, nothing committed; made by hand, nothing is lost", function()
      local topic = kafka.unique "refused"
      records.produce(broker.bootstrap, topic, { { value = "1" }, { value = "{" }, { value = "3" } })
      matrix.case({ row = 16, fault = "queue cannot be created", mode = "sink" }, function(t)
        sink(topic, topic, config(topic, { ["errors.deadletterqueue.topic.replication.factor"] = "3" }))
        local trace = wait_failed(topic)
        assert.equal(1, (trace:find("org.apache.kafka.connect.errors.ConnectException: Could not initialize dead letter queue with topic="
          .. topic .. "-dlq\n", 1, true)), trace)
        assert.matches("InvalidReplicationFactorException", trace)
        assert.equal(0, committed(topic))
        broker:produce(topic .. "-dlq", { "made by hand" })
        mended(t, topic, 3, 2)
      end)
      worker:request("DELETE", "/connectors/" .. topic)
    end)

    if all then
      it("takes no letter of that size: FAILED with the reason; with room for it nothing is lost", function()
        local topic = kafka.unique "small"
        records.produce(broker.bootstrap, topic, { { value = "1" } })
        matrix.case({ row = 16, fault = "letter too large", mode = "sink" }, function(t)
          sink(topic, topic, config(topic))
          wait_committed(topic, 1)
          proc.run(("kcat -b %s -L -t %s-dlq > /dev/null"):format(broker.bootstrap, topic))
          assert.is_true(broker:topic_setting(topic .. "-dlq", "max.message.bytes=600"))
          records.produce(broker.bootstrap, topic, { { value = "2" }, { value = "{" .. ("y"):rep(2000) }, { value = "4" } })
          local trace = wait_failed(topic)
          assert.matches("Could not produce message to dead letter queue. topic=" .. topic .. "-dlq", trace, 1, true)
          assert.matches("RecordTooLargeException", trace)
          assert.is_true(committed(topic) <= 2)
          assert.is_true(broker:topic_setting(topic .. "-dlq", "max.message.bytes=100000"))
          mended(t, topic, 4, 1)
        end)
        worker:request("DELETE", "/connectors/" .. topic)
      end)

      it("is deleted while the task runs: no commit past the record; there again, nothing is lost", function()
        local topic = kafka.unique "deleted"
        records.produce(broker.bootstrap, topic, { { value = "1" }, { value = "{" } })
        matrix.case({ row = 16, fault = "queue deleted", mode = "sink" }, function(t)
          sink(topic, topic, config(topic))
          wait_committed(topic, 2)
          assert.is_true(broker:tool("org.apache.kafka.tools.TopicCommand", "--delete", "--topic", topic .. "-dlq"))
          records.produce(broker.bootstrap, topic, { { value = "3" }, { value = "{{" }, { value = "5" } })
          -- made again by the broker (auto creation), or FAILED until somebody makes it
          proc.wait_for("the letter, or FAILED", function()
            return #broker:values(topic .. "-dlq") > 0 or task(topic).state == "FAILED"
          end, 90)
          if task(topic).state == "FAILED" then
            assert.is_true(committed(topic) <= 3)
            restart(topic)
          end
          wait_committed(topic, 5)
          assert.same({ "{{" }, broker:values(topic .. "-dlq"))
          t.lines, t.lost = 5, 0
        end)
        worker:request("DELETE", "/connectors/" .. topic)
      end)
    end
  end)
end)
