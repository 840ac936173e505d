-- Membership against a coordinator of our own (every error, every rule of the herder) and, once, librdkafka's
-- mock cluster. The real broker's turn is spec/kafka/group_spec.lua.
local core = require "spec.support.core"
local C, ffi = core.load { "base/err.h", "base/buf.h", "base/log.h", "base/clock.h", "kafka/group.h",
  "kafka/wire/connect_protocol.h" }
local fake = require "spec.support.fake_coordinator"
local probe = require "spec.support.group_probe"
local proc = require "spec.support.proc"
local with = require "spec.support.with"
local work = require "spec.support.work"

describe("work", function()
  it("is a sorted set", function()
    local w = ffi.gc(work.fill(ffi.new "lc_work_t", { "b-10", "b-9", "a", "b", "b-10", "a-0" }), C.lc_work_free)
    assert.same({ "a", "a-0", "b", "b-9", "b-10" }, work.list(w))
    assert.is_true(C.lc_work_has(w, "b", 9))
    assert.is_false(C.lc_work_has(w, "b", 1))
    C.lc_work_remove(w, "b", 9)
    C.lc_work_remove(w, "b", 9)
    for i = 20, 40 do C.lc_work_add(w, "b", i) end
    assert.equal(25, tonumber(w.n))
    C.lc_work_copy(w, w)
    assert.equal(25, tonumber(w.n))
  end)
end)

describe("group member", function()
  local broker

  setup(function() C.lc_log_set_level("GROUP", os.getenv "LC_SPEC_LOG" or "off") end)
  teardown(function() C.lc_log_set_level("GROUP", "info") end)
  before_each(function() broker = fake.new() end)
  after_each(function()
    probe.stop_all()
    broker:close()
  end)

  local function member(t)
    t = t or {}
    t.bootstrap, t.group = t.bootstrap or broker.bootstrap, "g"
    local config = with({ ["retry.backoff.ms"] = 20, ["session.timeout.ms"] = 600, ["heartbeat.interval.ms"] = 50,
      ["rebalance.timeout.ms"] = 60000 }, t.config)
    t.config = config
    return probe.member(t)
  end

  it("joins as leader of one, computes and gets its work; leaves", function()
    local m = member { start = false }
    m:configure("a", 2)
    m:start()
    assert.equal(2, m:wait("preparing").protocol)
    local e = m:assignment()
    assert.equal(2, e.protocol)
    assert.equal(1, e.generation)
    assert.is_true(e.assignment.leader)
    assert.equal("http://h:8083/", e.assignment.leader_url)
    assert.same({ "a", "a-0", "a-1" }, e.assignment.assigned)
    assert.equal(1, e.assignment.offset)
    assert.equal(1, C.lc_group_last_generation(m.group))
    assert.is_true(m:silent("preparing", 200))
    assert.is_true(broker:seen(fake.HEARTBEAT) >= 2)
    assert.is_true(m:stop() < 20000)
    assert.equal(1, broker:seen(fake.LEAVE))
  end)

  it("reports what it runs, as Java does", function()
    local m = member { start = false }
    m:configure("a", 1)
    m:start()
    m:wait "assigned"
    local meta = assert(work.decode_metadata(broker:metadata()))
    assert.is_false(meta.has_allocation)
    assert.equal(1, tonumber(meta.config_offset))
    m.own = { "a", "a-0" }
    m.offset = 4
    m:report()
    C.lc_group_assignment_done(m.group, 1)
    m:rejoin()
    m:wait "assigned"
    meta = assert(work.decode_metadata(broker:metadata()))
    assert.equal(4, tonumber(meta.config_offset))
    assert.same({ "a", "a-0" }, work.list(meta.allocation.assigned))
    assert.equal("member-1", ffi.string(meta.allocation.leader))
    assert.equal(1, tonumber(meta.allocation.config_offset))
  end)

  it("follows another leader", function()
    local a = work.assignment { leader = "other", leader_url = "http://o/", offset = 7, assigned = { "x-3" },
      revoked = { "y" }, delay = 9 }
    broker:lead("other", work.encode_assignment(2, a))
    local m = member()
    local e = m:wait "assigned"
    assert.is_false(e.assignment.leader)
    assert.same({ "x-3" }, e.assignment.assigned)
    assert.same({ "y" }, e.assignment.revoked)
    assert.equal(9, e.assignment.delay)
    assert.equal("http://o/", e.assignment.leader_url)
  end)

  it("does not act on an assignment it cannot read, but joins again", function()
    broker:lead("other", "\0\2\0\0\0\3x")
    local m = member()
    assert.is_true(m:silent("assigned", 300))
    assert.is_true(broker:seen(fake.JOIN) > 3)
    local a = work.assignment { leader = "other", leader_url = "u" }
    broker:lead("other", work.encode_assignment(2, a))
    m:wait "assigned"
  end)

  it("does not join again before the herder is done", function()
    local m = member()
    local e = m:wait "assigned"
    m:rejoin()
    assert.is_true(m:silent("preparing", 300))
    local beats = broker:seen(fake.HEARTBEAT)
    assert.is_true(beats >= 2, "heartbeats go on")
    m:apply(e)
    m:assignment()
  end)

  it("joins all the same when the herder is not done within the rebalance timeout", function()
    local m = member { config = { ["rebalance.timeout.ms"] = 500 } }
    m:wait "assigned"
    m:rejoin()
    assert.equal(2, m:wait "assigned".generation)
  end)

  it("joins again by itself after an assignment with an error", function()
    local m = member { start = false }
    m.offset = 9 -- reports more than the leader (itself) has read
    m:report()
    m:start()
    local e = m:wait "assigned"
    assert.equal(1, e.assignment.error)
    assert.equal(9, e.assignment.offset)
    assert.same({}, e.assignment.assigned)
    m:apply(e)
    m:configure("a", 0)
    repeat
      e = m:assignment()
    until e.assignment.error == 0
    assert.same({ "a" }, e.assignment.assigned)
  end)

  for name, code in pairs { REBALANCE_IN_PROGRESS = 27, UNKNOWN_MEMBER_ID = 25, ILLEGAL_GENERATION = 22 } do
    it("joins again when a heartbeat says " .. name, function()
      local m = member()
      local first = m:assignment()
      broker:errors(fake.HEARTBEAT, code)
      local second = m:assignment()
      assert.equal(2, second.generation)
      assert.equal(code == 25, first.assignment.member_id ~= second.assignment.member_id)
    end)
  end

  it("finds the coordinator again when it moved, and stays a member", function()
    local m = member { config = { ["session.timeout.ms"] = 30000, ["heartbeat.interval.ms"] = 5000 } }
    m:assignment()
    broker:errors(fake.HEARTBEAT, 16, 15)
    broker:errors(fake.FIND, 15, 15)
    require("spec.support.proc").wait_for("the search for the coordinator", function()
      return broker:seen(fake.FIND) >= 5
    end, 30)
    assert.is_true(m:silent("preparing", 300))
    m:rejoin()
    assert.equal(2, m:assignment().generation)
  end)

  it("goes on as a member when the connection breaks", function()
    local m = member()
    m:assignment()
    broker:set { hang_up = fake.HEARTBEAT }
    proc.wait_for("a heartbeat", function() return broker:seen(fake.HEARTBEAT) >= 2 end)
    broker:set {}
    assert.is_true(m:silent("preparing", 300))
  end)

  it("tries again while the coordinator loads or is not there", function()
    broker:errors(fake.FIND, 15, 15, 15)
    broker:errors(fake.JOIN, 14, 16, 15, 25, 27, -1)
    broker:errors(fake.SYNC, 27, 25, 22, 14)
    local m = member()
    m:assignment()
  end)

  it("does not spin while it tries again", function()
    for _ = 1, 30 do broker:errors(fake.JOIN, 16) end
    local m = member()
    assert.is_true(m:silent("assigned", 300))
    assert.is_true(broker:seen(fake.JOIN) < 30)
  end)

  for text, code in pairs {
    ["Not authorized to access group: g"] = 30, ["InconsistentGroupProtocolException"] = 23,
    ["The session timeout is not within the range"] = 26, ["The group has reached its maximum size"] = 81,
  } do
    it("gives up with Java's text: " .. text, function()
      broker:errors(fake.JOIN, code)
      local m = member()
      assert.truthy(m:wait("error").text:find(text, 1, true))
      assert.is_nil(m:next(200))
      assert.is_true(m:stop() < 20000)
    end)
  end

  it("gives up when it may not look the group up", function()
    broker:errors(fake.FIND, 30)
    assert.equal("Not authorized to access group: g", member():wait("error").text)
  end)

  it("leaves a broker that speaks only the old LeaveGroup, too", function()
    broker:set { leave_max = 1 }
    local m = member()
    m:assignment()
    m:stop()
    assert.equal(1, broker:seen(fake.LEAVE))
  end)

  it("says once that the coordinator is lost, waits until all has stopped, and comes back", function()
    local m = member { config = { ["heartbeat.interval.ms"] = 300 } }
    m:configure("a", 1)
    local e = m:wait "assigned"
    m.own = { "a", "a-0" }
    m:report()
    C.lc_group_assignment_done(m.group, e.generation)
    local port, t = broker.port, proc.now()
    broker:close()
    m:wait "lost"
    assert.is_true(proc.now() - t > 0.25)
    assert.is_true(m:silent("lost", 600))
    broker = fake.new(port)
    assert.is_true(m:silent("assigned", 500), "joined although work was running")
    m.own = {}
    m:report()
    m:assignment()
    assert.is_false(assert(work.decode_metadata(broker:metadata())).has_allocation)
  end)

  it("is not fooled by silence: a stopped broker is lost after session and heartbeat interval", function()
    local m = member { config = { ["session.timeout.ms"] = 400, ["heartbeat.interval.ms"] = 200 } }
    m:assignment()
    local t = proc.now()
    broker:set { silent = fake.HEARTBEAT }
    proc.wait_for("a search for the coordinator", function()
      C.lc_group_tick(m.group)
      return broker:seen(fake.FIND) >= 2
    end)
    assert.is_true(proc.now() - t > 0.2)
    broker:set { silent = 18 } -- ApiVersions: nothing at all
    m:wait "lost"
    assert.is_true(proc.now() - t < 25) -- request.timeout.ms is 40 s
    assert.is_true(m:stop() < 20000)
  end)

  it("keeps looking for a broker that is not there yet, and stops at once", function()
    local late = { ["retry.backoff.ms"] = 60000, ["retry.backoff.max.ms"] = 60000 } -- the wait that is cut short
    local m = member { bootstrap = "127.0.0.1:" .. proc.free_port(), config = late }
    assert.is_true(m:silent("error", 300))
    assert.is_true(m:stop() < 20000)
    m = member { bootstrap = "no-such-host.invalid:1", config = late }
    assert.is_true(m:silent("error", 200))
    assert.is_true(m:stop() < 20000)
  end)

  it("goes through all bootstrap servers", function()
    member { bootstrap = ("127.0.0.1:%d,[::1]:%d,%s"):format(proc.free_port(), proc.free_port(), broker.bootstrap) }
      :assignment()
  end)

  it("stops at once whatever it waits for", function()
    for _, api in ipairs { 18, fake.FIND, fake.JOIN, fake.SYNC, fake.HEARTBEAT } do
      broker:set { silent = api }
      local m = member()
      proc.wait_for("request " .. api, function() return broker:seen(api) > 0 end)
      assert.is_true(m:stop() < 20000, "request " .. api)
      broker:close()
      broker = fake.new()
    end
  end)

  it("survives garbage", function()
    for _, n in ipairs { 1, 4, 5, 9, 60 } do
      broker:set { garbage = n }
      local m = member()
      assert.is_true(m:silent("error", 60))
      m:stop()
    end
    broker:set {}
    member():assignment()
  end)

  it("leaves for a while when asked to", function()
    local m = member()
    m:assignment()
    m:leave(500)
    assert.is_true(m:silent("preparing", 350))
    assert.equal(1, broker:seen(fake.LEAVE))
    assert.equal("member-2", m:assignment().assignment.member_id)
  end)

  it("leaves when the herder is silent for rebalance.timeout.ms, returns with it", function()
    local m = member { config = { ["rebalance.timeout.ms"] = 300 } }
    m:assignment()
    proc.wait_for("LeaveGroup", function() return broker:seen(fake.LEAVE) == 1 end)
    assert.is_nil(m:next(300))
    m:tick()
    assert.equal("member-2", m:assignment().assignment.member_id)
  end)

  it("eager: stops all work before it joins", function()
    local m = member { config = { ["connect.protocol"] = "EAGER" } }
    m:configure("a", 1)
    local e = m:assignment()
    if #m.own == 0 then -- it joined before the connector was there
      m:rejoin()
      e = m:assignment()
    end
    assert.equal(0, e.protocol)
    assert.same({ "a", "a-0" }, e.assignment.assigned)
    m:rejoin()
    assert.equal(0, m:wait("preparing").protocol)
    assert.is_true(m:silent("assigned", 300))
    m.own = {}
    m:report()
    assert.same({ "a", "a-0" }, m:assignment().assignment.assigned)
  end)

  it("offers only what connect.protocol allows", function()
    local m = member { config = { ["connect.protocol"] = "compatible" } }
    assert.equal(1, m:assignment().protocol)
  end)

  it("refuses settings it cannot serve, by name", function()
    local function refused(config)
      local m, msg = member { config = config, start = false }
      assert.is_nil(m)
      return msg
    end
    assert.truthy(refused { ["security.protocol"] = "SASL_PLAINTEXT" }:find("sasl.mechanism", 1, true))
    assert.truthy(refused { ["security.protocol"] = "SASL_PLAINTEXT", ["sasl.mechanism"] = "PLAIN" }
      :find("sasl.jaas.config", 1, true))
    assert.truthy(refused { ["security.protocol"] = "SSL", ["ssl.truststore.location"] = "/no/such/ca.pem" }
      :find("/no/such/ca.pem", 1, true))
    local jks = proc.tmpdir "jks" .. "/t.jks"
    proc.write(jks, "\254\237\254\237\0\0\0\2")
    assert.truthy(refused { ["security.protocol"] = "SSL", ["ssl.truststore.location"] = jks }:find("JKS", 1, true))
  end)

  describe("may work", function()
    local function may(m) return C.lc_group_may_work(m.group) end
    local function becomes(m, yes)
      proc.wait_for("may_work " .. tostring(yes), function()
        C.lc_group_tick(m.group)
        return may(m) == yes
      end)
    end
    local function working(config)
      local m = member { start = false, config = config }
      m:configure("a", 1)
      assert.is_false(may(m))
      m:start()
      while #m.own == 0 do
        m:assignment()
        if #m.own == 0 then m:rejoin() end
      end
      assert.is_true(may(m))
      return m
    end

    it("with its first assignment, and no longer than a session after the last answer", function()
      local session = 600 * proc.slow
      -- the interval is how long the coordinator may be looked for before the work is lost: a busy host needs some time
      local m = working { ["session.timeout.ms"] = session, ["heartbeat.interval.ms"] = session - 100 }
      assert.is_true(m:silent("preparing", 2 * session)) -- of heartbeats
      assert.is_true(may(m))
      broker:set { silent = fake.HEARTBEAT }
      local t = proc.now()
      becomes(m, false)
      assert.is_true(proc.now() - t < session / 1000 + 0.65)
      broker:set {}
      becomes(m, true) -- the broker has kept the member
    end)

    it("not when put out, until the new assignment was applied and all had stopped before", function()
      local m = working()
      broker:errors(fake.HEARTBEAT, 25)
      m:wait "lost"
      assert.is_false(may(m))
      assert.is_true(m:silent("assigned", 300), "joined although work was running")
      m.own = {}
      m:report()
      local e = m:wait "assigned"
      assert.is_false(assert(work.decode_metadata(broker:metadata())).has_allocation)
      assert.is_false(may(m))
      m:apply(e)
      assert.is_true(may(m))
    end)

    for name, api in pairs { JoinGroup = fake.JOIN, SyncGroup = fake.SYNC } do
      it("not when put out in a " .. name, function()
        local m = working()
        broker:errors(api, 25)
        m:rejoin()
        m:wait "lost"
        assert.is_false(may(m))
        m.own = {}
        m:report()
        m:assignment()
        assert.is_true(may(m))
      end)
    end

    it("after ILLEGAL_GENERATION only if it was not silent before", function()
      local m = working()
      broker:errors(fake.HEARTBEAT, 22)
      assert.is_true(m:silent("lost", 200))
      assert.is_true(may(m))
    end)

    it("while a JoinGroup waits for other members longer than a session", function()
      local m = working()
      broker:set { silent = fake.JOIN }
      m:rejoin()
      m:wait "preparing"
      local stop = proc.now() + 1.5
      while proc.now() < stop do
        C.lc_group_tick(m.group)
        assert.is_true(may(m))
        m:next(10)
      end
    end)

    it("not after leaving; what was kept for less than a session is reported again", function()
      local m = working()
      m:leave(100)
      becomes(m, false)
      local e = m:wait "assigned"
      assert.same({ "a", "a-0" }, work.list(assert(work.decode_metadata(broker:metadata())).allocation.assigned))
      assert.is_false(may(m))
      m:apply(e)
      assert.is_true(may(m))
    end)

    it("not after leaving for longer than a session: everything stops", function()
      local m = working()
      m:leave(700)
      m:wait "lost"
      m.own = {}
      m:report()
      m:assignment()
      assert.is_true(may(m))
    end)

    it("while the herder is silent for sessions, but not after rebalance.timeout.ms", function()
      local m = member { config = { ["session.timeout.ms"] = 300, ["rebalance.timeout.ms"] = 2000 } }
      m:configure("a", 1)
      m:assignment()
      m:tick()
      local stop = proc.now() + 1.5
      while proc.now() < stop do
        assert.is_true(may(m))
        m:next(20)
      end
      assert.equal(0, broker:seen(fake.LEAVE))
      proc.wait_for("LeaveGroup", function() return broker:seen(fake.LEAVE) == 1 end)
      assert.is_false(may(m))
      m:tick()
      m:wait "lost"
    end)
  end)

  it("asks every 100 ms for 3 s after a rebalance, then 12 times a session", function()
    local m = member { config = { ["session.timeout.ms"] = 10000, ["heartbeat.interval.ms"] = 3000 } }
    m:assignment()
    assert.is_true(m:silent("preparing", 5000))
    local n = broker:seen(fake.HEARTBEAT) -- 30 and 2; every 833 ms from the beginning would be 6
    assert.is_true(n >= 12 and n <= 40, n .. " heartbeats")
    assert.is_true(m:silent("preparing", 2000))
    local more = broker:seen(fake.HEARTBEAT) - n -- every 833 ms
    assert.is_true(more >= 1 and more <= 8, more .. " heartbeats")
  end)

  describe("as leader", function()
    local function given(metadata)
      broker:other("other", metadata)
      local m = member { start = false }
      m:configure("a", 3)
      m:start()
      local e = m:wait "assigned"
      return work.list(assert(work.decode_assignment(broker:given())).assigned), e.assignment.assigned
    end

    it("gives a member whose metadata cannot be read nothing, and the work to the others", function()
      for _, bytes in ipairs { "", "\0", "\0\2\0\3x", ("\255"):rep(40), "\0\2\0\1u" .. ("\0"):rep(8) .. "\127\255\255\255" } do
        local other, own = given(bytes)
        assert.same({}, other)
        assert.same({ "a", "a-0", "a-1", "a-2" }, own)
        probe.stop_all()
        broker:close()
        broker = fake.new()
      end
    end)

    it("reads what it knows of a newer version, and offsets that no topic has", function()
      local newer = "\0\3" .. work.encode_metadata(2, "http://o/", 1, nil):sub(3) .. "what comes later"
      assert.is_true(#given(newer) > 0)
      probe.stop_all()
      broker:close()
      broker = fake.new()
      assert.is_true(#given(work.encode_metadata(2, ("u"):rep(3000), -77, nil)) > 0)
    end)
  end)

  describe("bad answers:", function()
    local apis = { ApiVersions = 18, FindCoordinator = fake.FIND, JoinGroup = fake.JOIN, SyncGroup = fake.SYNC,
      Heartbeat = fake.HEARTBEAT }
    local function recovers(api, how, at)
      broker:spoil(api, how, at)
      local m = member { config = { ["retry.backoff.ms"] = 10, ["retry.backoff.max.ms"] = 10,
        ["heartbeat.interval.ms"] = 20 } }
      proc.wait_for("the last spoiled answer", function()
        C.lc_group_tick(m.group)
        local e = m:next(1)
        assert.is_not.equal("error", e and e.kind, e and e.text)
        if e and e.kind == "assigned" then m:apply(e) end
        return not broker:spoils()
      end, 60)
      m:rejoin()
      m:assignment()
      m:stop()
    end

    for name, api in pairs(apis) do
      it(name .. " ends after each byte", function() recovers(api, "short") end)
      it(name .. " is cut off after each byte", function() recovers(api, "cut") end)
      it(name .. " claims impossible lengths", function()
        for _, length in ipairs { 2147483647, -1, -2147483648, 0, 3, 16777217 } do
          broker:spoil(api, "length", length)
          local m = member { config = { ["retry.backoff.ms"] = 10, ["retry.backoff.max.ms"] = 10,
        ["heartbeat.interval.ms"] = 20 } }
          proc.wait_for("two attempts", function()
            C.lc_group_tick(m.group)
            return broker:seen(api) >= 2
          end, 10)
          assert.is_nil(table.concat(m.log, " "):match "error")
          broker:spoil(api, "random", 0)
          m:assignment()
          m:stop()
          broker:close()
          broker = fake.new()
        end
      end)
    end
  end)

  it("works with librdkafka's mock cluster", function()
    local cluster = require("spec.support.mock_cluster").new()
    local m = member { bootstrap = cluster:bootstrap(), config = { ["session.timeout.ms"] = 6000 } }
    m:configure("a", 1)
    assert.is_true(m:assignment().assignment.leader) -- after the mock's 3 s
    assert.is_true(m:stop() < 20000)
    cluster:close()
  end)
end)
