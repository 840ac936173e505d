-- spec/support/work.lua: sets of work and assignments as Lua values, for the group's specs.
local core = require "spec.support.core"
local C, ffi = core.load { "base/err.h", "base/alloc.h", "base/buf.h", "kafka/group.h",
  "kafka/wire/connect_protocol.h" }

local _M = {}

--- "c1", "c1-0", ...: fills an lc_work_t. Without a number behind the last "-" it is the connector itself.
function _M.fill(work, items)
  for _, item in ipairs(items or {}) do
    local name, task = item:match "^(.*)%-(%d+)$"
    C.lc_work_add(work, name or item, name and tonumber(task) or -1)
  end
  return work
end

--- An lc_work_t as { "c1", "c1-0" }, in its order.
function _M.list(work)
  local out = {}
  for i = 0, tonumber(work.n) - 1 do
    local it = work.v[i]
    local name = ffi.string(it.connector)
    out[#out + 1] = it.task < 0 and name or name .. "-" .. it.task
  end
  return out
end

function _M.hex(text) return (text:gsub(".", function(c) return ("%02x"):format(c:byte()) end)) end

function _M.unhex(text)
  return (text:gsub("%s", ""):gsub("..", function(h) return string.char(tonumber(h, 16)) end))
end

--- A filled lc_assignment_t; t = { version, error, leader, leader_url, offset, assigned, revoked, delay }.
function _M.assignment(t)
  local a = ffi.gc(ffi.new "lc_assignment_t", C.lc_assignment_clear)
  a.error, a.config_offset, a.delay_ms = t.error or 0, t.offset or -1, t.delay or 0
  a.leader, a.leader_url = C.lc_strdup(t.leader or ""), C.lc_strdup(t.leader_url or "")
  _M.fill(a.assigned, t.assigned)
  _M.fill(a.revoked, t.revoked)
  return a
end

local function text(buf)
  local s = ffi.string(buf.p, buf.len)
  C.lc_buf_free(buf)
  return s
end

function _M.encode_assignment(version, a)
  local buf = ffi.new "lc_buf_t"
  assert(C.lc_connect_assignment_encode(buf, version, a) == 0)
  return text(buf)
end

function _M.encode_metadata(version, url, offset, allocation)
  local buf = ffi.new "lc_buf_t"
  assert(C.lc_connect_metadata_encode(buf, version, url, offset, allocation) == 0)
  return text(buf)
end

--- The decoded assignment, or nil and the message.
function _M.decode_assignment(bytes)
  local a, err = ffi.gc(ffi.new "lc_assignment_t", C.lc_assignment_clear), core.err()
  if C.lc_connect_assignment_decode(bytes, #bytes, a, err) ~= 0 then return nil, core.msg(err) end
  return a
end

function _M.decode_metadata(bytes)
  local m, err = ffi.gc(ffi.new "lc_connect_metadata_t", C.lc_connect_metadata_clear), core.err()
  if C.lc_connect_metadata_decode(bytes, #bytes, m, err) ~= 0 then return nil, core.msg(err) end
  return m
end

return _M
