/*
 * validate.c - see validate.h. Any thread; owns nothing. Spec: spec/unit/data_spec.lua.
 */
#include "data/validate.h"
#include "data/schema_builder.h"
#include <stdio.h>
#include <string.h>

/* Where we are is a chain on the stack; its text is only made for an error. */
typedef struct place {
        const struct place *outer;
        const char *what;  /* "element of array ", "key of map ", "value of map "; NULL: the start */
        const char *field; /* of the start; NULL: "value" */
} place_t;

static void place_text(const place_t *p, lc_buf_t *out)
{
        for (; p->what; p = p->outer)
                lc_buf_adds(out, p->what);
        if (p->field)
                lc_buf_printf(out, "field: \"%s\"", p->field);
        else
                lc_buf_adds(out, "value");
}

const char *lc_value_java_class(const lc_value_t *v)
{
        switch ((lc_type_t)v->type) {
        case LC_INT8:
                return "java.lang.Byte";
        case LC_INT16:
                return "java.lang.Short";
        case LC_INT32:
                return "java.lang.Integer";
        case LC_INT64:
                return "java.lang.Long";
        case LC_FLOAT32:
                return "java.lang.Float";
        case LC_FLOAT64:
                return "java.lang.Double";
        case LC_BOOLEAN:
                return "java.lang.Boolean";
        case LC_STRING:
                return "java.lang.String";
        case LC_BYTES:
                return v->flags & LC_VF_BYTEBUFFER ? "java.nio.HeapByteBuffer" : "[B";
        case LC_ARRAY:
                return "java.util.ArrayList";
        case LC_MAP:
                return "java.util.HashMap";
        case LC_STRUCT:
                return "org.apache.kafka.connect.data.Struct";
        case LC_DECIMAL:
                return v->flags & LC_VF_BIGINT ? "java.math.BigInteger" : "java.math.BigDecimal";
        case LC_DATE:
        case LC_TIME:
        case LC_TIMESTAMP:
                return "java.util.Date";
        case LC_OBJECT:
                return v->u.s ? v->u.s : "java.lang.Object";
        case LC_NULL:
                break;
        }
        return "null";
}

bool lc_value_fits(const lc_schema_t *schema, const lc_value_t *v)
{
        switch (schema->logical) {
        case LC_DECIMAL:
                return v->type == LC_DECIMAL && !(v->flags & LC_VF_BIGINT);
        case LC_DATE:
        case LC_TIME:
        case LC_TIMESTAMP: /* one Java class */
                return v->type == LC_DATE || v->type == LC_TIME || v->type == LC_TIMESTAMP;
        default:
                return v->type == schema->type;
        }
}

static int fail_class(const lc_schema_t *schema, const lc_value_t *v, const place_t *at, lc_err_t *err)
{
        lc_buf_t b = LC_BUF_INIT;

        lc_buf_adds(&b, "Invalid Java object for schema");
        if (schema->name)
                lc_buf_printf(&b, " \"%s\"", schema->name);
        lc_buf_printf(&b, " with type %s: class %s for ", lc_type_name(schema->type), lc_value_java_class(v));
        place_text(at, &b);
        lc_err_set_cls(err, LC_DATA, 0, LC_CLS_DATA, "%s", b.p ? b.p : "Invalid Java object for schema");
        lc_buf_free(&b);
        return -1;
}

static int fail_null(const lc_schema_t *schema, const place_t *at, lc_err_t *err)
{
        lc_buf_t b = LC_BUF_INIT;

        lc_buf_adds(&b, "Invalid value: null used for required ");
        place_text(at, &b);
        lc_err_set_cls(err, LC_DATA, 0, LC_CLS_DATA, "%s, schema type: %s", b.p ? b.p : "",
                       lc_type_name(schema->type));
        lc_buf_free(&b);
        return -1;
}

static int check(const lc_schema_t *schema, const lc_value_t *v, const place_t *at, lc_err_t *err)
{
        place_t in = {.outer = at};

        if (v->type == LC_NULL)
                return schema->optional ? 0 : fail_null(schema, at, err);
        if (!lc_value_fits(schema, v))
                return fail_class(schema, v, at, err);
        switch (schema->logical ? LC_NULL : schema->type) {
        case LC_STRUCT:
                if (!lc_schema_equal(v->u.st->schema, schema))
                        return lc_err_set_cls(err, LC_DATA, 0, LC_CLS_DATA, "Struct schemas do not match.");
                return lc_validate_struct(v->u.st, err);
        case LC_ARRAY:
                in.what = "element of array ";
                for (uint32_t i = 0; schema->elem && i < v->len; i++)
                        if (check(schema->elem, &v->u.items[i], &in, err) < 0)
                                return -1;
                return 0;
        case LC_MAP:
                for (uint32_t i = 0; i < v->len; i++) {
                        in.what = "key of map ";
                        if (schema->key && check(schema->key, &v->u.items[2 * i], &in, err) < 0)
                                return -1;
                        in.what = "value of map ";
                        if (schema->elem && check(schema->elem, &v->u.items[2 * i + 1], &in, err) < 0)
                                return -1;
                }
                return 0;
        default:
                return 0;
        }
}

int lc_validate_value(const lc_schema_t *schema, const lc_value_t *value, lc_err_t *err)
{
        place_t top = {0};

        return check(schema, value, &top, err);
}

int lc_validate_field(const char *field, const lc_schema_t *schema, const lc_value_t *value, lc_err_t *err)
{
        place_t top = {.field = field};

        return check(schema, value, &top, err);
}

int lc_validate_struct(const lc_struct_value_t *st, lc_err_t *err)
{
        for (uint32_t i = 0; i < st->schema->nfields; i++) {
                const lc_field_t *f = &st->schema->fields[i];

                if (st->fields[i].type == LC_NULL && (f->schema->optional || f->schema->has_default))
                        continue;
                if (lc_validate_field(f->name, f->schema, &st->fields[i], err) < 0)
                        return -1;
        }
        return 0;
}
