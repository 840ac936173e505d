-- The REST server over a socket (core/rest/server.c) with the herder's part played here: forwarding to another
-- worker, which is spec/support/http_server.py, and the order of the end.
local core = require "spec.support.core"
local proc = require "spec.support.proc"
local raw = require "spec.support.raw_http"
local golden = require "spec.support.golden"
local worker_config = require "spec.support.worker_config"
local C, ffi = core.load { "base/err.h", "base/props.h", "base/clock.h", "base/log.h",
  "base/queue.h", "config/worker_config.h", "herder/herder.h", "http/http.h", "rest/rest.h" }
-- server.c once more, bound to a herder that queues its requests for the spec
local stand_in = require("spec.support.compile").library([[
#include "base/queue.h"
#define lc_rest_new srv_new
#define lc_rest_port srv_port
#define lc_rest_serve srv_serve
#define lc_rest_hold_health srv_hold_health
#define lc_rest_logger_level srv_logger_level
#define lc_rest_stop srv_stop
#define lc_rest_free srv_free
#define lc_herder_submit srv_submit
#define lc_herder_stage srv_stage
#define lc_herder_ready srv_ready
#define lc_herder_plugins srv_plugins
#define lc_herder_cluster_id srv_cluster_id
#include "rest/server.c"
static lc_plugins_t *no_plugins;
void srv_submit(lc_herder_t *h, lc_request_t *req)
{
        lc_queue_push((lc_queue_t *)h, req);
}
void srv_stage(const lc_herder_t *h, lc_buf_t *out)
{
        (void)h;
        lc_buf_adds(out, "The worker is currently busy.");
}
bool srv_ready(const lc_herder_t *h)
{
        return h != NULL;
}
const lc_plugins_t *srv_plugins(const lc_herder_t *h)
{
        (void)h;
        return no_plugins;
}
const char *srv_cluster_id(const lc_herder_t *h)
{
        return h ? "spec" : NULL;
}
void srv_answer(lc_request_t *req)
{
        req->done(req);
}
]], [[
lc_rest_t *srv_new(const lc_worker_config_t *wc, lc_err_t *err);
int srv_port(const lc_rest_t *r);
void srv_serve(lc_rest_t *r, lc_herder_t *h, lc_http_t *http);
void srv_logger_level(lc_rest_t *r, const char *logger, const char *level);
void srv_stop(lc_rest_t *r);
void srv_free(lc_rest_t *r);
void srv_answer(lc_request_t *req);
]])
pcall(ffi.cdef, "void *calloc(size_t n, size_t size); char *strdup(const char *s); void free(void *p);")

describe("the REST server", function()
  local other, base, log, config, rest, client, asked, port

  setup(function()
    local dir = proc.tmpdir "rest-server"
    log = dir .. "/requests"
    other = proc.start { "python3", "spec/support/http_server.py", log, dir = dir, env = { LD_PRELOAD = "" } }
    base = "http://127.0.0.1:" .. proc.wait_for("the server's port", function() return other:log():match "^(%d+)\n" end)
    config = worker_config.new { listeners = "http://127.0.0.1:0" }
  end)
  teardown(function()
    other:stop()
    C.lc_worker_config_free(config)
  end)

  before_each(function()
    C.lc_log_set_level(nil, "off")
    local err = core.err()
    rest = stand_in.srv_new(config, err)
    assert(rest ~= nil, core.msg(err))
    client = C.lc_http_new("kafka-connect", nil)
    asked = C.lc_queue_new()
    port = stand_in.srv_port(rest)
    stand_in.srv_serve(rest, ffi.cast("lc_herder_t *", asked), client)
  end)

  --- In the order of core/cli/run.c; `herder` is what the herder still does when it is stopped.
  local function stop(herder)
    if not rest then return end
    stand_in.srv_stop(rest)
    C.lc_http_close(client)
    if herder then herder() end
    C.lc_http_stop(client)
    stand_in.srv_free(rest)
    C.lc_queue_free(asked)
    rest = nil
  end
  after_each(function()
    stop()
    C.lc_log_set_level(nil, "info")
  end)

  local function send(method, path, body, headers)
    local c = raw.connect(port)
    local lines = { method .. " " .. path .. " HTTP/1.1", "Host: me:1" }
    for _, line in ipairs(headers or {}) do lines[#lines + 1] = line end
    if body then
      lines[#lines + 1] = "Content-Type: application/json"
      lines[#lines + 1] = "Content-Length: " .. #body
    end
    c:send(table.concat(lines, "\r\n") .. "\r\n\r\n" .. (body or ""))
    return c
  end

  local function answer(c)
    local text = c:receive(function(got)
      local status, headers, body = raw.parse(got)
      return status and #body >= tonumber(headers["content-length"] or 0)
    end, 60)
    local status, headers, body = raw.parse(text)
    c:close()
    return { status = status, headers = headers, body = body }
  end

  --- The next request at the herder.
  local function request()
    local req = ffi.cast("lc_request_t *", C.lc_queue_pop(asked, 30000))
    assert(req ~= nil, "no request")
    return req
  end

  local function forward(to, deadline)
    local req = request()
    req.forward_url = ffi.C.strdup(to)
    if deadline then req.deadline_ms = C.lc_now_ms() + deadline end
    stand_in.srv_answer(req)
  end

  it("sends a request on and passes the answer back", function()
    local body = '{"connector.class" : "x", "n":1.50}'
    local c = send("PUT", "/connectors/a%20b/config", body, { "Authorization: Basic eDp5" })
    forward(base .. "/~json/201/")
    local got = answer(c)
    assert.equal(201, got.status)
    assert.equal("application/json", got.headers["content-type"])
    assert.equal("http://me:1/connectors/a%20b", got.headers.location)
    local seen = golden.decode(got.body)
    assert.equal("PUT /~json/201/connectors/a%20b/config?forward=true", seen.line)
    assert.equal(body, seen.body)
    assert.same({
      host = base:match "//(.*)", accept = "application/json", authorization = "Basic eDp5",
      ["user-agent"] = "kafka-connect", ["content-type"] = "application/json", ["content-length"] = tostring(#body),
    }, seen.headers)

    c = send("DELETE", "/connectors/x?forward=true")
    forward(base .. "/~error/404/")
    got = answer(c)
    assert.equal(404, got.status)
    assert.equal("3", got.headers["retry-after"])
    assert.same({ error_code = 404, message = "No ä here: /~error/404/connectors/x?forward=false" }, golden.decode(got.body))

    c = send("PUT", "/connectors/x/stop")
    forward(base .. "/~status/204/")
    got = answer(c)
    assert.same({ 204, "" }, { got.status, got.body })
  end)

  it("still answers what the herder answered itself", function()
    local c = send("DELETE", "/connectors/x")
    local req = request()
    req.status = 204
    stand_in.srv_answer(req)
    assert.equal(204, answer(c).status)
  end)

  it("passes bodies of megabytes on", function()
    local body = '{"connector.class":"' .. ("x"):rep(5000000) .. '"}'
    local c = send("PUT", "/connectors/x/config", body)
    forward(base .. "/~json/200/")
    assert.equal(body, golden.decode(answer(c).body).body)
  end)

  it("says why there is no answer", function()
    local gone = proc.free_port()
    local c = send("DELETE", "/connectors/x")
    forward(("http://127.0.0.1:%d/"):format(gone))
    local got = answer(c)
    assert.equal(500, got.status)
    assert.matches("^IO Error trying to forward REST request: 127.0.0.1:" .. gone .. ": ", golden.decode(got.body).message)
    c = send("DELETE", "/connectors/x")
    forward(base .. "/~slow/20/", 200)
    got = answer(c)
    assert.equal(500, got.status)
    assert.matches("^IO Error trying to forward REST request: .*timed out", golden.decode(got.body).message)
    c = send("DELETE", "/connectors/x")
    forward "bogus"
    assert.matches("^Error trying to forward REST request: Not a URL", golden.decode(answer(c).body).message)
  end)

  it("has fifty of them out at once", function()
    local conns = {}
    for i = 1, 50 do conns[i] = send("PUT", "/connectors/c" .. i .. "/config", '{"a":"' .. i .. '"}') end
    for _ = 1, 50 do forward(base .. "/~json/200/") end
    for i = 1, 50 do
      local seen = golden.decode(answer(conns[i]).body)
      assert.same({ "PUT /~json/200/connectors/c" .. i .. "/config?forward=true", '{"a":"' .. i .. '"}' }, { seen.line, seen.body })
    end
  end)

  it("does not mind clients that leave", function()
    for _ = 1, 10 do
      local c = send("DELETE", "/connectors/x")
      local req = request()
      c:close()
      req.forward_url = ffi.C.strdup(base .. "/~slow/0.1/")
      stand_in.srv_answer(req)
    end
    local c = send("DELETE", "/connectors/x")
    forward(base .. "/~status/204/")
    assert.equal(204, answer(c).status)
  end)

  it("answers all when it stops, whoever has them", function()
    local conns, late = {}, {}
    for i = 1, 10 do
      conns[i] = send("DELETE", "/connectors/gone" .. i)
      forward(base .. "/~slow/30/")
    end
    for i = 11, 20 do
      conns[i] = send("DELETE", "/connectors/x")
      late[#late + 1] = request()
    end
    proc.wait_for("requests at the other worker", function()
      return select(2, (proc.read(log) or ""):gsub("slow/30/connectors/gone", "")) == 10
    end)
    stop(function()
      for i, req in ipairs(late) do -- an answer, or a worker to send it to: nobody waits for either any more
        if i % 2 == 0 then req.status = 204 else req.forward_url = ffi.C.strdup(base .. "/") end
        stand_in.srv_answer(req)
      end
    end)
    for i = 1, 20 do
      local got = answer(conns[i])
      assert.same({ 500, "Worker is shutting down" }, { got.status, golden.decode(got.body).message })
    end
  end)

  it("takes levels for the whole cluster, after its end, too", function()
    stand_in.srv_logger_level(rest, "spec.x", "debug")
    stand_in.srv_logger_level(rest, "spec.y", "bogus")
    assert.equal("DEBUG", golden.decode(answer(send("GET", "/admin/loggers/spec.x")).body).level)
    assert.equal(404, answer(send("GET", "/admin/loggers/spec.y")).status)
    stop(function() stand_in.srv_logger_level(rest, "spec.x", "info") end)
  end)
end)
