-- Definitions: parsing, checks, Java's HashMap order, topic expressions, version ranges, config providers.
local core = require "spec.support.core"
local files = require "spec.support.files"
local with = require "spec.support.with"
local C, ffi = core.load { "data/java_hash.h",
  "base/err.h", "base/log.h", "config/def.h", "config/java_map.h", "config/topic_regex.h", "config/version_range.h",
  "config/providers.h",
}

local T = { boolean = 0, string = 1, int = 2, short = 3, long = 4, double = 5, list = 6, class = 7, password = 8 }

pcall(ffi.cdef, "void free(void *);")

local function buf(fn)
  local b = ffi.new "lc_buf_t"
  local rc = fn(b)
  local s = b.p ~= nil and ffi.string(b.p, b.len) or ""
  C.lc_buf_free(b)
  return s, rc
end

local function row(t)
  local r = ffi.new "lc_config_row_t"
  r.name, r.type, r.def, r.required = t.name or "k", T[t.type], t.default, t.required or false
  if t.check then r.check = C["lc_check_" .. t.check] end
  r.min, r.max, r.whole = t.min or 0, t.max or 0, t.whole or false
  if t.one_of then
    t.keep = ffi.new("const char *[?]", #t.one_of + 1)
    for i, s in ipairs(t.one_of) do t.keep[i - 1] = s end
    r.one_of = t.keep
  end
  return r
end

-- value (false = null), messages...
local function parse(t, value)
  local props = value == nil and core.props {} or core.props { { t.full or t.name or "k", value } }
  local out, errors = ffi.new "char *[1]", ffi.new "lc_strv_t"
  C.lc_config_parse(row(t), t.full or t.name or "k", props, out, errors)
  local messages = {}
  for i = 0, tonumber(errors.n) - 1 do messages[i + 1] = ffi.string(errors.v[i]) end
  C.lc_strv_free(errors)
  local parsed = out[0] ~= nil and ffi.string(out[0]) or false
  ffi.C.free(out[0])
  return parsed, unpack(messages)
end

describe("definitions", function()
  it("parse every type to its canonical text", function()
    assert.equal("true", parse({ type = "boolean" }, " TRUE "))
    assert.equal("x y", parse({ type = "string" }, "  x y\t"))
    assert.equal("5", parse({ type = "int" }, "+05"))
    assert.equal("-2147483648", parse({ type = "int" }, "-2147483648"))
    assert.equal("9223372036854775807", parse({ type = "long" }, "9223372036854775807"))
    assert.equal("a,b,,c,", parse({ type = "list" }, " a , b,,c ,"))
    assert.equal("", parse({ type = "list" }, "  "))
    assert.equal("0.05", parse({ type = "double" }, "5e-2"))
    assert.equal("3.0", parse({ type = "double" }, "3"))
  end)

  it("refuse with Java's words", function()
    for kind, bad in pairs { int = "2147483648", short = "32768", long = "9223372036854775808", double = "x" } do
      assert.same({ false, ("Invalid value %s for configuration k: Not a number of type %s"):format(bad,
        kind:upper()) },
        { parse({ type = kind }, bad) })
    end
    for _, bad in ipairs { "", "1.5", "1e1", " ", "0x10", "1 2", "--1", "+" } do
      assert.equal("Invalid value " .. bad .. " for configuration k: Not a number of type INT",
        select(2, parse({ type = "int" }, bad)))
    end
    assert.equal("Invalid value maybe for configuration k: Expected value to be either true or false",
      select(2, parse({ type = "boolean" }, "maybe")))
  end)

  it("know defaults, required keys and null", function()
    assert.equal("7", parse { type = "int", default = "7" })
    assert.equal(false, (parse { type = "int" }))
    assert.same({ false, 'Missing required configuration "a.k" which has no default value.' },
      { parse { type = "int", required = true, name = "k", full = "a.k" } })
  end)

  it("check after a bad type too, naming the row's own name", function()
    assert.same({ false, "Invalid value x for configuration p.k: Not a number of type INT",
      "Invalid value null for configuration k: Value must be non-null" },
      { parse({ type = "int", check = "at_least", min = 1, name = "k", full = "p.k" }, "x") })
  end)

  it("check ranges, words and lists", function()
    assert.equal("Invalid value 0 for configuration k: Value must be at least 1",
      select(2, parse({ type = "int", check = "range", min = 1, max = 5 }, "0")))
    assert.equal("Invalid value 6 for configuration k: Value must be no more than 5",
      select(2, parse({ type = "int", check = "range", min = 1, max = 5 }, "6")))
    assert.equal("Invalid value 0.3 for configuration k: Value must be at least 0.5",
      select(2, parse({ type = "double", check = "range", min = 0.5, max = 1 }, "0.3")))
    assert.equal("Invalid value c for configuration k: String must be one of: a, b",
      select(2, parse({ type = "string", check = "one_of", one_of = { "a", "b" } }, "c")))
    assert.equal("Invalid value A for configuration k: String must be one of: a",
      select(2, parse({ type = "string", check = "one_of", one_of = { "a" } }, "A")))
    assert.equal("a", parse({ type = "string", check = "one_of_ci", one_of = { "A" } }, "a"))
    assert.equal("Invalid value  for configuration k: String must be non-empty",
      select(2, parse({ type = "string", check = "non_empty" }, "")))
    local list = { type = "list", check = "list", whole = true }
    assert.equal("Configuration 'k' values must not be duplicated.", select(2, parse(list, "a,b,a")))
    assert.equal("Configuration 'k' values must not be empty.", select(2, parse(list, "a,,b")))
    assert.equal("Configuration 'k' must not be empty. Valid values include: any non-empty value",
      select(2, parse({ type = "list", check = "list_non_empty", whole = true }, "")))
    assert.equal("Invalid value [a, a] for configuration k: Duplicate alias provided.",
      select(2, parse({ type = "list", check = "aliases" }, "a,a")))
  end)

  it("hide passwords in messages", function()
    assert.equal("[hidden]", (buf(function(b) C.lc_config_value_text(T.password, "secret", b) end)))
  end)
end)

describe("Java's HashMap", function()
  it("hashes as String.hashCode", function()
    assert.equal(0, C.lc_java_string_hash("", 0))
    assert.equal(3373707, C.lc_java_string_hash("name", 4))
    assert.equal(233, C.lc_java_string_hash("é", 2))
    assert.equal(1772899, C.lc_java_string_hash("😀", 4))
  end)

  it("lists keys in its order", function()
    local p = core.props { { "tasks.max", "1" }, { "file", "f" }, { "topic", "t" }, { "name", "v" } }
    assert.equal("{name=v, topic=t, file=f, tasks.max=1}", (buf(function(b) C.lc_java_map_text(p, b) end)))
    assert.equal("{}", (buf(function(b) C.lc_java_map_text(core.props {}, b) end)))
  end)
end)

describe("topic expressions", function()
  local function posix(java)
    local err = core.err()
    local s, rc = buf(function(b) return C.lc_topic_regex_posix(java, b, err) end)
    if rc ~= 0 then return nil, core.msg(err) end
    return s
  end

  it("match whole names as Java's", function()
    local yes = { { "g.*", "g-src" }, { "a|b", "b" }, { "(?:x|y)\\d+", "y42" }, { "\\w+", "a_1" }, { "a\\.b", "a.b" },
      { "[\\w.-]+", "a.b-c" }, { "x{2,3}", "xxx" }, { "\\Qa.b\\E.*", "a.bc" }, { "[]a]", "]" }, { "[^a]", "b" },
      { "a*?b", "aab" }, { "(?<n>a)", "a" }, { "[\\^a]", "^" }, { "[a-]", "-" }, { "|a", "" }, { "", "" } }
    for _, c in ipairs(yes) do assert.is_true(C.lc_topic_regex_matches(c[1], c[2]), c[1] .. " " .. c[2]) end
    local no = { { "g.*", "xg" }, { "a|b", "ab" }, { "a\\.b", "axb" }, { "\\Qa.b\\E", "axb" }, { "x{2,3}", "x" },
      { "\\d", "a" }, { "\\D", "1" }, { "[^a]", "a" } }
    for _, c in ipairs(no) do assert.is_false(C.lc_topic_regex_matches(c[1], c[2]), c[1] .. " " .. c[2]) end
  end)

  it("name syntax errors as Java 17 does", function()
    local texts = { -- printed by java.util.regex.Pattern
      ["["] = "Unclosed character class near index 0\n[\n^", ["("] = "Unclosed group near index 1\n(",
      ["a(b"] = "Unclosed group near index 3\na(b", ["*a"] = "Dangling meta character '*' near index 0\n*a\n^",
      ["a**"] = "Dangling meta character '*' near index 2\na**\n  ^", [")"] = "Unmatched closing ')'\n)",
      ["a)b"] = "Unmatched closing ')' near index 0\na)b\n^",
        ["[a"] = "Unclosed character class near index 1\n[a\n ^",
      ["[z-a]"] = "Illegal character range near index 3\n[z-a]\n   ^", ["a{"] = "Illegal repetition near index 2\na{",
      ["a{1"] = "Unclosed counted closure near index 3\na{1", ["{"] = "Illegal repetition near index 1\n{",
      ["a{2,1}"] = "Illegal repetition range near index 5\na{2,1}\n     ^",
        ["a\\"] = "Unexpected internal error near index 2\na\\",
      ["a|*"] = "Dangling meta character '*' near index 2\na|*\n  ^",
        ["[]"] = "Unclosed character class near index 1\n[]\n ^",
      ["\\y"] = "Illegal/unsupported escape sequence near index 1\n\\y\n ^",
      ["(?<n"] = "named capturing group is missing trailing '>' near index 4\n(?<n",
    }
    for java, text in pairs(texts) do assert.same({ nil, text }, { posix(java) }) end
  end)

  it("refuse what POSIX cannot say", function()
    for _, java in ipairs { "(?=a)b", "a++", "(a)\\1", "\\p{Lu}", "[a&&b]", "(?i)a", "\\bx" } do
      local s, msg = posix(java)
      assert.is_nil(s)
      assert.truthy(msg:find("no POSIX counterpart", 1, true), java)
    end
  end)

  it("survive any text", function()
    math.randomseed(3)
    local alphabet = { "a", "[", "]", "(", ")", "\\", "*", "?", "{", "1", ",", "}", "^", "-", "|", "Q", "E", "$" }
    for _ = 1, 5000 do
      local t = {}
      for i = 1, math.random(0, 12) do t[i] = alphabet[math.random(#alphabet)] end
      posix(table.concat(t))
    end
  end)
end)

describe("version ranges", function()
  local function try(range, version)
    local err = core.err()
    local text, rc = buf(function(b) return C.lc_version_in_range(range, version, b, err) end)
    if rc < 0 then return core.msg(err) end
    return rc == 1, text
  end

  it("follow Maven", function()
    assert.same({ true, "[9.9,9.9]" }, { try("9.9", "9.9") })
    assert.same({ false, "[9.9,9.9]" }, { try("9.9", "4.3.1") })
    assert.is_true(try("[4.0,5.0)", "4.3.1"))
    assert.is_false(try("[4.0,4.3.1)", "4.3.1"))
    assert.is_true(try("[4.0,4.3.1]", "4.3.1"))
    assert.is_true(try("(,1.0],[4,)", "4.3.1"))
    assert.is_true(try("latest", "1"))
    assert.is_true(try(nil, "1"))
    assert.is_false(try("[1.0]", "1.0-rc1"))
    assert.is_true(try("[1.0]", "1.0.0"))
  end)

  it("name malformed ones", function()
    assert.equal("Unbounded range: [1.0", try("[1.0", "1"))
    assert.equal("Single version must be surrounded by []: (1.0)", try("(1.0)", "1"))
    assert.equal("Range defies version ordering: [2.0,1.0]", try("[2.0,1.0]", "1"))
    assert.equal("Ranges overlap: [1,3],[2,4]", try("[1,3],[2,4]", "1"))
    assert.equal("Only fully-qualified sets allowed in multiple set scenario: [1,2]x", try("[1,2]x", "1"))
  end)
end)

describe("config providers", function()
  local base = "org.apache.kafka.common.config.provider."
  local dir

  local function write(name, text) files.write(dir .. "/" .. name, text) end
  setup(function()
    C.lc_log_set_level(nil, "off")
    dir = files.tmpdir()
    write("p.properties", "user=ada\nkey\\:x=colon\numl=\195\164")
    write("raw", "two\nlines\n")
    pcall(ffi.cdef, "int setenv(const char *, const char *, int);")
    ffi.C.setenv("LC_SPEC_VALUE", "from-env", 1)
  end)
  teardown(function()
    C.lc_log_set_level(nil, "info")
    os.execute("rm -r " .. dir)
  end)

  local function resolve(value, extra)
    local worker = with({
      ["config.providers"] = "file, dir,env,none", ["config.providers.file.class"] = base .. "FileConfigProvider",
      ["config.providers.dir.class"] = "DirectoryConfigProvider", ["config.providers.env.class"] = "EnvVar",
    }, extra)
    local err = core.err()
    local p = C.lc_providers_new(core.props(worker), err)
    if p == nil then return nil, core.msg(err) end
    local out = C.lc_providers_resolve(p, core.props { { "k", value } }, err)
    C.lc_providers_free(p)
    if out == nil then return nil, core.msg(err) end
    return core.table(ffi.gc(out, C.lc_props_free)).k
  end

  it("read files, folders and the environment", function()
    assert.equal("ada", resolve("${file:" .. dir .. "/p.properties:user}"))
    assert.equal("-ada/ada-", resolve("-${file:" .. dir .. "/p.properties:user}/${file:" .. dir ..
      "/p.properties:user}-"))
    assert.equal("colon", resolve("${file:" .. dir .. "/p.properties:key:x}"))
    assert.equal("ä", resolve("${file:" .. dir .. "/p.properties:uml}"))
    assert.equal("two\nlines\n", resolve("${dir:" .. dir .. ":raw}"))
    assert.equal("from-env", resolve "${env:LC_SPEC_VALUE}")
    assert.equal("$from-env", resolve "$${env:LC_SPEC_VALUE}")
  end)

  it("leave what they do not know", function()
    for _, s in ipairs { "${vault:a:b}", "${file}", "${", "${file:" .. dir .. "/p.properties:nokey}",
      "${env:NO_SUCH_X}",
      "${dir:" .. dir .. ":nofile}", "${dir:/no/such:raw}", "${dir:" .. dir .. ":../x}", "${none:a:b}",
        "${file::user}", "$x{a:b}" } do
      assert.equal(s, resolve(s))
    end
  end)

  it("refuse with Java's words", function()
    assert.same({ nil, "Could not read properties from file /no/such" }, { resolve "${file:/no/such:x}" })
    assert.same({ nil, "Path is not supported for EnvVarConfigProvider, invalid value 'p'" },
      { resolve "${env:p:x}" })
    assert.same({ nil,
      "Invalid value no.Such for configuration config.providers.file.class: Could not load config " ..
      "provider class or one of its dependencies" }, { resolve("x",
        { ["config.providers.file.class"] = "no.Such" }) })
    assert.same({ nil, "Path rel is not absolute" }, { resolve("x",
      { ["config.providers.file.param.allowed.paths"] = "rel" }) })
    assert.same({ nil, "Path /no/such does not exist" },
      { resolve("x", { ["config.providers.file.param.allowed.paths"] = "/no/such" }) })
  end)

  it("keep to allowed paths and names", function()
    local inside, limit = "${file:" .. dir .. "/p.properties:user}", "config.providers.file.param.allowed.paths"
    assert.equal("ada", resolve(inside, { [limit] = dir }))
    assert.equal("ada", resolve("${file:" .. dir .. "/../" .. dir:match "[^/]+$" .. "/p.properties:user}",
      { [limit] = dir }))
    assert.equal(inside, resolve(inside, { [limit] = "/usr" }))
    local out = "${file:" .. dir .. "/../../etc/passwd:root}"
    assert.equal(out, resolve(out, { [limit] = dir }))
    assert.equal("${env:LC_SPEC_VALUE}", resolve("${env:LC_SPEC_VALUE}",
      { ["config.providers.env.param.allowlist.pattern"] = "X.*" }))
    assert.equal("from-env", resolve("${env:LC_SPEC_VALUE}",
      { ["config.providers.env.param.allowlist.pattern"] = "LC_.*" }))
  end)
end)
