-- connect/sandbox.lua: what a plugin's code sees. A state may hold several sandboxes, one for each plugin. Private.
local host = require "connect.host"
local values = require "connect.values"
local errors = require "connect.errors"
local connect = require "connect"

local _M = {}

-- Modules a plugin may require; all but connect itself are loaded when first used: they bring the FFI along,
-- which a connector's state or the scan can do without.
local function lazy(name)
  return setmetatable({}, {
    __index = function(t, k)
      setmetatable(t, nil)
      for key, v in pairs(require(name)) do t[key] = v end
      return t[k]
    end,
  })
end

local PUBLIC = { ["connect"] = connect }
for _, name in ipairs { "connect.json", "connect.schema", "connect.lines" } do PUBLIC[name] = lazy(name) end
-- what only the transforms and predicates that ship with the program may have: cells and java bring C pointers
local STANDARD = { ["connect.cells"] = lazy "connect.cells", ["connect.java"] = lazy "connect.java",
  ["connect.rows"] = lazy "connect.rows" }

local function copy_of(t, except)
  local out = {}
  for k, v in pairs(t) do
    if not (except and except[k]) then out[k] = v end
  end
  return out
end

local real_ipairs = ipairs

local real_getmetatable = getmetatable

-- The strings' metatable is also ours.
local function getmetatable_of(v)
  if type(v) == "string" then return "locked" end
  return real_getmetatable(v)
end

-- What the tests in a plugin's code look for (core/script/checked.h).
local hidden = {}
if host.guard then hidden["\255t"], hidden["\255u"] = host.guard() end

--- The global table of a plugin whose modules are ROOT.x below `folder` (nil: a single file). `standard`: it ships
-- with the program.
function _M.open(root, folder, standard)
  local env = {}
  for _, name in real_ipairs { "assert", "error", "getmetatable", "next", "pairs", "pcall", "rawequal", "rawget",
    "rawset", "select", "setmetatable", "tonumber", "tostring", "type", "unpack", "xpcall", "_VERSION" } do
    env[name] = _G[name]
  end
  env.getmetatable = getmetatable_of
  env._G = env
  env.string, env.table, env.math, env.bit = copy_of(string), copy_of(table), copy_of(math), copy_of(bit)
  env.coroutine = copy_of(coroutine)
  env.os = { clock = os.clock, date = os.date, difftime = os.difftime, getenv = os.getenv, remove = os.remove,
    rename = os.rename, time = os.time, tmpname = os.tmpname }
  env.io = { lines = io.lines, open = io.open, read = io.read, stderr = io.stderr, stdin = io.stdin, stdout = io.stdout,
    tmpfile = io.tmpfile, type = io.type, write = io.write }

  --- Lists, and batches of records too.
  function env.ipairs(t)
    if type(t) == "cdata" then return t:each() end
    return real_ipairs(t)
  end

  function env.collectgarbage(what, n)
    if what == "count" or what == "step" or what == "collect" or what == nil then return collectgarbage(what, n) end
    error("collectgarbage: only count, step and collect", 2)
  end

  --- print goes to the log.
  function env.print(...)
    local out = {}
    for i = 1, select("#", ...) do out[i] = values.tostring((select(i, ...))) end
    host.log("info", table.concat(out, "\t"))
  end

  --- Text only: bytecode could do anything.
  function env.loadstring(text, name)
    if type(text) ~= "string" then error("loadstring: a string expected, got " .. type(text), 2) end
    if text:byte() == 27 then return nil, "bytecode is not loaded" end
    local f, err = host.compile(text, name)
    if f then setfenv(f, env) end
    return f, err
  end

  function env.load(source, name)
    if type(source) == "function" then
      local parts = {}
      for part in source do
        if part == "" then break end
        parts[#parts + 1] = part
      end
      source = table.concat(parts)
    end
    return env.loadstring(source, name)
  end

  local loaded = {}
  local LOADING = {}

  local function module_path(name)
    local first, rest = name:match "^([^.]+)%.?(.*)$"
    if first ~= root then
      error(("module '%s' not found: a plugin has connect, connect.json, connect.schema, connect.lines and its own "
        .. "modules (%s.NAME)"):format(name, root), 3)
    end
    if not folder then error(("module '%s' not found: %s is a single file, not a folder"):format(name, root), 3) end
    if name:find "[/\\]" or name:find "%.%." then error(("module '%s': not a module's name"):format(name), 3) end
    local base = folder .. "/" .. rest:gsub("%.", "/")
    for _, path in real_ipairs { base .. ".lua", base .. "/init.lua" } do
      if host.exists(path) then return path end
    end
    error(("module '%s' not found: no file %s.lua"):format(name, base), 3)
  end

  --- require of the plugin: connect and its public parts, and ROOT.x from its own folder.
  function env.require(name)
    if type(name) ~= "string" then error("require: a string expected, got " .. type(name), 2) end
    if PUBLIC[name] then return PUBLIC[name] end
    if standard and STANDARD[name] then return STANDARD[name] end
    local m = loaded[name]
    if m == LOADING then error(("module '%s' requires itself"):format(name), 2) end
    if m ~= nil then return m end
    local chunk = setfenv(host.load(module_path(name), not standard), env)
    loaded[name] = LOADING
    local ok, result = xpcall(function() return chunk(name) end, function(e)
      if errors.is(e) then return e end
      return tostring(e)
    end)
    if not ok then
      loaded[name] = nil
      error(result, 0)
    end
    if result == nil then result = true end
    loaded[name] = result
    return result
  end

  -- A name that is assigned without `local` is a mistake far more often than meant.
  setmetatable(env, {
    __index = hidden,
    __newindex = function(_, k)
      error(("global '%s' assigned: write `local %s` (a plugin has no globals of its own)"):format(tostring(k),
        tostring(k)), 2)
    end,
    __metatable = "locked",
  })

  return env
end

return _M
