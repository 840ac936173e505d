-- Source tasks (core/runtime/source_task.c) on librdkafka's mock cluster: records, offsets, failures.
local files = require "spec.support.files"
local task_bed = require "spec.support.task_bed"
local with = require "spec.support.with"
local worker = require "spec.support.worker"

-- The plugin sends `count` records "v1".."vN", a few a poll, with offsets {n = i} of partition {p = "x"};
-- it goes on after the stored offset. Values may be made bad by settings.
local probe = task_bed.say .. [[
local connect = require "connect"
local Task = {}
function Task:start(ctx)
  self.ctx, self.c = ctx, ctx.config
  local stored = ctx.offsets:get { p = "x" }
  self.n = stored and stored.n or 0
end
function Task:poll()
  local c = self.c
  if c.retry and not self.retried then
    self.retried = true
    error(connect.retriable "not now")
  end
  if c.wake and self.n >= c.count then
    local f = io.open(c.wake)
    if f then f:close() else c.count = c.count + 2; c.wake = nil end
  end
  if c.goal then
    local f = assert(io.open(c.goal))
    c.count = f:read "*n" or c.count
    f:close()
  end
  if self.n >= c.count then return nil end
  local out = {}
  while #out < c.batch and self.n < c.count do
    self.n = self.n + 1
    local r = { topic = c.topic, value = "v" .. self.n, source_partition = { p = "x" }, source_offset = { n = self.n } }
    if self.n == c.big then r.value = ("x"):rep(2000000) end
    if c.bytes then r.value_schema = "bytes" end
    if self.n == c.bad then r.value, r.value_schema = 5, "int32" end
    if self.n == c.late then r.timestamp = -5 end
    if self.n == c.nowhere then r.source_partition, r.source_offset = nil, nil end
    out[#out + 1] = r
  end
  if c.goal then say(self.c.mark, "read " .. self.n) end
  return out
end
function Task:commit() say(self.c.mark, "commit " .. self.n) end
local config = {
  { "topic", type = "string", doc = "" }, { "count", type = "int", default = 10, doc = "" },
  { "batch", type = "int", default = 4, doc = "" }, { "big", type = "int", default = 0, doc = "" },
  { "bad", type = "int", default = 0, doc = "" }, { "late", type = "int", default = 0, doc = "" },
  { "nowhere", type = "int", default = 0, doc = "" }, { "mark", type = "string", doc = "" },
  { "wake", type = "string", doc = "" }, { "goal", type = "string", doc = "" },
  { "retry", type = "boolean", default = false, doc = "" }, { "bytes", type = "boolean", default = false, doc = "" },
}
local function commit_record(self, r, m)
  say(self.c.mark, ("record %s at %s-%d %d"):format(r.value, m.topic, m.partition, m.offset))
end
return {
  connect.source { name = "Count", class = "Count", version = "1", task = Task, config = config },
  connect.source { name = "Recording", class = "Recording", version = "1", config = config,
    task = { start = Task.start, poll = Task.poll, commit_record = commit_record } },
}
]]

describe("source task", function()
  local bed = task_bed.new { prefix = "t", plugins = { ["probe.lua"] = probe } }
  local w, cluster, topic, name
  before_each(function() w, cluster, topic, name = bed.worker, bed.cluster, bed.topic, bed.name end)

  local function config(more) return with({ ["connector.class"] = "Count", topic = topic, mark = bed.file }, more) end
  local function wait_offset(n) bed:wait_offset(n) end
  local function no_flush(more) w = bed:open(with({ ["offset.flush.interval.ms"] = "3600000" }, more)) end

  it("sends every record in order and stores the last offset after the flush interval", function()
    w:start_task(name, 0, config())
    wait_offset(10)
    assert.same({ "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10" }, cluster:read(topic, 10))
    assert.same({ topic }, w:topics(name))
    assert.equal("RUNNING", w:status(name, 0).state)
  end)

  it("commits on stop, and the next instance goes on from there", function()
    no_flush()
    w:start_task(name, 0, config { count = "6" })
    assert.equal(6, #cluster:read(topic, 6))
    assert.is_nil(w:offset(name, '{"p":"x"}'))
    w:stop_tasks { name, 0 }
    assert.equal('{"n":6}', w:offset(name, '{"p":"x"}'))
    w:start_task(name, 0, config { count = "8" })
    assert.equal(8, #cluster:read(topic, 8))
    w:stop_tasks { name, 0 }
    assert.equal('{"n":8}', w:offset(name, '{"p":"x"}'))
  end)

  it("commits when it is paused, and goes on when resumed", function()
    no_flush()
    w:start_task(name, 0, config { count = "3" })
    assert.equal(3, #cluster:read(topic, 3))
    w:tasks_target(name, worker.PAUSED)
    w:wait_state(name, 0, "PAUSED")
    wait_offset(3)
  end)

  describe("while the work may not be its own", function()
    after_each(function()
      worker.lease(true)
      cluster:down(false)
      cluster:rtt(0)
    end)

    it("writes no record and no offset, and goes on afterwards", function()
      local wake = os.tmpname() -- gone: two more records
      w:start_task(name, 0, config { count = "4", wake = wake })
      wait_offset(4)
      worker.lease(false)
      os.remove(wake)
      assert.equal(4, #cluster:read(topic, 5, 700))
      assert.equal('{"n":4}', w:offset(name, '{"p":"x"}'))
      assert.equal("RUNNING", w:status(name, 0).state)
      worker.lease(true)
      wait_offset(6)
      assert.same({ "v1", "v2", "v3", "v4", "v5", "v6" }, cluster:read(topic, 6))
    end)

    it("takes back what was not sent, and sends it in order when it may", function()
      local wake = os.tmpname() -- gone: two more records
      w:start_task(name, 0, config { count = "4", batch = "2", wake = wake })
      wait_offset(4)
      cluster:down(true)
      os.remove(wake) -- two more, and the producer cannot send them
      worker.sleep(1500)
      worker.lease(false)
      worker.sleep(500)
      cluster:down(false)
      assert.equal(4, #cluster:read(topic, 5, 2000))
      assert.equal('{"n":4}', w:offset(name, '{"p":"x"}'))
      worker.lease(true)
      wait_offset(6)
      assert.same({ "v1", "v2", "v3", "v4", "v5", "v6" }, cluster:read(topic, 6))
    end)

    it("takes back what is in a request and what is in none yet, and sends it in order", function()
      local goal = os.tmpname()
      local function reach(n)
        files.write(goal, n .. "\n")
        bed:wait_said("read " .. n .. "\n", true)
      end
      files.write(goal, "4\n")
      w:start_task(name, 0, config { count = "4", goal = goal })
      wait_offset(4)
      cluster:rtt(2500)
      for n = 5, 7 do -- the first is on its way, the second in a request behind it, the third in none
        reach(n)
        worker.sleep(100)
      end
      worker.lease(false)
      worker.sleep(300)
      worker.lease(true)
      wait_offset(7)
      cluster:rtt(0)
      assert.same({ "v1", "v2", "v3", "v4", "v5", "v6", "v7" }, cluster:read(topic, 7))
    end)

    it("stops at once, sending nothing and committing nothing", function()
      no_flush { ["task.shutdown.graceful.timeout.ms"] = "60000" }
      w:start_task(name, 0, config { count = "3" })
      assert.equal(3, #cluster:read(topic, 3))
      worker.lease(false)
      local ms = worker.took(function() w:stop_tasks { name, 0 } end)
      assert.is_true(ms < 30000, ms .. " ms")
      assert.is_nil(w:offset(name, '{"p":"x"}'))
      assert.equal("RUNNING", w:status(name, 0).state) -- what the new owner wrote is not written over
      worker.lease(true)
      w:start_task(name, 0, config { count = "3" })
      assert.equal(6, #cluster:read(topic, 6)) -- read again by the next owner
    end)
  end)

  it("calls commit() after the offsets were written", function()
    w:start_task(name, 0, config())
    bed:wait_said "commit 10"
  end)

  it("tells commit_record about each record", function()
    w:start_task(name, 0, config { ["connector.class"] = "Recording", count = "3" })
    worker.eventually(function()
      return bed:said() == ("record v1 at T-0 0\nrecord v2 at T-0 1\nrecord v3 at T-0 2\n"):gsub("T", topic)
    end)
  end)

  it("goes on after a retriable poll", function()
    w:start_task(name, 0, config { retry = "true" })
    wait_offset(10)
  end)

  it("sends records without a source partition", function()
    w:start_task(name, 0, config { nowhere = "10" })
    assert.equal(10, #cluster:read(topic, 10))
    wait_offset(9)
  end)

  it("is FAILED by a record too large, naming size, partition and offset; those before it are there", function()
    w:start_task(name, 0, config { big = "6" })
    local trace = w:wait_state(name, 0, "FAILED").trace
    assert.matches("^org%.apache%.kafka%.connect%.errors%.ConnectException: Unrecoverable exception from producer send "
      .. "callback\n", trace)
    assert.matches("Caused by: org.apache.kafka.common.errors.RecordTooLargeException: The message is 2000088 bytes when "
      .. "serialized which is larger than 1048576, which is the value of the max.request.size configuration.\n",
      trace, 1, true)
    assert.matches('source partition {"p":"x"}, offset {"n":6}', trace, 1, true)
    wait_offset(5)
  end)

  it("skips a record too large under tolerance all; its offset counts", function()
    w:start_task(name, 0, config { big = "10", ["errors.tolerance"] = "all" })
    wait_offset(10)
    assert.equal(9, #cluster:read(topic, 9))
    assert.equal("RUNNING", w:status(name, 0).state)
  end)

  it("is FAILED by a record that cannot be converted, after those before it", function()
    w:start_task(name, 0, config { bad = "7", batch = "10",
      ["value.converter"] = "org.apache.kafka.connect.converters.ByteArrayConverter", bytes = "true" })
    local trace = w:wait_state(name, 0, "FAILED").trace
    assert.matches("^org%.apache%.kafka%.connect%.errors%.ConnectException: Tolerance exceeded in error handler\n", trace)
    assert.matches("\nCaused by: org.apache.kafka.connect.errors.DataException: ", trace, 1, true)
    assert.same({ "v1", "v2", "v3", "v4", "v5", "v6" }, cluster:read(topic, 6))
    wait_offset(6)
  end)

  it("sends what a topic refused as a batch in smaller ones, in order, whatever is tolerated", function()
    for i, times in ipairs { 1, 2 } do -- the second time of single records
      cluster:produce_error(10, times) -- message too large
      w:start_task(name .. i, 0, config { count = "10", batch = "10", ["errors.tolerance"] = i == 2 and "all" or "none" })
      local values = cluster:read(topic, 10 * i)
      assert.same({ "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10" }, { unpack(values, 10 * i - 9) })
      worker.eventually(function() return w:offset(name .. i, '{"p":"x"}') == '{"n":10}' end)
      assert.equal("RUNNING", w:status(name .. i, 0).state)
    end
    cluster:produce_error(10, 1000) -- single records, too: that is an error
    w:start_task(name .. 3, 0, config { count = "10" })
    local st = w:wait_state(name .. 3, 0, "FAILED")
    assert.truthy(st.trace:find("RecordTooLargeException", 1, true), st.trace)
    assert.is_nil(w:offset(name .. 3, '{"p":"x"}'))
  end)

  it("skips records that cannot be converted under tolerance all, without their offsets", function()
    w:start_task(name, 0, config { count = "3", ["errors.tolerance"] = "all",
      ["value.converter"] = "org.apache.kafka.connect.converters.IntegerConverter", bad = "2" })
    wait_offset(2) -- only the number passes; 3 is covered by a later record, which never comes
    assert.same({ "\0\0\0\5" }, cluster:read(topic, 1))
  end)

  it("is FAILED by a negative timestamp", function()
    w:start_task(name, 0, config { late = "2" })
    assert.matches("^org%.apache%.kafka%.common%.errors%.InvalidRecordException: Invalid record timestamp %-5\n",
      w:wait_state(name, 0, "FAILED").trace)
  end)

  it("sees nothing of a broker that is away for a while", function()
    cluster:down(true)
    w:start_task(name, 0, config())
    w:wait_state(name, 0, "RUNNING")
    worker.sleep(700)
    assert.equal("RUNNING", w:status(name, 0).state)
    assert.is_nil(w:offset(name, '{"p":"x"}'))
    cluster:down(false)
    wait_offset(10)
  end)

  it("closes its producer while it rests, and goes on with the next record", function()
    local file = os.tmpname()
    w:start_task(name, 0, config { count = "3", wake = file, batch = "3" })
    wait_offset(3)
    local function threads()
      return tonumber(files.read("/proc/self/status"):match "Threads:%s*(%d+)")
    end
    local before = threads()
    worker.eventually(function() return threads() < before end, "the producer stays open")
    os.remove(file)
    wait_offset(5)
    assert.equal(5, #cluster:read(topic, 5))
  end)

  it("stops within its time when the broker is away", function()
    w = bed:open({ ["offset.flush.timeout.ms"] = "300" }, "127.0.0.1:1")
    w:start_task(name, 0, config())
    w:wait_state(name, 0, "RUNNING")
    w:stop_tasks { name, 0 }
    assert.equal("UNASSIGNED", w:status(name, 0).state)
    assert.is_nil(w:offset(name, '{"p":"x"}'))
  end)
end)
