/*
 * encode.h - Lua values as Connect values. Internal to script/.
 *
 * Everything here raises Lua errors and runs inside lc_state_run(); memory comes from the arena given, work
 * memory from Lua, so a raise loses nothing.
 * Tests:     spec/unit/script_spec.lua
 */
#ifndef LC_SCRIPT_ENCODE_H
#define LC_SCRIPT_ENCODE_H
#include "script/state.h"

typedef struct lc_encoder {
        lua_State *L;
        lc_arena_t *arena;
        int record;       /* from 1, 0: none; for messages */
        const char *what; /* "value", "key", "source_offset" */
        bool blame;       /* a value that does not fit is the record's fault: LC_DATA */
        int null, array, map, flt, bytes, data, map_flat, classify; /* stack slots */
} lc_encoder_t;

/* Fetch the sentinels (pushes; they stay until the caller resets the stack). */
void lc_encoder_init(lc_encoder_t *e, lua_State *L, lc_arena_t *arena);
/* The value at `idx` (absolute) by schema, or without one (NULL) by its Lua type. */
void lc_encode_value(lc_encoder_t *e, int idx, const lc_schema_t *schema, lc_value_t *out);
/* The schema at `idx`: a name, one of connect.schema (the batch, if given, holds it), nil or connect.null:
 * NULL. */
const lc_schema_t *lc_encode_schema(lc_encoder_t *e, lc_batch_t *b, int idx, const char *field);
/* "headers" of the table at `idx`: a list of {name, value, schema =}. */
void lc_encode_headers(lc_encoder_t *e, lc_batch_t *b, int idx, lc_record_t *out);
/* Raise "record 3: value: TEXT". */
int lc_encode_error(lc_encoder_t *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The keys of the plain table at `idx`, sorted (numbers before strings), as userdata pushed on the stack. */
typedef struct lc_table_key {
        const char *s; /* NULL: a number */
        size_t len;
        lua_Number n;
} lc_table_key_t;
lc_table_key_t *lc_table_keys(lua_State *L, int idx, size_t *n);
/* Length of a list without holes at its end; false when the table is no list (other keys, far holes). */
bool lc_table_list(lua_State *L, int idx, size_t *len);

#endif
