/*
 * text.h - UTF-8, base64 and JSON escapes as Java does them: what all converters share inside this room.
 *
 * Threads:   any; no globals.
 * Tests:     spec/unit/json_spec.lua, spec/golden/converters_spec.lua
 */
#ifndef LC_CONVERT_TEXT_H
#define LC_CONVERT_TEXT_H
#include "convert/converter.h"
#include "convert/json.h"

bool lc_text_ascii(const char *s, size_t n);
/* Decode one code point of s[0..n), n > 0. Malformed bytes give U+FFFD and *used as java.nio's UTF-8
 * decoder counts them; *ok (may be NULL) becomes false then, else it is left alone. */
uint32_t lc_utf8_next(const char *s, size_t n, size_t *used, bool *ok);
/* Write a code point (not a surrogate), return its bytes. */
int lc_utf8_put(char *out, uint32_t c);
/* A byte order mark or Java charset to UTF-8 in an arena. -1 when memory is out. */
typedef enum {
        LC_CS_UTF8,
        LC_CS_LATIN1,
        LC_CS_ASCII,
        LC_CS_UTF16,
        LC_CS_UTF16BE,
        LC_CS_UTF16LE,
        LC_CS_UTF32,
        LC_CS_UTF32BE,
        LC_CS_UTF32LE
} lc_charset_t;
int lc_charset_find(const char *name, lc_charset_t *cs); /* by Java's names and aliases; -1 if unknown */
int lc_charset_decode(lc_charset_t cs, const char *s, size_t n, lc_arena_t *a, const char **out, size_t *len);
int lc_charset_encode(lc_charset_t cs, const char *s, size_t n, lc_arena_t *a, const char **out, size_t *len);

/* First quote, backslash or control character of p..end, or end. *high is set when something above ASCII was
 * passed, else left alone. */
const char *lc_json_scan(const char *p, const char *end, bool *high);
/* Escape s into out, without quotes, at most lc_json_escaped_max(n) bytes are touched. Returns the end. */
char *lc_json_escape(char *out, const char *s, size_t n);
static inline size_t lc_json_escaped_max(size_t n)
{
        return n * 6 + 16;
}
/* Append [,]"name": */
void lc_json_write_name(lc_buf_t *out, const char *name, size_t n, bool comma);
size_t lc_json_escaped_size(const char *s, size_t n); /* the exact size; add 16 bytes of room to it */

void lc_base64_append(lc_buf_t *out, const void *p, size_t n);
/* Jackson's MIME-NO-LINEFEEDS decoder: blanks between groups of four are skipped, padding is required. On
 * failure -1 and `why` (200 bytes) has Jackson's text; -2 when memory is out. */
int lc_base64_decode(const char *s, size_t n, lc_arena_t *a, const char **out, size_t *len, char why[200]);

#endif
