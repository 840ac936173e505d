-- Scripts that do not return or take too much (core/script/guard.c), in every place a plugin's code runs.
local core = require "spec.support.core"
local C, ffi = core.load { "base/clock.h", "config/plugin.h", "runtime/worker.h", "script/script.h" }
local with = require "spec.support.with"
local worker = require "spec.support.worker"
local mock = require "spec.support.mock_cluster"

local plugin = [[
local connect = require "connect"
local kinds = {}
function kinds.loop() while true do end end
function kinds.count() local i = 0 while true do i = i + 1 end end
function kinds.pcall() while true do pcall(function() while true do end end) end end
function kinds.swallow() pcall(function() while true do end end) end
function kinds.goto_() ::again:: goto again end
function kinds.tail() local function f(n) return f(n + 1) end return f(1) end
function kinds.tree() local function f(n) if n > 0 then f(n - 1) f(n - 1) end end f(60) end
function kinds.find() return ("a"):rep(200):find((".-"):rep(12) .. "x$") end
function kinds.gsub() return ("a"):rep(200):gsub((".*"):rep(12) .. "x", "") end
function kinds.coroutine() coroutine.wrap(function() while true do end end)() end
function kinds.handler() xpcall(error, function() while true do end end) end
function kinds.loadstring() return loadstring "while true do end" () end
function kinds.collect() while true do collectgarbage() end end
function kinds.index() return setmetatable({}, { __index = function(t, k) return t[k] end }).x end
function kinds.recursion() local function f() return 1 + f() end return f() end
function kinds.nested() local function f() return (("x"):gsub("x", f)) end return f() end
function kinds.sorting() local function f() table.sort({ 1, 2 }, f) return false end return f() end
function kinds.coroutines() local function f() return coroutine.wrap(f)() end return f() end
function kinds.tostring() return string.format("%s", setmetatable({}, { __tostring = function(t)
  return string.format("%s", t) end })) end
function kinds.message() error(("x"):rep(10000000)) end
function kinds.object() error(setmetatable({}, { __tostring = function() while true do end end })) end
function kinds.grow() local t = {} for i = 1, math.huge do t[i] = { i } end end
function kinds.double() local s = "x" while true do s = s .. s end end
function kinds.rep() return ("x"):rep(100000000) end
function kinds.concat() local t = {} for i = 1, 10 do t[i] = ("x"):rep(5000000) end
  while true do t[#t + 1] = table.concat(t) end end
function kinds.keep() local ok while true do
    ok = pcall(function() local t = {} while true do t[#t + 1] = ("x"):rep(1000) .. #t end end)
  end end
function kinds.proxy() return newproxy(true) end
function kinds.metatable() getmetatable("").__index = nil end

local function go(config, place)
  if config.place == place then kinds[config.kind]() end
end
local rows = { { "place", type = "string", doc = "" }, { "kind", type = "string", doc = "" } }
local Task = {}
function Task:start(ctx)
  self.c = ctx.config
  go(self.c, "start")
end
function Task:poll()
  go(self.c, "poll")
  if self.c.place == "stop" then error "poll failed" end
  local records = {}
  for i = 1, self.c.place == "commit_record" and 100 or 1 do
    records[i] = { topic = "t", value = "x", source_partition = { a = 1 }, source_offset = { n = i } }
  end
  return records
end
function Task:commit_record() go(self.c, "commit_record") end
function Task:commit() go(self.c, "commit") end
function Task:open() go(self.c, "open") end
function Task:close() go(self.c, "close") end
function Task:put(records) if #records > 0 then go(self.c, "put") end end
function Task:stop() go(self.c, "stop") end
local Committing = setmetatable({}, { __index = Task })
function Committing:start(ctx) self.c = ctx.config end
function Committing:put() end
function Committing:pre_commit(offsets)
  go(self.c, "pre_commit")
  return offsets
end
local Flushing = { put = Committing.put, start = Committing.start }
function Flushing:flush() go(self.c, "flush") end
local Flow = {}
function Flow:start(ctx) self.ctx, self.n = ctx, 0 end
function Flow:poll()
  self.n = self.n + 1
  self.ctx:sleep(10)
  return { { topic = "flow", value = tostring(self.n), source_partition = { f = 1 }, source_offset = { n = self.n } } }
end
return {
  connect.source { name = "Stuck", class = "Stuck", version = "1", task = Task, config = rows,
    validate = function(config) go(config, "validate") end,
    start = function(self, ctx)
      self.c = ctx.config
      go(self.c, "connector start")
    end,
    stop = function(self) go(self.c, "connector stop") end,
    task_configs = function(config)
      go(config, "task_configs")
      return { {} }
    end },
  connect.sink { name = "StuckSink", class = "StuckSink", version = "1", task = Task, config = rows },
  connect.sink { name = "PreCommit", class = "PreCommit", version = "1", task = Committing, config = rows },
  connect.sink { name = "Flush", class = "Flush", version = "1", task = Flushing, config = rows },
  connect.source { name = "Flow", class = "Flow", version = "1", task = Flow },
  connect.transform { name = "StuckTransform", class = "StuckTransform", version = "1", config = rows,
    apply = function(self, record)
      go(self.config, "apply")
      return record
    end },
}
]]

-- What the error says, and whether the traceback shows the function.
local LATE, FULL = "takes longer than %d+ ms", "not enough memory"
local kinds = {
  loop = LATE, count = LATE, pcall = LATE, swallow = LATE, goto_ = LATE, tail = LATE, tree = LATE, find = LATE,
  gsub = LATE, coroutine = LATE, handler = LATE, loadstring = LATE, collect = LATE, index = "stack overflow",
  recursion = "stack overflow", nested = "stack overflow", sorting = "stack overflow", coroutines = "stack overflow",
  tostring = "stack overflow", message = "xxxxxxxx", object = LATE, grow = FULL, double = FULL, rep = FULL,
  concat = FULL, keep = FULL, proxy = "newproxy", metatable = "attempt to index",
}
local function config(class, place, kind, more)
  return with({ ["connector.class"] = class, ["tasks.max"] = "1", place = place, kind = kind }, more)
end

-- Those that the clock ends, and those that something else ends long before it.
local groups = {
  { title = "a stuck script", limit_ms = 400, names = {} },
  { title = "a greedy script", limit_ms = 120000, names = {} },
}
-- tsan counts what C frames an error leaves behind as still there, and ends the process after 65,536 of them
local few = os.getenv "LC_PRESET" == "tsan" and { loop = true, tree = true, grow = true }
for kind, what in pairs(kinds) do if not few or few[kind] then
  local names = groups[what == LATE and 1 or 2].names
  names[#names + 1] = kind
end end

for _, group in ipairs(groups) do describe(group.title, function()
  local names = group.names
  table.sort(names)
  local w, cluster
  setup(function()
    cluster = mock.new()
    cluster:topic("t", 1)
    cluster:topic("flow", 1)
    cluster:write("t", { "x" })
    w = worker.new { plugins = { ["stuck.lua"] = plugin }, bootstrap = cluster:bootstrap(), config = {
      ["plugin.max.call.ms"] = tostring(group.limit_ms), ["plugin.max.memory"] = "48m",
      ["plugin.max.connector.call.ms"] = tostring(group.limit_ms),
      ["consumer.session.timeout.ms"] = "6000", ["consumer.auto.offset.reset"] = "earliest",
      ["task.shutdown.graceful.timeout.ms"] = "4000" } }
  end)
  teardown(function()
    w:close()
    cluster:close()
  end)

  local function check(trace, kind)
    assert.is_truthy(trace:find(kinds[kind]), kind .. ": " .. trace:sub(1, 1500))
    -- LuaJIT has no room for a handler when the stack overflows on leaving a compiled trace, so that only the
    -- reason is known then. Of a single block beyond twice the limit, which the allocator refuses, so it is too.
    local overflow = trace:find("stack overflow, or an error while", 1, true)
    if kind ~= "concat" and kind ~= "message" and not overflow then
      assert.is_truthy(trace:find("stack traceback", 1, true), kind .. ": " .. trace:sub(1, 1500))
    end
  end

  -- The tasks PLACE-KIND were started together: each is FAILED for its own reason.
  local function all_fail(place, some)
    for _, kind in ipairs(some) do
      local name = place .. "-" .. kind
      check(w:wait_state(name, 0, "FAILED", 120000).trace, kind)
      w:stop_tasks { name, 0 }
    end
  end

  it("in validate is an error of the validation", function()
    local err = core.err()
    local p = C.lc_plugins_find(w.plugins, 3, "Stuck", err)
    assert(p ~= nil, core.msg(err))
    for _, kind in ipairs(names) do
      local i = ffi.gc(C.lc_config_infos_new "x", C.lc_config_infos_free)
      C.lc_err_clear(err)
      assert.equal(-1, p.validate(p, core.props(config("Stuck", "validate", kind)), i, err), kind)
      -- the limit of 500 ms may come before the memory is used up
      local found = core.msg(err):find(kinds[kind]) or (kinds[kind] == FULL and core.msg(err):find(LATE))
      assert.is_truthy(found, kind .. ": " .. core.msg(err))
      assert.is_true(err.code < 400 or err.code > 599, kind .. ": REST would answer with this code")
    end
  end)

  it("in a connector's start or task_configs leaves it FAILED", function()
    local function named(place, kind) return place:gsub(" ", "-") .. "-" .. kind end
    for _, kind in ipairs(names) do
      for _, place in ipairs { "connector start", "task_configs" } do
        w:start(named(place, kind), config("Stuck", place, kind))
      end
    end
    for _, kind in ipairs(names) do
      local name = named("task_configs", kind)
      w:wait_state(name, -1, "RUNNING")
      w:generate(name, config("Stuck", "task_configs", kind, { name = name }))
    end
    for _, kind in ipairs(names) do
      local name = named("task_configs", kind)
      worker.wait_event("configs " .. name:gsub("%p", "%%%0") .. ": [^\n]+")
      if kinds[kind] == LATE then check(w:wait_state(name, -1, "FAILED").trace, kind) end
      check(w:wait_state(named("connector start", kind), -1, "FAILED").trace, kind)
      for _, place in ipairs { "connector start", "task_configs" } do w:stop(named(place, kind)) end
    end
  end)

  it("in a connector's stop does not hold the worker", function()
    for _, kind in ipairs(names) do
      local name = "stop-" .. kind
      w:start(name, config("Stuck", "connector stop", kind))
      w:wait_state(name, -1, "RUNNING")
      w:stop(name)
      assert.equal("FAILED", w:status(name).state)
      check(w:status(name).trace, kind)
    end
  end)

  for _, place in ipairs { "start", "poll", "apply" } do
    it("in " .. place .. " leaves the task FAILED", function()
      for _, kind in ipairs(names) do
        local name = place .. "-" .. kind
        local more = place == "apply" and { transforms = "s", ["transforms.s.type"] = "StuckTransform",
          ["transforms.s.place"] = place, ["transforms.s.kind"] = kind, ["errors.tolerance"] = "all" }
        w:start_task(name, 0, config("Stuck", place, kind, more))
      end
      all_fail(place, names)
    end)
  end

  it("in put leaves the task FAILED", function()
    for _, kind in ipairs(names) do
      local name = "put-" .. kind
      w:start_task(name, 0, config("StuckSink", "put", kind, { topics = "t" }))
    end
    all_fail("put", names)
  end)

  -- Java logs what these throw and goes on; what was ended is FAILED all the same
  for place, class in pairs { commit_record = "Stuck", commit = "Stuck", open = "StuckSink",
    pre_commit = "PreCommit", flush = "Flush" } do
    it("in " .. place .. " leaves the task FAILED", function()
      local some = {}
      for _, kind in ipairs(names) do
        if kind == "loop" or kind == "pcall" or kind == "grow" then some[#some + 1] = kind end
      end
      for _, kind in ipairs(some) do
        local more = class ~= "Stuck" and { topics = "t" } or nil
        w:start_task(place .. "-" .. kind, 0, config(class, place, kind, more))
      end
      all_fail(place, some)
    end)
  end

  it("in stop lets the task end FAILED for its own reason", function()
    for _, kind in ipairs(names) do
      local name = "stop-" .. kind
      w:start_task(name, 0, config("Stuck", "stop", kind))
    end
    for _, kind in ipairs(names) do
      local name = "stop-" .. kind
      assert.matches("poll failed", w:wait_state(name, 0, "FAILED", 120000).trace)
      w:stop_tasks { name, 0 }
    end
  end)
end) end

describe("a stuck script", function()
  it("is ended when a stop is overdue, before the thread is given up, and others go on", function()
    local cluster = mock.new()
    cluster:topic("t", 1)
    cluster:topic("flow", 1)
    local w = worker.new { plugins = { ["stuck.lua"] = plugin }, bootstrap = cluster:bootstrap(), config = {
      ["task.shutdown.graceful.timeout.ms"] = "3000", ["plugin.max.memory"] = "0" } }
    w:start_task("flow", 0, { ["connector.class"] = "Flow", ["tasks.max"] = "1" })
    w:wait_state("flow", 0, "RUNNING")
    local stuck = { "loop", "count", "pcall", "find", "tree", "coroutine" }
    local ids = {}
    for _, kind in ipairs(stuck) do
      w:start_task("s-" .. kind, 0, config("Stuck", "poll", kind))
      w:wait_state("s-" .. kind, 0, "RUNNING")
      ids[#ids + 1] = { "s-" .. kind, 0 }
    end
    w:start("c", config("Stuck", "connector start", "loop"))
    local function flowed() return tonumber((w:offset("flow", '{"f":1}') or "0"):match "%d+") end
    local before = flowed()
    worker.eventually(function() return flowed() > before + 10 end, "nothing flows beside stuck tasks", 60000)
    w:stop_tasks(unpack(ids))
    for _, kind in ipairs(stuck) do assert.equal("UNASSIGNED", w:status("s-" .. kind, 0).state, kind) end
    w:stop "c"
    assert.equal("UNASSIGNED", w:status("c").state)
    w:stop_tasks { "flow", 0 }
    assert.equal("UNASSIGNED", w:status("flow", 0).state)
    w:close()
    cluster:close()
  end)

  it("in what is called for each record or partition ends with the first call that was ended", function()
    local cluster = mock.new()
    cluster:topic("t", 1)
    local w = worker.new { plugins = { ["stuck.lua"] = plugin }, bootstrap = cluster:bootstrap(), config = {
      ["task.shutdown.graceful.timeout.ms"] = "3000", ["consumer.session.timeout.ms"] = "6000" } }
    for place, class in pairs { commit_record = "Stuck", commit = "Stuck", close = "StuckSink",
      pre_commit = "PreCommit" } do
      w:start_task(place, 0, config(class, place, "loop", class ~= "Stuck" and { topics = "t" } or nil))
      w:wait_state(place, 0, "RUNNING")
    end
    cluster:write("t", { "x" })
    for _, place in ipairs { "commit_record", "commit", "close", "pre_commit" } do
      w:stop_tasks { place, 0 } -- a thread that was given up writes no status
      assert.equal("UNASSIGNED", w:status(place, 0).state, place)
    end
    w:close()
    cluster:close()
  end)
end)
