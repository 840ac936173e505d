/* buf.c - see buf.h. One owner thread. */
#include "base/buf.h"
#include "base/alloc.h"
#include <stdio.h>
#include <stdlib.h>

int lc_buf_reserve(lc_buf_t *b, size_t more)
{
        size_t need = b->len + more + 1, cap = b->cap ? b->cap : 64;
        char *p;

        if (b->oom || need < more) {
                b->oom = true;
                return -1;
        }
        if (need <= b->cap)
                return 0;
        while (cap < need)
                cap = cap * 2 > cap ? cap * 2 : need;
        p = realloc(b->p, cap);
        if (!p) {
                if (b->sure)
                        lc_no_memory();
                b->oom = true;
                return -1;
        }
        if (!b->p)
                p[0] = '\0';
        b->p = p;
        b->cap = cap;
        return 0;
}

void lc_buf_add(lc_buf_t *b, const void *data, size_t n)
{
        if (lc_buf_reserve(b, n) < 0)
                return;
        if (n)
                memcpy(b->p + b->len, data, n);
        b->len += n;
        b->p[b->len] = '\0';
}

void lc_buf_adds(lc_buf_t *b, const char *s)
{
        lc_buf_add(b, s, strlen(s));
}

void lc_buf_addc(lc_buf_t *b, char c)
{
        lc_buf_add(b, &c, 1);
}

void lc_buf_addi(lc_buf_t *b, int64_t n)
{
        static const char pairs[] =
                "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                "8081828384858687888990919293949596979899";
        uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
        char text[24], *end = text + sizeof(text), *at = end;

        for (; left >= 100; left /= 100)
                memcpy(at -= 2, pairs + 2 * (left % 100), 2);
        if (left >= 10)
                memcpy(at -= 2, pairs + 2 * left, 2);
        else
                *--at = (char)('0' + left);
        if (n < 0)
                *--at = '-';
        lc_buf_add(b, at, (size_t)(end - at));
}

void lc_buf_vprintf(lc_buf_t *b, const char *fmt, va_list ap)
{
        va_list again;
        int n;

        va_copy(again, ap);
        n = vsnprintf(NULL, 0, fmt, ap);
        if (n >= 0 && lc_buf_reserve(b, (size_t)n) == 0) {
                vsnprintf(b->p + b->len, (size_t)n + 1, fmt, again);
                b->len += (size_t)n;
        }
        va_end(again);
}

void lc_buf_printf(lc_buf_t *b, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        lc_buf_vprintf(b, fmt, ap);
        va_end(ap);
}

void lc_buf_clear(lc_buf_t *b)
{
        b->len = 0;
        b->oom = false;
        if (b->p)
                b->p[0] = '\0';
}

void lc_buf_free(lc_buf_t *b)
{
        free(b->p);
        *b = (lc_buf_t){.sure = b->sure};
}

char *lc_buf_take(lc_buf_t *b, size_t *len)
{
        char *p;

        if (!b->p)
                lc_buf_reserve(b, 0);
        p = b->oom ? NULL : b->p;
        if (len)
                *len = b->len;
        if (b->oom)
                free(b->p);
        *b = (lc_buf_t){.sure = b->sure};
        return p;
}
