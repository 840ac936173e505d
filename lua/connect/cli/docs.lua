--- luaconnect docs: the page of a plugin, as Markdown.
local paths = require "connect.cli.paths"

local function cell(text) return (tostring(text):gsub("|", "\\|"):gsub("%s*\n%s*", " "):gsub("<p/?>", " ")) end

local function show(v)
  local connect = require "connect"
  if v == connect.drop then return "(filtered out)" end
  if type(v) == "table" and getmetatable(v) == nil then -- a record: schemas are no JSON
    local record = {}
    for k, x in pairs(v) do if k ~= "value_schema" and k ~= "key_schema" then record[k] = x end end
    v = record
  end
  return require("connect.json").encode(v) or connect.tostring(v)
end

local function page(decl)
  local connect = require "connect"
  local class = decl.class or decl.name
  local out = { "# " .. decl.name, "" }
  local function add(...) out[#out + 1] = table.concat { ... } end
  add(("A %s"):format(decl.kind), decl.version and (", version " .. decl.version) or "", ".")
  add ""
  if decl.on then
    local names = {}
    for i, v in ipairs(decl.on) do names[i] = ("`%s$%s`"):format(class, v == "key" and "Key" or "Value") end
    add("Classes: ", table.concat(names, ", "))
  else
    add("Class: `", class, "`")
  end
  if decl.doc then
    add ""
    add((decl.doc:gsub("<p/?>", "\n\n")))
  end
  add ""
  add "## Configuration"
  add ""
  if #(decl.config or {}) == 0 then
    add "None."
  else
    add "| key | type | default | importance | |"
    add "|---|---|---|---|---|"
  end
  for _, row in ipairs(decl.config or {}) do
    local default = row.required and "(required)" or "null"
    if row.default ~= nil and row.default ~= connect.null then
      default = type(row.default) == "table" and table.concat(row.default, ",") or connect.tostring(row.default)
      default = default == "" and '""' or "`" .. default .. "`"
    end
    local more = {}
    if row.one_of then
      local list = {}
      for i, v in ipairs(row.one_of) do list[i] = connect.tostring(v) end
      more[#more + 1] = "One of " .. table.concat(list, ", ") .. "."
    end
    if row.range then
      local min, max = row.range.min or row.range[1], row.range.max or row.range[2]
      more[#more + 1] = max and ("From %s to %s."):format(min, max) or ("At least %s."):format(min)
    end
    add("| `", row[1], "` | ", row.type or "string", " | ", cell(default), " | ", row.importance or "medium", " | ",
      cell(table.concat({ row.doc or "", unpack(more) }, " ")), " |")
  end
  local examples = {}
  for _, e in ipairs(decl.examples or {}) do
    if type(e) == "table" and type(e.config or {}) == "table" then examples[#examples + 1] = e end -- lint says so
  end
  if #examples > 0 then
    add ""
    add "## Examples"
    for _, e in ipairs(examples) do
      add ""
      for k, v in pairs(e.config or {}) do add("    ", k, " = ", connect.tostring(v)) end
      local input = type(e.input) == "table" and e.input or {}
      for _, side in ipairs { { "in  ", input }, { "out ", e.output } } do
        add("    ", side[1], show(side[2]))
      end
    end
  end
  return table.concat(out, "\n") .. "\n"
end

local function standard_files(home)
  local out = {}
  for _, folder in ipairs { "lua/transforms", "lua/predicates", "connectors" } do
    local dir = home .. "/" .. folder
    for _, name in ipairs(paths.names(dir)) do
      local file = dir .. "/" .. name
      if paths.is_file(file .. "/init.lua") then file = file .. "/init.lua" end
      if file:find "%.lua$" then out[#out + 1] = file end
    end
  end
  return out
end

return function(args)
  local what = args[1]
  local testing, tool = require "connect.testing", require "connect.tool"
  if not what or args[2] then
    io.stderr:write "luaconnect docs: name one plugin: a file, a folder, or a standard one\n"
    return 2
  end
  if what:find "/" or what:find "%.lua$" or paths.is_dir(what) then
    local found, err = paths.expand(what)
    if not found then
      io.stderr:write("luaconnect docs: ", err, "\n")
      return 2
    end
    for i, file in ipairs(found.plugins) do
      local why = tool.check(file)
      if why then
        io.stderr:write(why, "\n")
        return 2
      end
      local ok, list = tool.call(true, testing.load_list, file, tool.standard(file))
      if not ok then
        io.stderr:write(file, ": ", tostring(list), "\n")
        return 2
      end
      for k, decl in ipairs(list) do io.stdout:write((i > 1 or k > 1) and "\n" or "", page(decl)) end
    end
    return 0
  end
  local want = what:gsub("%$Key$", ""):gsub("%$Value$", "")
  for _, file in ipairs(standard_files(args.home)) do
    for _, decl in ipairs(testing.load_list(file, true)) do
      local class = decl.class or decl.name
      if want == decl.name or want == class or want == class:match "[^.]*$" then
        io.stdout:write(page(decl))
        return 0
      end
    end
  end
  io.stderr:write(("luaconnect docs: no plugin '%s'; luaconnect plugins lists them\n"):format(what))
  return 2
end
