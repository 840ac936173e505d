/*
 * simple_header.c - org.apache.kafka.connect.storage.SimpleHeaderConverter: header texts by Values' grammar.
 *
 * Threads:   an instance belongs to one task.
 * Ownership: schemas made for arrays, maps and the like are kept for KEPT headers, then the oldest go;
 * callers that keep a value longer hold its schema (lc_batch_hold_schema). Tests:
 * spec/golden/converters_spec.lua
 */
#include "base/alloc.h"
#include "base/log.h"
#include "convert/classes.h"
#include "convert/text.h"
#include "convert/values.h"
#include <errno.h>
#include <stdlib.h>

enum { KEPT = 16384, KEPT_BUFFER = 1024 * 1024 };

typedef struct simple_header {
        lc_converter_t base;
        lc_buf_t buf;
        lc_values_held_t young, old; /* two generations of schemas */
} simple_header_t;

static int no_memory(lc_err_t *err)
{
        return lc_err_set(err, LC_FATAL, ENOMEM, "Out of memory while converting a header");
}

static int from_connect(lc_converter_t *base, const char *topic, const char *header,
                        const lc_schema_t *schema, const lc_value_t *value, lc_arena_t *arena,
                        lc_slice_t *out, lc_err_t *err)
{
        simple_header_t *cv = (simple_header_t *)base;
        char *copy;

        (void)topic;
        (void)header;
        (void)schema;
        *out = (lc_slice_t){NULL, 0};
        if (value->type == LC_NULL)
                return 0;
        lc_buf_clear(&cv->buf);
        if (lc_values_to_string(value, &cv->buf, err) < 0 && err && err->kind)
                return -1;
        if (!lc_buf_ok(&cv->buf) || !(copy = lc_arena_dup(arena, cv->buf.p ? cv->buf.p : "", cv->buf.len))) {
                lc_buf_free(&cv->buf);
                return no_memory(err);
        }
        *out = (lc_slice_t){copy, cv->buf.len};
        if (cv->buf.cap > KEPT_BUFFER)
                lc_buf_free(&cv->buf);
        return 0;
}

static int to_connect(lc_converter_t *base, const char *topic, const char *header, lc_slice_t in,
                      lc_arena_t *arena, const lc_schema_t **schema, lc_value_t *value, lc_err_t *err)
{
        simple_header_t *cv = (simple_header_t *)base;
        static int64_t last_warning;
        const char *text;
        size_t len;
        int rc;

        *schema = NULL;
        *value = lc_value_null();
        if (!in.p)
                return 0;
        if (lc_charset_decode(LC_CS_UTF8, in.p, in.len, arena, &text, &len) < 0)
                return no_memory(err);
        if (cv->young.n > KEPT) {
                lc_values_release(&cv->old);
                cv->old = cv->young;
                cv->young = (lc_values_held_t){NULL, 0, 0};
        }
        rc = lc_values_parse(text, len, arena, &cv->young, schema, value);
        if (rc < 0)
                return no_memory(err);
        if (rc > 0) {
                if (lc_log_due(&last_warning, 10000))
                        lc_log(LC_WARN, "CONVERT",
                               "Failed to deserialize value for header '%s' on topic '%s', so using "
                               "byte array",
                               header ? header : "", topic ? topic : "");
                *schema = &lc_schema_bytes;
                *value = (lc_value_t){.type = LC_BYTES, .len = (uint32_t)in.len, .u.s = in.p};
        }
        return 0;
}

static void destroy(lc_converter_t *base)
{
        simple_header_t *cv = (simple_header_t *)base;

        lc_values_release(&cv->young);
        lc_values_release(&cv->old);
        lc_buf_free(&cv->buf);
        free(cv);
}

static lc_converter_t *create(const lc_converter_class_t *cls, const lc_props_t *config, const char *role,
                              lc_err_t *err)
{
        simple_header_t *cv = lc_calloc(1, sizeof(*cv));

        (void)config;
        (void)role;
        (void)err;
        cv->base.cls = cls;
        return &cv->base;
}

const lc_converter_class_t lc_simple_header_converter_class = {
        .class_name = "org.apache.kafka.connect.storage.SimpleHeaderConverter",
        .header_converter = true,
        .create = create,
        .destroy = destroy,
        .from_connect = from_connect,
        .to_connect = to_connect,
};
