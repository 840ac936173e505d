-- spec/support/core.lua: the C core for specs. Declarations come from the headers themselves, so a spec
-- cannot disagree with the code: the compiler preprocesses them, what came from core/ is given to ffi.cdef.
local ffi = require "ffi"
local files = require "spec.support.files"
local library = require "spec.support.library"

local _M = {}
local declared, lib = {}, nil

local function preprocess(headers)
  local src = os.tmpname()
  files.write(src, '#include "' .. table.concat(headers, '"\n#include "') .. '"\n')
  local cc = os.getenv "CC" or "cc"
  local out = assert(io.popen(cc .. " -E -x c -std=c11 -D_GNU_SOURCE -DLC_CDEF -Icore " .. src))
  local text = out:read "*a"
  assert(out:close(), "preprocessing failed")
  os.remove(src)
  return text
end

-- Keep the lines that come from headers below core/, by file; system headers are LuaJIT's business.
local function ours(text)
  local chunks, order, current = {}, {}, nil
  for line in text:gmatch "[^\n]*" do
    local file = line:match '^# %d+ "([^"]+)"'
    if file then
      current = file:match "^core/" and file or nil
      if current and not chunks[current] then chunks[current] = {}; order[#order + 1] = current end
    elseif current and line ~= "" then
      table.insert(chunks[current], line)
    end
  end
  return chunks, order
end

local function clean(text)
  text = text:gsub("static%s+inline[^;{]-%b()%s*%b{}", "")
  text = text:gsub("__attribute__%s*%b()", ""):gsub("_Noreturn", ""):gsub("_Alignas%s*%b()", "")
  return text
end

--- The library named by $LUACONNECT_LIB (default build/libluaconnect.so), loaded once.
function _M.lib()
  lib = lib or library.core()
  return lib
end

--- load { "base/err.h", ... }: declares these headers and what they include from core/ (each once).
-- Returns the library and the ffi module.
function _M.load(headers)
  local want = {}
  for _, h in ipairs(headers) do if not declared["core/" .. h] then want[#want + 1] = h end end
  if #want > 0 then
    local chunks, order = ours(preprocess(want))
    -- nested includes come back to their parent, so declare in the order of the last line: a file is
    -- complete only after everything it includes
    local text = {}
    local pending = {}
    for _, file in ipairs(order) do
      if not declared[file] then pending[#pending + 1] = file end
    end
    local done = {}
    local function includes(file)
      local list = {}
      local f = assert(io.open(file))
      for line in f:lines() do
        local inc = line:match '^%s*#%s*include%s+"([^"]+)"'
        if inc and chunks["core/" .. inc] then list[#list + 1] = "core/" .. inc end
      end
      f:close()
      return list
    end
    local function emit(file)
      if done[file] or declared[file] then return end
      done[file] = true
      for _, inc in ipairs(includes(file)) do emit(inc) end
      text[#text + 1] = clean(table.concat(chunks[file], "\n"))
    end
    for _, file in ipairs(pending) do emit(file) end
    for i, t in ipairs(text) do
      local ok, err = pcall(ffi.cdef, t)
      if not ok then error("cdef of part " .. i .. ": " .. err .. "\n" .. t) end
    end
    for file in pairs(done) do declared[file] = true end
  end
  return _M.lib(), ffi
end

--- A cleared lc_err_t; needs base/err.h loaded.
function _M.err() return ffi.new "lc_err_t" end

--- Message of an lc_err_t as a Lua string.
function _M.msg(err) return ffi.string(err.msg) end

--- A Lua table of strings as lc_props_t (freed by the collector); needs base/props.h loaded. An array of
-- {key, value} pairs keeps its order, a map is sorted.
function _M.props(t)
  local C = _M.lib()
  local p = ffi.gc(C.lc_props_new(), C.lc_props_free)
  if t[1] then
    for _, kv in ipairs(t) do C.lc_props_set(p, kv[1], kv[2]) end
  else
    local keys = {}
    for k in pairs(t) do keys[#keys + 1] = k end
    table.sort(keys)
    for _, k in ipairs(keys) do C.lc_props_set(p, k, tostring(t[k])) end
  end
  return p
end

--- lc_props_t as a Lua table; null values become false.
function _M.table(p)
  local C, t = _M.lib(), {}
  for i = 0, tonumber(C.lc_props_count(p)) - 1 do
    local v = C.lc_props_value(p, i)
    t[ffi.string(C.lc_props_key(p, i))] = v ~= nil and ffi.string(v)
  end
  return t
end

return _M
