/*
 * java_regex.c - see java_regex.h: compiled expressions, matching and replacing. The translation is in
 * java_regex_parse.c.
 *
 * Threads: one owner an expression.   Tests: spec/golden/regex_spec.lua
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "convert/java_regex.h"
#include <pcre2.h>
#include <stdlib.h>
#include "base/alloc.h"
#include "convert/java_regex_parse.h"

enum { STEPS = 2000000, HEAP_KIB = 65536, STACK_MIN = 32 * 1024, STACK_MAX = 1024 * 1024, NESTING = 2000 };

struct lc_java_regex {
        char *pattern;
        pcre2_code *whole, *find; /* anchored at both ends; not anchored */
        pcre2_match_data *data;
        pcre2_match_context *context;
        pcre2_jit_stack *stack;
        lc_strv_t names;
        int *numbers, groups;
};

static pcre2_code *compile(const char *java, const lc_buf_t *text, uint32_t options, lc_err_t *err)
{
        pcre2_compile_context *cc = pcre2_compile_context_create(NULL);
        int code;
        size_t at;
        pcre2_code *re;

        if (!cc) {
                lc_err_set(err, LC_FATAL, 0, "out of memory");
                return NULL;
        }
        pcre2_set_parens_nest_limit(cc, NESTING);
        re = pcre2_compile((PCRE2_SPTR)(text->p ? text->p : ""), text->len,
                           PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C | options, &code,
                           &at, cc);
        pcre2_compile_context_free(cc);
        if (!re) {
                PCRE2_UCHAR why[160];
                lc_buf_t b = LC_BUF_INIT;

                pcre2_get_error_message(code, why, sizeof(why));
                lc_buf_printf(&b, "Not supported by PCRE2 (%s)", (const char *)why);
                lc_java_regex_syntax(java, -1, b.p ? b.p : "", err);
                lc_buf_free(&b);
                return NULL;
        }
        pcre2_jit_compile(re, PCRE2_JIT_COMPLETE); /* where there is no JIT, the interpreter does it */
        return re;
}

lc_java_regex_t *lc_java_regex_compile(const char *pattern, lc_err_t *err)
{
        lc_java_regex_t *re = lc_calloc(1, sizeof(*re));
        lc_buf_t text = LC_BUF_INIT;

        re->pattern = lc_strdup(pattern);
        if (lc_java_regex_translate(pattern, &text, &re->names, &re->numbers, &re->groups, err))
                goto fail;
        re->whole = compile(pattern, &text, PCRE2_ANCHORED | PCRE2_ENDANCHORED, err);
        re->find = re->whole ? compile(pattern, &text, 0, err) : NULL;
        if (!re->find)
                goto fail;
        re->data = pcre2_match_data_create_from_pattern(re->find, NULL);
        re->context = pcre2_match_context_create(NULL);
        re->stack = pcre2_jit_stack_create(STACK_MIN, STACK_MAX, NULL);
        if (!re->data || !re->context) {
                lc_err_set(err, LC_FATAL, 0, "out of memory");
                goto fail;
        }
        pcre2_set_match_limit(re->context, STEPS);
        pcre2_set_heap_limit(re->context, HEAP_KIB);
        if (re->stack)
                pcre2_jit_stack_assign(re->context, NULL, re->stack);
        lc_buf_free(&text);
        return re;
fail:
        lc_buf_free(&text);
        lc_java_regex_free(re);
        return NULL;
}

void lc_java_regex_free(lc_java_regex_t *re)
{
        if (!re)
                return;
        pcre2_code_free(re->whole);
        pcre2_code_free(re->find);
        pcre2_match_data_free(re->data);
        pcre2_match_context_free(re->context);
        pcre2_jit_stack_free(re->stack);
        lc_strv_free(&re->names);
        free(re->numbers);
        free(re->pattern);
        free(re);
}

int lc_java_regex_check(const char *pattern, lc_err_t *err)
{
        lc_java_regex_t *re = lc_java_regex_compile(pattern, err);

        lc_java_regex_free(re);
        return re ? 0 : -1;
}

static int run(lc_java_regex_t *re, const pcre2_code *code, const char *s, size_t n, lc_err_t *err)
{
        int rc = pcre2_match(code, (PCRE2_SPTR)s, n, 0, 0, re->data, re->context);
        PCRE2_UCHAR why[160];

        if (rc >= 0)
                return 1;
        if (rc == PCRE2_ERROR_NOMATCH)
                return 0;
        if (rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_DEPTHLIMIT || rc == PCRE2_ERROR_HEAPLIMIT ||
            rc == PCRE2_ERROR_JIT_STACKLIMIT)
                return lc_err_set(err, LC_FATAL, 0,
                                  "The regular expression '%s' takes too many steps on a text of %zu bytes",
                                  re->pattern, n);
        pcre2_get_error_message(rc, why, sizeof(why));
        return lc_err_set(err, LC_FATAL, 0, "The regular expression '%s': %s", re->pattern,
                          (const char *)why);
}

int lc_java_regex_matches(lc_java_regex_t *re, const char *s, size_t n, lc_err_t *err)
{
        return run(re, re->whole, s, n, err);
}

#define ILLEGAL(...) lc_err_set_cls(err, LC_FATAL, 0, "java.lang.IllegalArgumentException", __VA_ARGS__)

/* ${name}, p behind the brace; *p is left behind the closing one. The group, or -1. */
static int named(const lc_java_regex_t *re, const char **p, lc_err_t *err)
{
        const char *from = *p, *end = from;
        int len;

        while ((*end >= 'a' && *end <= 'z') || (*end >= 'A' && *end <= 'Z') || (*end >= '0' && *end <= '9'))
                end++;
        if (end == from)
                return ILLEGAL("named capturing group has 0 length name");
        if (*end != '}')
                return ILLEGAL("named capturing group is missing trailing '}'");
        len = (int)(end - from);
        if (*from >= '0' && *from <= '9')
                return ILLEGAL("capturing group name {%.*s} starts with digit character", len, from);
        *p = end + 1;
        for (size_t i = 0; i < re->names.n; i++)
                if (!strncmp(re->names.v[i], from, (size_t)len) && !re->names.v[i][len])
                        return re->numbers[i];
        return ILLEGAL("No group with name {%.*s}", len, from);
}

/* $1: as many digits as there are groups for. */
static int numbered(const lc_java_regex_t *re, const char **p, lc_err_t *err)
{
        int group;

        if (!**p)
                return ILLEGAL("Illegal group reference: group index is missing");
        if (**p < '0' || **p > '9')
                return ILLEGAL("Illegal group reference");
        group = *(*p)++ - '0';
        while (**p >= '0' && **p <= '9' && group * 10 + (**p - '0') <= re->groups)
                group = group * 10 + (*(*p)++ - '0');
        if (group > re->groups)
                return lc_err_set_cls(err, LC_FATAL, 0, "java.lang.IndexOutOfBoundsException", "No group %d",
                                      group);
        return group;
}

static int expand(lc_java_regex_t *re, const char *s, const char *replacement, lc_buf_t *out, lc_err_t *err)
{
        const size_t *at = pcre2_get_ovector_pointer(re->data);
        uint32_t count = pcre2_get_ovector_count(re->data);

        for (const char *p = replacement; *p;) {
                if (*p == '\\') {
                        if (!*++p)
                                return ILLEGAL("character to be escaped is missing");
                        lc_buf_addc(out, *p++);
                } else if (*p == '$') {
                        int group;

                        p++;
                        if (*p == '{') {
                                p++;
                                group = named(re, &p, err);
                        } else {
                                group = numbered(re, &p, err);
                        }
                        if (group < 0)
                                return -1;
                        if ((uint32_t)group < count && at[2 * group] != PCRE2_UNSET)
                                lc_buf_add(out, s + at[2 * group], at[2 * group + 1] - at[2 * group]);
                } else {
                        lc_buf_addc(out, *p++);
                }
        }
        return 0;
}

int lc_java_regex_replace_first(lc_java_regex_t *re, const char *s, size_t n, const char *replacement,
                                lc_buf_t *out, lc_err_t *err)
{
        int rc = run(re, re->find, s, n, err);
        const size_t *at = pcre2_get_ovector_pointer(re->data);

        if (rc <= 0) {
                if (rc == 0)
                        lc_buf_add(out, s, n);
                return rc;
        }
        lc_buf_add(out, s, at[0]);
        if (expand(re, s, replacement, out, err))
                return -1;
        lc_buf_add(out, s + at[1], n - at[1]);
        return 0;
}
