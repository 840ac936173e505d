/*
 * buf.h - a growing byte buffer, always followed by a NUL that does not count.
 *
 * Threads:   one owner.
 * Ownership: lc_buf_free() frees p; lc_buf_take() hands p to the caller (free()).
 * Errors:    a failed allocation sets `oom`; later appends do nothing. Check lc_buf_ok() once at the
 *            end where record data is written (0 <=> LC_DATA/LC_FATAL error of the caller's choice).
 *            One of LC_BUF_SURE ends the process instead, as lc_malloc does: for keys, names, statuses
 *            and whatever else the program itself keeps, which must not be silently cut short.
 * Tests:     spec/unit/base_spec.lua
 */
#ifndef LC_BASE_BUF_H
#define LC_BASE_BUF_H
#include <stdbool.h>
#include <stddef.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

typedef struct lc_buf {
        char *p;
        size_t len, cap;
        bool oom;
        bool sure; /* without memory the process ends: stays over clear, free and take */
} lc_buf_t;

#define LC_BUF_INIT                                                                                          \
        {                                                                                                    \
                NULL, 0, 0, false, false                                                                     \
        }
#define LC_BUF_SURE                                                                                          \
        {                                                                                                    \
                NULL, 0, 0, false, true                                                                      \
        }

/* Make room for `more` bytes and the NUL. Returns 0, or -1 with b->oom set. */
int lc_buf_reserve(lc_buf_t *b, size_t more);
void lc_buf_add(lc_buf_t *b, const void *data, size_t n);
void lc_buf_adds(lc_buf_t *b, const char *s);
void lc_buf_addc(lc_buf_t *b, char c);
void lc_buf_addi(lc_buf_t *b, int64_t n); /* in decimal */
void lc_buf_printf(lc_buf_t *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void lc_buf_vprintf(lc_buf_t *b, const char *fmt, va_list ap);
void lc_buf_clear(lc_buf_t *b); /* keeps the memory */
void lc_buf_free(lc_buf_t *b);
char *lc_buf_take(lc_buf_t *b, size_t *len); /* never NULL unless oom; len may be NULL */
static inline bool lc_buf_ok(const lc_buf_t *b)
{
        return !b->oom;
}

#endif
