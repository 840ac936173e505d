-- connect/declare.lua: declarations of plugins as authors make them. The worker's side is describe.lua.
local _M = {}

local Declaration = {}

local function quoted(v) return type(v) == "string" and ('"%s"'):format(v) or tostring(v) end

-- Fields of each kind: name -> what it must be. "?" = optional.
local connector_fields = {
  name = "string", class = "string?", aliases = "table?", task_class = "string?", version = "string?", doc = "string?",
  config = "table?", task = "table", task_configs = "function?", validate = "function?", start = "function?",
  stop = "function?", alter_offsets = "function?", examples = "table?",
}
local step_fields = {
  name = "string", class = "string?", aliases = "table?", version = "string?", doc = "string?", config = "table?",
  validate = "function?", examples = "table?", configure = "function?", close = "function?",
}

local function with(base, more)
  local out = {}
  for k, v in pairs(base) do out[k] = v end
  for k, v in pairs(more) do out[k] = v end
  return out
end

local fields = {
  source = with(connector_fields, { exactly_once = "any?", transaction_boundaries = "any?" }),
  sink = connector_fields,
  transform = with(step_fields, { on = "table?", apply = "function?", apply_value = "function?",
    apply_cells = "function?" }),
  predicate = with(step_fields, { test = "function?", test_cells = "function?" }),
  converter = with(step_fields, { header = "boolean?", from_connect = "function", to_connect = "function" }),
}

local function check(kind, decl, level)
  if type(decl) ~= "table" then
    error(("connect.%s: a table expected, got %s"):format(kind, type(decl)), level + 1)
  end
  local allowed = fields[kind]
  for k in pairs(decl) do
    if not allowed[k] then error(("connect.%s: unknown field %s"):format(kind, quoted(k)), level + 1) end
  end
  for k, want in pairs(allowed) do
    local optional = want:sub(-1) == "?"
    local t = optional and want:sub(1, -2) or want
    local v = decl[k]
    if v == nil then
      if not optional then error(("connect.%s: field %s is missing"):format(kind, k), level + 1) end
    elseif t ~= "any" and type(v) ~= t then
      error(("connect.%s: field %s must be a %s, got %s"):format(kind, k, t, type(v)), level + 1)
    end
  end
  if kind == "transform" and not (decl.apply or decl.apply_cells or (decl.on and decl.apply_value)) then
    error("connect.transform: apply is missing (or apply_value together with on)", level + 1)
  end
  if kind == "predicate" and not (decl.test or decl.test_cells) then
    error("connect.predicate: field test is missing", level + 1)
  end
end

for kind in pairs(fields) do
  --- connect.source{...}, connect.sink{...}, connect.transform{...}, ...: returned by a plugin file.
  _M[kind] = function(decl)
    check(kind, decl, 2)
    local out = {}
    for k, v in pairs(decl) do out[k] = v end
    out.kind = kind
    return setmetatable(out, Declaration)
  end
end

--- connect.spread("files", {"a", "b", "c"}, 2): the list over at most `max` tasks, in turn:
-- { {files = {"a", "c"}}, {files = {"b"}} }. An empty list gives no task.
function _M.spread(key, list, max)
  local out = {}
  for i, item in ipairs(list) do
    local at = (i - 1) % max + 1
    out[at] = out[at] or { [key] = {} }
    table.insert(out[at][key], item)
  end
  return out
end

-- What a worker would otherwise find out when it is used.
local function check_complete(d)
  if d.name == "" or d.name:find "[%c%s]" then
    error(("connect.%s: the name %s is empty or has white space"):format(d.kind, ("%q"):format(d.name)), 0)
  end
  for _, row in ipairs(d.config or {}) do
    if type(row) == "table" and row.match ~= nil then
      local ok, why = pcall(string.find, "", row.match)
      if not ok then
        error(("connect.%s %s: match of %s is no Lua pattern: %s"):format(d.kind, d.name, tostring(row[1]), why), 0)
      end
    end
  end
end

--- What a plugin file returned, as a list of declarations. Raises with the reason. `standard`: the file ships with
-- the program.
function _M.list(returned, standard)
  if type(returned) == "table" and getmetatable(returned) == Declaration then returned = { returned } end
  if type(returned) ~= "table" or #returned == 0 then
    error("a plugin file must return what connect.source, sink, transform, predicate or converter made, "
      .. "or a list of such; got " .. (type(returned) == "table" and "another table" or type(returned)), 0)
  end
  local seen = {}
  for i, d in ipairs(returned) do
    if type(d) ~= "table" or getmetatable(d) ~= Declaration then
      error(("item %d of the list is not made by connect.source, sink, transform, predicate or converter"):format(i), 0)
    end
    check_complete(d)
    local class = d.kind .. " " .. (d.class or d.name)
    if seen[class] then error(("connect.%s: declared twice"):format(class), 0) end
    seen[class] = true
    if not standard and (d.apply_cells or d.test_cells) then
      error(("connect.%s %s: apply_cells and test_cells are for what ships with the program"):format(d.kind, d.name), 0)
    end
  end
  return returned
end

return _M
