-- spec/support/busted.lua: busted under this LuaJIT, whatever `lua` is first in PATH.
-- C that calls back into Lua must never be called from compiled code ("bad callback"), and many specs do that.
require "jit".off()
package.path = "./?.lua;" .. package.path
require "busted.runner" { standalone = false }
