-- spec/kafka/dlq_spec.lua: the lab of bad records on the real Kafka, and what may be wrong with a dead letter queue: the
-- queue never loses a record, and whatever it cannot keep is not committed.
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"
local records = require "spec.support.records"
local with = require "spec.support.with"

-- puts what it is told to into a file; a value says what shall become of it
local probe = [[
local connect = require "connect"
local Task = {}
function Task:start(ctx) self.ctx, self.tries = ctx, {} end
function Task:put(batch)
  local failed, out = {}, {}
  for i, r in ipairs(batch) do
    local v = tostring(r.value)
    if v:find "^fail" then failed[#failed + 1] = { index = i, error = connect.data_error("no: " .. v) }
    elseif v:find "^report" then self.ctx:report(r, connect.data_error("reported: " .. v))
    elseif v:find "^later" then self.kept = r
    elseif v:find "^now" then self.ctx:report(self.kept, "kept: " .. self.kept.value)
    elseif v:find "^retry" and not self.tries[v] then
      self.tries[v] = true
      failed[#failed + 1] = { index = i, error = connect.retriable "busy" }
    else out[#out + 1] = v end
  end
  local f = assert(io.open(self.ctx.config.file, "a"))
  for _, v in ipairs(out) do f:write(v, "\n") end
  f:close()
  return failed
end
return connect.sink { name = "Picky", class = "Picky", version = "1", task = Task,
  config = { { "file", type = "string", required = true, doc = "Where to." } } }
]]

describe("a dead letter queue", function()
  local broker, worker, dir
  setup(function()
    broker = kafka.broker()
    dir = proc.tmpdir "dlq"
    os.execute("mkdir -p " .. dir .. "/plugins")
    proc.write(dir .. "/plugins/picky.lua", probe)
    worker = kafka.worker { broker = broker, config = { ["plugin.path"] = dir .. "/plugins" } }
  end)
  teardown(function() assert.equal(0, worker:stop()) end)

  local function put(name, config)
    local code, text, json = worker:request("PUT", "/connectors/" .. name .. "/config", config)
    assert.is_true(code == 201 or code == 200, text)
    return json
  end

  local function sink(topic, more)
    return with({ ["connector.class"] = "FileStreamSink", topics = topic, file = dir .. "/" .. topic .. ".out",
      ["value.converter"] = "org.apache.kafka.connect.json.JsonConverter", ["value.converter.schemas.enable"] = "false",
      ["key.converter"] = "org.apache.kafka.connect.storage.StringConverter",
      ["errors.deadletterqueue.topic.replication.factor"] = "1" }, more)
  end
  local function picky(topic, more)
    local c = sink(topic, { ["connector.class"] = "Picky", ["errors.tolerance"] = "all",
      ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter",
      ["value.converter.schemas.enable"] = "",
      ["errors.deadletterqueue.topic.name"] = topic .. "-dlq",
      ["errors.deadletterqueue.context.headers.enable"] = "true" })
    for k, v in pairs(more or {}) do c[k] = v end
    return c
  end

  local function committed(name)
    local o = worker:offsets(name)
    return o and o[1] and o[1].offset.kafka_offset
  end
  local function wait_committed(name, n)
    proc.wait_for(("%s to have committed %d"):format(name, n), function() return committed(name) == n end)
  end
  local function wait_failed(name)
    return proc.wait_for(name .. " to be FAILED", function()
      local s = worker:status(name)
      return s and s.tasks[1] and s.tasks[1].state == "FAILED" and s.tasks[1]
    end).trace
  end
  local function header(r, name)
    for _, h in ipairs(r.headers) do if h[1] == name then return h[2] or "null" end end
  end

  it("keeps the one record that is not JSON, with where it was", function()
    local topic = kafka.unique "lab"
    records.produce(broker.bootstrap, topic, { { value = '{"id":1}' }, { value = '{"id":2}' }, { value = "not json" },
      { value = '{"id":4}' } })
    -- without tolerance the task fails at that record
    put(topic, sink(topic))
    local trace = wait_failed(topic)
    assert.matches("^org%.apache%.kafka%.connect%.errors%.ConnectException: Tolerance exceeded in error handler\n", trace)
    assert.matches("\nCaused by: org.apache.kafka.connect.errors.DataException: Converting byte[] to Kafka Connect data "
      .. "failed due to serialization error: \n", trace, 1, true)
    assert.matches("\nCaused by: org.apache.kafka.common.errors.SerializationException: ", trace, 1, true)
    assert.is_true((committed(topic) or 0) <= 2)
    -- with it, and the queue, the others go on
    put(topic, sink(topic, { ["errors.tolerance"] = "all", ["errors.deadletterqueue.topic.name"] = topic .. "-dlq",
      ["errors.deadletterqueue.context.headers.enable"] = "true" }))
    wait_committed(topic, 4)
    worker:wait_running(topic)
    assert.equal("{id=1}\n{id=2}\n{id=4}\n", proc.read(dir .. "/" .. topic .. ".out"))
    local letters = records.read(broker.bootstrap, topic .. "-dlq", 1)
    assert.equal(1, #letters)
    assert.equal("not json", letters[1].value)
    assert.equal(topic, header(letters[1], "__connect.errors.topic"))
    assert.equal("0", header(letters[1], "__connect.errors.partition"))
    assert.equal("2", header(letters[1], "__connect.errors.offset"))
  end)

  it("keeps keys, values, headers and timestamps byte by byte, also when transforms change them", function()
    local topic = kafka.unique "bytes"
    local list = {
      { key = nil, value = "\0\1\255{", timestamp = 1700000000123, headers = { { "a", nil }, { "a", "" }, { "b", "\0\255" } } },
      { key = "", value = "[", timestamp = 1, headers = { { "__connect.errors.topic", "mine" } } },
      { key = "k\0k", value = "{\"none\":", timestamp = 1700000000124 },
      { key = "ok", value = nil, timestamp = 1700000000125 },
    }
    records.produce(broker.bootstrap, topic, list)
    put(topic, sink(topic, { ["errors.tolerance"] = "all", ["errors.deadletterqueue.topic.name"] = topic .. "-dlq",
      ["errors.deadletterqueue.context.headers.enable"] = "true",
      transforms = "h,x", ["transforms.h.type"] = "InsertHeader", ["transforms.h.header"] = "new",
      ["transforms.h.value.literal"] = "v", ["transforms.x.type"] = "ExtractField$Value", ["transforms.x.field"] = "none" }))
    wait_committed(topic, 4)
    local got = records.read(broker.bootstrap, topic .. "-dlq", 3)
    assert.equal("null\n", proc.read(dir .. "/" .. topic .. ".out")) -- the tombstone
    assert.equal(3, #got)
    for i = 1, 3 do
      assert.same({ list[i].key, list[i].value, list[i].timestamp }, { got[i].key, got[i].value, got[i].timestamp })
      for k, h in ipairs(list[i].headers or {}) do assert.same(h, got[i].headers[k]) end
      assert.equal(#(list[i].headers or {}) + 10, #got[i].headers)
    end
    assert.equal("mine", header(got[2], "__connect.errors.topic")) -- the first of two
    assert.equal(topic, got[2].headers[2][2])
  end)

  it("takes what put returns and what ctx:report says, once also when the batch comes again", function()
    local topic = kafka.unique "picky"
    records.produce(broker.bootstrap, topic, { { value = "a" }, { key = "k", value = "fail 1" }, { value = "report 2" },
      { value = "retry 3" }, { value = "b" }, { value = "later 4" } })
    put(topic, picky(topic))
    wait_committed(topic, 6)
    records.produce(broker.bootstrap, topic, { { value = "now" } })
    local got = records.read(broker.bootstrap, topic .. "-dlq", 3)
    assert.same({ "report 2", "fail 1", "later 4" }, { got[1].value, got[2].value, got[3].value })
    assert.equal("k", got[2].key)
    for i, message in ipairs { "reported: report 2", "no: fail 1", "kept: later 4" } do
      assert.equal(message, header(got[i], "__connect.errors.exception.message"))
      assert.equal("TASK_PUT", header(got[i], "__connect.errors.stage"))
      assert.equal("org.apache.kafka.connect.sink.SinkTask", header(got[i], "__connect.errors.class.name"))
      assert.equal("org.apache.kafka.connect.errors.DataException", header(got[i], "__connect.errors.exception.class.name"))
    end
    wait_committed(topic, 7)
    assert.equal(3, #records.read(broker.bootstrap, topic .. "-dlq"))
    assert.matches("retry 3\nb\n", proc.read(dir .. "/" .. topic .. ".out"))
  end)

  it("gets the record before the task fails under tolerance none", function()
    local topic = kafka.unique "none"
    records.produce(broker.bootstrap, topic, { { value = "report x" } })
    put(topic, picky(topic, { ["errors.tolerance"] = "none" }))
    local trace = wait_failed(topic)
    assert.matches("^org.apache.kafka.connect.errors.ConnectException: Exiting WorkerSinkTask due to unrecoverable exception%.\n",
      trace)
    assert.matches("Caused by: org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler", trace, 1, true)
    assert.equal(1, #records.read(broker.bootstrap, topic .. "-dlq", 1))
    assert.is_true((committed(topic) or 0) == 0)
  end)

  describe("that cannot work", function()
    it("fails the task at its start when the name is impossible", function()
      local topic = kafka.unique "name"
      put(topic, picky(topic, { ["errors.deadletterqueue.topic.name"] = "no/such name" }))
      local trace = wait_failed(topic)
      assert.matches("^org.apache.kafka.connect.errors.ConnectException: Could not initialize dead letter queue with topic=no/such name\n",
        trace)
      assert.matches("Caused by: java.util.concurrent.ExecutionException: "
        .. "org.apache.kafka.common.errors.InvalidTopicException: ", trace, 1, true)
      assert.matches("\nCaused by: org.apache.kafka.common.errors.InvalidTopicException: ", trace, 1, true)
    end)

    it("is refused when the sink would read it", function()
      local topic = kafka.unique "loop"
      local code, text = worker:request("PUT", "/connectors/loop/config",
        picky(topic, { topics = topic .. ",b", ["errors.deadletterqueue.topic.name"] = topic }))
      assert.equal(400, code)
      assert.matches("The DLQ topic '" .. topic .. "' may not be included in the list of topics ('topics=[" .. topic .. ", b]') "
        .. "consumed by the connector", text, 1, true)
      code, text = worker:request("PUT", "/connectors/loop/config", picky(topic, { topics = "", ["topics.regex"] = "lo.*",
        ["errors.deadletterqueue.topic.name"] = topic }))
      assert.equal(400, code)
      assert.matches("may not be matched by the regex for the topics ('topics.regex=lo.*') consumed by the connector", text, 1, true)
    end)

    it("is refused with numbers that are none", function()
      local topic = kafka.unique "numbers"
      for key, bad in pairs { ["errors.deadletterqueue.max.failure.ratio"] = { "half", "1.5", "-0.1" },
        ["errors.deadletterqueue.topic.replication.factor"] = { "three" },
        ["errors.deadletterqueue.context.headers.enable"] = { "maybe" },
        ["errors.deadletterqueue.failure.window.records"] = { "0", "x" },
        ["restart.policy"] = { "always" }, ["restart.policy.max.per.hour"] = { "0", "many" } } do
        for _, v in ipairs(bad) do
          local code, text = worker:request("PUT", "/connectors/numbers/config", picky(topic, { [key] = v }))
          assert.equal(400, code, key)
          assert.matches("Invalid value " .. v .. " for configuration " .. key, text, 1, true)
        end
      end
    end)

    it("takes a letter without its stack trace rather than none, and fails the task for one that is too large", function()
      local topic = kafka.unique "large"
      records.produce(broker.bootstrap, topic, { { value = "a" }, { value = "fail " .. ("x"):rep(3000) } })
      put(topic, picky(topic, { ["producer.override.max.request.size"] = "5000" }))
      wait_committed(topic, 2)
      local got = records.read(broker.bootstrap, topic .. "-dlq", 1)
      assert.is_nil(header(got[1], "__connect.errors.exception.stacktrace"))
      records.produce(broker.bootstrap, topic, { { value = "b" }, { value = "fail " .. ("x"):rep(5000) }, { value = "c" } })
      local trace = wait_failed(topic)
      assert.equal(1, (trace:find("org.apache.kafka.connect.errors.ConnectException: Could not produce message to dead letter "
        .. "queue. topic=" .. topic .. "-dlq\n", 1, true)))
      assert.matches("Caused by: org.apache.kafka.common.errors.RecordTooLargeException: ", trace, 1, true)
      assert.matches("topic " .. topic .. ", partition 0, offset 3", trace, 1, true)
      assert.is_true(committed(topic) <= 3)
      -- nothing is lost: with room for it the letter is written
      put(topic, picky(topic, { ["producer.override.max.request.size"] = "1000000" }))
      wait_committed(topic, 5)
      got = records.read(broker.bootstrap, topic .. "-dlq", 2)
      assert.equal(2, #got)
      assert.equal(5005, #got[2].value)
    end)

    it("fails the task when Kafka refuses the letter", function()
      local topic = kafka.unique "refused"
      records.produce(broker.bootstrap, topic, { { value = "a" } })
      put(topic, picky(topic))
      wait_committed(topic, 1)
      local _, status = proc.run(("kcat -b %s -L -t %s-dlq > /dev/null"):format(broker.bootstrap, topic))
      assert.equal(0, status)
      assert.is_true(broker:topic_setting(topic .. "-dlq", "max.message.bytes=600"))
      records.produce(broker.bootstrap, topic, { { value = "fail " .. ("y"):rep(2000) } })
      local trace = wait_failed(topic)
      assert.matches("Could not produce message to dead letter queue. topic=" .. topic .. "-dlq", trace, 1, true)
      assert.equal(1, committed(topic))
    end)
  end)

  describe("of a source", function()
    it("gets what could not be transformed or converted, and offsets wait for it", function()
      local topic = kafka.unique "src"
      proc.write(dir .. "/" .. topic .. ".txt", "1\nx\n3\n")
      put(topic, { ["connector.class"] = "FileStreamSource", file = dir .. "/" .. topic .. ".txt", topic = topic,
        transforms = "t", ["transforms.t.type"] = "Cast$Value", ["transforms.t.spec"] = "int32", ["errors.tolerance"] = "all",
        ["errors.deadletterqueue.source.topic.name"] = topic .. "-dlq",
        ["errors.deadletterqueue.topic.replication.factor"] = "1",
        ["errors.deadletterqueue.context.headers.enable"] = "true" })
      proc.wait_for("the offset", function()
        local o = worker:offsets(topic)
        return o and o[1] and o[1].offset.position == 6
      end)
      assert.equal(2, #broker:values(topic))
      local got = records.read(broker.bootstrap, topic .. "-dlq", 1)
      assert.equal(1, #got)
      assert.equal('{"schema":{"type":"string","optional":false},"payload":"x"}', got[1].value)
      assert.is_nil(got[1].key)
      assert.equal(topic, header(got[1], "__connect.errors.topic"))
      assert.equal('{"filename":"' .. dir .. "/" .. topic .. '.txt"}', header(got[1], "__connect.errors.source.partition"))
      assert.equal('{"position":4}', header(got[1], "__connect.errors.source.offset"))
      assert.equal("TRANSFORMATION", header(got[1], "__connect.errors.stage"))
      assert.equal("org.apache.kafka.connect.transforms.Cast$Value", header(got[1], "__connect.errors.class.name"))
    end)

    it("is not meant by the sink's key, which is ignored with a warning, as in Java", function()
      local topic = kafka.unique "srcsink"
      proc.write(dir .. "/" .. topic .. ".txt", "1\n")
      put(topic, { ["connector.class"] = "FileStreamSource", file = dir .. "/" .. topic .. ".txt", topic = topic,
        ["errors.deadletterqueue.topic.name"] = "nobody" })
      worker:wait_running(topic)
      proc.wait_for("the warning", function()
        return worker:log():find("errors.deadletterqueue.topic.name of the source connector " .. topic .. " does nothing", 1, true)
      end)
    end)
  end)

  it("is spared by the breaker when the target is broken: the task pauses and reads the records again", function()
    local topic = kafka.unique "breaker"
    local flag = dir .. "/" .. topic .. ".broken"
    proc.write(dir .. "/plugins/target.lua", ([[
      local connect = require "connect"
      local Task = {}
      function Task:start(ctx) self.ctx = ctx end
      function Task:put(batch)
        local failed, broken = {}, io.open("%s")
        if broken then broken:close() end
        for i, r in ipairs(batch) do
          if broken or r.value == "bad" then failed[#failed + 1] = { index = i, error = "the target is away" }
          else
            local f = assert(io.open(self.ctx.config.file, "a"))
            f:write(r.value, "\n")
            f:close()
          end
        end
        return failed
      end
      return connect.sink { name = "Target", class = "Target", version = "1", task = Task,
        config = { { "file", type = "string", required = true, doc = "Where to." } } }]]):format(flag))
    worker:request("POST", "/connector-plugins/reload")
    proc.write(flag, "x")
    local list = {}
    for i = 1, 40 do list[i] = { value = i == 7 and "bad" or "v" .. i } end
    records.produce(broker.bootstrap, topic, list)
    put(topic, picky(topic, { ["connector.class"] = "Target", ["errors.deadletterqueue.max.failure.ratio"] = "0.5" }))
    local st = proc.wait_for("the breaker", function()
      local s = worker:status(topic)
      return s and s.tasks[1] and s.tasks[1].state == "PAUSED" and s.tasks[1]
    end)
    assert.matches("records failed, more than errors.deadletterqueue.max.failure.ratio = 0.5", st.trace, 1, true)
    assert.equal("RUNNING", worker:status(topic).connector.state)
    assert.equal(0, #records.read(broker.bootstrap, topic .. "-dlq"))
    os.remove(flag)
    wait_committed(topic, 40)
    worker:wait_running(topic)
    assert.equal(39, select(2, proc.read(dir .. "/" .. topic .. ".out"):gsub("\n", "")))
    local got = records.read(broker.bootstrap, topic .. "-dlq", 1)
    assert.equal(1, #got)
    assert.equal("6", header(got[1], "__connect.errors.offset"))
  end)
end)

describe("a dead letter queue without the right to make its topic", function()
  it("fails the task at its start, and is used once it exists", function()
    local broker = kafka.broker { own = true, settings = {
      "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer", "allow.everyone.if.no.acl.found=true" } }
    local acl, me = "org.apache.kafka.tools.AclCommand", "User:ANONYMOUS"
    assert.is_true(broker:tool(acl, "--add", "--allow-principal", me, "--operation", "All", "--cluster"))
    assert.is_true(broker:tool(acl, "--add", "--deny-principal", me, "--operation", "Create", "--topic", "denied"))
    local worker = kafka.worker { broker = broker }
    assert.is_true(broker:tool(acl, "--add", "--deny-principal", me, "--operation", "Create", "--cluster"))
    records.produce(broker.bootstrap, "input", { { value = "1" }, { value = "not json" } })
    local file = proc.tmpdir "denied" .. "/out"
    local config = { ["connector.class"] = "FileStreamSink", topics = "input", file = file, ["errors.tolerance"] = "all",
      ["value.converter"] = "org.apache.kafka.connect.json.JsonConverter", ["value.converter.schemas.enable"] = "false",
      ["errors.deadletterqueue.topic.name"] = "denied", ["errors.deadletterqueue.topic.replication.factor"] = "1" }
    worker:request("PUT", "/connectors/denied/config", config)
    local st = proc.wait_for("the task to be FAILED", function()
      local s = worker:status "denied"
      return s and s.tasks[1] and s.tasks[1].state == "FAILED" and s.tasks[1]
    end)
    assert.equal(1, (st.trace:find("org.apache.kafka.connect.errors.ConnectException: Could not initialize dead letter queue "
      .. "with topic=denied\n", 1, true)), st.trace)
    assert.matches("Caused by: org.apache.kafka.common.errors.TopicAuthorizationException: ", st.trace, 1, true)
    assert.equal("", proc.read(file) or "")
    assert.is_true(broker:tool(acl, "--remove", "--force", "--deny-principal", me, "--operation", "Create", "--topic", "denied"))
    worker:request("POST", "/connectors/denied/tasks/0/restart")
    proc.wait_for("the letter", function()
      local s = worker:status "denied"
      return s.tasks[1].state == "RUNNING" and #broker:values "denied" == 1
    end)
    assert.equal("not json", broker:values("denied")[1])
    assert.equal(0, worker:stop())
    broker:stop()
  end)
end)
