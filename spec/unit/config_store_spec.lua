-- core/storage/config_state.c: the rules of the config topic, record by record, and what the real worker left in
-- it (golden/topics/lifecycle.jsonl).
local core = require "spec.support.core"
local golden = require "spec.support.golden"
local C, ffi = core.load { "base/err.h", "base/props.h", "base/strv.h", "base/log.h", "storage/config_store.h",
  "storage/config_state.h" }

local NONE, CONNECTOR, REMOVED, TASKS, TARGET, RESTART, KEY, LOGGER = 0, 1, 2, 3, 4, 5, 6, 7

describe("config topic", function()
  local state, offset

  before_each(function()
    C.lc_log_set_level(nil, "off")
    state, offset = ffi.gc(C.lc_config_state_new("t"), C.lc_config_state_free), 0
  end)
  after_each(function() C.lc_log_set_level(nil, "info") end)

  -- returns the kind of the change and its fields
  local function put(key, value)
    local change = ffi.new "lc_config_change_t"
    C.lc_config_state_apply(state, key, key and #key or 0, value, value and #value or 0, 0, offset, change)
    offset = offset + 1
    local kind, out = tonumber(change.kind), {}
    if change.name ~= nil then out.name = ffi.string(change.name) end
    if change.level ~= nil then out.level = ffi.string(change.level) end
    out.ntasks, out.only_failed, out.include_tasks = change.ntasks, change.only_failed, change.include_tasks
    C.lc_config_change_clear(change)
    return kind, out
  end
  local function snapshot() return ffi.gc(C.lc_config_state_snapshot(state), C.lc_config_snapshot_unref) end
  local function find(name)
    local s = snapshot()
    local c = C.lc_config_snapshot_find(s, name)
    return c ~= nil and c or nil, s
  end
  local function count(name)
    local c, s = find(name)
    local n = C.lc_config_connector_task_count(c)
    return n, s
  end
  local function state_of(name)
    local c, s = find(name)
    return c and ffi.string(C.lc_target_state_name(c.target)), s
  end

  it("starts empty at offset -1", function()
    local s = snapshot()
    assert.equal(-1, tonumber(s.offset))
    assert.equal(0, tonumber(s.n))
    assert.is_true(s.session_key == nil)
  end)

  it("keeps raw configs with their nulls and starts what has no target state", function()
    assert.equal(CONNECTOR, put("connector-a", '{"properties":{"z":"1","a":null,"n":5,"u":"\\u00e9"}}'))
    local c, s = find "a"
    assert.same({ z = "1", a = false, n = "5", u = "\195\169" }, core.table(c.config))
    assert.equal("z", ffi.string(C.lc_props_key(c.config, 0)))
    assert.equal("STARTED", (state_of "a"))
    assert.equal(1, tonumber(s.offset))
    assert.equal(0, c.ntasks)
    assert.equal(-1, c.generation)
  end)

  it("makes tasks effective at the commit, all at once, and counts generations", function()
    put("connector-a-b", '{"properties":{"k":"v"}}')
    assert.equal(NONE, put("task-a-b-0", '{"properties":{"t":"0"}}'))
    assert.equal(NONE, put("task-a-b-1", '{"properties":{"t":"1"}}'))
    assert.equal(0, (count "a-b"))
    local kind, change = put("commit-a-b", '{"tasks":2}')
    assert.equal(TASKS, kind)
    assert.equal("a-b", change.name)
    assert.equal(2, change.ntasks)
    local c, s = find "a-b"
    assert.equal(2, C.lc_config_connector_task_count(c))
    assert.same({ t = "1" }, core.table(c.tasks[1]))
    assert.same({ k = "v" }, core.table(c.applied))
    assert.equal(0, c.generation)
    -- a new raw config is not the applied one until the next commit
    put("connector-a-b", '{"properties":{"k":"w"}}')
    assert.is_not_nil(s)
    c, s = find "a-b"
    assert.same({ k = "v" }, core.table(c.applied))
    assert.same({ k = "w" }, core.table(c.config))
    put("task-a-b-0", '{"properties":{"t":"new"}}')
    put("commit-a-b", '{"tasks":1}')
    assert.is_not_nil(s)
    c, s = find "a-b"
    assert.equal(1, C.lc_config_connector_task_count(c))
    assert.equal(1, c.generation)
    assert.same({ t = "new" }, core.table(c.tasks[0]))
    assert.is_not_nil(s)
  end)

  it("flags a commit whose ids are not all there, until the next whole set", function()
    put("connector-a", '{"properties":{}}')
    put("task-a-0", '{"properties":{"n":"0"}}')
    put("commit-a", '{"tasks":1}')
    put("task-a-1", '{"properties":{"n":"1"}}')
    assert.equal(TASKS, put("commit-a", '{"tasks":2}'))
    local c, s = find "a"
    assert.is_true(c.inconsistent)
    assert.equal(2, c.ntasks)
    assert.equal(0, C.lc_config_connector_task_count(c))
    assert.equal(0, c.generation)
    -- deferred records of the bad set are gone: task 0 alone does not complete it
    put("task-a-0", '{"properties":{"n":"0"}}')
    put("commit-a", '{"tasks":2}')
    assert.equal(0, (count "a"))
    put("task-a-0", '{"properties":{"n":"0"}}')
    put("task-a-1", '{"properties":{"n":"1"}}')
    put("task-a-7", '{"properties":{"n":"left over by compaction"}}')
    put("commit-a", '{"tasks":2}')
    assert.equal(2, (count "a"))
    put("commit-a", '{"tasks":0}')
    assert.equal(0, (count "a"))
    assert.is_not_nil(s)
  end)

  it("ignores a commit for a connector that is unknown, and claims of absurd counts", function()
    put("task-x-0", '{"properties":{"n":"0"}}')
    assert.equal(NONE, put("commit-x", '{"tasks":1}'))
    assert.is_nil((find "x"))
    put("connector-x", '{"properties":{}}')
    put("commit-x", '{"tasks":1}')
    assert.equal(0, (count "x")) -- dropped with the commit
    put("commit-x", '{"tasks":2147483647}')
    assert.equal(0, (count "x"))
    put("task-x-2147483647", '{"properties":{}}')
    put("task-x-99999999999", '{"properties":{}}')
    assert.equal(NONE, put("commit-x", '{"tasks":-1}'))
    assert.equal(NONE, put("commit-x", '{"tasks":1.5}'))
    assert.equal(NONE, put("commit-x", '{"tasks":"1"}'))
  end)

  it("prefers state.v2, tells of changes of known connectors only", function()
    assert.equal(NONE, put("target-state-a", '{"state":"PAUSED","state.v2":"STOPPED"}'))
    assert.is_nil((find "a"))
    put("connector-a", '{"properties":{}}')
    assert.equal("STOPPED", (state_of "a"))
    assert.equal(TARGET, put("target-state-a", '{"state":"PAUSED"}'))
    assert.equal("PAUSED", (state_of "a"))
    assert.equal(NONE, put("target-state-a", '{"state":"PAUSED","state.v2":"PAUSED"}'))
    assert.equal(TARGET, put("target-state-a", '{"state":"STARTED","state.v2":null}'))
    assert.equal(NONE, put("target-state-a", '{"state":"GONE"}'))
    assert.equal(NONE, put("target-state-a", '{"state.v2":7}'))
    assert.equal("STARTED", (state_of "a"))
    put("target-state-a", '{"state":"PAUSED","state.v2":"STOPPED"}')
    put("target-state-a", nil)
    assert.equal("STARTED", (state_of "a"))
  end)

  it("forgets a removed connector but not its fencing count and generation", function()
    put("connector-a", '{"properties":{}}')
    put("task-a-0", '{"properties":{}}')
    put("commit-a", '{"tasks":1}')
    put("tasks-fencing-a", '{"task-count":3}')
    put("target-state-a", '{"state":"PAUSED","state.v2":"PAUSED"}')
    local kind, change = put("connector-a", nil)
    assert.equal(REMOVED, kind)
    assert.equal("a", change.name)
    assert.is_nil((find "a"))
    put("connector-a", '{"properties":{}}')
    local c, s = find "a"
    assert.equal(3, c.task_count_record)
    assert.equal(0, c.generation)
    assert.equal(0, c.ntasks)
    assert.equal("PAUSED", (state_of "a"))
    assert.is_true(c.applied == nil)
    assert.is_not_nil(s)
  end)

  it("passes restart requests, session keys and logger levels on", function()
    local kind, c = put("restart-connector-a", '{"include-tasks":true,"only-failed":false}')
    assert.same({ RESTART, "a", true, false }, { kind, c.name, c.include_tasks, c.only_failed })
    kind, c = put("restart-connector-a", "{}")
    assert.same({ RESTART, false, false }, { kind, c.include_tasks, c.only_failed })
    assert.equal(NONE, put("restart-connector-a", nil))
    assert.equal(KEY, put("session-key", '{"key":"abc=","algorithm":"HmacSHA256","creation-timestamp":1795993551033}'))
    local s = snapshot()
    assert.equal("abc=", ffi.string(s.session_key))
    assert.equal("HmacSHA256", ffi.string(s.session_key_algorithm))
    assert.equal(1795993551033, tonumber(s.session_key_created))
    assert.equal(NONE, put("session-key", '{"key":5}'))
    kind, c = put("logger-cluster-a.b", '{"level":"DEBUG"}')
    assert.same({ LOGGER, "a.b", "DEBUG" }, { kind, c.name, c.level })
  end)

  it("skips garbage; the offset moves on unless the value is no JSON", function()
    put("connector-a", '{"properties":{"k":"v"}}')
    local bad = { { "connector-a", "[]" }, { "connector-a", '{"properties":[]}' }, { "connector-a", "{}" },
      { "connector-a", '"x"' }, { "connector-a", "3" }, { "task-a-x", '{"properties":{}}' }, { "task-0", "{}" },
      { "task-a-", "{}" }, { "task-a-0", nil }, { "task-a-0", "[]" }, { "commit-a", nil }, { "commit-a", "[1]" },
      { "tasks-fencing-a", nil }, { "logger-cluster-x", nil }, { "who-knows", "{}" }, { "", "{}" }, { nil, "{}" },
      { "a\0b", "{}" }, { "session-key", nil } }
    for i, r in ipairs(bad) do
      assert.equal(NONE, (put(r[1], r[2])), "record " .. i)
    end
    local c, s = find "a"
    assert.same({ k = "v" }, core.table(c.config))
    assert.equal(offset, tonumber(s.offset))
    for _, v in ipairs { "{", "", " ", "nope", '{"properties":', "\255\254" } do
      local before = offset
      assert.equal(NONE, (put("connector-a", v)))
      s = select(2, find "a")
      assert.equal(before, tonumber(s.offset))
      offset = before
    end
  end)

  it("gives the same snapshot until something changes, and old ones stay as they were", function()
    put("connector-a", '{"properties":{"k":"1"}}')
    local one = snapshot()
    assert.equal(one, snapshot())
    put("connector-a", '{"properties":{"k":"2"}}')
    assert.same({ k = "1" }, core.table(one.v[0].config))
    local two = snapshot()
    assert.same({ k = "2" }, core.table(two.v[0].config))
    put("connector-B", '{"properties":{}}')
    put("connector-0", '{"properties":{}}')
    local three = snapshot()
    assert.same({ "0", "B", "a" }, { ffi.string(three.v[0].name), ffi.string(three.v[1].name),
      ffi.string(three.v[2].name) })
  end)

  it("reads what the Java worker wrote in its life, step by step", function()
    local seen, last = 0, {}
    for _, case in ipairs(golden.cases "topics/lifecycle.jsonl") do
      for _, r in ipairs(case.new_records or {}) do
        if r.topic == "connect-configs" then
          seen = seen + 1
          offset = r.offset
          local value = r.value ~= golden.null and r.value or nil
          put(r.key, value)
          last[r.key] = value
          assert.equal(r.offset + 1, tonumber(snapshot().offset))
        end
      end
      if case.after == "(source running)" then
        assert.equal(1, (count "src"))
        local c, s = find "src"
        assert.equal("org.apache.kafka.connect.file.FileStreamSourceTask",
          ffi.string(C.lc_props_get(c.tasks[0], "task.class")))
        assert.is_not_nil(s)
      elseif case.after == "(stopped)" then
        assert.equal(0, (count "src"))
        assert.equal("STOPPED", (state_of "src"))
      elseif case.after == "(resumed)" then
        assert.equal(1, (count "src"))
        assert.equal("STARTED", (state_of "src"))
      elseif case.after == "(deleted)" then
        assert.equal(0, tonumber(snapshot().n))
      end
    end
    assert.is_true(seen > 30)
    assert.is_not_nil(last["session-key"])
  end)
end)
