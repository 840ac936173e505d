-- spec/support/raw_http.lua: bytes over a TCP connection, for what an HTTP client would not send.
local ffi = require "ffi"
local proc = require "spec.support.proc"

local _M = {}

ffi.cdef [[
int listen(int fd, int backlog);
int connect(int fd, const void *addr, unsigned int len);
long send(int fd, const void *buf, size_t n, int flags);
long recv(int fd, void *buf, size_t n, int flags);
int setsockopt(int fd, int level, int name, const void *value, unsigned int len);
]]

local Connection = {}
Connection.__index = Connection

--- A connection to 127.0.0.1:port.
function _M.connect(port)
  local fd = ffi.C.socket(2, 1, 0)
  local addr = ffi.new("uint8_t[16]", { 2, 0, math.floor(port / 256), port % 256, 127, 0, 0, 1 })
  assert(ffi.C.connect(fd, addr, 16) == 0, "connect")
  -- waits end, so that a spec never hangs: 100 ms a time
  local tv = ffi.new("long[2]", 0, 100000)
  assert(ffi.C.setsockopt(fd, 1, 20, tv, 16) == 0)
  return setmetatable({ fd = fd, got = "", closed = false }, Connection)
end

--- A port that takes connections and never says a word: { port =, close = }.
function _M.listen()
  local fd = ffi.C.socket(2, 1, 0)
  local addr = ffi.new("uint8_t[16]", { 2, 0, 0, 0, 127, 0, 0, 1 })
  assert(ffi.C.bind(fd, addr, 16) == 0, "bind")
  assert(ffi.C.listen(fd, 16) == 0, "listen")
  ffi.C.getsockname(fd, addr, ffi.new("unsigned int[1]", 16))
  return { port = addr[2] * 256 + addr[3], close = function() ffi.C.close(fd) end }
end

function Connection:send(bytes)
  local at = 0
  while at < #bytes do
    local n = tonumber(ffi.C.send(self.fd, ffi.cast("const char *", bytes) + at, #bytes - at, 0x4000))
    if n <= 0 then return false end
    at = at + n
  end
  return true
end

local chunk = ffi.new "char[65536]"

--- Receive until f(text) answers something true, the server closes, or `seconds` passed.
function Connection:receive(f, seconds)
  local stop = proc.now() + seconds
  while proc.now() < stop and not self.closed do
    local n = tonumber(ffi.C.recv(self.fd, chunk, 65536, 0))
    if n > 0 then
      self.got = self.got .. ffi.string(chunk, n)
    elseif n == 0 then
      self.closed = true
    end
    if f and f(self.got) then break end
  end
  return self.got
end

function Connection:close()
  if self.fd then ffi.C.close(self.fd) end
  self.fd = nil
end

--- Status and headers (names in lower case) of the last answer in `text`; 100 Continue is skipped.
function _M.parse(text)
  text = text:gsub("^HTTP/1.1 100 Continue\r\n\r\n", "")
  local head, body = text:match "^(.-)\r\n\r\n(.*)$"
  if not head then return nil end
  local headers = {}
  for name, value in head:gmatch "\r\n([^:\r\n]+): ([^\r\n]*)" do headers[name:lower()] = value end
  return tonumber(head:match "^HTTP/1.%d (%d+)"), headers, body
end

return _M
