-- luacheck: no max line length
-- The bad bytes of spec/unit/bad_values_spec.lua: names and bytes for every converter, and those that are only of
-- interest to JsonConverter with schemas. What Kafka Connect's classes answer is recorded in bad_values.jsonl by
--
--     luajit spec/golden/bad_values.lua | ./dev kafka run spec/golden/RecordBadValues.java > spec/golden/bad_values.jsonl
--
-- (Java 17 or later with its compiler; every run writes the same bytes).
local _M = {}

local every, envelopes = {}, {}
local function add(name, bytes) every[#every + 1] = { name = name, bytes = bytes } end
local function wrap(name, bytes) envelopes[#envelopes + 1] = { name = name, bytes = bytes } end

local function deep(n, open, inner, close) return open:rep(n) .. inner .. close:rep(n) end

-- nesting
add("array-100-deep", deep(100, "[", "1", "]"))
add("object-100-deep", deep(100, '{"a":', "1", "}"))
add("array-1000-deep", deep(1000, "[", "", "]"))
add("array-1001-deep", deep(1001, "[", "", "]"))
add("array-2000-deep", deep(2000, "[", "1", "]"))
add("object-2000-deep", deep(2000, '{"a":', "1", "}"))
add("array-2000-open", ("["):rep(2000))
add("object-2000-open", ('{"a":'):rep(2000))
add("mixed-600-deep", deep(600, '[{"a":', "null", "}]"))

-- keys
add("duplicate-keys", '{"a":1,"b":2,"a":3}')
add("duplicate-keys-deep", '{"a":{"x":1,"x":2},"a":{"x":3}}')
add("duplicate-keys-many", "{" .. ('"k":1,'):rep(50) .. '"k":2}')
add("duplicate-keys-escaped", '{"a":1,"\\u0061":2}')
add("empty-key", '{"":1}')
add("nul-key", '{"a\\u0000b":1,"a":2}')
add("surrogate-key", '{"\\ud800":1,"\\udfff":2}')

for _, name in ipairs { "\\ud800x", "\\ud800\\n", "\\ud800\\u0041", "\\ud800\\udc00", "\\udc00", "a\\ud83d", "\\ud800\\ud800", "\\ud800\\",
  "ab\\ud83d\\ude00c", "a\\udc00b", "\\ud800\\uzz", "\\ud83d\\u", "\\x", "\\u12", "\\u12g4", "a\nb", "a\1", "\\u0001" } do
  add("key-" .. name, '{"' .. name .. '":1}')
end
for _, name in ipairs { "a\195", "ab\195", "abc\195", "abcd\195", "a\195b", "ab\195b", "abc\195b", "abcd\195b", "abcdefg\195(", "abcdef\226\130(", "abcde\240\159\152(",
  "a\226(\130", "abc\240(", "x\195\164\255", "xxxx\128", "xx\237\160\128y", "\237\160\189\237\184\128", "a\240\128\129\130b", "a\244\144\128\128b",
  "a\192\128", "\\u00e4\195" } do
  add("key-bytes-" .. name, '{"' .. name .. '":1}')
end

-- numbers
for _, n in ipairs { "NaN", "Infinity", "-Infinity", "INF", "-INF", "[NaN]", '{"a":Infinity}', '"NaN"', "nan", "+1", "+Infinity",
  "1e400", "-1e400", "1e-400", "-1e-400", "-0.0", "-0", "0.0", "0e0", "[-0.0]", "4.9e-324", "1.7976931348623159e308",
  "1e2147483647", "1e2147483648", "1e-2147483648", "1e99999999999", "1E+308", "9223372036854775807", "9223372036854775808",
  "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", "3.4028236e38", "0.1",
  "1.0", "007", "-007", "0x10", "1_000", ".5", "5.", "1.e5", "1f", "1d", "1L", "١٢" } do
  add("number-" .. n, n)
end
add("number-1000-digits", ("1234567890"):rep(100))
add("number-1001-digits", ("1234567890"):rep(100) .. "1")
add("number-10000-digits", ("1234567890"):rep(1000))
add("number-minus-10000-digits", "-" .. ("1234567890"):rep(1000))
add("number-10000-zeros", ("0"):rep(10000))
add("number-0.10000-digits", "0." .. ("1234567890"):rep(1000))
add("number-0.10000-zeros-1", "0." .. ("0"):rep(10000) .. "1")
add("number-list-of-many-digits", "[" .. ("9"):rep(900) .. "," .. ("8"):rep(900) .. "]")

-- texts
add("surrogate-high", '"\\ud800"')
add("surrogate-low", '"\\udc00"')
add("surrogate-high-then-text", '"a\\ud83dx"')
add("surrogate-high-then-escape", '"\\ud83d\\n"')
add("surrogate-two-highs", '"\\ud83d\\ud83d\\ude00"')
add("surrogate-reversed", '"\\ude00\\ud83d"')
add("surrogate-pair", '"\\ud83d\\ude00"')
add("surrogate-pair-raw", '"\240\159\152\128"')
add("surrogate-raw", '"\237\160\128"')
add("surrogate-raw-pair", '"\237\160\189\237\184\128"')
add("surrogate-raw-key", '{"\237\160\128":1}')
local broken = { c080 = "\192\128", c1bf = "\193\191", e08080 = "\224\128\128", f0808080 = "\240\128\128\128",
  f5 = "\245\128\128\128", f490 = "\244\144\128\128", ff = "\255", fe = "\254", ["80"] = "\128", c3 = "\195", e282 = "\226\130",
  f09f98 = "\240\159\152", c3c3 = "\195\195", e28241 = "\226\130A", f8 = "\248\136\128\128\128", efbfbf = "\239\191\191",
  efbfbd = "\239\191\189" }
local names = {}
for name in pairs(broken) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  local bytes = broken[name]
  add("utf8-" .. name, '"x' .. bytes .. '"')
  add("utf8-bare-" .. name, bytes)
  add("utf8-key-" .. name, '{"' .. bytes .. '":"' .. bytes .. '"}')
end
add("nul", "\0")
add("nul-4", "\0\0\0\0")
add("nul-in-text", "a\0b")
add("nul-raw-in-string", '"a\0b"')
add("nul-escaped", '"a\\u0000b"')
add("nul-before", "\0001")
add("nul-behind", "1\0")
add("control-in-string", '"a\1b"')
add("newline-in-string", '"a\nb"')
add("bad-escape", '"\\x41"')
add("bad-unicode-escape", '"\\u12g4"')
add("bom", "\239\187\191")
add("bom-document", '\239\187\191{"a":1}')
add("bom-twice", '\239\187\191\239\187\1911')
add("bom-inside", '{"a":\239\187\1911}')
add("bom-utf16be", '\254\255\0"\0a\0"')
add("bom-utf16le", '\255\254"\0a\0"\0')
add("utf16be", '\0"\0a\0"')
add("utf16le", '"\0a\0"\0')
add("utf16be-odd", '\0"\0a\0"\0')
add("bom-2", "\254\255")
add("bom-2-le", "\255\254")
add("bom-3-be", "\254\255\0001")
add("utf16be-2", "\0001")
add("utf16le-2", "1\0")
add("utf32be", "\0\0\0001")
add("utf32le", "1\0\0\0")
add("utf32-2143", "\0\0001\0")
add("utf32-3412", "\0001\0\0")
add("bom-utf32-2143", "\0\0\255\2541")
add("bom-utf32-3412", "\254\255\0\0001")
for _, word in ipairs { "\195\164x", "a\195\164", "a\195", "a\195x", "a\226\130", "a\226\130\172", "a\226x", "a\240\159\152\128", "a\240\159", "a\237\160\128", "a\248",
  "tru\195", "nul\255", "a\239\191\189b", "\2261" } do
  add("word-" .. word, word)
end
add("bom-utf32be", '\0\0\254\255\0\0\0001')

-- nothing, and parts
add("null")
add("empty", "")
add("blank", " ")
add("blank-lines", "\n\t \r\n")
add("blank-nbsp", "\194\160")
add("vertical-tab", "\11")
add("json-null", "null")
add("json-null-blank", " null ")
for _, part in ipairs { "{", "[", "[1", "[1,", "[,", "[1,]", "{,}", '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":1,}', '{a:1}', '"abc', "tru",
  "truE", "nul", "nullx", "fals", "-", "1.", "1e", "1e+", '"\\', '"\\u', '"\\u12', "]", "}", ":", ",", "'a'", "/* */1", "//", "#", "\\", "@",
  "[1 2]", '{"a" 1}', '{"a":1 "b":2}', "[1}", '{"a":1]', '{1:2}', "{null:1}", "[[1,2]", '{"a":[1,2}' } do
  add("part-" .. part, part)
end
for _, text in ipairs { "{} x", "{}}", "1 2", "[1]]", "1x", '"a""b"', "null null", "true false", "[1][2]", '{"a":1}{"a":2}', "1,2",
  '{"schema":null,"payload":1} junk', '{"schema":null,"payload":1}}' } do
  add("trailing-" .. text, text)
end
-- numbers as the primitive converters have them
for _, bytes in ipairs { "\1", "\2", "\255", "\0\1", "\127\255", "\0\0\0", "\127\192\0\1", "\127\128\0\1", "\255\192\18\52", "\128\0\0\0",
  "\0\0\0\1", "\1\2\3\4\5", "\127\248\0\0\0\0\0\1", "\127\240\0\0\0\0\0\1", "\255\248\1\2\3\4\5\6", "\128\0\0\0\0\0\0\0",
  "\127\255\255\255\255\255\255\255", "\0\0\0\0\0\0\0\1", "\1\2\3\4\5\6\7\8\9" } do
  add("binary-" .. bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end), bytes)
end
-- the grammar of header values
for _, text in ipairs { '{"a":1,"a":2}', "{1:1,1.0:2}", '{"a":NaN}', "[NaN]", '["\\ud800"]', '["a\\"b"]', "[1,2.5,1e400]", "[1e400]",
  "{1e400:1}", '{"k":9223372036854775808}', "[null,null]", "{null:1}", '[true,"a",null]', "1e400", "1e39", "-1e39", "1e-50", "1e-400", "1.5e308",
  "2020-02-30", "9999-99-99", "24:00:00.000Z", "0000-00-00T00:00:00.000Z", "[2020-02-30]", '["24:00:00.000Z"]', "1:2:3:4", "[1:2]",
  "-", "+", "--1", "+-1", "1e2147483648", "[[[]]]", '{"a":{}}', '[{},{"a":1}]', '[[],["a"]]', "\\", "\\\\", '\\"', "[\\]", "a\\:b", "1\\:2",
  " \t1\n", "[ 1 , 2 ]", "true ", " [true]", "[true ]", '{"a" : true }' } do
  add("values-" .. text, text)
end
add("values-many-keys", "{" .. ("1:1,"):rep(200) .. "2:2}")

-- envelopes
for _, text in ipairs { '{"payload":1}', '{"schema":null}', "{}", '{"schema":null,"payload":1,"x":2}', '{"payload":1,"schema":{"type":"int8"}}',
  '{"schema":"int8","payload":1}', '{"schema":5,"payload":1}', '{"schema":true,"payload":1}', '{"schema":[],"payload":1}',
  '{"schema":{},"payload":1}', '{"Schema":null,"payload":1}', '{"schema":null,"payload":null}', '{"schema":null,"payload":{"a":[1,null,{}]}}',
  '{"schema":{"type":"int8"},"schema":{"type":"string"},"payload":"x"}', '{"schema":{"type":"int8"},"payload":1,"payload":2}',
  '[{"schema":null},{"payload":1}]', '["schema","payload"]', '{"schema":{"type":"int8"},"payload":1', '{"schema":{"type":"int8"},"payload":}',
  '{"schema":{"type":"int8"}"payload":1}', '{"schema":null,"payload":NaN}', '{"schema":{"type":"double"},"payload":"NaN"}' } do
  wrap("envelope-" .. text, text)
end
local function schema(text, payload) wrap("schema-" .. text .. " " .. (payload or "1"), '{"schema":' .. text .. ',"payload":' .. (payload or "1") .. "}") end
for _, text in ipairs { '{"type":"INT8"}', '{"type":"int128"}', '{"type":""}', '{"type":8}', '{"type":null}', '{"type":["int8"]}', '{"type":"struct"}',
  '{"type":"struct","fields":{}}', '{"type":"struct","fields":null}', '{"type":"struct","fields":[1]}', '{"type":"struct","fields":[{}]}',
  '{"type":"struct","fields":[{"field":"a"}]}', '{"type":"struct","fields":[{"type":"int8"}]}', '{"type":"struct","fields":[{"type":"int8","field":5}]}',
  '{"type":"struct","fields":[{"type":"int8","field":""}]}', '{"type":"struct","fields":[{"type":"int8","field":"a"},{"type":"int8","field":"a"}]}',
  '{"type":"struct","fields":[null]}', '{"type":"array"}', '{"type":"array","items":null}', '{"type":"array","items":5}', '{"type":"array","items":[]}',
  '{"type":"array","items":{"type":"nope"}}', '{"type":"map"}', '{"type":"map","keys":{"type":"string"}}', '{"type":"map","values":{"type":"string"}}',
  '{"type":"map","keys":null,"values":null}', '{"type":"int8","optional":"true"}', '{"type":"int8","optional":1}', '{"type":"int8","version":"1"}',
  '{"type":"int8","version":1.5}', '{"type":"int8","version":1e3}', '{"type":"int8","version":99999999999}', '{"type":"int8","version":null}',
  '{"type":"int8","name":5}', '{"type":"int8","name":null}', '{"type":"int8","name":""}', '{"type":"int8","doc":[]}', '{"type":"int8","parameters":[]}',
  '{"type":"int8","parameters":null}', '{"type":"int8","parameters":"x"}', '{"type":"int8","parameters":{"a":1}}', '{"type":"int8","parameters":{"a":null}}',
  '{"type":"int8","parameters":{}}', '{"type":"int8","parameters":{"a":"b","a":"c"}}', '{"type":"int8","default":"x"}', '{"type":"int8","default":300}',
  '{"type":"int8","default":null}', '{"type":"int8","default":[]}', '{"type":"string","default":5}', '{"type":"bytes","default":"###"}',
  '{"type":"double","default":1e400}', '{"type":"float","default":1e39}', '{"type":"array","items":{"type":"int8"},"default":["x"]}',
  '{"type":"array","items":{"type":"int8"},"default":[null]}', '{"type":"array","items":{"type":"int8"},"default":{}}',
  '{"type":"map","keys":{"type":"string"},"values":{"type":"int8"},"default":[]}', '{"type":"map","keys":{"type":"int8"},"values":{"type":"int8"},"default":[[1,2]]}',
  '{"type":"struct","fields":[{"type":"int8","field":"a"}],"default":{"a":1}}', '{"type":"int8","unknown":1}', '{"type":"int8","field":"x"}',
  '{"type":"int8","name":"com.example.Money"}', '{"type":"string","name":"org.apache.kafka.connect.data.Date"}',
  '{"type":"int8","name":"org.apache.kafka.connect.data.Date"}', '{"type":"int32","name":"org.apache.kafka.connect.data.Timestamp"}',
  '{"type":"int64","name":"org.apache.kafka.connect.data.Time"}', '{"type":"string","name":"org.apache.kafka.connect.data.Timestamp"}',
  '{"type":"int32","name":"org.apache.kafka.connect.data.Decimal"}', '{"type":"int32","name":"org.apache.kafka.connect.data.date"}',
  '{"type":"int32","name":"org.apache.kafka.connect.data.Date","version":7}' } do
  schema(text)
  schema(text, "null")
end
for _, payload in ipairs { '"AQ=="', '""', "1.5", '"x"', "null", "[]", "1e3", "-0.0" } do
  local head = '{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal"'
  for _, more in ipairs { "", ',"parameters":{}', ',"parameters":{"scale":"x"}', ',"parameters":{"scale":""}', ',"parameters":{"scale":"2147483648"}',
    ',"parameters":{"scale":"-1"}', ',"parameters":{"scale":"+2"}', ',"parameters":{"scale":" 2"}', ',"parameters":{"scale":"2"}',
    ',"parameters":{"scale":"2147483647"}', ',"optional":true,"parameters":{"scale":"1"}', ',"parameters":{"Scale":"1"}' } do
    schema(head .. more .. "}", payload)
  end
end
-- every type against every payload
local types = { '{"type":"int8"}', '{"type":"int16"}', '{"type":"int32"}', '{"type":"int64"}', '{"type":"float"}', '{"type":"double"}', '{"type":"boolean"}',
  '{"type":"string"}', '{"type":"bytes"}', '{"type":"array","items":{"type":"int32"}}', '{"type":"array","items":{"type":"string","optional":true}}',
  '{"type":"map","keys":{"type":"string"},"values":{"type":"int32"}}', '{"type":"map","keys":{"type":"int32"},"values":{"type":"string","optional":true}}',
  '{"type":"map","keys":{"type":"string","optional":true},"values":{"type":"int32"}}',
  '{"type":"struct","fields":[{"type":"int32","field":"a"},{"type":"string","optional":true,"field":"b"}]}', '{"type":"struct","fields":[]}',
  '{"type":"int32","name":"org.apache.kafka.connect.data.Date"}', '{"type":"int32","name":"org.apache.kafka.connect.data.Time"}',
  '{"type":"int64","name":"org.apache.kafka.connect.data.Timestamp"}', '{"type":"map","keys":{"type":"double"},"values":{"type":"int8"}}' }
local payloads = { "true", "5", "-1", "300", "99999999999", "9223372036854775808", "1.5", "1e400", "-0.0", '"x"', '"5"', '"aGk="', '"a"', '"aGk"', '"a-_="', '"aG k="',
  '"aGk=\\n"', '""', "[]", "[1]", "[null]", '["a"]', "[[1,2]]", "[[1,2],[1,3]]", "[[1]]", "[[1,2,3]]", "[[null,1]]", "[[0.0,1],[-0.0,2]]", "{}", '{"a":1}',
  '{"a":null}', '{"b":"x"}', '{"a":1,"b":5,"c":true}', '{"a":"x","b":null}', '{"a":{"a":1}}', '{"":1}', "86400000", "86400001", "1e3", '{"a":1,"a":2}' }
for _, t in ipairs(types) do
  for _, p in ipairs(payloads) do schema(t, p) end
end
-- schemas that look as if they had no end
local same = '{"type":"int8","field":"self"}'
for _ = 1, 60 do same = '{"type":"struct","name":"Self","optional":true,"fields":[' .. same .. '],"field":"self"}' end
schema(same, '{"self":null}')
schema(same, '{"self":{"self":{"self":null}}}')
schema('{"type":"struct","name":"Ref","fields":[{"type":"Ref","field":"next"}]}', '{"next":{"next":null}}')
schema('{"$ref":"#"}')
schema(deep(200, '{"type":"array","items":', '{"type":"int8"}', "}"), deep(200, "[", "1", "]"))
schema(deep(990, '{"type":"array","items":', '{"type":"int8"}', "}"), deep(990, "[", "1", "]"))
schema(deep(998, '{"type":"array","items":', '{"type":"int8"}', "}"), "[]")
schema(deep(999, '{"type":"array","items":', '{"type":"int8"}', "}"), "[]")
schema('{"type":"string"}', '"\\ud800"')
schema('{"type":"string"}', '"\237\160\128"')
schema('{"type":"int64"}', ("9"):rep(1001))
schema('{"type":"string","default":"\\u0000","name":"a\\u0000b","doc":"\\ud800"}', "null")
schema('{"type":"struct","fields":[{"type":"int8","field":"a\\u0000b"}]}', '{"a\\u0000b":1}')

_M.every, _M.envelopes = every, envelopes

local C = "org.apache.kafka.connect."
--- Converters, roles and configs that see all bytes; and those that see the envelopes.
_M.converters = {
  { C .. "json.JsonConverter", { "value" }, "schemas.enable=true" },
  { C .. "json.JsonConverter", { "value", "key", "header" }, "schemas.enable=false" },
  { C .. "storage.StringConverter", { "value", "header" }, "" },
  { C .. "storage.SimpleHeaderConverter", { "header" }, "" },
  { C .. "converters.ByteArrayConverter", { "value" }, "" },
  { C .. "converters.BooleanConverter", { "value" }, "" },
  { C .. "converters.ShortConverter", { "value", "key" }, "" },
  { C .. "converters.IntegerConverter", { "value" }, "" },
  { C .. "converters.LongConverter", { "value", "header" }, "" },
  { C .. "converters.FloatConverter", { "value" }, "" },
  { C .. "converters.DoubleConverter", { "value" }, "" },
}
_M.schema_converters = {
  { C .. "json.JsonConverter", { "value" }, "schemas.enable=true" },
  { C .. "json.JsonConverter", { "header" }, "schemas.enable=true;decimal.format=NUMERIC;replace.null.with.default=false" },
}

--- All cases: fn(name, class, role, config, bytes or nil).
function _M.each(fn)
  local function all(list, converters)
    for _, input in ipairs(list) do
      for _, c in ipairs(converters) do
        for _, role in ipairs(c[2]) do fn(input.name, c[1], role, c[3], input.bytes) end
      end
    end
  end
  all(every, _M.converters)
  all(envelopes, _M.schema_converters)
end

-- Names are for people and keys of the recording: short, printable and unlike each other.
local seen = {}
for _, list in ipairs { every, envelopes } do
  for i, input in ipairs(list) do
    local name = input.name:gsub("[^ -~]", function(c) return ("<%02x>"):format(c:byte()) end)
    if #name > 150 then name = ("%s... %d"):format(name:sub(1, 120), i) end
    if seen[name] then name = name .. " " .. i end
    seen[name] = true
    input.name = name
  end
end

if arg and arg[0] and arg[0]:find "bad_values%.lua$" then
  package.path = "./?.lua;" .. package.path
  local base64 = require("spec.support.base64").encode
  _M.each(function(name, class, role, config, bytes)
    io.write(name:gsub("\t", " "), "\t", class, "\t", role, "\t", config, "\t", bytes and base64(bytes) or "-", "\n")
  end)
end

return _M
