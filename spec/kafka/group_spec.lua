-- Membership on the real broker: one member, two members, leaving, silence, restarts, TLS and SASL.
local core = require "spec.support.core"
local C = core.load { "base/err.h", "base/log.h", "kafka/group.h" }
local kafka = require "spec.support.kafka"
local probe = require "spec.support.group_probe"
local proc = require "spec.support.proc"
local with = require "spec.support.with"

describe("group on Kafka", function()
  local broker

  setup(function()
    C.lc_log_set_level("GROUP", os.getenv "LC_SPEC_LOG" or "off")
    broker = kafka.broker()
  end)
  teardown(function() C.lc_log_set_level("GROUP", "info") end)
  after_each(function() probe.stop_all() end)

  local function member(t)
    t.bootstrap = t.bootstrap or broker.bootstrap
    local config = with({ ["heartbeat.interval.ms"] = 300, ["session.timeout.ms"] = 6000 }, t.config)
    t.config = config
    return probe.member(t)
  end

  --- Both members get and apply assignments until nothing moves for a while.
  local function settle(list)
    local quiet = proc.now() + 1.5
    local stop = proc.now() + 120
    while proc.now() < quiet do
      assert(proc.now() < stop, "the group does not settle")
      for _, m in ipairs(list) do
        m:tick()
        local e = m:next(10)
        if e and e.kind == "error" then error(e.text) end
        if e and e.kind == "assigned" then
          m:apply(e)
          quiet = proc.now() + 1.5
        elseif e then
          quiet = math.max(quiet, proc.now() + 1)
        end
      end
    end
  end

  local function all(list)
    local out = {}
    for _, m in ipairs(list) do for _, item in ipairs(m.own) do out[#out + 1] = item end end
    table.sort(out)
    return out
  end

  it("is joined by one member, that becomes its leader, and left again", function()
    local group = kafka.unique "group"
    local m = member { group = group, start = false }
    m:configure("a", 2)
    m:start()
    local e = m:assignment()
    assert.is_true(e.generation >= 1)
    assert.is_true(e.assignment.leader)
    assert.equal(2, e.protocol)
    assert.same({ "a", "a-0", "a-1" }, m.own)
    -- heartbeats keep it in: nothing happens for longer than the session
    assert.is_true(m:silent("preparing", 7000))
    m:configure("b", 1)
    m:rejoin()
    local second = m:assignment()
    assert.equal(e.generation + 1, second.generation)
    assert.equal(e.assignment.member_id, second.assignment.member_id)
    assert.same({ "b", "b-0" }, second.assignment.assigned)
    assert.is_true(m:stop() < 20000)
  end)

  it("does not make the next one wait for its session when it has left", function()
    local group, t = kafka.unique "group", proc.now()
    for _ = 1, 2 do
      local m = member { group = group, config = { ["session.timeout.ms"] = 60000 } }
      m:assignment()
      m:stop()
    end
    assert.is_true(proc.now() - t < 40)
  end)

  it("joins a known group within a few round trips", function()
    local group = kafka.unique "group"
    local best = math.huge
    for _ = 1, 5 do
      local m = member { group = group, start = false }
      m:start()
      local e = m:assignment()
      best = math.min(best, e.at - m.started)
      m:stop()
    end
    assert.is_true(best < 900, best .. " ms") -- a wait would be a second
  end)

  it("is shared by two members, one of which goes without a word", function()
    local group = kafka.unique "group"
    local a = member { group = group, url = "http://a:1/", start = false }
    a:configure("x", 2)
    a:configure("y", 2)
    a:start()
    settle { a }
    assert.equal(6, #a.own)
    local b = member { group = group, url = "http://b:2/", start = false }
    b:configure("x", 2)
    b:configure("y", 2)
    b:start()
    settle { a, b }
    assert.same({ "x", "x-0", "x-1", "y", "y-0", "y-1" }, all { a, b })
    assert.equal(3, #b.own)
    b:stop()
    b.own = {}
    settle { a }
    assert.equal(6, #a.own)
  end)

  it("falls back to the eager protocol for an eager member", function()
    local group = kafka.unique "group"
    local a = member { group = group, url = "http://a:1/", start = false }
    a:configure("x", 3)
    a:start()
    settle { a }
    local b = member { group = group, url = "http://b:2/", config = { ["connect.protocol"] = "eager" }, start = false }
    b:configure("x", 3)
    b:start()
    -- the first round still runs what it has; from then on both stop everything before they join
    local e
    proc.wait_for("an eager round of both", function()
      local ea, eb = a:next(50), b:next(50)
      for m, ev in pairs { [a] = ea, [b] = eb } do
        m:tick()
        if ev.kind == "preparing" and ev.protocol == 0 then
          m.own = {}
          m:report()
        elseif ev.kind == "assigned" then
          if ev.protocol == 0 then m.own = {} end
          m:apply(ev)
          e = ev
        end
      end
      return e and e.protocol == 0 and #all { a, b } == 4
    end)
    assert.same({ "x", "x-0", "x-1", "x-2" }, all { a, b })
  end)

  it("outlives a broker that is silent, then killed, then back", function()
    local own = kafka.broker { own = true }
    local m = member { bootstrap = own.bootstrap, group = "g", config = { ["heartbeat.interval.ms"] = 1000 } }
    m:configure("a", 1)
    m:assignment()
    own.process:signal "STOP"
    m:wait "lost" -- session 6 s, then 1 s
    m.own = {}
    m:report()
    own.process:signal "CONT"
    m:assignment()
    own:stop "KILL"
    m:wait "lost"
    m.own = {}
    m:report()
    assert.is_true(m:silent("error", 1000))
    own:start()
    m:assignment()
    own:stop "KILL"
    local t = proc.now()
    m:stop()
    assert.is_true(proc.now() - t < 20) -- not request.timeout.ms
  end)
end)

describe("group on Kafka with TLS and SASL", function()
  local home = os.getenv "LC_KAFKA_HOME" or (os.getenv "HOME" .. "/.cache/luaconnect/kafka-4.3.1")
  local broker, dir, port, sasl

  setup(function()
    C.lc_log_set_level("GROUP", os.getenv "LC_SPEC_LOG" or "off")
    dir, port, sasl = proc.tmpdir "tls", proc.free_port(), proc.free_port()
    local script = [[cd %s && exec 2>openssl.log
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=spec-ca -keyout ca.key -out ca.pem
for n in broker client; do
  openssl req -newkey rsa:2048 -nodes -subj /CN=$n -keyout $n.key -out $n.csr
  printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\n' > $n.ext
  openssl x509 -req -days 2 -in $n.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile $n.ext -out $n.crt
  cat $n.key $n.crt > $n.pem
done
openssl pkcs12 -export -inkey client.key -in client.crt -passout pass:secret -out client.p12
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other -keyout other.key -out other.pem]]
    assert(os.execute("sh -c " .. proc.quote(script:format(dir))) == 0, proc.read(dir .. "/openssl.log"))
    local jaas = [[org.apache.kafka.common.security.plain.PlainLoginModule required user_kate="s;ec ret";]]
    broker = kafka.broker { own = true }
    broker:stop()
    local file = broker.dir .. "/server.properties"
    local text = proc.read(file):gsub("(\nlisteners=[^\n]*)", "%1,TLS://127.0.0.1:" .. port .. ",SASL://127.0.0.1:" .. sasl)
      :gsub("(\nadvertised.listeners=[^\n]*)",
        "%1,TLS://localhost:" .. port .. ",SASL://localhost:" .. sasl)
      :gsub("(listener.security.protocol.map=[^\n]*)", "%1,TLS:SSL,SASL:SASL_SSL")
    proc.write(file, text .. table.concat({
      "ssl.keystore.type=PEM", "ssl.keystore.location=" .. dir .. "/broker.pem", "ssl.truststore.type=PEM",
      "ssl.truststore.location=" .. dir .. "/ca.pem", "listener.name.tls.ssl.client.auth=required",
      "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512", "connections.max.reauth.ms=3000",
      "listener.name.sasl.plain.sasl.jaas.config=" .. jaas,
      "listener.name.sasl.scram-sha-256.sasl.jaas.config="
        .. "org.apache.kafka.common.security.scram.ScramLoginModule required;",
      "listener.name.sasl.scram-sha-512.sasl.jaas.config="
        .. "org.apache.kafka.common.security.scram.ScramLoginModule required;", "",
    }, "\n"))
    broker:start()
  end)
  teardown(function()
    broker:stop "KILL"
    C.lc_log_set_level("GROUP", "info")
  end)
  after_each(function() probe.stop_all() end)

  local function config(t)
    return with({ ["heartbeat.interval.ms"] = 300, ["session.timeout.ms"] = 6000,
      ["ssl.truststore.location"] = dir .. "/ca.pem", ["ssl.truststore.type"] = "PEM" }, t)
  end
  local function plain(password, mechanism)
    return config { ["security.protocol"] = "SASL_SSL", ["sasl.mechanism"] = mechanism or "PLAIN",
      ["sasl.jaas.config"] = ('x.Y required username="kate" password="%s";'):format(password) }
  end
  local function tls(t)
    t["security.protocol"] = "SSL"
    return config(t)
  end
  local function join(c, at)
    return probe.member { bootstrap = "127.0.0.1:" .. (at or port), group = kafka.unique "tls", config = c }
  end

  it("joins with a PEM key, and with PKCS12", function()
    join(tls { ["ssl.keystore.location"] = dir .. "/client.pem", ["ssl.keystore.type"] = "PEM" }):assignment(60000)
    join(tls { ["ssl.keystore.location"] = dir .. "/client.p12", ["ssl.keystore.type"] = "PKCS12",
      ["ssl.keystore.password"] = "secret", ["ssl.cipher.suites"] = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
      ["ssl.enabled.protocols"] = "TLSv1.2" }):assignment()
    join(tls { ["ssl.keystore.key"] = proc.read(dir .. "/client.key"),
      ["ssl.keystore.certificate.chain"] = proc.read(dir .. "/client.crt"),
      ["ssl.truststore.location"] = "", ["ssl.truststore.certificates"] = proc.read(dir .. "/ca.pem"),
    }):assignment()
  end)

  it("is refused without a key, and refuses a broker it does not trust", function()
    assert.truthy(join(tls {}):wait("error").text:find("SSL handshake failed", 1, true))
    assert.truthy(join(tls { ["ssl.truststore.location"] = dir .. "/other.pem" }):wait("error").text
      :find("SSL handshake failed", 1, true))
  end)

  it("shows its password, again when the session ends, and is told when it is wrong", function()
    local m = join(plain "s;ec ret", sasl)
    m:assignment()
    assert.is_true(m:silent("preparing", 7000)) -- two re-authentications
    assert.truthy(join(plain "wrong", sasl):wait("error").text:find("Authentication failed", 1, true))
  end)

  it("speaks SCRAM", function()
    for _, mechanism in ipairs { "SCRAM-SHA-256", "SCRAM-SHA-512" } do
      local p = proc.start { "java", "-Xmx128m", "-cp", home .. "/lib/*", "kafka.admin.ConfigCommand",
        "--bootstrap-server", broker.bootstrap, "--alter",
        "--entity-type", "users", "--entity-name", "kate", "--add-config", mechanism .. "=[password=pencil]",
        name = "scram", dir = proc.tmpdir "scram" }
      assert.equal(0, p:wait(60), p:log())
      join(plain("pencil", mechanism), sasl):assignment()
      assert.truthy(join(plain("pencils", mechanism), sasl):wait("error").text
        :find("Authentication failed", 1, true))
    end
  end)
end)
