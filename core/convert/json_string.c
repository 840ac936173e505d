/*
 * json_string.c - strings of the JSON reader: found 16 bytes at a time, decoded only when they hold escapes
 * or odd UTF-8. Any thread; texts in the parser's arena. Spec: spec/unit/json_spec.lua
 */
#include "convert/json_parser.h"
#include "convert/text.h"
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#ifdef __SSE2__
static inline unsigned scan_stops(__m128i v)
{
        const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), ctl = _mm_set1_epi8(31);
        __m128i stop = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)),
                                    _mm_cmpeq_epi8(_mm_min_epu8(v, ctl), v));

        return (unsigned)_mm_movemask_epi8(stop);
}

static inline const char *stopped(const char *p, unsigned stop, unsigned above, unsigned h, bool *high)
{
        unsigned k = (unsigned)__builtin_ctz(stop);

        *high |= (above | (h & ((1u << k) - 1))) != 0;
        return p + k;
}
#endif

const char *lc_json_scan(const char *p, const char *end, bool *high)
{
#ifdef __SSE2__
        const char *start = p;
        unsigned above = 0, m, h;

        for (; end - p >= 16; p += 16) {
                __m128i v = _mm_loadu_si128((const __m128i *)p);

                m = scan_stops(v);
                h = (unsigned)_mm_movemask_epi8(v);
                if (m)
                        return stopped(p, m, above, h, high);
                above |= h;
        }
        if (p < end && end - start >= 16) { /* the last 16 bytes, those seen before shifted out */
                __m128i v = _mm_loadu_si128((const __m128i *)(end - 16));

                m = scan_stops(v) >> (16 - (end - p));
                h = (unsigned)_mm_movemask_epi8(v) >> (16 - (end - p));
                if (m)
                        return stopped(p, m, above, h, high);
                above |= h;
                p = end;
        }
        *high |= above != 0;
#endif
        for (; p < end; p++) {
                unsigned char c = (unsigned char)*p;

                if (c < 0x20 || c == '"' || c == '\\')
                        return p;
                *high |= c >= 0x80;
        }
        return end;
}

static int hex_digit(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        c |= 32;
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int string_end(lc_json_parser_t *ps, const char *q, const char *what)
{
        unsigned char c;

        if (q >= ps->end && !strcmp(what, "field name") && ps->p == ps->end)
                return lc_json_fail(ps, LC_CLS_JSON_EOF, ps->end,
                                    "Unexpected end-of-input: was expecting closing '\"' for name");
        if (q >= ps->end)
                return lc_json_fail(ps, LC_CLS_JSON_EOF, ps->end, "Unexpected end-of-input in %s", what);
        c = (unsigned char)*q;
        return lc_json_fail(ps, LC_CLS_JSON_PARSE, q,
                            "Illegal unquoted character ((CTRL-CHAR, code %u)): has to be escaped using "
                            "backslash to be included in %s",
                            c, !strcmp(what, "field name") ? "name" : "string value");
}

/* \uXXXX at q (behind the 'u'). Returns the unit or -1. */
static int read_unit(lc_json_parser_t *ps, const char *q)
{
        int unit = 0;

        for (int i = 0; i < 4; i++, q++) {
                int d = q < ps->end ? hex_digit(*q) : 0;

                if (q >= ps->end)
                        return lc_json_fail(ps, LC_CLS_JSON_EOF, ps->end,
                                            "Unexpected end-of-input in character escape sequence");
                if (d < 0)
                        return lc_json_unexpected(ps, q,
                                                  "expected a hex-digit for character escape sequence");
                unit = unit << 4 | d;
        }
        return unit;
}

/* One escape at *at (the backslash): the UTF-16 unit it stands for, or -1. */
static int read_escaped(lc_json_parser_t *ps, const char **at)
{
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        const char *q = *at + 1, *hit;
        int unit;

        if (q >= ps->end)
                return lc_json_fail(ps, LC_CLS_JSON_EOF, ps->end,
                                    "Unexpected end-of-input in character escape sequence");
        if (*q && (hit = strchr(from, *q))) {
                *at = q + 1;
                return to[hit - from];
        }
        if (*q != 'u') {
                char what[64];

                lc_json_describe(q, what);
                return lc_json_fail(ps, LC_CLS_JSON_PARSE, q, "Unrecognized character escape %s", what);
        }
        unit = read_unit(ps, q + 1);
        if (unit >= 0)
                *at = q + 5;
        return unit;
}

/* A lone surrogate becomes '?', as Java writes it. */
static int read_escape(lc_json_parser_t *ps, const char **at, char **out)
{
        int unit = read_escaped(ps, at);
        const char *q = *at;
        uint32_t c;

        if (unit < 0)
                return -1;
        c = (uint32_t)unit;
        if (c >= 0xD800 && c < 0xDC00 && ps->end - q >= 6 && q[0] == '\\' && q[1] == 'u') {
                int low = 0;

                for (int i = 2; i < 6 && low >= 0; i++)
                        low = hex_digit(q[i]) < 0 ? -1 : low << 4 | hex_digit(q[i]);
                if (low >= 0xDC00 && low <= 0xDFFF) {
                        c = 0x10000 + ((c - 0xD800) << 10) + ((uint32_t)low - 0xDC00);
                        *at = q + 6;
                }
        }
        *out += lc_utf8_put(*out, c >= 0xD800 && c <= 0xDFFF ? '?' : c);
        return 0;
}

/* Names are stricter: Jackson refuses surrogates that are no pair. */
static int read_name_escape(lc_json_parser_t *ps, const char **at, char **out)
{
        int unit = read_escaped(ps, at), low;

        if (unit < 0)
                return -1;
        if (unit >= 0xDC00 && unit <= 0xDFFF)
                return lc_json_fail(ps, LC_CLS_JSON_PARSE, *at,
                                    "Unexpected low surrogate in field name: 0x%x", (unsigned)unit);
        if (unit >= 0xD800 && unit < 0xDC00) {
                if (*at >= ps->end)
                        return lc_json_fail(ps, LC_CLS_JSON_EOF, ps->end,
                                            "Unexpected end-of-input in field name");
                if (**at != '\\')
                        return lc_json_fail(ps, LC_CLS_JSON_PARSE, *at,
                                            "Broken surrogate pair in field name: expected '\\' to start low "
                                            "surrogate, got 0x%02X",
                                            (unsigned char)**at);
                low = read_escaped(ps, at);
                if (low < 0)
                        return -1;
                if (low < 0xDC00 || low > 0xDFFF)
                        return lc_json_fail(
                                ps, LC_CLS_JSON_PARSE, *at,
                                "Broken surrogate pair in field name: expected low surrogate, got "
                                "0x%04X",
                                (unsigned)low);
                unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
        }
        *out += lc_utf8_put(*out, (uint32_t)unit);
        return 0;
}

/* A character of four bytes that is none: Jackson makes two UTF-16 units of it all the same. The first is no
 * surrogate when the code point is below U+10000, `first` its smallest; what is left alone becomes '?'. */
static char *put_odd(char *out, uint32_t c, uint32_t first)
{
        if (c < 0x10000)
                out += lc_utf8_put(out, first + (c >> 10));
        else
                *out++ = '?';
        *out++ = '?';
        return out;
}

/* The byte at i of a name with all before it in its group of four, as Jackson's message shows it. */
static int32_t quad_at(const unsigned char *s, size_t i)
{
        int32_t v = (signed char)s[i & ~(size_t)3];

        for (size_t k = (i & ~(size_t)3) + 1; k <= i; k++)
                v = (int32_t)((uint32_t)v << 8 | s[k]);
        return v;
}

/* The bytes of a name (escapes are gone) that are no UTF-8, as Jackson decodes them: into out, or an error at
 * `at`, behind the closing quote. */
static int decode_name(lc_json_parser_t *ps, const char *name, size_t n, const char *at, char *out,
                       size_t *len)
{
        const unsigned char *s = (const unsigned char *)name;
        char *to = out;

        for (size_t i = 0; i < n;) {
                unsigned char a = s[i++];
                int more = a < 0x80             ? 0
                           : (a & 0xE0) == 0xC0 ? 1
                           : (a & 0xF0) == 0xE0 ? 2
                           : (a & 0xF8) == 0xF0 ? 3
                                                : -1;
                uint32_t c = more == 1 ? a & 0x1Fu : more == 2 ? a & 0x0Fu : more == 3 ? a & 7u : a;

                if (more < 0)
                        return lc_json_fail(ps, LC_CLS_JSON_PARSE, at, "Invalid UTF-8 start byte 0x%x", a);
                if (i + (size_t)more > n)
                        return lc_json_fail(ps, LC_CLS_JSON_EOF, at, "Unexpected end-of-input in field name");
                for (int k = 1; k <= more; k++, i++) {
                        if ((s[i] & 0xC0) != 0x80)
                                return lc_json_fail(ps, LC_CLS_JSON_PARSE, at,
                                                    "Invalid UTF-8 middle byte 0x%x",
                                                    k == 3 ? s[i] : (unsigned)quad_at(s, i));
                        c = c << 6 | (s[i] & 0x3F);
                }
                if (c >= 0xD800 && c <= 0xDFFF && more == 2)
                        return lc_json_fail(ps, LC_CLS_JSON_PARSE, at,
                                            "Invalid UTF-8: Illegal surrogate character 0x%x", (unsigned)c);
                if (more == 3 && (c < 0x10000 || c > 0x10FFFF))
                        to = put_odd(to, c, 0xD7C0);
                else
                        to += lc_utf8_put(to, c);
        }
        *len = (size_t)(to - out);
        return 0;
}

/* One character above ASCII as Jackson decodes it: overlong forms pass, surrogates do not. */
static int read_high(lc_json_parser_t *ps, const char **at, char **out)
{
        const char *q = *at;
        unsigned char a = (unsigned char)*q;
        int more = a >= 0xC0 && a < 0xE0 ? 1 : a >= 0xE0 && a < 0xF0 ? 2 : a >= 0xF0 && a < 0xF8 ? 3 : 0;
        uint32_t c = more == 1 ? a & 0x1Fu : more == 2 ? a & 0x0Fu : a & 0x07u;

        q++;
        if (!more)
                return lc_json_fail(ps, LC_CLS_JSON_PARSE, q, "Invalid UTF-8 start byte 0x%x", a);
        for (int i = 0; i < more; i++, q++) {
                if (q >= ps->end)
                        return lc_json_fail(ps, LC_CLS_JSON_EOF, ps->end,
                                            "Unexpected end-of-input in VALUE_STRING");
                if (((unsigned char)*q & 0xC0) != 0x80)
                        return lc_json_fail(ps, LC_CLS_JSON_PARSE, q + 1, "Invalid UTF-8 middle byte 0x%x",
                                            (unsigned char)*q);
                c = c << 6 | ((unsigned char)*q & 0x3F);
        }
        if (c >= 0xD800 && c <= 0xDFFF && more == 2)
                return lc_json_fail(ps, LC_CLS_JSON_PARSE, q,
                                    "Invalid UTF-8: Illegal surrogate character 0x%x", (unsigned)c);
        if (more == 3 && (c < 0x10000 || c > 0x10FFFF))
                *out = put_odd(*out, c, 0xFFC0);
        else
                *out += lc_utf8_put(*out, c);
        *at = q;
        return 0;
}

static int decode_string(lc_json_parser_t *ps, const char *what, const char **text, size_t *len)
{
        const char *q = ps->p, *stop = q;
        bool high = false, name = *what == 'f';
        char *out, *at;

        for (;;) { /* how much room is needed at most */
                stop = lc_json_scan(stop, ps->end, &high);
                if (stop < ps->end && *stop == '\\' && ps->end - stop > 1)
                        stop += 2;
                else
                        break;
        }
        at = out = lc_arena_room(ps->texts, (size_t)(stop - q) + 8);
        if (!out)
                return lc_json_no_memory(ps);
        for (;;) {
                const char *run = q;

                while (q < ps->end && (unsigned char)*q >= 0x20 && (unsigned char)*q < 0x80 && *q != '"' &&
                       *q != '\\')
                        q++;
                memcpy(at, run, (size_t)(q - run));
                at += q - run;
                if (q < ps->end && *q == '"')
                        break;
                if (q >= ps->end || (unsigned char)*q < 0x20)
                        return string_end(ps, q, what);
                if (name && *q != '\\')
                        *at++ = *q++; /* decoded below, as a whole */
                else if (name ? read_name_escape(ps, &q, &at) < 0
                              : (*q == '\\' ? read_escape(ps, &q, &at) : read_high(ps, &q, &at)) < 0)
                        return -1;
        }
        if (name && !lc_utf8_valid(out, (size_t)(at - out))) {
                size_t n = (size_t)(at - out);

                lc_arena_commit(ps->texts, n);
                if (!(at = lc_arena_room(ps->texts, n + 8)))
                        return lc_json_no_memory(ps);
                if (decode_name(ps, out, n, q + 1, at, &n) < 0)
                        return -1;
                out = at;
                at += n;
        }
        *at = '\0';
        *text = out;
        *len = (size_t)(at - out);
        lc_arena_commit(ps->texts, *len + 1);
        ps->p = q + 1;
        return 0;
}

int lc_json_read_string(lc_json_parser_t *ps, const char *what, const char **text, size_t *len)
{
        bool high = false;
        const char *stop = lc_json_scan(++ps->p, ps->end, &high);
        size_t n = (size_t)(stop - ps->p);

        if (stop >= ps->end || *stop != '"' || (high && !lc_utf8_valid(ps->p, n)))
                return decode_string(ps, what, text, len);
        *text = ps->flags & LC_JSON_BORROW ? ps->p : lc_arena_dup(ps->texts, ps->p, n);
        if (!*text)
                return lc_json_no_memory(ps);
        *len = n;
        ps->p = stop + 1;
        return 0;
}
