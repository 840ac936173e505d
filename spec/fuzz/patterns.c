/*
 * patterns.c - fuzz target: Java's regular expressions and date patterns with texts for them. The first byte
 * chooses, then come the pattern, for expressions the replacement, and the text.
 */
#include "fuzz.h"
#include "convert/java_date.h"
#include "convert/java_regex.h"

static void regex(fuzz_t *f)
{
        char *pattern = fuzz_text(f, 200), *replacement = fuzz_text(f, 100), *text;
        lc_err_t err = {0}, err2 = {0};
        lc_java_regex_t *re = lc_java_regex_compile(pattern, &err);
        lc_buf_t out = LC_BUF_INIT;
        size_t n;

        fuzz_check((lc_java_regex_check(pattern, &err2) == 0) == (re != NULL), "check and compile differ");
        text = fuzz_rest(f, &n);
        if (re) {
                lc_err_clear(&err);
                lc_java_regex_matches(re, text, n, &err);
                lc_err_clear(&err);
                lc_java_regex_replace_first(re, text, n, replacement, &out, &err);
        } else {
                fuzz_check(err.msg[0], "a bad expression without an error");
        }
        lc_java_regex_free(re);
        lc_buf_free(&out);
        free(text);
        free(replacement);
        free(pattern);
}

static void date(fuzz_t *f)
{
        char *pattern = fuzz_text(f, 200), *text;
        int64_t ms = (int64_t)fuzz_int(f, 8) >> (fuzz_byte(f) & 63);
        lc_err_t err = {0};
        lc_java_date_t *d = lc_java_date_new(pattern, &err);
        lc_buf_t out = LC_BUF_INIT;
        size_t n;

        text = fuzz_rest(f, &n);
        if (d) {
                int64_t back;
                lc_java_date_format(d, ms, &out);
                lc_java_date_parse(d, out.p ? out.p : "", out.len, &back);
                lc_java_date_parse(d, text, n, &back);
        } else {
                fuzz_check(err.msg[0], "a bad pattern without an error");
        }
        lc_java_date_free(d);
        lc_buf_free(&out);
        free(text);
        free(pattern);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        fuzz_t f = {data, n};

        if (fuzz_byte(&f) & 1)
                date(&f);
        else
                regex(&f);
        return 0;
}
