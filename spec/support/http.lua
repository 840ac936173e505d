-- spec/support/http.lua: REST calls of the specs, by curl, so that a client that is not ours is used.
local proc = require "spec.support.proc"
local golden = require "spec.support.golden"

local _M = {}

local function encode(v)
  if v == golden.null then return "null" end
  if type(v) == "table" then
    local out = {}
    if v[1] ~= nil then
      for _, x in ipairs(v) do out[#out + 1] = encode(x) end
      return "[" .. table.concat(out, ",") .. "]"
    end
    local keys = {}
    for k in pairs(v) do keys[#keys + 1] = k end
    table.sort(keys)
    for _, k in ipairs(keys) do out[#out + 1] = encode(k) .. ":" .. encode(v[k]) end
    return "{" .. table.concat(out, ",") .. "}"
  end
  if type(v) == "string" then
    return '"' .. v:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
  end
  return tostring(v)
end
_M.encode = encode

--- request(method, url, body): status (0: no connection), text, JSON (nil if none). body: table or text.
function _M.request(method, url, body)
  local cmd = "curl -s -g --max-time 100 -o - -w '\\n%{http_code}' -X " .. method .. " " .. proc.quote(url)
  if method == "HEAD" then cmd = "curl -s -I --max-time 100 -w '\\n%{http_code}' " .. proc.quote(url) end
  local file
  if body then
    file = os.tmpname()
    proc.write(file, type(body) == "table" and encode(body) or body)
    cmd = cmd .. " -H 'Content-Type: application/json' --data-binary @" .. file
  end
  local out = proc.run(cmd)
  if file then os.remove(file) end
  local text, status = out:match "^(.*)\n(%d+)$"
  local json
  if text and text:find "^[%[{]" then
    local ok, v = pcall(golden.decode, text)
    json = ok and v or nil
  end
  return tonumber(status) or 0, text, json
end

return _M
