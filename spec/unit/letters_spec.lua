-- Dead letters of a sink task (core/runtime/letters.c, sink_letters.c) on librdkafka's mock cluster, where Kafka refuses
-- or does not answer; the breaker's arithmetic.
local core = require "spec.support.core"
local C, ffi = core.load { "runtime/breaker.h" }
local records = require "spec.support.records"
local task_bed = require "spec.support.task_bed"
local with = require "spec.support.with"
local worker = require "spec.support.worker"

local probe = task_bed.say .. [[
local connect = require "connect"
local Task = {}
function Task:start(ctx) self.ctx, self.late = ctx, {} end
function Task:put(records)
  local failed = {}
  for i, r in ipairs(records) do
    if r.value == "bad" then failed[#failed + 1] = { index = i, error = connect.data_error "bad record" }
    elseif r.value == "flush" then self.late[1] = r
    elseif r.value == "what" then
      for _, x in ipairs { r:detach(), "text", 7 } do
        local ok, err = pcall(self.ctx.report, self.ctx, x, "e")
        say(self.ctx.config.out, tostring(ok) .. " " .. tostring(err))
      end
    else say(self.ctx.config.out, r.value) end
  end
  return failed
end
function Task:flush()
  for i, r in pairs(self.late) do
    self.late[i] = nil
    self.ctx:report(r, "found out late")
  end
end
return connect.sink { name = "Say", class = "Say", version = "1", task = Task,
  config = { { "out", type = "string", doc = "Where to." } } }
]]

describe("dead letters", function()
  local bed = task_bed.new { prefix = "l", topics = { "-dlq" }, plugins = { ["probe.lua"] = probe },
    config = { ["consumer.session.timeout.ms"] = "6000", ["task.shutdown.graceful.timeout.ms"] = "2000" } }
  local w, cluster, topic, name
  before_each(function() w, cluster, topic, name = bed.worker, bed.cluster, bed.topic, bed.name end)

  local function start(more)
    w:start_task(name, 0, with({ ["connector.class"] = "Say", topics = topic, out = bed.file, ["errors.tolerance"] = "all",
      ["errors.deadletterqueue.topic.name"] = topic .. "-dlq " }, more))
  end
  local function said() return bed:said() end
  local function wait_said(pattern, plain) bed:wait_said(pattern, plain) end
  local function committed() return bed:committed() end
  local function wait_committed(n) bed:wait_committed(n) end

  it("are written, and then offsets are committed", function()
    cluster:write(topic, { "a", "bad", "b" })
    start()
    wait_committed(3)
    assert.same({ "bad" }, cluster:read(topic .. "-dlq", 1))
    assert.equal("a\nb\n", said())
  end)

  -- Ours converts a batch and then transforms it, Java a record after the other.
  it("come in the order of the records, whatever step they failed in", function()
    local bad = { '"first"', "{", '"third"', "[", '"fifth"' }
    local steps = { ["value.converter"] = "org.apache.kafka.connect.json.JsonConverter",
      ["value.converter.schemas.enable"] = "false", transforms = "c", ["transforms.c.spec"] = "int8",
      ["transforms.c.type"] = "org.apache.kafka.connect.transforms.Cast$Value" }
    cluster:write(topic, { "1", bad[1], bad[2], "2", bad[3], bad[4], bad[5] })
    start(steps)
    wait_committed(7)
    assert.same(bad, cluster:read(topic .. "-dlq", 5))
    w:stop_tasks { name, 0 }
    -- the first that fails fails the task: what failed behind it comes again
    cluster:write(topic, { "3", '"fails"', "{" })
    start(with(steps, { ["errors.tolerance"] = "none" }))
    assert.matches("Caused by: .*NumberFormatException", w:wait_state(name, 0, "FAILED").trace)
    local all = cluster:read(topic .. "-dlq", 7, 1000)
    assert.same({ '"fails"' }, { unpack(all, 6) })
  end)

  it("are waited for: what comes behind one that is not acknowledged is put, but not committed", function()
    cluster:write(topic, { "a" })
    start()
    wait_committed(1)
    cluster:produce_error(7, 100000) -- timed out: tried again for ever
    w:stop_tasks { name, 0 }
    -- what the spec itself writes is refused, too, so it was written before
    cluster:produce_fine()
    cluster:write(topic, { "b", "bad", "c" })
    cluster:produce_error(7, 100000)
    start()
    wait_said "c\n"
    wait_committed(2)
    worker.sleep(600) -- three flush intervals
    assert.equal(2, committed())
    assert.equal("RUNNING", w:status(name, 0).state)
    -- a stop does not wait for ever, and commits no more than that
    assert.is_true(worker.took(function() w:stop_tasks { name, 0 } end) < 30000)
    assert.equal(2, committed())
    cluster:produce_fine()
    -- the next one reads it again and can write it (what was in a request at the stop may have arrived, too)
    start()
    wait_committed(4)
    assert.same({ "bad" }, cluster:read(topic .. "-dlq", 1))
  end)

  it("are written when the broker that went away meanwhile is back", function()
    cluster:write(topic, { "a", "bad", "b" })
    cluster:produce_error(7, 100000)
    start()
    wait_said "b\n"
    cluster:down(true)
    worker.sleep(1500)
    assert.equal("RUNNING", w:status(name, 0).state)
    cluster:down(false)
    assert.is_true(committed() <= 1)
    cluster:produce_fine()
    wait_committed(3)
    assert.same({ "bad" }, cluster:read(topic .. "-dlq", 1))
  end)

  it("hold the sink back when too many are out", function()
    local list = {}
    for i = 1, 8000 do list[i] = { value = "bad" } end
    list[3000].value, list[8000].value = "early", "late"
    records.produce(cluster:bootstrap(), topic, list)
    cluster:produce_error(7, 100000)
    start { ["consumer.override.max.poll.records"] = "500" }
    worker.sleep(4000) -- the first join of the mock cluster takes 3 s
    worker.sleep(2000)
    assert.is_nil(said():find("late", 1, true))
    assert.equal("RUNNING", w:status(name, 0).state)
    cluster:produce_fine()
    wait_said "late\n"
    wait_committed(8000)
    assert.equal(7998, #records.read(cluster:bootstrap(), topic .. "-dlq", 7998))
    assert.equal("early\nlate\n", said())
  end)

  it("that Kafka refuses fail the task and are not lost", function()
    cluster:write(topic, { "a", "bad", "b" })
    cluster:produce_error(29, 1) -- topic authorization failed
    start()
    local trace = w:wait_state(name, 0, "FAILED", 30000).trace
    assert.equal(1, (trace:find("org.apache.kafka.connect.errors.ConnectException: Could not produce message to dead letter "
      .. "queue. topic=" .. topic .. "-dlq\n", 1, true)))
    assert.matches("Caused by: org.apache.kafka.common.errors.TopicAuthorizationException: ", trace, 1, true)
    assert.matches("at topic " .. topic .. ", partition 0, offset 1", trace, 1, true)
    assert.is_true(committed() <= 1)
    w:stop_tasks { name, 0 }
    start()
    wait_committed(3)
    assert.same({ "bad" }, cluster:read(topic .. "-dlq", 1))
  end)

  it("may be reported in flush, of a record from before; copies and other things cannot", function()
    cluster:write(topic, { "a", "flush", "what" })
    start()
    wait_committed(3)
    assert.same({ "flush" }, cluster:read(topic .. "-dlq", 1))
    local text = said()
    assert.matches("false [^\n]*ctx:report: a record of put expected, not a copy of one\n", text)
    assert.matches("false [^\n]*ctx:report: a record of put expected, got string\n", text)
    assert.matches("false [^\n]*ctx:report: a record of put expected, got number\n", text)
  end)

  it("reported in flush fail the task under tolerance none", function()
    cluster:write(topic, { "a", "flush" })
    start { ["errors.tolerance"] = "none" }
    local trace = w:wait_state(name, 0, "FAILED", 30000).trace
    assert.matches("Tolerance exceeded in error handler", trace)
    assert.matches("Caused by: org.apache.kafka.connect.errors.DataException: found out late", trace, 1, true)
    assert.same({ "flush" }, cluster:read(topic .. "-dlq", 1))
    assert.is_true(committed() <= 0)
  end)

  it("fail the task at its start when the sink would read them", function()
    start { topics = topic .. "," .. topic .. "-dlq" }
    local trace = w:wait_state(name, 0, "FAILED").trace
    assert.matches("^org.apache.kafka.common.config.ConfigException: The DLQ topic '" .. topic .. "%-dlq' may not be included", trace)
  end)

  it("are not written while the work may not be its own", function()
    cluster:write(topic, { "a" })
    start()
    wait_committed(1)
    cluster:write(topic, { "bad", "b" })
    worker.eventually(function() return committed() == 3 end, nil, 30000)
    worker.lease(false)
    cluster:write(topic, { "bad" })
    worker.sleep(500)
    assert.same({ "bad" }, cluster:read(topic .. "-dlq", 1))
    worker.lease(true)
    wait_committed(4)
    assert.same({ "bad", "bad" }, cluster:read(topic .. "-dlq", 2))
  end)
end)

describe("the breaker", function()
  local function new(ratio, window)
    local b = ffi.new "lc_breaker_t"
    C.lc_breaker_init(b, core.props { ["errors.deadletterqueue.max.failure.ratio"] = ratio,
      ["errors.deadletterqueue.failure.window.records"] = window })
    return b
  end

  it("is off unless it has a ratio", function()
    local b = new()
    assert.is_false(C.lc_breaker_trips(b, 1000, 1000))
    C.lc_breaker_add(b, 10, 10)
    assert.equal(0, b.n)
  end)

  it("judges by the last records, and not by fewer than ten", function()
    local b = new("0.5", "100")
    assert.is_false(C.lc_breaker_trips(b, 9, 9))
    assert.is_true(C.lc_breaker_trips(b, 10, 10))
    assert.is_false(C.lc_breaker_trips(b, 10, 5)) -- not more than the ratio
    assert.is_true(C.lc_breaker_trips(b, 10, 6))
    C.lc_breaker_add(b, 90, 0)
    assert.is_false(C.lc_breaker_trips(b, 10, 10)) -- 10 of 100
    assert.is_true(C.lc_breaker_trips(b, 100, 51)) -- the window is full of them alone
    assert.is_false(C.lc_breaker_trips(b, 1, 0)) -- a batch without failures never trips it
    C.lc_breaker_free(b)
  end)

  it("forgets what is behind the window", function()
    local b = new("0.1", "20")
    for _ = 1, 200 do C.lc_breaker_add(b, 1, 0) end
    assert.is_true(b.n <= 21 and b.cap <= 32, b.n .. " of " .. b.cap)
    C.lc_breaker_add(b, 1, 1)
    assert.is_true(C.lc_breaker_trips(b, 2, 2)) -- 3 of 20 or so
    for _ = 1, 20 do C.lc_breaker_add(b, 1, 0) end
    assert.is_false(C.lc_breaker_trips(b, 1, 1)) -- 1 of 20
    assert.equal(tonumber(b.bad), 0)
    C.lc_breaker_free(b)
  end)

  it("takes a window of one record", function()
    local b = new("0.5", "1")
    assert.is_true(C.lc_breaker_trips(b, 1, 1))
    C.lc_breaker_add(b, 1, 0)
    assert.is_true(C.lc_breaker_trips(b, 1, 1))
    C.lc_breaker_free(b)
  end)
end)
