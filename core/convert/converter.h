/*
 * converter.h - converters between bytes and Connect data: a table of functions each.
 *
 * C converters are in convert/; script/ registers those written in Lua behind the same table.
 * Threads:   an instance belongs to one task; the table of classes is filled before any task runs.
 * Ownership: *out and *value live in `arena`; *schema is held by the converter's cache until it is
 *            destroyed, callers that keep it longer take a reference.
 * Errors:    kind LC_DATA with the recorded message (golden/converters), cls and causes as Java's.
 * Tests:     spec/golden/converters_spec.lua
 */
#ifndef LC_CONVERT_CONVERTER_H
#define LC_CONVERT_CONVERTER_H
#include "base/props.h"
#include "data/record.h"

typedef struct lc_converter lc_converter_t;

typedef struct lc_converter_class {
        const char *class_name; /* org.apache.kafka.connect.json.JsonConverter */
        bool converter, header_converter;
        /* config without the key./value./header. prefix. role: "key", "value" or "header". */
        lc_converter_t *(*create)(const struct lc_converter_class *cls, const lc_props_t *config,
                                  const char *role, lc_err_t *err);
        void (*destroy)(lc_converter_t *cv);
        /* Connect data -> bytes; out->p NULL is null. `header`: name of the header, NULL for key/value. */
        int (*from_connect)(lc_converter_t *cv, const char *topic, const char *header,
                            const lc_schema_t *schema, const lc_value_t *value, lc_arena_t *arena,
                            lc_slice_t *out, lc_err_t *err);
        /* bytes -> Connect data; in.p NULL is null. */
        int (*to_connect)(lc_converter_t *cv, const char *topic, const char *header, lc_slice_t in,
                          lc_arena_t *arena, const lc_schema_t **schema, lc_value_t *value, lc_err_t *err);
        const struct lc_config_row *rows; /* its config definition (config/def.h), rows[nrows] */
        int nrows;
        void *arg; /* for scripted classes */
} lc_converter_class_t;

struct lc_converter {
        const lc_converter_class_t *cls; /* implementations put their state behind it */
};

/* Every C class, ends with NULL. In the order REST lists them. */
extern const lc_converter_class_t *const lc_converter_classes[];
/* By full name, simple name (JsonConverter) or pruned alias (Json); NULL if unknown. */
const lc_converter_class_t *lc_converter_class_find(const char *name);

/* Java's String.valueOf of a value: what StringConverter writes and FileStreamSink prints. Appends. */
int lc_value_to_java_string(const lc_value_t *v, const lc_schema_t *schema, lc_buf_t *out);
/* Append s as UTF-8, each malformed sequence replaced by U+FFFD as java.nio's decoder does. */
void lc_utf8_append(lc_buf_t *out, const char *s, size_t n);
bool lc_utf8_valid(const char *s, size_t n);

#endif
