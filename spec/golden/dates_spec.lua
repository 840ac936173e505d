-- java.text.SimpleDateFormat in UTC: patterns, texts and instants as Java 17 gave them (dates.jsonl).
local core = require "spec.support.core"
local golden = require "spec.support.golden"
local value = golden.value
local C, ffi = core.load { "convert/java_date.h", "base/buf.h", "base/err.h", "base/clock.h" }

local function int64(text)
  local v = 0LL
  for d in text:gmatch "%d" do v = v * 10 + tonumber(d) end
  return text:find "^%-" and -v or v
end

local function compile(pattern)
  local err = core.err()
  local f = C.lc_java_date_new(pattern, err)
  if f == nil then return nil, core.msg(err) end
  return ffi.gc(f, C.lc_java_date_free)
end

local function format(f, ms)
  local b = ffi.new "lc_buf_t"
  C.lc_java_date_format(f, ms, b)
  local out = b.p ~= nil and ffi.string(b.p, b.len) or ""
  C.lc_buf_free(b)
  return out
end

local function parse(f, text)
  local ms = ffi.new "int64_t[1]"
  if C.lc_java_date_parse(f, text, #text, ms) < 0 then return nil end
  return (tostring(ms[0]):gsub("LL", ""))
end

describe("a Java date format", function()
  it("writes and reads what Java does", function()
    local n = 0
    for _, c in ipairs(golden.cases("dates.jsonl", "spec/golden")) do
      local f, msg = compile(c.pattern)
      assert.equal(value(c.error), msg, c.pattern)
      for _, t in ipairs(f and c.format or {}) do
        assert.equal(t.text, format(f, int64(t.ms)), c.pattern .. " of " .. t.ms)
        n = n + 1
      end
      for _, t in ipairs(f and c.parse or {}) do
        assert.equal(value(t.ms), parse(f, t.text), c.pattern .. " from " .. t.text)
        n = n + 1
      end
    end
    assert.is_true(n > 1000)
  end)

  it("writes the first and the last instant there is", function()
    local f = compile "yyyy-MM-dd HH:mm:ss.SSS G D w u"
    assert.equal("292269055-12-02 16:47:04.192 BC 336 49 7", format(f, -9223372036854775807LL - 1))
    assert.equal("292278994-08-17 07:12:55.807 AD 229 34 7", format(f, 9223372036854775807LL))
    assert.equal("292269055-12-03 00:00:00.000 BC 337 49 1", format(f, -9223372036828800000LL))
  end)

  it("puts two-digit years into the 80 years before and the 20 after today", function()
    local f, full = compile "dd/MM/yy", compile "dd/MM/yyyy"
    local now = C.lc_wall_ms()
    for _, years in ipairs { -78, -50, -1, 0, 1, 18 } do
      local text = format(f, now + years * 31556952000LL)
      assert.equal(format(full, now + years * 31556952000LL), format(full, int64(parse(f, text))), text)
    end
  end)
end)
