-- transforms/timestamp_converter.lua: times between texts, integers and Connect's Date, Time and Timestamp.
local connect = require "connect"
local cells = require "connect.cells"
local java = require "connect.java"
local rows = require "connect.rows"

local PURPOSE = "converting timestamp formats"
local DAY = 86400000LL
local MAX, MIN = 0x7fffffffffffffffLL, -0x7fffffffffffffffLL - 1

-- How a value means a time: by its schema, or by its Java class.
local STRING, UNIX, DATE = 1, 2, 3

local function kind_of_schema(schema)
  local l = schema.logical
  if l == cells.DATE or l == cells.TIME or l == cells.TIMESTAMP then return DATE end
  if schema.type == cells.STRING then return STRING end
  if schema.type == cells.INT64 then return UNIX end
  cells.fail("org.apache.kafka.connect.errors.ConnectException",
    ("Schema %s does not correspond to a known timestamp type format"):format(java.schema_text(schema)))
end

local function kind_of_value(v)
  local t = v.type
  if t == cells.DATE or t == cells.TIME or t == cells.TIMESTAMP then return DATE end
  if t == cells.INT64 then return UNIX end
  if t == cells.STRING then return STRING end
  cells.data_error("TimestampConverter does not support class %s objects as timestamps", cells.class_name(v))
end

-- Java's TimeUnit: division cuts off, multiplication stops at the ends.
local function times(i, n)
  if i > MAX / n then return MAX end
  if i < MIN / n then return MIN end
  return i * n
end

local TO_MS = { seconds = function(i) return times(i, 1000) end, milliseconds = function(i) return i end,
  microseconds = function(i) return i / 1000 end, nanoseconds = function(i) return i / 1000000 end }
local FROM_MS = { seconds = function(i) return i / 1000 end, milliseconds = function(i) return i end,
  microseconds = function(i) return times(i, 1000) end, nanoseconds = function(i) return times(i, 1000000) end }

-- ms since 1970 (int64_t) of a value that is not null.
local function read(self, v, kind)
  if kind == DATE then
    if v.type < cells.DATE or v.type > cells.TIMESTAMP then
      cells.data_error("Expected Timestamp to be a java.util.Date, but found class %s", cells.class_name(v))
    end
    return v.u.i
  end
  if kind == UNIX then
    if v.type ~= cells.INT64 then
      cells.data_error("Expected Unix timestamp to be a Long, but found class %s", cells.class_name(v))
    end
    return self.to_ms(v.u.i)
  end
  if v.type ~= cells.STRING then
    cells.data_error("Expected string timestamp to be a String, but found class %s", cells.class_name(v))
  end
  if not self.format then
    cells.fail("java.lang.NullPointerException",
      'Cannot invoke "java.text.SimpleDateFormat.parse(String)" because "config.format" is null')
  end
  local ms = java.parse(self.format, v)
  if not ms then
    local text = cells.text(v)
    cells.fail("org.apache.kafka.connect.errors.DataException",
      ("Could not parse timestamp: value (%s) does not match pattern (%s)"):format(text, self.pattern),
      ('java.text.ParseException: Unparseable date: "%s"'):format(text))
  end
  return ms
end

local function day_of(ms)
  local d = ms / DAY
  if d * DAY > ms then d = d - 1 end
  return d
end

local function write(self, r, out, ms)
  local target = self.target
  if target == "string" then
    java.format_into(r, out, self.format, ms)
  elseif target == "unix" then
    cells.set_int(out, cells.INT64, self.from_ms(ms))
  elseif target == "Date" then
    cells.set_int(out, cells.DATE, day_of(ms) * DAY)
  elseif target == "Time" then
    cells.set_int(out, cells.TIME, ms - day_of(ms) * DAY)
  else
    cells.set_int(out, cells.TIMESTAMP, ms)
  end
end

local function convert(self, r, out, v, kind)
  if v.type == cells.NULL then return cells.copy(out, v) end
  write(self, r, out, read(self, v, kind or kind_of_value(v)))
end

local function target_schema(self, optional)
  local target = self.target
  if target == "string" then return cells.plain(cells.STRING, optional) end
  if target == "unix" then return cells.plain(cells.INT64, optional) end
  return cells.logical(cells[target:upper()], optional)
end

-- A struct of the new schema from the struct v of the old one.
local function convert_struct(self, r, out, v, schema, at, kind)
  local old = v.u.st.schema
  cells.struct(r, out, schema)
  for i = 0, old.nfields - 1 do
    local from = cells.read(v, i, self.defaults)
    if i == at then
      convert(self, r, self.part, from, kind or kind_of_schema(old.fields[i].schema))
      cells.put(out, i, self.part)
    else
      cells.put(out, i, from)
    end
  end
end

-- A builder with all of a struct's schema but its default, field `at` being of the target's type.
local function struct_builder(self, schema, at)
  local builder = cells.builder(cells.STRUCT):basics(schema)
  for i = 0, schema.nfields - 1 do
    local f = schema.fields[i]
    builder:field(cells.ffi.string(f.name), i == at and target_schema(self, f.schema.optional) or f.schema)
  end
  if schema.optional then builder:optional(true) end
  return builder
end

local function struct_plan(self, r, schema)
  if schema.type ~= cells.STRUCT then cells.data_error "Cannot list fields on non-struct type" end
  local at = cells.field(schema, self.field)
  local builder = struct_builder(self, schema, at)
  if schema.has_default and schema.def.type == cells.STRUCT then
    -- the default, converted by a schema like the one being built
    local like = struct_builder(self, schema, at):finish()
    cells.C.lc_batch_hold_schema(r.batch, like)
    convert_struct(self, r, self.default, schema.def, like, at)
    builder:default(self.default)
  end
  return { schema = builder:finish(), at = at }
end

local function with_schema(self, r, slot, schema)
  local v, out = r[slot], self.out
  if self.field == "" then
    local kind = kind_of_schema(schema)
    convert(self, r, out, v, kind)
    return cells.set(r, slot, out, self.schemas[schema.optional])
  end
  if v.type ~= cells.NULL then cells.require_struct(v, PURPOSE) end
  self.record = r
  local plan = self.plans:get(schema)
  if v.type == cells.NULL then
    cells.set_null(out)
  else
    convert_struct(self, r, out, v, plan.schema, plan.at)
  end
  cells.set(r, slot, out, plan.schema)
end

local function schemaless(self, r, slot)
  local v, out = r[slot], self.out
  if v.type == cells.NULL or self.field == "" then
    convert(self, r, out, v)
    return cells.set(r, slot, out, nil)
  end
  cells.require_map(v, PURPOSE)
  cells.map(r, out, v, 1)
  local from = cells.get(v, self.field)
  if from then convert(self, r, self.part, from) else cells.set_null(self.part) end
  cells.copy(cells.map_put(r, out, self.field), self.part)
  cells.set(r, slot, out, nil)
end

local function blank(s) return not s:find "[^%z\1- ]" end

return connect.transform {
  name = "TimestampConverter",
  class = "org.apache.kafka.connect.transforms.TimestampConverter",
  on = { "key", "value" },
  doc = "Convert timestamps between different formats such as Unix epoch, strings, and Connect Date/Timestamp types."
    .. "Applies to individual fields or to the entire value.",
  config = {
    { "field", default = "", importance = "high",
      doc = "The field containing the timestamp, or empty if the entire value is a timestamp" },
    { "target.type", required = true, importance = "high", one_of = { "string", "unix", "Date", "Time", "Timestamp" },
      doc = "The desired timestamp representation: string, unix, Date, Time, or Timestamp" },
    { "format", default = "", importance = "medium",
      doc = "A SimpleDateFormat-compatible format for the timestamp. Used to generate the output when type=string or "
        .. "used to parse the input if the input is a string." },
    { "unix.precision", default = "milliseconds", importance = "low",
      one_of = { "nanoseconds", "microseconds", "milliseconds", "seconds" },
      doc = "The desired Unix precision for the timestamp: seconds, milliseconds, microseconds, or nanoseconds. Used "
        .. "to generate the output when type=unix or used to parse the input if the input is a Long.Note: This SMT "
        .. "will cause precision loss during conversions from, and to, values with sub-millisecond components." },
    rows.replace_null_with_default,
  },

  configure = function(self, config)
    self.field, self.target, self.pattern = config.field, config["target.type"], config.format
    local given = self.pattern ~= nil and not blank(self.pattern)
    if self.target == "string" and not given then
      cells.config_error "TimestampConverter requires format option to be specified when using string timestamps"
    end
    if given then
      local f, message = java.date_format(self.pattern)
      if not f then
        cells.config_error(("Invalid value java.lang.IllegalArgumentException: %s for configuration TimestampConverter "
          .. "requires a SimpleDateFormat-compatible pattern for string timestamps: %s"):format(message, self.pattern))
      end
      self.format = f
    end
    self.to_ms, self.from_ms = TO_MS[config["unix.precision"]], FROM_MS[config["unix.precision"]]
    self.defaults = config["replace.null.with.default"]
    self.out, self.part, self.default = cells.cell(), cells.cell(), cells.cell()
    self.schemas = { [true] = target_schema(self, true), [false] = target_schema(self, false) }
    self.plans = cells.plans(function(schema) return struct_plan(self, self.record, schema) end)
  end,

  apply_cells = function(self, r, slot)
    local schema = cells.schema(r, slot)
    if schema == nil then return schemaless(self, r, slot) end
    with_schema(self, r, slot, schema)
  end,

  examples = {
    { config = { ["target.type"] = "string", format = "yyyy-MM-dd", field = "at" },
      input = { topic = "t", value = { at = 1483425001864, id = 7 } },
      output = { topic = "t", value = { at = "2017-01-03", id = 7 } } },
  },
}
