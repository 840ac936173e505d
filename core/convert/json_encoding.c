/*
 * json_encoding.c - documents that are no UTF-8, by Jackson's rule: a mark, or where the zeros are. Any thread.
 * Spec: spec/unit/json_spec.lua, spec/unit/bad_values_spec.lua
 */
#include "convert/json_parser.h"
#include "convert/text.h"
#include <string.h>

static bool find_encoding(const char *text, size_t n, lc_charset_t *cs, size_t *skip)
{
        const unsigned char *p = (const unsigned char *)text;

        *skip = 0;
        if (n >= 4 && !memcmp(p, "\0\0\xFE\xFF", 4)) {
                *skip = 4;
                *cs = LC_CS_UTF32BE;
        } else if (n >= 4 && !memcmp(p, "\xFF\xFE\0\0", 4)) {
                *skip = 4;
                *cs = LC_CS_UTF32LE;
        } else if (n >= 4 && p[0] == 0xFE && p[1] == 0xFF) { /* Jackson looks for marks in four bytes */
                *skip = 2;
                *cs = LC_CS_UTF16BE;
        } else if (n >= 4 && p[0] == 0xFF && p[1] == 0xFE) {
                *skip = 2;
                *cs = LC_CS_UTF16LE;
        } else if (n >= 4 && !p[0] && !p[1] && !p[2]) {
                *cs = LC_CS_UTF32BE;
        } else if (n >= 4 && !p[1] && !p[2] && !p[3]) {
                *cs = LC_CS_UTF32LE;
        } else if (n >= 2 && !p[0]) {
                *cs = LC_CS_UTF16BE;
        } else if (n >= 2 && !p[1]) {
                *cs = LC_CS_UTF16LE;
        } else {
                return false;
        }
        return true;
}

/* UCS-4 in one of the two orders that nobody writes. */
static const char *odd_order(const char *text, size_t n)
{
        if (n < 4)
                return NULL;
        if (!memcmp(text, "\0\0\xFF\xFE", 4) || (!text[0] && !text[1] && text[2] && !text[3]))
                return "2143";
        if (!memcmp(text, "\xFE\xFF\0\0", 4) || (!text[0] && text[1] && !text[2] && !text[3]))
                return "3412";
        return NULL;
}

int lc_json_find_encoding(lc_json_parser_t *ps)
{
        const char *text = ps->start;
        size_t n = (size_t)(ps->end - text), skip, len;
        lc_charset_t cs;

        if (odd_order(text, n))
                return lc_err_set_cls(ps->err, LC_DATA, 0, "java.io.CharConversionException",
                                      "Unsupported UCS-4 endianness (%s) detected", odd_order(text, n));
        if (find_encoding(text, n, &cs, &skip)) {
                if (lc_charset_decode(cs, text + skip, n - skip, ps->texts, &ps->start, &len) < 0)
                        return lc_json_no_memory(ps);
                ps->p = ps->start;
                ps->end = ps->start + len;
        } else if (n >= 4 && !memcmp(text, "\xEF\xBB\xBF", 3)) {
                ps->p += 3;
        }
        return 0;
}
