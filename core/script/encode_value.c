/* encode_value.c - see encode.h. The script's thread. Spec: spec/unit/script_spec.lua. */
#include "script/encode.h"
#include "data/schema_builder.h"
#include "data/validate.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MOST = 200, CDATA = 10 /* LUA_TCDATA, which lua.h does not name */, HOLES_MOST = 1024 };
static const double EXACT = 9007199254740992.0; /* 2^53 */

int lc_encode_error(lc_encoder_t *e, const char *fmt, ...)
{
        char text[512];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        if (e->blame) {
                lc_err_t err = {0};
                lc_err_set_cls(&err, LC_DATA, 0, LC_CLS_DATA, "%s: %s", e->what, text);
                return lc_state_raise(e->L, &err);
        }
        if (e->record)
                return luaL_error(e->L, "record %d: %s: %s", e->record, e->what, text);
        return luaL_error(e->L, "%s: %s", e->what, text);
}

void lc_encoder_init(lc_encoder_t *e, lua_State *L, lc_arena_t *arena)
{
        static const char *const names[] = {"null",  "array", "map",      "float",
                                            "bytes", "data",  "map_flat", "classify"};
        int *slots[] = {&e->null,  &e->array, &e->map,      &e->flt,
                        &e->bytes, &e->data,  &e->map_flat, &e->classify};
        int types;

        memset(e, 0, sizeof(*e));
        e->L = L;
        e->arena = arena;
        e->what = "value";
        luaL_checkstack(L, 64, "value");
        lua_getfield(L, LUA_REGISTRYINDEX, "connect.types");
        types = lua_gettop(L);
        luaL_checktype(L, types, LUA_TTABLE);
        for (size_t i = 0; i < sizeof(slots) / sizeof(*slots); i++) {
                lua_getfield(L, types, names[i]);
                *slots[i] = lua_gettop(L);
        }
}

/* Connect's message about the value alone when the record is to blame. */
static void refuse(lc_encoder_t *e, const lc_err_t *err)
{
        if (e->blame)
                lc_state_raise(e->L, err);
        lc_encode_error(e, "%s", err->msg);
}

static void *take(lc_encoder_t *e, size_t size)
{
        void *p = lc_arena_alloc(e->arena, size ? size : 1);

        if (!p)
                lc_encode_error(e, "out of memory");
        return p;
}

static int by_key(const void *a, const void *b)
{
        const lc_table_key_t *x = a, *y = b;
        size_t n;
        int rc;

        if (!x->s || !y->s) {
                if (!x->s && !y->s)
                        return x->n < y->n ? -1 : x->n > y->n;
                return x->s ? 1 : -1;
        }
        n = x->len < y->len ? x->len : y->len;
        rc = memcmp(x->s, y->s, n);
        return rc ? rc : x->len < y->len ? -1 : x->len > y->len;
}

lc_table_key_t *lc_table_keys(lua_State *L, int idx, size_t *n)
{
        lc_table_key_t *keys;
        size_t count = 0;

        for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1))
                count++;
        keys = lua_newuserdata(L, (count ? count : 1) * sizeof(*keys));
        *n = count;
        count = 0;
        for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {
                lc_table_key_t *k = &keys[count++];
                k->s = NULL;
                k->n = 0;
                if (lua_type(L, -2) == LUA_TSTRING)
                        k->s = lua_tolstring(L, -2, &k->len);
                else if (lua_type(L, -2) == LUA_TNUMBER)
                        k->n = lua_tonumber(L, -2);
                else
                        luaL_error(L, "a plain table with a key of type %s: use connect.map",
                                   luaL_typename(L, -2));
        }
        qsort(keys, *n, sizeof(*keys), by_key);
        return keys;
}

bool lc_table_list(lua_State *L, int idx, size_t *len)
{
        size_t count = 0;
        lua_Number most = 0;

        for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {
                lua_Number k = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;
                if (k < 1 || k != floor(k)) {
                        lua_pop(L, 2);
                        return false;
                }
                count++;
                most = k > most ? k : most;
        }
        *len = (size_t)most;
        return most <= (lua_Number)count * 2 + HOLES_MOST;
}

static bool has_mt(lc_encoder_t *e, int idx, int mt)
{
        bool same;

        if (!lua_getmetatable(e->L, idx))
                return false;
        same = lua_rawequal(e->L, -1, mt);
        lua_pop(e->L, 1);
        return same;
}

static void push_key(lua_State *L, const lc_table_key_t *k)
{
        if (k->s)
                lua_pushlstring(L, k->s, k->len);
        else
                lua_pushnumber(L, k->n);
}

static void set_text(lc_encoder_t *e, int idx, lc_type_t type, lc_value_t *out)
{
        size_t n;
        const char *s = lua_tolstring(e->L, idx, &n);
        char *copy;

        if (n > UINT32_MAX)
                lc_encode_error(e, "a text of %zu bytes is too long", n);
        copy = lc_arena_dup(e->arena, s, n);
        if (!copy)
                lc_encode_error(e, "out of memory");
        *out = (lc_value_t){.type = (uint8_t)type, .len = (uint32_t)n, .u.s = copy};
}

/* The int64_t of a cdata, asked from Lua because C cannot see its type. */
static bool cdata_int64(lc_encoder_t *e, int idx, int64_t *out)
{
        bool is;

        lua_pushvalue(e->L, e->classify);
        lua_pushvalue(e->L, idx);
        lua_call(e->L, 1, 1);
        is = lua_toboolean(e->L, -1);
        lua_pop(e->L, 1);
        if (is)
                memcpy(out, lua_topointer(e->L, idx), sizeof(*out));
        return is;
}

/* An integer, or a refusal that names the value. */
static int64_t integer_at(lc_encoder_t *e, int idx, const char *type, double least, double most)
{
        int64_t i;
        lua_Number n;

        if (lua_type(e->L, idx) == CDATA && cdata_int64(e, idx, &i)) {
                if (most < EXACT && ((double)i < least || (double)i > most))
                        lc_encode_error(e, "%lld does not fit %s", (long long)i, type);
                return i;
        }
        if (lua_type(e->L, idx) != LUA_TNUMBER)
                lc_encode_error(e, "%s expected, got %s", type, luaL_typename(e->L, idx));
        n = lua_tonumber(e->L, idx);
        if (n != floor(n) || n < least || n > most)
                lc_encode_error(e, "%.17g does not fit %s", n, type);
        return (int64_t)n;
}

static double float_at(lc_encoder_t *e, int idx)
{
        double d;
        int64_t i;

        if (lua_type(e->L, idx) == LUA_TNUMBER)
                return lua_tonumber(e->L, idx);
        if (lua_type(e->L, idx) == CDATA && cdata_int64(e, idx, &i))
                return (double)i;
        if (lua_type(e->L, idx) != LUA_TTABLE || !has_mt(e, idx, e->flt))
                lc_encode_error(e, "number expected, got %s", luaL_typename(e->L, idx));
        lua_rawgeti(e->L, idx, 1);
        d = lua_tonumber(e->L, -1);
        lua_pop(e->L, 1);
        return d;
}

/* Date, time, timestamp or decimal made by connect.data: {type=, ms=} or {type=, unscaled=, scale=}. */
static void data_value(lc_encoder_t *e, int idx, lc_value_t *out)
{
        static const char *const names[] = {"date", "time", "timestamp"};
        static const lc_type_t types[] = {LC_DATE, LC_TIME, LC_TIMESTAMP};
        lua_State *L = e->L;
        const char *type;
        lc_decimal_t *d;
        size_t n;

        lua_getfield(L, idx, "type");
        type = lua_tostring(L, -1);
        lua_pop(L, 1);
        for (size_t i = 0; type && i < 3; i++) {
                if (strcmp(type, names[i]))
                        continue;
                lua_getfield(L, idx, "ms");
                *out = (lc_value_t){.type = (uint8_t)types[i],
                                    .u.i = integer_at(e, lua_gettop(L), type, -9.3e18, 9.3e18)};
                lua_pop(L, 1);
                return;
        }
        if (!type || strcmp(type, "decimal"))
                lc_encode_error(e, "a value of connect.data with type %s", type ? type : "nil");
        d = take(e, sizeof(*d));
        lua_getfield(L, idx, "unscaled");
        lua_getfield(L, idx, "scale");
        if (lua_type(L, -2) != LUA_TSTRING)
                lc_encode_error(e, "a decimal without its unscaled bytes");
        d->scale = (int32_t)integer_at(e, lua_gettop(L), "scale", INT32_MIN, INT32_MAX);
        d->unscaled = (const uint8_t *)lua_tolstring(L, -2, &n);
        d->len = (uint32_t)n;
        d->unscaled = lc_arena_dup(e->arena, d->unscaled, n);
        if (!d->unscaled)
                lc_encode_error(e, "out of memory");
        lua_pop(L, 2);
        *out = (lc_value_t){.type = LC_DECIMAL, .u.dec = d};
}

static void encode(lc_encoder_t *e, int idx, const lc_schema_t *schema, lc_value_t *out, int depth);

static void list_value(lc_encoder_t *e, int idx, size_t n, const lc_schema_t *elem, lc_value_t *out,
                       int depth)
{
        lc_value_t *items;

        if (n > UINT32_MAX / 2)
                lc_encode_error(e, "a list of %zu items is too long", n);
        items = take(e, n * sizeof(*items));
        for (size_t i = 0; i < n; i++) {
                lua_rawgeti(e->L, idx, (int)i + 1);
                encode(e, lua_gettop(e->L), elem, &items[i], depth + 1);
                lua_pop(e->L, 1);
        }
        *out = (lc_value_t){.type = LC_ARRAY, .len = (uint32_t)n, .u.items = items};
}

/* connect.map: its entries in order, from a flat list that Lua makes. Plain table: sorted. */
static void map_value(lc_encoder_t *e, int idx, const lc_schema_t *schema, lc_value_t *out, int depth)
{
        const lc_schema_t *ks = schema ? schema->key : NULL, *vs = schema ? schema->elem : NULL;
        lua_State *L = e->L;
        lc_table_key_t *keys;
        lc_value_t *items;
        size_t n;

        if (has_mt(e, idx, e->map)) {
                lua_pushvalue(L, e->map_flat);
                lua_pushvalue(L, idx);
                lua_call(L, 1, 2);
                n = (size_t)lua_tonumber(L, -1);
                lua_pop(L, 1);
                items = take(e, 2 * n * sizeof(*items));
                for (size_t i = 0; i < 2 * n; i++) {
                        lua_rawgeti(L, -1, (int)i + 1);
                        encode(e, lua_gettop(L), i % 2 ? vs : ks, &items[i], depth + 1);
                        lua_pop(L, 1);
                }
        } else {
                keys = lc_table_keys(L, idx, &n);
                items = take(e, 2 * n * sizeof(*items));
                for (size_t i = 0; i < n; i++) {
                        if (!schema && !keys[i].s)
                                lc_encode_error(e, "a plain table with numbers as keys that are not 1 to n: "
                                                   "use connect.map or connect.array");
                        push_key(L, &keys[i]);
                        encode(e, lua_gettop(L), ks, &items[2 * i], depth + 1);
                        lua_rawget(L, idx);
                        encode(e, lua_gettop(L), vs, &items[2 * i + 1], depth + 1);
                        lua_pop(L, 1);
                }
        }
        lua_pop(L, 1);
        *out = (lc_value_t){.type = LC_MAP, .len = (uint32_t)n, .u.items = items};
}

static void struct_value(lc_encoder_t *e, int idx, const lc_schema_t *schema, lc_value_t *out, int depth)
{
        lua_State *L = e->L;
        lc_struct_value_t *st = take(e, sizeof(*st));
        lc_err_t err = {0};
        size_t used = 0, n;

        st->schema = schema;
        st->fields = take(e, schema->nfields * sizeof(*st->fields));
        for (uint32_t i = 0; i < schema->nfields; i++) {
                const lc_field_t *f = &schema->fields[i];
                lua_getfield(L, idx, f->name);
                used += !lua_isnil(L, -1);
                if (lua_isnil(L, -1) && f->schema->has_default)
                        st->fields[i] = f->schema->def;
                else
                        encode(e, lua_gettop(L), f->schema, &st->fields[i], depth + 1);
                lua_pop(L, 1);
                if (lc_validate_field(f->name, f->schema, &st->fields[i], &err) < 0)
                        refuse(e, &err);
        }
        if (!has_mt(e, idx, e->map)) {
                lc_table_key_t *keys = lc_table_keys(L, idx, &n);
                for (size_t i = 0; n != used && i < n; i++)
                        if (!keys[i].s || lc_schema_field_index(schema, keys[i].s, keys[i].len) < 0)
                                lc_encode_error(e, "%s is not a valid field name",
                                                keys[i].s ? keys[i].s : "a number");
                lua_pop(L, 1);
        }
        *out = (lc_value_t){.type = LC_STRUCT, .u.st = st};
}

static void plain_value(lc_encoder_t *e, int idx, lc_value_t *out, int depth)
{
        lua_State *L = e->L;
        lua_Number d;
        int64_t i;
        size_t n;

        switch (lua_type(L, idx)) {
        case LUA_TBOOLEAN:
                *out = (lc_value_t){.type = LC_BOOLEAN, .u.i = lua_toboolean(L, idx)};
                return;
        case LUA_TNUMBER:
                d = lua_tonumber(L, idx);
                if (d == floor(d) && fabs(d) <= EXACT && !(d == 0 && signbit(d)))
                        *out = lc_value_int64((int64_t)d);
                else
                        *out = (lc_value_t){.type = LC_FLOAT64, .u.f = d};
                return;
        case LUA_TSTRING:
                set_text(e, idx, LC_STRING, out);
                return;
        case CDATA:
                if (!cdata_int64(e, idx, &i))
                        break;
                *out = lc_value_int64(i);
                return;
        case LUA_TTABLE:
                if (has_mt(e, idx, e->flt)) {
                        *out = (lc_value_t){.type = LC_FLOAT64, .u.f = float_at(e, idx)};
                } else if (has_mt(e, idx, e->bytes)) {
                        lua_rawgeti(L, idx, 1);
                        set_text(e, lua_gettop(L), LC_BYTES, out);
                        lua_pop(L, 1);
                } else if (has_mt(e, idx, e->data)) {
                        data_value(e, idx, out);
                } else if (has_mt(e, idx, e->map)) {
                        map_value(e, idx, NULL, out, depth);
                } else if (has_mt(e, idx, e->array)) {
                        if (!lc_table_list(L, idx, &n))
                                lc_encode_error(e, "an array with other keys than 1 to its length");
                        list_value(e, idx, n, NULL, out, depth);
                } else if (lc_table_list(L, idx, &n) && n) {
                        list_value(e, idx, n, NULL, out, depth);
                } else {
                        map_value(e, idx, NULL, out, depth);
                }
                return;
        default:
                break;
        }
        lc_encode_error(e, "a %s cannot be a value", luaL_typename(L, idx));
}

/* A Lua value of another type than the schema's. */
static void mismatch(lc_encoder_t *e, int idx, const lc_schema_t *schema, lc_value_t *out, int depth)
{
        if (e->blame) { /* say it as Connect does */
                lc_err_t err = {0};
                plain_value(e, idx, out, depth);
                if (lc_validate_value(schema, out, &err) < 0)
                        lc_state_raise(e->L, &err);
        }
        lc_encode_error(e, "a Lua %s for the schema type %s", luaL_typename(e->L, idx),
                        lc_type_name(schema->type));
}

static void typed_value(lc_encoder_t *e, int idx, const lc_schema_t *schema, lc_value_t *out, int depth)
{
        static const struct {
                const char *name;
                double least, most;
        } ints[] = {[LC_INT8] = {"int8", -128, 127},
                    [LC_INT16] = {"int16", -32768, 32767},
                    [LC_INT32] = {"int32", -2147483648.0, 2147483647.0},
                    [LC_INT64] = {"int64", -9223372036854775808.0, 9223372036854774784.0}};
        lua_State *L = e->L;
        int type = lua_type(L, idx);
        double d;
        size_t n;

        if (type == LUA_TTABLE && has_mt(e, idx, e->data)) {
                lc_err_t err = {0};
                data_value(e, idx, out);
                if (lc_validate_value(schema, out, &err) < 0)
                        refuse(e, &err);
                return;
        }
        if (e->blame && schema->type <= LC_FLOAT64 && type != LUA_TNUMBER && type != CDATA &&
            !(schema->type >= LC_FLOAT32 && type == LUA_TTABLE && has_mt(e, idx, e->flt)))
                mismatch(e, idx, schema, out, depth);
        switch (schema->type) {
        case LC_INT8:
        case LC_INT16:
        case LC_INT32:
        case LC_INT64:
                if (schema->logical) /* a number where a date is meant: milliseconds */
                        *out = (lc_value_t){.type = (uint8_t)schema->logical,
                                            .u.i = integer_at(e, idx, "ms", -9.2e18, 9.2e18)};
                else
                        *out = (lc_value_t){.type = (uint8_t)schema->type,
                                            .u.i = integer_at(e, idx, ints[schema->type].name,
                                                              ints[schema->type].least,
                                                              ints[schema->type].most)};
                return;
        case LC_FLOAT32:
                d = float_at(e, idx);
                if (isfinite(d) && !isfinite((float)d))
                        lc_encode_error(e, "%.17g is beyond float32", d);
                *out = (lc_value_t){.type = LC_FLOAT32, .u.f32 = (float)d};
                return;
        case LC_FLOAT64:
                *out = (lc_value_t){.type = LC_FLOAT64, .u.f = float_at(e, idx)};
                return;
        case LC_BOOLEAN:
                if (type != LUA_TBOOLEAN)
                        break;
                *out = (lc_value_t){.type = LC_BOOLEAN, .u.i = lua_toboolean(L, idx)};
                return;
        case LC_STRING:
                if (type != LUA_TSTRING)
                        break;
                set_text(e, idx, LC_STRING, out);
                return;
        case LC_BYTES:
                if (schema->logical)
                        break;
                if (type == LUA_TTABLE && has_mt(e, idx, e->bytes)) {
                        lua_rawgeti(L, idx, 1);
                        set_text(e, lua_gettop(L), LC_BYTES, out);
                        lua_pop(L, 1);
                        return;
                }
                if (type != LUA_TSTRING)
                        break;
                set_text(e, idx, LC_BYTES, out);
                return;
        case LC_ARRAY:
                if (type != LUA_TTABLE || !lc_table_list(L, idx, &n))
                        break;
                list_value(e, idx, n, schema->elem, out, depth);
                return;
        case LC_MAP:
                if (type != LUA_TTABLE)
                        break;
                map_value(e, idx, schema, out, depth);
                return;
        case LC_STRUCT:
                if (type != LUA_TTABLE)
                        break;
                struct_value(e, idx, schema, out, depth);
                return;
        default:
                break;
        }
        mismatch(e, idx, schema, out, depth);
}

static void encode(lc_encoder_t *e, int idx, const lc_schema_t *schema, lc_value_t *out, int depth)
{
        if (depth > DEPTH_MOST)
                lc_encode_error(e, "nested deeper than %d levels, or within itself", DEPTH_MOST);
        luaL_checkstack(e->L, 16, "value");
        if (lua_isnil(e->L, idx) || lua_rawequal(e->L, idx, e->null)) {
                if (schema && !schema->optional && !schema->has_default && e->blame) {
                        lc_err_t err = {0};
                        *out = lc_value_null();
                        if (depth == 0 && lc_validate_value(schema, out, &err) < 0)
                                lc_state_raise(e->L, &err);
                } else if (schema && !schema->optional && !schema->has_default)
                        lc_encode_error(e, "null used for required value, schema type: %s",
                                        lc_type_name(schema->type));
                *out = lc_value_null();
        } else if (schema) {
                typed_value(e, idx, schema, out, depth);
        } else {
                plain_value(e, idx, out, depth);
        }
}

void lc_encode_value(lc_encoder_t *e, int idx, const lc_schema_t *schema, lc_value_t *out)
{
        encode(e, idx, schema, out, 0);
}
