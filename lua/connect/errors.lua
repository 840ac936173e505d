-- connect/errors.lua: the errors whose kind decides what the worker does. See docs/authoring.md.
local Error = {}
Error.__index = Error

function Error.__tostring(e) return e.message end

local host = require "connect.host"
if host.error_class then host.error_class(Error) end

local _M = {}

--- An error object; `options` are after_ms, class and detail (lines of a trace below the first; then it gets no
-- Lua traceback).
function _M.new(kind, message, options)
  local e = setmetatable({ kind = kind, message = tostring(message) }, Error)
  if options then
    e.after_ms = options.after_ms
    e.class = options.class
    e.detail = options.detail
  end
  return e
end

--- True for what connect.retriable, data_error and fatal build.
function _M.is(value) return type(value) == "table" and getmetatable(value) == Error end

return _M
