-- transforms/insert_header.lua: one more header, the same on all records.
local connect = require "connect"
local cells = require "connect.cells"
local java = require "connect.java"

return connect.transform {
  name = "InsertHeader",
  class = "org.apache.kafka.connect.transforms.InsertHeader",
  doc = "Add a header to each record.",
  config = {
    { "header", required = true, importance = "high", doc = "The name of the header." },
    { "value.literal", required = true, importance = "high",
      doc = "The literal value that is to be set as the header value on all records." },
  },

  configure = function(self, config)
    self.header, self.literal, self.copy = config.header, java.literal(config["value.literal"]), cells.cell()
  end,

  apply_cells = function(self, r)
    java.copy_into(r, self.copy, self.literal.value)
    local schema = self.literal.schema
    if schema then cells.C.lc_batch_hold_schema(r.batch, schema) end
    local h = cells.more_headers(r, 1)
    cells.fill_header(r, h[r.nheaders], self.header, self.copy, schema)
    cells.set_headers(r, h, 1)
  end,

  examples = {
    { config = { header = "origin", ["value.literal"] = "emea" }, input = { topic = "t", value = "x" },
      output = { topic = "t", value = "x", headers = { { "origin", "emea" } } } },
  },
}
