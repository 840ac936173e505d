/*
 * utf8.c - UTF-8 and the charsets StringConverter may be told to use, with Java's replacement rules.
 * Any thread; results in the caller's arena. Specs: spec/unit/json_spec.lua, spec/golden/converters_spec.lua
 */
#include "convert/text.h"
#include <string.h>
#include <strings.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { REPLACEMENT = 0xFFFD };

static bool is_tail(unsigned char c)
{
        return (c & 0xC0) == 0x80;
}

/* Length of the ASCII prefix. */
static size_t ascii_prefix(const char *s, size_t n)
{
        size_t i = 0;

#ifdef __SSE2__
        for (; n - i >= 16; i += 16) {
                unsigned m = (unsigned)_mm_movemask_epi8(_mm_loadu_si128((const __m128i *)(s + i)));
                if (m)
                        return i + (size_t)__builtin_ctz(m);
        }
#endif
        while (i < n && (unsigned char)s[i] < 0x80)
                i++;
        return i;
}

bool lc_text_ascii(const char *s, size_t n)
{
        return ascii_prefix(s, n) == n;
}

static uint32_t bad(size_t *used, size_t n, bool *ok)
{
        *used = n;
        if (ok)
                *ok = false;
        return REPLACEMENT;
}

uint32_t lc_utf8_next(const char *text, size_t n, size_t *used, bool *ok)
{
        const unsigned char *s = (const unsigned char *)text;
        unsigned char a = s[0];
        uint32_t c;

        if (a < 0x80) {
                *used = 1;
                return a;
        }
        if (a < 0xC2 || a > 0xF4 || n < 2)
                return bad(used, 1, ok);
        if (a < 0xE0) {
                if (!is_tail(s[1]))
                        return bad(used, 1, ok);
                *used = 2;
                return (uint32_t)(a & 0x1F) << 6 | (s[1] & 0x3F);
        }
        if (!is_tail(s[1]))
                return bad(used, 1, ok);
        if (a < 0xF0) {
                if (a == 0xE0 && s[1] < 0xA0)
                        return bad(used, 1, ok);
                if (n < 3 || !is_tail(s[2]))
                        return bad(used, 2, ok);
                c = (uint32_t)(a & 0x0F) << 12 | (uint32_t)(s[1] & 0x3F) << 6 | (s[2] & 0x3F);
                if (c >= 0xD800 && c <= 0xDFFF)
                        return bad(used, 3, ok); /* Java replaces the whole surrogate at once */
                *used = 3;
                return c;
        }
        if ((a == 0xF0 && s[1] < 0x90) || (a == 0xF4 && s[1] > 0x8F))
                return bad(used, 1, ok);
        if (n < 3 || !is_tail(s[2]))
                return bad(used, 2, ok);
        if (n < 4 || !is_tail(s[3]))
                return bad(used, 3, ok);
        *used = 4;
        return (uint32_t)(a & 0x07) << 18 | (uint32_t)(s[1] & 0x3F) << 12 | (uint32_t)(s[2] & 0x3F) << 6 |
               (s[3] & 0x3F);
}

int lc_utf8_put(char *out, uint32_t c)
{
        if (c < 0x80) {
                out[0] = (char)c;
                return 1;
        }
        if (c < 0x800) {
                out[0] = (char)(0xC0 | c >> 6);
                out[1] = (char)(0x80 | (c & 0x3F));
                return 2;
        }
        if (c < 0x10000) {
                out[0] = (char)(0xE0 | c >> 12);
                out[1] = (char)(0x80 | (c >> 6 & 0x3F));
                out[2] = (char)(0x80 | (c & 0x3F));
                return 3;
        }
        out[0] = (char)(0xF0 | c >> 18);
        out[1] = (char)(0x80 | (c >> 12 & 0x3F));
        out[2] = (char)(0x80 | (c >> 6 & 0x3F));
        out[3] = (char)(0x80 | (c & 0x3F));
        return 4;
}

bool lc_utf8_valid(const char *s, size_t n)
{
        size_t i = ascii_prefix(s, n), used;
        bool ok = true;

        while (i < n && ok) {
                if ((unsigned char)s[i] < 0x80) {
                        i += ascii_prefix(s + i, n - i);
                        continue;
                }
                lc_utf8_next(s + i, n - i, &used, &ok);
                i += used;
        }
        return ok;
}

void lc_utf8_append(lc_buf_t *out, const char *s, size_t n)
{
        size_t from = 0, i = 0, used;

        while (i < n) {
                bool ok = true;

                if ((unsigned char)s[i] < 0x80) {
                        i += ascii_prefix(s + i, n - i);
                        continue;
                }
                lc_utf8_next(s + i, n - i, &used, &ok);
                if (!ok) {
                        lc_buf_add(out, s + from, i - from);
                        lc_buf_add(out, "\xEF\xBF\xBD", 3);
                        from = i + used;
                }
                i += used;
        }
        lc_buf_add(out, s + from, n - from);
}

/* ---- charsets ---- */

int lc_charset_find(const char *name, lc_charset_t *cs)
{
        static const struct {
                const char *name;
                lc_charset_t cs;
        } names[] = {
                {"UTF-8", LC_CS_UTF8},
                {"UTF8", LC_CS_UTF8},
                {"unicode-1-1-utf-8", LC_CS_UTF8},
                {"ISO-8859-1", LC_CS_LATIN1},
                {"ISO8859_1", LC_CS_LATIN1},
                {"latin1", LC_CS_LATIN1},
                {"l1", LC_CS_LATIN1},
                {"ISO_8859-1", LC_CS_LATIN1},
                {"ISO8859-1", LC_CS_LATIN1},
                {"IBM819", LC_CS_LATIN1},
                {"cp819", LC_CS_LATIN1},
                {"819", LC_CS_LATIN1},
                {"IBM-819", LC_CS_LATIN1},
                {"iso-ir-100", LC_CS_LATIN1},
                {"8859_1", LC_CS_LATIN1},
                {"ISO_8859_1", LC_CS_LATIN1},
                {"ISO_8859-1:1987", LC_CS_LATIN1},
                {"csISOLatin1", LC_CS_LATIN1},
                {"US-ASCII", LC_CS_ASCII},
                {"ASCII", LC_CS_ASCII},
                {"ISO646-US", LC_CS_ASCII},
                {"iso-ir-6", LC_CS_ASCII},
                {"ANSI_X3.4-1986", LC_CS_ASCII},
                {"us", LC_CS_ASCII},
                {"ANSI_X3.4-1968", LC_CS_ASCII},
                {"cp367", LC_CS_ASCII},
                {"IBM367", LC_CS_ASCII},
                {"ascii7", LC_CS_ASCII},
                {"646", LC_CS_ASCII},
                {"ISO_646.irv:1991", LC_CS_ASCII},
                {"ISO_646.irv:1983", LC_CS_ASCII},
                {"csASCII", LC_CS_ASCII},
                {"default", LC_CS_ASCII},
                {"iso_646.irv:1983", LC_CS_ASCII},
                {"UTF-16", LC_CS_UTF16},
                {"UTF_16", LC_CS_UTF16},
                {"utf16", LC_CS_UTF16},
                {"unicode", LC_CS_UTF16},
                {"UnicodeBig", LC_CS_UTF16},
                {"UTF-16BE", LC_CS_UTF16BE},
                {"UTF_16BE", LC_CS_UTF16BE},
                {"ISO-10646-UCS-2", LC_CS_UTF16BE},
                {"X-UTF-16BE", LC_CS_UTF16BE},
                {"UnicodeBigUnmarked", LC_CS_UTF16BE},
                {"UTF-16LE", LC_CS_UTF16LE},
                {"UTF_16LE", LC_CS_UTF16LE},
                {"X-UTF-16LE", LC_CS_UTF16LE},
                {"UnicodeLittleUnmarked", LC_CS_UTF16LE},
                {"UTF-32", LC_CS_UTF32},
                {"UTF_32", LC_CS_UTF32},
                {"UTF32", LC_CS_UTF32},
                {"ISO-10646-UCS-4", LC_CS_UTF32},
                {"UTF-32BE", LC_CS_UTF32BE},
                {"UTF_32BE", LC_CS_UTF32BE},
                {"X-UTF-32BE", LC_CS_UTF32BE},
                {"UTF-32LE", LC_CS_UTF32LE},
                {"UTF_32LE", LC_CS_UTF32LE},
                {"X-UTF-32LE", LC_CS_UTF32LE},
        };

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (!strcasecmp(names[i].name, name)) {
                        *cs = names[i].cs;
                        return 0;
                }
        return -1;
}

typedef struct wide_in {
        const unsigned char *p;
        size_t n;
        bool little;
} wide_in_t;

static uint32_t unit16(const wide_in_t *in, size_t i)
{
        return in->little ? (uint32_t)in->p[i + 1] << 8 | in->p[i] : (uint32_t)in->p[i] << 8 | in->p[i + 1];
}

static char *decode_utf16(const wide_in_t *in, char *out)
{
        size_t i = 0;

        while (i + 1 < in->n) {
                uint32_t c = unit16(in, i);

                i += 2;
                if (c >= 0xD800 && c < 0xDC00) {
                        uint32_t low = i + 1 < in->n ? unit16(in, i) : 0;
                        bool pair = low >= 0xDC00 && low <= 0xDFFF;

                        c = pair ? 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00) : REPLACEMENT;
                        i += pair ? 2 : 0;
                } else if (c >= 0xDC00 && c <= 0xDFFF) {
                        c = REPLACEMENT;
                }
                out += lc_utf8_put(out, c);
        }
        if (i < in->n)
                out += lc_utf8_put(out, REPLACEMENT);
        return out;
}

static char *decode_utf32(const wide_in_t *in, char *out)
{
        size_t i = 0;

        for (; i + 3 < in->n; i += 4) {
                const unsigned char *p = in->p + i;
                uint32_t c =
                        in->little ? (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0]
                                   : (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];

                if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
                        c = REPLACEMENT;
                out += lc_utf8_put(out, c);
        }
        if (i < in->n)
                out += lc_utf8_put(out, REPLACEMENT);
        return out;
}

int lc_charset_decode(lc_charset_t cs, const char *s, size_t n, lc_arena_t *a, const char **out, size_t *len)
{
        const unsigned char *p = (const unsigned char *)s;
        wide_in_t in = {p, n, cs == LC_CS_UTF16LE || cs == LC_CS_UTF32LE};
        char *to, *at;

        if (cs == LC_CS_UTF8 && lc_utf8_valid(s, n)) {
                *out = s;
                *len = n;
                return 0;
        }
        at = to = lc_arena_room(a, n * 3 + 4);
        if (!to)
                return -1;
        switch (cs) {
        case LC_CS_UTF8:
                for (size_t i = 0, used; i < n; i += used)
                        at += lc_utf8_put(at, lc_utf8_next(s + i, n - i, &used, NULL));
                break;
        case LC_CS_LATIN1:
        case LC_CS_ASCII:
                for (size_t i = 0; i < n; i++)
                        at += lc_utf8_put(at, cs == LC_CS_ASCII && p[i] > 127 ? REPLACEMENT : p[i]);
                break;
        case LC_CS_UTF16: /* without a mark: big endian */
                if (n >= 2 && ((p[0] == 0xFE && p[1] == 0xFF) || (p[0] == 0xFF && p[1] == 0xFE))) {
                        in.little = p[0] == 0xFF;
                        in.p += 2;
                        in.n -= 2;
                }
                at = decode_utf16(&in, at);
                break;
        case LC_CS_UTF16BE:
        case LC_CS_UTF16LE:
                at = decode_utf16(&in, at);
                break;
        case LC_CS_UTF32:
                if (n >= 4 && (!memcmp(p, "\0\0\xFE\xFF", 4) || !memcmp(p, "\xFF\xFE\0\0", 4))) {
                        in.little = p[0] == 0xFF;
                        in.p += 4;
                        in.n -= 4;
                }
                at = decode_utf32(&in, at);
                break;
        case LC_CS_UTF32BE:
        case LC_CS_UTF32LE:
                at = decode_utf32(&in, at);
                break;
        }
        *out = to;
        *len = (size_t)(at - to);
        lc_arena_commit(a, *len);
        return 0;
}

static char *put_unit(char *out, uint32_t unit, int bytes, bool little)
{
        for (int i = 0; i < bytes; i++)
                out[i] = (char)(unit >> 8 * (little ? i : bytes - 1 - i));
        return out + bytes;
}

static char *encode_point(lc_charset_t cs, uint32_t c, char *at)
{
        bool little = cs == LC_CS_UTF16LE || cs == LC_CS_UTF32LE;

        switch (cs) {
        case LC_CS_UTF8:
                return at + lc_utf8_put(at, c);
        case LC_CS_LATIN1:
                *at = c > 0xFF ? '?' : (char)c;
                return at + 1;
        case LC_CS_ASCII:
                *at = c > 0x7F ? '?' : (char)c;
                return at + 1;
        case LC_CS_UTF16:
        case LC_CS_UTF16BE:
        case LC_CS_UTF16LE:
                if (c < 0x10000)
                        return put_unit(at, c, 2, little);
                at = put_unit(at, 0xD800 + ((c - 0x10000) >> 10), 2, little);
                return put_unit(at, 0xDC00 + ((c - 0x10000) & 0x3FF), 2, little);
        default:
                return put_unit(at, c, 4, little);
        }
}

int lc_charset_encode(lc_charset_t cs, const char *s, size_t n, lc_arena_t *a, const char **out, size_t *len)
{
        char *to, *at;

        if (cs == LC_CS_UTF8 && lc_utf8_valid(s, n)) {
                *out = s;
                *len = n;
                return 0;
        }
        at = to = lc_arena_room(a, n * 4 + 4);
        if (!to)
                return -1;
        if (cs == LC_CS_UTF16 && n) /* Java marks UTF-16, not UTF-32 */
                at = put_unit(at, 0xFEFF, 2, false);
        for (size_t i = 0, used; i < n; i += used)
                at = encode_point(cs, lc_utf8_next(s + i, n - i, &used, NULL), at);
        *out = to;
        *len = (size_t)(at - to);
        lc_arena_commit(a, *len);
        return 0;
}
