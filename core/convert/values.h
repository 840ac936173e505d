/*
 * values.h - org.apache.kafka.connect.data.Values: texts to typed values and back (reference converters 8).
 * What SimpleHeaderConverter, Cast and InsertHeader use.
 *
 * Threads:   any.
 * Ownership: results live in the arena; schemas made for them are references kept in `held`.
 * Tests:     spec/golden/converters_spec.lua
 */
#ifndef LC_CONVERT_VALUES_H
#define LC_CONVERT_VALUES_H
#include "data/schema.h"

/* Schemas made while parsing; release with lc_values_release() when no value needs them any more. */
typedef struct lc_values_held {
        const lc_schema_t **v;
        size_t n, cap;
} lc_values_held_t;
void lc_values_release(lc_values_held_t *h);

/* Values.parseString. 0; -1 when memory is out; 1 when Java would throw something else than it handles (the
 * caller takes the raw bytes then). *schema NULL with a null value: the text was `null`. */
int lc_values_parse(const char *text, size_t n, lc_arena_t *a, lc_values_held_t *held,
                    const lc_schema_t **schema, lc_value_t *value);
/* Values.convertToString. Appends. */
int lc_values_to_string(const lc_value_t *v, lc_buf_t *out, lc_err_t *err);

/* The parts for temporal texts (values_time.c). Time zone of the process; lenient as SimpleDateFormat is. */
bool lc_values_parse_temporal(const char *s, size_t n, lc_type_t *type, int64_t *ms);
void lc_values_format_date(int64_t ms, lc_buf_t *out);

#endif
