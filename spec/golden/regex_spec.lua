-- java.util.regex: patterns, matches, replacements and messages as Java 17 gave them (regexes.jsonl).
local core = require "spec.support.core"
local golden = require "spec.support.golden"
local value = golden.value
local C, ffi = core.load { "convert/java_regex.h", "base/buf.h", "base/err.h" }

local function compile(pattern)
  local err = core.err()
  local re = C.lc_java_regex_compile(pattern, err)
  if re == nil then return nil, core.msg(err) end
  return ffi.gc(re, C.lc_java_regex_free)
end

local function replace(re, text, replacement)
  local b, err = ffi.new "lc_buf_t", core.err()
  local rc = C.lc_java_regex_replace_first(re, text, #text, replacement, b, err)
  local out = b.p ~= nil and ffi.string(b.p, b.len) or ""
  C.lc_buf_free(b)
  if rc < 0 then return nil, ffi.string(err.cls) .. ": " .. core.msg(err) end
  return out
end

describe("a Java regular expression", function()
  it("means and says what it does in Java", function()
    local n = 0
    for _, c in ipairs(golden.cases("regexes.jsonl", "spec/golden")) do
      local re, msg = compile(c.pattern)
      assert.equal(value(c.error), msg, c.pattern)
      for _, t in ipairs(re and c.texts or {}) do
        local what = ("%q on %q"):format(c.pattern, t.text)
        assert.equal(t.matches, C.lc_java_regex_matches(re, t.text, #t.text, core.err()) == 1, what)
        assert.same({ value(t.replaced), value(t.error) }, { replace(re, t.text, t.replacement) }, what .. " " .. t.replacement)
        n = n + 1
      end
    end
    assert.is_true(n > 200)
  end)

  it("ends with an error where it would take for ever", function()
    local err, text = core.err(), ("a"):rep(60) .. "cb"
    assert.equal(-1, C.lc_java_regex_matches(compile "(a|aa|a*)*c", text, #text, err))
    assert.matches("takes too many steps", core.msg(err))
  end)

  it("takes texts that are no UTF-8", function()
    local re = compile "a.*"
    assert.equal(0, C.lc_java_regex_matches(re, "a\255b", 3, core.err()))
  end)
end)
