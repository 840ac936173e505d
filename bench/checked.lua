-- bench/checked.lua: what the flag test in plugins costs (core/script/checked.h): loops, calls and the Redact of
-- docs/authoring.md, each as it is and with the tests, compiled and interpreted. A process each: traces of one are not
-- the other's.
-- ./dev bench checked; as a program: luajit bench/checked.lua NAME plain|checked on|off
local ffi = require "ffi"

-- NAME = { turns a call of the function, checks a turn, source }
local cases = {
  loop = { 1000, 1, [[return function() local s = 0 for i = 1, 1000 do s = s + i end return s end]] },
  call = { 1000, 2, [[local function add(a, b) return a + b end
    return function() local s = 0 for i = 1, 1000 do s = add(s, i) end return s end]] },
  tables = { 1000, 1, [[local t = {} for i = 1, 1000 do t[i] = { n = i } end
    return function() local s = 0 for i = 1, #t do s = s + t[i].n end return s end]] },
  redact = { 1, 3, nil }, -- two fields
}

if not (arg and cases[arg[1]]) then
  local proc = require "spec.support.proc"
  return function(m)
    for _, name in ipairs { "loop", "call", "tables", "redact" } do
      for _, jit in ipairs { "on", "off" } do
        local ns = {}
        for round = 1, 2 * m.rounds do
          local way = round % 2 == 1 and "plain" or "checked"
          local out = proc.run(("luajit bench/checked.lua %s %s %s 2>&1"):format(name, way, jit))
          ns[way] = math.min(ns[way] or math.huge, tonumber(out) or error(out))
        end
        m.result { bench = "checked", what = name, jit = jit, plain_ns = m.round(ns.plain),
          checked_ns = m.round(ns.checked), ns_per_test = m.round((ns.checked - ns.plain) / cases[name][2]) }
      end
    end
  end
end

local name, way, jit_on = arg[1], arg[2], arg[3] == "on"
package.path = "./?.lua;./lua/?.lua;./lua/?/init.lua;" .. package.path
local lib = require("spec.support.library").core()
ffi.cdef [[
typedef struct { char *p; size_t len, cap; bool oom; } lcb_buf;
void lc_checked_text(const char *text, size_t n, int way, lcb_buf *out);
]]

local text = cases[name][3]
if name == "redact" then
  local f = assert(io.open "docs/authoring.md")
  text = f:read("*a"):match("%-%- file: redact.lua\n(.-)```")
  f:close()
end
if way == "checked" then
  local out = ffi.new "lcb_buf"
  lib.lc_checked_text(text, #text, 0, out)
  text = ffi.string(out.p, out.len)
  rawset(_G, "\255t", { false, error })
  rawset(_G, "\255u", { 0 })
end
if not jit_on then require("jit").off() end

local run = assert(loadstring(text, "=" .. name))()
if name == "redact" then
  local decl, connect = run, require "connect"
  local self = { config = { fields = { "ssn", "phone" }, with = "***" } }
  local map = connect.map { id = 7, ssn = "1", name = "x", phone = "2" }
  run = function() return decl.apply_value(self, map) end
end

local best, calls = math.huge, math.floor(3e6 / cases[name][1] / (name == "redact" and 20 or 1))
for _ = 1, 9 do
  local start = os.clock()
  for _ = 1, calls do run() end
  best = math.min(best, (os.clock() - start) / calls / cases[name][1] * 1e9)
end
print(best)
