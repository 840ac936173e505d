/*
 * java_regex_parse.c - see java_regex_parse.h.
 *
 * A descent over the pattern's code points with a cursor that moves as java.util.regex.Pattern's does,
 * because the index in its messages is that cursor. Flags are carried here and written into what comes out:
 * `.`, `^`,
 * `$`, `\b` and letters without case become explicit PCRE2 expressions with Java's meaning.
 * Threads: any.   Tests: spec/unit/java_regex_spec.lua
 */
#include "convert/java_regex_parse.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "convert/java_regex_class.h"
#include "convert/text.h"

enum { DEPTH = 400, COUNT_MAX = 65535 };
enum { F_CASE = 1, F_LINES = 2, F_DOTALL = 4, F_UNIX = 8, F_UCASE = 16, F_COMMENTS = 32, F_UCLASS = 64 };
enum { NO_CHAR = -1, FAILED = -2 };

#define TERMINATORS "\\n\\r\\x{85}\\x{2028}\\x{2029}"

typedef struct parser {
        const char *java;
        int32_t *temp; /* code points and two zeros */
        int n, cursor, flags, depth, groups, total;
        bool endless; /* the part being read has no maximum length */
        lc_buf_t *out;
        lc_strv_t *names;
        int **numbers;
        lc_err_t *err;
} parser_t;

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

static int fail(parser_t *p, const char *what)
{
        lc_java_regex_syntax(p->java, p->cursor - 1, what, p->err);
        return FAILED;
}

/* What Java takes and PCRE2 does not. */
static int refuse(parser_t *p, const char *what)
{
        lc_java_regex_syntax(p->java, p->cursor - 1, what, p->err);
        return FAILED;
}

static bool has(const parser_t *p, int flag)
{
        return (p->flags & flag) != 0;
}

/* ---- the cursor ---- */

static bool is_space(int32_t c)
{
        return c == ' ' || (c >= 9 && c <= 13);
}

static bool line_end(const parser_t *p, int32_t c)
{
        return has(p, F_UNIX) ? c == '\n' : c == '\n' || c == '\r' || c == 0x85 || c == 0x2028 || c == 0x2029;
}

static int32_t at(const parser_t *p, int i)
{
        return i >= 0 && i < p->n + 2 ? p->temp[i] : 0;
}

/* Blanks and comments at the cursor; it stands on the result afterwards. */
static int32_t past_blanks(parser_t *p, int32_t c)
{
        while (is_space(c) || c == '#') {
                while (is_space(c))
                        c = at(p, ++p->cursor);
                if (c == '#')
                        do
                                c = at(p, ++p->cursor);
                        while (c && !line_end(p, c));
        }
        return c;
}

/* The same, but the cursor stands behind the result. */
static int32_t read_past_blanks(parser_t *p, int32_t c)
{
        while (is_space(c) || c == '#') {
                while (is_space(c))
                        c = at(p, p->cursor++);
                if (c == '#')
                        do
                                c = at(p, p->cursor++);
                        while (c && !line_end(p, c));
        }
        return c;
}

static int32_t peek(parser_t *p)
{
        int32_t c = at(p, p->cursor);

        return has(p, F_COMMENTS) ? past_blanks(p, c) : c;
}

static int32_t read_one(parser_t *p)
{
        int32_t c = at(p, p->cursor++);

        return has(p, F_COMMENTS) ? read_past_blanks(p, c) : c;
}

static int32_t next(parser_t *p)
{
        int32_t c = at(p, ++p->cursor);

        return has(p, F_COMMENTS) ? past_blanks(p, c) : c;
}

static int32_t next_escaped(parser_t *p)
{
        return at(p, ++p->cursor);
}

static int32_t skip(parser_t *p)
{
        int32_t c = at(p, p->cursor + 1);

        p->cursor += 2;
        return c;
}

static bool is_digit(int32_t c)
{
        return c >= '0' && c <= '9';
}

static bool is_alpha(int32_t c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int hex(int32_t c)
{
        return is_digit(c)            ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

/* ---- escapes ---- */

static int32_t octal(parser_t *p)
{
        int32_t a = read_one(p), b, c;

        if (a < '0' || a > '7')
                return fail(p, "Illegal octal escape sequence");
        b = read_one(p);
        if (b < '0' || b > '7') {
                p->cursor--;
                return a - '0';
        }
        c = read_one(p);
        if (c < '0' || c > '7' || a > '3') {
                p->cursor--;
                return (a - '0') * 8 + (b - '0');
        }
        return (a - '0') * 64 + (b - '0') * 8 + (c - '0');
}

static int32_t hexadecimal(parser_t *p)
{
        int32_t a = read_one(p), b, value = 0;

        if (hex(a) >= 0) {
                b = read_one(p);
                if (hex(b) >= 0)
                        return hex(a) * 16 + hex(b);
        } else if (a == '{' && hex(peek(p)) >= 0) {
                while (hex(a = read_one(p)) >= 0) {
                        value = value * 16 + hex(a);
                        if (value > 0x10FFFF)
                                return fail(p, "Hexadecimal codepoint is too big");
                }
                if (a != '}')
                        return fail(p, "Unclosed hexadecimal escape sequence");
                return value;
        }
        return fail(p, "Illegal hexadecimal escape sequence");
}

static int32_t four_digits(parser_t *p)
{
        int32_t value = 0;

        for (int i = 0; i < 4; i++) {
                int d = hex(read_one(p));

                if (d < 0)
                        return fail(p, "Illegal Unicode escape sequence");
                value = value * 16 + d;
        }
        return value;
}

static int32_t unicode(parser_t *p)
{
        int32_t high = four_digits(p), low;

        if (high >= 0xD800 && high <= 0xDBFF) {
                int back = p->cursor;

                if (read_one(p) == '\\' && read_one(p) == 'u') {
                        low = four_digits(p);
                        if (low == FAILED)
                                return FAILED;
                        if (low >= 0xDC00 && low <= 0xDFFF)
                                return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                }
                p->cursor = back;
        }
        return high;
}

static int32_t by_name(parser_t *p)
{
        if (read_one(p) != '{')
                return fail(p, "Illegal character name escape sequence");
        while (read_one(p) != '}')
                if (p->cursor >= p->n)
                        return fail(p, "Unclosed character name escape sequence");
        return refuse(p, "Characters by name (\\N{...}) are not supported");
}

/* The name of a group from `c` on. NULL with the error set. */
static char *group_name(parser_t *p, int32_t c)
{
        lc_buf_t b = LC_BUF_INIT;

        if (!is_alpha(c)) {
                fail(p, "capturing group name does not start with a Latin letter");
                return NULL;
        }
        do
                lc_buf_addc(&b, (char)c);
        while (is_alpha(c = read_one(p)) || is_digit(c));
        if (c != '>') {
                lc_buf_free(&b);
                fail(p, "named capturing group is missing trailing '>'");
                return NULL;
        }
        return lc_buf_take(&b, NULL);
}

static int group_of(const parser_t *p, const char *name)
{
        for (size_t i = 0; i < p->names->n; i++)
                if (!strcmp(p->names->v[i], name))
                        return (*p->numbers)[i];
        return -1;
}

static void back_reference(parser_t *p, int group)
{
        p->endless = true;
        if (group > p->total) /* there is no such group: never matches */
                lc_buf_adds(p->out, "(?!)");
        else if (has(p, F_CASE))
                lc_buf_printf(p->out, "(?i:\\g{%d})", group);
        else
                lc_buf_printf(p->out, "(?:\\g{%d})", group);
}

static int numbered_reference(parser_t *p, int group)
{
        while (is_digit(peek(p))) {
                int more = group * 10 + (peek(p) - '0');

                if (more > p->groups) /* no such group so far: the digit is a literal */
                        break;
                group = more;
                read_one(p);
        }
        back_reference(p, group);
        return NO_CHAR;
}

static int named_reference(parser_t *p)
{
        char *name, what[300];
        int group;

        if (read_one(p) != '<')
                return fail(p, "\\k is not followed by '<' for named capturing group");
        name = group_name(p, read_one(p));
        if (!name)
                return FAILED;
        group = group_of(p, name);
        snprintf(what, sizeof(what), "named capturing group <%s> does not exist", name);
        free(name);
        if (group < 0)
                return fail(p, what);
        back_reference(p, group);
        return NO_CHAR;
}

#define WORD_ITEMS     "_\\p{L}\\p{Nd}"
#define WORD_ITEMS_U   "\\p{L}\\p{Nl}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}"
#define BOUNDARY(w)    "(?:(?<=[" w "])(?![" w "])|(?<![" w "])(?=[" w "]))"
#define NO_BOUNDARY(w) "(?:(?<=[" w "])(?=[" w "])|(?<![" w "])(?![" w "]))"

/* The set that \d, \W and their kin stand for. false for other letters. */
static bool class_escape(const parser_t *p, int32_t c, lc_set_t *set)
{
        bool u = has(p, F_UCLASS);

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
static bool assertion(parser_t *p, int32_t c)
{
        const char *text = NULL;

        switch (c) {
        case 'A':
                text = "(?:\\A)";
                break;
        case 'B':
                text = has(p, F_UCLASS) ? NO_BOUNDARY(WORD_ITEMS_U) : NO_BOUNDARY(WORD_ITEMS);
                break;
        case 'b':
                text = has(p, F_UCLASS) ? BOUNDARY(WORD_ITEMS_U) : BOUNDARY(WORD_ITEMS);
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
                text = has(p, F_UNIX)
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

/* At a backslash. A code point; NO_CHAR when something else was written to out (or, in a class, to set);
 * FAILED. */
static int32_t escape(parser_t *p, bool in_class, bool is_range, lc_set_t *set)
{
        int32_t c = skip(p);

        switch (c) {
        case '0':
                return octal(p);
        case 'N':
                return by_name(p);
        case 'a':
                return 7;
        case 'c':
                if (p->cursor < p->n)
                        return read_one(p) ^ 64;
                return fail(p, "Illegal control escape sequence");
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
                if (!in_class && peek(p) == '{') {
                        if (skip(p) == 'g') {
                                if (read_one(p) == '}')
                                        return refuse(p, "\\b{g} is not supported");
                                return fail(p, "Illegal/unsupported escape sequence");
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
        if (!is_alpha(c) && !is_digit(c))
                return c;
        if (is_alpha(c)) {
                lc_set_t found = {LC_BUF_INIT, LC_SET_NONE};

                if (class_escape(p, c, &found)) {
                        if (in_class)
                                lc_set_union(set, &found);
                        else
                                lc_set_write(&found, p->out);
                        lc_set_free(&found);
                        return NO_CHAR;
                }
                if (!in_class && assertion(p, c))
                        return NO_CHAR;
        }
        return fail(p, "Illegal/unsupported escape sequence");
}

/* ---- classes ---- */

/* On the letter or brace behind \p or \P. */
static int family(parser_t *p, bool one_letter, bool complement, lc_set_t *set)
{
        lc_buf_t name = LC_BUF_INIT;
        char what[400], utf8[4];
        lc_set_t found = {LC_BUF_INIT, LC_SET_NONE};
        char *equals;
        int rc;

        next(p);
        if (one_letter) {
                lc_buf_add(&name, utf8, (size_t)lc_utf8_put(utf8, (uint32_t)at(p, p->cursor)));
                read_one(p);
        } else {
                int from = p->cursor;

                p->temp[p->n] = '}';
                while (read_one(p) != '}')
                        ;
                p->temp[p->n] = 0;
                if (p->cursor > p->n)
                        return fail(p, "Unclosed character family");
                if (from + 1 >= p->cursor)
                        return fail(p, "Empty character family");
                for (int i = from; i < p->cursor - 1; i++)
                        lc_buf_add(&name, utf8, (size_t)lc_utf8_put(utf8, (uint32_t)p->temp[i]));
        }
        if (!name.p)
                lc_buf_adds(&name, "");
        equals = strchr(name.p, '=');
        if (equals) {
                *equals = '\0';
                for (char *c = name.p; *c; c++)
                        if (*c >= 'A' && *c <= 'Z')
                                *c = (char)(*c + 32);
                rc = lc_set_property_value(&found, name.p, equals + 1, has(p, F_CASE));
                snprintf(what, sizeof(what), "Unknown Unicode property {name=<%s>, value=<%s>}", name.p,
                         equals + 1);
        } else {
                rc = lc_set_property(&found, name.p, has(p, F_CASE), has(p, F_UCLASS));
                snprintf(what, sizeof(what),
                         rc == -2 ? "Character property {%s} is unknown or not supported by PCRE2"
                                  : "Unknown character property name {%s}",
                         name.p);
        }
        lc_buf_free(&name);
        if (rc < 0) {
                lc_set_free(&found);
                return fail(p, what);
        }
        if (complement)
                lc_set_negate(&found);
        lc_set_union(set, &found);
        return 0;
}

/* Behind the backslash, on p or P. */
static int property(parser_t *p, lc_set_t *set)
{
        bool complement = at(p, p->cursor) == 'P', one_letter = true;

        if (next(p) != '{')
                p->cursor--;
        else
                one_letter = false;
        return family(p, one_letter, complement, set);
}

static void add_range(const parser_t *p, lc_set_t *set, int32_t lo, int32_t hi)
{
        lc_set_range(set, lo, hi, has(p, F_CASE), has(p, F_UCASE));
}

/* One item of a class. */
static int range(parser_t *p, lc_set_t *set)
{
        int32_t c = peek(p), end, to;

        if (c == '\\') {
                bool is_range;

                c = next_escaped(p);
                if (c == 'p' || c == 'P')
                        return property(p, set);
                is_range = at(p, p->cursor + 1) == '-';
                p->cursor--;
                c = escape(p, true, is_range, set);
                if (c == FAILED)
                        return FAILED;
                if (c == NO_CHAR)
                        return 0;
        } else {
                next(p);
        }
        if (peek(p) == '-') {
                end = at(p, p->cursor + 1);
                if (end == '[') {
                        add_range(p, set, c, c);
                        return 0;
                }
                if (end != ']') {
                        lc_set_t unused = {LC_BUF_INIT, LC_SET_NONE};

                        next(p);
                        to = peek(p);
                        if (to == '\\') {
                                to = escape(p, true, true, &unused);
                                lc_set_free(&unused);
                                if (to == FAILED)
                                        return FAILED;
                        } else {
                                next(p);
                        }
                        if (to < c)
                                return fail(p, "Illegal character range");
                        add_range(p, set, c, to);
                        return 0;
                }
        }
        add_range(p, set, c, c);
        return 0;
}

static int class_of(parser_t *p, bool consume, lc_set_t *set);

/* Behind "&&": what stands to the right of it. */
static int right_side(parser_t *p, int32_t c, lc_set_t *right)
{
        while (c != ']' && c != '&') {
                lc_set_t one = {LC_BUF_INIT, LC_SET_NONE};
                bool nested = c == '[';
                int rc;

                if (!nested)
                        p->cursor--;
                rc = class_of(p, nested, &one);
                if (rc == 0)
                        lc_set_union(right, &one);
                lc_set_free(&one);
                if (rc)
                        return rc;
                c = peek(p);
        }
        return 0;
}

static int class_items(parser_t *p, bool consume, lc_set_t *set)
{
        lc_set_t last = {LC_BUF_INIT,
                         LC_SET_NONE}; /* what came last: "a&&" without a right side repeats it */
        bool negated = false;
        int rc = 0;
        int32_t c = next(p);

        if (c == '^' && at(p, p->cursor - 1) == '[') {
                c = next(p);
                negated = true;
        }
        for (; rc == 0; c = peek(p)) {
                lc_set_t one = {LC_BUF_INIT, LC_SET_NONE};

                if (c == '[') {
                        rc = class_of(p, true, &one);
                } else if (c == '&' && next(p) == '&') {
                        lc_set_t right = {LC_BUF_INIT, LC_SET_NONE};

                        rc = right_side(p, next(p), &right);
                        if (rc == 0 && set->kind == LC_SET_NONE && right.kind == LC_SET_NONE)
                                rc = fail(p, "Bad class syntax");
                        else if (rc == 0 && set->kind == LC_SET_NONE)
                                lc_set_union(set, &right);
                        else if (rc == 0)
                                lc_set_intersect(set, right.kind == LC_SET_NONE ? &last : &right);
                        lc_set_free(&right);
                        continue;
                } else {
                        if (c == '&')
                                p->cursor--;
                        if (c == 0 && p->cursor >= p->n) {
                                rc = fail(p, "Unclosed character class");
                                break;
                        }
                        if (c == ']' && set->kind != LC_SET_NONE) {
                                if (consume)
                                        next(p);
                                break;
                        }
                        rc = range(p, &one);
                }
                if (rc == 0) {
                        lc_set_free(&last);
                        last.kind = one.kind;
                        lc_buf_add(&last.text, one.text.p, one.text.len);
                        lc_set_union(set, &one);
                }
                lc_set_free(&one);
        }
        lc_set_free(&last);
        if (rc == 0 && negated)
                lc_set_negate(set);
        return rc;
}

static int class_of(parser_t *p, bool consume, lc_set_t *set)
{
        int rc;

        if (++p->depth > DEPTH)
                return refuse(p, "The nesting is too deep");
        rc = class_items(p, consume, set);
        p->depth--;
        return rc;
}

/* ---- atoms, counts, groups ---- */

static void literal(parser_t *p, int32_t c)
{
        if (c >= 0xD800 && c <= 0xDFFF) {
                lc_buf_adds(p->out, "(?!)"); /* no UTF-8 text has one */
        } else if (has(p, F_CASE) && (is_alpha(c) || (c >= 128 && has(p, F_UCASE)))) {
                lc_set_t set = {LC_BUF_INIT, LC_SET_NONE};

                add_range(p, &set, c, c);
                lc_set_write(&set, p->out);
                lc_set_free(&set);
        } else if (is_alpha(c) || is_digit(c)) {
                lc_buf_addc(p->out, (char)c);
        } else {
                lc_buf_printf(p->out, "\\x{%x}", (unsigned)c);
        }
}

/* Behind '{', on its first digit. */
static int counts(parser_t *p, int *lo, int *hi)
{
        int64_t min = 0, max;
        int32_t c = skip(p);

        if (!is_digit(c))
                return fail(p, "Illegal repetition");
        do {
                min = min * 10 + (c - '0');
                if (min > INT32_MAX)
                        return fail(p, "Illegal repetition range");
        } while (is_digit(c = read_one(p)));
        max = min;
        if (c == ',') {
                c = read_one(p);
                max = -1;
                if (c != '}') {
                        for (max = 0; is_digit(c); c = read_one(p)) {
                                max = max * 10 + (c - '0');
                                if (max > INT32_MAX)
                                        return fail(p, "Illegal repetition range");
                        }
                }
        }
        if (c != '}')
                return fail(p, "Unclosed counted closure");
        if (max >= 0 && max < min)
                return fail(p, "Illegal repetition range");
        p->cursor--;
        if (min > COUNT_MAX || max > COUNT_MAX)
                return refuse(p, "A count above 65535 is not supported");
        *lo = (int)min;
        *hi = (int)max;
        return 0;
}

/* A count behind the atom that was written from `from` on. */
static int closure(parser_t *p, size_t from)
{
        int32_t c = peek(p);
        int lo = 0, hi = -1;
        char text[40], how = 0;

        if (c != '?' && c != '*' && c != '+' && c != '{')
                return 0;
        if (c == '?') {
                hi = 1;
        } else if (c == '+') {
                lo = 1;
        } else if (c == '{') {
                int rc = counts(p, &lo, &hi);

                if (rc)
                        return rc;
        }
        c = next(p);
        if (c == '?' || c == '+') {
                next(p);
                how = (char)c;
        }
        if (hi < 0)
                p->endless = true;
        if (p->out->len == from || p->out->p[from] != '(') { /* one item for PCRE2, too */
                size_t len = p->out->len - from;
                char *atom = lc_strndup(len ? p->out->p + from : "", len);

                p->out->len = from;
                lc_buf_printf(p->out, "(?:%s)", atom);
                free(atom);
        }
        if (hi < 0)
                snprintf(text, sizeof(text), "{%d,}", lo);
        else
                snprintf(text, sizeof(text), "{%d,%d}", lo, hi);
        lc_buf_adds(p->out, text);
        if (how)
                lc_buf_addc(p->out, how);
        return 0;
}

static int alternatives(parser_t *p);

/* Letters of (?imsdux-imsdux. The cursor stands behind them. */
static void inline_flags(parser_t *p)
{
        static const char letters[] = "imsduxU";
        static const int bits[] = {F_CASE,  F_LINES,    F_DOTALL,          F_UNIX,
                                   F_UCASE, F_COMMENTS, F_UCLASS | F_UCASE};
        bool off = false;

        for (int32_t c = peek(p);; c = next(p)) {
                const char *at_letter = c > 0 && c < 128 ? strchr(letters, (int)c) : NULL;

                if (c == '-' && !off)
                        off = true;
                else if (c == 'c') /* CANON_EQ: texts here are compared as they are */
                        continue;
                else if (!at_letter)
                        return;
                else if (off)
                        p->flags &= ~bits[at_letter - letters];
                else
                        p->flags |= bits[at_letter - letters];
        }
}

static int open_named(parser_t *p, int32_t c)
{
        char *name = group_name(p, c), what[300];

        if (!name)
                return FAILED;
        if (group_of(p, name) >= 0) {
                snprintf(what, sizeof(what), "Named capturing group <%s> is already defined", name);
                free(name);
                return fail(p, what);
        }
        lc_strv_add(p->names, name);
        free(name);
        *p->numbers = lc_realloc(*p->numbers, p->names->n * sizeof(**p->numbers));
        (*p->numbers)[p->names->n - 1] = ++p->groups;
        lc_buf_addc(p->out, '(');
        return 0;
}

/* From '(' to its ')' and the count behind it. */
static int group(parser_t *p)
{
        int save = p->flags, rc;
        size_t from = p->out->len;
        bool endless = p->endless, look = false, behind = false;
        int32_t c = next(p);

        if (++p->depth > DEPTH)
                return refuse(p, "The nesting is too deep");
        if (c != '?') {
                p->groups++;
                lc_buf_addc(p->out, '(');
        } else {
                c = skip(p);
                switch (c) {
                case ':':
                case '>':
                        lc_buf_adds(p->out, c == ':' ? "(?:" : "(?>");
                        break;
                case '=':
                case '!':
                        look = true;
                        lc_buf_printf(p->out, "(?:(?%c", (char)c);
                        break;
                case '<':
                        c = read_one(p);
                        if (c == '=' || c == '!') {
                                look = behind = true;
                                p->endless = false;
                                lc_buf_printf(p->out, "(?:(?<%c", (char)c);
                        } else if ((rc = open_named(p, c)) != 0) {
                                return rc;
                        }
                        break;
                case '$':
                case '@':
                        return fail(p, "Unknown group type");
                default:
                        p->cursor--;
                        inline_flags(p);
                        c = read_one(p);
                        if (c == ')') { /* flags for the rest of the group around */
                                p->depth--;
                                return 0;
                        }
                        if (c != ':')
                                return fail(p, "Unknown inline modifier");
                        lc_buf_adds(p->out, "(?:");
                }
        }
        rc = alternatives(p);
        if (rc)
                return rc;
        if (behind && p->endless)
                return fail(p, "Look-behind group does not have an obvious maximum length");
        c = at(p, p->cursor++);
        if (has(p, F_COMMENTS))
                c = read_past_blanks(p, c);
        if (c != ')')
                return fail(p, "Unclosed group");
        p->flags = save;
        p->depth--;
        lc_buf_adds(p->out, look ? "))" : ")");
        if (look)
                p->endless = endless;
        return closure(p, from);
}

static void dot(parser_t *p)
{
        lc_buf_adds(p->out, has(p, F_DOTALL) ? "(?s:.)" : has(p, F_UNIX) ? "[^\\n]" : "[^" TERMINATORS "]");
}

static void caret(parser_t *p)
{
        if (!has(p, F_LINES))
                lc_buf_adds(p->out, "(?:\\A)");
        else if (has(p, F_UNIX))
                lc_buf_adds(p->out, "(?:(?!\\z)(?:\\A|(?<=\\n)))");
        else
                lc_buf_adds(p->out, "(?:(?!\\z)(?:\\A|(?<=[\\n\\x{85}\\x{2028}\\x{2029}])|(?<=\\r)(?!\\n)))");
}

static void dollar(parser_t *p)
{
        if (!has(p, F_LINES))
                assertion(p, 'Z');
        else if (has(p, F_UNIX))
                lc_buf_adds(p->out, "(?=\\n|\\z)");
        else
                lc_buf_adds(p->out, "(?:(?=[\\r\\x{85}\\x{2028}\\x{2029}])|(?<!\\r)(?=\\n)|\\z)");
}

/* One atom without its count. */
static int atom(parser_t *p, int32_t c)
{
        lc_set_t set = {LC_BUF_INIT, LC_SET_NONE};
        char what[40];
        int rc = 0;

        switch (c) {
        case '[':
                rc = class_of(p, true, &set);
                if (rc == 0)
                        lc_set_write(&set, p->out);
                break;
        case '\\':
                c = next_escaped(p);
                if (c == 'p' || c == 'P') {
                        rc = property(p, &set);
                        if (rc == 0)
                                lc_set_write(&set, p->out);
                        break;
                }
                p->cursor--;
                c = escape(p, false, false, NULL);
                if (c == FAILED)
                        return FAILED;
                if (c != NO_CHAR)
                        literal(p, c);
                break;
        case '^':
                next(p);
                caret(p);
                break;
        case '$':
                next(p);
                dollar(p);
                break;
        case '.':
                next(p);
                dot(p);
                break;
        case '?':
        case '*':
        case '+':
                next(p);
                snprintf(what, sizeof(what), "Dangling meta character '%c'", (char)c);
                return fail(p, what);
        case '{': /* a count of nothing */
                break;
        default:
                literal(p, c);
                next(p);
        }
        lc_set_free(&set);
        return rc;
}

/* To the ')' of the group or the end. */
static int alternatives(parser_t *p)
{
        for (;;) {
                int32_t c = peek(p);
                size_t from = p->out->len;
                int rc;

                if (c == ')' || (c == 0 && p->cursor >= p->n))
                        return 0;
                if (c == '|') {
                        lc_buf_addc(p->out, '|');
                        next(p);
                        continue;
                }
                rc = c == '(' ? group(p) : atom(p, c);
                if (rc == 0 && c != '(')
                        rc = closure(p, from);
                if (rc)
                        return rc;
        }
}

/* ---- around it ---- */

/* \Q...\E becomes escaped characters, as Pattern does it before it parses. */
static void remove_quotes(parser_t *p)
{
        int32_t *to = lc_malloc(((size_t)p->n * 4 + 4) * sizeof(*to));
        int i = 0, j = 0;
        bool quoting = false, first = false, any = false;

        while (i < p->n) {
                int32_t c = p->temp[i++];

                if (c == '\\' && !quoting && i < p->n && p->temp[i] == 'Q') {
                        quoting = first = any = true;
                        i++;
                        continue;
                }
                if (!quoting) {
                        to[j++] = c;
                        if (c == '\\' && i < p->n)
                                to[j++] = p->temp[i++];
                } else if (c == '\\' && i < p->n && p->temp[i] == 'E') {
                        quoting = false;
                        i++;
                } else {
                        if (is_digit(c) && first) { /* not part of an escape in front of it */
                                to[j++] = '\\';
                                to[j++] = 'x';
                                to[j++] = '3';
                        } else if (c < 128 && !is_alpha(c) && !is_digit(c)) {
                                to[j++] = '\\';
                        }
                        to[j++] = c;
                }
                first = false;
        }
        if (!any) {
                free(to);
                return;
        }
        to[j] = to[j + 1] = 0;
        free(p->temp);
        p->temp = to;
        p->n = j;
}

int lc_java_regex_translate(const char *java, lc_buf_t *out, lc_strv_t *names, int **numbers, int *groups,
                            lc_err_t *err)
{
        size_t bytes = strlen(java), used;
        parser_t p = {.java = java, .out = out, .names = names, .numbers = numbers, .err = err};
        int rc;

        p.temp = lc_calloc(bytes + 2, sizeof(*p.temp));
        for (size_t i = 0; i < bytes; i += used)
                p.temp[p.n++] = (int32_t)lc_utf8_next(java + i, bytes - i, &used, NULL);
        remove_quotes(&p);
        p.total = INT_MAX;
        rc = alternatives(&p);
        if (rc == 0 && p.cursor == p.n) { /* once more, now that the number of groups is known */
                p.total = p.groups;
                p.cursor = p.flags = p.depth = p.groups = 0;
                lc_strv_free(names);
                lc_buf_clear(out);
                rc = alternatives(&p);
        }
        if (rc == 0 && p.cursor != p.n)
                rc = fail(&p, peek(&p) == ')' ? "Unmatched closing ')'" : "Unexpected internal error");
        free(p.temp);
        *groups = p.groups;
        if (rc == 0 && !lc_buf_ok(out))
                lc_err_set(err, LC_FATAL, 0, "out of memory");
        return rc == 0 && lc_buf_ok(out) ? 0 : -1;
}
