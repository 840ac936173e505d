/*
 * cast.h - values of one type as another, as org.apache.kafka.connect.transforms.Cast does it.
 *
 * Threads:   any.
 * Ownership: texts are made in the arena.
 * Errors:    LC_DATA, DataException with Java's text and cause.
 * Source:    reference transforms 2.
 * Tests:     spec/golden/smt_spec.lua, spec/unit/java_big_spec.lua
 */
#ifndef LC_CONVERT_CAST_H
#define LC_CONVERT_CAST_H
#include "data/schema.h"

/* *out = value as `target` (INT8 .. INT64, FLOAT32, FLOAT64, BOOLEAN, STRING); null stays null. schema may be
 * NULL. out may be the value itself. */
int lc_cast_value(const lc_schema_t *schema, const lc_value_t *value, lc_type_t target, lc_arena_t *a,
                  lc_value_t *out, lc_err_t *err);

/* Character.digit(c, 10) for the basic plane, -1 if it is none. */
int lc_java_digit(uint32_t c);
/* Byte.parseByte() .. Long.parseLong() by type. -1: *why (120 bytes and more) is NumberFormatException's
 * text. */
int lc_java_parse_integer(const char *s, size_t n, lc_type_t type, int64_t *out, lc_buf_t *why);
/* Float.parseFloat() or Double.parseDouble() by type. */
int lc_java_parse_float(const char *s, size_t n, lc_type_t type, lc_value_t *out, lc_buf_t *why);
/* Values.convertToByte(null, text) .. convertToDouble, new BigDecimal(text), new BigInteger(text) by the kind
 * of `like`: INT8 .. FLOAT64 or DECIMAL (LC_VF_BIGINT). -1: not a number, with the words of Values and MaskField. */
int lc_java_convert_number(const char *s, size_t n, const lc_value_t *like, lc_arena_t *a, lc_value_t *out,
                           lc_err_t *err);
/* Adds to err why new BigDecimal(text), new BigInteger(text) threw: the causes, java_big.c. */
void lc_java_big_decimal_refused(const char *s, size_t n, lc_err_t *err);
void lc_java_big_integer_refused(const char *s, size_t n, lc_err_t *err);

#endif
