-- transforms/header_from.lua: fields of the key or value copied or moved into headers.
local connect = require "connect"
local cells = require "connect.cells"
local rows = require "connect.rows"

local NO_FIELD = 'Cannot invoke "org.apache.kafka.connect.data.Field.schema()" because the return value of '
  .. '"org.apache.kafka.connect.data.Schema.field(String)" is null'

local function not_empty(list)
  if list ~= nil and #list == 0 then return "Empty list" end
end

-- Where the fields are; when they are moved, what a schema without them is like, and where its fields come from.
local function plan_for(self)
  local gone = {}
  for _, f in ipairs(self.fields) do gone[f] = true end
  return cells.plans(function(schema)
    local at, missing = {}, false
    for i, f in ipairs(self.fields) do
      at[i] = cells.field(schema, f)
      missing = missing or at[i] < 0
    end
    local plan = { at = cells.indices(at), missing = missing }
    if not self.move then return plan end
    local builder, index = cells.builder(cells.STRUCT):basics(schema), {}
    for i = 0, schema.nfields - 1 do
      local name = cells.ffi.string(schema.fields[i].name)
      if not gone[name] then
        builder:field(name, schema.fields[i].schema)
        index[#index + 1] = i
      end
    end
    plan.schema, plan.index = builder:finish(), cells.indices(index)
    return plan
  end)
end

local function with_schema(self, r, slot, schema)
  local v = r[slot]
  cells.require_struct(v, self.purpose)
  local old = self.old
  cells.copy(old, v)
  local plan = self.plans:get(schema)
  if self.move then
    cells.project(r, self.new, v, plan.schema, plan.index, self.defaults)
    cells.set(r, slot, self.new, plan.schema)
  end
  if plan.missing then cells.fail("java.lang.NullPointerException", NO_FIELD) end
  local n, first, h = #self.fields, r.nheaders, cells.more_headers(r, #self.fields)
  for i = 0, n - 1 do
    local at = plan.at[i]
    cells.fill_header(r, h[first + i], self.headers[i + 1], cells.read(old, at, self.defaults),
      schema.fields[at].schema)
  end
  cells.set_headers(r, h, n)
end

local function schemaless(self, r, slot)
  local v = r[slot]
  cells.require_map(v, self.purpose)
  local old, at = self.old, self.at
  cells.copy(old, v)
  cells.map_pick(r, old, self.names, at, self.move and self.new or nil)
  if self.move then cells.set(r, slot, self.new, nil) end
  local n, first, h = #self.fields, r.nheaders, cells.more_headers(r, #self.fields)
  for i = 0, n - 1 do
    local entry = at[self.number[i]]
    cells.fill_header(r, h[first + i], self.headers[i + 1], entry < 0 and self.null or old.u.items[2 * entry + 1], nil)
  end
  cells.set_headers(r, h, n)
end

return connect.transform {
  name = "HeaderFrom",
  class = "org.apache.kafka.connect.transforms.HeaderFrom",
  on = { "key", "value" },
  doc = "Moves or copies fields in the key/value of a record into that record's headers. Corresponding elements of "
    .. "<code>fields</code> and <code>headers</code> together identify a field and the header it should be moved or "
    .. "copied to.",
  config = {
    { "fields", type = "list", required = true, importance = "high", check = not_empty,
      doc = "Field names in the record whose values are to be copied or moved to headers." },
    { "headers", type = "list", required = true, importance = "high", check = not_empty,
      doc = "Header names, in the same order as the field names listed in the fields configuration property." },
    { "operation", required = true, importance = "high", one_of = { "move", "copy" },
      doc = "Either <code>move</code> if the fields are to be moved to the headers (removed from the key/value), or "
        .. "<code>copy</code> if the fields are to be copied to the headers (retained in the key/value)." },
    rows.replace_null_with_default,
  },

  configure = function(self, config)
    self.fields, self.headers, self.move = config.fields, config.headers, config.operation == "move"
    for _, name in ipairs { "fields", "headers" } do
      if #config[name] == 0 then cells.config_error(name, "[]", "Empty list") end
    end
    if #self.fields ~= #self.headers then
      cells.config_error "'fields' config must have the same number of elements as 'headers' config."
    end
    self.purpose = "header " .. config.operation
    self.defaults = config["replace.null.with.default"]
    self.old, self.new, self.null = cells.cell(), cells.cell(), cells.cell()
    self.plans = plan_for(self)
    self.names = cells.names(self.fields)
    local numbers = {} -- a field that is named twice has one
    for i, f in ipairs(self.fields) do numbers[i] = cells.find_name(self.names, f, #f) end
    self.number, self.at = cells.indices(numbers), cells.indices(numbers)
  end,

  apply_cells = function(self, r, slot)
    local schema = cells.schema(r, slot)
    if schema == nil then return schemaless(self, r, slot) end
    with_schema(self, r, slot, schema)
  end,

  examples = {
    { config = { fields = "id", headers = "order-id", operation = "move" },
      input = { topic = "t", value = { id = 7, name = "bob" } },
      output = { topic = "t", value = { name = "bob" }, headers = { { "order-id", 7 } } } },
  },
}
