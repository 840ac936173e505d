/*
 * buffer.h - Kafka's old-style primitives, big endian: written into an lc_buf_t, read with bounds checked.
 *
 * A reader that runs over its end, or meets an impossible length, turns `bad` and gives zeros from then on:
 * decode everything, test `bad` once. Lengths from the wire allocate nothing by themselves.
 * Threads:   one owner.
 * Errors:    a string longer than 32767 bytes sets the buffer's `oom` (lc_buf_ok() tells both).
 * Tests:     spec/unit/wire_spec.lua
 */
#ifndef LC_KAFKA_WIRE_BUFFER_H
#define LC_KAFKA_WIRE_BUFFER_H
#include "base/buf.h"
#include <stdint.h>

void lc_wire_put_i8(lc_buf_t *b, int8_t v);
void lc_wire_put_i16(lc_buf_t *b, int16_t v);
void lc_wire_put_i32(lc_buf_t *b, int32_t v);
void lc_wire_put_i64(lc_buf_t *b, int64_t v);
void lc_wire_put_str(lc_buf_t *b, const char *s);                /* NULL: length -1 */
void lc_wire_put_bytes(lc_buf_t *b, const void *data, size_t n); /* data NULL: length -1 */

typedef struct lc_wire_reader {
        const unsigned char *p, *end;
        bool bad;
} lc_wire_reader_t;

void lc_wire_reader_init(lc_wire_reader_t *r, const void *data, size_t n);
int8_t lc_wire_i8(lc_wire_reader_t *r);
int16_t lc_wire_i16(lc_wire_reader_t *r);
int32_t lc_wire_i32(lc_wire_reader_t *r);
int64_t lc_wire_i64(lc_wire_reader_t *r);
/* malloc'ed, NULL for null (or bad). A NUL inside makes the reader bad: no name of ours has one. */
char *lc_wire_str(lc_wire_reader_t *r);
/* A view into the input; p NULL and empty for null. */
lc_wire_reader_t lc_wire_bytes(lc_wire_reader_t *r);
/* Element count of an array whose elements take at least `least` bytes each: -1 null; bad when the rest of
 * the input cannot hold them. */
int32_t lc_wire_count(lc_wire_reader_t *r, size_t least);
static inline size_t lc_wire_left(const lc_wire_reader_t *r)
{
        return (size_t)(r->end - r->p);
}

#endif
