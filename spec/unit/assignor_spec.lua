-- The leader's assignors, round by round, with time passed in (reference group 4.1, 5).
local core = require "spec.support.core"
local C, ffi = core.load { "base/err.h", "base/buf.h", "kafka/group.h", "herder/assignor.h" }
local work = require "spec.support.work"

-- A cluster on paper: each member keeps what it was given minus what was revoked, as the members do.
local Cluster = {}
Cluster.__index = Cluster

local function cluster(t)
  t = t or {}
  local c = setmetatable({ members = {}, now = 1000, generation = 0, offset = 5, work = t.work or {} }, Cluster)
  c.protocol = t.protocol or 2
  c.assignor = ffi.gc(C.lc_assignor_new(t.max_delay or 300000), C.lc_assignor_free)
  c.last = -1
  return c
end

local function keys(t)
  local list = {}
  for k in pairs(t) do list[#list + 1] = k end
  table.sort(list)
  return list
end

function Cluster:join(id, offset) self.members[id] = { work = {}, offset = offset } end
function Cluster:leave(id) self.members[id] = nil end

--- One round. Returns { id = { assigned=, revoked=, delay=, error=, offset= } }; lost = { id = true }: those do not
-- get their answer.
function Cluster:round(lost)
  self.generation = self.generation + 1
  local ids = keys(self.members)
  local members = ffi.new("lc_group_member_t[?]", #ids)
  local out = ffi.new("lc_assignment_t[?]", #ids)
  local names = keys(self.work)
  local configured = ffi.new("lc_assignor_work_t[?]", #names + 1)
  for i, name in ipairs(names) do
    configured[i - 1].connector, configured[i - 1].ntasks = name, self.work[name]
  end
  for i, id in ipairs(ids) do
    local url = "http://" .. id .. "/"
    self.members[id].url = url -- keeps the string alive
    members[i - 1].id, members[i - 1].url = id, url
    members[i - 1].config_offset = self.members[id].offset or self.offset
    work.fill(members[i - 1].allocation, self.members[id].work)
  end
  local round = ffi.new "lc_assignor_round_t"
  round.protocol, round.generation, round.last_generation = self.protocol, self.generation, self.last
  round.config_offset, round.work, round.nwork = self.offset, configured, #names
  round.members, round.nmembers, round.now_ms = members, #ids, self.now
  self.rc = C.lc_assignor_assign(self.assignor, round, out)
  local result = {}
  for i, id in ipairs(ids) do
    local o = out[i - 1]
    local r = { assigned = work.list(o.assigned), revoked = work.list(o.revoked), delay = o.delay_ms, error = o.error,
      offset = tonumber(o.config_offset) }
    result[id] = r
    C.lc_assignment_clear(o)
    C.lc_work_free(members[i - 1].allocation)
    if not (lost and lost[id]) and r.error == 0 then
      local own = {}
      if self.protocol > 0 then for _, item in ipairs(self.members[id].work) do own[item] = true end end
      for _, item in ipairs(r.revoked) do own[item] = nil end
      for _, item in ipairs(r.assigned) do own[item] = true end
      self.members[id].work = keys(own)
    end
  end
  if not lost then self.last = self.generation end
  return result
end

local function revoked(r)
  local n = 0
  for _, o in pairs(r) do n = n + #o.revoked end
  return n
end

--- Rounds until nobody has to give anything back (each member that did rejoins at once).
function Cluster:settle()
  for _ = 1, 10 do
    local r = self:round()
    if revoked(r) == 0 then return r end
  end
  error "does not settle"
end

function Cluster:all()
  local list = {}
  for _, m in pairs(self.members) do for _, item in ipairs(m.work) do list[#list + 1] = item end end
  table.sort(list)
  return list
end

local function count(list, tasks)
  local n = 0
  for _, item in ipairs(list) do if (item:match "%-%d+$" ~= nil) == tasks then n = n + 1 end end
  return n
end

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
