-- Every recorded case of Kafka Connect's transforms and predicates (spec/golden/smt), through the chain a task runs.
local golden = require "spec.support.golden"
local data = require "spec.support.data"
local k = require "spec.support.connect"
local chains = require "spec.support.chain"
local C, ffi = k.C, k.ffi

local set = k.scan()

local function plain(text) return (text:gsub("@[%xHAS]+", "@HASH"):gsub("Harness%$1: %S+$", "Harness$1: OBJ")) end

local function null(v) return v == nil or v == data.null end

-- The input as a batch of one record, twice: the second one goes the short ways of the plans.
local function batch_of(place, input, source)
  local b = ffi.gc(C.lc_batch_new(2), C.lc_batch_unref)
  local key, key_schema = place:data(data.get(input, "key"))
  local value, value_schema = place:data(data.get(input, "value"))
  local headers = {}
  for i, h in ipairs(data.get(input, "headers").array) do
    local v, s = place:data(data.get(h, "value"))
    headers[i] = { data.get(h, "key"), v, s }
  end
  for _ = 1, 2 do
    local r = C.lc_batch_add(b)
    local topic = data.get(input, "topic")
    if not null(topic) then r.topic = place:copy(topic) end
    local partition, timestamp = data.get(input, "partition"), data.get(input, "timestamp")
    r.partition = null(partition) and -1 or tonumber(partition.number)
    r.timestamp = null(timestamp) and -1 or tonumber(timestamp.number)
    r.key, r.key_schema, r.value, r.value_schema = key, key_schema, value, value_schema
    r.headers, r.nheaders = place:alloc("lc_header_t", #headers), #headers
    for i, h in ipairs(headers) do
      local to = r.headers[i - 1]
      to.name, to.value, to.schema = place:copy(h[1]), h[2], h[3]
    end
    if not source then
      r.u.snk.topic, r.u.snk.partition = r.topic, r.partition
      r.u.snk.offset = tonumber(data.get(input, "offset").number)
    end
  end
  return b
end

local function check_json(place, expected, value, schema)
  local want, refused = data.get(expected, "json"), data.get(expected, "json_error")
  local cv = place:converter("JsonConverter", { ["schemas.enable"] = tostring(schema ~= nil),
    ["replace.null.with.default"] = "false" })
  local ok, got = pcall(place.from_connect, place, cv, schema, value)
  if refused then
    assert.is_false(ok)
    assert.are.equal(refused, got.class:match "[^%.]+$" .. ": " .. got.message)
  elseif want then
    assert.is_true(ok, type(got) == "table" and got.message or got)
    if schema == nil and value.type >= C.LC_ARRAY then return end -- a schemaless map's order is our own
    assert.are.equal(want ~= data.null and want:gsub('\\uD[89A-F]%x%x"$', '?"') or "null", got or "null")
  end
end

local function check_value(place, expected, value, schema)
  local want = data.get(expected, "schema")
  assert.are.equal(null(want) and "null" or data.write(want),
    schema ~= nil and data.write(data.read(data.schema_text(schema))) or "null")
  assert.are.equal(data.show_literal(data.get(expected, "typed")), data.show(value))
  local text = data.get(expected, "text")
  if not null(text) and not (schema == nil and value.type >= C.LC_ARRAY) then
    assert.are.equal(plain(text), plain(data.java_text(value, schema)))
  end
  check_json(place, expected, value, schema ~= nil and schema or nil)
end

local function check_record(place, expected, r)
  if expected == data.null then return assert.are.equal(C.LC_REC_DROPPED, r.state) end
  assert.are.equal(C.LC_REC_NEW, r.state)
  local topic = data.get(expected, "topic")
  assert.are.equal(not null(topic) and topic or nil, k.text(r.topic))
  local partition, timestamp = data.get(expected, "partition"), data.get(expected, "timestamp")
  assert.are.equal(null(partition) and -1 or tonumber(partition.number), r.partition)
  assert.are.equal(null(timestamp) and -1 or tonumber(timestamp.number), tonumber(r.timestamp))
  check_value(place, data.get(expected, "key"), r.key, r.key_schema)
  check_value(place, data.get(expected, "value"), r.value, r.value_schema)
  local headers = data.get(expected, "headers").array
  assert.are.equal(#headers, r.nheaders)
  for i, h in ipairs(headers) do
    assert.are.equal(data.get(h, "key"), ffi.string(r.headers[i - 1].name))
    check_value(place, data.get(h, "value"), r.headers[i - 1].value, r.headers[i - 1].schema)
  end
end

local function check_error(expected, got, with_causes)
  assert.is_not_nil(got, "an error was expected")
  assert.are.equal(data.get(expected, "class"), got.class, got.message .. "\n" .. got.detail)
  local message = data.get(expected, "message")
  assert.are.equal(null(message) and "" or plain(message), plain(got.message))
  assert.are.equal(data.get(expected, "phase") == "configure" and "fatal" or "data", got.kind)
  if not with_causes then return end
  local cause, line = data.get(expected, "cause"), nil
  if not null(cause) then
    local text = data.get(cause, "message")
    line = data.get(cause, "class") .. (null(text) and "" or ": " .. plain(text))
  end
  assert.are.equal(line, got.detail:match "Caused by: ([^\n]*)")
end

local function config_of(case, n)
  local config = { transforms = "t", ["transforms.t.type"] = case.class }
  for _, kv in ipairs(data.get(n, "config").object) do
    if kv[2] ~= data.null then config["transforms.t." .. kv[1]] = type(kv[2]) == "table" and kv[2].number or tostring(kv[2]) end
  end
  local predicate = data.get(n, "predicate")
  if not null(predicate) then
    config["transforms.t.predicate"], config.predicates = "p", "p"
    config["transforms.t.negate"] = tostring(case.negate or false)
    config["predicates.p.type"] = data.get(predicate, "class")
    for _, kv in ipairs(data.get(predicate, "config").object) do config["predicates.p." .. kv[1]] = kv[2] end
  end
  return config
end

local function run(case, n, place)
  local expected = data.get(n, "error")
  local chain, err = chains.new(set, config_of(case, n), case.source)
  if not chain or (expected and data.get(expected, "phase") == "configure") then
    if chain then chain:free() end
    if not expected then error(err.class .. ": " .. err.message, 0) end
    return check_error(expected, err, case.with_causes)
  end
  local passed, why = pcall(function()
    local b = batch_of(place, data.get(n, "input"), case.source)
    local ok
    ok, err = chain:run(b)
    if expected then return check_error(expected, err, case.with_causes) end
    if not ok then error(tostring(err.class) .. ": " .. err.message .. "\n" .. err.detail, 0) end
    for i = 0, 1 do check_record(place, data.get(n, "output"), b.records[i]) end
  end)
  chain:free()
  if not passed then error(why, 0) end
end

local files = { "Cast", "DropHeaders", "ExtractField", "Filter", "Flatten", "HeaderFrom", "HoistField", "InsertField",
                "InsertHeader", "MaskField", "RegexRouter", "ReplaceField", "SetSchemaMetadata", "TimestampConverter",
                "TimestampRouter", "ValueToKey", "predicates" }

local function suite(file, cases, with_causes)
  describe(file, function()
    for i, case in ipairs(cases) do
      it(i .. " " .. case.name, function()
        local n, place = data.read(case.line), data.place()
        case.with_causes = with_causes
        local expected = data.get(n, "error")
        local ok, err = pcall(run, case, n, place)
        if not ok and expected and data.get(expected, "phase") == "input" and type(err) == "table" and err.class then
          ok, err = pcall(function() -- the input itself is refused, by the converter that reads it
            assert.are.equal(data.get(expected, "class"), err.class)
            assert.are.equal(plain(data.get(expected, "message")), plain(err.message))
          end)
        end
        place:free()
        if not ok then data.fail(err) end
      end)
    end
  end)
end

for _, file in ipairs(files) do suite(file, golden.cases("smt/" .. file .. ".jsonl"), true) end
-- random configs and records, run through Kafka Connect's own classes; what was behind an error was not recorded
suite("generated", golden.cases("generated_transforms.jsonl", "spec/golden"))
