-- spec/support/matrix.lua: the fault matrix: specs add what they saw, one line a case, and ./dev test prints all of it as one
-- table when it ends. The lines are in $LC_TEST_DIR/matrix.tsv.
local proc = require "spec.support.proc"

local _M = {}

local columns = { "row", "fault", "mode", "n", "lines", "lost", "duplicates", "disorder", "seconds", "status", "note" }
local numbers = { row = true, n = true, lines = true, lost = true, duplicates = true, disorder = true, seconds = true }
local file = proc.root .. "/matrix.tsv"

local function text(v)
  if type(v) == "number" and v % 1 ~= 0 then return ("%.1f"):format(v) end
  return (tostring(v):gsub("%s+", " "))
end

local function status(t)
  if t.status then return t.status end
  if (t.lost or 0) ~= 0 then return "LOST" end
  if (t.disorder or 0) ~= 0 then return "DISORDER" end
  return t.limit and t.seconds and t.seconds > t.limit and "slow" or "ok"
end

--- record { row =, fault =, mode =, n =, lines =, lost =, duplicates =, disorder =, seconds =, note = }: one case. row is that
-- of the matrix in docs/faults.md, n the passage of the fault point, seconds until the restart or recovery; what has no
-- meaning for a case is left out. limit: of more seconds the status says "slow", else "ok" or what went wrong; status:
-- another word.
function _M.record(t)
  local fields = {}
  for i, name in ipairs(columns) do
    local v
    if name == "status" then v = status(t) else v = t[name] end
    fields[i] = v == nil and "-" or text(v)
  end
  proc.append(file, table.concat(fields, "\t") .. "\n")
end

--- case(t, f): f(t) fills in the figures of t while it goes; recorded also when f raises, then as FAILED with the first
-- line of why, and raised again.
function _M.case(t, f)
  local ok, why = xpcall(function() f(t) end, function(e)
    if type(e) == "string" then return e .. debug.traceback("", 2) end
    return e -- busted's own
  end)
  if not ok then
    local said = type(why) == "table" and (why.message or tostring(why)) or tostring(why)
    t.status, t.note = "FAILED", tostring(said):match "^[^\n]*"
  end
  _M.record(t)
  if not ok then error(why, 0) end
end

local function less(a, b)
  for _, i in ipairs { 1, 2, 3, 4 } do
    if a[i] ~= b[i] then
      local x, y = tonumber(a[i]), tonumber(b[i])
      if x and y then return x < y end
      return a[i] < b[i]
    end
  end
  return a.at < b.at
end

--- The table of what was recorded, as text; "" when nothing was.
function _M.format()
  local rows, width = {}, {}
  for line in (proc.read(file) or ""):gmatch "[^\n]+" do
    local row = { at = #rows }
    for field in (line .. "\t"):gmatch "([^\t]*)\t" do row[#row + 1] = field end
    rows[#rows + 1] = row
  end
  if #rows == 0 then return "" end
  table.sort(rows, less)
  table.insert(rows, 1, columns)
  for _, row in ipairs(rows) do
    for i, field in ipairs(row) do width[i] = math.max(width[i] or 0, #field) end
  end
  local out = {}
  for _, row in ipairs(rows) do
    local cells = {}
    for i, field in ipairs(row) do
      local blanks = (" "):rep(width[i] - #field) -- string.format takes widths up to 99
      cells[i] = numbers[columns[i]] and blanks .. field or field .. blanks
    end
    out[#out + 1] = (table.concat(cells, "  "):gsub("%s+$", ""))
  end
  return table.concat(out, "\n") .. "\n"
end

return _M
