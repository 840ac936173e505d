-- bench/convert_bench.lua: what converting one 100-byte line costs, both ways (CPU time, best of five runs).
-- The loop is C (convert_path.c): a struct passed by value is not compiled by LuaJIT's FFI.
--   luajit bench/convert_bench.lua [LIBRARY]    default: $LUACONNECT_LIB or build/libluaconnect.so
local lib = arg[1] or os.getenv "LUACONNECT_LIB" or "build/libluaconnect.so"
local program = os.tmpname()
local cc = os.getenv "CC" or "cc"
local cmd = ("%s -std=c11 -D_GNU_SOURCE -O2 -Icore bench/convert_path.c %s -Wl,-rpath,%s -o %s"):format(
  cc, lib, lib:match "^(.*)/" or ".", program)
if lib:sub(1, 1) ~= "/" then cmd = cmd:gsub("%-rpath,", "-rpath,$PWD/") end
local ok = os.execute(cmd)
if ok ~= true and ok ~= 0 then os.exit(1) end
ok = os.execute(program)
os.remove(program)
os.exit((ok == true or ok == 0) and 0 or 1)
