/*
 * values.c - fuzz target: org.apache.kafka.connect.data.Values. A text is parsed, the value written, what was
 * written parsed again; casts of the text to every type.
 */
#include "fuzz.h"
#include "convert/cast.h"
#include "convert/converter.h"
#include "convert/values.h"
#include "data/validate.h"

static void casts(const lc_schema_t *schema, const lc_value_t *v, lc_arena_t *a)
{
        static const lc_type_t targets[] = {LC_INT8,    LC_INT16,   LC_INT32,   LC_INT64,
                                            LC_FLOAT32, LC_FLOAT64, LC_BOOLEAN, LC_STRING};

        for (size_t i = 0; i < sizeof(targets) / sizeof(*targets); i++) {
                lc_err_t err = {0};
                lc_value_t out;
                lc_cast_value(schema, v, targets[i], a, &out, &err);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        fuzz_t f = {data, n};
        lc_values_held_t held = {0};
        const lc_schema_t *schema = NULL;
        lc_value_t v, whole;
        lc_buf_t text = LC_BUF_INIT, java = LC_BUF_INIT;
        lc_err_t err = {0};
        lc_arena_t a;
        char *s = fuzz_rest(&f, &n);

        lc_arena_init(&a);
        whole = lc_value_string(s, n);
        casts(NULL, &whole, &a);
        if (lc_values_parse(s, n, &a, &held, &schema, &v) == 0) {
                lc_value_to_java_string(&v, schema, &java);
                casts(schema, &v, &a);
                if (schema)
                        lc_validate_value(schema, &v, &err);
                if (lc_values_to_string(&v, &text, &err) == 0 && text.p)
                        lc_values_parse(text.p, text.len, &a, &held, &schema, &v);
        }
        lc_buf_free(&java);
        lc_buf_free(&text);
        lc_arena_free(&a);
        lc_values_release(&held);
        free(s);
        return 0;
}
