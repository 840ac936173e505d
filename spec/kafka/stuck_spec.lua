-- Scripts that do not return in a real worker: what uses them is FAILED with the reason and the Lua traceback, lines of
-- other connectors flow on, REST answers, and SIGTERM ends the worker as ever.
local kafka = require "spec.support.kafka"
local oracle = require "spec.support.oracle"
local proc = require "spec.support.proc"

local plugin = [[
local connect = require "connect"
local kinds = {}
function kinds.loop() while true do end end
function kinds.pcall() while true do pcall(function() while true do end end) end end
function kinds.find() return ("a"):rep(200):find((".-"):rep(12) .. "x$") end
function kinds.recursion() local function f() return 1 + f() end return f() end
function kinds.grow() local t = {} for i = 1, math.huge do t[i] = { i } end end
local function go(config, place) if config.place == place then kinds[config.kind]() end end
local rows = { { "place", type = "string", doc = "Where." }, { "kind", type = "string", doc = "How." } }
local Task = {}
function Task:start(ctx)
  self.config = ctx.config
  go(self.config, "start")
end
function Task:poll() go(self.config, "poll") end
function Task:put(records) if #records > 0 then go(self.config, "put") end end
function Task:stop() go(self.config, "stop") end
return {
  connect.source { name = "StuckSource", class = "StuckSource", version = "1", task = Task, config = rows,
    validate = function(config) go(config, "validate") end,
    start = function(_, ctx) go(ctx.config, "connector start") end,
    task_configs = function(config)
      go(config, "task_configs")
      return { {} }
    end },
  connect.sink { name = "StuckSink", class = "StuckSink", version = "1", task = Task, config = rows },
  connect.transform { name = "StuckTransform", version = "1", config = rows,
    apply = function(self, record)
      go(self.config, "apply")
      return record
    end },
}
]]
local kinds = { "loop", "pcall", "find", "recursion", "grow" }
local reasons = { loop = "takes longer than 1500 ms", pcall = "takes longer than 1500 ms", find = "takes longer than 1500 ms",
  recursion = "stack overflow", grow = "not enough memory" }

describe("stuck scripts in a worker #kafka", function()
  local broker, worker, dir, id, lines

  setup(function()
    broker, id, dir, lines = kafka.broker(), kafka.unique "stuck", proc.tmpdir "stuck", 0
    os.execute("mkdir -p " .. dir .. "/plugins")
    proc.write(dir .. "/plugins/stuck.lua", plugin)
    proc.write(dir .. "/in.txt", "")
    worker = kafka.worker { broker = broker, id = id, config = { ["plugin.path"] = dir .. "/plugins",
      ["plugin.max.call.ms"] = "1500", ["plugin.max.connector.call.ms"] = "1500", ["plugin.max.memory"] = "64m",
      ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter" } }
  end)
  teardown(function() if worker then worker:stop() end end)

  local function create(name, config)
    config.name = name
    return worker:request("PUT", "/connectors/" .. name .. "/config", config)
  end
  local function out() return proc.read(dir .. "/out.txt") or "" end
  -- more lines go all the way while whatever is stuck is stuck
  local function flows()
    proc.append(dir .. "/in.txt", table.concat(oracle.lines("S", lines + 1, lines + 1000), "\n") .. "\n")
    lines = lines + 1000
    proc.wait_for("lines beside stuck scripts", function() return out():find("S-" .. lines .. " ", 1, true) end)
  end

  it("are FAILED with the reason and the traceback, and nothing else stops", function()
    for name, config in pairs {
      src = { ["connector.class"] = "FileStreamSource", file = dir .. "/in.txt", topic = id },
      snk = { ["connector.class"] = "FileStreamSink", file = dir .. "/out.txt", topics = id },
    } do
      assert.equal(201, (create(name, config)))
      worker:wait_running(name)
    end
    flows()
    local places = { "connector start", "start", "poll", "put", "apply" }
    local expected = {}
    for _, place in ipairs(places) do
      for _, kind in ipairs(kinds) do
        local name = place:gsub(" ", "-") .. "-" .. kind
        local config = { ["connector.class"] = "StuckSource", place = place, kind = kind }
        if place == "put" then config["connector.class"], config.topics = "StuckSink", id end
        if place == "apply" then
          config = { ["connector.class"] = "FileStreamSource", file = dir .. "/in.txt", topic = id .. "-other",
            transforms = "s", ["transforms.s.type"] = "StuckTransform", ["transforms.s.place"] = place,
            ["transforms.s.kind"] = kind }
        end
        local code, text = create(name, config)
        assert.equal(201, code, text)
        expected[name] = { place = place, kind = kind }
      end
      flows()
    end
    for name, e in pairs(expected) do
      local trace
      proc.wait_for(name .. " to be FAILED", function()
        local s = worker:status(name)
        local of = s and (e.place == "connector start" and s.connector or s.tasks[1])
        trace = of and of.state == "FAILED" and of.trace
        return trace
      end, 120)
      -- on a busy machine the time is over before the memory is (spec/unit/stuck_spec.lua tells them apart)
      local found = trace:find(reasons[e.kind], 1, true) or (e.kind == "grow" and trace:find(reasons.loop, 1, true))
      assert.truthy(found, name .. ": " .. trace)
      if not trace:find("stack overflow, or", 1, true) then
        assert.truthy(trace:find("stack traceback:.*stuck%.lua:%d+"), name .. ": " .. trace)
      end
    end
    flows()
  end)

  it("in validate and task_configs answer the request", function()
    for _, kind in ipairs(kinds) do
      local code, text = worker:request("PUT", "/connector-plugins/StuckSource/config/validate",
        { ["connector.class"] = "StuckSource", name = "v", place = "validate", kind = kind })
      assert.truthy(code == 200 or code == 500 or code == 400, code .. " " .. text)
      assert.truthy(text:find("takes longer than", 1, true) or text:find(reasons[kind], 1, true), text)
      assert.equal(201, (create("configs-" .. kind,
        { ["connector.class"] = "StuckSource", place = "task_configs", kind = kind })))
    end
    flows()
  end)

  it("in stop do not keep the worker from ending, and no line is lost", function()
    for _, kind in ipairs(kinds) do
      assert.equal(201, (create("stop-" .. kind, { ["connector.class"] = "StuckSource", place = "stop", kind = kind })))
      worker:wait_running("stop-" .. kind)
    end
    flows()
    assert.equal(0, worker:stop())
    local values = {}
    for line in out():gmatch "[^\n]+" do values[#values + 1] = line end
    assert.same({ lost = {}, duplicates = 0, disorder = 0, seen = lines, largest = lines }, oracle.check(values, "S", lines))
  end)
end)
