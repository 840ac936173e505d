-- spec/kafka/cluster_spec.lua: three workers of ours share 30 connectors through which lines flow; workers come, go
-- and die. After each change: no line lost, nothing runs twice or nowhere, REST of every worker tells the truth. The
-- times until all runs again are printed. The longer faults are in spec/fault/cluster_spec.lua.
local cluster = require "spec.support.cluster"
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"

describe("three workers with 30 connectors", function()
  local c
  setup(function() c = cluster.new { broker = kafka.broker(), n = 3 } end)
  teardown(function() c:stop() end)

  local function all_well(what)
    cluster.say("%s: all run again after %.1f s", what, c:settle())
    assert.equal("", c:take_overlaps())
    c:no_line_lost()
  end

  it("share them evenly", function()
    c:topology { flows = 12, sinks = 8, idle = 10 }
    all_well "30 connectors created"
    for w, n in pairs(c:load()) do assert.equal(20, n, w.url) end
  end)

  it("give a fourth its share", function()
    c:add()
    all_well "a fourth worker"
    for w, n in pairs(c:load()) do assert.is_true(n >= 14 and n <= 16, w.url .. " runs " .. n) end
  end)

  it("take over from one that ends by SIGTERM", function()
    local _, follower = c:leader()
    c:term(follower)
    all_well "SIGTERM"
  end)

  it("take over from one that is killed", function()
    local _, follower = c:leader()
    c:kill(follower)
    all_well "SIGKILL"
  end)

  it("take over when the leader is killed", function()
    c:start(c.workers[2].process:alive() and c.workers[3] or c.workers[2]) -- who ended comes back
    c:settle()
    c:kill((c:leader()))
    all_well "SIGKILL of the leader"
  end)

  it("fence one that is frozen for longer than its session: it wakes up, stops its tasks and writes nothing", function()
    c:add()
    c:settle()
    local _, follower = c:leader()
    local had = c:tasks_of(follower)
    assert.is_true(#had > 0)
    c:freeze(follower)
    local frozen = c:mark()
    cluster.say("frozen: all run elsewhere after %.1f s", c:settle())
    c:no_line_lost()
    local thawed = c:mark()
    c:thaw(follower)
    proc.wait_for("it to stop what others run now", function()
      return follower:log():find("Revoking previous assignment", 1, true)
    end, 60 * cluster.slow)
    proc.wait_for("it to get work again", function() return #c:tasks_of(follower) > 0 end, 60 * cluster.slow)
    cluster.say("thawed: all run again after %.1f s", c:settle())
    c:take_overlaps() -- its tasks are still threads at first, that write nothing: see written_twice
    c:no_line_lost()
    assert.same({}, c:written_twice(frozen, thawed))
  end)

  it("turn eager with one that is, and back: nothing runs twice", function()
    c:happens()
    local eager = c:add { config = { ["connect.protocol"] = "eager" } }
    cluster.say("an eager worker: all run again after %.1f s", c:settle())
    c:take_overlaps() -- with the first eager assignment all stop, while the eager one starts
    local m = c:mark()
    c:no_line_lost()
    assert.same({}, c:written_twice(m, m))
    c:happens()
    c:term(eager)
    all_well "the eager worker left"
    m = c:mark()
    c:no_line_lost()
    assert.same({}, c:written_twice(m, m))
  end)

  it("answer any request on any worker", function()
    local leader, follower = c:leader()
    for _, w in ipairs { leader, follower } do
      c:put("any", { ["connector.class"] = "FileStreamSource", file = c.dir .. "/idle.txt", topic = c.id .. "-idle" }, w)
      c:settle()
      for _, what in ipairs { "/restart", "/restart?includeTasks=true", "/tasks/0/restart" } do
        local code, text = c:request(w, "POST", "/connectors/any" .. what)
        assert.is_true(code == 204 or code == 202, what .. ": " .. code .. " " .. text)
      end
      assert.equal(204, (c:request(w, "PUT", "/connectors/any/stop")))
      c.want.any = "STOPPED"
      c:settle()
      assert.equal(202, (c:request(w, "PUT", "/connectors/any/resume")))
      c.want.any = "RUNNING"
      c:settle()
      assert.equal(204, (c:request(w, "DELETE", "/connectors/any")))
      c.want.any = nil
      c:settle()
    end
  end)

  it("set a log level everywhere", function()
    local leader, follower = c:leader()
    assert.equal(204, (c:request(follower, "PUT", "/admin/loggers/CONSUMER?scope=cluster", { level = "ERROR" })))
    for _, w in ipairs { leader, follower } do
      proc.wait_for("the level on " .. w.url, function()
        local _, _, json = w:request("GET", "/admin/loggers/CONSUMER")
        return json.level == "ERROR"
      end, 30)
    end
  end)
end)
