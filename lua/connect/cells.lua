--- connect/cells.lua: records and values of the core as the standard transforms change them: C values in place
-- of Lua ones, so that types stay exact and what nobody looks at never becomes a Lua string or table.
-- Only files under lua/transforms and lua/predicates may require it.
--
-- A transform declares  apply_cells = function(self, r, slot)  (return true to drop the record), a predicate
-- test_cells = function(self, r).  r is the record (lc_record_t *, core/data/record.h), slot "key" or "value"
-- ("value" for a transform without `on`). Fields of r may be read directly: r.topic (C string), r.partition
-- (-1: none), r.timestamp (-1: none), r.nheaders, r.headers[i].name/.schema/.value, r[slot] (a value).
--
-- A value (lc_value_t) has .type (cells.NULL, INT8 ... TIMESTAMP, OBJECT), .len and the union .u: u.i (INT8-64,
-- BOOLEAN 0/1, DATE, TIME, TIMESTAMP in ms), u.f (FLOAT64), u.f32 (FLOAT32), u.s + len (STRING, BYTES: not
-- terminated), u.items (ARRAY: len values; MAP: key, value, key, value of len entries), u.st (STRUCT: u.st.schema,
-- u.st.fields[i]), u.dec (DECIMAL: scale, unscaled, len).
-- A schema (const lc_schema_t *, nil == NULL: none) has .type .optional .name .has_version .version .doc .params
-- .has_default .def .key .elem .nfields .fields[i].name/.schema .logical .scale .has_scale (core/data/schema.h).
--
-- Rules: never write into a value that a record, struct or map already had: make new ones (struct, project,
-- map, array, text) in the record's batch and give them to the record with cells.set. Call through the module
-- (cells.set(...)), do not take its functions into locals when the file loads: the module is loaded when it is
-- first used. Loops over records are compiled: no closures, pcall, string formatting or pairs on the good path.
local fx = require "connect.ffi"
local errors = require "connect.errors"

local ffi, C, x = fx.ffi, fx.C, fx.exchange()
local ffi_string, ffi_copy, ffi_new, ffi_cast, ffi_gc = ffi.string, ffi.copy, ffi.new, ffi.cast, ffi.gc

if fx.fresh or not pcall(ffi.typeof, "lc_cells_names_t") then
  ffi.cdef "typedef struct lc_cells_names lc_cells_names_t;"
end

ffi.cdef [[
int lc_cells_text(lc_batch_t *b, int type, const char *s, size_t n, lc_value_t *out);
const char *lc_cells_topic(lc_batch_t *b, const char *s, size_t n);
int lc_cells_struct(lc_batch_t *b, const lc_schema_t *schema, lc_value_t *out);
int lc_cells_project(lc_batch_t *b, const lc_struct_value_t *from, const lc_schema_t *schema, const int32_t *index,
                     bool defaults, lc_value_t *out, lc_err_t *err);
int lc_cells_put(lc_value_t *st, uint32_t i, const lc_value_t *value, lc_err_t *err);
const lc_value_t *lc_cells_read(const lc_struct_value_t *st, uint32_t i, bool defaults);
int lc_cells_map(lc_batch_t *b, const lc_value_t *from, uint32_t room, lc_value_t *out);
int lc_cells_find(const lc_value_t *map, const char *name, size_t n);
lc_value_t *lc_cells_map_put(lc_batch_t *b, lc_value_t *map, const char *name, size_t n);
lc_value_t *lc_cells_map_put_key(lc_batch_t *b, lc_value_t *map, const lc_value_t *key);
int lc_cells_array(lc_batch_t *b, uint32_t n, lc_value_t *out);
lc_cells_names_t *lc_cells_names_new(void);
void lc_cells_names_free(lc_cells_names_t *names);
int lc_cells_names_add(lc_cells_names_t *names, const char *s, size_t n);
int lc_cells_names_find(const lc_cells_names_t *names, const char *s, size_t n);
int lc_cells_map_rename(lc_batch_t *b, const lc_value_t *from, const lc_cells_names_t *names, const int32_t *action,
                        int32_t other, lc_value_t *out, lc_err_t *err);
int lc_cells_map_pick(lc_batch_t *b, const lc_value_t *from, const lc_cells_names_t *names, int32_t *at,
                      lc_value_t *rest);
lc_header_t *lc_cells_headers(const lc_record_t *r, uint32_t more);
int lc_cells_header_fill(lc_batch_t *b, lc_header_t *h, const char *name, size_t n, const lc_schema_t *schema);
int lc_cells_drop_headers(lc_record_t *r, const lc_cells_names_t *names);
bool lc_cells_has_header(const lc_record_t *r, const char *name);
void lc_cells_basics(lc_schema_builder_t *b, const lc_schema_t *from);
int lc_batch_hold_schema(lc_batch_t *b, const lc_schema_t *s);
bool lc_schema_equal(const lc_schema_t *a, const lc_schema_t *b);
int lc_schema_field_index(const lc_schema_t *s, const char *name, size_t len);
lc_schema_builder_t *lc_schema_builder_from(const lc_schema_t *from);
int lc_schema_builder_default(lc_schema_builder_t *b, const lc_value_t *value, lc_err_t *err);
void lc_schema_builder_no_default(lc_schema_builder_t *b);
int lc_validate_value(const lc_schema_t *schema, const lc_value_t *value, lc_err_t *err);
int lc_validate_field(const char *field, const lc_schema_t *schema, const lc_value_t *value, lc_err_t *err);
const char *lc_value_java_class(const lc_value_t *v);
bool lc_value_equal(const lc_value_t *a, const lc_value_t *b);
]]

local _M = { C = C, ffi = ffi, type_names = fx.type_names }

-- cells.NULL, cells.INT8, ... cells.OBJECT: what value.type and schema.type are compared with.
for i = 0, 17 do _M[fx.type_names[i]:upper()] = i end
local NULL, MAP, STRUCT, STRING, BYTES = _M.NULL, _M.MAP, _M.STRUCT, _M.STRING, _M.BYTES

-- errors ------------------------------------------------------------------------------------------
-- All are what Java's tolerance tolerates; `class` must be one that core/script/state.c lists.

--- Raise: this record is bad, with a Java class's name: fail("java.lang.NullPointerException", message); cause: nil, or
-- class and text of the exception behind it, as a trace has them.
function _M.fail(class, message, cause)
  error(errors.new("data_error", message, { class = class, detail = cause and "Caused by: " .. cause .. "\n" }), 0)
end

--- Raise a DataException: data_error("Only %s", ...).
function _M.data_error(format, ...)
  if select("#", ...) > 0 then format = format:format(...) end
  error(errors.new("data_error", format, { class = "org.apache.kafka.connect.errors.DataException" }), 0)
end

--- Raise a ConfigException, in configure: config_error(message), or config_error(name, value, reason) for
-- "Invalid value VALUE for configuration NAME: REASON".
function _M.config_error(name, value, reason)
  local text = name
  if reason then text = ("Invalid value %s for configuration %s: %s"):format(tostring(value), name, reason) end
  error(errors.new("fatal", text, { class = "org.apache.kafka.common.config.ConfigException" }), 0)
end

local function oom() error(errors.new("fatal", "out of memory in a transform"), 0) end

--- Raise what a C function left in cells.err().
_M.raise, _M.err = fx.raise, fx.err

--- "java.lang.Long" of a value, "null" for null.
function _M.class_name(v) return ffi_string(C.lc_value_java_class(v)) end

--- Raise unless the value is a map: "Only Map objects supported in absence of schema for [purpose], found: CLASS".
function _M.require_map(v, purpose)
  if v.type ~= MAP then
    _M.data_error("Only Map objects supported in absence of schema for [%s], found: %s", purpose, _M.class_name(v))
  end
end

--- Raise unless the value is a struct: "Only Struct objects supported for [purpose], found: CLASS".
function _M.require_struct(v, purpose)
  if v.type ~= STRUCT then
    _M.data_error("Only Struct objects supported for [%s], found: %s", purpose, _M.class_name(v))
  end
end

--- Raise unless there is a schema: "Schema required for [purpose]".
function _M.require_schema(schema, purpose)
  if schema == nil then _M.data_error("Schema required for [%s]", purpose) end
end

-- records -----------------------------------------------------------------------------------------
local schema_field = { key = "key_schema", value = "value_schema" }

--- The schema beside a slot; nil (== nil) when there is none.
function _M.schema(r, slot) return r[schema_field[slot]] end

--- Give the record a new value (copied, 16 bytes) and its schema (nil: none).
function _M.set(r, slot, v, schema)
  ffi_copy(r[slot], v, 16)
  r[schema_field[slot]] = schema
  if schema ~= nil and C.lc_batch_hold_schema(r.batch, schema) < 0 then oom() end
end

--- True in a source task: r.u.src is valid, else r.u.snk (topic, partition, offset as consumed).
_M.is_source = false

--- The topic as a Lua string. The last ones are remembered.
local topic_at, topic_text, topic_batch
function _M.topic(r)
  if r.topic == nil then return nil end
  if r.topic ~= topic_at or r.batch ~= topic_batch then
    topic_at, topic_batch, topic_text = r.topic, r.batch, ffi_string(r.topic)
  end
  return topic_text
end

local set_batch, set_text, set_at

--- v = the topic as a STRING that shares its memory.
function _M.set_topic_text(r, v)
  v.type, v.flags, v.pad, v.len = STRING, 0, 0, #_M.topic(r)
  v.u.s = r.topic
end

--- Another topic. Records of a batch with the same topic share its memory: the producer groups by that.
function _M.set_topic(r, text)
  if r.batch ~= set_batch or text ~= set_text then
    local p = C.lc_cells_topic(r.batch, text, #text)
    if p == nil then oom() end
    set_batch, set_text, set_at = r.batch, text, p
  end
  r.topic = set_at
end

--- Number of the running call over a batch: another one than when an address was remembered means that it may have
-- been used again.
_M.run = 0

--- Called before each run over a batch.
function _M.next_run()
  _M.run = _M.run + 1
  topic_at, topic_batch, set_batch, set_text, set_at = nil, nil, nil, nil, nil
end

--- A copy of the record's headers with `more` behind them. Fill all of these, h[r.nheaders + i], i from 0, with
-- fill_header; then set_headers gives them to the record.
function _M.more_headers(r, more)
  local h = C.lc_cells_headers(r, more)
  if h == nil then
    if r.nheaders + more > 65535 then _M.data_error("a record cannot have more than 65535 headers") end
    oom()
  end
  return h
end

--- name, value (copied, 16 bytes), schema or nil of one of more_headers.
function _M.fill_header(r, h, name, v, schema)
  if C.lc_cells_header_fill(r.batch, h, name, #name, schema) < 0 then oom() end
  ffi_copy(h.value, v, 16)
end

function _M.set_headers(r, h, more) r.headers, r.nheaders = h, r.nheaders + more end

--- True if the record has a header of that name.
function _M.has_header(r, name) return C.lc_cells_has_header(r, name) end

--- Take away the headers whose name is in a set made by cells.names.
function _M.drop_headers(r, names) if C.lc_cells_drop_headers(r, names) < 0 then oom() end end

-- values ------------------------------------------------------------------------------------------

--- A value of one's own, null: keep one in `self` and fill it for each record.
function _M.cell() return ffi_new "lc_value_t" end

--- to = from.
function _M.copy(to, from) ffi_copy(to, from, 16) end

function _M.set_null(v) v.type, v.flags, v.pad, v.len, v.u.i = NULL, 0, 0, 0, 0 end

--- INT8 to INT64, BOOLEAN (0/1), DATE, TIME, TIMESTAMP. i: a number or int64_t; it must be in the type's range.
function _M.set_int(v, type, i) v.type, v.flags, v.pad, v.len, v.u.i = type, 0, 0, 0, i end

function _M.set_float32(v, d)
  v.type, v.flags, v.pad, v.len, v.u.i = _M.FLOAT32, 0, 0, 0, 0
  v.u.f32 = d
end

function _M.set_float64(v, d) v.type, v.flags, v.pad, v.len, v.u.f = _M.FLOAT64, 0, 0, 0, d end

--- A STRING with a copy of a Lua string (or of len bytes at a C pointer) in the record's batch.
function _M.set_text(r, v, text, len) if C.lc_cells_text(r.batch, STRING, text, len or #text, v) < 0 then oom() end end

function _M.set_bytes(r, v, text, len) if C.lc_cells_text(r.batch, BYTES, text, len or #text, v) < 0 then oom() end end

--- A constant STRING whose memory lives in the transform: cells.constant("x") -> value. Copied into records by
-- set_constant, which copies the bytes into the batch.
function _M.constant(text)
  local v = ffi_new "lc_value_t"
  local bytes = ffi_new("char[?]", #text + 1, text)
  v.type, v.len, v.u.s = STRING, #text, bytes
  return { value = v, bytes = bytes, len = #text }
end

function _M.set_constant(r, v, constant)
  if C.lc_cells_text(r.batch, STRING, constant.bytes, constant.len, v) < 0 then oom() end
end

--- A Lua string of a C string: field and header names.
function _M.string(p) return ffi_string(p) end

--- The Lua string of a STRING or BYTES value; counted (lc_script_chain_counts).
function _M.text(v)
  x.decoded = x.decoded + 1
  return ffi_string(v.u.s, v.len)
end

-- structs -----------------------------------------------------------------------------------------

--- out = a new struct of schema, all fields null. Fill out.u.st.fields[i] (i from 0) directly or by cells.put.
function _M.struct(r, out, schema) if C.lc_cells_struct(r.batch, schema, out) < 0 then oom() end end

--- Struct.put(): field i of a struct made here, validated with Connect's messages.
function _M.put(out, i, v) if C.lc_cells_put(out, i, v, fx.err()) < 0 then fx.raise() end end

--- Field i of a struct value (not to be changed); defaults: null reads as the schema's default.
function _M.read(v, i, defaults) return C.lc_cells_read(v.u.st, i, defaults) end

--- Index of a field, from 0; -1: there is none.
function _M.field(schema, name) return C.lc_schema_field_index(schema, name, #name) end

--- out = a new struct of schema, field i taken from field index[i] of the struct value v (-1: left null).
-- index: int32_t[nfields], see cells.indices.
function _M.project(r, out, v, schema, index, defaults)
  if C.lc_cells_project(r.batch, v.u.st, schema, index, defaults, out, fx.err()) < 0 then fx.raise() end
end

--- int32_t[n] from a Lua list of numbers (at least one element is made).
function _M.indices(list)
  local out = ffi_new("int32_t[?]", #list + 1)
  for i = 1, #list do out[i - 1] = list[i] end
  return out
end

-- maps and arrays ---------------------------------------------------------------------------------

--- out = a new map with v's entries (nil: none) and room for `room` more.
function _M.map(r, out, v, room) if C.lc_cells_map(r.batch, v, room or 0, out) < 0 then oom() end end

--- The value of the text key `name`, nil when there is none. Of any map; not to be changed.
function _M.get(v, name)
  local i = C.lc_cells_find(v, name, #name)
  if i < 0 then return nil end
  return v.u.items[2 * i + 1]
end

--- The value of the text key `name` in a map made here: as it is, or a new entry, null. Fill it at once.
function _M.map_put(r, out, name)
  local v = C.lc_cells_map_put(r.batch, out, name, #name)
  if v == nil then oom() end
  return v
end

--- The same with a key that is any value.
function _M.map_put_key(r, out, key)
  local v = C.lc_cells_map_put_key(r.batch, out, key)
  if v == nil then oom() end
  return v
end

--- out = a new array of n nulls: fill out.u.items[0 .. n - 1].
function _M.array(r, out, n) if C.lc_cells_array(r.batch, n, out) < 0 then oom() end end

-- names -------------------------------------------------------------------------------------------

--- A set of names (texts of a Lua list) for drop_headers, find_name and map_rename.
function _M.names(list)
  local names = ffi_gc(C.lc_cells_names_new(), C.lc_cells_names_free)
  for i = 1, #list do C.lc_cells_names_add(names, list[i], #list[i]) end
  return names
end

--- Number (from 0, in the order of first mention) of a C string or STRING value's bytes in the set, -1 if not in it.
function _M.find_name(names, s, len) return C.lc_cells_names_find(names, s, len) end

_M.DROP, _M.KEEP = -1, -2

--- out = the map v with entries dropped or renamed. action (cells.indices): for each name of the set DROP, KEEP
-- or the number of its new name; `other`: for keys that are not in the set.
function _M.map_rename(r, out, v, names, action, other)
  if C.lc_cells_map_rename(r.batch, v, names, action, other, out, fx.err()) < 0 then fx.raise() end
end

--- at (cells.indices, one for each name of the set) = the numbers of the entries of the map v with these text keys,
-- from 0 (-1: there is none). rest: nil, or = a new map with the other entries.
function _M.map_pick(r, v, names, at, rest)
  if C.lc_cells_map_pick(r.batch, v, names, at, rest) < 0 then oom() end
end

-- schemas -----------------------------------------------------------------------------------------
-- Pointers that this module returns are owned by the Lua value: keep it in `self` or in a plan. A schema read
-- from a record is borrowed: cells.hold(schema) makes an owned pointer.

function _M.hold(schema) return ffi_gc(C.lc_schema_ref(schema), C.lc_schema_unref) end

--- A plain schema, shared: plain(cells.STRING, optional).
function _M.plain(type, optional) return C.lc_schema_plain(type, optional or false) end

--- Decimal, Date, Time or Timestamp: logical(cells.TIMESTAMP, optional, scale).
function _M.logical(type, optional, scale)
  return ffi_gc(C.lc_schema_logical(type, scale or 0, optional or false), C.lc_schema_unref)
end

function _M.same_schema(a, b) return C.lc_schema_equal(a, b) end

local Builder = {}
Builder.__index = Builder

--- A builder: cells.builder(cells.STRUCT):basics(old):field("id", schema):finish(). Errors are Java's.
function _M.builder(type) return setmetatable({ b = ffi_gc(C.lc_schema_builder_new(type), C.lc_schema_builder_free) },
  Builder) end

--- A builder with all attributes, fields and the default of a schema.
function _M.builder_from(schema)
  return setmetatable({ b = ffi_gc(C.lc_schema_builder_from(schema), C.lc_schema_builder_free) }, Builder)
end

--- Copy name, version, doc and parameters of a schema.
function Builder:basics(from) C.lc_cells_basics(self.b, from) return self end

--- name: a Lua string, a C string or nil.
function Builder:name(name) C.lc_schema_builder_name(self.b, name) return self end

function Builder:version(version) C.lc_schema_builder_version(self.b, version) return self end

function Builder:optional(optional) C.lc_schema_builder_optional(self.b, optional) return self end

--- The default value: validated against what was built so far.
function Builder:default(v)
  if C.lc_schema_builder_default(self.b, v, fx.err()) < 0 then fx.raise() end
  return self
end

function Builder:no_default() C.lc_schema_builder_no_default(self.b) return self end

function Builder:field(name, schema)
  if C.lc_schema_builder_field(self.b, name, schema, fx.err()) < 0 then fx.raise() end
  return self
end

--- Key of a map; element of an array or value of a map.
function Builder:key(schema) C.lc_schema_builder_key(self.b, schema) return self end
function Builder:elem(schema) C.lc_schema_builder_elem(self.b, schema) return self end

--- The schema, owned by the result.
function Builder:finish() return ffi_gc(C.lc_schema_builder_finish(ffi_gc(self.b, nil)), C.lc_schema_unref) end

-- plans -------------------------------------------------------------------------------------------
local Plans = {}
Plans.__index = Plans
local MOST = 16

local function address(schema) return tonumber(ffi_cast("uintptr_t", schema)) end

--- What a transform works out once for each input schema, at most 16 kept: cells.plans(function(schema) return
-- { schema = NEW SCHEMA, ... } end). plans:get(schema) -> the plan. Equal schemas share one.
function _M.plans(build) return setmetatable({ build = build, last = 0, by = {}, n = 0, clock = 0 }, Plans) end

local function miss(self, schema, at)
  local entry = self.by[at]
  if not entry then
    for other, e in pairs(self.by) do
      if C.lc_schema_equal(e.held, schema) then
        self.by[other], entry = nil, e
        break
      end
    end
    if not entry then
      entry = { plan = self.build(schema) }
      if self.n == MOST then
        local oldest, least
        for other, e in pairs(self.by) do
          if not least or e.used < least then oldest, least = other, e.used end
        end
        self.by[oldest] = nil
      else
        self.n = self.n + 1
      end
    end
    entry.held = _M.hold(schema)
    self.by[at] = entry
  end
  self.clock = self.clock + 1
  entry.used = self.clock
  self.last, self.last_plan = at, entry.plan
  return entry.plan
end

function Plans:get(schema)
  local at = address(schema)
  if at == self.last then return self.last_plan end
  return miss(self, schema, at)
end

return _M
