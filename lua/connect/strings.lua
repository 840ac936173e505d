-- connect/strings.lua: what of the libraries could run for ever, or want any amount of memory, in a form that the
-- worker can end (core/script/guard.h). Run once a state, before anything keeps one of the functions. Private.
local host = require "connect.host"
if host.outside then return true end

local own = host.strings
local find, rep, sort = string.find, string.rep, table.sort
local type, error, tostring = type, error, tostring
local flag, other = host.guard()

-- Patterns without special characters: LuaJIT's own find compiles those, ours does not.
local plain, known = {}, 0

local function is_plain(pattern)
  local is = plain[pattern]
  if is == nil then
    if known >= 1000 then plain, known = {}, 0 end
    known = known + 1
    is = not own.find(pattern, "[%^%$%*%+%?%.%(%[%%%-%z]")
    plain[pattern] = is
  end
  return is
end

function string.find(s, pattern, init, as_text)
  if type(s) == "string" and type(pattern) == "string" and #s * #pattern < 1000000
    and (as_text or is_plain(pattern)) then
    return find(s, pattern, init, true)
  end
  return own.find(s, pattern, init, as_text)
end

string.match, string.gmatch, string.gsub = own.match, own.gmatch, own.gsub

function string.rep(s, n, between)
  if type(s) == "number" then s = tostring(s) end
  if type(s) == "string" and type(n) == "number" then
    local size = n * (#s + (type(between) == "string" and #between or 0))
    if size > 65536 then host.room(size) end
  end
  return rep(s, n, between)
end

local function less(a, b)
  if flag[1] then flag[2]() end
  other[1] = other[1] + 1
  return a < b
end

--- A long list is compared in Lua, which can be ended.
function table.sort(t, compare)
  host.stack()
  if compare == nil and type(t) == "table" and #t > 10000 then compare = less end
  return sort(t, compare)
end

-- ---- files ---------------------------------------------------------------------------------------------------

local read = host.file_read
local open, input, tmpfile = io.open, io.input, io.tmpfile
local open_files = require "connect.open_files"
local EMFILE = 24
local methods = getmetatable(io.stdin).__index

local function is_open(f) return io.type(f) == "file" end

local function opened(f, ...)
  if f then open_files.add(f, is_open) end
  return f, ...
end

function io.open(name, mode)
  local full = open_files.full()
  if full then return nil, ("%s: %s"):format(tostring(name), full), EMFILE end
  return opened(open(name, mode))
end

function io.tmpfile()
  local full = open_files.full()
  if full then return nil, full, EMFILE end
  return opened(tmpfile())
end

methods.read = read

function io.read(...) return read(input(), ...) end

local function lines_of(f, close, ...)
  local n, formats = select("#", ...), { ... }
  return function()
    local line, err = read(f, unpack(formats, 1, n))
    if line == nil then
      if err then error(err, 2) end
      if close then f:close() end
    end
    return line
  end
end

function methods.lines(f, ...)
  if io.type(f) ~= "file" then read(f) end -- says what is wrong
  return lines_of(f, false, ...)
end

function io.lines(name, ...)
  if name == nil then return lines_of(input(), false, ...) end
  local f, err = io.open(name)
  if not f then error(("bad argument #1 to 'lines' (%s)"):format(err), 2) end
  return lines_of(f, true, ...)
end

-- Coroutines run on the C stack of whoever resumes them, one on top of the other.
local DEEPEST = 150
local depth = 0
local create, resume, running = coroutine.create, coroutine.resume, coroutine.running

local function enter()
  if not running() then depth = 0 end -- a call that was ended left it as it was
  if depth >= DEEPEST then error("stack overflow: coroutines nested too deep", 3) end
  depth = depth + 1
end

local function resumed(...)
  depth = depth - 1
  return ...
end

function coroutine.resume(co, ...)
  if type(co) ~= "thread" then return resume(co) end -- says what is wrong
  enter()
  return resumed(resume(co, ...))
end

local function wrapped(ok, ...)
  depth = depth - 1
  if not ok then error((...), 0) end
  return ...
end

function coroutine.wrap(f)
  local co = create(f)
  return function(...)
    enter()
    return wrapped(resume(co, ...))
  end
end

return true
