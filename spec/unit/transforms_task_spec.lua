-- Transforms, predicates and scripted converters in running tasks (core/runtime/chain.c), on librdkafka's mock cluster.
local task_bed = require "spec.support.task_bed"
local with = require "spec.support.with"
local worker = require "spec.support.worker"

-- Lines: a source of the values v1..vN with offsets, that notes what commit_record shows; Say: a sink that notes what
-- it is given; transforms that fail as told.
local probe = task_bed.say .. [[
local connect = require "connect"
local Source = {}
function Source:start(ctx)
  self.c = ctx.config
  local stored = ctx.offsets:get { p = "x" }
  self.n = stored and stored.n or 0
end
function Source:poll()
  local out = {}
  while #out < 5 and self.n < self.c.count do
    self.n = self.n + 1
    out[#out + 1] = { topic = self.c.topic, value = "v" .. self.n, source_partition = { p = "x" }, source_offset = { n = self.n } }
  end
  return #out > 0 and out or nil
end
function Source:commit_record(r, metadata) say(self.c.mark, tostring(r.topic ~= self.c.topic) .. tostring(r.value)) end
local Sink = {}
function Sink:start(ctx) self.c = ctx.config end
function Sink:put(records)
  for _, r in ipairs(records) do say(self.c.mark, r.topic .. " " .. connect.tostring(r.value) .. " @" .. r.offset) end
end
local rows = { { "topic" }, { "count", type = "int", default = 5 }, { "mark" } }
local function at(n, name, raise)
  return connect.transform { name = name, config = { { "at" }, { "times" } }, apply = function(self, r)
    if r.value == self.config.at then raise(self) end
    return r
  end }
end
return {
  connect.source { name = "Lines", class = "Lines", task = Source, config = rows },
  connect.sink { name = "Say", class = "Say", task = Sink, config = rows },
  at(1, "Bad", function() error(connect.data_error "bad value") end),
  at(1, "Bug", function() error "a bug" end),
  at(1, "Later", function(self)
    self.n = (self.n or 0) + 1
    if self.n < (tonumber(self.config.times) or 3) then error(connect.retriable "not yet") end
  end),
  connect.transform { name = "Elsewhere", apply = function(_, r) return r:with { topic = r.topic .. "-new", value = r.value .. "!" } end },
  connect.predicate { name = "Is", config = { { "value" } }, test = function(self, r) return r.value == self.config.value end },
  connect.converter { name = "Tag", from_connect = function(_, _, _, v) return "<" .. v .. ">" end,
    to_connect = function(_, _, bytes) return nil, bytes:upper() end },
}
]]

describe("a task with transforms", function()
  local bed = task_bed.new { prefix = "x", plugins = { ["probe.lua"] = probe },
    config = { ["consumer.session.timeout.ms"] = "6000" } }
  local w, cluster, topic, name
  before_each(function() w, cluster, topic, name = bed.worker, bed.cluster, bed.topic, bed.name end)

  local function start(class, more)
    w:start_task(name, 0, with({ ["connector.class"] = class, topic = topic, topics = topic, mark = bed.file }, more))
  end
  local function wait_offset(n) bed:wait_offset(n) end

  describe("(source)", function()
    it("changes what is sent, and commit_record shows what was given", function()
      cluster:topic(topic .. "-new", 1)
      start("Lines", { transforms = "e", ["transforms.e.type"] = "Elsewhere", count = "2" })
      assert.same({ "v1!", "v2!" }, cluster:read(topic .. "-new", 2))
      wait_offset(2)
      assert.equal("falsev1\nfalsev2\n", bed:said())
    end)

    it("leaves out what is filtered; commit_record is told, offsets follow records that were sent", function()
      start("Lines", { transforms = "f", ["transforms.f.type"] = "Filter", ["transforms.f.predicate"] = "p",
        predicates = "p", ["predicates.p.type"] = "Is", ["predicates.p.value"] = "v3" })
      assert.same({ "v1", "v2", "v4", "v5" }, cluster:read(topic, 4))
      wait_offset(5)
      assert.matches("falsev3\n", bed:said())
    end)

    it("is FAILED by a bad record after those before it were sent", function()
      start("Lines", { transforms = "b", ["transforms.b.type"] = "Bad", ["transforms.b.at"] = "v4" })
      local trace = w:wait_state(name, 0, "FAILED").trace
      assert.matches("^org%.apache%.kafka%.connect%.errors%.ConnectException: Tolerance exceeded in error handler\n", trace)
      assert.matches("Caused by: org.apache.kafka.connect.errors.DataException: bad value", trace, 1, true)
      assert.same({ "v1", "v2", "v3" }, cluster:read(topic, 3))
      wait_offset(3)
    end)

    it("skips a bad record under tolerance all, but no bug of the transform", function()
      start("Lines", { transforms = "b", ["transforms.b.type"] = "Bad", ["transforms.b.at"] = "v4", ["errors.tolerance"] = "all" })
      assert.same({ "v1", "v2", "v3", "v5" }, cluster:read(topic, 4))
      wait_offset(5)
      w:start_task("bug", 0, { ["connector.class"] = "Lines", topic = topic, transforms = "b", ["transforms.b.type"] = "Bug",
        ["transforms.b.at"] = "v1", ["errors.tolerance"] = "all" })
      local trace = w:wait_state("bug", 0, "FAILED").trace
      assert.matches("Unhandled exception in error handler", trace)
      assert.matches("a bug", trace)
      assert.matches("stack traceback", trace)
    end)

    it("tries again what is retriable", function()
      start("Lines", { transforms = "l,e", ["transforms.l.type"] = "Later", ["transforms.l.at"] = "v2",
        ["transforms.e.type"] = "InsertField$Value", ["transforms.e.static.field"] = "s", ["transforms.e.static.value"] = "1",
        ["transforms.e.predicate"] = "no", ["predicates"] = "no", ["predicates.no.type"] = "RecordIsTombstone",
        ["errors.retry.timeout"] = "20000", ["errors.retry.delay.max.ms"] = "301" })
      assert.same({ "v1", "v2", "v3", "v4", "v5" }, cluster:read(topic, 5))
    end)

    it("stops between two attempts: the record is not skipped, and comes again", function()
      start("Lines", { transforms = "l", ["transforms.l.type"] = "Later", ["transforms.l.at"] = "v3", ["transforms.l.times"] = "1000",
        ["errors.retry.timeout"] = "-1", ["errors.tolerance"] = "all" })
      worker.sleep(1200) -- a long delay has begun
      assert.is_true(worker.took(function() w:stop_tasks { name, 0 } end) < 30000)
      assert.equal("UNASSIGNED", w:status(name, 0).state)
      start("Lines", { transforms = "l", ["transforms.l.type"] = "Later", ["transforms.l.at"] = "v3",
        ["errors.retry.timeout"] = "-1", ["errors.tolerance"] = "all" })
      wait_offset(5)
      local seen = {}
      for _, v in ipairs(cluster:read(topic, 5)) do seen[v] = true end
      for i = 1, 5 do assert.is_true(seen["v" .. i]) end
    end)

    it("does not start with a config that Java refuses", function()
      start("Lines", { transforms = "h", ["transforms.h.type"] = "InsertField$Value" })
      assert.matches("^org.apache.kafka.connect.errors.ConnectException: org.apache.kafka.common.config.ConfigException: "
        .. "No field insertion configured\n", w:wait_state(name, 0, "FAILED").trace)
    end)

    it("takes converters written in Lua", function()
      start("Lines", { ["value.converter"] = "Tag", count = "2" })
      assert.same({ "<v1>", "<v2>" }, cluster:read(topic, 2))
    end)
  end)

  describe("(sink)", function()
    it("gives put what the chain made; dropped records count as consumed", function()
      cluster:write(topic, { "a", "b", "c", "d" })
      start("Say", { transforms = "f,e", ["transforms.f.type"] = "Filter", ["transforms.f.predicate"] = "p",
        predicates = "p", ["predicates.p.type"] = "Is", ["predicates.p.value"] = "d", ["transforms.e.type"] = "Elsewhere" })
      bed:wait_said("c! @2", true)
      assert.equal(("%s-new a! @0\n%s-new b! @1\n%s-new c! @2\n"):gsub("%%s", topic), (bed:said()))
      bed:wait_committed(4)
    end)

    it("skips bad records under tolerance all", function()
      cluster:write(topic, { "a", "b", "c" })
      start("Say", { transforms = "b", ["transforms.b.type"] = "Bad", ["transforms.b.at"] = "b", ["errors.tolerance"] = "all" })
      bed:wait_said("c @2", true)
      assert.is_nil(bed:said():find "b @1")
    end)

    it("fails by the earliest record: a transform's error before a later record's converter", function()
      cluster:write(topic, { '"a"', '"b"', "{" })
      start("Say", { transforms = "b", ["transforms.b.type"] = "Bad", ["transforms.b.at"] = "b",
        ["value.converter"] = "org.apache.kafka.connect.json.JsonConverter", ["value.converter.schemas.enable"] = "false" })
      assert.matches("Caused by: org.apache.kafka.connect.errors.DataException: bad value",
        w:wait_state(name, 0, "FAILED").trace, 1, true)
    end)

    it("takes converters written in Lua", function()
      cluster:write(topic, { "a" })
      start("Say", { ["value.converter"] = "Tag" })
      bed:wait_said("A @0", true)
    end)
  end)
end)
