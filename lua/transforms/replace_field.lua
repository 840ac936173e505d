-- ReplaceField$Key, ReplaceField$Value: fields left out, kept only, or renamed.
local connect = require "connect"
local cells = require "connect.cells"
local rows = require "connect.rows"

local PURPOSE = "field replacement"

local M = {}

-- {"old:new", ...} as {old = new}
local function renames_of(list)
  local out = {}
  for _, mapping in ipairs(list) do
    local old, new = mapping:match "^([^:]+):([^:]+)$"
    if not old then
      cells.config_error("renames", "[" .. table.concat(list, ", ") .. "]", "Invalid rename mapping: " .. mapping)
    end
    out[old] = new
  end
  return out
end

local function set_of(list)
  local out = {}
  for _, name in ipairs(list) do out[name] = true end
  return out
end

local function keeps(self, name) return not self.excluded[name] and (self.all or self.included[name] or false) end

local function plan_of(self, schema)
  local b, index = cells.builder(cells.STRUCT):basics(schema), {}
  for i = 0, schema.nfields - 1 do
    local name = cells.string(schema.fields[i].name)
    if keeps(self, name) then
      b:field(self.renames[name] or name, schema.fields[i].schema)
      index[#index + 1] = i
    end
  end
  return { schema = b:finish(), index = cells.indices(index) }
end

function M:configure(config)
  self.excluded, self.included = set_of(config.exclude), set_of(config.include)
  self.renames = renames_of(config.renames)
  self.all = #config.include == 0
  self.defaults = config["replace.null.with.default"]
  self.out = cells.cell()
  self.plans = cells.plans(function(schema) return plan_of(self, schema) end)
  -- for maps: what happens to each name that the config mentions
  local list, seen = {}, {}
  local function mention(name)
    if not seen[name] then
      list[#list + 1] = name
      seen[name] = #list - 1
    end
  end
  for _, name in ipairs(config.exclude) do mention(name) end
  for _, name in ipairs(config.include) do mention(name) end
  for old, new in pairs(self.renames) do
    mention(old)
    mention(new)
  end
  local action = {}
  for i, name in ipairs(list) do
    local new = self.renames[name]
    action[i] = not keeps(self, name) and cells.DROP or new and seen[new] or cells.KEEP
  end
  self.names, self.action = cells.names(list), cells.indices(action)
  self.other = self.all and cells.KEEP or cells.DROP
end

function M:apply_cells(r, slot)
  local v, out = r[slot], self.out
  if v.type == cells.NULL then return end
  local schema = cells.schema(r, slot)
  if schema == nil then
    cells.require_map(v, PURPOSE)
    cells.map_rename(r, out, v, self.names, self.action, self.other)
    cells.set(r, slot, out, nil)
    return
  end
  cells.require_struct(v, PURPOSE)
  local plan = self.plans:get(schema)
  cells.project(r, out, v, plan.schema, plan.index, self.defaults)
  cells.set(r, slot, out, plan.schema)
end

return connect.transform {
  name = "ReplaceField", class = "org.apache.kafka.connect.transforms.ReplaceField", on = { "key", "value" },
  doc = "Filter or rename fields.",
  configure = M.configure, apply_cells = M.apply_cells,
  config = {
    { "exclude", type = "list", default = "", distinct = true, importance = "medium",
      doc = "Fields to exclude. This takes precedence over the fields to include." },
    { "include", type = "list", default = "", distinct = true, importance = "medium",
      doc = "Fields to include. If specified, only these fields will be used." },
    { "renames", type = "list", default = "", distinct = true, importance = "medium", doc = "Field rename mappings." },
    rows.replace_null_with_default,
  },
  examples = {
    { config = { exclude = "ssn", renames = "id:key" }, input = { value = { id = 7, ssn = "1" } },
      output = { value = { key = 7 } } },
  },
}
