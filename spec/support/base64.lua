-- spec/support/base64.lua: base64 in plain Lua, for specs and what makes their recordings.
local _M = {}

local digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

--- What is no digit of it is passed over.
function _M.decode(s)
  local bits, n, out = 0, 0, {}
  for c in s:gmatch "[%w%+/]" do
    bits = (bits * 64 + digits:find(c, 1, true) - 1) % 16777216
    n = n + 6
    if n >= 8 then
      n = n - 8
      out[#out + 1] = string.char(math.floor(bits / 2 ^ n) % 256)
    end
  end
  return table.concat(out)
end

function _M.encode(s)
  local out = {}
  for i = 1, #s, 3 do
    local a, b, c = s:byte(i, i + 2)
    local v = a * 65536 + (b or 0) * 256 + (c or 0)
    for k = 3, 0, -1 do
      local d = math.floor(v / 64 ^ k) % 64 + 1
      out[#out + 1] = digits:sub(d, d)
    end
    if not b then out[#out - 1] = "=" end
    if not c then out[#out] = "=" end
  end
  return table.concat(out)
end

return _M
