/*
 * json.c - fuzz target: the JSON reader and writer. What can be read is written, and what is written reads as
 * the same text again; numbers, strings and the canonical form on the way.
 */
#include "fuzz.h"
#include "convert/json.h"

static void touch(const lc_json_t *node)
{
        lc_buf_t out = LC_BUF_INIT;
        bool exact;

        for (const lc_json_t *c = node->child; c; c = c->next) {
                if (node->type == LC_J_OBJECT)
                        fuzz_check(c->key != NULL, "a member without a name");
                touch(c);
        }
        if (node->type != LC_J_NUMBER)
                return;
        (void)lc_json_int64(node, &exact);
        lc_java_double(&out, lc_json_double(node));
        lc_java_float(&out, lc_json_float(node));
        lc_buf_free(&out);
}

static void round_trip(const char *text, size_t n, int flags)
{
        lc_json_t *doc = NULL, *again = NULL;
        lc_buf_t a = LC_BUF_INIT, b = LC_BUF_INIT;
        lc_err_t err = {0};

        if (lc_json_parse(text, n, flags, &doc, &err) < 0) {
                fuzz_check(err.kind == LC_DATA && err.msg[0], "a bad document without an error");
                return;
        }
        if (!doc)
                return;
        touch(doc);
        lc_json_write(&a, doc);
        fuzz_check(lc_json_parse(a.p, a.len, flags, &again, &err) == 0 && again, "own text does not parse");
        lc_json_write(&b, again);
        fuzz_check(a.len == b.len && !memcmp(a.p, b.p, a.len), "own text is not stable");
        lc_json_free(again);
        lc_buf_clear(&a);
        lc_buf_clear(&b);
        lc_json_write_canonical(&a, doc);
        fuzz_check(lc_json_parse(a.p, a.len, flags, &again, &err) == 0 && again, "canonical text does not parse");
        lc_json_write_canonical(&b, again);
        fuzz_check(a.len == b.len && !memcmp(a.p, b.p, a.len), "canonical text is not stable");
        lc_json_free(again);
        lc_json_free(doc);
        lc_buf_free(&a);
        lc_buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        fuzz_t f = {data, n};
        int flags = fuzz_byte(&f) & (LC_JSON_LENIENT | LC_JSON_BORROW);
        char *text = fuzz_rest(&f, &n);

        round_trip(text, n, flags);
        free(text);
        return 0;
}
