-- core/storage/status_cache.c: what the status topic says, and who may write what (storage 4).
local core = require "spec.support.core"
local golden = require "spec.support.golden"
local C, ffi = core.load { "base/err.h", "base/buf.h", "base/strv.h", "base/log.h", "storage/status_store.h",
  "storage/status_cache.h" }
pcall(ffi.cdef, "void free(void *);")

describe("status topic", function()
  local cache

  before_each(function()
    C.lc_log_set_level(nil, "off")
    cache = ffi.gc(C.lc_status_cache_new("t"), C.lc_status_cache_free)
  end)
  after_each(function() C.lc_log_set_level(nil, "info") end)

  local function apply(key, value)
    C.lc_status_cache_apply(cache, key, key and #key or 0, value, value and #value or 0, 2, 9)
  end
  local function record(state, generation, worker, trace)
    return ('{"state":"%s","trace":%s,"worker_id":"%s","generation":%d,"version":null}'):format(state,
      trace and '"' .. trace .. '"' or "null", worker or "w:1", generation)
  end
  local function get(connector, task)
    local st = ffi.new "lc_status_t"
    if not C.lc_status_cache_get(cache, connector, task or -1, st) then return nil end
    local out = { ffi.string(C.lc_state_name(st.state)), st.generation, ffi.string(st.worker_id),
      st.trace ~= nil and ffi.string(st.trace) or nil }
    C.lc_status_clear(st)
    return out
  end
  local function tasks(connector)
    local list, out = ffi.new "lc_status_t *[1]", {}
    local n = tonumber(C.lc_status_cache_tasks(cache, connector, list))
    for i = 0, n - 1 do
      out[i + 1] = list[0][i].task
      C.lc_status_clear(list[0] + i)
    end
    ffi.C.free(list[0])
    return out
  end
  local function strings(fn, ...)
    local list, out = ffi.new "lc_strv_t", {}
    local args = { ... }
    args[#args + 1] = list
    fn(cache, unpack(args))
    for i = 0, tonumber(list.n) - 1 do out[i + 1] = ffi.string(list.v[i]) end
    C.lc_strv_free(list)
    return out
  end
  local function status(task, state, generation, worker)
    local st = ffi.new "lc_status_t"
    local w = ffi.new("char[?]", #worker + 1, worker)
    st.task, st.state, st.generation, st.worker_id = task, C["LC_" .. state], generation, w
    return st, w
  end

  it("keeps connectors and tasks; names may hold dashes, digits and dots", function()
    apply("status-connector-a-1", record("RUNNING", 3))
    apply("status-task-a-1-10", record("RUNNING", 3))
    apply("status-task-a-1-2", record("FAILED", 4, "w:2", "boom"))
    assert.same({ "RUNNING", 3, "w:1" }, get "a-1")
    assert.same({ "FAILED", 4, "w:2", "boom" }, get("a-1", 2))
    assert.same({ 2, 10 }, tasks "a-1")
    assert.same({ "a-1" }, strings(C.lc_status_cache_connectors))
    assert.is_nil(get "a")
    assert.is_nil(get("a-1", 0))
  end)

  it("removes a connector with all its tasks, or one task", function()
    for t = 0, 2 do apply("status-task-a-" .. t, record("RUNNING", 1)) end
    apply("status-connector-a", record("RUNNING", 1))
    apply("status-connector-ab", record("RUNNING", 1))
    apply("status-task-a-1", nil)
    assert.same({ 0, 2 }, tasks "a")
    apply("status-connector-a", nil)
    assert.same({}, tasks "a")
    assert.is_nil(get "a")
    assert.same({ "ab" }, strings(C.lc_status_cache_connectors))
  end)

  it("does not believe a late UNASSIGNED of a task's owner before", function()
    apply("status-task-a-0", record("RUNNING", 5, "new:1"))
    apply("status-task-a-0", record("UNASSIGNED", 4, "old:1"))
    assert.same({ "RUNNING", 5, "new:1" }, get("a", 0))
    apply("status-task-a-0", record("UNASSIGNED", 6, "old:1"))
    assert.equal("UNASSIGNED", get("a", 0)[1])
    -- of a connector it is believed
    apply("status-connector-a", record("RUNNING", 5))
    apply("status-connector-a", record("UNASSIGNED", 4))
    assert.equal("UNASSIGNED", get("a")[1])
  end)

  it("knows topics in use", function()
    local t = '{"topic":{"name":"x:y","connector":"a","task":0,"discoverTimestamp":1}}'
    apply("status-topic-t1:connector-a", t)
    apply("status-topic-t0:connector-a", t)
    apply("status-topic-t9:connector-b", t)
    assert.same({ "t0", "t1" }, strings(C.lc_status_cache_topics, "a"))
    assert.is_true(C.lc_status_cache_has_topic(cache, "a", "t1"))
    apply("status-topic-t1:connector-a", nil)
    assert.same({ "t0" }, strings(C.lc_status_cache_topics, "a"))
    assert.is_false(C.lc_status_cache_has_topic(cache, "a", "t1"))
    C.lc_status_cache_topic_sent(cache, "a", "t1", true)
    assert.is_true(C.lc_status_cache_has_topic(cache, "a", "t1"))
    assert.same({ "t0" }, strings(C.lc_status_cache_topics, "a"))
    C.lc_status_cache_topic_sent(cache, "a", "t1", false)
    assert.is_false(C.lc_status_cache_has_topic(cache, "a", "t1"))
  end)

  it("writes UNASSIGNED and FAILED only over nothing, its own, or no newer generation", function()
    local ticket = ffi.new "lc_status_ticket_t"
    local function may(safe, generation, worker)
      local st, keep = status(0, "UNASSIGNED", generation, worker)
      return C.lc_status_cache_may_write(cache, "a", st, safe, ticket), keep
    end
    assert.is_true((may(true, 1, "me")))
    apply("status-task-a-0", record("RUNNING", 5, "other"))
    assert.is_false((may(true, 4, "me")))
    assert.is_true((may(false, 4, "me")))
    assert.is_true((may(true, 5, "me")))
    apply("status-task-a-0", record("RUNNING", 9, "me"))
    assert.is_true((may(true, 1, "me")))
  end)

  it("tries a write again only while it still says something", function()
    local function write(safe, generation)
      local ticket = ffi.new "lc_status_ticket_t"
      local st, keep = status(0, "FAILED", generation, "me")
      assert.is_true(C.lc_status_cache_may_write(cache, "a", st, safe, ticket))
      return function() return keep and C.lc_status_cache_may_retry(cache, "a", st, safe, ticket) end
    end
    local first = write(true, 3)
    assert.is_true(first())
    local second = write(true, 3)
    assert.is_false(first()) -- a newer write of this entry
    assert.is_true(second())
    apply("status-task-a-0", record("RUNNING", 7, "other"))
    assert.is_false(second())
    local plain = write(false, 8)
    assert.is_true(plain())
    write(false, 8)
    assert.is_true(plain()) -- plain puts are all sent
    write(false, 9)
    assert.is_false(plain()) -- of a generation that is over
    local last = write(false, 9)
    apply("status-task-a-0", nil)
    assert.is_false(last()) -- deleted meanwhile
  end)

  it("skips garbage", function()
    apply("status-connector-a", record("RUNNING", 1))
    local bad = { { "status-connector-a", "{" }, { "status-connector-a", "[]" }, { "status-connector-a", "{}" },
      { "status-connector-a", '{"state":"HAPPY","generation":1}' }, { "status-connector-a", '{"state":"RUNNING"}' },
      { "status-connector-", record("FAILED", 2) }, { "status-task-a", record("FAILED", 2) },
      { "status-task-a-x", record("FAILED", 2) }, { "status-topic-a", "{}" }, { "status-topic-:connector-a", "{}" },
      { "status-topic-t:connector-", "{}" }, { "status-topic-t:connector-a", "[]" }, { "x", "{}" }, { nil, "{}" },
      { "status-connector-a\0", record("FAILED", 2) }, { "status-connector-a", "" } }
    for _, r in ipairs(bad) do apply(r[1], r[2]) end
    assert.same({ "RUNNING", 1, "w:1" }, get "a")
    assert.same({}, tasks "a")
    assert.same({}, strings(C.lc_status_cache_topics, "a"))
  end)

  it("writes and reads the bytes of the Java worker", function()
    local seen = 0
    local buf = ffi.new "lc_buf_t"
    local function text()
      local s = ffi.string(buf.p, buf.len)
      C.lc_buf_clear(buf)
      return s
    end
    for _, case in ipairs(golden.cases "topics/lifecycle.jsonl") do
      for _, r in ipairs(case.new_records or {}) do
        if r.topic == "connect-status" then
          seen = seen + 1
          local value = r.value ~= golden.null and r.value or nil
          apply(r.key, value)
          local name, task = r.key:match "^status%-task%-(.+)%-(%d+)$"
          name, task = name or r.key:match "^status%-connector%-(.+)$", tonumber(task or -1)
          if name and value then
            local st = ffi.new "lc_status_t"
            if C.lc_status_cache_get(cache, name, task, st) then
              C.lc_status_value(buf, st)
              local ours = text()
              if ours ~= value then -- the late UNASSIGNED is the only one not taken over
                assert.matches('"state":"UNASSIGNED"', value)
              end
              C.lc_status_key(buf, name, task)
              assert.equal(r.key, text())
              C.lc_status_clear(st)
            end
          end
        end
      end
    end
    assert.is_true(seen > 40)
    C.lc_status_topic_value(buf, "src", 0, "g-in", 1795993627519)
    assert.equal('{"topic":{"name":"g-in","connector":"src","task":0,"discoverTimestamp":1795993627519}}', text())
    C.lc_status_topic_key(buf, "src", "g-in")
    assert.equal("status-topic-g-in:connector-src", text())
    C.lc_buf_free(buf)
  end)
end)
