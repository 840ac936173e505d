-- Wire: Kafka's primitives, Connect's metadata and assignment bytes, SCRAM, server lists, JAAS lines.
local core = require "spec.support.core"
local C, ffi = core.load { "base/err.h", "base/buf.h", "base/alloc.h", "kafka/wire/buffer.h", "kafka/group.h",
  "kafka/wire/connect_protocol.h", "kafka/wire/net.h", "kafka/wire/sasl.h", "kafka/wire/requests.h" }
local work = require "spec.support.work"
pcall(ffi.cdef, "void free(void *);")

local function text(buf)
  local s = buf.p ~= nil and ffi.string(buf.p, buf.len) or ""
  C.lc_buf_free(buf)
  return s
end

local function reader(bytes)
  local r = ffi.new "lc_wire_reader_t"
  C.lc_wire_reader_init(r, bytes, #bytes)
  return r
end

describe("wire buffer", function()
  it("writes big endian and reads it back", function()
    local b = ffi.new "lc_buf_t"
    C.lc_wire_put_i8(b, -2)
    C.lc_wire_put_i16(b, -300)
    C.lc_wire_put_i32(b, 0x01020304)
    C.lc_wire_put_i64(b, -1)
    C.lc_wire_put_str(b, "ab")
    C.lc_wire_put_str(b, nil)
    C.lc_wire_put_bytes(b, "xyz", 3)
    C.lc_wire_put_bytes(b, nil, 0)
    local bytes = text(b)
    assert.equal("fefed401020304ffffffffffffffff00026162ffff0000000378797affffffff", work.hex(bytes))
    local r = reader(bytes)
    assert.equal(-2, C.lc_wire_i8(r))
    assert.equal(-300, C.lc_wire_i16(r))
    assert.equal(0x01020304, C.lc_wire_i32(r))
    assert.equal(-1, tonumber(C.lc_wire_i64(r)))
    local s = C.lc_wire_str(r)
    assert.equal("ab", ffi.string(s))
    C.free(s)
    assert.is_true(C.lc_wire_str(r) == nil)
    local v = C.lc_wire_bytes(r)
    assert.equal("xyz", ffi.string(v.p, v["end"] - v.p))
    assert.is_true(C.lc_wire_bytes(r).p == nil)
    assert.is_false(r.bad)
    C.lc_wire_i8(r)
    assert.is_true(r.bad)
  end)

  it("refuses a string beyond 32767 bytes instead of cutting it", function()
    local b = ffi.new "lc_buf_t"
    C.lc_wire_put_str(b, ("x"):rep(32768))
    assert.is_true(b.oom)
    C.lc_buf_free(b)
  end)

  it("believes no length that the input cannot hold", function()
    local r = reader "\127\255abc"
    assert.is_true(C.lc_wire_str(r) == nil)
    assert.is_true(r.bad)
    r = reader "\255\255\255\254abcd"
    C.lc_wire_bytes(r)
    assert.is_true(r.bad)
    r = reader "\127\255\255\255abcd"
    assert.equal(0, C.lc_wire_count(r, 4))
    assert.is_true(r.bad)
    r = reader "\0\2a\0"
    assert.is_true(C.lc_wire_str(r) == nil)
    assert.is_true(r.bad)
  end)
end)

-- reference group 2.3: produced by the 4.3.1 classes
local url = "http://h:8083/"
local U = "000e687474703a2f2f683a383038332f"
local v0_assignment = "0000000000026d31" .. U .. "00000000000000070000000100027331000000"
  .. "02ffffffff00000000"
local v2_assignment = "0002000000026d31" .. U .. "00000000000000070000000100027331000000"
  .. "02ffffffff00000000" .. "0000000100016b000000010000000100001388"

describe("Connect's protocol", function()
  local full = { leader = "m1", leader_url = url, offset = 7, assigned = { "s1", "s1-0" }, revoked = { "k-1" },
    delay = 5000 }

  it("writes metadata as Java does", function()
    assert.equal("0000" .. U .. "0000000000000007", work.hex(work.encode_metadata(0, url, 7, nil)))
    assert.equal("0001" .. U .. "0000000000000007ffffffff", work.hex(work.encode_metadata(1, url, 7, nil)))
    assert.equal("0002" .. U .. "0000000000000007ffffffff", work.hex(work.encode_metadata(2, url, 7, nil)))
    assert.equal("0002" .. U .. "000000000000000700000047" .. v2_assignment,
      work.hex(work.encode_metadata(2, url, 7, work.assignment(full))))
  end)

  it("writes assignments as Java does", function()
    assert.equal(v0_assignment, work.hex(work.encode_assignment(0, work.assignment(full))))
    assert.equal(v2_assignment, work.hex(work.encode_assignment(2, work.assignment(full))))
    assert.equal("0001" .. v2_assignment:sub(5), work.hex(work.encode_assignment(1, work.assignment(full))))
  end)

  it("reads them back", function()
    local a = assert(work.decode_assignment(work.unhex(v2_assignment)))
    assert.equal("m1", ffi.string(a.leader))
    assert.equal(url, ffi.string(a.leader_url))
    assert.equal(7, tonumber(a.config_offset))
    assert.same({ "s1", "s1-0" }, work.list(a.assigned))
    assert.same({ "k-1" }, work.list(a.revoked))
    assert.equal(5000, a.delay_ms)
    local m = assert(work.decode_metadata(work.encode_metadata(2, url, 7, a)))
    assert.is_true(m.has_allocation)
    assert.same({ "s1", "s1-0" }, work.list(m.allocation.assigned))
    m = assert(work.decode_metadata(work.encode_metadata(0, url, 9, nil)))
    assert.is_false(m.has_allocation)
    assert.equal(9, tonumber(m.config_offset))
  end)

  it("gives missing trailing fields their defaults", function()
    local cut = v2_assignment:sub(1, #v0_assignment)
    local a = assert(work.decode_assignment(work.unhex(cut)))
    assert.equal(0, tonumber(a.revoked.n))
    assert.equal(0, a.delay_ms)
    a = assert(work.decode_assignment(work.unhex(v2_assignment:sub(1, -9))))
    assert.same({ "k-1" }, work.list(a.revoked))
    assert.equal(0, a.delay_ms)
    -- null arrays are none
    a = assert(work.decode_assignment(work.unhex("0002000000026d31" .. U .. "0000000000000007ffffffffffffffff")))
    assert.equal(0, tonumber(a.assigned.n))
  end)

  it("rejects every other cut, and survives any byte changed", function()
    local whole = work.unhex(v2_assignment)
    local before_work = 2 + 2 + 4 + 16 + 8 -- a missing array is none, too
    local allowed = { [before_work] = true, [#v0_assignment / 2] = true, [#whole - 4] = true }
    for n = 0, #whole - 1 do
      assert.equal(allowed[n] or false, work.decode_assignment(whole:sub(1, n)) ~= nil, "cut at " .. n)
    end
    for i = 1, #whole do
      for _, byte in ipairs { 0, 1, 0x7f, 0x80, 0xff } do
        work.decode_assignment(whole:sub(1, i - 1) .. string.char(byte) .. whole:sub(i + 1))
        work.decode_metadata("\0\2" .. whole:sub(1, i - 1) .. string.char(byte) .. whole:sub(i + 1))
      end
    end
  end)

  it("names a negative version", function()
    local _, msg = work.decode_assignment "\255\255\0\0"
    assert.equal("Unsupported assignment version: -1", msg)
    _, msg = work.decode_metadata "\255\254"
    assert.equal("Unsupported subscription version: -2", msg)
  end)

  it("knows the protocols' names", function()
    assert.equal(2, C.lc_connect_protocol_version "sessioned")
    assert.equal(0, C.lc_connect_protocol_version "default")
    assert.equal(-1, C.lc_connect_protocol_version "eager")
    assert.equal("compatible", ffi.string(C.lc_connect_protocol_name(1)))
  end)
end)

describe("group requests", function()
  it("joins with three protocols in order, never as a static member", function()
    local b, p = ffi.new "lc_buf_t", ffi.new "lc_join_protocol_t[2]"
    p[0].name, p[1].name = "sessioned", "compatible"
    C.lc_buf_add(p[0].metadata, "A", 1)
    C.lc_buf_add(p[1].metadata, "BC", 2)
    C.lc_join_put(b, 5, "g", 10000, 60000, "", p, 2)
    assert.equal("000167" .. "00002710" .. "0000ea60" .. "0000" .. "ffff" .. "0007636f6e6e656374" .. "00000002"
      .. "000973657373696f6e6564" .. "0000000141" .. "000a636f6d70617469626c65" .. "000000024243",
      work.hex(text(b)))
    C.lc_buf_free(p[0].metadata)
    C.lc_buf_free(p[1].metadata)
  end)

  it("reads JoinGroup answers and refuses broken ones", function()
    local body = work.unhex("00000000" .. "0000" .. "00000005" .. "000973657373696f6e6564" .. "00026d31" .. "00026d31"
      .. "00000001" .. "00026d31" .. "ffff" .. "00000002" .. "4142")
    local out, err = ffi.new "lc_join_answer_t", core.err()
    assert.equal(0, C.lc_join_get(reader(body), 5, out, err))
    assert.equal(5, out.generation)
    assert.equal(1, tonumber(out.nmembers))
    assert.equal("m1", ffi.string(out.members[0].id))
    C.lc_join_answer_clear(out)
    for n = 0, #body - 1 do
      assert.equal(-1, C.lc_join_get(reader(body:sub(1, n)), 5, out, err), "cut at " .. n)
      assert.is_true(out.members == nil)
    end
  end)

  it("leaves in the old form, too", function()
    local b = ffi.new "lc_buf_t"
    C.lc_leave_put(b, 3, "g", "m")
    assert.equal("0001670000000100016dffff", work.hex(text(b)))
    b = ffi.new "lc_buf_t"
    C.lc_leave_put(b, 1, "g", "m")
    assert.equal("00016700016d", work.hex(text(b)))
  end)
end)

describe("20,000 answers with a few other bytes", function()
  local URL = "\0\14http://h:8083/"
  local assignment = "\0\2\0\0\0\2m1" .. URL .. ("\0"):rep(7) .. "\7\0\0\0\1\0\2s1\0\0\0\2\255\255\255\255\0\0\0\0"
    .. "\0\0\0\1\0\1k\0\0\0\1\0\0\0\1\0\0\19\136"
  local metadata = "\0\2" .. URL .. ("\0"):rep(7) .. "\7\0\0\0" .. string.char(#assignment) .. assignment
  local recorded = {
    assignment = assignment,
    metadata = metadata,
    join = "\0\0\0\0\0\0\0\0\0\5\0\9sessioned\0\2m1\0\2m1\0\0\0\1\0\2m1\255\255\0\0\0" .. string.char(#metadata)
      .. metadata,
    sync = "\0\0\0\0\0\0\0\0\0" .. string.char(#assignment) .. assignment,
    coordinator = "\0\0\0\0\0\0\255\255\0\0\0\1\0\009127.0.0.1\0\0\35\132",
    error = "\0\0\0\0\0\27",
  }
  local decode = {
    assignment = work.decode_assignment,
    metadata = work.decode_metadata,
    join = function(bytes)
      local out = ffi.new "lc_join_answer_t"
      local rc = C.lc_join_get(reader(bytes), 5, out, core.err())
      if rc == 0 then
        for i = 0, tonumber(out.nmembers) - 1 do
          local m = out.members[i].metadata
          if m.p ~= nil then work.decode_metadata(ffi.string(m.p, m["end"] - m.p)) end
        end
        C.lc_join_answer_clear(out)
      end
      return rc == 0
    end,
    sync = function(bytes)
      local e, view = ffi.new "int16_t[1]", ffi.new "lc_wire_reader_t"
      return C.lc_sync_get(reader(bytes), 3, e, view, core.err()) == 0
    end,
    coordinator = function(bytes)
      local out = ffi.new "lc_coordinator_t"
      local rc = C.lc_find_coordinator_get(reader(bytes), 2, out, core.err())
      if rc == 0 then C.lc_coordinator_clear(out) end
      return rc == 0
    end,
    error = function(bytes) return C.lc_error_get(reader(bytes), 3, ffi.new "int16_t[1]", core.err()) == 0 end,
  }
  local seed = 20000
  local function random(n)
    seed = (seed * 1103515245 + 12345) % 2147483648
    return math.floor(seed / 65536) % n
  end

  for kind, whole in pairs(recorded) do
    it("are read or refused: " .. kind, function()
      assert.truthy(decode[kind](whole))
      for _ = 1, math.ceil(20000 / 6) do
        local bytes = { whole:byte(1, -1) }
        for _ = 0, random(4) do bytes[1 + random(#bytes)] = random(3) == 0 and 255 or random(256) end
        local cut = random(4) == 0 and random(#bytes) or #bytes
        decode[kind](string.char(unpack(bytes, 1, cut)))
      end
    end)
  end

  it("has a bound for names that stand there once for a million tasks", function()
    local tasks = 100000
    local bytes = "\0\2\0\0\0\1m\0\1u" .. ("\0"):rep(8) .. "\0\0\0\1\127\255" .. ("n"):rep(32767)
      .. "\0\1\134\160" .. ("\0"):rep(4 * tasks)
    local a, msg = work.decode_assignment(bytes)
    assert.is_nil(a)
    assert.truthy(msg:find("Malformed", 1, true))
  end)

  it("sorts what comes in any order, quickly", function()
    local list = {}
    for i = 1, 200000 do list[i] = string.char(0, math.floor((200000 - i) / 65536), math.floor((200000 - i) / 256) % 256,
      (200000 - i) % 256) end
    local a = assert(work.decode_assignment("\0\2\0\0\0\1m\0\1u" .. ("\0"):rep(8) .. "\0\0\0\1\0\1c\0\3\13\64"
      .. table.concat(list)))
    assert.equal(200000, tonumber(a.assigned.n))
    assert.equal(0, a.assigned.v[0].task)
  end)
end)

describe("SASL", function()
  local function scram(mechanism)
    local s = ffi.gc(ffi.new "lc_scram_t", C.lc_scram_clear)
    s.mechanism, s.user, s.password = mechanism, "user", "pencil"
    return s
  end

  it("SCRAM-SHA-256 is the example of RFC 7677", function()
    local s, b, err = scram "LC_SASL_SCRAM_SHA_256", ffi.new "lc_buf_t", core.err()
    ffi.copy(s.nonce, "rOprNGfwEbeRWgbNEkqO")
    assert.equal(0, C.lc_scram_first(s, b, err))
    assert.equal("n,,n=user,r=rOprNGfwEbeRWgbNEkqO", text(b))
    local first = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    b = ffi.new "lc_buf_t"
    assert.equal(0, C.lc_scram_final(s, first, b, err))
    assert.equal("c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
      .. "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=", text(b))
    assert.equal(0, C.lc_scram_verify(s, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", err))
    assert.equal(-1, C.lc_scram_verify(s, "v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=", err))
    err = core.err()
    assert.equal(-1, C.lc_scram_verify(s, "e=invalid-proof", err))
    assert.truthy(core.msg(err):find("invalid-proof", 1, true))
  end)

  it("does not accept a foreign nonce, few iterations or a broken salt", function()
    local s, b = scram "LC_SASL_SCRAM_SHA_512", ffi.new "lc_buf_t"
    ffi.copy(s.nonce, "abc")
    assert.equal(0, C.lc_scram_first(s, b, core.err()))
    for _, first in ipairs { "r=xyz,s=QUJD,i=4096", "r=abc,s=QUJD,i=4096", "r=abcd,s=QUJD,i=100", "r=abcd,s=QU,i=4096",
      "r=abcd,i=4096", "", "r=abcd,s=QUJD,i=99999999999" } do
      assert.equal(-1, C.lc_scram_final(s, first, b, core.err()), first)
    end
    assert.equal(0, C.lc_scram_final(s, "r=abcd,s=QUJD,i=4096", b, core.err()))
    C.lc_buf_free(b)
  end)

  it("escapes the user's name", function()
    local s, b = scram "LC_SASL_SCRAM_SHA_256", ffi.new "lc_buf_t"
    s.user = "a=b,c"
    assert.equal(0, C.lc_scram_first(s, b, core.err()))
    assert.truthy(text(b):find("n,,n=a=3Db=2Cc,r=", 1, true))
  end)

  it("reads a JAAS line", function()
    local jaas = [[org.apache.kafka.common.security.scram.ScramLoginModule required
      username="al\"ice" password='p w;d' tokenauth=true serviceName = kafka;]]
    local function option(name)
      local v = C.lc_net_jaas_option(jaas, name)
      if v == nil then return nil end
      local s = ffi.string(v)
      C.free(v)
      return s
    end
    assert.equal('al"ice', option "username")
    assert.equal("p w;d", option "password")
    assert.equal("true", option "tokenauth")
    assert.equal("kafka", option "serviceName")
    assert.is_nil(option "required")
    assert.is_nil(option "user")
  end)
end)

describe("bootstrap servers", function()
  local function parse(s)
    local host, port, err = ffi.new "char *[1]", ffi.new "int[1]", core.err()
    if C.lc_net_parse_server(s, host, port, err) ~= 0 then return nil, core.msg(err) end
    local name = ffi.string(host[0])
    C.free(host[0])
    return name, port[0]
  end

  it("come in Java's forms", function()
    assert.same({ "localhost", 9092 }, { parse "localhost:9092" })
    assert.same({ "::1", 9092 }, { parse "[::1]:9092" })
    assert.same({ "a-b.c", 1 }, { parse "SSL://a-b.c:1" })
    for _, bad in ipairs { "localhost", "localhost:", "localhost:x", ":9092", "a:70000", "", "a b:1", "a:1x" } do
      local host, msg = parse(bad)
      assert.is_nil(host, bad)
      assert.equal("Invalid url in bootstrap.servers: " .. bad, msg)
    end
  end)
end)
