-- core/convert: the JSON reader and writer, Java's number texts, UTF-8, base64. Error texts are Jackson's.
local data = require "spec.support.data"
local core = require "spec.support.core"
local C, ffi = core.load { "convert/json.h", "convert/text.h", "convert/converter.h" }

ffi.cdef [[
double strtod(const char *s, char **end);
unsigned long long strtoull(const char *s, char **end, int base);
]]

local function buf(f)
  local b = ffi.new "lc_buf_t"
  f(b)
  local s = b.p ~= nil and ffi.string(b.p, b.len) or ""
  C.lc_buf_free(b)
  return s
end

local function parse(text, flags)
  local doc, err = ffi.new "lc_json_t *[1]", core.err()
  local copy = ffi.new("char[?]", #text + 1, text) -- so that reading past the end is seen by sanitizers
  if C.lc_json_parse(copy, #text, flags or 0, doc, err) < 0 then
    return nil, core.msg(err):gsub("REDACTED %b()", "REDACTED"), ffi.string(err.cls)
  end
  return doc[0] ~= nil and ffi.gc(doc[0], C.lc_json_free) or "nothing"
end

local function again(text, flags)
  local doc, err = parse(text, flags)
  if not doc then return nil, err end
  return buf(function(b) C.lc_json_write(b, doc) end)
end

local function place(line, column) return ("\n at [Source: REDACTED; line: %d, column: %d]"):format(line, column) end

describe("reader", function()
  it("keeps literals, order and strings", function()
    local text = '{"b":[1,-2.50,1E+3,true,false,null],"a":{"":"x"},"n":12345678901234567890123}'
    assert.are.equal(text, again(text))
    assert.are.equal('{"a":[]}', again ' \n{ "a" :\t[ ] }\r\n')
  end)

  it("lets the last of equal keys win, at the place of the first", function()
    assert.are.equal('{"a":3,"b":2}', again '{"a":1,"b":2,"a":3}')
    local many, want = {}, {}
    for i = 1, 40 do many[i], want[i] = ('"k%d":%d'):format(i, i), ('"k%d":%d'):format(i, i + 100) end
    for i = 1, 40 do many[40 + i] = ('"k%d":%d'):format(i, i + 100) end
    assert.are.equal("{" .. table.concat(want, ",") .. "}", again("{" .. table.concat(many, ",") .. "}"))
    for _, n in ipairs { 2, 50, 51, 100, 101, 200 } do -- names of all lengths, some the same at both ends
      local list, first = {}, {}
      for i = 1, n do
        local name = i % 3 == 0 and ("same end %d same end"):format(i) or ("n"):rep(i % 3 == 1 and i or i % 9) .. i
        first[i] = ('"%s":%d'):format(name, i + 1000)
        list[i], list[n + i] = ('"%s":%d'):format(name, i), first[i]
      end
      assert.are.equal("{" .. table.concat(first, ",") .. "}", again("{" .. table.concat(first, ",") .. "}"))
      assert.are.equal("{" .. table.concat(first, ",") .. "}", again("{" .. table.concat(list, ",") .. "}"))
    end
  end)

  it("decodes escapes and other encodings", function()
    local doc = parse '"\\u00e9\\ud83d\\ude00\\n\\u0000x"'
    assert.are.equal("é😀\n\0x", ffi.string(doc.s, doc.len))
    assert.are.equal('"a"', again "\254\255\0\"\0a\0\"")
    assert.are.equal('{"a":1}', again "{\0\"\0a\0\"\0:\0001\0}\0")
    assert.are.equal('[1]', again "\239\187\191[1]")
  end)

  it("gives nothing for blanks", function()
    assert.are.equal("nothing", parse "")
    assert.are.equal("nothing", parse " \n")
  end)

  local refused = {
    { "nonsense", "Unrecognized token 'nonsense': was expecting (JSON String, Number, Array, Object or token 'null', " ..
      "'true' or 'false')", 1, 1 },
    { '{"a":\n nul}', "Unrecognized token 'nul': was expecting (JSON String, Number, Array, Object or token 'null', " ..
      "'true' or 'false')", 2, 2 },
    { '{"a" 1}', "Unexpected character ('1' (code 49)): was expecting a colon to separate field name and value", 1, 6 },
    { "[1 2]", "Unexpected character ('2' (code 50)): was expecting comma to separate Array entries", 1, 4 },
    { "[1,]", "Unexpected character (']' (code 93)): expected a value", 1, 4 },
    { '{"a":1,}', "Unexpected character ('}' (code 125)): was expecting double-quote to start field name", 1, 8 },
    { "[1}", "Unexpected close marker '}': expected ']' (for Array starting at [Source: REDACTED; line: 1, column: 1])", 1, 3 },
    { '"a\nb"', "Illegal unquoted character ((CTRL-CHAR, code 10)): has to be escaped using backslash to be included " ..
      "in string value", 1, 3 },
    { '"\\x"', "Unrecognized character escape 'x' (code 120)", 1, 3 },
    { '"\255"', "Invalid UTF-8 start byte 0xff", 1, 3 },
    { '"\195x"', "Invalid UTF-8 middle byte 0x78", 1, 4 },
    { "-x", "Unexpected character ('x' (code 120)) in numeric value: expected digit (0-9) to follow minus sign, for " ..
      "valid numeric value", 1, 2 },
    { "007", "Invalid numeric value: Leading zeroes not allowed", 1, 2 },
    { "NaN", "Non-standard token 'NaN': enable `JsonReadFeature.ALLOW_NON_NUMERIC_NUMBERS` to allow", 1, 4 },
    { "{} x", "Unrecognized token 'x': was expecting (JSON String, Number, Array, Object or token 'null', 'true' or " ..
      "'false')", 1, 4 },
  }
  for _, r in ipairs(refused) do
    it("refuses " .. ("%q"):format(r[1]), function()
      local doc, message, cls = parse(r[1])
      assert.is_nil(doc)
      assert.are.equal(r[2] .. place(r[3], r[4]), message)
      assert.are.equal("com.fasterxml.jackson.core.JsonParseException", cls)
    end)
  end

  it("names the end of the text as such", function()
    local _, message, cls = parse '{"a":[1'
    assert.are.equal("Unexpected end-of-input: expected close marker for Array (start marker at [Source: REDACTED; " ..
      "line: 1, column: 6])" .. place(1, 8), message)
    assert.are.equal("com.fasterxml.jackson.core.io.JsonEOFException", cls)
  end)

  it("is lenient for JsonConverter", function()
    assert.are.equal("7", again("007", C.LC_JSON_LENIENT))
    assert.are.equal("-7", again("-007", C.LC_JSON_LENIENT))
    assert.are.equal('{"a":1}', again('{"a":1} xx', C.LC_JSON_LENIENT))
  end)

  it("stops at depth 1000 and numbers of 1000 digits", function()
    assert.is_not_nil(parse(("["):rep(1000) .. ("]"):rep(1000)))
    assert.is_not_nil(select(2, parse(("["):rep(1001))):find("Document nesting depth (1001)", 1, true))
    assert.is_not_nil(parse(("1"):rep(1000)))
    assert.is_not_nil(select(2, parse(("1"):rep(1001))):find("Number value length (1001)", 1, true))
  end)

  it("survives every cut of a document", function()
    local text = '{"a":[1.5e3,"x\\u00e9\\n",{"b":null}],"é":true}'
    for i = 0, #text - 1 do
      local doc = parse(text:sub(1, i))
      assert.is_true(doc == nil or doc == "nothing", text:sub(1, i))
    end
  end)

  it("reads numbers as Java does", function()
    local exact = ffi.new "bool[1]"
    local function int(text) return tostring(C.lc_json_int64(parse(text), exact)), exact[0] end
    assert.are.same({ "9223372036854775807LL", true }, { int "9223372036854775807" })
    assert.are.same({ "-4362896299872285998LL", false }, { int "123456789012345678901234567890" })
    assert.are.same({ "1500LL", true }, { int "1.5e3" })
    assert.are.same({ "1LL", false }, { int "1.5" })
    assert.are.same({ "7766279631452241920LL", false }, { int "1e+20" })
    assert.are.equal(1 / 0, C.lc_json_double(parse "1e400"))
    assert.are.equal(1 / 0, 1 / C.lc_json_double(parse "-0.0"))
    for text, want in pairs { ["999999999999999999"] = true, ["-999999999999999999"] = true, ["-9223372036854775808"] = true,
      ["9223372036854775808"] = false, ["9999999999999999999"] = false, ["-9223372036854775809"] = false } do
      assert.are.same({ tostring(ffi.C.strtoull(text, nil, 10)):gsub("ULL", ""), want },
        { tostring(ffi.cast("uint64_t", C.lc_json_int64(parse(text), exact))):gsub("ULL", ""), exact[0] }, text)
    end
  end)

  it("reads short and long fractions as strtod does", function()
    math.randomseed(4711)
    local function digits(n)
      local t = {}
      for i = 1, n do t[i] = math.random(0, 9) end
      return table.concat(t)
    end
    local function check(text) assert.are.equal(ffi.C.strtod(text, nil), C.lc_json_double(parse(text)), text) end
    for _ = 1, 20000 do
      check((math.random(2) == 1 and "-" or "") .. math.random(1, 9) .. digits(math.random(0, 17)) .. "."
        .. digits(math.random(1, 24)))
      check("0." .. ("0"):rep(math.random(0, 24)) .. digits(math.random(1, 17)) .. "1")
    end
    for _, text in ipairs { "0.1", "9007199254740993.0", "999999999999999.9", "123456789012345", "1.5e-7", "0.30000000000000004",
      "1.0E23", "0.0000000000000000000001" } do check(text) end
  end)
end)

describe("writer", function()
  it("escapes as JsonConverter does", function()
    local function quoted(s) return buf(function(b) C.lc_json_write_string(b, s, #s) end) end
    assert.are.equal([["a\"\\\b\f\n\r\t\u0001\u001F/]] .. "\127ü日" .. [[\uD83D\uDE00"]],
      quoted "a\"\\\b\f\n\r\t\1\31/\127ü日😀")
    for n = 0, 70 do -- around the 16-byte steps
      local s = ("x"):rep(n)
      assert.are.equal('"' .. s .. '"', quoted(s))
      assert.are.equal('"' .. s .. '\\"y"', quoted(s .. '"y'))
      assert.are.equal('"' .. s .. 'ü"', quoted(s .. "ü"))
      assert.are.equal('"\\n' .. s .. '"', quoted("\n" .. s))
    end
    for n = 1, 20 do -- an escape at every place of a short text, and in names
      for i = 1, n do
        local s = ("x"):rep(i - 1) .. "\t" .. ("y"):rep(n - i)
        assert.are.equal('"' .. s:gsub("\t", "\\t") .. '"', quoted(s))
        assert.are.equal(',"' .. s:gsub("\t", "\\t") .. '":', buf(function(b) C.lc_json_write_name(b, s, #s, true) end))
        s = ("x"):rep(i - 1) .. "ü" .. ("y"):rep(n - i)
        assert.are.equal('"' .. s .. '":', buf(function(b) C.lc_json_write_name(b, s, #s, false) end))
      end
    end
    assert.are.equal('"' .. ("\\n"):rep(5000) .. '"', quoted(("\n"):rep(5000)))
    assert.are.equal('"\239\191\189a"', quoted "\255a")
  end)

  it("sorts keys at every depth for the canonical form", function()
    assert.are.equal('{"a":{"x":1,"y":2},"b":[{"c":1,"d":2}]}', buf(function(b)
      C.lc_json_write_canonical(b, parse '{"b":[{"d":2,"c":1}],"a":{"y":2,"x":1}}')
    end))
  end)

  it("writes properties", function()
    local p = core.props { { "b", 'x"' }, { "a", "1" } }
    C.lc_props_set(p, "n", nil)
    assert.are.equal('{"b":"x\\"","a":"1","n":null}', buf(function(b) C.lc_json_write_props(b, p) end))
  end)
end)

describe("Java's numbers", function()
  local doubles = {
    { 0, "0.0" }, { 1, "1.0" }, { 100, "100.0" }, { 0.001, "0.001" }, { 0.00099, "9.9E-4" }, { 1e7, "1.0E7" },
    { 9999999.999999998, "9999999.999999998" }, { 1e10, "1.0E10" }, { 1e23, "9.999999999999999E22" }, { 2e16, "2.0E16" },
    { 1.7976931348623157e308, "1.7976931348623157E308" }, { 2.2250738585072014e-308, "2.2250738585072014E-308" },
    { 4.9e-324, "4.9E-324" }, { 123456789012345680, "1.2345678901234568E17" }, { -1.5, "-1.5" }, { 1 / 0, "Infinity" },
    { -1 / 0, "-Infinity" }, { 8.41e21, "8.409999999999999E21" },
    { 33333333300000001884183387, "3.3333333300000004E25" }, -- sums beyond 64 bits on the way
  }
  it("doubles", function()
    for _, d in ipairs(doubles) do assert.are.equal(d[2], buf(function(b) C.lc_java_double(b, d[1]) end)) end
    assert.are.equal("-0.0", buf(function(b) C.lc_java_double(b, -0.0) end))
    assert.are.equal("NaN", buf(function(b) C.lc_java_double(b, math.huge - math.huge) end))
  end)
  it("floats", function()
    for _, f in ipairs { { 1.1, "1.1" }, { 1e10, "1.0E10" }, { 3.4028235e38, "3.4028235E38" }, { 1.4e-45, "1.4E-45" },
                         { 16777216, "1.6777216E7" }, { 123456789, "1.23456792E8" } } do
      assert.are.equal(f[2], buf(function(b) C.lc_java_float(b, f[1]) end))
    end
  end)
end)

describe("UTF-8", function()
  local fffd = "\239\191\189"
  local malformed = {
    { "a\255b", "a" .. fffd .. "b" }, { "\192\128", fffd .. fffd }, { "\226\130", fffd }, { "\226\130a", fffd .. "a" },
    { "\237\160\128", fffd }, { "\240\159\152", fffd }, { "\244\144\128\128", fffd:rep(4) }, { "\128", fffd },
    { "\224\128\128", fffd:rep(3) }, { "ü\255日", "ü" .. fffd .. "日" },
  }
  it("replaces what is malformed as Java's decoder does", function()
    for _, m in ipairs(malformed) do
      assert.are.equal(m[2], buf(function(b) C.lc_utf8_append(b, m[1], #m[1]) end))
      assert.is_false(C.lc_utf8_valid(m[1], #m[1]))
    end
  end)
  it("passes what is in order", function()
    for n = 0, 40 do
      local s = ("x"):rep(n) .. "é日😀" .. ("y"):rep(n)
      assert.is_true(C.lc_utf8_valid(s, #s))
      assert.are.equal(s, buf(function(b) C.lc_utf8_append(b, s, #s) end))
    end
  end)
end)

describe("base64", function()
  it("goes both ways", function()
    local p = data.place()
    for n = 0, 50 do
      local s = ("\0\255abc"):rep(11):sub(1, n)
      local text = buf(function(b) C.lc_base64_append(b, s, #s) end)
      assert.are.equal(data.base64(s), text)
      local out, len, why = ffi.new "const char *[1]", ffi.new "size_t[1]", ffi.new "char[200]"
      assert.are.equal(0, C.lc_base64_decode(text, #text, p.arena, out, len, why))
      assert.are.equal(s, ffi.string(out[0], len[0]))
    end
    p:free()
  end)
end)
