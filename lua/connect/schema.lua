-- connect/schema.lua: schemas of Connect, made in Lua or read from records. Immutable; they may be kept.
local fx = require "connect.ffi"
local ffi, C = fx.ffi, fx.C

local TYPES = {}
for i = 1, 12 do TYPES[fx.type_names[i]] = i end
local LOGICAL = { decimal = 13, date = 14, time = 15, timestamp = 16 }

local Schema = {}
function Schema.__tostring(s) return (s.optional and "optional_" or "") .. s.type end

local _M = {}

local function own(ptr) return ffi.gc(C.lc_schema_ref(ptr), C.lc_schema_unref) end

local function text(p)
  if p ~= nil then return ffi.string(p) end
end

local read

-- Attributes are read when they are asked for: most scripts look at one or two.
local getters = {
  type = function(p) return fx.type_names[tonumber(p.type)] end,
  optional = function(p) return p.optional end,
  name = function(p) return text(p.name) end,
  doc = function(p) return text(p.doc) end,
  version = function(p) return p.has_version and p.version or nil end,
  logical = function(p) return p.logical ~= 0 and fx.type_names[tonumber(p.logical)] or nil end,
  scale = function(p) return p.has_scale and p.scale or nil end,
  key = function(p) return p.key ~= nil and read(p.key) or nil end,
  elem = function(p) return p.elem ~= nil and read(p.elem) or nil end,
  fields = function(p)
    if fx.type_names[tonumber(p.type)] ~= "struct" then return nil end
    local out = {}
    for i = 0, p.nfields - 1 do
      local f = { name = ffi.string(p.fields[i].name), schema = read(p.fields[i].schema) }
      out[i + 1], out[f.name] = f, f
    end
    return out
  end,
  parameters = function(p)
    if p.params == nil then return nil end
    local out = {}
    for i = 0, tonumber(C.lc_props_count(p.params)) - 1 do
      out[ffi.string(C.lc_props_key(p.params, i))] = text(C.lc_props_value(p.params, i))
    end
    return out
  end,
}

function Schema.__index(s, k)
  local getter = getters[k]
  if not getter then return nil end
  local v = getter(s._schema)
  rawset(s, k, v)
  return v
end

function read(ptr) return setmetatable({ _schema = own(ptr) }, Schema) end

--- Schema object of a `const lc_schema_t *`; nil for NULL.
function _M.read(ptr)
  if ptr ~= nil then return read(ptr) end
end

--- The pointer of a schema's name ("string", "optional_int64") or of a schema object.
local function pointer(s, what)
  if type(s) == "table" and getmetatable(s) == Schema then return s._schema end
  if type(s) == "string" then
    local rest = s:match "^optional_(.+)$"
    local code = TYPES[rest or s]
    local p = code and code <= 9 and C.lc_schema_plain(code, rest ~= nil)
    if p and p ~= nil then return p end
    error(("%s: no schema is named %s"):format(what, s), 3)
  end
  error(("%s: a schema or its name expected, got %s"):format(what, type(s)), 3)
end

local function finish(b, options)
  if options.optional then C.lc_schema_builder_optional(b, true) end
  if options.name then C.lc_schema_builder_name(b, options.name) end
  if options.version then C.lc_schema_builder_version(b, options.version) end
  if options.doc then C.lc_schema_builder_doc(b, options.doc) end
  local names = {}
  for k in pairs(options.parameters or {}) do names[#names + 1] = k end
  table.sort(names)
  for _, k in ipairs(names) do C.lc_schema_builder_param(b, k, tostring(options.parameters[k])) end
  local p = C.lc_schema_builder_finish(ffi.gc(b, nil))
  return setmetatable({ _schema = ffi.gc(p, C.lc_schema_unref) }, Schema)
end

local function builder(code) return ffi.gc(C.lc_schema_builder_new(code), C.lc_schema_builder_free) end

--- struct{ {"id", "int64"}, {"name", "string", optional = true}, name =, version =, optional =, doc = }
function _M.struct(def)
  local b = builder(TYPES.struct)
  for i, f in ipairs(def) do
    local what = ("connect.schema.struct: field %s"):format(tostring(f[1] or i))
    local s = f[2]
    if f.optional and type(s) == "string" and not s:find "^optional_" then s = "optional_" .. s end
    local err = fx.err()
    if C.lc_schema_builder_field(b, f[1], pointer(s, what), err) < 0 then fx.raise() end
  end
  return finish(b, def)
end

--- array(element, {optional =, name = ...})
function _M.array(elem, options)
  local b = builder(TYPES.array)
  C.lc_schema_builder_elem(b, pointer(elem, "connect.schema.array"))
  return finish(b, options or {})
end

--- map(key, value, {optional =, name = ...})
function _M.map(key, value, options)
  local b = builder(TYPES.map)
  C.lc_schema_builder_key(b, pointer(key, "connect.schema.map"))
  C.lc_schema_builder_elem(b, pointer(value, "connect.schema.map"))
  return finish(b, options or {})
end

--- A plain type with attributes: plain("string", {name = "my.Name", optional = true}).
function _M.plain(name, options)
  local code = TYPES[name]
  if not code or code > 9 then error("connect.schema.plain: no plain type is called " .. tostring(name), 2) end
  return finish(builder(code), options or {})
end

--- decimal(scale), date(), time(), timestamp(): Connect's logical types; options.optional.
for name, code in pairs(LOGICAL) do
  _M[name] = function(a, b)
    local scale, options = 0, a
    if name == "decimal" then scale, options = a or 0, b end
    local p = C.lc_schema_logical(code, scale, options and options.optional or false)
    return setmetatable({ _schema = ffi.gc(p, C.lc_schema_unref) }, Schema)
  end
end

return _M
