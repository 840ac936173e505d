-- ValueToKey: the key becomes a struct or map of some of the value's fields.
local connect = require "connect"
local cells = require "connect.cells"
local rows = require "connect.rows"

local PURPOSE = "copying fields from value to key"

local M = {}

function M:configure(config)
  self.fields, self.many = config.fields, #config.fields
  self.defaults = config["replace.null.with.default"]
  self.out = cells.cell()
  self.plans = cells.plans(function(schema)
    local b, index = cells.builder(cells.STRUCT), {}
    for i, name in ipairs(self.fields) do
      index[i] = cells.field(schema, name)
      if index[i] < 0 then cells.data_error("Field does not exist: %s", name) end
      b:field(name, schema.fields[index[i]].schema)
    end
    return { schema = b:finish(), index = cells.indices(index) }
  end)
end

function M:apply_cells(r)
  local v, out, schema = r.value, self.out, r.value_schema
  if schema == nil then
    cells.require_map(v, PURPOSE)
    cells.map(r, out, nil, self.many)
    for i = 1, self.many do
      local found = cells.get(v, self.fields[i])
      local to = cells.map_put(r, out, self.fields[i])
      if found then cells.copy(to, found) end
    end
    cells.set(r, "key", out, nil)
    return
  end
  cells.require_struct(v, PURPOSE)
  local plan = self.plans:get(schema)
  cells.project(r, out, v, plan.schema, plan.index, self.defaults)
  cells.set(r, "key", out, plan.schema)
end

return connect.transform {
  name = "ValueToKey", class = "org.apache.kafka.connect.transforms.ValueToKey",
  doc = "Replace the record key with a new key formed from a subset of fields in the record value.",
  configure = M.configure, apply_cells = M.apply_cells,
  config = {
    { "fields", type = "list", required = true, distinct = true, non_empty = true, importance = "high",
      doc = "Field names on the record value to extract as the record key." },
    rows.replace_null_with_default,
  },
  examples = { { config = { fields = "id" }, input = { value = { id = 7, name = "bob" } },
    output = { key = { id = 7 }, value = { id = 7, name = "bob" } } } },
}
