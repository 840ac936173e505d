/*
 * java_regex_parse.c - see java_regex_parse.h: classes, atoms, counts and groups. What is below them is in
 * java_regex_scan.c.
 *
 * Flags are carried along and written into what comes out: `.`, `^`, `$`, `\b` and letters without case
 * become explicit PCRE2 expressions with Java's meaning.
 * Threads:   any.
 * Tests:     spec/golden/regex_spec.lua
 */
#include "convert/java_regex_parse.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "convert/java_regex_scan.h"
#include "convert/text.h"

enum { DEPTH = 400, COUNT_MAX = 65535 };

#define TERMINATORS "\\n\\r\\x{85}\\x{2028}\\x{2029}"

/* ---- classes ---- */

/* On the letter or brace behind \p or \P. */
static int family(lc_regex_parser_t *p, bool one_letter, bool complement, lc_set_t *set)
{
        lc_buf_t name = LC_BUF_INIT;
        char what[400], utf8[4];
        lc_set_t found = {LC_BUF_INIT, LC_SET_NONE};
        char *equals;
        int rc;

        lc_regex_next(p);
        if (one_letter) {
                lc_buf_add(&name, utf8, (size_t)lc_utf8_put(utf8, (uint32_t)lc_regex_at(p, p->cursor)));
                lc_regex_read_one(p);
        } else {
                int from = p->cursor;

                p->temp[p->n] = '}';
                while (lc_regex_read_one(p) != '}')
                        ;
                p->temp[p->n] = 0;
                if (p->cursor > p->n)
                        return lc_regex_fail(p, "Unclosed character family");
                if (from + 1 >= p->cursor)
                        return lc_regex_fail(p, "Empty character family");
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
                rc = lc_set_property_value(&found, name.p, equals + 1, lc_regex_has(p, LC_REGEX_CASE));
                snprintf(what, sizeof(what), "Unknown Unicode property {name=<%s>, value=<%s>}", name.p,
                         equals + 1);
        } else {
                rc = lc_set_property(&found, name.p, lc_regex_has(p, LC_REGEX_CASE),
                                     lc_regex_has(p, LC_REGEX_UCLASS));
                snprintf(what, sizeof(what),
                         rc == -2 ? "Character property {%s} is unknown or not supported by PCRE2"
                                  : "Unknown character property name {%s}",
                         name.p);
        }
        lc_buf_free(&name);
        if (rc < 0) {
                lc_set_free(&found);
                return lc_regex_fail(p, what);
        }
        if (complement)
                lc_set_negate(&found);
        lc_set_union(set, &found);
        return 0;
}

/* Behind the backslash, on p or P. */
static int property(lc_regex_parser_t *p, lc_set_t *set)
{
        bool complement = lc_regex_at(p, p->cursor) == 'P', one_letter = true;

        if (lc_regex_next(p) != '{')
                p->cursor--;
        else
                one_letter = false;
        return family(p, one_letter, complement, set);
}

static void add_range(const lc_regex_parser_t *p, lc_set_t *set, int32_t lo, int32_t hi)
{
        lc_set_range(set, lo, hi, lc_regex_has(p, LC_REGEX_CASE), lc_regex_has(p, LC_REGEX_UCASE));
}

/* One item of a class. */
static int range(lc_regex_parser_t *p, lc_set_t *set)
{
        int32_t c = lc_regex_peek(p), end, to;

        if (c == '\\') {
                bool is_range;

                c = lc_regex_next_escaped(p);
                if (c == 'p' || c == 'P')
                        return property(p, set);
                is_range = lc_regex_at(p, p->cursor + 1) == '-';
                p->cursor--;
                c = lc_regex_escape(p, true, is_range, set);
                if (c == LC_REGEX_FAILED)
                        return LC_REGEX_FAILED;
                if (c == LC_REGEX_NO_CHAR)
                        return 0;
        } else {
                lc_regex_next(p);
        }
        if (lc_regex_peek(p) == '-') {
                end = lc_regex_at(p, p->cursor + 1);
                if (end == '[') {
                        add_range(p, set, c, c);
                        return 0;
                }
                if (end != ']') {
                        lc_set_t unused = {LC_BUF_INIT, LC_SET_NONE};

                        lc_regex_next(p);
                        to = lc_regex_peek(p);
                        if (to == '\\') {
                                to = lc_regex_escape(p, true, true, &unused);
                                lc_set_free(&unused);
                                if (to == LC_REGEX_FAILED)
                                        return LC_REGEX_FAILED;
                        } else {
                                lc_regex_next(p);
                        }
                        if (to < c)
                                return lc_regex_fail(p, "Illegal character range");
                        add_range(p, set, c, to);
                        return 0;
                }
        }
        add_range(p, set, c, c);
        return 0;
}

static int class_of(lc_regex_parser_t *p, bool consume, lc_set_t *set);

/* Behind "&&": what stands to the right of it. */
static int right_side(lc_regex_parser_t *p, int32_t c, lc_set_t *right)
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
                c = lc_regex_peek(p);
        }
        return 0;
}

static int class_items(lc_regex_parser_t *p, bool consume, lc_set_t *set)
{
        lc_set_t last = {LC_BUF_INIT,
                         LC_SET_NONE}; /* what came last: "a&&" without a right side repeats it */
        bool negated = false;
        int rc = 0;
        int32_t c = lc_regex_next(p);

        if (c == '^' && lc_regex_at(p, p->cursor - 1) == '[') {
                c = lc_regex_next(p);
                negated = true;
        }
        for (; rc == 0; c = lc_regex_peek(p)) {
                lc_set_t one = {LC_BUF_INIT, LC_SET_NONE};

                if (c == '[') {
                        rc = class_of(p, true, &one);
                } else if (c == '&' && lc_regex_next(p) == '&') {
                        lc_set_t right = {LC_BUF_INIT, LC_SET_NONE};

                        rc = right_side(p, lc_regex_next(p), &right);
                        if (rc == 0 && set->kind == LC_SET_NONE && right.kind == LC_SET_NONE)
                                rc = lc_regex_fail(p, "Bad class syntax");
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
                                rc = lc_regex_fail(p, "Unclosed character class");
                                break;
                        }
                        if (c == ']' && set->kind != LC_SET_NONE) {
                                if (consume)
                                        lc_regex_next(p);
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

static int class_of(lc_regex_parser_t *p, bool consume, lc_set_t *set)
{
        int rc;

        if (++p->depth > DEPTH)
                return lc_regex_refuse(p, "The nesting is too deep");
        rc = class_items(p, consume, set);
        p->depth--;
        return rc;
}

/* ---- atoms, counts, groups ---- */

static void literal(lc_regex_parser_t *p, int32_t c)
{
        if (c >= 0xD800 && c <= 0xDFFF) {
                lc_buf_adds(p->out, "(?!)"); /* no UTF-8 text has one */
        } else if (lc_regex_has(p, LC_REGEX_CASE) &&
                   (lc_regex_is_alpha(c) || (c >= 128 && lc_regex_has(p, LC_REGEX_UCASE)))) {
                lc_set_t set = {LC_BUF_INIT, LC_SET_NONE};

                add_range(p, &set, c, c);
                lc_set_write(&set, p->out);
                lc_set_free(&set);
        } else if (lc_regex_is_alpha(c) || lc_regex_is_digit(c)) {
                lc_buf_addc(p->out, (char)c);
        } else {
                lc_buf_printf(p->out, "\\x{%x}", (unsigned)c);
        }
}

/* Behind '{', on its first digit. */
static int counts(lc_regex_parser_t *p, int *lo, int *hi)
{
        int64_t min = 0, max;
        int32_t c = lc_regex_skip(p);

        if (!lc_regex_is_digit(c))
                return lc_regex_fail(p, "Illegal repetition");
        do {
                min = min * 10 + (c - '0');
                if (min > INT32_MAX)
                        return lc_regex_fail(p, "Illegal repetition range");
        } while (lc_regex_is_digit(c = lc_regex_read_one(p)));
        max = min;
        if (c == ',') {
                c = lc_regex_read_one(p);
                max = -1;
                if (c != '}') {
                        for (max = 0; lc_regex_is_digit(c); c = lc_regex_read_one(p)) {
                                max = max * 10 + (c - '0');
                                if (max > INT32_MAX)
                                        return lc_regex_fail(p, "Illegal repetition range");
                        }
                }
        }
        if (c != '}')
                return lc_regex_fail(p, "Unclosed counted closure");
        if (max >= 0 && max < min)
                return lc_regex_fail(p, "Illegal repetition range");
        p->cursor--;
        if (min > COUNT_MAX || max > COUNT_MAX)
                return lc_regex_refuse(p, "A count above 65535 is not supported");
        *lo = (int)min;
        *hi = (int)max;
        return 0;
}

/* A count behind the atom that was written from `from` on. */
static int closure(lc_regex_parser_t *p, size_t from)
{
        int32_t c = lc_regex_peek(p);
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
        c = lc_regex_next(p);
        if (c == '?' || c == '+') {
                lc_regex_next(p);
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

static int alternatives(lc_regex_parser_t *p);

/* Letters of (?imsdux-imsdux. The cursor stands behind them. */
static void inline_flags(lc_regex_parser_t *p)
{
        static const char letters[] = "imsduxU";
        static const int bits[] = {LC_REGEX_CASE,
                                   LC_REGEX_LINES,
                                   LC_REGEX_DOTALL,
                                   LC_REGEX_UNIX,
                                   LC_REGEX_UCASE,
                                   LC_REGEX_COMMENTS,
                                   LC_REGEX_UCLASS | LC_REGEX_UCASE};
        bool off = false;

        for (int32_t c = lc_regex_peek(p);; c = lc_regex_next(p)) {
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

static int open_named(lc_regex_parser_t *p, int32_t c)
{
        char *name = lc_regex_group_name(p, c), what[300];

        if (!name)
                return LC_REGEX_FAILED;
        if (lc_regex_group_of(p, name) >= 0) {
                snprintf(what, sizeof(what), "Named capturing group <%s> is already defined", name);
                free(name);
                return lc_regex_fail(p, what);
        }
        lc_strv_add(p->names, name);
        free(name);
        *p->numbers = lc_realloc(*p->numbers, p->names->n * sizeof(**p->numbers));
        (*p->numbers)[p->names->n - 1] = ++p->groups;
        lc_buf_addc(p->out, '(');
        return 0;
}

/* From '(' to its ')' and the count behind it. */
static int group(lc_regex_parser_t *p)
{
        int save = p->flags, rc;
        size_t from = p->out->len;
        bool endless = p->endless, look = false, behind = false;
        int32_t c = lc_regex_next(p);

        if (++p->depth > DEPTH)
                return lc_regex_refuse(p, "The nesting is too deep");
        if (c != '?') {
                p->groups++;
                lc_buf_addc(p->out, '(');
        } else {
                c = lc_regex_skip(p);
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
                        c = lc_regex_read_one(p);
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
                        return lc_regex_fail(p, "Unknown group type");
                default:
                        p->cursor--;
                        inline_flags(p);
                        c = lc_regex_read_one(p);
                        if (c == ')') { /* flags for the rest of the group around */
                                p->depth--;
                                return 0;
                        }
                        if (c != ':')
                                return lc_regex_fail(p, "Unknown inline modifier");
                        lc_buf_adds(p->out, "(?:");
                }
        }
        rc = alternatives(p);
        if (rc)
                return rc;
        if (behind && p->endless)
                return lc_regex_fail(p, "Look-behind group does not have an obvious maximum length");
        c = lc_regex_read_one(p);
        if (c != ')')
                return lc_regex_fail(p, "Unclosed group");
        p->flags = save;
        p->depth--;
        lc_buf_adds(p->out, look ? "))" : ")");
        if (look)
                p->endless = endless;
        return closure(p, from);
}

static void dot(lc_regex_parser_t *p)
{
        lc_buf_adds(p->out, lc_regex_has(p, LC_REGEX_DOTALL) ? "(?s:.)"
                            : lc_regex_has(p, LC_REGEX_UNIX) ? "[^\\n]"
                                                             : "[^" TERMINATORS "]");
}

static void caret(lc_regex_parser_t *p)
{
        if (!lc_regex_has(p, LC_REGEX_LINES))
                lc_buf_adds(p->out, "(?:\\A)");
        else if (lc_regex_has(p, LC_REGEX_UNIX))
                lc_buf_adds(p->out, "(?:(?!\\z)(?:\\A|(?<=\\n)))");
        else
                lc_buf_adds(p->out, "(?:(?!\\z)(?:\\A|(?<=[\\n\\x{85}\\x{2028}\\x{2029}])|(?<=\\r)(?!\\n)))");
}

static void dollar(lc_regex_parser_t *p)
{
        if (!lc_regex_has(p, LC_REGEX_LINES))
                lc_regex_assertion(p, 'Z');
        else if (lc_regex_has(p, LC_REGEX_UNIX))
                lc_buf_adds(p->out, "(?=\\n|\\z)");
        else
                lc_buf_adds(p->out, "(?:(?=[\\r\\x{85}\\x{2028}\\x{2029}])|(?<!\\r)(?=\\n)|\\z)");
}

/* One atom without its count. */
static int atom(lc_regex_parser_t *p, int32_t c)
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
                c = lc_regex_next_escaped(p);
                if (c == 'p' || c == 'P') {
                        rc = property(p, &set);
                        if (rc == 0)
                                lc_set_write(&set, p->out);
                        break;
                }
                p->cursor--;
                c = lc_regex_escape(p, false, false, NULL);
                if (c == LC_REGEX_FAILED)
                        return LC_REGEX_FAILED;
                if (c != LC_REGEX_NO_CHAR)
                        literal(p, c);
                break;
        case '^':
                lc_regex_next(p);
                caret(p);
                break;
        case '$':
                lc_regex_next(p);
                dollar(p);
                break;
        case '.':
                lc_regex_next(p);
                dot(p);
                break;
        case '?':
        case '*':
        case '+':
                lc_regex_next(p);
                snprintf(what, sizeof(what), "Dangling meta character '%c'", (char)c);
                return lc_regex_fail(p, what);
        case '{': /* a count of nothing */
                break;
        default:
                literal(p, c);
                lc_regex_next(p);
        }
        lc_set_free(&set);
        return rc;
}

/* To the ')' of the group or the end. */
static int alternatives(lc_regex_parser_t *p)
{
        for (;;) {
                int32_t c = lc_regex_peek(p);
                size_t from = p->out->len;
                int rc;

                if (c == ')' || (c == 0 && p->cursor >= p->n))
                        return 0;
                if (c == '|') {
                        lc_buf_addc(p->out, '|');
                        lc_regex_next(p);
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
static void remove_quotes(lc_regex_parser_t *p)
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
                        if (lc_regex_is_digit(c) && first) { /* not part of an escape in front of it */
                                to[j++] = '\\';
                                to[j++] = 'x';
                                to[j++] = '3';
                        } else if (c < 128 && !lc_regex_is_alpha(c) && !lc_regex_is_digit(c)) {
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
        lc_regex_parser_t p = {.java = java, .out = out, .names = names, .numbers = numbers, .err = err};
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
                rc = lc_regex_fail(&p, lc_regex_peek(&p) == ')' ? "Unmatched closing ')'"
                                                                : "Unexpected internal error");
        free(p.temp);
        *groups = p.groups;
        if (rc == 0 && !lc_buf_ok(out))
                lc_err_set(err, LC_FATAL, 0, "out of memory");
        return rc == 0 && lc_buf_ok(out) ? 0 : -1;
}
