-- ExtractField$Key, ExtractField$Value: one field, or with field.syntax.version=V2 one at a dotted path, takes the
-- place of the whole.
local connect = require "connect"
local cells = require "connect.cells"
local rows = require "connect.rows"

local PURPOSE, NESTED = "field extraction", "nested field access"

local M = {}

local function incomplete(path, at)
  cells.config_error(("Incomplete backtick pair in path: [%s], consider adding a backslash before backtick at position "
    .. "%d to escape it"):format(path, at))
end

-- KIP-821: steps are divided by dots; a step in backticks may hold dots, and a backslash before a backtick that a
-- dot follows there keeps it.
local function steps_of(path)
  local steps, i = {}, 1
  if path == "" then return steps end
  if not path:find("[.`]") then return { path } end
  while true do
    if path:sub(i, i) == "`" then
      local text, j = {}, i + 1
      while true do
        local close = path:find("`", j, true)
        if not close then incomplete(path, i - 1) end
        local ends = close == #path or path:sub(close + 1, close + 1) == "."
        local escaped = path:sub(close - 1, close - 1) == "\\" and close - 1 >= j
        if ends and not escaped then
          text[#text + 1] = path:sub(j, close - 1)
          steps[#steps + 1] = table.concat(text)
          if close == #path then return steps end
          i = close + 2
          break
        end
        text[#text + 1] = ends and path:sub(j, close - 2) .. "`" or path:sub(j, close)
        j = close + 1
      end
    else
      local dot = path:find(".", i, true)
      steps[#steps + 1] = path:sub(i, (dot or #path + 1) - 1)
      if not dot then return steps end
      i = dot + 1
    end
    if i > #path then
      steps[#steps + 1] = ""
      return steps
    end
  end
end

local function unknown(self) cells.fail("java.lang.IllegalArgumentException", "Unknown field: " .. self.field) end

function M:configure(config)
  self.field, self.defaults = config.field, config["replace.null.with.default"]
  self.nested = config["field.syntax.version"]:upper() == "V2"
  self.steps = self.nested and steps_of(self.field) or { self.field }
  self.many = #self.steps
  self.out = cells.cell()
  -- the index of each step's field in its struct, and the last one's schema
  self.plans = cells.plans(function(schema)
    local index = {}
    for i, name in ipairs(self.steps) do
      if schema.type ~= cells.STRUCT then cells.data_error "Cannot look up fields on non-struct type" end
      local at = cells.field(schema, name)
      if at < 0 then unknown(self) end
      index[i] = at
      schema = schema.fields[at].schema
    end
    return { schema = cells.hold(schema), index = index }
  end)
end

local function from_struct(self, r, slot, schema)
  local v = r[slot]
  if v.type ~= cells.NULL then cells.require_struct(v, PURPOSE) end
  local plan = self.plans:get(schema)
  local index = plan.index
  for i = 1, self.many do
    if v.type == cells.NULL then break end
    v = cells.read(v, index[i], self.defaults)
  end
  cells.copy(self.out, v)
  cells.set(r, slot, self.out, plan.schema)
end

local function from_map(self, r, slot)
  local v = r[slot]
  if v.type ~= cells.NULL then cells.require_map(v, PURPOSE) end
  for i = 1, self.many do
    if v.type == cells.NULL then break end
    if i > 1 then cells.require_map(v, NESTED) end
    v = cells.get(v, self.steps[i]) or self.null
  end
  cells.copy(self.out, v)
  cells.set(r, slot, self.out, nil)
end

function M:apply_cells(r, slot)
  if self.many == 0 then cells.fail("java.lang.IllegalArgumentException", "fromIndex(0) > toIndex(-1)") end
  if not self.null then self.null = cells.cell() end
  local schema = cells.schema(r, slot)
  if schema == nil then from_map(self, r, slot) else from_struct(self, r, slot, schema) end
end

return connect.transform {
  name = "ExtractField", class = "org.apache.kafka.connect.transforms.ExtractField", on = { "key", "value" },
  doc = "Extract the specified field from a Struct when schema present, or a Map in the case of schemaless data. Any "
    .. "null values are passed through unmodified.",
  configure = M.configure, apply_cells = M.apply_cells,
  config = {
    { "field", type = "string", required = true, importance = "medium", doc = "Field name to extract." },
    rows.replace_null_with_default,
    { "field.syntax.version", type = "string", default = "V1", one_of = { "V1", "V2" }, any_case = true,
      importance = "high",
      doc = "Defines the version of the syntax to access fields. If set to <code>V1</code>, then the field paths are "
        .. "limited to access the elements at the root level of the struct or map. If set to <code>V2</code>, the "
        .. "syntax will support accessing nested elements. To access nested elements, dotted notation is used. If "
        .. "dots are already included in the field name, then backtick pairs can be used to wrap field names "
        .. "containing dots. E.g. to access the subfield <code>baz</code> from a field named \"foo.bar\" in a "
        .. "struct/map the following format can be used to access its elements: \"<code>foo.bar</code>.baz\"." },
  },
  examples = { { config = { field = "id" }, input = { value = { id = 7, name = "bob" } }, output = { value = 7 } } },
}
