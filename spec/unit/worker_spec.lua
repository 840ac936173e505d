-- Worker (core/runtime/worker.c, connector.c, task.c): instances, states, statuses, task configs.
local core = require "spec.support.core"
local C = core.load { "base/clock.h", "runtime/worker.h" }
local files = require "spec.support.files"
local task_bed = require "spec.support.task_bed"
local with = require "spec.support.with"
local worker = require "spec.support.worker"

local probe = task_bed.say .. [[
local connect = require "connect"
local Task = {}
local function exists(path)
  local f = path and io.open(path)
  if f then f:close() end
  return f ~= nil
end
function Task:start(ctx)
  self.ctx = ctx
  local c = ctx.config
  if c.fail == "task" then error(connect.fatal "task says no") end
  if c.fail == "raise" then error "plain trouble" end
  if c.wait_for and not exists(c.wait_for) then error(connect.retriable("no " .. c.wait_for)) end
end
function Task:poll()
  local c = self.ctx.config
  if c.fail == "poll" then error(connect.fatal "poll says no") end
  if c.fail == "hang" then exists(c.fifo) end -- opening it waits for a writer: no Lua that could be ended
  self.ctx:sleep(20)
  return nil
end
function Task:stop()
  if self.ctx then say(self.ctx.config.mark, "stopped") end
end
return connect.source {
  name = "Probe", class = "org.example.ProbeConnector", task_class = "org.example.ProbeTask", version = "1.2.3",
  task = Task,
  config = {
    { "fail", type = "string", doc = "what goes wrong" },
    { "wait_for", type = "string", doc = "a file" },
    { "mark", type = "string", doc = "a file" },
    { "fifo", type = "string", doc = "a named pipe" },
    { "tasks", type = "int", default = 1, doc = "task configs made" },
  },
  start = function(self, ctx)
    self.ctx = ctx
    if ctx.config.fail == "connector" then error(connect.fatal "connector says no") end
    if ctx.config.fail == "slow" then ctx:sleep(60000) end
    if ctx.config.wait_for and not exists(ctx.config.wait_for) then error(connect.retriable "not yet") end
    if ctx.config.fail == "reconfigure" then ctx:reconfigure() end
  end,
  stop = function(self)
    if self.ctx.config.fail == "stop" then error "stop trouble" end
  end,
  task_configs = function(config, max)
    local out = {}
    for i = 1, config.tasks do out[i] = { number = tostring(i) } end
    return out
  end,
}
]]

local function config(more)
  return with({ ["connector.class"] = "org.example.ProbeConnector", ["tasks.max"] = "1" }, more)
end

describe("worker", function()
  local w
  local function open(settings) w = worker.new { plugins = { ["probe.lua"] = probe }, config = settings } end
  before_each(function() open() end)
  after_each(function() w:close() end)

  describe("connector", function()
    it("is RUNNING with version, worker and generation once it has started", function()
      w:start("p", config())
      worker.wait_event "start p: ok"
      local st = w:wait_state("p", -1, "RUNNING")
      assert.same({ state = "RUNNING", version = "1.2.3", generation = 7, worker_id = "127.0.0.1:8083" }, st)
      assert.is_true(C.lc_worker_has_connector(w.w, "p"))
      assert.is_true(C.lc_worker_connector_started(w.w, "p"))
      w:stop "p"
      st = w:status("p")
      assert.equal("UNASSIGNED", st.state)
      assert.is_nil(st.version)
      assert.is_false(C.lc_worker_has_connector(w.w, "p"))
    end)

    it("goes through PAUSED, STOPPED and back, whatever stop() says", function()
      w:start("p", config { fail = "stop" }, worker.PAUSED)
      w:wait_state("p", -1, "PAUSED")
      w:target("p", worker.STARTED)
      w:wait_state("p", -1, "RUNNING")
      w:target("p", worker.STOPPED)
      assert.equal("1.2.3", w:wait_state("p", -1, "STOPPED").version)
      w:target("p", worker.STARTED)
      w:wait_state("p", -1, "RUNNING")
      w:target("p", worker.PAUSED)
      assert.matches("stop trouble", w:wait_state("p", -1, "FAILED").trace)
      worker.eventually(function() return select(2, worker.events():gsub("target p", "")) == 4 end)
    end)

    it("is FAILED when start fails, and only STOPPED is possible then", function()
      w:start("p", config { fail = "connector" })
      worker.wait_event "start p: connector says no"
      local st = w:wait_state("p", -1, "FAILED")
      assert.matches("^org%.apache%.kafka%.connect%.errors%.ConnectException: connector says no\n", st.trace)
      assert.equal("1.2.3", st.version)
      w:target("p", worker.STARTED)
      worker.wait_event "target p: WorkerConnector{id=p} Cannot transition connector to STARTED since it has failed"
      w:target("p", worker.STOPPED)
      w:wait_state("p", -1, "STOPPED")
    end)

    it("is FAILED without a version when its class is unknown, and not there", function()
      w:start("p", config { ["connector.class"] = "Nowhere" })
      local st = w:wait_state("p", -1, "FAILED")
      assert.is_nil(st.version)
      assert.matches("Nowhere", st.trace)
      worker.eventually(function() return not C.lc_worker_has_connector(w.w, "p") end)
      w:stop "p"
      assert.equal("FAILED", w:status("p").state)
    end)

    it("is tried again after a retriable start, and says why", function()
      local file = files.unused()
      w:start("p", config { wait_for = file })
      local st = w:wait_state("p", -1, "UNASSIGNED")
      assert.matches("not yet", st.trace)
      files.write(file, "")
      w:wait_state("p", -1, "RUNNING")
      os.remove(file)
      worker.wait_event "start p: ok"
    end)

    it("gives way to a newer request and to the end while it waits", function()
      w:start("p", config { wait_for = "/no/such/file" })
      w:wait_state("p", -1, "UNASSIGNED")
      w:target("p", worker.STOPPED)
      worker.wait_event("start p: Could not begin changing connector state to STARTED before another request to "
        .. "change state was made; the new request %(which is to change the state to STOPPED%) has pre%-empted this one")
      w:wait_state("p", -1, "STOPPED")
      w:target("p", worker.STARTED)
      w:wait_state("p", -1, "UNASSIGNED")
      local before = C.lc_now_ms()
      w:stop "p"
      assert.is_true(C.lc_now_ms() - before < 30000)
      worker.wait_event "target p: Could not begin changing connector state to STARTED as the connector has been scheduled"
    end)

    it("ends its waits when it is stopped", function()
      w:start("p", config { fail = "slow" })
      worker.eventually(function() return C.lc_worker_has_connector(w.w, "p") end)
      local before = C.lc_now_ms()
      w:stop "p"
      assert.is_true(C.lc_now_ms() - before < 30000)
    end)

    it("may ask for new task configs", function()
      w:start("p", config { fail = "reconfigure" })
      worker.wait_event "reconfigure p"
    end)
  end)

  describe("task configs", function()
    it("get task.class and topics, variables as they were written, Java's order", function()
      local c = config { topics = "a,b", mark = "${env:HOME}", name = "p" }
      w:start("p", c)
      w:generate("p", c)
      local json = worker.wait_event "configs p: (%b{})\n"
      assert.matches('"task.class":"org.example.ProbeTask"', json, 1, true)
      assert.matches('"topics":"a,b"', json, 1, true)
      assert.matches('"mark":"${env:HOME}"', json, 1, true)
      assert.matches('"number":"1"', json, 1, true)
    end)

    it("are refused beyond tasks.max, and the connector FAILED", function()
      local c = config { tasks = "3", ["tasks.max"] = "2", name = "p" }
      w:start("p", c)
      w:wait_state("p", -1, "RUNNING")
      w:generate("p", c)
      worker.wait_event("configs p: The connector p has generated 3 tasks, which is greater than 2, the maximum number "
        .. "of tasks it is configured to create%.")
      assert.matches("^org%.apache%.kafka%.connect%.runtime%.TooManyTasksException: The connector p has",
        w:wait_state("p", -1, "FAILED").trace)
    end)

    it("pass with tasks.max.enforce=false", function()
      local c = config { tasks = "2", ["tasks.max.enforce"] = "false", name = "p" }
      w:start("p", c)
      w:generate("p", c)
      worker.wait_event "configs p: %b{}%b{}\n"
    end)

    it("of a connector that is not here fail", function()
      w:generate("q", config())
      worker.wait_event "configs q: Connector q not found in this worker%."
    end)
  end)

  describe("task", function()
    it("is RUNNING, PAUSED, RUNNING, and UNASSIGNED without a version at the end", function()
      assert.is_true((w:start_task("p", 0, config())))
      assert.same({ state = "RUNNING", version = "1.2.3", generation = 7, worker_id = "127.0.0.1:8083" },
        w:wait_state("p", 0, "RUNNING"))
      assert.same({ "p/0" }, w:running())
      w:tasks_target("p", worker.PAUSED)
      w:wait_state("p", 0, "PAUSED")
      w:tasks_target("p", worker.STARTED)
      w:wait_state("p", 0, "RUNNING")
      w:stop_tasks { "p", 0 }
      local st = w:status("p", 0)
      assert.equal("UNASSIGNED", st.state)
      assert.is_nil(st.version)
      assert.same({}, w:running())
    end)

    it("waits in PAUSED before it starts, and may be stopped there", function()
      local mark = files.unused()
      w:start_task("p", 0, config { mark = mark }, { target = worker.PAUSED })
      w:wait_state("p", 0, "PAUSED")
      w:stop_tasks { "p", 0 }
      assert.equal("UNASSIGNED", w:status("p", 0).state)
      assert.is_nil(files.read(mark))
    end)

    it("is FAILED with the reason when start fails; stop is called all the same", function()
      local mark = files.unused()
      w:start_task("p", 0, config { fail = "task", mark = mark })
      local st = w:wait_state("p", 0, "FAILED")
      assert.matches("^org%.apache%.kafka%.connect%.errors%.ConnectException: task says no\n", st.trace)
      assert.equal("1.2.3", st.version)
      assert.equal("stopped\n", files.read(mark))
      os.remove(mark)
      w:stop_tasks { "p", 0 } -- a failed task stays FAILED
      assert.equal("FAILED", w:status("p", 0).state)
    end)

    it("shows the Lua traceback of an error nobody meant", function()
      w:start_task("p", 0, config { fail = "raise" })
      assert.matches("probe%.lua:%d+: plain trouble", w:wait_state("p", 0, "FAILED").trace)
    end)

    it("is FAILED when poll fails", function()
      w:start_task("p", 0, config { fail = "poll" })
      assert.matches("poll says no", w:wait_state("p", 0, "FAILED").trace)
    end)

    it("is tried again after a retriable start", function()
      local file = files.unused()
      w:start_task("p", 0, config { wait_for = file })
      assert.matches("no " .. file, w:wait_state("p", 0, "UNASSIGNED").trace, 1, true)
      files.write(file, "")
      w:wait_state("p", 0, "RUNNING")
      os.remove(file)
    end)

    it("is FAILED without a version when it cannot be made", function()
      local cases = {
        { config { ["connector.class"] = "Nowhere" }, "Nowhere" },
        { config { ["value.converter"] = "Nowhere" },
          "^org%.apache%.kafka%.common%.config%.ConfigException: Invalid value Nowhere for configuration "
            .. "value%.converter: Class Nowhere could not be found%.\n" },
        { config { transforms = "t" }, "transforms%.t%.type" },
        { config { ["topic.creation.default.partitions"] = "1" },
          "ConfigException: Missing required configuration \"topic%.creation%.default%.replication%.factor\" which has "
            .. "no default value%.\n" },
      }
      for i, case in ipairs(cases) do
        w:start_task("p" .. i, 0, case[1])
        local st = w:wait_state("p" .. i, 0, "FAILED")
        assert.is_nil(st.version)
        assert.matches(case[2], st.trace)
      end
    end)

    it("is FAILED when there are more than tasks.max", function()
      w:start_task("p", 0, config(), { count = 2 })
      assert.matches("TooManyTasksException", w:wait_state("p", 0, "FAILED").trace)
    end)

    it("exists once", function()
      w:start_task("p", 0, config())
      local ok, why = w:start_task("p", 0, config())
      assert.is_false(ok)
      assert.equal("Task already exists in this worker: p-0", why)
    end)

    it("is abandoned when it does not stop in time, and says nothing more", function()
      w:close()
      open { ["task.shutdown.graceful.timeout.ms"] = "300" }
      local fifo = files.unused()
      os.execute("mkfifo " .. fifo)
      w:start_task("p", 0, config { fail = "hang", fifo = fifo })
      w:wait_state("p", 0, "RUNNING")
      local before = C.lc_now_ms()
      w:stop_tasks { "p", 0 }
      assert.is_true(C.lc_now_ms() - before < 30000)
      assert.equal("RUNNING", w:status("p", 0).state)
      assert.is_true((w:start_task("p", 0, config())))
      w:wait_state("p", 0, "RUNNING")
      files.write(fifo, "") -- the lost thread comes back
      os.remove(fifo)
      worker.sleep(500)
      assert.equal("RUNNING", w:status("p", 0).state)
    end)

    it("stops many together", function()
      local ids = {}
      for i = 0, 19 do
        w:start_task("p", i, config { ["tasks.max"] = "20" }, { count = 20 })
        ids[#ids + 1] = { "p", i }
      end
      for i = 0, 19 do w:wait_state("p", i, "RUNNING") end
      local before = C.lc_now_ms()
      w:stop_tasks(unpack(ids))
      assert.is_true(C.lc_now_ms() - before < 30000)
      for i = 0, 19 do assert.equal("UNASSIGNED", w:status("p", i).state) end
    end)
  end)
end)
