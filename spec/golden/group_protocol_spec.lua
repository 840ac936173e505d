-- The group protocol's bytes as the Java worker wrote them (__consumer_offsets), decoded and written again.
local core = require "spec.support.core"
local golden = require "spec.support.golden"
local C, ffi = core.load { "base/err.h", "base/buf.h", "kafka/group.h", "kafka/wire/connect_protocol.h" }
local work = require "spec.support.work"

local alphabet = {}
for i = 1, 64 do
  alphabet[("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"):byte(i)] = i - 1
end

local function unbase64(text)
  local out, bits, n = {}, 0, 0
  for i = 1, #text do
    local v = alphabet[text:byte(i)]
    if v then
      bits, n = bits * 64 + v, n + 6
      if n >= 8 then
        n = n - 8
        local byte = math.floor(bits / 2 ^ n)
        out[#out + 1] = string.char(byte)
        bits = bits - byte * 2 ^ n
      end
    end
  end
  return table.concat(out)
end

local function shown(list) return "[" .. table.concat(list, ", ") .. "]" end

local function parts(set)
  local connectors, tasks = {}, {}
  for i = 0, tonumber(set.n) - 1 do
    local name, task = ffi.string(set.v[i].connector), set.v[i].task
    if task < 0 then table.insert(connectors, name) else table.insert(tasks, name .. "-" .. task) end
  end
  return shown(connectors), shown(tasks)
end

-- Java prints its sets in hash order
local function sorted(text)
  return (text:gsub("%[([^%[%]]*)%]", function(inner)
    local list = {}
    for item in inner:gmatch "[^, ]+" do list[#list + 1] = item end
    table.sort(list)
    return shown(list)
  end))
end

local function string_or_null(p) return p ~= nil and ffi.string(p) or "null" end

local function describe_assignment(a, version)
  local c, t = parts(a.assigned)
  local s = ("Assignment{error=%d, leader='%s', leaderUrl='%s', offset=%d, connectorIds=%s, taskIds=%s"):format(a.error,
    string_or_null(a.leader), string_or_null(a.leader_url), tonumber(a.config_offset), c, t)
  if version > 0 then
    local rc, rt = parts(a.revoked)
    s = s .. (", revokedConnectorIds=%s, revokedTaskIds=%s, delay=%d"):format(rc, rt, a.delay_ms)
  end
  return s .. "}"
end

-- Java writes connectors in the order they came; ours are sorted. The bytes are then the same but for that order.
local function same_bytes(theirs, ours, decode)
  local function pieces(bytes)
    local list = {}
    for i = 1, #bytes do list[i] = bytes:byte(i) end
    table.sort(list)
    return list
  end
  if theirs ~= ours then
    assert.equal(#theirs, #ours)
    assert.same(pieces(theirs), pieces(ours))
    local a, b = decode(theirs), decode(ours)
    assert.is_true(#work.list(a.assigned) + #work.list(a.revoked) > 1)
    assert.same(work.list(a.assigned), work.list(b.assigned))
    assert.same(work.list(a.revoked), work.list(b.revoked))
  end
end

describe("golden group protocol", function()
  local cases = golden.cases "topics/group-protocol.jsonl"
  local n = 0
  for _, case in ipairs(cases) do
    for _, member in ipairs(case.members) do
      n = n + 1
      it(("generation %d at offset %d, %s"):format(case.generation, case.offset, member.clientId), function()
        local version = C.lc_connect_protocol_version(case.protocol)
        local bytes = unbase64(member.subscription_base64)
        local m = assert(work.decode_metadata(bytes))
        assert.equal(version, m.version)
        local text = ("WorkerState{url='%s', offset=%d"):format(ffi.string(m.url), tonumber(m.config_offset))
        if version > 0 then
          if not m.has_allocation then m.allocation.config_offset = -1 end
          text = text .. ", " .. describe_assignment(m.allocation, version)
        end
        assert.equal(sorted(member.subscription), sorted(text .. "}"))
        same_bytes(bytes, work.encode_metadata(version, m.url, m.config_offset,
          m.has_allocation and m.allocation or nil), function(b) return assert(work.decode_metadata(b)).allocation end)

        bytes = unbase64(member.assignment_base64)
        local a = assert(work.decode_assignment(bytes))
        assert.equal(version, a.protocol)
        assert.equal(sorted(member.assignment), sorted(describe_assignment(a, version)))
        same_bytes(bytes, work.encode_assignment(version, a), function(b) return assert(work.decode_assignment(b)) end)
      end)
    end
  end
  it("was recorded", function() assert.is_true(n > 0) end)
end)
