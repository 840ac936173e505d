-- kit_author_spec.lua: luaconnect new, test, lint and docs as a user runs them, and connect.testing under them.
local proc = require "spec.support.proc"
local standalone = require "spec.support.standalone"
local program = standalone.program

local function run(args, dir)
  local out, status = proc.run(("cd %s && %s %s 2>&1"):format(dir, program:sub(1, 1) == "/" and program
    or os.getenv "PWD" .. "/" .. program, args))
  return out, status
end

local function plugin(text)
  local dir = proc.tmpdir "plugin"
  proc.write(dir .. "/p.lua", text)
  return dir
end

describe("luaconnect new", function()
  for _, kind in ipairs { "source", "sink", "transform", "predicate", "converter" } do
    it(kind .. ": its specs pass, it lints clean, is listed and has a page", function()
      local dir = proc.tmpdir "new"
      local out, status = run(("new %s my-%s"):format(kind, kind), dir)
      assert.equal(0, status, out)
      for _, f in ipairs { "init.lua", "README.md", ("spec/my_%s_spec.lua"):format(kind) } do
        assert.is_string(proc.read(("%s/my-%s/%s"):format(dir, kind, f)))
      end
      out, status = run("test my-" .. kind, dir)
      assert.equal(0, status, out)
      assert.matches("[1-9]%d* success", out)
      out, status = run("lint my-" .. kind, dir)
      assert.equal(0, status, out)
      local class = "My" .. kind:gsub("^%l", string.upper)
      assert.matches(class, (run("plugins --plugin-path .", dir)), 1, true)
      assert.matches("# " .. class, (run("docs my-" .. kind, dir)), 1, true)
    end)
  end

  it("never overwrites; names are checked", function()
    local dir = proc.tmpdir "new"
    run("new source one", dir)
    proc.write(dir .. "/one/init.lua", "mine")
    local out, status = run("new source one", dir)
    assert.equal(2, status)
    assert.matches("is there already", out, 1, true)
    assert.equal("mine", proc.read(dir .. "/one/init.lua"))
    for _, args in ipairs { "new", "new bogus x", "new source ../x", "new source" } do
      assert.equal(2, (select(2, run(args, dir))), args)
    end
    assert.equal(0, (select(2, run("new --help", dir))))
  end)
end)

describe("luaconnect test", function()
  local head = [[local connect = require "connect"
return connect.transform { name = "Twice", doc = "d", on = { "value" }, apply_value = function(_, v, s) return v * 2, s end,
]]

  it("a wrong example or spec is status 1", function()
    local dir = plugin(head .. "examples = { { input = { value = 2 }, output = { value = 4 } } } }")
    local out, status = run("test p.lua", dir)
    assert.equal(0, status, out)
    assert.matches("1 examples passed, 0 failed", out, 1, true)
    dir = plugin(head .. "examples = { { input = { value = 2 }, output = { value = 5 } } } }")
    out, status = run("test p.lua", dir)
    assert.equal(1, status)
    assert.matches("example 1 of Twice$Value: value: expected 5, got 4", out, 1, true)
    dir = plugin(head .. "}")
    os.execute("mkdir " .. dir .. "/spec")
    proc.write(dir .. "/spec/p_spec.lua", [[it("fails", function() assert.equal(1, 2) end)]])
    out, status = run("test .", dir)
    assert.equal(1, status)
    assert.matches("0 successes / 1 failure", out, 1, true)
  end)

  it("what cannot be loaded is status 2, with file and line", function()
    local out, status = run("test p.lua", plugin "return 1 +")
    assert.equal(2, status)
    assert.matches("p.lua:1:", out, 1, true)
    assert.equal(2, (select(2, run("test /nowhere", proc.tmpdir "x"))))
    assert.equal(2, (select(2, run("test", proc.tmpdir "x"))))
  end)
end)

describe("standard transforms and predicates", function()
  it("have examples, which pass, and lint clean", function()
    local dir, files = proc.tmpdir "standard", {}
    for _, kind in ipairs { "transforms", "predicates" } do
      for file in io.popen("ls $PWD/lua/" .. kind .. "/*.lua"):lines() do
        files[#files + 1] = file
        local out, status = run("test " .. file, dir)
        assert.equal(0, status, out)
        assert.matches("^[1-9]%d* examples passed, 0 failed", out, 1, false, file)
      end
    end
    assert.is_true(#files >= 19)
    assert.equal(0, (select(2, run("lint " .. table.concat(files, " "), dir))))
    for _, name in ipairs { "Cast", "'MaskField$Key'", "org.apache.kafka.connect.transforms.predicates.HasHeaderKey" } do
      local out, status = run("test " .. name, dir)
      assert.equal(0, status, out)
      assert.matches("^[1-9]%d* examples passed, 0 failed", out)
    end
    assert.equal(2, (select(2, run("test Nope", dir))))
  end)
end)

describe("luaconnect lint", function()
  it("says what is wrong, with file and line", function()
    local dir = plugin [[
local connect = require "connect"
return connect.transform {
  name = "Bad", on = { "value" },
  config = {
    { "n", type = "int", default = 0, range = { 1, 5 } },
    { "unused", doc = "d" },
  },
  apply_value = function(self, v, s)
    counter = 1
    return undefined_thing(v, self.config.n), s
  end,
}
]]
    local out, status = run("lint p.lua", dir)
    assert.equal(1, status)
    for _, text in ipairs { "p.lua:3: Bad has no doc", "p.lua:3: Bad has no examples", "p.lua:5: config n of Bad has no doc",
      "p.lua:5: the default: Invalid value 0 for configuration n: Value must be at least 1",
      "p.lua:6: config unused of Bad is never used", "p.lua:9: global 'counter' is assigned",
      "p.lua:10: global 'undefined_thing' is not there" } do
      assert.matches(text, out, 1, true)
    end
    out, status = run("lint p.lua", plugin 'return require "connect".transform { name = "X", bogus = 1 }')
    assert.equal(1, status)
    assert.matches('p.lua:1: connect.transform: unknown field "bogus"', out, 1, true)
  end)
end)

describe("luaconnect docs", function()
  it("standard plugins by name or class", function()
    local dir = proc.tmpdir "docs"
    for _, name in ipairs { "MaskField", "MaskField\\$Value", "org.apache.kafka.connect.transforms.MaskField" } do
      local out, status = run("docs " .. name, dir)
      assert.equal(0, status, out)
      assert.matches("| `fields` | list | (required) | high |", out, 1, true)
      assert.matches('out {"topic":"t","value":{"id":7,"ssn":0}}', out, 1, true)
    end
    assert.equal(2, (select(2, run("docs Nope", dir))))
  end)
end)
