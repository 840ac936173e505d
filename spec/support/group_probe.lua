-- spec/support/group_probe.lua: a member of Connect's group for specs, with the herder's part played in Lua.
local core = require "spec.support.core"
local proc = require "spec.support.proc"
local C, ffi = core.load { "base/err.h", "base/buf.h", "base/props.h", "base/log.h", "base/clock.h",
  "config/worker_config.h", "kafka/group.h", "kafka/wire/connect_protocol.h" }
local with = require "spec.support.with"
local work = require "spec.support.work"
local worker_config = require "spec.support.worker_config"

local lib = require("spec.support.compile").library(assert(proc.read "spec/support/group_probe.c"), [[
typedef struct probe probe_t;
typedef struct probe_event {
  const char *kind; int protocol, nmembers; int32_t generation; int64_t at_ms; char text[512];
  lc_assignment_t *assignment;
} probe_event_t;
probe_t *probe_new(int max_delay_ms);
void probe_start(probe_t *p, const lc_worker_config_t *wc, const char *url, lc_err_t *err);
void probe_config(probe_t *p, const char *connector, int ntasks, int64_t offset);
probe_event_t *probe_next(probe_t *p, int ms);
void probe_event_free(probe_event_t *e);
void probe_free(probe_t *p);
typedef struct probe_head { void *queue, *assignor; lc_group_t *group; } probe_head_t;
]])

local Member = {}
Member.__index = Member
local _M = { Member = Member }

local members = {}

--- member { bootstrap =, group =, url =, max_delay =, config = { key = value } }; nil and the message when refused.
function _M.member(t)
  local m, err = setmetatable({ own = {}, offset = -1, url = t.url or "http://h:8083/", log = {} }, Member), core.err()
  local wc = worker_config.new(with({ ["bootstrap.servers"] = t.bootstrap, ["group.id"] = t.group }, t.config))
  m.wc = ffi.gc(wc, C.lc_worker_config_free)
  m.probe = lib.probe_new(t.max_delay or 0)
  lib.probe_start(m.probe, m.wc, m.url, err)
  m.group = ffi.cast("probe_head_t *", m.probe).group
  if m.group == nil then
    lib.probe_free(m.probe)
    return nil, core.msg(err)
  end
  members[#members + 1] = m
  if t.start ~= false then m:start() end
  return m
end

function Member:start()
  self.started = tonumber(C.lc_now_ms())
  assert(C.lc_group_start(self.group, core.err()) == 0)
  return self
end

--- What the next join reports.
function Member:report()
  local w = ffi.new "lc_work_t"
  work.fill(w, self.own)
  C.lc_group_set_state(self.group, self.offset, w)
  C.lc_work_free(w)
end

--- A connector appears in the config topic.
function Member:configure(name, ntasks)
  self.offset = math.max(self.offset, 0) + 1
  lib.probe_config(self.probe, name, ntasks, self.offset)
  self:report()
end

--- The next event within `ms`, or nil: { kind=, protocol=, generation=, at=, text=, members=, assignment= }.
function Member:next(ms)
  local e = lib.probe_next(self.probe, ms or 60000)
  if e == nil then return nil end
  local r = { kind = ffi.string(e.kind), protocol = e.protocol, generation = e.generation, members = e.nmembers,
    at = tonumber(e.at_ms), text = ffi.string(e.text) }
  if e.assignment ~= nil then
    local a = e.assignment
    r.assignment = { assigned = work.list(a.assigned), revoked = work.list(a.revoked), delay = a.delay_ms,
      error = a.error, offset = tonumber(a.config_offset), leader = a.is_leader, member_id = ffi.string(a.member_id),
      leader_url = ffi.string(a.leader_url) }
  end
  lib.probe_event_free(e)
  self.log[#self.log + 1] = r.kind
  return r
end

--- Skip to the next event of this kind; the herder lives (ticks) meanwhile.
function Member:wait(kind, ms)
  local stop = tonumber(C.lc_now_ms()) + (ms or 60000)
  repeat
    local e = self:next(50)
    C.lc_group_tick(self.group)
    if e and e.kind == kind then return e end
    assert(not (e and e.kind == "error" and kind ~= "error"), e and e.text)
  until tonumber(C.lc_now_ms()) > stop
  error(("no %s within %d ms; seen: %s"):format(kind, ms or 60000, table.concat(self.log, " ")), 2)
end

--- No event of this kind for `ms`.
function Member:silent(kind, ms)
  local stop = tonumber(C.lc_now_ms()) + ms
  repeat
    local e = self:next(20)
    C.lc_group_tick(self.group)
    if e and e.kind == kind then return false end
  until tonumber(C.lc_now_ms()) > stop
  return true
end

--- The herder's part after an assignment: merge, report, done; joins again when something was revoked.
function Member:apply(e)
  local a, own = e.assignment, {}
  if e.protocol > 0 then for _, item in ipairs(self.own) do own[item] = true end end
  for _, item in ipairs(a.revoked) do own[item] = nil end
  for _, item in ipairs(a.assigned) do own[item] = true end
  self.own = {}
  for item in pairs(own) do table.insert(self.own, item) end
  table.sort(self.own)
  self.offset = math.max(self.offset, a.offset)
  self:report()
  C.lc_group_assignment_done(self.group, e.generation)
  if #a.revoked > 0 then self:rejoin "work was revoked" end
  return e
end

--- Wait for an assignment and apply it.
function Member:assignment(ms) return self:apply(self:wait("assigned", ms)) end

function Member:rejoin(reason) C.lc_group_rejoin(self.group, reason or "spec") end
function Member:leave(backoff) C.lc_group_leave(self.group, backoff, "spec") end
function Member:tick() C.lc_group_tick(self.group) end

--- Milliseconds it took.
function Member:stop()
  local t = tonumber(C.lc_now_ms())
  for i, m in ipairs(members) do
    if m == self then
      table.remove(members, i)
      lib.probe_free(self.probe)
      return tonumber(C.lc_now_ms()) - t
    end
  end
  return 0
end

function _M.stop_all()
  while members[1] do members[1]:stop() end
end

return _M
