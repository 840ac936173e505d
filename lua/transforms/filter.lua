-- Filter: drops every record; of use with a predicate.
local connect = require "connect"

return connect.transform {
  name = "Filter", class = "org.apache.kafka.connect.transforms.Filter",
  doc = "Drops all records, filtering them from subsequent transformations in the chain. This is intended to be used "
    .. "conditionally to filter out records matching (or not matching) a particular Predicate.",
  apply_cells = function() return true end,
  examples = { { config = {}, input = { value = { id = 7 } }, output = connect.drop } },
}
