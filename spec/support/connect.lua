-- spec/support/connect.lua: plugins and scripts of the core for specs: a scan, a host of Lua functions, the
-- calls of script.h as methods, and lua/connect itself in this very state.
local core = require "spec.support.core"
local files = require "spec.support.files"

local HEADERS = { "base/err.h", "base/buf.h", "base/props.h", "base/strv.h", "base/waker.h", "base/log.h", "config/def.h",
  "config/plugin.h", "data/record.h", "data/schema_builder.h", "convert/converter.h", "convert/json.h",
  "file/line_reader.h", "file/line_writer.h", "script/script.h" }
local C, ffi = core.load(HEADERS)

local _M = { C = C, ffi = ffi, core = core }

-- lua/connect of the source tree, so that `require "connect"` works in specs as it does in a plugin
package.path = "lua/?.lua;lua/?/init.lua;" .. package.path

local function text(p) return p ~= nil and ffi.string(p) or nil end
_M.text = text

--- Raises what a call left in err, as text.
local function check(ok, err)
  if not ok then error(setmetatable({ kind = text(C.lc_err_kind_name(err.kind)), message = core.msg(err),
    detail = text(err.detail), class = text(err.cls) }, { __tostring = function(e) return e.message end }), 0) end
end

_M.tmpdir, _M.rm, _M.write, _M.read = files.tmpdir, files.rm, files.write, files.read

_M.logged = require "spec.support.logged"

--- lc_plugins_scan(home, list of folders), freed by the collector.
function _M.scan(folders, home)
  local path = ffi.new "lc_strv_t"
  for _, f in ipairs(folders or {}) do C.lc_strv_add(path, f) end
  local err = core.err()
  local set = C.lc_plugins_scan(home or ".", path, err)
  C.lc_strv_free(path)
  check(set ~= nil, err)
  return ffi.gc(set, C.lc_plugins_free)
end

function _M.find(set, name, mask)
  local err = core.err()
  local p = C.lc_plugins_find(set, mask or 0, name, err)
  check(p ~= nil, err)
  return p
end

--- The only plugin of a file given as text; its folder is removed at once (bytecode stays in the set).
function _M.plugin(source, modules)
  local dir = _M.tmpdir()
  os.execute("mkdir -p " .. dir .. "/p")
  _M.write(dir .. "/p/init.lua", source)
  for name, body in pairs(modules or {}) do _M.write(dir .. "/p/" .. name .. ".lua", body) end
  local set = _M.scan { dir }
  local found
  for i = 0, tonumber(set.n) - 1 do
    local location = text(set.v[i].location)
    if location and location:find(dir, 1, true) then found = set.v[i] end
  end
  if not modules then _M.rm(dir) end
  assert(found, "no plugin found")
  return found, set, dir
end

local ROLES = { connector = 0, source = 1, sink = 2 }

local Script = {}
Script.__index = Script

--- A script of a plugin. host: { stop = lc_waker_t *, stopping =, offset_get = function(json) -> text or nil,
-- max_request_size =, pause, resume, seek, timeout, request_commit, reconfigure, raise, assignment = {...} }
function _M.script(plugin, role, host)
  host = host or {}
  local h = ffi.new "lc_script_host_t"
  local keep = { h }
  local function anchor(ctype, fn)
    local cb = ffi.cast(ctype, fn)
    keep[#keep + 1] = cb
    return cb
  end
  keep.name = host.connector or "spec"
  h.connector = keep.name
  h.task = host.task or 0
  h.stop = host.stop
  h.max_request_size = host.max_request_size or 0
  if host.stopping then h.stopping = host.stopping end
  if host.offset_get then
    h.offset_get = anchor("int (*)(void *, const char *, lc_buf_t *, lc_err_t *)", function(_, json, out)
      local s = host.offset_get(ffi.string(json))
      if not s then return 0 end
      C.lc_buf_add(out, s, #s)
      return 1
    end)
  end
  local function tps_of(tps, n)
    local list = {}
    for i = 0, tonumber(n) - 1 do
      list[i + 1] = { topic = ffi.string(tps[i].topic), partition = tps[i].partition, offset = tonumber(tps[i].offset) }
    end
    return list
  end
  for _, name in ipairs { "pause", "resume" } do
    if host[name] then
      h[name] = anchor("int (*)(void *, const lc_topic_partition_t *, size_t, lc_err_t *)", function(_, tps, n)
        host[name](tps_of(tps, n))
        return 0
      end)
    end
  end
  if host.seek then
    h.seek = anchor("void (*)(void *, const lc_topic_partition_t *)", function(_, tp) host.seek(tps_of(tp, 1)[1]) end)
  end
  if host.timeout then
    h.timeout = anchor("void (*)(void *, int64_t)", function(_, ms) host.timeout(tonumber(ms)) end)
  end
  for _, name in ipairs { "request_commit", "reconfigure" } do
    if host[name] then h[name] = anchor("void (*)(void *)", function() host[name]() end) end
  end
  if host.raise then
    h.raise = anchor("void (*)(void *, const lc_err_t *)", function(_, err) host.raise(ffi.string(err.msg), ffi.string(err.detail)) end)
  end
  if host.assignment then
    keep.tps = _M.tps(host.assignment)
    h.assignment = anchor("size_t (*)(void *, const lc_topic_partition_t **)", function(_, out)
      out[0] = keep.tps.v
      return keep.tps.n
    end)
  end
  local err = core.err()
  local s = C.lc_script_new(plugin, ROLES[role], h, err)
  local self = setmetatable({ s = s, host = h, keep = keep }, Script)
  if s == nil then self:free() end
  check(s ~= nil, err)
  return self
end

--- { {topic, partition, offset}, ... } as a C array.
function _M.tps(list)
  local out = { n = #list, v = ffi.new("lc_topic_partition_t[?]", math.max(#list, 1)), keep = {} }
  for i, tp in ipairs(list) do
    out.keep[i] = tp[1]
    out.v[i - 1].topic, out.v[i - 1].partition, out.v[i - 1].offset = tp[1], tp[2], tp[3] or -1001
  end
  return out
end

function Script:free()
  if self.s ~= nil then C.lc_script_free(self.s) end
  self.s = nil
  for _, cb in ipairs(self.keep) do
    if type(cb) == "cdata" and tostring(ffi.typeof(cb)):find "%(%*%)" then cb:free() end
  end
  self.keep = {}
end

function Script:start(config)
  local err = core.err()
  check(C.lc_script_start(self.s, core.props(config or {}), err) == 0, err)
end

function Script:stop()
  local err = core.err()
  check(C.lc_script_stop(self.s, err) == 0, err)
end

--- The batch of one poll, freed by the collector, or nil.
function Script:poll()
  local err, out = core.err(), ffi.new "lc_batch_t *[1]"
  check(C.lc_script_poll(self.s, out, err) == 0, err)
  if out[0] ~= nil then return ffi.gc(out[0], C.lc_batch_unref) end
end

function Script:task_configs(config, max)
  local err, out, n = core.err(), ffi.new "lc_props_t **[1]", ffi.new "int[1]"
  check(C.lc_script_task_configs(self.s, core.props(config), max, out, n, err) == 0, err)
  local list = {}
  for i = 0, n[0] - 1 do
    list[i + 1] = core.table(out[0][i])
    C.lc_props_free(out[0][i])
  end
  ffi.cdef "void free(void *);"
  ffi.C.free(out[0])
  return list
end

function Script:open(list)
  local err, tps = core.err(), _M.tps(list)
  check(C.lc_script_open(self.s, tps.v, tps.n, err) == 0, err)
end

function Script:close(list)
  local err, tps = core.err(), _M.tps(list)
  check(C.lc_script_close(self.s, tps.v, tps.n, err) == 0, err)
end

--- put of a batch; the failures as a list of { index =, kind =, message = }.
function Script:put(batch)
  local err, list = core.err(), {}
  local cb = ffi.cast("void (*)(void *, uint32_t, const lc_err_t *)", function(_, index, e)
    list[#list + 1] = { index = index, kind = text(C.lc_err_kind_name(e.kind)), message = ffi.string(e.msg) }
  end)
  local rc = C.lc_script_put(self.s, batch, cb, nil, err)
  cb:free()
  check(rc == 0, err)
  return list
end

--- { {topic, partition, offset}, ... } -> the same list with the offsets that may be committed (false: none).
function Script:pre_commit(list)
  local err, tps = core.err(), _M.tps(list)
  check(C.lc_script_pre_commit(self.s, tps.v, tps.n, err) == 0, err)
  local out = {}
  for i = 0, tps.n - 1 do
    local o = tonumber(tps.v[i].offset)
    out[("%s-%d"):format(ffi.string(tps.v[i].topic), tps.v[i].partition)] = o ~= -1001 and o or false
  end
  return out
end

--- A sink's batch of string values (nil: null), topic "t", partition 0, offsets from 0.
function _M.sink_batch(strings, n)
  local b = ffi.gc(C.lc_batch_new(8), C.lc_batch_unref)
  local topic = C.lc_arena_strdup(b.arena, "t")
  for i = 1, n or #strings do
    local r = C.lc_batch_add(b)
    r.topic, r.partition, r.u.snk.topic, r.u.snk.partition, r.u.snk.offset = topic, 0, topic, 0, i - 1
    local s = strings[i]
    if s then
      r.value.type, r.value.len = C.LC_STRING, #s
      r.value.u.s = ffi.cast("char *", C.lc_arena_dup(b.arena, s, #s))
    end
  end
  return b
end

--- A record's value as a Lua string, nil for null.
function _M.value(r)
  if r.value.type == C.LC_NULL then return nil end
  return ffi.string(r.value.u.s, r.value.len)
end

--- Offset JSON of a source record.
function _M.offset(r)
  local buf, err = ffi.new "lc_buf_t", core.err()
  check(C.lc_record_offset_json(r, buf, err) == 0, err)
  local s = ffi.string(buf.p, buf.len)
  C.lc_buf_free(buf)
  return s
end

--- Polls until nothing has come for `quiet` polls: the values, and the last record's offset.
function _M.drain(poll, quiet)
  local out, last, empty = {}, nil, 0
  while empty < (quiet or 1) do
    local b = poll()
    if b then
      empty = 0
      for i = 0, b.n - 1 do out[#out + 1] = _M.value(b.records[i]) end
      last = _M.offset(b.records[b.n - 1])
    else
      empty = empty + 1
    end
  end
  return out, last
end

return _M
