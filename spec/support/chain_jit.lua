-- spec/support/chain_jit.lua: a program of its own (the spec runner has the JIT off): runs a chain of standard
-- transforms over string records and prints what LuaJIT said of it, "abort: ..." lines and "loops: N".
-- luajit spec/support/chain_jit.lua schema|schemaless
local ffi = require "ffi"
package.path = "./lua/?.lua;./lua/?/init.lua;./?.lua;" .. package.path
local lib = ffi.load(os.getenv "LUACONNECT_LIB" or "build/libluaconnect.so", true) -- kept: the collector would unload it
local fx = require "connect.ffi"
local C = fx.C
ffi.cdef [[
lc_batch_t *lc_batch_new(uint32_t cap);
lc_record_t *lc_batch_add(lc_batch_t *b);
void *lc_arena_dup(lc_arena_t *a, const void *data, size_t n);
]]

local with_schema = arg[1] == "schema"
local chain = require("connect.chain").new(function(path) return { dofile(path) } end, true)
local function stage(file, config)
  config["replace.null.with.default"] = true
  chain.stage(chain.make("lua/transforms/" .. file .. ".lua", file, nil, true, 1, config), "value", nil, false)
end
stage("hoist_field", { field = "line" })
stage("insert_field", { ["static.field"] = "src", ["static.value"] = "abc", ["topic.field"] = "topic",
  ["timestamp.field"] = "ts" })
stage("replace_field", { exclude = { "src" }, include = {}, renames = { "line:text" } })
chain.finish()

local aborts, loops = {}, 0
require("jit").attach(function(what, _, func, pc, code, reason)
  local info = require("jit.util").funcinfo(func, pc)
  if what == "abort" then
    local text = reason
    if type(code) == "number" and require("jit.vmdef").traceerr[code] then text = require("jit.vmdef").traceerr[code] end
    aborts[#aborts + 1] = ("%s at %s"):format(tostring(text):gsub("%%.*", ""), info.loc or "?")
  elseif what == "stop" and (info.loc or ""):find "chain" then
    loops = loops + 1
  end
end, "trace")

local exchange, text = fx.exchange(), ("x"):rep(60)
for _ = 1, 30 do
  local b = C.lc_batch_new(2000)
  local topic, s = C.lc_arena_dup(b.arena, "t", 1), C.lc_arena_dup(b.arena, text, #text)
  for _ = 1, 2000 do
    local r = C.lc_batch_add(b)
    r.topic, r.timestamp = topic, 1700000000000LL
    r.value.type, r.value.len, r.value.u.s = 8, #text, s
    if with_schema then r.value_schema = C.lc_schema_plain(8, false) end
  end
  exchange.batch = b
  chain.run(0, 0, 2000)
  assert(b.records[1999].value.type == (with_schema and 12 or 11))
  C.lc_batch_unref(b)
end
for _, a in ipairs(aborts) do print("abort: " .. a) end
print("loops: " .. loops)
assert(lib)
