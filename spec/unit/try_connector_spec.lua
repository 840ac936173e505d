-- try_connector_spec.lua: luaconnect try --source and --sink as a user runs them: the real tasks, no Kafka.
local proc = require "spec.support.proc"
local program = require "spec.support.program"

local function try(dir, args, input) return program.run(dir, "try " .. args, input) end

local countdown = [[
local connect = require "connect"
local Task = {}
function Task:start(ctx)
  self.ctx = ctx
  local offset = ctx.offsets:get { counter = ctx.config.topic }
  self.n = offset and offset.n or ctx.config.from
end
function Task:poll()
  local c = self.ctx.config
  if c.spin then
    io.stdout:write "spinning\n"
    io.stdout:flush()
    while true do end
  end
  if self.n == 0 then return nil end
  self.n = self.n - 1
  if self.n == c.boom then error "boom" end
  return { { topic = c.topic, value = "tick " .. self.n, source_partition = { counter = c.topic },
    source_offset = { n = self.n } } }
end
return connect.source { name = "Countdown", task = Task, config = {
  { "topic", required = true, doc = "d" }, { "from", type = "int", default = 10, doc = "d" },
  { "boom", type = "int", default = -1, doc = "d" }, { "spin", type = "boolean", default = false, doc = "d" } } }
]]

local say = [[
local connect = require "connect"
local json = require "connect.json"
local Task = {}
local function say(text)
  io.stdout:write(text, "\n")
  io.stdout:flush()
end
function Task:start(ctx) self.ctx, self.c, self.tries = ctx, ctx.config, 0 end
function Task:open(tps) for _, tp in ipairs(tps) do say("open " .. tp.key) end end
function Task:close(tps) for _, tp in ipairs(tps) do say("close " .. tp.key) end end
function Task:put(records)
  if #records == 0 then return end
  local c, failed = self.c, {}
  for i, r in ipairs(records) do
    local v = connect.tostring(r.value)
    if c.later == v and self.tries < 2 then
      self.tries = self.tries + 1
      self.ctx:timeout(20)
      error(connect.retriable "not now")
    end
    if c.bad == v then failed[#failed + 1] = { index = i, error = connect.data_error "no good" }
    else say(r.tp .. "@" .. r.offset .. " " .. json.encode(r.value)) end
    if c.back == v and self.tries == 0 then
      self.tries = 1
      self.ctx:seek(r.tp, 0)
    end
  end
  return failed
end
function Task:pre_commit(offsets)
  if self.c.refuse and next(offsets) then error "cannot flush" end
  return offsets
end
return connect.sink { name = "Say", task = Task, config = {
  { "later", doc = "d" }, { "bad", doc = "d" }, { "back", doc = "d" }, { "refuse", type = "boolean", doc = "d" } } }
]]

local function folder()
  local dir = proc.tmpdir "try"
  proc.write(dir .. "/countdown.lua", countdown)
  os.execute("mkdir -p " .. dir .. "/say")
  proc.write(dir .. "/say/init.lua", say)
  return dir
end

describe("luaconnect try --source", function()
  it("prints records and the offsets of those printed", function()
    local out, status, err = try(folder(), "--source countdown.lua -c topic=t -n 3")
    assert.equal('"tick 9"\n"tick 8"\n"tick 7"\n', out)
    assert.equal('offset {"counter":"t"}: {"n":7}\n', err)
    assert.equal(0, status)
  end)

  it("transforms of config files of each shape; --full", function()
    local dir = folder()
    local config = { ["connector.class"] = "Countdown", topic = "t", transforms = "h",
      ["transforms.h.type"] = "HoistField$Value", ["transforms.h.field"] = "line" }
    local json, properties = {}, {}
    for k, v in pairs(config) do
      json[#json + 1] = ("%q:%q"):format(k, v)
      properties[#properties + 1] = k .. "=" .. v
    end
    local map = "{" .. table.concat(json, ",") .. "}"
    proc.write(dir .. "/a.json", map)
    proc.write(dir .. "/b.json", '{"name":"x","config":' .. map .. "}")
    proc.write(dir .. "/c.properties", table.concat(properties, "\n") .. "\n")
    for _, f in ipairs { "a.json", "b.json", "c.properties" } do
      assert.equal('{"line":"tick 9"}\n', (try(dir, "--source " .. f .. " --plugin-path . -n 1")))
    end
    assert.equal('{"topic":"t","partition":null,"key":null,"value":{"line":"tick 9"},"headers":[],"timestamp":null,'
      .. '"source_partition":{"counter":"t"},"source_offset":{"n":9}}\n',
      (try(dir, "--source a.json --plugin-path . -n 1 --full")))
    -- those go in again
    assert.equal('{"line":"tick 9"}\n', (try(dir, "--records", (try(dir, "--source a.json --plugin-path . -n 1 --full")))))
  end)

  it("a task that fails: the records before, the traceback, status 1", function()
    local out, status, err = try(folder(), "--source countdown.lua -c topic=t -c boom=8")
    assert.equal('"tick 9"\n', out)
    assert.equal(1, status)
    assert.matches("task 0 failed: ", err, 1, true)
    assert.matches("countdown.lua:17: boom", err, 1, true)
    assert.matches("in function 'poll'", err, 1, true)
    assert.matches('offset {"counter":"t"}: {"n":9}', err, 1, true)
  end)

  it("Ctrl-C ends it, a script that never returns too; so does a closed pipe", function()
    local dir = folder()
    for _, more in ipairs { "", " -c spin=true" } do
      local p = proc.start { "/bin/sh", "-c", ("cd %s && exec %s try --source countdown.lua -c topic=t%s > out 2> err")
        :format(dir, program.path, more), name = "source" }
      local last = more == "" and '"tick 0"' or "spinning"
      proc.wait_for(last, function() return (proc.read(dir .. "/out") or ""):find(last, 1, true) end, 30)
      p:signal "INT"
      assert.equal(more == "" and 0 or 1, p:wait(40), proc.read(dir .. "/err"))
      if more == "" then assert.equal('offset {"counter":"t"}: {"n":0}\n', proc.read(dir .. "/err")) end
    end
    os.execute(("cd %s && timeout 60 %s try --source countdown.lua -c topic=t -c from=1000000 2> err | head -1 > out")
      :format(dir, program.path))
    assert.equal('"tick 999999"\n', proc.read(dir .. "/out"))
  end)

  it("several tasks", function()
    local dir = folder()
    proc.write(dir .. "/many.lua", (countdown:gsub('"Countdown", task = Task,', '"Many", task = Task,'
      .. ' task_configs = function() return { { topic = "a" }, { topic = "b" } } end,')))
    local out, status, err = try(dir, "--source many.lua -c topic=x -c tasks.max=2 -c from=2 -n 4")
    assert.equal(0, status, err)
    assert.equal(4, select(2, out:gsub("\n", "")))
    assert.matches('offset {"counter":"a"}: {"n":0}', err, 1, true)
    assert.matches('offset {"counter":"b"}: {"n":0}', err, 1, true)
  end)

  it("what is wrong with the call is status 2", function()
    local dir = folder()
    proc.write(dir .. "/broken.lua", "return 1 +")
    proc.write(dir .. "/loop.lua", "while true do end")
    proc.write(dir .. "/noclass.json", '{"topic":"t"}')
    proc.write(dir .. "/other.json", '{"connector.class":"Nope"}')
    proc.write(dir .. "/bad.json", '{"a":')
    proc.write(dir .. "/binary.lua", "\27LJ\2\0\255\254")
    proc.write(dir .. "/binary.json", "{\0\255\254")
    os.execute("mkdir -p " .. dir .. "/empty")
    for args, message in pairs {
      ["--source countdown.lua"] = 'Missing required configuration "topic"',
      ["--source countdown.lua -c topic=t -c from=x"] = "Invalid value x for configuration from",
      ["--source say"] = "say is no source: it is sink Say",
      ["--sink countdown.lua"] = "countdown.lua is no sink: it is source Countdown",
      ["--source Nowhere"] = "Nowhere: ",
      ["--sink FileStreamSource -c file=x -c topic=y"] = "FileStreamSourceConnector is a source: use --source",
      ["--source nowhere.lua"] = "cannot read nowhere.lua: No such file",
      ["--source nowhere.json"] = "cannot read nowhere.json: No such file",
      ["--source empty"] = "empty: no plugin in it",
      ["--source broken.lua"] = "broken.lua:1:",
      ["--source loop.lua"] = "loop.lua: ",
      ["--source binary.lua"] = "binary.lua: ",
      ["--source binary.json"] = "binary.json: ",
      ["--source bad.json"] = "bad.json: ",
      ["--source noclass.json"] = "noclass.json names no connector.class",
      ["--source other.json"] = "other.json: ",
      ["--source countdown.lua --sink say"] = "one --source or --sink only",
      ["--source countdown.lua x.json"] = "what is 'x.json' for?",
      ["--source countdown.lua --each"] = "--each goes with neither",
      ["--source countdown.lua --input x"] = "a source reads no records",
      ["--source"] = "option --source needs a value",
    } do
      local out, status, err = try(dir, args)
      assert.equal(2, status, args .. ": " .. err)
      assert.equal("", out)
      assert.matches(message, err, 1, true)
    end
  end)
end)

describe("luaconnect try --sink", function()
  it("records from stdin, the offset is the line's", function()
    local dir = folder()
    local out, status, err = try(dir, "--sink say -c topics=x", '{"a":1}\n\n{"a":2}\n')
    assert.equal('open x-0\nx-0@0 {"a":1}\nx-0@2 {"a":2}\nclose x-0\n', out)
    assert.equal("offset x-0: 3\n", err)
    assert.equal(0, status)
    out = try(dir, "--sink say -t 'HoistField$Value:field=v' --raw -n 1", "text\nmore\n")
    assert.equal('open try-0\ntry-0@0 {"v":"text"}\nclose try-0\n', out)
    out = try(dir, "--sink say --records -c topics=x", '{"topic":"y","partition":3,"value":1}\n{"value":2}\n')
    assert.equal('open x-0\nopen y-3\ny-3@0 1\nx-0@1 2\nclose x-0\nclose y-3\n', out)
  end)

  it("a standard sink by its config", function()
    local dir = folder()
    proc.write(dir .. "/file.properties", "connector.class=FileStreamSink\ntopics=t\nfile=" .. dir .. "/written\n")
    local _, status, err = try(dir, "--sink file.properties", '"one"\n"two"\n')
    assert.equal(0, status, err)
    assert.equal("one\ntwo\n", proc.read(dir .. "/written"))
    -- and by its class; a dead letter queue is not needed to see what would go there
    _, status, err = try(dir, "--sink FileStreamSink --raw -c file=" .. dir .. "/raw -c errors.tolerance=all"
      .. " -c errors.deadletterqueue.topic.name=dlq -t 'MaskField$Value:fields=a'", "one\n")
    assert.equal(1, status)
    assert.matches("stdin:1: MaskField$Value: DataException", err, 1, true)
  end)

  it("bad lines are told, the rest is put", function()
    local out, status, err = try(folder(), "--sink say", '1\n{bad\n3\n')
    assert.equal("open try-0\ntry-0@0 1\ntry-0@2 3\nclose try-0\n", out)
    assert.equal(1, status)
    assert.matches("in:2: JsonParseException", err:gsub("stdin", "in"), 1, true)
  end)

  it("retriable errors: the batch comes again", function()
    local out, status, err = try(folder(), "--sink say -c later=2", "1\n2\n")
    assert.equal(0, status, err)
    assert.equal("open try-0\ntry-0@0 1\ntry-0@0 1\ntry-0@0 1\ntry-0@1 2\nclose try-0\n", out)
    assert.matches("not now", err, 1, true)
  end)

  it("data errors name the line; tolerated or not", function()
    local out, status, err = try(folder(), "--sink say -c bad=2 -c errors.tolerance=all", "1\n\n2\n3\n")
    assert.equal(1, status)
    assert.equal("open try-0\ntry-0@0 1\ntry-0@3 3\nclose try-0\n", out)
    assert.matches("stdin:3: put: DataException: no good", err, 1, true)
    assert.matches("offset try-0: 4", err, 1, true)
    out, status, err = try(folder(), "--sink say -c bad=2", "1\n\n2\n3\n")
    assert.equal(1, status)
    assert.matches("stdin:3: put: DataException: no good", err, 1, true)
    assert.matches("task 0 failed", err, 1, true)
    assert.equal("open try-0\ntry-0@0 1\ntry-0@3 3\nclose try-0\n", out) -- put had them all
    out, status, err = try(folder(), "--sink say -t 'MaskField$Value:fields=a'", '{"a":1}\n"text"\n')
    assert.equal(1, status)
    assert.matches("stdin:2: MaskField$Value: DataException: Only Map objects supported", err, 1, true)
    assert.equal("open try-0\nclose try-0\n", out)
  end)

  it("a task may seek back", function()
    local out, status, err = try(folder(), "--sink say -c back=2", "1\n2\n3\n")
    assert.equal(0, status, err)
    assert.equal("open try-0\ntry-0@0 1\ntry-0@1 2\ntry-0@2 3\ntry-0@0 1\ntry-0@1 2\ntry-0@2 3\nclose try-0\n", out)
  end)

  it("records of a commit that failed come again, all of them, however many", function()
    local dir = folder()
    proc.write(dir .. "/once.lua", [[
local connect = require "connect"
local Task = {}
function Task:start(ctx) self.next, self.again, self.never = 0, 0, ctx.config.never end
function Task:put(records)
  for _, r in ipairs(records) do
    if r.offset > self.next then error(("offset %d after %d"):format(r.offset, self.next)) end
    if r.offset < self.next then self.again = self.again + 1 end
    self.next = r.offset + 1
  end
end
function Task:pre_commit(offsets)
  if self.never then return {} end
  if not self.failed and next(offsets) and self.next > 0 then
    self.failed = true
    error "not this time"
  end
  return offsets
end
function Task:stop() print(self.again) end
return connect.sink { name = "Once", task = Task, config = { { "never", type = "boolean", doc = "d" } } }
]])
    local input = ("1\n"):rep(150000)
    local _, status, err = try(dir, "--sink once.lua", input)
    assert.equal(0, status, err)
    assert.matches("Offset commit failed, rewinding to last committed offsets: ", err, 1, true)
    assert.matches("offset try%-0: 150000\n$", err)
    _, status, err = try(dir, "--sink once.lua -c never=true", input)
    assert.equal(0, status, err)
  end)

  it("a flush that fails at the end is status 1", function()
    local _, status, err = try(folder(), "--sink say -c refuse=true", "1\n")
    assert.equal(1, status)
    assert.matches("pre_commit failed: ", err, 1, true)
    assert.matches("cannot flush", err, 1, true)
  end)

  it("follows a pipe, and ends at Ctrl-C with a commit", function()
    local dir = folder()
    os.execute("mkfifo " .. dir .. "/pipe")
    local p = proc.start { "/bin/sh", "-c", ("cd %s && exec %s try --sink say < pipe > out 2> err"):format(dir, program.path),
      name = "sink" }
    local f = assert(io.open(dir .. "/pipe", "w"))
    f:setvbuf "no"
    f:write "1\n2"
    proc.wait_for("the first record", function() return (proc.read(dir .. "/out") or ""):find("@0 1", 1, true) end, 30)
    f:write "2\n"
    proc.wait_for("the second", function() return proc.read(dir .. "/out"):find("@1 22", 1, true) end, 30)
    p:signal "INT"
    assert.equal(0, p:wait(30))
    f:close()
    assert.matches("close try-0", proc.read(dir .. "/out"), 1, true)
    assert.matches("offset try-0: 2", proc.read(dir .. "/err"), 1, true)
  end)

  it("Ctrl-C ends a put or a last flush that does not return", function()
    for _, place in ipairs { "put", "flush" } do
      local dir = folder()
      proc.write(dir .. "/stuck.lua", (([[
local connect = require "connect"
local Task = {}
local function stuck()
  io.stdout:write "stuck\n"
  io.stdout:flush()
  while true do end
end
function Task:put(records) if #records > 0 and "PLACE" == "put" then stuck() end end
function Task:flush() stuck() end
return connect.sink { name = "Stuck", task = Task }
]]):gsub("PLACE", place)))
      proc.write(dir .. "/in", "1\n")
      local p = proc.start { "/bin/sh", "-c", ("cd %s && exec %s try --sink stuck.lua < in > out 2> err"):format(dir,
        program.path), name = "sink" }
      proc.wait_for("stuck", function() return (proc.read(dir .. "/out") or ""):find("stuck", 1, true) end, 30)
      p:signal "INT"
      assert.equal(1, p:wait(40), place)
      assert.matches("did not return after it was asked to stop: ended", proc.read(dir .. "/err"), 1, true)
    end
  end)

  it("a closed stdin is told", function()
    local dir = folder()
    local status = os.execute(("cd %s && timeout 60 %s try --sink say <&- > out 2> err"):format(dir, program.path))
    assert.equal(1, math.floor(status / 256))
    assert.matches("cannot read stdin", proc.read(dir .. "/err"), 1, true)
  end)
end)
