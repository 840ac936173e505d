/*
 * schema.h - Connect's schemas: immutable, reference counted, shared between threads.
 *
 * Threads:   any; the count is atomic, the rest never changes after lc_schema_freeze/builders return.
 * Ownership: lc_schema_ref/unref; NULL means "no schema" everywhere. Static schemas ignore both.
 * Source:    reference converters 2 (org.apache.kafka.connect.data).
 * Tests:     spec/unit/data_spec.lua, spec/golden/converters_spec.lua
 */
#ifndef LC_DATA_SCHEMA_H
#define LC_DATA_SCHEMA_H
#include "data/value.h"
#include "base/props.h"

typedef struct lc_schema lc_schema_t;
typedef struct lc_field {
        const char *name;
        const lc_schema_t *schema;
} lc_field_t;

/* Read the fields freely; change them only through the builder in schema.c. */
struct lc_schema {
        int refs;       /* atomic; < 0 = static */
        lc_type_t type; /* LC_INT8 .. LC_STRUCT, LC_BOOLEAN, LC_STRING, LC_BYTES */
        bool optional;
        bool has_version, has_default;
        int version;
        const char *name, *doc;        /* or NULL */
        const lc_props_t *params;      /* or NULL */
        lc_value_t def;                /* default value, memory in the schema's arena */
        const lc_schema_t *key, *elem; /* map key; map value or array element */
        const lc_field_t *fields;
        uint32_t nfields;
        lc_type_t logical; /* LC_DECIMAL, LC_DATE, LC_TIME, LC_TIMESTAMP by name, else LC_NULL */
        int32_t scale;     /* of LC_DECIMAL; valid iff has_scale */
        bool has_scale;
        struct lc_schema_private *priv;
};

extern const lc_schema_t lc_schema_string; /* STRING, required */
extern const lc_schema_t lc_schema_optional_string;
extern const lc_schema_t lc_schema_bytes;
extern const lc_schema_t lc_schema_optional_bytes;

const lc_schema_t *lc_schema_ref(const lc_schema_t *s);
void lc_schema_unref(const lc_schema_t *s);
bool lc_schema_equal(const lc_schema_t *a, const lc_schema_t *b); /* all attributes, deep */
/* "INT32", "STRING", "STRUCT": Connect's Schema.Type names. */
const char *lc_type_name(lc_type_t t);

#endif
