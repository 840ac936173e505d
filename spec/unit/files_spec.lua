-- Files of scripts (core/script/files.c, lua/connect/strings.lua): as LuaJIT's own, but they can be ended.
local files = require "spec.support.files"
local worker = require "spec.support.worker"
local mock = require "spec.support.mock_cluster"

-- Each gives what it read, as text; `here` also runs it with LuaJIT's own functions.
local program = [[
local path = ...
local function show(...)
  local out = {}
  for i = 1, select("#", ...) do out[i] = tostring((select(i, ...))) end
  return table.concat(out, "|")
end
local out = {}
local function say(...) out[#out + 1] = show(...) end
local function file(text)
  local f = assert(io.open(path, "wb"))
  f:write(text)
  f:close()
  return assert(io.open(path, "rb"))
end
local long = ("x"):rep(8191)
for _, text in ipairs { "", "\n", "a", "a\nb", "a\nb\n", long .. "\n" .. long .. long .. "\nz",
  "12 -3.5e2\n0x1F 7..2 -", " \t\n+.5e 1", "1e400 00012 0x 5", "\r\n1\r\n" } do
  for _, formats in ipairs { {}, { "*l", "*l", "*l", "*l" }, { "*L", "*L", "*L" }, { "*a", "*a" }, { "*a", "*l" },
    { 0, 1, 3, 100000 }, { 8192, "l", "L", "a" }, { "*n", "*n", "*n" }, { "*n", "*l", 0 }, { "*l", "*n", "*a" } } do
    local f = file(text)
    say(f:read(unpack(formats)))
    say(f:read "*a")
    f:close()
  end
  local n = 0
  for line in file(text):lines() do n = n + #line + 1 end
  say(n)
  for line in io.lines(path) do say(line) end
  for a in io.lines(path, 3) do say(a) end
end
say(pcall(function() local f = file "x" f:close() f:read() end))
say(pcall(function() return file "x":read "*q" end))
say(pcall(function() return file "x":read {} end))
say(pcall(function() for _ in io.lines(path .. "/none") do end end))
say(io.open(path, "wb"):read())
say(io.open(path, "rb"):seek())
os.remove(path)
return table.concat(out, "\n")
]]

local plugin = ([[
local connect = require "connect"
local all = assert(loadstring(%q, "all"))
local kinds = {}
function kinds.zero() return io.open("/dev/zero"):read "*l" end
function kinds.keep() return io.open("/dev/zero"):read "*L" end
function kinds.random() for _ in io.lines "/dev/urandom" do end end
function kinds.all() return io.open("/dev/zero"):read "*a" end
function kinds.many()
  local held, f, err, code = {}, nil, nil, nil
  while true do
    f, err, code = io.open("/dev/null", "r")
    if not f then break end
    held[#held + 1] = f
    if #held > 100 then error "no end" end
  end
  local lines = require "connect.lines"
  local ok, why = pcall(lines.reader, { file = "/dev/null", topic = "t" })
  held[#held]:close()
  local again = assert(io.open("/dev/null", "r"))
  local n, tmp = #held, select(2, io.tmpfile())
  held = nil
  for i = 1, 50 do assert(io.open("/dev/null", "r")) end -- garbage is closed
  for i = 1, 50 do lines.reader { file = "/dev/null", topic = "t" } end
  error(n .. "|" .. err .. "|" .. code .. "|" .. tostring(ok) .. "|" .. tostring(why) .. "|" .. tmp .. tostring(again))
end
function kinds.pipe() return io.open("PIPE", "r+"):read(1) end
local Task = {}
function Task:start(ctx) self.c = ctx.config end
function Task:poll()
  if self.c.kind == "zeros" then
    local a, b, c = io.open(self.c.path):read("*l", "*l", "*l")
    return { { topic = "t", value = a .. "|" .. b .. "|" .. tostring(c) } }
  end
  if self.c.kind ~= "same" then kinds[self.c.kind]() end
  return { { topic = "t", value = all(self.c.path), source_partition = { a = 1 }, source_offset = { n = 1 } } }
end
return connect.source { name = "Files", class = "Files", version = "1", task = Task,
  config = { { "kind", doc = "" }, { "path", doc = "", default = "" } } }
]]):format(program)

describe("files of scripts", function()
  local cluster, w, dir
  setup(function()
    cluster = mock.new()
    cluster:topic("t", 1)
    dir = files.tmpdir()
    os.execute("mkfifo " .. dir .. "/pipe")
    w = worker.new { plugins = { ["files.lua"] = (plugin:gsub("PIPE", dir .. "/pipe")) },
      bootstrap = cluster:bootstrap(), config = { ["plugin.max.call.ms"] = "1500", ["plugin.max.memory"] = "48m",
        ["plugin.max.files"] = "20",
        ["task.shutdown.graceful.timeout.ms"] = "4000" } }
  end)
  teardown(function()
    w:close()
    cluster:close()
    files.rm(dir)
  end)

  local function start(kind, path)
    w:start_task(kind, 0, { ["connector.class"] = "Files", ["tasks.max"] = "1", kind = kind, path = dir .. "/" .. (path or "f"),
      ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter" })
  end

  it("read as LuaJIT's", function()
    start "same"
    local got
    worker.eventually(function()
      got = cluster:read("t", 1, 1000)
      return #got > 0
    end, "no record", 60000)
    w:stop_tasks { "same", 0 }
    assert.equal(assert(loadstring(program, "all"))(dir .. "/g"):gsub("/g", "/f"), got[1])
  end)

  it("read lines with zero bytes, which LuaJIT's cut", function()
    files.write(dir .. "/zeros", "a\0b\n\0\n")
    start("zeros", "zeros")
    worker.eventually(function()
      for _, v in ipairs(cluster:read("t", 1000, 500)) do if v == "a\0b|\0|nil" then return true end end
    end, "no record", 60000)
    w:stop_tasks { "zeros", 0 }
  end)

  it("no more may be open than plugin.max.files says", function()
    start "many"
    local trace = w:wait_state("many", 0, "FAILED").trace
    local full = "Too many open files (plugin.max.files is 20)"
    assert.matches("20|/dev/null: " .. full .. "|24|false|", trace, 1, true)
    assert.matches("lines: /dev/null: " .. full .. "|" .. full .. "file (0x", trace, 1, true)
    w:stop_tasks { "many", 0 }
  end)

  for kind, what in pairs { zero = "not enough memory", keep = "not enough memory", random = "takes longer than",
    all = "not enough memory", pipe = "takes longer than" } do
    it("what does not end is ended: " .. kind, function()
      start(kind)
      local trace = w:wait_state(kind, 0, "FAILED", 60000).trace
      assert.is_truthy(trace:find(what, 1, true) or trace:find("takes longer than", 1, true), trace)
      w:stop_tasks { kind, 0 }
    end)
  end
end)
