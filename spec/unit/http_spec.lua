-- The HTTP client (core/http/http.c) against a server of our own (spec/support/http_server.py).
local core = require "spec.support.core"
local proc = require "spec.support.proc"
local raw = require "spec.support.raw_http"
local C = core.load { "base/err.h", "base/buf.h", "base/strv.h", "base/queue.h", "http/http.h" }
local ffi = require "ffi"
local probe = require("spec.support.compile").library([[
#include "base/queue.h"
#include "http/http.h"
void probe_done(lc_http_call_t *call)
{
        lc_queue_push(call->arg, call);
}
/* a call whose done() submits it once more, to a client that is closed by then */
static lc_http_t *client;
void probe_client(lc_http_t *h)
{
        client = h;
}
void probe_again(lc_http_call_t *call)
{
        call->done = probe_done;
        lc_http_submit(client, call);
}
]], [[
void probe_done(lc_http_call_t *call);
void probe_client(lc_http_t *h);
void probe_again(lc_http_call_t *call);
]])

local ECANCELED, ETIMEDOUT, EMSGSIZE = 125, 110, 90

describe("the HTTP client", function()
  local server, base, log, client, answers

  setup(function()
    local dir = proc.tmpdir "http"
    log = dir .. "/requests"
    server = proc.start { "python3", "spec/support/http_server.py", log, dir = dir, env = { LD_PRELOAD = "" } }
    local port = proc.wait_for("the server's port", function() return server:log():match "^(%d+)\n" end)
    base = "http://127.0.0.1:" .. port
  end)
  teardown(function() server:stop() end)

  before_each(function()
    client = C.lc_http_new("kafka-connect", nil)
    answers = ffi.gc(C.lc_queue_new(), C.lc_queue_free)
  end)
  after_each(function()
    C.lc_http_stop(client)
    client = nil
  end)

  --- t: method, url, headers, body, timeout, max, done
  local function submit(t)
    local call = C.lc_http_call_new(t.method or "GET", t.url)
    for _, line in ipairs(t.headers or {}) do C.lc_strv_add(call.headers, line) end
    if t.body then
      call.has_body = true
      C.lc_buf_add(call.body, t.body, #t.body)
    end
    call.timeout_ms, call.max_answer = t.timeout or 0, t.max or 0
    call.done, call.arg = t.done or probe.probe_done, answers
    C.lc_http_submit(client, call)
  end

  local function answer()
    local call = ffi.cast("lc_http_call_t *", C.lc_queue_pop(answers, 60000))
    assert(call ~= nil, "no answer")
    local got = {
      url = ffi.string(call.url), status = call.status, retry_after = call.retry_after_s,
      type = call.content_type ~= nil and ffi.string(call.content_type) or nil,
      body = call.answer.p ~= nil and ffi.string(call.answer.p, call.answer.len) or nil,
      kind = tonumber(call.err.kind), code = call.err.code, msg = core.msg(call.err),
    }
    C.lc_http_call_free(call)
    return got
  end

  local function ask(t)
    submit(t)
    return answer()
  end

  --- The request as the server saw it.
  local function echoed(t)
    local got = ask(t)
    assert.equal(200, got.status, got.msg)
    assert.equal(0, got.kind)
    local seen = { headers = {}, connection = tonumber(got.body:match "\nconnection (%d+)\n") }
    seen.line = got.body:match "^[^\n]*"
    for name, value in got.body:gmatch "\nheader ([^:]+): ([^\n]*)" do seen.headers[name:lower()] = value end
    local hex = got.body:match "\nbody (%w*)"
    if hex ~= "none" then seen.body = hex:gsub("%x%x", function(h) return string.char(tonumber(h, 16)) end) end
    return seen, got
  end

  it("sends a GET with the headers it was given and nothing else", function()
    local seen, got = echoed { url = base .. "/a?b=c", headers = { "Authorization: Basic eDp5", "X-Empty: ", "Accept: application/json" } }
    assert.equal("GET /a?b=c", seen.line)
    assert.same({
      host = base:match "//(.*)", ["user-agent"] = "kafka-connect", authorization = "Basic eDp5",
      accept = "application/json", ["x-empty"] = "",
    }, seen.headers)
    assert.is_nil(seen.body)
    assert.equal("text/x-echo; a=b", got.type)
  end)

  it("sends a path as it is", function()
    assert.equal("GET /connectors/../a%2Fb/%7B;x=1/./%00?x=%20+",
      echoed({ url = base .. "/connectors/../a%2Fb/%7B;x=1/./%00?x=%20+" }).line)
  end)

  it("sends bodies byte by byte, empty ones and none", function()
    local bytes = "\0\255{\r\n}"
    for _, method in ipairs { "POST", "PUT", "DELETE", "PATCH", "GET" } do
      local seen = echoed { method = method, url = base .. "/x", body = bytes, headers = { "Content-Type: application/json" } }
      assert.equal(method .. " /x", seen.line)
      assert.equal(bytes, seen.body)
      assert.equal("application/json", seen.headers["content-type"])
      assert.equal(tostring(#bytes), seen.headers["content-length"])
      seen = echoed { method = method, url = base .. "/x", body = "", headers = { "Content-Type: application/json" } }
      assert.equal("0", seen.headers["content-length"])
      seen = echoed { method = method, url = base .. "/x" }
      assert.equal(method .. " /x", seen.line)
      assert.is_nil(seen.headers["content-type"])
      assert.equal((method == "POST" or method == "PUT") and "0" or nil, seen.headers["content-length"])
    end
    -- a large one, without the pause of Expect: 100-continue
    local seen = echoed { method = "POST", url = base .. "/x", body = ("z"):rep(1100000) }
    assert.equal(1100000, #seen.body)
    assert.is_nil(seen.headers.expect)
    assert.is_nil(seen.headers["content-type"])
  end)

  it("gives status, body, type and Retry-After, and follows no redirect", function()
    for _, status in ipairs { 200, 201, 202, 400, 404, 500, 503 } do
      local got = ask { url = base .. "/~status/" .. status }
      assert.same({ status, "status " .. status, 0, 0 }, { got.status, got.body, got.retry_after, got.kind })
    end
    local got = ask { url = base .. "/~status/204", method = "PUT" }
    assert.same({ 204, "", 0 }, { got.status, got.body, got.kind })
    got = ask { url = base .. "/~status/409", method = "PUT" }
    assert.same({ 409, "status 409", 7 }, { got.status, got.body, got.retry_after })
    got = ask { url = base .. "/~redirect" }
    assert.same({ 302, "elsewhere" }, { got.status, got.body })
    got = ask { url = base .. "/x", method = "HEAD" }
    assert.same({ 200, "" }, { got.status, got.body })
  end)

  it("keeps connections, and opens another when the server closed one", function()
    local first = echoed({ url = base .. "/1" }).connection
    for i = 2, 10 do
      local post = i % 2 == 0
      assert.equal(first, echoed({ method = post and "POST" or "GET", url = base .. "/" .. i, body = post and "x" or nil }).connection)
    end
    assert.equal(200, ask({ url = base .. "/~last" }).status)
    assert.is_true(echoed({ method = "POST", url = base .. "/x", body = "x" }).connection > first)
  end)

  it("has fifty calls out at once", function()
    for _ = 1, 50 do submit { method = "POST", url = base .. "/~together/50", body = "x" } end
    for _ = 1, 50 do
      local got = answer()
      assert.same({ 200, "50" }, { got.status, got.body })
    end
  end)

  it("does not let a slow server hold up others", function()
    submit { url = base .. "/~slow/1.5" }
    for i = 1, 5 do submit { url = base .. "/" .. i } end
    for _ = 1, 5 do assert.is_nil(answer().url:match "slow") end
    local got = answer()
    assert.same({ 200, "late" }, { got.status, got.body })
  end)

  local function fails(t, kind, code, pattern)
    local got = ask(t)
    assert.same({ kind, 0 }, { got.kind, got.status }, got.msg)
    assert.is_nil(got.body)
    if code then assert.equal(code, got.code, got.msg) end
    assert.matches(pattern, got.msg)
    return got
  end
  local RETRIABLE, FATAL = 2, 1

  it("tells why there is no answer", function()
    local port = proc.free_port()
    fails({ url = ("http://127.0.0.1:%d/x"):format(port) }, RETRIABLE, 111, "^127.0.0.1:" .. port .. ": .*Connection refused")
    fails({ url = "http://no-such-host.invalid:1/x", timeout = 20000 }, RETRIABLE, nil, "^no%-such%-host.invalid:1: ")
    fails({ url = base .. "/~slow/20", timeout = 200 }, RETRIABLE, ETIMEDOUT, "^127.0.0.1:%d+: .*timed out")
    fails({ url = base .. "/~garbage" }, RETRIABLE, nil, "^127.0.0.1:%d+: ")
    fails({ url = base .. "/~drop" }, RETRIABLE, nil, "^127.0.0.1:%d+: Empty reply")
    fails({ url = base .. "/~cut" }, RETRIABLE, nil, "^127.0.0.1:%d+: ")
    fails({ url = base .. "/~big/1001", max = 1000 }, RETRIABLE, EMSGSIZE, "larger than 1000 bytes")
    fails({ url = base .. "/~endless", max = 100000 }, RETRIABLE, EMSGSIZE, "larger than 100000 bytes")
    assert.equal(1000, #ask({ url = base .. "/~big/1000", max = 1000 }).body)
    -- it still works
    echoed { url = base .. "/x" }
  end)

  it("refuses what is no request", function()
    for _, url in ipairs { "", "x", "127.0.0.1:8083/x", "ftp://127.0.0.1/x", "file:///etc/passwd", "http://", "http://:1/",
      "http://a:99999/x", "http://a b/x", base .. "/a b", base .. "/a\nb" } do
      fails({ url = url }, FATAL, nil, "^Not a URL for a request: ")
    end
    assert.is_nil(fails({ url = "ftp://user:secret@127.0.0.1/x" }, FATAL, nil, "http nor https").msg:match "secret")
    fails({ url = base, method = "GET /x HTTP/1.1\r\nX:" }, FATAL, nil, "^Not a method")
    fails({ url = base, method = "" }, FATAL, nil, "^Not a method")
    for _, line in ipairs { "", "X", ": y", "X Y: z", "X: y\r\nZ: a", "X: y\n" } do
      fails({ url = base, headers = { line } }, FATAL, nil, "^Not a header")
    end
  end)

  it("shows no password of a URL", function()
    local port = proc.free_port()
    local got = fails({ url = ("http://user:secret@127.0.0.1:%d/x"):format(port) }, RETRIABLE, nil, "^127.0.0.1:%d+: ")
    assert.is_nil(got.msg:match "secret")
  end)

  it("ends what is out when it stops", function()
    for _ = 1, 20 do submit { method = "POST", url = base .. "/~slow/30", body = "x" } end
    proc.wait_for("requests at the server", function()
      return select(2, (proc.read(log) or ""):gsub("slow/30", "")) > 0
    end)
    local silent = raw.listen()
    submit { url = ("http://127.0.0.1:%d/x"):format(silent.port) }
    C.lc_http_stop(client)
    client = nil
    for _ = 1, 21 do
      local got = answer()
      assert.same({ RETRIABLE, ECANCELED, 0 }, { got.kind, got.code, got.status })
    end
    silent:close()
  end)

  it("answers what is submitted after close, also from done()", function()
    probe.probe_client(client)
    submit { url = base .. "/~slow/30", done = probe.probe_again }
    C.lc_http_close(client)
    submit { url = base .. "/x" }
    for _ = 1, 2 do assert.equal(ECANCELED, answer().code) end
    submit { url = base .. "/y", done = probe.probe_again }
    assert.equal(ECANCELED, answer().code)
  end)

  it("stops without a call, and NULL is no client", function()
    C.lc_http_stop(nil)
    C.lc_http_close(nil)
    C.lc_http_call_free(nil)
  end)
end)
