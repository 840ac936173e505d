-- Chains of transforms and predicates: authors' own, errors and where they happened, and what stays out of Lua.
local k = require "spec.support.connect"
local chains = require "spec.support.chain"
local data = require "spec.support.data"
local C = k.C

local SOURCE = [[
local connect = require "connect"
local list = {}
local function add(decl) list[#list + 1] = decl end
local function transform(name, apply) add(connect.transform { name = name, apply = apply }) end
transform("Same", function(_, r) local _ = r.value return r end)
transform("Blind", function(_, r) return r end)
transform("Topic", function(_, r) local _ = r.topic .. "x" return r end)
transform("With", function(_, r) return r:with { value = r.value .. "!", topic = "new", headers = { { "h", 1 } },
  partition = 3, timestamp = 5, key = connect.map { b = 1, a = connect.null } } end)
transform("Assign", function(_, r) r.value = { 1, 2 } r.value_schema = connect.null return r end)
transform("Within", function(_, r) r.value.n = r.value.n + 1 return r end)
transform("Null", function(_, r) return r:with { value = connect.null, value_schema = connect.null } end)
transform("Fit", function(_, r) return r:with { value = 5 } end)
transform("Struct", function(_, r)
  return r:with { value = { id = 7 }, value_schema = connect.schema.struct { { "id", "int64" }, { "s", "optional_string" } } }
end)
transform("Missing", function(_, r)
  return r:with { value = {}, value_schema = connect.schema.struct { { "id", "int64" } } }
end)
transform("DropB", function(_, r) if r.value == "b" then return connect.drop end return r end)
transform("Nothing", function() end)
transform("Field", function(_, r) r.valve = 1 return r end)
transform("Bad", function(_, r) if r.value == "b" then error(connect.data_error "bad b") end return r end)
transform("Bug", function(_, r) return r.value.x.y end)
transform("Sees", function(self, r) self.kept = self.kept or r if r ~= self.kept then return self.kept.key and r end return r end)
add(connect.transform { name = "Once", configure = function(self, c) self.n = 0 end,
  apply = function(self, r)
    self.n = self.n + 1
    if self.n == 2 then error(connect.retriable "again") end
    return r:with { value = r.value .. self.n }
  end })
add(connect.transform { name = "Up", on = { "key", "value" }, config = { { "by", type = "int", default = 1 } },
  apply_value = function(self, v, schema, record)
    if v == "same" then return v, schema end
    if v == "gone" then return nil end
    if v == "drop" then return connect.drop end
    return v .. self.config.by .. record.topic, schema
  end })
add(connect.predicate { name = "IsA", test = function(self, r) return r.value == "a" end })
add(connect.transform { name = "Closed", close = function() print "closed now" end, apply = function(_, r) return r end })
return list
]]

describe("a chain", function()
  local plugin, set, chain
  setup(function() plugin, set = k.plugin(SOURCE) end)
  after_each(function() if chain then chain:free() chain = nil end end)

  local function new(types, more)
    local config, names = {}, {}
    for i, t in ipairs(types) do
      names[i] = "t" .. i
      config["transforms.t" .. i .. ".type"] = t
    end
    config.transforms = table.concat(names, ",")
    for key, v in pairs(more or {}) do config[key] = v end
    local err
    chain, err = chains.new(set, config)
    if not chain then error(err, 0) end
    return chain
  end
  local function show(b)
    local out = {}
    for i = 0, b.n - 1 do out[i + 1] = b.records[i].state == 0 and data.show(b.records[i].value) or "-" end
    return table.concat(out, " ")
  end
  local function run(types, strings, more)
    local b = k.sink_batch(strings)
    local ok, err = new(types, more):run(b)
    return b, err, ok
  end

  it("of no stages does nothing and has no state", function()
    local b = run({}, { "a" })
    assert.equal('"a"', show(b))
    assert.is_not_nil(plugin)
  end)

  it("leaves alone what comes back as it was given", function()
    local b = run({ "Blind", "Same" }, { "a", "b" })
    assert.equal('"a" "b"', show(b))
    assert.same({ 2, 0 }, { chain:counts() })
    chain:free()
    run({ "Blind" }, { "a", "b" })
    assert.same({ 0, 0 }, { chain:counts() })
  end)

  it("names a source's record without a timestamp by its partition and offset", function()
    local b = C.lc_batch_new(2)
    local keep = "position"
    b.offset_field = keep
    for _ = 1, 2 do C.lc_batch_add(b).topic = "t" end
    local partition = C.lc_source_partition_new('{"filename":"f"}', 16)
    assert.equal(0, C.lc_batch_hold_partition(b, partition))
    C.lc_source_partition_unref(partition)
    b.records[0].u.src.partition, b.records[0].u.src.offset.type, b.records[0].u.src.offset.u.i = partition, C.LC_INT64, 7
    b.records[1].u.src.partition = partition
    local err
    chain = assert(chains.new(set, { transforms = "a", ["transforms.a.type"] = "TimestampRouter" }, true))
    for i, offset in ipairs { "{position=7}", "null" } do
      local _, e = chain:run(b, i - 1)
      err = e
      assert.equal("org.apache.kafka.connect.errors.DataException", err.class)
      assert.equal("Timestamp missing on record: SourceRecord{sourcePartition={filename=f}, sourceOffset=" .. offset
        .. "} ConnectRecord{topic='t', kafkaPartition=null, key=null, keySchema=null, value=null, valueSchema=null, "
        .. "timestamp=null, headers=ConnectHeaders(headers=)}", err.message)
    end
    C.lc_batch_unref(b)
  end)

  it("keeps exact types of maps that were only looked at", function()
    local place = data.place()
    local b = k.sink_batch { "x" }
    place:typed(data.read '{"$map":[["a",{"$int8":1}],[{"$int16":2},{"$float32":"0.1"}]]}', b.records[0].value)
    assert(new({ "Same" }):run(b))
    assert.equal('$map("a"=$int8(1),$int16(2)=$float32(0.1))', data.show(b.records[0].value))
    place:free()
  end)

  it("takes record:with", function()
    local b = run({ "With" }, { "a" })
    local r = b.records[0]
    assert.same({ '"a!"', "new", 3, 5, '$map("a"=null,"b"=$int64(1))', 1, "h", "$int64(1)" }, { data.show(r.value), k.text(r.topic),
      r.partition, tonumber(r.timestamp), data.show(r.key), r.nheaders, k.text(r.headers[0].name), data.show(r.headers[0].value) })
    assert.equal("t", k.text(r.u.snk.topic))
  end)

  it("takes assigned fields and tables changed in place", function()
    assert.equal("$list($int64(1),$int64(2))", show((run({ "Assign" }, { "a" }))))
    chain:free()
    local place = data.place()
    local b = k.sink_batch { "x" }
    place:typed(data.read '{"$map":[["n",{"$int64":"1"}]]}', b.records[0].value)
    assert(new({ "Within", "Within" }):run(b))
    assert.equal('$map("n"=$int64(3))', data.show(b.records[0].value))
    place:free()
  end)

  it("makes tombstones, structs with a schema, and refuses what does not fit with Connect's words", function()
    assert.equal("null", show((run({ "Null" }, { "a" }))))
    chain:free()
    local b = run({ "Struct" }, { "a" })
    assert.equal("$struct(id=$int64(7),s=null)", show(b))
    chain:free()
    local _, err = run({ "Missing" }, { "a" })
    assert.same({ "data", "org.apache.kafka.connect.errors.DataException",
      'Invalid value: null used for required field: "id", schema type: INT64' }, { err.kind, err.class, err.message })
    chain:free()
    b = k.sink_batch { "a" }
    b.records[0].value_schema = C.lc_schema_string
    _, err = new({ "Fit" }):run(b)
    assert.same({ "data", "Invalid Java object for schema with type STRING: class java.lang.Long for value" },
      { err.kind, err.message })
    assert.equal('"a"', show(b)) -- a failed record is as it was
  end)

  it("drops records, and later stages do not see them", function()
    assert.equal('"a" - "c"', show((run({ "DropB", "Bad" }, { "a", "b", "c" }))))
  end)

  it("stops at the record and stage that failed, and goes on from there", function()
    local b, err = run({ "Same", "Bad" }, { "a", "b", "c" })
    assert.same({ 1, 1, "data", "bad b", "Bad" }, { err.at, err.stage, err.kind, err.message, chain:class(err.stage) })
    assert.is_true(chain:run(b, 2))
    chain:free()
    b, err = run({ "Once" }, { "a", "b", "c" })
    assert.same({ 1, 0, "retriable" }, { err.at, err.stage, err.kind })
    assert.is_true(chain:run(b, err.at, err.stage))
    assert.equal('"a1" "b3" "c4"', show(b))
  end)

  it("names an author's mistakes, with the traceback", function()
    for stage, text in pairs { Nothing = "Nothing: apply must return the record, record:with{...} or connect.drop, got nil",
      Field = "a record has no field valve to change", Bug = "attempt to index" } do
      local _, err = run({ stage }, { "a" })
      assert.equal("fatal", err.kind)
      assert.is_truthy(err.message:find(text, 1, true), err.message)
      assert.matches("stack traceback", err.detail)
      chain:free()
    end
  end)

  it("ends views with the run", function()
    local b = run({ "Sees" }, { "a" })
    local _, err = chain:run(b)
    assert.matches("this record's batch is gone", err.message)
  end)

  it("gives apply_value one slot, value and schema", function()
    local b = run({ "Up$Value" }, { "a", "same", "gone", "drop" }, { ["transforms.t1.by"] = "4" })
    assert.equal('"a4t" "same" null -', show(b))
    assert.same({ 4, 1 }, { chain:counts() })
    chain:free()
    b = k.sink_batch { "v" }
    b.records[0].key.type, b.records[0].key.len, b.records[0].key.u.s = C.LC_STRING, 1, C.lc_arena_strdup(b.arena, "k")
    assert(new({ "Up$Key" }):run(b))
    assert.same({ '"k1t"', '"v"' }, { data.show(b.records[0].key), data.show(b.records[0].value) })
  end)

  it("asks predicates, negated or not, of authors and standard ones", function()
    local p = { ["transforms.t1.predicate"] = "p", ["predicates.p.type"] = "IsA" }
    assert.equal('- "b"', show((run({ "Filter" }, { "a", "b" }, p))))
    chain:free()
    p["transforms.t1.negate"] = "TRUE"
    assert.equal('"a" -', show((run({ "Filter" }, { "a", "b" }, p))))
    chain:free()
    p = { ["transforms.t1.predicate"] = "p", ["predicates.p.type"] = "RecordIsTombstone" }
    local b = k.sink_batch({ "a" }, 2)
    assert(new({ "Filter" }, p):run(b))
    assert.equal('"a" -', show(b)) -- a null is a tombstone
  end)

  it("cannot be made of what is missing", function()
    local function fails(types, more) return select(2, pcall(new, types, more)) end
    assert.equal("Invalid value Nope for configuration transforms.t1.type: Class Nope could not be found.",
      fails({ "Nope" }).message)
    assert.equal('Missing required configuration "predicates.p.type" which has no default value.',
      fails({ "Same" }, { ["transforms.t1.predicate"] = "p" }).message)
    assert.equal('Missing required configuration "field" which has no default value.', fails({ "HoistField$Value" }).message)
  end)

  it("closes its transforms", function()
    assert.matches("closed now", k.logged(function()
      run({ "Closed" }, { "a" })
      chain:free()
    end))
  end)

  it("keeps cells for what ships with the program", function()
    for _, source in ipairs { 'require "connect.cells"', [[return require "connect".transform { name = "X", apply_cells = print }]] } do
      local dir = k.tmpdir()
      k.write(dir .. "/x.lua", source)
      assert.matches("connect.cells' not found", k.logged(function() k.scan { dir } end):gsub("apply_cells and test_cells are.-$",
        "connect.cells' not found"), nil)
      k.rm(dir)
    end
  end)

  it("does not let untouched values into Lua: standard transforms count nothing", function()
    local b = run({ "HoistField$Value" }, { "a", "b" }, { ["transforms.t1.field"] = "f" })
    assert.equal('$map("f"="a") $map("f"="b")', show(b))
    assert.same({ 0, 0 }, { chain:counts() })
    chain:free()
    b = run({ "HoistField$Value", "InsertField$Value", "ReplaceField$Value", "Topic" }, { "a", "b" }, {
      ["transforms.t1.field"] = "f", ["transforms.t2.static.field"] = "s", ["transforms.t2.static.value"] = "x",
      ["transforms.t3.renames"] = "f:g" })
    assert.equal('$map("g"="a","s"="x") $map("g"="b","s"="x")', show(b))
    assert.same({ 0, 0 }, { chain:counts() }) -- the author's looks at the topic only
    chain:free()
    run({ "MaskField$Value", "Up$Value" }, { "a", "b" }, { ["transforms.t1.fields"] = "f", ["transforms.t1.predicate"] = "p",
      ["predicates.p.type"] = "HasHeaderKey", ["predicates.p.name"] = "h", ["transforms.t2.by"] = "1" })
    assert.same({ 2, 2 }, { chain:counts() }) -- one that looks is counted
  end)

  it("of many stages works like one of few", function()
    local types, more = {}, {}
    for i = 1, 40 do types[i], more["transforms.t" .. i .. ".by"] = "Up$Value", "0" end
    assert.equal('"a' .. ("0t"):rep(40) .. '"', show((run(types, { "a" }, more))))
  end)

  -- LuaJIT's own account (jit.attach, what jit.v prints) of a process that has the JIT on.
  local function jit_says(mode)
    local p = io.popen((os.getenv "LC_LUA" or "luajit") .. " spec/support/chain_jit.lua " .. mode .. " 2>&1")
    local out = p:read "*a"
    p:close()
    return out
  end

  -- The generated loop is one trace that loops, and 20,000 records in ten batches leave it a few times a batch at most.
  local function compiled(out)
    return not out:find "NYI" and not out:find "blacklisted" and out:find "loop: chain:%d" ~= nil
      and (tonumber(out:match "exits: (%d+)") or 1e9) <= 100
  end

  it("is compiled, field transforms included, with and without schemas, and an author's", function()
    for _, mode in ipairs { "schema", "schemaless", "author" } do
      local out = jit_says(mode)
      assert.is_true(compiled(out), out)
    end
    local out = jit_says "broken" -- the proof can fail
    assert.matches("loop: ", out)
    assert.is_false(compiled(out), out)
  end)

  it("has no Lua for each line in FileStream's poll and put", function()
    for _, mode in ipairs { "source", "sink" } do
      local counts = {}
      for i, lines in ipairs { 20, 2000 } do
        local dir = k.tmpdir()
        local out = jit_says(mode .. " " .. dir .. " " .. lines)
        counts[i] = tonumber(out:match "instructions: (%d+)") or error(out)
        k.rm(dir)
      end
      assert.is_true(counts[1] > 0 and counts[1] < 500, mode .. ": " .. counts[1])
      assert.equal(counts[1], counts[2], mode)
    end
  end)
end)
