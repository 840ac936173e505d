/* checked.c - see checked.h: a scanner of Lua's words, strings and comments. Spec:
 * spec/unit/strings_spec.lua. */
#include "script/checked.h"
#include <string.h>

static const char TEST[] = " if " LC_CHECKED_FLAG "[1]then " LC_CHECKED_FLAG "[2]()end " LC_CHECKED_OTHER
                           "[1]=" LC_CHECKED_OTHER "[1]+1; ";
static const char PRELUDE[] =
        "local " LC_CHECKED_FLAG "," LC_CHECKED_OTHER "=" LC_CHECKED_FLAG "," LC_CHECKED_OTHER "; ";

typedef struct scan {
        const char *p, *end;
        const char *done; /* up to here it is in `out` */
        lc_buf_t *out;
} scan_t;

static void flush(scan_t *s)
{
        lc_buf_add(s->out, s->done, (size_t)(s->p - s->done));
        s->done = s->p;
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static bool is_name(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c) || (c & 0x80);
}

/* At '[': the level of a long bracket, -1: none. */
static int long_bracket(const scan_t *s)
{
        const char *p = s->p + 1;
        int level = 0;

        while (p < s->end && *p == '=') {
                level++;
                p++;
        }
        return p < s->end && *p == '[' ? level : -1;
}

static void skip_long(scan_t *s, int level)
{
        s->p += level + 2;
        for (; s->p < s->end; s->p++) {
                const char *p = s->p + 1;
                int n = 0;

                if (*s->p != ']')
                        continue;
                while (p < s->end && *p == '=') {
                        n++;
                        p++;
                }
                if (n == level && p < s->end && *p == ']') {
                        s->p = p + 1;
                        return;
                }
        }
}

static void skip_string(scan_t *s)
{
        char quote = *s->p++;

        while (s->p < s->end && *s->p != quote)
                s->p += *s->p == '\\' && s->p + 1 < s->end ? 2
                                                           : 1; /* \z, \x, \ddd hold no quote right after \ */
        if (s->p < s->end)
                s->p++;
}

static void skip_comment(scan_t *s)
{
        int level;

        s->p += 2;
        level = s->p < s->end && *s->p == '[' ? long_bracket(s) : -1;
        if (level >= 0) {
                skip_long(s, level);
                return;
        }
        while (s->p < s->end && *s->p != '\n' && *s->p != '\r')
                s->p++;
}

/* Numbers hold letters: 0x1do is not `do`, but 1do is. */
static void skip_number(scan_t *s)
{
        char last = 0;

        while (s->p < s->end && (is_name(*s->p) || *s->p == '.' ||
                                 ((*s->p == '+' || *s->p == '-') && strchr("eEpP", last) && last)))
                last = *s->p++;
}

/* White space and comments. */
static void skip_blank(scan_t *s)
{
        for (;;) {
                if (s->p + 1 < s->end && s->p[0] == '-' && s->p[1] == '-')
                        skip_comment(s);
                else if (s->p < s->end && strchr(" \t\r\n\f\v", *s->p) && *s->p)
                        s->p++;
                else
                        return;
        }
}

static bool word_is(const char *at, size_t n, const char *word)
{
        return n == strlen(word) && !memcmp(at, word, n);
}

static bool one_of(char c, const char *set)
{
        return c && strchr(set, c);
}

static void test(scan_t *s)
{
        flush(s);
        lc_buf_add(s->out, TEST, sizeof(TEST) - 1);
}

/* `goto NAME`, not a variable called goto: those are allowed in Lua 5.1. */
static bool is_goto(const scan_t *s, char before, bool label)
{
        scan_t at = *s;

        if (one_of(before, ".,=(+-*/%^<>~#[{") || (before == ':' && !label))
                return false;
        skip_blank(&at);
        return at.p < at.end && is_name(*at.p) && !is_digit(*at.p);
}

/* The byte order mark and a first line with # stay first. */
static void skip_start(scan_t *s)
{
        if (s->end - s->p >= 3 && !memcmp(s->p, "\xef\xbb\xbf", 3))
                s->p += 3;
        if (s->p < s->end && *s->p == '#')
                while (s->p < s->end && *s->p != '\n')
                        s->p++;
}

void lc_checked_text(const char *text, size_t n, lc_checked_way_t way, lc_buf_t *out)
{
        scan_t s = {.p = text, .end = text + n, .done = text, .out = out};
        bool parameters = false; /* after `function`, before its ) */
        bool label = false;      /* the token before was the second : of :: */
        char before = 0;         /* the last byte of the token before */

        skip_start(&s);
        if (s.p < s.end && *s.p == '\n')
                s.p++;
        flush(&s);
        if (way == LC_CHECKED_LOCALS)
                lc_buf_add(out, PRELUDE, sizeof(PRELUDE) - 1);
        for (skip_blank(&s); s.p < s.end; skip_blank(&s)) {
                const char *at = s.p;
                size_t len;

                if (*at == '"' || *at == '\'') {
                        skip_string(&s);
                } else if (*at == '[' && long_bracket(&s) >= 0) {
                        skip_long(&s, long_bracket(&s));
                } else if (is_digit(*at) || (*at == '.' && at + 1 < s.end && is_digit(at[1]))) {
                        skip_number(&s);
                } else if (is_name(*at)) {
                        while (s.p < s.end && is_name(*s.p))
                                s.p++;
                        len = (size_t)(s.p - at);
                        if (word_is(at, len, "function")) {
                                parameters = true;
                        } else if (word_is(at, len, "do") || word_is(at, len, "repeat")) {
                                test(&s);
                        } else if (word_is(at, len, "goto") && way != LC_CHECKED_NO_GOTO && !parameters &&
                                   is_goto(&s, before, label)) {
                                s.p = at;
                                test(&s);
                                s.p = at + len;
                        }
                } else {
                        s.p++;
                        if (*at == ')' && parameters) {
                                parameters = false;
                                test(&s);
                        }
                }
                label = before == ':' && *at == ':';
                before = s.p[-1];
        }
        flush(&s);
}
