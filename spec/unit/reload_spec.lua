-- Hot reload: a changed plugin file is tried, its examples run, and a new set of plugins takes over or the old code
-- stays. The restarts are in spec/unit/reload_herder_spec.lua and spec/kafka/reload_spec.lua.
local k = require "spec.support.connect"
local chains = require "spec.support.chain"
local data = require "spec.support.data"
local C, ffi, core = k.C, k.ffi, k.core

local function transform(name, body, example)
  return ([[
local connect = require "connect"
return connect.transform { name = %q, apply = function(self, r) %s end, examples = { %s } }
]]):format(name, body, example or "")
end

local function mark(text) return ("return r:with { value = r.value .. %q }"):format(text) end

describe("a reload", function()
  local dir, set

  setup(function() C.lc_log_set_level(nil, "off") end)
  teardown(function() C.lc_log_set_level(nil, "info") end)
  before_each(function() dir = k.tmpdir() end)
  after_each(function()
    if set then C.lc_plugins_free(ffi.gc(set, nil)) end
    set = nil
    k.rm(dir)
  end)

  local function write(name, text) k.write(dir .. "/" .. name, text) end

  local function scan(home)
    set = k.scan({ dir }, home)
    return set
  end

  --- {location = , classes = "a b", result =, reason =}, ...
  local function reload(standard)
    local path, report = ffi.new "lc_strv_t", ffi.new "lc_reload_report_t"
    C.lc_strv_add(path, dir)
    C.lc_plugins_reload(set, path, standard or false, report)
    C.lc_strv_free(path)
    local out = {}
    for i = 0, tonumber(report.n) - 1 do
      local item, classes = report.v[i], {}
      for c = 0, tonumber(item.classes.n) - 1 do classes[c + 1] = ffi.string(item.classes.v[c]) end
      out[i + 1] = { location = k.text(item.location):gsub("^.*/", ""), classes = table.concat(classes, " "),
        result = k.text(item.result), reason = k.text(item.reason) }
    end
    C.lc_reload_report_free(report)
    return out
  end

  local function only(standard)
    local out = reload(standard)
    assert.equal(1, #out, "one item expected, got " .. #out)
    return out[1]
  end

  local function current() return ffi.gc(C.lc_plugins_current(set), C.lc_plugins_unref) end

  local function run(type, value, in_set)
    local now = in_set or current()
    local chain, err = chains.new(now, { transforms = "t", ["transforms.t.type"] = type })
    if not chain then return nil, err.message end
    local b = k.sink_batch { value or "x" }
    assert(chain:run(b))
    local out = data.show(b.records[0].value)
    chain:free()
    return (out:gsub('"', ""))
  end

  it("of nothing changed makes no new set", function()
    write("a.lua", transform("A", mark "1"))
    scan()
    assert.same({}, reload())
    assert.is_true(current() == ffi.cast("const lc_plugins_t *", set))
  end)

  it("takes a changed file; who holds the old set keeps the old code", function()
    write("a.lua", transform("A", mark "1"))
    write("b.lua", transform("B", mark "b"))
    scan()
    local old = current()
    write("a.lua", transform("A", mark "2", '{ input = { value = "x" }, output = { value = "x2" } }'))
    assert.same({ location = "a.lua", classes = "A", result = "reloaded" }, only())
    assert.equal("x2", run "A")
    assert.equal("xb", run "B")
    assert.equal("x1", run("A", "x", old))
    assert.is_true(k.find(old, "A").loaded ~= k.find(current(), "A").loaded)
    assert.is_true(k.find(old, "B").loaded == k.find(current(), "B").loaded)
    assert.same({}, reload())
  end)

  for name, case in pairs {
    ["does not parse"] = { "return return", "unexpected symbol" },
    ["raises"] = { "error 'no luck'", "no luck" },
    ["is empty"] = { "", "a plugin file must return" },
    ["does not end"] = { "while true do end", "500 ms" },
    ["has an example that fails"] = {
      transform("A", mark "2", '{ input = { value = "x" }, output = { value = "x3" } }'),
      'example 1 of A: value: expected "x3", got "x2"' },
    ["has an example that raises"] = {
      transform("A", "error(connect.data_error 'bad')", '{ input = { value = "x" }, output = { value = "x3" } }'),
      "example 1 of A: bad" },
    ["has an example that does not end"] = {
      transform("A", "while true do end", '{ input = { value = "x" }, output = { value = "x3" } }'), "500 ms" },
    ["has an example that is nonsense"] = { transform("A", mark "2", "5"), "example 1: a table expected" },
  } do
    it("keeps the old code when the file " .. name, function()
      write("a.lua", transform("A", mark "1"))
      scan()
      write("a.lua", case[1])
      local item = only()
      assert.equal("kept", item.result)
      assert.truthy(item.reason:find(case[2], 1, true), item.reason)
      assert.equal("x1", run "A")
      local p = k.find(current(), "A")
      assert.equal(item.reason, k.text(p.reload_error))
      assert.is_true(p.loaded == k.find(set, "A").loaded)
      assert.equal("kept", only().result) -- said again
      write("a.lua", transform("A", mark "1"))
      assert.equal("restored", only().result)
      assert.is_true(k.find(current(), "A").reload_error == nil)
      assert.same({}, reload())
      write("a.lua", transform("A", mark "4"))
      assert.equal("reloaded", only().result)
      assert.equal("x4", run "A")
    end)
  end

  it("knows modules of a folder, and keeps those that were not required yet", function()
    os.execute("mkdir -p " .. dir .. "/m/spec")
    write("m/init.lua", [[
local connect = require "connect"
return connect.transform { name = "M", apply = function(self, r)
  return r:with { value = r.value .. require("m.text").word }
end }]])
    write("m/text.lua", "return { word = 'one' }")
    scan()
    write("m/text.lua", "return { word = ") -- the one before was never run
    assert.equal("reloaded", only().result) -- init.lua is fine, and has no example that would need it
    assert.equal("xone", run("M", "x", set))
    write("m/text.lua", "return { word = 'two' }")
    assert.equal("reloaded", only().result)
    assert.equal("xtwo", run "M")
    write("m/spec/x.lua", "nothing of it")
    assert.same({}, reload())
    k.rm(dir .. "/m")
    assert.equal("removed", only().result)
  end)

  it("finds new files, gone ones and renamed classes", function()
    write("a.lua", transform("A", mark "1"))
    scan()
    write("b.lua", transform("B", mark "b"))
    assert.same({ location = "b.lua", classes = "B", result = "added" }, only())
    assert.equal("xb", run "B")
    os.remove(dir .. "/b.lua")
    local item = only()
    assert.same({ "removed", "B" }, { item.result, item.classes })
    assert.truthy(item.reason:find("gone", 1, true))
    local out, err = run "B"
    assert.is_nil(out)
    assert.truthy(err:find("Class B could not be found", 1, true))
    assert.equal("x1", run "A")
    write("a.lua", transform("A2", mark "2"))
    item = only()
    assert.same({ "reloaded", "A2" }, { item.result, item.classes })
    assert.truthy(item.reason:find("keeps its code: A", 1, true))
    assert.is_nil((run "A"))
    assert.equal("x2", run "A2")
    write("c.lua", "return nonsense(")
    assert.equal("broken", only().result)
    assert.has_error(function() k.find(current(), "c") end)
    write("c.lua", transform("C", mark "c"))
    assert.equal("added", only().result)
  end)

  it("takes no class twice, but one may move to another file", function()
    write("a.lua", transform("A", mark "1"))
    scan()
    write("b.lua", transform("A", mark "2"))
    local item = only()
    assert.equal("broken", item.result)
    assert.truthy(item.reason:find("class A is declared by " .. dir .. "/a.lua too", 1, true), item.reason)
    assert.equal("x1", run "A")
    os.remove(dir .. "/b.lua")
    reload()
    write("a.lua", transform("Z", mark "z"))
    write("0.lua", transform("A", mark "3"))
    assert.equal(2, #reload())
    assert.equal("x3", run "A")
    assert.equal("xz", run "Z")
    write("r.lua", transform("org.apache.kafka.connect.transforms.HoistField$Key", mark "3"):gsub("name", "name"))
    assert.equal("broken", only().result)
  end)

  it("runs the examples of predicates, converters and connectors", function()
    scan()
    local function try(text)
      write("t.lua", 'local connect = require "connect"\n' .. text)
      return reload()[1].result, ""
    end
    local P = 'return connect.predicate { name = "P", config = { { "w" } }, test = function(self, r) return r.value == '
      .. 'self.config.w end, examples = { { config = { w = "a" }, input = { value = "%s" }, output = true } } }'
    assert.equal("added", (try(P:format "a")))
    assert.equal("kept", (try(P:format "b")))
    local V = 'return connect.converter { name = "V", from_connect = function(self, t, s, v) return v:upper() end, '
      .. 'to_connect = function(self, t, b) return "string", b:lower() end, examples = { { input = { value = "ab" }, '
      .. 'output = "%s" }, { input = "AB", output = { value = "ab" } } } }'
    assert.equal("reloaded", (try(V:format "AB")))
    assert.equal("kept", (try(V:format "Ab")))
    local S = 'return connect.source { name = "S", config = { { "file", required = true }, { "n", type = "int" } }, '
      .. 'task = { poll = function() end }, examples = { { config = { file = "x", n = "%s" } } } }'
    assert.equal("reloaded", (try(S:format "5")))
    assert.equal("kept", (try(S:format "five")))
  end)

  it("passes the examples of all that ships, when asked to look there", function()
    local home = dir .. "/home"
    os.execute(("mkdir -p %s && cp -r lua connectors %s/"):format(home, home))
    scan(home)
    os.execute(("for f in %s/lua/transforms/*.lua %s/lua/predicates/*.lua; do echo '-- changed' >> $f; done")
      :format(home, home))
    assert.same({}, reload(false))
    local out = reload(true)
    assert.is_true(#out >= 19)
    for _, item in ipairs(out) do
      assert.equal("reloaded", item.result, item.location .. ": " .. tostring(item.reason))
    end
  end)

  it("a hundred times in a row leaves nothing behind", function()
    write("a.lua", transform("A", mark "0"))
    scan()
    local function rss()
      return tonumber(k.read "/proc/self/statm":match "^%d+ (%d+)") * 4
    end
    local middle
    for i = 1, 100 do
      write("a.lua", i % 3 == 0 and "broken(" or transform("A", mark(tostring(i))))
      assert.equal(i % 3 == 0 and "kept" or "reloaded", only().result)
      if i == 50 then
        collectgarbage()
        middle = rss()
      end
    end
    collectgarbage()
    -- the sanitizers keep freed memory for a while
    local allowed = os.getenv "LC_PRESET" == "release" and 8192 or 65536
    assert.is_true(rss() - middle < allowed, ("grew by %d kB"):format(rss() - middle))
    assert.equal("x100", run "A")
  end)

  it("says which configs use what was loaded anew", function()
    write("a.lua", transform("A", mark "0"))
    write("b.lua", transform("B", mark "0"))
    scan()
    local was = current()
    write("a.lua", transform("A", mark "1"))
    reload()
    local function differ(config, task)
      return C.lc_plugins_differ(was, current(), core.props(config), nil, task)
    end
    local file = "FileStreamSource"
    assert.is_true(differ({ ["connector.class"] = file, transforms = "x", ["transforms.x.type"] = "A" }, true))
    assert.is_false(differ({ ["connector.class"] = file, transforms = "x", ["transforms.x.type"] = "A" }, false))
    assert.is_false(differ({ ["connector.class"] = file, transforms = "x", ["transforms.x.type"] = "B" }, true))
    os.remove(dir .. "/b.lua")
    reload()
    assert.is_false(differ({ ["connector.class"] = file, transforms = "x,y", ["transforms.x.type"] = "A",
      ["transforms.y.type"] = "B" }, true)) -- a restart would find B no more
  end)
end)
