-- InsertField$Key, InsertField$Value: fields from the record's metadata, or with a fixed text.
local connect = require "connect"
local cells = require "connect.cells"
local rows = require "connect.rows"

local PURPOSE = "field insertion"
local ORDER = { "topic", "partition", "offset", "timestamp", "static" }

local M = {}

-- "name!" is a required field, "name?" and "name" an optional one.
local function spec(text)
  if text == nil then return nil end
  local last = text:sub(-1)
  if last == "!" or last == "?" then text = text:sub(1, -2) end
  return { name = text, optional = last ~= "!" }
end

local function plan_of(self, schema)
  local b = cells.builder(cells.STRUCT):basics(schema)
  local index, at = {}, {}
  for i = 0, schema.nfields - 1 do
    b:field(schema.fields[i].name, schema.fields[i].schema)
    index[#index + 1] = i
  end
  for _, what in ipairs(ORDER) do
    local s = self[what]
    if s then
      local type
      if what == "partition" then type = cells.plain(cells.INT32, s.optional)
      elseif what == "offset" then type = cells.plain(cells.INT64, s.optional)
      elseif what == "timestamp" then type = cells.logical(cells.TIMESTAMP, s.optional)
      else type = cells.plain(cells.STRING, s.optional) end
      b:field(s.name, type)
      at[what] = #index
      index[#index + 1] = -1
    end
  end
  return { schema = b:finish(), index = cells.indices(index), topic = at.topic, partition = at.partition,
    offset = at.offset, timestamp = at.timestamp, static = at.static }
end

function M:configure(config)
  for _, what in ipairs(ORDER) do self[what] = spec(config[what .. ".field"]) end
  self.defaults = config["replace.null.with.default"]
  if not (self.topic or self.partition or self.offset or self.timestamp or self.static) then
    cells.config_error "No field insertion configured"
  end
  if self.static and config["static.value"] == nil then
    cells.config_error("static.value", "null", "No value specified for static field: "
      .. "org.apache.kafka.connect.transforms.InsertField$InsertionSpec@0")
  end
  self.text = self.static and cells.constant(config["static.value"])
  self.out = cells.cell()
  self.plans = cells.plans(function(schema) return plan_of(self, schema) end)
end

local function require_sink()
  if cells.is_source then
    cells.data_error("Only SinkRecord supported for [%s], found: org.apache.kafka.connect.source.SourceRecord", PURPOSE)
  end
end

local function apply_map(self, r, slot)
  local out = self.out
  cells.require_map(r[slot], PURPOSE)
  cells.map(r, out, r[slot], 5)
  if self.topic then cells.set_topic_text(r, cells.map_put(r, out, self.topic.name)) end
  if self.partition and r.partition >= 0 then
    cells.set_int(cells.map_put(r, out, self.partition.name), cells.INT32, r.partition)
  end
  if self.offset then
    require_sink()
    cells.set_int(cells.map_put(r, out, self.offset.name), cells.INT64, r.u.snk.offset)
  end
  if self.timestamp and r.timestamp ~= -1 then
    cells.set_int(cells.map_put(r, out, self.timestamp.name), cells.INT64, r.timestamp)
  end
  if self.static then cells.set_constant(r, cells.map_put(r, out, self.static.name), self.text) end
  cells.set(r, slot, out, nil)
end

local function apply_struct(self, r, slot, schema)
  local v, out = r[slot], self.out
  cells.require_struct(v, PURPOSE)
  local plan = self.plans:get(schema)
  cells.project(r, out, v, plan.schema, plan.index, self.defaults)
  local fields = out.u.st.fields
  if plan.topic then cells.set_topic_text(r, fields[plan.topic]) end
  if plan.partition and r.partition >= 0 then cells.set_int(fields[plan.partition], cells.INT32, r.partition) end
  if plan.offset then
    require_sink()
    cells.set_int(fields[plan.offset], cells.INT64, r.u.snk.offset)
  end
  if plan.timestamp and r.timestamp ~= -1 then cells.set_int(fields[plan.timestamp], cells.TIMESTAMP, r.timestamp) end
  if plan.static then cells.set_constant(r, fields[plan.static], self.text) end
  cells.set(r, slot, out, plan.schema)
end

function M:apply_cells(r, slot)
  if r[slot].type == cells.NULL then return end
  local schema = cells.schema(r, slot)
  if schema == nil then apply_map(self, r, slot) else apply_struct(self, r, slot, schema) end
end

local SUFFIX = " Suffix with <code>!</code> to make this a required field, or <code>?</code> to keep it optional "
  .. "(the default)."

return connect.transform {
  name = "InsertField", class = "org.apache.kafka.connect.transforms.InsertField", on = { "key", "value" },
  doc = "Insert field(s) using attributes from the record metadata or a configured static value.",
  configure = M.configure, apply_cells = M.apply_cells,
  config = {
    { "topic.field", type = "string", importance = "medium", doc = "Field name for Kafka topic." .. SUFFIX },
    { "partition.field", type = "string", importance = "medium", doc = "Field name for Kafka partition." .. SUFFIX },
    { "offset.field", type = "string", importance = "medium",
      doc = "Field name for Kafka offset - only applicable to sink connectors.<br/>" .. SUFFIX:sub(2) },
    { "timestamp.field", type = "string", importance = "medium", doc = "Field name for record timestamp." .. SUFFIX },
    { "static.field", type = "string", importance = "medium", doc = "Field name for static data field." .. SUFFIX },
    { "static.value", type = "string", importance = "medium", doc = "Static field value, if field name configured." },
    rows.replace_null_with_default,
  },
  examples = {
    { config = { ["static.field"] = "src", ["static.value"] = "abc" }, input = { value = { id = 7 } },
      output = { value = { id = 7, src = "abc" } } },
  },
}
