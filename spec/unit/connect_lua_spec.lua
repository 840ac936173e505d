-- lua/connect as an author sees it, in this very state: values, JSON, schemas, declarations, lines.
local k = require "spec.support.connect"
local connect = require "connect"
local lines = require "connect.lines"
local json = connect.json
local ffi = k.ffi
local proc = require "spec.support.proc"

describe("connect", function()
  describe("null", function()
    it("is itself, true and unchangeable", function()
      assert.is_true(connect.null == connect.null and connect.null and true)
      assert.equal("null", tostring(connect.null))
      assert.has_error(function() connect.null.x = 1 end)
    end)
  end)

  describe("array", function()
    it("stays an array, holes become null", function()
      local a = connect.array { 1, nil, 3 }
      assert.is_true(connect.is_array(a))
      assert.is_true(a[2] == connect.null)
      assert.equal(3, #a)
      assert.equal("[]", json.encode(connect.array()))
      assert.equal("{}", json.encode {})
    end)
  end)

  describe("map", function()
    it("is indexed like a table and keeps its order", function()
      local m = connect.map()
      m.z = 1
      m.a = 2
      m["b c"] = connect.null
      m.z = 3
      local seen = {}
      for key, v in m:pairs() do seen[#seen + 1] = key .. "=" .. tostring(v) end
      assert.same({ "z=3", "a=2", "b c=null" }, seen)
      assert.is_nil(m.none)
      assert.equal(3, m:len())
      m.a = nil
      assert.equal(2, m:len())
      m.a = 9
      assert.equal('{"z":3,"b c":null,"a":9}', json.encode(m))
    end)
    it("has keys of any type, equal by value", function()
      local m = connect.map()
      m:set(connect.int64 "9007199254740993", "big")
      m:set(connect.bytes "ab", "bytes")
      m:set(1, "one")
      m:set(true, "yes")
      m:set(connect.null, "nothing")
      assert.same({ "big", "bytes", "one", "yes", "nothing" }, { m:get(connect.int64 "9007199254740993"),
        m:get(connect.bytes "ab"), m:get(1), m:get(true), m:get(nil) })
    end)
    it("takes whole numbers of 64 bits and says what is none", function()
      assert.equal("9223372036854775807", connect.tostring(connect.int64 "9223372036854775807"))
      assert.equal("-9223372036854775808", connect.tostring(connect.int64 "-9223372036854775808"))
      assert.equal(7, connect.int64 "007")
      assert.equal(7, connect.int64(7))
      for text, message in pairs { ["9223372036854775808"] = "beyond 64 bits", ["-9223372036854775809"] = "beyond 64 bits",
        ["99999999999999999999"] = "beyond 64 bits", abc = "not a whole number: abc", ["1.5"] = "not a whole number",
        [""] = "not a whole number", [1.5] = "not a whole number: 1.5" } do
        local v, why = connect.int64(text)
        assert.is_nil(v)
        assert.is_truthy(why:find(message, 1, true), why)
      end
    end)
    it("may have entries called as its methods", function()
      local m = connect.map { get = 1, pairs = 2, len = 3 }
      assert.equal(1, m.get)
      assert.equal(2, connect.map_get(m, "pairs"))
      connect.map_set(m, "set", 4)
      local n = 0
      for _ in connect.map_pairs(m) do n = n + 1 end
      assert.equal(4, n)
    end)
  end)

  it("copies deeply, tags included", function()
    local m = connect.map { a = connect.array { connect.map { x = 1 } } }
    local c = connect.copy(m)
    c.a[1].x = 2
    c.b = 1
    assert.equal('{"a":[{"x":1}]}', json.encode(m))
    assert.equal('{"a":[{"x":2}],"b":1}', json.encode(c))
    assert.is_true(connect.copy(connect.null) == connect.null)
  end)

  it("prints values", function()
    assert.equal("9007199254740993", connect.tostring(connect.int64 "9007199254740993"))
    assert.equal("-9223372036854775808", connect.tostring(connect.int64 "-9223372036854775808"))
    assert.equal("1000000000000000", connect.tostring(1e15))
    assert.equal('{"a":[1]}', connect.tostring(connect.map { a = { 1 } }))
    assert.equal("null", connect.tostring(connect.null))
    assert.is_nil(connect.int64 "12x")
  end)

  describe("json", function()
    it("keeps what others lose", function()
      for _, text in ipairs { "null", "true", "[]", "{}", '""', "0", "-5", "9007199254740993", "-9223372036854775808",
        '[1,[2,null],{}]', '{"b":1,"a":{"x":[]}}', '"a\\"b\\\\\\n"', '{"":1}' } do
        local v, err = json.decode(text)
        assert.is_nil(err)
        assert.equal(text, json.encode(v))
      end
      assert.equal('"\\u0000\\u001F"', (json.encode "\0\31"):upper():gsub("U", "u"))
      assert.equal(9007199254740993LL, json.decode "9007199254740993")
      assert.equal(1.5, json.decode "1.5")
      assert.equal("2.0", json.encode(connect.float(2)))
    end)
    it("takes the last of equal keys and plain tables", function()
      assert.equal('{"a":3,"b":2}', json.encode { b = 2, a = 3 })
      assert.equal("[1,2]", json.encode { 1, 2 })
      assert.same({ a = 1 }, (json.decode('{"a":1}', true)))
    end)
    it("says where a text is wrong, and what cannot be written", function()
      local v, err = json.decode "{\n  x"
      assert.is_nil(v)
      assert.matches("line: 2", err)
      assert.same({ nil, "a function cannot be written as JSON" }, { json.encode(print) })
      assert.matches("JSON has no number", select(2, json.encode(1 / 0)))
      local loop = {}
      loop[1] = loop
      assert.matches("nested deeper", select(2, json.encode(loop)))
    end)
  end)

  describe("schema", function()
    local S = connect.schema
    it("describes itself", function()
      local s = S.struct { { "id", "int64" }, { "tags", S.array("string", { optional = true }) },
        { "m", S.map("string", "optional_int32") }, name = "my.Name", version = 3, doc = "Text.", optional = true,
        parameters = { p = "1" } }
      assert.same({ "struct", "my.Name", 3, "Text.", true, "1" },
        { s.type, s.name, s.version, s.doc, s.optional, s.parameters.p })
      assert.same({ "id", "tags", "m" }, { s.fields[1].name, s.fields[2].name, s.fields[3].name })
      assert.equal("int64", s.fields.id.schema.type)
      assert.is_false(s.fields.id.schema.optional)
      assert.equal("string", s.fields.tags.schema.elem.type)
      assert.equal("int32", s.fields.m.schema.elem.type)
      assert.equal("string", s.fields.m.schema.key.type)
    end)
    it("has Connect's logical types", function()
      local d = S.decimal(2, { optional = true })
      assert.same({ "decimal", "bytes", true, "org.apache.kafka.connect.data.Decimal", 2 },
        { d.logical, d.type, d.optional, d.name, d.scale })
      assert.same({ "timestamp", "int64" }, { S.timestamp().logical, S.timestamp().type })
    end)
    it("refuses what is no schema", function()
      assert.has_error(function() S.array "strng" end, "connect.schema.array: no schema is named strng")
      assert.has_error(function() S.struct { { "a", 5 } } end,
        "connect.schema.struct: field a: a schema or its name expected, got number")
      assert.has_error(function() S.struct { { "a", "int8" }, { "a", "int8" } } end)
      assert.has_error(function() S.plain "struct" end)
    end)
    it("lives as long as it is used", function()
      local s = S.array(S.struct { { "x", "int8" } })
      collectgarbage() collectgarbage()
      assert.equal("x", s.elem.fields[1].name)
    end)
  end)

  describe("declarations", function()
    it("are checked where they are written", function()
      local ok, err = pcall(function() connect.source { name = "x", task = {}, tsk = 1 } end)
      assert.is_false(ok)
      assert.matches("connect_lua_spec.lua:%d+: connect.source: unknown field \"tsk\"", err)
      ok, err = pcall(connect.transform, { name = "T" })
      assert.is_false(ok)
      assert.matches("apply is missing", err)
    end)
    it("can be called as they are", function()
      local d = connect.source { name = "x", task = {}, task_configs = function(c, max)
        return connect.spread("files", c.files, max) end }
      assert.same({ { files = { "a", "c" } }, { files = { "b" } } }, d.task_configs({ files = { "a", "b", "c" } }, 2))
    end)
  end)

  it("errors have a kind and a text", function()
    local e = connect.retriable("later", { after_ms = 5 })
    assert.same({ "retriable", "later", 5 }, { e.kind, tostring(e), e.after_ms })
    assert.is_true(connect.is_error(e))
    assert.is_false(connect.is_error { kind = "fatal" })
    assert.equal("data_error", connect.data_error("x").kind)
    assert.equal("fatal", connect.fatal("x").kind)
  end)

  describe("lines", function()
    local dir
    before_each(function() dir = k.tmpdir() end)
    after_each(function() k.rm(dir) end)

    it("are read and written a batch at a time", function()
      k.write(dir .. "/in", "a\nb\nc\n")
      local r = lines.reader { file = dir .. "/in", topic = "t", batch_size = 2 }
      local w = lines.writer(dir .. "/out")
      local sizes = {}
      while true do
        local b = r:poll()
        if not b then break end
        sizes[#sizes + 1] = #b
        w:write(b)
      end
      assert.same({ 2, 1 }, sizes)
      assert.equal(6, r:position())
      assert.equal("a\nb\nc\n", k.read(dir .. "/out"))
      r:close() r:close() w:close()
      assert.has_error(function() r:poll() end, "lines: the reader is closed")
      assert.has_error(function() w:write(nil) end)
    end)
    it("raise errors of their kind", function()
      local ok, err = pcall(lines.writer, dir .. "/no/such")
      assert.is_false(ok)
      assert.equal("fatal", err.kind)
      local w = lines.writer "/dev/full"
      k.write(dir .. "/in", "a\n")
      local b = lines.reader { file = dir .. "/in", topic = "t" }:poll()
      ok, err = pcall(w.write, w, b)
      assert.is_false(ok)
      assert.equal("retriable", err.kind)
    end)
  end)

  it("has structs of the same size in C and Lua", function()
    local fx = require "connect.ffi"
    for _, name in ipairs { "lc_record_t", "lc_batch_t", "lc_value_t", "lc_schema_t", "lc_json_t" } do
      assert.equal(ffi.sizeof(name), tonumber(fx.C.lc_ffi_sizeof(name)))
    end
    assert.equal(0, tonumber(fx.C.lc_ffi_sizeof "nonsense"))
  end)

  -- The same text in a process of its own: ffi.lua's own declarations, not the headers'.
  it("declares in a fresh state what the headers say", function()
    local code = [[package.path = "./?.lua;lua/?.lua;lua/?/init.lua;" .. package.path
      require("spec.support.library").core()
      collectgarbage() collectgarbage() -- the library stays though nothing names it
      require "connect.ffi" require "connect.record" require "connect.lines" require "connect.schema"
      print(require("connect.json").encode(require("connect.json").decode "[1,{}]"))]]
    local script = os.tmpname()
    proc.write(script, code)
    local out = proc.run((os.getenv "LC_LUA" or "luajit") .. " " .. script .. " 2>&1")
    os.remove(script)
    assert.equal("[1,{}]\n", out)
  end)
end)
