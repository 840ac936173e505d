-- connect/record.lua: batches and records of the core as Lua sees them. A batch handle is a cdata that holds
-- one reference; a record is a light table that holds its handle and decodes a field when it is touched.
local fx = require "connect.ffi"
local values = require "connect.values"
local json = require "connect.json"

local ffi, C = fx.ffi, fx.C
local ffi_string = ffi.string
local null, Array, Bytes = values.null, values.Array, values.Bytes
local integer, map_set = values.integer, values.map_set

local _M = {}

-- values ------------------------------------------------------------------------------------------
local T = {}
for i = 0, 17 do T[fx.type_names[i]] = i end

local decode
local buf = ffi.gc(ffi.new "lc_buf_t", C.lc_buf_free)

local function java_text(v)
  C.lc_buf_clear(buf)
  C.lc_value_to_java_string(v, nil, buf)
  return buf.p ~= nil and ffi_string(buf.p, buf.len) or ""
end

local decoders = {
  [T.null] = function() return null end,
  [T.int8] = function(v) return tonumber(v.u.i) end,
  [T.int16] = function(v) return tonumber(v.u.i) end,
  [T.int32] = function(v) return tonumber(v.u.i) end,
  [T.int64] = function(v) return integer(v.u.i) end,
  [T.float32] = function(v) return v.u.f32 end,
  [T.float64] = function(v) return v.u.f end,
  [T.boolean] = function(v) return v.u.i ~= 0 end,
  [T.string] = function(v) return ffi_string(v.u.s, v.len) end,
  [T.bytes] = function(v) return setmetatable({ ffi_string(v.u.s, v.len) }, Bytes) end,
  [T.array] = function(v)
    local out, items = {}, v.u.items
    for i = 0, v.len - 1 do out[i + 1] = decode(items[i]) end
    return setmetatable(out, Array)
  end,
  [T.map] = function(v)
    local out, items = values.map(), v.u.items
    for i = 0, v.len - 1 do map_set(out, decode(items[2 * i]), decode(items[2 * i + 1])) end
    return out
  end,
  [T.struct] = function(v)
    local out, st = {}, v.u.st
    local fields = st.schema.fields
    for i = 0, st.schema.nfields - 1 do out[ffi_string(fields[i].name)] = decode(st.fields[i]) end
    return out
  end,
  [T.decimal] = function(v)
    local d = v.u.dec
    return values.data.decimal(ffi_string(d.unscaled, d.len), d.scale, java_text(v))
  end,
  [T.date] = function(v) return values.data.date(integer(v.u.i)) end,
  [T.time] = function(v) return values.data.time(integer(v.u.i)) end,
  [T.timestamp] = function(v) return values.data.timestamp(integer(v.u.i)) end,
  [T.object] = function(v) return java_text(v) end,
}

function decode(v) return decoders[v.type](v) end

--- Lua value of an lc_value_t (see the table in docs/authoring.md).
_M.decode = decode

-- records -----------------------------------------------------------------------------------------
local last_topic, last_text

local function topic_text(p)
  if p == nil then return nil end
  if p ~= last_topic then last_topic, last_text = p, ffi_string(p) end
  return last_text
end

local function schema_of(p)
  if p ~= nil then return require("connect.schema").read(p) end
end

local function headers_of(r)
  local out = {}
  for i = 0, r.nheaders - 1 do
    local h = r.headers[i]
    out[i + 1] = { ffi_string(h.name), decode(h.value), schema = schema_of(h.schema) }
  end
  return out
end

local common = {
  topic = function(r) return topic_text(r.topic) end,
  partition = function(r) return r.partition >= 0 and r.partition or nil end,
  timestamp = function(r) return r.timestamp >= 0 and tonumber(r.timestamp) or nil end,
  key = function(r) return decode(r.key) end,
  value = function(r) return decode(r.value) end,
  key_schema = function(r) return schema_of(r.key_schema) end,
  value_schema = function(r) return schema_of(r.value_schema) end,
  headers = headers_of,
}

local sink, source = setmetatable({}, { __index = common }), setmetatable({}, { __index = common })

--- Where the record was consumed, whatever transforms say now: "topic-partition".
function sink.tp(r) return topic_text(r.u.snk.topic) .. "-" .. r.u.snk.partition end

function sink.offset(r) return tonumber(r.u.snk.offset) end

function sink.original_topic(r) return topic_text(r.u.snk.topic) end

function sink.original_partition(r) return r.u.snk.partition end

function source.source_partition(r)
  local p = r.u.src.partition
  if p == nil then return nil end
  return (json.decode(ffi_string(p.json, p.len), true))
end

function source.source_offset(r)
  if r.u.src.partition == nil then return nil end
  C.lc_buf_clear(buf)
  if C.lc_record_offset_json(r, buf, fx.err()) < 0 then fx.raise() end
  local offset = json.decode(ffi_string(buf.p, buf.len), true)
  return offset ~= null and offset or nil
end

local FIELDS = { "topic", "partition", "timestamp", "key", "value", "key_schema", "value_schema", "headers" }

-- Plain copy of a record that outlives its batch.
local function detacher(more)
  local fields = {}
  for _, f in ipairs(FIELDS) do fields[#fields + 1] = f end
  for _, f in ipairs(more) do fields[#fields + 1] = f end
  return function(record)
    local out = {}
    for _, f in ipairs(fields) do out[f] = record[f] end
    return out
  end
end

-- `given`: as the source made the record, before transforms.
local function make_class(getters, more, given)
  local class = {}
  local detach = detacher(more)

  function class.__index(record, k)
    if k == "detach" then return detach end
    local getter = getters[k]
    if not getter then return nil end
    local handle = rawget(record, "_batch")
    if handle.b == nil then error("this record's batch is gone: use record:detach() to keep a record", 2) end
    local all = given and handle.b.given ~= nil and handle.b.given or handle.b.records
    local v = getter(all[rawget(record, "_at")])
    rawset(record, k, v)
    return v
  end
  return class
end

local sink_fields, source_fields = { "tp", "offset", "original_topic", "original_partition" },
  { "source_partition", "source_offset" }
local SinkRecord = make_class(sink, sink_fields)
local SourceRecord = make_class(source, source_fields, true)

--- For views of transforms (chain_author.lua): functions of a C record by field, and the detach method.
_M.sink_getters, _M.source_getters = sink, source
function _M.detacher(is_source) return detacher(is_source and source_fields or sink_fields) end

-- batches -----------------------------------------------------------------------------------------
local handle_t
local exchange = fx.exchange()

-- Also the finalizer: it must not need memory, and to look a function up for the first time does.
local drop_batch, borrow_batch = C.lc_ffi_batch_drop, C.lc_ffi_batch_borrow
local function drop(handle) drop_batch(handle, exchange) end

local function view(handle, i, class)
  if handle.b == nil then error("this batch is gone", 3) end
  if not handle.viewed then C.lc_ffi_batch_view(handle, exchange) end -- Lua's collector decides how long it stays
  return setmetatable({ _batch = handle, _at = i }, class)
end

local methods = {}

--- for i, record in batch:each() do
function methods.each(handle)
  local i, n = 0, #handle
  return function()
    if i < n then
      i = i + 1
      return i, handle[i]
    end
  end
end

handle_t = ffi.metatype("lc_lua_batch_t", {
  __len = function(handle) return handle.b ~= nil and handle.b.n or 0 end,
  __index = function(handle, k)
    if type(k) == "number" then
      if handle.b ~= nil and (k < 1 or k > handle.b.n) then return nil end
      return view(handle, k - 1, SinkRecord)
    end
    return methods[k]
  end,
  __gc = drop,
})

--- A handle with a reference of its own to a batch.
function _M.borrow(b)
  local handle = handle_t()
  borrow_batch(handle, b)
  return handle
end

local slot_t = ffi.typeof "lc_batch_t **"

--- An empty handle, and where C puts a batch into it: its owner is there before it is, so that nothing which fails
-- afterwards (memory for one more cdata) loses it.
function _M.empty()
  local handle = handle_t()
  return handle, ffi.cast(slot_t, handle)
end

function _M.is_batch(v) return ffi.istype(handle_t, v) end

--- Give the handle's reference to the caller; the handle is empty afterwards.
function _M.release(handle)
  local b = handle.b
  if b == nil then error("this batch was given away already", 2) end
  if handle.viewed then C.lc_batch_ref(b) drop(handle) else handle.b = nil end
  return b
end

--- After a call that was given the handle: gone, unless records of it were looked at and may be kept.
function _M.done(handle)
  if not handle.viewed then drop(handle) end
end

--- The handle is empty from now on, and views of it say so.
_M.close = drop

--- A Lua list of the batch's records.
function _M.records(handle)
  local out = {}
  local n = 0
  for i = 0, handle.b.n - 1 do
    n = n + 1
    out[n] = view(handle, i, SinkRecord)
  end
  return out
end

--- The batch of a record of put and its place there (from 0); nil for anything else.
function _M.place(r)
  if type(r) ~= "table" or getmetatable(r) ~= SinkRecord then return nil end
  local handle = rawget(r, "_batch")
  if handle.b == nil then return nil end
  return handle.b, rawget(r, "_at")
end

--- One record of a source's batch.
function _M.source_record(handle, i) return view(handle, i, SourceRecord) end

return _M
