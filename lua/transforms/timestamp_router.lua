-- transforms/timestamp_router.lua: another topic by the record's time.
local connect = require "connect"
local cells = require "connect.cells"
local java = require "connect.java"

-- Java's replace of a text by a text.
local function replace(text, what, with)
  local out, from = {}, 1
  while true do
    local a, b = text:find(what, from, true)
    if not a then break end
    out[#out + 1] = text:sub(from, a - 1)
    out[#out + 1] = with
    from = b + 1
  end
  if from == 1 then return text end
  out[#out + 1] = text:sub(from)
  return table.concat(out)
end

return connect.transform {
  name = "TimestampRouter",
  class = "org.apache.kafka.connect.transforms.TimestampRouter",
  doc = "Update the record's topic field as a function of the original topic value and the record timestamp.<p/>This "
    .. "is mainly useful for sink connectors, since the topic field is often used to determine the equivalent entity "
    .. "name in the destination system (e.g. database table or search index name).",
  config = {
    { "topic.format", default = "${topic}-${timestamp}", importance = "high",
      doc = "Format string which can contain <code>${topic}</code> and <code>${timestamp}</code> as placeholders for "
        .. "the topic and timestamp, respectively." },
    { "timestamp.format", default = "yyyyMMdd", importance = "high",
      doc = "Format string for the timestamp that is compatible with <code>java.text.SimpleDateFormat</code>." },
  },

  configure = function(self, config)
    self.topic_format, self.pattern = config["topic.format"], config["timestamp.format"]
  end,

  apply_cells = function(self, r)
    if r.timestamp < 0 then cells.data_error("%s", "Timestamp missing on record: " .. java.record_text(r)) end
    if not self.format then -- Java looks at the pattern when the first record comes
      local f, message = java.date_format(self.pattern)
      if not f then cells.fail("java.lang.IllegalArgumentException", message) end
      self.format = f
    end
    if r.timestamp ~= self.last_timestamp or r.topic ~= self.last_topic or cells.run ~= self.last_run then
      local text = java.format(self.format, r.timestamp)
      self.to = replace(replace(self.topic_format, "${topic}", cells.topic(r)), "${timestamp}", text)
      self.last_timestamp, self.last_topic, self.last_run = r.timestamp, r.topic, cells.run
    end
    cells.set_topic(r, self.to)
  end,

  examples = {
    { config = { ["timestamp.format"] = "yyyy-MM" }, input = { topic = "orders", timestamp = 1483425001864,
      value = "x" },
      output = { topic = "orders-2017-01", timestamp = 1483425001864, value = "x" } },
  },
}
