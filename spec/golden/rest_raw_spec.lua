-- rest_raw_spec.lua: HTTP itself, over a socket: golden/rest/19-raw-http.jsonl against a standalone worker,
-- and what no recording shows: half requests, endless bodies, many connections.
local golden = require "spec.support.golden"
local raw = require "spec.support.raw_http"
local standalone = require "spec.support.standalone"
local proc = require "spec.support.proc"

-- Where libmicrohttpd answers before us: status or nil for no answer, and why that is as good.
local other = {
  http09 = { status = 400, why = "HTTP/0.9 is refused as malformed, not as an unknown version" },
  ["chunked-bad"] = { status = 400, why = "a bad chunk is the client's error; Jetty calls it its own" },
  ["bad-content-length"] = { status = 400, headers = false, why = "refused with libmicrohttpd's own page" },
  ["expect-100"] = { closed = true, why = "Connection: close is honoured; Jetty forgets it after 100-continue" },
  garbage = { status = false, why = "without a line end nothing can be said yet; the idle timeout ends it" },
}
local volatile = { server = true, date = true, ["content-length"] = true, location = true }

local function bytes(case)
  if case.name == "uri-9k" then return "GET /" .. ("a"):rep(9000) .. " HTTP/1.1\r\nHost: x\r\n\r\n" end
  assert(type(case.request) == "string", "base64 requests are not read here")
  return case.request
end

describe("raw HTTP", function()
  local worker

  lazy_setup(function()
    worker = standalone.start { topics = { "g-src" } }
    worker.healthy()
  end)
  lazy_teardown(function() worker.process:stop() end)

  local function complete(text)
    local status, headers, body = raw.parse(text)
    return status and #body >= tonumber(headers["content-length"] or 0)
  end

  for _, case in ipairs(golden.cases "rest/19-raw-http.jsonl") do
    it(case.name, function()
      local differs = other[case.name] or {}
      local want_status, want_headers = raw.parse(case.response)
      local want_closed = case.server_closed
      if differs.status ~= nil then want_status = differs.status end
      if differs.closed ~= nil then want_closed = differs.closed end
      local c = raw.connect(worker.port)
      c:send(bytes(case))
      if want_status == false then
        c:receive(nil, 0.5)
        assert.equal("", c.got)
        c:close()
        return
      end
      c:receive(not want_closed and complete or nil, 60)
      local status, headers = raw.parse(c.got)
      assert.equal(want_status, status)
      assert.equal(want_closed, c.closed)
      c:close()
      if differs.headers == false or differs.status then return end
      for name, value in pairs(want_headers) do
        if not volatile[name] and name ~= "connection" then assert.equal(value, headers[name], name) end
      end
    end)
  end

  it("reads a body byte by byte", function()
    local c = raw.connect(worker.port)
    c:send "PUT /connectors/x/config HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n"
    for b in ('{"a":1}'):gmatch "." do c:send(b) end
    c:receive(complete, 60)
    assert.equal(400, (raw.parse(c.got)))
    c:close()
  end)

  it("refuses several Content-Length headers, and closes", function()
    for _, second in ipairs { "9", "7" } do
      local c = raw.connect(worker.port)
      c:send("PUT /connectors/x/config HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        .. "Content-Length: 7\r\nContent-Length: " .. second .. '\r\n\r\n{"a":1}xx')
      c:receive(nil, 10)
      local status, _, body = raw.parse(c.got)
      assert.equal(400, status)
      assert.matches("Multiple Content%-Lengths", body)
      assert.is_true(c.closed)
      c:close()
    end
  end)

  it("is not held up by half requests, and stops with them", function()
    local halves = {}
    for i = 1, 100 do
      halves[i] = raw.connect(worker.port)
      halves[i]:send 'POST /connectors HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"na'
    end
    assert.equal(200, (worker.request("GET", "/connectors")))
    for i = 1, 100 do halves[i]:close() end
  end)

  it("reads and refuses bodies that are too large, without keeping them", function()
    local c = raw.connect(worker.port)
    c:send "POST /connectors HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    local piece = ("%x\r\n%s\r\n"):format(65536, ("y"):rep(65536))
    for _ = 1, 40 * 16 do assert.is_true(c:send(piece)) end
    c:send "0\r\n\r\n"
    c:receive(complete, 60)
    assert.equal(413, (raw.parse(c.got)))
    c:close()
    local kb = tonumber(proc.read("/proc/" .. worker.process.pid .. "/status"):match "VmRSS:%s+(%d+)")
    assert.is_true(kb < 300 * 1024, kb .. " kB")
  end)

  it("answers 500, not 500 MB, to 10 MB of config", function()
    local status, text = worker.request("PUT", "/connectors/big/config", '{"connector.class":"x","a":"' ..
      ("z"):rep(10 * 1024 * 1024) .. '"}')
    assert.is_true(status == 400 or status == 500, status)
    assert.is_true(#text < 20 * 1024 * 1024)
    assert.equal(200, (worker.request("GET", "/")))
  end)

  it("keeps connections alive and answers pipelined requests in order", function()
    local c = raw.connect(worker.port)
    c:send(("GET /connectors HTTP/1.1\r\nHost: a\r\n\r\nGET /nosuch HTTP/1.1\r\nHost: a\r\n\r\n"):rep(20))
    local function count(text) return select(2, text:gsub("HTTP/1.1 404", "")) == 20 end
    c:receive(count, 60)
    assert.is_true(count(c.got))
    assert.is_false(c.closed)
    c:close()
  end)
end)
