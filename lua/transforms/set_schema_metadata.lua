-- transforms/set_schema_metadata.lua: another name or version for a struct's schema.
local connect = require "connect"
local cells = require "connect.cells"
local rows = require "connect.rows"

return connect.transform {
  name = "SetSchemaMetadata",
  class = "org.apache.kafka.connect.transforms.SetSchemaMetadata",
  on = { "key", "value" },
  doc = "Set the schema name, version or both on the record's key (<code>"
    .. "org.apache.kafka.connect.transforms.SetSchemaMetadata$Key</code>) or value (<code>"
    .. "org.apache.kafka.connect.transforms.SetSchemaMetadata$Value</code>) schema.",
  config = {
    { "schema.name", importance = "high", doc = "Schema name to set." },
    { "schema.version", type = "int", importance = "high", doc = "Schema version to set." },
    rows.replace_null_with_default,
  },

  configure = function(self, config)
    local name, version = config["schema.name"], config["schema.version"]
    if name == nil and version == nil then cells.config_error "Neither schema name nor version configured" end
    self.defaults = config["replace.null.with.default"]
    self.new = cells.cell()
    self.plans = cells.plans(function(schema)
      if schema.type ~= cells.STRUCT then cells.data_error "Cannot list fields on non-struct type" end
      local builder, index = cells.builder_from(schema), {}
      if name ~= nil then builder:name(name) end
      if version ~= nil then builder:version(version) end
      for i = 0, schema.nfields - 1 do index[i + 1] = i end
      return { schema = builder:finish(), index = cells.indices(index) }
    end)
  end,

  apply_cells = function(self, r, slot)
    local v, schema = r[slot], cells.schema(r, slot)
    if schema == nil then
      if v.type == cells.NULL then return end
      cells.require_schema(schema, "updating schema metadata")
    end
    local plan = self.plans:get(schema)
    if v.type == cells.STRUCT then
      cells.project(r, self.new, v, plan.schema, plan.index, self.defaults)
    else
      cells.copy(self.new, v)
    end
    cells.set(r, slot, self.new, plan.schema)
  end,

  examples = {
    { config = { ["schema.name"] = "shop.Order", ["schema.version"] = 2 },
      input = { value = { id = 7 }, value_schema = connect.schema.struct { { "id", "int32" } } },
      output = { value = { id = 7 },
        value_schema = connect.schema.struct { { "id", "int32" }, name = "shop.Order", version = 2 } } },
  },
}
