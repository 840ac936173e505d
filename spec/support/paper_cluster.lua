-- spec/support/paper_cluster.lua: a group on paper that lc_assignor_assign() deals to, for the assignors' specs.
local core = require "spec.support.core"
local C, ffi = core.load { "base/err.h", "base/buf.h", "kafka/group.h", "herder/assignor.h" }
local work = require "spec.support.work"

local _M = {}

-- A cluster on paper: each member keeps what it was given minus what was revoked, as the members do.
local Cluster = {}
Cluster.__index = Cluster

--- t.work = { connector = number of tasks }, t.max_delay ms, t.protocol, t.can(id, connector) -> boolean.
function _M.new(t)
  t = t or {}
  local c = setmetatable({ members = {}, now = 1000, generation = 0, offset = 5, work = t.work or {} }, Cluster)
  c.protocol = t.protocol or 2
  c.assignor = ffi.gc(C.lc_assignor_new(t.max_delay or 300000), C.lc_assignor_free)
  c.last = -1
  c.max_delay = t.max_delay or 300000
  c.can = t.can
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

--- Another member leads from now on: a new assignor that knows nothing.
function Cluster:new_leader()
  self.assignor = ffi.gc(C.lc_assignor_new(self.max_delay), C.lc_assignor_free)
  self.last = -1
end

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
  local ask
  if self.can then
    ask = ffi.cast("bool (*)(void *, size_t, const char *)", function(_, i, connector)
      return self.can(ids[tonumber(i) + 1], ffi.string(connector))
    end)
    round.can_run = ask
  end
  self.rc = C.lc_assignor_assign(self.assignor, round, out)
  if ask then ask:free() end
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

--- How many items a round takes away.
function _M.revoked(r)
  local n = 0
  for _, o in pairs(r) do n = n + #o.revoked end
  return n
end

--- Rounds until nobody has to give anything back (each member that did rejoins at once).
function Cluster:settle()
  for _ = 1, 10 do
    local r = self:round()
    if _M.revoked(r) == 0 then return r end
  end
  error "does not settle"
end

--- Rounds until nothing happens any more, time passing as the delays ask.
-- Fails after `limit` rounds, and when something is given away that somebody has. Returns the number of rounds
-- and how many items were revoked.
function Cluster:converge(limit)
  local taken = 0
  for n = 1, limit do
    local owner = {}
    for id, m in pairs(self.members) do for _, item in ipairs(m.work) do owner[item] = id end end
    local r, quiet = self:round(), true
    local given = {}
    for id, o in pairs(r) do
      quiet = quiet and #o.revoked == 0 and #o.assigned == 0 and o.delay == 0
      taken = taken + #o.revoked
      for _, item in ipairs(o.assigned) do
        assert(not owner[item], item .. " is given to " .. id .. ", but runs on " .. tostring(owner[item]))
        assert(not given[item], item .. " is given twice")
        given[item] = id
      end
      self.delay = o.delay
    end
    if quiet then return n, taken end
    self.now = self.now + self.delay
  end
  error("not settled after " .. limit .. " rounds")
end

--- All work of all members, sorted.
function Cluster:all()
  local list = {}
  for _, m in pairs(self.members) do for _, item in ipairs(m.work) do list[#list + 1] = item end end
  table.sort(list)
  return list
end

--- Everything that is configured, sorted as all() is.
function Cluster:configured()
  local list = {}
  for name, n in pairs(self.work) do
    list[#list + 1] = name
    for task = 0, n - 1 do list[#list + 1] = name .. "-" .. task end
  end
  table.sort(list)
  return list
end

--- Connectors (tasks false) or tasks in a list.
function _M.count(list, tasks)
  local n = 0
  for _, item in ipairs(list) do if (item:match "%-%d+$" ~= nil) == tasks then n = n + 1 end end
  return n
end

-- C calls the function that says who can run what: not from compiled code
jit.off(Cluster.round)

return _M
