-- kit_repl_spec.lua: luaconnect repl as a user runs it, from a pipe.
local proc = require "spec.support.proc"
local program = require "spec.support.program"

-- what loops do: tsan keeps a signal back until the next call into libc
local busy = os.getenv "LC_PRESET" == "tsan" and "os.time()" or ""

local function repl(dir, args, input) return program.run(dir, "repl " .. args, input) end

local function folder()
  local dir = proc.tmpdir "repl"
  proc.write(dir .. "/countdown.lua", (([[
local connect = require "connect"
local Task = {}
function Task:start(ctx)
  local offset = ctx.offsets:get { c = 1 }
  self.ctx, self.n = ctx, offset and offset.n or ctx.config.from
  ctx.log.info("from %d", self.n)
end
function Task:poll()
  if self.n == 0 then return nil end
  self.n = self.n - 1
  if self.n == self.ctx.config.boom then error "boom" end
  while self.n == self.ctx.config.spin do pcall(function() while true do BUSY end end) end
  return { { topic = self.ctx.config.topic, value = "tick " .. self.n, source_partition = { c = 1 },
    source_offset = { n = self.n } } }
end
return connect.source { name = "Countdown", task = Task, config = { { "topic", required = true, doc = "d" },
  { "from", type = "int", default = 10, doc = "d" }, { "boom", type = "int", doc = "d" },
  { "spin", type = "int", doc = "d" } } }
]]):gsub("BUSY", busy)))
  proc.write(dir .. "/hide.lua", [[
local connect = require "connect"
return {
  connect.transform { name = "Hide", on = { "value" }, config = { { "field", required = true, doc = "d" } },
    apply_value = function(self, value, schema)
      local out = connect.copy(value)
      out[self.config.field] = "***"
      return out, schema
    end,
    examples = { { config = { field = "a" }, input = { value = { a = 1 } }, output = { value = { a = "***" } } } } },
  connect.predicate { name = "Has", config = { { "field", required = true, doc = "d" } },
    test = function(self, record) return record.value[self.config.field] ~= nil end },
}
]])
  proc.write(dir .. "/keep.lua", [[
local connect = require "connect"
local Task = {}
function Task:start() self.n = 0 end
function Task:put(records)
  local failed = {}
  for i, r in ipairs(records) do
    if r.value == "bad" then failed[#failed + 1] = { index = i, error = connect.data_error "no good" } end
    self.n = self.n + 1
  end
  return failed
end
function Task:pre_commit(offsets) return offsets end
return connect.sink { name = "Keep", task = Task }
]])
  return dir
end

describe("luaconnect repl", function()
  it("Lua: expressions, statements, lines that go on; errors do not end it", function()
    local out, status, err = repl(folder(), "countdown.lua", [[
1 + 1, "x"
n = 5
n * 2
for i = 1, 2 do
  print(i)
end
_ + 1
connect.map { a = connect.null, b = { 1, "t" } }
plugin.name
error "oops"
nil + 1
)(
:bogus
connect.data_error "typed"
"last"]])
    assert.equal('2  "x"\n10\n1\n2\n11\n{a = null, b = {1, "t"}}\n"Countdown"\ntyped\n"last"\n', out)
    assert.equal(1, status)
    assert.matches("error: oops\n", err, 1, true)
    assert.matches("attempt to perform arithmetic on a nil value", err, 1, true)
    assert.matches("unexpected symbol", err, 1, true)
    assert.matches(":bogus is no command", err, 1, true)
    assert.is_nil(err:find("repl.lua", 1, true))
  end)

  it("a source: config, start, poll, commit; a start goes on behind it", function()
    local out, status, err = repl(folder(), "-c topic=t countdown.lua", [[
:config from=3
:config
:start
:poll
:commit
:log
:start
:poll
:poll
:poll
:stop
:quit
never
]])
    assert.equal(0, status, err)
    assert.equal([[
  from = 3
  topic = "t"
started
{topic = "t", value = "tick 2", source_partition = {c = 1}, source_offset = {n = 2}}
committed {n = 2}
info: from 3
started
{topic = "t", value = "tick 1", source_partition = {c = 1}, source_offset = {n = 1}}
{topic = "t", value = "tick 0", source_partition = {c = 1}, source_offset = {n = 0}}
nothing now
stopped
]], out)
  end)

  it("mistakes of a plugin: its traceback", function()
    local _, status, err = repl(folder(), "countdown.lua", ":start\n:poll\n:config topic=t\n:config boom=8\n:start\n:poll\n:poll\n:put 1\n")
    assert.equal(1, status)
    assert.matches('Missing required configuration "topic"', err, 1, true)
    assert.matches("it is not started: :start", err, 1, true)
    assert.matches("countdown.lua:11: boom\nstack traceback:\n", err, 1, true)
    assert.matches("in function 'poll'", err, 1, true)
    assert.matches("this is for a sink; Countdown is a source", err, 1, true)
  end)

  it("a sink", function()
    local out, status, err = repl(folder(), "keep.lua", ':start\n:put {a = 1}, "x"\n:put {"json":[1]}\n:put "bad"\n:pre_commit\n:stop\n')
    assert.equal(0, status, err)
    assert.equal('started\nput 2\nput 1\nrecord 1 failed: no good\n{["test-0"] = 4}\nstopped\n', out)
  end)

  it("transforms, predicates, several in a file; test and reload", function()
    local dir = folder()
    local out, status, err = repl(dir, "hide.lua -c field=a", [[
:apply {a = 1, b = 2}
:apply {"a":1}
:test
:use Has
:apply {a = 1}
:apply {value = {b = 1}}
:config field=b
:apply {value = {b = 1}}
:reload
:use Nope
]])
    assert.equal('{a = "***", b = 2}\n{a = "***"}\n1 examples passed, 0 failed\ntrue\nfalse\ntrue\n'
      .. 'loaded transform Hide, predicate Has\n', out)
    assert.equal(1, status)
    assert.matches("there is no Nope here, only transform Hide, predicate Has", err, 1, true)
  end)

  it("a reload that fails keeps what was there", function()
    local dir = folder()
    os.execute("mkfifo " .. dir .. "/pipe")
    local p = proc.start { "/bin/sh", "-c", ("cd %s && exec %s repl keep.lua < pipe > out 2> err"):format(dir, program.path),
      name = "repl" }
    local f = assert(io.open(dir .. "/pipe", "w"))
    f:setvbuf "no"
    f:write "plugin.name\n"
    proc.wait_for("an answer", function() return proc.read(dir .. "/out") == '"Keep"\n' end, 30)
    proc.write(dir .. "/keep.lua", "return 1 +")
    f:write ":reload\nplugin.name\n"
    proc.wait_for("the next", function() return proc.read(dir .. "/out") == '"Keep"\n"Keep"\n' end, 30)
    assert.matches("keep.lua:1:", proc.read(dir .. "/err"), 1, true)
    f:close()
    assert.equal(1, p:wait(30))
  end)

  it("Ctrl-C ends what runs, pcall or not, and goes on", function()
    local dir = folder()
    os.execute("mkfifo " .. dir .. "/pipe")
    local p = proc.start { "/bin/sh", "-c", ("cd %s && exec %s repl -c topic=t -c spin=8 countdown.lua < pipe > out 2> err")
      :format(dir, program.path), name = "repl" }
    local f = assert(io.open(dir .. "/pipe", "w"))
    f:setvbuf "no"
    for i, lines in ipairs { "print(1) while true do BUSY end", ":start\n:poll\n:poll",
      "print(3) while true do pcall(function() while true do BUSY end end) end" } do
      f:write(lines:gsub("BUSY", busy), "\n")
      proc.wait_for("call " .. i, function()
        local out = proc.read(dir .. "/out") or ""
        return out:find(i == 2 and '"tick 9"' or tostring(i) .. "\n", 1, true)
      end, 30)
      local _, before = (proc.read(dir .. "/err") or ""):gsub("interrupted", "")
      proc.wait_for("its end", function()
        p:signal "INT"
        local limit = proc.now() + 1
        repeat
          local _, now = (proc.read(dir .. "/err") or ""):gsub("interrupted", "")
          if now > before then return true end
        until proc.now() > limit
      end, 30)
    end
    f:write '"done"\n'
    proc.wait_for("the prompt", function() return proc.read(dir .. "/out"):find('"done"', 1, true) end, 30)
    f:close()
    assert.equal(1, p:wait(30))
  end)

  it("what is wrong with the call is status 2", function()
    local dir = folder()
    proc.write(dir .. "/broken.lua", "return 1 +")
    proc.write(dir .. "/loop.lua", "while true do end")
    proc.write(dir .. "/binary.lua", "\27LJ\2\0\255\254")
    proc.write(dir .. "/notes.txt", "x")
    os.execute("mkdir -p " .. dir .. "/empty")
    for args, message in pairs {
      [""] = "name a plugin", ["countdown.lua hide.lua"] = "name one plugin", ["nowhere.lua"] = "no such file",
      ["."] = "several plugins in it", ["empty"] = "no plugins", ["broken.lua"] = "broken.lua:1:",
      ["loop.lua"] = "longer than 500 ms", ["binary.lua"] = "binary.lua", ["notes.txt"] = "neither a .lua file nor a folder",
      ["-c x countdown.lua"] = "-c 'x' is not key=value", ["--bogus"] = "unknown option --bogus",
    } do
      local out, status, err = repl(dir, args)
      assert.equal(2, status, args .. ": " .. err)
      assert.equal("", out)
      assert.matches(message, err, 1, true)
    end
    assert.equal(0, (select(2, repl(dir, "--help"))))
  end)
end)
