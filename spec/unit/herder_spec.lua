-- herder_spec.lua: core/herder. The distributed herder runs between simulated neighbours (herder_sim.c): what it
-- writes, starts and stops, and in which order, without a broker. Between workers: herder_cluster_spec.lua.
local core = require "spec.support.core"
local H = require "spec.support.herder"
local C, ffi = core.load {}
local sim, wait, start, call, expect = H.sim, H.wait, H.start, H.call, H.expect
local clear, listen, source, states = H.clear, H.listen, H.source, H.states
local worker_config = require("spec.support.worker_config").new

describe("the herder", function()
  after_each(H.stop)
  local RUNNING, PAUSED, FAILED, RESTARTING, STOPPED = 1, 2, 3, 4, 5

  describe("creating", function()
    it("writes the connector, starts it, writes its tasks, starts them: two rebalances", function()
      start()
      local a = call("CREATE", " src ", { config = source() })
      assert.same({ 201, true, "src", 0, "source" }, { a.status, a.created, a.info.name, a.info.ntasks, a.info.type })
      assert.equal("src", a.info.config.name)
      expect { "put connector-src ...", "rejoin: connectors or tasks have changed", "start src STARTED g2",
        "put task-src-0 ...", "put commit-src {\"tasks\":1}", "rejoin: connectors or tasks have changed",
        "start src-0 of 1 STARTED g3" }
      wait("task status", function() local _, t = states "src"; return t and t[1] == RUNNING end)
      assert.same({ "src" }, call("LIST").names)
      assert.equal(1, call("INFO", "src").info.ntasks)
    end)

    it("with an initial state writes the target first and makes no tasks", function()
      start()
      assert.equal(201, call("CREATE", "p", { config = source(), initial_state = C.LC_TARGET_PAUSED }).status)
      expect { [[put target-state-p {"state":"PAUSED","state.v2":"PAUSED"}]], "put connector-p ...",
        "start p PAUSED g2" }
      assert.is_nil(listen():find("put task", 1, true))
      clear()
      assert.equal(202, call("RESUME", "p").status)
      expect { "target p STARTED", "put task-p-0 ...", "start p-0 of 1 STARTED g3" }
    end)

    it("refuses with Connect's texts", function()
      start()
      local function refused(op, name, opt) local a = call(op, name, opt); return { a.status, a.error } end
      assert.same({ 400, "Connector name configuration (x) doesn't match connector name in the URL (c)" },
        refused("CREATE", "c", { config = source { name = "x" } }))
      assert.same({ 400, "Connector name configuration (c4) doesn't match connector name in the URL ()" },
        refused("CREATE", nil, { config = source { name = "c4" } }))
      assert.same({ 500, 'Cannot invoke "java.util.Map.get(Object)" because "connectorConfig" is null' },
        refused("CREATE", "c"))
      local a = call("CREATE", "c", { config = source { topic = "" } })
      assert.equal(400, a.status)
      assert.truthy(a.error:find("Connector configuration is invalid and contains the following 1 error(s):\n", 1,
        true))
      assert.equal(201, call("CREATE", "c", { config = source() }).status)
      assert.same({ 409, "Connector c already exists" }, refused("CREATE", "c", { config = source() }))
      sim.sim_fail("", "connector-")
      assert.same({ 500, "Error writing to Kafka" }, refused("CREATE", "d", { config = source() }))
      assert.same({ 404, "Connector none not found" }, refused("PATCH_CONFIG", "none", { config = { a = "b" } }))
      for _, op in ipairs { "DELETE", "INFO", "TASKS", "OFFSETS" } do
        assert.same({ 404, "Connector none not found" }, refused(op, "none"))
      end
      for _, op in ipairs { "PAUSE", "RESUME", "STOP" } do
        assert.same({ 404, "Unknown connector none" }, refused(op, "none"))
      end
      assert.same({ 404, "Unknown connector: none" }, refused("RESTART", "none"))
      assert.same({ 404, "Unknown connector: none" }, refused("RESTART", "none", { include_tasks = true }))
      assert.same({ 404, "Unknown connector: none" }, refused("RESTART_TASK", "none", { task = 0 }))
      assert.same({ 404, "No status found for connector none" }, refused("STATUS", "none"))
      assert.same({ 404, "No status found for task c-9" }, refused("TASK_STATUS", "c", { task = 9 }))
      assert.same({ 404, "No status found for task c--1" }, refused("TASK_STATUS", "c", { task = -1 }))
      assert.same({ 404, "Unknown task: c-9" }, refused("RESTART_TASK", "c", { task = 9 }))
      assert.same({ 404, "Unknown task: c--1" }, refused("RESTART_TASK", "c", { task = -1 }))
    end)

    it("takes a null name for an absent one and leaves other nulls alone", function()
      start()
      local a = call("CREATE", "c", { config = source(), nulls = { "name", "file" } })
      assert.same({ 201, "c" }, { a.status, a.info.config.name })
    end)
  end)

  describe("changing", function()
    before_each(function()
      start()
      call("CREATE", "c", { config = source() })
      expect { "start c-0 of 1 STARTED g3" }
      clear()
    end)

    it("bounces the instance, then the tasks with the next rebalance", function()
      local a = call("PUT_CONFIG", "c", { config = source { ["batch.size"] = "7" } })
      assert.same({ 200, false, 1 }, { a.status, a.created, a.info.ntasks })
      expect { "put connector-c ...", "afresh c", "stop c g3", "start c STARTED g3", "put task-c-0 ...",
        [[put commit-c {"tasks":1}]], "stop c-0 g3", "rejoin: connectors or tasks have changed",
        "start c-0 of 1 STARTED g4" }
    end)

    it("bounces only the instance when nothing is different", function()
      assert.equal(200, call("PUT_CONFIG", "c", { config = source() }).status)
      expect { "put connector-c ...", "stop c g3", "start c STARTED g3" }
      assert.equal(204, call("RESTART", "c").status) -- waits for the task configs of the start before
      assert.is_nil(listen():find("put task", 1, true))
      assert.is_nil(listen():find("rejoin", 1, true))
    end)

    it("restarts tasks for a setting they do not see", function()
      local a = call("PATCH_CONFIG", "c", { config = { ["errors.log.enable"] = "true" } })
      assert.same({ 200, "true" }, { a.status, a.info.config["errors.log.enable"] })
      expect { "stop c-0 g3", "start c-0 of 1 STARTED g4" }
      clear()
      a = call("PATCH_CONFIG", "c", { config = {}, nulls = { "errors.log.enable" } })
      assert.same({ 200, nil }, { a.status, a.info.config["errors.log.enable"] })
      a = call("PATCH_CONFIG", "c", { config = {}, nulls = { "topic" } })
      assert.same({ 400 }, { a.status })
    end)

    it("with more and fewer tasks", function()
      call("PUT_CONFIG", "c", { config = source { ["tasks.max"] = "3" } })
      expect { [[put commit-c {"tasks":3}]], "stop c-0 g3", "start c-0 of 3 STARTED g4", "start c-2 of 3 STARTED g4" }
      clear()
      call("PUT_CONFIG", "c", { config = source { ["tasks.max"] = "1" } })
      expect { [[put commit-c {"tasks":1}]], "stop c-2 g4", "start c-0 of 1 STARTED g5",
        "rejoin: work was revoked, it can be assigned now" }
      wait("two statuses less", function() local _, t = states "c"; return #t == 1 end)
    end)

    it("pause and resume reach the instance and the tasks", function()
      assert.equal(202, call("PAUSE", "c").status)
      expect { [[put target-state-c {"state":"PAUSED","state.v2":"PAUSED"}]], "afresh c", "target c-0 PAUSED",
        "target c PAUSED" }
      assert.equal(204, call("RESTART", "c").status)
      expect { "stop c g3", "start c PAUSED g3" }
      assert.equal(PAUSED, (states "c"))
      clear()
      assert.equal(202, call("RESUME", "c").status)
      expect { "afresh c", "target c-0 STARTED", "target c STARTED" }
    end)

    it("stop takes the tasks away first; resume makes them again", function()
      assert.equal(204, call("STOP", "c").status)
      expect { [[put commit-c {"tasks":0}]], [[put target-state-c {"state":"PAUSED","state.v2":"STOPPED"}]],
        "target c STOPPED", "rejoin: connectors or tasks have changed", "stop c-0 g3",
        "rejoin: work was revoked, it can be assigned now" }
      wait("no task status", function() local s, t = states "c"; return s == STOPPED and #t == 0 end)
      -- its config is still known, but nobody owns it
      local a = call("RESTART_TASK", "c", { task = 0 })
      assert.same({ 409, "Cannot complete request momentarily due to no known leader URL, likely because a " ..
        "rebalance was underway." }, { a.status, a.error })
      a = call("RESTART_TASK", "c", { task = 0, forward = 0 })
      assert.same({ 409, "Cannot complete request because of a conflicting operation (e.g. worker rebalance)" },
        { a.status, a.error })
      clear()
      assert.equal(204, call("STOP", "c").status)
      expect { "round 6" } -- an empty set again is a change, too
      assert.equal(200, call("PUT_CONFIG", "c", { config = source { ["batch.size"] = "3" } }).status)
      expect { "start c STOPPED g6" }
      assert.equal(202, call("RESUME", "c").status)
      expect { "target c STARTED", [[put commit-c {"tasks":1}]], "start c-0 of 1 STARTED g7" }
    end)

    it("delete stops the instance at once, the tasks in the rebalance, and forgets the statuses", function()
      assert.equal(204, call("DELETE", "c").status)
      expect { "put connector-c null", "put target-state-c null", "stop c g3",
        "rejoin: connectors or tasks have changed", "stop c-0 g3", "rejoin: work was revoked, it can be assigned now" }
      wait("no status", function() return call("STATUS", "c").status == 404 end)
      assert.equal(404, call("DELETE", "c").status)
      clear()
      assert.equal(201, call("CREATE", "c", { config = source() }).status)
      expect { "start c STARTED g6", "start c-0 of 1 STARTED g7" }
    end)

    it("a connector that asks gets new task configs when they differ", function()
      sim.sim_reconfigure(H.h, "c")
      assert.equal(204, call("RESTART", "c").status)
      assert.is_nil(listen():find("commit", 1, true))
    end)

    it("tries again when the task configs could not be written", function()
      sim.sim_fail("", "task-c")
      call("PUT_CONFIG", "c", { config = source { ["batch.size"] = "9" } })
      expect { "put connector-c ...", "start c STARTED g3" }
      sim.sim_fail("", "")
      expect { [[put commit-c {"tasks":1}]], "start c-0 of 1 STARTED g4" }
    end)
  end)

  describe("restarting", function()
    before_each(function()
      start()
      call("CREATE", "c", { config = source { ["tasks.max"] = "2" } })
      expect { "start c-0 of 2 STARTED g3", "start c-1 of 2 STARTED g3" }
      wait("statuses", function() local s, t = states "c"; return s == RUNNING and #t == 2 end)
      clear()
    end)

    it("an instance, a task", function()
      assert.equal(204, call("RESTART", "c").status)
      assert.equal(204, call("RESTART_TASK", "c", { task = 1 }).status)
      expect { "stop c g3", "start c STARTED g3", "stop c-1 g3", "start c-1 of 2 STARTED g3" }
      sim.sim_fail("c", "")
      local a = call("RESTART", "c")
      assert.same({ 500, "Failed to start connector: c" }, { a.status, a.error })
      assert.equal(FAILED, (states "c"))
    end)

    it("by a plan, which is the answer", function()
      local a = call("RESTART", "c", { include_tasks = true })
      assert.same({ 202, RESTARTING, { RESTARTING, RESTARTING } },
        { a.status, tonumber(a.state.connector), a.state.tasks })
      expect { [[put restart-connector-c {"include-tasks":true,"only-failed":false}]], "stop c g3", "stop c-0 g3",
        "stop c-1 g3", "start c STARTED g3", "start c-0 of 2 STARTED g3", "start c-1 of 2 STARTED g3" }
      clear()
      a = call("RESTART", "c", { include_tasks = true, only_failed = true })
      assert.same({ 202, RUNNING, { RUNNING, RUNNING } }, { a.status, tonumber(a.state.connector), a.state.tasks })
      assert.equal(200, call("HEALTH").status)
      assert.is_nil(listen():find("stop", 1, true))
    end)

    it("orders of one connector: the higher impact wins", function()
      local f, t = ffi.new("bool[1]", true), ffi.new("bool[1]", false)
      local function merged(only_failed, include)
        C.lc_restart_merge(f, t, only_failed, include)
        return { f[0], t[0] }
      end
      assert.same({ true, true }, merged(true, true))
      assert.same({ true, true }, merged(true, false))
      assert.same({ false, false }, merged(false, false))
      assert.same({ false, false }, merged(true, true))
      assert.same({ false, true }, merged(false, true))
      assert.same({ false, true }, merged(false, false))
    end)
  end)

  describe("in the group", function()
    it("starts what the topic holds", function()
      sim.sim_record("connector-k", [[{"properties":{"connector.class":"FileStreamSource","topic":"t","name":"k"}}]])
      sim.sim_record("task-k-0",
        [[{"properties":{"connector.class":"FileStreamSource","topic":"t","name":"k","task.class":"T"}}]])
      sim.sim_record("commit-k", [[{"tasks":1}]])
      start()
      expect { "start k STARTED g1", "start k-0 of 1 STARTED g1" }
      assert.equal(200, call("HEALTH").status)
      assert.is_nil(listen():find("rejoin", 1, true)) -- the same tasks: nothing is written
      assert.is_nil(listen():find("put", 1, true))
    end)

    it("gives half of the work to a second worker, revoked first, and takes it back", function()
      start(1, { ["scheduled.rebalance.max.delay.ms"] = "0" })
      for _, n in ipairs { "a", "b" } do
        call("CREATE", n, { config = source { ["tasks.max"] = "2" } })
        expect { ("start %s-1 of 2 STARTED g%d"):format(n, n == "a" and 3 or 5) }
      end
      clear()
      sim.sim_members(1, 0)
      expect { "rejoin: work was revoked, it can be assigned now" }
      assert.equal(200, call("HEALTH").status)
      local _, stopped = listen():gsub("stop [ab]%-%d", "")
      assert.equal(2, stopped)
      assert.truthy(H.heard:find "stop [ab] g5")
      clear()
      sim.sim_members(0, 0)
      wait("the work back", function()
        local _, n = listen():gsub("start [ab]%-%d", "")
        return n == 2 and H.heard:find "start [ab] STARTED" ~= nil
      end)
      assert.is_nil(H.heard:find("ERROR", 1, true))
    end)

    it("stops everything when the coordinator is lost, answers reads, and starts again", function()
      start()
      call("CREATE", "c", { config = source() })
      expect { "start c-0 of 1 STARTED g3" }
      clear()
      sim.sim_coordinator(1)
      expect { "stop c g3", "stop c-0 g3" }
      assert.same({ "c" }, call("LIST").names)
      assert.equal(200, call("INFO", "c").status)
      assert.equal(202, call("PAUSE", "c").status)
      assert.equal(202, call("RESUME", "c").status)
      sim.sim_coordinator(0)
      expect { "start c STARTED g4", "start c-0 of 1 STARTED g4" }
    end)

    it("works with the eager protocol: everything stops and starts", function()
      start(0)
      call("CREATE", "a", { config = source() })
      expect { "start a STARTED g2", "stop a g2", "start a STARTED g3", "start a-0 of 1 STARTED g3" }
      clear()
      call("CREATE", "b", { config = source() })
      expect { "stop a g3", "stop a-0 g3", "start a STARTED g4", "start b STARTED g4" }
      wait("b-0", function() return listen():find "start b%-0" ~= nil end)
      assert.is_nil(H.heard:find("ERROR", 1, true))
    end)

    it("a follower passes on what the leader has to do", function()
      start()
      call("CREATE", "c", { config = source() })
      expect { "start c-0 of 1 STARTED g3" }
      sim.sim_members(0, 1)
      wait("another leader", function() return call("DELETE", "none").status == 0 end)
      local to_leader = { 0, "http://m2/" }
      local function passed_on(op, opt)
        local a = call(op, "c", opt)
        assert.same(to_leader, { a.status, a.forward_url })
        opt = opt or {}
        opt.forward = 1
        a = call(op, "c", opt)
        assert.same(to_leader, { a.status, a.forward_url })
        opt.forward = 0
        a = call(op, "c", opt)
        assert.same({ 409, "Cannot complete request because of a conflicting operation (e.g. worker rebalance)" },
          { a.status, a.error })
      end
      passed_on("CREATE", { config = source() })
      passed_on("PUT_CONFIG", { config = source() })
      passed_on "DELETE"
      passed_on "STOP"
      passed_on("PATCH_CONFIG", { config = { a = "b" } })
      passed_on("RESTART", { include_tasks = true })
      passed_on "FENCE"
      passed_on("PUT_TASKS", { tasks = { { a = "b" } } })
      assert.equal(204, call("RESTART", "c").status) -- its own
      assert.equal(202, call("PAUSE", "c").status)
    end)

    it("writes a session key when the protocol is sessioned, once", function()
      start(2)
      expect { "put session-key ..." }
      clear()
      call("CREATE", "c", { config = source() })
      expect { "start c-0 of 1 STARTED g3" }
      assert.is_nil(H.heard:find("session-key", 1, true))
    end)

    it("sees what other workers write", function()
      start()
      sim.sim_record("connector-x", [[{"properties":{"connector.class":"FileStreamSource","topic":"t","name":"x"}}]])
      expect { "start x STARTED g2", "start x-0 of 1 STARTED g3" }
      clear()
      sim.sim_record("target-state-x", [[{"state":"PAUSED","state.v2":"PAUSED"}]])
      expect { "target x-0 PAUSED", "target x PAUSED" }
      sim.sim_record("connector-x", nil)
      expect { "stop x g3", "stop x-0 g3" }
    end)
  end)

  describe("reload", function()
    for mode, protocol in pairs { standalone = -1, distributed = 1 } do
      it("restarts what is outdated one by one, and writes no config: " .. mode, function()
        start(protocol, protocol < 0 and { ["offset.storage.file.filename"] = os.tmpname() } or nil)
        call("CREATE", "c", { config = source { ["tasks.max"] = "3" } })
        call("CREATE", "d", { config = source() })
        H.wait("tasks", function() return #H.states_tasks "c" == 3 and #H.states_tasks "d" == 1 end)
        clear()
        assert.same({ 200, "[]" }, { call("RELOAD").status, call("RELOAD").reload })
        H.listen()
        assert.is_nil(H.heard:find("start ", 1, true))
        sim.sim_outdate("c", 0)
        sim.sim_outdate("c", 2)
        sim.sim_outdate("d", -1)
        sim.sim_outdate("gone", 0)
        assert.equal(200, call("RELOAD").status)
        H.listen()
        for _, line in ipairs { "stop c%-0 [^\n]*\nstart c%-0 ", "stop c%-2 [^\n]*\nstart c%-2 ", "stop d [^\n]*\nstart d " } do
          assert.truthy(H.heard:find(line), line .. " in\n" .. H.heard)
        end
        assert.is_nil(H.heard:find("c-1", 1, true))
        assert.is_nil(H.heard:find("config ", 1, true))
      end)
    end
  end)

  describe("restart.policy", function()
    for mode, protocol in pairs { standalone = -1, distributed = 1 } do
      it("starts what failed again when its time has come, and only that: " .. mode, function()
        start(protocol, protocol < 0 and { ["offset.storage.file.filename"] = os.tmpname() } or nil)
        call("CREATE", "c", { config = source { ["tasks.max"] = "2" } })
        call("CREATE", "d", { config = source() })
        H.wait("tasks", function() return #H.states_tasks "c" == 2 and #H.states_tasks "d" == 1 end)
        clear()
        sim.sim_fails(H.h, "c", 1, 3600000) -- not yet
        sim.sim_fails(H.h, "c", 0, 150)
        sim.sim_fails(H.h, "gone", 0, 0)
        H.wait("the failure", function() return H.states_tasks("c")[1] == tonumber(C.LC_FAILED) end)
        H.listen()
        assert.is_nil(H.heard:find("start ", 1, true))
        expect { "restarting c 0" }
        H.wait("the task", function() return H.states_tasks("c")[1] == tonumber(C.LC_RUNNING) end)
        H.listen()
        assert.truthy(H.heard:find "restarting c 0\nstop c%-0 [^\n]*\nstart c%-0 of 2 STARTED [^\n]*\nrestarted\n", H.heard)
        assert.equal(tonumber(C.LC_FAILED), H.states_tasks("c")[2])
        clear()
        sim.sim_fails(H.h, "d", -1, 0)
        expect { "restarting d -1" }
        H.wait("the connector", function() return (H.states "d") == tonumber(C.LC_RUNNING) end)
        H.listen()
        assert.truthy(H.heard:find "restarting d %-1\nstop d [^\n]*\nstart d STARTED [^\n]*\nrestarted\n", H.heard)
        for _, word in ipairs { "c-1", "gone", "d-0", "put ", "afresh" } do
          assert.is_nil(H.heard:find(word, 1, true), H.heard)
        end
      end)
    end
  end)

  describe("offsets", function()
    it("of a source are what the store holds", function()
      start()
      call("CREATE", "c", { config = source() })
      sim.sim_set_offset(H.h, "c", [[{"filename":"/a"}]], [[{"position":3}]])
      sim.sim_set_offset(H.h, "other", [[{"filename":"/b"}]], [[{"position":4}]])
      assert.equal([[{"offsets":[{"partition":{"filename":"/a"},"offset":{"position":3}}]}]],
        call("OFFSETS", "c").offsets)
    end)

    it("of a sink are its group's", function()
      start()
      local sink = { ["connector.class"] = "FileStreamSink", topics = "t", file = "/tmp/f" }
      assert.equal("sink", call("CREATE", "k", { config = sink }).info.type)
      assert.equal([[{"offsets":[{"partition":{"kafka_partition":0,"kafka_topic":"a\"b"},"offset":]] ..
        [[{"kafka_offset":42}},{"partition":{"kafka_partition":1,"kafka_topic":"t"},"offset":{"kafka_offset":7}}]}]],
        call("OFFSETS", "k").offsets)
      expect { "admin connector-worker-adminclient-k", "offsets of connect-k" }
      sink["consumer.override.group.id"] = "bad"
      call("CREATE", "l", { config = sink })
      local a = call("OFFSETS", "l")
      assert.same({ 500, "Failed to retrieve consumer group offsets for sink connector l" }, { a.status, a.error })
    end)
  end)

  describe("alone", function()
    before_each(function()
      start(-1, { ["offset.storage.file.filename"] = os.tmpname() })
      local a = call("CREATE", "c", { config = source { ["tasks.max"] = "2" } })
      assert.same({ 201, true, 2, "source" }, { a.status, a.created, a.info.ntasks, a.info.type })
      expect { "start c STARTED g0", "start c-0 of 2 STARTED g0", "start c-1 of 2 STARTED g0" }
      clear()
    end)

    it("creates and replaces with an answer that knows the tasks", function()
      assert.equal(409, call("CREATE", "c", { config = source() }).status)
      local a = call("PUT_CONFIG", "c", { config = source() })
      assert.same({ 200, false, 1 }, { a.status, a.created, a.info.ntasks })
      expect { "stop c g0", "afresh c", "start c STARTED g0", "stop c-0 g0", "stop c-1 g0", "start c-0 of 1 STARTED g0" }
      clear()
      a = call("PATCH_CONFIG", "c", { config = { topic = "u" } })
      assert.same({ 200, "u" }, { a.status, a.info.config.topic })
      expect { "stop c-0 g0", "start c-0 of 1 STARTED g0" }
      a = call("CREATE", "s", { config = source(), initial_state = C.LC_TARGET_STOPPED })
      assert.same({ 201, 0 }, { a.status, a.info.ntasks })
      assert.equal(STOPPED, (states "s"))
      sim.sim_fail("x", "")
      a = call("CREATE", "x", { config = source() })
      assert.same({ 500, "it does not start" }, { a.status, a.error })
      assert.equal(FAILED, (states "x")) -- its config stays
      assert.equal(200, call("INFO", "x").status)
    end)

    it("pauses, stops and resumes", function()
      assert.equal(202, call("PAUSE", "c").status)
      expect { "afresh c", "target c-0 PAUSED", "target c-1 PAUSED", "target c PAUSED" }
      assert.equal(204, call("STOP", "c").status)
      expect { "stop c-0 g0", "stop c-1 g0", "afresh c", "target c STOPPED" }
      assert.equal(0, #call("STATUS", "c").state.tasks)
      clear()
      assert.equal(202, call("RESUME", "c").status)
      expect { "afresh c", "target c STARTED", "start c-1 of 2 STARTED g0" }
      local a = call("STOP", "zz")
      assert.same({ 500, "No connector `zz` configured" }, { a.status, a.error })
      assert.equal("Unknown connector zz", call("PAUSE", "zz").error)
    end)

    it("restarts", function()
      assert.equal(204, call("RESTART", "c").status)
      assert.equal(204, call("RESTART_TASK", "c", { task = 1 }).status)
      expect { "stop c g0", "start c STARTED g0", "stop c-1 g0", "start c-1 of 2 STARTED g0" }
      clear()
      local a = call("RESTART", "c", { include_tasks = true })
      assert.same({ 202, RESTARTING, { RESTARTING, RESTARTING } },
        { a.status, tonumber(a.state.connector), a.state.tasks })
      expect { "stop c g0", "stop c-0 g0", "stop c-1 g0", "start c STARTED g0", "start c-1 of 2 STARTED g0" }
      assert.equal("Unknown connector: zz", call("RESTART", "zz", { include_tasks = true }).error)
      assert.equal(404, call("RESTART", "zz").status)
      a = call("RESTART_TASK", "c", { task = 99 })
      assert.same({ 404, "Task c-99 not found" }, { a.status, a.error })
    end)

    it("deletes with the statuses", function()
      assert.equal(204, call("DELETE", "c").status)
      expect { "stop c-0 g0", "stop c-1 g0", "stop c g0" }
      assert.equal(404, call("STATUS", "c").status)
      local a = call("DELETE", "c")
      assert.same({ 404, "Connector c not found" }, { a.status, a.error })
    end)

    it("follows a connector that asks for other tasks only when they differ", function()
      sim.sim_reconfigure(H.h, "c")
      assert.equal(200, call("HEALTH").status)
      assert.equal(204, call("RESTART", "c").status)
      assert.is_nil(listen():find("stop c-0", 1, true))
    end)
  end)

  it("answers everything when it stops", function()
    start()
    call("CREATE", "c", { config = source() })
    expect { "start c-0 of 1 STARTED g3" }
    clear()
    sim.sim_stop(H.h)
    H.h = nil
    expect { "stop c-0 g3", "stop c g3", "left" }
  end)

  for _, protocol in ipairs { 2, 0 } do
    it("keeps up with requests that come while work is dealt, protocol " .. protocol, function()
      start(protocol, { ["scheduled.rebalance.max.delay.ms"] = "0" })
      for i = 1, 8 do assert.equal(201, call("CREATE", "c" .. i, { config = source { ["tasks.max"] = "2" } }).status) end
      for i = 1, 8 do
        local n = "c" .. i
        assert.equal(202, call("PAUSE", n).status)
        assert.equal(202, call("RESUME", n).status)
        call("RESTART", n)
        if i == 3 then sim.sim_members(1, 0) end
        call("RESTART_TASK", n, { task = 0 })
        if i % 3 == 0 then assert.equal(204, call("STOP", n).status) end
        if i == 6 then sim.sim_members(0, 0) end
        if i % 4 == 0 then assert.equal(204, call("DELETE", n).status) end
      end
      assert.equal(200, call("HEALTH").status)
      assert.is_nil(listen():find("ERROR", 1, true))
      wait("all tasks", function()
        for i = 1, 8 do
          local s, t = states("c" .. i)
          local want = i % 4 == 0 and -1 or i % 3 == 0 and 0 or 2
          if want < 0 then
            if s then return false end
          elseif not t or #t ~= want or (t[2] or RUNNING) ~= RUNNING then
            return false
          end
        end
        return true
      end)
    end)
  end

  it("says what it is doing", function()
    start()
    local b = ffi.new "lc_buf_t"
    wait("idle", function()
      b.len = 0
      sim.sim_stage(H.h, b)
      return ffi.string(b.p, b.len):find("^The worker is currently polling the group coordinator until interrupted, " ..
        "which began at %d+%-%d%d%-%d%dT[%d:]+%.%d%d%dZ%.$") ~= nil
    end)
    C.lc_buf_free(b)
  end)

  it("lists with infos and statuses", function()
    start()
    call("CREATE", "c", { config = source() })
    wait("a status", function() return call("STATUS", "c").status == 200 end)
    local a = call("LIST", nil, { want_info = true, want_status = true })
    assert.same({ { "c" }, 1, true, true }, { a.names, a.ninfos, a.has_info, a.has_state })
    assert.equal([[{"offsets":[]}]], call("OFFSETS", "c").offsets)
    local v = call("VALIDATE", nil, { config = source { name = "v" } })
    assert.same({ 200, true }, { v.status, v.infos })
    v = call("VALIDATE", nil, { config = { a = "b" } })
    assert.equal(500, v.status)
    assert.truthy(v.error:find("contains no connector type", 1, true))
  end)

  it("keeps topics to itself when tracking is off", function()
    start(1, { ["topic.tracking.enable"] = "false" })
    assert.same({ 403, "Topic tracking is disabled." }, { call("TOPICS", "c").status, call("TOPICS", "c").error })
    assert.equal("Topic tracking is disabled.", call("TOPICS_RESET", "c").error)
  end)
end)

describe("the session key", function()
  local function snapshot(key, algorithm, created)
    local s = ffi.new "lc_config_snapshot_t"
    s.session_key = ffi.cast("char *", key)
    s.session_key_algorithm = ffi.cast("char *", algorithm)
    s.session_key_created = created or 0
    return s
  end
  local key32 = ("A"):rep(43) .. "="

  it("is due when there is none, it is old, or the settings are others", function()
    local wc = worker_config { ["inter.worker.key.ttl.ms"] = "1000" }
    assert.is_true(C.lc_session_key_due(wc, snapshot(nil, nil), 5))
    assert.is_false(C.lc_session_key_due(wc, snapshot(key32, "HmacSHA256", 5000), 5999))
    assert.is_true(C.lc_session_key_due(wc, snapshot(key32, "HmacSHA256", 5000), 6000))
    assert.is_true(C.lc_session_key_due(wc, snapshot(key32, "HmacSHA1", 5000), 5001))
    assert.is_true(C.lc_session_key_due(wc, snapshot("AAAA", "HmacSHA256", 5000), 5001))
    C.lc_worker_config_free(wc)
    wc = worker_config { ["inter.worker.key.ttl.ms"] = "0" }
    assert.is_false(C.lc_session_key_due(wc, snapshot(key32, "HmacSHA256", 1), 1LL * 2 ^ 52))
    C.lc_worker_config_free(wc)
  end)

  it("is made of as many bytes as Java's", function()
    local wc = worker_config()
    local err = core.err()
    local a, b = C.lc_session_key_make(wc, err), C.lc_session_key_make(wc, err)
    assert.equal(44, #ffi.string(a))
    assert.not_equal(ffi.string(a), ffi.string(b))
    assert.is_false(C.lc_session_key_due(wc, snapshot(a, "HmacSHA256", 10), 11))
    ffi.C.free(a)
    ffi.C.free(b)
    C.lc_worker_config_free(wc)
  end)
end)
