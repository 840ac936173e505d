-- Sink tasks (core/runtime/sink_*.c) on librdkafka's mock cluster: delivery, offsets, retries, pauses.
local task_bed = require "spec.support.task_bed"
local with = require "spec.support.with"
local worker = require "spec.support.worker"

-- The plugin appends what it is told to the file `out`, one line a call or record.
local probe = task_bed.say .. [[
local connect = require "connect"
local Task = {}
function Task:start(ctx)
  self.ctx, self.c, self.failures = ctx, ctx.config, 0
end
local function names(tps)
  local out = {}
  for i, tp in ipairs(tps) do out[i] = tp.key end
  table.sort(out)
  return table.concat(out, ",")
end
function Task:open(tps) say(self.c.out, "open " .. names(tps)) end
function Task:close(tps) say(self.c.out, "close " .. names(tps)) end
function Task:put(records)
  local c = self.c
  if #records == 0 then return end
  local failed = {}
  for i, r in ipairs(records) do
    if c.fatal == r.value then error(connect.fatal "sink says no") end
    if c.retry == r.value and self.failures < 2 then
      self.failures = self.failures + 1
      self.ctx:timeout(50)
      say(self.c.out, "retry " .. #records)
      error(connect.retriable "sink says later")
    end
    if c.bad == r.value then failed[#failed + 1] = { index = i, error = connect.data_error "bad record" } end
  end
  for _, r in ipairs(records) do
    if c.bad ~= r.value then say(self.c.out, r.topic .. "-" .. r.partition .. "@" .. r.offset .. " " .. r.value) end
    if c.seek_at == r.value and not self.sought then
      self.sought = true
      self.ctx:seek(r.topic .. "-" .. r.partition, 0)
    end
    if c.pause_at == r.value then self.ctx:pause(r.topic .. "-" .. r.partition) end
    if c.request == r.value then self.ctx:request_commit() end
  end
  return failed
end
function Task:pre_commit(offsets)
  if self.c.commit == "none" then return {} end
  if self.c.commit == "less" then
    for k, v in pairs(offsets) do offsets[k] = v - 1 end
  elseif self.c.commit == "more" then
    for k, v in pairs(offsets) do offsets[k] = v + 5 end
  elseif self.c.commit == "once" and not self.refused then
    for _, v in pairs(offsets) do
      if v > 0 then
        self.refused = true
        error "cannot flush"
      end
    end
  end
  return offsets
end
local config = {}
for _, name in ipairs { "out", "fatal", "retry", "bad", "commit", "seek_at", "pause_at", "request" } do
  config[#config + 1] = { name, type = "string", doc = "" }
end
return connect.sink { name = "Say", class = "Say", version = "1", task = Task, config = config }
]]

describe("sink task", function()
  local bed = task_bed.new { prefix = "s", plugins = { ["probe.lua"] = probe },
    config = { ["consumer.session.timeout.ms"] = "6000" } }
  local w, cluster, topic, name
  before_each(function() w, cluster, topic, name = bed.worker, bed.cluster, bed.topic, bed.name end)

  local function start(more)
    w:start_task(name, 0, with({ ["connector.class"] = "Say", topics = topic, out = bed.file }, more))
  end
  local function said() return bed:said() end
  local function wait_said(pattern, plain) bed:wait_said(pattern, plain) end
  local function wait_committed(n) bed:wait_committed(n) end
  local function no_flush(more) w = bed:open(with({ ["offset.flush.interval.ms"] = "3600000" }, more)) end

  it("opens its partitions, puts records in order, commits, closes", function()
    cluster:write(topic, { "a", "b", "c" })
    start()
    wait_said("c\n")
    assert.equal(("open %s-0\n%s-0@0 a\n%s-0@1 b\n%s-0@2 c\n"):gsub("%%s", topic), (said()))
    wait_committed(3)
    assert.same({ topic }, w:topics(name))
    assert.equal("RUNNING", w:status(name, 0).state)
    w:stop_tasks { name, 0 }
    assert.is_true(said():sub(-#("close " .. topic .. "-0\n")) == "close " .. topic .. "-0\n")
    assert.equal("UNASSIGNED", w:status(name, 0).state)
    -- a new task goes on behind what was committed
    cluster:write(topic, { "d" })
    start()
    wait_said("@3 d\n")
    assert.equal(1, select(2, said():gsub("@2 c\n", "")))
  end)

  it("puts and commits nothing while the work may not be its own, and goes on afterwards", function()
    cluster:write(topic, { "a" })
    start()
    wait_committed(1)
    worker.lease(false)
    cluster:write(topic, { "b" })
    worker.sleep(1000)
    assert.is_nil(said():find("@1 b", 1, true))
    assert.equal(1, bed:committed())
    worker.lease(true)
    wait_said("@1 b\n")
    wait_committed(2)
  end)

  it("stops at once while the work may not be its own, without a commit", function()
    no_flush { ["task.shutdown.graceful.timeout.ms"] = "60000" }
    cluster:write(topic, { "a" })
    start()
    wait_said("@0 a\n")
    worker.lease(false)
    local ms = worker.took(function() w:stop_tasks { name, 0 } end)
    assert.is_true(ms < 30000, ms .. " ms")
    assert.is_true(bed:committed() < 0)
    assert.equal("RUNNING", w:status(name, 0).state) -- what the new owner wrote is not written over
    worker.lease(true)
    start()
    worker.eventually(function() return select(2, said():gsub("@0 a\n", "")) == 2 end, said, 30000)
  end)

  it("delivers the same batch again after a retriable error", function()
    cluster:write(topic, { "a", "b" })
    start { retry = "b" }
    wait_said("@1 b\n")
    assert.matches("retry %d\n.*retry %d\n", said())
    assert.equal(1, select(2, said():gsub("@0 a\n", "")))
    cluster:write(topic, { "c" })
    wait_said("@2 c\n")
    wait_committed(3)
  end)

  it("is FAILED by any other error of put", function()
    cluster:write(topic, { "a", "b" })
    start { fatal = "b" }
    local trace = w:wait_state(name, 0, "FAILED", 30000).trace
    assert.matches("^org%.apache%.kafka%.connect%.errors%.ConnectException: Exiting WorkerSinkTask due to unrecoverable "
      .. "exception%.\n", trace)
    assert.matches("\nCaused by: org.apache.kafka.connect.errors.ConnectException: sink says no\n", trace, 1, true)
    assert.is_true(said():sub(-#("close " .. topic .. "-0\n")) == "close " .. topic .. "-0\n")
  end)

  it("is FAILED by a record that put refuses under tolerance none", function()
    cluster:write(topic, { "a" })
    start { bad = "a" }
    local trace = w:wait_state(name, 0, "FAILED", 30000).trace
    assert.matches("\nCaused by: org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler\n",
      trace, 1, true)
    assert.matches("bad record", trace, 1, true)
  end)

  it("skips a record that put refuses under tolerance all", function()
    cluster:write(topic, { "a", "b", "c" })
    start { bad = "b", ["errors.tolerance"] = "all" }
    wait_said("@2 c\n")
    wait_committed(3)
  end)

  it("skips what cannot be converted under tolerance all, and its offsets count", function()
    cluster:write(topic, { "\0\0\0\1", "x", "\0\0\0\2", "y" })
    start { ["errors.tolerance"] = "all", ["value.converter"] = "org.apache.kafka.connect.converters.IntegerConverter" }
    wait_said("@2 2\n")
    wait_committed(4)
    assert.equal(("open %s-0\n%s-0@0 1\n%s-0@2 2\n"):gsub("%%s", topic), (said()))
  end)

  it("is FAILED by what cannot be converted under tolerance none", function()
    cluster:write(topic, { "x" })
    start { ["value.converter"] = "org.apache.kafka.connect.converters.IntegerConverter" }
    local trace = w:wait_state(name, 0, "FAILED", 30000).trace
    assert.matches("^org%.apache%.kafka%.connect%.errors%.ConnectException: Tolerance exceeded in error handler\n", trace)
    assert.matches("Caused by: org.apache.kafka.common.errors.SerializationException: Size of data received by "
      .. "IntegerDeserializer is not 4\n", trace, 1, true)
  end)

  it("commits only what pre_commit allows and what was consumed", function()
    cluster:write(topic, { "a", "b", "c" })
    start { commit = "less" }
    wait_said("@2 c\n")
    wait_committed(2)
    w:stop_tasks { name, 0 }
    assert.equal(2, bed:committed())
  end)

  it("ignores offsets beyond what was consumed", function()
    cluster:write(topic, { "a" })
    start { commit = "more" }
    wait_said("@0 a\n")
    w:stop_tasks { name, 0 }
    assert.equal(-1001, bed:committed())
  end)

  it("rewinds to the last commit when pre_commit fails", function()
    cluster:write(topic, { "a", "b" })
    start { commit = "once" }
    wait_said("@1 b\n.*@0 a\n.*@1 b\n")
    wait_committed(2)
  end)

  it("seeks where the task says", function()
    cluster:write(topic, { "a", "b" })
    start { seek_at = "b" }
    wait_said("@1 b\n.*@0 a\n.*@1 b\n")
    wait_committed(2)
  end)

  it("pauses and resumes with the target state, committing before", function()
    start()
    wait_said("open")
    w:tasks_target(name, worker.PAUSED)
    w:wait_state(name, 0, "PAUSED")
    cluster:write(topic, { "a" })
    worker.sleep(1000)
    assert.equal("open " .. topic .. "-0\n", said())
    w:tasks_target(name, worker.STARTED)
    w:wait_state(name, 0, "RUNNING")
    wait_said("@0 a\n")
  end)

  it("commits when the task asks", function()
    no_flush()
    cluster:write(topic, { "a" })
    start { request = "a" }
    wait_said("@0 a\n")
    wait_committed(1)
  end)

  it("gives nothing of a partition the task has paused", function()
    cluster:write(topic, { "a" })
    start { pause_at = "a" }
    wait_said("@0 a\n")
    cluster:write(topic, { "b" })
    worker.sleep(1000)
    assert.is_nil(said():find "@1 b")
  end)

  it("is FAILED when its topics are no pattern", function()
    w:start_task(name, 0, { ["connector.class"] = "Say", ["topics.regex"] = "s(", out = bed.file })
    w:wait_state(name, 0, "FAILED")
  end)
end)
