-- spec/support/random_data.lua: random schemas, values that are valid for them, and values with one fault, as the JSON
-- texts that spec/support/data.lua reads. The same seed gives the same texts everywhere.
local data = require "spec.support.data"

local _M = {}

local Random = {}
Random.__index = Random

function _M.new(seed) return setmetatable({ state = seed % 2147483646 + 1 }, Random) end

--- 0 to n - 1.
function Random:below(n)
  self.state = self.state * 16807 % 2147483647
  return math.floor(self.state / 7) % n
end

function Random:pick(list) return list[self:below(#list) + 1] end

function Random:maybe(n) return self:below(n) == 0 end

local C = "org.apache.kafka.connect.data."
local PLAIN = { "int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "bytes" }
local LOGICAL = { { "bytes", "Decimal" }, { "int32", "Date" }, { "int32", "Time" }, { "int64", "Timestamp" } }
local NAMES = { "id", "name", "a", "b", "a.b", "", "ts", "x`y", "\195\164", "very_long_name_of_a_field" }
local TEXTS = { "", "a", "null", "true", "5", "\195\164\226\130\172", "\240\159\152\128", "two\nlines", "a\\\"b", "\1", ("x"):rep(300) }

local function quote(s)
  return '"' .. s:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
end

local EDGES = {
  int8 = { "0", "-1", "127", "-128" }, int16 = { "0", "128", "32767", "-32768" }, int32 = { "0", "-32769", "2147483647", "-2147483648" },
  int64 = { "0", "9007199254740993", "-9007199254740993", "9223372036854775807", "-9223372036854775808", "4294967296" },
  float = { "0.0", "1.5", "-0.1", "3.4028235E38", "1.4E-45", "16777216.0" },
  double = { "0.0", "0.1", "-1.0E-5", "1.7976931348623157E308", "4.9E-324", "9007199254740993.0", "1.0E7" },
  odd_float = { "NaN", "Infinity", "-Infinity", "-0.0" },
}

function Random:number(type)
  if self:maybe(3) then return self:pick(EDGES[type]) end
  local n = self:below(1000000) - 500000
  if type == "int8" then return tostring(n % 256 - 128) end
  if type == "int16" then return tostring(n % 65536 - 32768) end
  if type == "float" then return tostring(n / 64) .. (n % 64 == 0 and ".0" or "") end
  if type == "double" then return ("%.17g"):format(n / 1000 + 0.5):gsub("^(%-?%d+)$", "%1.0") end
  return tostring(n)
end

--- A value of a plain or logical type as a typed literal. odd: also floats that JSON has no number for.
function Random:scalar(s, odd)
  if s.logical == "Decimal" then
    local digits = self:pick { "0", "5", "-1", "123456789012345678901234567890", "-99999999999999999999", "127", "128", "-128" }
    return ('{"$decimal":"%sE%d"}'):format(digits, -s.scale)
  elseif s.logical == "Date" then
    return ('{"$date":%d}'):format((self:below(40000) - 20000) * 86400000)
  elseif s.logical == "Time" then
    return ('{"$date":%d}'):format(self:pick { 0, 1, 86399999, 12345678 })
  elseif s.logical == "Timestamp" then
    return ('{"$date":%s}'):format(self:pick { "0", "-1", "1714557600123", "9007199254740993", "-62135769600001" })
  end
  local t = s.type
  if t == "boolean" then return tostring(self:maybe(2)) end
  if t == "string" then return quote(self:pick(TEXTS)) end
  if t == "bytes" then return '{"$bytes":"' .. data.base64(self:pick { "", "\0", "\255\254", "abc", "\128\0\1" }) .. '"}' end
  if t == "float" or t == "double" then
    local n = odd and self:maybe(4) and self:pick(EDGES.odd_float) or self:number(t)
    return ('{"$%s":"%s"}'):format(t == "float" and "float32" or "float64", n)
  end
  return ('{"$%s":%s}'):format(t, self:number(t))
end

-- A default: JsonConverter's form of a scalar.
function Random:default(s)
  local t = s.type
  if s.logical == "Decimal" then return '"AQ=="' end
  if s.logical == "Date" or s.logical == "Time" then return tostring(self:below(20000)) end
  if t == "boolean" then return "true" end
  if t == "string" then return quote(self:pick(TEXTS)) end
  if t == "bytes" then return '"AAE="' end
  return self:number(t)
end

--- A schema as a table: type, optional, name, version, doc, params, default (JSON), and fields, key, elem.
function Random:schema(depth)
  local s = { optional = self:maybe(3) }
  local kind = self:below(depth > 0 and 10 or 5)
  if kind < 4 then
    s.type = self:pick(PLAIN)
  elseif kind == 4 then
    local l = self:pick(LOGICAL)
    s.type, s.logical, s.name, s.version = l[1], l[2], C .. l[2], 1
    s.scale = s.logical == "Decimal" and self:pick { 0, 2, -3, 20 } or nil
  elseif kind < 7 then
    s.type, s.fields = "struct", {}
    local seen = {}
    for _ = 1, self:below(5) do
      local name = self:pick(NAMES)
      if name ~= "" and not seen[name] then
        seen[name] = true
        s.fields[#s.fields + 1] = { name = name, schema = self:schema(depth - 1) }
      end
    end
  elseif kind < 9 then
    s.type, s.elem = "array", self:schema(depth - 1)
  else
    s.type, s.key, s.elem = "map", self:schema(0), self:schema(depth - 1)
    s.key.optional, s.key.default = false, nil
  end
  if not s.logical and self:maybe(3) then s.name = self:pick { "N", "com.example.Money", "x y" } end
  if not s.logical and self:maybe(4) then s.version = self:pick { 0, 1, -7, 2147483647 } end
  if self:maybe(5) then s.doc = self:pick(TEXTS) end
  if self:maybe(5) then s.params = { { "p", self:pick(TEXTS) }, { "q", "w" } } end
  if not s.elem and not s.fields and self:maybe(4) then s.default = self:default(s) end
  return s
end

--- Its JSON text, as JsonConverter writes it.
function _M.schema_json(s, field)
  local out = { '{"type":"' .. s.type .. '"' }
  local function add(name, text) out[#out + 1] = '"' .. name .. '":' .. text end
  if s.fields then
    local fields = {}
    for i, f in ipairs(s.fields) do fields[i] = _M.schema_json(f.schema, f.name) end
    add("fields", "[" .. table.concat(fields, ",") .. "]")
  end
  if s.key then
    add("keys", _M.schema_json(s.key))
    add("values", _M.schema_json(s.elem))
  elseif s.elem then
    add("items", _M.schema_json(s.elem))
  end
  add("optional", tostring(s.optional))
  if s.name then add("name", quote(s.name)) end
  if s.version then add("version", ("%d"):format(s.version)) end
  if s.doc then add("doc", quote(s.doc)) end
  local params = {}
  if s.scale then params[1] = ('"scale":"%d"'):format(s.scale) end
  for _, p in ipairs(s.params or {}) do params[#params + 1] = quote(p[1]) .. ":" .. quote(p[2]) end
  if #params > 0 then add("parameters", "{" .. table.concat(params, ",") .. "}") end
  if s.default then add("default", s.default) end
  if field then add("field", quote(field)) end
  return table.concat(out, ",") .. "}"
end

-- What is wrong for a schema: a value of another Java class, or null where there must be something.
function Random:wrong(s)
  local choices = {}
  if not s.optional then choices[1] = "null" end
  local classes = { int8 = '{"$int8":1}', int16 = '{"$int16":1}', int32 = '{"$int32":1}', int64 = '{"$int64":1}',
    float = '{"$float32":"1.0"}',
    double = '{"$float64":"1.0"}', boolean = "true", string = '"x"', bytes = '{"$bytes":"AA=="}', array = "[]", map = '{"$map":[]}',
    Decimal = '{"$decimal":"1"}', Date = '{"$date":0}' }
  local own = s.logical and (s.logical == "Decimal" and "Decimal" or "Date") or s.type
  local names = {}
  for name in pairs(classes) do if name ~= own then names[#names + 1] = name end end
  table.sort(names)
  for _ = 1, 3 do choices[#choices + 1] = classes[self:pick(names)] end
  return self:pick(choices)
end

--- A value of a schema as a typed literal. fault: { left = n }: the n-th place gets a wrong value, fault.done tells so.
function Random:value(s, odd, fault, required)
  if fault then
    fault.left = fault.left - 1
    if fault.left == 0 then
      fault.done = true
      return self:wrong(s)
    end
  end
  if s.optional and not required and self:maybe(4) then return "null" end
  local out = {}
  if s.fields then
    for i, f in ipairs(s.fields) do out[i] = quote(f.name) .. ":" .. self:value(f.schema, odd, fault) end
    return '{"$struct":{' .. table.concat(out, ",") .. "}}"
  elseif s.key then
    local seen = {}
    for _ = 1, self:below(4) do
      local key = self:value(s.key, odd, fault, true)
      if not seen[key] then
        seen[key] = true
        out[#out + 1] = "[" .. key .. "," .. self:value(s.elem, odd, fault) .. "]"
      end
    end
    return '{"$map":[' .. table.concat(out, ",") .. "]}"
  elseif s.elem then
    for i = 1, self:below(4) do out[i] = self:value(s.elem, odd, fault) end
    return "[" .. table.concat(out, ",") .. "]"
  end
  return self:scalar(s, odd)
end

return _M
