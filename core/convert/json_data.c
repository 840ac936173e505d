/*
 * json_data.c - values as JsonConverter's JSON, both ways. See json_data.h. Any thread.
 * Spec: spec/golden/converters_spec.lua
 */
#include "convert/json_data.h"
#include "convert/text.h"
#include "data/decimal.h"
#include "data/java_hash.h"
#include "data/schema_builder.h"
#include "data/validate.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MS_PER_DAY = 86400000 };
#define CLS_NULL "java.lang.NullPointerException"

#define bad(err, ...) lc_err_set_cls((err), LC_DATA, 0, LC_CLS_DATA, __VA_ARGS__)

static int no_memory(lc_err_t *err)
{
        return lc_err_set(err, LC_FATAL, ENOMEM, "Out of memory while converting a record");
}

/* ---- writing ---- */

/* Nulls that stand for long defaults can make a gigabyte of 64 kB: no record is so large. */
static int check_size(const lc_buf_t *out, lc_err_t *err)
{
        return out->len <= LC_JSON_MAX_OUTPUT
                       ? 0
                       : bad(err, "The JSON of this value is longer than %d bytes", LC_JSON_MAX_OUTPUT);
}

static int decimal_scale(const lc_schema_t *s, int *scale, lc_err_t *err)
{
        const char *text = s->params ? lc_props_get(s->params, "scale") : NULL;

        if (s->has_scale) {
                *scale = s->scale;
                return 0;
        }
        if (!s->params)
                return lc_err_set_cls(
                        err, LC_DATA, 0, CLS_NULL,
                        "Cannot invoke \"java.util.Map.get(Object)\" because "
                        "the return value of \"org.apache.kafka.connect.data.Schema.parameters()\" is null");
        if (!text)
                return bad(err, "Invalid Decimal schema: scale parameter not found.");
        bad(err, "Invalid scale parameter found in Decimal schema: ");
        if (err)
                lc_err_cause(err, "java.lang.NumberFormatException", "For input string: \"%s\"", text);
        return -1;
}

static int write_decimal(const lc_json_options_t *o, const lc_schema_t *s, const lc_value_t *v, lc_buf_t *out,
                         lc_err_t *err)
{
        int scale;

        if (!lc_value_fits(s, v))
                return bad(err, "Invalid type for Decimal, expected BigDecimal but was class %s",
                           lc_value_java_class(v));
        if (o->numeric_decimal)
                return lc_decimal_to_text(v->u.dec, out) < 0 ? no_memory(err) : 0;
        if (decimal_scale(s, &scale, err) < 0)
                return -1;
        if (scale != v->u.dec->scale)
                return bad(
                        err,
                        "Decimal value has mismatching scale for given Decimal schema. Schema has scale %d, "
                        "value has scale %d.",
                        scale, v->u.dec->scale);
        lc_buf_addc(out, '"');
        lc_base64_append(out, v->u.dec->unscaled, v->u.dec->len);
        lc_buf_addc(out, '"');
        return 0;
}

static int write_logical(const lc_json_options_t *o, const lc_schema_t *s, const lc_value_t *v, lc_buf_t *out,
                         lc_err_t *err)
{
        int64_t n = v->u.i;

        if (s->logical == LC_DECIMAL)
                return write_decimal(o, s, v, out, err);
        if (!lc_value_fits(s, v))
                return bad(err, "Invalid type for %s, expected Date but was class %s",
                           strrchr(s->name, '.') + 1, lc_value_java_class(v));
        if (s->logical == LC_DATE) {
                if (n % MS_PER_DAY)
                        return bad(err, "Kafka Connect Date type should not have any time fields set to "
                                        "non-zero values.");
                n = (int32_t)(n / MS_PER_DAY);
        } else if (s->logical == LC_TIME && (n < 0 || n > MS_PER_DAY)) {
                return bad(err,
                           "Kafka Connect Time type should not have any date fields set to non-zero values.");
        }
        lc_buf_addi(out, n);
        return 0;
}

static int write_map(const lc_json_options_t *o, const lc_schema_t *s, const lc_value_t *v, lc_buf_t *out,
                     lc_err_t *err)
{
        const lc_schema_t *ks = s ? s->key : NULL, *vs = s ? s->elem : NULL;
        uint32_t few[32], *order = NULL;
        bool object = true;
        int rc = -1;

        if (s && !ks)
                return lc_err_set_cls(
                        err, LC_DATA, 0, CLS_NULL,
                        "Cannot invoke \"org.apache.kafka.connect.data.Schema."
                        "type()\" because the return value of \"org.apache.kafka.connect.data.Schema."
                        "keySchema()\" is null");
        if (s)
                object = ks->type == LC_STRING;
        for (uint32_t i = 0; !s && i < v->len && object; i++)
                object = v->u.items[2 * i].type == LC_STRING;
        if (o->hash_order && v->len > 1) {
                order = v->len <= 32 ? few : malloc(v->len * sizeof(*order));
                if (!order || lc_java_hash_order(v->u.items, v->len, order) < 0) {
                        no_memory(err);
                        goto done;
                }
        }
        lc_buf_addc(out, object ? '{' : '[');
        for (uint32_t i = 0; i < v->len; i++) {
                const lc_value_t *e = &v->u.items[2 * (order ? order[i] : i)];

                if (check_size(out, err) < 0)
                        goto done;
                if (object && e->type == LC_STRING && !(ks && ks->logical)) {
                        lc_json_write_name(out, e->u.s, e->len, i > 0);
                        if (lc_json_write_value(o, vs, e + 1, out, err) < 0)
                                goto done;
                        continue;
                }
                if (i)
                        lc_buf_addc(out, ',');
                if (!object)
                        lc_buf_addc(out, '[');
                if (object && e->type == LC_NULL && ks->optional &&
                    !(ks->has_default && o->replace_null_with_default))
                        lc_buf_adds(out, "\"null\"");
                else if (lc_json_write_value(o, ks, e, out, err) < 0)
                        goto done;
                lc_buf_addc(out, object ? ':' : ',');
                if (lc_json_write_value(o, vs, e + 1, out, err) < 0)
                        goto done;
                if (!object)
                        lc_buf_addc(out, ']');
        }
        lc_buf_addc(out, object ? '}' : ']');
        rc = 0;
done:
        if (order != few)
                free(order);
        return rc;
}

static int write_struct(const lc_json_options_t *o, const lc_schema_t *s, const lc_value_t *v, lc_buf_t *out,
                        lc_err_t *err)
{
        if (!s || !lc_schema_equal(s, v->u.st->schema))
                return bad(err, "Mismatching schema.");
        lc_buf_addc(out, '{');
        for (uint32_t i = 0; i < s->nfields; i++) {
                lc_json_write_name(out, s->fields[i].name, strlen(s->fields[i].name), i > 0);
                if (lc_json_write_value(o, s->fields[i].schema, &v->u.st->fields[i], out, err) < 0)
                        return -1;
        }
        lc_buf_addc(out, '}');
        return 0;
}

static int write_array(const lc_json_options_t *o, const lc_schema_t *s, const lc_value_t *v, lc_buf_t *out,
                       lc_err_t *err)
{
        lc_buf_addc(out, '[');
        for (uint32_t i = 0; i < v->len; i++) {
                if (check_size(out, err) < 0)
                        return -1;
                if (i)
                        lc_buf_addc(out, ',');
                if (lc_json_write_value(o, s ? s->elem : NULL, &v->u.items[i], out, err) < 0)
                        return -1;
        }
        lc_buf_addc(out, ']');
        return 0;
}

static void write_float(const lc_value_t *v, lc_buf_t *out)
{
        bool quote = v->type == LC_FLOAT32 ? !isfinite(v->u.f32) : !isfinite(v->u.f);

        if (quote)
                lc_buf_addc(out, '"');
        if (v->type == LC_FLOAT32)
                lc_java_float(out, v->u.f32);
        else
                lc_java_double(out, v->u.f);
        if (quote)
                lc_buf_addc(out, '"');
}

static int write_null(const lc_json_options_t *o, const lc_schema_t *s, lc_buf_t *out, lc_err_t *err)
{
        if (s && s->has_default && o->replace_null_with_default)
                return lc_json_write_value(o, s, &s->def, out, err);
        if (s && !s->optional)
                return bad(
                        err,
                        "Conversion error: null value for field that is required and has no default value");
        lc_buf_add(out, "null", 4);
        return 0;
}

int lc_json_write_value(const lc_json_options_t *o, const lc_schema_t *s, const lc_value_t *v, lc_buf_t *out,
                        lc_err_t *err)
{
        if (v->type == LC_NULL)
                return write_null(o, s, out, err);
        if (s && s->logical)
                return write_logical(o, s, v, out, err);
        if (s && v->type != s->type) {
                if (s->type == LC_BYTES)
                        return bad(err, "Invalid type for bytes type: class %s", lc_value_java_class(v));
                return bad(err, "Invalid type for %s: class %s", lc_type_name(s->type),
                           lc_value_java_class(v));
        }
        switch ((lc_type_t)v->type) {
        case LC_INT8:
        case LC_INT16:
        case LC_INT32:
        case LC_INT64:
                lc_buf_addi(out, v->u.i);
                return 0;
        case LC_FLOAT32:
        case LC_FLOAT64:
                write_float(v, out);
                return 0;
        case LC_BOOLEAN:
                lc_buf_add(out, v->u.i ? "true" : "false", v->u.i ? 4 : 5);
                return 0;
        case LC_STRING:
                lc_json_write_string(out, v->u.s, v->len);
                return 0;
        case LC_BYTES:
                lc_buf_addc(out, '"');
                lc_base64_append(out, v->u.s, v->len);
                lc_buf_addc(out, '"');
                return 0;
        case LC_ARRAY:
                return write_array(o, s, v, out, err);
        case LC_MAP:
                return write_map(o, s, v, out, err);
        case LC_STRUCT:
                return write_struct(o, s, v, out, err);
        default:
                return bad(err, "Java class class %s does not have corresponding schema type.",
                           lc_value_java_class(v));
        }
}

/* ---- reading ---- */

static const char *node_type(const lc_json_t *n)
{
        static const char *const names[] = {"NULL",   "BOOLEAN", "BOOLEAN", "NUMBER",
                                            "STRING", "ARRAY",   "OBJECT",  "MISSING"};

        return n ? names[n->type] : "MISSING";
}

static int64_t number_int64(const lc_json_t *n)
{
        return n && n->type == LC_J_NUMBER ? lc_json_int64(n, NULL) : 0;
}

static int read_bytes(const lc_json_t *n, lc_arena_t *a, lc_value_t *out, lc_err_t *err)
{
        const char *p;
        size_t len;
        char why[200];
        int rc;

        *out = lc_value_null();
        if (!n || n->type != LC_J_STRING)
                return 0;
        rc = lc_base64_decode(n->s, n->len, a, &p, &len, why);
        if (rc == -2)
                return no_memory(err);
        if (rc < 0) {
                bad(err, "Invalid bytes field");
                if (err)
                        lc_err_cause(err, "com.fasterxml.jackson.databind.exc.InvalidFormatException",
                                     "Cannot access contents of TextNode as binary due to broken Base64 "
                                     "encoding: %s",
                                     why);
                return -1;
        }
        *out = (lc_value_t){.type = LC_BYTES, .len = (uint32_t)len, .u.s = p};
        return 0;
}

static int read_decimal(const lc_schema_t *s, const lc_json_t *n, lc_arena_t *a, lc_value_t *out,
                        lc_err_t *err)
{
        const lc_decimal_t *d = NULL;
        lc_err_t why;
        int scale, rc;

        lc_err_clear(&why);
        if (n && n->type == LC_J_NUMBER) {
                rc = lc_decimal_parse(a, n->s, n->len, &d);
                if (rc == LC_DECIMAL_OOM)
                        return no_memory(err);
                if (rc < 0)
                        return bad(err, "Invalid number for Decimal field: %.*s", (int)n->len, n->s);
                *out = lc_value_decimal(d);
                return 0;
        }
        if (!n || n->type != LC_J_STRING)
                return bad(err,
                           "Invalid type for Decimal, underlying representation should be numeric or bytes "
                           "but was %s",
                           node_type(n));
        rc = read_bytes(n, a, out, &why);
        if (why.kind == LC_FATAL)
                return no_memory(err);
        if (rc == 0 && out->len == 0)
                rc = lc_err_set_cls(&why, LC_DATA, 0, "java.lang.NumberFormatException",
                                    "Zero length BigInteger");
        if (rc == 0 && out->len > LC_DECIMAL_MAX_BYTES)
                rc = lc_err_set_cls(&why, LC_DATA, 0, LC_CLS_DATA, "A number of %u bytes, more than %d",
                                    out->len, LC_DECIMAL_MAX_BYTES);
        if (rc == 0)
                rc = decimal_scale(s, &scale, &why);
        if (rc < 0) {
                bad(err, "Invalid bytes for Decimal field");
                if (err && strncmp(why.msg, "Invalid bytes field", 19) != 0)
                        lc_err_cause(err, why.cls, "%s", why.msg);
                if (err) {
                        size_t used = strlen(err->detail);

                        snprintf(err->detail + used, sizeof(err->detail) - used, "%s", why.detail);
                }
                return -1;
        }
        if (!(d = lc_decimal_from_bytes(a, out->u.s, out->len, scale)))
                return no_memory(err);
        *out = lc_value_decimal(d);
        return 0;
}

static int read_logical(const lc_schema_t *s, const lc_json_t *n, lc_arena_t *a, lc_value_t *out,
                        lc_err_t *err)
{
        bool integral = n && n->type == LC_J_NUMBER && n->integral, exact;
        int64_t v;

        if (s->logical == LC_DECIMAL)
                return read_decimal(s, n, a, out, err);
        v = integral ? lc_json_int64(n, &exact) : 0;
        if (s->logical == LC_TIMESTAMP) {
                if (!integral)
                        return bad(err,
                                   "Invalid type for Timestamp, underlying representation should be integral "
                                   "but "
                                   "was %s",
                                   node_type(n));
        } else if (!integral || !exact || v < INT32_MIN || v > INT32_MAX) {
                return bad(err, "Invalid type for %s, underlying representation should be integer but was %s",
                           s->logical == LC_DATE ? "Date" : "Time", node_type(n));
        }
        if (s->logical == LC_TIME && (v < 0 || v > MS_PER_DAY))
                return bad(
                        err,
                        "Time values must use number of milliseconds greater than 0 and less than 86400000");
        if (s->logical == LC_DATE)
                v *= MS_PER_DAY;
        *out = (lc_value_t){.type = (uint8_t)s->logical, .u.i = v};
        return 0;
}

static int read_array(const lc_json_options_t *o, const lc_schema_t *s, const lc_json_t *n, lc_arena_t *a,
                      lc_value_t *out, lc_err_t *err)
{
        /* Java walks over any node: an object's members count, a scalar has none */
        size_t len = n && (n->type == LC_J_ARRAY || n->type == LC_J_OBJECT) ? n->len : 0;
        lc_value_t *items = NULL, *at;

        if (len && !(items = lc_arena_alloc(a, len * sizeof(*items))))
                return no_memory(err);
        at = items;
        for (const lc_json_t *c = len ? n->child : NULL; c; c = c->next, at++)
                if (lc_json_read_value(o, s ? s->elem : NULL, c, a, at, err) < 0)
                        return -1;
        *out = (lc_value_t){.type = LC_ARRAY, .len = (uint32_t)len, .u.items = items};
        return 0;
}

static int read_pairs(const lc_json_options_t *o, const lc_schema_t *s, const lc_json_t *n, lc_arena_t *a,
                      lc_value_t *items, uint32_t *len, lc_err_t *err)
{
        for (const lc_json_t *c = n->child; c; c = c->next, items += 2) {
                if (c->type != LC_J_ARRAY)
                        return bad(err, "Found invalid map entry instead of array tuple: %s", node_type(c));
                if (c->len != 2)
                        return bad(err, "Found invalid map entry, expected length 2 but found :%zu", c->len);
                if (lc_json_read_value(o, s->key, c->child, a, &items[0], err) < 0 ||
                    lc_json_read_value(o, s->elem, c->child->next, a, &items[1], err) < 0)
                        return -1;
        }
        return lc_java_unique_entries(items - 2 * n->len, len) < 0 ? no_memory(err) : 0;
}

static int read_map(const lc_json_options_t *o, const lc_schema_t *s, const lc_json_t *n, lc_arena_t *a,
                    lc_value_t *out, lc_err_t *err)
{
        bool object = !s || s->key->type == LC_STRING;
        lc_value_t *items = NULL, *at;
        uint32_t len;

        if (object && !(n && n->type == LC_J_OBJECT))
                return bad(err, "Maps with string fields should be encoded as JSON objects, but found %s",
                           node_type(n));
        if (!object && !(n && n->type == LC_J_ARRAY))
                return bad(
                        err,
                        "Maps with non-string fields should be encoded as JSON array of tuples, but found %s",
                        node_type(n));
        len = (uint32_t)n->len;
        if (len && !(items = lc_arena_alloc(a, 2 * (size_t)len * sizeof(*items))))
                return no_memory(err);
        at = items;
        if (!object) {
                if (len && read_pairs(o, s, n, a, items, &len, err) < 0)
                        return -1;
        } else {
                for (const lc_json_t *c = n->child; c; c = c->next, at += 2) {
                        at[0] = lc_value_string(c->key, c->key_len);
                        if (lc_json_read_value(o, s ? s->elem : NULL, c, a, &at[1], err) < 0)
                                return -1;
                }
        }
        *out = (lc_value_t){.type = LC_MAP, .len = len, .u.items = items};
        return 0;
}

/* Members mostly come in the order of the fields: look at the next one first. */
static const lc_json_t *find_member(const lc_json_t *object, const lc_json_t **hint, const char *name)
{
        const lc_json_t *c = *hint;
        size_t n = strlen(name);

        if (!c || c->key_len != n || memcmp(c->key, name, n) != 0)
                c = lc_json_get(object, name);
        if (c)
                *hint = c->next;
        return c;
}

static int read_struct(const lc_json_options_t *o, const lc_schema_t *s, const lc_json_t *n, lc_arena_t *a,
                       lc_value_t *out, lc_err_t *err)
{
        lc_struct_value_t *st;
        const lc_json_t *hint;

        if (!n || n->type != LC_J_OBJECT)
                return bad(err, "Structs should be encoded as JSON objects, but found %s", node_type(n));
        st = lc_arena_alloc(a, sizeof(*st));
        if (!st || !(st->fields = lc_arena_alloc(a, s->nfields * sizeof(*st->fields) + 1)))
                return no_memory(err);
        st->schema = s;
        hint = n->child;
        for (uint32_t i = 0; i < s->nfields; i++) {
                const lc_field_t *f = &s->fields[i];
                const lc_json_t *c = find_member(n, &hint, f->name);

                if (lc_json_read_value(o, f->schema, c, a, &st->fields[i], err) < 0)
                        return -1;
                if (st->fields[i].type != LC_STRUCT &&
                    lc_validate_field(f->name, f->schema, &st->fields[i], err) < 0)
                        return -1;
        }
        *out = (lc_value_t){.type = LC_STRUCT, .u.st = st};
        return 0;
}

static int read_null(const lc_json_options_t *o, const lc_schema_t *s, lc_value_t *out, lc_err_t *err)
{
        *out = lc_value_null();
        if (!s)
                return 0;
        if (s->has_default && o->replace_null_with_default) {
                *out = s->def; /* its memory is the schema's, which outlives the value */
                return 0;
        }
        return s->optional ? 0 : bad(err, "Invalid null value for required %s field", lc_type_name(s->type));
}

static lc_type_t guess(const lc_json_t *n)
{
        switch (n->type) {
        case LC_J_TRUE:
        case LC_J_FALSE:
                return LC_BOOLEAN;
        case LC_J_NUMBER:
                return n->integral ? LC_INT64 : LC_FLOAT64;
        case LC_J_STRING:
                return LC_STRING;
        case LC_J_ARRAY:
                return LC_ARRAY;
        case LC_J_OBJECT:
                return LC_MAP;
        default:
                return LC_NULL;
        }
}

int lc_json_read_value(const lc_json_options_t *o, const lc_schema_t *s, const lc_json_t *n, lc_arena_t *a,
                       lc_value_t *out, lc_err_t *err)
{
        bool number = n && n->type == LC_J_NUMBER;
        lc_type_t type;

        if (!n || n->type == LC_J_NULL)
                return read_null(o, s, out, err);
        if (s && s->logical)
                return read_logical(s, n, a, out, err);
        type = s ? s->type : guess(n);
        *out = (lc_value_t){.type = (uint8_t)type};
        switch (type) {
        case LC_INT8:
                out->u.i = (int8_t)number_int64(n);
                return 0;
        case LC_INT16:
                out->u.i = (int16_t)number_int64(n);
                return 0;
        case LC_INT32:
                out->u.i = (int32_t)number_int64(n);
                return 0;
        case LC_INT64:
                out->u.i = number_int64(n);
                return 0;
        case LC_FLOAT32:
                out->u.f32 = number ? lc_json_float(n) : 0;
                return 0;
        case LC_FLOAT64:
                out->u.f = number ? lc_json_double(n) : 0;
                return 0;
        case LC_BOOLEAN:
                out->u.i = n->type == LC_J_TRUE;
                return 0;
        case LC_STRING:
                *out = n->type == LC_J_STRING ? lc_value_string(n->s, n->len) : lc_value_null();
                return 0;
        case LC_BYTES:
                return read_bytes(n, a, out, err);
        case LC_ARRAY:
                return read_array(o, s, n, a, out, err);
        case LC_MAP:
                return read_map(o, s, n, a, out, err);
        case LC_STRUCT:
                return read_struct(o, s, n, a, out, err);
        default:
                return bad(err, "Unknown schema type: %s", lc_type_name(type));
        }
}
