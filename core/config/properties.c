/*
 * properties.c - java.util.Properties.load, rule by rule: natural lines are joined to logical ones, a key
 * ends at the first unescaped separator, escapes are replaced last.
 *
 * Threads: any.  Ownership: see properties.h.  Tests: spec/unit/properties_spec.lua
 */
#include "config/properties.h"
#include "base/alloc.h"
#include "base/buf.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct reader {
        const char *p, *end;
        unsigned line; /* number of the natural line at p */
} reader_t;

static bool blank(char c)
{
        return c == ' ' || c == '\t' || c == '\f';
}

static bool newline(char c)
{
        return c == '\n' || c == '\r';
}

static void skip_newline(reader_t *r)
{
        if (*r->p == '\r' && r->p + 1 < r->end && r->p[1] == '\n')
                r->p++;
        r->p++;
        r->line++;
}

static void skip_blanks(reader_t *r)
{
        while (r->p < r->end && blank(*r->p))
                r->p++;
}

/* Append one natural line. Returns true when it ends with an odd number of backslashes before a line end
 * or the end of the text; that last one is not appended. */
static bool natural_line(reader_t *r, lc_buf_t *out)
{
        bool odd = false;

        while (r->p < r->end && !newline(*r->p)) {
                odd = *r->p == '\\' && !odd;
                lc_buf_addc(out, *r->p++);
        }
        if (odd && out->len) {
                out->p[--out->len] = '\0';
                if (r->p == r->end)
                        return false;
        }
        return odd;
}

/* The next logical line that is neither blank nor a comment. Returns false at the end. */
static bool logical_line(reader_t *r, lc_buf_t *out, unsigned *first_line)
{
        lc_buf_clear(out);
        while (r->p < r->end) {
                skip_blanks(r);
                if (r->p == r->end)
                        return false;
                if (newline(*r->p)) {
                        skip_newline(r);
                        continue;
                }
                if (*r->p == '#' || *r->p == '!') {
                        while (r->p < r->end && !newline(*r->p))
                                r->p++;
                        continue;
                }
                *first_line = r->line;
                while (natural_line(r, out)) {
                        skip_newline(r);
                        skip_blanks(r);
                }
                if (out->len)
                        return true;
        }
        return false;
}

static int hex4(const char *s, const char *end)
{
        int v = 0;

        if (end - s < 4)
                return -1;
        for (int i = 0; i < 4; i++) {
                char c = s[i];
                int d = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
                if (d < 0)
                        return -1;
                v = v * 16 + d;
        }
        return v;
}

static void add_char(lc_buf_t *out, unsigned c)
{
        if (c < 0x80) {
                lc_buf_addc(out, (char)c);
        } else if (c < 0x800) {
                lc_buf_addc(out, (char)(0xC0 | c >> 6));
                lc_buf_addc(out, (char)(0x80 | (c & 0x3F)));
        } else if (c >= 0xD800 && c <= 0xDFFF) {
                lc_buf_addc(out, '?'); /* half a pair: what Java's UTF-8 encoder makes of it */
        } else if (c < 0x10000) {
                lc_buf_addc(out, (char)(0xE0 | c >> 12));
                lc_buf_addc(out, (char)(0x80 | (c >> 6 & 0x3F)));
                lc_buf_addc(out, (char)(0x80 | (c & 0x3F)));
        } else {
                lc_buf_addc(out, (char)(0xF0 | c >> 18));
                lc_buf_addc(out, (char)(0x80 | (c >> 12 & 0x3F)));
                lc_buf_addc(out, (char)(0x80 | (c >> 6 & 0x3F)));
                lc_buf_addc(out, (char)(0x80 | (c & 0x3F)));
        }
}

#define NUL_TEXT "the NUL character is not allowed in a properties file"

/* Replace the escapes of s[0..n). */
static int unescape(const char *s, size_t n, bool utf8, lc_buf_t *out, lc_err_t *err)
{
        const char *end = s + n;

        while (s < end) {
                unsigned char c = (unsigned char)*s++;

                if (!c)
                        return lc_err_set_cls(err, LC_FATAL, 0, "java.lang.IllegalArgumentException",
                                              NUL_TEXT);
                if (c != '\\' || s == end) {
                        if (utf8)
                                lc_buf_addc(out, (char)c);
                        else
                                add_char(out, c);
                        continue;
                }
                c = (unsigned char)*s++;
                if (c == 'u') {
                        int u = hex4(s, end), low;

                        if (u < 0)
                                return lc_err_set_cls(err, LC_FATAL, 0, "java.lang.IllegalArgumentException",
                                                      "Malformed \\uxxxx encoding.");
                        if (!u)
                                return lc_err_set_cls(err, LC_FATAL, 0, "java.lang.IllegalArgumentException",
                                                      NUL_TEXT);
                        s += 4;
                        if (u >= 0xD800 && u < 0xDC00 && end - s >= 6 && s[0] == '\\' && s[1] == 'u' &&
                            (low = hex4(s + 2, end)) >= 0xDC00 && low < 0xE000) {
                                u = 0x10000 + (u - 0xD800) * 0x400 + (low - 0xDC00);
                                s += 6;
                        }
                        add_char(out, (unsigned)u);
                        continue;
                }
                c = c == 't' ? '\t' : c == 'r' ? '\r' : c == 'n' ? '\n' : c == 'f' ? '\f' : c;
                if (utf8)
                        lc_buf_addc(out, (char)c);
                else
                        add_char(out, c);
        }
        return 0;
}

/* Split a logical line: the key's length and where the value starts. */
static void split(const char *s, size_t n, size_t *key_len, size_t *value_at)
{
        size_t i = 0;
        bool escaped = false, sep = false;

        for (; i < n; i++) {
                if (!escaped && (s[i] == '=' || s[i] == ':' || blank(s[i])))
                        break;
                escaped = s[i] == '\\' && !escaped;
        }
        *key_len = i;
        for (; i < n; i++) {
                if (blank(s[i]))
                        continue;
                if (sep || (s[i] != '=' && s[i] != ':'))
                        break;
                sep = true;
        }
        *value_at = i;
}

static int parse(const char *text, size_t len, bool utf8, const char *path, lc_props_t **props, lc_err_t *err)
{
        reader_t r = {text, text + len, 1};
        lc_buf_t line = LC_BUF_INIT, key = LC_BUF_INIT, value = LC_BUF_INIT;
        lc_props_t *p = lc_props_new();
        unsigned at = 0;
        int rc = -1;

        while (logical_line(&r, &line, &at)) {
                size_t key_len, value_at;

                split(line.p, line.len, &key_len, &value_at);
                lc_buf_clear(&key);
                lc_buf_clear(&value);
                if (unescape(line.p, key_len, utf8, &key, err) ||
                    unescape(line.p + value_at, line.len - value_at, utf8, &value, err))
                        goto done;
                if (line.oom || key.oom || value.oom) {
                        lc_err_set(err, LC_FATAL, ENOMEM, "out of memory reading properties");
                        goto done;
                }
                lc_props_set(p, key.p ? key.p : "", value.p ? value.p : "");
        }
        *props = p;
        p = NULL;
        rc = 0;
done:
        if (rc && err && !err->detail[0])
                snprintf(err->detail, sizeof(err->detail), "\tin %s, line %u\n",
                         path ? path : "properties text", at);
        lc_props_free(p);
        lc_buf_free(&line);
        lc_buf_free(&key);
        lc_buf_free(&value);
        return rc;
}

int lc_properties_parse(const char *text, size_t len, lc_props_t **props, lc_err_t *err)
{
        return parse(text, len, false, NULL, props, err);
}

int lc_properties_parse_utf8(const char *text, size_t len, lc_props_t **props, lc_err_t *err)
{
        return parse(text, len, true, NULL, props, err);
}

static void io_error(const char *path, int code, lc_err_t *err)
{
        if (code == ENOENT)
                lc_err_set_cls(err, LC_FATAL, code, "java.nio.file.NoSuchFileException", "%s", path);
        else if (code == EACCES || code == EPERM)
                lc_err_set_cls(err, LC_FATAL, code, "java.nio.file.AccessDeniedException", "%s", path);
        else if (code == EISDIR)
                lc_err_set_cls(err, LC_FATAL, code, "java.io.IOException", "%s: Is a directory", path);
        else
                lc_err_set_cls(err, LC_FATAL, code, "java.nio.file.FileSystemException", "%s: %s", path,
                               strerror(code));
}

enum { LARGEST = 64 << 20 };

char *lc_file_read(const char *path, size_t *len, lc_err_t *err)
{
        lc_buf_t b = LC_BUF_INIT;
        struct stat st;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a fifo must not block the start */
        int code = 0;

        if (fd < 0 || fstat(fd, &st)) {
                code = errno;
        } else if (S_ISDIR(st.st_mode)) {
                code = EISDIR;
        } else {
                for (;;) {
                        ssize_t n;

                        if (lc_buf_reserve(&b, 65536)) {
                                code = ENOMEM;
                                break;
                        }
                        if (b.len > LARGEST) { /* /dev/zero has no end */
                                code = EFBIG;
                                break;
                        }
                        n = read(fd, b.p + b.len, 65536);
                        if (n > 0)
                                b.len += (size_t)n;
                        else if (!n)
                                break;
                        else if (errno != EINTR) {
                                code = errno;
                                break;
                        }
                }
        }
        if (fd >= 0)
                close(fd);
        if (code) {
                io_error(path, code, err);
                lc_buf_free(&b);
                return NULL;
        }
        b.p[b.len] = '\0';
        return lc_buf_take(&b, len);
}

int lc_properties_load(const char *path, lc_props_t **props, lc_err_t *err)
{
        size_t len;
        char *text = lc_file_read(path, &len, err);
        int rc;

        if (!text)
                return -1;
        rc = parse(text, len, false, path, props, err);
        free(text);
        return rc;
}
