/*
 * decimal.h - java.math.BigDecimal as Connect needs it: text both ways, bytes, whole and floating numbers.
 *
 * Threads:   any.
 * Ownership: results live in the arena given.
 * Errors:    NULL or -1; the caller knows the message. LC_DECIMAL_OOM tells memory from a bad text.
 * Tests:     spec/unit/data_spec.lua
 */
#ifndef LC_DATA_DECIMAL_H
#define LC_DATA_DECIMAL_H
#include "data/value.h"

enum { LC_DECIMAL_BAD = -1, LC_DECIMAL_OOM = -2 };
/* What is read from records may have so many digits or bytes: texts of numbers take time by the square of their
 * length, here as in Java, and a megabyte of digits would hold a task for minutes. */
enum { LC_DECIMAL_MAX_DIGITS = 100000, LC_DECIMAL_MAX_BYTES = 41524 };

/* new BigDecimal(text). */
int lc_decimal_parse(lc_arena_t *a, const char *s, size_t n, const lc_decimal_t **out);
/* Big endian two's complement of any length (empty is 0); made shortest. NULL when memory is out. */
const lc_decimal_t *lc_decimal_from_bytes(lc_arena_t *a, const void *p, size_t n, int32_t scale);
const lc_decimal_t *lc_decimal_from_int64(lc_arena_t *a, int64_t unscaled, int32_t scale);
/* BigDecimal.toString(). Appends; -1 when memory is out. */
int lc_decimal_to_text(const lc_decimal_t *d, lc_buf_t *out);
/* BigDecimal.longValue(): fraction cut off, low 64 bits. *exact (may be NULL): nothing was lost. */
int64_t lc_decimal_int64(const lc_decimal_t *d, bool *exact);
double lc_decimal_double(const lc_decimal_t *d);

static inline lc_value_t lc_value_decimal(const lc_decimal_t *d)
{
        return (lc_value_t){.type = LC_DECIMAL, .u.dec = d};
}

#endif
