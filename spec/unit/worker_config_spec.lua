-- The worker file: types, defaults, cross-checks, variables, listeners and the advertised URL.
local capture = require "spec.support.logged"
local core = require "spec.support.core"
local plugins = require "spec.support.plugins"
local worker_config = require "spec.support.worker_config"
local C, ffi = core.load { "base/err.h", "base/log.h", "config/worker_config.h", "config/plugin.h" }


-- The settings a worker needs, with others over them; false: without that one.
local function base(t)
  local p = worker_config.settings(t)
  for k, v in pairs(t or {}) do p[k] = v or nil end
  return p
end

local function new(t, mode)
  local err = core.err()
  local wc = C.lc_worker_config_new(core.props(base(t)), mode or 0, err)
  if wc == nil then
    return nil, core.msg(err), err.cls ~= nil and ffi.string(err.cls), ffi.string(err.detail)
  end
  return ffi.gc(wc, C.lc_worker_config_free)
end

local function refused(text, t, mode)
  local wc, msg = new(t, mode)
  assert.is_nil(wc)
  assert.equal(text, msg)
end

local function buf(fn)
  local b = ffi.new "lc_buf_t"
  local rc = fn(b)
  local s = b.p ~= nil and ffi.string(b.p, b.len) or ""
  C.lc_buf_free(b)
  return s, rc
end

-- what `fn` logs
local function logged(fn)
  C.lc_log_set_level(nil, "info")
  local text = capture(fn)
  C.lc_log_set_level(nil, "off")
  return text
end

describe("worker config", function()
  setup(function() C.lc_log_set_level(nil, "off") end)
  teardown(function() C.lc_log_set_level(nil, "info") end)

  it("gives parsed values and defaults", function()
    local wc = new { ["offset.flush.interval.ms"] = " 5000 ", ["topic.creation.enable"] = "FALSE" }
    assert.equal(5000, tonumber(C.lc_worker_config_int(wc, "offset.flush.interval.ms")))
    assert.equal(300000, tonumber(C.lc_worker_config_int(wc, "scheduled.rebalance.max.delay.ms")))
    assert.is_false(C.lc_worker_config_bool(wc, "topic.creation.enable"))
    assert.is_true(C.lc_worker_config_bool(wc, "topic.tracking.enable"))
    assert.is_true(C.lc_worker_config_str(wc, "plugin.path") == nil)
    assert.equal("info", ffi.string(C.lc_worker_config_str(wc, "log.level")))
    assert.equal("5000", ffi.string(C.lc_props_get(C.lc_worker_config_originals(wc), "offset.flush.interval.ms")))
    local list = ffi.new "lc_strv_t"
    C.lc_worker_config_list(wc, "listeners", list)
    assert.equal("http://:8083", ffi.string(list.v[0]))
    C.lc_strv_free(list)
  end)

  it("has Java's rows in both modes", function()
    local n = ffi.new "int[1]"
    local seen = {}
    local rows = C.lc_worker_config_rows(0, n)
    for i = 0, n[0] - 1 do
      local name = ffi.string(rows[i].name)
      assert.is_nil(seen[name])
      seen[name] = true
      assert.is_true(#ffi.string(rows[i].doc) > 5, name)
    end
    assert.equal(139, n[0])
    assert.is_nil(seen["offset.storage.file.filename"])
    rows = C.lc_worker_config_rows(1, n)
    assert.equal("offset.storage.file.filename", ffi.string(rows[n[0] - 7].name))
  end)

  it("knows the standalone mode", function()
    refused('Missing required configuration "offset.storage.file.filename" which has no default value.', {}, 1)
    local wc = assert(new({ ["offset.storage.file.filename"] = "/tmp/o", ["group.id"] = false,
      ["config.storage.topic"] = false }, 1))
    assert.equal(1, tonumber(C.lc_worker_config_mode(wc)))
  end)

  it("checks keys across", function()
    refused("Unable to create key generator with algorithm HmacSHA256 and key size 39: Key length must be at " ..
      "least 40 " ..
      "bits", { ["inter.worker.key.size"] = "39" })
    refused("Invalid value HmacSHA512 for configuration inter.worker.signature.algorithm: Signature algorithm " ..
      "must be " ..
      "present in inter.worker.verification.algorithms list", { ["inter.worker.signature.algorithm"] = "HmacSHA512" })
    assert.truthy(new { ["inter.worker.signature.algorithm"] = "HmacSHA512",
      ["inter.worker.verification.algorithms"] = "HmacSHA256, HmacSHA512" })
    refused("Offset storage topic must be specified", { ["offset.storage.topic"] = " " })
    refused("Must specify topic for connector configuration.", { ["config.storage.topic"] = "" })
    refused("Invalid plugin.discovery value, must be one of [only_scan, hybrid_warn, hybrid_fail, service_load]",
      { ["plugin.discovery"] = "x", ["bootstrap.servers"] = false })
    local _, msg, cls, detail = new { ["session.timeout.ms"] = "3000" }
    assert.same({ "Failed to construct kafka consumer", "org.apache.kafka.common.KafkaException",
      "Caused by: java.lang.IllegalArgumentException: Heartbeat must be set lower than the session timeout\n" },
      { msg, cls, detail })
    _, msg, cls, detail = new { ["group.id"] = " " }
    assert.truthy(detail:find("should not be an empty string", 1, true), msg .. cls)
  end)

  it("checks bootstrap.servers", function()
    for _, s in ipairs { "nohostport", "a:1,b", "h:", "h:x" } do
      local _, msg, _, detail = new { ["bootstrap.servers"] = s }
      assert.equal("Failed to create new KafkaAdminClient", msg)
      assert.truthy(detail:find("Invalid url in bootstrap.servers: ", 1, true))
    end
    for _, s in ipairs { "h:1", "a:1, b:2", "[::1]:9092",
      "SSL://h:9" } do assert.truthy(new { ["bootstrap.servers"] = s }) end
    assert.truthy(select(4, new { ["bootstrap.servers"] = "h:99999" }):find("Invalid port", 1, true))
  end)

  it("checks header rules", function()
    local bad = { -- from RestServerConfig
      ["bogus"] = "Invalid format of header config 'bogus'. Expected: '[action] [header name]:[header value]'",
      ["foo a:b"] = "Invalid header config action: 'foo'. Expected one of [set, add, setDate, addDate]",
      ["set a"] = "Invalid format of header name and header value pair 'a'. Expected: '[header name]:[header value]'",
      ["set a:b:c"] = "Invalid format of header name and header value pair 'a:b:c'. Expected: '[header " ..
        "name]:[header value]'",
      ["set a:"] = "Invalid format of header name and header value pair 'a:'. Expected: '[header name]:[header " ..
        "value]'",
      ["set :b"] = "Invalid header name ''. The '[header name]' cannot contain whitespace",
      ["set a b:c"] = "Invalid header name 'a b'. The '[header name]' cannot contain whitespace",
    }
    for v, text in pairs(bad) do refused(text, { ["response.http.headers.config"] = v }) end
    for _, v in ipairs { "SET a:b", 'set X-A: 1, "add Cache-Control: no-cache, no-store", setDate D: 1' } do
      assert.truthy(new { ["response.http.headers.config"] = v })
    end
  end)

  it("replaces variables, but not in plugin.path", function()
    pcall(ffi.cdef, "int setenv(const char *, const char *, int);")
    ffi.C.setenv("LC_SPEC_GROUP", "from-env", 1)
    local wc = new { ["config.providers"] = "env", ["config.providers.env.class"] =
      "org.apache.kafka.common.config.provider.EnvVarConfigProvider", ["group.id"] = "${env:LC_SPEC_GROUP}-x",
      ["plugin.path"] = "/x/${env:LC_SPEC_GROUP}" }
    assert.equal("from-env-x", ffi.string(C.lc_worker_config_str(wc, "group.id")))
    assert.equal("/x/${env:LC_SPEC_GROUP}", ffi.string(C.lc_worker_config_str(wc, "plugin.path")))
  end)

  it("warns about unknown keys, once each, and says what is ignored", function()
    local text = logged(function()
      new { ["no.such.key"] = "x", ["producer.foo"] = "1", ["key.converter.x"] = "1",
        ["offset.storage.segment.bytes"] = "1",
        ["max.request.size"] = "5", ["config.storage.cleanup.policy"] = "delete", ["config.storage.partitions"] = "2",
        ["internal.key.converter"] = "x", ["rest.extension.classes"] = "a,b,a" }
    end)
    local _, n = text:gsub("Unknown key 'no.such.key'", "")
    assert.equal(1, n)
    _, n = text:gsub("Unknown key", "")
    assert.equal(1, n)
    assert.truthy(text:find("Ignoring 'config.storage.cleanup.policy=delete' setting, since compaction is " ..
      "always used", 1, true))
    assert.truthy(text:find("Ignoring 'config.storage.partitions=2' setting, since config topic partitions is " ..
      "always 1", 1, true))
    assert.truthy(text:find("internal.key.converter has no effect", 1, true))
    assert.truthy(text:find('Configuration key "rest.extension.classes" contains duplicate values', 1, true))
  end)

  it("says in standalone mode that exactly-once is not for it", function()
    local function said(v, mode)
      return (logged(function()
        assert(new({ ["exactly.once.source.support"] = v, ["offset.storage.file.filename"] = "/x" }, mode or C.LC_STANDALONE))
      end))
    end
    for _, v in ipairs { "enabled", "ENABLED", "preparing" } do
      local text = said(v)
      local _, n = text:gsub("exactly%.once%.source%.support", "")
      assert.equal(1, n, text)
      assert.truthy(text:find("WARN", 1, true))
      assert.truthy(text:find("exactly.once.source.support=" .. v .. " has no effect in standalone mode: source tasks " ..
        "deliver at least once", 1, true), text)
    end
    for _, text in ipairs { said "disabled", said "Disabled", said(nil), said("enabled", C.LC_DISTRIBUTED) } do
      assert.is_nil(text:find("exactly.once", 1, true), text)
    end
  end)

  it("raises the backoff's maximum when only the backoff is set", function()
    local wc = new { ["reconnect.backoff.ms"] = "7000" }
    assert.equal("7000", ffi.string(C.lc_worker_config_str(wc, "reconnect.backoff.max.ms")))
  end)

  it("asks the plugins for its converters", function()
    local set = plugins.set(plugins.standard())
    local function check(t)
      local err = core.err()
      return C.lc_worker_config_check_plugins(assert(new(t)), set, err), core.msg(err)
    end
    assert.equal(0, (check {}))
    assert.equal(0, (check { ["key.converter"] = "StringConverter" }))
    assert.same({ -1, "Invalid value x.Y for configuration value.converter: Class x.Y could not be found." },
      { check { ["value.converter"] = "x.Y" } })
  end)
end)

describe("listeners", function()
  setup(function() C.lc_log_set_level(nil, "off") end)
  teardown(function() C.lc_log_set_level(nil, "info") end)

  local function listener(s)
    local err, port = core.err(), ffi.new "int[1]"
    local wc, msg = new { listeners = s }
    if not wc then return nil, msg end
    local host, rc = buf(function(b) return C.lc_worker_config_listener(wc, b, port, err) end)
    if rc ~= 0 then return nil, core.msg(err) end
    return host, port[0]
  end
  local function advertised(t, bound)
    local wc = assert(new(t))
    local id
    local url = buf(function(b)
      id = buf(function(i) return C.lc_worker_config_advertised(wc, bound or 8083, b, i, nil) end)
    end)
    return url, id
  end

  it("are taken apart", function()
    assert.same({ "", 8083 }, { listener "http://:8083" })
    assert.same({ "127.0.0.1", 0 }, { listener "http://127.0.0.1:0" })
    assert.same({ "::1", 8083 }, { listener "HTTP://[::1]:8083" })
    assert.same({ "h", 1 }, { listener "https://x:9,http://h:1" })
    assert.same({ nil, "Listener doesn't have the right format (protocol://hostname:port)." },
      { listener "http://h" })
    assert.same({ nil, 'Listener protocol must be either "http" or "https".' }, { listener "ftp://h:1" })
    assert.truthy(select(2, listener "https://h:1"):find("HTTPS is not supported", 1, true))
    assert.truthy(select(2, listener "http://h:70000"):find("70000", 1, true))
  end)

  it("are advertised by Java's rules", function()
    assert.same({ "http://h:8083/", "h:8083" }, { advertised { listeners = "http://h:8083" } })
    assert.same({ "http://h:4711/", "h:4711" }, { advertised({ listeners = "http://h:0" }, 4711) })
    assert.same({ "http://[::1]:1/", "[::1]:1" }, { advertised { listeners = "http://[::1]:1" } })
    assert.same({ "http://n:9/", "n:9" }, { advertised { listeners = "http://h:1",
      ["rest.advertised.host.name"] = "n",
      ["rest.advertised.port"] = "9" } })
    assert.same({ "https://s:2/", "s:2" }, { advertised { listeners = "http://h:1,https://s:2",
      ["rest.advertised.listener"] = "HTTPS" } })
    local url = advertised { listeners = "http://:8083" }
    assert.truthy(url:match "^http://%d+%.%d+%.%d+%.%d+:8083/$", url)
  end)
end)

describe("the shipped worker files", function()
  for mode, name in pairs { [0] = "distributed", [1] = "standalone" } do
    it(name .. " is accepted without a warning", function()
      local text = logged(function()
        local err = core.err()
        local wc = C.lc_worker_config_load("config/connect-" .. name .. ".properties", mode, err)
        assert.is_true(wc ~= nil, core.msg(err))
        C.lc_worker_config_free(wc)
      end)
      C.lc_log_set_level(nil, "info")
      assert.equal("", text)
    end)
  end
end)
