-- HoistField$Key, HoistField$Value: the whole key or value becomes the one field of a struct or map.
local connect = require "connect"
local cells = require "connect.cells"

local M = {}

function M:configure(config)
  self.field = config.field
  self.out = cells.cell()
  self.plans = cells.plans(function(schema)
    return { schema = cells.builder(cells.STRUCT):field(self.field, schema):finish() }
  end)
end

function M:apply_cells(r, slot)
  local out, schema = self.out, cells.schema(r, slot)
  if schema == nil then
    cells.map(r, out, nil, 1)
    cells.copy(cells.map_put(r, out, self.field), r[slot])
    cells.set(r, slot, out, nil)
    return
  end
  local new = self.plans:get(schema).schema
  cells.struct(r, out, new)
  cells.put(out, 0, r[slot])
  cells.set(r, slot, out, new)
end

return connect.transform {
  name = "HoistField", class = "org.apache.kafka.connect.transforms.HoistField", on = { "key", "value" },
  doc = "Wrap data using the specified field name in a Struct when schema present, or a Map in the case of schemaless "
    .. "data.",
  configure = M.configure, apply_cells = M.apply_cells,
  config = {
    { "field", type = "string", required = true, importance = "medium",
      doc = "Field name for the single field that will be created in the resulting Struct or Map." },
  },
  examples = { { config = { field = "line" }, input = { value = "text" }, output = { value = { line = "text" } } } },
}
