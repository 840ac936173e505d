-- core/data: schemas and their builder, validation, decimals, values, HashMap order.
local data = require "spec.support.data"
local core = require "spec.support.core"
local C, ffi = data.C, data.ffi

local function schema(p, text) return p:schema(data.read(text)) end

local function value(p, text, s) return p:typed(data.read(text), p:items(1)[0], s) end

local function refused(check, ...)
  local err = core.err()
  local args = { ... }
  args[#args + 1] = err
  assert.are.equal(-1, check(unpack(args)))
  return core.msg(err), ffi.string(err.detail), ffi.string(err.cls)
end

describe("data", function()
  local p
  before_each(function() p = data.place() end)
  after_each(function() p:free() end)

  describe("schema", function()
    it("is equal by all attributes, deep", function()
      local text = '{"type":"struct","fields":[{"type":"int32","optional":true,"default":3,"field":"a"},' ..
        '{"type":"map","keys":{"type":"string"},"values":{"type":"array","items":{"type":"int8"}},"field":"m"}],' ..
        '"name":"N","version":1,"doc":"d","parameters":{"k":"v"}}'
      assert.is_true(C.lc_schema_equal(schema(p, text), schema(p, text)))
      for _, change in ipairs { { '"default":3', '"default":4' }, { '"int8"', '"int16"' }, { '"N"', '"M"' },
                                { '"version":1', '"version":2' }, { '"doc":"d"', '"doc":"e"' }, { '"v"', '"w"' },
                                { '"field":"a"', '"field":"b"' }, { '"optional":true', '"optional":false' } } do
        local other = text:gsub(change[1], change[2])
        assert.are_not.equal(text, other)
        assert.is_false(C.lc_schema_equal(schema(p, text), schema(p, other)), other)
      end
      assert.is_false(C.lc_schema_equal(schema(p, text), nil))
      assert.is_true(C.lc_schema_equal(nil, nil))
    end)

    it("finds fields, few and many", function()
      local b, err = C.lc_schema_builder_new(C.LC_STRUCT), core.err()
      for i = 1, 300 do
        assert.are.equal(0, C.lc_schema_builder_field(b, "f" .. i, C.lc_schema_string, err))
        assert.are.equal(i - 1, C.lc_schema_field_index(C.lc_schema_builder_peek(b), "f" .. i, #("f" .. i)))
      end
      local s = C.lc_schema_builder_finish(b)
      for i = 1, 300 do assert.are.equal(i - 1, C.lc_schema_field_index(s, "f" .. i, #("f" .. i))) end
      assert.are.equal(-1, C.lc_schema_field_index(s, "f301", 4))
      assert.are.equal(-1, C.lc_schema_field_index(s, "f1", 1))
      C.lc_schema_unref(s)
    end)

    it("refuses what Java's builder refuses", function()
      local b = C.lc_schema_builder_new(C.LC_STRUCT)
      C.lc_schema_builder_field(b, "a", C.lc_schema_string, nil)
      local message, _, cls = refused(C.lc_schema_builder_field, b, "a", C.lc_schema_string)
      assert.are.equal("Cannot create field because of field name duplication a", message)
      assert.are.equal("org.apache.kafka.connect.errors.SchemaBuilderException", cls)
      assert.are.equal("fieldName cannot be null.", (refused(C.lc_schema_builder_field, b, "", C.lc_schema_string)))
      C.lc_schema_builder_free(b)
      b = C.lc_schema_builder_new(C.LC_INT32)
      local text, detail = refused(C.lc_schema_builder_default, b, value(p, '"x"'))
      assert.are.equal("Invalid default value", text)
      assert.are.equal("Caused by: org.apache.kafka.connect.errors.DataException: Invalid Java object for schema with " ..
        "type INT32: class java.lang.String for value\n", detail)
      C.lc_schema_builder_free(b)
    end)

    it("refuses a default that grows with every level", function()
      local text = '{"type":"string","optional":true,"default":"x"}'
      for _ = 1, 40 do text = '{"type":"array","items":' .. text .. ',"optional":true,"default":[null,null]}' end
      local ok, err = pcall(p.schema, p, data.read(text))
      assert.is_false(ok)
      assert.are.equal("org.apache.kafka.connect.errors.SchemaBuilderException", err.class)
      assert.are.equal("Invalid default value", err.message)
    end)

    it("copies through a builder, and is freed when nobody holds it", function()
      local s = schema(p, '{"type":"struct","fields":[{"type":"int64","field":"x"}],"name":"N"}')
      local copy = C.lc_schema_builder_finish(C.lc_schema_builder_from(s))
      assert.is_true(C.lc_schema_equal(s, copy))
      C.lc_schema_ref(copy)
      C.lc_schema_unref(copy)
      C.lc_schema_unref(copy)
      C.lc_schema_unref(C.lc_schema_string) -- static: nothing happens
      assert.are.equal(C.LC_STRING, tonumber(C.lc_schema_string.type))
    end)

    it("knows logical types by name", function()
      local s = schema(p, '{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}}')
      assert.are.equal(C.LC_DECIMAL, tonumber(s.logical))
      assert.are.equal(2, s.scale)
      local made = C.lc_schema_logical(C.LC_DATE, 0, true)
      assert.are.equal('{"type":"int32","optional":true,"name":"org.apache.kafka.connect.data.Date","version":1}',
        data.schema_text(made))
      C.lc_schema_unref(made)
    end)
  end)

  describe("validation", function()
    it("has Connect's texts", function()
      local int32 = schema(p, '{"type":"int32"}')
      local list = schema(p, '{"type":"array","items":{"type":"map","keys":{"type":"string"},"values":{"type":"int32"}}}')
      local decimal = schema(p, '{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}}')
      local check = C.lc_validate_value
      assert.are.equal("Invalid value: null used for required value, schema type: INT32",
        (refused(check, int32, value(p, "null"))))
      assert.are.equal("Invalid Java object for schema with type INT32: class java.lang.String for field: \"f\"",
        (refused(C.lc_validate_field, "f", int32, value(p, '"x"'))))
      assert.are.equal("Invalid Java object for schema \"org.apache.kafka.connect.data.Decimal\" with type BYTES: " ..
        "class [B for value", (refused(check, decimal, value(p, '{"$bytes":"AQ=="}'))))
      assert.are.equal("Invalid value: null used for required value of map element of array value, schema type: INT32",
        (refused(check, list, value(p, '[{"$map":[["a",null]]}]'))))
      assert.are.equal(0, check(list, value(p, '[{"$map":[["a",{"$int32":1}]]}]'), nil))
    end)

    it("checks structs by their fields", function()
      local s = schema(p, '{"type":"struct","fields":[{"type":"int32","field":"a"},{"type":"int32","default":1,"field":"b"}]}')
      assert.are.equal(0, C.lc_validate_value(s, value(p, '{"$struct":{"a":{"$int32":1}}}', s), nil))
      assert.are.equal("Invalid value: null used for required field: \"a\", schema type: INT32",
        (refused(C.lc_validate_value, s, value(p, '{"$struct":{"b":{"$int32":1}}}', s))))
      local other = schema(p, '{"type":"struct","fields":[{"type":"int32","field":"a"}]}')
      assert.are.equal("Struct schemas do not match.",
        (refused(C.lc_validate_value, other, value(p, '{"$struct":{"a":{"$int32":1}}}', s))))
    end)
  end)

  describe("decimal", function()
    local function text(d)
      local b = ffi.new "lc_buf_t"
      C.lc_decimal_to_text(d, b)
      local s = ffi.string(b.p, b.len)
      C.lc_buf_free(b)
      return s
    end
    local function parse(s)
      local d = ffi.new "const lc_decimal_t *[1]"
      return C.lc_decimal_parse(p.arena, s, #s, d) == 0 and d[0] or nil
    end

    it("reads and prints as BigDecimal", function()
      local big = "-" .. ("1234567890"):rep(30) .. ".5"
      for _, t in ipairs { { "0" }, { "-1" }, { "1.50" }, { "0.000001" }, { "1E-7" }, { "1E+3" }, { "1e3", "1E+3" },
                           { "0.0000001", "1E-7" }, { "12345678901234567890.123" }, { ".5", "0.5" }, { "5.", "5" },
                           { "+007", "7" }, { "-0", "0" }, { "-0.0", "0.0" }, { "123E-10", "1.23E-8" }, { big },
                           { "9223372036854775808" }, { "-9223372036854775808" }, { "1E+2147483647" } } do
        local d = parse(t[1])
        assert.is_not_nil(d, t[1])
        assert.are.equal(t[2] or t[1], text(d))
      end
      for _, t in ipairs { "", ".", "-", "1e", "e1", "1e2147483649", "1_0", "0x1", "1 ", "--1", "1.2.3", "1e+-2" } do
        assert.is_nil(parse(t), t)
      end
    end)

    it("keeps the shortest two's complement", function()
      for _, t in ipairs { { "0", "AA==" }, { "127", "fw==" }, { "128", "AIA=" }, { "-128", "gA==" }, { "-129", "/38=" },
                           { "65535", "AP//" }, { "-18446744073709551616", "/wAAAAAAAAAA" } } do
        local d = parse(t[1])
        assert.are.equal(t[2], data.base64(ffi.string(d.unscaled, d.len)))
        local longer = (d.unscaled[0] >= 128 and "\255" or "\0"):rep(3) .. ffi.string(d.unscaled, d.len)
        local same = C.lc_decimal_from_bytes(p.arena, longer, #longer, 0)
        assert.are.equal(d.len, same.len)
        assert.are.equal(t[1], text(same))
        assert.are.equal(t[1], text(C.lc_decimal_from_bytes(p.arena, d.unscaled, d.len, 0)))
      end
    end)

    it("narrows to int64 and double", function()
      local exact = ffi.new "bool[1]"
      local function int(s) return tostring(C.lc_decimal_int64(parse(s), exact)), exact[0] end
      assert.are.same({ "-9223372036854775808LL", true }, { int "-9223372036854775808" })
      assert.are.same({ "1500LL", true }, { int "1.5e3" })
      assert.are.same({ "12LL", false }, { int "12.9" })
      assert.are.same({ "0LL", false }, { int "1e400" })
      assert.are.same({ "7766279631452241920LL", false }, { int "1e20" })
      assert.are.equal(0.1, C.lc_decimal_double(parse "0.10"))
    end)
  end)

  describe("value", function()
    it("is copied deep", function()
      local a = data.place()
      local v, copy = value(a, '[1,"x",{"$map":[["k",[{"$decimal":"1.5"}]]]},{"$bytes":"AQ=="},null]'), p:items(1)
      local shown = data.show(v)
      assert.are.equal(0, C.lc_value_copy(p.arena, v, copy[0]))
      assert.is_true(C.lc_value_equal(v, copy[0]))
      a:free()
      assert.are.equal(shown, data.show(copy[0]))
    end)

    it("is compared as Java does", function()
      local function same(a, b) return C.lc_value_equal(value(p, a), value(p, b)) end
      assert.is_true(same('{"a":1,"b":2}', '{"$map":[["b",2],["a",1]]}'))
      assert.is_false(same('{"a":1}', '{"a":2}'))
      assert.is_true(same('{"$float64":"NaN"}', '{"$float64":"NaN"}'))
      assert.is_false(same('{"$float64":"0.0"}', '{"$float64":"-0.0"}'))
      assert.is_false(same('{"$decimal":"1.0"}', '{"$decimal":"1.00"}'))
      assert.is_false(same('{"$int32":1}', '{"$int64":1}'))
      assert.is_false(same('[1]', '[1,2]'))
    end)
  end)

  describe("HashMap order", function()
    it("follows Java's hash codes", function()
      for _, h in ipairs { { "", 0 }, { "a", 97 }, { "Aa", 2112 }, { "BB", 2112 }, { "ü", 252 }, { "😀", 1772899 } } do
        assert.are.equal(h[2], C.lc_java_string_hash(h[1], #h[1]))
      end
      assert.are.equal(-1915528825, C.lc_java_hash(value(p, '{"$bigint":"-123456789012345678901234567890"}')))
      assert.are.equal(33759, C.lc_java_hash(value(p, '[{"$int32":1},"a",null]')))
      assert.are.equal(1073217536, C.lc_java_hash(value(p, '{"$float64":"1.5"}')))
    end)

    it("orders entries as recorded", function()
      assert.are.equal("{zeta=1, Aa=5, BB=6, x10=3, alpha=2, mid=3, x1=1, x2=2, beta=4}", data.java_text(value(p,
        '{"$map":[["zeta",1],["alpha",2],["mid",3],["beta",4],["Aa",5],["BB",6],["x1",1],["x2",2],["x10",3]]}')))
    end)
  end)
end)
