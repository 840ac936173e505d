-- The data model by random schemas and values: equality, validation, JsonConverter, and the way through Lua and back.
-- SEED=n runs one case again; CASES=n runs more of them.
local data = require "spec.support.data"
local core = require "spec.support.core"
local golden = require "spec.support.golden"
local random = require "spec.support.random_data"
local k = require "spec.support.connect"
local chains = require "spec.support.chain"
local with = require "spec.support.with"
local C, ffi = data.C, data.ffi

local FIRST, CASES = tonumber(os.getenv "SEED"), tonumber(os.getenv "CASES") or 400
local LAST = FIRST or 20261130 + CASES - 1
FIRST = FIRST or 20261130

-- check(place, random, schema as a table) for each seed; a failure names its seed.
local function each(check)
  for seed = FIRST, LAST do
    local place = data.place()
    local ok, err = pcall(check, place, random.new(seed))
    place:free()
    if not ok then
      if type(err) == "table" and err.class and err.message and not err.arguments then err = err.class .. ": " .. err.message end
      if type(err) == "table" then err = err.message or err end
      error(("SEED=%d: %s"):format(seed, tostring(err)), 0)
    end
  end
end

local function read_schema(place, text) return place:schema(data.read(text)) end

local function read_value(place, text, schema) return place:typed(data.read(text), place:items(1)[0], schema) end

local function one(place, r, odd)
  local s = r:schema(3)
  local text = random.schema_json(s)
  local schema = read_schema(place, text)
  local literal = r:value(s, odd)
  return schema, read_value(place, literal, schema), text, literal, s
end

-- One attribute of a schema made another.
local function changed(r, s)
  local at = s
  while at.fields and #at.fields > 0 and r:maybe(2) or at.elem and r:maybe(2) do
    at = at.fields and at.fields[r:below(#at.fields) + 1].schema or at.elem
  end
  local choice = r:below(5)
  if choice == 0 then at.optional = not at.optional
  elseif choice == 1 then at.version = (at.version or 1) == 5 and 6 or 5
  elseif choice == 2 then at.doc = (at.doc or "") .. "x"
  elseif choice == 3 then at.params = { { "other", at.params and at.params[1][2] or "z" } }
  else at.name = at.name == "Other" and "Another" or "Other" at.logical, at.scale = nil, nil end
  at.default = nil
end

describe("random data", function()
  it("schemas are equal to their copies, to what their JSON says, and to no other", function()
    each(function(place, r)
      local schema, _, text, _, s = one(place, r)
      local again = read_schema(place, text)
      assert.is_true(C.lc_schema_equal(schema, schema))
      assert.is_true(C.lc_schema_equal(schema, again) and C.lc_schema_equal(again, schema))
      assert.equal(data.schema_text(schema), data.schema_text(again))
      assert.is_true(C.lc_schema_equal(schema, read_schema(place, data.schema_text(schema))))
      local copy = C.lc_schema_builder_finish(C.lc_schema_builder_from(schema))
      place.schemas[#place.schemas + 1] = copy
      assert.is_true(C.lc_schema_equal(schema, copy) and C.lc_schema_equal(copy, schema))
      assert.equal(data.schema_text(schema), data.schema_text(copy))
      changed(r, s)
      local other = read_schema(place, random.schema_json(s))
      assert.is_false(C.lc_schema_equal(schema, other) or C.lc_schema_equal(other, schema))
    end)
  end)

  it("values are equal to their copies, and not to values with one change", function()
    each(function(place, r)
      local schema, value, _, literal, s = one(place, r, true)
      local copy, again = place:items(1), read_value(place, literal, schema)
      assert.equal(0, C.lc_value_copy(place.arena, value, copy))
      for _, other in ipairs { value, copy[0], again } do
        assert.is_true(C.lc_value_equal(value, other) and C.lc_value_equal(other, value))
        assert.equal(C.lc_java_hash(value), C.lc_java_hash(other))
        assert.equal(data.show(value), data.show(other))
      end
      local different = read_value(place, r:value(s, true), schema)
      assert.equal(data.show(value) == data.show(different), C.lc_value_equal(value, different))
      assert.equal(C.lc_value_equal(value, different), C.lc_value_equal(different, value))
    end)
  end)

  it("maps are equal in any order", function()
    each(function(place, r)
      local schema = read_schema(place, '{"type":"map","keys":{"type":"int64"},"values":{"type":"string"}}')
      local pairs_ = {}
      for i = 1, r:below(40) do pairs_[i] = ('[{"$int64":%d},"v%d"]'):format(i * 7919, r:below(3)) end
      local value = read_value(place, '{"$map":[' .. table.concat(pairs_, ",") .. "]}", schema)
      for i = #pairs_, 2, -1 do
        local j = r:below(i) + 1
        pairs_[i], pairs_[j] = pairs_[j], pairs_[i]
      end
      local other = read_value(place, '{"$map":[' .. table.concat(pairs_, ",") .. "]}", schema)
      assert.is_true(C.lc_value_equal(value, other) and C.lc_value_equal(other, value))
      assert.equal(C.lc_java_hash(value), C.lc_java_hash(other))
    end)
  end)

  it("valid values are valid", function()
    each(function(place, r)
      local schema, value = one(place, r, true)
      local err = core.err()
      assert.equal(0, C.lc_validate_value(schema, value, err), core.msg(err))
    end)
  end)

  it("with a fault are refused in Connect's words", function()
    local refused = 0
    for i, case in ipairs(golden.cases("faults.jsonl", "spec/golden")) do
      local place = data.place()
      local n = data.read(case.line)
      local schema = place:schema(data.get(n, "schema"))
      local value = place:typed(data.get(n, "typed"), place:items(1)[0], schema)
      local err = core.err()
      local rc = C.lc_validate_value(schema, value, err)
      local got = rc < 0 and ffi.string(err.cls) .. ": " .. core.msg(err) or nil
      assert.equal(golden.value(case.error), got, "line " .. i)
      if got then refused = refused + 1 end
      place:free()
    end
    assert.is_true(refused > 500)
  end)

  local function json(place, config, role)
    local settings = with({ ["replace.null.with.default"] = "false" }, config)
    return place:converter("JsonConverter", settings, role)
  end

  for _, role in ipairs { "value", "key", "header" } do
    it("come back from JsonConverter with schemas as a " .. role, function()
      local header = role == "header" and "H" or nil
      each(function(place, r)
        local schema, value = one(place, r)
        for _, format in ipairs { "BASE64", "NUMERIC" } do
          local cv = json(place, { ["decimal.format"] = format }, role)
          local bytes = place:from_connect(cv, schema, value, header)
          local back, back_schema = place:to_connect(cv, bytes, header)
          assert.is_true(C.lc_schema_equal(schema, back_schema))
          -- a number's zeros are lost where its scale is negative
          if format == "BASE64" then assert.equal(data.show(value), data.show(back)) end
          if format == "BASE64" then assert.is_true(C.lc_value_equal(value, back)) end
          assert.equal(bytes, place:from_connect(cv, back_schema, back, header))
        end
      end)
    end)
  end

  it("numbers of the primitive converters keep their bits", function()
    each(function(place, r)
      for name, size in pairs { Short = 2, Integer = 4, Long = 8, Float = 4, Double = 8 } do
        local bytes = {}
        for i = 1, size do bytes[i] = string.char(r:pick { 0, 1, 127, 128, 255, r:below(256) }) end
        bytes = table.concat(bytes)
        local cv = place:converter(name .. "Converter")
        local value, schema = place:to_connect(cv, bytes)
        local back = place:from_connect(cv, schema, value)
        if not data.show(value):find "NaN" then assert.equal(bytes, back) end -- there is one NaN
      end
    end)
  end)

  -- Every value decoded into Lua, copied by `connect.copy` or by hand, and encoded again.
  local SOURCE = [[
local connect = require "connect"
local null = connect.null
local function rebuilt(v)
  if type(v) ~= "table" or v == null then return v end
  if v.pairs and v.set and connect.map and getmetatable(v) == getmetatable(connect.map()) then
    local out = connect.map()
    for key, x in v:pairs() do out:set(key, rebuilt(x)) end
    return out
  end
  local mt = getmetatable(v)
  if mt == nil or mt == getmetatable(connect.array()) then
    local out = {}
    for key, x in pairs(v) do out[key] = rebuilt(x) end
    return mt and connect.array(out) or out
  end
  return connect.copy(v)
end
local function again(how)
  return function(_, r)
    local headers = {}
    for i, h in ipairs(r.headers) do headers[i] = { h[1], how(h[2]), schema = h.schema } end
    return r:with { key = how(r.key), key_schema = r.key_schema, value = how(r.value), value_schema = r.value_schema,
      headers = headers }
  end
end
return {
  connect.transform { name = "Copy", apply = again(connect.copy) },
  connect.transform { name = "Rebuild", apply = again(rebuilt) },
  connect.transform { name = "Touch", apply = function(_, r) local _ = r.value, r.key return r end },
}
]]
  local plugin, set
  setup(function() plugin, set = k.plugin(SOURCE) end)

  for _, class in ipairs { "Copy", "Rebuild", "Touch" } do
    it("go through Lua and back (" .. class .. ")", function()
      assert.is_not_nil(plugin)
      local chain = assert(chains.new(set, { transforms = "t", ["transforms.t.type"] = class }))
      local ok, err = pcall(each, function(place, r)
        local schema, value = one(place, r, true)
        local b = k.sink_batch { "x" }
        local record = b.records[0]
        local headers = place:alloc("lc_header_t", 2)
        for i = 0, 1 do headers[i].name, headers[i].schema, headers[i].value = place:copy("h" .. i .. "\0"), schema, value end
        record.value, record.value_schema, record.key, record.key_schema = value, schema, value, schema
        record.headers, record.nheaders = headers, 2
        local done, e = chain:run(b)
        assert.is_true(done, e and e.message)
        for what, got in pairs { value = { record.value, record.value_schema }, key = { record.key, record.key_schema },
                                 header = { record.headers[1].value, record.headers[1].schema } } do
          assert.is_true(C.lc_schema_equal(schema, got[2]), what)
          assert.equal(data.show(value), data.show(got[1]), what)
          assert.is_true(C.lc_value_equal(value, got[1]), what)
        end
        local cv = json(place)
        assert.equal(place:from_connect(cv, schema, value), place:from_connect(cv, record.value_schema, record.value))
      end)
      chain:free()
      if not ok then error(err, 0) end
    end)
  end
end)
