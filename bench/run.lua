-- bench/run.lua: ./dev bench. See bench/README.md.
package.path = "./?.lua;" .. package.path
local proc = require "spec.support.proc"
local measure = require "bench.measure"

local order = { "source", "sink", "smt", "start", "idle", "many", "cluster", "eos" }
local wanted = #arg > 0 and arg or order

local ok, err = xpcall(function()
  for _, name in ipairs(wanted) do
    local found, bench = pcall(require, "bench." .. name)
    if not found then error("bench: " .. tostring(bench), 0) end
    bench(measure)
  end
  measure.summary()
end, debug.traceback)
proc.stop_all()
if not ok then
  io.stderr:write(err, "\n")
  os.exit(1)
end
