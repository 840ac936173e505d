-- connect: what a plugin requires. docs/authoring.md teaches it. This module only gathers the parts.
local declare = require "connect.declare"
local errors = require "connect.errors"
local values = require "connect.values"

local _M = {
  null = values.null,
  array = values.array,
  is_array = values.is_array,
  map = values.map,
  is_map = values.is_map,
  map_get = values.map_get,
  map_set = values.map_set,
  map_pairs = values.map_pairs,
  float = values.float,
  bytes = values.bytes,
  data = values.data,
  copy = values.copy,
  tostring = values.tostring,
  int64 = values.int64,
  spread = declare.spread,
  source = declare.source,
  sink = declare.sink,
  transform = declare.transform,
  predicate = declare.predicate,
  converter = declare.converter,
  is_error = errors.is,
}

--- Returned by a transform's apply: the record is filtered out.
_M.drop = setmetatable({}, { __tostring = function() return "connect.drop" end })

--- The same batch comes again after a backoff, or after options.after_ms.
function _M.retriable(message, options) return errors.new("retriable", message, options) end

--- This record is bad: errors.tolerance and the dead letter queue decide.
function _M.data_error(message) return errors.new("data_error", message) end

--- The task or connector fails.
function _M.fatal(message) return errors.new("fatal", message) end

--- The same, because of its configuration: restart.policy never starts it again.
function _M.config_error(message)
  return errors.new("fatal", message, { class = "org.apache.kafka.common.config.ConfigException" })
end

-- schema and json need the core's functions; loaded when first used
return setmetatable(_M, {
  __index = function(t, k)
    if k == "schema" or k == "json" then
      local m = require("connect." .. k)
      rawset(t, k, m)
      return m
    end
  end,
})
