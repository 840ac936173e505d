/*
 * encode_batch.c - what poll returned as plain tables, made a batch; source partitions as canonical JSON.
 *
 * The batch hangs on the state (xch.batch) while it is built: a raise loses nothing.
 * Threads:   the script's.
 * Tests:     spec/unit/script_spec.lua
 */
#include "script/encode.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "convert/json.h"
#include "data/schema_builder.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARTITIONS_MOST = 10000, DEPTH_MOST = 100, CDATA = 10 };

/* ---- source partitions ------------------------------------------------------------------------ */

typedef struct known {
        lc_source_partition_t *p;
        UT_hash_handle hh;
} known_t;

struct lc_partitions {
        known_t *table;
};

static void forget(lc_partitions_t *ps, bool all)
{
        known_t *k, *next;

        HASH_ITER(hh, ps->table, k, next)
        {
                if (!all && k->p->refs > 1)
                        continue; /* a tracker may hang on it */
                HASH_DEL(ps->table, k);
                lc_source_partition_unref(k->p);
                free(k);
        }
}

void lc_partitions_free(lc_partitions_t *ps)
{
        if (!ps)
                return;
        forget(ps, true);
        free(ps);
}

static lc_source_partition_t *intern(lc_state_t *st, const char *json, size_t len)
{
        known_t *k;

        if (!st->partitions)
                st->partitions = lc_calloc(1, sizeof(*st->partitions));
        HASH_FIND(hh, st->partitions->table, json, len, k);
        if (k)
                return k->p;
        if (HASH_COUNT(st->partitions->table) >= PARTITIONS_MOST)
                forget(st->partitions, false);
        k = lc_calloc(1, sizeof(*k));
        k->p = lc_source_partition_new(json, len);
        HASH_ADD_KEYPTR(hh, st->partitions->table, k->p->json, len, k);
        return k->p;
}

/* ---- canonical JSON --------------------------------------------------------------------------- */

static void canonical(lc_encoder_t *e, int idx, lc_buf_t *out, int depth);

static void canonical_table(lc_encoder_t *e, int idx, lc_buf_t *out, int depth)
{
        lua_State *L = e->L;
        lc_table_key_t *keys;
        size_t n;
        bool map = false;

        if (lua_getmetatable(L, idx)) {
                map = lua_rawequal(L, -1, e->map);
                if (lua_rawequal(L, -1, e->flt)) {
                        lua_rawgeti(L, idx, 1);
                        lc_java_double(out, lua_tonumber(L, -1));
                        lua_pop(L, 2);
                        return;
                }
                lua_pop(L, 1);
        }
        if (!map && lc_table_list(L, idx, &n) && n) {
                for (size_t i = 1; i <= n; i++) {
                        lc_buf_addc(out, i == 1 ? '[' : ',');
                        lua_rawgeti(L, idx, (int)i);
                        canonical(e, lua_gettop(L), out, depth + 1);
                        lua_pop(L, 1);
                }
                lc_buf_addc(out, ']');
                return;
        }
        if (map) { /* entries into a plain table, which sorts them */
                lua_pushvalue(L, e->map_flat);
                lua_pushvalue(L, idx);
                lua_call(L, 1, 2);
                n = (size_t)lua_tonumber(L, -1);
                lua_pop(L, 1);
                lua_createtable(L, 0, (int)n);
                for (size_t i = 0; i < n; i++) {
                        lua_rawgeti(L, -2, (int)(2 * i) + 1);
                        lua_rawgeti(L, -3, (int)(2 * i) + 2);
                        lua_rawset(L, -3);
                }
                lua_remove(L, -2);
        } else {
                lua_pushvalue(L, idx);
        }
        idx = lua_gettop(L);
        keys = lc_table_keys(L, idx, &n);
        lc_buf_addc(out, '{');
        for (size_t i = 0; i < n; i++) {
                if (!keys[i].s)
                        lc_encode_error(e, "keys must be texts");
                if (i)
                        lc_buf_addc(out, ',');
                lc_json_write_string(out, keys[i].s, keys[i].len);
                lc_buf_addc(out, ':');
                lua_pushlstring(L, keys[i].s, keys[i].len);
                lua_rawget(L, idx);
                canonical(e, lua_gettop(L), out, depth + 1);
                lua_pop(L, 1);
        }
        lc_buf_addc(out, '}');
        lua_pop(L, 2);
}

static void canonical(lc_encoder_t *e, int idx, lc_buf_t *out, int depth)
{
        lua_State *L = e->L;
        lua_Number d;
        size_t n;
        const char *s;
        lc_value_t v;

        if (depth > DEPTH_MOST)
                lc_encode_error(e, "nested deeper than %d levels, or within itself", DEPTH_MOST);
        luaL_checkstack(L, 16, "value");
        if (lua_isnil(L, idx) || lua_rawequal(L, idx, e->null)) {
                lc_buf_adds(out, "null");
                return;
        }
        switch (lua_type(L, idx)) {
        case LUA_TBOOLEAN:
                lc_buf_adds(out, lua_toboolean(L, idx) ? "true" : "false");
                return;
        case LUA_TSTRING:
                s = lua_tolstring(L, idx, &n);
                lc_json_write_string(out, s, n);
                return;
        case LUA_TNUMBER:
                d = lua_tonumber(L, idx);
                if (isnan(d) || isinf(d))
                        lc_encode_error(e, "%.17g is no JSON number", d);
                /* FALLTHROUGH */
        case CDATA:
                lc_encode_value(e, idx, NULL, &v);
                if (v.type == LC_INT64)
                        lc_buf_printf(out, "%lld", (long long)v.u.i);
                else
                        lc_java_double(out, v.u.f);
                return;
        case LUA_TTABLE:
                canonical_table(e, idx, out, depth);
                return;
        default:
                lc_encode_error(e, "a %s cannot be written as JSON", luaL_typename(L, idx));
        }
}

int lc_encode_canonical(lua_State *L)
{
        lc_state_t *st = lc_state_of(L);
        lc_encoder_t e;

        luaL_checktype(L, 1, LUA_TTABLE);
        lua_settop(L, 1);
        lc_encoder_init(&e, L, NULL);
        e.what = "source partition";
        lc_buf_clear(&st->scratch);
        canonical(&e, 1, &st->scratch, 0);
        if (!lc_buf_ok(&st->scratch))
                return luaL_error(L, "out of memory");
        lua_pushlstring(L, st->scratch.p, st->scratch.len);
        return 1;
}

/* ---- records ---------------------------------------------------------------------------------- */

/* "string", "optional_int64", or what connect.schema made: {_schema = const lc_schema_t * cdata}. */
const lc_schema_t *lc_encode_schema(lc_encoder_t *e, lc_batch_t *b, int idx, const char *field)
{
        static const char *const names[] = {"int8",    "int16",   "int32",  "int64", "float32",
                                            "float64", "boolean", "string", "bytes"};
        lua_State *L = e->L;
        const lc_schema_t *schema = NULL;
        const char *name, *rest;

        if (lua_isnil(L, idx) || lua_rawequal(L, idx, e->null))
                return NULL;
        e->what = field;
        if (lua_type(L, idx) == LUA_TSTRING) {
                name = lua_tostring(L, idx);
                rest = strncmp(name, "optional_", 9) ? name : name + 9;
                for (int i = 0; i < 9 && !schema; i++)
                        if (!strcmp(rest, names[i]))
                                schema = lc_schema_plain(LC_INT8 + (lc_type_t)i, rest != name);
                if (!schema)
                        lc_encode_error(e, "no schema is named %s", name);
        } else if (lua_istable(L, idx)) {
                lua_getfield(L, idx, "_schema");
                if (lua_type(L, -1) == CDATA)
                        memcpy(&schema, lua_topointer(L, -1), sizeof(schema));
                lua_pop(L, 1);
        }
        if (!schema)
                lc_encode_error(e, "a schema's name or one of connect.schema expected, got %s",
                                luaL_typename(L, idx));
        if (b && lc_batch_hold_schema(b, schema) < 0)
                lc_encode_error(e, "out of memory");
        return schema;
}

static const lc_schema_t *schema_at(lc_encoder_t *e, lc_batch_t *b, int rec, const char *field)
{
        const char *what = e->what;
        const lc_schema_t *schema;

        lua_getfield(e->L, rec, field);
        schema = lc_encode_schema(e, b, lua_gettop(e->L), field);
        lua_pop(e->L, 1);
        e->what = what;
        return schema;
}

static void field_value(lc_encoder_t *e, lc_batch_t *b, int rec, const char *field, const char *schema_field,
                        const lc_schema_t **schema, lc_value_t *out)
{
        *schema = schema_at(e, b, rec, schema_field);
        e->what = field;
        lua_getfield(e->L, rec, field);
        lc_encode_value(e, lua_gettop(e->L), *schema, out);
        lua_pop(e->L, 1);
}

void lc_encode_headers(lc_encoder_t *e, lc_batch_t *b, int rec, lc_record_t *out)
{
        lua_State *L = e->L;
        size_t n = 0, len;

        e->what = "headers";
        lua_getfield(L, rec, "headers");
        if (lua_isnil(L, -1) || lua_rawequal(L, -1, e->null)) {
                lua_pop(L, 1);
                return;
        }
        if (!lua_istable(L, -1) || !lc_table_list(L, lua_gettop(L), &n) || n > UINT16_MAX)
                lc_encode_error(e, "a list of {name, value} expected");
        if (n && !(out->headers = lc_arena_alloc(&b->arena, n * sizeof(*out->headers))))
                lc_encode_error(e, "out of memory");
        for (size_t i = 0; i < n; i++) {
                lc_header_t *h = &out->headers[i];
                const char *name;
                int at;

                memset(h, 0, sizeof(*h));
                lua_rawgeti(L, -1, (int)i + 1);
                at = lua_gettop(L);
                if (!lua_istable(L, at))
                        lc_encode_error(e, "a list of {name, value} expected");
                lua_rawgeti(L, at, 1);
                if (lua_isnil(L, -1))
                        lua_getfield(L, at, "name");
                name = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &len) : NULL;
                if (!name)
                        lc_encode_error(e, "header %d has no name", (int)i + 1);
                h->name = lc_arena_dup(&b->arena, name, len);
                if (!h->name)
                        lc_encode_error(e, "out of memory");
                h->schema = schema_at(e, b, at, "schema");
                lua_rawgeti(L, at, 2);
                if (lua_isnil(L, -1))
                        lua_getfield(L, at, "value");
                lc_encode_value(e, lua_gettop(L), h->schema, &h->value);
                lua_settop(L, at - 1);
        }
        out->nheaders = (uint16_t)n;
        lua_pop(L, 1);
}

static const char *topic_at(lc_encoder_t *e, lc_batch_t *b, int rec, const char *last)
{
        const char *topic;
        size_t len;

        lua_getfield(e->L, rec, "topic");
        if (lua_type(e->L, -1) != LUA_TSTRING)
                luaL_error(e->L, "record %d: topic: a text expected, got %s", e->record,
                           luaL_typename(e->L, -1));
        topic = lua_tolstring(e->L, -1, &len);
        if (!topic[0])
                luaL_error(e->L, "record %d: topic: must not be empty", e->record);
        if (strlen(topic) != len) /* the rest would be lost without a word */
                luaL_error(e->L, "record %d: topic: must not contain a NUL character", e->record);
        if (!last || strcmp(last, topic)) {
                last = lc_arena_dup(&b->arena, topic, len);
                if (!last)
                        lc_encode_error(e, "out of memory");
        }
        lua_pop(e->L, 1);
        return last;
}

static int64_t integer_field(lc_encoder_t *e, int rec, const char *field, int64_t other, lc_type_t type)
{
        lc_value_t v;

        e->what = field;
        lua_getfield(e->L, rec, field);
        if (lua_isnil(e->L, -1) || lua_rawequal(e->L, -1, e->null)) {
                lua_pop(e->L, 1);
                return other;
        }
        lc_encode_value(e, lua_gettop(e->L), lc_schema_plain(type, false), &v);
        lua_pop(e->L, 1);
        return v.u.i;
}

static void source_at(lc_encoder_t *e, lc_state_t *st, lc_batch_t *b, int rec, lc_record_t *out)
{
        lua_State *L = e->L;
        lc_source_partition_t *p;

        lua_getfield(L, rec, "source_partition");
        lua_getfield(L, rec, "source_offset");
        e->what = "source_partition";
        if (lua_istable(L, -2) && !lua_rawequal(L, -2, e->null)) {
                lc_buf_clear(&st->scratch);
                canonical(e, lua_gettop(L) - 1, &st->scratch, 0);
                if (!lc_buf_ok(&st->scratch))
                        lc_encode_error(e, "out of memory");
                p = intern(st, st->scratch.p, st->scratch.len);
                if ((!b->npartitions || b->partitions[b->npartitions - 1] != p) &&
                    lc_batch_hold_partition(b, p) < 0)
                        lc_encode_error(e, "out of memory");
                out->u.src.partition = p;
        } else if (!lua_isnil(L, -2) && !lua_rawequal(L, -2, e->null)) {
                lc_encode_error(e, "a table expected, got %s", luaL_typename(L, -2));
        }
        e->what = "source_offset";
        if (!lua_isnil(L, -1) && !lua_istable(L, -1))
                lc_encode_error(e, "a table expected, got %s", luaL_typename(L, -1));
        lc_encode_value(e, lua_gettop(L), NULL, &out->u.src.offset);
        if (out->u.src.offset.type == LC_ARRAY)
                lc_encode_error(e, "a table with names as keys expected, got a list");
        lua_pop(L, 2);
}

int lc_encode_batch(lua_State *L)
{
        lc_state_t *st = lc_state_of(L);
        const char *topic = NULL;
        lc_encoder_t e;
        lc_batch_t *b;
        size_t n;

        luaL_checktype(L, 1, LUA_TTABLE);
        lua_settop(L, 1);
        n = lua_objlen(L, 1);
        lc_batch_unref(st->xch.batch);
        st->xch.batch = b = lc_batch_new((uint32_t)n);
        if (!b)
                return luaL_error(L, "out of memory for a batch of %d records", (int)n);
        lc_encoder_init(&e, L, &b->arena);
        for (size_t i = 0; i < n; i++) {
                lc_record_t *r;
                int rec;

                e.record = (int)i + 1;
                e.what = "record";
                lua_rawgeti(L, 1, (int)i + 1);
                rec = lua_gettop(L);
                if (!lua_istable(L, rec))
                        lc_encode_error(&e, "a table expected, got %s", luaL_typename(L, rec));
                r = lc_batch_add(b);
                if (!r)
                        lc_encode_error(&e, "out of memory");
                r->topic = topic = topic_at(&e, b, rec, topic);
                r->partition = (int32_t)integer_field(&e, rec, "partition", -1, LC_INT32);
                r->timestamp = integer_field(&e, rec, "timestamp", -1, LC_INT64);
                field_value(&e, b, rec, "key", "key_schema", &r->key_schema, &r->key);
                field_value(&e, b, rec, "value", "value_schema", &r->value_schema, &r->value);
                lc_encode_headers(&e, b, rec, r);
                source_at(&e, st, b, rec, r);
                lua_pop(L, 1);
        }
        return 0;
}
