-- The standalone offset file: Java's serialized HashMap<byte[],byte[]>, read and written (reference standalone 5.3).
local core = require "spec.support.core"
local proc = require "spec.support.proc"
local C, ffi = core.load { "base/err.h", "base/buf.h", "storage/offset_store.h" }

local function unhex(text) return (text:gsub("..", function(h) return string.char(tonumber(h, 16)) end)) end

-- written by java.io.ObjectOutputStream (Java 17): empty, one entry, and five with a null value, a null key and one
-- array used twice
local java = {
  empty = unhex("aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f7249"
    .. "00097468726573686f6c6478703f400000000000007708000000100000000078"),
  one = unhex("aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f7249"
    .. "00097468726573686f6c6478703f4000000000000c77080000001000000001757200025b42acf317f8060854e00200007870"
    .. "0000000f5b2263222c7b2266223a2261227d5d7571007e00020000000e7b22706f736974696f6e223a377d78"),
  mixed = unhex("aced0005737200116a6176612e7574696c2e486173684d61700507dac1c31660d103000246000a6c6f6164466163746f7249"
    .. "00097468726573686f6c6478703f4000000000000c7708000000100000000570757200025b42acf317f8060854e002000078"
    .. "7000000001787571007e00020000000f5b2263222c7b2266223a2264227d5d7571007e00020000000e7b22706f736974696f"
    .. "6e223a397d7571007e00020000000f5b2263222c7b2266223a2261227d5d7571007e00020000000e7b22706f736974696f6e"
    .. "223a377d7571007e00020000000f5b2263222c7b2266223a226e227d5d707571007e00020000000f5b2263222c7b2266223a"
    .. "2262227d5d71007e000578"),
  string = unhex "aced000574000568656c6c6f",
  treemap = unhex("aced0005737200116a6176612e7574696c2e547265654d61700cc1f63e2d256ae60300014c000a636f6d70617261746f7274"
    .. "00164c6a6176612f7574696c2f436f6d70617261746f723b78707077040000000078"),
  array = unhex "aced0005757200025b42acf317f8060854e00200007870000000020102",
}

local dir, file, stores

local function open(path)
  local s = C.lc_offset_store_file_new(path or file)
  stores[#stores + 1] = s
  local err = core.err()
  if s.ops.start(s, nil, err) ~= 0 then return nil, core.msg(err), tonumber(err.kind) end
  return s
end

--- Message of the failure, or true.
local function set(s, connector, t)
  local n = 0
  local e = ffi.new("lc_offset_entry_t[?]", #t)
  for i, kv in ipairs(t) do
    e[i - 1].partition, e[i - 1].offset = kv[1], kv[2] or nil
  end
  local result
  local done = ffi.cast("lc_offset_done_fn *", function(_, err)
    n = n + 1
    result = err == nil or core.msg(ffi.cast("lc_err_t *", err))
  end)
  s.ops.set(s, connector, e, #t, done, nil)
  done:free()
  assert(n == 1)
  return result
end

local function get(s, connector, partition)
  local b = ffi.new "lc_buf_t"
  local rc = s.ops.get(s, connector, partition, b, core.err())
  local text = rc == 1 and ffi.string(b.p, b.len) or nil
  C.lc_buf_free(b)
  return text
end

local function list(s, connector)
  local out = {}
  local fn = ffi.cast("void (*)(void *, const char *, const char *)", function(_, p, o)
    out[ffi.string(p)] = ffi.string(o)
  end)
  s.ops.list(s, connector, fn, nil, core.err())
  fn:free()
  return out
end

describe("offset file", function()
  before_each(function()
    dir, stores = proc.tmpdir "offsets", {}
    file = dir .. "/connect.offsets"
  end)
  after_each(function()
    for _, s in ipairs(stores) do s.ops.stop(s) end
    os.execute("rm -rf " .. proc.quote(dir))
  end)

  it("reads what Java wrote", function()
    proc.write(file, java.one)
    local s = assert(open())
    assert.equal('{"position":7}', get(s, "c", '{"f":"a"}'))
    proc.write(file, java.mixed)
    s = assert(open())
    assert.same({ ['{"f":"a"}'] = '{"position":7}', ['{"f":"b"}'] = '{"position":9}',
      ['{"f":"d"}'] = '{"position":9}' }, list(s, "c"))
    assert.is_nil(get(s, "c", '{"f":"n"}'))
    proc.write(file, java.empty)
    assert.same({}, list(assert(open()), "c"))
  end)

  it("writes what Java writes", function()
    local s = assert(open())
    assert.is_true(set(s, "c", { { '{"f":"a"}', '{"position":7}' } }))
    assert.equal(java.one, proc.read(file))
    assert.is_nil(proc.read(file .. ".tmp"))
  end)

  it("keeps null values as entries and everything over a restart", function()
    local s = assert(open())
    local t = {}
    for i = 1, 100 do t[i] = { ('{"f":"%d"}'):format(i), ('{"position":%d}'):format(i) } end
    set(s, "c", t)
    set(s, 'q"\\n', { { '{"f":"1"}', '{"x":true}' } })
    set(s, "c", { { '{"f":"5"}', false } })
    s = assert(open())
    assert.equal('{"position":100}', get(s, "c", '{"f":"100"}'))
    assert.is_nil(get(s, "c", '{"f":"5"}'))
    assert.equal('{"x":true}', get(s, 'q"\\n', '{"f":"1"}'))
    local n = 0
    for _ in pairs(list(s, "c")) do n = n + 1 end
    assert.equal(99, n)
    -- 101 entries need a table of 256: 0.75 * 128 < 101
    assert.truthy(proc.read(file):find("w\8\0\0\1\0\0\0\0\101", 1, true))
  end)

  it("keeps the bytes of a key that was read", function()
    local key = '["c",{"z":1,"a":"b"}]'
    local from, to = java.one:find('["c",{"f":"a"}]', 1, true)
    proc.write(file, java.one:sub(1, from - 2) .. string.char(#key) .. key .. java.one:sub(to + 1))
    local s = assert(open())
    assert.equal('{"position":7}', get(s, "c", '{"a":"b","z":1}'))
    assert.same({ ['{"z":1,"a":"b"}'] = '{"position":7}' }, list(s, "c"))
    set(s, "c", { { '{"a":"b","z":1}', '{"position":8}' } })
    assert.truthy(proc.read(file):find(key, 1, true))
    assert.is_nil(proc.read(file):find('{"a"', 1, true))
  end)

  it("keeps a key it does not understand, but does not show it", function()
    local bytes = java.one:gsub('%["c"', "{'c'")
    proc.write(file, bytes)
    local s = assert(open())
    assert.same({}, list(s, "c"))
    set(s, "d", { { '{"f":"a"}', "{}" } })
    assert.truthy(proc.read(file):find("{'c'", 1, true))
  end)

  it("starts empty without a file, with an empty one", function()
    assert.same({}, list(assert(open()), "c"))
    proc.write(file, "")
    assert.same({}, list(assert(open()), "c"))
  end)

  it("refuses garbage with Java's words", function()
    local function refused(text)
      proc.write(file, text)
      local s, msg, kind = open()
      assert.is_nil(s)
      assert.equal(tonumber(C.LC_FATAL), kind)
      return msg
    end
    assert.equal("java.io.StreamCorruptedException: invalid stream header: 67617262", refused "garbage")
    assert.equal("Expected HashMap but found class java.lang.String", refused(java.string))
    assert.equal("Expected HashMap but found class java.util.TreeMap", refused(java.treemap))
    assert.equal("Expected HashMap but found class [B", refused(java.array))
    local _, msg = open(dir)
    assert.truthy(msg:find("java.io.IOException", 1, true))
  end)

  it("survives any cut and any byte changed", function()
    for n = 1, #java.mixed - 1 do
      proc.write(file, java.mixed:sub(1, n))
      open()
    end
    for i = 1, #java.mixed do
      for _, byte in ipairs { 0, 0x71, 0x7f, 0xff } do
        proc.write(file, java.mixed:sub(1, i - 1) .. string.char(byte) .. java.mixed:sub(i + 1))
        open()
      end
      for k = #stores, 1, -1 do
        stores[k].ops.stop(stores[k])
        stores[k] = nil
      end
    end
  end)

  it("keeps what is complete in a file that was cut", function()
    proc.write(file, java.mixed:sub(1, -20))
    local s = assert(open())
    assert.equal('{"position":9}', get(s, "c", '{"f":"d"}'))
    assert.is_nil(get(s, "c", '{"f":"b"}'))
  end)

  it("reports a folder that is not there and writes once it is", function()
    local path = dir .. "/no/x"
    local s = assert(open(path))
    assert.equal("java.nio.file.NoSuchFileException: " .. path, set(s, "c", { { "{}", "{}" } }))
    assert(os.execute("mkdir " .. proc.quote(dir .. "/no")) == 0)
    assert.is_true(set(s, "c", { { '{"f":1}', "{}" } }))
    assert.equal("{}", get(assert(open(path)), "c", "{}"))
  end)

  it("follows a link and keeps the file's mode", function()
    local real = dir .. "/real"
    proc.write(real, "")
    assert(os.execute(("chmod 640 %s && ln -s real %s"):format(real, file)) == 0)
    set(assert(open()), "c", { { '{"f":"a"}', '{"position":7}' } })
    assert.equal(java.one, proc.read(real))
    assert.equal("640\n", (proc.run("stat -c %a " .. real)))
    assert.equal("symbolic link\n", (proc.run("stat -c %F " .. file)))
  end)
end)
