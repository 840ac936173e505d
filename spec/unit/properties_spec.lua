-- java.util.Properties.load: expectations were made with Java 17 where a rule is not obvious.
local core = require "spec.support.core"
local files = require "spec.support.files"
local C, ffi = core.load { "base/err.h", "base/props.h", "config/properties.h" }

local function parse(text)
  local out, err = ffi.new "lc_props_t *[1]", core.err()
  local rc = C.lc_properties_parse(text, #text, out, err)
  if rc ~= 0 then return nil, core.msg(err), ffi.string(err.cls), ffi.string(err.detail) end
  local p = ffi.gc(out[0], C.lc_props_free)
  return core.table(p), p
end

describe("properties", function()
  it("knows the separators", function()
    assert.same({ a = "b", c = "d", e = "f", g = "h", i = "= j", k = "", l = "m:n", o = ":p" },
      (parse "a=b\nc:d\ne f\n  g  =  h\ni : = j\nk\nl=m:n\no= :p"))
  end)

  it("drops leading blanks of values, not trailing ones", function()
    assert.same({ a = "b \t ", ["c"] = "d" }, (parse "\t\f a \t=\t b \t \n c d"))
  end)

  it("skips comments and blank lines, also those that end in a backslash", function()
    assert.same({ a = "1" }, (parse "# x\\\n! y\n   # z\n\n \t \na=1\n#"))
  end)

  it("joins continued lines and drops the blanks before them", function()
    assert.same({ a = "b, c, d", e = "f" }, (parse "a = b, \\\n    c, \\\r\n\td\ne=f"))
    assert.same({ abc = "1" }, (parse "ab\\\n   c=1"))
    assert.same({ a = "#b" }, (parse "a=\\\n#b"))
    assert.same({ a = "b\\" , c = "d" }, (parse "a=b\\\\\nc=d"))
    assert.same({ a = "b\\c" }, (parse "a=b\\\\\\\nc"))
    assert.same({ a = "b" }, (parse "a=b\\"))
    assert.same({ a = "1", b = "2" }, (parse "a=1\\\n\nb=2"))
    assert.same({ b = "2" }, (parse "\\\nb=2"))
  end)

  it("takes every kind of line end", function()
    assert.same({ a = "1", b = "2", c = "3", d = "4" }, (parse "a=1\rb=2\r\nc=3\n\rd=4"))
  end)

  it("replaces escapes in keys and values", function()
    assert.same({ ["a b=c:d"] = "t\tn\nr\rf\fx\"'\\" }, (parse [[a\ b\=c\:d=t\tn\nr\rf\fx\"\'\\]]))
    assert.same({ ["#k"] = "!" }, (parse "\\#k=\\!"))
  end)

  it("decodes \\uXXXX, pairs too, and Latin-1 bytes", function()
    assert.same({ a = "é€😀?x" }, (parse "a=\\u00e9\\u20AC\\uD83D\\uDE00\\uD83Dx"))
    assert.same({ a = "é" }, (parse "a=\233"))
    assert.same({ ["é"] = "ÿ" }, (parse "\\u00E9=\\\255"))
  end)

  it("refuses malformed escapes with Java's words, naming the line", function()
    for _, text in ipairs { "ok=1\nb=\\u12G4", "ok=1\nb=\\u12", "ok=1\n\\u1=x" } do
      local t, msg, cls, detail = parse(text)
      assert.is_nil(t)
      assert.equal("Malformed \\uxxxx encoding.", msg)
      assert.equal("java.lang.IllegalArgumentException", cls)
      assert.truthy(detail:find "line 2")
    end
    assert.truthy(select(2, parse "a=\\u0000"):find "NUL")
    assert.truthy(select(2, parse "a=\0b"):find "NUL")
  end)

  it("keeps the order of keys, the last value wins", function()
    local t, p = parse "b=1\na=2\nb=3"
    assert.same({ a = "2", b = "3" }, t)
    assert.equal("b", ffi.string(C.lc_props_key(p, 0)))
  end)

  it("survives any bytes", function()
    math.randomseed(7)
    local alphabet = { "\\", "\n", "\r", "u", "0", "=", ":", " ", "#", "a", "\255", "\t" }
    for _ = 1, 3000 do
      local t = {}
      for i = 1, math.random(0, 24) do t[i] = alphabet[math.random(#alphabet)] end
      parse(table.concat(t))
    end
  end)
end)

describe("files", function()
  local function load(path)
    local out, err = ffi.new "lc_props_t *[1]", core.err()
    if C.lc_properties_load(path, out, err) == 0 then return core.table(ffi.gc(out[0], C.lc_props_free)) end
    return nil, core.msg(err), ffi.string(err.cls)
  end

  it("are read", function()
    local name = os.tmpname()
    files.write(name, "a=1\nb=" .. ("x"):rep(200000))
    local t = load(name)
    os.remove(name)
    assert.equal(200000, #t.b)
  end)

  it("that are missing, folders or unreadable are named as Java does", function()
    assert.same({ nil, "nosuch.properties", "java.nio.file.NoSuchFileException" }, { load "nosuch.properties" })
    assert.same({ nil, "/tmp: Is a directory", "java.io.IOException" }, { load "/tmp" })
    assert.same({ nil, "/etc/passwd/x: Not a directory", "java.nio.file.FileSystemException" },
      { load "/etc/passwd/x" })
  end)
end)
