-- connect/describe.lua: declarations flattened for the worker: rows, checks of configs, task configs. Private;
-- loaded only by the states that need it.
local values = require "connect.values"

local _M = {}

local function quoted(v) return type(v) == "string" and ('"%s"'):format(v) or tostring(v) end

-- config rows -------------------------------------------------------------------------------------
local row_fields = {
  type = "string", required = "boolean", default = "any", importance = "string", group = "string", order = "number",
  width = "string", display = "string", doc = "string", one_of = "table", any_case = "boolean", range = "table",
  non_empty = "boolean", distinct = "boolean", match = "string",
  check = "function", check_null = "boolean", recommend = "function", visible = "function",
  dependents = "table", deprecated = "table",
}
local allowed_values = {
  type = { boolean = 1, string = 1, int = 1, short = 1, long = 1, double = 1, list = 1, class = 1, password = 1 },
  importance = { high = 1, medium = 1, low = 1 },
  width = { none = 1, short = 1, medium = 1, long = 1 },
}

local function default_text(v)
  if v == nil or v == values.null then return nil end
  if type(v) == "table" then
    local out = {}
    for i, x in ipairs(v) do out[i] = values.tostring(x) end
    return table.concat(out, ",")
  end
  return values.tostring(v)
end

local function flat_row(row, where, in_group)
  if type(row) ~= "table" or type(row[1]) ~= "string" then
    error(where .. ": a config row is a table with the key's name first", 0)
  end
  where = ("%s: config %s"):format(where, quoted(row[1]))
  for k, v in pairs(row) do
    if k ~= 1 then
      local t = row_fields[k]
      if not t then error(("%s: unknown field %s"):format(where, quoted(k)), 0) end
      if t ~= "any" and type(v) ~= t then
        error(("%s: %s must be a %s, got %s"):format(where, k, t, type(v)), 0)
      end
      if allowed_values[k] and not allowed_values[k][v] then
        error(("%s: %s cannot be %s"):format(where, k, quoted(v)), 0)
      end
    end
  end
  if row.required and row.default ~= nil then error(where .. ": required and default exclude each other", 0) end
  local out = {
    name = row[1], type = row.type or "string", required = row.required or false, default = default_text(row.default),
    importance = row.importance or "medium", group = row.group, width = row.width or "none",
    display = row.display or row[1], doc = row.doc or "", non_empty = row.non_empty or false, any_case = row.any_case,
    distinct = row.distinct or false,
  }
  if row.group then
    in_group[row.group] = row.order or (in_group[row.group] or 0) + 1
    out.order = in_group[row.group]
  end
  if row.one_of then
    out.one_of = {}
    for i, v in ipairs(row.one_of) do out.one_of[i] = values.tostring(v) end
  end
  if row.range then
    out.min, out.max = row.range.min or row.range[1], row.range.max or row.range[2]
    if type(out.min) ~= "number" or (out.max ~= nil and type(out.max) ~= "number") then
      error(where .. ": range is {min, max} or {min}", 0)
    end
  end
  return out
end

local function has_checks(decl)
  if decl.validate then return true end
  for _, row in ipairs(decl.config or {}) do
    if row.check or row.match then return true end
  end
  return false
end

local function flat(decl, index, suffix, variant)
  local class = (decl.class or decl.name) .. (suffix or "")
  local where = ("connect.%s %s"):format(decl.kind, decl.name)
  local rows, in_group, seen = {}, {}, {}
  for i, row in ipairs(decl.config or {}) do
    rows[i] = flat_row(row, where, in_group)
    if seen[rows[i].name] then error(("%s: config %s is there twice"):format(where, quoted(rows[i].name)), 0) end
    seen[rows[i].name] = true
  end
  local aliases = {}
  if not suffix then
    aliases[1] = decl.name
    for _, a in ipairs(decl.aliases or {}) do aliases[#aliases + 1] = a end
  end
  return {
    kind = decl.kind, class = class, task_class = decl.task and (decl.task_class or class .. "Task") or nil,
    version = decl.version or "undefined", aliases = aliases, rows = rows, index = index,
    variant = variant,
    validate = has_checks(decl), exactly_once = decl.exactly_once ~= nil,
    boundaries = decl.transaction_boundaries ~= nil,
  }
end

--- Plain descriptions of declarations for the worker's plugin list.
function _M.list(list)
  local out = {}
  for i, decl in ipairs(list) do
    local variants = decl.on or { false }
    for _, v in ipairs(variants) do
      if v and v ~= "key" and v ~= "value" then
        error(('connect.transform %s: on holds "key" and "value" only'):format(decl.name), 0)
      end
      out[#out + 1] = flat(decl, i, v and (v == "key" and "$Key" or "$Value") or nil, v or nil)
      if decl.kind == "converter" and decl.header then
        local header = flat(decl, i)
        header.kind = "header_converter"
        out[#out + 1] = header
      end
    end
  end
  return out
end

--- Runs the checks of rows and validate(config). `bad`: keys whose value could not be parsed.
-- Returns a list of {key =, message =, whole = the message is complete}.
function _M.validate(decl, config, bad)
  local out = {}
  for _, row in ipairs(decl.config or {}) do
    local key = row[1]
    local v = config[key]
    if not bad[key] or row.check_null then -- as Java, which checks null where there was no value to parse
      if row.match and v ~= nil and not tostring(v):find(row.match) then
        out[#out + 1] = { key = key, message = ("must match the Lua pattern %s"):format(row.match) }
      end
      if row.check then
        local message = row.check(v, config)
        if message and type(message) ~= "string" then
          error(("%s: check of %s must return nil or a text, got %s"):format(decl.name, key, type(message)), 0)
        end
        if message then out[#out + 1] = { key = key, message = message } end
      end
    end
  end
  if decl.validate and next(bad) == nil then
    local found = decl.validate(config)
    local expected = "%s: validate must return nil or a table {key = message}, got %s"
    if found and type(found) ~= "table" then error(expected:format(decl.name, type(found)), 0) end
    local keys = {}
    for k in pairs(found or {}) do
      if type(k) ~= "string" then error(expected:format(decl.name, "a key that is a " .. type(k)), 0) end
      keys[#keys + 1] = k
    end
    table.sort(keys)
    for _, k in ipairs(keys) do
      local list = type(found[k]) == "table" and found[k] or { found[k] }
      for _, m in ipairs(list) do out[#out + 1] = { key = k, message = tostring(m), whole = true } end
    end
  end
  return out
end

-- task configs ------------------------------------------------------------------------------------
local function config_text(v, key)
  local t = type(v)
  if t == "string" then return v end
  if t == "boolean" or t == "number" or t == "cdata" then return values.tostring(v) end
  if t == "table" then
    local out = {}
    for i, x in ipairs(v) do out[i] = values.tostring(x) end
    return table.concat(out, ",")
  end
  error(("task_configs: the value of %s is a %s"):format(tostring(key), t), 0)
end

--- What task_configs returned, as texts to write over the connector's own config: a value that is the parsed
-- one is left out (its text stays as the user wrote it), connect.null removes a key (false here).
function _M.task_configs(list, config)
  if type(list) ~= "table" then error("task_configs must return a list of tables, got " .. type(list), 0) end
  local out = {}
  for i, t in ipairs(list) do
    if type(t) ~= "table" then error(("task_configs: item %d is a %s, not a table"):format(i, type(t)), 0) end
    out[i] = {}
    for k, v in pairs(t) do
      if type(k) ~= "string" then error("task_configs: keys must be texts, got a " .. type(k), 0) end
      if v == values.null then
        out[i][k] = false
      elseif not rawequal(v, config[k]) then
        out[i][k] = config_text(v, k)
      end
    end
  end
  return out
end

return _M
