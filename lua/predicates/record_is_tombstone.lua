-- RecordIsTombstone: true for records whose value is null, whatever its schema.
local connect = require "connect"

return connect.predicate {
  name = "RecordIsTombstone", class = "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
  doc = "A predicate which is true for records which are tombstones (i.e. have null value).",
  test_cells = function(_, r) return r.value.type == 0 end,
  examples = {
    { input = { key = "k" }, output = true },
    { input = { key = "k", value = "v" }, output = false },
  },
}
