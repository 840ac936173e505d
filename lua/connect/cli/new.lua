--- luaconnect new: a folder with a plugin, its README and specs that pass; never overwrites.
local paths = require "connect.cli.paths"

local T = {}

T.source = { init = [=[
-- NAME: a source. One record for each number up to `count`; replace poll by what reads your system.
local connect = require "connect"

local Task = {}

function Task:start(ctx)
  self.ctx = ctx
  self.partition = { source = ctx.config.topic } -- where a record comes from: offsets are kept for it
  local offset = ctx.offsets:get(self.partition) -- nil on the first run
  self.next = offset and offset.n + 1 or 1
end

function Task:poll()
  if self.next > self.ctx.config.count then return nil end -- nothing now: asked again after a while
  local n = self.next
  self.next = n + 1
  return {
    { topic = self.ctx.config.topic, value = { n = n }, source_partition = self.partition, source_offset = { n = n } },
  }
end

function Task:stop() end -- close what start opened; called after a failed start, too

return connect.source {
  name = "CLASS", version = "0.1.0", doc = "DOC", task = Task,
  config = {
    { "topic", required = true, non_empty = true, importance = "high", doc = "Target topic." },
    { "count", type = "int", default = 10, range = { 1 }, doc = "How many records." },
  },
}
]=], spec = [=[
local testing = require "connect.testing"
local CLASS = testing.load "../init.lua"

describe("CLASS", function()
  it("gives its records and then nothing", function()
    local source = testing.source(CLASS, { topic = "t", count = "2" }):start()
    assert.same({ n = 1 }, source:poll()[1].value)
    assert.same({ n = 2 }, source:poll()[1].value)
    assert.is_nil(source:poll())
    source:stop()
  end)

  it("goes on behind what was committed", function()
    local source = testing.source(CLASS, { topic = "t" }):start()
    source:poll()
    source:commit()
    source:poll() -- not committed: comes again
    source:start()
    assert.same({ n = 2 }, source:poll()[1].value)
    source:stop()
  end)

  it("says what is wrong with its config", function()
    local _, problems = testing.validate(CLASS, { count = "0" })
    assert.equal("topic", problems[1].key)
    assert.equal("count", problems[2].key)
  end)
end)
]=], try = "luaconnect try --source NAME -c topic=t -n 3" }

T.sink = { init = [=[
-- NAME: a sink. Appends each value as a line of JSON to a file; replace put by what writes to your system.
local connect = require "connect"
local json = require "connect.json"

local Task = {}

function Task:start(ctx)
  self.written = {}
  local file, err = io.open(ctx.config.file, "ab")
  if not file then error(connect.retriable(err)) end -- started again after a while
  self.file = file
end

function Task:put(records)
  local failed = {}
  for i, r in ipairs(records) do
    local line, err = json.encode(r.value)
    if line then
      assert(self.file:write(line, "\n"))
    else
      failed[#failed + 1] = { index = i, error = connect.data_error(err) } -- only this one is bad
    end
    self.written[r.tp] = r.offset + 1
  end
  return failed
end

function Task:pre_commit() -- what is safe: these offsets are committed
  assert(self.file:flush())
  return self.written
end

function Task:close(partitions)
  for _, tp in ipairs(partitions) do self.written[tp.key] = nil end
end

function Task:stop() -- called after a failed start, too
  if self.file then self.file:close() end
end

return connect.sink {
  name = "CLASS", version = "0.1.0", doc = "DOC", task = Task,
  config = { { "file", required = true, non_empty = true, importance = "high", doc = "File to append to." } },
}
]=], spec = [=[
local testing = require "connect.testing"
local CLASS = testing.load "../init.lua"

describe("CLASS", function()
  local path

  before_each(function() path = os.tmpname() end)
  after_each(function() os.remove(path) end)

  local function written()
    local file = assert(io.open(path, "rb"))
    local text = file:read "*a"
    file:close()
    return text
  end

  it("writes a line for each record, and commits what is written", function()
    local sink = testing.sink(CLASS, { file = path }):assign("t", 0)
    assert.same({}, sink:put { { a = 1 }, "text" })
    assert.same({ ["t-0"] = 2 }, sink:pre_commit())
    sink:close()
    assert.equal('{"a":1}\n"text"\n', written())
  end)

  it("reports only the record that is bad", function()
    local sink = testing.sink(CLASS, { file = path }):assign("t", 0)
    local failed = sink:put { 1, print, 2 }
    sink:close()
    assert.equal(1, #failed)
    assert.equal(2, failed[1].index)
    assert.equal("1\n2\n", written())
  end)

  it("a file that cannot be opened is tried again", function()
    local ok, err = pcall(testing.sink, CLASS, { file = "/no/such/folder/file" })
    assert.is_false(ok)
    assert.equal("retriable", err.kind)
  end)
end)
]=], try = "echo '{\"a\":1}' | luaconnect try --sink NAME -c file=/dev/stdout" }

T.transform = { init = [=[
-- NAME: a transform. Replaces the listed fields by a fixed text; replace apply_value by what yours does.
local connect = require "connect"

return connect.transform {
  name = "CLASS", version = "0.1.0", on = { "key", "value" }, -- CLASS$Key and CLASS$Value
  doc = "DOC",
  config = {
    { "fields", type = "list", required = true, non_empty = true, importance = "high", doc = "Field names." },
    { "with", default = "***", doc = "Text put in their place." },
  },
  apply_value = function(self, value, schema)
    if value == connect.null then return value, schema end -- tombstones pass
    if type(value) ~= "table" then error(connect.data_error("CLASS needs a map, got a " .. type(value))) end
    local out = connect.copy(value) -- never change what was given
    for _, field in ipairs(self.config.fields) do
      if out[field] ~= nil then out[field] = self.config.with end
    end
    return out, schema
  end,
  examples = { -- part of the docs, run by `luaconnect test`
    { config = { fields = "ssn" }, input = { value = { id = 7, ssn = "1" } },
      output = { value = { id = 7, ssn = "***" } } },
  },
}
]=], spec = [=[
local connect = require "connect"
local testing = require "connect.testing"
local CLASS = testing.load "../init.lua"

describe("CLASS", function()
  it("hides the listed fields and leaves the input alone", function()
    local apply = testing.transform(CLASS, { fields = "ssn", with = "-" })
    local input = { ssn = "1", id = 7 }
    assert.same({ ssn = "-", id = 7 }, apply(input))
    assert.same({ ssn = "1", id = 7 }, input)
  end)

  it("lets tombstones pass", function()
    assert.equal(connect.null, testing.transform(CLASS, { fields = "ssn" })(nil))
  end)

  it("raises a data error, so that errors.tolerance applies", function()
    local ok, err = pcall(testing.transform(CLASS, { fields = "ssn" }), "text")
    assert.is_false(ok)
    assert.equal("data_error", err.kind)
  end)

  it("says what is wrong with its config", function()
    local _, problems = testing.validate(CLASS, {})
    assert.equal('Missing required configuration "fields" which has no default value.', problems[1].message)
  end)
end)
]=], try = "echo '{\"ssn\":\"1\",\"id\":7}' | luaconnect try --plugin-path NAME -t 'CLASS$Value:fields=ssn'" }

T.predicate = { init = [=[
-- NAME: a predicate. True for records whose value has a field; replace test by what yours asks.
local connect = require "connect"

return connect.predicate {
  name = "CLASS", version = "0.1.0", doc = "DOC",
  config = { { "field", required = true, non_empty = true, importance = "high", doc = "Field looked for." } },
  test = function(self, record)
    local value = record.value
    return type(value) == "table" and value ~= connect.null and value[self.config.field] ~= nil
  end,
  examples = { -- part of the docs, run by `luaconnect test`
    { config = { field = "id" }, input = { value = { id = 7 } }, output = true },
    { config = { field = "id" }, input = { value = "text" }, output = false },
  },
}
]=], spec = [=[
local testing = require "connect.testing"
local CLASS = testing.load "../init.lua"

describe("CLASS", function()
  it("is true for values with the field only", function()
    local test = testing.predicate(CLASS, { field = "id" })
    assert.is_true(test { value = { id = 7 } })
    assert.is_false(test { value = { name = "x" } })
    assert.is_false(test { value = nil })
  end)
end)
]=], try = "echo '{\"id\":7}' | luaconnect try --plugin-path NAME -t 'Filter:predicate=p' -p 'p=CLASS:field=id'" }

T.converter = { init = [=[
-- NAME: a converter. Texts in upper case on the wire; replace both functions by your format.
local connect = require "connect"

return connect.converter {
  name = "CLASS", version = "0.1.0", doc = "DOC", config = {},
  --- Connect data -> bytes; nil is null.
  from_connect = function(_, _, _, value)
    if value == nil or value == connect.null then return nil end
    if type(value) ~= "string" then error(connect.data_error("CLASS writes texts, got a " .. type(value))) end
    return value:upper()
  end,
  --- Bytes -> schema and value.
  to_connect = function(_, _, bytes)
    if bytes == nil or bytes == connect.null then return "optional_string", connect.null end
    return "optional_string", tostring(bytes):lower()
  end,
}
]=], spec = [=[
local connect = require "connect"
local testing = require "connect.testing"
local CLASS = testing.load "../init.lua"

describe("CLASS", function()
  local converter = testing.converter(CLASS, {})

  it("writes and reads texts", function()
    assert.equal("ABC", converter.from_connect("t", nil, "abc"))
    assert.same({ "optional_string", "abc" }, { converter.to_connect("t", "ABC") })
  end)

  it("null stays null", function()
    assert.is_nil(converter.from_connect("t", nil, nil))
    assert.equal(connect.null, (select(2, converter.to_connect("t", nil))))
  end)

  it("what is no text is a data error", function()
    local ok, err = pcall(converter.from_connect, "t", nil, 7)
    assert.is_false(ok)
    assert.equal("data_error", err.kind)
  end)
end)
]=], try = "luaconnect plugins --plugin-path NAME" }

local README = [=[
# NAME

DOC

Try it, in the folder that holds NAME:

    TRY

Check it: `luaconnect test NAME` runs the examples and specs, `luaconnect lint NAME` looks for mistakes,
`luaconnect docs NAME` prints its page. Use it: put NAME into a folder of the worker's `plugin.path`; its class is
`CLASS`.
]=]

return function(args)
  local kind, name, dir = args[1], args[2], args[3] or "."
  local function wrong(text)
    io.stderr:write("luaconnect new: ", text, "\n")
    return 2
  end
  if not T[kind or ""] or not name or args[4] then
    return wrong "give source, sink, transform, predicate or converter, a NAME and perhaps a DIR"
  end
  if not name:find "^[A-Za-z][%w_-]*$" then
    return wrong(("'%s' is no name: a letter, then letters, digits, - and _"):format(name))
  end
  if name == "connect" then return wrong "'connect' is the module that plugins require: take another name" end
  local folder = dir .. "/" .. name
  if paths.is_dir(folder) or paths.is_file(folder) then return wrong(folder .. " is there already") end
  local class = (name:gsub("^%l", string.upper):gsub("[_-]+(%w?)", string.upper))
  if kind == "source" or kind == "sink" then
    local suffix = kind:gsub("^%l", string.upper)
    if class:sub(-#suffix) ~= suffix then class = class .. suffix end
  end
  local words = { NAME = name, CLASS = class, DOC = ("The %s %s."):format(kind, class) }
  local t = T[kind]
  words.TRY = t.try:gsub("%u+", words)
  if os.execute("mkdir -p " .. paths.quote(folder .. "/spec")) ~= 0 then return wrong("cannot make " .. folder) end
  local spec = ("spec/%s_spec.lua"):format((name:gsub("-", "_")))
  for _, f in ipairs { { "init.lua", t.init }, { spec, t.spec }, { "README.md", README } } do
    local file, err = io.open(folder .. "/" .. f[1], "w")
    if not file then return wrong(err) end
    file:write((f[2]:gsub("%u+", words)))
    file:close()
    io.stdout:write(folder, "/", f[1], "\n")
  end
  io.stdout:write("\nluaconnect test ", folder, "\n")
  return 0
end
