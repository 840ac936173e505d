-- luacheck: LuaJIT; specs run in busted. No globals anywhere.
std = "luajit"
max_line_length = 120
codes = true
unused_args = false -- callbacks of the API name what they are given
exclude_files = { "build*/**", "third_party/**" }
files["spec/**/*.lua"] = { std = "+busted", max_line_length = 140 }
files["connectors/*/spec/*.lua"] = { std = "+busted", max_line_length = 140 }
files["lua/connect/strings.lua"] = { ignore = { "122" } } -- it puts our string functions in place of Lua's
