/*
 * json_schema.c - schemas as JSON, both ways. See json_data.h. Any thread. Spec:
 * spec/golden/converters_spec.lua
 */
#include "convert/json_data.h"
#include "data/schema_builder.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* By lc_type_t, LC_INT8 .. LC_STRUCT. */
static const char *const type_names[] = {NULL,      "int8",   "int16", "int32", "int64", "float", "double",
                                         "boolean", "string", "bytes", "array", "map",   "struct"};

static void member(lc_buf_t *out, const char *name, const char *text)
{
        lc_buf_printf(out, ",\"%s\":", name);
        lc_json_write_string(out, text, strlen(text));
}

static int write_schema(const lc_json_options_t *o, const lc_schema_t *s, const char *field, lc_buf_t *out,
                        lc_err_t *err)
{
        if (!s) {
                lc_buf_adds(out, "null");
                return 0;
        }
        lc_buf_printf(out, "{\"type\":\"%s\"", type_names[s->type]);
        if (s->type == LC_ARRAY) {
                lc_buf_adds(out, ",\"items\":");
                if (write_schema(o, s->elem, NULL, out, err) < 0)
                        return -1;
        } else if (s->type == LC_MAP) {
                lc_buf_adds(out, ",\"keys\":");
                if (write_schema(o, s->key, NULL, out, err) < 0)
                        return -1;
                lc_buf_adds(out, ",\"values\":");
                if (write_schema(o, s->elem, NULL, out, err) < 0)
                        return -1;
        } else if (s->type == LC_STRUCT) {
                lc_buf_adds(out, ",\"fields\":[");
                for (uint32_t i = 0; i < s->nfields; i++) {
                        if (i)
                                lc_buf_addc(out, ',');
                        if (write_schema(o, s->fields[i].schema, s->fields[i].name, out, err) < 0)
                                return -1;
                }
                lc_buf_addc(out, ']');
        }
        lc_buf_adds(out, s->optional ? ",\"optional\":true" : ",\"optional\":false");
        if (s->name)
                member(out, "name", s->name);
        if (s->has_version)
                lc_buf_printf(out, ",\"version\":%d", s->version);
        if (s->doc)
                member(out, "doc", s->doc);
        if (s->params) {
                lc_buf_adds(out, ",\"parameters\":");
                lc_json_write_props(out, s->params);
        }
        if (s->has_default) {
                lc_buf_adds(out, ",\"default\":");
                if (lc_json_write_value(o, s, &s->def, out, err) < 0)
                        return -1;
        }
        if (field)
                member(out, "field", field);
        lc_buf_addc(out, '}');
        return 0;
}

int lc_json_write_schema(const lc_json_options_t *o, const lc_schema_t *s, lc_buf_t *out, lc_err_t *err)
{
        return write_schema(o, s, NULL, out, err);
}

/* ---- reading ---- */

static int bad(lc_err_t *err, const char *text)
{
        return lc_err_set_cls(err, LC_DATA, 0, LC_CLS_DATA, "%s", text);
}

static bool is_text(const lc_json_t *node)
{
        return node && node->type == LC_J_STRING;
}

/* Parsed texts may be slices of the input; the builder wants them terminated, so none may hold a NUL. NULL: an
 * error is set. */
static char *terminated(const lc_json_t *node, lc_err_t *err)
{
        char *s = memchr(node->s, 0, node->len) ? NULL : malloc(node->len + 1);

        if (s) {
                memcpy(s, node->s, node->len);
                s[node->len] = '\0';
        } else if (memchr(node->s, 0, node->len)) {
                bad(err, "The names and texts of a schema may not hold the character U+0000");
        } else {
                lc_err_set(err, LC_FATAL, ENOMEM, "Out of memory while reading a schema");
        }
        return s;
}

static int child_schema(const lc_json_options_t *o, const lc_json_t *node, const char *missing,
                        void (*set)(lc_schema_builder_t *, const lc_schema_t *), lc_schema_builder_t *b,
                        lc_err_t *err)
{
        const lc_schema_t *s;

        if (!node || node->type == LC_J_NULL)
                return bad(err, missing);
        if (lc_json_read_schema(o, node, &s, err) < 0)
                return -1;
        set(b, s);
        lc_schema_unref(s);
        return 0;
}

/* Here Java looks for null only when both are read. */
static int read_map(const lc_json_options_t *o, const lc_json_t *node, lc_schema_builder_t *b, lc_err_t *err)
{
        const lc_json_t *keys = lc_json_get(node, "keys"), *values = lc_json_get(node, "values");
        const lc_schema_t *k = NULL, *v = NULL;
        int rc;

        if (!keys)
                return bad(err, "Map schema did not specify the key type");
        if (!values)
                return bad(err, "Map schema did not specify the value type");
        rc = lc_json_read_schema(o, keys, &k, err);
        if (rc == 0)
                rc = lc_json_read_schema(o, values, &v, err);
        if (rc == 0 && (!k || !v))
                rc = lc_err_set_cls(err, LC_DATA, 0, LC_CLS_SCHEMA_BUILDER, "%s cannot be null.",
                                    k ? "valueSchema" : "keySchema");
        lc_schema_builder_key(b, k);
        lc_schema_builder_elem(b, v);
        lc_schema_unref(k);
        lc_schema_unref(v);
        return rc;
}

static int read_fields(const lc_json_options_t *o, const lc_json_t *fields, lc_schema_builder_t *b,
                       lc_err_t *err)
{
        if (!fields || fields->type != LC_J_ARRAY)
                return bad(err, "Struct schema's \"fields\" argument is not an array.");
        for (const lc_json_t *f = fields->child; f; f = f->next) {
                const lc_json_t *label = lc_json_get(f, "field");
                const lc_schema_t *s = NULL;
                char *name;
                int rc;

                if (!is_text(label))
                        return bad(err, "Struct schema's field name not specified properly");
                if (lc_json_read_schema(o, f, &s, err) < 0)
                        return -1;
                name = terminated(label, err);
                rc = name ? lc_schema_builder_field(b, name, s, err) : -1;
                free(name);
                lc_schema_unref(s);
                if (rc < 0)
                        return -1;
        }
        return 0;
}

static int read_params(const lc_json_t *params, lc_schema_builder_t *b, lc_err_t *err)
{
        if (!params || params->type != LC_J_OBJECT)
                return 0;
        for (const lc_json_t *p = params->child; p; p = p->next) {
                lc_json_t key = {.s = p->key, .len = p->key_len};
                char *k, *v;

                if (!is_text(p))
                        return bad(err, "Schema parameters must have string values.");
                k = terminated(&key, err);
                v = k ? terminated(p, err) : NULL;
                if (k && v)
                        lc_schema_builder_param(b, k, v);
                free(k);
                free(v);
                if (!k || !v)
                        return -1;
        }
        return 0;
}

static int read_default(const lc_json_options_t *o, const lc_json_t *node, lc_schema_builder_t *b,
                        lc_err_t *err)
{
        const lc_schema_t *s = lc_schema_builder_peek(b);
        lc_arena_t a;
        lc_value_t v;
        int rc;

        if (!node)
                return 0;
        lc_arena_init(&a);
        rc = lc_json_read_value(o, s, node, &a, &v, err);
        if (rc == 0 &&
            v.type == LC_STRUCT) { /* Java compares the builder with the built schema and refuses */
                lc_err_set_cls(err, LC_DATA, 0, LC_CLS_SCHEMA_BUILDER, "Invalid default value");
                if (err)
                        lc_err_cause(err, LC_CLS_DATA, "Struct schemas do not match.");
                rc = -1;
        } else if (rc == 0) { /* null for a text that is a number: refused unless it is optional */
                rc = lc_schema_builder_default(b, &v, err);
        }
        lc_arena_free(&a);
        return rc;
}

static int set_text(const lc_json_t *node, void (*set)(lc_schema_builder_t *, const char *),
                    lc_schema_builder_t *b, lc_err_t *err)
{
        char *text;

        if (!is_text(node))
                return 0;
        text = terminated(node, err);
        if (!text)
                return -1;
        set(b, text);
        free(text);
        return 0;
}

static int read_attributes(const lc_json_options_t *o, const lc_json_t *node, lc_schema_builder_t *b,
                           lc_err_t *err)
{
        const lc_json_t *optional = lc_json_get(node, "optional"), *version = lc_json_get(node, "version");

        lc_schema_builder_optional(b, optional && optional->type == LC_J_TRUE);
        if (version && version->type == LC_J_NUMBER && version->integral)
                lc_schema_builder_version(b, (int32_t)lc_json_int64(version, NULL));
        if (set_text(lc_json_get(node, "name"), lc_schema_builder_name, b, err) < 0 ||
            set_text(lc_json_get(node, "doc"), lc_schema_builder_doc, b, err) < 0 ||
            read_params(lc_json_get(node, "parameters"), b, err) < 0)
                return -1;
        return read_default(o, lc_json_get(node, "default"), b, err);
}

static lc_type_t type_of(const lc_json_t *text)
{
        for (int t = LC_INT8; t <= LC_STRUCT; t++)
                if (strlen(type_names[t]) == text->len && !memcmp(type_names[t], text->s, text->len))
                        return (lc_type_t)t;
        return LC_NULL;
}

int lc_json_read_schema(const lc_json_options_t *o, const lc_json_t *node, const lc_schema_t **out,
                        lc_err_t *err)
{
        const lc_json_t *type_node = lc_json_get(node, "type");
        lc_schema_builder_t *b;
        lc_type_t type;
        int rc = 0;

        *out = NULL;
        if (node->type == LC_J_NULL)
                return 0;
        if (!is_text(type_node))
                return bad(err, "Schema must contain 'type' field");
        type = type_of(type_node);
        if (type == LC_NULL)
                return lc_err_set_cls(err, LC_DATA, 0, LC_CLS_DATA, "Unknown schema type: %.*s",
                                      type_node->len > 500 ? 500 : (int)type_node->len, type_node->s);
        b = lc_schema_builder_new(type);
        if (type == LC_ARRAY) {
                rc = child_schema(o, lc_json_get(node, "items"),
                                  "Array schema did not specify the element type", lc_schema_builder_elem, b,
                                  err);
        } else if (type == LC_MAP) {
                rc = read_map(o, node, b, err);
        } else if (type == LC_STRUCT) {
                rc = read_fields(o, lc_json_get(node, "fields"), b, err);
        }
        if (rc == 0)
                rc = read_attributes(o, node, b, err);
        if (rc < 0) {
                lc_schema_builder_free(b);
                return -1;
        }
        *out = lc_schema_builder_finish(b);
        return 0;
}
