-- Source tasks (core/runtime/source_task.c) on librdkafka's mock cluster: records, offsets, failures.
local worker = require "spec.support.worker"
local mock = require "spec.support.mock_cluster"

-- The plugin sends `count` records "v1".."vN", a few a poll, with offsets {n = i} of partition {p = "x"};
-- it goes on after the stored offset. Values may be made bad by settings.
local probe = [[
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
  if c.goal then self:note("read " .. self.n) end
  return out
end
function Task:commit() self:note("commit " .. self.n) end
function Task:note(text)
  local f = self.c.mark and io.open(self.c.mark, "a")
  if f then
    f:write(text, "\n")
    f:close()
  end
end
local config = {
  { "topic", type = "string", doc = "" }, { "count", type = "int", default = 10, doc = "" },
  { "batch", type = "int", default = 4, doc = "" }, { "big", type = "int", default = 0, doc = "" },
  { "bad", type = "int", default = 0, doc = "" }, { "late", type = "int", default = 0, doc = "" },
  { "nowhere", type = "int", default = 0, doc = "" }, { "mark", type = "string", doc = "" },
  { "wake", type = "string", doc = "" }, { "goal", type = "string", doc = "" },
  { "retry", type = "boolean", default = false, doc = "" }, { "bytes", type = "boolean", default = false, doc = "" },
}
local Recording = setmetatable({ commit_record = function(self, r, m)
  self:note(("record %s at %s-%d %d"):format(r.value, m.topic, m.partition, m.offset))
end }, { __index = Task })
return {
  connect.source { name = "Count", class = "Count", version = "1", task = Task, config = config },
  connect.source { name = "Recording", class = "Recording", version = "1", config = config,
    task = { start = Task.start, poll = Task.poll, note = Task.note, commit_record = Recording.commit_record } },
}
]]

describe("source task", function()
  local w, cluster, topic
  local number = 0
  setup(function() cluster = mock.new() end)
  teardown(function() cluster:close() end)
  before_each(function()
    number = number + 1
    topic = "t" .. number
    cluster:topic(topic, 1)
    w = worker.new { plugins = { ["probe.lua"] = probe }, bootstrap = cluster:bootstrap() }
  end)
  after_each(function() w:close() end)

  local function config(more)
    local c = { ["connector.class"] = "Count", topic = topic }
    for k, v in pairs(more or {}) do c[k] = v end
    return c
  end

  local function wait_offset(n)
    worker.eventually(function() return w:offset("c", '{"p":"x"}') == '{"n":' .. n .. "}" end,
      function() return "offset is " .. tostring(w:offset("c", '{"p":"x"}')) end)
  end

  it("sends every record in order and stores the last offset after the flush interval", function()
    w:start_task("c", 0, config())
    wait_offset(10)
    assert.same({ "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10" }, cluster:read(topic, 10))
    assert.same({ topic }, w:topics "c")
    assert.equal("RUNNING", w:status("c", 0).state)
  end)

  it("commits on stop, and the next instance goes on from there", function()
    w:close()
    w = worker.new { plugins = { ["probe.lua"] = probe }, bootstrap = cluster:bootstrap(),
      config = { ["offset.flush.interval.ms"] = "3600000" } }
    w:start_task("c", 0, config { count = "6" })
    assert.equal(6, #cluster:read(topic, 6))
    assert.is_nil(w:offset("c", '{"p":"x"}'))
    w:stop_tasks { "c", 0 }
    assert.equal('{"n":6}', w:offset("c", '{"p":"x"}'))
    w:start_task("c", 0, config { count = "8" })
    assert.equal(8, #cluster:read(topic, 8))
    w:stop_tasks { "c", 0 }
    assert.equal('{"n":8}', w:offset("c", '{"p":"x"}'))
  end)

  it("commits when it is paused, and goes on when resumed", function()
    w:close()
    w = worker.new { plugins = { ["probe.lua"] = probe }, bootstrap = cluster:bootstrap(),
      config = { ["offset.flush.interval.ms"] = "3600000" } }
    w:start_task("c", 0, config { count = "3" })
    assert.equal(3, #cluster:read(topic, 3))
    w:tasks_target("c", worker.PAUSED)
    w:wait_state("c", 0, "PAUSED")
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
      w:start_task("c", 0, config { count = "4", wake = wake })
      wait_offset(4)
      worker.lease(false)
      os.remove(wake)
      assert.equal(4, #cluster:read(topic, 5, 700))
      assert.equal('{"n":4}', w:offset("c", '{"p":"x"}'))
      assert.equal("RUNNING", w:status("c", 0).state)
      worker.lease(true)
      wait_offset(6)
      assert.same({ "v1", "v2", "v3", "v4", "v5", "v6" }, cluster:read(topic, 6))
    end)

    it("takes back what was not sent, and sends it in order when it may", function()
      local wake = os.tmpname() -- gone: two more records
      w:start_task("c", 0, config { count = "4", batch = "2", wake = wake })
      wait_offset(4)
      cluster:down(true)
      os.remove(wake) -- two more, and the producer cannot send them
      worker.sleep(1500)
      worker.lease(false)
      worker.sleep(500)
      cluster:down(false)
      assert.equal(4, #cluster:read(topic, 5, 2000))
      assert.equal('{"n":4}', w:offset("c", '{"p":"x"}'))
      worker.lease(true)
      wait_offset(6)
      assert.same({ "v1", "v2", "v3", "v4", "v5", "v6" }, cluster:read(topic, 6))
    end)

    it("takes back what is in a request and what is in none yet, and sends it in order", function()
      local goal, mark = os.tmpname(), os.tmpname()
      local function reach(n)
        local f = io.open(goal, "w")
        f:write(n, "\n")
        f:close()
        worker.eventually(function()
          f = io.open(mark)
          local text = f:read "*a"
          f:close()
          return text:find("read " .. n .. "\n", 1, true)
        end)
      end
      local f = io.open(goal, "w")
      f:write "4\n"
      f:close()
      w:start_task("c", 0, config { count = "4", goal = goal, mark = mark })
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
      w:close()
      w = worker.new { plugins = { ["probe.lua"] = probe }, bootstrap = cluster:bootstrap(),
        config = { ["offset.flush.interval.ms"] = "3600000", ["task.shutdown.graceful.timeout.ms"] = "60000" } }
      w:start_task("c", 0, config { count = "3" })
      assert.equal(3, #cluster:read(topic, 3))
      worker.lease(false)
      local ms = worker.took(function() w:stop_tasks { "c", 0 } end)
      assert.is_true(ms < 30000, ms .. " ms")
      assert.is_nil(w:offset("c", '{"p":"x"}'))
      assert.equal("RUNNING", w:status("c", 0).state) -- what the new owner wrote is not written over
      worker.lease(true)
      w:start_task("c", 0, config { count = "3" })
      assert.equal(6, #cluster:read(topic, 6)) -- read again by the next owner
    end)
  end)

  it("calls commit() after the offsets were written", function()
    local mark = os.tmpname()
    w:start_task("c", 0, config { mark = mark })
    worker.eventually(function()
      local f = io.open(mark)
      local text = f:read "*a"
      f:close()
      return text:find "commit 10"
    end)
    os.remove(mark)
  end)

  it("tells commit_record about each record", function()
    local mark = os.tmpname()
    w:start_task("c", 0, config { ["connector.class"] = "Recording", mark = mark, count = "3" })
    worker.eventually(function()
      local f = io.open(mark)
      local text = f:read "*a"
      f:close()
      return text == ("record v1 at T-0 0\nrecord v2 at T-0 1\nrecord v3 at T-0 2\n"):gsub("T", topic)
    end)
    os.remove(mark)
  end)

  it("goes on after a retriable poll", function()
    w:start_task("c", 0, config { retry = "true" })
    wait_offset(10)
  end)

  it("sends records without a source partition", function()
    w:start_task("c", 0, config { nowhere = "10" })
    assert.equal(10, #cluster:read(topic, 10))
    wait_offset(9)
  end)

  it("is FAILED by a record too large, naming size, partition and offset; those before it are there", function()
    w:start_task("c", 0, config { big = "6" })
    local trace = w:wait_state("c", 0, "FAILED").trace
    assert.matches("^org%.apache%.kafka%.connect%.errors%.ConnectException: Unrecoverable exception from producer send "
      .. "callback\n", trace)
    assert.matches("Caused by: org.apache.kafka.common.errors.RecordTooLargeException: The message is 2000088 bytes when "
      .. "serialized which is larger than 1048576, which is the value of the max.request.size configuration.\n",
      trace, 1, true)
    assert.matches('source partition {"p":"x"}, offset {"n":6}', trace, 1, true)
    wait_offset(5)
  end)

  it("skips a record too large under tolerance all; its offset counts", function()
    w:start_task("c", 0, config { big = "10", ["errors.tolerance"] = "all" })
    wait_offset(10)
    assert.equal(9, #cluster:read(topic, 9))
    assert.equal("RUNNING", w:status("c", 0).state)
  end)

  it("is FAILED by a record that cannot be converted, after those before it", function()
    w:start_task("c", 0, config { bad = "7", batch = "10",
      ["value.converter"] = "org.apache.kafka.connect.converters.ByteArrayConverter", bytes = "true" })
    local trace = w:wait_state("c", 0, "FAILED").trace
    assert.matches("^org%.apache%.kafka%.connect%.errors%.ConnectException: Tolerance exceeded in error handler\n", trace)
    assert.matches("\nCaused by: org.apache.kafka.connect.errors.DataException: ", trace, 1, true)
    assert.same({ "v1", "v2", "v3", "v4", "v5", "v6" }, cluster:read(topic, 6))
    wait_offset(6)
  end)

  it("sends what a topic refused as a batch in smaller ones, in order, whatever is tolerated", function()
    for i, times in ipairs { 1, 2 } do -- the second time of single records
      cluster:produce_error(10, times) -- message too large
      w:start_task("c" .. i, 0, config { count = "10", batch = "10", ["errors.tolerance"] = i == 2 and "all" or "none" })
      local values = cluster:read(topic, 10 * i)
      assert.same({ "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10" }, { unpack(values, 10 * i - 9) })
      worker.eventually(function() return w:offset("c" .. i, '{"p":"x"}') == '{"n":10}' end)
      assert.equal("RUNNING", w:status("c" .. i, 0).state)
    end
    cluster:produce_error(10, 1000) -- single records, too: that is an error
    w:start_task("c3", 0, config { count = "10" })
    local st = w:wait_state("c3", 0, "FAILED")
    assert.truthy(st.trace:find("RecordTooLargeException", 1, true), st.trace)
    assert.is_nil(w:offset("c3", '{"p":"x"}'))
    cluster:produce_fine()
  end)

  it("skips records that cannot be converted under tolerance all, without their offsets", function()
    w:start_task("c", 0, config { count = "3", ["errors.tolerance"] = "all",
      ["value.converter"] = "org.apache.kafka.connect.converters.IntegerConverter", bad = "2" })
    wait_offset(2) -- only the number passes; 3 is covered by a later record, which never comes
    assert.same({ "\0\0\0\5" }, cluster:read(topic, 1))
  end)

  it("is FAILED by a negative timestamp", function()
    w:start_task("c", 0, config { late = "2" })
    assert.matches("^org%.apache%.kafka%.common%.errors%.InvalidRecordException: Invalid record timestamp %-5\n",
      w:wait_state("c", 0, "FAILED").trace)
  end)

  it("sees nothing of a broker that is away for a while", function()
    cluster:down(true)
    w:start_task("c", 0, config())
    w:wait_state("c", 0, "RUNNING")
    require("ffi").C.usleep(700000)
    assert.equal("RUNNING", w:status("c", 0).state)
    assert.is_nil(w:offset("c", '{"p":"x"}'))
    cluster:down(false)
    wait_offset(10)
  end)

  it("closes its producer while it rests, and goes on with the next record", function()
    local file = os.tmpname()
    w:start_task("c", 0, config { count = "3", wake = file, batch = "3" })
    wait_offset(3)
    local function threads()
      local f = io.open "/proc/self/status"
      local n = f:read("*a"):match "Threads:%s*(%d+)"
      f:close()
      return tonumber(n)
    end
    local before = threads()
    worker.eventually(function() return threads() < before end, "the producer stays open")
    os.remove(file)
    wait_offset(5)
    assert.equal(5, #cluster:read(topic, 5))
  end)

  it("stops within its time when the broker is away", function()
    w:close()
    w = worker.new { plugins = { ["probe.lua"] = probe }, bootstrap = "127.0.0.1:1",
      config = { ["offset.flush.timeout.ms"] = "300" } }
    w:start_task("c", 0, config())
    w:wait_state("c", 0, "RUNNING")
    w:stop_tasks { "c", 0 }
    assert.equal("UNASSIGNED", w:status("c", 0).state)
    assert.is_nil(w:offset("c", '{"p":"x"}'))
  end)
end)
