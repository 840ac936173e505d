-- bench/chain.lua: what a chain alone costs, without converter and Kafka, and how many values it let into Lua
-- (lc_script_chain_counts). Part of ./dev bench smt; alone: ./dev bench chain.
local BATCH, BATCHES = 2000, 250

local P = "org.apache.kafka.connect.transforms."
local SOURCE = [[
local connect = require "connect"
return {
  connect.transform { name = "ByTopic", apply = function(_, r)
    if r.topic == "none" then return connect.drop end
    return r
  end },
  connect.transform { name = "Shout", apply = function(_, r) return r:with { value = r.value .. "!" } end },
}]]
local chains_of = {
  { "standard", { { P .. "HoistField$Value", field = "line" },
    { P .. "InsertField$Value", ["static.field"] = "src", ["static.value"] = "file", ["topic.field"] = "topic" },
    { P .. "ReplaceField$Value", renames = "line:text" } } },
  { "author-of-topic", { { "ByTopic" } } },
  { "author-of-value", { { "Shout" } } },
}

return function(m)
  local k = require "spec.support.connect"
  local chains = require "spec.support.chain"
  local C, ffi = k.C, k.ffi
  local text = ("0123456789"):rep(10)

  local function batch()
    local b = C.lc_batch_new(BATCH)
    local topic, s = C.lc_arena_dup(b.arena, "t", 1), C.lc_arena_dup(b.arena, text, #text)
    for _ = 1, BATCH do
      local r = C.lc_batch_add(b)
      r.topic, r.value_schema = ffi.cast("const char *", topic), C.lc_schema_plain(C.LC_STRING, false)
      r.value.type, r.value.len, r.value.u.s = C.LC_STRING, #text, ffi.cast("const char *", s)
    end
    return b
  end

  local _, set = k.plugin(SOURCE)
  for _, c in ipairs(chains_of) do
    local config, names = {}, {}
    for i, stage in ipairs(c[2]) do
      names[i] = "t" .. i
      for key, value in pairs(stage) do config["transforms.t" .. i .. "." .. (key == 1 and "type" or key)] = value end
    end
    config.transforms = table.concat(names, ",")
    local chain = assert(chains.new(set, config, true))
    local best = math.huge
    for _ = 1, BATCHES do
      local b = batch()
      local start = os.clock()
      assert(chain:run(b))
      best = math.min(best, os.clock() - start)
      C.lc_batch_unref(b)
    end
    local decoded, encoded = chain:counts()
    m.result { bench = "chain", what = c[1], records = BATCH * BATCHES, values_into_lua = decoded,
      values_out_of_lua = encoded, best_ns_per_record = m.round(best / BATCH * 1e9, 0) }
    chain:free()
  end
end
