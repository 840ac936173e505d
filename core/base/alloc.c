/* alloc.c - see alloc.h. Any thread. */
#include "base/alloc.h"
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

_Noreturn void lc_no_memory(void)
{
        static const char text[] = "luaconnect: out of memory\n";
        ssize_t ignored = write(2, text, sizeof(text) - 1);
        (void)ignored;
        abort();
}

void *lc_malloc(size_t size)
{
        void *p = malloc(size ? size : 1);
        if (!p)
                lc_no_memory();
        return p;
}

void *lc_calloc(size_t count, size_t size)
{
        void *p = calloc(count ? count : 1, size ? size : 1);
        if (!p)
                lc_no_memory();
        return p;
}

void *lc_realloc(void *old, size_t size)
{
        void *p = realloc(old, size ? size : 1);
        if (!p)
                lc_no_memory();
        return p;
}

char *lc_strndup(const char *s, size_t n)
{
        size_t len = strnlen(s, n);
        char *p = lc_malloc(len + 1);
        memcpy(p, s, len);
        p[len] = '\0';
        return p;
}

char *lc_strdup(const char *s)
{
        return s ? lc_strndup(s, SIZE_MAX) : NULL;
}

char *lc_strtrim(const char *s)
{
        size_t n;

        while (*s && (unsigned char)*s <= ' ')
                s++;
        n = strlen(s);
        while (n && (unsigned char)s[n - 1] <= ' ')
                n--;
        return lc_strndup(s, n);
}

char *lc_asprintf(const char *fmt, ...)
{
        va_list ap;
        char *p = NULL;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(NULL, 0, fmt, ap);
        va_end(ap);
        lc_assert(n >= 0);
        p = lc_malloc((size_t)n + 1);
        va_start(ap, fmt);
        vsnprintf(p, (size_t)n + 1, fmt, ap);
        va_end(ap);
        return p;
}

void lc_alloc_trim(void)
{
#ifdef __GLIBC__
        malloc_trim(0);
#endif
}

_Noreturn void lc_assert_failed(const char *what, const char *file, int line)
{
        fprintf(stderr, "luaconnect: %s:%d: broken invariant: %s\n", file, line, what);
        abort();
}
