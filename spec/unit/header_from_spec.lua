-- HeaderFrom (lua/transforms/header_from.lua, core/script/cells.c) with more fields than the recorded cases have: few and many
-- are looked up in different ways.
local k = require "spec.support.connect"
local chains = require "spec.support.chain"
local data = require "spec.support.data"
local proc = require "spec.support.proc"
local ffi = k.ffi
local many = 5000 / proc.slow -- a configuration has half a second, and a sanitizer makes it slow

describe("HeaderFrom", function()
  local set = k.scan {}
  local place
  before_each(function() place = data.place() end)
  after_each(function() place:free() end)

  -- JSON {"f1":1,"f2":2,...,"fN":N} as a record with a header "before" (or so many), fields through the transform. Returns
  -- what became of the value, as JSON, and {"name=value", ...} of the headers; or nil, the error and the number of headers.
  local function run(n, fields, operation, schemas, before)
    before = before or 1
    local cv = place:converter("JsonConverter", { ["schemas.enable"] = tostring(schemas) })
    local values, types, names = {}, {}, {}
    for i = 1, n do
      values[i], types[i] = ('"f%d":%d'):format(i, i), ('{"field":"f%d","type":"int32"}'):format(i)
    end
    local json = "{" .. table.concat(values, ",") .. "}"
    if schemas then
      json = '{"schema":{"type":"struct","fields":[' .. table.concat(types, ",") .. ']},"payload":' .. json .. "}"
    end
    for i, f in ipairs(fields) do names[i] = "h-" .. i .. "-" .. f end
    local chain = assert(chains.new(set, { transforms = "t", ["transforms.t.type"] = "HeaderFrom$Value",
      ["transforms.t.fields"] = table.concat(fields, ","), ["transforms.t.headers"] = table.concat(names, ","),
      ["transforms.t.operation"] = operation }))
    local b = k.sink_batch { "x" }
    local r = b.records[0]
    r.value, r.value_schema = place:to_connect(cv, json)
    r.headers, r.nheaders = place:alloc("lc_header_t", before), before
    local name = place:copy "before"
    for i = 0, before - 1 do r.headers[i].name = name end
    local ok, err = chain:run(b)
    chain:free()
    if not ok then return nil, err.class:match "[^.]+$" .. ": " .. err.message, r.nheaders end
    local headers = {}
    for i = 0, r.nheaders - 1 do
      local h = r.headers[i]
      headers[i + 1] = ffi.string(h.name) .. "=" .. data.show(h.value)
      assert.equal(schemas and i >= before, h.schema ~= nil)
    end
    return place:from_connect(cv, r.value_schema, r.value), headers
  end

  local function expected(n, fields, operation, schemas)
    local gone, left, types, headers = {}, {}, {}, { "before=null" }
    for i, f in ipairs(fields) do
      headers[i + 1] = ("h-%d-%s=$%s(%s)"):format(i, f, schemas and "int32" or "int64", f:match "%d+")
      gone[f] = operation == "move"
    end
    for i = 1, n do
      if not gone["f" .. i] then
        left[#left + 1] = ('"f%d":%d'):format(i, i)
        types[#types + 1] = ('{"type":"int32","optional":false,"field":"f%d"}'):format(i)
      end
    end
    local json = "{" .. table.concat(left, ",") .. "}"
    if schemas then
      json = '{"schema":{"type":"struct","fields":[' .. table.concat(types, ",") .. '],"optional":false},"payload":' .. json .. "}"
    end
    return json, headers
  end

  for _, case in ipairs { { 1, 1, 1 }, { 20, 1, 20 }, { 20, 13, -1 }, { 20, 8, 1 }, { 20, 9, 1 }, { 40, 20, 2 }, { many, many, 1 },
    { many, many / 2, 2 }, { many, many, -1 } } do
    local n, count, step = unpack(case)
    it(("takes %d of %d fields"):format(count, n), function()
      local fields = {}
      for i = 1, count do fields[i] = "f" .. (step > 0 and (i - 1) * step % n + 1 or n + 1 - i) end
      fields[#fields + 1] = fields[1] -- named twice: in two headers
      for _, schemas in ipairs { false, true } do
        for _, operation in ipairs { "move", "copy" } do
          local json, headers = run(n, fields, operation, schemas)
          local want_json, want_headers = expected(n, fields, operation, schemas)
          assert.equal(want_json, json)
          assert.equal(table.concat(want_headers, "\n"), table.concat(headers, "\n"))
        end
      end
    end)
  end

  it("gives null for a field that a map has not, and refuses one that a struct has not", function()
    for _, more in ipairs { 0, 20 } do
      local fields = { "f1", "none" }
      for i = 1, more do fields[#fields + 1] = "f" .. i + 1 end
      local json, headers = run(30, fields, "move", false)
      assert.equal((expected(30, fields, "move", false)), json)
      assert.matches("null", headers[3])
      local _, message, left = run(30, fields, "move", true)
      assert.matches("^NullPointerException: Cannot invoke", message)
      assert.equal(1, left) -- none is added
    end
  end)

  it("refuses more headers than a record may have", function()
    local fields = { "f1", "f2", "f3" }
    assert.equal(65535, #select(2, run(3, fields, "copy", false, 65532)))
    local _, message, left = run(3, fields, "copy", false, 65533)
    assert.equal("DataException: a record cannot have more than 65535 headers", message)
    assert.equal(65533, left)
  end)
end)
