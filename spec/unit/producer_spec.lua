-- core/kafka/producer.c on the mock cluster: what is taken, what is refused, and that every record that was
-- taken is reported exactly once. Records are read back with lc_consumer.
jit.off(true, true) -- C functions that call back must not be called from compiled code
local core = require "spec.support.core"
local Mock = require "spec.support.mock"
local with = require "spec.support.with"
local C, ffi = core.load { "base/err.h", "base/props.h", "base/strv.h", "base/waker.h", "data/record.h",
  "kafka/producer.h", "kafka/consumer.h" }

describe("producer", function()
  local mock, producer, reports, callback, batches

  setup(function() mock = Mock.new() end)
  teardown(function() mock:close() end)

  local function open(settings, waker)
    local conf = with({ ["bootstrap.servers"] = mock.bootstrap, ["linger.ms"] = 0 }, settings)
    local err = core.err()
    producer = C.lc_producer_new(core.props(conf), waker, callback, nil, err)
    assert(producer ~= nil, core.msg(err))
    return producer
  end

  before_each(function()
    reports, batches = {}, 0
    callback = ffi.cast("lc_delivery_fn *", function(_, record, err)
      local value = record.value_bytes
      reports[#reports + 1] = { value = value.p ~= nil and ffi.string(value.p, value.len) or false,
        err = err ~= nil and ffi.string(err.msg) or nil, kind = err ~= nil and tonumber(err.kind) or nil }
      C.lc_batch_unref(record.batch)
    end)
  end)
  after_each(function()
    if producer then C.lc_producer_destroy(producer, 1000) end
    producer = nil
    callback:free()
  end)

  -- values are strings kept alive by the caller: the producer makes no copies
  local function batch(topic, rows)
    local b = C.lc_batch_new(#rows)
    batches = batches + 1
    local keep = { topic }
    for _, row in ipairs(rows) do
      local r = C.lc_batch_add(b)
      r.topic = topic
      if row.topic then keep[#keep + 1] = row.topic; r.topic = row.topic end
      if row[1] then r.value_bytes.p, r.value_bytes.len = row[1], #row[1]; keep[#keep + 1] = row[1] end
      if row.key then r.key_bytes.p, r.key_bytes.len = row.key, #row.key; keep[#keep + 1] = row.key end
      if row.partition then r.partition = row.partition end
      if row.timestamp then r.timestamp = row.timestamp end
      if row.dropped then r.state = C.LC_REC_DROPPED end
      if row.headers then
        local h = ffi.new("lc_header_t[?]", #row.headers)
        for i, pair in ipairs(row.headers) do
          h[i - 1].name = pair[1]
          if pair[2] then h[i - 1].bytes.p, h[i - 1].bytes.len = pair[2], #pair[2] end
        end
        r.headers, r.nheaders = h, #row.headers
        keep[#keep + 1] = h
        keep[#keep + 1] = row.headers
      end
    end
    keep.batch = b
    return b, keep
  end

  local function serve(n)
    local deadline = os.time() + 60
    while #reports < n and os.time() < deadline do C.lc_producer_poll(producer, 100) end
    return #reports
  end

  -- everything in a topic, by a consumer of its own
  local function read(topic, n)
    local err = core.err()
    local consumer = C.lc_consumer_new(core.props { ["bootstrap.servers"] = mock.bootstrap,
      ["group.id"] = "g-" .. topic, ["session.timeout.ms"] = 6000 }, nil, nil, nil, err)
    local topics = ffi.new "lc_strv_t"
    C.lc_strv_add(topics, topic)
    assert.equal(0, C.lc_consumer_subscribe(consumer, topics, nil, err))
    local out, deadline, b = {}, os.time() + 60, ffi.new "lc_batch_t *[1]"
    while #out < n and os.time() < deadline do
      assert.equal(0, C.lc_consumer_poll(consumer, 500, 1000, b, err))
      if b[0] ~= nil then
        for i = 0, b[0].n - 1 do
          local r = b[0].records[i]
          local headers = {}
          for k = 0, r.nheaders - 1 do
            local h = r.headers[k]
            headers[k + 1] = { ffi.string(h.name), h.bytes.p ~= nil and ffi.string(h.bytes.p, h.bytes.len) or false }
          end
          out[#out + 1] = { key = r.key_bytes.p ~= nil and ffi.string(r.key_bytes.p, r.key_bytes.len) or false,
            value = r.value_bytes.p ~= nil and ffi.string(r.value_bytes.p, r.value_bytes.len) or false,
            timestamp = tonumber(r.timestamp), partition = r.partition, headers = headers }
        end
        C.lc_batch_unref(b[0])
      end
    end
    C.lc_consumer_close(consumer)
    C.lc_strv_free(topics)
    return out
  end

  it("sends a run in one go, keeps null apart from empty, skips what was dropped", function()
    mock:topic("plain", 1)
    open()
    local b, keep = batch("plain", { { "one" }, { "two", dropped = true }, { "" }, { false, key = "k" },
      { "five", key = "" } })
    local err = core.err()
    assert.equal(5, C.lc_producer_send(producer, b.records, b.n, err))
    assert.equal(0, tonumber(err.kind))
    assert.equal(4, tonumber(C.lc_producer_outstanding(producer)))
    assert.equal(4, serve(4))
    assert.equal(0, tonumber(C.lc_producer_outstanding(producer)))
    C.lc_batch_unref(b)
    local got = read("plain", 4)
    assert.same({ "one", "", false, "five" }, { got[1].value, got[2].value, got[3].value, got[4].value })
    assert.same({ false, false, "k", "" }, { got[1].key, got[2].key, got[3].key, got[4].key })
    assert.is_true(math.abs(got[1].timestamp / 1000 - os.time()) < 60)
    assert.is_table(keep)
  end)

  it("puts keys where Java puts them, and honours the partition a record names", function()
    mock:topic("parts", 5)
    open()
    -- murmur2("connector-a".."e") & 0x7fffffff % 5, from kafka-clients 4.3.1
    local rows = {}
    for _, k in ipairs { "a", "b", "c", "d", "e", "f" } do rows[#rows + 1] = { k, key = "key-" .. k } end
    rows[#rows + 1] = { "p3", partition = 3 }
    rows[#rows + 1] = { "p1", partition = 1 }
    local b, keep = batch("parts", rows)
    local err = core.err()
    assert.equal(8, C.lc_producer_send(producer, b.records, b.n, err))
    assert.equal(8, serve(8))
    C.lc_batch_unref(b)
    local at = {}
    ffi.cdef "int32_t lc_kafka_partition(const void *key, size_t len, int32_t partitions);"
    for _, r in ipairs(read("parts", 8)) do at[r.value] = r.partition end
    for _, k in ipairs { "a", "b", "c", "d", "e", "f" } do
      assert.equal(C.lc_kafka_partition("key-" .. k, 5, 5), at[k])
    end
    assert.equal(3, at.p3)
    assert.equal(1, at.p1)
    assert.is_table(keep)
  end)

  it("knows Kafka's murmur2", function()
    -- from the recorded topics: status-connector-src and friends of the Java worker, 5 and 25 partitions
    assert.equal(2, C.lc_kafka_partition("status-connector-src", 20, 5))
    assert.equal(1, C.lc_kafka_partition("status-task-src-0", 17, 5))
    assert.equal(4, C.lc_kafka_partition("status-topic-g-in:connector-src", 31, 5))
    local key = '["src",{"filename":"/tmp/golden/in.txt"}]'
    assert.equal(16, C.lc_kafka_partition(key, #key, 25))
  end)

  it("sends headers and timestamps one by one, in order with the runs around them", function()
    mock:topic("mixed", 1)
    open()
    local b, keep = batch("mixed", { { "a" }, { "b", timestamp = 1234567890123 }, { "c", headers = { { "h", "v" },
      { "n", false }, { "h", "" } } }, { "d" } })
    local err = core.err()
    assert.equal(4, C.lc_producer_send(producer, b.records, b.n, err))
    assert.equal(4, serve(4))
    C.lc_batch_unref(b)
    local got = read("mixed", 4)
    assert.same({ "a", "b", "c", "d" }, { got[1].value, got[2].value, got[3].value, got[4].value })
    assert.equal(1234567890123, got[2].timestamp)
    assert.same({ { "h", "v" }, { "n", false }, { "h", "" } }, got[3].headers)
    assert.is_table(keep)
  end)

  it("refuses a record above max.request.size with Java's text and goes on behind it", function()
    mock:topic("big", 1)
    open { ["message.max.bytes"] = 2000 }
    local b, keep = batch("big", { { "a" }, { ("x"):rep(1917) }, { "c" }, { ("y"):rep(1914) } })
    local err = core.err()
    assert.equal(1, C.lc_producer_send(producer, b.records, b.n, err))
    assert.equal(tonumber(C.LC_DATA), tonumber(err.kind))
    assert.equal("org.apache.kafka.common.errors.RecordTooLargeException", ffi.string(err.cls))
    assert.equal("The message is 2003 bytes when serialized which is larger than 2000, which is the value of the "
      .. "max.request.size configuration.", core.msg(err))
    local again = core.err()
    assert.equal(2, C.lc_producer_send(producer, b.records + 2, 2, again))
    assert.equal(0, tonumber(again.kind))
    assert.equal(3, serve(3))
    C.lc_batch_unref(b)
    assert.is_table(keep)
  end)

  it("takes what fits when the queue is full and the rest later, nothing twice", function()
    mock:topic("full", 1)
    open { ["queue.buffering.max.messages"] = 10 }
    local rows = {}
    for i = 1, 100 do rows[i] = { ("v%03d"):format(i) } end
    local b, keep = batch("full", rows)
    local at, rounds, err = 0, 0, core.err()
    while at < 100 and rounds < 1000 do
      local n = C.lc_producer_send(producer, b.records + at, 100 - at, err)
      assert.equal(0, tonumber(err.kind))
      at = at + n
      rounds = rounds + 1
      C.lc_producer_poll(producer, 20)
    end
    assert.equal(100, at)
    assert.is_true(rounds > 1)
    assert.equal(100, serve(100))
    C.lc_batch_unref(b)
    local got = read("full", 100)
    assert.equal(100, #got)
    for i, r in ipairs(got) do assert.equal(rows[i][1], r.value) end
    assert.is_table(keep)
  end)

  it("retries what the broker refuses for a moment, reports what it refuses for good", function()
    mock:topic("errors", 1)
    open { ["retry.backoff.ms"] = 10 }
    local b, keep = batch("errors", { { "a" } })
    mock:fail(0, 6, 19) -- NOT_LEADER, NOT_ENOUGH_REPLICAS
    local err = core.err()
    assert.equal(1, C.lc_producer_send(producer, b.records, 1, err))
    assert.equal(1, serve(1))
    assert.is_nil(reports[1].err)
    C.lc_batch_unref(b)
    local b2, keep2 = batch("errors", { { "b" } })
    mock:fail(0, 29) -- TOPIC_AUTHORIZATION_FAILED
    assert.equal(1, C.lc_producer_send(producer, b2.records, 1, err))
    assert.equal(2, serve(2))
    assert.equal(tonumber(C.LC_FATAL), reports[2].kind)
    assert.matches("Delivery to topic 'errors' partition %-?%d+ failed: .*[Aa]uthorization", reports[2].err)
    C.lc_batch_unref(b2)
    assert.is_table(keep, keep2)
  end)

  it("reports everything before it is gone, also when the broker is away", function()
    mock:topic("gone", 1)
    open()
    local b, keep = batch("gone", { { "first" } })
    local err = core.err()
    assert.equal(1, C.lc_producer_send(producer, b.records, 1, err))
    assert.equal(1, serve(1))
    C.lc_batch_unref(b)
    mock:down()
    local b2, keep2 = batch("gone", { { "a" }, { "b" }, { "c" } })
    assert.equal(3, C.lc_producer_send(producer, b2.records, 3, err))
    C.lc_batch_unref(b2)
    C.lc_producer_destroy(producer, 50)
    producer = nil
    mock:up()
    assert.equal(4, #reports)
    for i = 2, 4 do assert.equal(tonumber(C.LC_FATAL), reports[i].kind) end
    assert.is_table(keep, keep2)
  end)

  it("wakes the owner's waker when reports wait", function()
    mock:topic("wake", 1)
    local waker = ffi.new "lc_waker_t"
    assert.equal(0, C.lc_waker_init(waker))
    open({}, waker)
    local b, keep = batch("wake", { { "a" } })
    local err = core.err()
    C.lc_waker_clear(waker)
    assert.equal(1, C.lc_producer_send(producer, b.records, 1, err))
    assert.is_true(C.lc_waker_wait(waker, 10000))
    local deadline = os.time() + 60
    while #reports < 1 and os.time() < deadline do
      C.lc_waker_clear(waker)
      if C.lc_producer_poll(producer, 0) == 0 then C.lc_waker_wait(waker, 5000) end
    end
    assert.equal(1, #reports)
    C.lc_batch_unref(b)
    C.lc_producer_destroy(producer, 1000)
    producer = nil
    C.lc_waker_close(waker)
    assert.is_table(keep)
  end)

  it("says what librdkafka does not like", function()
    local err = core.err()
    local p = C.lc_producer_new(core.props { ["bootstrap.servers"] = mock.bootstrap, ["linger.ms"] = "soon" }, nil,
      callback, nil, err)
    assert.is_true(p == nil)
    assert.matches("^Invalid value soon for configuration linger.ms: ", core.msg(err))
  end)
end)
