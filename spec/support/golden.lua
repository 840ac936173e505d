-- spec/support/golden.lua: recorded cases from $GOLDEN, else spec/golden. Documents are read with the
-- small reader below, not with the core's: what is tested must not read its own expectation.
local files = require "spec.support.files"

local _M = {}

_M.null = setmetatable({}, { __tostring = function() return "null" end })

local escapes = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t", ['"'] = '"', ["\\"] = "\\", ["/"] = "/" }

local function utf8(c)
  if c < 0x80 then return string.char(c) end
  if c < 0x800 then return string.char(0xC0 + math.floor(c / 64), 0x80 + c % 64) end
  if c < 0x10000 then
    return string.char(0xE0 + math.floor(c / 4096), 0x80 + math.floor(c / 64) % 64, 0x80 + c % 64)
  end
  return string.char(0xF0 + math.floor(c / 262144), 0x80 + math.floor(c / 4096) % 64,
    0x80 + math.floor(c / 64) % 64, 0x80 + c % 64)
end

local function decode_string(s)
  s = s:gsub("\\u([dD][89aAbB]%x%x)\\u([dD][c-fC-F]%x%x)", function(h, l)
    return utf8(0x10000 + (tonumber(h, 16) - 0xD800) * 1024 + tonumber(l, 16) - 0xDC00)
  end)
  return (s:gsub("\\(u?)(.)(%x?%x?%x?)", function(u, c, rest)
    if u == "u" then return utf8(tonumber(c .. rest, 16)) end
    return escapes[c] .. rest
  end))
end

-- gsub above cannot see "\\u" after an escaped backslash, so strings are walked once, escape by escape
local function read_string(text, at)
  local out, i = {}, at + 1
  while true do
    local j = text:find('["\\]', i)
    assert(j, "unterminated string")
    out[#out + 1] = text:sub(i, j - 1)
    if text:byte(j) == 34 then return table.concat(out), j + 1 end
    if text:sub(j + 1, j + 1) == "u" then
      local pair = text:match("^\\u[dD][89aAbB]%x%x\\u[dD][c-fC-F]%x%x", j)
      local piece = pair or text:sub(j, j + 5)
      out[#out + 1] = decode_string(piece)
      i = j + #piece
    else
      out[#out + 1] = escapes[text:sub(j + 1, j + 1)]
      i = j + 2
    end
  end
end

local value

local function read_list(text, at, close, item)
  local i = text:find("%S", at + 1)
  if text:sub(i, i) == close then return i + 1 end
  while true do
    i = item(i)
    i = text:find("%S", i)
    local c = text:sub(i, i)
    if c == close then return i + 1 end
    assert(c == ",", "expected , or " .. close .. " at " .. i)
    i = text:find("%S", i + 1)
  end
end

--- Value at position `at`; numbers become {number = literal}? No: Lua numbers, literals in .literal maps are
-- not needed by the recordings, which quote what must stay exact.
function value(text, at)
  local i = text:find("%S", at)
  local c = text:sub(i, i)
  if c == "{" then
    local t = {}
    local stop = read_list(text, i, "}", function(p)
      local k, q = read_string(text, p)
      q = assert(text:match("^%s*:()", q), "expected :")
      local v, r = value(text, q)
      t[k] = v
      return r
    end)
    return t, stop
  elseif c == "[" then
    local t = {}
    local stop = read_list(text, i, "]", function(p)
      local v, r = value(text, p)
      t[#t + 1] = v
      return r
    end)
    return t, stop
  elseif c == '"' then
    return read_string(text, i)
  end
  local word = text:match("^[%w%.%+%-]+", i)
  if word == "true" then return true, i + 4 end
  if word == "false" then return false, i + 5 end
  if word == "null" then return _M.null, i + 4 end
  return assert(tonumber(word), "bad value at " .. i), i + #word
end

--- nil for golden.null, all else as it is.
function _M.value(v) if v ~= _M.null then return v end end

--- A JSON text as Lua values; null is golden.null.
function _M.decode(text) return (value(text, 1)) end

function _M.dir() return os.getenv "GOLDEN" or "spec/golden" end

--- A whole document, e.g. document("rest/01-root-and-generic.json"); nil when the folder lacks it.
function _M.document(name)
  local text = files.read(_M.dir() .. "/" .. name)
  return text and _M.decode(text)
end

--- The cases of a .jsonl file, in order; each also has .line, its source text. {} when there is no file. dir: where
-- it is when not with the recordings.
function _M.cases(name, dir)
  local out = {}
  local f = io.open((dir or _M.dir()) .. "/" .. name, "rb")
  if not f then return out end
  for line in f:lines() do
    if line:find "%S" then
      local case = _M.decode(line)
      case.line = line
      out[#out + 1] = case
    end
  end
  f:close()
  return out
end

return _M
