--- luaconnect lint: what can be seen wrong with a plugin without running it.
local paths = require "connect.cli.paths"

-- Names a plugin's sandbox has.
local GLOBALS = { "assert", "error", "getmetatable", "next", "pairs", "pcall", "rawequal", "rawget", "rawset",
  "select", "setmetatable", "tonumber", "tostring", "type", "unpack", "xpcall", "_VERSION", "_G", "string", "table",
  "math", "bit", "coroutine", "os", "io", "ipairs", "collectgarbage", "print", "loadstring", "load", "require" }
local known = {}
for _, name in ipairs(GLOBALS) do known[name] = true end

-- Globals that a file reads or writes, from LuaJIT's own listing of its bytecode: { line, name, verb }.
local function globals_of(path)
  local out = {}
  local chunk = loadfile(path)
  local bc_there, bc = pcall(require, "jit.bc")
  local util_there, util = pcall(require, "jit.util")
  if not chunk or not bc_there or not util_there then return out end
  local function walk(f)
    for pc = 1, util.funcinfo(f).bytecodes - 1 do
      local op, name = bc.line(f, pc):match '(G[GS]ET)%s.-;%s*"(.-)"'
      if op and (op == "GSET" or not known[name]) then
        out[#out + 1] = { line = util.funcinfo(f, pc).currentline, name = name, set = op == "GSET" }
      end
    end
    for k = -1, -65536, -1 do -- functions within
      local constant = util.funck(f, k)
      if constant == nil then break end
      if type(constant) == "proto" then walk(constant) end
    end
  end
  walk(chunk)
  table.sort(out, function(a, b) return a.line < b.line end)
  return out
end

local function read(path)
  local f = io.open(path, "rb")
  local text = f and f:read "*a" or ""
  if f then f:close() end
  return text
end

-- The line a text first stands in, for messages.
local function line_of(text, what)
  local at = text:find(what, 1, true)
  if not at then return 1 end
  return select(2, text:sub(1, at):gsub("\n", "")) + 1
end

local function check_decl(say, decl, text, testing)
  local at = function(what) return line_of(text, what) end
  local here = at(('"%s"'):format(decl.name))
  if not decl.doc or decl.doc == "" then say(here, decl.name .. " has no doc") end
  if decl.kind == "source" and not decl.task.poll then say(here, ("the task of %s has no poll"):format(decl.name)) end
  if decl.kind == "sink" and not (decl.task.put or decl.task.put_batch) then
    say(here, ("the task of %s has no put"):format(decl.name))
  end
  local examples = decl.examples or {}
  local computed = text:find "config%s*%[%s*[^\"'%s%]]" ~= nil
  if (decl.kind == "transform" or decl.kind == "predicate") and #examples == 0 then
    say(here, decl.name .. " has no examples")
  end
  for _, row in ipairs(decl.config or {}) do
    local key, line = row[1], at(('"%s"'):format(row[1]))
    if not row.doc or row.doc == "" then say(line, ("config %s of %s has no doc"):format(key, decl.name)) end
    if row.default ~= nil and row.default ~= require("connect").null then
      local only = setmetatable({ config = { row }, validate = false }, { __index = decl })
      local _, problems = testing.validate(only, {})
      for _, p in ipairs(problems) do say(line, "the default: " .. p.message) end
    end
    -- a key no function reads is a mistake in its name, or left over
    -- (one that comes from another file, or is read by a name that is put together, is not seen here)
    local name = key:gsub("%p", "%%%0")
    local uses, rows = select(2, text:gsub(name, "")), select(2, text:gsub('{%s*"' .. name .. '"', ""))
    if rows > 0 and uses == rows and not computed then
      say(line, ("config %s of %s is never used"):format(key, decl.name))
    end
  end
end

return function(args)
  local found, wrong = paths.arguments("lint", args, "name a plugin or a folder")
  if not found then return wrong end
  local testing, tool, count = require "connect.testing", require "connect.tool", 0
  for _, file in ipairs(found.plugins) do
    local function say(line, text)
      count = count + 1
      io.stdout:write(("%s:%d: %s\n"):format(file, line, text))
    end
    local folder = file:match "^(.*)/init%.lua$"
    local text = read(file)
    local files = { file }
    if folder then -- its modules, too
      local p = io.popen(("find %s -name '*.lua' -not -path '*/spec/*' | sort"):format(paths.quote(folder)))
      for f in p:lines() do
        if f ~= file then
          files[#files + 1] = f
          text = text .. "\n" .. read(f)
        end
      end
      p:close()
    end
    local ok, list = false, tool.check(file)
    if not list then ok, list = tool.call(true, testing.load_list, file, tool.standard(file)) end
    if not ok then
      local message = tostring(list)
      local path, line, rest = message:match "^(.-%.lua):(%d+): (.*)$"
      if not path and message:sub(1, #file + 2) == file .. ": " then message = message:sub(#file + 3) end
      -- a declaration that is returned in one breath (a tail call) leaves no line of its own
      local own = path and (path == file or (folder and path:sub(1, #folder) == folder))
      count = count + 1
      io.stdout:write(own and ("%s:%s: %s\n"):format(path, line, rest) or ("%s:1: %s\n"):format(file, rest or message))
    else
      for _, decl in ipairs(list) do check_decl(say, decl, text, testing) end
      local results = tool.examples { file }[1]
      if results.error then say(1, results.error) end
      for _, r in ipairs(results) do
        if r.message then
          say(line_of(text, "examples"), ("example %d of %s: %s"):format(r.number, r.class, r.message))
        end
      end
    end
    for _, f in ipairs(files) do
      for _, g in ipairs(globals_of(f)) do
        count = count + 1
        io.stdout:write(("%s:%d: global '%s' %s\n"):format(f, g.line, g.name,
          g.set and "is assigned: write local" or "is not there for a plugin"))
      end
    end
    if os.execute "command -v luacheck > /dev/null 2>&1" == 0 then
      local quoted = {}
      for i, f in ipairs(files) do quoted[i] = paths.quote(f) end
      local p = io.popen("luacheck --std luajit --codes --formatter plain --ignore 212 --ignore 113 --ignore 111 "
        .. "--max-line-length 120 " .. table.concat(quoted, " ") .. " 2>&1")
      for line in p:lines() do
        if line:find "%S" then
          count = count + 1
          io.stdout:write(line, "\n")
        end
      end
      p:close()
    end
  end
  if count == 0 then io.stdout:write(("%d plugin files, nothing to say\n"):format(#found.plugins)) end
  return count == 0 and 0 or 1
end
