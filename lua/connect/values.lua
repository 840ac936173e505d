-- connect/values.lua: what Lua has no type for: null, arrays, ordered maps, floats, bytes, dates, decimals.
local ffi = require "ffi"
local host = require "connect.host"

local _M = {}

local null = setmetatable({}, {
  __tostring = function() return "null" end,
  __newindex = function() error("connect.null cannot be changed", 2) end,
})
_M.null = null

-- arrays ----------------------------------------------------------------------------------------
local Array = {}
Array.__index = Array

--- A list that stays a list, empty or not; holes become connect.null. The table itself is tagged.
function _M.array(t)
  t = t or {}
  for i = 1, table.maxn(t) do
    if t[i] == nil then t[i] = null end
  end
  return setmetatable(t, Array)
end

function _M.is_array(v) return type(v) == "table" and getmetatable(v) == Array end

-- bytes, floats, dates and decimals ----------------------------------------------------------------
local Bytes = {}
Bytes.__index = Bytes
function Bytes.__tostring(b) return b[1] end
function Bytes.__eq(a, b) return a[1] == b[1] end
function Bytes.__concat(a, b) return tostring(a) .. tostring(b) end

--- Bytes, where a Lua string would be taken for text.
function _M.bytes(s)
  if type(s) ~= "string" then error("connect.bytes: a string expected, got " .. type(s), 2) end
  return setmetatable({ s }, Bytes)
end

local Float = {}
Float.__index = Float
function Float.__tostring(f) return tostring(f[1]) end
function Float.__eq(a, b) return a[1] == b[1] end

--- A number that is written as a float even when it is whole.
function _M.float(n)
  if type(n) ~= "number" then error("connect.float: a number expected, got " .. type(n), 2) end
  return setmetatable({ n }, Float)
end

local Data = {}
Data.__index = Data
function Data.__eq(a, b)
  return a.type == b.type and a.ms == b.ms and a.unscaled == b.unscaled and a.scale == b.scale
end
function Data.__tostring(d) return d.text or tostring(d.ms) end

--- connect.data: date(ms), time(ms), timestamp(ms), decimal(unscaled bytes, scale).
_M.data = {}
for _, name in ipairs { "date", "time", "timestamp" } do
  _M.data[name] = function(ms) return setmetatable({ type = name, ms = ms }, Data) end
end
function _M.data.decimal(unscaled, scale, text)
  return setmetatable({ type = "decimal", unscaled = unscaled, scale = scale, text = text }, Data)
end

-- maps ------------------------------------------------------------------------------------------
-- The entries are behind a private key, so that any name is free for the user.
local ENTRIES = {}
local int64, uint64 = ffi.typeof "int64_t", ffi.typeof "uint64_t"
local methods = {}
local Map = {}

-- Keys are equal by value: int64 cdata, bytes, dates and decimals by what they hold. Floats as in Java: NaN is a key,
-- and -0.0 another one than 0.0.
local function key_of(k)
  local t = type(k)
  if t == "string" then return k:byte(1) == 0 and "\0s" .. k or k end
  if t == "number" then return k ~= k and "\0nan" or k == 0 and 1 / k < 0 and "\0-0" or k end
  if t == "cdata" then return "\0i" .. tostring(k) end
  if t == "table" then
    local mt = getmetatable(k)
    if mt == Bytes then return "\0b" .. k[1] end
    if mt == Float then return "\0f" .. tostring(k[1]) end
    if mt == Data then return "\0d" .. k.type .. tostring(k.ms) .. tostring(k.scale) .. ":" .. tostring(k.unscaled) end
  end
  return k
end

local function set(map, k, v)
  local e = rawget(map, ENTRIES)
  if k == nil then k = null end
  local id = key_of(k)
  local at = e.at[id]
  if v == nil then
    if at then
      e.at[id], e.keys[at], e.values[at] = nil, nil, nil
      e.count = e.count - 1
    end
    return
  end
  if not at then
    at = e.last + 1
    e.last = at
    e.at[id] = at
    e.keys[at] = k
    e.count = e.count + 1
  end
  e.values[at] = v
end

local function get(map, k)
  local e = rawget(map, ENTRIES)
  if k == nil then k = null end
  local at = e.at[key_of(k)]
  if at then return e.values[at] end
end

function Map.__index(map, k)
  local v = get(map, k)
  if v == nil then return methods[k] end
  return v
end
Map.__newindex = set

--- map:get(key), map:set(key, value): any key, also one called "get".
methods.get, methods.set = get, set

--- for key, value in map:pairs() do: in the order of first insertion.
function methods.pairs(map)
  local e = rawget(map, ENTRIES)
  local i = 0
  return function()
    while i < e.last do
      i = i + 1
      if e.keys[i] ~= nil then return e.keys[i], e.values[i] end
    end
  end
end

--- map:len(): how many entries.
function methods.len(map) return rawget(map, ENTRIES).count end

--- An ordered map. From a plain table (keys sorted) or empty.
function _M.map(t)
  local map = setmetatable({ [ENTRIES] = { at = {}, keys = {}, values = {}, last = 0, count = 0 } }, Map)
  if t then
    local keys = {}
    for k in pairs(t) do keys[#keys + 1] = k end
    table.sort(keys, function(a, b)
      if type(a) == type(b) and (type(a) == "string" or type(a) == "number") then return a < b end
      return tostring(a) < tostring(b)
    end)
    for _, k in ipairs(keys) do set(map, k, t[k]) end
  end
  return map
end

--- The methods as functions, for maps with keys of the same names.
_M.map_get, _M.map_set, _M.map_pairs = get, set, methods.pairs

function _M.is_map(v) return type(v) == "table" and getmetatable(v) == Map end

--- Entries as one list {key, value, key, value, ...} and their count.
function _M.map_flat(map)
  local out, n = {}, 0
  for k, v in methods.pairs(map) do
    out[2 * n + 1], out[2 * n + 2] = k, v
    n = n + 1
  end
  return out, n
end

-- numbers ---------------------------------------------------------------------------------------
local EXACT = 2 ^ 53

--- An int64_t as a number where that loses nothing, else as it is.
function _M.integer(i)
  if i >= -EXACT and i <= EXACT then return tonumber(i) end
  return int64(i)
end

local MOST, LEAST = "9223372036854775807", "9223372036854775808"

--- "9223372036854775807" as int64_t, or as a number where that loses nothing; whole numbers and int64_t as they
-- are. nil and a message for what is none, or beyond 64 bits.
function _M.int64(text)
  if type(text) == "number" and text == math.floor(text) and text >= -2 ^ 63 and text < 2 ^ 63 then
    return _M.integer(ffi.cast(int64, text))
  end
  if type(text) == "cdata" and ffi.istype(int64, text) then return _M.integer(text) end
  local negative, digits
  if type(text) == "string" then negative, digits = text:match "^(%-?)0*(%d+)$" end
  if not digits then return nil, ("not a whole number: %s"):format(_M.tostring(text)) end
  local most = negative == "-" and LEAST or MOST
  if #digits > #most or #digits == #most and digits > most then
    return nil, ("beyond 64 bits: %s"):format(text)
  end
  local v = uint64(0)
  for d in digits:gmatch "%d" do v = v * 10 + tonumber(d) end
  local i = ffi.cast(int64, v)
  return _M.integer(negative == "-" and -i or i)
end

function _M.is_int64(v) return ffi.istype(int64, v) end

-- tools -----------------------------------------------------------------------------------------

--- A copy that can be changed: tables at every depth, with what they are tagged as.
function _M.copy(v)
  if type(v) ~= "table" or v == null then return v end
  local mt = getmetatable(v)
  if mt == Map then
    local out = _M.map()
    for k, x in methods.pairs(v) do set(out, k, _M.copy(x)) end
    return out
  end
  local out = {}
  for k, x in pairs(v) do out[k] = _M.copy(x) end
  return setmetatable(out, mt)
end

--- Text of a value: integers without LL, tables as JSON.
function _M.tostring(v)
  if type(v) == "cdata" and (ffi.istype(int64, v) or ffi.istype(uint64, v)) then
    return (tostring(v):gsub("U?LL$", ""))
  end
  if type(v) == "number" and v == math.floor(v) and v > -EXACT and v < EXACT then return ("%d"):format(v) end
  if type(v) == "table" and (getmetatable(v) == nil or _M.is_map(v) or _M.is_array(v)) then
    return (require("connect.json").encode(v))
  end
  return tostring(v)
end

_M.Array, _M.Map, _M.Bytes, _M.Float, _M.Data = Array, Map, Bytes, Float, Data

if host.value_types then
  host.value_types {
    null = null, array = Array, map = Map, float = Float, bytes = Bytes, data = Data,
    map_flat = _M.map_flat, classify = _M.is_int64,
  }
end

return _M
