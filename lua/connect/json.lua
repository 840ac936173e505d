-- connect/json.lua: JSON by the core's reader and writer: integers keep all digits (int64_t beyond 2^53),
-- null is connect.null, objects are ordered maps, arrays stay arrays.
local fx = require "connect.ffi"
local values = require "connect.values"

local ffi, C = fx.ffi, fx.C
local null, Array, Map, Bytes, Float = values.null, values.Array, values.Map, values.Bytes, values.Float
local map_set, integer = values.map_set, values.integer
local ffi_string = ffi.string

local _M = {}

local NULL, TRUE, FALSE, NUMBER, STRING, ARRAY = 0, 1, 2, 3, 4, 5
local exact = ffi.new "bool[1]"

local build

-- Set while a text is decoded whose floats must stay floats.
local keep_floats = false

local function number(node)
  if node.integral then
    local i = C.lc_json_int64(node, exact)
    if exact[0] then return integer(i) end
    return tonumber(ffi_string(node.s, node.len))
  end
  local d = C.lc_json_double(node)
  return keep_floats and values.float(d) or d
end

function build(node, plain)
  local t = tonumber(node.type)
  if t == STRING then return ffi_string(node.s, node.len) end
  if t == NUMBER then return number(node) end
  if t == TRUE then return true end
  if t == FALSE then return false end
  if t == NULL then return null end
  local child = node.child
  if t == ARRAY then
    local out, n = {}, 0
    while child ~= nil do
      n = n + 1
      out[n] = build(child, plain)
      child = child.next
    end
    return setmetatable(out, Array)
  end
  local out = plain and {} or values.map()
  while child ~= nil do
    local k = ffi_string(child.key, child.key_len)
    if plain then out[k] = build(child, plain) else map_set(out, k, build(child, plain)) end
    child = child.next
  end
  return out
end

--- Value of a JSON text, or nil and a message with line and column. `plain`: objects as plain tables; `floats`:
-- numbers with a fraction or an exponent come as connect.float, so 3.0 is not 3.
function _M.decode(text, plain, floats)
  local doc = ffi.new "lc_json_t *[1]"
  local err = fx.err()
  if C.lc_json_parse(text, #text, 0, doc, err) < 0 then return nil, ffi_string(err.msg) end
  if doc[0] == nil then return nil, "empty text" end
  local root = ffi.gc(doc[0], C.lc_json_free)
  keep_floats = floats or false
  local v = build(root, plain)
  keep_floats = false
  C.lc_json_free(ffi.gc(root, nil))
  return v
end

local buf = ffi.gc(ffi.new "lc_buf_t", C.lc_buf_free)

local function quoted(s)
  C.lc_buf_clear(buf)
  C.lc_json_write_string(buf, s, #s)
  return ffi_string(buf.p, buf.len)
end

local function double(d)
  if d ~= d or d == math.huge or d == -math.huge then error("JSON has no number for " .. tostring(d), 0) end
  C.lc_buf_clear(buf)
  C.lc_java_double(buf, d)
  return ffi_string(buf.p, buf.len)
end

local write

local function list(t, n, out, depth)
  out[#out + 1] = "["
  for i = 1, n do
    if i > 1 then out[#out + 1] = "," end
    write(t[i], out, depth + 1)
  end
  out[#out + 1] = "]"
end

local function object(pairs_of, out, depth)
  local first = true
  out[#out + 1] = "{"
  for k, v in pairs_of do
    if not first then out[#out + 1] = "," end
    first = false
    out[#out + 1] = quoted(values.tostring(k))
    out[#out + 1] = ":"
    write(v, out, depth + 1)
  end
  out[#out + 1] = "}"
end

local function sorted(t)
  local keys, i = {}, 0
  for k in pairs(t) do
    if type(k) ~= "string" then error("an object's key must be a text, got " .. type(k), 0) end
    keys[#keys + 1] = k
  end
  table.sort(keys)
  return function()
    i = i + 1
    if keys[i] then return keys[i], t[keys[i]] end
  end
end

function write(v, out, depth)
  local t = type(v)
  if depth > 200 then error("nested deeper than 200 levels, or within itself", 0) end
  if v == nil or v == null then
    out[#out + 1] = "null"
  elseif t == "string" then
    out[#out + 1] = quoted(v)
  elseif t == "number" then
    if v == math.floor(v) and v >= -2 ^ 53 and v <= 2 ^ 53 then
      out[#out + 1] = ("%d"):format(v)
    else
      out[#out + 1] = double(v)
    end
  elseif t == "boolean" then
    out[#out + 1] = tostring(v)
  elseif t == "cdata" and values.is_int64(v) then
    out[#out + 1] = values.tostring(v)
  elseif t ~= "table" then
    error("a " .. t .. " cannot be written as JSON", 0)
  else
    local mt = getmetatable(v)
    if mt == Map then
      object(values.map_pairs(v), out, depth)
    elseif mt == Array then
      list(v, #v, out, depth)
    elseif mt == Float then
      out[#out + 1] = double(v[1])
    elseif mt == Bytes then
      out[#out + 1] = quoted(v[1])
    elseif mt == values.Data then
      out[#out + 1] = v.ms and values.tostring(v.ms) or quoted(tostring(v))
    elseif #v > 0 then
      list(v, #v, out, depth)
    else
      object(sorted(v), out, depth)
    end
  end
end

--- JSON text of a value, or nil and a message. Plain tables: lists by their length, else objects, sorted.
function _M.encode(v)
  local out = {}
  local ok, err = pcall(write, v, out, 0)
  if not ok then return nil, tostring(err) end
  return table.concat(out)
end

return _M
