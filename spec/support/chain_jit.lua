-- spec/support/chain_jit.lua: a program of its own (the spec runner has the JIT off) that shows what LuaJIT makes of the
-- record path: runs it and prints "abort: REASON at PLACE", "loop: PLACE" for each compiled loop, "exits: N" for how often
-- machine code was left for the interpreter in the last ten batches, "instructions: N" interpreted a batch.
--   luajit spec/support/chain_jit.lua schema|schemaless|author|broken   a chain of standard transforms over string records;
--                                      author: and one as users write them; broken: with one that cannot be compiled
--   luajit spec/support/chain_jit.lua source|sink DIR LINES         FileStream's poll and put, LINES a batch
local ffi = require "ffi"
package.path = "./lua/?.lua;./lua/?/init.lua;./?.lua;" .. package.path
require("spec.support.library").core()
local fx = require "connect.ffi"
local C = fx.C
ffi.cdef [[
lc_batch_t *lc_batch_new(uint32_t cap);
lc_record_t *lc_batch_add(lc_batch_t *b);
void *lc_arena_dup(lc_arena_t *a, const void *data, size_t n);
]]
local mode = arg[1]
local BATCHES, RECORDS = 40, 2000

local aborts, loops, starts, exits = {}, {}, {}, 0
local function watch()
  local jit = require "jit"
  local info, trace_info = require("jit.util").funcinfo, require("jit.util").traceinfo
  jit.attach(function(what, trace, func, pc, code, reason)
    if what == "start" then
      starts[trace] = info(func, pc).loc
    elseif what == "abort" then
      local text = reason
      local known = require("jit.vmdef").traceerr
      if type(code) == "number" and known[code] then text = known[code] end
      aborts[#aborts + 1] = ("%s at %s"):format(tostring(text):gsub("%%.*", ""), info(func, pc).loc or "?")
    elseif what == "stop" and trace_info(trace).linktype == "loop" then
      loops[#loops + 1] = starts[trace] or "?"
    end
  end, "trace")
  jit.attach(function() exits = exits + 1 end, "texit")
end

local function print_all()
  for _, a in ipairs(aborts) do print("abort: " .. a) end
  for _, l in ipairs(loops) do print("loop: " .. l) end
  print("exits: " .. exits)
end

local function strings(text, schema)
  local b = C.lc_batch_new(RECORDS)
  local topic, s = C.lc_arena_dup(b.arena, "t", 1), C.lc_arena_dup(b.arena, text, #text)
  for _ = 1, RECORDS do
    local r = C.lc_batch_add(b)
    r.topic, r.timestamp = topic, 1700000000000LL
    r.value.type, r.value.len, r.value.u.s = 8, #text, s
    if schema then r.value_schema = C.lc_schema_plain(8, false) end
  end
  return b
end

if mode == "source" or mode == "sink" then
  local lines = require "connect.lines"
  local path, size = arg[2] .. "/lines", tonumber(arg[3])
  require("spec.support.files").write(path, ("some line\n"):rep(10 * size))
  require("jit").off()
  local reader, writer = lines.reader { file = path, topic = "t", batch_size = size }, lines.writer(arg[2] .. "/out")
  local counted = 0
  for i = 1, 10 do
    local n = 0
    local function count() n = n + 1 end
    if mode == "source" then debug.sethook(count, "", 1) end
    local batch = reader:poll()
    debug.sethook()
    if mode == "sink" then
      debug.sethook(count, "", 1)
      writer:write(batch)
      debug.sethook()
    end
    assert(batch.b.n == size)
    if i > 1 then counted = math.max(counted, n) end -- the first one may load modules
  end
  print("instructions: " .. counted)
  do return end -- the state closes and frees all
end

local with_schema = mode == "schema"
local chain = require("connect.chain").new(function(path) return { type(path) == "table" and path or dofile(path) } end, true)
local function stage(file, config)
  config["replace.null.with.default"] = true
  chain.stage(chain.make("lua/transforms/" .. file .. ".lua", file, nil, true, 1, config), "value", nil, false)
end
stage("hoist_field", { field = "line" })
stage("insert_field", { ["static.field"] = "src", ["static.value"] = "abc", ["topic.field"] = "topic",
  ["timestamp.field"] = "ts" })
stage("replace_field", { exclude = { "src" }, include = {}, renames = { "line:text" } })
if mode == "author" then
  local drop = require("connect").drop
  local decl = { name = "ByTopic", apply = function(_, r)
    if r.topic == "none" then return drop end
    return r
  end }
  chain.stage(chain.make(decl, "author", nil, true, 1, {}), nil, nil, false)
elseif mode == "broken" then
  local decl = { apply_cells = function(self) for k in pairs(self) do self[k] = function() return k end end end }
  chain.stage(chain.make(decl, "broken", nil, true, 1, {}), "value", nil, false)
end
chain.finish()

watch()
local exchange, text = fx.exchange(), ("x"):rep(60)
for i = 1, BATCHES do
  local b = strings(text, with_schema)
  exchange.batch = b
  if i > BATCHES - 10 then exits = i == BATCHES - 9 and 0 or exits end
  chain.run(0, 0, RECORDS)
  assert(b.records[RECORDS - 1].value.type == (with_schema and 12 or 11))
  C.lc_batch_unref(b)
end
print_all()
