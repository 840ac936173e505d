-- spec/support/data.lua: Connect values for specs: typed literals of the recordings (spec/golden) as C values
-- and back, schemas, converters. JSON is read here by a small reader that keeps order and literal numbers.
local core = require "spec.support.core"
local C, ffi = core.load {
  "base/err.h", "base/arena.h", "base/buf.h", "data/record.h", "data/schema_builder.h", "data/decimal.h",
  "data/java_hash.h", "data/validate.h", "convert/converter.h", "convert/json.h", "convert/json_data.h",
}

local _M = { C = C, ffi = ffi }
local golden = require "spec.support.golden"
local base64 = require "spec.support.base64"
_M.null = golden.null

---- JSON with order and literals: {object = {{k, v}...}}, {array = {...}}, {number = "1.0"}, string, boolean, null

local function skip(text, i)
  return text:find("[^ \t\r\n]", i)
end

local node

local function read_string(text, i)
  local j = i + 1
  while true do
    local c = text:byte(j)
    if c == 92 then j = j + 2 elseif c == 34 then break else j = j + 1 end
  end
  return golden.decode(text:sub(i, j)), j + 1
end

function node(text, i)
  i = skip(text, i)
  local c = text:sub(i, i)
  if c == '"' then return read_string(text, i) end
  if c == "{" or c == "[" then
    local out, close = {}, c == "{" and "}" or "]"
    local j = skip(text, i + 1)
    while text:sub(j, j) ~= close do
      if c == "{" then
        local k, v
        k, j = read_string(text, j)
        j = skip(text, j) + 1
        v, j = node(text, j)
        out[#out + 1] = { k, v }
      else
        out[#out + 1], j = node(text, j)
      end
      j = skip(text, j)
      if text:sub(j, j) == "," then j = skip(text, j + 1) end
    end
    return c == "{" and { object = out } or { array = out }, j + 1
  end
  local word = text:match("^[%w%+%-%.]+", i)
  if word == "true" then return true, i + 4 end
  if word == "false" then return false, i + 5 end
  if word == "null" then return _M.null, i + 4 end
  return { number = word }, i + #word
end

--- A JSON text as ordered nodes.
function _M.read(text) return (node(text, 1)) end

--- Member of an object node, nil if absent.
function _M.get(n, key)
  if type(n) ~= "table" or not n.object then return nil end
  for _, kv in ipairs(n.object) do if kv[1] == key then return kv[2] end end
end

local function quote(s)
  return '"' .. s:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
end

--- Nodes as compact JSON.
function _M.write(n)
  if n == _M.null then return "null" end
  if type(n) == "string" then return quote(n) end
  if type(n) == "boolean" then return tostring(n) end
  if n.number then return n.number end
  local out = {}
  if n.array then
    for i, v in ipairs(n.array) do out[i] = _M.write(v) end
    return "[" .. table.concat(out, ",") .. "]"
  end
  for i, kv in ipairs(n.object) do out[i] = quote(kv[1]) .. ":" .. _M.write(kv[2]) end
  return "{" .. table.concat(out, ",") .. "}"
end

---- small helpers

_M.base64, _M.unbase64 = base64.encode, base64.decode

--- Bytes of a recording: text, or {"base64": ..}; nil for null.
function _M.bytes(n)
  if n == nil or n == _M.null then return nil end
  if type(n) == "string" then return n end
  return _M.unbase64(_M.get(n, "base64"))
end

local function int64(text)
  local digits_only, v = text:match "^-?(%d+)$", 0LL
  for d in digits_only:gmatch "%d" do v = v * 10 + tonumber(d) end
  return text:sub(1, 1) == "-" and -v or v
end

local function float(text)
  if text == "NaN" then return math.huge - math.huge end
  if text:find "Infinity$" then return text:sub(1, 1) == "-" and -math.huge or math.huge end
  return tonumber(text)
end

---- a place where values of one case live

local place = {}
place.__index = place

--- Arena, kept strings, and schemas to release. Call :free() at the end.
function _M.place()
  local p = setmetatable({ arena = ffi.new "lc_arena_t", keep = {}, schemas = {}, converters = {} }, place)
  C.lc_arena_init(p.arena)
  return p
end

function place:free()
  for _, cv in ipairs(self.converters) do cv.cls.destroy(cv) end
  for _, s in ipairs(self.schemas) do C.lc_schema_unref(s) end
  C.lc_arena_free(self.arena)
end

function place:copy(s)
  return ffi.cast("const char *", C.lc_arena_dup(self.arena, s, #s))
end

--- A schema from its JSON node (JsonConverter's form).
function place:schema(n)
  if n == nil or n == _M.null then return nil end
  local err = core.err()
  local text = self:copy(_M.write(n))
  local doc, out = ffi.new "lc_json_t *[1]", ffi.new "const lc_schema_t *[1]"
  local options = ffi.new "lc_json_options_t"
  options.replace_null_with_default = true
  assert(C.lc_json_parse(text, #_M.write(n), 0, doc, err) == 0, core.msg(err))
  local rc = C.lc_json_read_schema(options, doc[0], out, err)
  C.lc_json_free(doc[0])
  if rc < 0 then error { class = ffi.string(err.cls), message = core.msg(err) } end
  self.schemas[#self.schemas + 1] = out[0]
  return out[0]
end

-- zeroed memory of the arena (lc_arena_alloc itself is an inline function)
function place:alloc(ctype, n)
  local size = n * ffi.sizeof(ctype) + 8
  return ffi.cast(ctype .. " *", C.lc_arena_dup(self.arena, ffi.new("uint8_t[?]", size), size))
end

function place:items(n) return self:alloc("lc_value_t", n) end

function place:hash_order(v)
  local n = v.len
  local order = ffi.new("uint32_t[?]", n + 1)
  assert(C.lc_java_hash_order(v.u.items, n, order) == 0)
  local items = self:items(2 * n)
  for i = 0, n - 1 do
    items[2 * i], items[2 * i + 1] = v.u.items[2 * order[i]], v.u.items[2 * order[i] + 1]
  end
  v.u.items = items
end

--- Maps inside a value in the order Java's HashMap lists them, at every depth.
function place:as_hash_map(v)
  local items, n = nil, 0
  if v.type == C.LC_MAP then
    self:hash_order(v)
    items, n = v.u.items, 2 * v.len
  elseif v.type == C.LC_ARRAY then
    items, n = v.u.items, v.len
  elseif v.type == C.LC_STRUCT then
    items, n = v.u.st.fields, v.u.st.schema.nfields
  end
  for i = 0, n - 1 do self:as_hash_map(items[i]) end
end

local ints = { ["$int8"] = "LC_INT8", ["$int16"] = "LC_INT16", ["$int32"] = "LC_INT32", ["$int64"] = "LC_INT64",
               ["$date"] = "LC_TIMESTAMP" }

--- Fill v (lc_value_t) from a typed literal. schema: for structs.
function place:typed(n, v, schema)
  v.type, v.flags, v.len, v.u.i = C.LC_NULL, 0, 0, 0
  if n == nil or n == _M.null then return v end
  if type(n) == "string" then
    v.type, v.len, v.u.s = C.LC_STRING, #n, self:copy(n)
  elseif type(n) == "boolean" then
    v.type, v.u.i = C.LC_BOOLEAN, n and 1 or 0
  elseif n.number then
    if n.number:find "[%.eE]" then v.type, v.u.f = C.LC_FLOAT64, tonumber(n.number)
    else v.type, v.u.i = C.LC_INT64, int64(n.number) end
  elseif n.array then
    v.type, v.len, v.u.items = C.LC_ARRAY, #n.array, self:items(#n.array)
    for i, item in ipairs(n.array) do
      self:typed(item, v.u.items[i - 1], schema ~= nil and schema.elem ~= nil and schema.elem or nil)
    end
  else
    local first = n.object[1]
    local tag = first and first[1]:match "^%$%l+%d*$"
    if tag then self:tagged(tag, first[2], v, schema) else self:plain_map(n.object, v) end
  end
  return v
end

function place:plain_map(members, v)
  v.type, v.len, v.u.items = C.LC_MAP, #members, self:items(2 * #members)
  for i, kv in ipairs(members) do
    self:typed(kv[1], v.u.items[2 * i - 2])
    self:typed(kv[2], v.u.items[2 * i - 1])
  end
  self:hash_order(v)
end

function place:tagged(tag, n, v, schema)
  local text = type(n) == "table" and n.number or n
  if ints[tag] then
    v.type, v.u.i = C[ints[tag]], int64(text)
  elseif tag == "$float32" then
    v.type, v.u.f32 = C.LC_FLOAT32, float(text)
  elseif tag == "$float64" then
    v.type, v.u.f = C.LC_FLOAT64, float(text)
  elseif tag == "$bytes" or tag == "$bytebuffer" then
    local s = _M.unbase64(text)
    v.type, v.len, v.u.s = C.LC_BYTES, #s, self:copy(s)
    v.flags = tag == "$bytebuffer" and C.LC_VF_BYTEBUFFER or 0
  elseif tag == "$decimal" or tag == "$bigint" then
    local d = ffi.new "const lc_decimal_t *[1]"
    assert(C.lc_decimal_parse(self.arena, text, #text, d) == 0, "bad decimal " .. text)
    v.type, v.u.dec = C.LC_DECIMAL, d[0]
    v.flags = tag == "$bigint" and C.LC_VF_BIGINT or 0
  elseif tag == "$map" then
    v.type, v.len, v.u.items = C.LC_MAP, #n.array, self:items(2 * #n.array)
    for i, kv in ipairs(n.array) do
      self:typed(kv.array[1], v.u.items[2 * i - 2], schema ~= nil and schema.key ~= nil and schema.key or nil)
      self:typed(kv.array[2], v.u.items[2 * i - 1], schema ~= nil and schema.elem ~= nil and schema.elem or nil)
    end
  elseif tag == "$struct" then
    local st = self:alloc("lc_struct_value_t", 1)
    st.schema, st.fields = schema, self:items(schema.nfields)
    for i = 0, schema.nfields - 1 do
      self:typed(_M.get(n, ffi.string(schema.fields[i].name)), st.fields[i], schema.fields[i].schema)
    end
    v.type, v.u.st = C.LC_STRUCT, st
  elseif tag == "$object" then
    v.type, v.u.s = C.LC_OBJECT, self:copy "Harness$1"
  else
    error("unknown literal " .. tag)
  end
end

---- values as typed literals, to compare

local int_tags = { [C.LC_INT8] = "$int8", [C.LC_INT16] = "$int16", [C.LC_INT32] = "$int32", [C.LC_INT64] = "$int64" }

local function tagged(tag, value) return tag .. "(" .. value .. ")" end

local function int_text(i) return (tostring(i):gsub("U?LL$", "")) end

local function float_text(f, single)
  local b = ffi.new "lc_buf_t"
  if single then C.lc_java_float(b, f) else C.lc_java_double(b, f) end
  local s = ffi.string(b.p, b.len)
  C.lc_buf_free(b)
  return s
end

local function list(tag, items, sorted)
  if sorted then table.sort(items) end
  return tagged(tag, table.concat(items, ","))
end

--- Text of a C value for comparison; maps are sorted.
function _M.show(v)
  local t = v.type
  if t == C.LC_NULL then return "null" end
  if int_tags[t] then return tagged(int_tags[t], int_text(v.u.i)) end
  if t == C.LC_FLOAT32 then return tagged("$float32", float_text(v.u.f32, true)) end
  if t == C.LC_FLOAT64 then return tagged("$float64", float_text(v.u.f, false)) end
  if t == C.LC_BOOLEAN then return tostring(v.u.i ~= 0) end
  if t == C.LC_STRING then return quote(ffi.string(v.u.s, v.len)) end
  if t == C.LC_BYTES then return tagged("$bytes", _M.base64(ffi.string(v.u.s, v.len))) end
  if t >= C.LC_DATE and t <= C.LC_TIMESTAMP then return tagged("$date", int_text(v.u.i)) end
  local out = {}
  if t == C.LC_DECIMAL then
    local b = ffi.new "lc_buf_t"
    C.lc_decimal_to_text(v.u.dec, b)
    local s = ffi.string(b.p, b.len)
    C.lc_buf_free(b)
    return tagged(bit.band(v.flags, C.LC_VF_BIGINT) ~= 0 and "$bigint" or "$decimal", s)
  elseif t == C.LC_ARRAY then
    for i = 0, v.len - 1 do out[#out + 1] = _M.show(v.u.items[i]) end
    return list("$list", out)
  elseif t == C.LC_MAP then
    for i = 0, v.len - 1 do out[#out + 1] = _M.show(v.u.items[2 * i]) .. "=" .. _M.show(v.u.items[2 * i + 1]) end
    return list("$map", out, true)
  elseif t == C.LC_STRUCT then
    local st = v.u.st
    for i = 0, st.schema.nfields - 1 do
      out[#out + 1] = ffi.string(st.schema.fields[i].name) .. "=" .. _M.show(st.fields[i])
    end
    return list("$struct", out, true)
  end
  return "type " .. t
end

--- The same text of a typed literal.
function _M.show_literal(n)
  if n == _M.null then return "null" end
  if type(n) == "string" then return quote(n) end
  if type(n) == "boolean" then return tostring(n) end
  local out = {}
  if n.array then
    for i, item in ipairs(n.array) do out[i] = _M.show_literal(item) end
    return list("$list", out)
  end
  local tag, value = n.object[1][1], n.object[1][2]
  if tag == "$map" then
    for i, kv in ipairs(value.array) do
      out[i] = _M.show_literal(kv.array[1]) .. "=" .. _M.show_literal(kv.array[2])
    end
    return list(tag, out, true)
  elseif tag == "$struct" then
    for i, kv in ipairs(value.object) do out[i] = kv[1] .. "=" .. _M.show_literal(kv[2]) end
    return list(tag, out, true)
  elseif tag == "$bytebuffer" then
    tag = "$bytes"
  end
  local text = type(value) == "table" and value.number or value
  if tag == "$float32" or tag == "$float64" then text = float_text(float(text), tag == "$float32") end
  return tagged(tag, text)
end

---- converters

--- Fails with a table {class, message, detail} from an lc_err_t.
function _M.raise(err)
  error({ class = err.cls ~= nil and ffi.string(err.cls) or "", message = core.msg(err),
          detail = ffi.string(err.detail), kind = tonumber(err.kind) }, 0)
end

--- Fails a spec with what pcall caught: one of raise's tables as its class and message.
function _M.fail(err)
  error(type(err) == "table" and err.class and (err.class .. ": " .. err.message) or err, 0)
end

--- An instance by class name; config: a Lua table of strings.
function place:converter(name, config, role)
  local cls = C.lc_converter_class_find(name)
  assert(cls ~= nil, "no converter " .. name)
  local err = core.err()
  local cv = cls.create(cls, core.props(config or {}), role or "value", err)
  if cv == nil then _M.raise(err) end
  self.converters[#self.converters + 1] = cv
  return cv
end

--- Bytes -> value, schema. bytes nil: null.
function place:to_connect(cv, bytes, header)
  local err = core.err()
  local schema, value = ffi.new "const lc_schema_t *[1]", self:items(1)
  local slice = ffi.new "lc_slice_t"
  if bytes then slice.p, slice.len = self:copy(bytes), #bytes end
  if cv.cls.to_connect(cv, "topic", header, slice, self.arena, schema, value, err) < 0 then _M.raise(err) end
  return value[0], schema[0] ~= nil and schema[0] or nil
end

--- Value -> bytes or nil.
function place:from_connect(cv, schema, value, header)
  local err, out = core.err(), ffi.new "lc_slice_t"
  if cv.cls.from_connect(cv, "topic", header, schema, value, self.arena, out, err) < 0 then _M.raise(err) end
  return out.p ~= nil and ffi.string(out.p, out.len) or nil
end

--- Configuration of the converter that read inputs and printed `json` for the recordings.
_M.plain = { ["replace.null.with.default"] = "false" }

--- The `data` of a recording as value, schema.
function place:data(n)
  local value = self:items(1)
  if n == nil or n == _M.null then return self:typed(nil, value[0]), nil end
  if _M.get(n, "schemaless") ~= nil then
    local cv = self:converter("JsonConverter", { ["schemas.enable"] = "false" })
    local v, s = self:to_connect(cv, _M.write(_M.get(n, "schemaless")))
    self:as_hash_map(v)
    return v, s
  end
  if _M.get(n, "typed") ~= nil then
    local schema = self:schema(_M.get(n, "schema"))
    return self:typed(_M.get(n, "typed"), value[0], schema), schema
  end
  local v, s = self:to_connect(self:converter("JsonConverter", _M.plain), _M.write(n))
  self:as_hash_map(v)
  return v, s
end

--- A schema as JSON text.
function _M.schema_text(schema)
  local b, options, err = ffi.new "lc_buf_t", ffi.new "lc_json_options_t", core.err()
  options.replace_null_with_default = true
  assert(C.lc_json_write_schema(options, schema, b, err) == 0, core.msg(err))
  local s = ffi.string(b.p, b.len)
  C.lc_buf_free(b)
  return s
end

--- String.valueOf as Java prints it.
function _M.java_text(value, schema)
  local b = ffi.new "lc_buf_t"
  assert(C.lc_value_to_java_string(value, schema, b) == 0)
  local s = b.p ~= nil and ffi.string(b.p, b.len) or ""
  C.lc_buf_free(b)
  return s
end

return _M
