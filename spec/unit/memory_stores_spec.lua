-- The stores of standalone mode: configs, statuses and offsets in memory (reference standalone 5).
local core = require "spec.support.core"
local C, ffi = core.load { "base/err.h", "base/props.h", "base/strv.h", "base/buf.h", "base/alloc.h",
  "storage/config_store.h", "storage/status_store.h", "storage/offset_store.h" }
pcall(ffi.cdef, "void free(void *);")

describe("memory config store", function()
  local store, events, callbacks

  before_each(function()
    store, events = C.lc_config_store_memory_new(), {}
    local function event(kind, ctype)
      return ffi.cast(ctype, function(_, name, a)
        events[#events + 1] = kind .. " " .. ffi.string(name) .. (a and " " .. tonumber(a) or "")
      end)
    end
    local named = "void (*)(void *, const char *)"
    callbacks = { event("updated", named), event("removed", named),
      event("tasks", "void (*)(void *, const char *, int)"), event("target", named) }
    local e = ffi.new "lc_config_events_t"
    e.connector_updated, e.connector_removed, e.tasks_updated, e.target_changed = unpack(callbacks)
    assert.equal(0, store.ops.start(store, e, nil, nil, core.err()))
  end)
  after_each(function()
    store.ops.stop(store)
    for _, cb in ipairs(callbacks) do cb:free() end
  end)

  local function snapshot()
    return ffi.gc(store.ops.snapshot(store), C.lc_config_snapshot_unref)
  end
  local function put(name, config, target)
    return store.ops.put_connector(store, name, core.props(config), target or "LC_TARGET_NONE", core.err())
  end

  it("keeps connectors sorted, with offset -1, and tells of each change at once", function()
    put("b", { x = 1 })
    put("a", { y = 2 }, "LC_TARGET_PAUSED")
    local s = snapshot()
    assert.equal(-1, tonumber(s.offset))
    assert.equal(2, tonumber(s.n))
    assert.equal("a", ffi.string(s.v[0].name))
    assert.equal(tonumber(C.LC_TARGET_PAUSED), tonumber(s.v[0].target))
    assert.equal(tonumber(C.LC_TARGET_STARTED), tonumber(s.v[1].target))
    assert.same({ x = "1" }, core.table(s.v[1].config))
    assert.same({ "updated b", "updated a" }, events)
    -- a snapshot does not change any more
    put("b", { x = 3 })
    assert.same({ x = "1" }, core.table(s.v[1].config))
    assert.same({ x = "3" }, core.table(C.lc_config_snapshot_find(snapshot(), "b").config))
    assert.is_true(C.lc_config_snapshot_find(s, "zz") == nil)
  end)

  it("keeps the target state of a replaced connector; one event a change", function()
    put("a", {}, "LC_TARGET_STOPPED")
    put("a", { k = 1 })
    assert.equal(tonumber(C.LC_TARGET_STOPPED), tonumber(snapshot().v[0].target))
    assert.equal(0, store.ops.put_target(store, "a", "LC_TARGET_STARTED", core.err()))
    assert.equal(0, store.ops.put_target(store, "a", "LC_TARGET_STARTED", core.err()))
    assert.same({ "updated a", "updated a", "target a" }, events)
    local err = core.err()
    assert.equal(-1, store.ops.put_target(store, "nope", "LC_TARGET_PAUSED", err))
    assert.equal("No connector `nope` configured", core.msg(err))
  end)

  it("stores task configs with the config they were made from", function()
    put("a", { v = 1 })
    local list = ffi.new("lc_props_t *[2]", core.props { t = 0 }, core.props { t = 1 })
    assert.equal(0, store.ops.put_tasks(store, "a", list, 2, core.err()))
    put("a", { v = 2 })
    local c = C.lc_config_snapshot_find(snapshot(), "a")
    assert.equal(2, C.lc_config_connector_task_count(c))
    assert.same({ t = "1" }, core.table(c.tasks[1]))
    assert.same({ v = "1" }, core.table(c.applied))
    assert.equal(0, c.generation)
    assert.equal(0, store.ops.put_tasks(store, "a", nil, 0, core.err()))
    assert.equal(0, C.lc_config_snapshot_find(snapshot(), "a").ntasks)
    assert.same({ "updated a", "tasks a 2", "updated a", "tasks a 0" }, events)
    local err = core.err()
    assert.equal(-1, store.ops.put_tasks(store, "b", list, 1, err))
    assert.equal("Cannot put tasks for non-existing connector", core.msg(err))
    err = core.err()
    assert.equal(-1, store.ops.put_tasks(store, "b", nil, 0, err))
    assert.equal("Cannot remove tasks for non-existing connector", core.msg(err))
  end)

  it("forgets removed connectors", function()
    put("a", {})
    store.ops.remove_connector(store, "a", core.err())
    store.ops.remove_connector(store, "a", core.err())
    assert.equal(0, tonumber(snapshot().n))
    assert.same({ "updated a", "removed a" }, events)
  end)
end)

describe("memory status store", function()
  local store
  before_each(function() store = C.lc_status_store_memory_new() end)
  after_each(function() store.ops.stop(store) end)

  local function put(name, task, state, trace)
    local st = ffi.new "lc_status_t"
    st.task, st.state, st.generation = task, state, 3
    st.worker_id = ffi.cast("char *", "h:1")
    if trace then st.trace = ffi.cast("char *", trace) end
    store.ops.put(store, name, st, false)
  end
  local function get(name, task)
    local st = ffi.new "lc_status_t"
    if not store.ops.get(store, name, task, st) then return nil end
    local r = { ffi.string(C.lc_state_name(st.state)), ffi.string(st.worker_id),
      st.trace ~= nil and ffi.string(st.trace), st.generation }
    C.lc_status_clear(st)
    return r
  end
  local function names(fn, ...)
    local v, out = ffi.new "lc_strv_t", {}
    fn(store, ...)(v)
    for i = 0, tonumber(v.n) - 1 do out[#out + 1] = ffi.string(v.v[i]) end
    C.lc_strv_free(v)
    return out
  end
  local function connectors()
    return names(function(s) return function(v) s.ops.connectors(s, v) end end)
  end
  local function topics(name)
    return names(function(s) return function(v) s.ops.topics(s, name, v) end end)
  end
  local function tasks(name)
    local list, out = ffi.new "lc_status_t *[1]", {}
    local n = tonumber(store.ops.tasks(store, name, list))
    for i = 0, n - 1 do
      out[#out + 1] = list[0][i].task
      C.lc_status_clear(list[0][i])
    end
    C.free(list[0])
    return out
  end

  it("keeps the last status of each", function()
    assert.is_nil(get("a", -1))
    put("a", -1, "LC_RUNNING")
    put("a", 10, "LC_RUNNING")
    put("a", 2, "LC_FAILED", "why")
    put("ab", 0, "LC_PAUSED")
    put("a", -1, "LC_STOPPED")
    assert.same({ "STOPPED", "h:1", false, 3 }, get("a", -1))
    assert.same({ "FAILED", "h:1", "why", 3 }, get("a", 2))
    assert.same({ 2, 10 }, tasks "a")
    assert.same({ "a", "ab" }, connectors())
    put("a", 2, "LC_DESTROYED")
    assert.same({ 10 }, tasks "a")
    put("a", 99, "LC_DESTROYED")
    put("a", -1, "LC_DESTROYED")
    assert.is_nil(get("a", -1))
    assert.same({}, tasks "a")
    assert.same({ "ab" }, connectors())
  end)

  it("keeps topics in use", function()
    store.ops.topic_used(store, "a", 0, "t1")
    store.ops.topic_used(store, "a", 1, "t2")
    store.ops.topic_used(store, "a", 1, "t1")
    assert.same({ "t1", "t2" }, topics "a")
    assert.same({}, topics "b")
    store.ops.topics_reset(store, "a")
    assert.same({}, topics "a")
    store.ops.topics_reset(store, "a")
  end)
end)

describe("memory offset store", function()
  it("gets, lists and removes", function()
    local store = C.lc_offset_store_memory_new()
    local calls, seen = 0, {}
    local done = ffi.cast("lc_offset_done_fn *", function(_, err)
      calls = calls + 1
      assert(err == nil)
    end)
    local collect = ffi.cast("void (*)(void *, const char *, const char *)", function(_, p, o)
      seen[ffi.string(p)] = ffi.string(o)
    end)
    local e = ffi.new "lc_offset_entry_t[2]"
    e[0].partition, e[0].offset = '{"f":"a"}', '{"position":1}'
    e[1].partition, e[1].offset = '{"f":"b"}', '{"position":2}'
    store.ops.set(store, "c", e, 2, done, nil)
    e[1].offset = nil
    store.ops.set(store, "c", e, 2, done, nil)
    assert.equal(2, calls)
    local b = ffi.new "lc_buf_t"
    assert.equal(1, store.ops.get(store, "c", '{"f":"a"}', b, core.err()))
    assert.equal('{"position":1}', ffi.string(b.p))
    assert.equal(0, store.ops.get(store, "c", '{"f":"b"}', b, core.err()))
    assert.equal(0, store.ops.get(store, "x", '{"f":"a"}', b, core.err()))
    C.lc_buf_free(b)
    store.ops.list(store, "c", collect, nil, core.err())
    assert.same({ ['{"f":"a"}'] = '{"position":1}' }, seen)
    store.ops.stop(store)
    done:free()
    collect:free()
  end)
end)
