-- rest_spec.lua: core/rest without a server: paths, routing, media types, bodies, answers.
local core = require "spec.support.core"
local golden = require "spec.support.golden"
local rest = require "spec.support.rest_call"
local with = require "spec.support.with"
local C, ffi = rest.C, rest.ffi

local JSON = { ["Content-Type"] = "application/json", Host = "127.0.0.1:8083" }
local ctx = rest.context()

local function call(...) return rest.call(ctx, ...) end

-- Memory that lc_request_free() may free.
ffi.cdef "void *calloc(size_t n, size_t size); char *strdup(const char *s); void free(void *p);"
local function new(ctype, n)
  return ffi.cast(ctype .. " *", ffi.C.calloc(n or 1, ffi.sizeof(ctype)))
end
local function dup(s) return ffi.C.strdup(s) end

local function info(name, config, ntasks, kind)
  local i = new "lc_connector_info_t"
  i.name, i.ntasks, i.type = dup(name), ntasks or 0, kind or "source"
  i.config = C.lc_props_new()
  for _, kv in ipairs(config or {}) do C.lc_props_set(i.config, kv[1], kv[2]) end
  return i
end

local function status(st, task, state, version, trace)
  st.task, st.state, st.worker_id = task, state, dup "w:1"
  st.version = version and dup(version) or nil
  st.trace = trace and dup(trace) or nil
end

describe("paths", function()
  local function refused(path)
    local bad = ffi.new "bool[1]"
    local title = C.lc_http_path_refused(path, bad)
    return title ~= nil and ffi.string(title) or nil, bad[0]
  end

  for path, title in pairs {
    ["//connectors"] = "Ambiguous URI empty segment",
    ["/connectors//one"] = "Ambiguous URI empty segment",
    ["/connectors/a%2Fb"] = "Ambiguous URI path separator",
    ["/connectors/a%2fb"] = "Ambiguous URI path separator",
    ["/connectors/a%252Fb"] = "Ambiguous URI path encoding",
    ["/connectors/a%25b"] = "Ambiguous URI path encoding",
    ["/connectors/a%5Cb"] = "Suspicious Path Character",
    ["/connectors/%09x"] = "Suspicious Path Character",
    ["/connectors/a%7Fb"] = "Suspicious Path Character",
    ["/connectors/%2E%2E/config"] = "Ambiguous URI path segment",
    ["/connectors/%2e"] = "Ambiguous URI path segment",
    ["/connectors/.%2e"] = "Ambiguous URI path segment",
    ["/connectors/%FF"] = "Bad UTF-8 encoding",
    ["/connectors/\228\184\173"] = "Illegal Path Character",
  } do
    it("refuses " .. path, function()
      local got, bad = refused(path)
      assert.equal(title, got)
      assert.is_false(bad)
    end)
  end

  for _, path in ipairs { "/a%", "/a%z", "/a%zz", "/a%00b", "/a b", "/a\1b", "x" } do
    it("cannot read " .. path, function()
      local got, bad = refused(path)
      assert.equal("Bad Request", got)
      assert.is_true(bad)
    end)
  end

  for _, path in ipairs { "/", "/connectors/", "/connectors/..", "/connectors/./x", "/connectors/...", "/a;b=c",
    "/connectors/%E6%97%A5", "/connectors/a%2Bb", "/connectors/a%3Bb", "/connectors/%2E%2E%2E" } do
    it("takes " .. path, function() assert.is_nil((refused(path))) end)
  end

  it("cuts scheme, authority, query and fragment off", function()
    for uri, path in pairs { ["/a?b=/c"] = "/a", ["/#x"] = "/", ["http://h:1/a?x"] = "/a", ["http://h"] = "/",
      ["/a/http://b"] = "/a/http://b" } do
      local b = ffi.new "lc_buf_t"
      C.lc_http_path(uri, b)
      assert.equal(path, ffi.string(b.p, b.len))
      C.lc_buf_free(b)
    end
  end)

  it("encodes names as UriBuilder does", function()
    for name, want in pairs { ["a b"] = "a%20b", ["a/b"] = "a/b", ["a%2Fb"] = "a%2Fb", ["a%b"] = "a%25b",
      ["a|b"] = "a%7Cb", ["<b>"] = "%3Cb%3E", ["a'b"] = "a'b", ["a\\b"] = "a%5Cb", ["\195\188"] = "%C3%BC",
      ["a{b"] = "a%7Bb" } do
      local b, v = ffi.new "lc_buf_t", ffi.new "lc_buf_t"
      assert.equal(0, C.lc_http_encode_path(name, b, v))
      assert.equal(want, ffi.string(b.p, b.len))
      C.lc_buf_free(b)
    end
    local b, v = ffi.new "lc_buf_t", ffi.new "lc_buf_t"
    assert.equal(-1, C.lc_http_encode_path("${x}", b, v))
    assert.equal("x", ffi.string(v.p, v.len))
    C.lc_buf_free(b)
    C.lc_buf_free(v)
  end)

  it("reads query parameters: first value, plus as blank, without a value", function()
    local b = ffi.new "lc_buf_t"
    local function query(uri, name)
      return C.lc_http_query(uri, name, b) > 0 and ffi.string(b.p, b.len) or nil
    end
    assert.equal("1", query("/x?a=1&a=2", "a"))
    assert.equal("a b&", query("/x?q=a+b%26#f", "q"))
    assert.equal("", query("/x?q", "q"))
    assert.is_nil(query("/x?Q=1", "q"))
    assert.is_nil(query("/x", "q"))
    C.lc_buf_free(b)
  end)
end)

describe("routing", function()
  it("answers 404 without a content type", function()
    for _, path in ipairs { "/nosuch", "/Connectors", "/connectors/x/bogus", "/connectors/./one",
      "/connectors/x/tasks/0", "/connector-plugins/x", "/admin" } do
      local a = call("GET", path)
      assert.equal(404, a.status, path)
      assert.is_nil(a.type)
      assert.equal('{"error_code":404,"message":"HTTP 404 Not Found"}', a.body)
    end
  end)

  it("answers 405 with Allow", function()
    local a = call("POST", "/connectors/x/status", JSON, "{}")
    assert.equal(405, a.status)
    assert.is_nil(a.type)
    assert.equal("HEAD, GET, OPTIONS", a.headers.Allow)
    assert.equal(405, call("FOO", "/connectors").status)
    assert.equal(405, call("DELETE", "/connectors/").status)
  end)

  it("a task that is no number is a 404 with a content type", function()
    for _, id in ipairs { "abc", "99999999999", "1x", "0x1" } do
      local a = call("GET", "/connectors/x/tasks/" .. id .. "/status")
      assert.equal(404, a.status)
      assert.equal("application/json", a.type)
    end
    local a, c = call("GET", "/connectors/x/tasks/-1/status")
    assert.is_nil(a)
    assert.equal(-1, c.call.req.task)
  end)

  it("answers OPTIONS in text, and to WADL with nothing", function()
    local a = call("OPTIONS", "/connectors")
    assert.equal(200, a.status)
    assert.equal("text/plain", a.type)
    assert.equal(a.headers.Allow, a.body)
    a = call("OPTIONS", "/connectors", { Accept = "application/vnd.sun.wadl+xml" })
    assert.equal("application/vnd.sun.wadl+xml", a.type)
    assert.equal("", a.body)
  end)

  it("decodes names, strips matrix parameters and one trailing slash", function()
    for path, name in pairs { ["/connectors/a%20b"] = "a b", ["/connectors/a+b"] = "a+b", ["/connectors/a;b=c"] = "a",
      ["/connectors/a%3Bb"] = "a;b", ["/connectors/.."] = "..", ["/connectors/one/"] = "one" } do
      local a, c = call("GET", path)
      assert.is_nil(a)
      assert.equal(name, ffi.string(c.call.req.connector))
      assert.equal(ffi.C.LC_REQ_INFO, c.call.req.op)
    end
  end)

  it("HEAD is a GET", function()
    assert.equal(200, call("HEAD", "/").status)
    local _, c = call("HEAD", "/connectors")
    assert.equal(ffi.C.LC_REQ_LIST, c.call.req.op)
  end)

  it("serves the page of an empty server until the worker is there", function()
    local a = rest.call(rest.context { serving = false }, "GET", "/health?timeout=1", { Host = "h:1" })
    assert.equal(404, a.status)
    assert.equal("text/html;charset=iso-8859-1", a.type)
    assert.truthy(a.body:find("<td>http://h:1/health?timeout=1</td>", 1, true))
    a = rest.call(rest.context { serving = false }, "PUT", "/x")
    assert.equal("", a.body)
  end)

  it("refuses long URIs", function()
    local a = call("GET", "/" .. ("a"):rep(9000))
    assert.equal(414, a.status)
    assert.is_true(a.close)
  end)

  it("escapes what it repeats in a page", function()
    local a = rest.call(rest.context { serving = false }, "GET", "/<script>'\"&", { Host = "h" })
    assert.is_nil(a.body:find("<script>", 1, true))
    assert.truthy(a.body:find("&lt;script&gt;&apos;&quot;&amp;", 1, true))
  end)

  it("has no /admin when it is switched off", function()
    assert.equal(404, rest.call(rest.context { admin = false }, "GET", "/admin/loggers").status)
    assert.equal(200, call("GET", "/admin/loggers").status)
  end)
end)

describe("media types", function()
  it("Accept", function()
    for accept, want in pairs { ["*/*"] = "application/json", ["application/*"] = "application/json",
      ["application/json; charset=utf-8"] = "application/json;charset=utf-8",
      ["text/html,application/xml;q=0.9,*/*;q=0.8"] = "application/json", [""] = "application/json",
      ["application/json;q=0.5"] = "application/json", ["text/plain"] = false, ["garbage"] = false,
      ["application/json;q=0"] = false, ["text/plain;q=0.5"] = false } do
      local a = call("GET", "/", { Accept = accept })
      if want then
        assert.equal(want, a.type)
      else
        assert.equal(406, a.status, accept)
        assert.is_nil(a.type)
      end
    end
  end)

  it("Content-Type", function()
    for given, want in pairs { ["text/plain"] = 415, ["application/vnd.api+json"] = 415, ["text/json"] = 415,
      ["garbage"] = 400, ["APPLICATION/JSON"] = 500, ["application/json; charset=utf-8"] = 500 } do
      local a = call("POST", "/connectors", { ["Content-Type"] = given }, "{}")
      assert.equal(want, a.status, given)
    end
    local a = call("POST", "/connectors", {}, "{}")
    assert.equal(415, a.status)
    assert.equal("application/json", a.type)
    assert.equal(415, call("GET", "/connectors", { ["Content-Type"] = "text/plain" }).status)
  end)
end)

describe("bodies", function()
  local function put(body)
    local a, c = call("PUT", "/connectors/n/config", JSON, body)
    if a then return a end
    return core.table(c.call.req.config)
  end

  it("coerces scalars to their literal text, keeps null", function()
    assert.same({ a = "1.50", b = "1E3", c = "-0", d = "true", e = false, f = "1e400", name = "n",
      g = "123456789012345678901234567890" },
      put '{"a":1.50,"b":1E3,"c":-0,"d":true,"e":null,"f":1e400,"g":123456789012345678901234567890}')
  end)

  it("the last of equal keys wins, a byte order mark is skipped", function()
    assert.equal("2", put('\239\187\191{"a":1,"a":2}').a)
  end)

  it("refuses what is not a map of scalars with 500", function()
    for _, body in ipairs { '{"a":{}}', '{"a":[1]}', "[]", '"s"', "1", "x", '{"a":1', '{"a":1}}', "null", "", "{'a':1}" } do
      local a = put(body)
      assert.equal(500, a.status, body)
      assert.equal("application/json", a.type)
    end
  end)

  it("refuses NUL characters, which it could not keep", function()
    assert.equal(400, put('{"a":"x\\u0000y"}').status)
    assert.equal(400, put('{"a\\u0000":"x"}').status)
  end)

  it("adds the name, or compares it", function()
    assert.equal("n", put('{"name":null}').name)
    assert.equal("n", put('{"name":"n"}').name)
    local a = put '{"name":"m"}'
    assert.equal(400, a.status)
    assert.equal([[{"error_code":400,"message":"Connector name configuration (m) doesn't match connector name in the URL (n)"}]], a.body)
  end)

  it("reads create requests: name trimmed, state in any case", function()
    local a, c = call("POST", "/connectors?forward=false", JSON, '{"config":{},"initial_state":"Stopped","name":"  x "}')
    assert.is_nil(a)
    local req = c.call.req
    assert.equal("x", ffi.string(req.connector))
    assert.equal(ffi.C.LC_TARGET_STOPPED, req.initial_state)
    assert.equal(0, req.forward)
    a, c = call("POST", "/connectors", JSON, '{"config":{"a":1},"name":"x","initial_state":null}')
    assert.is_nil(a)
    assert.equal(ffi.C.LC_TARGET_NONE, c.call.req.initial_state)
    assert.equal(-1, c.call.req.forward)
  end)

  it("refuses unknown properties and states", function()
    for _, body in ipairs { '{"name":"a","config":{},"bogus":1}', '{"name":"a","config":{},"initial_state":""}',
      '{"name":"a","config":{},"initial_state":" STOPPED"}', '{"name":"a","config":{},"initial_state":0}',
      '{"name":{},"config":{}}', "{}", '{"name":"a","config":null}' } do
      assert.equal(500, call("POST", "/connectors", JSON, body).status, body)
    end
  end)

  it("PATCH keeps nulls apart", function()
    local _, c = call("PATCH", "/connectors/n/config", JSON, '{"a":null}')
    assert.same({ a = false }, core.table(c.call.req.config))
  end)

  it("a 100,000 deep document is an error, not a crash", function()
    assert.equal(500, put(("["):rep(100000)).status)
    assert.equal(500, put(('{"a":'):rep(100000)).status)
  end)
end)

describe("answers", function()
  it("info: Location and 201 for what is new", function()
    local a = call("POST", "/connectors", JSON, '{"name":"a b","config":{"x":1}}', function(req)
      req.status, req.created = 201, true
      req.info = info("a b", { { "x", "1" }, { "y", nil } })
    end)
    assert.equal(201, a.status)
    assert.equal("http://127.0.0.1:8083/connectors/a%20b", a.headers.Location)
    assert.equal('{"name":"a b","config":{"x":"1","y":null},"tasks":[],"type":"source"}', a.body)
    a = call("PUT", "/connectors/x/config", JSON, "{}", function(req)
      req.status = 200
      req.info = info("x", {}, 2, "sink")
    end)
    assert.equal(200, a.status)
    assert.is_nil(a.headers.Location)
    assert.equal('{"name":"x","config":{},"tasks":[{"connector":"x","task":0},{"connector":"x","task":1}],"type":"sink"}', a.body)
  end)

  it("status: order of fields, null and undefined versions, empty traces", function()
    local a = call("GET", "/connectors/x/status", nil, nil, function(req)
      req.status = 200
      req.state = new "lc_connector_state_t"
      req.state.name, req.state.ntasks = dup "x", 3
      status(req.state.connector, -1, ffi.C.LC_PAUSED, "undefined", "")
      req.state.tasks = new("lc_status_t", 3)
      status(req.state.tasks[0], 0, ffi.C.LC_RUNNING, "4.3.1")
      status(req.state.tasks[1], 1, ffi.C.LC_FAILED, "4.3.1", "boom\n\tat x")
      status(req.state.tasks[2], 2, ffi.C.LC_UNASSIGNED)
    end)
    assert.equal('{"name":"x","connector":{"state":"PAUSED","worker_id":"w:1"},"tasks":[' ..
      '{"id":0,"state":"RUNNING","worker_id":"w:1","version":"4.3.1"},' ..
      '{"id":1,"state":"FAILED","worker_id":"w:1","version":"4.3.1","trace":"boom\\n\\tat x"},' ..
      '{"id":2,"state":"UNASSIGNED","worker_id":"w:1","version":null}],"type":"unknown"}', a.body)
  end)

  it("list: names, or a map when expand is there at all", function()
    local function names(req)
      req.status = 200
      C.lc_strv_add(req.names, "one")
    end
    assert.equal('["one"]', call("GET", "/connectors", nil, nil, names).body)
    for _, q in ipairs { "expand=bogus", "expand", "expand=STATUS", "expand=status,info" } do
      assert.equal('{"one":{}}', call("GET", "/connectors?" .. q, nil, nil, names).body, q)
    end
    local a = call("GET", "/connectors?expand=info&expand=status&expand=info", nil, nil, function(req)
      assert.is_true(req.want_info and req.want_status)
      names(req)
      C.lc_strv_add(req.names, "no-status-yet")
      req.ninfos = 2
      req.info = new("lc_connector_info_t", 2)
      for n, name in ipairs { "one", "no-status-yet" } do
        local i = info(name, {})
        req.info[n - 1] = i[0]
        ffi.C.free(i)
      end
      req.state = new("lc_connector_state_t", 2)
      req.state[0].name = dup "one"
      status(req.state[0].connector, -1, ffi.C.LC_RUNNING, "1")
    end)
    assert.equal('{"one":{"info":{"name":"one","config":{},"tasks":[],"type":"source"},"status":{"name":"one",' ..
      '"connector":{"state":"RUNNING","worker_id":"w:1","version":"1"},"tasks":[],"type":"unknown"}}}', a.body)
  end)

  it("errors of the herder, with and without a text", function()
    local a = call("GET", "/connectors/x", nil, nil, function(req) req.status, req.error = 404, dup 'no "x"' end)
    assert.equal(404, a.status)
    assert.equal('{"error_code":404,"message":"no \\"x\\""}', a.body)
    a = call("GET", "/connectors/x", nil, nil, function(req) req.status = 500 end)
    assert.equal('{"error_code":500,"message":null}', a.body)
  end)

  it("no body for 204 and 202", function()
    for _, c in ipairs { { "DELETE", "/connectors/x", 204 }, { "PUT", "/connectors/x/pause", 202 },
      { "PUT", "/connectors/x/stop", 204 }, { "POST", "/connectors/x/restart", 204 },
      { "PUT", "/connectors/x/topics/reset", 202 } } do
      local a = call(c[1], c[2], nil, nil, function(req) req.status = 200 end)
      assert.equal(c[3], a.status)
      assert.equal("", a.body)
      assert.is_nil(a.type)
    end
  end)

  it("restart: flags, and the plan", function()
    local a = call("POST", "/connectors/x/restart?includeTasks=TRUE&onlyFailed=maybe", nil, nil, function(req)
      assert.is_true(req.include_tasks)
      assert.is_false(req.only_failed)
      req.status = 202
      req.state = new "lc_connector_state_t"
      req.state.name = dup "x"
      status(req.state.connector, -1, ffi.C.LC_RESTARTING, "1")
    end)
    assert.equal(202, a.status)
    assert.equal("application/json", a.type)
    local _, c = call("POST", "/connectors/x/restart?includetasks=true&onlyFailed=")
    assert.is_false(c.call.req.include_tasks or c.call.req.only_failed)
  end)

  it("topics, and their switches", function()
    local a = call("GET", "/connectors/x/topics", nil, nil, function(req)
      req.status = 200
      C.lc_strv_add(req.names, "t")
    end)
    assert.equal('{"x":{"topics":["t"]}}', a.body)
    assert.equal('{"error_code":403,"message":"Topic tracking is disabled."}',
      rest.call(rest.context { topic_tracking = false }, "GET", "/connectors/x/topics").body)
    assert.equal('{"error_code":403,"message":"Topic tracking reset is disabled."}',
      rest.call(rest.context { topic_reset = false }, "PUT", "/connectors/x/topics/reset").body)
  end)

  it("what takes too long", function()
    local a = call("GET", "/connectors/x", nil, nil, "late")
    assert.equal(500, a.status)
    assert.equal('{"error_code":500,"message":"Request timed out. The worker is currently busy, which began at NOW."}', a.body)
    a = call("PUT", "/connector-plugins/x/config/validate", JSON, '{"connector.class":"x"}', "late")
    assert.equal('{"error_code":500,"message":"Request timed out. The worker is currently busy, which began at NOW"}', a.body)
    a = call("GET", "/health", nil, nil, "late")
    assert.equal(503, a.status)
    assert.truthy(a.body:find('"status":"starting","message":"Worker is still starting up. The worker', 1, true))
    local ready = rest.context()
    ready.ready = true
    a = rest.call(ready, "GET", "/health", nil, nil, "late")
    assert.equal(500, a.status)
    assert.truthy(a.body:find('"unhealthy"', 1, true))
  end)

  it("health is held while connector files are created", function()
    local a = rest.call(rest.context { starting = true }, "GET", "/health")
    assert.equal(503, a.status)
    assert.equal('{"status":"starting","message":"Worker is still starting up."}', a.body)
  end)

  it("what this version cannot do is 501", function()
    assert.equal(501, call("PATCH", "/connectors/x/offsets", JSON, "{}").status)
    assert.equal(501, call("DELETE", "/connectors/x/offsets").status)
  end)

  it("requests between workers go to the herder with what they are verified by", function()
    local signed = { ["Content-Type"] = "application/json", ["X-Connect-Authorization"] = "c2ln",
      ["X-Connect-Request-Signature-Algorithm"] = "HmacSHA256" }
    local body = '[ {"a":"1","b":null}, {"a":2} ] '
    local _, c = call("POST", "/connectors/x/tasks", signed, body)
    local req = c.call.req
    assert.equal(ffi.C.LC_REQ_PUT_TASKS, req.op)
    assert.same({ "x", "c2ln", "HmacSHA256", body }, { ffi.string(req.connector), ffi.string(req.signature),
      ffi.string(req.signature_algorithm), ffi.string(req.body, req.body_len) })
    assert.equal(2, req.ntasks)
    assert.same({ a = "1", b = false }, core.table(req.tasks[0]))
    assert.same({ a = "2" }, core.table(req.tasks[1]))
    _, c = call("PUT", "/connectors/x/fence")
    req = c.call.req
    assert.equal(ffi.C.LC_REQ_FENCE, req.op)
    assert.is_true(req.signature == nil and req.signature_algorithm == nil)
    assert.equal(0, tonumber(req.body_len))
    _, c = call("POST", "/connectors/x/tasks", JSON, "[]")
    assert.equal(0, c.call.req.ntasks)
    for _, bad in ipairs { '{"x":1}', '[{"x":1},2]', '[{"x":{}}]', "[", "[null]", "", "null" } do
      assert.equal(500, call("POST", "/connectors/x/tasks", signed, bad).status)
    end
    local answer = rest.call(ctx, "POST", "/connectors/x/tasks", signed, "[]", function(r) r.status = 204 end)
    assert.same({ 204, "" }, { answer.status, answer.body })
  end)

  it("standalone workers have no such requests", function()
    local alone = rest.context { distributed = false }
    assert.equal("Kafka Connect in standalone mode does not support externally setting task configurations.",
      rest.call(alone, "POST", "/connectors/x/tasks", JSON, '[{"a":"b"}]').body:match '"message":"(.-)"')
    assert.equal(500, rest.call(alone, "PUT", "/connectors/x/fence").status)
  end)

  it("says when to try again", function()
    local a = call("DELETE", "/connectors/x", nil, nil, function(req)
      req.status, req.retry_after_s, req.error = 409, 2, dup "later"
    end)
    assert.same({ 409, "2" }, { a.status, a.headers["Retry-After"] })
    assert.is_nil(call("DELETE", "/connectors/x", nil, nil, function(req) req.status = 409 end).headers["Retry-After"])
  end)

  it("validation asks for the class in the body that the path names", function()
    local _, c = call("PUT", "/connector-plugins/SourceConnector/config/validate", JSON, '{"connector.class":"FileStreamSource"}')
    assert.equal(ffi.C.LC_REQ_VALIDATE, c.call.req.op)
    assert.equal(400, call("PUT", "/connector-plugins/a.FileStreamSource/config/validate", JSON,
      '{"connector.class":"FileStreamSource"}').status)
  end)
end)

describe("loggers", function()
  local own = rest.context()
  local function level(method, name, body) return rest.call(own, method, "/admin/loggers/" .. name, JSON, body) end

  it("are set below a name, and all by root", function()
    assert.equal('["a.b"]', level("PUT", "a.b", '{"level":"warn"}').body)
    assert.equal('["a","a.b"]', level("PUT", "a", '{"level":" ERROR"}').body)
    assert.equal("[]", level("PUT", "a", '{"level":"ERROR"}').body)
    assert.truthy(level("GET", "a.b").body:find '^{"level":"ERROR","last_modified":%d+}$')
    assert.truthy(level("PUT", "ROOT", '{"level":"INFO"}').body:find('"a","a.b"', 1, true))
    assert.equal('{"level":"INFO","last_modified":null}', level("GET", "root").body)
  end)

  it("refuse what is no level", function()
    assert.equal(404, level("PUT", "root", '{"level":"BOGUS"}').status)
    assert.equal(400, level("PUT", "root", "{}").status)
    assert.equal(400, level("PUT", "root", '{"level":null}').status)
    assert.equal(500, level("PUT", "root", '{"level":""}').status)
    assert.equal(500, level("PUT", "root", "").status)
    assert.equal(404, level("GET", "no.such").status)
  end)
end)

describe("levels of the whole cluster", function()
  it("are the herder's in a cluster, checked before", function()
    for _, scope in ipairs { "cluster", "CLUSTER" } do
      local a, c = rest.call(ctx, "PUT", "/admin/loggers/x.y?scope=" .. scope, JSON, '{"level":"debug"}')
      assert.is_nil(a)
      assert.equal(ffi.C.LC_REQ_LOGGER, c.call.req.op)
      assert.same({ "x.y", "debug" }, { ffi.string(c.call.req.connector), ffi.string(c.call.req.level) })
    end
    local a = call("PUT", "/admin/loggers/x?scope=cluster", JSON, '{"level":"debug"}', function(req) req.status = 204 end)
    assert.same({ 204, "" }, { a.status, a.body })
    assert.is_nil(a.type)
    assert.equal(404, call("GET", "/admin/loggers/x.y").status)
    assert.equal(404, call("PUT", "/admin/loggers/x?scope=cluster", JSON, '{"level":"BOGUS"}').status)
    assert.equal(400, call("PUT", "/admin/loggers/x?scope=cluster", JSON, "{}").status)
  end)

  it("are set at once by a standalone worker", function()
    local alone = rest.context { distributed = false }
    local a = rest.call(alone, "PUT", "/admin/loggers/x.y?scope=cluster", JSON, '{"level":"debug"}')
    assert.same({ 204, "" }, { a.status, a.body })
    assert.truthy(rest.call(alone, "GET", "/admin/loggers/x.y").body:find('"level":"DEBUG"', 1, true))
  end)
end)

describe("forwarding", function()
  local buffer = ffi.typeof "lc_buf_t"

  --- What would be sent: method, URL, headers, body, timeout.
  local function sent(method, uri, headers, body, change)
    local _, c = call(method, uri, headers, body)
    local req = c.call.req
    if change then change(req) end
    if req.forward_url == nil then req.forward_url = dup "http://other:8083/" end
    local bytes = buffer()
    C.lc_buf_add(bytes, body or "", #(body or ""))
    local out = ffi.gc(C.lc_rest_forward(c.call, req, bytes), C.lc_http_call_free)
    C.lc_buf_free(bytes)
    local list = {}
    for i = 0, tonumber(out.headers.n) - 1 do list[i + 1] = ffi.string(out.headers.v[i]) end
    return {
      line = ffi.string(out.method) .. " " .. ffi.string(out.url), headers = list,
      body = out.has_body and ffi.string(out.body.p, out.body.len) or nil, timeout = out.timeout_ms,
    }
  end

  it("keeps the path as it came, and counts the hops", function()
    local config = '{"connector.class":"x"}'
    for uri, url in pairs {
      ["/connectors/a%2Bb;x=1/config"] = "/connectors/a%2Bb;x=1/config?forward=true",
      ["/connectors/../config?x=y"] = "/connectors/../config?forward=true",
      ["/connectors/%C3%A4%20/config/?forward="] = "/connectors/%C3%A4%20/config/?forward=true",
      ["/connectors/a/config?forward=true&includeTasks=true"] = "/connectors/a/config?forward=false",
      ["http://me:1/connectors/a/config#x"] = "/connectors/a/config?forward=true",
    } do
      assert.equal("PUT http://other:8083" .. url, sent("PUT", uri, JSON, config).line)
    end
    assert.equal("POST http://other:8083/connectors?forward=true",
      sent("POST", "/connectors", JSON, '{"name":"a","config":{}}').line)
    assert.equal("DELETE http://other:8083/base/connectors/a?forward=true", sent("DELETE", "/connectors/a", nil, nil,
      function(req) req.forward_url = dup "http://other:8083/base" end).line)
  end)

  it("restart takes its options along", function()
    assert.equal("POST http://other:8083/connectors/a/restart?forward=true&includeTasks=true&onlyFailed=false",
      sent("POST", "/connectors/a/restart?includeTasks=TRUE").line)
    assert.equal("POST http://other:8083/connectors/a/tasks/3/restart?forward=false",
      sent("POST", "/connectors/a/tasks/3/restart?forward=true").line)
  end)

  it("sends Authorization and the body's bytes, but no signature", function()
    local body = ' {"connector.class" : "x", "n":1.50} '
    local s = sent("PUT", "/connectors/a/config", { ["Content-Type"] = "application/json; charset=utf-8",
      Authorization = "Basic eDp5", ["X-Connect-Authorization"] = "x",
      ["X-Connect-Request-Signature-Algorithm"] = "y" }, body)
    assert.same({ "Accept: application/json", "Authorization: Basic eDp5", "Content-Type: application/json" }, s.headers)
    assert.equal(body, s.body)
    s = sent("PUT", "/connectors/a/stop")
    assert.same({ "Accept: application/json" }, s.headers)
    assert.is_nil(s.body)
    assert.is_nil(sent("DELETE", "/connectors/a", JSON, "ignored").body)
  end)

  it("has the time that is left", function()
    local function timeout(ms)
      return sent("DELETE", "/connectors/a", nil, nil, function(req) req.deadline_ms = C.lc_now_ms() + ms end).timeout
    end
    assert.equal(1, timeout(-5000))
    assert.is_true(timeout(5000) <= 5000 and timeout(5000) > 1000)
    assert.equal(90000, timeout(1000000))
  end)

  --- The answer that is made of another worker's `t`.
  local function made(method, uri, t, body)
    local headers = { Host = "me:1", ["Content-Type"] = body and JSON["Content-Type"] }
    local _, c = call(method, uri, headers, body)
    local answer = ffi.gc(C.lc_http_call_new(method, "http://other:8083/x"), C.lc_http_call_free)
    answer.status, answer.retry_after_s = t.status or 0, t.retry or 0
    C.lc_buf_add(answer.answer, t.body or "", #(t.body or ""))
    if t.kind then C.lc_err_set_(answer.err, "spec", 1, t.kind, t.code or 0, nil, "%s", ffi.cast("const char *", t.msg)) end
    C.lc_rest_forwarded(ctx.ctx, c.call, answer)
    return rest.answer_of(c.call)
  end
  local function message(a) return a.body:match '"message":"(.*)"}$' end

  it("passes successes on, and locates what is new here", function()
    local text = '{"name":"a b","config":{"x":1.50},"tasks":[],"type":"source"}'
    local create = '{"name":"a b","config":{}}'
    local a = made("POST", "/connectors", { status = 201, body = text }, create)
    assert.same({ 201, text, "application/json", "http://me:1/connectors/a%20b" }, { a.status, a.body, a.type, a.headers.Location })
    a = made("PUT", "/connectors/a%20b/config", { status = 201, body = text }, "{}")
    assert.equal("http://me:1/connectors/a%20b", a.headers.Location)
    a = made("PUT", "/connectors/a%20b/config", { status = 200, body = text }, "{}")
    assert.same({ 200, text }, { a.status, a.body })
    assert.is_nil(a.headers.Location)
    a = made("DELETE", "/connectors/a", { status = 204 })
    assert.same({ 204, "" }, { a.status, a.body })
    assert.is_nil(a.type)
    a = made("POST", "/connectors/a/restart", { status = 204 })
    assert.same({ 204, "" }, { a.status, a.body })
    a = made("POST", "/connectors/a/restart?includeTasks=true", { status = 202, body = '{"name":"a"}' })
    assert.same({ 202, '{"name":"a"}', "application/json" }, { a.status, a.body, a.type })
  end)

  it("passes errors on", function()
    local a = made("DELETE", "/connectors/a", { status = 404, body = '{"error_code":404,"message":"Connector \\"a\\" not found"}' })
    assert.same({ 404, '{"error_code":404,"message":"Connector \\"a\\" not found"}', "application/json" }, { a.status, a.body, a.type })
    a = made("DELETE", "/connectors/a", { status = 409, retry = 4, body = '{"error_code":40901,"message":null}' })
    assert.same({ 409, '{"error_code":40901,"message":null}', "4" }, { a.status, a.body, a.headers["Retry-After"] })
    for _, text in ipairs { "", "<html>", "[]", '{"message":"x"}', '{"error_code":"404","message":"x"}', '{"error_code":404}', "null" } do
      a = made("DELETE", "/connectors/a", { status = 404, body = text })
      assert.same({ 500, "Unexpected status code when handling forwarded request: 404" }, { a.status, message(a) })
    end
  end)

  it("has Connect's words for the rest", function()
    local a = made("DELETE", "/connectors/a", { status = 302 })
    assert.same({ 500, "Unexpected status code when handling forwarded request: 302" }, { a.status, message(a) })
    a = made("DELETE", "/connectors/a", { kind = ffi.C.LC_RETRIABLE, msg = "other:8083: refused" })
    assert.same({ 500, "IO Error trying to forward REST request: other:8083: refused" }, { a.status, message(a) })
    a = made("DELETE", "/connectors/a", { kind = ffi.C.LC_FATAL, msg = "Not a URL" })
    assert.same({ 500, "Error trying to forward REST request: Not a URL" }, { a.status, message(a) })
    a = made("PUT", "/connectors/a/config", { status = 200, body = "" }, "{}")
    assert.same({ 500, "IO Error trying to forward REST request: No content to map due to end-of-input" }, { a.status, message(a) })
    a = made("PUT", "/connectors/a/config", { status = 200, body = "<html>" }, "{}")
    assert.equal(500, a.status)
    assert.matches("^IO Error trying to forward REST request: ", message(a))
  end)

  it("needs a client", function()
    local a = call("DELETE", "/connectors/x", nil, nil, function(req) req.forward_url = dup "http://other:1/" end)
    assert.equal(500, a.status)
  end)
end)

describe("headers of every answer", function()
  local own = rest.context { origins = "http://x.example", methods = "GET,POST",
    headers = "set X-Frame-Options: DENY, add Cache-Control: no-cache" }

  it("CORS", function()
    local a = rest.call(own, "GET", "/", { Origin = "http://x.example" })
    assert.equal("Origin", a.headers.Vary)
    assert.equal("http://x.example", a.headers["Access-Control-Allow-Origin"])
    assert.is_nil(rest.call(own, "GET", "/", { Origin = "http://y" }).headers["Access-Control-Allow-Origin"])
    a = rest.call(own, "OPTIONS", "/connectors", { Origin = "http://x.example",
      ["Access-Control-Request-Method"] = "POST" })
    assert.equal("GET,POST", a.headers["Access-Control-Allow-Methods"])
  end)

  it("response.http.headers.config", function()
    assert.equal("DENY", rest.call(own, "GET", "/nosuch").headers["X-Frame-Options"])
    assert.equal("no-cache", rest.call(own, "GET", "/").headers["Cache-Control"])
    local err = core.err()
    assert.is_true(C.lc_filters_new(nil, nil, "bogus", err) == nil)
    assert.equal("Invalid format of header config 'bogus'. Expected: '[action] [header name]:[header value]'", core.msg(err))
  end)
end)

-- What is answered without asking the herder is compared with the recordings; for the rest, that it is asked.
describe("recordings", function()
  local http = require "spec.support.http"

  local function answered_by_routing(e)
    return e.status == 404 and (e.content_type == golden.null or e.response_body.message == "HTTP 404 Not Found")
      or e.status == 405 or e.status == 406 or e.status == 415
  end

  for _, file in ipairs { "rest/01-root-and-generic.json", "rest/02-create.json", "rest/03-names.json",
    "rest/04-config-put-patch.json", "rest/05-get-status-tasks-topics.json", "rest/06-lifecycle.json" } do
    local doc = golden.document(file)
    for _, e in ipairs(doc and doc.exchanges or {}) do
      it(file .. " " .. e.name, function()
        local body = e.request_raw or e.request_body and http.encode(e.request_body) or ""
        if type(body) == "table" then return end -- base64
        if e.path:find "/tasks$" and body == "{}" then body = "[]" end -- an empty table says neither
        local headers = with({ Host = "127.0.0.1:18083" }, e.request_headers)
        local a = rest.call(ctx, e.method, e.path, headers, body)
        local jetty = e.response_headers and e.response_headers["Cache-Control"] == "must-revalidate,no-cache,no-store"
        if not a then
          assert.is_false(answered_by_routing(e))
          assert.is_not_true(jetty)
          return
        end
        assert.equal(e.status, a.status)
        assert.equal(e.content_type ~= golden.null and e.content_type or nil, a.type)
        if e.response_body == "" and e.method ~= "HEAD" then assert.equal("", a.body) end
        -- a NUL in a name is refused, but our texts cannot hold it
        if type(e.response_body) == "table" and e.response_body.message and not body:find("\\u0000", 1, true) then
          local got = golden.decode(a.body)
          assert.equal(e.response_body.error_code, got.error_code)
          -- the recorder's blanks are not in a body that is encoded again here
          -- nor does the parser know what its text is bound to
          local function place(m)
            if m:find "^Unexpected end" then m = m:gsub(" %(through.*$", "") end
            return e.request_raw and m or (m:gsub("column: %d+", "column: N"))
          end
          assert.equal(place(e.response_body.message), place(got.message))
        end
      end)
    end
  end
end)
