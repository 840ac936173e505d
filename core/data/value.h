/*
 * value.h - one Connect value: 16 bytes, the memory behind it belongs to an arena (usually a batch's).
 *
 * A value says its own type; the schema beside it (record, field, element) says what was meant.
 * Threads:   the owner of the arena.
 * Source:    reference converters 2.
 * Tests:     spec/unit/data_spec.lua
 */
#ifndef LC_DATA_VALUE_H
#define LC_DATA_VALUE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

/* Types of values and schemas. The order is also known to lua/connect/ffi.lua. */
typedef enum {
        LC_NULL = 0,
        LC_INT8,
        LC_INT16,
        LC_INT32,
        LC_INT64,
        LC_FLOAT32,
        LC_FLOAT64,
        LC_BOOLEAN,
        LC_STRING, /* UTF-8 as it came, not yet checked: writers replace malformed bytes by U+FFFD */
        LC_BYTES,
        LC_ARRAY,
        LC_MAP,
        LC_STRUCT,
        LC_DECIMAL, /* logical values: java.math.BigDecimal, java.util.Date */
        LC_DATE,    /* u.i: ms since 1970, as java.util.Date */
        LC_TIME,
        LC_TIMESTAMP,
        LC_OBJECT /* a Java object of no Connect type (tests, errors): u.s is its class name */
} lc_type_t;

typedef struct lc_value lc_value_t;
typedef struct lc_decimal {
        int32_t scale;
        uint32_t len;            /* of unscaled */
        const uint8_t *unscaled; /* big endian two's complement, shortest */
} lc_decimal_t;
typedef struct lc_struct_value {
        const struct lc_schema *schema; /* borrowed: whoever owns the arena holds a reference */
        lc_value_t *fields;             /* schema->nfields */
} lc_struct_value_t;

struct lc_value {
        uint8_t type;  /* lc_type_t */
        uint8_t flags; /* LC_VF_* */
        uint16_t pad;
        uint32_t len; /* STRING, BYTES: bytes; ARRAY: items; MAP: entries */
        union {
                int64_t i;     /* BOOLEAN (0/1), INT*, DATE, TIME, TIMESTAMP */
                double f;      /* FLOAT64; a NaN is always NAN: others look like tagged values to LuaJIT */
                float f32;     /* FLOAT32; likewise */
                const char *s; /* STRING, BYTES: not terminated */
                lc_value_t *items;       /* ARRAY: len values; MAP: 2*len: key, value, key, value */
                lc_struct_value_t *st;   /* STRUCT */
                const lc_decimal_t *dec; /* DECIMAL */
        } u;
};
enum {
        LC_VF_BYTEBUFFER = 1, /* BYTES that Java holds as ByteBuffer (texts differ) */
        LC_VF_BIGINT = 2      /* DECIMAL of scale 0 that Java holds as BigInteger */
};

static inline lc_value_t lc_value_null(void)
{
        return (lc_value_t){.type = LC_NULL};
}
static inline lc_value_t lc_value_int64(int64_t i)
{
        return (lc_value_t){.type = LC_INT64, .u.i = i};
}
static inline lc_value_t lc_value_string(const char *s, size_t len)
{
        return (lc_value_t){.type = LC_STRING, .len = (uint32_t)len, .u.s = s};
}

/* Deep copy into `a`. -1 when memory is out. */
int lc_value_copy(lc_arena_t *a, const lc_value_t *from, lc_value_t *to);
bool lc_value_equal(const lc_value_t *a, const lc_value_t *b); /* maps: order does not count */

#endif
