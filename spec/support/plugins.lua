-- spec/support/plugins.lua: a set of plugins made of plain tables, for specs of the config room. The
-- standard one below has the definitions of Kafka Connect 4.3.1's own plugins that the recordings use.
local core = require "spec.support.core"
local _, ffi = core.load { "base/err.h", "config/plugin.h" }

local _M = {}

local types = { sink = 0, source = 1, transformation = 2, predicate = 3, converter = 4, header_converter = 5 }
local importance = { high = 0, medium = 1, low = 2 }
local config_types = { boolean = 0, string = 1, int = 2, short = 3, long = 4, double = 5, list = 6, class = 7,
  password = 8 }
local widths = { none = 0, short = 1, medium = 2, long = 3 }
-- C has no reflection: offsets of check functions are taken through ffi.C by name
local lib = core.lib()
local checks = {
  range = lib.lc_check_range, at_least = lib.lc_check_at_least, one_of = lib.lc_check_one_of,
  one_of_ci = lib.lc_check_one_of_ci, non_empty = lib.lc_check_non_empty,
}

--- set { {type="source", class=..., version=..., aliases={...}, rows={ {name=, type=, ...} } } } in any order.
-- Returns lc_plugins_t *; keep it as long as it is used.
function _M.set(list)
  local keep = {}
  local function str(s)
    if s == nil then return nil end
    local c = ffi.new("char[?]", #s + 1, s)
    keep[#keep + 1] = c
    return c
  end
  table.sort(list, function(a, b)
    if a.type ~= b.type then return types[a.type] < types[b.type] end
    return a.class < b.class
  end)
  local v = ffi.new("lc_plugin_t *[?]", #list)
  for i, d in ipairs(list) do
    local p = ffi.gc(ffi.new "lc_plugin_t", function(x) lib.lc_strv_free(x.aliases) end)
    keep[#keep + 1] = p
    p.type = types[d.type]
    p.class_name, p.version = str(d.class), str(d.version or "4.3.1")
    p.location, p.error = str(d.location or "standard"), str(d.error)
    for _, a in ipairs(d.aliases or {}) do lib.lc_strv_add(p.aliases, a) end
    local rows = ffi.new("lc_config_row_t[?]", math.max(1, #(d.rows or {})))
    keep[#keep + 1] = rows
    for j, r in ipairs(d.rows or {}) do
      local row = rows[j - 1]
      row.name, row.type, row.def = str(r.name), config_types[r.type], str(r.default)
      row.required, row.importance = r.required or false, importance[r.importance or "medium"]
      row.group, row.order = str(r.group), r.order or -1
      row.width, row.display, row.doc = widths[r.width or "none"], str(r.display), str(r.doc or "")
      row.min, row.max = r.min or 0, r.max or 0
      if r.check then row.check = checks[r.check] end
      if r.one_of then
        local o = ffi.new("const char *[?]", #r.one_of + 1)
        keep[#keep + 1] = o
        for k, s in ipairs(r.one_of) do o[k - 1] = str(s) end
        row.one_of = o
      end
    end
    p.rows, p.nrows = rows, #(d.rows or {})
    p.exactly_once, p.validate = d.exactly_once, d.validate
    v[i - 1] = p
  end
  local set = ffi.new "lc_plugins_t"
  set.v, set.n = v, #list
  keep[#keep + 1] = v
  _M.alive = _M.alive or setmetatable({}, { __mode = "k" })
  _M.alive[set] = keep
  return set
end

local prefix = "org.apache.kafka.connect."

local function alias(class, suffix)
  local simple = class:match "[^.$]+$"
  local out = { simple }
  if simple:sub(-#suffix) == suffix and #simple > #suffix then out[2] = simple:sub(1, -#suffix - 1) end
  return out
end

--- The standard plugins as a list of tables (a fresh one each time).
function _M.standard()
  local list = {}
  local function add(kind, class, rows, suffix)
    class = prefix .. class
    list[#list + 1] = { type = kind, class = class, rows = rows, aliases = alias(class, suffix) }
  end
  add("sink", "file.FileStreamSinkConnector", { { name = "file", type = "string", importance = "high" } },
    "Connector")
  add("source", "file.FileStreamSourceConnector", {
    { name = "file", type = "string", importance = "high" },
    { name = "topic", type = "string", required = true, importance = "high", check = "non_empty" },
    { name = "batch.size", type = "int", default = "2000", importance = "low" },
  }, "Connector")
  local converter_type = { name = "converter.type", type = "string", required = true, importance = "low",
    check = "one_of", one_of = { "key", "value", "header" } }
  local json = {
    converter_type,
    { name = "schemas.enable", type = "boolean", default = "true", importance = "high", group = "Schemas", order = 0,
      width = "medium", display = "Enable Schemas" },
    { name = "schemas.cache.size", type = "int", default = "1000", importance = "high", group = "Schemas", order = 1,
      width = "medium", display = "Schema Cache Size" },
    { name = "schema.content", type = "string", importance = "high", group = "Schemas", order = 2, width = "medium",
      display = "Schema Content" },
    { name = "decimal.format", type = "string", default = "BASE64", importance = "low", group = "Serialization",
      order = 0, width = "medium", display = "Decimal Format", check = "one_of_ci", one_of = { "NUMERIC",
        "BASE64" } },
    { name = "replace.null.with.default", type = "boolean", default = "true", importance = "low",
      group = "Serialization", order = 1, width = "medium", display = "Replace null with default" },
  }
  for _, kind in ipairs { "converter", "header_converter" } do
    local suffix = kind == "converter" and "Converter" or "HeaderConverter"
    for _, n in ipairs { "Boolean", "ByteArray", "Double", "Float", "Integer", "Long", "Short" } do
      add(kind, "converters." .. n .. "Converter", { converter_type }, suffix)
    end
    add(kind, "json.JsonConverter", json, suffix)
    add(kind, "storage.StringConverter", {
      converter_type, { name = "converter.encoding", type = "string", default = "UTF-8", importance = "high" },
    }, suffix)
  end
  add("header_converter", "storage.SimpleHeaderConverter", {}, "HeaderConverter")
  local nulls = { name = "replace.null.with.default", type = "boolean", default = "true" }
  local insert = { nulls }
  for _, n in ipairs { "topic.field", "partition.field", "offset.field", "timestamp.field", "static.field",
    "static.value" } do
    insert[#insert + 1] = { name = n, type = "string" }
  end
  local function smt(name, rows, single)
    if single then return add("transformation", "transforms." .. name, rows, "Transformation") end
    add("transformation", "transforms." .. name .. "$Key", rows, "Transformation")
    add("transformation", "transforms." .. name .. "$Value", rows, "Transformation")
  end
  smt("InsertField", insert)
  smt("HoistField", { { name = "field", type = "string", required = true } })
  smt("Cast", { { name = "spec", type = "list", required = true, importance = "high" }, nulls })
  for _, n in ipairs { "ExtractField", "Flatten", "MaskField", "ReplaceField", "SetSchemaMetadata", "HeaderFrom",
    "TimestampConverter" } do
    smt(n, {})
  end
  for _, n in ipairs { "DropHeaders", "InsertHeader", "TimestampRouter", "ValueToKey", "Filter" } do smt(n, {},
    true) end
  smt("RegexRouter", { { name = "regex", type = "string", required = true, importance = "high" },
    { name = "replacement", type = "string", required = true, importance = "high" } }, true)
  add("predicate", "transforms.predicates.TopicNameMatches", { { name = "pattern", type = "string",
    required = true } },
    "Predicate")
  add("predicate", "transforms.predicates.RecordIsTombstone", {}, "Predicate")
  add("predicate", "transforms.predicates.HasHeaderKey", { { name = "name", type = "string", required = true } },
    "Predicate")
  return list
end

return _M
