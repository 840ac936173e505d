-- The leader's assignors, round by round, with time passed in (reference group 4.1, 5).
local core = require "spec.support.core"
local C, ffi = core.load { "base/err.h", "base/buf.h", "kafka/group.h", "herder/assignor.h" }

local paper = require "spec.support.paper_cluster"
local cluster, revoked, count = paper.new, paper.revoked, paper.count

describe("cooperative assignor", function()
  it("gives a lone worker everything, new things only once", function()
    local c = cluster { work = { a = 2 } }
    c:join "w1"
    assert.same({ w1 = { assigned = { "a", "a-0", "a-1" }, revoked = {}, delay = 0, error = 0, offset = 5 } },
      c:round())
    assert.same({}, c:round().w1.assigned)
    c.work.b = 1
    assert.same({ "b", "b-0" }, c:round().w1.assigned)
    assert.same({ "a", "a-0", "a-1", "b", "b-0" }, c.members.w1.work)
  end)

  it("takes deleted connectors and dropped tasks away", function()
    local c = cluster { work = { a = 2, b = 1 } }
    c:join "w1"
    c:round()
    c.work.b = nil
    c.work.a = 1
    local r = c:round().w1
    assert.same({ "a-1", "b", "b-0" }, r.revoked)
    assert.same({}, r.assigned)
    r = c:round().w1
    assert.same({}, r.revoked)
    assert.same({ "a", "a-0" }, c.members.w1.work)
  end)

  it("deals to the least loaded in natural order: connectors, then tasks", function()
    local c = cluster { work = { a = 1, b = 1, c = 1 } }
    c:join "w1"
    c:join "w2"
    local r = c:round()
    assert.same({ "a", "a-0", "c", "c-0" }, r.w1.assigned)
    assert.same({ "b", "b-0" }, r.w2.assigned)
  end)

  it("moves a share to a joining worker in two rounds", function()
    local c = cluster { work = { a = 3, b = 3 } }
    c:join "w1"
    c:round()
    c:join "w2"
    local r = c:round()
    -- one of two connectors, three of six tasks, from the front; nothing new before they are stopped
    assert.same({ "a", "a-0", "a-1", "a-2" }, r.w1.revoked)
    assert.same({}, r.w2.assigned)
    assert.equal(0, r.w2.delay)
    r = c:round()
    assert.same({ "a", "a-0", "a-1", "a-2" }, r.w2.assigned)
    assert.equal(0, revoked(r))
    assert.same({ "a", "a-0", "a-1", "a-2", "b", "b-0", "b-1", "b-2" }, c:all())
    assert.equal(0, revoked(c:round()))
  end)

  it("never gives away what somebody still reports", function()
    local c = cluster { work = { a = 4 } }
    c:join "w1"
    c:round()
    c:join "w2"
    c:round { w1 = true } -- w1 never hears that it must stop
    for _ = 1, 4 do
      local r = c:round()
      local before = {}
      for _, id in ipairs { "w1", "w2" } do
        for _, item in ipairs(c.members[id].work) do
          assert.is_nil(before[item], item .. " runs twice")
          before[item] = id
        end
      end
      assert.equal(0, r.w1.error)
      c.now = c.now + 100000
    end
    assert.same({ "a", "a-0", "a-1", "a-2", "a-3" }, c:all())
    assert.equal(2, count(c.members.w2.work, true))
  end)

  it("revokes work that two members report from both", function()
    local c = cluster { work = { a = 1 } }
    c:join "w1"
    c:join "w2"
    c.members.w1.work = { "a", "a-0" }
    c.members.w2.work = { "a-0" }
    local r = c:round()
    assert.same({ "a-0" }, r.w1.revoked)
    assert.same({ "a-0" }, r.w2.revoked)
    r = c:settle()
    assert.equal(0, revoked(r))
    assert.same({ "a", "a-0" }, c:all())
  end)

  it("waits for a departed worker, then hands its work to the others", function()
    local c = cluster { work = { a = 1, b = 1 } }
    c:join "w1"
    c:join "w2"
    c:round()
    c:leave "w2"
    local r = c:round()
    assert.same({}, r.w1.assigned)
    assert.equal(300000, r.w1.delay)
    c.now = c.now + 100000
    assert.equal(200000, c:round().w1.delay)
    c.now = c.now + 200000
    r = c:round()
    assert.same({ "b", "b-0" }, r.w1.assigned)
    assert.equal(0, r.w1.delay)
  end)

  it("gives the work back to a worker that returns within the delay", function()
    local c = cluster { work = { a = 1, b = 1, c = 1, d = 1 } }
    c:join "w1"
    c:join "w2"
    c:round()
    assert.same({ "b", "b-0", "d", "d-0" }, c.members.w2.work)
    c:leave "w2"
    c:round()
    c.now = c.now + 1000
    c:join "w3"
    local r = c:round()
    assert.same({}, r.w3.assigned)
    assert.equal(299000, r.w3.delay)
    c.now = c.now + 299000
    r = c:round()
    assert.same({ "b", "b-0", "d", "d-0" }, r.w3.assigned)
    assert.same({}, r.w1.assigned)
    assert.equal(0, revoked(r))
  end)

  it("starts new connectors also while lost work waits", function()
    local c = cluster { work = { a = 1, b = 1 } }
    c:join "w1"
    c:join "w2"
    c:round()
    c:leave "w2"
    c:round()
    c.work.z = 1
    assert.same({ "z", "z-0" }, c:round().w1.assigned)
  end)

  it("reassigns lost work at once when the delay is 0", function()
    local c = cluster { work = { a = 1, b = 1 }, max_delay = 0 }
    c:join "w1"
    c:join "w2"
    c:round()
    c:leave "w2"
    local r = c:round()
    assert.same({ "b", "b-0" }, r.w1.assigned)
    assert.equal(0, r.w1.delay)
  end)

  it("reassigns at once what a member that stayed did not get", function()
    local c = cluster { work = { a = 1 } }
    c:join "w1"
    c:join "w2"
    c:round()
    local holder = #c.members.w1.work > 0 and "w1" or "w2"
    c.members[holder].work = {}
    local r = c:round()
    assert.equal(0, r.w1.delay)
    assert.same({ "a", "a-0" }, c:all())
  end)

  it("slows revocations down that follow each other", function()
    local c = cluster { work = { a = 8 } }
    c:join "w1"
    c:round()
    c:join "w2"
    assert.is_true(revoked(c:round()) > 0)
    c:join "w3" -- balancing would revoke again
    c.members.w2.work = {}
    local r = c:round()
    assert.equal(0, revoked(r))
    assert.equal(40, r.w1.delay)
    c.now = c.now + 40
    r = c:round()
    assert.is_true(revoked(r) > 0)
  end)

  it("forgets what it assigned when it missed a round", function()
    local c = cluster { work = { a = 2 } }
    c:join "w1"
    c:join "w2"
    c:round()
    c:leave "w2"
    c.last = 77 -- another member led in between
    local r = c:round()
    assert.equal(0, r.w1.delay)
    assert.same({ "a", "a-0", "a-1" }, c:all())
  end)

  it("keeps 5 workers and 50 connectors level through joins and leaves", function()
    local c = cluster { max_delay = 0 }
    for i = 1, 50 do c.work[("c%02d"):format(i)] = i % 4 end
    for i = 1, 5 do
      c:join("w" .. i)
      for _ = 1, 6 do c:round() end
    end
    local total = 0
    for _, n in pairs(c.work) do total = total + n end
    for id, m in pairs(c.members) do
      assert.equal(10, count(m.work, false), id)
      assert.equal(math.floor(total / 5), count(m.work, true), id)
    end
    c:leave "w3"
    for _ = 1, 6 do c:round() end
    assert.equal(50 + total, #c:all())
    for _, m in pairs(c.members) do
      assert.is_true(math.abs(count(m.work, false) - 12.5) < 1)
    end
  end)

  it("answers CONFIG_MISMATCH when it is behind a member", function()
    local c = cluster { work = { a = 1 } }
    c:join("w1", 5)
    c:join("w2", 9)
    local r = c:round()
    assert.equal(-1, c.rc)
    for _, id in ipairs { "w1", "w2" } do
      assert.equal(1, r[id].error)
      assert.equal(9, r[id].offset)
      assert.same({}, r[id].assigned)
    end
    c.offset = 12
    r = c:round()
    assert.equal(0, c.rc)
    assert.equal(12, r.w2.offset)
  end)

  it("knows the owners' URLs", function()
    local c = cluster { work = { a = 1, b = 1 } }
    c:join "w1"
    c:join "w2"
    c:round()
    local b = ffi.new "lc_buf_t"
    assert.is_true(C.lc_assignor_owner_url(c.assignor, "b", 0, b))
    assert.equal("http://w2/", ffi.string(b.p))
    C.lc_buf_free(b)
    assert.is_false(C.lc_assignor_owner_url(c.assignor, "b", 1, b))
    C.lc_assignor_forget_owners(c.assignor)
    assert.is_false(C.lc_assignor_owner_url(c.assignor, "b", 0, b))
  end)
end)

describe("eager assignor", function()
  it("deals everything anew, connectors and then tasks with one circle", function()
    local c = cluster { protocol = 0, work = { a = 1, b = 2, c = 1 } }
    c:join "w1"
    c:join "w2"
    local r = c:round()
    assert.same({ "a", "b-0", "c", "c-0" }, r.w1.assigned)
    assert.same({ "a-0", "b", "b-1" }, r.w2.assigned)
    assert.equal(0, r.w1.delay)
    c:leave "w1"
    assert.equal(7, #c:round().w2.assigned)
  end)
end)

-- Random clusters of our own making. What must hold whatever happens, see the assertions.
describe("cooperative assignor, generated histories", function()
  local function spread(c, tasks)
    local low, high = math.huge, 0
    for _, m in pairs(c.members) do
      local n = count(m.work, tasks)
      low, high = math.min(low, n), math.max(high, n)
    end
    return high - low
  end

  local function settled(c, what)
    local _, taken = c:converge(12)
    assert.same(c:configured(), c:all(), what)
    assert.is_true(spread(c, false) <= 1, what .. ": connectors are uneven")
    assert.is_true(spread(c, true) <= 1, what .. ": tasks are uneven")
    return taken
  end

  local function ids(c)
    local list = {}
    for id in pairs(c.members) do list[#list + 1] = id end
    table.sort(list)
    return list
  end

  for seed = 1, 70 do
    it("keeps everything assigned once and level, with few moves, seed " .. seed, function()
      math.randomseed(seed)
      local c = cluster { max_delay = ({ 0, 10000, 300000 })[seed % 3 + 1] }
      local n, joined = 0, 0
      local function join()
        joined = joined + 1
        local id = ("connect-127.0.0.1:%d-%08x"):format(8083 + joined, math.random(0, 2 ^ 31 - 1))
        c:join(id)
        return id
      end
      for _ = 1, math.random(1, 4) do join() end
      for _ = 1, math.random(0, 25) do
        n = n + 1
        c.work["c" .. n] = math.random(0, 6)
      end
      settled(c, "start")
      for step = 1, 12 do
        local kind, list = math.random(1, 6), ids(c)
        local what = ("step %d, kind %d"):format(step, kind)
        if kind == 1 and #list < 7 then
          local id = join()
          local taken = settled(c, what)
          -- only what the new one is to have moves
          assert.equal(#c.members[id].work, taken, what)
        elseif kind == 2 and #list > 1 then
          c:leave(list[math.random(#list)])
          assert.equal(0, settled(c, what), what) -- the others keep theirs
        elseif kind == 3 then
          for _ = 1, math.random(1, 5) do
            n = n + 1
            c.work["c" .. n] = math.random(0, 6)
          end
          assert.equal(0, settled(c, what), what)
        elseif kind == 4 and next(c.work) then
          local names = {}
          for name in pairs(c.work) do names[#names + 1] = name end
          table.sort(names)
          c.work[names[math.random(#names)]] = nil
          settled(c, what)
        elseif kind == 5 then -- one goes and another comes before the next round; the leader, too
          local old = list[math.random(#list)]
          c:leave(old)
          join()
          if math.random(2) == 1 then c:new_leader() end
          settled(c, what)
        else -- somebody does not get its answer
          join()
          c:round { [list[1]] = true }
          settled(c, what)
        end
      end
    end)
  end
end)
