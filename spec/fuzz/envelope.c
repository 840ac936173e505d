/*
 * envelope.c - fuzz target: bytes through every converter to Connect data and back. JsonConverter's own output
 * reads to an equal schema and writes to the same bytes again. The first byte chooses converter and role, the
 * second JsonConverter's settings.
 */
#include "fuzz.h"
#include "convert/converter.h"
#include "convert/json_data.h"
#include "data/java_hash.h"
#include "data/validate.h"

static lc_converter_t *make(const lc_converter_class_t *cls, uint8_t bits, const char *role)
{
        lc_props_t *config = lc_props_new();
        lc_converter_t *cv;
        lc_err_t err = {0};

        if (!strcmp(cls->class_name, "org.apache.kafka.connect.json.JsonConverter")) {
                lc_props_set(config, "schemas.enable", bits & 1 ? "true" : "false");
                lc_props_set(config, "decimal.format", bits & 2 ? "NUMERIC" : "BASE64");
                lc_props_set(config, "replace.null.with.default", bits & 4 ? "true" : "false");
                lc_props_set(config, "schemas.cache.size", bits & 8 ? "1" : "1000");
        }
        cv = cls->create(cls, config, role, &err);
        lc_props_free(config);
        fuzz_check(cv != NULL, err.msg);
        return cv;
}

/* All that is asked of a value elsewhere. */
static void touch(const lc_schema_t *schema, const lc_value_t *v)
{
        lc_buf_t text = LC_BUF_INIT;
        lc_err_t err = {0};
        lc_arena_t a;
        lc_value_t copy;

        if (schema)
                lc_validate_value(schema, v, &err);
        lc_value_to_java_string(v, schema, &text);
        lc_java_hash(v);
        lc_arena_init(&a);
        fuzz_check(lc_value_copy(&a, v, &copy) == 0, "no copy");
        fuzz_check(lc_value_equal(v, &copy), "the copy differs");
        lc_arena_free(&a);
        lc_buf_free(&text);
}

/* A float without a number is written as a text, which reads as 0 where the schema says float: as in Java. */
static bool has_no_number(const lc_slice_t *out)
{
        return out->p && (memmem(out->p, out->len, "Infinity\"", 9) || memmem(out->p, out->len, "\"NaN\"", 5));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        static const char *const roles[] = {"key", "value", "header"};
        fuzz_t f = {data, n};
        uint8_t which = fuzz_byte(&f), bits = fuzz_byte(&f);
        const lc_converter_class_t *cls;
        const char *role = roles[which % 3];
        size_t classes = 0;
        lc_converter_t *cv;
        const lc_schema_t *schema = NULL, *schema2 = NULL;
        lc_value_t v, v2;
        lc_slice_t in, out, out2;
        lc_arena_t a;
        lc_err_t err = {0};
        char *bytes;

        while (lc_converter_classes[classes])
                classes++;
        which = which & 0x80 ? (uint8_t)(which % classes) : 255; /* most are JSON */
        cls = which == 255 ? lc_converter_class_find("JsonConverter") : lc_converter_classes[which];
        cv = make(cls, bits, role);
        bytes = fuzz_rest(&f, &in.len);
        in.p = bytes;
        lc_arena_init(&a);
        if (cls->to_connect(cv, "t", "h", in, &a, &schema, &v, &err) < 0)
                goto done;
        schema = lc_schema_ref(schema);
        touch(schema, &v);
        if (cls->from_connect(cv, "t", "h", schema, &v, &a, &out, &err) < 0 || which != 255 ||
            has_no_number(&out))
                goto unref;
        if (cls->to_connect(cv, "t", "h", out, &a, &schema2, &v2, &err) < 0) {
                /* a default or an optional null may be what a later reader refuses */
                fuzz_check(err.kind == LC_DATA, "own bytes fail without a data error");
                goto unref;
        }
        fuzz_check(!schema || !schema2 || lc_schema_equal(schema, schema2), "the schema changed");
        fuzz_check(cls->from_connect(cv, "t", "h", schema2, &v2, &a, &out2, &err) == 0, err.msg);
        fuzz_check(out.len == out2.len && !out.p == !out2.p &&
                           (!out.p || !memcmp(out.p, out2.p, out.len)),
                   "own bytes are not stable");
unref:
        lc_schema_unref(schema);
done:
        lc_arena_free(&a);
        cls->destroy(cv);
        free(bytes);
        return 0;
}
