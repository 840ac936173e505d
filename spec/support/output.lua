-- spec/support/output.lua: busted's output: one character a test, failures in full at once, a count in
-- $LC_RESULT at the end.
return function(options)
  local busted = require "busted"
  local handler = require "busted.outputHandlers.base"()
  local count = { success = 0, failure = 0, error = 0, pending = 0 }
  local marks = { success = ".", failure = "F", error = "E", pending = "-" }
  local slow = {}

  local function report(element, message)
    io.write("\n", message, "\n")
    io.flush()
  end

  handler.testEnd = function(element, _, status)
    count[status] = (count[status] or 0) + 1
    io.write(marks[status] or "?")
    io.flush()
    if element.duration and element.duration > 5 then
      slow[#slow + 1] = ("%6.1f s  %s"):format(element.duration, handler.getFullName(element))
    end
    return nil, true
  end

  local function failure(kind)
    return function(element, parent, message, debug)
      local name = element.descriptor == "it" and handler.getFullName(element) or tostring(element.name)
      local where = element.trace and element.trace.short_src
        and ("%s:%s"):format(element.trace.short_src, element.trace.currentline) or ""
      local text = type(message) == "string" and message or (message and message.message) or tostring(message)
      if type(text) ~= "string" then text = require "pl.pretty".write(text) end
      report(element, ("%s %s %s\n  %s"):format(kind, where, name, text:gsub("\n", "\n  ")))
      if debug and debug.traceback then io.write(debug.traceback, "\n") end
      if element.descriptor ~= "it" then count.error = count.error + 1 end
      return nil, true
    end
  end

  handler.suiteEnd = function()
    io.write("\n")
    for _, line in ipairs(slow) do io.write(line, "\n") end
    local path = os.getenv "LC_RESULT"
    if path then
      local f = assert(io.open(path, "w"))
      f:write("passed ", count.success, "\nfailed ", count.failure + count.error, "\n")
      f:close()
    end
    io.flush()
    return nil, true
  end

  busted.subscribe({ "test", "end" }, handler.testEnd, { predicate = handler.cancelOnPending })
  busted.subscribe({ "failure" }, failure "FAILED")
  busted.subscribe({ "error" }, failure "ERROR")
  busted.subscribe({ "suite", "end" }, handler.suiteEnd)
  return handler
end
