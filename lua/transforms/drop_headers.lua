-- transforms/drop_headers.lua: a record without the headers of some names.
local connect = require "connect"
local cells = require "connect.cells"

return connect.transform {
  name = "DropHeaders",
  class = "org.apache.kafka.connect.transforms.DropHeaders",
  doc = "Removes one or more headers from each record.",
  config = {
    { "headers", type = "list", required = true, distinct = true, non_empty = true, importance = "high",
      doc = "The name of the headers to be removed." },
  },

  configure = function(self, config) self.names = cells.names(config.headers) end,

  apply_cells = function(self, r) cells.drop_headers(r, self.names) end,

  examples = {
    { config = { headers = "a,b" },
      input = { topic = "t", value = "x", headers = { { "a", "1" }, { "c", "2" }, { "a", "3" } } },
      output = { topic = "t", value = "x", headers = { { "c", "2" } } } },
  },
}
