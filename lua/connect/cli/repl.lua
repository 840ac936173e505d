--- luaconnect repl: Lua line by line with a plugin loaded, run by connect.testing: no worker, no Kafka.
local paths = require "connect.cli.paths"
local tool = require "connect.tool"

local HELP = [[
Lua: an expression is printed, a statement is run. There are connect, testing, plugin (the declaration), config,
and _ (the last result). A line that is not complete goes on in the next.

  :config [key=value]   show or set the configuration; key= removes one
  :start, :stop         the task of a source or sink
  :poll, :commit        of a source: the next records; they are in Kafka
  :put VALUE, ...       to a sink: values or testing.record{...} (Lua, or one JSON document)
  :pre_commit           of a sink: what may be committed
  :apply VALUE          a transform, predicate or converter
  :log                  what it logged since the last :log
  :use NAME             another declaration of the file
  :test                 the examples
  :reload               the plugin's file again
  :help, :quit
]]

local S = { config = {} } -- the session

local function say(...)
  io.stdout:write(...)
  io.stdout:write "\n"
end

-- showing ----------------------------------------------------------------------------------------
local function is_name(k) return type(k) == "string" and k:find "^[%a_][%w_]*$" end

-- A value as one would write it in Lua.
local function show(v, depth, seen)
  local connect = require "connect"
  local values = require "connect.values"
  depth, seen = depth or 0, seen or {}
  if v == nil then return "nil" end
  if v == connect.null then return "null" end
  if v == connect.drop then return "connect.drop" end
  local t = type(v)
  if t == "string" then return (("%q"):format(v):gsub("\\\n", "\\n")) end
  if t ~= "table" then return t == "cdata" and connect.tostring(v) or tostring(v) end
  local mt = getmetatable(v)
  if mt and mt.__tostring and mt ~= values.Map and mt ~= values.Array then return tostring(v) end
  if seen[v] or depth > 8 then return "{...}" end
  seen[v] = true
  local out = {}
  if mt == values.Map then
    for k, x in v:pairs() do
      out[#out + 1] = (is_name(k) and k or "[" .. show(k, depth + 1, seen) .. "]") .. " = " .. show(x, depth + 1, seen)
    end
  else
    for i = 1, #v do out[i] = show(v[i], depth + 1, seen) end
    local keys = {}
    for k in pairs(v) do
      if not (type(k) == "number" and k >= 1 and k <= #v and k % 1 == 0) then keys[#keys + 1] = k end
    end
    table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
    for _, k in ipairs(keys) do
      local name = is_name(k) and k or "[" .. show(k, depth + 1, seen) .. "]"
      out[#out + 1] = name .. " = " .. show(v[k], depth + 1, seen)
    end
  end
  seen[v] = nil
  return "{" .. table.concat(out, ", ") .. "}"
end

-- the plugin --------------------------------------------------------------------------------------
local function forget()
  local h = S.harness
  S.harness, S.object = nil, nil
  if h then h:stop() end
end

local function use(decl)
  forget()
  S.decl = decl
  S.env.plugin = decl
end

local function load_plugin()
  local testing = require "connect.testing"
  local list = testing.load_list(S.file, tool.standard(S.file))
  S.list = list
  local chosen = list[1]
  for _, d in ipairs(list) do if S.decl and d.name == S.decl.name then chosen = d end end
  use(chosen)
end

local function names()
  local out = {}
  for i, d in ipairs(S.list) do out[i] = ("%s %s"):format(d.kind, d.name) end
  return table.concat(out, ", ")
end

local function harness()
  if not S.harness or S.harness.stopped then error("it is not started: :start", 0) end
  return S.harness
end

local function need(...)
  for _, kind in ipairs { ... } do if S.decl.kind == kind then return end end
  error(("this is for a %s; %s is a %s"):format(table.concat({ ... }, " or "), S.decl.name, S.decl.kind), 0)
end

-- Values of a command's rest: Lua expressions, or one JSON document.
local function arguments(text)
  if not text:find "%S" then error("a value is missing", 0) end
  local chunk, err = loadstring("return " .. text, "=argument")
  if not chunk then
    local value = require("connect.json").decode(text)
    if value == nil then error(err, 0) end
    return { value, n = 1 }
  end
  local function pack(...) return { n = select("#", ...), ... } end
  return pack(setfenv(chunk, S.env)())
end

local function one(text)
  local list = arguments(text)
  if list.n ~= 1 then error(("one value is wanted, not %d"):format(list.n), 0) end
  return list[1]
end

local function print_record(r)
  local out = {}
  for _, k in ipairs { "topic", "partition", "key", "value", "headers", "timestamp", "source_partition",
    "source_offset" } do
    if r[k] ~= nil and not (k == "headers" and #r[k] == 0) then out[#out + 1] = k .. " = " .. show(r[k]) end
  end
  say("{", table.concat(out, ", "), "}")
end

local RECORD = { topic = 1, partition = 1, timestamp = 1, key = 1, value = 1, key_schema = 1, value_schema = 1,
  headers = 1 }

-- A table with nothing but a record's fields, key or value among them, is one.
local function as_record(v)
  local plain = type(v) == "table" and getmetatable(v) == nil and (v.value ~= nil or v.key ~= nil)
  if plain then for k in pairs(v) do plain = plain and RECORD[k] ~= nil end end
  return plain and v or { value = v }
end

local function apply(text)
  local testing = require "connect.testing"
  local decl, v = S.decl, one(text)
  if decl.kind == "transform" then
    local f = S.object or testing.transform(decl, S.config)
    S.object = f
    if decl.apply_value and decl.on then return f(v) end
    local r = f(as_record(v))
    if type(r) == "table" and r ~= require("connect").drop then return print_record(r) end
    return r
  elseif decl.kind == "predicate" then
    S.object = S.object or testing.predicate(decl, S.config)
    return S.object(as_record(v))
  end
  S.object = S.object or testing.converter(decl, S.config)
  if type(v) == "string" then -- bytes
    local _, value = S.object.to_connect("test", v)
    return value
  end
  return S.object.from_connect("test", nil, v)
end

-- commands ----------------------------------------------------------------------------------------
local commands = {}

function commands.help() io.stdout:write(HELP) end

function commands.config(rest)
  local testing = require "connect.testing"
  if rest ~= "" then
    local k, v = rest:match "^%s*([^=]-)%s*=%s*(.-)%s*$"
    if not k or k == "" then error(":config key=value", 0) end
    S.config[k] = v ~= "" and v or nil
    S.object = nil -- made anew with it
    if S.harness then say "(:start takes it over)" end
    return
  end
  local parsed, problems = testing.validate(S.decl, S.config)
  local keys = {}
  for k in pairs(parsed) do keys[#keys + 1] = k end
  table.sort(keys)
  for _, k in ipairs(keys) do say("  ", k, " = ", show(parsed[k])) end
  for _, p in ipairs(problems) do say("  wrong: ", p.message) end
end

function commands.start()
  local testing = require "connect.testing"
  need("source", "sink")
  local offsets = S.harness and S.harness.offsets -- of one start to the next
  forget()
  local h
  if S.decl.kind == "source" then
    h = testing.source(S.decl, S.config)
    h.offsets = offsets or h.offsets
    h:start()
  else
    h = testing.sink(S.decl, S.config)
    h:assign("test", 0)
  end
  S.harness = h
  say "started"
end

function commands.stop()
  need("source", "sink")
  local h = harness()
  if S.decl.kind == "sink" then h:close() else h:stop() end
  say "stopped"
end

function commands.poll()
  need "source"
  local records = harness():poll()
  if records == nil or (type(records) == "table" and #records == 0) then return say "nothing now" end
  if type(records) ~= "table" then return show(records) end
  for _, r in ipairs(records) do print_record(r) end
end

function commands.commit()
  need "source"
  harness():commit()
  for _, offset in pairs(S.harness.offsets) do say("committed ", show(offset)) end
end

function commands.put(rest)
  need "sink"
  local list = arguments(rest)
  for i = 1, list.n do if list[i] == nil then list[i] = require("connect").null end end
  local failed = harness():put(list)
  for _, f in ipairs(failed or {}) do say(("record %s failed: %s"):format(tostring(f.index), tostring(f.error))) end
  if not failed or #failed == 0 then say(("put %d"):format(list.n)) end
end

function commands.pre_commit()
  need "sink"
  say(show(harness():pre_commit()))
end

function commands.apply(rest)
  need("transform", "predicate", "converter")
  local function shown(n, ...)
    if n > 0 then say(show((...))) end
    local schema = select(2, ...)
    if schema ~= nil then say("schema ", tostring(schema)) end
  end
  local function count(...) return shown(select("#", ...), ...) end
  count(apply(rest))
end

function commands.log()
  need("source", "sink")
  local log = S.harness and S.harness.log or {}
  for _, line in ipairs(log) do say(line) end
  if S.harness then S.harness.log = {} end
end

function commands.use(rest)
  local want = rest:match "^%s*(.-)%s*$"
  for _, d in ipairs(S.list) do if d.name == want then return use(d) end end
  error(("there is no %s here, only %s"):format(want, names()), 0)
end

function commands.test()
  local results = tool.examples { S.file }[1]
  local failed = 0
  if results.error then error(results.error, 0) end
  for _, r in ipairs(results) do
    if r.message then
      failed = failed + 1
      say(("not ok: example %d of %s: %s"):format(r.number, r.class, r.message))
    end
  end
  say(("%d examples passed, %d failed"):format(#results - failed, failed))
  if failed > 0 then S.failed = true end
end

function commands.reload()
  local why = tool.check(S.file)
  if why then error(why, 0) end
  load_plugin()
  say("loaded ", names())
end

function commands.quit() S.over = true end

-- lines -------------------------------------------------------------------------------------------
-- A traceback without this program's own frames; none at all if no other is left.
local function trim(err)
  local text, trace = err:match "^(.-)\nstack traceback:\n(.*)$"
  if not text then return err end
  local kept, there = {}, false
  for frame in trace:gmatch "[^\n]+" do
    if not (frame:find("connect/cli/repl.lua", 1, true) or frame:find "%[C%]: in function 'p?call'" or
      frame:find "^%s*%[C%]: at 0x" or frame:find "^%s*%[builtin" or frame:find("connect/testing.lua", 1, true)) then
      kept[#kept + 1] = frame
      there = there or not frame:find "^%s*%[C%]"
    end
  end
  return there and text .. "\nstack traceback:\n" .. table.concat(kept, "\n") or text
end

local function fail(err)
  S.failed = true
  io.stdout:flush()
  local ok, text = pcall(tostring, err)
  io.stderr:write("error: ", ok and trim(text) or "an error that cannot be shown", "\n")
end

local function print_all(...)
  local n, out = select("#", ...), {}
  for i = 1, n do out[i] = show((select(i, ...))) end
  if n > 0 then say(table.concat(out, "  ")) end
end

-- Of a line. What is shown may run the user's code (__tostring), so that can be ended, too.
local function results(ok, ...)
  if not ok then return fail((...)) end
  if select("#", ...) > 0 then S.env._ = (...) end
  local fine, err = tool.call(false, print_all, ...)
  if not fine then fail(err) end
end

local function compile(text)
  local chunk, err = loadstring("return " .. text, "=line")
  if not chunk then chunk, err = loadstring(text, "=line") end
  return chunk, err
end

local function next_line(prompt)
  return tool.line(S.terminal and prompt or "")
end

local function loop()
  local pending
  while not S.over do
    local line, why = next_line(pending and ">> " or "> ")
    if line == nil then
      if why then
        io.stderr:write("luaconnect repl: ", why, "\n")
        S.failed = true
        return
      end
      if pending then fail(select(2, compile(pending))) end
      if S.terminal then say "" end
      return
    elseif line == false then -- Ctrl-C at the prompt
      pending = nil
      say ""
    elseif not pending and line:find "^%s*:" then
      local name, rest = line:match "^%s*:%s*(%S*)%s*(.*)$"
      if commands[name] then
        local ok, err = tool.call(false, commands[name], rest)
        if not ok then fail(err) end
      else
        fail((":%s is no command; :help lists them"):format(name))
      end
    elseif pending or line:find "%S" then
      local text = pending and pending .. "\n" .. line or line:gsub("^=", "")
      local chunk, err = compile(text)
      if chunk then
        pending = nil
        results(tool.call(false, setfenv(chunk, S.env)))
      elseif err:find "'?<eof>'?$" then
        pending = text
      else
        pending = nil
        fail(err)
      end
    end
  end
end

return function(args)
  local what
  local i = 1
  while i <= #args do
    if args[i] == "-c" then
      local k, v = args[i + 1]:match "^([^=]+)=(.*)$"
      if not k then
        io.stderr:write(("luaconnect repl: -c '%s' is not key=value\n"):format(args[i + 1]))
        return 2
      end
      S.config[k] = v
      i = i + 2
    elseif what then
      io.stderr:write "luaconnect repl: name one plugin; luaconnect repl --help tells more\n"
      return 2
    else
      what = args[i]
      i = i + 1
    end
  end
  if not what then
    io.stderr:write "luaconnect repl: name a plugin; luaconnect repl --help tells more\n"
    return 2
  end
  local found, err = paths.expand(what)
  if found and #found.plugins ~= 1 then
    err = ("%s: %s plugins in it, name one"):format(what, #found.plugins == 0 and "no" or "several")
  end
  if err then
    io.stderr:write("luaconnect repl: ", err, "\n")
    return 2
  end
  S.file = found.plugins[1]
  S.terminal = tool.is_terminal()
  S.env = setmetatable({ config = S.config, connect = require "connect", testing = require "connect.testing",
    json = require "connect.json", print = function(...)
      local out = {}
      for k = 1, select("#", ...) do out[k] = tostring((select(k, ...))) end
      say(table.concat(out, "\t"))
    end }, { __index = _G })
  local ok, why = false, tool.check(S.file)
  if not why then ok, why = tool.call(true, load_plugin) end
  if not ok then
    io.stderr:write("luaconnect repl: ", tostring(why), "\n")
    return 2
  end
  tool.watch()
  if S.terminal then say(("%s. :help lists the commands, Ctrl-D ends."):format(names())) end
  loop()
  tool.call(false, forget)
  return S.failed and not S.terminal and 1 or 0
end
