-- connect/examples.lua: runs the examples of a declaration, what goes in and what must come out. Private;
-- core/script/examples.c calls it for `luaconnect test` and before a changed plugin takes its predecessor's place.
local values = require "connect.values"
local connect = require "connect"

local _M = {}

local FIELDS = { "topic", "partition", "timestamp", "key", "value", "headers" }

-- A value as text with a defined order: equal texts are equal values. 1 and 1.0 are the same here.
local function show(v, depth)
  depth = depth or 0
  if v == nil or v == values.null then return "null" end
  if depth > 100 then return "..." end
  local t = type(v)
  if t == "string" then return ("%q"):format(v) end
  if t ~= "table" then return values.tostring(v) end
  local mt, out = getmetatable(v), {}
  if mt == values.Float then return values.tostring(tonumber(tostring(v))) end
  if mt == values.Bytes then return "bytes " .. ("%q"):format(tostring(v)) end
  if mt == values.Data then return tostring(v) end
  if mt == values.Map then
    local flat, n = values.map_flat(v)
    for i = 1, n do
      out[i] = (type(flat[2 * i - 1]) == "string" and flat[2 * i - 1] or show(flat[2 * i - 1], depth + 1)) .. " = "
        .. show(flat[2 * i], depth + 1)
    end
  elseif mt == values.Array or #v > 0 then
    for i = 1, #v do out[i] = show(v[i], depth + 1) end
    return "[" .. table.concat(out, ", ") .. "]"
  else
    for k, x in pairs(v) do
      out[#out + 1] = (type(k) == "string" and k or show(k, depth + 1)) .. " = " .. show(x, depth + 1)
    end
  end
  table.sort(out)
  return "{" .. table.concat(out, ", ") .. "}"
end

local function show_headers(list)
  local out = {}
  for i, h in ipairs(list or {}) do
    out[i] = ("%s: %s"):format(tostring(h[1]), show(h[2] == nil and h.value or h[2]))
  end
  return "[" .. table.concat(out, ", ") .. "]"
end

-- A schema as text: equal texts are equal schemas.
local function show_schema(s)
  if s == nil or s == values.null then return "none" end
  if type(s) == "string" then return s end
  local out = {}
  for _, k in ipairs { "name", "version", "doc" } do
    if s[k] ~= nil then out[#out + 1] = k .. " " .. tostring(s[k]) end
  end
  local names = {}
  for k in pairs(s.parameters or {}) do names[#names + 1] = k end
  table.sort(names)
  for _, k in ipairs(names) do out[#out + 1] = ("parameter %s=%s"):format(k, tostring(s.parameters[k])) end
  for _, f in ipairs(s.fields or {}) do out[#out + 1] = f.name .. ": " .. show_schema(f.schema) end
  if s.key then out[#out + 1] = "keys " .. show_schema(s.key) end
  if s.elem then out[#out + 1] = (s.key and "values " or "of ") .. show_schema(s.elem) end
  return tostring(s) .. (#out > 0 and "{" .. table.concat(out, ", ") .. "}" or "")
end

local function expected(what, want, got) return ("%s: expected %s, got %s"):format(what, want, got) end

local function example_of(decl, i) return decl.examples[i] end

--- The configs of a declaration's examples: a list of {config = {key = text}, on = "key", "value" or nil}.
function _M.configs(decl)
  local out = {}
  for i, e in ipairs(decl.examples or {}) do
    local where = ("%s: example %d"):format(decl.name, i)
    if type(e) ~= "table" then error(where .. ": a table expected, got " .. type(e), 0) end
    if e.config ~= nil and type(e.config) ~= "table" then error(where .. ": config must be a table", 0) end
    local texts = {}
    for k, v in pairs(e.config or {}) do
      if type(v) == "table" and getmetatable(v) == nil then
        local list = {}
        for n, x in ipairs(v) do list[n] = values.tostring(x) end
        v = table.concat(list, ",")
      end
      texts[tostring(k)] = values.tostring(v)
    end
    out[i] = { config = texts, on = e.on }
  end
  return out
end

--- In a chain's state that was made for example i of a transform or predicate (as a filter's): nil, or what is
-- wrong with what came out. `run` and `failed` are the chain's.
function _M.chain(decl, i, run, failed)
  local host, exchange, record = require "connect.host", require("connect.ffi").exchange(), require "connect.record"
  local e = example_of(decl, i)
  local input = e.input
  if type(input) ~= "table" or (getmetatable(input) ~= nil) then
    return "input must be a record such as {value = ...}"
  end
  local given = {}
  for k, v in pairs(input) do given[k] = v end
  given.topic = given.topic or "topic"
  host.batch { given }
  local ok, err = xpcall(function() run(0, 0, 1) end, function(x) return x end)
  if not ok then
    failed()
    error(err, 0)
  end
  local dropped = exchange.batch.records[0].state ~= 0
  if decl.kind == "predicate" then
    if type(e.output) ~= "boolean" then return "output must be true or false" end
    if dropped ~= e.output then return expected("result", tostring(e.output), tostring(dropped)) end
    return nil
  end
  if e.output == connect.drop or dropped then
    if dropped and e.output == connect.drop then return nil end
    return dropped and "the record was dropped" or "the record was not dropped"
  end
  if type(e.output) ~= "table" or getmetatable(e.output) ~= nil then
    return "output must be a record such as {value = ...}, or connect.drop"
  end
  local got = record.source_record(record.borrow(exchange.batch), 0)
  for _, field in ipairs(FIELDS) do
    local want = e.output[field]
    if want ~= nil then
      local text = field == "headers" and show_headers or show
      local a, b = text(want), text(got[field])
      if a ~= b then return expected(field, a, b) end
    end
  end
  for _, field in ipairs { "key_schema", "value_schema" } do
    if e.output[field] ~= nil then
      local a, b = show_schema(e.output[field]), show_schema(got[field])
      if a ~= b then return expected(field, a, b) end
    end
  end
  for k in pairs(e.output) do
    local known = k == "key_schema" or k == "value_schema"
    for _, field in ipairs(FIELDS) do known = known or k == field end
    if not known then return "output: a record has no field " .. tostring(k) end
  end
  return nil
end

--- A converter's example i, configured. input {value =, schema =, topic =} and output the bytes (connect.null: none),
-- or input the bytes and output {value =}.
function _M.converter(decl, i, object)
  local e = example_of(decl, i)
  local input = e.input
  if type(input) == "table" and getmetatable(input) ~= values.Bytes then
    local bytes = object:from_connect(input.topic or "topic", input.schema, input.value == nil and values.null
      or input.value, nil)
    local want, got = e.output, bytes
    if type(want) == "string" then want = connect.bytes(want) end
    if type(got) == "string" then got = connect.bytes(got) end
    if show(want) ~= show(got) then return expected("output", show(want), show(got)) end
    return nil
  end
  local text = input ~= nil and input ~= values.null and tostring(input) or nil
  local _, value = object:to_connect("topic", text, nil)
  if type(e.output) ~= "table" or getmetatable(e.output) ~= nil then
    return "output must be {value = ...} where input is bytes"
  end
  if show(e.output.value) ~= show(value) then return expected("value", show(e.output.value), show(value)) end
  return nil
end

return _M
