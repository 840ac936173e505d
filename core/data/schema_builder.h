/*
 * schema_builder.h - makes schemas: set the attributes, add fields, finish; the result never changes again.
 *
 *   lc_schema_builder_t *b = lc_schema_builder_new(LC_STRUCT);
 *   lc_schema_builder_name(b, "Order");
 *   lc_schema_builder_field(b, "id", int64_schema, err);
 *   const lc_schema_t *s = lc_schema_builder_finish(b, err);
 *
 * Threads:   one owner while building.
 * Ownership: names and texts are copied; schemas and defaults given keep a reference of their own, so the
 *            caller still drops his. finish() and free() consume the builder.
 * Errors:    texts are Java's SchemaBuilder's, kind LC_DATA.
 * Tests:     spec/unit/data_spec.lua
 */
#ifndef LC_DATA_SCHEMA_BUILDER_H
#define LC_DATA_SCHEMA_BUILDER_H
#include "data/schema.h"

#define LC_CLS_SCHEMA_BUILDER "org.apache.kafka.connect.errors.SchemaBuilderException"
#define LC_NAME_DECIMAL       "org.apache.kafka.connect.data.Decimal"
#define LC_NAME_DATE          "org.apache.kafka.connect.data.Date"
#define LC_NAME_TIME          "org.apache.kafka.connect.data.Time"
#define LC_NAME_TIMESTAMP     "org.apache.kafka.connect.data.Timestamp"

typedef struct lc_schema_builder lc_schema_builder_t;

lc_schema_builder_t *lc_schema_builder_new(lc_type_t type);
/* A builder with all attributes of `from` (default included). */
lc_schema_builder_t *lc_schema_builder_from(const lc_schema_t *from);
void lc_schema_builder_free(lc_schema_builder_t *b); /* NULL is fine */

void lc_schema_builder_optional(lc_schema_builder_t *b, bool optional);
void lc_schema_builder_name(lc_schema_builder_t *b, const char *name); /* NULL: none */
void lc_schema_builder_version(lc_schema_builder_t *b, int version);
void lc_schema_builder_doc(lc_schema_builder_t *b, const char *doc);
void lc_schema_builder_param(lc_schema_builder_t *b, const char *key, const char *value);
void lc_schema_builder_no_params(lc_schema_builder_t *b);
enum { LC_MAX_DEFAULT = 10000 }; /* elements, keys, values and fields of a default, at all depths */
/* Validated against what the builder holds so far. "Invalid default value" (SchemaBuilderException). */
int lc_schema_builder_default(lc_schema_builder_t *b, const lc_value_t *value, lc_err_t *err);
void lc_schema_builder_no_default(lc_schema_builder_t *b);
int lc_schema_builder_field(lc_schema_builder_t *b, const char *name, const lc_schema_t *s, lc_err_t *err);
void lc_schema_builder_key(lc_schema_builder_t *b, const lc_schema_t *s);
/* Array element or map value. */
void lc_schema_builder_elem(lc_schema_builder_t *b, const lc_schema_t *s);
/* What is built so far, borrowed until finish or free. */
const lc_schema_t *lc_schema_builder_peek(const lc_schema_builder_t *b);
const lc_schema_t *lc_schema_builder_finish(lc_schema_builder_t *b);

/* A schema of a plain type without attributes: shared and static, ref and unref do nothing. NULL for
 * ARRAY, MAP and STRUCT. */
const lc_schema_t *lc_schema_plain(lc_type_t type, bool optional);
/* Decimal (with its scale), Date, Time or Timestamp, version 1. A new reference. */
const lc_schema_t *lc_schema_logical(lc_type_t logical, int scale, bool optional);

/* Index of a struct's field, -1 if there is none. */
int lc_schema_field_index(const lc_schema_t *s, const char *name, size_t len);
/* Schema.toString(): Schema{NAME:TYPE} or Schema{TYPE}. Appends. */
void lc_schema_to_string(const lc_schema_t *s, lc_buf_t *out);

#endif
