-- Every recorded case of Kafka Connect's converters, header converters and toString (spec/golden/converters).
local golden = require "spec.support.golden"
local data = require "spec.support.data"

-- What a program without a JVM cannot print alike: identities of Java objects, and the text of an object of
-- the recording's own class.
local function plain(text)
  return (text:gsub("@[%xHAS]+", "@HASH"):gsub("Harness%$1: %S+$", "Harness$1: OBJ"):gsub("^OBJ$", "Harness$1@HASH"))
end

local function check_error(expected, got)
  assert.are.equal("table", type(got), tostring(got))
  assert.are.equal(data.get(expected, "class"), got.class)
  local message = data.get(expected, "message")
  assert.are.equal(plain(message), plain(got.message))
  local cause = data.get(expected, "cause")
  if not cause or cause == data.null then return end
  local text = data.get(cause, "message")
  local line = "Caused by: " .. data.get(cause, "class")
  if text ~= data.null and text ~= "" then line = line .. ": " .. text end
  assert.are.equal(line, got.detail:sub(1, #line))
end

local function check_json(place, case, output, value, schema)
  local expected, refused = data.get(output, "json"), data.get(output, "json_error")
  local cv = place:converter("JsonConverter", { ["schemas.enable"] = tostring(schema ~= nil),
    ["replace.null.with.default"] = "false" }, case.converter:find "SimpleHeader" and "value" or "key")
  local ok, got = pcall(place.from_connect, place, cv, schema, value)
  if refused then
    assert.is_false(ok)
    assert.are.equal(refused, got.class:match "[^%.]+$" .. ": " .. got.message)
  elseif expected then
    assert.is_true(ok, type(got) == "table" and got.message or got)
    -- a lone surrogate cannot be said in UTF-8: it is "?" here, as Java's encoder writes it
    expected = expected ~= data.null and expected:gsub('\\uD[89A-F]%x%x"$', '?"') or "null"
    assert.are.equal(expected, got or "null")
  end
end

local function to_connect(place, case, n, header)
  local cv = place:converter(case.converter, case.config, header and "header" or case.isKey and "key" or "value")
  local value, schema = place:to_connect(cv, data.bytes(data.get(n, "bytes")), header)
  local output = data.get(n, "output")
  assert.is_not_nil(output, "an error was expected")
  if output == data.null then
    assert.is_nil(schema)
    assert.are.equal("null", data.show(value))
    return
  end
  local want = data.get(output, "schema")
  assert.are.equal(want == data.null and "null" or data.write(want),
    schema and data.write(data.read(data.schema_text(schema))) or "null")
  assert.are.equal(data.show_literal(data.get(output, "typed")), data.show(value))
  local text = data.get(output, "text")
  if text and text ~= data.null then assert.are.equal(plain(text), plain(data.java_text(value, schema))) end
  check_json(place, case, output, value, schema)
  -- once more: the second record takes the short ways of the caches
  local again, again_schema = place:to_connect(cv, data.bytes(data.get(n, "bytes")), header)
  assert.are.equal(data.show(value), data.show(again))
  assert.is_true(data.C.lc_schema_equal(schema, again_schema))
end

local function from_connect(place, case, n, header)
  local cv = place:converter(case.converter, case.config, header and "header" or case.isKey and "key" or "value")
  local value, schema = place:data(data.get(n, "data"))
  local got = place:from_connect(cv, schema, value, header)
  assert.is_nil(data.get(n, "error"), "an error was expected, got " .. tostring(got))
  local want = data.bytes(data.get(n, "bytes"))
  assert.are.equal(want and plain(want) or "null", got and plain(got) or "null")
  assert.are.equal(got, place:from_connect(cv, schema, value, header))
end

local run = {
  toConnect = function(place, case, n) to_connect(place, case, n, nil) end,
  toHeader = function(place, case, n) to_connect(place, case, n, "H") end,
  fromConnect = function(place, case, n) from_connect(place, case, n, nil) end,
  fromHeader = function(place, case, n) from_connect(place, case, n, "H") end,
  toString = function(place, _, n)
    local value, schema = place:data(data.get(n, "data"))
    assert.are.equal(plain(data.get(n, "text")), plain(data.java_text(value, schema)))
  end,
}

local files = { "ByteArrayConverter", "JsonConverter-fromConnect", "JsonConverter-header", "JsonConverter-toConnect",
                "NumberConverters", "SimpleHeaderConverter", "StringConverter", "java-toString" }

for _, file in ipairs(files) do
  describe(file, function()
    for i, case in ipairs(golden.cases("converters/" .. file .. ".jsonl")) do
      it(i .. " " .. case.name, function()
        local n, place = data.read(case.line), data.place()
        local ok, err = pcall(run[case.kind], place, case, n)
        local expected = data.get(n, "error")
        if not ok and expected and type(err) == "table" and err.class then
          ok, err = pcall(check_error, expected, err)
        end
        place:free()
        if not ok then data.fail(err) end
      end)
    end
  end)
end
