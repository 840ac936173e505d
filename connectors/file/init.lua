-- connectors/file: lines of text files to Kafka and back. Lua decides, connect.lines (C) moves the bytes.
local connect = require "connect"
local lines = require "connect.lines"

local function given(file) return file ~= nil and file ~= "" end

local Source = {}

-- Standard transforms and predicates that never look at a record's timestamp; InsertField only for timestamp.field.
local BLIND = {}
for name in ("Cast DropHeaders ExtractField Filter Flatten HeaderFrom HoistField InsertField InsertHeader MaskField "
  .. "RegexRouter ReplaceField SetSchemaMetadata TimestampConverter ValueToKey"):gmatch "%a+" do
  BLIND["org.apache.kafka.connect.transforms." .. name] = true
end
for name in ("HasHeaderKey RecordIsTombstone TopicNameMatches"):gmatch "%a+" do
  BLIND["org.apache.kafka.connect.transforms.predicates." .. name] = true
end

local function is_true(v) return v ~= nil and tostring(v):lower():match "^%s*(.-)%s*$" == "true" end

-- Java stamps each record with the wall clock, which only transforms, the log of errors and letters can show. Where
-- none looks the producer's own time is the same, and quicker.
local function clock_is_seen(config)
  if is_true(config["errors.log.enable"]) and is_true(config["errors.log.include.messages"]) then return true end
  if (config["errors.deadletterqueue.source.topic.name"] or ""):find "%S" then return true end
  for alias in (config.transforms or ""):gmatch "[^%s,]+" do
    local prefix = "transforms." .. alias
    local class, predicate = config[prefix .. ".type"] or "", config[prefix .. ".predicate"]
    if not BLIND[class:match "^[^$]*"] or config[prefix .. ".timestamp.field"] then return true end
    if predicate and not BLIND[config["predicates." .. predicate .. ".type"] or ""] then return true end
  end
  return false
end

-- The stored position, 0 without one.
local function stored_position(ctx, file)
  local offset = ctx.offsets:get({ filename = file }, { floats = true }) -- Java refuses 3.0 too
  if not offset or offset.position == nil or offset.position == connect.null then return 0 end
  local p = offset.position
  if type(p) == "cdata" or (type(p) == "number" and p == math.floor(p)) then return p end
  error(connect.fatal("Offset position is the incorrect type"))
end

function Source:start(ctx)
  local c = ctx.config
  self.reader = lines.reader {
    file = c.file,
    topic = c.topic,
    batch_size = c["batch.size"],
    position = given(c.file) and stored_position(ctx, c.file) or 0,
    skip_large = c["errors.tolerance"] == "all",
    timestamps = clock_is_seen(c),
  }
end

function Source:poll() return self.reader:poll() end

function Source:stop()
  if self.reader then self.reader:close() end
end

-- Checks of PATCH /connectors/NAME/offsets; `offsets` is a list of {partition =, offset =}.
local function check_offsets(config, offsets)
  if not given(config.file) then
    error(connect.fatal("Offsets cannot be modified if the 'file' configuration is unspecified. This is because "
      .. "stdin is used for input and offsets are not tracked."))
  end
  for _, o in ipairs(offsets) do
    if o.offset ~= nil and o.offset ~= connect.null then
      local p = o.offset.position
      if p == nil then
        error(connect.fatal("Offset objects should either be null or contain the key 'position'"))
      end
      if type(p) ~= "cdata" and not (type(p) == "number" and p == math.floor(p)) then
        error(connect.fatal("The value for the 'position' key in the offset is expected to be a Long value"))
      end
      if p < 0 then
        error(connect.fatal("The value for the 'position' key in the offset should be a non-negative value"))
      end
      if o.partition == nil or o.partition == connect.null then
        error(connect.fatal("Partition objects cannot be null"))
      end
      if o.partition.filename == nil then
        error(connect.fatal("Partition objects should contain the key 'filename'"))
      end
    end
  end
  return true
end

local source = connect.source {
  name = "FileStreamSource",
  class = "org.apache.kafka.connect.file.FileStreamSourceConnector",
  task_class = "org.apache.kafka.connect.file.FileStreamSourceTask",
  doc = "One record for every line of a text file, also of one that grows.",
  task = Source,
  config = {
    { "file", type = "string", default = connect.null, importance = "high",
      doc = "Source filename. If not specified, the standard input will be used" },
    { "topic", type = "string", required = true, non_empty = true, importance = "high",
      doc = "The topic to publish data to" },
    { "batch.size", type = "int", default = 2000, importance = "low",
      doc = "The maximum number of records the source task can read from the file each time it is polled" },
  },
  start = function(_, ctx)
    ctx.log.info("Starting file source connector reading from %s",
      given(ctx.config.file) and ctx.config.file or "standard input")
  end,
  exactly_once = function(config) return given(config.file) end,
  alter_offsets = check_offsets,
}

local Sink = {}

function Sink:start(ctx) self.writer = lines.writer(ctx.config.file) end

function Sink:put_batch(batch) self.writer:write(batch) end

function Sink:stop()
  if self.writer then self.writer:close() end
end

local sink = connect.sink {
  name = "FileStreamSink",
  class = "org.apache.kafka.connect.file.FileStreamSinkConnector",
  task_class = "org.apache.kafka.connect.file.FileStreamSinkTask",
  doc = "Appends every record as a line of text to a file.",
  task = Sink,
  config = {
    { "file", type = "string", default = connect.null, importance = "high",
      doc = "Destination filename. If not specified, the standard output will be used" },
  },
  start = function(_, ctx)
    ctx.log.info("Starting file sink connector writing to %s",
      given(ctx.config.file) and ctx.config.file or "standard output")
  end,
  task_configs = function(_, max)
    local out = {}
    for i = 1, max do out[i] = {} end
    return out
  end,
  alter_offsets = function() return true end,
}

return { source, sink }
