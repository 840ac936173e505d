/*
 * json_write.c - the JSON writer (json.h): compact, with the escapes of JsonConverter, SSE2 where it counts.
 *
 * Threads:   any.
 * Tests:     spec/unit/json_spec.lua
 */
#include "base/alloc.h"
#include "convert/json.h"
#include "convert/text.h"
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

static const char upper[] = "0123456789ABCDEF";

static char *put_unit(char *out, unsigned unit)
{
        out[0] = '\\';
        out[1] = 'u';
        out[2] = upper[unit >> 12 & 15];
        out[3] = upper[unit >> 8 & 15];
        out[4] = upper[unit >> 4 & 15];
        out[5] = upper[unit & 15];
        return out + 6;
}

/* A quote, backslash or control character. */
static char *escape_ascii(char *out, unsigned char c)
{
        char letter = 0;

        switch (c) {
        case '"':
        case '\\':
                letter = (char)c;
                break;
        case '\b':
                letter = 'b';
                break;
        case '\f':
                letter = 'f';
                break;
        case '\n':
                letter = 'n';
                break;
        case '\r':
                letter = 'r';
                break;
        case '\t':
                letter = 't';
                break;
        default:
                return put_unit(out, c);
        }
        out[0] = '\\';
        out[1] = letter;
        return out + 2;
}

/* One character above ASCII: raw, or as two escapes above U+FFFF; malformed bytes as U+FFFD. */
static const char *escape_high(char **out, const char *s, const char *end)
{
        size_t used;
        uint32_t c = lc_utf8_next(s, (size_t)(end - s), &used, NULL);

        if (c > 0xFFFF) {
                *out = put_unit(*out, 0xD800 + ((c - 0x10000) >> 10));
                *out = put_unit(*out, 0xDC00 + ((c - 0x10000) & 0x3FF));
        } else {
                *out += lc_utf8_put(*out, c);
        }
        return s + used;
}

#ifdef __SSE2__
/* Bit mask of bytes that cannot be copied: quotes, backslashes, control characters, all above ASCII. */
static inline unsigned stops(__m128i v)
{
        const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\'), ctl = _mm_set1_epi8(31);
        __m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)),
                                   _mm_or_si128(_mm_cmpeq_epi8(_mm_min_epu8(v, ctl), v), v));

        return (unsigned)_mm_movemask_epi8(hit);
}
#endif

#ifdef __SSE2__
/* 4 to 15 bytes by their first and last 8 or 4, if none needs an escape. */
static inline bool copy_short(char *out, const char *s, size_t n)
{
        if (n >= 8) {
                uint64_t first, last;

                memcpy(&first, s, 8);
                memcpy(&last, s + n - 8, 8);
                if (stops(_mm_set_epi64x((long long)last, (long long)first)))
                        return false;
                memcpy(out, &first, 8);
                memcpy(out + n - 8, &last, 8);
        } else {
                uint32_t first, last;

                memcpy(&first, s, 4);
                memcpy(&last, s + n - 4, 4);
                if (stops(_mm_set_epi32((int)last, (int)first, (int)last, (int)first)))
                        return false;
                memcpy(out, &first, 4);
                memcpy(out + n - 4, &last, 4);
        }
        return true;
}
#endif

char *lc_json_escape(char *out, const char *s, size_t n)
{
        const char *end = s + n;

#ifdef __SSE2__
        if (n >= 4 && n < 16 && copy_short(out, s, n))
                return out + n;
        /* copy while looking: what was copied too much is overwritten */
        while (end - s >= 16) {
                __m128i v = _mm_loadu_si128((const __m128i *)s);
                unsigned m = stops(v), k;

                _mm_storeu_si128((__m128i *)out, v);
                if (!m) {
                        s += 16;
                        out += 16;
                        continue;
                }
                k = (unsigned)__builtin_ctz(m);
                s += k;
                out += k;
                if ((unsigned char)*s >= 0x80)
                        s = escape_high(&out, s, end);
                else
                        out = escape_ascii(out, (unsigned char)*s++);
        }
#endif
#ifdef __SSE2__
        /* the rest by the last 16 bytes: those before `s` in it went out as they are, if none needs an escape
         */
        if (s < end && n >= 16) {
                __m128i v = _mm_loadu_si128((const __m128i *)(end - 16));

                if (!stops(v)) {
                        out += end - s;
                        _mm_storeu_si128((__m128i *)(out - 16), v);
                        return out;
                }
        }
#endif
        while (s < end) {
                unsigned char c = (unsigned char)*s;

                if (c >= 0x80) {
                        s = escape_high(&out, s, end);
                } else if (c < 0x20 || c == '"' || c == '\\') {
                        out = escape_ascii(out, c);
                        s++;
                } else {
                        *out++ = *s++;
                }
        }
        return out;
}

size_t lc_json_escaped_size(const char *s, size_t n)
{
        char space[16], *at;
        size_t size = 0;

        for (size_t i = 0; i < n;) {
                unsigned char c = (unsigned char)s[i];

                if (c >= 0x80) {
                        at = space;
                        i = (size_t)(escape_high(&at, s + i, s + n) - s);
                        size += (size_t)(at - space);
                } else {
                        size += c < 0x20 || c == '"' || c == '\\' ? (size_t)(escape_ascii(space, c) - space)
                                                                  : 1;
                        i++;
                }
        }
        return size;
}

void lc_json_write_string(lc_buf_t *out, const char *s, size_t n)
{
        size_t room = n < 4096 ? lc_json_escaped_max(n) : lc_json_escaped_size(s, n) + 16;
        char *at;

        if (lc_buf_reserve(out, room + 2) < 0)
                return;
        at = out->p + out->len;
        *at++ = '"';
        at = lc_json_escape(at, s, n);
        *at++ = '"';
        *at = '\0';
        out->len = (size_t)(at - out->p);
}

void lc_json_write_name(lc_buf_t *out, const char *name, size_t n, bool comma)
{
        size_t room = n < 4096 ? lc_json_escaped_max(n) : lc_json_escaped_size(name, n) + 16;
        char *at;

        if (lc_buf_reserve(out, room + 4) < 0)
                return;
        at = out->p + out->len;
        *at = ',';
        at += comma;
        *at++ = '"';
        at = lc_json_escape(at, name, n);
        *at++ = '"';
        *at++ = ':';
        *at = '\0';
        out->len = (size_t)(at - out->p);
}

static void write_scalar(lc_buf_t *out, const lc_json_t *node)
{
        switch (node->type) {
        case LC_J_TRUE:
                lc_buf_add(out, "true", 4);
                break;
        case LC_J_FALSE:
                lc_buf_add(out, "false", 5);
                break;
        case LC_J_NUMBER:
                lc_buf_add(out, node->s, node->len);
                break;
        case LC_J_STRING:
                lc_json_write_string(out, node->s, node->len);
                break;
        default:
                lc_buf_add(out, "null", 4);
                break;
        }
}

static int by_key(const void *a, const void *b)
{
        const lc_json_t *x = *(const lc_json_t *const *)a, *y = *(const lc_json_t *const *)b;
        size_t n = x->key_len < y->key_len ? x->key_len : y->key_len;
        int d = memcmp(x->key, y->key, n);

        return d ? d : (x->key_len > y->key_len) - (x->key_len < y->key_len);
}

static void write_node(lc_buf_t *out, const lc_json_t *node, bool sorted);

static void write_member(lc_buf_t *out, const lc_json_t *c, bool sorted)
{
        lc_json_write_name(out, c->key, c->key_len, false);
        write_node(out, c, sorted);
}

static void write_sorted(lc_buf_t *out, const lc_json_t *node)
{
        const lc_json_t **all = lc_malloc(node->len * sizeof(*all));
        size_t n = 0;

        for (const lc_json_t *c = node->child; c; c = c->next)
                all[n++] = c;
        qsort(all, n, sizeof(*all), by_key);
        for (size_t i = 0; i < n; i++) {
                if (i)
                        lc_buf_addc(out, ',');
                write_member(out, all[i], true);
        }
        free(all);
}

static void write_node(lc_buf_t *out, const lc_json_t *node, bool sorted)
{
        bool object = node->type == LC_J_OBJECT;

        if (!object && node->type != LC_J_ARRAY) {
                write_scalar(out, node);
                return;
        }
        lc_buf_addc(out, object ? '{' : '[');
        if (object && sorted && node->len > 1) {
                write_sorted(out, node);
        } else {
                for (const lc_json_t *c = node->child; c; c = c->next) {
                        if (c != node->child)
                                lc_buf_addc(out, ',');
                        if (object)
                                write_member(out, c, sorted);
                        else
                                write_node(out, c, sorted);
                }
        }
        lc_buf_addc(out, object ? '}' : ']');
}

void lc_json_write(lc_buf_t *out, const lc_json_t *node)
{
        write_node(out, node, false);
}

void lc_json_write_canonical(lc_buf_t *out, const lc_json_t *node)
{
        write_node(out, node, true);
}

void lc_json_write_props(lc_buf_t *out, const lc_props_t *props)
{
        lc_buf_addc(out, '{');
        for (size_t i = 0; i < lc_props_count(props); i++) {
                const char *k = lc_props_key(props, i), *v = lc_props_value(props, i);

                if (i)
                        lc_buf_addc(out, ',');
                lc_json_write_string(out, k, strlen(k));
                lc_buf_addc(out, ':');
                if (v)
                        lc_json_write_string(out, v, strlen(v));
                else
                        lc_buf_add(out, "null", 4);
        }
        lc_buf_addc(out, '}');
}
