-- Our assignors give the answers of Connect's own, round by round, over recorded histories
-- (spec/golden/assignor/RecordAssignments.java made them; the format is in its head).
local core = require "spec.support.core"
local golden = require "spec.support.golden"
local C, ffi = core.load { "base/err.h", "base/buf.h", "kafka/group.h", "kafka/wire/connect_protocol.h",
  "herder/assignor.h" }

--- "a:*02 b:1" into a set of work.
local function fill(set, text)
  for name, tasks in text:gmatch "(%S+):(%S+)" do
    for task in tasks:gmatch "." do C.lc_work_add(set, name, task == "*" and -1 or tonumber(task)) end
  end
end

--- { "a/*", "a/0", ... } of such a text and of a set of work: sorted, the recording is in Java's order of names.
local function items(text)
  local out = {}
  for name, tasks in text:gmatch "(%S+):(%S+)" do
    for task in tasks:gmatch "." do out[#out + 1] = name .. "/" .. task end
  end
  table.sort(out)
  return out
end

local function list(set)
  local out = {}
  for i = 0, tonumber(set.n) - 1 do
    local it = set.v[i]
    out[#out + 1] = ffi.string(it.connector) .. "/" .. (it.task < 0 and "*" or it.task)
  end
  table.sort(out)
  return out
end

local function play(assignor, ids, case)
  local members = ffi.new("lc_group_member_t[?]", #case.m)
  local out = ffi.new("lc_assignment_t[?]", #case.m)
  local work, names = {}, {}
  for name, n in case.w:gmatch "(%S+)=(%d+)" do work[#work + 1], names[#names + 1] = tonumber(n), name end
  local configured = ffi.new("lc_assignor_work_t[?]", #work + 1)
  for i, name in ipairs(names) do configured[i - 1].connector, configured[i - 1].ntasks = name, work[i] end
  for i, m in ipairs(case.m) do
    members[i - 1].id, members[i - 1].url = ids[m[1] + 1], "http://w/"
    members[i - 1].config_offset = m[2]
    fill(members[i - 1].allocation, m[3])
  end
  local round = ffi.new "lc_assignor_round_t"
  round.protocol, round.generation, round.last_generation = case.p, case.g, case.l
  round.config_offset, round.work, round.nwork = case.off, configured, #work
  round.members, round.nmembers, round.now_ms = members, #case.m, case.now
  C.lc_assignor_assign(assignor, round, out)
  local expected, got = {}, {}
  for i, a in ipairs(case.a) do
    local o = out[i - 1]
    expected[i] = { assigned = items(a[1]), revoked = items(a[2]), delay = a[3], error = a[4], offset = a[5] }
    got[i] = { assigned = list(o.assigned), revoked = list(o.revoked), delay = o.delay_ms, error = o.error,
      offset = tonumber(o.config_offset) }
    C.lc_assignment_clear(o)
    C.lc_work_free(members[i - 1].allocation)
  end
  return expected, got
end

for _, kind in ipairs { "cooperative", "eager" } do
  describe(kind .. " assignor", function()
    local assignor, ids, max, rounds, histories = nil, nil, nil, 0, {}
    for _, case in ipairs(golden.cases("assignor/" .. kind .. ".jsonl")) do
      if case.h then
        histories[#histories + 1] = { head = case, rounds = {} }
      else
        table.insert(histories[#histories].rounds, case)
      end
    end

    for _, history in ipairs(histories) do
      it("answers as Connect's in history " .. history.head.h, function()
        ids, max, rounds = history.head.ids, history.head.max, 0
        for _, case in ipairs(history.rounds) do
          rounds = rounds + 1
          if case.new then assignor = ffi.gc(C.lc_assignor_new(max), C.lc_assignor_free) end
          local expected, got = play(assignor, ids, case)
          assert.same(expected, got, ("round %d: %s"):format(rounds, case.line))
        end
        assert.is_true(rounds >= 8)
      end)
    end

    it("has enough histories", function() assert.is_true(#histories >= (kind == "eager" and 20 or 80)) end)
  end)
end
