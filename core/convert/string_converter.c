/*
 * string_converter.c - org.apache.kafka.connect.storage.StringConverter: toString() of anything in a charset.
 * UTF-8 that is in order passes without a copy, both ways.
 *
 * Threads:   an instance belongs to one task.
 * Ownership: output is the value's own text or lies in the caller's arena.
 * Tests:     spec/golden/converters_spec.lua
 */
#include "base/alloc.h"
#include "convert/classes.h"
#include "convert/text.h"
#include "data/schema.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct string_converter {
        lc_converter_t base;
        lc_charset_t charset;
        lc_buf_t buf;
} string_converter_t;

static int no_memory(lc_err_t *err)
{
        return lc_err_set(err, LC_FATAL, ENOMEM, "Out of memory while converting a record");
}

static int from_connect(lc_converter_t *base, const char *topic, const char *header,
                        const lc_schema_t *schema, const lc_value_t *value, lc_arena_t *arena,
                        lc_slice_t *out, lc_err_t *err)
{
        string_converter_t *cv = (string_converter_t *)base;
        const char *text = value->u.s, *p;
        size_t len = value->len;

        (void)topic;
        (void)header;
        *out = (lc_slice_t){NULL, 0};
        if (value->type == LC_NULL)
                return 0;
        if (value->type != LC_STRING) {
                lc_buf_clear(&cv->buf);
                if (lc_value_to_java_string(value, schema, &cv->buf) < 0) {
                        lc_buf_free(&cv->buf);
                        return no_memory(err);
                }
                len = cv->buf.len;
                text = lc_arena_dup(arena, cv->buf.p ? cv->buf.p : "", len);
                if (!text)
                        return no_memory(err);
        }
        if (lc_charset_encode(cv->charset, text, len, arena, &p, &len) < 0)
                return no_memory(err);
        *out = (lc_slice_t){p ? p : "", len};
        return 0;
}

static int to_connect(lc_converter_t *base, const char *topic, const char *header, lc_slice_t in,
                      lc_arena_t *arena, const lc_schema_t **schema, lc_value_t *value, lc_err_t *err)
{
        string_converter_t *cv = (string_converter_t *)base;
        const char *text;
        size_t len;

        (void)topic;
        (void)header;
        *schema = &lc_schema_optional_string;
        *value = lc_value_null();
        if (!in.p)
                return 0;
        if (lc_charset_decode(cv->charset, in.p, in.len, arena, &text, &len) < 0)
                return no_memory(err);
        *value = lc_value_string(text, len);
        return 0;
}

static void destroy(lc_converter_t *base)
{
        lc_buf_free(&((string_converter_t *)base)->buf);
        free(base);
}

/* Charset.isSupported() refuses other names as illegal before it looks them up. */
static bool legal_name(const char *name)
{
        if (!isalnum((unsigned char)*name))
                return false;
        for (; *name; name++)
                if (!isalnum((unsigned char)*name) && !strchr("-+.:_", *name))
                        return false;
        return true;
}

static lc_converter_t *create(const lc_converter_class_t *cls, const lc_props_t *config, const char *role,
                              lc_err_t *err)
{
        lc_props_t *values = lc_converter_config(cls, config, err);
        string_converter_t *cv;
        const char *name;

        (void)role;
        if (!values)
                return NULL;
        name = lc_props_get_or(values, "converter.encoding", "UTF-8");
        cv = lc_calloc(1, sizeof(*cv));
        cv->base.cls = cls;
        if (lc_charset_find(name, &cv->charset) < 0) {
                lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_SERIALIZATION, "Unsupported encoding %s", name);
                if (err)
                        lc_err_cause(err,
                                     legal_name(name) ? "java.nio.charset.UnsupportedCharsetException"
                                                      : "java.nio.charset.IllegalCharsetNameException",
                                     "%s", name);
                destroy(&cv->base);
                cv = NULL;
        }
        lc_props_free(values);
        return cv ? &cv->base : NULL;
}

static const lc_config_row_t rows[] = {
        LC_CONVERTER_TYPE_ROW,
        {.name = "converter.encoding",
         .type = LC_CFG_STRING,
         .def = "UTF-8",
         .importance = LC_HIGH,
         .order = -1,
         .width = LC_WIDTH_MEDIUM,
         .display = "Encoding",
         .doc = "The name of the Java character set to use for encoding strings as byte arrays."},
};

const lc_converter_class_t lc_string_converter_class = {
        .class_name = "org.apache.kafka.connect.storage.StringConverter",
        .converter = true,
        .header_converter = true,
        .create = create,
        .destroy = destroy,
        .from_connect = from_connect,
        .to_connect = to_connect,
        .rows = rows,
        .nrows = sizeof(rows) / sizeof(rows[0]),
};
