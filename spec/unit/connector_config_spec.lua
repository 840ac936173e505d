-- Connector configs: lookup of plugins, rows, typed reads, and what the recordings in
-- golden/config/validate.jsonl do not show: plugin code in validation, broken plugins, ambiguous aliases.
local core = require "spec.support.core"
local plugins = require "spec.support.plugins"
local with = require "spec.support.with"
local worker_config = require "spec.support.worker_config"
local C, ffi = core.load { "base/err.h", "base/log.h", "config/worker_config.h", "config/connector_config.h",
  "config/policy.h" }
jit.off(true, true) -- plugin code below is called back from C

pcall(ffi.cdef, "void free(void *);")


local function worker(t) return ffi.gc(worker_config.new(t), C.lc_worker_config_free) end

local function validate(set, config, wc)
  local err = core.err()
  local infos = C.lc_connector_validate(wc or worker(), set, core.props(config), err)
  if infos == nil then return nil, core.msg(err), err end
  ffi.gc(infos, C.lc_config_infos_free)
  local errors = {}
  for i = 0, tonumber(infos.n) - 1 do
    local v = infos.values[i]
    for j = 0, tonumber(v.errors.n) - 1 do errors[#errors + 1] = ffi.string(v.name) .. ": " ..
      ffi.string(v.errors.v[j]) end
  end
  return infos, errors
end

local function source(t)
  return with({ name = "n", ["connector.class"] = "FileStreamSource", file = "f", topic = "t" }, t)
end

describe("plugins", function()
  local set = plugins.set {
    { type = "source", class = "a.One", aliases = { "One", "Both" } },
    { type = "source", class = "b.Two", aliases = { "Two", "Both" }, version = "2.0" },
    { type = "sink", class = "a.One", aliases = { "One" } },
    { type = "source", class = "broken", aliases = {}, error = "init.lua:3: oops", location = "/p/broken" },
    { type = "converter", class = "c.Conv", aliases = { "Conv" } },
  }
  local function find(mask, name)
    local err = core.err()
    local p = C.lc_plugins_find(set, mask, name, err)
    if p == nil then return nil, core.msg(err), err.code end
    return ffi.string(p.class_name)
  end

  it("are found by class or by an alias of one class", function()
    assert.equal("a.One", find(0, "One"))
    assert.equal("b.Two", find(2, "Two"))
    assert.equal("c.Conv", find(16, "c.Conv"))
    assert.is_nil(find(1, "Two"))
    assert.is_nil(find(0, "one"))
  end)

  it("that are not found say so", function()
    local one = "PluginDesc{klass=class a.One, name='a.One', version='4.3.1', encodedVersion=4.3.1, type=sink, " ..
      "typeName='sink', location='classpath'}"
    assert.same({ nil, "Failed to find any class that implements Connector and which name matches X, available " ..
      "connectors are: " .. one, 404 }, { find(1, "X") })
    assert.same({ nil, "Class X could not be found.", 404 }, { find(16, "X") })
    assert.same({ nil,
      "More than one connector matches alias Both. Please use full package and class name instead. " ..
      "Classes found: a.One, b.Two", 404 }, { find(3, "Both") })
    assert.same({ nil, "Plugin broken (/p/broken) could not be loaded: init.lua:3: oops", 404 }, { find(3,
      "broken") })
  end)

  it("have types by name", function()
    assert.equal("header_converter", ffi.string(C.lc_plugin_type_name(5)))
    assert.equal("sink", ffi.string(C.lc_plugin_type_name(0)))
  end)
end)

describe("connector configs", function()
  setup(function() C.lc_log_set_level(nil, "off") end)
  teardown(function() C.lc_log_set_level(nil, "info") end)

  it("are read by type", function()
    local p = core.props { ["tasks.max"] = " 3 ", ["errors.tolerance"] = "all", ["errors.log.enable"] = "TRUE",
      x = "y" }
    local function get(key)
      local s = C.lc_connector_config_get(p, key)
      local text = s ~= nil and ffi.string(s) or nil
      ffi.C.free(s)
      return text
    end
    assert.equal("3", get "tasks.max")
    assert.equal(3, tonumber(C.lc_connector_config_int(p, "tasks.max")))
    assert.is_true(C.lc_connector_config_bool(p, "errors.log.enable"))
    assert.is_true(C.lc_connector_config_bool(p, "tasks.max.enforce"))
    assert.equal("", get "errors.deadletterqueue.topic.name")
    assert.equal("y", get "x")
    assert.is_nil(get "no.such")
    assert.is_nil(get "offsets.storage.topic")
  end)

  it("have Java's rows", function()
    local n = ffi.new "int[1]"
    C.lc_connector_config_rows(1, n)
    assert.equal(24, n[0])
    C.lc_connector_config_rows(0, n)
    assert.equal(24, n[0])
  end)

  it("are validated with the plugin's code, which sees keys without prefix", function()
    local seen = {}
    local function check(_, config, infos)
      for i = 0, tonumber(C.lc_props_count(config)) - 1 do
        seen[ffi.string(C.lc_props_key(config, i))] = ffi.string(C.lc_props_value(config, i))
      end
      for i = 0, tonumber(infos.n) - 1 do
        if ffi.string(infos.values[i].name) == "field" then C.lc_strv_add(infos.values[i].errors, "from Lua") end
      end
      return 0
    end
    local cb = ffi.cast("int (*)(const lc_plugin_t *, const lc_props_t *, lc_config_infos_t *, lc_err_t *)", check)
    local list = plugins.standard()
    for _, p in ipairs(list) do
      if p.class:find "HoistField$Value" then p.validate = cb end
    end
    local infos, errors = validate(plugins.set(list), source { transforms = "h", ["transforms.h.type"] =
      "org.apache.kafka.connect.transforms.HoistField$Value", ["transforms.h.field"] = "f" })
    cb:free()
    assert.same({ "transforms.h.field: from Lua" }, errors)
    assert.equal(1, infos.error_count)
    assert.same({ type = "org.apache.kafka.connect.transforms.HoistField$Value", field = "f" }, seen)
  end)

  it("fail as a whole when plugin code fails", function()
    local function check(_, _, _, err)
      err.kind, err.code = 1, 0
      ffi.copy(err.msg, "boom")
      return -1
    end
    local cb = ffi.cast("int (*)(const lc_plugin_t *, const lc_props_t *, lc_config_infos_t *, lc_err_t *)", check)
    local list = plugins.standard()
    for _, p in ipairs(list) do
      if p.class:find "FileStreamSource" then p.validate = cb end
    end
    local infos, msg = validate(plugins.set(list), source())
    cb:free()
    assert.same({ nil, "boom" }, { infos, msg })
  end)

  it("name outer classes, masked keys and missing predicates", function()
    local set = plugins.set(plugins.standard())
    local p = "org.apache.kafka.connect.transforms."
    local _, errors = validate(set, source { transforms = "t", ["transforms.t.type"] = p .. "Cast" })
    assert.same({ "transforms.t.type: This class is abstract and cannot be created. Did you mean " .. p ..
      "Cast$Key, " ..
      p .. "Cast$Value?" }, errors)
    _, errors = validate(set, source { transforms = "t", ["transforms.t.type"] = "Filter",
      ["transforms.t.negate"] = "true" })
    assert.same({ "transforms.t.type: Config 'transforms.t.negate' was provided but there is no config " ..
      "'transforms.t.predicate' defining a predicate to be negated." }, errors)
    _, errors = validate(set, source { transforms = "t", ["transforms.t.type"] = "Filter",
      ["transforms.t.plugin.version"] = "[9,)" })
    local text = "Plugin " .. p .. "Filter not found that matches the version range [9,), available versions: [4.3.1]"
    assert.same({ "transforms.t.type: " .. text, "transforms.t.plugin.version: " .. text }, errors)
    _, errors = validate(set, source { transforms = "t", ["transforms.t.type"] = "StringConverter" })
    assert.same({ "transforms.t.type: Class class org.apache.kafka.connect.storage.StringConverter does not " ..
      "implement " ..
      "the Transformation interface" }, errors)
  end)

  it("have keys beyond Connect's, listed and checked only where they are set", function()
    local set = plugins.set(plugins.standard())
    local function listed(infos, name)
      for i = 0, tonumber(infos.n) - 1 do if ffi.string(infos.values[i].name) == name then return true end end
      return false
    end
    local keys = { ["errors.deadletterqueue.source.topic.name"] = {}, ["restart.policy"] = { "always", "ON-FAILURE" },
      ["restart.policy.max.per.hour"] = { "0", "x" }, ["errors.deadletterqueue.max.failure.ratio"] = { "2.5", "-1.0", "half", "" },
      ["errors.deadletterqueue.failure.window.records"] = { "0", "1.5" } }
    local plain, none = validate(set, source())
    assert.same({}, none)
    for key, bad in pairs(keys) do
      assert.is_false(listed(plain, key))
      for _, v in ipairs(bad) do
        local infos, errors = validate(set, source { [key] = v })
        assert.is_true(listed(infos, key))
        assert.equal(1, (errors[1]:find(key .. ": Invalid value " .. v .. " for configuration " .. key .. ": ", 1, true)), errors[1])
      end
    end
    local _, errors = validate(set, source { ["restart.policy"] = "on-failure", ["restart.policy.max.per.hour"] = " 3 ",
      ["errors.deadletterqueue.max.failure.ratio"] = "0.25", ["errors.deadletterqueue.source.topic.name"] = "letters" })
    assert.same({}, errors)
  end)

  it("are refused with HTTP codes and classes", function()
    local set = plugins.set(plugins.standard())
    local _, msg, err = validate(set, { name = "x" })
    assert.same({ "Connector config {name=x} contains no connector type", 400 }, { msg, err.code })
    assert.equal("org.apache.kafka.connect.runtime.rest.errors.BadRequestException", ffi.string(err.cls))
    _, msg, err = validate(set, source { ["producer.override.linger.ms"] = "x" })
    assert.same({ "Invalid value x for configuration linger.ms: Not a number of type LONG", 500 }, { msg, err.code })
    assert.equal("org.apache.kafka.common.config.ConfigException", ffi.string(err.cls))
    _, msg, err = validate(set, source { ["connector.plugin.version"] = "[1" })
    assert.same({ "Unbounded range: [1", 400 }, { msg, err.code })
  end)

  it("know the override policies", function()
    for value, name in pairs { All = "All", None = "None",
      ["org.apache.kafka.connect.connector.policy.PrincipalConnectorClientConfigOverridePolicy"] = "Principal",
      AllowlistConnectorClientConfigOverridePolicy = "Allowlist" } do
      assert.equal(name, ffi.string(C.lc_override_policy_name(value)))
    end
    assert.is_true(C.lc_override_policy_name "Bogus" == nil)
    local set, wc = plugins.set(plugins.standard()),
      worker { ["connector.client.config.override.policy"] = "Principal" }
    local _, errors = validate(set, source { ["producer.override.sasl.mechanism"] = "PLAIN",
      ["producer.override.acks"] = "1" }, wc)
    assert.same({ "producer.override.acks: The 'Principal' policy does not allow 'acks' to be overridden in the " ..
      "connector " ..
      "configuration." }, errors)
  end)

  it("have rejection texts", function()
    local infos = validate(plugins.set(plugins.standard()), source { ["tasks.max"] = "0" })
    local text = C.lc_config_infos_rejection(infos)
    assert.equal("Connector configuration is invalid and contains the following 1 error(s):\n" ..
      "Invalid value 0 for configuration tasks.max: Value must be at least 1\nYou can also find the " ..
      "above list of errors " ..
      "at the endpoint `/connector-plugins/{connectorType}/config/validate`", ffi.string(text))
    ffi.C.free(text)
    infos = validate(plugins.set(plugins.standard()), source())
    assert.is_true(C.lc_config_infos_rejection(infos) == nil)
  end)
end)
