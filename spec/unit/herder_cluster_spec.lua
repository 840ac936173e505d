-- herder_cluster_spec.lua: core/herder between workers: what a leader and a follower say to each other, who may
-- write, what waits for a rebalance. Simulated neighbours, as in herder_spec.lua.
local core = require "spec.support.core"
local H = require "spec.support.herder"
local C, ffi = core.load {}
local sim, wait, start, call, expect = H.sim, H.wait, H.start, H.call, H.expect
local clear, listen, source, gate = H.clear, H.listen, H.source, H.gate

local KEY = "c2VjcmV0IG9mIHRoZSBjbHVzdGVyLCAzMiBieXRlcyE=" -- "secret of the cluster, 32 bytes!"
local STALE = "Cannot complete request momentarily due to stale configuration (typically caused by a concurrent " ..
  "config change)"

local function sign(key, algorithm, body)
  local err = core.err()
  local text = C.lc_session_sign(key, algorithm, body, #body, err)
  if text == nil then return nil, core.msg(err) end
  local s = ffi.string(text)
  ffi.C.free(text)
  return s
end

describe("signatures", function()
  it("are those of Java's Mac", function()
    -- RFC 4231 and RFC 2202, test case 2: key "Jefe"
    local text = "what do ya want for nothing?"
    assert.equal(sign("SmVmZQ==", "HmacSHA256", text), sign("SmVmZQ", "hmacsha256", text))
    local function hex(algorithm)
      local err = core.err()
      assert.equal(0, C.lc_session_signature_check(algorithm, sign("SmVmZQ==", algorithm, text), err))
      local b = sign("SmVmZQ==", algorithm, text)
      local p = io.popen(("printf %%s '%s' | base64 -d | od -An -v -tx1"):format(b))
      local out = p:read("*a"):gsub("%s", "")
      p:close()
      return out
    end
    assert.equal("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", hex "HmacSHA256")
    assert.equal("effcdf6ae5eb2fa2d27416d5f184df9c259a7c79", hex "HmacSHA1")
    assert.equal("750c783e6ab0b503eaa86e310a5db738", hex "HmacMD5")
    assert.equal("a30e01098bc6dbbf45690f3a7e9e6d0f8bbea2a39e6148008fd05e44", hex "HmacSHA224")
    assert.equal("af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
      hex "HmacSHA384")
    assert.equal("164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fd" ..
      "caeab1a34d4a6b4b636e070a38bce737", hex "HmacSHA512")
  end)

  it("verify only what was signed", function()
    local s = sign(KEY, "HmacSHA256", "[]")
    local function ok(key, algorithm, signature, body)
      return C.lc_session_verify(key, algorithm, signature, body, #body)
    end
    assert.is_true(ok(KEY, "HmacSHA256", s, "[]"))
    assert.is_true(ok(KEY, "HmacSHA256", s:gsub("=*$", ""), "[]")) -- Java takes it without padding
    assert.is_false(ok(KEY, "HmacSHA256", s, "[{}]"))
    assert.is_false(ok(KEY, "HmacSHA1", s, "[]"))
    assert.is_false(ok("AAAA", "HmacSHA256", s, "[]"))
    assert.is_false(ok(KEY, "HmacSHA256", s:sub(1, 20), "[]"))
    assert.is_false(ok(KEY, "HmacSHA256", "", "[]"))
    assert.is_false(ok("?", "HmacSHA256", s, "[]"))
    assert.is_true(ok(KEY, "HmacSHA256", sign(KEY, "HmacSHA256", ""), ""))
  end)

  it("that cannot be read are refused with Java's words", function()
    local function refused(algorithm, signature)
      local err = core.err()
      if C.lc_session_signature_check(algorithm, signature, err) == 0 then return nil end
      return tonumber(err.code) .. " " .. core.msg(err)
    end
    assert.equal("400 Algorithm HmacX not available", refused("HmacX", "AAAA"))
    assert.equal("400 Illegal base64 character 20", refused("HmacSHA256", "AA A"))
    assert.equal("400 Illegal base64 character 2d", refused("HmacSHA256", "AA-A"))
    assert.equal("400 Last unit does not have enough valid bits", refused("HmacSHA256", "AAAAA"))
    assert.equal("400 Input byte array has wrong 4-byte ending unit", refused("HmacSHA256", "A==="))
    assert.equal("400 Input byte array has wrong 4-byte ending unit", refused("HmacSHA256", "AA="))
    assert.equal("400 Input byte array has incorrect ending byte at 4", refused("HmacSHA256", "AA==A"))
    assert.is_nil(refused("HmacSHA512/256", "AA=="))
    local s, why = sign("?", "HmacSHA256", "x")
    assert.is_nil(s)
    assert.truthy(why:find("no key", 1, true))
  end)
end)

describe("the herder in a cluster", function()
  after_each(H.stop)

  local function with_key()
    sim.sim_record("session-key", ([[{"key":"%s","algorithm":"HmacSHA256","creation-timestamp":%d}]])
      :format(KEY, tonumber(C.lc_wall_ms())))
  end
  local function error_of(op, name, opt)
    local a = call(op, name, opt)
    return { a.status, a.error }
  end
  local function connector(name, more)
    assert.equal(201, call("CREATE", name, { config = source(more) }).status)
    expect { ("put commit-%s {\"tasks\":%s}"):format(name, more and more["tasks.max"] or 1) }
    assert.equal(200, call("HEALTH").status)
  end

  describe("asked by another worker", function()
    it("checks the signature before anything else when the group is sessioned", function()
      with_key()
      start(2)
      local body = [=[[{"a":"1"}]]=]
      local function put(opt)
        opt.tasks, opt.body = { { a = "1" } }, opt.body or body
        return error_of("PUT_TASKS", "none", opt)
      end
      local good = sign(KEY, "HmacSHA256", body)
      local missing = { 400, "Internal request missing required signature" }
      assert.same(missing, put {})
      assert.same(missing, put { signature = good })
      assert.same(missing, put { algorithm = "HmacSHA256" })
      assert.same({ 400, "Algorithm Hmac not available" }, put { signature = good, algorithm = "Hmac" })
      assert.same({ 400, "Illegal base64 character 2a" }, put { signature = "*", algorithm = "HmacSHA256" })
      assert.same({ 400, "This worker does not support the 'HmacSHA1' key signing algorithm used by other " ..
        "workers. This worker is currently configured to use: [HmacSHA256]. Check that all workers' " ..
        "configuration files permit the same set of signature algorithms, and correct any misconfigured worker " ..
        "and restart it." }, put { signature = sign(KEY, "HmacSHA1", body), algorithm = "HmacSHA1" })
      assert.same({ 403, "Internal request contained invalid signature." },
        put { signature = good, algorithm = "HmacSHA256", body = body .. " " })
      assert.same({ 404, "Connector none not found" }, put { signature = good, algorithm = "HmacSHA256" })
      assert.same(missing, error_of("FENCE", "none"))
      assert.same({ 404, "Connector none not found" },
        error_of("FENCE", "none", { signature = sign(KEY, "HmacSHA256", ""), algorithm = "HmacSHA256" }))
    end)

    it("takes no signature amiss in other groups, but a broken one", function()
      start(1)
      assert.same({ 404, "Connector none not found" }, error_of("PUT_TASKS", "none"))
      assert.same({ 400, "Algorithm X not available" },
        error_of("PUT_TASKS", "none", { signature = "AAAA", algorithm = "X" }))
    end)

    it("needs a key in the topic", function()
      start(2, { ["inter.worker.verification.algorithms"] = "HmacSHA256,HmacSHA512" })
      expect { "put session-key ..." }
      sim.sim_members(0, 1)
      wait("another leader", function() return call("DELETE", "none").status == 0 end)
      assert.same({ 403, "Internal request contained invalid signature." }, error_of("PUT_TASKS", "none",
        { signature = sign(KEY, "HmacSHA512", "[]"), algorithm = "HmacSHA512", body = "[]" }))
      with_key() -- the newest counts
      local a = call("PUT_TASKS", "none",
        { signature = sign(KEY, "HmacSHA512", "[]"), algorithm = "HmacSHA512", body = "[]" })
      assert.same({ 0, "http://m2/" }, { a.status, a.forward_url })
    end)

    it("writes the tasks of its connectors", function()
      start(1)
      assert.equal(201, call("CREATE", "c", { config = source() }).status)
      expect { "start c-0 of 1 STARTED g3" }
      clear()
      assert.equal(204, call("PUT_TASKS", "c", { tasks = { { a = "1" }, { a = "2" } } }).status)
      expect { "put task-c-0 ...", "put task-c-1 ...", [[put commit-c {"tasks":2}]], "start c-1 of 2 STARTED g4" }
      assert.equal(204, call("STOP", "c").status)
      assert.same({ 400, "Cannot submit non-empty set of task configs for stopped connector c" },
        error_of("PUT_TASKS", "c", { tasks = { { a = "1" } } }))
      assert.equal(204, call("PUT_TASKS", "c").status)
      sim.sim_fail("", "commit-c")
      assert.same({ 500, "Error writing to Kafka" }, error_of("PUT_TASKS", "c"))
    end)

    it("fences sources only: a record the first time, then a round for each new set of tasks", function()
      start(1)
      connector("c", { ["tasks.max"] = "2" })
      local sink = { ["connector.class"] = "FileStreamSink", topics = "t", file = "/tmp/f" }
      assert.equal(201, call("CREATE", "k", { config = sink }).status)
      assert.same({ 400, "Connector k is not a source connector" }, error_of("FENCE", "k"))
      assert.same({ 404, "Connector none not found" }, error_of("FENCE", "none"))
      clear()
      assert.equal(204, call("FENCE", "c").status)
      expect { 'put tasks-fencing-c {"task-count":2}' }
      assert.equal(204, call("FENCE", "c").status)
      assert.is_nil(listen():find("fence g-c", 1, true)) -- nothing to fence, and said so once
      assert.equal(200, call("PUT_CONFIG", "c", { config = source { ["tasks.max"] = "3" } }).status)
      expect { 'put commit-c {"tasks":3}' }
      clear()
      assert.equal(204, call("FENCE", "c").status)
      expect { "fence g-c-0..1", 'put tasks-fencing-c {"task-count":3}' }
    end)

    it("does not fence where the only new producer fences the only old one", function()
      start(1)
      connector "c"
      assert.equal(204, call("FENCE", "c").status)
      assert.equal(200, call("PUT_CONFIG", "c", { config = source { ["batch.size"] = "7" } }).status)
      wait("the next set of tasks", function()
        clear()
        local a = call("FENCE", "c")
        return a.status == 204 and listen():find('put tasks-fencing-c {"task-count":1}', 1, true)
      end)
      assert.is_nil(listen():find("fence g-c", 1, true))
    end)

    it("tells a task that wants to start whether its predecessors are fenced and it is still wanted", function()
      start(1)
      connector("c", { ["tasks.max"] = "2" })
      expect { "start c-0 of 2 STARTED g3" }
      clear()
      assert.equal("", gate("fence", "c", 0))
      expect { 'put tasks-fencing-c {"task-count":2}' }
      assert.equal("", gate("verify", "c", 1))
      assert.equal("Cannot start source task c-2 with exactly-once support as the connector has already generated a "
        .. "new set of task configs", gate("verify", "c", 2))
      assert.equal("Connector none not found", gate("fence", "none", 0))
    end)
  end)

  it("sends requests to the owner of the work when it leads", function()
    start(1, { ["scheduled.rebalance.max.delay.ms"] = "0" })
    connector("a", { ["tasks.max"] = "2" })
    connector("b", { ["tasks.max"] = "2" })
    sim.sim_members(1, 0)
    expect { "rejoin: work was revoked, it can be assigned now" }
    wait("work with m2", function()
      local there = { 0, 0 } -- instances, tasks
      for _, n in ipairs { "a", "b" } do
        for task = -1, 1 do
          local r = task < 0 and call("RESTART", n) or call("RESTART_TASK", n, { task = task })
          local i = task < 0 and 1 or 2
          if r.forward_url == "http://m2/" then there[i] = there[i] + 1 end -- 409: nobody's just now
        end
      end
      return there[1] == 1 and there[2] == 2
    end)
    sim.sim_members(1, 1)
    wait("another leader", function() return call("DELETE", "none").forward_url == "http://m2/" end)
    sim.sim_names(nil, nil, "")
    sim.sim_members(1, 1)
    wait("a leader without a URL", function() return call("DELETE", "none").status == 409 end)
    assert.same({ 409, "Cannot complete request momentarily due to no known leader URL, likely because a " ..
      "rebalance was underway." }, error_of("DELETE", "a"))
  end)

  it("stops everything when the group turns eager, before anything starts elsewhere", function()
    start(2)
    connector "c"
    expect { "start c-0 of 1 STARTED g3" }
    clear()
    sim.sim_members(1, 0)
    expect { "round 4" }
    assert.equal(200, call("HEALTH").status)
    sim.sim_turn(0) -- dealt anew: the task goes to m2
    expect { "round 5", "stop c g5", "stop c-0 g5", "rejoin: the group turned to the eager protocol", "round 6",
      "start c STARTED g6" }
    assert.equal(200, call("HEALTH").status)
    assert.is_nil(H.listen():find("start c-0", 1, true))
    assert.equal("http://m2/", call("RESTART_TASK", "c", { task = 0 }).forward_url)
    clear()
    assert.equal(204, call("DELETE", "c").status)
    expect { "stop c g6" } -- nothing that was forgotten runs on
    assert.equal(404, call("INFO", "c").status)
  end)

  describe("in a rebalance", function()
    it("lets requests wait for it", function()
      start(1)
      connector "c"
      sim.sim_coordinator(1)
      sim.sim_back_after(300)
      assert.equal(204, call("DELETE", "c").status)
      sim.sim_back_wait()
    end)

    it("sends them back after 5 s, but a health check", function()
      start(1)
      connector "c"
      sim.sim_coordinator(1)
      local began = tonumber(C.lc_now_ms())
      local a = call("DELETE", "c")
      assert.same({ 409, STALE, 1 }, { a.status, a.error, a.retry_after })
      assert.is_true(tonumber(C.lc_now_ms()) - began >= 5000)
      for _, op in ipairs { "PAUSE", "RESUME" } do assert.equal(202, call(op, "c").status) end
      assert.equal(204, call("LOGGER", "OFFSET", { level = "DEBUG" }).status)
      sim.sim_coordinator(0)
      assert.equal(204, call("DELETE", "c").status)
    end)
  end)

  it("writes log levels for all and applies those that it reads", function()
    sim.sim_record("logger-cluster-OLD", [[{"level":"TRACE"}]])
    start(1)
    assert.equal(204, call("LOGGER", "OFFSET", { level = "DEBUG" }).status)
    expect { [[put logger-cluster-OFFSET {"level":"DEBUG"}]], "logger OFFSET DEBUG" }
    sim.sim_record("logger-cluster-root", [[{"level":"WARN"}]])
    expect { "logger root WARN" }
    assert.is_nil(listen():find("OLD", 1, true))
    sim.sim_fail("", "logger")
    assert.same({ 500, "Error writing to Kafka" }, error_of("LOGGER", "x", { level = "INFO" }))
  end)

  it("alone: log levels at once, nothing between workers", function()
    start(-1, { ["offset.storage.file.filename"] = os.tmpname() })
    assert.equal(204, call("LOGGER", "OFFSET", { level = "DEBUG" }).status)
    expect { "logger OFFSET DEBUG" }
    assert.same({ 500, "Kafka Connect in standalone mode does not support externally setting task configurations." },
      error_of("PUT_TASKS", "c", { tasks = { {} } }))
    assert.same({ 500, "Kafka Connect in standalone mode does not support exactly-once source connectors." },
      error_of("FENCE", "c"))
  end)

  it("leaves out what the leader assigns and nobody knows", function()
    start(1)
    connector "c"
    expect { "start c-0 of 1 STARTED g3" } -- its tasks' round is over, too
    clear()
    sim.sim_names("ghost", nil, nil)
    sim.sim_members(0, 0)
    expect { "round 4" }
    assert.equal(200, call("HEALTH").status)
    sim.sim_names("", nil, nil)
    assert.is_nil(H.listen():find("start ghost", 1, true))
    assert.same({ "c" }, call("LIST").names)
    assert.equal(404, call("STATUS", "ghost").status)
    assert.equal(404, call("RESTART", "ghost").status)
    -- it becomes known: it starts
    sim.sim_record("connector-ghost", [[{"properties":{"connector.class":"FileStreamSource","topic":"t",
      "name":"ghost"}}]])
    wait("it starts", function() return H.listen():find("start ghost", 1, true) end)
  end)

  describe("that does not lead", function()
    local function follow()
      sim.sim_members(0, 1)
      wait("another leader", function() return call("DELETE", "none").forward_url == "http://m2/" end)
      clear()
    end
    local function reconfigured(name, batch)
      sim.sim_record("connector-" .. name, ([[{"properties":{"connector.class":"FileStreamSource","topic":"t",
        "name":"%s","tasks.max":"2","batch.size":"%d"}}]]):format(name, batch))
    end
    local function sent()
      local line
      wait("a request to the leader", function()
        line = listen():match "(http POST [^\n]*)\n"
        return line
      end)
      clear()
      return line
    end
    local function answer(status, body)
      assert.is_true(sim.sim_answer("http://m2/connectors/", status, body or ""))
    end

    it("sends task configs to the leader, signed, again until they arrive", function()
      with_key()
      start(2)
      connector "c"
      follow()
      reconfigured("c", 7)
      local line = sent()
      local url, headers, body = line:match "^http POST (%S+) (%[.*%]) (%[{.*}%])$"
      assert.equal("http://m2/connectors/c/tasks?forward=false", url)
      assert.equal(("[Content-Type: application/json] [Accept: application/json] [X-Connect-Authorization: %s] " ..
        "[X-Connect-Request-Signature-Algorithm: HmacSHA256]"):format(sign(KEY, "HmacSHA256", body)), headers)
      local _, n = body:gsub('"batch.size":"7"', "")
      assert.equal(2, n)
      assert.equal(200, call("HEALTH").status) -- nothing waits for the leader
      answer(403, [[{"error_code":403,"message":"Internal request contained invalid signature."}]])
      assert.equal(line, sent())
      answer(-110, "timed out")
      assert.equal(line, sent())
      reconfigured("c", 8) -- meanwhile
      answer(204)
      assert.truthy(sent():find('"batch.size":"8"', 1, true))
      answer(204)
      assert.equal(200, call("HEALTH").status)
      assert.is_nil(listen():find("put", 1, true))
    end)

    it("escapes names, and signs nothing where there is no key", function()
      local odd = "a b/%C3;?#\195\188+,"
      start(1)
      connector(odd)
      follow()
      reconfigured(odd, 7)
      local url = sent():match "^http POST (%S+) %[Content%-Type: application/json%] %[Accept: [%w/]*%] %[{"
      assert.equal("http://m2/connectors/a%20b%2F%25C3%3B%3F%23%C3%BC+,/tasks?forward=false", url)
    end)

    it("writes them itself when it leads by the time of the next attempt", function()
      start(1)
      connector "c"
      follow()
      reconfigured("c", 7)
      sent()
      sim.sim_members(0, 0)
      wait("leadership", function() return call("DELETE", "none").status == 404 end)
      answer(500, "no JSON")
      expect { "put task-c-1 ...", [[put commit-c {"tasks":2}]] }
    end)

    it("ends with a request out", function()
      start(1)
      connector "c"
      follow()
      reconfigured("c", 7)
      sent()
    end)
  end)

  it("writes nothing with a leadership that others may have", function()
    start(1)
    connector "c"
    clear()
    sim.sim_freeze(1)
    local a = call("DELETE", "c")
    assert.same({ 409, STALE, 1 }, { a.status, a.error, a.retry_after })
    sim.sim_freeze(0)
    assert.equal(404, call("DELETE", "none").status)
    assert.is_nil(listen():find("put", 1, true))
  end)

  describe("that leads", function()
    local PLUGINS = "http://m2/connector-plugins?connectorsOnly=true"
    local function asked() expect { "http GET " .. PLUGINS .. " [Accept: application/json]" } end
    local function owners() -- instances and tasks that are not here
      local n = 0
      for _, name in ipairs { "a", "b" } do
        for task = -1, 1 do
          local r = task < 0 and call("RESTART", name) or call("RESTART_TASK", name, { task = task })
          if r.forward_url then n = n + 1 elseif r.status ~= 204 then return nil end
        end
      end
      return n
    end
    local function two()
      start(1, { ["scheduled.rebalance.max.delay.ms"] = "0" })
      connector("a", { ["tasks.max"] = "2" })
      connector("b", { ["tasks.max"] = "2" })
      sim.sim_members(1, 0)
      wait("work with m2", function() return owners() == 3 end)
      asked()
    end

    it("takes work back from a worker that does not have its class", function()
      two()
      clear()
      assert.is_true(sim.sim_answer(PLUGINS, 200, [=[[{"class":"x.Other","type":"source","version":"1"}]]=]))
      expect { "rejoin: work is on a worker that does not have its class" }
      wait("all the work here", function() return owners() == 0 end)
      clear()
      connector("c", { ["tasks.max"] = "2" })
      assert.equal(204, call("RESTART", "c").status)
      wait("its tasks", function() return call("RESTART_TASK", "c", { task = 1 }).status == 204 end)
      assert.is_nil(listen():find("http", 1, true)) -- it was asked once
    end)

    it("leaves it where the class is, by any of its names", function()
      two()
      local class = "org.apache.kafka.connect.file.FileStreamSourceConnector"
      assert.is_true(sim.sim_answer(PLUGINS, 200, ([=[[{"class":"%s"}]]=]):format(class)))
      assert.equal(3, owners())
      assert.is_nil(listen():find("does not have", 1, true))
    end)

    it("asks again when the answer is none, and takes the worker for one that can", function()
      two()
      for _, a in ipairs { { 0, "refused" }, { 200, "[{}]" } } do
        clear()
        assert.is_true(sim.sim_answer(PLUGINS, a[1], a[2]))
        asked()
        assert.equal(3, owners())
      end
      clear()
      assert.is_true(sim.sim_answer(PLUGINS, 200, "[]"))
      wait("all the work here", function() return owners() == 0 end)
    end)

    it("deals work of a class that nobody has as if all had it", function()
      start(1, { ["scheduled.rebalance.max.delay.ms"] = "0" })
      sim.sim_members(1, 0)
      asked()
      assert.is_true(sim.sim_answer(PLUGINS, 200, "[]"))
      for _, n in ipairs { "a", "b" } do
        sim.sim_record("connector-" .. n, ([[{"properties":{"connector.class":"no.such.Class","name":"%s"}}]])
          :format(n))
      end
      wait("one here", function() return listen():find "start [ab] STARTED" end)
      wait("one there", function()
        return call("RESTART", "a").forward_url == "http://m2/" or call("RESTART", "b").forward_url == "http://m2/"
      end)
      assert.equal(200, call("HEALTH").status)
      assert.is_nil(listen():find("does not have", 1, true))
    end)
  end)
end)
