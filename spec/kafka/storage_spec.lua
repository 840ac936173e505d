-- The three stores on a real broker: topics as Java makes them, bytes as Java writes them, the checks, what a
-- second worker sees, safe statuses, a broker that comes late or goes away.
jit.off(true, true)
local core = require "spec.support.core"
local kafka = require "spec.support.kafka"
local proc = require "spec.support.proc"
local with = require "spec.support.with"
local worker_config = require "spec.support.worker_config"
local C, ffi = core.load { "base/err.h", "base/buf.h", "base/props.h", "base/strv.h", "base/log.h",
  "config/worker_config.h", "kafka/admin.h", "storage/kafka_stores.h" }
pcall(ffi.cdef, "void free(void *);")

describe("kafka stores", function()
  local broker
  local opened

  setup(function() broker = kafka.broker() end)
  before_each(function() opened = {} end)
  after_each(function()
    for _, s in ipairs(opened) do s:close() end
  end)

  local Stores = {}
  Stores.__index = Stores

  -- a worker's stores on topics ID-configs, ID-offsets, ID-status
  local function new(id, extra, bootstrap)
    local err = core.err()
    local wc = worker_config.new(with({ ["bootstrap.servers"] = bootstrap or broker.bootstrap, ["group.id"] = id,
      ["config.storage.topic"] = id .. "-configs", ["offset.storage.topic"] = id .. "-offsets",
      ["status.storage.topic"] = id .. "-status", ["config.storage.replication.factor"] = "1",
      ["offset.storage.replication.factor"] = "1", ["status.storage.replication.factor"] = "1" }, extra))
    local ks = ffi.new "lc_kafka_stores_t"
    assert(C.lc_kafka_stores_new(wc, ks, err) == 0, core.msg(err))
    local s = setmetatable({ ks = ks, wc = wc, stop = ffi.new "int[1]" }, Stores)
    opened[#opened + 1] = s
    return s
  end
  function Stores:start_one(which)
    local err, store = core.err(), self.ks[which]
    local rc
    if which == "config" then rc = store.ops.start(store, nil, nil, self.stop, err)
    else rc = store.ops.start(store, self.stop, err) end
    return rc, core.msg(err), err
  end
  function Stores:start()
    for _, which in ipairs { "offset", "status", "config" } do
      local rc, msg = self:start_one(which)
      assert(rc == 0, msg)
    end
    return self
  end
  function Stores:close()
    if self.closed then return end
    self.closed = true
    for _, which in ipairs { "config", "status", "offset" } do self.ks[which].ops.stop(self.ks[which]) end
    C.lc_kafka_stores_free(self.ks)
    C.lc_worker_config_free(self.wc)
  end
  function Stores:snapshot()
    return ffi.gc(self.ks.config.ops.snapshot(self.ks.config), C.lc_config_snapshot_unref)
  end
  function Stores:config(op, ...)
    local args, err = { ... }, core.err()
    args[#args + 1] = err
    local rc = self.ks.config.ops[op](self.ks.config, unpack(args))
    return rc, core.msg(err)
  end
  function Stores:put_status(connector, task, state, generation, worker, safe, trace)
    local st, keep = ffi.new "lc_status_t", {}
    local function cstr(s)
      keep[#keep + 1] = ffi.new("char[?]", #s + 1, s)
      return keep[#keep]
    end
    st.task, st.state, st.generation, st.worker_id = task, C["LC_" .. state], generation, cstr(worker)
    st.version = cstr "4.3.1"
    if trace then st.trace = cstr(trace) end
    self.ks.status.ops.put(self.ks.status, connector, st, safe or false)
  end
  function Stores:status(connector, task)
    local st = ffi.new "lc_status_t"
    if not self.ks.status.ops.get(self.ks.status, connector, task, st) then return nil end
    local s = ffi.string(C.lc_state_name(st.state)) .. " " .. st.generation
    C.lc_status_clear(st)
    return s
  end
  function Stores:set_offsets(connector, list)
    local e, keep = ffi.new("lc_offset_entry_t[?]", #list), {}
    for i, kv in ipairs(list) do
      e[i - 1].partition, e[i - 1].offset = kv[1], kv[2]
      keep[#keep + 1] = kv
    end
    self.ks.offset.ops.set(self.ks.offset, connector, e, #list, nil, nil)
    return keep
  end
  function Stores:offset(connector, partition)
    local buf, err = ffi.new "lc_buf_t", core.err()
    local rc = self.ks.offset.ops.get(self.ks.offset, connector, partition, buf, err)
    assert(rc >= 0, core.msg(err))
    local text = rc == 1 and ffi.string(buf.p, buf.len) or nil
    C.lc_buf_free(buf)
    return text
  end

  local function bytes(topic)
    local out = {}
    for i, r in ipairs(broker:records(topic)) do out[i] = (r.key or "null") .. " " .. (r.value or "null") end
    return out
  end
  local function wait(what, f) return proc.wait_for(what, f) end

  it("creates the topics as Java does, fast, and finds them again faster", function()
    local id = kafka.unique "st"
    local begin = proc.now()
    local s = new(id, { ["offset.storage.partitions"] = "7", ["offset.storage.segment.bytes"] = "1048576",
      ["status.storage.cleanup.policy"] = "delete", ["status.storage.min.insync.replicas"] = "1" }):start()
    assert.is_true(proc.now() - begin < 30)
    assert.equal(-1, tonumber(s:snapshot().offset))
    local err = core.err()
    local admin = C.lc_admin_new(core.props { ["bootstrap.servers"] = broker.bootstrap }, err)
    local function setting(topic, name)
      local text = C.lc_admin_topic_config(admin, id .. topic, name, 10000, err)
      local value = ffi.string(text)
      ffi.C.free(text)
      return value
    end
    assert.equal(1, C.lc_admin_partitions(admin, id .. "-configs", 5000, err))
    assert.equal(7, C.lc_admin_partitions(admin, id .. "-offsets", 5000, err))
    assert.equal(5, C.lc_admin_partitions(admin, id .. "-status", 5000, err))
    for _, t in ipairs { "-configs", "-offsets", "-status" } do
      assert.equal("compact", setting(t, "cleanup.policy"))
    end
    assert.equal("1048576", setting("-offsets", "segment.bytes"))
    C.lc_admin_free(admin)
    s:close()
    begin = proc.now()
    new(id):start()
    assert.is_true(proc.now() - begin < 30)
  end)

  it("writes the config topic as Java does, and a second worker reads the same", function()
    local id = kafka.unique "st"
    local s = new(id):start()
    local config = core.props { { "connector.class", "FileStreamSource" }, { "x", 'q"\n' }, { "name", "src" } }
    assert.equal(0, s:config("put_connector", "src", config, C.LC_TARGET_NONE))
    local tasks = ffi.new("lc_props_t *[2]")
    tasks[0], tasks[1] = core.props { t = 0 }, core.props { t = 1 }
    local keep = { tasks[0], tasks[1] }
    assert.equal(0, s:config("put_tasks", "src", tasks, 2))
    local snap = s:snapshot()
    assert.equal(4, tonumber(snap.offset)) -- read back before the write returned
    assert.equal(2, snap.v[0].ntasks)
    assert.same({ t = "1" }, core.table(snap.v[0].tasks[1]))
    assert.equal(0, s:config("put_tasks", "src", tasks, 0))
    assert.equal(0, s:config("put_target", "src", C.LC_TARGET_STOPPED))
    assert.equal(0, s:config("put_session_key", "abc=", "HmacSHA256", 1795993551033))
    assert.equal(0, s:config("put_restart", "src", true, false))
    assert.equal(0, s:config("put_logger", "root", "INFO"))
    assert.equal(0, s:config("put_connector", "ini", config, C.LC_TARGET_PAUSED))
    assert.equal(0, s:config("remove_connector", "src"))
    assert.same({
      [[connector-src {"properties":{"connector.class":"FileStreamSource","x":"q\"\n","name":"src"}}]],
      'task-src-0 {"properties":{"t":"0"}}', 'task-src-1 {"properties":{"t":"1"}}', 'commit-src {"tasks":2}',
      'commit-src {"tasks":0}', 'target-state-src {"state":"PAUSED","state.v2":"STOPPED"}',
      'session-key {"key":"abc=","algorithm":"HmacSHA256","creation-timestamp":1795993551033}',
      'restart-connector-src {"include-tasks":false,"only-failed":true}', 'logger-cluster-root {"level":"INFO"}',
      'target-state-ini {"state":"PAUSED","state.v2":"PAUSED"}',
      [[connector-ini {"properties":{"connector.class":"FileStreamSource","x":"q\"\n","name":"src"}}]],
      "connector-src null", "target-state-src null" }, bytes(id .. "-configs"))
    local other = new(id):start()
    local theirs = other:snapshot()
    assert.equal(13, tonumber(theirs.offset))
    assert.equal(1, tonumber(theirs.n))
    assert.equal("ini", ffi.string(theirs.v[0].name))
    assert.equal("abc=", ffi.string(theirs.session_key))
    -- and follows what is written later; refresh reads to the end
    assert.equal(0, s:config("put_connector", "late", config, C.LC_TARGET_NONE))
    assert.equal(0, other:config("refresh", 10000))
    assert.equal(2, tonumber(other:snapshot().n))
    assert.is_table(keep)
  end)

  it("writes offsets under the bytes and partition they were read with", function()
    local id = kafka.unique "st"
    local s = new(id):start()
    s:set_offsets("src", { { '{"filename":"/tmp/golden/in.txt"}', '{"position":8}' } })
    assert.equal('{"position":8}', s:offset("src", '{"filename":"/tmp/golden/in.txt"}'))
    local records = broker:records(id .. "-offsets")
    assert.equal('["src",{"filename":"/tmp/golden/in.txt"}]', records[1].key)
    assert.equal(16, records[1].partition)
    -- what somebody else wrote in another order, into another partition
    local foreign = '["src",{"b":"2","a":"1"}]'
    proc.run(("printf '%%s\\t%%s\\n' '%s' '{\"n\":1}' | kcat -b %s -P -t %s-offsets -p 3 -K '\t'"):format(foreign,
      broker.bootstrap, id))
    assert.equal('{"n":1}', s:offset("src", '{"a":"1","b":"2"}'))
    s:set_offsets("src", { { '{"a":"1","b":"2"}', '{"n":2}' } })
    assert.equal('{"n":2}', s:offset("src", '{"a":"1","b":"2"}'))
    local last
    for _, r in ipairs(broker:records(id .. "-offsets")) do if r.value == '{"n":2}' then last = r end end
    assert.same({ foreign, 3 }, { last.key, last.partition })
    s:set_offsets("src", { { '{"a":"1","b":"2"}', nil } })
    assert.is_nil(s:offset("src", '{"a":"1","b":"2"}'))
    s:close()
    local again = new(id):start()
    assert.equal('{"position":8}', again:offset("src", '{"filename":"/tmp/golden/in.txt"}'))
    assert.is_nil(again:offset("src", '{"a":"1","b":"2"}'))
  end)

  it("writes statuses as Java does and keeps hands off what others own", function()
    local id = kafka.unique "st"
    local a, b = new(id):start(), new(id):start()
    a:put_status("src", -1, "RUNNING", 3, "a:1")
    a:put_status("src", 0, "FAILED", 3, "a:1", true, "java.lang.X: y\n\tat z")
    wait("both workers to see both", function() -- they are in two partitions: the second may be there first
      return b:status("src", -1) == "RUNNING 3" and b:status("src", 0) == "FAILED 3" and a:status("src", -1)
        and a:status("src", 0)
    end)
    b:put_status("src", -1, "RUNNING", 5, "b:1")
    wait("the newer one", function() return a:status("src", -1) == "RUNNING 5" end)
    a:put_status("src", -1, "UNASSIGNED", 4, "a:1", true) -- not any more
    a:put_status("src", 0, "UNASSIGNED", 4, "a:1", true)
    wait("the task's", function() return a:status("src", 0) == "UNASSIGNED 4" end)
    a.ks.status.ops.topic_used(a.ks.status, "src", 0, "g-in")
    a.ks.status.ops.topic_used(a.ks.status, "src", 0, "g-in")
    a.ks.status.ops.flush(a.ks.status, 5000)
    local seen = {}
    for _, r in ipairs(broker:records(id .. "-status")) do
      seen[r.key] = (seen[r.key] or "") .. r.value:gsub('"discoverTimestamp":%d+', "NOW") .. "\n"
      assert.equal(({ ["status-connector-src"] = 2, ["status-task-src-0"] = 1,
        ["status-topic-g-in:connector-src"] = 4 })[r.key], r.partition)
    end
    assert.same({
      ["status-connector-src"] =
        '{"state":"RUNNING","trace":null,"worker_id":"a:1","generation":3,"version":"4.3.1"}\n'
        .. '{"state":"RUNNING","trace":null,"worker_id":"b:1","generation":5,"version":"4.3.1"}\n',
      ["status-task-src-0"] =
        [[{"state":"FAILED","trace":"java.lang.X: y\n\tat z","worker_id":"a:1","generation":3,"version":"4.3.1"}]]
        .. '\n{"state":"UNASSIGNED","trace":null,"worker_id":"a:1","generation":4,"version":"4.3.1"}\n',
      ["status-topic-g-in:connector-src"] = '{"topic":{"name":"g-in","connector":"src","task":0,NOW}}\n',
    }, seen)
    b:put_status("src", -1, "DESTROYED", 6, "b:1")
    wait("the connector to be gone", function() return a:status("src", -1) == nil and a:status("src", 0) == nil end)
    local topics = ffi.new "lc_strv_t"
    wait("the topic", function()
      C.lc_strv_free(topics)
      a.ks.status.ops.topics(a.ks.status, "src", topics)
      return tonumber(topics.n) == 1
    end)
    a.ks.status.ops.topics_reset(a.ks.status, "src")
    wait("no topic", function()
      C.lc_strv_free(topics)
      b.ks.status.ops.topics(b.ks.status, "src", topics)
      return tonumber(topics.n) == 0
    end)
  end)

  it("reads past garbage in all three topics", function()
    local id = kafka.unique "st"
    new(id):start():close()
    for _, t in ipairs { "-configs", "-offsets", "-status" } do
      -- (a compacted topic takes no record without a key)
      local file = os.tmpname()
      proc.write(file, "connector-a\t{\n[1]\t{}\nstatus-task-x\t7\ntask-a-0\t{\"properties\":1}\nkey\t\nconnector-a\t\n"
        .. "\255\254\0\t\255\254\0\nlong\t" .. ("x"):rep(100000) .. "\nsession-key\t[]\n[\"c\",{}]\tnope\n")
      local _, status = proc.run(("kcat -b %s -P -t %s -K '\t' -l %s"):format(broker.bootstrap, id .. t, file))
      assert.equal(0, status)
      os.remove(file)
    end
    C.lc_log_set_level(nil, "off")
    local s = new(id):start()
    C.lc_log_set_level(nil, "info")
    assert.equal(0, tonumber(s:snapshot().n))
    assert.equal(0, s:config("put_connector", "a", core.props { k = "v" }, C.LC_TARGET_NONE))
    assert.equal(1, tonumber(s:snapshot().n))
  end)

  describe("refuses", function()
    local function make(topic, partitions, settings)
      local err = core.err()
      local admin = C.lc_admin_new(core.props { ["bootstrap.servers"] = broker.bootstrap }, err)
      assert.equal(1, C.lc_admin_create_topic(admin, topic, partitions, 1, core.props(settings), 10000, err))
      C.lc_admin_free(admin)
    end

    it("a config topic of several partitions", function()
      local id = kafka.unique "st"
      make(id .. "-configs", 2, { ["cleanup.policy"] = "compact" })
      local s = new(id)
      assert.equal(0, (s:start_one "offset"))
      local rc, msg = s:start_one "config"
      assert.equal(-1, rc)
      assert.equal(("Topic '%s-configs' supplied via the 'config.storage.topic' property is required to have a single "
        .. "partition in order to guarantee consistency of connector configurations, but found 2 partitions."):format(
          id), msg)
    end)

    it("a topic that is not compacted", function()
      local id = kafka.unique "st"
      make(id .. "-offsets", 2, { ["cleanup.policy"] = "delete" })
      local rc, msg = new(id):start_one "offset"
      assert.equal(-1, rc)
      assert.equal(("Topic '%s-offsets' supplied via the 'offset.storage.topic' property is required to have "
        .. "'cleanup.policy=compact' to guarantee consistency and durability of source connector offsets, but found "
        .. "the topic currently has 'cleanup.policy=delete'. Continuing would likely result in eventually losing "
        .. "source connector offsets and problems restarting this Connect cluster in the future. Change the "
        .. "'offset.storage.topic' property in the Connect worker configurations to use a topic with "
        .. "'cleanup.policy=compact'."):format(id), msg)
    end)

    it("a topic that cannot exist", function()
      local s = new(kafka.unique "st", { ["config.storage.topic"] = "bad topic!" })
      local rc, msg, err = s:start_one "config"
      assert.equal(-1, rc)
      assert.equal("Unable to create topic(s) 'bad topic!': Topic name is invalid: 'bad topic!' contains one or more "
        .. "characters other than ASCII alphanumerics, '.', '_' and '-'", msg)
      assert.matches("Caused by: org.apache.kafka.common.errors.InvalidTopicException", ffi.string(err.detail))
    end)

    it("a cluster that does not answer, after default.api.timeout.ms", function()
      C.lc_log_set_level(nil, "off")
      local s = new(kafka.unique "st", { ["default.api.timeout.ms"] = "700", ["request.timeout.ms"] = "500" },
        "127.0.0.1:1")
      local err, begin = core.err(), proc.now()
      assert.is_true(C.lc_kafka_stores_cluster_id(s.ks, nil, err) == nil)
      assert.is_true(proc.now() - begin < 30)
      assert.equal("Failed to connect to and describe Kafka cluster. Check worker's broker connection and security "
        .. "properties.", core.msg(err))
      -- a start waits for ever, but not past *stop
      s.stop[0] = 1
      local rc, msg = s:start_one "status"
      assert.equal(-1, rc)
      assert.matches("^Stopped while waiting", msg)
      C.lc_log_set_level(nil, "info")
    end)
  end)

  it("outlives its broker: nothing is lost, and it says what it waits for", function()
    local own = kafka.broker { own = true }
    local shared = broker
    broker = own
    local id = kafka.unique "st"
    local s = new(id):start()
    assert.equal(0, s:config("put_connector", "one", core.props { k = 1 }, C.LC_TARGET_NONE))
    own:stop()
    local keep = s:set_offsets("src", { { '{"f":"a"}', '{"position":1}' } })
    s:put_status("src", -1, "RUNNING", 1, "a:1")
    local rc, msg = s:config("refresh", 500)
    assert.equal(-1, rc)
    assert.is_true(#msg > 0)
    own:start()
    assert.equal('{"position":1}', s:offset("src", '{"f":"a"}'))
    wait("the status", function() return s:status("src", -1) == "RUNNING 1" end)
    assert.equal(0, s:config("put_connector", "two", core.props { k = 1 }, C.LC_TARGET_NONE))
    assert.equal(2, tonumber(s:snapshot().n))
    s:close()
    own:stop()
    broker = shared
    assert.is_table(keep)
  end)
end)
