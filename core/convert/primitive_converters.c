/*
 * primitive_converters.c - numbers, booleans and bytes as they are (org.apache.kafka.connect.converters).
 *
 * Threads:   an instance belongs to one task and has no state.
 * Ownership: numbers written lie in the caller's arena; bytes pass without a copy.
 * Tests:     spec/golden/converters_spec.lua
 */
#include "base/alloc.h"
#include "convert/classes.h"
#include "data/schema_builder.h"
#include "data/validate.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What differs between the number converters; cls->arg points to it. */
typedef struct number_kind {
        lc_type_t type;
        uint32_t size;
        const char *word, *deserializer;
} number_kind_t;

static lc_converter_t *create(const lc_converter_class_t *cls, const lc_props_t *config, const char *role,
                              lc_err_t *err)
{
        lc_converter_t *cv = lc_calloc(1, sizeof(*cv));

        (void)config;
        (void)role;
        (void)err;
        cv->cls = cls;
        return cv;
}

static void destroy(lc_converter_t *cv)
{
        free(cv);
}

static int bad_cause(lc_err_t *err, const char *cls, const char *cause)
{
        if (err)
                lc_err_cause(err, cls, "%s", cause);
        return -1;
}

static int write_be(uint64_t bits, uint32_t size, lc_arena_t *arena, lc_slice_t *out, lc_err_t *err)
{
        char *p = lc_arena_room(arena, 8);

        if (!p)
                return lc_err_set(err, LC_FATAL, ENOMEM, "Out of memory while converting a record");
        for (uint32_t i = 0; i < size; i++)
                p[i] = (char)(bits >> 8 * (size - 1 - i));
        lc_arena_commit(arena, size);
        *out = (lc_slice_t){p, size};
        return 0;
}

static int wrong_class(const number_kind_t *k, const lc_value_t *v, lc_err_t *err)
{
        bool number = (v->type >= LC_INT8 && v->type <= LC_FLOAT64) || v->type == LC_DECIMAL;
        lc_value_t want = {.type = (uint8_t)k->type};
        const char *have = lc_value_java_class(v),
                   *as = number ? lc_value_java_class(&want) : "java.lang.Number";

        lc_err_set_cls(err, LC_DATA, 0, LC_CLS_DATA, "Failed to serialize to %s (was class %s): ", k->word,
                       have);
        if (err)
                lc_err_cause(err, "java.lang.ClassCastException",
                             "class %s cannot be cast to class %s (%s and %s are in "
                             "module java.base of loader 'bootstrap')",
                             have, as, have, as);
        return -1;
}

static int number_from_connect(lc_converter_t *cv, const char *topic, const char *header,
                               const lc_schema_t *schema, const lc_value_t *value, lc_arena_t *arena,
                               lc_slice_t *out, lc_err_t *err)
{
        const number_kind_t *k = cv->cls->arg;
        uint64_t bits = (uint64_t)value->u.i;

        (void)topic;
        (void)header;
        (void)schema;
        *out = (lc_slice_t){NULL, 0};
        if (value->type == LC_NULL)
                return 0;
        if (value->type != k->type)
                return wrong_class(k, value, err);
        if (k->type == LC_FLOAT32) {
                uint32_t half;

                memcpy(&half, &value->u.f32, sizeof(half));
                bits = value->u.f32 != value->u.f32 ? 0x7fc00000 : half; /* Java has one NaN */
        } else if (k->type == LC_FLOAT64) {
                memcpy(&bits, &value->u.f, sizeof(bits));
                if (value->u.f != value->u.f)
                        bits = 0x7ff8000000000000;
        }
        return write_be(bits, k->size, arena, out, err);
}

static int wrong_size(const number_kind_t *k, lc_err_t *err)
{
        char cause[80];

        lc_err_set_cls(err, LC_DATA, 0, LC_CLS_DATA, "Failed to deserialize %s: ", k->word);
        snprintf(cause, sizeof(cause), "Size of data received by %s is not %u", k->deserializer, k->size);
        return bad_cause(err, LC_CLS_SERIALIZATION, cause);
}

static int number_to_connect(lc_converter_t *cv, const char *topic, const char *header, lc_slice_t in,
                             lc_arena_t *arena, const lc_schema_t **schema, lc_value_t *value, lc_err_t *err)
{
        const number_kind_t *k = cv->cls->arg;
        uint64_t bits = 0;

        (void)topic;
        (void)header;
        (void)arena;
        *schema = lc_schema_plain(k->type, true);
        *value = lc_value_null();
        if (!in.p)
                return 0;
        if (in.len != k->size)
                return wrong_size(k, err);
        for (size_t i = 0; i < in.len; i++)
                bits = bits << 8 | (unsigned char)in.p[i];
        value->type = (uint8_t)k->type;
        switch (k->type) {
        case LC_FLOAT32: {
                uint32_t half = (uint32_t)bits;
                memcpy(&value->u.f32, &half, sizeof(half));
                if (value->u.f32 != value->u.f32) /* other NaNs look like tagged values to LuaJIT */
                        value->u.f32 = NAN;
                break;
        }
        case LC_FLOAT64:
                memcpy(&value->u.f, &bits, sizeof(bits));
                if (value->u.f != value->u.f)
                        value->u.f = (double)NAN;
                break;
        case LC_INT16:
                value->u.i = (int16_t)bits;
                break;
        case LC_INT32:
                value->u.i = (int32_t)bits;
                break;
        default:
                value->u.i = (int64_t)bits;
                break;
        }
        return 0;
}

static const number_kind_t kind_boolean = {LC_BOOLEAN, 1, "boolean", "BooleanDeserializer"};

/* Booleans and bytes check the schema, numbers do not. */
static int check_plain(const char *name, lc_type_t type, const lc_schema_t *schema, const lc_value_t *value,
                       lc_err_t *err)
{
        if (schema && schema->type != type)
                return lc_err_set_cls(err, LC_DATA, 0, LC_CLS_DATA, "Invalid schema type for %s: %s", name,
                                      lc_type_name(schema->type));
        if (value->type != LC_NULL && value->type != type)
                return lc_err_set_cls(err, LC_DATA, 0, LC_CLS_DATA,
                                      "%s is not compatible with objects of type class %s", name,
                                      lc_value_java_class(value));
        return 0;
}

static int boolean_from_connect(lc_converter_t *cv, const char *topic, const char *header,
                                const lc_schema_t *schema, const lc_value_t *value, lc_arena_t *arena,
                                lc_slice_t *out, lc_err_t *err)
{
        (void)cv;
        (void)topic;
        (void)header;
        (void)arena;
        *out = (lc_slice_t){NULL, 0};
        if (check_plain("BooleanConverter", LC_BOOLEAN, schema, value, err) < 0)
                return -1;
        if (value->type != LC_NULL)
                *out = (lc_slice_t){value->u.i ? "\1" : "\0", 1};
        return 0;
}

static int boolean_to_connect(lc_converter_t *cv, const char *topic, const char *header, lc_slice_t in,
                              lc_arena_t *arena, const lc_schema_t **schema, lc_value_t *value, lc_err_t *err)
{
        char cause[80];

        (void)cv;
        (void)topic;
        (void)header;
        (void)arena;
        *schema = lc_schema_plain(LC_BOOLEAN, true);
        *value = lc_value_null();
        if (!in.p)
                return 0;
        if (in.len != 1)
                return wrong_size(&kind_boolean, err);
        if (in.p[0] != 0 && in.p[0] != 1) {
                lc_err_set_cls(err, LC_DATA, 0, LC_CLS_DATA, "Failed to deserialize boolean: ");
                snprintf(cause, sizeof(cause), "Unexpected byte received by BooleanDeserializer: %d",
                         (signed char)in.p[0]);
                return bad_cause(err, LC_CLS_SERIALIZATION, cause);
        }
        *value = (lc_value_t){.type = LC_BOOLEAN, .u.i = in.p[0]};
        return 0;
}

static int bytes_from_connect(lc_converter_t *cv, const char *topic, const char *header,
                              const lc_schema_t *schema, const lc_value_t *value, lc_arena_t *arena,
                              lc_slice_t *out, lc_err_t *err)
{
        (void)cv;
        (void)topic;
        (void)header;
        (void)arena;
        *out = (lc_slice_t){NULL, 0};
        if (check_plain("ByteArrayConverter", LC_BYTES, schema, value, err) < 0)
                return -1;
        if (value->type != LC_NULL)
                *out = (lc_slice_t){value->u.s ? value->u.s : "", value->len};
        return 0;
}

static int bytes_to_connect(lc_converter_t *cv, const char *topic, const char *header, lc_slice_t in,
                            lc_arena_t *arena, const lc_schema_t **schema, lc_value_t *value, lc_err_t *err)
{
        (void)cv;
        (void)topic;
        (void)header;
        (void)arena;
        (void)err;
        *schema = &lc_schema_optional_bytes;
        *value = lc_value_null();
        if (in.p)
                *value = (lc_value_t){.type = LC_BYTES, .len = (uint32_t)in.len, .u.s = in.p};
        return 0;
}

static const lc_config_row_t rows[] = {LC_CONVERTER_TYPE_ROW};

#define CLASS(variable, name, from, to, argument)                                                            \
        const lc_converter_class_t variable = {                                                              \
                .class_name = "org.apache.kafka.connect.converters." name,                                   \
                .converter = true,                                                                           \
                .header_converter = true,                                                                    \
                .create = create,                                                                            \
                .destroy = destroy,                                                                          \
                .from_connect = from,                                                                        \
                .to_connect = to,                                                                            \
                .rows = rows,                                                                                \
                .nrows = 1,                                                                                  \
                .arg = (void *)(argument),                                                                   \
        }

static const number_kind_t kind_short = {LC_INT16, 2, "short", "ShortDeserializer"};
static const number_kind_t kind_integer = {LC_INT32, 4, "integer", "IntegerDeserializer"};
static const number_kind_t kind_long = {LC_INT64, 8, "long", "LongDeserializer"};
static const number_kind_t kind_float = {LC_FLOAT32, 4, "float", "Deserializer"};
static const number_kind_t kind_double = {LC_FLOAT64, 8, "double", "Deserializer"};

CLASS(lc_short_converter_class, "ShortConverter", number_from_connect, number_to_connect, &kind_short);
CLASS(lc_integer_converter_class, "IntegerConverter", number_from_connect, number_to_connect, &kind_integer);
CLASS(lc_long_converter_class, "LongConverter", number_from_connect, number_to_connect, &kind_long);
CLASS(lc_float_converter_class, "FloatConverter", number_from_connect, number_to_connect, &kind_float);
CLASS(lc_double_converter_class, "DoubleConverter", number_from_connect, number_to_connect, &kind_double);
CLASS(lc_boolean_converter_class, "BooleanConverter", boolean_from_connect, boolean_to_connect, NULL);
CLASS(lc_byte_array_converter_class, "ByteArrayConverter", bytes_from_connect, bytes_to_connect, NULL);
