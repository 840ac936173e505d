-- Exactly-once source tasks (core/runtime/source_transaction.c) on librdkafka's mock cluster: which offsets are
-- written with which records, what the script is told, who is asked before the start. The mock cluster neither aborts
-- nor fences: that is spec/kafka/exactly_once_spec.lua.
local task_bed = require "spec.support.task_bed"
local with = require "spec.support.with"
local worker = require "spec.support.worker"

-- Polls as the script says: items of a poll are apart by blanks, polls by ";". "v" a record, "v!" one that cannot be
-- converted, "v:commit", "v:abort"; "|commit", "|abort" for the batch.
local probe = task_bed.say .. [[
local connect = require "connect"
local Task = {}
function Task:start(ctx)
  self.ctx, self.at, self.polls = ctx, 0, {}
  say(self.ctx.config.mark, "start " .. tostring(ctx.transaction ~= nil))
  for p in (ctx.config.script .. ";"):gmatch "([^;]*);" do self.polls[#self.polls + 1] = p end
end
function Task:poll()
  local line = self.polls[self.at + 1]
  if not line then return nil end
  self.at = self.at + 1
  local out = {}
  for item in line:gsub("|.*", ""):gmatch "%S+" do
    local value, bad, what = item:match "^([^:!]+)(!?):?(%w*)$"
    local r = { topic = self.ctx.config.topic, value = value, source_partition = { p = "x" },
      source_offset = { n = self.at } }
    if bad ~= "" then r.value, r.value_schema = 5, "int32" end
    out[#out + 1] = r
    if what ~= "" then
      for w in what:gsub("both", "commit abort"):gmatch "%a+" do self.ctx.transaction[w](self.ctx.transaction, r) end
    end
  end
  for w in (line:match "|(.*)" or ""):gmatch "%a+" do self.ctx.transaction[w](self.ctx.transaction) end
  return out
end
function Task:commit() say(self.ctx.config.mark, "commit") end
function Task:commit_record(r, m)
  say(self.ctx.config.mark, "record " .. tostring(r.value))
  if m and (m.partition ~= 0 or m.offset < 0) or not m and r.value ~= "drop" and r.value ~= "bad" then
    say(self.ctx.config.mark, "wrong metadata")
  end
end
return connect.source { name = "Steps", class = "Steps", version = "1", task = Task, config = {
  { "topic", type = "string", doc = "" }, { "script", type = "string", doc = "" }, { "mark", type = "string", doc = "" } } }
]]

-- Drops "drop", fails at "bad".
local refuse = [[
local connect = require "connect"
return connect.transform { name = "Refuse", apply = function(self, r)
  if r.value == "drop" then return connect.drop end
  if r.value == "bad" then error(connect.data_error "a bad one") end
  return r
end }
]]

describe("exactly-once source task", function()
  local bed = task_bed.new { prefix = "t", topics = { "-offsets" },
    plugins = { ["probe.lua"] = probe, ["refuse.lua"] = refuse }, config = function(topic)
      return { ["exactly.once.source.support"] = "enabled", ["offset.flush.interval.ms"] = "3600000",
        ["offset.storage.topic"] = topic .. "-offsets" }
    end }
  local w, cluster, topic
  before_each(function() w, cluster, topic = bed.worker, bed.cluster, bed.topic end)

  local function config(script, more)
    return with({ ["connector.class"] = "Steps", topic = topic, script = script, mark = bed.file }, more)
  end

  local function offsets(n, ms) return cluster:read(topic .. "-offsets", n, ms) end

  -- What the script was told, commits that follow each other counted once.
  local function told()
    local out = {}
    for line in bed:said():gmatch "[^\n]+" do
      if line ~= "commit" or out[#out] ~= "commit" then out[#out + 1] = line end
    end
    return out
  end

  it("asks the cluster, then writes records and the offset of each poll in a transaction", function()
    w:start_task("c", 0, config "a b;c")
    assert.same({ "a", "b", "c" }, cluster:read(topic, 3))
    assert.same({ '{"n":1}', '{"n":2}' }, offsets(2))
    worker.eventually(function() return #told() >= 6 end)
    assert.same({ "start false", "record a", "record b", "commit", "record c", "commit" }, told())
    assert.equal("fence c-0\nverify c-0\n", worker.events())
    assert.equal("RUNNING", w:status("c", 0).state)
    assert.same({ topic }, w:topics "c")
  end)

  it("holds the offset of an interval back until it is over, or the task stops or pauses", function()
    local long = { ["transaction.boundary"] = "interval", ["transaction.boundary.interval.ms"] = "3600000" }
    w:start_task("c", 0, config("a;b", long))
    assert.equal(2, #cluster:read(topic, 2))
    assert.same({}, offsets(1, 500))
    w:tasks_target("c", worker.PAUSED)
    assert.same({ '{"n":2}' }, offsets(1))
    w:wait_state("c", 0, "PAUSED")
    w:tasks_target("c", worker.STARTED)
    w:wait_state("c", 0, "RUNNING")
    w:stop_tasks { "c", 0 }
    assert.equal("UNASSIGNED", w:status("c", 0).state)
    w:start_task("c", 0, config("d", long))
    assert.equal(3, #cluster:read(topic, 3))
    w:stop_tasks { "c", 0 }
    assert.same({ '{"n":2}', '{"n":1}' }, offsets(2))
    w:start_task("c", 0, config("e", { ["transaction.boundary"] = "INTERVAL", ["transaction.boundary.interval.ms"] = "300" }))
    assert.equal(3, #offsets(3))
  end)

  it("ends transactions where the script says", function()
    w:start_task("c", 0, config("a;b|commit;c d:commit e;f", { ["transaction.boundary"] = "connector" }))
    assert.equal(6, #cluster:read(topic, 6))
    assert.same({ '{"n":2}', '{"n":3}' }, offsets(2))
    assert.same({}, { offsets(3, 500)[3] })
    assert.equal("start true", told()[1])
    w:stop_tasks { "c", 0 } -- nobody asked for what is open: it is given up
    assert.equal(2, #offsets(3, 300))
  end)

  it("commits the offsets of what it aborts", function()
    w:start_task("c", 0, config("a b|abort;c|commit;|abort", { ["transaction.boundary"] = "connector" }))
    assert.same({ '{"n":1}', '{"n":2}' }, offsets(2))
    assert.equal("RUNNING", w:status("c", 0).state)
  end)

  it("fails when a commit and an abort are wanted at once", function()
    w:start_task("c", 0, config("a:both", { ["transaction.boundary"] = "connector" }))
    local st = w:wait_state("c", 0, "FAILED")
    assert.truthy(st.trace:find("java.lang.IllegalStateException: Connector requested both commit and abort of same "
      .. "record against topic/partition " .. topic .. "/null", 1, true), st.trace)
    w:start_task("d", 0, config("a|commit abort", { ["transaction.boundary"] = "connector" }))
    st = w:wait_state("d", 0, "FAILED")
    assert.truthy(st.trace:find("Connector requested both commit and abort of same transaction", 1, true), st.trace)
  end)

  it("skips what tolerance allows, and tells the script at the commit", function()
    w:start_task("c", 0, config("a b! c", { ["errors.tolerance"] = "all",
      ["value.converter"] = "org.apache.kafka.connect.storage.StringConverter", ["transforms"] = "d",
      ["transforms.d.type"] = "org.apache.kafka.connect.transforms.Filter", ["transforms.d.predicate"] = "p",
      ["predicates"] = "p", ["predicates.p.type"] = "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone" }))
    assert.same({ "a", "5", "c" }, cluster:read(topic, 3))
    worker.eventually(function() return #told() >= 5 end)
  end)

  -- The polls of `script` with Refuse in the way.
  local function refusing(script, more)
    return config(script, with({ transforms = "r", ["transforms.r.type"] = "Refuse" }, more))
  end

  -- What the script was told once it is as much as `expected`, and what a little later, which must be the same.
  local function assert_told(expected)
    worker.eventually(function() return #told() >= #expected end, function() return table.concat(told(), ", ") end)
    worker.sleep(100)
    assert.same(expected, told())
  end

  local boundaries = {
    poll = {},
    interval = { ["transaction.boundary"] = "interval", ["transaction.boundary.interval.ms"] = "0" },
    connector = { ["transaction.boundary"] = "connector" },
  }
  for name, more in pairs(boundaries) do
    describe("(boundary " .. name .. ")", function()
      local start = "start " .. tostring(name == "connector")
      -- the same polls, with the commits that a connector asks for
      local function polls(...)
        local text = table.concat({ ... }, ";")
        return (text:gsub("[^;]+", function(p) return name == "connector" and p .. "|commit" or p end))
      end
      local function options(t) return with(t, more) end

      it("tells the script of a dropped record with the transaction, and does not commit its offset", function()
        w:start_task("c", 0, refusing(polls("a drop", "drop b", "c"), options {}))
        assert.same({ "a", "b", "c" }, cluster:read(topic, 3))
        assert.same({ '{"n":1}', '{"n":2}', '{"n":3}' }, offsets(3))
        assert_told { start, "record drop", "record a", "commit", "record drop", "record b", "commit", "record c", "commit" }
      end)

      it("writes nothing for a poll of which all is dropped, and does not keep the script waiting", function()
        w:start_task("c", 0, refusing(polls "drop drop", options {}))
        assert_told { start, "record drop", "record drop", "commit" }
        assert.same({}, offsets(1, 300))
        w:stop_tasks { "c", 0 }
        assert.equal("UNASSIGNED", w:status("c", 0).state)
        w:start_task("c", 0, refusing(polls("drop", "a"), options {})) -- and the next one is fine
        assert.same({ "a" }, cluster:read(topic, 1))
        assert.same({ '{"n":2}' }, offsets(1))
      end)

      it("gives up the transaction of a record that fails", function()
        cluster:topic(topic .. "-letters", 1)
        w:start_task("c", 0, refusing(polls("a", "b bad c"), options {
          ["errors.deadletterqueue.source.topic.name"] = topic .. "-letters" }))
        local st = w:wait_state("c", 0, "FAILED")
        assert.matches("^org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded in error handler\n", st.trace)
        assert.matches("Caused by: org.apache.kafka.connect.errors.DataException: a bad one", st.trace, 1, true)
        assert.equal(1, #cluster:read(topic .. "-letters", 1, 1000)) -- before the status says so
        assert.same({ '{"n":1}' }, offsets(2, 500))
        assert_told { start, "record a", "commit" }
      end)

      it("has the letter of a record that fails the task acknowledged before the status says so", function()
        cluster:topic(topic .. "-letters", 1)
        w:start_task("c", 0, refusing(polls "bad", options {
          ["errors.deadletterqueue.source.topic.name"] = topic .. "-letters" }))
        w:wait_state("c", 0, "FAILED")
        assert.equal(1, #cluster:read(topic .. "-letters", 1, 500))
      end)

      it("goes on behind a record that fails, with tolerance all", function()
        w:start_task("c", 0, refusing(polls("a bad b", "bad", "c"), options { ["errors.tolerance"] = "all" }))
        assert.same({ "a", "b", "c" }, cluster:read(topic, 3))
        assert.same({ '{"n":1}', '{"n":3}' }, offsets(2))
        assert_told { start, "record bad", "record a", "record b", "commit", "record bad", "commit", "record c", "commit" }
      end)

      it("writes the dead letter of a record before the transaction ends", function()
        cluster:topic(topic .. "-letters", 1)
        w:start_task("c", 0, refusing(polls("a bad b", "bad", "c"), options { ["errors.tolerance"] = "all",
          ["errors.deadletterqueue.source.topic.name"] = topic .. "-letters" }))
        assert.same({ "a", "b", "c" }, cluster:read(topic, 3))
        assert.same({ '{"n":1}', '{"n":3}' }, offsets(2))
        assert.equal(2, #cluster:read(topic .. "-letters", 2))
      end)
    end)
  end

  it("tells the script of each record once it is committed, section by section", function()
    w:start_task("c", 0, refusing("a:commit drop b:commit;drop:commit c:commit", boundaries.connector))
    assert.same({ "a", "b", "c" }, cluster:read(topic, 3))
    assert_told { "start true", "record a", "commit", "record drop", "record b", "commit", "record drop", "commit",
      "record c", "commit" }
  end)

  it("tells the script of aborted records when their offsets are committed", function()
    w:start_task("c", 0, config("a b|abort", boundaries.connector))
    assert.same({ '{"n":1}' }, offsets(1))
    assert_told { "start true", "record a", "record b", "commit" }
  end)

  it("ignores the abort of what is empty", function()
    w:start_task("c", 0, refusing("drop|abort;drop:abort drop;a|commit", boundaries.connector))
    assert.same({ "a" }, cluster:read(topic, 1))
    assert.same({ '{"n":3}' }, offsets(1))
    assert.equal("RUNNING", w:status("c", 0).state)
  end)

  it("has no ctx.transaction where the worker sets the boundaries: the script's error says so", function()
    for _, boundary in ipairs { "poll", "interval" } do
      w:start_task(boundary, 0, config("a|commit", boundaries[boundary]))
      local st = w:wait_state(boundary, 0, "FAILED")
      assert.matches("attempt to index field 'transaction' (a nil value)", st.trace, 1, true)
    end
    assert.same({}, cluster:read(topic, 1, 300))
  end)

  it("waits for dead letters while the broker does not take them, and ends in time when it is stopped", function()
    cluster:topic(topic .. "-letters", 1)
    local c = refusing("a bad b;c", { ["errors.tolerance"] = "all",
      ["errors.deadletterqueue.source.topic.name"] = topic .. "-letters" })
    cluster:produce_error(7, 100000) -- timed out: tried again for ever
    w:start_task("c", 0, c)
    w:wait_state("c", 0, "RUNNING")
    worker.sleep(5500) -- longer than offset.flush.timeout.ms
    assert.equal("RUNNING", w:status("c", 0).state)
    assert.is_true(worker.took(function() w:stop_tasks { "c", 0 } end) < 30000)
    assert.equal("UNASSIGNED", w:status("c", 0).state)
  end)

  -- What the mock cluster took of the first try it does not abort: lines are counted by spec/kafka/exactly_once_spec.lua.
  it("begins again with smaller batches when a topic refuses one, twice at most", function()
    cluster:produce_error(10, 1) -- message too large
    w:start_task("c", 0, config "a b;c")
    worker.eventually(function() return told()[#told()] == "commit" and table.concat(told(), " "):find "record c" end)
    local starts = 0
    for _, line in ipairs(told()) do if line:find "^start" then starts = starts + 1 end end
    assert.equal(2, starts)
    assert.equal("RUNNING", w:status("c", 0).state)
    cluster:produce_error(10, 100000)
    w:start_task("d", 0, config("a b", { mark = bed.file .. "-d" }))
    local st = w:wait_state("d", 0, "FAILED")
    assert.matches("Caused by: org.apache.kafka.common.errors.RecordTooLargeException", st.trace, 1, true)
    local lines = 0
    for line in io.lines(bed.file .. "-d") do lines = lines + 1 assert.matches("^start", line) end
    assert.equal(3, lines) -- as given, of 16 kB, single records
    os.remove(bed.file .. "-d")
  end)

  it("refuses records for its offsets topic", function()
    local c = config "a"
    c.topic = topic .. "-offsets"
    w:start_task("c", 0, c)
    local st = w:wait_state("c", 0, "FAILED")
    assert.truthy(st.trace:find("^org.apache.kafka.connect.errors.ConnectException: Source tasks may not produce to "
      .. "their own offsets topics when exactly%-once support is enabled"), st.trace)
  end)

  it("does not start when the fencing or the check fails, and tries again what may get better", function()
    worker.gate("fatal")
    w:start_task("c", 0, config "a")
    assert.truthy(w:wait_state("c", 0, "FAILED").trace:find("fence refused", 1, true))
    worker.gate(nil, "fatal")
    w:start_task("d", 0, config "a")
    assert.truthy(w:wait_state("d", 0, "FAILED").trace:find("verify refused", 1, true))
    assert.same({}, cluster:read(topic, 1, 300))
    worker.gate("retriable")
    w:start_task("e", 0, config "a")
    assert.same({ "a" }, cluster:read(topic, 1))
    worker.gate(nil, "retriable") -- the brokers do not answer for a while
    w:start_task("f", 0, config "b")
    assert.same({ "a", "b" }, cluster:read(topic, 2))
  end)

  it("stops while it waits for the fencing", function()
    worker.gate("never")
    w:start_task("c", 0, config "a")
    worker.wait_event "fence c%-0"
    assert.is_true(worker.took(function() w:stop_tasks { "c", 0 } end) < 30000)
    assert.equal("UNASSIGNED", w:status("c", 0).state)
  end)
end)
