-- connect/open_files.lua: how many files the scripts of a state hold open, and no more than they may: descriptors are
-- the whole worker's. Private.
local host = require "connect.host"

local _M = {}

-- object -> a function that says whether it is open
local held, n = setmetatable({}, { __mode = "k" }), 0

local function count()
  n = 0
  for object, is_open in pairs(held) do
    if is_open(object) then n = n + 1 else held[object] = nil end
  end
end

--- nil, or the reason why one more must not be opened.
function _M.full()
  local most = host.max_files
  if not most or n < most then return nil end
  count()
  if n >= most then
    collectgarbage() -- what nobody holds any more is closed
    count()
  end
  if n >= most then return ("Too many open files (plugin.max.files is %d)"):format(most) end
end

--- One was opened: `object`, while is_open(object).
function _M.add(object, is_open)
  held[object] = is_open
  n = n + 1
  return object
end

return _M
