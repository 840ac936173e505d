-- The assignors where not every member can run every connector (lc_assignor_round_t.can_run, herder/placement.h).
local paper = require "spec.support.paper_cluster"
local cluster, count = paper.new, paper.count

local function connector(item) return (item:gsub("%-%d+$", "")) end

--- Who can run what, by a table { connector = { id = false } }.
local function by_table(t)
  return function(id, name) return not (t[name] and t[name][id] == false) end
end

--- Nothing is where it cannot run while it could elsewhere, and no single move would make the loads more even.
local function check(c)
  local function some(name)
    for id in pairs(c.members) do if c.can(id, name) then return true end end
  end
  local function may(id, name) return not some(name) or c.can(id, name) end
  assert.same(c:configured(), c:all())
  for id, m in pairs(c.members) do
    for _, item in ipairs(m.work) do
      local name, tasks = connector(item), item ~= connector(item)
      assert.is_true(may(id, name), item .. " is on " .. id)
      for to, other in pairs(c.members) do
        if to ~= id and may(to, name) then
          local here, there = m.work, other.work
          local more = c.protocol == 0 and #here - #there or count(here, tasks) - count(there, tasks)
          assert.is_true(more < 2, ("%s should be on %s instead of %s"):format(item, to, id))
        end
      end
    end
  end
end

describe("assignor, work that not all can run", function()
  for _, protocol in ipairs { 0, 2 } do
    local name = protocol == 0 and "eager" or "cooperative"

    it(name .. " gives it to the least loaded that can", function()
      local c = cluster { protocol = protocol, work = { a = 2, b = 1, c = 1 },
        can = by_table { a = { w1 = false }, b = { w1 = false } } }
      c:join "w1"
      c:join "w2"
      c:join "w3"
      c:round()
      check(c)
      for _, item in ipairs(c.members.w1.work) do assert.equal("c", connector(item)) end
    end)

    it(name .. " deals what nobody can run as if all could", function()
      local can = { a = { w1 = false, w2 = false } }
      local c = cluster { protocol = protocol, work = { a = 3, b = 1 }, can = by_table(can) }
      local free = cluster { protocol = protocol, work = { a = 3, b = 1 } }
      for _, each in ipairs { c, free } do
        each:join "w1"
        each:join "w2"
      end
      assert.same(free:round(), c:round())
      assert.same(free:round(), c:round())
    end)

    it(name .. " answers as without the question when all can run all", function()
      local c = cluster { protocol = protocol, can = function() return true end }
      local free = cluster { protocol = protocol }
      for step = 1, 6 do
        for _, each in ipairs { c, free } do
          each:join("w" .. step)
          each.work["c" .. step] = step
        end
        for _ = 1, 3 do assert.same(free:round(), c:round()) end
      end
    end)
  end

  it("takes work from who cannot run it, also while lost work is waited for", function()
    local can = {}
    local c = cluster { work = { a = 1, b = 1 }, can = by_table(can) }
    c:join "w1"
    c:round()
    c:join "w2"
    can.a = { w1 = false }
    local r = c:round()
    assert.same({ "a", "a-0" }, r.w1.revoked)
    r = c:round()
    assert.same({ "a", "a-0" }, r.w2.assigned)
    c:converge(5)
    check(c)
    c.work.c, can.c = 1, {} -- goes to w1, who now has b and c; a third one comes and goes
    c:join "w3"
    c.members.w3.work, c.members.w1.work = { "c", "c-0" }, { "b", "b-0" }
    c:converge(5)
    c:leave "w3"
    can.b = { w1 = false }
    r = c:round()
    assert.equal(300000, r.w1.delay)
    assert.same({ "b", "b-0" }, r.w1.revoked)
    r = c:round()
    assert.equal(300000, r.w1.delay)
    assert.same({ "b", "b-0" }, r.w2.assigned)
    c:converge(8)
    check(c)
  end)

  it("leaves uneven what cannot be made even, and is quiet", function()
    local c = cluster { work = { a = 8 }, can = by_table { a = { w2 = false } } }
    c:join "w1"
    c:join "w2"
    local rounds, taken = c:converge(3)
    assert.equal(2, rounds)
    assert.equal(0, taken)
    assert.equal(9, #c.members.w1.work)
  end)

  it("moves along a chain of members", function()
    -- w3 can take only b's; b's are on w2, which can take a's from w1
    local c = cluster { max_delay = 0, work = { a = 6, b = 6 }, can = by_table { a = { w3 = false }, b = { w1 = false } } }
    c:join "w1"
    c:join "w2"
    c:converge(6)
    c:join "w3"
    c:converge(6)
    check(c)
    for _, id in ipairs { "w1", "w2", "w3" } do assert.equal(4, count(c.members[id].work, true), id) end
  end)

  it("gives a returned member's work only to candidates that can run it", function()
    local can = {}
    local c = cluster { work = { a = 1, b = 1, c = 1, d = 1 }, can = by_table(can) }
    c:join "w1"
    c:join "w2"
    c:round()
    c:leave "w2"
    c:round()
    c:join "w3"
    can.b, can.d = { w3 = false }, { w3 = false }
    c:round()
    c.now = c.now + 300000
    c:converge(8)
    check(c)
  end)

  for seed = 1, 60 do
    it("settles in generated histories, seed " .. seed, function()
      math.randomseed(seed)
      local can, ids, n = {}, {}, 0
      local c = cluster { protocol = seed % 5 == 0 and 0 or 2, max_delay = ({ 0, 10000, 300000 })[seed % 3 + 1],
        can = by_table(can) }
      local chance = ({ 2, 4, 10 })[seed % 3 + 1]
      local function join()
        local id = ("w%d-%d"):format(#ids + 1, math.random(1000))
        ids[#ids + 1] = id
        c:join(id)
        for name in pairs(c.work) do can[name][id] = math.random(chance) > 1 end
      end
      local function create()
        n = n + 1
        c.work["c" .. n], can["c" .. n] = math.random(0, 6), {}
        for id in pairs(c.members) do can["c" .. n][id] = math.random(chance) > 1 end
      end
      for _ = 1, math.random(1, 5) do join() end
      for _ = 1, math.random(1, 20) do create() end
      for _ = 1, 10 do
        local limit = 12
        if c.protocol == 0 then
          c:round()
          local before = c:all()
          c:round()
          assert.same(before, c:all())
        else
          c:converge(limit)
        end
        check(c)
        local kind = math.random(1, 5)
        local here = {}
        for _, id in ipairs(ids) do if c.members[id] then here[#here + 1] = id end end
        local one = here[math.random(#here)]
        if kind == 1 and #here < 7 then
          join()
        elseif kind == 2 and #here > 1 then
          c:leave(one)
        elseif kind == 3 then
          create()
        elseif kind == 4 then -- it gets or loses plugins
          for name in pairs(c.work) do can[name][one] = math.random(chance) > 1 end
        else
          c:leave(one)
          join()
        end
      end
    end)
  end
end)
