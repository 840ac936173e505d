/*
 * json.c - the JSON reader (json.h): one arena a document, literal numbers, and Jackson's refusals with
 * Jackson's texts, lines and columns (columns count bytes).
 *
 * Threads:   any; a parser lives on the stack.
 * Ownership: nodes and copied strings lie in the document's arena.
 * Tests:     spec/unit/json_spec.lua
 */
#include "convert/json.h"
#include "base/alloc.h"
#include "convert/json_parser.h"
#include "convert/text.h"
#include <errno.h>
#include <stdarg.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLS_LIMIT "com.fasterxml.jackson.core.exc.StreamConstraintsException"
#define CLS_INPUT "com.fasterxml.jackson.databind.exc.MismatchedInputException"
#define SOURCE                                                                                               \
        "[Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: %zu, column: "   \
        "%zu]"
#define ANY_VALUE "(JSON String, Number, Array, Object or token 'null', 'true' or 'false')"

enum { MAX_TOKEN = 256, FEW = 100, SLOTS = 256 };

typedef struct lc_json_doc {
        lc_json_t root; /* first: lc_json_free() gets its address */
        lc_arena_t arena;
} lc_json_doc_t;

/* ---- errors ---- */

static void locate(const lc_json_parser_t *ps, const char *at, size_t *line, size_t *column)
{
        const char *row = ps->start;

        *line = 1;
        for (const char *q = ps->start; q < at; q++)
                if (*q == '\n' || (*q == '\r' && !(q + 1 < ps->end && q[1] == '\n'))) {
                        ++*line;
                        row = q + 1;
                }
        *column = (size_t)(at - row) + 1;
}

int lc_json_fail(lc_json_parser_t *ps, const char *cls, const char *at, const char *fmt, ...)
{
        char text[900];
        size_t line, column;
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        locate(ps, at, &line, &column);
        return lc_err_set_cls(ps->err, LC_DATA, 0, cls, "%s\n at " SOURCE, text, line, column);
}

int lc_json_no_memory(lc_json_parser_t *ps)
{
        return lc_err_set(ps->err, LC_FATAL, ENOMEM, "Out of memory while reading JSON");
}

/* "'x' (code 120)" of the byte at `at`, which Jackson takes for a Latin-1 character. */
void lc_json_describe(const char *at, char out[64])
{
        unsigned char c = (unsigned char)*at;
        char text[8] = "";

        text[lc_utf8_put(text, c)] = '\0';
        if (c < 0x20 || (c >= 0x7F && c < 0xA0))
                snprintf(out, 64, "(CTRL-CHAR, code %u)", c);
        else
                snprintf(out, 64, "'%s' (code %u)", text, c);
}

int lc_json_unexpected(lc_json_parser_t *ps, const char *at, const char *comment)
{
        char what[64];

        lc_json_describe(at, what);
        return lc_json_fail(ps, LC_CLS_JSON_PARSE, at, "Unexpected character (%s): %s", what, comment);
}

static int bad_number(lc_json_parser_t *ps, const char *at, const char *comment)
{
        char what[64];

        lc_json_describe(at, what);
        return lc_json_fail(ps, LC_CLS_JSON_PARSE, at, "Unexpected character (%s) in numeric value: %s", what,
                            comment);
}

static bool identifier_start(uint32_t c)
{
        return (c | 32) - 'a' < 26 || c == '$' || c == '_' || (c >= 0xA2 && c <= 0xA5) || c == 0xAA ||
               c == 0xB5 || c == 0xBA || (c >= 0xC0 && c != 0xD7 && c != 0xF7);
}

static bool identifier_part(uint32_t c)
{
        if ((c >= 0x2000 && c <= 0x206F) || (c >= 0xD800 && c <= 0xF8FF) || c == 0xFFFD)
                return false;
        return identifier_start(c) || c - '0' < 10 || c <= 8 || (c >= 0x0E && c <= 0x1B) ||
               (c >= 0x7F && c <= 0x9F) || c == 0xAD;
}

/* The next character of a broken word as Jackson decodes it for its message, cut to 16 bits; < 0: an error
 * was set. *used: bytes taken. */
static int32_t word_char(lc_json_parser_t *ps, const char *q, size_t *used)
{
        unsigned char first = (unsigned char)*q;
        int more = first < 0x80             ? 0
                   : (first & 0xE0) == 0xC0 ? 1
                   : (first & 0xF0) == 0xE0 ? 2
                   : (first & 0xF8) == 0xF0 ? 3
                                            : -1;
        uint32_t c = more == 1 ? first & 0x1Fu : more == 2 ? first & 0x0Fu : more == 3 ? first & 7u : first;

        if (more < 0)
                return lc_json_fail(ps, LC_CLS_JSON_PARSE, q + 1, "Invalid UTF-8 start byte 0x%x", first);
        for (int i = 1; i <= more; i++) {
                if (q + i >= ps->end)
                        return lc_json_fail(ps, LC_CLS_JSON_EOF, ps->end, "Unexpected end-of-input in null");
                if (((unsigned char)q[i] & 0xC0) != 0x80)
                        return lc_json_fail(ps, LC_CLS_JSON_PARSE, q + i + 1,
                                            "Invalid UTF-8 middle byte 0x%x", (unsigned char)q[i]);
                c = c << 6 | ((unsigned char)q[i] & 0x3F);
        }
        *used = (size_t)more + 1;
        return (int32_t)(c & 0xFFFF);
}

/* A word that is no JSON token. `at` is its start, `from` where reading goes on (what is before is known to
 * be good). Jackson takes the first byte as a Latin-1 character. */
static int bad_token(lc_json_parser_t *ps, const char *at, const char *from)
{
        char word[MAX_TOKEN * 4 + 8];
        size_t n = 0, used = 1, chars = 0;
        const char *q = from;

        if (from == at) {
                n = (size_t)lc_utf8_put(word, (unsigned char)*at);
                q = at + 1;
                chars = 1;
        } else {
                n = (size_t)(from - at);
                memcpy(word, at, n);
                chars = n;
        }
        for (; q < ps->end; q += used) {
                int32_t c = word_char(ps, q, &used);

                if (c < 0)
                        return -1;
                if (!identifier_part((uint32_t)c))
                        break;
                n += (size_t)lc_utf8_put(word + n, (uint32_t)c);
                if (++chars >= MAX_TOKEN) {
                        memcpy(word + n, "...", 3);
                        n += 3;
                        break;
                }
        }
        return lc_json_fail(ps, LC_CLS_JSON_PARSE, at, "Unrecognized token '%.*s': was expecting " ANY_VALUE,
                            (int)n, word);
}

/* ---- white space and lookahead ---- */

static void skip_blank(lc_json_parser_t *ps)
{
        while (ps->p < ps->end && (*ps->p == ' ' || *ps->p == '\n' || *ps->p == '\t' || *ps->p == '\r'))
                ps->p++;
}

/* 0 at something that can be looked at, -1 with an error for a control character. */
static int check_control(lc_json_parser_t *ps)
{
        unsigned char c = (unsigned char)*ps->p;

        if (c < 0x20)
                return lc_json_fail(ps, LC_CLS_JSON_PARSE, ps->p + 1,
                                    "Illegal character ((CTRL-CHAR, code %u)): only regular white "
                                    "space (\\r, \\n, \\t) is allowed between tokens",
                                    c);
        if (c == '/')
                return lc_json_unexpected(
                        ps, ps->p,
                        "maybe a (non-standard) comment? (not recognized as one since Feature "
                        "'ALLOW_COMMENTS' not enabled for parser)");
        return 0;
}

static int at_end(lc_json_parser_t *ps, const char *open)
{
        size_t line, column;

        if (!open)
                return lc_json_fail(ps, LC_CLS_JSON_EOF, ps->end, "Unexpected end-of-input");
        locate(ps, open, &line, &column);
        return lc_json_fail(ps, LC_CLS_JSON_EOF, ps->end,
                            "Unexpected end-of-input: expected close marker for %s (start marker at " SOURCE
                            ")",
                            *open == '{' ? "Object" : "Array", line, column);
}

static int wrong_close(lc_json_parser_t *ps, const char *open)
{
        size_t line, column;

        locate(ps, open, &line, &column);
        return lc_json_fail(ps, LC_CLS_JSON_PARSE, ps->p,
                            "Unexpected close marker '%c': expected '%c' (for %s starting at " SOURCE ")",
                            *ps->p, *open == '{' ? '}' : ']', *open == '{' ? "Object" : "Array", line,
                            column);
}

/* ---- numbers and words ---- */

static bool is_digit(const lc_json_parser_t *ps, const char *q)
{
        return q < ps->end && *q >= '0' && *q <= '9';
}

static int number_eof(lc_json_parser_t *ps)
{
        return lc_json_fail(ps, LC_CLS_JSON_EOF, ps->end, "Unexpected end-of-input in null");
}

/* Java keeps exponent and scale of a BigDecimal in an int. `q` is behind the 'e'; fraction: digits behind the
 * point. */
static int check_exponent(lc_json_parser_t *ps, const char *from, const char *q, const char *to,
                          int64_t fraction)
{
        int64_t exp = 0, sign = *q == '-' ? -1 : 1;
        const char *why = NULL;

        q += *q == '+' || *q == '-';
        while (q < to && *q == '0')
                q++;
        if (to - q <= 10)
                for (const char *d = q; d < to; d++)
                        exp = exp * 10 + (*d - '0');
        exp *= sign;
        if (to - q > 10)
                why = "Too many nonzero exponent digits.";
        else if (exp > INT_MAX || exp < INT_MIN)
                why = "Exponent overflow.";
        else if (fraction - exp > INT_MAX || fraction - exp < INT_MIN)
                why = "Scale out of range.";
        if (!why)
                return 0;
        return lc_err_set_cls(ps->err, LC_DATA, 0, "java.lang.NumberFormatException",
                              "Value \"%.*s\" can not be "
                              "deserialized as `java.math.BigDecimal`, reason:  %s",
                              (int)(to - from), from, why);
}

static size_t count_digits(const char *from, const char *to)
{
        size_t n = 0;

        for (; from < to; from++)
                n += *from >= '0' && *from <= '9';
        return n;
}

static int take_number(lc_json_parser_t *ps, lc_json_t *n, const char *from, const char *zeros,
                       const char *to)
{
        size_t len = (size_t)(to - zeros);
        bool minus = *from == '-' && zeros != from + 1;
        char *copy;

        if (to - zeros > LC_JSON_MAX_NUMBER && count_digits(zeros, to) > LC_JSON_MAX_NUMBER)
                return lc_err_set_cls(ps->err, LC_DATA, 0, CLS_LIMIT,
                                      "Number value length (%zu) exceeds the maximum "
                                      "allowed (%d, from `StreamReadConstraints.getMaxNumberLength()`)",
                                      count_digits(zeros, to), LC_JSON_MAX_NUMBER);
        n->type = LC_J_NUMBER;
        if (!minus && *from == '-') { /* the sign stands right before the digits */
                zeros--;
                len++;
        }
        if (!minus && ps->flags & LC_JSON_BORROW) {
                n->s = zeros;
                n->len = len;
        } else {
                copy = lc_arena_alloc(ps->arena, len + 2);
                if (!copy)
                        return lc_json_no_memory(ps);
                copy[0] = '-';
                memcpy(copy + minus, zeros, len);
                copy[len + minus] = '\0';
                n->s = copy;
                n->len = len + minus;
        }
        ps->p = to;
        return 0;
}

static int read_number(lc_json_parser_t *ps, lc_json_t *n)
{
        const char *from = ps->p, *q = from, *digits, *point = NULL;

        if (*q == '-') {
                q++;
                if (q >= ps->end)
                        return number_eof(ps);
                if (*q == 'I') {
                        size_t left = (size_t)(ps->end - q);
                        size_t m = left >= 8 && !memcmp(q, "Infinity", 8) ? 8
                                   : left >= 3 && !memcmp(q, "INF", 3)    ? 3
                                                                          : 0;

                        if (m && !(q + m < ps->end && identifier_part((unsigned char)q[m])))
                                return lc_json_fail(ps, LC_CLS_JSON_PARSE, q + m,
                                                    "Non-standard token '-%.*s': enable `JsonReadFeature."
                                                    "ALLOW_NON_NUMERIC_NUMBERS` to allow",
                                                    (int)m, q);
                        return bad_token(ps, from, q);
                }
                if (!is_digit(ps, q))
                        return bad_number(
                                ps, q, "expected digit (0-9) to follow minus sign, for valid numeric value");
        }
        digits = q;
        if (*q == '0' && is_digit(ps, q + 1)) {
                if (!(ps->flags & LC_JSON_LENIENT))
                        return lc_json_fail(ps, LC_CLS_JSON_PARSE, q + 1,
                                            "Invalid numeric value: Leading zeroes not allowed");
                while (*digits == '0' && is_digit(ps, digits + 1))
                        digits++;
        }
        while (is_digit(ps, q))
                q++;
        n->integral = true;
        if (q < ps->end && *q == '.') {
                n->integral = false;
                point = ++q;
                if (!is_digit(ps, q))
                        return bad_number(ps, q < ps->end ? q : q - 1,
                                          "Decimal point not followed by a digit");
                while (is_digit(ps, q))
                        q++;
        }
        if (q < ps->end && (*q == 'e' || *q == 'E')) {
                int64_t fraction = point ? q - point : 0;
                const char *exp = ++q;

                n->integral = false;
                if (q < ps->end && (*q == '+' || *q == '-'))
                        q++;
                if (q >= ps->end)
                        return number_eof(ps);
                if (!is_digit(ps, q))
                        return bad_number(ps, q, "Exponent indicator not followed by a digit");
                while (is_digit(ps, q))
                        q++;
                if (check_exponent(ps, from, exp, q, fraction) < 0)
                        return -1;
        }
        if (ps->depth == 0 && q < ps->end && *q != ' ' && *q != '\n' && *q != '\r' && *q != '\t')
                return lc_json_unexpected(ps, q, "Expected space separating root-level values");
        return take_number(ps, n, from, digits, q);
}

static int read_word(lc_json_parser_t *ps, lc_json_t *n, const char *word, lc_jtype_t type)
{
        size_t len = strlen(word), left = (size_t)(ps->end - ps->p), same = 0;

        while (same < len && same < left && ps->p[same] == word[same])
                same++;
        if (same < len || (len < left && identifier_part((unsigned char)ps->p[len])))
                return bad_token(ps, ps->p, ps->p + same);
        n->type = type;
        ps->p += len;
        return 0;
}

/* What begins with N, I or +. */
static int read_odd(lc_json_parser_t *ps)
{
        const char *q = ps->p;
        size_t left = (size_t)(ps->end - q), len;

        if (*q == '+') {
                if (left == 1)
                        return lc_json_fail(ps, LC_CLS_JSON_EOF, ps->end,
                                            "Unexpected end-of-input in a Number value");
                len = left >= 9 && !memcmp(q + 1, "Infinity", 8) ? 9
                      : left >= 4 && !memcmp(q + 1, "INF", 3)    ? 4
                                                                 : 0;
                if (!len) {
                        if (q[1] == 'I')
                                return bad_token(ps, q, q + 1);
                        return lc_json_fail(
                                ps, LC_CLS_JSON_PARSE, q + 1,
                                "Unexpected character ('+' (code 43)) in numeric value: JSON "
                                "spec does not allow numbers to have plus signs: enable `JsonReadFeature."
                                "ALLOW_LEADING_PLUS_SIGN_FOR_NUMBERS` to allow");
                }
        } else {
                const char *word = *q == 'N' ? "NaN" : "Infinity";

                len = strlen(word);
                if (left < len || memcmp(q, word, len) != 0 ||
                    (left > len && identifier_part((unsigned char)q[len])))
                        return bad_token(ps, q, q);
        }
        return lc_json_fail(ps, LC_CLS_JSON_PARSE, q + len,
                            "Non-standard token '%.*s': enable `JsonReadFeature."
                            "ALLOW_NON_NUMERIC_NUMBERS` to allow",
                            (int)len, q);
}

/* ---- values ---- */

static int read_value(lc_json_parser_t *ps, lc_json_t *n);

static bool same_key(const lc_json_t *a, const lc_json_t *b)
{
        return a->key_len == b->key_len && !memcmp(a->key, b->key, a->key_len);
}

/* The last of equal keys wins, at the place of the first. */
static void replace_node(lc_json_t *old, lc_json_t *fresh)
{
        lc_json_t *next = old->next;

        *old = *fresh;
        old->next = next;
}

static void drop_next(lc_json_t **link, lc_json_t *object)
{
        *link = (*link)->next;
        object->len--;
}

/* Of the length and both ends of a key: names that differ in the middle only meet in one slot. */
static unsigned quick_hash(const lc_json_t *n)
{
        uint64_t first = 0, last = 0;
        size_t len = n->key_len;

        if (len >= 8) {
                memcpy(&first, n->key, 8);
                memcpy(&last, n->key + len - 8, 8);
        } else if (len >= 4) {
                memcpy(&first, n->key, 4);
                memcpy(&last, n->key + len - 4, 4);
        } else if (len) {
                first = (unsigned char)n->key[0] | (uint64_t)(unsigned char)n->key[len / 2] << 8;
                last = (unsigned char)n->key[len - 1];
        }
        return (unsigned)(((first ^ last << 1 ^ len) * 0x9E3779B97F4A7C15u) >> 56);
}

/* Up to FEW members: a table on the stack. */
static void unique_few(lc_json_t *object)
{
        lc_json_t *seen[FEW];
        unsigned char slots[SLOTS] = {0}; /* number in seen[] + 1 */
        unsigned n = 0;

        for (lc_json_t **link = &object->child; *link;) {
                lc_json_t *a = *link;
                unsigned h = quick_hash(a);

                while (slots[h] && !same_key(seen[slots[h] - 1], a))
                        h = (h + 1) % SLOTS;
                if (slots[h]) {
                        drop_next(link, object);
                        replace_node(seen[slots[h] - 1], a);
                } else {
                        seen[n++] = a;
                        slots[h] = (unsigned char)n;
                        link = &a->next;
                }
        }
}

static int unique_many(lc_json_parser_t *ps, lc_json_t *object)
{
        size_t size = 64, mask;
        lc_json_t **table;

        while (size < object->len * 2)
                size *= 2;
        mask = size - 1;
        table = calloc(size, sizeof(*table));
        if (!table)
                return lc_json_no_memory(ps);
        for (lc_json_t **link = &object->child; *link;) {
                lc_json_t *n = *link;
                uint32_t h = 2166136261u;

                for (size_t i = 0; i < n->key_len; i++)
                        h = (h ^ (unsigned char)n->key[i]) * 16777619u;
                for (; table[h & mask]; h++)
                        if (same_key(table[h & mask], n))
                                break;
                if (table[h & mask]) {
                        drop_next(link, object);
                        replace_node(table[h & mask], n);
                } else {
                        table[h & mask] = n;
                        link = &n->next;
                }
        }
        free(table);
        return 0;
}

/* Behind an element: true when the container goes on. *rc < 0 on error. */
static bool next_item(lc_json_parser_t *ps, const char *open, char close, int *rc)
{
        *rc = -1;
        skip_blank(ps);
        if (ps->p >= ps->end) {
                at_end(ps, open);
        } else if (*ps->p == close) {
                ps->p++;
                *rc = 0;
        } else if (*ps->p == ',') {
                ps->p++;
                skip_blank(ps);
                if (ps->p < ps->end)
                        return true;
                lc_json_fail(ps, LC_CLS_JSON_PARSE, ps->end,
                             "Unexpected end-of-input within/between %s entries",
                             close == '}' ? "Object" : "Array");
        } else if (*ps->p == ']' || *ps->p == '}') {
                wrong_close(ps, open);
        } else if (check_control(ps) == 0) {
                lc_json_unexpected(ps, ps->p,
                                   close == '}' ? "was expecting comma to separate Object entries"
                                                : "was expecting comma to separate Array entries");
        }
        return false;
}

static int read_key(lc_json_parser_t *ps, lc_json_t *n)
{
        if (*ps->p != '"')
                return check_control(ps) < 0
                               ? -1
                               : lc_json_unexpected(ps, ps->p,
                                                    "was expecting double-quote to start field name");
        if (lc_json_read_string(ps, "field name", &n->key, &n->key_len) < 0)
                return -1;
        skip_blank(ps);
        if (ps->p >= ps->end)
                return lc_json_fail(ps, LC_CLS_JSON_EOF, ps->end,
                                    "Unexpected end-of-input within/between Object entries");
        if (*ps->p != ':')
                return check_control(ps) < 0
                               ? -1
                               : lc_json_unexpected(ps, ps->p,
                                                    "was expecting a colon to separate field name and value");
        ps->p++;
        skip_blank(ps);
        if (ps->p >= ps->end)
                return lc_json_fail(ps, LC_CLS_JSON_EOF, ps->end,
                                    "Unexpected end-of-input within/between Object entries");
        return 0;
}

static int read_container(lc_json_parser_t *ps, lc_json_t *n)
{
        const char *open = ps->p++;
        char close = *open == '{' ? '}' : ']';
        lc_json_t **link = &n->child;
        int rc;

        n->type = *open == '{' ? LC_J_OBJECT : LC_J_ARRAY;
        if (++ps->depth > LC_JSON_MAX_DEPTH)
                return lc_err_set_cls(ps->err, LC_DATA, 0, CLS_LIMIT,
                                      "Document nesting depth (%d) exceeds the maximum "
                                      "allowed (%d, from `StreamReadConstraints.getMaxNestingDepth()`)",
                                      ps->depth, LC_JSON_MAX_DEPTH);
        skip_blank(ps);
        if (ps->p >= ps->end)
                return at_end(ps, open);
        if (*ps->p == close) {
                ps->p++;
                ps->depth--;
                return 0;
        }
        if (close == '}' && *ps->p == ']')
                return wrong_close(ps, open);
        if (close == ']' && *ps->p == '}')
                return wrong_close(ps, open);
        do {
                lc_json_t *item = lc_arena_alloc(ps->arena, sizeof(*item));

                if (!item)
                        return lc_json_no_memory(ps);
                memset(item, 0, sizeof(*item));
                if (close == '}' && read_key(ps, item) < 0)
                        return -1;
                ps->close = close;
                if (read_value(ps, item) < 0)
                        return -1;
                *link = item;
                link = &item->next;
                n->len++;
        } while (next_item(ps, open, close, &rc));
        ps->depth--;
        if (rc == 0 && close == '}' && n->len > 1) {
                if (n->len <= FEW)
                        unique_few(n);
                else
                        rc = unique_many(ps, n);
        }
        return rc;
}

static int read_value(lc_json_parser_t *ps, lc_json_t *n)
{
        n->at = ps->p;
        switch (*ps->p) {
        case '"':
                n->type = LC_J_STRING;
                return lc_json_read_string(ps, "VALUE_STRING", &n->s, &n->len);
        case '{':
        case '[':
                return read_container(ps, n);
        case 't':
                return read_word(ps, n, "true", LC_J_TRUE);
        case 'f':
                return read_word(ps, n, "false", LC_J_FALSE);
        case 'n':
                return read_word(ps, n, "null", LC_J_NULL);
        case '-':
        case '0':
        case '1':
        case '2':
        case '3':
        case '4':
        case '5':
        case '6':
        case '7':
        case '8':
        case '9':
                return read_number(ps, n);
        case 'N':
        case 'I':
        case '+':
                return read_odd(ps);
        case ']':
        case '}':
                if (ps->depth == 0)
                        return lc_json_fail(ps, LC_CLS_JSON_PARSE, ps->p,
                                            "Unexpected close marker '%c': no open %s to close", *ps->p,
                                            *ps->p == '}' ? "Object" : "Array");
                return lc_json_unexpected(ps, ps->p,
                                          *ps->p == ps->close ? "expected a value"
                                                              : "expected a valid value " ANY_VALUE);
        case ',':
                return lc_json_unexpected(ps, ps->p, "expected a value");
        default:
                break;
        }
        if (check_control(ps) < 0)
                return -1;
        if (identifier_start((unsigned char)*ps->p))
                return bad_token(ps, ps->p, ps->p);
        return lc_json_unexpected(ps, ps->p, "expected a valid value " ANY_VALUE);
}

static int check_rest(lc_json_parser_t *ps)
{
        static const char *const tokens[] = {"VALUE_NULL",   "VALUE_TRUE",  "VALUE_FALSE", "VALUE_NUMBER_INT",
                                             "VALUE_STRING", "START_ARRAY", "START_OBJECT"};
        lc_json_t extra = {0};
        const char *at, *name;

        skip_blank(ps);
        if (ps->p >= ps->end)
                return 0;
        at = ps->p;
        if (*at == '{' || *at == '[')
                extra.type = *at == '{' ? LC_J_OBJECT : LC_J_ARRAY;
        else if (read_value(ps, &extra) < 0)
                return -1;
        name = extra.type == LC_J_NUMBER && !extra.integral ? "VALUE_NUMBER_FLOAT" : tokens[extra.type];
        return lc_json_fail(ps, CLS_INPUT, at,
                            "Trailing token (of type %s) found after value: not allowed as per "
                            "`DeserializationFeature.FAIL_ON_TRAILING_TOKENS`",
                            name);
}

int lc_json_parse_document(const lc_json_input_t *in, lc_json_t *space, lc_json_t **root, lc_err_t *err)
{
        lc_json_parser_t ps = {.start = in->text,
                               .p = in->text,
                               .end = in->text + in->len,
                               .flags = in->flags,
                               .arena = in->nodes,
                               .texts = in->texts,
                               .err = err};

        *root = NULL;
        if (lc_json_find_encoding(&ps) < 0)
                return -1;
        skip_blank(&ps);
        if (ps.p >= ps.end)
                return 0;
        if (!space && !(space = lc_arena_alloc(in->nodes, sizeof(*space))))
                return lc_json_no_memory(&ps);
        memset(space, 0, sizeof(*space));
        if (read_value(&ps, space) < 0)
                return -1;
        if (!(in->flags & LC_JSON_LENIENT) && check_rest(&ps) < 0)
                return -1;
        *root = space;
        return 0;
}

int lc_json_parse_member(const lc_json_input_t *in, lc_json_t *space, const char **end, lc_err_t *err)
{
        lc_json_parser_t ps = {.start = in->text,
                               .p = in->text,
                               .end = in->text + in->len,
                               .flags = in->flags,
                               .depth = 1,
                               .close = '}',
                               .arena = in->nodes,
                               .texts = in->texts,
                               .err = err};

        skip_blank(&ps);
        if (ps.p >= ps.end)
                return at_end(&ps, NULL);
        memset(space, 0, sizeof(*space));
        if (read_value(&ps, space) < 0)
                return -1;
        skip_blank(&ps);
        *end = ps.p;
        return 0;
}

int lc_json_parse(const char *text, size_t len, int flags, lc_json_t **doc, lc_err_t *err)
{
        lc_json_doc_t *d = malloc(sizeof(*d));
        lc_json_input_t in;
        int rc;

        *doc = NULL;
        if (!d)
                return lc_err_set(err, LC_FATAL, ENOMEM, "Out of memory while reading JSON");
        lc_arena_init(&d->arena);
        in = (lc_json_input_t){text, len, flags, &d->arena, &d->arena};
        rc = lc_json_parse_document(&in, &d->root, doc, err);
        if (rc < 0 || !*doc) {
                lc_arena_free(&d->arena);
                free(d);
                *doc = NULL;
        }
        return rc;
}

int lc_json_parse_sure(const char *text, size_t len, int flags, lc_json_t **doc, lc_err_t *err)
{
        lc_err_t own = {0};
        int rc = lc_json_parse(text, len, flags, doc, &own);

        if (rc < 0 && own.code == ENOMEM)
                lc_no_memory();
        if (rc < 0 && err && !err->kind)
                *err = own;
        return rc;
}

void lc_json_free(lc_json_t *doc)
{
        lc_json_doc_t *d = (lc_json_doc_t *)doc;

        if (!d)
                return;
        lc_arena_free(&d->arena);
        free(d);
}

const lc_json_t *lc_json_get(const lc_json_t *object, const char *key)
{
        size_t n = strlen(key);

        if (!object || object->type != LC_J_OBJECT)
                return NULL;
        for (const lc_json_t *c = object->child; c; c = c->next)
                if (c->key_len == n && !memcmp(c->key, key, n))
                        return c;
        return NULL;
}
