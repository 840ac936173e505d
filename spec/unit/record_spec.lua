-- core/data/record: batches, partitions, offsets.
local core = require "spec.support.core"
local C, ffi = core.load { "base/err.h", "data/record.h", "data/schema_builder.h", "convert/json.h" }

local function offset_json(r)
  local b, err = ffi.new "lc_buf_t", core.err()
  assert(C.lc_record_offset_json(r, b, err) == 0, core.msg(err))
  local s = ffi.string(b.p, b.len)
  C.lc_buf_free(b)
  return s
end

describe("batch", function()
  it("adds zeroed records and grows", function()
    local b = C.lc_batch_new(2)
    for i = 0, 999 do
      local r = C.lc_batch_add(b)
      assert.are.equal(-1, r.partition)
      assert.are.equal(-1LL, r.timestamp)
      assert.are.equal(0, r.nheaders)
      assert.is_true(r.batch == b and r.topic == nil and r.value_bytes.p == nil)
      r.partition = i
    end
    assert.are.equal(1000, b.n)
    for i = 0, 999 do assert.are.equal(i, b.records[i].partition) end
    C.lc_batch_unref(b)
    C.lc_batch_unref(nil)
  end)

  it("holds schemas and partitions until its last reference goes", function()
    local schema = C.lc_schema_builder_finish(C.lc_schema_builder_new(C.LC_INT32))
    local part = C.lc_source_partition_new('{"f":"a"}xx', 9)
    assert.are.equal('{"f":"a"}', ffi.string(part.json))
    local b = C.lc_batch_new(0)
    for _ = 1, 5 do
      assert.are.equal(0, C.lc_batch_hold_schema(b, schema))
      assert.are.equal(0, C.lc_batch_hold_partition(b, part))
    end
    assert.are.equal(0, C.lc_batch_hold_schema(b, C.lc_schema_string))
    assert.are.equal(0, C.lc_batch_hold_schema(b, nil))
    assert.are.same({ 1, 1, 2, 2 }, { b.nschemas, b.npartitions, schema.refs, part.refs })
    C.lc_batch_ref(b)
    C.lc_batch_unref(b)
    assert.are.equal(2, schema.refs)
    C.lc_batch_unref(b)
    assert.are.same({ 1, 1 }, { schema.refs, part.refs })
    C.lc_schema_unref(schema)
    C.lc_source_partition_unref(part)
  end)
end)

describe("source offset", function()
  it("is JSON, from the short form and from a map", function()
    local b = C.lc_batch_new(1)
    local r = C.lc_batch_add(b)
    assert.are.equal("null", offset_json(r))
    b.offset_field = "pos\"ition"
    r.u.src.offset.type, r.u.src.offset.u.i = C.LC_INT64, 9007199254740993LL
    assert.are.equal('{"pos\\"ition":9007199254740993}', offset_json(r))
    local items = ffi.new "lc_value_t[4]"
    items[0].type, items[0].len, items[0].u.s = C.LC_STRING, 1, "z"
    items[1].type, items[1].u.f = C.LC_FLOAT64, 1
    items[2].type, items[2].len, items[2].u.s = C.LC_STRING, 1, "a"
    r.u.src.offset.type, r.u.src.offset.len, r.u.src.offset.u.items = C.LC_MAP, 2, items
    assert.are.equal('{"z":1.0,"a":null}', offset_json(r))
    C.lc_batch_unref(b)
  end)
end)
