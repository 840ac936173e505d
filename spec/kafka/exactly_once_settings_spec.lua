-- spec/kafka/exactly_once_settings_spec.lua: exactly-once sources with settings that the broker, or Kafka's clients,
-- refuse, and offsets topics of their own. Each fails its task, never the worker, and what is put right goes on.
-- The texts are what Kafka Connect 4.3.1 says.
local eos = require "spec.support.eos"
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"
local standalone = require "spec.support.standalone"

local acl, me = "org.apache.kafka.tools.AclCommand", "User:ANONYMOUS"

describe("exactly-once sources", function()
  local broker, worker, dir
  setup(function()
    broker = kafka.broker { own = true, settings = {
      "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer", "allow.everyone.if.no.acl.found=true",
      "transaction.abort.timed.out.transaction.cleanup.interval.ms=500", "transaction.max.timeout.ms=100000" } }
    dir = proc.tmpdir "settings"
    assert.is_true(broker:tool(acl, "--add", "--allow-principal", me, "--operation", "All", "--transactional-id", "*"))
    assert.is_true(broker:tool(acl, "--add", "--allow-principal", me, "--operation", "All", "--cluster"))
    worker = kafka.worker { broker = broker, config = eos.enabled }
  end)
  teardown(function()
    assert.equal(0, worker:stop())
    broker:stop()
  end)

  local function put(flow, name, more)
    local code, text = worker:request("PUT", "/connectors/" .. name .. "/config", eos.source(flow.file, flow.topic, more))
    assert.is_true(code == 201 or code == 200, text)
  end
  local function flow(name, more)
    local f = eos.flow(dir .. "/" .. name, kafka.unique(name))
    put(f, name, more)
    return f
  end
  local function complete(f)
    eos.wait_committed(broker, f.topic, f.n)
    assert.equal(f.n, eos.numbered(eos.committed(broker, f.topic)))
  end
  local function restart(name)
    assert.equal(204, (worker:request("POST", "/connectors/" .. name .. "/tasks/0/restart")))
    worker:wait_running(name)
  end

  it("fail when the transaction timeout is more than the broker allows, and run when it is not", function()
    local f = flow("timeout", { ["producer.override.transaction.timeout.ms"] = "100001" })
    f:append(2)
    assert.equal("org.apache.kafka.common.KafkaException: Unexpected error in InitProducerIdResponse; The transaction "
      .. "timeout is larger than the maximum value allowed by the broker (as configured by transaction.max.timeout.ms).",
      eos.wait_failed(worker, "timeout"):match "^[^\n]*")
    assert.same({}, eos.all(broker, f.topic))
    put(f, "timeout", { ["producer.override.transaction.timeout.ms"] = "100000" })
    worker:wait_running "timeout"
    complete(f)
  end)

  it("fail when the transactional id is denied, and recover by a restart of the task", function()
    local args = { "--deny-principal", me, "--operation", "Write", "--transactional-id", worker.id .. "-denied-0" }
    assert.is_true(broker:tool(acl, "--add", unpack(args)))
    local f = flow "denied"
    f:append(2)
    assert.equal("org.apache.kafka.common.errors.TransactionalIdAuthorizationException: Transactional Id authorization failed.",
      eos.wait_failed(worker, "denied"):match "^[^\n]*")
    assert.is_true(broker:tool(acl, "--remove", "--force", unpack(args)))
    restart "denied"
    complete(f)
  end)

  it("fail when their topic is denied in the middle, and lose and repeat nothing", function()
    local f = flow "topic"
    worker:wait_running "topic"
    f:append(3)
    complete(f)
    local args = { "--deny-principal", me, "--operation", "Write", "--topic", f.topic }
    assert.is_true(broker:tool(acl, "--add", unpack(args)))
    f:append(3)
    local trace = eos.wait_failed(worker, "topic")
    assert.matches("\nCaused by: org.apache.kafka.common.errors.TopicAuthorizationException: ", trace, 1, true)
    assert.is_nil(trace:find("Purged", 1, true), trace) -- that was only its consequence
    assert.equal(6, worker:offsets "topic"[1].offset.position)
    assert.is_true(broker:tool(acl, "--remove", "--force", unpack(args)))
    -- with no rule left for topics everybody may
    restart "topic"
    f:append(1)
    complete(f)
  end)

  it("fail when their transaction expires, and recover by a restart of the task", function()
    local f = flow("expired", { ["transaction.boundary"] = "interval", ["transaction.boundary.interval.ms"] = "600000",
      ["producer.override.transaction.timeout.ms"] = "1500" })
    worker:wait_running "expired"
    f:append(3)
    proc.wait_for("its records", function() return #eos.all(broker, f.topic) >= 3 end)
    -- with an interval far longer than the timeout it only comes out when something is sent, or committed
    proc.wait_for("the end of the transaction", function()
      return eos.transactions(broker)[worker.id .. "-expired-0"] == "CompleteAbort"
    end)
    f:append(1)
    local s = worker:status "expired"
    if s.tasks[1].state ~= "FAILED" then worker:request("PUT", "/connectors/expired/pause") end
    local trace = eos.wait_failed(worker, "expired")
    assert.matches("^org.apache.kafka.connect.errors.ConnectException: The task expired%-0 was unable to finish writing records "
      .. "to Kafka before its producer transaction expired%. It may be necessary to reconfigure this connector in order for it "
      .. "to run healthily with exactly%-once support%. ", trace)
    assert.same({}, eos.committed(broker, f.topic))
    worker:request("PUT", "/connectors/expired/resume")
    put(f, "expired", { ["transaction.boundary"] = "poll" })
    worker:wait_running "expired"
    complete(f)
  end)

  it("fail when their producer's settings forbid idempotence", function()
    for key, says in pairs {
      acks = "Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee idempotence.",
      retries = "Must set retries to non-zero when using the idempotent producer." } do
      local f = flow(key, { ["producer.override." .. key] = "0" })
      f:append(1)
      assert.equal("org.apache.kafka.common.config.ConfigException: " .. says, eos.wait_failed(worker, key):match "^[^\n]*")
      put(f, key)
      worker:wait_running(key)
      complete(f)
    end
  end)

  it("fail when their own offsets topic is denied, GET offsets says so, and both recover", function()
    local own = kafka.unique "denied-own"
    broker:produce(own, { "not an offset" })
    assert.is_true(broker:topic_setting(own, "cleanup.policy=compact"))
    local args = { "--deny-principal", me, "--operation", "Read", "--topic", own }
    assert.is_true(broker:tool(acl, "--add", unpack(args)))
    local f = flow("own-denied", { ["offsets.storage.topic"] = own })
    f:append(2)
    assert.matches("org.apache.kafka.common.errors.TopicAuthorizationException: ", eos.wait_failed(worker, "own-denied"), 1, true)
    for _ = 1, 10 do
      local code, text = worker:request("GET", "/connectors/own-denied/offsets")
      assert.equal(500, code)
      assert.matches(own, text, 1, true)
    end
    assert.is_true(broker:tool(acl, "--remove", "--force", unpack(args)))
    restart "own-denied"
    complete(f)
    assert.equal(4, worker:offsets "own-denied"[1].offset.position)
  end)

  it("make a missing offsets topic of their own as the worker's one is made", function()
    local own = kafka.unique "own"
    local f = flow("missing", { ["offsets.storage.topic"] = own })
    f:append(2)
    complete(f)
    local _, text = broker:tool("org.apache.kafka.tools.TopicCommand", "--describe", "--topic", own)
    assert.matches("PartitionCount: 25%s", text)
    assert.matches("cleanup.policy=compact", text, 1, true)
    assert.equal(4, worker:offsets "missing"[1].offset.position)
  end)

  it("fail with an offsets topic that is not compacted or cannot be, and the worker stays", function()
    local own = kafka.unique "deleting"
    assert.is_true(broker:tool("org.apache.kafka.tools.TopicCommand", "--create", "--topic", own, "--partitions", "2",
      "--replication-factor", "1", "--config", "cleanup.policy=delete"))
    local f = flow("policy", { ["offsets.storage.topic"] = own })
    f:append(1)
    assert.matches("^org.apache.kafka.common.config.ConfigException: Topic '" .. own:gsub("%-", "%%-") .. "' supplied via the "
      .. "'offsets.storage.topic' property is required to have 'cleanup.policy=compact' to guarantee consistency and "
      .. "durability of source connector offsets, but found the topic currently has 'cleanup.policy=delete'%.",
      eos.wait_failed(worker, "policy"))
    assert.equal(500, (worker:request("GET", "/connectors/policy/offsets")))
    assert.is_true(broker:topic_setting(own, "cleanup.policy=compact"))
    restart "policy"
    complete(f)
    f = flow("name", { ["offsets.storage.topic"] = "not a topic!" })
    assert.equal("org.apache.kafka.connect.errors.ConnectException: Unable to create topic(s) 'not a topic!': Topic name is "
      .. "invalid: 'not a topic!' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
      eos.wait_failed(worker, "name"):match "^[^\n]*")
    local code, text = worker:request("PUT", "/connectors/empty/config", eos.source(f.file, f.topic,
      { ["offsets.storage.topic"] = "" }))
    assert.equal(400, code)
    assert.matches("Invalid value  for configuration offsets.storage.topic: String must be non-empty", text, 1, true)
    assert.is_true(worker:healthy())
  end)

  it("may name the worker's own offsets topic", function()
    local f = flow("workers", { ["offsets.storage.topic"] = worker.id .. "-offsets" })
    f:append(2)
    complete(f)
    assert.equal(4, worker:offsets "workers"[1].offset.position)
    f:append(1)
    restart "workers"
    complete(f)
    local n = 0
    for _, r in ipairs(broker:records(worker.id .. "-offsets")) do
      if r.key:find('^%["workers",') then n = n + 1 end
    end
    assert.is_true(n >= 2 and n <= f.n, n) -- each offset once, not in "both" topics
  end)

  it("may share an offsets topic: each finds its own again", function()
    local own, flows = kafka.unique "shared", {}
    local file = dir .. "/shared" -- the same source partition, too
    for i = 1, 2 do
      flows[i] = eos.flow(file, kafka.unique "shared")
      put(flows[i], "shared" .. i, { ["offsets.storage.topic"] = own })
      worker:wait_running("shared" .. i)
    end
    local function append(n)
      flows[1]:append(n)
      flows[2].n = flows[1].n
    end
    append(3)
    for i, f in ipairs(flows) do
      complete(f)
      assert.equal(6, worker:offsets("shared" .. i)[1].offset.position)
    end
    worker:request("DELETE", "/connectors/shared2")
    append(2)
    complete(flows[1])
    put(flows[2], "shared2", { ["offsets.storage.topic"] = own }) -- the offsets have stayed
    restart "shared1"
    append(1)
    for _, f in ipairs(flows) do complete(f) end
  end)
end)

-- As Java's: it knows nothing of these keys, and validates nothing of them.
describe("a standalone worker", function()
  it("ignores what is about exactly-once, its own key and the connectors' ones", function()
    local broker, dir = kafka.broker(), proc.tmpdir "standalone"
    local w = standalone.start { bootstrap = broker.bootstrap, properties = { ["exactly.once.source.support"] = "enabled" } }
    w.healthy(60)
    for name, more in pairs {
      required = { ["exactly.once.support"] = "required" },
      bounded = { ["transaction.boundary"] = "connector" },
      own = { ["offsets.storage.topic"] = kafka.unique "unused" },
    } do
      local f = eos.flow(dir .. "/" .. name, kafka.unique(name))
      f:append(3)
      local code, text = w.request("PUT", "/connectors/" .. name .. "/config", eos.source(f.file, f.topic, more))
      assert.equal(201, code, text)
      assert.equal(3, eos.numbered(eos.wait_committed(broker, f.topic, 3)))
      if more["offsets.storage.topic"] then
        proc.wait_for("its offset", function()
          local _, _, o = w.request("GET", "/connectors/own/offsets")
          return o.offsets[1] and o.offsets[1].offset.position == 6
        end)
        assert.equal(0, #broker:records(more["offsets.storage.topic"]))
      end
    end
    local code, _, json = w.request("PUT", "/connector-plugins/FileStreamSource/config/validate",
      eos.source("/x", "t", { name = "v", ["exactly.once.support"] = "required" }))
    assert.equal(200, code)
    for _, c in ipairs(json.configs) do
      if c.value.name == "exactly.once.support" then assert.same({}, c.value.errors) end
    end
    -- a wrong value is one all the same
    code = w.request("PUT", "/connectors/x/config", eos.source("/x", "t", { ["exactly.once.support"] = "perhaps" }))
    assert.equal(400, code)
    code, _, json = w.request("PUT", "/connectors/required/fence")
    assert.equal(500, code)
    assert.equal("Kafka Connect in standalone mode does not support exactly-once source connectors.", json.message)
    for id in pairs(eos.transactions(broker)) do assert.is_nil(id:find("required", 1, true)) end
    assert.equal(0, w.process:stop(60))
  end)
end)
