-- The string functions of plugins (core/script/strings.c) give what LuaJIT's give, and code with the guard's tests
-- (core/script/checked.c) does what it did without them.
local worker = require "spec.support.worker"
local core = require "spec.support.core"
local C, ffi = core.load { "config/plugin.h", "script/script.h" }

local function run(body)
  local w = worker.new { plugins = { ["probe.lua"] = [[
local connect = require "connect"
local function check() ]] .. body .. [[
 end
return connect.source { name = "P", class = "P", version = "1", task = { poll = function() end },
  validate = function() check() end }
]] } }
  local err = core.err()
  local p = C.lc_plugins_find(w.plugins, 3, "P", err)
  local why = core.msg(err)
  if p ~= nil then
    local i = ffi.gc(C.lc_config_infos_new "x", C.lc_config_infos_free)
    why = p.validate(p, core.props {}, i, err) < 0 and core.msg(err) or nil
  end
  w:close()
  assert.is_nil(why)
end

local function show(...)
  local out = {}
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    out[i] = type(v) == "string" and ("%q"):format(v) or tostring(v)
  end
  return table.concat(out, " ")
end

describe("string functions of plugins", function()
  it("give what LuaJIT's give", function()
    local subjects = { "", "a", "hello world", "key = value", "aXbXc", "(a(b)c)", "  x ", "THE (quick) fox", "0x1F,22",
      "a.b-c%d", "aaa" }
    local patterns = { "", "a", "%a+", "^%s*(.-)%s*$", "(%w+) = (%w+)", "%b()", "%f[%a]%a+", "()a()", "[^%s]+", "[%a_]",
      "[a-c]*", "[]x]", "[^]]", "x?", "a-b", ".", "$", "^a", "%d+$", "(.)(.)", "(a)%1", "%x+", "%p", "[%-%.]", "%", "[a",
      "(a", "a)", "%1", "%f", "[a-]", ".-", "%S%s", "%u+" }
    local lines = {}
    for _, s in ipairs(subjects) do
      for _, p in ipairs(patterns) do
        for _, call in ipairs { "string.find(%q, %q)", "string.match(%q, %q)", "string.find(%q, %q, -3)",
          "string.match(%q, %q, 2)", "string.gsub(%q, %q, '<%%0%%1>')", "string.gsub(%q, %q, { a = 'A' })",
          "string.gsub(%q, %q, function(a) return a and '-' end, 2)", "string.find(%q, %q, 1, true)",
          "(function(s, p) local t = {} for a, b in s:gmatch(p) do t[#t + 1] = tostring(a) .. tostring(b) end "
            .. "return table.concat(t, '|') end)(%q, %q)" } do
          local text = call:format(s, p)
          local f = assert(loadstring("return pcall(function() return " .. text .. " end)"))
          local got = { f() }
          local wanted = got[1] and show(f()) or "false"
          lines[#lines + 1] = ("do local w, g = %q, show(pcall(function() return %s end)) "):format(wanted, text)
            .. "if g:sub(1, 5) == 'false' then g = 'false' end "
            .. ("if g ~= w then error(%q .. ' gives ' .. g .. ', not ' .. w, 0) end end"):format(text)
        end
      end
    end
    local show_text = [[local function show(...) local out = {} for i = 1, select("#", ...) do local v = select(i, ...)
      out[i] = type(v) == "string" and ("%q"):format(v) or tostring(v) end return table.concat(out, " ") end ]]
    for from = 1, #lines, 300 do
      run(show_text .. table.concat(lines, "\n", from, math.min(#lines, from + 299)))
    end
  end)

  it("leave the code around them as it was", function()
    run [==[
      -- do repeat function() goto x
      local s = "do function() 'x' " .. 'repeat \' "' .. [[ do ]] .. [=[ ]] function( ]=] --[[ do
      ]] .. "end"
      assert(s == "do function() 'x' repeat ' \" do  ]] function( end")
      local t, n = { ["do"] = 1, f = function(...) return select("#", ...) end }, 0
      function t.a(x, --[=[ ) ]=] y) return x + y end
      function t:b(x) return self.f(x, x) end
      for i = 1, 3 do for j = 1, 3 do if j == 2 then goto continue end n = n + i * j ::continue:: end end
      repeat local done = n > 30 n = n + 1 until done
      do (function() n = n + 0x1 + 1e1 end)() end
      assert(n == 43 and t.a(1, 2) == 3 and t:b(1) == 2 and t["do"] == 1, n)
      local ok, why = pcall(loadstring("\n\nlocal x = nil\nwhile true do x.y = 1 end", "=chunk"))
      assert(not ok and why:find "^chunk:4:", why)
      local many = {}
      for i = 1, 59 do many[i] = "local v" .. i .. " = " .. i end
      local sum = {}
      for i = 1, 59 do sum[i] = "v" .. i end
      local f = assert(loadstring(table.concat(many, "\n") .. "\nreturn function() return " .. table.concat(sum, "+") .. " end"))
      assert(f()() == 1770) ]==]
  end)
end)
