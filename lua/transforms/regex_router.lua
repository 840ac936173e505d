-- transforms/regex_router.lua: another topic by a regular expression that matches the whole name.
local connect = require "connect"
local cells = require "connect.cells"
local java = require "connect.java"

local NPE = 'Invalid regex: Cannot invoke "String.isEmpty()" because "this.pattern" is null'

return connect.transform {
  name = "RegexRouter",
  class = "org.apache.kafka.connect.transforms.RegexRouter",
  doc = "Update the record topic using the configured regular expression and replacement string.<p/>Under the hood, "
    .. "the regex is compiled to a <code>java.util.regex.Pattern</code>. If the pattern matches the input topic, "
    .. "<code>java.util.regex.Matcher#replaceFirst()</code> is used with the replacement string to obtain the new "
    .. "topic.",
  config = {
    { "regex", required = true, importance = "high", doc = "Regular expression to use for matching.",
      check_null = true, check = function(v)
        if v == nil then return NPE end
        local re, message = java.regex(v)
        if not re then return "Invalid regex: " .. message end
      end },
    { "replacement", required = true, importance = "high", doc = "Replacement string." },
  },

  configure = function(self, config)
    local re, message = java.regex(config.regex)
    if not re then cells.config_error("regex", config.regex, "Invalid regex: " .. message) end
    self.regex, self.replacement = re, config.replacement
  end,

  apply_cells = function(self, r)
    local topic = cells.topic(r)
    if topic ~= self.at then -- records of a batch share their topic mostly
      self.at = topic
      self.to = java.matches(self.regex, topic) and java.replace_first(self.regex, topic, self.replacement) or nil
    end
    if self.to then cells.set_topic(r, self.to) end
  end,

  examples = {
    { config = { regex = "(.*)-v[0-9]+", replacement = "$1" }, input = { topic = "orders-v2", value = "x" },
      output = { topic = "orders", value = "x" } },
  },
}
