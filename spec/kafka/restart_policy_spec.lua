-- spec/kafka/restart_policy_spec.lua: restart.policy=on-failure in real workers, distributed and standalone.
local golden = require "spec.support.golden"
local http = require "spec.support.http"
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"
local standalone_worker = require "spec.support.standalone"
local with = require "spec.support.with"

-- fails while a file is there: at the start of the connector, of the task (which is noted), or in poll; "config": with
-- a ConfigException
local plugin = [[
local connect = require "connect"
local Task = {}
local function broken(path)
  local f = io.open(path)
  if not f then return end
  local how = f:read "*a"
  f:close()
  return how
end
local function fail(how)
  if how == "config" then error(connect.config_error "not like this") end
  error(connect.fatal("the target is away"))
end
function Task:start(ctx)
  self.flag = ctx.config.flag
  local how = broken(self.flag .. ".start")
  if how then fail(how) end
end
function Task:poll()
  local how = broken(self.flag .. ".task")
  if how then fail(how) end
end
return connect.source { name = "Brittle", class = "Brittle", version = "1", task = Task,
  config = { { "flag", type = "string", required = true, doc = "Files." } },
  start = function(self, ctx)
    local how = broken(ctx.config.flag .. ".connector")
    if how then fail(how) end
  end }
]]

describe("restart.policy=on-failure", function()
  local broker, dir
  setup(function()
    broker = kafka.broker()
    dir = proc.tmpdir "policy"
    os.execute("mkdir -p " .. dir .. "/plugins")
    proc.write(dir .. "/plugins/brittle.lua", plugin)
  end)

  local function standalone()
    local w = standalone_worker.start { bootstrap = broker.bootstrap, properties = { ["plugin.path"] = dir .. "/plugins" } }
    w.healthy(60)
    return { request = function(_, ...) return w.request(...) end, stop = function() return w.process:stop(60) end }
  end

  for _, mode in ipairs { "distributed", "standalone" } do
    describe(mode .. ":", function()
      local worker
      setup(function()
        worker = mode == "standalone" and standalone()
          or kafka.worker { broker = broker, config = { ["plugin.path"] = dir .. "/plugins" } }
      end)
      teardown(function() assert.equal(0, worker:stop()) end)

      local function put(name, more)
        local c = with({ ["connector.class"] = "Brittle", flag = dir .. "/" .. mode .. name, ["restart.policy"] = "on-failure" }, more)
        local code, text = worker:request("PUT", "/connectors/" .. name .. "/config", c)
        assert.is_true(code == 201 or code == 200 or code == 500, text)
        return c.flag
      end
      local function status(name)
        local code, _, json = worker:request("GET", "/connectors/" .. name .. "/status")
        return code == 200 and json or nil
      end
      local function wait(what, name, f)
        return proc.wait_for(name .. ": " .. what, function()
          local s = status(name)
          return s and f(s) and s
        end)
      end
      local function runs(s) return s.connector.state == "RUNNING" and s.tasks[1] and s.tasks[1].state == "RUNNING" end

      it("starts a task again until it works, and says so in the status", function()
        local flag = put "t"
        local s = wait("running", "t", runs)
        assert.is_nil(s.tasks[1].restart)
        assert.is_nil(s.connector.restart)
        proc.write(flag .. ".task", "x")
        s = wait("failed twice", "t", function(st)
          local r = st.tasks[1].restart
          return st.tasks[1].state == "FAILED" and r and r.count >= 1
        end)
        local r = s.tasks[1].restart
        assert.equal("on-failure", r.policy)
        assert.equal(12, r.max_per_hour)
        assert.matches("the target is away", r.reason, 1, true)
        assert.matches("^%d+%-%d+%-%d+T%d+:%d+:%d+%.%d+Z$", r.next_attempt)
        assert.matches("the target is away", s.tasks[1].trace, 1, true)
        assert.equal("RUNNING", s.connector.state)
        os.remove(flag .. ".task")
        s = wait("running again", "t", runs)
        assert.is_true(s.tasks[1].restart.count >= 2)
        assert.is_nil(s.tasks[1].restart.next_attempt)
        assert.matches("the target is away", s.tasks[1].restart.reason, 1, true)
        worker:request("DELETE", "/connectors/t")
      end)

      it("starts a connector again, and then its tasks", function()
        local flag = dir .. "/" .. mode .. "c"
        proc.write(flag .. ".connector", "x")
        put "c"
        local s = wait("failed", "c", function(st) return st.connector.state == "FAILED" and st.connector.restart end)
        assert.matches("the target is away", s.connector.restart.reason, 1, true)
        os.remove(flag .. ".connector")
        wait("running", "c", runs)
        worker:request("DELETE", "/connectors/c")
      end)

      it("leaves alone what is misconfigured, and what has no policy", function()
        local flag = put "m"
        local bare = put("b", { ["restart.policy"] = "none" })
        wait("running", "m", runs)
        wait("running", "b", runs)
        proc.write(flag .. ".task", "config")
        proc.write(bare .. ".task", "x")
        local s = wait("failed", "m", function(st) return st.tasks[1].state == "FAILED" and st.tasks[1].restart end)
        assert.equal(0, s.tasks[1].restart.count)
        assert.equal(golden.null, s.tasks[1].restart.next_attempt)
        s = wait("failed", "b", function(st) return st.tasks[1].state == "FAILED" end)
        assert.is_nil(s.tasks[1].restart)
        os.remove(flag .. ".task")
        os.remove(bare .. ".task")
        proc.stays("FAILED for longer than the first pause", function()
          return status("m").tasks[1].state == "FAILED" and status("b").tasks[1].state == "FAILED"
        end, 3)
        -- by hand they start
        worker:request("POST", "/connectors/m/tasks/0/restart")
        wait("running by hand", "m", runs)
        worker:request("DELETE", "/connectors/m")
        worker:request("DELETE", "/connectors/b")
      end)

      it("begins with the first pause again when a person had a hand in it", function()
        local flag = dir .. "/" .. mode .. "h"
        proc.write(flag .. ".start", "x")
        put("h", { ["restart.policy.max.per.hour"] = "1000" })
        local last
        -- the next failure: how far ahead of it the next attempt is, in seconds
        local function fails(what)
          local s = wait("failed " .. what, "h", function(st)
            local r = st.tasks[1] and st.tasks[1].state == "FAILED" and st.tasks[1].restart
            return r and r.next_attempt ~= last
          end)
          last = s.tasks[1].restart.next_attempt
          local year, month, day, hour, min, sec = last:match "^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)"
          local at = { year = year, month = month, day = day, hour = hour, min = min, sec = sec, isdst = false }
          return os.time(at) - os.time(os.date "!*t"), s.tasks[1].restart
        end
        local function first(what)
          local ahead, r = fails(what)
          assert.is_true(ahead <= 6, what .. ": " .. ahead .. " s, count " .. r.count)
        end
        first "at the start"
        for i = 1, 4 do
          local code, text = worker:request("POST", "/connectors/h/restart?includeTasks=true")
          assert.equal(202, code, text)
          first("restart with tasks " .. i)
          code, text = worker:request("POST", "/connectors/h/tasks/0/restart")
          assert.equal(204, code, text)
          first("restart of the task " .. i)
        end
        worker:request("PUT", "/connectors/h/stop")
        wait("stopped", "h", function(st) return st.connector.state == "STOPPED" and #st.tasks == 0 end)
        worker:request("PUT", "/connectors/h/resume")
        first "stop and resume"
        put("h", { ["restart.policy.max.per.hour"] = "999" })
        first "a new config"
        worker:request("DELETE", "/connectors/h")
      end)

      it("forgets a failed connector that is deleted or stopped meanwhile", function()
        local flag = put "d"
        wait("running", "d", runs)
        proc.write(flag .. ".task", "x")
        wait("failed", "d", function(st) return st.tasks[1].state == "FAILED" end)
        worker:request("PUT", "/connectors/d/stop")
        wait("stopped", "d", function(st) return st.connector.state == "STOPPED" and #st.tasks == 0 end)
        proc.stays("stopped", function()
          local st = status "d"
          return st.connector.state == "STOPPED" and #st.tasks == 0
        end, 3)
        worker:request("DELETE", "/connectors/d")
        proc.wait_for("d to be gone", function() return not status "d" end)
        proc.stays("gone", function() return not status "d" end, 2)
      end)
    end)
  end
end)

-- Their statuses have a field that Java does not know.
describe("restart.policy beside a Java worker", function()
  it("is no trouble for it: it shows the same states", function()
    local broker, id, dir = kafka.broker(), kafka.unique "policy", proc.tmpdir "policy"
    os.execute("mkdir -p " .. dir .. "/plugins")
    proc.write(dir .. "/plugins/brittle.lua", plugin)
    local quick = { ["scheduled.rebalance.max.delay.ms"] = 0, ["plugin.path"] = dir .. "/plugins" }
    local ours = kafka.worker { broker = broker, id = id, config = quick }
    for _, name in ipairs { "again", "final" } do
      local code, text = ours:request("PUT", "/connectors/" .. name .. "/config", { ["connector.class"] = "Brittle",
        flag = dir .. "/" .. name, ["restart.policy"] = "on-failure" })
      assert.equal(201, code, text)
      ours:wait_running(name)
    end
    proc.write(dir .. "/again.task", "x")
    proc.write(dir .. "/final.task", "config")
    proc.wait_for("a restart", function()
      local s = ours:status "again"
      return s.tasks[1].restart and s.tasks[1].restart.count > 0
    end)
    os.remove(dir .. "/again.task")
    proc.wait_for("both tasks", function()
      return ours:status "again".tasks[1].state == "RUNNING" and ours:status "final".tasks[1].state == "FAILED"
    end)
    local java = kafka.worker { broker = broker, id = id, java = true, config = { ["scheduled.rebalance.max.delay.ms"] = 0 } }
    local function same()
      for _, name in ipairs { "again", "final" } do
        local code, text, theirs = java:request("GET", "/connectors/" .. name .. "/status")
        assert.equal(200, code, text)
        local mine = ours:status(name)
        assert.is_true(name == "final" or mine.tasks[1].restart.count > 0)
        assert.truthy(mine.tasks[1].restart)
        for _, s in ipairs { mine.connector, mine.tasks[1] } do s.restart = nil end
        mine.type = "unknown" -- it does not have the class
        assert.equal(http.encode(mine), http.encode(theirs))
      end
    end
    if not pcall(proc.wait_for, "the same statuses", function() return (pcall(same)) end) then same() end
    local _, text, list = java:request("GET", "/connectors?expand=status")
    assert.equal("FAILED", list.final.status.tasks[1].state, text)
    assert.is_nil(java:log():find("Failed to deserialize", 1, true))
    assert.is_nil(java:log():find "ERROR.*KafkaStatusBackingStore")
    -- and it goes on without ours, whose last words it still shows
    assert.equal(0, ours:stop())
    proc.wait_for("Java's view of them", function()
      local code, _, s = java:request("GET", "/connectors/again/status")
      return code == 200 and s.connector.state ~= "RUNNING"
    end)
    assert.truthy(java:stop())
  end)
end)
