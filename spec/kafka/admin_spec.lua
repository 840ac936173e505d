-- core/kafka/admin.c against the real broker.
jit.off(true, true)
local core = require "spec.support.core"
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"
local C, ffi = core.load { "base/err.h", "base/props.h", "base/strv.h", "base/log.h", "kafka/admin.h",
  "kafka/consumer.h" }
pcall(ffi.cdef, "void free(void *);")

describe("admin", function()
  local broker, admin

  setup(function()
    broker = kafka.broker()
    local err = core.err()
    admin = C.lc_admin_new(core.props { ["bootstrap.servers"] = broker.bootstrap }, err)
    assert(admin ~= nil, core.msg(err))
  end)
  teardown(function() C.lc_admin_free(admin) end)

  local function take(text)
    if text == nil then return nil end
    local s = ffi.string(text)
    ffi.C.free(text)
    return s
  end

  it("knows the cluster's id", function()
    local err = core.err()
    assert.equal("MkU3OEVBNTcwNTJENDM2Qg", take(C.lc_admin_cluster_id(admin, 10000, err)))
  end)

  it("creates a topic with its settings, once, and never by asking for it", function()
    local name, err = kafka.unique "adm", core.err()
    assert.equal(0, C.lc_admin_partitions(admin, name, 5000, err))
    assert.equal(0, C.lc_admin_partitions(admin, name, 5000, err))
    local settings = core.props { ["cleanup.policy"] = "compact", ["segment.bytes"] = "1048576" }
    assert.equal(1, C.lc_admin_create_topic(admin, name, 3, 1, settings, 10000, err), core.msg(err))
    assert.equal(3, C.lc_admin_partitions(admin, name, 5000, err))
    assert.equal(0, C.lc_admin_create_topic(admin, name, 9, 1, nil, 10000, err))
    assert.equal(3, C.lc_admin_partitions(admin, name, 5000, err))
    assert.equal("compact", take(C.lc_admin_topic_config(admin, name, "cleanup.policy", 10000, err)))
    assert.equal("1048576", take(C.lc_admin_topic_config(admin, name, "segment.bytes", 10000, err)))
    local other = kafka.unique "adm"
    assert.equal(1, C.lc_admin_create_topic(admin, other, -1, -1, nil, 10000, err), core.msg(err))
    assert.equal("delete", take(C.lc_admin_topic_config(admin, other, "cleanup.policy", 10000, err)))
    assert.is_nil(take(C.lc_admin_topic_config(admin, other, "no.such.setting", 3000, err)))
    assert.matches("no.such.setting", core.msg(err))
  end)

  it("says what the broker does not like", function()
    local err = core.err()
    assert.equal(-1, C.lc_admin_create_topic(admin, "bad topic!", 1, 1, nil, 10000, err))
    assert.equal("Unable to create topic(s) 'bad topic!': Topic name is invalid: 'bad topic!' contains one or more "
      .. "characters other than ASCII alphanumerics, '.', '_' and '-'", core.msg(err))
    assert.equal(tonumber(C.LC_FATAL), tonumber(err.kind))
    err = core.err()
    local settings = core.props { ["no.such.setting"] = "1" }
    assert.equal(-1, C.lc_admin_create_topic(admin, kafka.unique "adm", 1, 1, settings, 10000, err))
    assert.matches("^Unable to create topic%(s%) 'adm.*no.such.setting", core.msg(err))
    err = core.err()
    assert.equal(-1, C.lc_admin_create_topic(admin, kafka.unique "adm", 1, 5, nil, 10000, err))
    assert.matches("^Unable to create topic%(s%) 'adm", core.msg(err))
  end)

  it("reads a group's committed offsets", function()
    local name, err = kafka.unique "adm-o", core.err()
    assert.equal(1, C.lc_admin_create_topic(admin, name, 2, 1, nil, 10000, err))
    broker:produce(name, { "a", "b", "c" })
    local c = C.lc_consumer_new(core.props { ["bootstrap.servers"] = broker.bootstrap, ["group.id"] = name }, nil, nil,
      nil, err)
    local topics, got = ffi.new "lc_strv_t", 0
    C.lc_strv_add(topics, name)
    assert.equal(0, C.lc_consumer_subscribe(c, topics, nil, err))
    local slot = ffi.new "lc_batch_t *[1]"
    proc.wait_for("three records", function()
      assert.equal(0, C.lc_consumer_poll(c, 200, 100, slot, err))
      if slot[0] ~= nil then
        got = got + slot[0].n
        C.lc_batch_unref(slot[0])
      end
      return got == 3
    end, 30)
    local tp = ffi.new("lc_topic_partition_t[1]")
    tp[0].topic, tp[0].partition, tp[0].offset = name, 1, 1
    assert.equal(0, C.lc_consumer_commit(c, tp, 1, err), core.msg(err))
    C.lc_consumer_close(c)
    C.lc_strv_free(topics)
    local seen = {}
    local cb = ffi.cast("void (*)(void *, const char *, int32_t, int64_t)", function(_, topic, p, o)
      seen[#seen + 1] = { ffi.string(topic), p, tonumber(o) }
    end)
    assert.equal(0, C.lc_admin_group_offsets(admin, name, 10000, cb, nil, err), core.msg(err))
    assert.same({ { name, 1, 1 } }, seen)
    seen = {}
    assert.equal(0, C.lc_admin_group_offsets(admin, name .. "-nobody", 10000, cb, nil, err), core.msg(err))
    assert.same({}, seen)
    cb:free()
  end)

  it("gives up in time when nobody answers", function()
    C.lc_log_set_level(nil, "off")
    local err = core.err()
    local a = C.lc_admin_new(core.props { ["bootstrap.servers"] = "127.0.0.1:1" }, err)
    local start = proc.now()
    assert.is_true(C.lc_admin_cluster_id(a, 300, err) == nil)
    assert.equal("Timed out waiting for a node assignment. Call: listNodes", core.msg(err))
    err = core.err()
    assert.equal(-1, C.lc_admin_partitions(a, "x", 300, err))
    assert.equal(tonumber(C.LC_RETRIABLE), tonumber(err.kind))
    assert.is_true(proc.now() - start < 20) -- not the default of a minute
    C.lc_admin_free(a)
    C.lc_log_set_level(nil, "info")
  end)
end)
