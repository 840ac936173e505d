-- Bad bytes through every converter: what Kafka Connect's own classes answered (spec/golden/bad_values.jsonl) is what
-- ours answer, value or message; then values too large to record, transforms, and `luaconnect try`.
local golden = require "spec.support.golden"
local data = require "spec.support.data"
local inputs = require "spec.golden.bad_values"
local core = require "spec.support.core"
local k = require "spec.support.connect"
local chains = require "spec.support.chain"
local proc = require "spec.support.proc"
local standalone = require "spec.support.standalone"
local C, ffi = data.C, data.ffi

-- As RecordBadValues.java shortens long texts.
local function brief(s)
  if #s <= 400 then return s end
  local h = 0
  for i = 1, #s do h = (h * 31 + s:byte(i)) % 1000000007 end
  return ("%s... %d bytes, hash %d"):format(s:sub(1, 60):gsub("[^ -~]", "?"), #s, h)
end

local function written(s)
  if s == nil then return golden.null end
  local place = data.place()
  local valid = data.C.lc_utf8_valid(s, #s)
  place:free()
  return brief(valid and s or "base64:" .. data.base64(s))
end

-- The error of a recording as one text, and ours: class: message / cause ...
local function recorded_error(e)
  local out = {}
  while e and e ~= golden.null do
    out[#out + 1] = e.class .. (e.message ~= golden.null and e.message and ": " .. e.message or "")
    e = e.cause
  end
  return table.concat(out, " <- ")
end

local function our_error(e)
  if type(e) ~= "table" then return tostring(e) end
  local out = { e.class .. ": " .. e.message }
  local cause
  for line in (e.detail .. "\n"):gmatch "(.-)\n" do
    if line:find "^Caused by: " then
      cause = #out + 1
      out[cause] = line:sub(12)
    elseif cause and line ~= "" then
      out[cause] = out[cause] .. "\n" .. line
    end
  end
  return table.concat(out, " <- ")
end

local function run(place, class, role, config, bytes)
  local header = role == "header" and "H" or nil
  local settings = {}
  for name, v in config:gmatch "([^=;]+)=([^;]*)" do settings[name] = v end
  local cv = place:converter(class, settings, role)
  local ok, value, schema = pcall(place.to_connect, place, cv, bytes, header)
  if not ok then return { error = our_error(value) } end
  local out = { schema = schema and brief(data.schema_text(schema)) or "null", value = brief(data.show(value)) }
  local written_ok, back = pcall(place.from_connect, place, cv, schema, value, header)
  if written_ok then out.back = written(back) else out.back_error = our_error(back) end
  return out
end

-- JSON that Java wrote: a lone surrogate is an escape there, and "?" here.
local function no_lone_surrogates(text)
  if type(text) ~= "string" then return text end
  text = text:gsub("\\u(D[89AB]%x%x)\\u(D[C-F]%x%x)", "\1%1\2%2")
  return (text:gsub("\\uD[89A-F]%x%x", "?"):gsub("\1(....)\2(....)", "\\u%1\\u%2"))
end

-- A recorded row in the same form.
local function expected(row)
  if row.error then return { error = recorded_error(row.error) } end
  return { schema = row.schema ~= golden.null and row.schema or "null", value = row.value,
    back = row.converter == "JsonConverter" and no_lone_surrogates(row.back) or row.back,
    back_error = row.back_error and recorded_error(row.back_error) }
end

-- Where ours differ on purpose (docs/differences.md), by the start of the input's name and what of it differs.
local too_deep = { converter = "SimpleHeaderConverter", why = "beyond 1,000 levels the header stays bytes" }
local utf32 = { converter = "JsonConverter", why = "errors in UTF-16 and UTF-32 count the bytes of UTF-8" }
local nan = { converter = "FloatConverter", why = "one NaN" }
local nul = { converter = "JsonConverter", why = "no NUL in the names of schemas" }
local deliberate = {
  ["array-1001-deep"] = too_deep, ["array-2000-deep"] = too_deep, ["object-2000-deep"] = too_deep, ["mixed-600-deep"] = too_deep,
  ["array-2000-open"] = too_deep, ["object-2000-open"] = too_deep,
  ["binary-80000000"] = utf32, ["binary-8000000000000000"] = utf32,
  ["binary-7fc00001"] = nan, ["binary-7f800001"] = nan, ["binary-ffc01234"] = nan,
  ['schema-{"type":"string","default":"\\u0000","name":"a\\u0000b","doc":"\\ud800"} null'] = nul,
  ['schema-{"type":"struct","fields":[{"type":"int8","field":"a\\u0000b"}]} {"a\\u0000b":1}'] = nul,
  ["nul-key"] = { converter = "JsonConverter", why = "values keep the order of a map without a schema" },
}

local FIELDS = { "error", "schema", "value", "back", "back_error" }

describe("bad bytes", function()
  local rows, groups = {}, {}
  for line in io.lines(golden.dir() .. "/bad_values.jsonl") do rows[#rows + 1] = golden.decode(line) end
  local n = 0
  inputs.each(function(name, class, role, config, bytes)
    n = n + 1
    local key = ("%s as %s %s"):format(class:match "[^.]+$", role, config)
    if not groups[key] then
      groups[key] = {}
      groups[#groups + 1] = key
    end
    table.insert(groups[key], { name = name, class = class, role = role, config = config, bytes = bytes, row = rows[n] })
  end)

  it("are all recorded", function() assert.equal(n, #rows) end)

  teardown(function()
    for name, known in pairs(deliberate) do assert(known.seen, name .. " does not differ any more") end
  end)

  for _, key in ipairs(groups) do
    it("through " .. key .. " are what Java makes of them", function()
      local wrong = {}
      for _, case in ipairs(groups[key]) do
        assert.equal(case.name, case.row.name)
        local place = data.place()
        local want, got = expected(case.row), run(place, case.class, case.role, case.config, case.bytes)
        place:free()
        local differs
        for _, field in ipairs(FIELDS) do differs = differs or (want[field] ~= got[field] and field or nil) end
        local known = deliberate[case.name]
        if differs and known and known.converter == case.row.converter then
          known.seen = true
        elseif differs then
          wrong[#wrong + 1] = ("%s: %s\n  java %s\n  here %s"):format(case.name, differs, tostring(want[differs]),
            tostring(got[differs]))
        end
      end
      assert.equal("", table.concat(wrong, "\n"))
    end)
  end
end)

-- 50 MB between two texts, outside Lua's memory.
local MANY = 50 * 1000 * 1000
local function huge(before, byte, after)
  local n = #before + MANY + #after
  local p = ffi.new("char[?]", n)
  ffi.copy(p, before, #before)
  ffi.fill(p + #before, MANY, byte:byte())
  ffi.copy(p + #before + MANY, after, #after)
  return p, n
end

describe("50 MB", function()
  local place
  before_each(function() place = data.place() end)
  after_each(function()
    place:free()
    collectgarbage()
  end)

  -- Read and written again: type, length, first error; the bytes written are those read.
  local function through(class, config, p, n, role)
    local cv = place:converter(class, config, role)
    local header = role == "header" and "H" or nil
    local schema, value, slice, err = ffi.new "const lc_schema_t *[1]", place:items(1), ffi.new "lc_slice_t", core.err()
    slice.p, slice.len = p, n
    if cv.cls.to_connect(cv, "topic", header, slice, place.arena, schema, value, err) < 0 then
      assert.equal(C.LC_DATA, err.kind)
      return nil, core.msg(err) .. ffi.string(err.detail)
    end
    assert.equal(0, cv.cls.from_connect(cv, "topic", header, schema[0], value, place.arena, slice, err), core.msg(err))
    return tonumber(value[0].type), tonumber(value[0].len), slice.p ~= nil and tonumber(slice.len) == n
      and ffi.C.memcmp(slice.p, p, n) == 0
  end
  ffi.cdef "int memcmp(const void *a, const void *b, size_t n);"

  it("as a text or bytes come through as they are", function()
    local p, n = huge("", "x", "")
    assert.same({ C.LC_STRING, MANY, true }, { through("StringConverter", {}, p, n) })
    assert.same({ C.LC_BYTES, MANY, true }, { through("ByteArrayConverter", {}, p, n) })
    assert.same({ C.LC_STRING, MANY, true }, { through("SimpleHeaderConverter", {}, p, n, "header") })
  end)

  it("are no numbers, and no JSON", function()
    local p, n = huge("", "x", "")
    for name, word in pairs { Short = "short", Integer = "integer", Long = "long", Float = "float", Double = "double",
                              Boolean = "boolean" } do
      local _, message = through(name .. "Converter", {}, p, n)
      assert.matches("^Failed to deserialize " .. word .. ": ", message)
    end
    local _, message = through("JsonConverter", { ["schemas.enable"] = "false" }, p, n)
    assert.matches("Unrecognized token 'x+%.%.%.'", message)
  end)

  it("of a JSON string, alone and in an envelope", function()
    local p, n = huge('"', "x", '"')
    assert.same({ C.LC_STRING, MANY, true }, { through("JsonConverter", { ["schemas.enable"] = "false" }, p, n) })
    p, n = huge('{"schema":{"type":"string","optional":false},"payload":"', "x", '"}')
    assert.same({ C.LC_STRING, MANY, true }, { through("JsonConverter", {}, p, n) })
    assert.same({ C.LC_STRING, MANY, true }, { through("JsonConverter", {}, p, n) }) -- the short way of a known envelope
    p, n = huge('{"schema":{"type":"bytes","optional":false},"payload":"', "A", '"}')
    assert.same({ C.LC_BYTES, MANY / 4 * 3, true }, { through("JsonConverter", {}, p, n) })
  end)

  it("of blanks are nothing, of brackets too deep, of digits too long", function()
    local json = { ["schemas.enable"] = "false" }
    assert.same({ C.LC_NULL, 0, false }, { through("JsonConverter", json, huge("", " ", "")) })
    local _, message = through("JsonConverter", json, huge("", "[", ""))
    assert.matches("Document nesting depth (1001) exceeds the maximum allowed (1000, ", message, 1, true)
    _, message = through("JsonConverter", json, huge("", "7", ""))
    assert.matches("Number value length (50000000) exceeds the maximum allowed (1000, ", message, 1, true)
    assert.same({ C.LC_STRING, MANY, true }, { through("SimpleHeaderConverter", {}, (huge("", "7", "")), MANY, "header") })
    assert.same({ C.LC_BYTES, MANY }, { (through("SimpleHeaderConverter", {}, (huge("", "[", "")), MANY, "header")), MANY })
  end)

  it("of nulls that stand for a long default are refused when they are written", function()
    local cv = place:converter("JsonConverter", {})
    local value, schema = place:to_connect(cv, '{"schema":{"type":"array","items":{"type":"string","default":"' .. ("x"):rep(30000)
      .. '"}},"payload":[' .. ("null,"):rep(5000) .. "null]}")
    local ok, err = pcall(place.from_connect, place, cv, schema, value)
    assert.is_false(ok)
    assert.equal("The JSON of this value is longer than 134217728 bytes", err.message)
  end)

  it("of a Decimal are refused", function()
    local _, message = through("JsonConverter", {}, huge('{"schema":{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal",'
      .. '"parameters":{"scale":"0"}},"payload":"', "A", '"}'))
    assert.equal("Invalid bytes for Decimal field", message:match "^[%a ]+field")
    assert.matches("A number of 37500000 bytes, more than 41524", message, 1, true)
  end)
end)

describe("bad values in transforms", function()
  local set = k.scan {}
  local place
  before_each(function() place = data.place() end)
  after_each(function() place:free() end)

  -- A value of a converter's through one transform, as JSON without schemas; or the error.
  local function transformed(bytes, types, more, schemas)
    local b = k.sink_batch { "x" }
    local cv = place:converter("JsonConverter", { ["schemas.enable"] = tostring(schemas or false) })
    local r = b.records[0]
    local value, schema = place:to_connect(cv, bytes)
    r.value, r.value_schema = value, schema
    local config = { transforms = "t", ["transforms.t.type"] = types }
    for key, v in pairs(more) do config["transforms.t." .. key] = v end
    local chain = assert(chains.new(set, config))
    local ok, err = chain:run(b)
    local out = ok and r.state == 0 and place:from_connect(cv, r.value_schema, r.value)
    chain:free()
    if not ok then return nil, err.class:match "[^.]+$" .. ": " .. err.message end
    return out
  end

  it("keep what they are", function()
    local insert = { ["static.field"] = "new", ["static.value"] = "v" }
    for _, body in ipairs { '"a":1e400', '"a":-0.0', '"a":9223372036854775807', '"a":-9223372036854775808', '"a":"x\\u0000y"',
        '"a":[null,{}]', '"":{}', '"a":"\240\159\152\128"' } do
      local out = transformed("{" .. body .. "}", "InsertField$Value", insert)
      local same = body:gsub("1e400", '"Infinity"'):gsub("%-0%.0", "0.0"):gsub("\240.*\128", "\\uD83D\\uDE00")
      assert.equal("{" .. same .. ',"new":"v"}', out)
    end
  end)

  it("100 levels deep and 990 levels deep come through", function()
    for _, n in ipairs { 100, 990 } do
      local deep = ("["):rep(n) .. "1" .. ("]"):rep(n)
      assert.equal('{"line":' .. deep .. "}", transformed(deep, "HoistField$Value", { field = "line" }))
      local object = ('{"a":'):rep(n) .. "1" .. ("}"):rep(n)
      local out = transformed(object, "Flatten$Value", {})
      assert.equal('{"' .. ("a."):rep(n - 1) .. 'a":1}', out)
    end
  end)

  it("that a transform cannot take are data errors with their reason", function()
    local only_map = "DataException: Only Map objects supported in absence of schema for [field insertion], found: "
    for body, class in pairs { ['"text"'] = "java.lang.String",
        ["5"] = "java.lang.Long", ["[1]"] = "java.util.ArrayList", ["true"] = "java.lang.Boolean" } do
      local _, err = transformed(body, "InsertField$Value", { ["static.field"] = "n", ["static.value"] = "v" })
      assert.equal(only_map .. class, err)
    end
    local _, err = transformed('{"a":"1e400"}', "Cast$Value", { spec = "a:int32" })
    assert.matches("^DataException: ", err)
    _, err = transformed('{"a":99999999999}', "Cast$Value", { spec = "a:int8" })
    assert.is_nil(err)
    _, err = transformed("{}", "TimestampRouter", {})
    assert.matches("^DataException: Timestamp missing on record: ", err)
  end)

  it("which are null pass or are refused as each class says", function()
    for body, schemas in pairs { null = false, ['{"schema":null,"payload":null}'] = true } do
      local out, err = transformed(body, "InsertField$Value", { ["static.field"] = "n", ["static.value"] = "v" }, schemas)
      assert.is_nil(err)
      assert.is_falsy(out) -- a tombstone again
      err = select(2, transformed(body, "MaskField$Value", { fields = "a" }, schemas))
      assert.equal("DataException: Only Map objects supported in absence of schema for [mask fields], found: null", err)
    end
    assert.equal('{"line":null}', transformed("null", "HoistField$Value", { field = "line" }))
  end)
end)

describe("luaconnect try", function()
  it("names each bad line, and the rest comes out", function()
    local dir = proc.tmpdir "bad"
    local lines = { '{"a":1}', "NaN", '{"a":1', '{"a":"\237\160\128"}', ("["):rep(2000), '{"a":1e400}',
      "\239\187\191{\"a\":2}", '{"a":1,"a":3}',
      ("1"):rep(10000), '{"a":"\\ud800"}', '{"a":"\255"}', '"a\0b"', '{"\\ud800":1}', '{"a":9223372036854775807}' }
    proc.write(dir .. "/in", table.concat(lines, "\n") .. "\n")
    local status = os.execute(("%s try -t 'InsertField$Value:static.field=s;static.value=v' < %s/in > %s/out 2> %s/err"):format(
      standalone.program, dir, dir, dir))
    assert.equal(1, status > 255 and math.floor(status / 256) or status)
    assert.equal('{"a":1,"s":"v"}\n{"a":"Infinity","s":"v"}\n{"a":2,"s":"v"}\n{"a":3,"s":"v"}\n{"a":"?","s":"v"}\n'
      .. '{"a":9223372036854775807,"s":"v"}\n', proc.read(dir .. "/out"))
    local errors = proc.read(dir .. "/err")
    for line, text in pairs { [2] = "Non-standard token 'NaN'", [3] = "Unexpected end-of-input",
        [4] = "Illegal surrogate character 0xd800",
        [5] = "Document nesting depth (1001)", [9] = "Number value length (10000)", [11] = "Invalid UTF-8 start byte 0xff",
        [12] = "Illegal unquoted character ((CTRL-CHAR, code 0))", [13] = "Broken surrogate pair in field name" } do
      assert.matches(("stdin:%d: [^\n]*%s"):format(line, text:gsub("%p", "%%%0")), errors)
    end
  end)
end)
