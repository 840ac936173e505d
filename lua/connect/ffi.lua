-- connect/ffi.lua: the core's structs and functions that lua/connect calls, and the check that they are of
-- the same version. Private: plugins never see it. Each part is declared only where it is not known yet
-- (specs declare from the headers).
local ffi = require "ffi"

local ABI = 3

local types = {
  { "lc_err_t", [[
typedef struct lc_err {
  int kind; int code; const char *cls; char where[48]; char msg[1024]; char detail[2048];
} lc_err_t;
]] },
  { "lc_buf_t", [[
typedef struct lc_buf { char *p; size_t len, cap; bool oom, sure; } lc_buf_t;
]] },
  { "lc_arena_t", [[
typedef struct lc_arena_chunk lc_arena_chunk_t;
typedef struct lc_arena { lc_arena_chunk_t *head; char *at, *end; size_t total; } lc_arena_t;
]] },
  { "lc_waker_t", [[
typedef struct lc_waker { int fd; } lc_waker_t;
]] },
  { "lc_props_t", [[
typedef struct lc_props lc_props_t;
]] },
  { "lc_value_t", [[
typedef struct lc_value lc_value_t;
typedef struct lc_decimal { int32_t scale; uint32_t len; const uint8_t *unscaled; } lc_decimal_t;
typedef struct lc_struct_value { const struct lc_schema *schema; lc_value_t *fields; } lc_struct_value_t;
struct lc_value {
  uint8_t type; uint8_t flags; uint16_t pad; uint32_t len;
  union {
    int64_t i; double f; float f32; const char *s; lc_value_t *items; lc_struct_value_t *st; const lc_decimal_t *dec;
  } u;
};
]] },
  { "lc_schema_t", [[
typedef struct lc_schema lc_schema_t;
typedef struct lc_field { const char *name; const lc_schema_t *schema; } lc_field_t;
struct lc_schema {
  int refs; int type; bool optional; bool has_version, has_default; int version;
  const char *name, *doc; const lc_props_t *params; lc_value_t def;
  const lc_schema_t *key, *elem; const lc_field_t *fields; uint32_t nfields;
  int logical; int32_t scale; bool has_scale; struct lc_schema_private *priv;
};
]] },
  { "lc_schema_builder_t", [[
typedef struct lc_schema_builder lc_schema_builder_t;
]] },
  { "lc_record_t", [[
typedef struct lc_slice { const char *p; size_t len; } lc_slice_t;
typedef struct lc_source_partition { int refs; uint32_t len; char *json; void *tracker; } lc_source_partition_t;
typedef struct lc_header {
  const char *name; const lc_schema_t *schema; lc_value_t value; lc_slice_t bytes;
} lc_header_t;
typedef struct lc_batch lc_batch_t;
typedef struct lc_record lc_record_t;
struct lc_record {
  lc_batch_t *batch; const char *topic; int32_t partition; uint8_t state; uint8_t timestamp_type; uint16_t nheaders;
  int64_t timestamp; lc_value_t key, value; const lc_schema_t *key_schema, *value_schema; lc_header_t *headers;
  lc_slice_t key_bytes, value_bytes;
  union {
    struct { lc_source_partition_t *partition; lc_value_t offset; lc_record_t *next; } src;
    struct { const char *topic; int64_t offset; int32_t partition; } snk;
  } u;
};
struct lc_batch {
  int refs; uint32_t n, cap; lc_record_t *records; const char *offset_field; lc_arena_t arena;
  void (*on_free)(void *arg); void *on_free_arg;
  const lc_schema_t **schemas; uint32_t nschemas, schemas_cap;
  lc_source_partition_t **partitions; uint32_t npartitions, partitions_cap; lc_record_t *given;
  uint64_t number;
};
]] },
  { "lc_json_t", [[
typedef struct lc_json lc_json_t;
struct lc_json {
  int type; bool integral; const char *s; size_t len; const char *key; size_t key_len;
  lc_json_t *child; lc_json_t *next; const char *at;
};
]] },
  { "lc_line_reader_conf_t", [[
typedef struct lc_line_reader lc_line_reader_t;
typedef struct lc_line_reader_conf {
  const char *path; const char *topic; int64_t position; int64_t max_line; uint32_t batch_size;
  bool skip_large; bool timestamps; lc_waker_t *stop;
} lc_line_reader_conf_t;
]] },
  { "lc_line_writer_t", [[
typedef struct lc_line_writer lc_line_writer_t;
]] },
  { "lc_delivery_t", [[
typedef struct lc_delivery { int32_t partition; int64_t offset; } lc_delivery_t;
]] },
  { "lc_ffi_exchange_t", [[
typedef struct lc_ffi_exchange {
  lc_batch_t *batch; uint32_t index; uint32_t stage; lc_waker_t *stop; int64_t max_request_size; uint64_t pinned;
  uint64_t decoded, encoded; lc_delivery_t to; bool sent;
} lc_ffi_exchange_t;
]] },
  { "lc_lua_batch_t", [[
typedef struct lc_lua_batch { lc_batch_t *b; uint64_t bytes; bool viewed; } lc_lua_batch_t;
]] },
}

local fresh = not require("connect.host").outside -- a worker's state: nothing is declared yet
for _, t in ipairs(types) do
  if fresh or not pcall(ffi.typeof, t[1]) then ffi.cdef(t[2]) end
end

ffi.cdef [[
uint32_t lc_ffi_abi(void);
size_t lc_ffi_sizeof(const char *type);
void lc_ffi_batch_borrow(lc_lua_batch_t *h, lc_batch_t *b);
void lc_ffi_batch_view(lc_lua_batch_t *h, lc_ffi_exchange_t *x);
void lc_ffi_batch_drop(lc_lua_batch_t *h, lc_ffi_exchange_t *x);

void lc_err_clear(lc_err_t *err);
void lc_buf_add(lc_buf_t *b, const void *data, size_t n);
void lc_buf_clear(lc_buf_t *b);
void lc_buf_free(lc_buf_t *b);
size_t lc_props_count(const lc_props_t *p);
const char *lc_props_key(const lc_props_t *p, size_t i);
const char *lc_props_value(const lc_props_t *p, size_t i);

void lc_batch_ref(lc_batch_t *b);
void lc_batch_unref(lc_batch_t *b);
int lc_record_offset_json(const lc_record_t *r, lc_buf_t *out, lc_err_t *err);
int lc_value_to_java_string(const lc_value_t *v, const lc_schema_t *schema, lc_buf_t *out);

const lc_schema_t *lc_schema_ref(const lc_schema_t *s);
void lc_schema_unref(const lc_schema_t *s);
const lc_schema_t *lc_schema_plain(int type, bool optional);
const lc_schema_t *lc_schema_logical(int logical, int scale, bool optional);
lc_schema_builder_t *lc_schema_builder_new(int type);
void lc_schema_builder_free(lc_schema_builder_t *b);
void lc_schema_builder_optional(lc_schema_builder_t *b, bool optional);
void lc_schema_builder_name(lc_schema_builder_t *b, const char *name);
void lc_schema_builder_version(lc_schema_builder_t *b, int version);
void lc_schema_builder_doc(lc_schema_builder_t *b, const char *doc);
void lc_schema_builder_param(lc_schema_builder_t *b, const char *key, const char *value);
int lc_schema_builder_field(lc_schema_builder_t *b, const char *name, const lc_schema_t *s, lc_err_t *err);
void lc_schema_builder_key(lc_schema_builder_t *b, const lc_schema_t *s);
void lc_schema_builder_elem(lc_schema_builder_t *b, const lc_schema_t *s);
const lc_schema_t *lc_schema_builder_finish(lc_schema_builder_t *b);

int lc_json_parse(const char *text, size_t len, int flags, lc_json_t **doc, lc_err_t *err);
void lc_json_free(lc_json_t *doc);
int64_t lc_json_int64(const lc_json_t *number, bool *exact);
double lc_json_double(const lc_json_t *number);
void lc_json_write_string(lc_buf_t *out, const char *s, size_t n);
void lc_java_double(lc_buf_t *out, double d);

lc_line_reader_t *lc_line_reader_new(const lc_line_reader_conf_t *conf);
int lc_line_reader_poll(lc_line_reader_t *r, lc_batch_t **batch, lc_err_t *err);
int64_t lc_line_reader_position(const lc_line_reader_t *r);
void lc_line_reader_free(lc_line_reader_t *r);
lc_line_writer_t *lc_line_writer_new(const char *path, lc_waker_t *stop, lc_err_t *err);
int lc_line_writer_write(lc_line_writer_t *w, const lc_batch_t *batch, lc_err_t *err);
void lc_line_writer_free(lc_line_writer_t *w);
]]

local C = ffi.C
assert(C.lc_ffi_abi() == ABI, "luaconnect: the program and lua/connect are of different versions")
for _, name in ipairs { "lc_err_t", "lc_buf_t", "lc_value_t", "lc_decimal_t", "lc_schema_t", "lc_header_t",
  "lc_record_t", "lc_batch_t", "lc_source_partition_t", "lc_json_t", "lc_line_reader_conf_t", "lc_ffi_exchange_t",
  "lc_lua_batch_t" } do
  assert(tonumber(C.lc_ffi_sizeof(name)) == ffi.sizeof(name),
    "luaconnect: the program and lua/connect disagree about " .. name)
end

local _M = { C = C, ffi = ffi, fresh = fresh }

-- Value and schema types, in the order of lc_type_t.
_M.type_names = { [0] = "null", "int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string", "bytes",
  "array", "map", "struct", "decimal", "date", "time", "timestamp", "object" }

local kinds = { "fatal", "retriable", "data_error", "fenced" }

--- One lc_err_t a state, cleared: for the next call.
local err = ffi.new "lc_err_t"
function _M.err()
  C.lc_err_clear(err)
  return err
end

--- Raises what a call left in _M.err().
function _M.raise()
  local errors = require "connect.errors"
  local class = err.cls ~= nil and ffi.string(err.cls) or nil
  local detail = ffi.string(err.detail)
  error(errors.new(kinds[tonumber(err.kind)] or "fatal", ffi.string(err.msg),
    { class = class, detail = detail ~= "" and detail or nil }), 0)
end

--- What passes between C and Lua in a worker; a private one elsewhere.
local exchange
function _M.exchange()
  if not exchange then
    local given = require("connect.host").exchange
    exchange = given and ffi.cast("lc_ffi_exchange_t *", given) or ffi.new("lc_ffi_exchange_t")
  end
  return exchange
end

return _M
