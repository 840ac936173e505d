/*
 * json_data.h - Connect data and schemas as JsonConverter's JSON, both ways (reference converters 3).
 *
 * Threads:   any; the options are read-only.
 * Ownership: values read live in the arena given and may hold slices of the JSON text; schemas are
 *            references.
 * Errors:    LC_DATA with JsonConverter's texts.
 * Tests:     spec/golden/converters_spec.lua
 */
#ifndef LC_CONVERT_JSON_DATA_H
#define LC_CONVERT_JSON_DATA_H
#include "convert/json.h"
#include "data/schema.h"

/* Type of a document that is not there at all (no bytes under schema.content): Java does not take it for
 * null. */
#define LC_J_MISSING ((lc_jtype_t)(LC_J_OBJECT + 1))

enum { LC_JSON_MAX_OUTPUT = 128 * 1024 * 1024 }; /* arrays and maps stop there, a single text does not */

typedef struct lc_json_options {
        bool numeric_decimal; /* decimal.format=NUMERIC */
        bool replace_null_with_default;
        bool hash_order; /* schemaless maps as Java's HashMap lists them: record keys */
} lc_json_options_t;

/* Append the schema's JSON ("null" for NULL). */
int lc_json_write_schema(const lc_json_options_t *o, const lc_schema_t *s, lc_buf_t *out, lc_err_t *err);
/* Append the value's JSON. schema NULL: schemaless. */
int lc_json_write_value(const lc_json_options_t *o, const lc_schema_t *s, const lc_value_t *v, lc_buf_t *out,
                        lc_err_t *err);
/* A new reference in *out, NULL for JSON null. */
int lc_json_read_schema(const lc_json_options_t *o, const lc_json_t *node, const lc_schema_t **out,
                        lc_err_t *err);
/* node NULL: the member is missing. */
int lc_json_read_value(const lc_json_options_t *o, const lc_schema_t *s, const lc_json_t *node, lc_arena_t *a,
                       lc_value_t *out, lc_err_t *err);

#endif
