-- Plugin discovery: what is found where, what is declared, what is broken, and the checks declared in Lua.
local k = require "spec.support.connect"
local C, ffi, core = k.C, k.ffi, k.core

local SOURCE, SINK, TRANSFORM = 1, 0, 2

local function names(set, location)
  local out = {}
  for i = 0, tonumber(set.n) - 1 do
    local p = set.v[i]
    if not location or (k.text(p.location) or ""):find(location, 1, true) then
      out[#out + 1] = k.text(p.class_name) .. (p.error ~= nil and "!" or "")
    end
  end
  return out
end

local function row(p, name)
  for i = 0, p.nrows - 1 do
    if ffi.string(p.rows[i].name) == name then return p.rows[i] end
  end
end

ffi.cdef "void free(void *p);"

local function infos(p, config)
  local err = core.err()
  local i = ffi.gc(C.lc_config_infos_new "x", C.lc_config_infos_free)
  for n = 0, p.nrows - 1 do -- as the worker's validation does before it asks the plugin
    local out, errors = ffi.new "char *[1]", ffi.new "lc_strv_t"
    C.lc_config_parse(p.rows[n], p.rows[n].name, core.props(config), out, errors)
    C.lc_strv_free(errors)
    C.lc_config_infos_add(i, p.rows[n], p.rows[n].name).value = out[0]
  end
  if p.validate(p, core.props(config), i, err) < 0 then error(core.msg(err), 0) end
  local out = {}
  for n = 0, tonumber(i.n) - 1 do
    local v = i.values[n]
    for e = 0, tonumber(v.errors.n) - 1 do
      out[#out + 1] = ffi.string(v.name) .. ": " .. ffi.string(v.errors.v[e])
    end
  end
  return out
end

local GOOD = [[
local connect = require "connect"
return connect.source { name = "My", class = "com.acme.MySourceConnector", version = "1.2", aliases = { "mine" },
  task = { poll = function() end } }
]]

describe("plugins", function()
  local dir
  before_each(function() dir = k.tmpdir() end)
  after_each(function() k.rm(dir) end)

  it("that ship with the program are there without plugin.path", function()
    local set = k.scan()
    local p = k.find(set, "org.apache.kafka.connect.file.FileStreamSourceConnector")
    assert.equal(SOURCE, tonumber(p.type))
    assert.equal("org.apache.kafka.connect.file.FileStreamSourceTask", k.text(p.task_class))
    assert.equal("4.3.1", k.text(p.version))
    assert.equal("standard", k.text(p.location))
    for _, alias in ipairs { "FileStreamSource", "FileStreamSourceConnector" } do
      assert.is_true(k.find(set, alias) == p)
    end
    local s = k.find(set, "FileStreamSink", 2 ^ SINK)
    assert.equal("org.apache.kafka.connect.file.FileStreamSinkConnector", k.text(s.class_name))
  end)

  it("file connectors have Kafka's rows", function()
    local set = k.scan()
    local p = k.find(set, "FileStreamSource")
    assert.equal(3, p.nrows)
    local got = {}
    for i = 0, 2 do
      local r = p.rows[i]
      got[i + 1] = { k.text(r.name), tonumber(r.type), r.required, k.text(r.def), tonumber(r.importance), k.text(r.group),
        r.order, tonumber(r.width), k.text(r.doc) }
    end
    assert.same({
      { "file", 1, false, nil, 0, nil, -1, 0, "Source filename. If not specified, the standard input will be used" },
      { "topic", 1, true, nil, 0, nil, -1, 0, "The topic to publish data to" },
      { "batch.size", 2, false, "2000", 2, nil, -1, 0,
        "The maximum number of records the source task can read from the file each time it is polled" },
    }, got)
    local out, errors = ffi.new "char *[1]", ffi.new "lc_strv_t"
    assert.equal(-1, C.lc_config_parse(row(p, "topic"), "topic", core.props { topic = "" }, out, errors))
    assert.equal("Invalid value  for configuration topic: String must be non-empty", ffi.string(errors.v[0]))
    C.lc_strv_free(errors)
    ffi.C.free(out[0])
  end)

  it("FileStreamSource is exactly once with a file only", function()
    local set = k.scan()
    local p, err = k.find(set, "FileStreamSource"), core.err()
    local function eos(config) return tonumber(p.exactly_once(p, core.props(config), err)) end
    assert.equal(1, eos { file = "/x", topic = "t" })
    assert.equal(2, eos { topic = "t" })
    assert.equal(2, eos { file = "", topic = "t" })
    assert.is_true(k.find(set, "FileStreamSink").exactly_once == nil)
  end)

  it("of plugin.path: NAME.lua and NAME/init.lua of every folder, or the plugin's own folder", function()
    os.execute("mkdir -p " .. dir .. "/a/one " .. dir .. "/b/two " .. dir .. "/c/.hidden")
    k.write(dir .. "/a/one/init.lua", (GOOD:gsub("acme", "one")))
    k.write(dir .. "/a/single.lua", (GOOD:gsub("acme", "single")))
    k.write(dir .. "/a/notes.txt", "no plugin")
    k.write(dir .. "/b/two/init.lua", (GOOD:gsub("acme", "two")))
    k.write(dir .. "/c/.hidden/init.lua", GOOD)
    local set = k.scan { dir .. "/a", dir .. "/b/two/", dir .. "/c" }
    assert.same({ "com.one.MySourceConnector", "com.single.MySourceConnector", "com.two.MySourceConnector" },
      names(set, dir))
    local p = k.find(set, "com.one.MySourceConnector")
    assert.equal("1.2", k.text(p.version))
    assert.equal(dir .. "/a/one", k.text(p.location))
    assert.equal("com.one.MySourceConnectorTask", k.text(p.task_class))
    local ok, err = pcall(k.find, set, "mine")
    assert.is_false(ok)
    assert.matches("More than one connector matches alias mine", err.message)
  end)

  it("in jars, missing folders and folders without init.lua are warnings", function()
    os.execute("mkdir -p " .. dir .. "/p/empty")
    k.write(dir .. "/p/x.jar", "PK")
    k.write(dir .. "/y.jar", "PK")
    k.write(dir .. "/p/notes.txt", "no plugin")
    local log = k.logged(function() k.scan { dir .. "/p", dir .. "/y.jar", dir .. "/none" } end)
    assert.matches("/p/x.jar is Java, plugins here are Lua: skipped", log)
    assert.matches("/y.jar is Java", log)
    assert.matches("there is no folder " .. dir:gsub("%p", "%%%0") .. "/none", log)
    assert.matches("/p/empty has no init.lua", log)
    assert.not_matches("notes", log)
  end)

  it("that are no files, or links to nothing, are warnings too", function()
    assert.equal(0, os.execute(("mkdir %s/p && mkfifo %s/p/pipe.lua && ln -s nowhere %s/p/gone.lua && ln -s away %s/p/dir")
      :format(dir, dir, dir, dir)))
    local log = k.logged(function() k.scan { dir .. "/p" } end)
    assert.matches("/p/pipe.lua is not a regular file: skipped", log)
    assert.matches("cannot read %S+/p/gone.lua: No such file or directory %(a symbolic link%): skipped", log)
    assert.matches("cannot read %S+/p/dir: No such file or directory %(a symbolic link%): skipped", log)
  end)

  describe("that are broken are listed with the reason:", function()
    local cases = {
      syntax = { "return {", "unexpected symbol" },
      raises = { "error 'at load'", "at load" },
      nothing = { "local x = 1", "must return what connect.source" },
      ["wrong-item"] = { "return { 1 }", "item 1 of the list is not made by connect.source" },
      ["no-task"] = { "return require 'connect'.source { name = 'x' }", "connect.source: field task is missing" },
      ["unknown-field"] = { "return require 'connect'.source { name = 'x', task = {}, poll = print }",
        'unknown field "poll"' },
      ["bad-type"] = { "return require 'connect'.sink { name = 'x', task = {}, config = { { 'a', type = 'number' } } }",
        'config "a": type cannot be "number"' },
      ["bad-row"] = { "return require 'connect'.sink { name = 'x', task = {}, config = { { 'a', kind = 'int' } } }",
        'unknown field "kind"' },
      ["twice"] = { "return require 'connect'.sink { name = 'x', task = {}, config = { { 'a' }, { 'a' } } }",
        "is there twice" },
      ["no-pattern"] = { "return require 'connect'.sink { name = 'x', task = {}, config = { { 'a', match = '[' } } }",
        "match of a is no Lua pattern" },
      ["declared-twice"] = { "local c = require 'connect' local d = c.sink { name = 'x', task = {} } return { d, d }",
        "connect.sink x: declared twice" },
      ["no-name"] = { "return require 'connect'.sink { name = ' ', task = {} }", "is empty or has white space" },
      endless = { "while true do end", "takes longer than 500 ms" },
      ["endless-pcall"] = { "while true do pcall(function() while true do end end) end", "takes longer than 500 ms" },
      global = { "counter = 1", "global 'counter' assigned: write `local counter`" },
      ["global-function"] = { "function helper() end", "global 'helper' assigned" },
      ffi = { "return require 'ffi'", "module 'ffi' not found" },
      private = { "return require 'connect.ffi'", "module 'connect.ffi' not found" },
      debug = { "return debug.traceback()", "debug" },
      popen = { "return io.popen 'true'", "popen" },
      execute = { "return os.execute 'true'", "execute" },
      exit = { "os.exit(1)", "exit" },
      bytecode = { "\27LJ\2\2", "wrong mode" },
      dump = { "return ('x').dump(function() end)", "dump" },
      env = { "return getfenv(require 'connect'.source)", "getfenv" },
    }
    for name, case in pairs(cases) do
      it(name, function()
        k.write(dir .. "/" .. name .. ".lua", case[1])
        local set
        local log = k.logged(function() set = k.scan { dir } end)
        assert.same({ name .. "!" }, names(set, dir))
        for i = 0, tonumber(set.n) - 1 do
          if set.v[i].error ~= nil then
            assert.is_truthy(k.text(set.v[i].error):find(case[2], 1, true), k.text(set.v[i].error))
          end
        end
        assert.matches("ERROR PLUGIN", log)
        local ok, err = pcall(k.find, set, name)
        assert.is_false(ok)
        assert.is_truthy(err.message:find("could not be loaded", 1, true))
        k.find(set, "FileStreamSource") -- the others are there
      end)
    end
  end)

  it("have their own modules, also of the same names", function()
    for _, n in ipairs { "a", "b" } do
      os.execute("mkdir -p " .. dir .. "/" .. n .. "/sub")
      k.write(dir .. "/" .. n .. "/init.lua", ([[
        local util, deep = require "%s.util", require "%s.sub.deep"
        assert(util == require "%s.util")
        return require "connect".sink { name = util.name .. deep, task = { put = print } }]]):format(n, n, n))
      k.write(dir .. "/" .. n .. "/util.lua", "return { name = 'Sink" .. n .. "' }")
      k.write(dir .. "/" .. n .. "/sub/deep.lua", "return '-deep'")
    end
    assert.same({ "Sinka-deep", "Sinkb-deep" }, names(k.scan { dir }, dir))
    k.write(dir .. "/a/init.lua", "return require 'b.util'")
    local set
    k.logged(function() set = k.scan { dir } end)
    local p
    for i = 0, tonumber(set.n) - 1 do if k.text(set.v[i].class_name) == "a" then p = set.v[i] end end
    assert.matches("module 'b.util' not found", k.text(p.error))
    k.write(dir .. "/a/init.lua", "return require 'a.loop'")
    k.write(dir .. "/a/loop.lua", "return require 'a.loop'")
    k.logged(function() set = k.scan { dir } end)
    for i = 0, tonumber(set.n) - 1 do if k.text(set.v[i].class_name) == "a" then p = set.v[i] end end
    assert.matches("requires itself", k.text(p.error))
  end)

  it("keep the code they were scanned with", function()
    k.write(dir .. "/p.lua", [[return require "connect".source { name = "P", task = { poll = function()
      return { { topic = "t", value = "old" } } end } }]])
    local set = k.scan { dir }
    k.write(dir .. "/p.lua", "broken now")
    local s = k.script(k.find(set, "P"), "source")
    s:start {}
    assert.equal("old", k.value(s:poll().records[0]))
    s:free()
    k.rm(dir)
    s = k.script(k.find(set, "P"), "source")
    s:free()
  end)

  it("declare every kind of row", function()
    local p = k.plugin [[
      local connect = require "connect"
      return connect.sink { name = "Rows", task = { put = print }, config = {
        { "b", type = "boolean", default = true, group = "G", width = "short", display = "The b" },
        { "i", type = "int", default = 5, range = { 1, 10 }, group = "G" },
        { "j", type = "long", default = 1, range = { 1 } },
        { "l", type = "list", default = { "x", "y" } },
        { "s", one_of = { "red", "green" }, default = "red", importance = "low", doc = "A colour." },
        { "p", type = "password", required = true },
      } }]]
    assert.same({ "true", "5", "1", "x,y", "red" }, { k.text(row(p, "b").def), k.text(row(p, "i").def),
      k.text(row(p, "j").def), k.text(row(p, "l").def), k.text(row(p, "s").def) })
    assert.same({ 1, 2, -1 }, { row(p, "b").order, row(p, "i").order, row(p, "j").order })
    assert.equal("The b", k.text(row(p, "b").display))
    local function errors_of(name, value)
      local out, errors = ffi.new "char *[1]", ffi.new "lc_strv_t"
      C.lc_config_parse(row(p, name), name, core.props { [name] = value }, out, errors)
      local list = {}
      for i = 0, tonumber(errors.n) - 1 do list[i + 1] = ffi.string(errors.v[i]) end
      C.lc_strv_free(errors)
      ffi.C.free(out[0])
      return list
    end
    assert.same({ "Invalid value 11 for configuration i: Value must be no more than 10" }, errors_of("i", "11"))
    assert.same({ "Invalid value 0 for configuration j: Value must be at least 1" }, errors_of("j", "0"))
    assert.same({ "Invalid value blue for configuration s: String must be one of: red, green" }, errors_of("s", "blue"))
    assert.same({}, errors_of("i", "10"))
  end)

  it("of transforms for key and value are two classes; predicates and converters are listed", function()
    k.write(dir .. "/steps.lua", [[
      local connect = require "connect"
      return {
        connect.transform { name = "Redact", class = "com.acme.Redact", on = { "key", "value" },
          apply_value = function(self, value) return value end },
        connect.transform { name = "Whole", apply = function(self, record) return record end },
        connect.predicate { name = "HasField", test = function() return true end },
        connect.converter { name = "UpperConverter", from_connect = print, to_connect = print, header = true },
      }]])
    local set = k.scan { dir }
    assert.same({ "Whole", "com.acme.Redact$Key", "com.acme.Redact$Value", "HasField", "UpperConverter",
      "UpperConverter" }, names(set, dir))
    assert.equal(TRANSFORM, tonumber(k.find(set, "com.acme.Redact$Key").type))
    assert.equal("undefined", k.text(k.find(set, "Whole").version))
    k.find(set, "Upper", 2 ^ 4)
  end)

  describe("check their config in Lua:", function()
    local source = [[
      local connect = require "connect"
      return connect.sink { name = "V", task = { put = print },
        config = {
          { "fields", type = "list", default = "", check = function(v, all)
              if #v == 0 then return "must name at least one field" end
              if all.n == 7 then return "not with seven" end
            end },
          { "n", type = "int", default = 1 },
          { "word", match = "^%a+$" },
        },
        validate = function(config)
          if config.n > 100 then return { n = "n is large", other = { "one", "two" } } end
          if config.n == 66 then while true do end end
          if config.n == 67 then error "broken check" end
          if config.n == 68 then return "n is 68" end
          if config.n == 69 then return { [{}] = "x", n = "y" } end
        end }]]
    local p, set
    before_each(function() p, set = k.plugin(source) end)

    it("rows", function()
      assert.same({ "fields: Invalid value [] for configuration fields: must name at least one field" }, infos(p, {}))
      assert.same({ "fields: Invalid value [a] for configuration fields: not with seven" }, infos(p, { fields = "a", n = "7" }))
      assert.same({ "word: Invalid value 1 for configuration word: must match the Lua pattern ^%a+$" },
        infos(p, { fields = "a", word = "1" }))
      assert.same({}, infos(p, { fields = "a,b", word = "abc" }))
      assert.is_not_nil(set)
    end)
    it("over several keys, when the values are of their types", function()
      assert.same({ "n: n is large", "other: one", "other: two" }, infos(p, { fields = "a", n = "101" }))
      assert.same({}, infos(p, { fields = "a", n = "x" }))
    end)
    it("within a time limit, and errors are errors", function()
      local ok, err = pcall(infos, p, { fields = "a", n = "66" })
      assert.is_false(ok)
      assert.matches("takes longer than 500 ms", err)
      ok, err = pcall(infos, p, { fields = "a", n = "67" })
      assert.is_false(ok)
      assert.matches("broken check", err)
    end)
    it("must return a table by keys", function()
      local _, err = pcall(infos, p, { fields = "a", n = "68" })
      assert.equal("V: validate must return nil or a table {key = message}, got string", err)
      _, err = pcall(infos, p, { fields = "a", n = "69" })
      assert.equal("V: validate must return nil or a table {key = message}, got a key that is a table", err)
    end)
  end)

  describe("of docs/authoring.md", function()
    local function write_snippets()
      local count = 0
      for block in k.read "docs/authoring.md":gmatch "```lua\n(.-)```" do
        local name = block:match "^%-%- file: (%S+)"
        if name and not name:find "_spec%.lua$" then
          count = count + 1
          local sub = name:match "^(.*)/"
          if sub then os.execute("mkdir -p " .. dir .. "/" .. sub) end
          k.write(dir .. "/" .. name, block)
        end
      end
      return count
    end

    it("load without errors", function()
      assert.equal(8, write_snippets())
      assert.same({ "JsonLogSink", "CountdownSource", "MultiSource", "OrdersSource", "Redact$Key", "Redact$Value",
        "RouteByField", "HasField", "UpperConverter", "UpperConverter" }, names(k.scan { dir }, dir))
    end)
    it("do what the page says", function()
      write_snippets()
      local set = k.scan { dir }
      local s = k.script(k.find(set, "CountdownSource"), "source", { offset_get = function(p)
        return p == '{"counter":"ticks"}' and '{"n":2}' or nil end })
      s:start { topic = "ticks" }
      local values, last = k.drain(function() return s:poll() end)
      assert.same({ "tick 1", "tick 0" }, values)
      assert.equal('{"n":0}', last)
      s:free()
      s = k.script(k.find(set, "OrdersSource"), "source")
      s:start {}
      local b = s:poll()
      assert.same({ 2, "shop.Order", C.LC_MAP }, { b.n, k.text(b.records[0].value_schema.name), b.records[1].value.type })
      s:free()
      s = k.script(k.find(set, "JsonLogSink"), "sink")
      s:start { dir = dir }
      s:open { { "t", 0 } }
      assert.same({}, s:put(k.sink_batch { "a", "b" }))
      assert.same({ ["t-0"] = 2 }, s:pre_commit { { "t", 0, 2 } })
      s:close { { "t", 0 } }
      s:free()
      assert.equal('"a"\n"b"\n', k.read(dir .. "/t-0.jsonl"))
      s = k.script(k.find(set, "MultiSource"), "connector")
      assert.same({ { files = "a,c" }, { files = "b" } }, s:task_configs({ files = "a,b,c" }, 2))
      s:free()
      assert.same({ "files: at most 100 files in mode once" }, infos(k.find(set, "MultiSource"), { mode = "once",
        files = ("x,"):rep(100) .. "y" }))
    end)
  end)

  it("of docs/authoring.md: transforms, predicates and converters do what the page says", function()
    local data, chains = require "spec.support.data", require "spec.support.chain"
    for block in k.read "docs/authoring.md":gmatch "```lua\n(.-)```" do
      local name = block:match "^%-%- file: (%S+)"
      if name and not name:find "/" then k.write(dir .. "/" .. name, block) end
    end
    local set, place = k.scan { dir }, data.place()
    local b = k.sink_batch({}, 3)
    for i, text in ipairs { '{"id":1,"ssn":"1","to":"a"}', '{"ssn":null,"to":null}', '{"other":1}' } do
      place:typed(data.read(text), b.records[i - 1].value)
    end
    local chain = assert(chains.new(set, { transforms = "r,t", ["transforms.r.type"] = "Redact$Value",
      ["transforms.r.fields"] = "ssn", ["transforms.t.type"] = "RouteByField", ["transforms.t.field"] = "to",
      ["transforms.t.predicate"] = "p", predicates = "p", ["predicates.p.type"] = "HasField", ["predicates.p.field"] = "to" }))
    assert(chain:run(b))
    assert.equal('$map("id"=$int64(1),"ssn"="***","to"="a")', data.show(b.records[0].value))
    assert.same({ "a", "t" }, { k.text(b.records[0].topic), k.text(b.records[2].topic) })
    assert.same({ 0, 1, 0 }, { b.records[0].state, b.records[1].state, b.records[2].state })
    chain:free()
    local err = core.err()
    local cv = C.lc_script_converter_new(k.find(set, "UpperConverter", 2 ^ 4), core.props {}, "value", err)
    place.converters[1] = cv
    assert.equal("ABC", place:from_connect(cv, nil, place:typed("abc", place:items(1)[0])))
    assert.equal('"abc"', data.show((place:to_connect(cv, "ABC"))))
    place:free()
  end)

  it("are found from the program's folder, or by LUACONNECT_HOME", function()
    ffi.cdef "int setenv(const char *, const char *, int); int unsetenv(const char *);"
    local err = core.err()
    ffi.C.setenv("LUACONNECT_HOME", ".", 1)
    local home = C.lc_home_find(err)
    assert.is_not_nil(k.read(k.text(home) .. "/lua/connect/boot.lua"))
    ffi.C.free(home)
    ffi.C.setenv("LUACONNECT_HOME", dir, 1)
    assert.is_true(C.lc_home_find(err) == nil)
    assert.matches("LUACONNECT_HOME is", core.msg(err))
    ffi.C.unsetenv "LUACONNECT_HOME"
  end)

  it("cannot be scanned without our own Lua: an error that names the file", function()
    local ok, err = pcall(k.scan, {}, dir)
    assert.is_false(ok)
    assert.matches("boot.lua", err.message)
  end)
end)
