-- Converters written in Lua, behind the same table of functions as those in C.
local k = require "spec.support.connect"
local data = require "spec.support.data"
local C, ffi, core = k.C, k.ffi, k.core

local SOURCE = [[
local connect = require "connect"
local S = connect.schema
return connect.converter {
  name = "UpperConverter", class = "com.acme.UpperConverter", header = true,
  config = { { "suffix", default = "!", doc = "Put behind.", check = function(v) if v == "?" then return "no" end end } },
  configure = function(self, config) self.suffix = config.suffix .. (self.is_key and "k" or "") end,
  from_connect = function(self, topic, schema, value, header)
    if value == connect.null then return nil end
    if value == "bad" then error(connect.data_error "bad value") end
    if value == 7 then return 7 == value and {} end
    return topic .. ":" .. tostring(schema and schema.type) .. ":" .. (header or "") .. tostring(value):upper() .. self.suffix
  end,
  to_connect = function(self, topic, bytes)
    if bytes == nil then return nil, nil end
    if bytes == "bad" then return "int32", "text" end
    if bytes == "struct" then
      self.n = (self.n or 0) + 1
      return S.struct { { "n", "int64" } }, { n = self.n }
    end
    return "optional_string", bytes:lower()
  end,
}]]

describe("a converter in Lua", function()
  local plugin, set, place
  before_each(function()
    plugin, set = k.plugin(SOURCE)
    place = data.place()
  end)
  after_each(function() place:free() end)

  local function new(config, role)
    local err = core.err()
    local cv = C.lc_script_converter_new(plugin, core.props(config or {}), role or "value", err)
    if cv == nil then data.raise(err) end
    place.converters[#place.converters + 1] = cv
    return cv
  end
  local function text(s) return place:typed(s, place:items(1)[0]) end

  it("makes bytes of values", function()
    assert.is_not_nil(set)
    local cv = new()
    assert.equal("topic:string:ABC!", place:from_connect(cv, C.lc_schema_string, text "abc"))
    assert.equal("topic:nil:hABC!", place:from_connect(cv, nil, text "abc", "h"))
    assert.equal("topic:nil:ABC+k", place:from_connect(new({ suffix = "+" }, "key"), nil, text "abc"))
    assert.is_nil(place:from_connect(cv, nil, text(data.null)))
    assert.is_true(cv.cls.arg ~= nil) -- is asked about nulls too
    assert.equal("com.acme.UpperConverter", ffi.string(cv.cls.class_name))
  end)

  it("makes values of bytes, and its schemas live long enough", function()
    local cv = new()
    local v, s = place:to_connect(cv, "ABC")
    assert.equal('"abc"', data.show(v))
    assert.is_true(s == C.lc_schema_optional_string)
    v, s = place:to_connect(cv, nil)
    assert.equal("null", data.show(v))
    assert.is_nil(s)
    for i = 1, 100 do
      v, s = place:to_connect(cv, "struct")
      assert.equal("$struct(n=$int64(" .. i .. "))", data.show(v))
      assert.is_true(v.u.st.schema == s)
    end
  end)

  it("raises by kind", function()
    local cv = new()
    local ok, err = pcall(place.from_connect, place, cv, nil, text "bad")
    assert.same({ false, "bad value", 3, "org.apache.kafka.connect.errors.DataException" }, { ok, err.message, err.kind, err.class })
    ok, err = pcall(place.from_connect, place, cv, nil, place:typed(data.read "7", place:items(1)[0]))
    assert.same({ 1, "UpperConverter: from_connect must return a string, connect.bytes or nil, got table" }, { err.kind, err.message })
    assert.is_false(ok)
    ok, err = pcall(place.to_connect, place, cv, "bad")
    assert.same({ 3, "Invalid Java object for schema with type INT32: class java.lang.String for value" }, { err.kind, err.message })
    assert.is_false(ok)
    ok, err = pcall(new, { suffix = "?" })
    assert.same({ "org.apache.kafka.common.config.ConfigException", "Invalid value ? for configuration suffix: no" },
      { err.class, err.message })
    assert.is_false(ok)
  end)
end)
