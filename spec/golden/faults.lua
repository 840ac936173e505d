-- Random values with one fault, for Kafka Connect's own validation:
--
--     luajit spec/golden/faults.lua | ./dev kafka run spec/golden/RecordFaults.java > spec/golden/faults.jsonl
package.path = "./?.lua;" .. package.path
local random = require "spec.support.random_data"

local made, case = 0, 0
while made < 600 do
  case = case + 1
  local r = random.new(case)
  local s = r:schema(3)
  local fault = made % 10 > 0 and { left = r:below(6) + 1 } or nil -- one of ten has none
  local value = r:value(s, true, fault)
  if not fault or fault.done then
    io.write(random.schema_json(s), "\t", value, "\n")
    made = made + 1
  end
end
