-- transforms/flatten.lua: nested structs or maps as one level, names joined by a delimiter.
local connect = require "connect"
local cells = require "connect.cells"

local PURPOSE = "flattening"

local function join(prefix, name, delimiter)
  if prefix == "" then return name end
  return prefix .. delimiter .. name
end

-- with schemas --------------------------------------------------------------------------------------

-- A leaf's schema: basics, optional if anything above it is, and the default it has or inherits.
local function leaf_schema(schema, optional, default)
  local builder = cells.builder(schema.type):basics(schema)
  if schema.type == cells.ARRAY and schema.elem ~= nil then builder:elem(schema.elem) end
  if optional then builder:optional(true) end
  if default ~= nil and default.type ~= cells.NULL then builder:default(default) end
  return builder:finish()
end

local function collect(self, builder, schema, prefix, optional, default)
  for i = 0, schema.nfields - 1 do
    local f = schema.fields[i]
    local s, name = f.schema, join(prefix, cells.ffi.string(f.name), self.delimiter)
    local may = optional or s.optional
    local own
    if s.has_default and s.def.type ~= cells.NULL then
      own = s.def
    elseif default ~= nil and default.type == cells.STRUCT then
      own = cells.read(default, i, true)
    end
    if s.type == cells.STRUCT then
      collect(self, builder, s, name, may, own)
    elseif s.type == cells.MAP then
      cells.data_error("Flatten transformation does not support MAP for record with schemas (for field %s).", name)
    else
      builder:field(name, leaf_schema(s, may, own))
    end
  end
end

local function plan_of(self, schema)
  local builder = cells.builder(cells.STRUCT):basics(schema)
  collect(self, builder, schema, "", schema.optional, schema.has_default and schema.def or nil)
  return { schema = builder:finish() }
end

-- How many leaves there are below a schema.
local function leaves(schema)
  local n = 0
  for i = 0, schema.nfields - 1 do
    local s = schema.fields[i].schema
    n = n + (s.type == cells.STRUCT and leaves(s) or 1)
  end
  return n
end

-- Fields of the struct v (schema: its own) into out from field `at` on; returns the next one.
local function fill(out, v, schema, at)
  for i = 0, schema.nfields - 1 do
    local s = schema.fields[i].schema
    if s.type == cells.STRUCT then
      local inner = cells.read(v, i, false)
      at = inner.type == cells.STRUCT and fill(out, inner, s, at) or at + leaves(s)
    else
      cells.put(out, at, cells.read(v, i, true))
      at = at + 1
    end
  end
  return at
end

-- without -------------------------------------------------------------------------------------------

local function flatten_map(self, r, out, v, prefix)
  for i = 0, v.len - 1 do
    local key, item = v.u.items[2 * i], v.u.items[2 * i + 1]
    if key.type ~= cells.STRING then
      cells.fail("java.lang.ClassCastException", ("class %s cannot be cast to class java.lang.String"):format(
        cells.class_name(key)))
    end
    local name = join(prefix, cells.text(key), self.delimiter)
    if item.type == cells.MAP then
      flatten_map(self, r, out, item, name)
    elseif item.type == cells.STRUCT then
      cells.data_error("Flatten transformation does not support class %s for record without schemas (for field %s).",
        cells.class_name(item), name)
    elseif item.type > cells.STRUCT then
      cells.data_error("Flatten transformation was passed a value of type class %s which is not supported by Connect's "
        .. "data API", cells.class_name(item))
    else
      cells.copy(cells.map_put(r, out, name), item)
    end
  end
end

return connect.transform {
  name = "Flatten",
  class = "org.apache.kafka.connect.transforms.Flatten",
  on = { "key", "value" },
  doc = "Flatten a nested data structure, generating names for each field by concatenating the field names at each "
    .. "level with a configurable delimiter character. Applies to Struct when schema present, or a Map in the case of "
    .. "schemaless data. Array fields and their contents are not modified. The default delimiter is '.'.",
  config = {
    { "delimiter", default = ".", importance = "medium",
      doc = "Delimiter to insert between field names from the input record when generating field names for the output "
        .. "record" },
  },

  configure = function(self, config)
    self.delimiter, self.out = config.delimiter, cells.cell()
    self.plans = cells.plans(function(schema) return plan_of(self, schema) end)
  end,

  apply_cells = function(self, r, slot)
    local v, schema, out = r[slot], cells.schema(r, slot), self.out
    if v.type == cells.NULL then return end
    if schema == nil then
      cells.require_map(v, PURPOSE)
      cells.map(r, out, nil, v.len)
      flatten_map(self, r, out, v, "")
      return cells.set(r, slot, out, nil)
    end
    cells.require_struct(v, PURPOSE)
    local own = v.u.st.schema
    local plan = self.plans:get(own)
    cells.struct(r, out, plan.schema)
    fill(out, v, own, 0)
    cells.set(r, slot, out, plan.schema)
  end,

  examples = {
    { config = { delimiter = "_" }, input = { topic = "t", value = { a = { b = 1, c = { d = "x" } } } },
      output = { topic = "t", value = { a_b = 1, a_c_d = "x" } } },
  },
}
