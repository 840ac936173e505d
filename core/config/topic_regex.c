/*
 * topic_regex.c - see topic_regex.h: one pass over the Java expression, recursive for groups.
 *
 * Threads: any.  Tests: spec/unit/config_spec.lua
 */
#include "config/topic_regex.h"
#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include "convert/java_regex.h"

typedef struct scan {
        const char *s;
        int n, at;
        lc_buf_t *out;
        lc_err_t *err;
        int depth;
} scan_t;

/* PatternSyntaxException.getMessage(): the index, the pattern, a caret below it when it lies inside. */
static int syntax(scan_t *p, int index, const char *what)
{
        lc_buf_t b = LC_BUF_SURE;

        lc_buf_adds(&b, what);
        if (index >= 0)
                lc_buf_printf(&b, " near index %d", index);
        lc_buf_printf(&b, "\n%s", p->s);
        if (index >= 0 && index < p->n)
                lc_buf_printf(&b, "\n%*s^", index, "");
        lc_err_set_cls(p->err, LC_FATAL, 0, "java.util.regex.PatternSyntaxException", "%s", b.p ? b.p : what);
        lc_buf_free(&b);
        return -1;
}

static int unsupported(scan_t *p, const char *what)
{
        return lc_err_set(p->err, LC_FATAL, 0,
                          "%s in '%s' has no POSIX counterpart; librdkafka subscribes to topics "
                          "by POSIX extended expressions",
                          what, p->s);
}

static char peek(const scan_t *p, int ahead)
{
        return p->at + ahead < p->n ? p->s[p->at + ahead] : '\0';
}

static void literal(scan_t *p, char c)
{
        if (strchr(".[]()*+?{}|^$\\", c))
                lc_buf_addc(p->out, '\\');
        lc_buf_addc(p->out, c);
}

/* Text of the class that \d, \w ... stand for, inside brackets; NULL for other letters. */
static const char *class_of(char c)
{
        switch (c) {
        case 'd':
                return "0-9";
        case 'w':
                return "a-zA-Z0-9_";
        case 's':
                return "[:space:]";
        }
        return NULL;
}

static int escape(scan_t *p)
{
        char c = peek(p, 1);

        if (!c)
                return syntax(p, p->n, "Unexpected internal error");
        if (class_of((char)tolower(c))) {
                lc_buf_printf(p->out, "[%s%s]", isupper((unsigned char)c) ? "^" : "",
                              class_of((char)tolower(c)));
        } else if (c == 'Q') {
                const char *from = p->s + p->at + 2, *to = strstr(from, "\\E");
                const char *end = to ? to : p->s + p->n;

                while (from < end)
                        literal(p, *from++);
                p->at = (int)(end - p->s) + (to ? 2 : 0);
                return 0;
        } else if (isdigit((unsigned char)c)) {
                return unsupported(p, "a back reference");
        } else if (isalpha((unsigned char)c)) {
                if (!strchr("tnrfaexucpPbBAGZzRXhHvVkDSWN", c))
                        return syntax(p, p->at + 1, "Illegal/unsupported escape sequence");
                if (c == 't')
                        literal(p, '\t');
                else
                        return unsupported(p, "an escape (\\p, \\b, \\x, \\u and the like)");
        } else {
                literal(p, c);
        }
        p->at += 2;
        return 0;
}

/* From '[' to its ']'. Java's class, POSIX's bracket: ']' must come first, '-' last, '^' not first. */
static int bracket(scan_t *p)
{
        lc_buf_t items = LC_BUF_SURE;
        bool negated = false, has_close = false, has_dash = false, has_caret = false, any = false;
        int rc = -1;

        p->at++;
        if (peek(p, 0) == '^') {
                negated = true;
                p->at++;
        }
        for (;;) {
                char c = peek(p, 0), to;

                if (!c) {
                        syntax(p, p->n - 1, "Unclosed character class");
                        goto done;
                }
                if (c == ']' && any)
                        break;
                if (c == '[' || (c == '&' && peek(p, 1) == '&')) {
                        unsupported(p, "a union or intersection of character classes");
                        goto done;
                }
                any = true;
                if (c == '\\') {
                        char e = peek(p, 1);

                        if (e && class_of(e)) {
                                lc_buf_adds(&items, class_of(e));
                                p->at += 2;
                                continue;
                        }
                        if (!e) {
                                syntax(p, p->n - 1, "Unclosed character class");
                                goto done;
                        }
                        if (isalnum((unsigned char)e)) {
                                unsupported(p, "an escape inside a character class");
                                goto done;
                        }
                        c = e;
                        p->at++;
                }
                p->at++;
                if (peek(p, 0) == '-' && peek(p, 1) && peek(p, 1) != ']' && peek(p, 1) != '[') {
                        to = peek(p, 1);
                        if (to == '\\') {
                                unsupported(p, "an escape at the end of a range");
                                goto done;
                        }
                        if ((unsigned char)to < (unsigned char)c) {
                                syntax(p, p->at + 1, "Illegal character range");
                                goto done;
                        }
                        p->at += 2;
                        lc_buf_printf(&items, "%c-%c", c, to);
                        continue;
                }
                if (c == ']')
                        has_close = true;
                else if (c == '-')
                        has_dash = true;
                else if (c == '^')
                        has_caret = true;
                else
                        lc_buf_addc(&items, c);
        }
        p->at++;
        if (has_caret && !negated && !has_close && !items.len) /* '^' must not come first */
                lc_buf_adds(p->out, has_dash ? "[-^]" : "\\^");
        else
                lc_buf_printf(p->out, "[%s%s%s%s%s]", negated ? "^" : "", has_close ? "]" : "",
                              items.p ? items.p : "", has_caret ? "^" : "", has_dash ? "-" : "");
        rc = 0;
done:
        lc_buf_free(&items);
        return rc;
}

/* A count after an atom: * + ? {n,m}, lazy forms too (a whole match is the same). */
static int count(scan_t *p)
{
        char c = peek(p, 0);

        if (c == '*' || c == '+' || c == '?') {
                lc_buf_addc(p->out, c);
                p->at++;
        } else if (c == '{') {
                long lo = 0, hi = 0;
                int i = p->at + 1;
                char *end;

                if (!isdigit((unsigned char)peek(p, 1)))
                        return syntax(p, p->at + 1, "Illegal repetition");
                lo = hi = strtol(p->s + i, &end, 10);
                i = (int)(end - p->s);
                if (p->s[i] == ',') {
                        i++;
                        hi = -1;
                        if (isdigit((unsigned char)p->s[i])) {
                                hi = strtol(p->s + i, &end, 10);
                                i = (int)(end - p->s);
                        }
                }
                if (p->s[i] != '}')
                        return syntax(p, i, "Unclosed counted closure");
                if (lo > 255 || hi > 255 || (hi >= 0 && hi < lo)) {
                        if (hi >= 0 && hi < lo)
                                return syntax(p, i, "Illegal repetition range");
                        return unsupported(p, "a count above 255");
                }
                lc_buf_add(p->out, p->s + p->at, (size_t)(i + 1 - p->at));
                p->at = i + 1;
        } else {
                return 0;
        }
        if (peek(p, 0) == '+')
                return unsupported(p, "a possessive count");
        if (peek(p, 0) == '?')
                p->at++;
        if (peek(p, 0) == '*' || peek(p, 0) == '+' || peek(p, 0) == '?') {
                char text[40];

                snprintf(text, sizeof(text), "Dangling meta character '%c'", peek(p, 0));
                return syntax(p, p->at, text);
        }
        return 0;
}

static int alternatives(scan_t *p);

static int group(scan_t *p)
{
        p->at++;
        if (peek(p, 0) == '?') {
                char c = peek(p, 1);

                if (c == ':') {
                        p->at += 2;
                } else if (c == '<' && isalpha((unsigned char)peek(p, 2))) {
                        const char *close = strchr(p->s + p->at, '>');

                        if (!close)
                                return syntax(p, p->n, "named capturing group is missing trailing '>'");
                        p->at = (int)(close - p->s) + 1;
                } else {
                        return unsupported(p, "a special group (?...)");
                }
        }
        if (++p->depth > 100)
                return unsupported(p, "nesting deeper than 100");
        lc_buf_addc(p->out, '(');
        if (alternatives(p))
                return -1;
        if (peek(p, 0) != ')')
                return syntax(p, p->n, "Unclosed group");
        p->depth--;
        p->at++;
        lc_buf_addc(p->out, ')');
        return 0;
}

/* To the ')' of the group or the end. */
static int alternatives(scan_t *p)
{
        bool empty = true; /* this branch has no atom yet */

        while (p->at < p->n && p->s[p->at] != ')') {
                char c = p->s[p->at];
                int rc = 0;

                if (c == '|') {
                        if (empty)
                                lc_buf_adds(p->out, "()");
                        lc_buf_addc(p->out, c);
                        p->at++;
                        empty = true;
                        continue;
                }
                if (c == '*' || c == '+' || c == '?') {
                        char text[40];

                        snprintf(text, sizeof(text), "Dangling meta character '%c'", c);
                        return syntax(p, p->at, text);
                }
                if (c == '{')
                        return syntax(p, p->at + 1, "Illegal repetition");
                if (c == '(')
                        rc = group(p);
                else if (c == '[')
                        rc = bracket(p);
                else if (c == '\\')
                        rc = escape(p);
                else {
                        if (c == ']' || c == '}')
                                lc_buf_addc(p->out, '\\');
                        lc_buf_addc(p->out, c);
                        p->at++;
                }
                if (rc || count(p))
                        return -1;
                empty = false;
        }
        if (empty)
                lc_buf_adds(p->out, "()");
        return 0;
}

int lc_topic_regex_posix(const char *java, lc_buf_t *posix, lc_err_t *err)
{
        scan_t p = {java, (int)strlen(java), 0, posix, err, 0};
        regex_t re;

        lc_buf_adds(posix, "^(");
        if (alternatives(&p))
                return -1;
        if (p.at < p.n)
                return syntax(&p, p.at - 1, "Unmatched closing ')'");
        lc_buf_adds(posix, ")$");
        if (regcomp(&re, posix->p, REG_EXTENDED | REG_NOSUB))
                return unsupported(&p, "the expression");
        regfree(&re);
        return 0;
}

bool lc_topic_regex_matches(const char *java, const char *topic)
{
        lc_err_t err = {0};
        lc_java_regex_t *re = lc_java_regex_compile(java, &err);
        bool yes = re && lc_java_regex_matches(re, topic, strlen(topic), &err) > 0;

        lc_java_regex_free(re);
        return yes;
}
