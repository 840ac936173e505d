-- TopicNameMatches: true for records whose topic, as a whole, matches a Java regular expression.
local connect = require "connect"
local cells = require "connect.cells"
local java = require "connect.java"

return connect.predicate {
  name = "TopicNameMatches", class = "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
  doc = "A predicate which is true for records with a topic name that matches the configured regular expression.",

  configure = function(self, config) self.regex = java.regex(config.pattern) end,

  test_cells = function(self, r)
    local topic = cells.topic(r)
    if topic ~= self.at then
      self.at = topic
      self.matches = topic ~= nil and java.matches(self.regex, topic)
    end
    return self.matches
  end,

  config = {
    { "pattern", type = "string", required = true, non_empty = true, importance = "medium",
      doc = "A Java regular expression for matching against the name of a record's topic.",
      check = function(v)
        if v == nil or v == "" then return nil end
        local re, message = java.regex(v)
        if not re then return "Invalid regex: " .. message end
      end },
  },
  examples = {
    { config = { pattern = "orders-.*" }, input = { topic = "orders-eu" }, output = true },
    { config = { pattern = "orders" }, input = { topic = "orders-eu" }, output = false },
  },
}
