-- spec/support/oracle.lua: the numbered-lines oracle: what went in, what came out, what is lost, twice or
-- out of order. Lines are "PREFIX-<number> text".
local _M = {}

--- lines(prefix, from, to): "P-1 line", ...
function _M.lines(prefix, from, to)
  local t = {}
  for i = from, to do t[#t + 1] = ("%s-%d created"):format(prefix, i) end
  return t
end

--- check(values, prefix, n, belongs): values are payload texts or JSON envelopes. Returns { lost = {...},
-- duplicates = n, disorder = n, seen = n, largest = n }. Out of order means smaller than the largest before it and not
-- seen before. belongs(i): whether number i should be there at all (default: all should).
function _M.check(values, prefix, n, belongs)
  local seen, r, largest = {}, { lost = {}, duplicates = 0, disorder = 0, seen = 0 }, 0
  local pattern = prefix:gsub("%p", "%%%0") .. "%-(%d+) "
  for _, v in ipairs(values) do
    local i = tonumber(v:match(pattern))
    if i then
      r.seen = r.seen + 1
      if seen[i] then r.duplicates = r.duplicates + 1
      elseif i < largest then r.disorder = r.disorder + 1 end
      seen[i] = true
      if i > largest then largest = i end
    end
  end
  for i = 1, n do
    if not seen[i] and (not belongs or belongs(i)) then r.lost[#r.lost + 1] = i end
  end
  r.largest = largest
  return r
end

return _M
