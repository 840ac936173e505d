/*
 * validate.h - does a value fit a schema, with Connect's own messages (ConnectSchema.validateValue).
 *
 * Threads:   any.
 * Errors:    LC_DATA, DataException.
 * Tests:     spec/unit/data_spec.lua
 */
#ifndef LC_DATA_VALIDATE_H
#define LC_DATA_VALIDATE_H
#include "data/schema.h"

/* A top value: "... used for required value, schema type: T". */
int lc_validate_value(const lc_schema_t *schema, const lc_value_t *value, lc_err_t *err);
/* The value of a struct's field. */
int lc_validate_field(const char *field, const lc_schema_t *schema, const lc_value_t *value, lc_err_t *err);
/* Struct.validate(): every field against its schema (null is fine where there is a default). */
int lc_validate_struct(const lc_struct_value_t *st, lc_err_t *err);

/* Name of the Java class that Connect would hold the value in: "java.lang.Long", "[B". */
const char *lc_value_java_class(const lc_value_t *v);
/* True when Java's class of the value is the one expected for schema (logical names count). */
bool lc_value_fits(const lc_schema_t *schema, const lc_value_t *v);

#endif
