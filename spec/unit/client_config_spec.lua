-- Java client settings as librdkafka's: precedence, translation, refusals. Every name that comes out is one
-- the linked librdkafka knows.
local core = require "spec.support.core"
local files = require "spec.support.files"
local worker_config = require "spec.support.worker_config"
local C, ffi = core.load { "base/err.h", "base/log.h", "config/client_config.h", "config/client_table.h",
  "config/client_security.h" }

-- one by one: other specs of the same run declare some of them
for line in ([[
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
rd_kafka_conf_t *rd_kafka_conf_new(void);
void rd_kafka_conf_destroy(rd_kafka_conf_t *);
int rd_kafka_conf_set(rd_kafka_conf_t *, const char *, const char *, char *, size_t);
typedef struct rd_kafka_s rd_kafka_t;
rd_kafka_t *rd_kafka_new(int type, rd_kafka_conf_t *conf, char *errstr, size_t size);
void rd_kafka_destroy(rd_kafka_t *);
]]):gmatch "[^\n]+" do pcall(ffi.cdef, line) end
local rd = ffi.load "rdkafka.so.1"

local P, K, A, IP, IK = 0, 1, 2, 3, 4 -- and 5: internal admin

local function worker(t) return ffi.gc(worker_config.new(t), C.lc_worker_config_free) end

local function config(kind, t, connector)
  local err = core.err()
  local wc = worker(t)
  local p = C.lc_client_config(wc, kind, connector and core.props(connector) or nil, "id-1", err)
  if p == nil then return nil, core.msg(err) end
  return core.table(ffi.gc(p, C.lc_props_free))
end

-- all of it, and a client can be made
local function accepted(kind, props)
  local conf, msg = rd.rd_kafka_conf_new(), ffi.new "char[512]"
  for k, v in pairs(props) do
    assert(rd.rd_kafka_conf_set(conf, k, v, msg, 512) == 0, k .. "=" .. v .. ": " .. ffi.string(msg))
  end
  rd.rd_kafka_conf_set(conf, "log_level", "0", msg, 512)
  local h = rd.rd_kafka_new((kind == K or kind == IK) and 1 or 0, conf, msg, 512)
  assert(h ~= nil, ffi.string(msg))
  rd.rd_kafka_destroy(h)
end

describe("client settings", function()
  setup(function() C.lc_log_set_level(nil, "off") end)
  teardown(function() C.lc_log_set_level(nil, "info") end)

  it("make clients of every kind", function()
    for kind = 0, 5 do
      local p = assert(config(kind, {}, kind < 3 and { name = "c" } or nil))
      assert.equal("127.0.0.1:1", p["bootstrap.servers"])
      assert.equal("id-1", p["client.id"])
      accepted(kind, p)
    end
  end)

  it("have Kafka Connect's defaults", function()
    local p = config(P)
    assert.same({ "murmur2_random", "all", "false", "1", "2147483647", "1048576", "16384", "5" },
      { p.partitioner, p.acks, p["enable.idempotence"], p["max.in.flight.requests.per.connection"],
        p["message.timeout.ms"], p["message.max.bytes"], p["queue.buffering.max.kbytes"], p["linger.ms"] })
    local c = config(K, {}, { name = "snk" })
    assert.same({ "connect-snk", "earliest", "false", "read_uncommitted", "range", "true" },
      { c["group.id"], c["auto.offset.reset"], c["enable.auto.commit"], c["isolation.level"],
        c["partition.assignment.strategy"], c["check.crcs"] })
    assert.equal("g", config(IK)["group.id"])
  end)

  it("wait 30 s for an answer and 10 s for a connection, as Java's do: by that one that died unnoticed is found out", function()
    for kind = 0, 5 do
      local p = config(kind, {}, { name = "c" })
      assert.same({ "30000", "10000" }, { p["socket.timeout.ms"], p["socket.connection.setup.timeout.ms"] })
    end
    assert.equal("45000", config(K, { ["consumer.request.timeout.ms"] = "45000" }, { name = "c" })["socket.timeout.ms"])
    -- librdkafka refuses more than transaction.timeout.ms
    for limit, wait in pairs { ["1000"] = "900", ["9000"] = "8900", ["30000"] = "29900", ["60000"] = "30000" } do
      local p = config(P, {}, { ["producer.override.transactional.id"] = "t",
        ["producer.override.transaction.timeout.ms"] = limit })
      assert.equal(wait, p["socket.timeout.ms"])
      accepted(P, p)
    end
    local p = config(P, { ["producer.request.timeout.ms"] = "50000" }, { ["producer.override.transactional.id"] = "t",
      ["producer.override.transaction.timeout.ms"] = "20000" })
    assert.equal("19900", p["socket.timeout.ms"])
    accepted(P, p)
  end)

  it("take the worker's prefixed keys, then the connector's", function()
    local t = { ["producer.linger.ms"] = "20", ["producer.acks"] = "1", ["linger.ms"] = "99",
      ["consumer.fetch.min.bytes"] = "7",
      ["producer.bootstrap.servers"] = "other:1", ["producer.client.id"] = "mine" }
    local p = config(P, t, { ["producer.override.acks"] = "0" })
    assert.same({ "20", "0", "other:1", "mine" }, { p["linger.ms"], p.acks, p["bootstrap.servers"], p["client.id"] })
    assert.equal("7", config(K, t)["fetch.min.bytes"])
    p = config(IP, t) -- internal producers take plain keys only
    assert.same({ "99", "all" }, { p["linger.ms"], p.acks })
    p = config(A, { ["request.timeout.ms"] = "5000", ["admin.client.rack"] = "x" })
    assert.equal("5000", p["socket.timeout.ms"])
    assert.equal("9000", config(A, { ["request.timeout.ms"] = "5000",
      ["admin.request.timeout.ms"] = "9000" })["socket.timeout.ms"])
    p = config(IK, { ["session.timeout.ms"] = "20000", ["client.id"] = "x" }) -- those are the group's
    assert.same({ nil, "id-1" }, { p["session.timeout.ms"], p["client.id"] })
  end)

  it("are translated", function()
    local p = config(P, { ["producer.delivery.timeout.ms"] = "1000", ["producer.max.request.size"] = "100000000",
      ["producer.buffer.memory"] = "1000001", ["producer.batch.size"] = "16384",
        ["producer.request.timeout.ms"] = "700",
      ["producer.metadata.max.age.ms"] = "60000", ["producer.send.buffer.bytes"] = "-1",
        ["producer.compression.type"] = "lz4" })
    assert.same({ "1000", "100000000", "131072", "700", "700", "60000", "180000", "0", "lz4" },
      { p["message.timeout.ms"], p["message.max.bytes"], p["batch.size"], p["request.timeout.ms"],
        p["socket.timeout.ms"], p["topic.metadata.refresh.interval.ms"], p["metadata.max.age.ms"],
        p["socket.send.buffer.bytes"], p["compression.type"] })
    -- the queue holds one record of the largest size
    assert.is_true(tonumber(p["queue.buffering.max.kbytes"]) * 1024 > 100000000)
    accepted(P, p)
    local c = config(K, { ["consumer.fetch.max.wait.ms"] = "90000", ["consumer.fetch.max.bytes"] = "5000",
      ["consumer.auto.offset.reset"] = "none", ["consumer.partition.assignment.strategy"] =
      "org.apache.kafka.clients.consumer.CooperativeStickyAssignor,org.apache.kafka.clients.consumer.RangeAssignor",
      ["consumer.group.instance.id"] = "i", ["consumer.max.poll.interval.ms"] = "60000" }, { name = "x" })
    assert.same({ "90000", "error", "cooperative-sticky", "5000" }, { c["fetch.wait.max.ms"], c["auto.offset.reset"],
      c["partition.assignment.strategy"], c["message.max.bytes"] })
    accepted(K, c)
  end)

  it("become transactional", function()
    local p = config(P, {}, { ["producer.override.transactional.id"] = "t",
      ["producer.override.transaction.timeout.ms"] = "9000",
      ["producer.override.max.in.flight.requests.per.connection"] = "50" })
    assert.same({ "true", "9000", "1", "all" }, { p["enable.idempotence"], p["message.timeout.ms"],
      p["max.in.flight.requests.per.connection"], p.acks })
    accepted(P, p)
  end)

  it("refuse what idempotence forbids, in Java's words", function()
    local function refused(more)
      more["producer.override.enable.idempotence"] = more["producer.override.enable.idempotence"] or "true"
      local p, why = config(P, {}, more)
      assert.is_nil(p)
      return why
    end
    assert.equal("Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee idempotence.",
      refused { ["producer.override.acks"] = "1" })
    assert.equal("Must set retries to non-zero when using the idempotent producer.",
      refused { ["producer.override.retries"] = "0" })
    assert.equal("Must set max.in.flight.requests.per.connection to at most 5 to use the idempotent producer.",
      refused { ["producer.override.max.in.flight.requests.per.connection"] = "6",
        ["producer.override.enable.idempotence"] = "TRUE" })
    for _, acks in ipairs { "all", "-1" } do
      assert.equal("all", config(P, {}, { ["producer.override.enable.idempotence"] = "true",
        ["producer.override.acks"] = acks, ["producer.override.max.in.flight.requests.per.connection"] = "5",
        ["producer.override.retries"] = "1" }).acks)
    end
    assert.equal("1", config(P, {}, { ["producer.override.acks"] = "1" }).acks)
  end)

  it("linger with transactions as their boundaries want it, unless somebody said how long", function()
    local function linger(connector, more)
      local wc = worker(more or {})
      local p = C.lc_client_config_transactional(wc, P, core.props(connector), "id", "tid", core.err())
      return core.table(ffi.gc(p, C.lc_props_free))["linger.ms"]
    end
    assert.equal("0", linger { name = "x" })
    assert.equal("0", linger { name = "x", ["transaction.boundary"] = "POLL" })
    assert.equal("100", linger { name = "x", ["transaction.boundary"] = "interval" })
    assert.equal("100", linger { name = "x", ["transaction.boundary"] = "Connector" })
    assert.equal("7", linger { name = "x", ["producer.override.linger.ms"] = "7" })
    assert.equal("8", linger({ name = "x", ["transaction.boundary"] = "interval" }, { ["producer.linger.ms"] = "8" }))
  end)

  it("refuse values of the wrong type", function()
    assert.same({ nil, "Invalid value abc for configuration linger.ms: Not a number of type LONG" },
      { config(P, { ["producer.linger.ms"] = "abc" }) })
    assert.truthy(select(2, config(K,
      { ["consumer.auto.offset.reset"] = "by_duration:PT1H" })):find "auto.offset.reset")
  end)

  it("know the values in force by their Java names", function()
    local wc = worker { ["producer.max.request.size"] = "7" }
    local function value(kind, key, connector)
      local p = connector and core.props(connector)
      local v = C.lc_client_java_value(wc, kind, p, key)
      return v ~= nil and ffi.string(v) or nil
    end
    assert.equal("7", value(P, "max.request.size"))
    assert.equal("9", value(P, "max.request.size", { ["producer.override.max.request.size"] = "9" }))
    assert.equal("1048576", value(IP, "max.request.size"))
    assert.equal("2147483647", value(P, "delivery.timeout.ms"))
    assert.equal("500", value(K, "max.poll.records"))
    assert.equal("127.0.0.1:1", value(K, "bootstrap.servers"))
    assert.is_nil(value(P, "transactional.id"))
    assert.is_nil(value(P, "no.such"))
  end)

  it("have a row for each, whose librdkafka name exists", function()
    local n = ffi.new "int[1]"
    local rows = C.lc_client_settings(n)
    local conf, msg = rd.rd_kafka_conf_new(), ffi.new "char[512]"
    for i = 0, n[0] - 1 do
      local r = rows[i]
      local name, map = ffi.string(r.name), ffi.string(C.lc_client_map_name(r.map))
      if r.rd ~= nil then
        -- -2: unknown; -1, a bad value, is what "\1" mostly is
        assert.is_true(rd.rd_kafka_conf_set(conf, r.rd, "\1", msg, 512) ~= -2, name .. ": " .. ffi.string(r.rd))
      else
        assert.is_true(map == "none" or map == "ours" or map == "TLS", name .. " is mapped to nothing")
      end
      if map == "none" then assert.is_true(r.note ~= nil, name) end
    end
    rd.rd_kafka_conf_destroy(conf)
    assert.is_true(n[0] > 130)
  end)
end)

describe("security settings", function()
  setup(function() C.lc_log_set_level(nil, "off") end)
  teardown(function() C.lc_log_set_level(nil, "info") end)

  local function security(t)
    local err, out = core.err(), ffi.gc(C.lc_props_new(), C.lc_props_free)
    if C.lc_client_security(core.props(t), out, err) ~= 0 then return nil, core.msg(err) end
    return core.table(out)
  end

  it("read login modules", function()
    local function jaas(s)
      local err = core.err()
      local p = C.lc_jaas_parse(s, err)
      if p == nil then return nil, core.msg(err) end
      return core.table(ffi.gc(p, C.lc_props_free))
    end
    assert.same({ [""] = "a.b.PlainLoginModule", username = "ada", password = 'p=;"x' },
      jaas [[ a.b.PlainLoginModule required username="ada" password="p=;\"x" ; ]])
    assert.same({ [""] = "M", a = "1" }, jaas "M required\n a=1;")
    for _, bad in ipairs { "", "M", "M required", "M required a", "M required a=", 'M required a="x',
      "M required a=b" } do
      assert.is_nil(jaas(bad))
    end
  end)

  it("translate SASL", function()
    local line = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
    local p = config(K, { ["consumer.security.protocol"] = "SASL_PLAINTEXT", ["consumer.sasl.mechanism"] = "PLAIN",
      ["consumer.sasl.jaas.config"] = line }, { name = "x" })
    assert.same({ "sasl_plaintext", "PLAIN", "u", "p" },
      { p["security.protocol"], p["sasl.mechanisms"], p["sasl.username"], p["sasl.password"] })
    accepted(K, p)
    assert.truthy(select(2, security { ["security.protocol"] = "SASL_SSL",
      ["sasl.mechanism"] = "PLAIN" }):find "sasl.jaas.config")
    assert.truthy(select(2, security { ["security.protocol"] = "SASL_SSL",
      ["sasl.mechanism"] = "X" }):find "not supported")
    assert.same({}, security { ["sasl.jaas.config"] = "garbage" }) -- plaintext: nobody logs in
    assert.truthy(select(2, security { ["security.protocol"] = "x" }):find "String must be one of")
  end)

  it("refuse SCRAM where librdkafka is too old", function()
    local err = core.err()
    assert.equal(-1, C.lc_client_check_scram(0x020002ff, "SCRAM-SHA-256", err))
    assert.truthy(core.msg(err):find("librdkafka 2.0.2 cannot log in to Kafka 4 and newer with SCRAM", 1, true))
    assert.equal(0, C.lc_client_check_scram(0x020601ff, "SCRAM-SHA-512", core.err()))
    assert.equal(0, C.lc_client_check_scram(0x020002ff, "PLAIN", core.err()))
  end)

  local dir
  setup(function()
    dir = files.unused()
    local sh = ([[mkdir D && cd D && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes
      -keyout key.pem -out cert.pem -days 2 -subj /CN=spec 2> log && openssl pkcs12 -export -nokeys -in cert.pem
      -out trust.p12 -passout pass:secret && openssl pkcs12 -export -in cert.pem -inkey key.pem -out key.p12
      -passout pass:secret && cat key.pem cert.pem > both.pem && printf '\376\355\376\355xxxx' > old.jks]])
    assert(os.execute((sh:gsub("D", dir):gsub("\n%s*", " "))) == 0)
  end)
  teardown(function() files.rm(dir) end)

  it("translate TLS", function()
    local pem = assert(files.read(dir .. "/cert.pem"))
    local t = { ["security.protocol"] = "SSL", ["ssl.truststore.certificates"] = pem,
      ["ssl.endpoint.identification.algorithm"] = "", ["ssl.keystore.type"] = "PEM",
      ["ssl.keystore.location"] = dir .. "/both.pem" }
    local p = assert(security(t))
    assert.same({ ["ssl.ca.pem"] = pem, ["ssl.endpoint.identification.algorithm"] = "none",
      ["ssl.key.location"] = dir .. "/both.pem", ["ssl.certificate.location"] = dir .. "/both.pem" }, p)
    p["security.protocol"] = "ssl"
    accepted(P, p)
    -- PKCS12, which Java's default type JKS reads too
    for _, kind in ipairs { "PKCS12", "JKS" } do
      p = assert(security { ["security.protocol"] = "SSL", ["ssl.truststore.type"] = kind,
        ["ssl.truststore.location"] = dir .. "/trust.p12", ["ssl.truststore.password"] = "secret",
        ["ssl.keystore.type"] = kind, ["ssl.keystore.location"] = dir .. "/key.p12",
          ["ssl.keystore.password"] = "secret" })
      assert.truthy(p["ssl.ca.pem"]:find("BEGIN CERTIFICATE", 1, true))
      p["security.protocol"] = "ssl"
      accepted(P, p)
    end
    assert.same({ ["ssl.ca.location"] = "x.pem" }, security { ["security.protocol"] = "SSL",
      ["ssl.truststore.type"] = "PEM", ["ssl.truststore.location"] = "x.pem" })
    assert.same({}, security { ["ssl.truststore.location"] = "/nowhere" }) -- plaintext
  end)

  it("refuse what only Java can read, naming the key and the way out", function()
    local function msg(t)
      t["security.protocol"] = "SSL"
      return select(2, security(t))
    end
    local m = msg { ["ssl.truststore.location"] = dir .. "/old.jks" }
    assert.truthy(m:find("ssl.truststore.location=", 1, true) and m:find("keytool", 1, true))
    assert.truthy(msg { ["ssl.keystore.location"] = dir .. "/both.pem" }:find("ssl.keystore.type=PEM", 1, true))
    assert.truthy(msg { ["ssl.truststore.location"] = "/no/such" }:find("No such file", 1, true))
    assert.truthy(msg { ["ssl.truststore.type"] = "PKCS12", ["ssl.truststore.location"] = dir .. "/trust.p12",
      ["ssl.truststore.password"] = "wrong" }:find("ssl.truststore.password right?", 1, true))
    assert.truthy(msg { ["ssl.truststore.type"] = "BKS", ["ssl.truststore.location"] = "x" }:find("not supported",
      1, true))
  end)
end)
