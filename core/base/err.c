/* err.c - see err.h. Any thread; nothing here allocates but lc_err_trace(). */
#include "base/err.h"
#include "base/alloc.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void lc_err_clear(lc_err_t *err)
{
        err->kind = 0;
        err->code = 0;
        err->cls = NULL;
        err->where[0] = err->msg[0] = err->detail[0] = '\0';
}

int lc_err_set_(lc_err_t *err, const char *file, int line, lc_err_kind_t kind, int code, const char *cls,
                const char *fmt, ...)
{
        const char *base = strrchr(file, '/');
        va_list ap;

        if (!err || err->kind)
                return -1;
        err->kind = kind;
        err->code = code;
        err->cls = cls;
        err->detail[0] = '\0';
        snprintf(err->where, sizeof(err->where), "%s:%d", base ? base + 1 : file, line);
        va_start(ap, fmt);
        vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
        va_end(ap);
        return -1;
}

/* Java shows no ": " when there is no message. */
static void head(char *out, size_t size, const char *cls, const char *msg)
{
        snprintf(out, size, msg[0] ? "%s: %s" : "%s%s", cls ? cls : LC_CLS_CONNECT, msg);
}

void lc_err_cause(lc_err_t *err, const char *cls, const char *fmt, ...)
{
        char text[1024], line[1280];
        size_t used = strlen(err->detail);
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        head(line, sizeof(line), cls, text);
        snprintf(err->detail + used, sizeof(err->detail) - used, "Caused by: %s\n", line);
}

void lc_err_wrap(lc_err_t *err, const char *cls, const char *fmt, ...)
{
        char line[1280], rest[sizeof(err->detail)];
        va_list ap;

        head(line, sizeof(line), err->cls, err->msg);
        memcpy(rest, err->detail, sizeof(rest));
        snprintf(err->detail, sizeof(err->detail), "Caused by: %s\n%s", line, rest);
        err->cls = cls;
        va_start(ap, fmt);
        vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
        va_end(ap);
}

char *lc_err_trace(const lc_err_t *err)
{
        char line[1280];
        size_t n = strlen(err->detail);

        head(line, sizeof(line), err->cls, err->msg);
        return lc_asprintf("%s\n\tat luaconnect(%s)\n%s%s", line, err->where, err->detail,
                           n && err->detail[n - 1] != '\n' ? "\n" : "");
}

const char *lc_err_kind_name(lc_err_kind_t kind)
{
        switch (kind) {
        case LC_FATAL:
                return "fatal";
        case LC_RETRIABLE:
                return "retriable";
        case LC_DATA:
                return "data";
        case LC_FENCED:
                return "fenced";
        }
        return "none";
}
