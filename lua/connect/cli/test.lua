--- luaconnect test: the examples of declarations, then the specs beside them under busted.
local paths = require "connect.cli.paths"

-- busted ends with os.exit: its status is caught, so that it counts together with the examples'.
local function run_specs(files)
  local ok, runner = pcall(require, "busted.runner")
  if not ok then
    io.stderr:write("luaconnect test: the specs need busted, which is not installed: apt-get install lua-busted, ",
      "or luarocks --lua-version 5.1 install busted\n")
    return 2
  end
  local exit, status = os.exit, 0
  local ended = {}
  arg = { [0] = "luaconnect test", [-1] = "luajit" } -- luacheck: ignore
  for i, f in ipairs(files) do arg[i] = f end -- luacheck: ignore
  os.exit = function(code) -- luacheck: ignore
    if code == nil or code == true then code = 0 elseif code == false then code = 1 end
    status = code
    error(ended, 0)
  end
  io.stdout:flush()
  local fine, err = pcall(runner, { standalone = false })
  os.exit = exit -- luacheck: ignore
  if not fine and err ~= ended and not tostring(err):find(tostring(ended), 1, true) then error(err, 0) end
  return status == 0 and 0 or 1
end

return function(args)
  local found, wrong = paths.arguments("test", args,
    "name a plugin, a folder or a spec; luaconnect test --help tells more")
  if not found then return wrong end
  local status, passed, failed = 0, 0, 0
  for i, results in ipairs(require("connect.tool").examples(found.plugins)) do
    local file = found.plugins[i]
    if results.error then
      io.stderr:write(file, ": ", results.error, "\n")
      status = 2
    end
    for _, r in ipairs(results) do
      if not r.message then
        passed = passed + 1
      else
        failed = failed + 1
        io.stdout:write(("not ok: %s: example %d of %s: %s\n"):format(file, r.number, r.class, r.message))
      end
    end
  end
  if failed > 0 then status = math.max(status, 1) end
  io.stdout:write(("%d examples passed, %d failed\n"):format(passed, failed))
  -- a plugin's own modules, as it requires them itself
  for _, file in ipairs(found.plugins) do
    local parent = file:match "^(.*)/[^/]+/init%.lua$" or (file:find "^[^/]+/init%.lua$" and ".") or nil
    if parent then -- behind connect's own
      local ours, rest = package.path:match "^([^;]*;[^;]*);(.*)$"
      package.path = ("%s;%s/?.lua;%s/?/init.lua;%s"):format(ours, parent, parent, rest)
    end
  end
  if status == 2 and #found.specs > 0 then
    io.stderr:write "luaconnect test: a plugin cannot be loaded: the specs are not run\n"
    return status
  end
  if #found.specs > 0 then status = math.max(status, run_specs(found.specs)) end
  return status
end
