-- HasHeaderKey: true for records with at least one header of a name.
local connect = require "connect"
local cells = require "connect.cells"

return connect.predicate {
  name = "HasHeaderKey", class = "org.apache.kafka.connect.transforms.predicates.HasHeaderKey",
  doc = "A predicate which is true for records with at least one header with the configured name.",
  configure = function(self, config) self.header = config.name end,
  test_cells = function(self, r) return cells.has_header(r, self.header) end,
  config = {
    { "name", type = "string", required = true, non_empty = true, importance = "medium", doc = "The header name." },
  },
  examples = {
    { config = { name = "trace" }, input = { value = 1, headers = { { "trace", "x" } } }, output = true },
    { config = { name = "trace" }, input = { value = 1 }, output = false },
  },
}
