-- bench/json_records.lua: the records of the JsonConverter comparison, one JSON document a line, each about 1 kB of
-- payload: a struct of 20 fields in its envelope, or the same as a map without schema.
local LINES = 250

local function field(name, type, more)
  return ('{"type":"%s",%s,"field":"%s"}'):format(type, more or '"optional":false', name)
end

local fields = {
  field("id", "int64"), field("customer", "string"), field("email", "string"), field("age", "int32"),
  field("score", "double"), field("active", "boolean"), field("nickname", "string", '"optional":true'),
  field("referrer", "int32", '"optional":true'), field("visits", "int32"), field("balance_cents", "int64"),
  field("created", "int64", '"optional":false,"name":"org.apache.kafka.connect.data.Timestamp","version":1'),
  field("updated", "int64", '"optional":true,"name":"org.apache.kafka.connect.data.Timestamp","version":1'),
  field("amount", "bytes", '"optional":false,"name":"org.apache.kafka.connect.data.Decimal","version":1,'
    .. '"parameters":{"scale":"2"}'),
  '{"type":"struct","fields":[' .. table.concat({ field("street", "string"), field("city", "string"),
    field("zip", "string"), field("country", "string", '"optional":true'), field("lat", "double"),
    field("lon", "double") }, ",")
    .. '],"optional":false,"field":"address"}',
  '{"type":"array","items":{"type":"string","optional":false},"optional":false,"field":"tags"}',
  field("verified", "boolean", '"optional":true'), field("rating", "double", '"optional":true'),
  field("session", "string"), field("agent", "string"), field("comment", "string", '"optional":true'),
}
local schema = '{"type":"struct","fields":[' .. table.concat(fields, ",")
  .. '],"optional":false,"name":"bench.Customer"}'

local words = {}
for w in ("the quick brown fox jumps over a lazy dog while seven wizards mix green potions for grumpy queens "
  .. "and kings"):gmatch "%a+" do
  words[#words + 1] = w
end

-- A generator of its own: the same records in every run and on every machine.
local seed
local function random(n)
  seed = (seed * 16807) % 2147483647
  return seed % n
end
local function text(n)
  local t = {}
  for i = 1, n do t[i] = words[random(#words) + 1] end
  return table.concat(t, " ")
end
local function hex(n)
  local t = {}
  for i = 1, n do t[i] = ("%x"):format(random(16)) end
  return table.concat(t)
end
local base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
local function amount() -- four bytes, positive
  local t = { ("ABCDEFGHIJKLMNOP"):sub(random(16) + 1):sub(1, 1) }
  for i = 2, 5 do local k = random(62) + 1 t[i] = base64:sub(k, k) end
  return '"' .. table.concat(t) .. 'A=="'
end
local function either(value) return random(4) == 0 and "null" or value end

local function payload(schemas)
  local tags = {}
  for i = 1, 3 + random(5) do tags[i] = '"' .. text(1) .. '"' end
  return "{" .. table.concat({
    '"id":' .. (100000000000 + random(2147483647) * 37),
    '"customer":"' .. text(4) .. '"',
    ('"email":"%s.%s@%s.example.org"'):format(text(1), text(1), hex(8)),
    '"age":' .. random(99),
    ('"score":%.6f'):format(random(100000000) / 7 + 0.5),
    '"active":' .. tostring(random(2) == 0),
    '"nickname":' .. either('"' .. text(1) .. '"'),
    '"referrer":' .. either(random(1000000)),
    '"visits":' .. random(100000),
    '"balance_cents":-' .. random(2000000000) + 1,
    '"created":' .. ("%.0f"):format(1.6e12 + random(2147483647) * 50),
    '"updated":' .. either(("%.0f"):format(1.7e12 + random(2147483647))),
    '"amount":' .. (schemas and amount() or ("%d.%02d"):format(random(1000000), random(100))),
    ('"address":{"street":"%s %d","city":"K\195\182ln %s","zip":"%05d","country":%s,"lat":%.4f,"lon":%.4f}'):format(
      text(2), random(400), text(1), random(99999), either('"DE"'), random(900000) / 10000, -random(1800000) / 10000),
    '"tags":[' .. table.concat(tags, ",") .. "]",
    '"verified":' .. either "true",
    '"rating":' .. either(("%.1f"):format(random(50) / 10)),
    '"session":"' .. hex(32) .. '"',
    '"agent":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/' .. random(120) .. '.0"',
    '"comment":' .. either('"' .. text(60 + random(50)) .. ', said \\"' .. text(2) .. '\\" and left"'),
  }, ",") .. "}"
end

--- Write the records to a file; schemas: with the envelope. Returns the average length of a payload.
return function(path, schemas)
  local f = assert(io.open(path, "wb"))
  local sum = 0
  seed = 4711
  for _ = 1, LINES do
    local p = payload(schemas)
    sum = sum + #p
    f:write(schemas and '{"schema":' .. schema .. ',"payload":' .. p .. "}" or p, "\n")
  end
  f:close()
  return sum / LINES
end
