--- connect/java.lua: what the standard transforms take from Java's library: regular expressions, date formats,
-- casts, header literals, texts of records. C does the work (core/convert). Only files under lua/transforms and
-- lua/predicates may require it. Call through the module, as with cells.
local fx = require "connect.ffi"
local cells = require "connect.cells"
local errors = require "connect.errors"

local ffi, C = fx.ffi, fx.C
local ffi_string, ffi_new, ffi_gc = ffi.string, ffi.new, ffi.gc

for name, decl in pairs {
  lc_java_regex_t = "typedef struct lc_java_regex lc_java_regex_t;",
  lc_java_date_t = "typedef struct lc_java_date lc_java_date_t;",
  lc_values_held_t = "typedef struct lc_values_held { const lc_schema_t **v; size_t n, cap; } lc_values_held_t;",
} do
  if fx.fresh or not pcall(ffi.typeof, name) then ffi.cdef(decl) end
end

ffi.cdef [[
lc_java_regex_t *lc_java_regex_compile(const char *pattern, lc_err_t *err);
void lc_java_regex_free(lc_java_regex_t *re);
int lc_java_regex_matches(lc_java_regex_t *re, const char *s, size_t n, lc_err_t *err);
int lc_java_regex_replace_first(lc_java_regex_t *re, const char *s, size_t n, const char *replacement,
                                lc_buf_t *out, lc_err_t *err);
lc_java_date_t *lc_java_date_new(const char *pattern, lc_err_t *err);
void lc_java_date_free(lc_java_date_t *f);
void lc_java_date_format(const lc_java_date_t *f, int64_t ms, lc_buf_t *out);
int lc_java_date_parse(const lc_java_date_t *f, const char *s, size_t n, int64_t *ms);
int lc_cast_value(const lc_schema_t *schema, const lc_value_t *value, int target, lc_arena_t *a, lc_value_t *out,
                  lc_err_t *err);
int lc_java_convert_number(const char *s, size_t n, const lc_value_t *like, lc_arena_t *a, lc_value_t *out,
                           lc_err_t *err);
int lc_values_parse(const char *text, size_t n, lc_arena_t *a, lc_values_held_t *held, const lc_schema_t **schema,
                    lc_value_t *value);
void lc_values_release(lc_values_held_t *h);
void lc_arena_init(lc_arena_t *a);
void lc_arena_free(lc_arena_t *a);
int lc_java_hash_order(const lc_value_t *items, uint32_t n, uint32_t *order);
int lc_value_copy(lc_arena_t *a, const lc_value_t *from, lc_value_t *to);
void lc_schema_to_string(const lc_schema_t *s, lc_buf_t *out);
]]

local _M = {}

local buf = ffi_gc(ffi_new "lc_buf_t", C.lc_buf_free)

local function taken() return buf.p ~= nil and ffi_string(buf.p, buf.len) or "" end

-- What a call left in fx.err(), as class and text.
local function failure(err) return err.cls ~= nil and ffi_string(err.cls) or nil, ffi_string(err.msg) end

-- regular expressions -----------------------------------------------------------------------------

--- Pattern.compile(pattern); nil and PatternSyntaxException's text if it is none.
function _M.regex(pattern)
  local err = fx.err()
  local re = C.lc_java_regex_compile(pattern, err)
  if re == nil then return nil, select(2, failure(err)) end
  return ffi_gc(re, C.lc_java_regex_free)
end

-- Java throws in apply: errors.tolerance decides.
local function raise_data(err)
  local class, message = failure(err)
  if class then cells.fail(class, message) end
  cells.data_error("%s", message)
end

--- matches(): does the expression match the whole text (a Lua string)?
function _M.matches(re, text)
  local err = fx.err()
  local rc = C.lc_java_regex_matches(re, text, #text, err)
  if rc < 0 then raise_data(err) end
  return rc == 1
end

--- replaceFirst(replacement) of a Lua string.
function _M.replace_first(re, text, replacement)
  local err = fx.err()
  C.lc_buf_clear(buf)
  if C.lc_java_regex_replace_first(re, text, #text, replacement, buf, err) < 0 then raise_data(err) end
  return taken()
end

-- dates -------------------------------------------------------------------------------------------

--- new SimpleDateFormat(pattern) in UTC; nil and the text of its IllegalArgumentException.
function _M.date_format(pattern)
  local err = fx.err()
  local f = C.lc_java_date_new(pattern, err)
  if f == nil then return nil, select(2, failure(err)) end
  return ffi_gc(f, C.lc_java_date_free)
end

--- Text of an instant (ms since 1970, a number or int64_t) as a Lua string.
function _M.format(f, ms)
  C.lc_buf_clear(buf)
  C.lc_java_date_format(f, ms, buf)
  return taken()
end

--- out = the text as a STRING of the record's batch.
function _M.format_into(r, out, f, ms)
  C.lc_buf_clear(buf)
  C.lc_java_date_format(f, ms, buf)
  cells.set_text(r, out, buf.p, tonumber(buf.len))
end

local instant = ffi_new "int64_t[1]"

--- int64_t of a STRING value's text, nil when it does not match.
function _M.parse(f, v)
  if C.lc_java_date_parse(f, v.u.s, v.len, instant) < 0 then return nil end
  return instant[0]
end

-- casts -------------------------------------------------------------------------------------------

--- out = v as the type `target`; schema: that of v, or nil. New texts live in the record's batch.
function _M.cast(r, out, schema, v, target)
  if C.lc_cast_value(schema, v, target, r.batch.arena, out, fx.err()) < 0 then fx.raise() end
end

local scratch

--- The same for a schema's default. The result is good until the next call: give it to a builder.
function _M.cast_default(out, schema, v, target)
  if scratch then C.lc_arena_free(scratch) end
  scratch = ffi_gc(ffi_new "lc_arena_t", C.lc_arena_free)
  C.lc_arena_init(scratch)
  if C.lc_cast_value(schema, v, target, scratch, out, fx.err()) < 0 then fx.raise() end
end

--- out = the number that a text stands for, of v's Java class. Raises a DataException when it stands for none.
function _M.convert_number(r, out, text, v)
  if C.lc_java_convert_number(text, #text, v, r.batch.arena, out, fx.err()) < 0 then fx.raise() end
end

-- names -------------------------------------------------------------------------------------------

--- The texts of a list in the order in which Java's HashMap lists them: what fails first is then the same.
function _M.hash_order(list)
  local items, order = ffi_new("lc_value_t[?]", 2 * #list + 1), ffi_new("uint32_t[?]", #list + 1)
  for i = 1, #list do
    local v = items[2 * i - 2]
    v.type, v.len, v.u.s = cells.STRING, #list[i], list[i]
  end
  if C.lc_java_hash_order(items, #list, order) < 0 then error(errors.new("fatal", "out of memory"), 0) end
  local out = {}
  for i = 1, #list do out[i] = list[order[i - 1] + 1] end
  return out
end

-- literals ----------------------------------------------------------------------------------------

--- Values.parseString(text): { value =, schema = or nil }, kept as long as the result is.
function _M.literal(text)
  local arena = ffi_gc(ffi_new "lc_arena_t", C.lc_arena_free)
  C.lc_arena_init(arena)
  local held = ffi_gc(ffi_new "lc_values_held_t", C.lc_values_release)
  local bytes = ffi_new("char[?]", #text + 1, text)
  local schema, value = ffi_new "const lc_schema_t *[1]", ffi_new "lc_value_t"
  local rc = C.lc_values_parse(bytes, #text, arena, held, schema, value)
  if rc < 0 then error(errors.new("fatal", "out of memory"), 0) end
  if rc > 0 then -- Java ends with an exception of its own
    cells.config_error(("value.literal: %s cannot be parsed"):format(text))
  end
  return { value = value, schema = schema[0] ~= nil and schema[0] or nil, keep = { arena, held, bytes } }
end

--- out = a copy of a value in the record's batch.
function _M.copy_into(r, out, v)
  if C.lc_value_copy(r.batch.arena, v, out) < 0 then error(errors.new("fatal", "out of memory"), 0) end
end

-- texts -------------------------------------------------------------------------------------------

--- String.valueOf(value).
function _M.text(v)
  C.lc_buf_clear(buf)
  C.lc_value_to_java_string(v, nil, buf)
  return taken()
end

--- Schema.toString(), "null" without one.
function _M.schema_text(schema)
  if schema == nil then return "null" end
  C.lc_buf_clear(buf)
  C.lc_schema_to_string(schema, buf)
  return taken()
end

local function map_text(json)
  local values = require "connect.values"
  local value = require("connect.json").decode(json)
  if not values.is_map(value) then return "null" end
  local out = {}
  for k, v in values.map_pairs(value) do out[#out + 1] = values.tostring(k) .. "=" .. values.tostring(v) end
  return "{" .. table.concat(out, ", ") .. "}"
end

local TIMESTAMP_TYPES = { [0] = "NoTimestampType", "CreateTime", "LogAppendTime" }

local function origin(r)
  if not cells.is_source then
    local s = r.u.snk
    return ("SinkRecord{kafkaOffset=%s, timestampType=%s, originalTopic=%s, originalKafkaPartition=%d, "
      .. "originalKafkaOffset=%s} "):format(tostring(s.offset):gsub("LL", ""), TIMESTAMP_TYPES[r.timestamp_type],
        s.topic ~= nil and ffi_string(s.topic) or "null", s.partition, (tostring(s.offset):gsub("LL", "")))
  end
  local p, offset = r.u.src.partition, "null"
  if p ~= nil then
    C.lc_buf_clear(buf)
    if C.lc_record_offset_json(r, buf, fx.err()) == 0 then offset = map_text(taken()) end
  end
  return ("SourceRecord{sourcePartition=%s, sourceOffset=%s} "):format(
    p ~= nil and map_text(ffi_string(p.json, p.len)) or "null", offset)
end

--- ConnectRecord.toString().
function _M.record_text(r)
  local headers = {}
  for i = 0, r.nheaders - 1 do
    local h = r.headers[i]
    headers[i + 1] = ("ConnectHeader(key=%s, value=%s, schema=%s)"):format(ffi_string(h.name), _M.text(h.value),
      _M.schema_text(h.schema))
  end
  return ("%sConnectRecord{topic='%s', kafkaPartition=%s, key=%s, keySchema=%s, value=%s, valueSchema=%s, "
    .. "timestamp=%s, headers=ConnectHeaders(headers=%s)}"):format(origin(r), cells.topic(r) or "null",
      r.partition >= 0 and tostring(r.partition) or "null", _M.text(r.key), _M.schema_text(r.key_schema),
      _M.text(r.value), _M.schema_text(r.value_schema),
      r.timestamp >= 0 and tostring(r.timestamp):gsub("LL", "") or "null",
      #headers > 0 and "[" .. table.concat(headers, ", ") .. "]" or "")
end

return _M
