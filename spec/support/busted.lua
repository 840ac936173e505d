-- spec/support/busted.lua: busted under this LuaJIT, whatever `lua` is first in PATH.
package.path = "./?.lua;" .. package.path
require "busted.runner" { standalone = false }
