-- core/storage/kafka_offset_store.c without a broker: keys compared as maps, the newest spelling wins.
jit.off(true, true)
local core = require "spec.support.core"
local C, ffi = core.load { "base/err.h", "base/buf.h", "base/props.h", "base/log.h", "storage/offset_store.h",
  "storage/topic_stores.h" }

describe("offsets topic", function()
  local store, at

  before_each(function()
    C.lc_log_set_level(nil, "off")
    local conf = ffi.new "lc_hub_topic_conf_t"
    conf.name, conf.setting, conf.purpose = "t", "s", "p"
    store, at = C.lc_offset_store_kafka_new(nil, conf), 0
  end)
  after_each(function()
    store.ops.stop(store)
    C.lc_log_set_level(nil, "info")
  end)

  local function apply(key, value, timestamp, partition)
    local r = ffi.new "lc_hub_record_t"
    r.topic, r.partition, r.offset, r.timestamp = "t", partition or 0, at, timestamp or at
    r.key, r.key_len = key, key and #key or 0
    r.value, r.value_len = value, value and #value or 0
    at = at + 1
    C.lc_offset_store_kafka_apply(store, r)
  end
  local function get(connector, partition)
    local buf, err = ffi.new "lc_buf_t", core.err()
    local rc = store.ops.get(store, connector, partition, buf, err)
    assert(rc >= 0, core.msg(err))
    local text = rc == 1 and ffi.string(buf.p, buf.len) or nil
    C.lc_buf_free(buf)
    return text
  end
  local function list(connector)
    local out = {}
    local cb = ffi.cast("void (*)(void *, const char *, const char *)", function(_, p, o)
      out[#out + 1] = ffi.string(p) .. " " .. ffi.string(o)
    end)
    assert.equal(0, store.ops.list(store, connector, cb, nil, core.err()))
    cb:free()
    table.sort(out)
    return out
  end

  it("finds an offset by the map, whatever the order and blanks of its key were", function()
    apply('["c",{"b":1,"a":"x"}]', '{"position":5}')
    assert.equal('{"position":5}', get("c", '{"a":"x","b":1}'))
    assert.is_nil(get("c", '{"a":"x"}'))
    assert.is_nil(get("d", '{"a":"x","b":1}'))
    apply('[ "c" , { "a":"x", "b":1 } ]', '{"position":6}')
    assert.equal('{"position":6}', get("c", '{"a":"x","b":1}'))
    assert.equal(1, #list "c")
  end)

  it("forgets what was removed; another spelling of it is still there", function()
    apply('["c",{"a":1}]', '{"n":1}')
    apply('["c",{"a":1}]', nil)
    assert.is_nil(get("c", '{"a":1}'))
    assert.same({}, list "c")
    apply('["c",{"x":1,"y":2}]', '{"n":1}', 10)
    apply('["c",{"y":2,"x":1}]', '{"n":2}', 20, 3)
    assert.equal('{"n":2}', get("c", '{"x":1,"y":2}'))
    apply('["c",{"y":2,"x":1}]', nil, 30, 3)
    assert.equal('{"n":1}', get("c", '{"x":1,"y":2}'))
    -- by time, not by the order partitions happen to be read in
    apply('["c",{"y":2,"x":1}]', '{"n":0}', 5, 3)
    assert.equal('{"n":1}', get("c", '{"x":1,"y":2}'))
  end)

  it("lists by connector, as stored, with its digits", function()
    apply('["c",{"b":"2","a":1}]', '{"position":9007199254740993,"f":1.50}')
    apply('["cc",{"b":1}]', '{"p":1}')
    apply('["c",{"f":null}]', '{"p":null}')
    assert.same({ '{"b":"2","a":1} {"position":9007199254740993,"f":1.50}', '{"f":null} {"p":null}' }, list "c")
    assert.same({}, list "nobody")
  end)

  it("skips keys and values of other shapes", function()
    apply('["c",{"a":1}]', '{"n":1}')
    for _, key in ipairs { "x", "{}", "[]", '["c"]', '["c",{},1]', "[1,{}]", '["c",[]]', '["c",null]', '["c",3]', "" } do
      apply(key, '{"n":2}')
    end
    apply(nil, '{"n":2}')
    for _, value in ipairs { "", "{", "[]", "3", '"x"', "nope" } do apply('["c",{"a":1}]', value) end
    assert.equal('{"n":1}', get("c", '{"a":1}'))
    assert.same({ '{"a":1} {"n":1}' }, list "c")
    local err = core.err()
    assert.equal(-1, store.ops.get(store, "c", "[1]", ffi.new "lc_buf_t", err))
    assert.equal(tonumber(C.LC_DATA), tonumber(err.kind))
  end)
end)
