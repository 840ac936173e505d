-- transforms/cast.lua: the whole key or value, or fields of it, as another type.
local connect = require "connect"
local cells = require "connect.cells"
local java = require "connect.java"
local rows = require "connect.rows"

local TARGETS = "[INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING]"
local ALLOWED = { INT8 = true, INT16 = true, INT32 = true, INT64 = true, FLOAT32 = true, FLOAT64 = true, BOOLEAN = true,
  STRING = true }
local OTHERS = { BYTES = true, ARRAY = true, MAP = true, STRUCT = true }

local function trim(s) return (s:gsub("^[%z\1- ]+", ""):gsub("[%z\1- ]+$", "")) end

-- Java's split(":"): empty parts at the end are lost.
local function split(item)
  local parts = {}
  for part in (item .. ":"):gmatch "([^:]*):" do parts[#parts + 1] = part end
  while #parts > 1 and parts[#parts] == "" do parts[#parts] = nil end
  return parts
end

-- The type that a text names, or nil and the message of Java's ConfigException.
local function target_of(text)
  text = trim(text)
  local name = text:upper()
  if ALLOWED[name] then return cells[name] end
  if OTHERS[name] then
    return nil, ("Cast transformation does not support casting to %s; supported types are %s"):format(name, TARGETS)
  end
  return nil, ("Invalid value java.lang.IllegalArgumentException: No enum constant "
    .. "org.apache.kafka.connect.data.Schema.Type.%s for configuration Invalid type found in casting spec: %s"):format(
      name, text)
end

-- { fields = { name = type }, order = names, whole = type } of the list, or nil and the message.
local function parse(spec)
  if spec == nil or #spec == 0 then return nil, "Must specify at least one field to cast." end
  local out = { fields = {}, order = {} }
  for _, item in ipairs(spec) do
    local parts = split(item)
    if #parts > 2 then
      return nil, ("Invalid value [%s] for configuration renames: Invalid rename mapping: %s"):format(
        table.concat(spec, ", "), item)
    end
    local target, message = target_of(parts[#parts])
    if not target then return nil, message end
    if #parts == 1 then
      out.whole = target
    else
      local name = trim(parts[1])
      if not out.fields[name] then out.order[#out.order + 1] = name end
      out.fields[name] = target
    end
  end
  if out.whole and #spec > 1 then
    return nil, "Cast transformations that specify a type to cast the entire value to may only specify a single cast "
      .. "in their spec"
  end
  return out
end

local default -- one for all: builders copy it

-- The default of a schema in the type of what is being built.
local function cast_default(builder, schema, target)
  if not schema.has_default or schema.def.type == cells.NULL then return end
  default = default or cells.cell()
  java.cast_default(default, schema, schema.def, target)
  builder:default(default)
end

local function plan_of(self, schema)
  if self.whole then
    local builder = cells.builder(self.whole):basics(schema):optional(schema.optional)
    cast_default(builder, schema, self.whole)
    return { schema = builder:finish() }
  end
  if schema.type ~= cells.STRUCT then cells.data_error "Cannot list fields on non-struct type" end
  local builder, targets, index = cells.builder(cells.STRUCT):basics(schema), {}, {}
  for i = 0, schema.nfields - 1 do
    local f = schema.fields[i]
    local name = cells.ffi.string(f.name)
    local target = self.fields[name]
    index[i + 1] = target and -1 or i
    if target then
      local field = cells.builder(target):optional(f.schema.optional)
      cast_default(field, f.schema, target)
      builder:field(name, field:finish())
      targets[#targets + 1] = { at = i, type = target }
    else
      builder:field(name, f.schema)
    end
  end
  builder:optional(schema.optional)
  cast_default(builder, schema, cells.STRUCT)
  return { schema = builder:finish(), targets = targets, index = cells.indices(index) }
end

local function with_schema(self, r, slot, schema)
  local plan, v, out = self.plans:get(schema), r[slot], self.out
  if self.whole then
    java.cast(r, out, schema, v, self.whole)
    return cells.set(r, slot, out, plan.schema)
  end
  cells.require_struct(v, "cast types")
  cells.struct(r, out, plan.schema)
  local n = 1
  local targets = plan.targets
  for i = 0, schema.nfields - 1 do
    local from, t = cells.read(v, i, self.defaults), targets[n]
    if t and t.at == i then
      java.cast(r, self.field, schema.fields[i].schema, from, t.type)
      cells.put(out, i, self.field)
      n = n + 1
    else
      cells.put(out, i, from)
    end
  end
  cells.set(r, slot, out, plan.schema)
end

local function schemaless(self, r, slot)
  local v, out = r[slot], self.out
  if self.whole then
    java.cast(r, out, nil, v, self.whole)
    return cells.set(r, slot, out, nil)
  end
  cells.require_map(v, "cast types")
  cells.map(r, out, v, #self.order)
  for i = 1, #self.order do
    local name = self.order[i]
    local from = cells.get(v, name)
    if from then java.cast(r, self.field, nil, from, self.fields[name]) else cells.set_null(self.field) end
    cells.copy(cells.map_put(r, out, name), self.field)
  end
  cells.set(r, slot, out, nil)
end

return connect.transform {
  name = "Cast",
  class = "org.apache.kafka.connect.transforms.Cast",
  on = { "key", "value" },
  doc = "Cast fields or the entire key or value to a specific type, e.g. to force an integer field to a smaller width. "
    .. "Cast from integers, floats, boolean and string to any other type, and cast binary to string (base64 encoded).",
  config = {
    { "spec", type = "list", required = true, importance = "high",
      doc = "List of fields and the type to cast them to of the form field1:type,field2:type to cast fields of Maps or "
        .. "Structs. A single type to cast the entire value. Valid types are int8, int16, int32, int64, float32, "
        .. "float64, boolean, and string. Note that binary fields can only be cast to string." },
    rows.replace_null_with_default,
  },
  validate = function(config)
    local _, message = parse(config.spec)
    if message then return { spec = message } end
  end,

  configure = function(self, config)
    local spec, message = parse(config.spec)
    if not spec then cells.config_error(message) end
    self.whole, self.fields, self.order = spec.whole, spec.fields, java.hash_order(spec.order)
    self.defaults = config["replace.null.with.default"]
    self.out, self.field = cells.cell(), cells.cell()
    self.plans = cells.plans(function(schema) return plan_of(self, schema) end)
  end,

  apply_cells = function(self, r, slot)
    if r[slot].type == cells.NULL then return end
    local schema = cells.schema(r, slot)
    if schema == nil then return schemaless(self, r, slot) end
    with_schema(self, r, slot, schema)
  end,

  examples = {
    { config = { spec = "age:int32,ok:boolean" }, input = { topic = "t", value = { age = "42", ok = "TRUE" } },
      output = { topic = "t", value = { age = 42, ok = true } } },
    { config = { spec = "string" }, input = { topic = "t", value = 1.5 }, output = { topic = "t", value = "1.5" } },
  },
}
