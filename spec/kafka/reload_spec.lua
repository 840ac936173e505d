-- Hot reload while lines flow: a source and a sink with a transform that changes again and again, by the watcher and
-- by POST. No line may be lost, none comes twice, nobody rebalances, the config topic stays as it is.
local kafka = require "spec.support.kafka"
local oracle = require "spec.support.oracle"
local proc = require "spec.support.proc"

local function transform(mark)
  return ([[
local connect = require "connect"
return connect.transform { name = "Mark",
  apply = function(self, r) return r:with { value = r.value .. " %s" } end,
  examples = { { input = { value = "x" }, output = { value = "x %s" } } } }
]]):format(mark, mark)
end

describe("hot reload with lines flowing #kafka", function()
  local broker, worker, dir, id

  setup(function()
    broker, id, dir = kafka.broker(), kafka.unique "reload", proc.tmpdir "reload"
    os.execute("mkdir -p " .. dir .. "/plugins")
    proc.write(dir .. "/plugins/mark.lua", transform "v0")
    proc.write(dir .. "/in.txt", "")
    worker = kafka.worker { broker = broker, id = id, config = { ["plugin.path"] = dir .. "/plugins",
      ["plugin.reload"] = "true", ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter" } }
  end)
  teardown(function() if worker then worker:stop() end end)

  local function reload()
    local code, text, json = worker:request("POST", "/connector-plugins/reload")
    assert.equal(200, code, text)
    return json
  end

  local function listed()
    local _, _, json = worker:request("GET", "/connector-plugins?connectorsOnly=false")
    for _, p in ipairs(json) do if p.class == "Mark" then return p end end
  end

  local function configs() return #broker:records(id .. "-configs") end

  it("loses nothing, doubles nothing", function()
    local function create(name, config)
      config.name = name
      local code, text = worker:request("PUT", "/connectors/" .. name .. "/config", config)
      assert.equal(201, code, text)
      worker:wait_running(name)
    end
    create("src", { ["connector.class"] = "FileStreamSource", file = dir .. "/in.txt", topic = id, transforms = "m",
      ["transforms.m.type"] = "Mark", ["tasks.max"] = "1" })
    create("snk", { ["connector.class"] = "FileStreamSink", file = dir .. "/out.txt", topics = id, transforms = "m",
      ["transforms.m.type"] = "Mark", ["tasks.max"] = "1" })
    local before, n = configs(), 0
    local function feed(count)
      proc.append(dir .. "/in.txt", table.concat(oracle.lines("P", n + 1, n + count), "\n") .. "\n")
      n = n + count
    end
    local function out() return proc.read(dir .. "/out.txt") or "" end
    for round = 1, 8 do
      feed(2500)
      local mark = "v" .. round
      proc.write(dir .. "/plugins/mark.lua", transform(mark):sub(1, 60)) -- half of it
      proc.write(dir .. "/plugins/mark.lua", transform(mark))
      feed(2500)
      if round % 2 == 0 then reload() end
      proc.wait_for("lines marked " .. mark .. " twice", function()
        feed(20)
        return out():find(mark .. " " .. mark, 1, true)
      end)
    end
    for _ = 1, 10 do -- bad code changes nothing
      proc.write(dir .. "/plugins/mark.lua", "return nonsense(")
      reload()
      feed(500)
    end
    assert.truthy(listed().reload_error:find("mark.lua:1:", 1, true))
    os.remove(dir .. "/plugins/mark.lua")
    proc.wait_for("it to be gone from the list", function() return listed() == nil end)
    feed(1000)
    proc.wait_for("the last line", function() return out():find("P-" .. n .. " ", 1, true) end)
    worker:wait_running "src"
    worker:wait_running "snk"
    local values = {}
    for line in out():gmatch "[^\n]+" do
      values[#values + 1] = line
      assert.truthy(line:find "^P%-%d+ created v%d v%d$", line)
    end
    local r = oracle.check(values, "P", n)
    assert.same({ lost = {}, duplicates = 0, disorder = 0, seen = n, largest = n }, r)
    local sent = oracle.check(broker:values(id), "P", n)
    assert.same({ lost = {}, duplicates = 0, disorder = 0, seen = n, largest = n }, sent)
    assert.equal(before, configs())
  end)

  it("starts a task that failed for a mistake in its plugin when that is mended", function()
    local bug = [[
local connect = require "connect"
return connect.source { name = "Bug", task = { poll = function(self) return %s end } }]]
    local function classes()
      local _, text = worker:request("GET", "/connector-plugins")
      return text
    end
    proc.write(dir .. "/plugins/bug.lua", bug:format "self.nothing.here")
    proc.wait_for("the new plugin", function() return classes():find('"Bug"', 1, true) end)
    local code, text = worker:request("PUT", "/connectors/bug/config", { name = "bug", ["connector.class"] = "Bug" })
    assert.equal(201, code, text)
    proc.wait_for("the task to fail", function()
      local s = worker:status "bug"
      return s and s.tasks[1] and s.tasks[1].state == "FAILED"
    end)
    proc.write(dir .. "/plugins/bug.lua", bug:format "nil")
    worker:wait_running "bug"
  end)

  it("answers requests that come at once, also while a rebalance is on", function()
    local other = kafka.worker { broker = broker, id = id, config = { ["plugin.path"] = dir .. "/plugins" },
      start = false }
    other:start(false)
    for i = 1, 20 do
      proc.write(dir .. "/plugins/bug.lua", ([[
local connect = require "connect"
return connect.source { name = "Bug", version = "%d", task = { poll = function() return nil end } }]]):format(i))
      assert.is_true(type(reload()) == "table")
    end
    proc.wait_for("the second worker", function() return other:healthy() end)
    worker:wait_running "bug"
    other:stop()
    assert.equal(200, (worker:request("GET", "/health")))
  end)
end)
