/* buffer.c - see buffer.h. */
#include "kafka/wire/buffer.h"
#include "base/alloc.h"
#include <endian.h>

void lc_wire_put_i8(lc_buf_t *b, int8_t v)
{
        lc_buf_add(b, &v, 1);
}

void lc_wire_put_i16(lc_buf_t *b, int16_t v)
{
        uint16_t x = htobe16((uint16_t)v);
        lc_buf_add(b, &x, sizeof(x));
}

void lc_wire_put_i32(lc_buf_t *b, int32_t v)
{
        uint32_t x = htobe32((uint32_t)v);
        lc_buf_add(b, &x, sizeof(x));
}

void lc_wire_put_i64(lc_buf_t *b, int64_t v)
{
        uint64_t x = htobe64((uint64_t)v);
        lc_buf_add(b, &x, sizeof(x));
}

void lc_wire_put_str(lc_buf_t *b, const char *s)
{
        size_t n = s ? strlen(s) : 0;

        if (!s) {
                lc_wire_put_i16(b, -1);
                return;
        }
        if (n > INT16_MAX) {
                b->oom = true; /* cannot be written, as if memory were out */
                return;
        }
        lc_wire_put_i16(b, (int16_t)n);
        lc_buf_add(b, s, n);
}

void lc_wire_put_bytes(lc_buf_t *b, const void *data, size_t n)
{
        if (!data) {
                lc_wire_put_i32(b, -1);
                return;
        }
        if (n > INT32_MAX) {
                b->oom = true;
                return;
        }
        lc_wire_put_i32(b, (int32_t)n);
        lc_buf_add(b, data, n);
}

void lc_wire_reader_init(lc_wire_reader_t *r, const void *data, size_t n)
{
        r->p = data;
        r->end = data ? r->p + n : r->p;
        r->bad = false;
}

static const unsigned char *take(lc_wire_reader_t *r, size_t n)
{
        const unsigned char *p = r->p;

        if (r->bad || lc_wire_left(r) < n) {
                r->bad = true;
                return NULL;
        }
        if (n)
                r->p += n;
        return p;
}

int8_t lc_wire_i8(lc_wire_reader_t *r)
{
        const unsigned char *p = take(r, 1);
        return p ? (int8_t)*p : 0;
}

int16_t lc_wire_i16(lc_wire_reader_t *r)
{
        const unsigned char *p = take(r, 2);
        uint16_t x;

        if (!p)
                return 0;
        memcpy(&x, p, sizeof(x));
        return (int16_t)be16toh(x);
}

int32_t lc_wire_i32(lc_wire_reader_t *r)
{
        const unsigned char *p = take(r, 4);
        uint32_t x;

        if (!p)
                return 0;
        memcpy(&x, p, sizeof(x));
        return (int32_t)be32toh(x);
}

int64_t lc_wire_i64(lc_wire_reader_t *r)
{
        const unsigned char *p = take(r, 8);
        uint64_t x;

        if (!p)
                return 0;
        memcpy(&x, p, sizeof(x));
        return (int64_t)be64toh(x);
}

char *lc_wire_str(lc_wire_reader_t *r)
{
        int16_t n = lc_wire_i16(r);
        const unsigned char *p;

        if (r->bad || n == -1)
                return NULL;
        p = n < 0 ? NULL : take(r, (size_t)n);
        if (!p || memchr(p, 0, (size_t)n)) {
                r->bad = true;
                return NULL;
        }
        return lc_strndup((const char *)p, (size_t)n);
}

lc_wire_reader_t lc_wire_bytes(lc_wire_reader_t *r)
{
        int32_t n = lc_wire_i32(r);
        lc_wire_reader_t none = {NULL, NULL, false}, view;
        const unsigned char *p;

        if (r->bad || n == -1)
                return none;
        p = n < 0 ? NULL : take(r, (size_t)n);
        if (!p) {
                r->bad = true;
                return none;
        }
        lc_wire_reader_init(&view, p, (size_t)n);
        return view;
}

int32_t lc_wire_count(lc_wire_reader_t *r, size_t least)
{
        int32_t n = lc_wire_i32(r);

        if (r->bad || n == -1)
                return n;
        if (n < 0 || (least && (size_t)n > lc_wire_left(r) / least)) {
                r->bad = true;
                return 0;
        }
        return n;
}
