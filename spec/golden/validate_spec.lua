-- Answers of PUT /connector-plugins/X/config/validate and the texts of refused creates, as Kafka Connect
-- 4.3.1 gave them, against lc_connector_validate with a set of plugins like Connect's. Everything is
-- compared but documentation. golden/config/validate.jsonl is taken from the recordings in golden/rest;
-- "some" holds only the keys that matter to the case.
local core = require "spec.support.core"
local files = require "spec.support.files"
local golden = require "spec.support.golden"
local plugins = require "spec.support.plugins"
local C, ffi = core.load { "base/err.h", "base/log.h", "config/worker_config.h", "config/connector_config.h" }

-- what the recorded plugins' own Java code says; those plugins have their own specs
local plugin_texts = { "regexrouter%-missing", "cast%-bad%-spec", "missing%-pattern", "bad%-pattern",
  "transform%-missing%-required" }

local types = { [0] = "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD" }
local importances = { [0] = "HIGH", "MEDIUM", "LOW" }
local widths = { [0] = "NONE", "SHORT", "MEDIUM", "LONG" }

jit.off(true, true) -- exactly_once below is called back from C

local function str(p) return p ~= nil and ffi.string(p) or golden.null end
local function strv(s)
  local t = {}
  for i = 0, tonumber(s.n) - 1 do t[#t + 1] = ffi.string(s.v[i]) end
  return t
end

local secret = os.tmpname() -- stands for /tmp/golden/secret.properties
local function dir(s)
  s = s:gsub("/tmp/golden:secret%.properties", (secret:gsub("/([^/]+)$", ":%1")))
  return (s:gsub("/tmp/golden/secret%.properties", secret))
end
local function undir(s)
  local at = type(s) == "string" and s:find(secret, 1, true)
  return at and s:sub(1, at - 1) .. "/tmp/golden/secret.properties" .. s:sub(at + #secret) or s
end

-- lc_config_infos_t as REST prints it
local function answer(infos)
  local configs = {}
  for i = 0, tonumber(infos.n) - 1 do
    local v = infos.values[i]
    local row, name = v.row, ffi.string(v.name)
    local def = golden.null
    if row ~= nil then
      local group = v.group ~= nil and v.group or row.group
      local order = row.order
      if v.order ~= -2147483648 then order = v.order end
      local display = v.display ~= nil and v.display or (row.display ~= nil and row.display or row.name)
      local default = v.def ~= nil and v.def or row.def
      def = {
        name = name, type = types[tonumber(row.type)], required = row.required,
        default_value = row.required and golden.null or str(default),
          importance = importances[tonumber(row.importance)],
        group = str(group), order_in_group = order, width = widths[tonumber(row.width)], display_name = str(display),
        dependents = {},
      }
    end
    configs[#configs + 1] = {
      definition = def,
      value = { name = name, value = undir(str(v.value)), recommended_values = strv(v.recommended),
        errors = strv(v.errors),
        visible = v.visible },
    }
  end
  return { name = ffi.string(infos.name), error_count = infos.error_count, groups = strv(infos.groups),
    configs = configs }
end

local function exactly_once(_, config)
  local file = C.lc_props_get(config, "file")
  return file ~= nil and file[0] ~= 0 and 1 or 2
end

-- keys in the order of the recorded line: a HashMap with collisions keeps it
local function props(t, line)
  local p = ffi.gc(C.lc_props_new(), C.lc_props_free)
  local keys = {}
  for k in pairs(t) do keys[#keys + 1] = k end
  local from = line:find('"config": {', 1, true)
  table.sort(keys, function(a, b)
    return (line:find('"' .. a .. '":', from, true) or 0) < (line:find('"' .. b .. '":', from, true) or 0)
  end)
  for _, k in ipairs(keys) do
    local v = t[k]
    if v == golden.null then v = nil end
    if type(v) == "number" and v % 1 == 0 then v = ("%d"):format(v) end
    C.lc_props_set(p, k, v ~= nil and tostring(v) or nil)
  end
  return p
end

describe("validation", function()
  local cases = {} -- ours alone: not below $GOLDEN
  for line in io.lines "spec/golden/config/validate.jsonl" do
    cases[#cases + 1] = golden.decode(line)
    cases[#cases].line = line
  end
  local set, callback

  setup(function()
    C.lc_log_set_level(nil, "off")
    local list = plugins.standard()
    callback = ffi.cast("lc_eos_t (*)(const lc_plugin_t *, const lc_props_t *, lc_err_t *)", exactly_once)
    for _, p in ipairs(list) do
      if p.class:find "FileStreamSource" then p.exactly_once = callback end
    end
    set = plugins.set(list)
    files.write(secret, "topic=g-prov\nbad=")
    ffi.C.setenv("GOLDEN_ENV", "envtopic", 1)
  end)
  teardown(function()
    C.lc_log_set_level(nil, "info")
    os.remove(secret)
  end)

  pcall(ffi.cdef, "int setenv(const char *, const char *, int);")

  for _, case in ipairs(cases) do
    local skip = false
    for _, p in ipairs(plugin_texts) do skip = skip or case.name:find(p) end
    if not skip then
      it(case.name, function()
        local err = core.err()
        local wc = C.lc_worker_config_new(props(case.worker_config, case.line), 0, err)
        assert.is_true(wc ~= nil, core.msg(err))
        ffi.gc(wc, C.lc_worker_config_free)
        for k, v in pairs(case.config) do
          if type(v) == "string" then case.config[k] = dir(v) end
        end
        local infos = C.lc_connector_validate(wc, set, props(case.config, case.line), err)
        if case.some then
          assert.is_true(infos ~= nil, core.msg(err))
          ffi.gc(infos, C.lc_config_infos_free)
          local got, want, wanted = answer(infos), case.some, {}
          for _, c in ipairs(want.configs) do wanted[c.value.name] = true end
          got.count = #got.configs
          local some = {}
          for _, c in ipairs(got.configs) do
            if #c.value.errors > 0 or wanted[c.value.name] or c.definition == golden.null then some[#some + 1] = c end
          end
          got.configs = some
          assert.same(want, got)
        elseif case.answer then
          assert.is_true(infos ~= nil, core.msg(err))
          ffi.gc(infos, C.lc_config_infos_free)
          local got, want = answer(infos), case.answer
          for i = 1, math.max(#got.configs, #want.configs) do
            assert.same(want.configs[i], got.configs[i])
          end
          got.configs, want.configs = nil, nil
          assert.same(want, got)
        elseif case.rejection then
          assert.is_true(infos ~= nil, core.msg(err))
          local text = C.lc_config_infos_rejection(infos)
          assert.equal(case.rejection, text ~= nil and ffi.string(text) or "accepted")
          ffi.C.free(text)
          C.lc_config_infos_free(infos)
        else
          assert.is_true(infos == nil, "accepted")
          local got = ffi.string(err.cls) .. ": " .. core.msg(err)
          local upto = case.message:find("available connectors", 1, true) or #case.message
          assert.equal(case.message:sub(1, upto), got:sub(1, upto))
        end
      end)
    end
  end

  it("had its cases", function() assert.is_true(#cases > 100, #cases .. " cases") end)
  pcall(ffi.cdef, "void free(void *);")
end)
