-- kit_bad_input_spec.lua: what is no plugin, no config, no record and no place, given to every command of the kit: a
-- clear message and status 1 or 2 within seconds, never a crash or a hang.
local proc = require "spec.support.proc"
local program = require("spec.support.standalone").program

if program:sub(1, 1) ~= "/" then program = os.getenv "PWD" .. "/" .. program end

-- `redirect`: of the shell, stdin is empty unless it says otherwise. stdout, status, stderr.
local function run(dir, args, redirect)
  local command = ("cd %s && timeout -k 2 60 %s %s < /dev/null > out %s 2> err"):format(dir, program, args, redirect or "")
  local status = os.execute(command)
  if status > 255 then status = math.floor(status / 256) end
  return proc.read(dir .. "/out") or "", status, proc.read(dir .. "/err") or ""
end

local TRANSFORM = 'return require "connect".transform{name="T",doc="d",on={"value"},\napply_value=function(_,v)%s return v end,'
  .. '\nexamples={{input={value=1},output={value=1}}}}'

local files = {
  ["binary.lua"] = { "\27LJ\2\0\255\254", "wrong mode" },
  ["noise.lua"] = { "\1\2\255\254 = \0", "noise.lua:1:" },
  ["loop.lua"] = { "while true do end", "longer than 500 ms" },
  ["pcall.lua"] = { "while true do pcall(function() while true do end end) end", "longer than 500 ms" },
  ["find.lua"] = { '("x"):rep(1e5):find(("x*"):rep(30) .. "y")', "longer than 500 ms" },
  ["broken.lua"] = { "return 1 +", "broken.lua:1:" },
  ["number.lua"] = { "return 5", "must return what connect.source" },
  ["list.lua"] = { "return {}", "must return what connect.source" },
  ["empty.lua"] = { "", "must return what connect.source" },
  ["raises.lua"] = { 'error "no"', "raises.lua:1: no" },
  ["tostring.lua"] = { "error(setmetatable({}, {__tostring = function() error 'x' end}))", "tostring.lua" },
  ["deep.lua"] = { "local function f() return f() + 1 end f()", "stack overflow" },
  ["memory.lua"] = { "local t = {} for i = 1, 1e9 do t[i] = ('x'):rep(1e6) .. i end", "" },
  ["examples.lua"] = { 'return require "connect".transform{name="T",on={"value"},apply_value=print,examples=5}',
    "field examples must be a table" },
}

local function folder()
  local dir = proc.tmpdir "bad"
  for name, f in pairs(files) do proc.write(dir .. "/" .. name, f[1]) end
  proc.write(dir .. "/good.lua", TRANSFORM:format "")
  proc.write(dir .. "/spin.lua", TRANSFORM:format " while true do end")
  proc.write(dir .. "/strange.lua", 'return require "connect".transform{name="V",doc="d",on={"value"},apply_value=print,'
    .. "examples={5,{input=3},{},{config=7,input={}},{input={value=1}}}}")
  proc.write(dir .. "/noclass.json", '{"a":"1"}')
  proc.write(dir .. "/nul.properties", "a=b\0c\n")
  proc.write(dir .. "/notes.txt", "x")
  os.execute(("cd %s && mkdir nothing dir.lua && mkfifo fifo.lua && ln -s /nowhere link.lua"):format(dir))
  return dir
end

describe("bad plugins:", function()
  local dir
  setup(function() dir = folder() end)

  for _, command in ipairs { "test", "lint", "docs", "repl" } do
    local told = command == "lint" and 1 or 2
    it("luaconnect " .. command, function()
      for name, f in pairs(files) do
        local out, status, err = run(dir, command .. " " .. name)
        local text = command == "lint" and out or err
        assert.equal(told, status, name .. ": " .. out .. err)
        assert.matches(f[2], text, 1, true)
        assert.matches(name, text, 1, true)
        assert.is_nil((out .. err):find("lua/connect/cli/", 1, true), out .. err) -- no traceback of ours
      end
      for _, name in ipairs { "notes.txt", "nothing", "dir.lua", "fifo.lua", "link.lua", "nowhere", "nowhere.lua", "''", "/dev/null",
        "--bogus" } do
        local _, status, err = run(dir, command .. " " .. name)
        assert.equal(2, status, name)
        assert.matches("^luaconnect " .. command .. ": %S", err)
      end
    end)
  end

  it("try --source, try --sink, plugins", function()
    for name, f in pairs(files) do
      for _, command in ipairs { "try --source ", "try --sink " } do
        local out, status, err = run(dir, command .. name)
        assert.equal(2, status, name .. ": " .. err)
        assert.equal("", out)
        assert.matches(f[2], err, 1, true)
      end
    end
    local out, status = run(dir, "plugins --plugin-path .")
    assert.equal(0, status)
    local broken = out:match "\nnot usable:\n(.*)$"
    for name, f in pairs(files) do
      assert.matches("(./" .. name .. "): ", broken, 1, true)
      assert.matches(f[2], broken, 1, true)
    end
  end)

  it("examples that loop or are none", function()
    local out, status = run(dir, "test spin.lua")
    assert.equal(1, status)
    assert.matches("example 1 of T$Value: this takes longer than 500 ms", out, 1, true)
    for _, command in ipairs { "test", "lint" } do
      local o, code, e = run(dir, command .. " strange.lua")
      assert.is_true(code == 1 or code == 2)
      assert.matches("example 1: a table expected, got number", o .. e, 1, true)
    end
    assert.equal(0, (select(2, run(dir, "docs strange.lua"))))
  end)
end)

describe("bad configs:", function()
  local dir
  setup(function() dir = folder() end)

  it("try and plugins", function()
    for args, message in pairs {
      ["try nowhere.json"] = "nowhere.json: No such file", ["try nothing"] = "nothing: Is a directory",
      ["try nul.properties"] = "nul.properties: the NUL character", ["try /dev/zero"] = "/dev/zero: File too large",
      ["try --source noclass.json"] = "noclass.json names no connector.class",
      ["try --sink noclass.json"] = "noclass.json names no connector.class",
      ["try --source nul.properties"] = "nul.properties: the NUL character",
      ["try --sink /dev/zero"] = "/dev/zero: File too large", ["try --source good.lua"] = "good.lua is no source: it is transformation",
      ["plugins nowhere"] = "nowhere", ["plugins nothing"] = "nothing: Is a directory", ["plugins /dev/zero"] = "File too large",
      ["plugins nul.properties"] = "the NUL character", ["try --input nothing"] = "cannot read nothing: Is a directory",
      ["completion"] = "name a shell", ["completion bash zsh"] = "one shell", ["completion fish"] = "bash or zsh",
    } do
      local out, status, err = run(dir, args)
      assert.is_true(status == 2 or (status == 1 and args:find("--input", 1, true) ~= nil), args .. ": " .. status)
      assert.equal("", out, args)
      assert.matches(message, err, 1, true)
    end
  end)
end)

describe("bad places:", function()
  it("new", function()
    local dir = folder()
    for args, message in pairs {
      ["source"] = "give source, sink", ["bogus x"] = "give source, sink", ["source x y z"] = "give source, sink",
      ["source notes.txt"] = "is no name", ["source nothing"] = "nothing is there already", ["source x notes.txt"] = "cannot make",
      ["source x /proc"] = "cannot make", ["source ''"] = "is no name", ["source a/b"] = "is no name", ["source 'a b'"] = "is no name",
      ["source ../x"] = "is no name", ["sink connect"] = "take another name", ["source " .. ("x"):rep(300)] = "cannot make",
    } do
      local out, status, err = run(dir, "new " .. args)
      assert.equal(2, status, args)
      assert.equal("", out)
      assert.matches(message, err, 1, true)
    end
    -- names that mean something in Lua are fine
    for _, name in ipairs { "string", "end", "json" } do
      assert.equal(0, (select(2, run(dir, "new transform " .. name))))
      local out, status, err = run(dir, "test " .. name)
      assert.equal(0, status, out .. err)
    end
  end)
end)

describe("bad ends of pipes:", function()
  local dir
  setup(function() dir = folder() end)

  it("stdout is full or closed: status 1", function()
    proc.write(dir .. "/in", "1\n")
    for _, args in ipairs { "plugins", "docs Cast", "test Cast", "try", "completion bash", "help", "version", "try --help" } do
      for _, redirect in ipairs { "< in > /dev/full", "< in >&-" } do
        local _, status, err = run(dir, args, redirect)
        assert.equal(1, status, args .. " " .. redirect)
        assert.matches("luaconnect: cannot write to stdout", err, 1, true)
      end
    end
  end)

  it("a reader that leaves ends it quietly", function()
    for _, args in ipairs { "plugins", "docs Cast", "completion bash", "help", "try --help" } do
      os.execute(("cd %s && timeout -k 2 60 %s %s 2> err < /dev/null | true"):format(dir, program, args))
      assert.equal("", proc.read(dir .. "/err"), args)
    end
  end)

  it("stdin is closed", function()
    for _, args in ipairs { "try", "repl good.lua" } do
      local _, status, err = run(dir, args, "<&-")
      assert.equal(1, status, args)
      assert.matches("cannot read stdin", err, 1, true)
    end
    for _, args in ipairs { "test good.lua", "lint good.lua", "docs good.lua", "plugins" } do
      assert.equal(0, (select(2, run(dir, args, "<&-"))), args)
    end
  end)
end)

describe("bad records:", function()
  it("each is told with its line, the good ones come out", function()
    local dir = folder()
    proc.write(dir .. "/in", '\0\n{"a":1e400}\n[[[\n' .. ("["):rep(2000) .. "\n\xff\xfe\n" .. '{"a":"\\ud800"}\n"good"\n{"schema":'
      .. '{"type":"nope"},"payload":1}\n{"schema":{"type":"int8"},"payload":1000}\n{"schema":{"type":"struct","fields":5},"payload":1}\n')
    local out, status, err = run(dir, "try", "< in")
    assert.equal(1, status)
    assert.matches('"good"\n', out, 1, true)
    for _, line in ipairs { 1, 3, 4, 5, 8, 10 } do assert.matches("stdin:" .. line .. ": ", err, 1, true) end
    assert.is_nil(err:find("stdin:7:", 1, true))
    local f = assert(io.open(dir .. "/in", "wb"))
    math.randomseed(7)
    for _ = 1, 20000 do f:write(string.char(math.random(0, 255))) end
    f:write "\n1\n"
    f:close()
    out, status = run(dir, "try", "< in")
    assert.equal(1, status)
    assert.matches("1\n$", out)
    out, status = run(dir, "try --raw", "< in")
    assert.is_true(status == 0 and #out > 0)
    out, status = run(dir, "try --sink " .. os.getenv "PWD" .. "/connectors/file -c file=" .. dir .. "/kept", "< in")
    assert.equal(1, status, out)
    assert.matches("1\n$", proc.read(dir .. "/kept"))
  end)
end)
