--- connect.cli.paths: the plugins and specs that a path on the command line means. Private to the program.
local _M = {}

local function quote(s) return "'" .. s:gsub("'", "'\\''") .. "'" end
_M.quote = quote

local function lines(command)
  local p = io.popen(command)
  local out = {}
  for line in p:lines() do out[#out + 1] = line end
  p:close()
  return out
end

function _M.is_file(path) return os.execute("test -f " .. quote(path)) == 0 end

function _M.is_dir(path) return os.execute("test -d " .. quote(path)) == 0 end

function _M.names(dir) return lines("ls -1 " .. quote(dir) .. " 2>/dev/null") end

-- Specs beside a plugin's file or in its folder.
local function specs(folder, out)
  for _, f in ipairs(lines("find " .. quote(folder .. "/spec") .. " -name '*_spec.lua' 2>/dev/null | sort")) do
    out[#out + 1] = f
  end
end

--- { plugins = { file... }, specs = { file... } } of a path; nil and why not.
function _M.expand(path)
  local out = { plugins = {}, specs = {} }
  path = #path > 1 and path:gsub("/+$", "") or path
  if _M.is_file(path) then
    if path:find "_spec%.lua$" then
      out.specs[1] = path
    elseif path:find "%.lua$" then
      out.plugins[1] = path
      if path:find "/?init%.lua$" then
        specs(path:match "^(.*)/[^/]*$" or ".", out.specs)
      else -- NAME.lua: spec/NAME_spec.lua beside it
        local dir, name = path:match "^(.*)/([^/]*)%.lua$"
        local spec = ("%s/spec/%s_spec.lua"):format(dir or ".", name or path:match "^(.*)%.lua$")
        if _M.is_file(spec) then out.specs[1] = spec end
      end
    else
      return nil, path .. ": neither a .lua file nor a folder"
    end
    return out
  end
  if not _M.is_dir(path) then
    if not path:find "[/%s]" and not path:find "%.lua$" then -- the class of a standard one
      local file = require("connect.tool").find(path)
      if file then return { plugins = { file }, specs = {} } end
    end
    return nil, path .. ": no such file, folder or standard plugin"
  end
  if _M.is_file(path .. "/init.lua") then
    out.plugins[1] = path .. "/init.lua"
    specs(path, out.specs)
    return out
  end
  for _, name in ipairs(_M.names(path)) do
    local inner = path .. "/" .. name
    if name ~= "spec" and _M.is_dir(inner) and _M.is_file(inner .. "/init.lua") then
      out.plugins[#out.plugins + 1] = inner .. "/init.lua"
      specs(inner, out.specs)
    elseif name:find "%.lua$" and not name:find "_spec%.lua$" then
      out.plugins[#out.plugins + 1] = inner
    end
  end
  specs(path, out.specs)
  if #out.plugins == 0 and #out.specs == 0 then return nil, path .. ": no plugins and no specs in it" end
  return out
end

--- The same of several paths together.
function _M.expand_all(list)
  local all = { plugins = {}, specs = {} }
  for _, path in ipairs(list) do
    local found, err = _M.expand(path)
    if not found then return nil, err end
    for kind, files in pairs(found) do
      for _, f in ipairs(files) do table.insert(all[kind], f) end
    end
  end
  return all
end

--- The plugins and specs that the arguments of a subcommand mean. `missing`: what it wants when there are none. nil and
-- the exit status when that cannot be told; why has been said.
function _M.arguments(command, args, missing)
  local found, err
  if #args == 0 then
    err = missing
  else
    found, err = _M.expand_all(args)
  end
  if found then return found end
  io.stderr:write("luaconnect ", command, ": ", err, "\n")
  return nil, 2
end

return _M
