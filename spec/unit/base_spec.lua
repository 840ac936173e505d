-- core/base: errors, buffers, arenas, properties, lists, queues, wakers, logs, the clock.
local core = require "spec.support.core"
local logged = require "spec.support.logged"
local C, ffi = core.load {
  "base/err.h", "base/buf.h", "base/arena.h", "base/props.h", "base/strv.h", "base/queue.h", "base/waker.h",
  "base/log.h", "base/clock.h", "base/alloc.h",
}
ffi.cdef "void free(void *); int pipe(int *); long read(int, void *, size_t); int close(int);"

local function text(b)
  local s = b.p ~= nil and ffi.string(b.p, b.len) or ""
  C.lc_buf_free(b)
  return s
end

local function set(err, kind, cls, message)
  return C.lc_err_set_(err, "core/x/file.c", 7, kind, 0, cls, message)
end

describe("err", function()
  it("keeps the first failure", function()
    local err = core.err()
    assert.are.equal(-1, set(err, C.LC_DATA, nil, "first"))
    set(err, C.LC_FATAL, nil, "second")
    assert.are.equal("first", core.msg(err))
    assert.are.equal(C.LC_DATA, tonumber(err.kind))
    assert.are.equal("file.c:7", ffi.string(err.where))
    assert.are.equal("data", ffi.string(C.lc_err_kind_name(err.kind)))
  end)

  it("takes no error as none", function() assert.are.equal(-1, set(nil, C.LC_DATA, nil, "x")) end)

  it("wraps: the old first line becomes a cause, the kind stays", function()
    local err = core.err()
    set(err, C.LC_DATA, "a.InnerException", "inner")
    C.lc_err_cause(err, "a.Deepest", "%s", ffi.cast("const char *", "deep"))
    C.lc_err_wrap(err, "a.OuterException", "outer")
    local p = C.lc_err_trace(err)
    assert.are.equal("a.OuterException: outer\n\tat luaconnect(file.c:7)\nCaused by: a.InnerException: inner\n" ..
      "Caused by: a.Deepest: deep\n", ffi.string(p))
    ffi.C.free(p)
    assert.are.equal(C.LC_DATA, tonumber(err.kind))
  end)

  it("cuts long messages", function()
    local err = core.err()
    set(err, C.LC_DATA, nil, ("x"):rep(5000))
    assert.are.equal(1023, #core.msg(err))
  end)
end)

describe("buf", function()
  it("grows and stays terminated", function()
    local b = ffi.new "lc_buf_t"
    for _ = 1, 1000 do C.lc_buf_add(b, "abc", 3) end
    C.lc_buf_addc(b, 33)
    for _, n in ipairs { "0", "9", "10", "-1", "99", "100", "-12345", "9223372036854775807", "-9223372036854775808" } do
      local number = ffi.new "lc_buf_t"
      C.lc_buf_addi(number, n:sub(1, 1) == "-" and -ffi.cast("int64_t", loadstring("return " .. n:sub(2) .. "ULL")())
        or loadstring("return " .. n .. "LL")())
      assert.are.equal(n, ffi.string(number.p, number.len))
      C.lc_buf_free(number)
    end
    C.lc_buf_printf(b, "%d-%s", ffi.cast("int", 42), ffi.cast("const char *", "z"))
    assert.are.equal(0, b.p[b.len])
    assert.are.equal(("abc"):rep(1000) .. "!42-z", text(b))
  end)

  it("hands its memory over, also when nothing was written", function()
    local b, n = ffi.new "lc_buf_t", ffi.new "size_t[1]"
    local p = C.lc_buf_take(b, n)
    assert.are.equal("", ffi.string(p))
    assert.are.equal(0, tonumber(n[0]))
    ffi.C.free(p)
  end)

  it("says so when memory is out", function()
    local b = ffi.new "lc_buf_t"
    assert.are.equal(-1, C.lc_buf_reserve(b, 0xffffffffffffffffULL))
    assert.is_true(b.oom)
    C.lc_buf_adds(b, "ignored")
    assert.are.equal("", text(b))
  end)
end)

describe("arena", function()
  it("keeps what it gave until it is freed", function()
    local a, all = ffi.new "lc_arena_t", {}
    C.lc_arena_init(a)
    for i = 1, 3000 do
      local s = ("%d:"):format(i) .. ("x"):rep(i % 97)
      all[i] = { ffi.cast("const char *", C.lc_arena_dup(a, s, #s)), s }
    end
    for _, e in ipairs(all) do assert.are.equal(e[2], ffi.string(e[1])) end
    C.lc_arena_free(a)
    assert.are.equal(0, tonumber(a.total))
  end)

  it("reserves room and takes what was used", function()
    local a = ffi.new "lc_arena_t"
    C.lc_arena_init(a)
    local p = C.lc_arena_room(a, 100000)
    ffi.copy(p, "hello")
    C.lc_arena_commit(a, 5)
    assert.are.equal(p + 5, C.lc_arena_room(a, 10))
    C.lc_arena_reset(a)
    assert.is_true(a.total >= 100000)
    C.lc_arena_free(a)
  end)
end)

describe("props", function()
  it("keeps order, replaces in place, knows null", function()
    local p = core.props { { "b", "1" }, { "a", "2" }, { "b", "3" } }
    C.lc_props_set(p, "n", nil)
    assert.are.equal(3, tonumber(C.lc_props_count(p)))
    assert.are.equal("b", ffi.string(C.lc_props_key(p, 0)))
    assert.are.equal("3", ffi.string(C.lc_props_get(p, "b")))
    assert.is_true(C.lc_props_has(p, "n"))
    assert.are.equal(nil, C.lc_props_get(p, "n") ~= nil and 1 or nil)
    assert.are.equal("d", ffi.string(C.lc_props_get_or(p, "none", "d")))
    assert.is_true(C.lc_props_del(p, "a"))
    assert.is_false(C.lc_props_del(p, "a"))
    assert.are.equal("n", ffi.string(C.lc_props_key(p, 1)))
  end)

  it("compares as a map, cuts prefixes, merges", function()
    local a, b = core.props { { "x.a", "1" }, { "y", "2" } }, core.props { { "y", "2" }, { "x.a", "1" } }
    assert.is_true(C.lc_props_equal(a, b))
    C.lc_props_set(b, "y", nil)
    assert.is_false(C.lc_props_equal(a, b))
    local cut = ffi.gc(C.lc_props_prefixed(a, "x."), C.lc_props_free)
    assert.are.same({ a = "1" }, core.table(cut))
    C.lc_props_merge(cut, b)
    assert.are.same({ a = "1", ["x.a"] = "1", y = false }, core.table(cut))
    local copy = ffi.gc(C.lc_props_copy(nil), C.lc_props_free)
    assert.are.equal(0, tonumber(C.lc_props_count(copy)))
  end)
end)

describe("strv", function()
  local function split(s)
    local v, out = ffi.new "lc_strv_t", {}
    C.lc_strv_split(v, s)
    for i = 0, tonumber(v.n) - 1 do out[i + 1] = ffi.string(v.v[i]) end
    C.lc_strv_free(v)
    return out
  end

  it("splits Java's lists", function()
    assert.are.same({}, split "")
    assert.are.same({ "a", "b c", "d" }, split " a , b c,d ")
  end)

  it("keeps the first of equal items", function()
    local v = ffi.new "lc_strv_t"
    for _, s in ipairs { "b", "", "a", "b", "", "a", "c", "b" } do C.lc_strv_add(v, s) end
    assert.are.equal(4, tonumber(C.lc_strv_unique(v)))
    local out = {}
    for i = 0, tonumber(v.n) - 1 do out[#out + 1] = ffi.string(v.v[i]) end
    assert.are.same({ "b", "", "a", "c" }, out)
    assert.are.equal(0, tonumber(C.lc_strv_unique(v)))
    C.lc_strv_free(v)
  end)

  it("sorts and finds", function()
    local v = ffi.new "lc_strv_t"
    for _, s in ipairs { "b", "c", "a" } do C.lc_strv_add(v, s) end
    C.lc_strv_sort(v)
    assert.are.equal("a", ffi.string(v.v[0]))
    assert.is_true(C.lc_strv_has(v, "c"))
    assert.is_false(C.lc_strv_has(v, "d"))
    C.lc_strv_free(v)
  end)
end)

describe("queue and waker", function()
  it("gives items in order, nothing after the time, and wakes", function()
    local q = C.lc_queue_new()
    for i = 1, 3 do C.lc_queue_push(q, ffi.cast("void *", i)) end
    assert.are.equal(3, tonumber(C.lc_queue_len(q)))
    for i = 1, 3 do assert.are.equal(ffi.cast("void *", i), C.lc_queue_pop(q, -1)) end
    assert.is_true(C.lc_queue_pop(q, 0) == nil)
    assert.is_true(C.lc_queue_pop(q, 5) == nil)
    C.lc_queue_wake(q)
    local from = C.lc_now_ms()
    assert.is_true(C.lc_queue_pop(q, 60000) == nil)
    assert.is_true(tonumber(C.lc_now_ms() - from) < 30000)
    C.lc_queue_free(q)
  end)

  it("stays woken until cleared", function()
    local w = ffi.new "lc_waker_t"
    assert.are.equal(0, C.lc_waker_init(w))
    assert.is_false(C.lc_waker_wait(w, 1))
    C.lc_waker_wake(w)
    assert.is_true(C.lc_waker_wait(w, -1))
    assert.is_true(C.lc_waker_wait(w, 0))
    C.lc_waker_clear(w)
    assert.is_false(C.lc_waker_wait(w, 0))
    C.lc_waker_close(w)
  end)
end)

describe("log", function()
  it("writes one line with time, level, context and area", function()
    local s = logged(function()
      C.lc_log_context "src|task-0"
      C.lc_log_(C.LC_WARN, "OFFSET", "%s records", ffi.cast("const char *", "3"))
      C.lc_log_context(nil)
    end)
    assert.is_not_nil(s:find "^%d%d%d%d%-%d%d%-%d%d %d%d:%d%d:%d%d,%d%d%d WARN  ?%[src|task%-0%] OFFSET%s+3 records\n$", s)
  end)

  it("obeys levels per area", function()
    assert.are.equal(-1, C.lc_log_set_level(nil, "loud"))
    assert.are.equal(0, C.lc_log_set_level("NOISE", "ERROR"))
    local s = logged(function()
      C.lc_log_(C.LC_WARN, "NOISE", "hidden")
      C.lc_log_(C.LC_WARN, "OTHER", "shown")
    end)
    assert.is_nil(s:find "hidden")
    assert.is_not_nil(s:find "shown")
    C.lc_log_set_level("NOISE", "info")
  end)
end)

describe("clock", function()
  it("prints Java's instants", function()
    local out = ffi.new "char[32]"
    C.lc_iso8601(1714557600123LL, out)
    assert.are.equal("2024-05-01T10:00:00.123Z", ffi.string(out))
    C.lc_iso8601(0, out)
    assert.are.equal("1970-01-01T00:00:00.000Z", ffi.string(out))
  end)
end)
