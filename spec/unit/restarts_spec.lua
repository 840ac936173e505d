-- restart.policy (core/runtime/restarts.c): when what failed is started again, and what the status says of it.
local core = require "spec.support.core"
local C, ffi = core.load { "runtime/restarts.h" }
ffi.cdef "void free(void *p);"

local CONFIG = "org.apache.kafka.common.config.ConfigException"

describe("restart.policy", function()
  local r
  before_each(function() r = C.lc_restarts_new() end)
  after_each(function() C.lc_restarts_free(r) end)

  local function failure(t)
    t = type(t) == "table" and t or { msg = t or "away" }
    local e = core.err()
    C.lc_err_clear(e)
    e.kind = t.kind or C.LC_FATAL
    e.cls = t.cls
    ffi.copy(e.msg, t.msg or "away")
    ffi.copy(e.detail, t.detail or "")
    return e
  end

  --- FAILED at `now` after a run of `ran`: the pause until the restart (nil: none) and what is shown.
  local function fails(now, t)
    t = t or {}
    local shown = ffi.new "char *[1]"
    local config = core.props { ["restart.policy"] = t.policy or "on-failure", ["restart.policy.max.per.hour"] = t.max }
    local at = tonumber(C.lc_restarts_failed(r, t.name or "c", t.task or 0, config, failure(t.error), t.ran or 0, now, shown))
    local text = shown[0] ~= nil and ffi.string(shown[0]) or nil
    ffi.C.free(shown[0])
    return at > 0 and at - now or nil, text
  end

  local function shown()
    local p = C.lc_restarts_shown(r, "c", 0)
    local text = p ~= nil and ffi.string(p) or nil
    ffi.C.free(p)
    return text
  end

  it("forgets a connector that is deleted, and no other", function()
    fails(1000)
    C.lc_restarts_begun(r, "c", 0, 2000)
    assert.truthy(shown())
    C.lc_restarts_forget(r, "")
    C.lc_restarts_forget(r, "c/0")
    C.lc_restarts_forget(r, "cc")
    assert.truthy(shown())
    C.lc_restarts_forget(r, "c")
    assert.is_nil(shown())
    local pause, text = fails(3000)
    assert.is_true(pause <= 1200)
    assert.matches('"count":0', text, 1, true)
  end)

  it("is off unless it is asked for", function()
    local pause, text = fails(1000, { policy = "none" })
    assert.is_nil(pause)
    assert.is_nil(text)
    C.lc_restarts_begun(r, "c", 0, 2000)
    assert.is_nil(shown())
  end)

  it("waits 1 s, doubling to 5 min, with some jitter", function()
    local now, least = 1000, 1000
    local jitter = 0
    for i = 1, 15 do
      local pause = fails(now, { max = "1000" })
      assert.is_true(pause >= least and pause <= math.min(least * 1.2 + 1, 300000), i .. ": " .. pause)
      jitter = jitter + pause - least
      now = now + pause
      C.lc_restarts_begun(r, "c", 0, now)
      least = math.min(least * 2, 300000)
    end
    assert.is_true(jitter > 0)
  end)

  it("begins anew after a long run, but not after a short one", function()
    for i = 1, 6 do fails(i * 10000) end
    assert.is_true(fails(100000, { ran = 299000 }) >= 64000)
    assert.is_true(fails(700000, { ran = 300001 }) <= 1200)
  end)

  it("begins anew when somebody had a hand in it, and still counts", function()
    local function grow(t)
      for i = 1, 6 do fails(i * 10000, t) end
    end
    local other, instance = { name = "c/0" }, { task = -1 }
    grow()
    grow(other)
    grow(instance)
    C.lc_restarts_begun(r, "c", 0, 70000)
    C.lc_restarts_afresh(r, "c", 1)
    C.lc_restarts_afresh(r, "c", 0)
    local pause, text = fails(80000)
    assert.is_true(pause <= 1200, tostring(pause))
    assert.matches('"count":1,', text, 1, true)
    assert.is_true(fails(81000) >= 2000) -- and from there as ever
    assert.is_true(fails(80000, instance) >= 64000)
    C.lc_restarts_afresh(r, "c", C.LC_RESTARTS_ALL)
    assert.is_true(fails(90000) <= 1200)
    assert.is_true(fails(90000, instance) <= 1200)
    assert.is_true(fails(90000, other) >= 64000)
  end)

  it("keeps the cap an hour, whatever somebody does", function()
    local now = 1000
    for _ = 1, 3 do
      now = now + fails(now, { max = "3" })
      C.lc_restarts_begun(r, "c", 0, now)
    end
    C.lc_restarts_afresh(r, "c", C.LC_RESTARTS_ALL)
    assert.is_true(fails(now + 10, { max = "3" }) > 3500000)
  end)

  it("knows connectors and tasks apart", function()
    for i = 1, 6 do fails(i * 10000) end
    assert.is_true(fails(70000, { task = 1 }) <= 1200)
    assert.is_true(fails(70000, { task = -1 }) <= 1200)
    assert.is_true(fails(70000, { name = "c/0" }) <= 1200)
  end)

  it("has a cap an hour, and goes on when the hour is over", function()
    local now = 1000
    for _ = 1, 3 do
      now = now + fails(now, { max = "3", ran = 400000 })
      C.lc_restarts_begun(r, "c", 0, now)
    end
    local first = now
    local pause = fails(now + 10, { max = "3", ran = 400000 })
    assert.is_true(pause > 3590000 and pause <= 3600000, tostring(pause))
    -- an hour later
    now = first + 3600001
    assert.is_true(fails(now, { max = "3", ran = 400000 }) <= 1200)
  end)

  it("never starts again what was fenced or is misconfigured", function()
    for _, e in ipairs {
      { kind = C.LC_FENCED }, { cls = CONFIG }, { msg = CONFIG .. ": Invalid value" },
      { detail = "Caused by: " .. CONFIG .. ": Invalid value\n" },
      { cls = "org.apache.kafka.connect.runtime.TooManyTasksException" },
      { detail = "Caused by: org.apache.kafka.common.errors.ProducerFencedException: newer\n" },
    } do
      local pause, text = fails(1000, { error = e })
      assert.is_nil(pause)
      assert.matches('"next_attempt":null', text, 1, true)
    end
    assert.is_truthy((fails(1000, { error = { msg = "about a " .. CONFIG } })))
  end)

  it("says the reason, the count and the next attempt", function()
    local _, text = fails(1000, { error = { msg = 'the "target" is away', cls = "org.apache.kafka.connect.errors.DataException" } })
    assert.matches('^{"policy":"on%-failure","count":0,"max_per_hour":12,'
      .. '"reason":"org.apache.kafka.connect.errors.DataException: the \\"target\\" is away",'
      .. '"next_attempt":"%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ"}$', text)
    assert.is_nil(shown())
    C.lc_restarts_begun(r, "c", 0, 2000)
    assert.equal('{"policy":"on-failure","count":1,"reason":"org.apache.kafka.connect.errors.DataException: the \\"target\\" is away"}',
      shown())
    _, text = fails(3000, { error = "again" })
    assert.matches('"count":1,"max_per_hour":12,"reason":"org.apache.kafka.connect.errors.ConnectException: again"', text, 1, true)
  end)

  it("forgets it when the policy is taken away", function()
    for i = 1, 6 do fails(i * 10000) end
    fails(70000, { policy = "none" })
    assert.is_true(fails(80000) <= 1200)
  end)
end)
