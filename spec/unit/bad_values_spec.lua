-- Bad bytes through every converter: what Kafka Connect's own classes answered (spec/golden/bad_values.jsonl) is what
-- ours answer, value or message; then values too large to record, transforms, and `luaconnect try`.
local golden = require "spec.support.golden"
local data = require "spec.support.data"
local inputs = require "spec.golden.bad_values"

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
  for k, v in config:gmatch "([^=;]+)=([^;]*)" do settings[k] = v end
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
