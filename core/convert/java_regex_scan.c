/*
 * java_regex_scan.c - see java_regex_scan.h.
 *
 * Threads: any.   Tests: spec/golden/regex_spec.lua
 */
#include "convert/java_regex_scan.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "convert/text.h"

int lc_java_regex_syntax(const char *java, int index, const char *what, lc_err_t *err)
{
        lc_buf_t b = LC_BUF_INIT;
        int i = 0;

        lc_buf_adds(&b, what);
        if (index >= 0)
                lc_buf_printf(&b, " near index %d", index);
        lc_buf_printf(&b, "\n%s", java);
        if (index >= 0) {
                const char *p = java, *end = java + strlen(java);
                lc_buf_t pad = LC_BUF_INIT;
                size_t used;

                for (; p < end && i < index; p += used, i++) { /* index and pad count UTF-16 units */
                        i += lc_utf8_next(p, (size_t)(end - p), &used, NULL) > 0xFFFF;
                        lc_buf_addc(&pad, *p == '\t' ? '\t' : ' ');
                }
                if (p < end)
                        lc_buf_printf(&b, "\n%s^", pad.p ? pad.p : "");
                lc_buf_free(&pad);
        }
        lc_err_set_cls(err, LC_FATAL, 0, "java.util.regex.PatternSyntaxException", "%s", b.p ? b.p : what);
        lc_buf_free(&b);
        return -1;
}

int lc_regex_fail(lc_regex_parser_t *p, const char *what)
{
        lc_java_regex_syntax(p->java, p->cursor - 1, what, p->err);
        return LC_REGEX_FAILED;
}

/* What Java takes and PCRE2 does not. */
int lc_regex_refuse(lc_regex_parser_t *p, const char *what)
{
        lc_java_regex_syntax(p->java, p->cursor - 1, what, p->err);
        return LC_REGEX_FAILED;
}

bool lc_regex_has(const lc_regex_parser_t *p, int flag)
{
        return (p->flags & flag) != 0;
}

/* ---- the cursor ---- */

static bool is_space(int32_t c)
{
        return c == ' ' || (c >= 9 && c <= 13);
}

static bool line_end(const lc_regex_parser_t *p, int32_t c)
{
        return lc_regex_has(p, LC_REGEX_UNIX)
                       ? c == '\n'
                       : c == '\n' || c == '\r' || c == 0x85 || c == 0x2028 || c == 0x2029;
}

int32_t lc_regex_at(const lc_regex_parser_t *p, int i)
{
        return i >= 0 && i < p->n + 2 ? p->temp[i] : 0;
}

/* Blanks and comments at the cursor; it stands on the result afterwards. */
static int32_t past_blanks(lc_regex_parser_t *p, int32_t c)
{
        while (is_space(c) || c == '#') {
                while (is_space(c))
                        c = lc_regex_at(p, ++p->cursor);
                if (c == '#')
                        do
                                c = lc_regex_at(p, ++p->cursor);
                        while (c && !line_end(p, c));
        }
        return c;
}

/* The same, but the cursor stands behind the result. */
static int32_t read_past_blanks(lc_regex_parser_t *p, int32_t c)
{
        while (is_space(c) || c == '#') {
                while (is_space(c))
                        c = lc_regex_at(p, p->cursor++);
                if (c == '#')
                        do
                                c = lc_regex_at(p, p->cursor++);
                        while (c && !line_end(p, c));
        }
        return c;
}

int32_t lc_regex_peek(lc_regex_parser_t *p)
{
        int32_t c = lc_regex_at(p, p->cursor);

        return lc_regex_has(p, LC_REGEX_COMMENTS) ? past_blanks(p, c) : c;
}

int32_t lc_regex_read_one(lc_regex_parser_t *p)
{
        int32_t c = lc_regex_at(p, p->cursor++);

        return lc_regex_has(p, LC_REGEX_COMMENTS) ? read_past_blanks(p, c) : c;
}

int32_t lc_regex_next(lc_regex_parser_t *p)
{
        int32_t c = lc_regex_at(p, ++p->cursor);

        return lc_regex_has(p, LC_REGEX_COMMENTS) ? past_blanks(p, c) : c;
}

int32_t lc_regex_next_escaped(lc_regex_parser_t *p)
{
        return lc_regex_at(p, ++p->cursor);
}

int32_t lc_regex_skip(lc_regex_parser_t *p)
{
        int32_t c = lc_regex_at(p, p->cursor + 1);

        p->cursor += 2;
        return c;
}

bool lc_regex_is_digit(int32_t c)
{
        return c >= '0' && c <= '9';
}

bool lc_regex_is_alpha(int32_t c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int hex(int32_t c)
{
        return lc_regex_is_digit(c)   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

/* ---- escapes ---- */

static int32_t octal(lc_regex_parser_t *p)
{
        int32_t a = lc_regex_read_one(p), b, c;

        if (a < '0' || a > '7')
                return lc_regex_fail(p, "Illegal octal escape sequence");
        b = lc_regex_read_one(p);
        if (b < '0' || b > '7') {
                p->cursor--;
                return a - '0';
        }
        c = lc_regex_read_one(p);
        if (c < '0' || c > '7' || a > '3') {
                p->cursor--;
                return (a - '0') * 8 + (b - '0');
        }
        return (a - '0') * 64 + (b - '0') * 8 + (c - '0');
}

static int32_t hexadecimal(lc_regex_parser_t *p)
{
        int32_t a = lc_regex_read_one(p), b, value = 0;

        if (hex(a) >= 0) {
                b = lc_regex_read_one(p);
                if (hex(b) >= 0)
                        return hex(a) * 16 + hex(b);
        } else if (a == '{' && hex(lc_regex_peek(p)) >= 0) {
                while (hex(a = lc_regex_read_one(p)) >= 0) {
                        value = value * 16 + hex(a);
                        if (value > 0x10FFFF)
                                return lc_regex_fail(p, "Hexadecimal codepoint is too big");
                }
                if (a != '}')
                        return lc_regex_fail(p, "Unclosed hexadecimal escape sequence");
                return value;
        }
        return lc_regex_fail(p, "Illegal hexadecimal escape sequence");
}

static int32_t four_digits(lc_regex_parser_t *p)
{
        int32_t value = 0;

        for (int i = 0; i < 4; i++) {
                int d = hex(lc_regex_read_one(p));

                if (d < 0)
                        return lc_regex_fail(p, "Illegal Unicode escape sequence");
                value = value * 16 + d;
        }
        return value;
}

static int32_t unicode(lc_regex_parser_t *p)
{
        int32_t high = four_digits(p), low;

        if (high >= 0xD800 && high <= 0xDBFF) {
                int back = p->cursor;

                if (lc_regex_read_one(p) == '\\' && lc_regex_read_one(p) == 'u') {
                        low = four_digits(p);
                        if (low == LC_REGEX_FAILED)
                                return LC_REGEX_FAILED;
                        if (low >= 0xDC00 && low <= 0xDFFF)
                                return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                }
                p->cursor = back;
        }
        return high;
}

static int32_t by_name(lc_regex_parser_t *p)
{
        if (lc_regex_read_one(p) != '{')
                return lc_regex_fail(p, "Illegal character name escape sequence");
        while (lc_regex_read_one(p) != '}')
                if (p->cursor >= p->n)
                        return lc_regex_fail(p, "Unclosed character name escape sequence");
        return lc_regex_refuse(p, "Characters by name (\\N{...}) are not supported");
}

/* The name of a group from `c` on. NULL with the error set. */
char *lc_regex_group_name(lc_regex_parser_t *p, int32_t c)
{
        lc_buf_t b = LC_BUF_INIT;

        if (!lc_regex_is_alpha(c)) {
                lc_regex_fail(p, "capturing group name does not start with a Latin letter");
                return NULL;
        }
        do
                lc_buf_addc(&b, (char)c);
        while (lc_regex_is_alpha(c = lc_regex_read_one(p)) || lc_regex_is_digit(c));
        if (c != '>') {
                lc_buf_free(&b);
                lc_regex_fail(p, "named capturing group is missing trailing '>'");
                return NULL;
        }
        return lc_buf_take(&b, NULL);
}

int lc_regex_group_of(const lc_regex_parser_t *p, const char *name)
{
        for (size_t i = 0; i < p->names->n; i++)
                if (!strcmp(p->names->v[i], name))
                        return (*p->numbers)[i];
        return -1;
}

static void back_reference(lc_regex_parser_t *p, int group)
{
        p->endless = true;
        if (group > p->total) /* there is no such group: never matches */
                lc_buf_adds(p->out, "(?!)");
        else if (lc_regex_has(p, LC_REGEX_CASE))
                lc_buf_printf(p->out, "(?i:\\g{%d})", group);
        else
                lc_buf_printf(p->out, "(?:\\g{%d})", group);
}

static int numbered_reference(lc_regex_parser_t *p, int group)
{
        while (lc_regex_is_digit(lc_regex_peek(p))) {
                int more = group * 10 + (lc_regex_peek(p) - '0');

                if (more > p->groups) /* no such group so far: the digit is a literal */
                        break;
                group = more;
                lc_regex_read_one(p);
        }
        back_reference(p, group);
        return LC_REGEX_NO_CHAR;
}

static int named_reference(lc_regex_parser_t *p)
{
        char *name, what[300];
        int group;

        if (lc_regex_read_one(p) != '<')
                return lc_regex_fail(p, "\\k is not followed by '<' for named capturing group");
        name = lc_regex_group_name(p, lc_regex_read_one(p));
        if (!name)
                return LC_REGEX_FAILED;
        group = lc_regex_group_of(p, name);
        snprintf(what, sizeof(what), "named capturing group <%s> does not exist", name);
        free(name);
        if (group < 0)
                return lc_regex_fail(p, what);
        back_reference(p, group);
        return LC_REGEX_NO_CHAR;
}

#define WORD_ITEMS     "_\\p{L}\\p{Nd}"
#define WORD_ITEMS_U   "\\p{L}\\p{Nl}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}"
#define BOUNDARY(w)    "(?:(?<=[" w "])(?![" w "])|(?<![" w "])(?=[" w "]))"
#define NO_BOUNDARY(w) "(?:(?<=[" w "])(?=[" w "])|(?<![" w "])(?![" w "]))"

/* The set that \d, \W and their kin stand for. false for other letters. */
static bool class_escape(const lc_regex_parser_t *p, int32_t c, lc_set_t *set)
{
        bool u = lc_regex_has(p, LC_REGEX_UCLASS);

        switch (c | 0x20) {
        case 'd':
                lc_set_items(set, u ? "\\p{Nd}" : "0-9");
                break;
        case 'h':
                lc_set_items(set, "\\h");
                break;
        case 's':
                lc_set_items(set, u ? "\\p{Z}\\x{9}-\\x{d}\\x{85}" : " \\t\\n\\x{b}\\f\\r");
                break;
        case 'v':
                lc_set_items(set, "\\v");
                break;
        case 'w':
                lc_set_items(set, u ? WORD_ITEMS_U : "a-zA-Z_0-9");
                break;
        default:
                return false;
        }
        if (c < 'a')
                lc_set_negate(set);
        return true;
}

/* Assertions and groups of characters outside of brackets; false for other letters. */
bool lc_regex_assertion(lc_regex_parser_t *p, int32_t c)
{
        const char *text = NULL;

        switch (c) {
        case 'A':
                text = "(?:\\A)";
                break;
        case 'B':
                text = lc_regex_has(p, LC_REGEX_UCLASS) ? NO_BOUNDARY(WORD_ITEMS_U) : NO_BOUNDARY(WORD_ITEMS);
                break;
        case 'b':
                text = lc_regex_has(p, LC_REGEX_UCLASS) ? BOUNDARY(WORD_ITEMS_U) : BOUNDARY(WORD_ITEMS);
                break;
        case 'G':
                text = "(?:\\G)";
                break;
        case 'R':
                text = "(?:\\r\\n|[\\n\\x{b}\\f\\r\\x{85}\\x{2028}\\x{2029}])";
                break;
        case 'X':
                p->endless = true;
                text = "(?:\\X)";
                break;
        case 'Z':
                text = lc_regex_has(p, LC_REGEX_UNIX)
                               ? "(?=\\n?\\z)"
                               : "(?:(?=\\r\\n\\z|[\\r\\x{85}\\x{2028}\\x{2029}]\\z)|(?<!\\r)(?=\\n\\z)|\\z)";
                break;
        case 'z':
                text = "(?:\\z)";
                break;
        default:
                return false;
        }
        lc_buf_adds(p->out, text);
        return true;
}

/* At a backslash. A code point; LC_REGEX_NO_CHAR when something else was written to out (or, in a class, to
 * set); LC_REGEX_FAILED. */
int32_t lc_regex_escape(lc_regex_parser_t *p, bool in_class, bool is_range, lc_set_t *set)
{
        int32_t c = lc_regex_skip(p);

        switch (c) {
        case '0':
                return octal(p);
        case 'N':
                return by_name(p);
        case 'a':
                return 7;
        case 'c':
                if (p->cursor < p->n)
                        return lc_regex_read_one(p) ^ 64;
                return lc_regex_fail(p, "Illegal control escape sequence");
        case 'e':
                return 27;
        case 'f':
                return 12;
        case 'n':
                return 10;
        case 'r':
                return 13;
        case 't':
                return 9;
        case 'u':
                return unicode(p);
        case 'x':
                return hexadecimal(p);
        case 'v':
                if (is_range)
                        return 11;
                break;
        case 'b':
                if (!in_class && lc_regex_peek(p) == '{') {
                        if (lc_regex_skip(p) == 'g') {
                                if (lc_regex_read_one(p) == '}')
                                        return lc_regex_refuse(p, "\\b{g} is not supported");
                                return lc_regex_fail(p, "Illegal/unsupported escape sequence");
                        }
                        p->cursor -= 2;
                }
                break;
        case 'k':
                if (!in_class)
                        return named_reference(p);
                break;
        }
        if (c >= '1' && c <= '9' && !in_class)
                return numbered_reference(p, c - '0');
        if (!lc_regex_is_alpha(c) && !lc_regex_is_digit(c))
                return c;
        if (lc_regex_is_alpha(c)) {
                lc_set_t found = {LC_BUF_INIT, LC_SET_NONE};

                if (class_escape(p, c, &found)) {
                        if (in_class)
                                lc_set_union(set, &found);
                        else
                                lc_set_write(&found, p->out);
                        lc_set_free(&found);
                        return LC_REGEX_NO_CHAR;
                }
                if (!in_class && lc_regex_assertion(p, c))
                        return LC_REGEX_NO_CHAR;
        }
        return lc_regex_fail(p, "Illegal/unsupported escape sequence");
}
