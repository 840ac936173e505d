-- Tracker of submitted records (core/runtime/tracker.c): acknowledged prefixes per source partition.
local core = require "spec.support.core"
local C, ffi = core.load { "runtime/tracker.h" }

local NEW, DROPPED, SUBMITTED = 0, 1, 2

-- A batch of `n` records; what[i] = { partition object or false, position }
local function batch(list)
  local b = C.lc_batch_new(#list)
  b.offset_field = "position"
  for _, item in ipairs(list) do
    local r = C.lc_batch_add(b)
    r.topic = "t"
    r.state = item.state or NEW
    if item[1] then
      r.u.src.partition = item[1]
      assert.equal(0, C.lc_batch_hold_partition(b, item[1]))
      if item[2] then
        r.u.src.offset.type = C.LC_INT64
        r.u.src.offset.u.i = item[2]
      end
    end
  end
  return b
end

local function partition(json) return C.lc_source_partition_new(json, #json) end

-- What the producer does when it accepts a record.
local function accept(b, i)
  C.lc_batch_ref(b)
  b.records[i].state = SUBMITTED
end

local function entries(t)
  local out = ffi.new "const lc_offset_entry_t *[1]"
  local n = tonumber(C.lc_tracker_begin(t, out))
  local found = {}
  for i = 0, n - 1 do
    local e = out[0][i]
    found[ffi.string(e.partition)] = e.offset ~= nil and ffi.string(e.offset) or "removed"
  end
  return found, n
end

describe("tracker", function()
  local t, err
  before_each(function()
    t, err = C.lc_tracker_new(), core.err()
  end)
  after_each(function() C.lc_tracker_free(t) end)

  local function harvest() assert.equal(0, C.lc_tracker_harvest(t, err)) end

  it("commits only the acknowledged head of a partition", function()
    local p = partition '{"f":"a"}'
    local b = batch { { p, 10 }, { p, 20 }, { p, 30 } }
    C.lc_tracker_submit(t, b.records, 3)
    for i = 0, 2 do accept(b, i) end
    assert.equal(4, b.refs)
    C.lc_tracker_ack(t, b.records + 1)
    harvest()
    assert.same({}, (entries(t)))
    C.lc_tracker_end(t, true)
    assert.equal(4, b.refs)

    C.lc_tracker_ack(t, b.records)
    harvest()
    assert.same({ ['{"f":"a"}'] = '{"position":20}' }, (entries(t)))
    C.lc_tracker_end(t, true)
    assert.equal(2, b.refs)
    assert.equal(2, tonumber(C.lc_tracker_take_count(t)))
    assert.equal(0, tonumber(C.lc_tracker_take_count(t)))

    C.lc_tracker_ack(t, b.records + 2)
    harvest()
    assert.same({ ['{"f":"a"}'] = '{"position":30}' }, (entries(t)))
    C.lc_tracker_end(t, true)
    assert.equal(1, b.refs)
    C.lc_batch_unref(b)
    C.lc_source_partition_unref(p)
  end)

  it("lets partitions go ahead of each other and knows them by their text", function()
    local a, a2, c = partition '{"f":"a"}', partition '{"f":"a"}', partition '{"f":"c"}'
    local b = batch { { a, 1 }, { c, 7 }, { a2, 2 } }
    C.lc_tracker_submit(t, b.records, 3)
    for i = 0, 2 do accept(b, i) end
    C.lc_tracker_ack(t, b.records + 2)
    C.lc_tracker_ack(t, b.records + 1)
    harvest()
    assert.same({ ['{"f":"c"}'] = '{"position":7}' }, (entries(t)))
    C.lc_tracker_end(t, true)
    C.lc_tracker_ack(t, b.records)
    harvest()
    assert.same({ ['{"f":"a"}'] = '{"position":2}' }, (entries(t)))
    C.lc_tracker_end(t, true)
    C.lc_batch_unref(b)
    for _, p in ipairs { a, a2, c } do C.lc_source_partition_unref(p) end
  end)

  it("keeps offsets whose write failed, unless newer ones are there", function()
    local a, c = partition '{"f":"a"}', partition '{"f":"c"}'
    local b = batch { { a, 1 }, { c, 7 }, { a, 2 } }
    C.lc_tracker_submit(t, b.records, 3)
    for i = 0, 2 do accept(b, i) end
    C.lc_tracker_ack(t, b.records)
    C.lc_tracker_ack(t, b.records + 1)
    harvest()
    local _, n = entries(t)
    assert.equal(2, n)
    C.lc_tracker_ack(t, b.records + 2)
    harvest()
    C.lc_tracker_end(t, false)
    assert.same({ ['{"f":"a"}'] = '{"position":2}', ['{"f":"c"}'] = '{"position":7}' }, (entries(t)))
    C.lc_tracker_end(t, true)
    assert.same({}, (entries(t)))
    C.lc_tracker_end(t, true)
    C.lc_batch_unref(b)
    C.lc_source_partition_unref(a)
    C.lc_source_partition_unref(c)
  end)

  it("releases records without a partition at once and never registers dropped ones", function()
    local p = partition '{"f":"a"}'
    local b = batch { { false }, { p, 1, state = DROPPED }, { p, 2 } }
    C.lc_tracker_submit(t, b.records, 3)
    accept(b, 0)
    accept(b, 2)
    C.lc_tracker_ack(t, b.records)
    assert.equal(2, b.refs)
    C.lc_tracker_ack(t, b.records + 2)
    harvest()
    assert.equal(1, b.refs)
    assert.equal(2, tonumber(C.lc_tracker_take_count(t)))
    assert.same({ ['{"f":"a"}'] = '{"position":2}' }, (entries(t)))
    C.lc_tracker_end(t, true)
    C.lc_batch_unref(b)
    C.lc_source_partition_unref(p)
  end)

  it("takes a null offset for a removal", function()
    local p = partition '{"f":"a"}'
    local b = batch { { p } }
    C.lc_tracker_submit(t, b.records, 1)
    accept(b, 0)
    C.lc_tracker_ack(t, b.records)
    harvest()
    assert.same({ ['{"f":"a"}'] = "removed" }, (entries(t)))
    C.lc_tracker_end(t, true)
    C.lc_batch_unref(b)
    C.lc_source_partition_unref(p)
  end)

  it("lets a lost record hold back its partition, and releases all when it is freed", function()
    local p = partition '{"f":"a"}'
    local b = batch { { p, 1 }, { p, 2 }, { false }, { p, 3 } }
    C.lc_tracker_submit(t, b.records, 4)
    for i = 0, 2 do accept(b, i) end -- the last one was never accepted
    C.lc_tracker_lost(t, b.records)
    C.lc_tracker_lost(t, b.records + 2)
    C.lc_tracker_ack(t, b.records + 1)
    harvest()
    assert.same({}, (entries(t)))
    C.lc_tracker_end(t, true)
    assert.equal(3, b.refs)
    C.lc_tracker_free(t)
    t = nil
    assert.equal(1, b.refs)
    C.lc_batch_unref(b)
    assert.equal(1, p.refs)
    assert.is_true(p.tracker == nil)
    C.lc_source_partition_unref(p)
  end)

  it("forgets idle partitions of a connector that has ever new ones", function()
    local all = {}
    for i = 1, 500 do
      local p = partition('{"f":' .. i .. "}")
      local b = batch { { p, i } }
      all[i] = p
      C.lc_tracker_submit(t, b.records, 1)
      accept(b, 0)
      C.lc_tracker_ack(t, b.records)
      C.lc_batch_unref(b)
    end
    harvest()
    local _, n = entries(t)
    assert.equal(500, n)
    C.lc_tracker_end(t, true)
    local remembered = 0
    for _, p in ipairs(all) do
      if p.tracker ~= nil then remembered = remembered + 1 end
    end
    assert.is_true(remembered <= 64)
    for _, p in ipairs(all) do C.lc_source_partition_unref(p) end
  end)
end)
