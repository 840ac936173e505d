-- transforms/mask_field.lua: fields with a null-like value of their type, or with a replacement.
local connect = require "connect"
local cells = require "connect.cells"
local java = require "connect.java"
local rows = require "connect.rows"

local PURPOSE = "mask fields"

-- out = the value that means nothing for v's type.
local function blank(self, r, out, v)
  local t = v.type
  if t >= cells.INT8 and t <= cells.INT64 or t == cells.BOOLEAN or t >= cells.DATE and t <= cells.TIMESTAMP then
    cells.set_int(out, t, 0)
  elseif t == cells.FLOAT32 then
    cells.set_float32(out, 0)
  elseif t == cells.FLOAT64 then
    cells.set_float64(out, 0)
  elseif t == cells.STRING then
    cells.copy(out, self.empty.value)
  elseif t == cells.DECIMAL then
    java.convert_number(r, out, "0", v)
  elseif t == cells.ARRAY then
    cells.array(r, out, 0)
  elseif t == cells.MAP then
    cells.map(r, out, nil)
  else
    cells.data_error("Cannot mask value of type: class %s", cells.class_name(v))
  end
end

local function replaced(self, r, out, v)
  local t, text = v.type, self.replacement
  if t == cells.STRING then
    cells.set_text(r, out, text)
  elseif t >= cells.INT8 and t <= cells.FLOAT64 or t == cells.DECIMAL then
    java.convert_number(r, out, text, v)
  else
    cells.data_error("Cannot mask value of type class %s with custom replacement.", cells.class_name(v))
  end
end

local function mask(self, r, out, v)
  if v.type == cells.NULL then return cells.copy(out, v) end
  if self.replacement then return replaced(self, r, out, v) end
  blank(self, r, out, v)
end

local function plan_of(self, schema)
  local list, index = {}, {}
  if schema.type == cells.STRUCT then
    for i = 0, schema.nfields - 1 do
      local masked = self.names[cells.ffi.string(schema.fields[i].name)]
      index[i + 1] = masked and -1 or i
      if masked then list[#list + 1] = i end
    end
  end
  return { list = list, index = cells.indices(index) }
end

local function with_schema(self, r, slot, schema)
  local v, out = r[slot], self.out
  cells.require_struct(v, PURPOSE)
  local plan = self.plans:get(v.u.st.schema)
  cells.struct(r, out, v.u.st.schema)
  for i = 0, v.u.st.schema.nfields - 1 do
    local from = cells.read(v, i, self.defaults)
    if plan.index[i] < 0 then
      mask(self, r, self.field, from)
      cells.put(out, i, self.field)
    else
      cells.put(out, i, from)
    end
  end
  cells.set(r, slot, out, schema)
end

local function schemaless(self, r, slot)
  local v, out = r[slot], self.out
  cells.require_map(v, PURPOSE)
  cells.map(r, out, v, #self.fields)
  for i = 1, #self.fields do
    local from = cells.get(v, self.fields[i])
    if from then mask(self, r, self.field, from) else cells.set_null(self.field) end
    cells.copy(cells.map_put(r, out, self.fields[i]), self.field)
  end
  cells.set(r, slot, out, nil)
end

return connect.transform {
  name = "MaskField",
  class = "org.apache.kafka.connect.transforms.MaskField",
  on = { "key", "value" },
  doc = "Mask specified fields with a valid null value for the field type (i.e. 0, false, empty string, and so on)."
    .. "<p/>For numeric and string fields, an optional replacement value can be specified that is converted to the "
    .. "correct type.",
  config = {
    { "fields", type = "list", required = true, distinct = true, non_empty = true, importance = "high",
      doc = "Names of fields to mask." },
    { "replacement", non_empty = true, importance = "low",
      doc = "Custom value replacement, that will be applied to all 'fields' values (numeric or non-empty string values "
        .. "only)." },
    rows.replace_null_with_default,
  },

  configure = function(self, config)
    self.fields, self.names, self.replacement = java.hash_order(config.fields), {}, config.replacement
    for _, f in ipairs(self.fields) do self.names[f] = true end
    self.defaults = config["replace.null.with.default"]
    self.empty, self.out, self.field = cells.constant "", cells.cell(), cells.cell()
    self.plans = cells.plans(function(schema) return plan_of(self, schema) end)
  end,

  apply_cells = function(self, r, slot)
    local schema = cells.schema(r, slot)
    if schema == nil then return schemaless(self, r, slot) end
    with_schema(self, r, slot, schema)
  end,

  examples = {
    { config = { fields = "ssn" }, input = { topic = "t", value = { ssn = 1, id = 7 } },
      output = { topic = "t", value = { ssn = 0, id = 7 } } },
    { config = { fields = "card", replacement = "****" }, input = { topic = "t", value = { card = "4711", id = 7 } },
      output = { topic = "t", value = { card = "****", id = 7 } } },
  },
}
