/*
 * schema.c - see schema.h and schema_builder.h: Connect's schemas and how they are made.
 *
 * Threads:   a finished schema is read-only, its count is atomic; a builder has one owner.
 * Ownership: a schema owns its texts, its default and references of its children (struct lc_schema_private).
 * Tests:     spec/unit/data_spec.lua
 */
#include "data/schema_builder.h"
#include "base/alloc.h"
#include "data/validate.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { LINEAR_FIELDS = 8 }; /* structs up to this size are searched without a table */

struct lc_schema_private {
        lc_arena_t arena;         /* the default value */
        const lc_schema_t **held; /* schemas of structs inside the default */
        uint32_t nheld;
        uint32_t *index; /* open hash of field numbers + 1; NULL for few fields */
        uint32_t index_mask;
        uint32_t fields_cap;
};

struct lc_schema_builder {
        lc_schema_t *s;
};

#define PLAIN(t, o)                                                                                          \
        {                                                                                                    \
                .refs = -1, .type = (t), .optional = (o)                                                     \
        }

const lc_schema_t lc_schema_string = PLAIN(LC_STRING, false);
const lc_schema_t lc_schema_optional_string = PLAIN(LC_STRING, true);
const lc_schema_t lc_schema_bytes = PLAIN(LC_BYTES, false);
const lc_schema_t lc_schema_optional_bytes = PLAIN(LC_BYTES, true);

static const lc_schema_t plain[LC_BYTES + 1][2] = {
        [LC_INT8] = {PLAIN(LC_INT8, false), PLAIN(LC_INT8, true)},
        [LC_INT16] = {PLAIN(LC_INT16, false), PLAIN(LC_INT16, true)},
        [LC_INT32] = {PLAIN(LC_INT32, false), PLAIN(LC_INT32, true)},
        [LC_INT64] = {PLAIN(LC_INT64, false), PLAIN(LC_INT64, true)},
        [LC_FLOAT32] = {PLAIN(LC_FLOAT32, false), PLAIN(LC_FLOAT32, true)},
        [LC_FLOAT64] = {PLAIN(LC_FLOAT64, false), PLAIN(LC_FLOAT64, true)},
        [LC_BOOLEAN] = {PLAIN(LC_BOOLEAN, false), PLAIN(LC_BOOLEAN, true)},
};

const lc_schema_t *lc_schema_plain(lc_type_t type, bool optional)
{
        if (type == LC_STRING)
                return optional ? &lc_schema_optional_string : &lc_schema_string;
        if (type == LC_BYTES)
                return optional ? &lc_schema_optional_bytes : &lc_schema_bytes;
        return type >= LC_INT8 && type <= LC_BOOLEAN ? &plain[type][optional] : NULL;
}

const char *lc_type_name(lc_type_t t)
{
        static const char *const names[] = {"NULL",    "INT8",    "INT16",  "INT32", "INT64",     "FLOAT32",
                                            "FLOAT64", "BOOLEAN", "STRING", "BYTES", "ARRAY",     "MAP",
                                            "STRUCT",  "DECIMAL", "DATE",   "TIME",  "TIMESTAMP", "OBJECT"};

        return (unsigned)t < sizeof(names) / sizeof(names[0]) ? names[t] : "UNKNOWN";
}

const lc_schema_t *lc_schema_ref(const lc_schema_t *s)
{
        if (s && s->refs >= 0) /* never changes sign, so the plain read is fine */
                __atomic_add_fetch((int *)&s->refs, 1, __ATOMIC_RELAXED);
        return s;
}

static void destroy(lc_schema_t *s)
{
        for (uint32_t i = 0; i < s->nfields; i++) {
                free((char *)s->fields[i].name);
                lc_schema_unref(s->fields[i].schema);
        }
        free((lc_field_t *)s->fields);
        lc_schema_unref(s->key);
        lc_schema_unref(s->elem);
        free((char *)s->name);
        free((char *)s->doc);
        lc_props_free((lc_props_t *)s->params);
        for (uint32_t i = 0; i < s->priv->nheld; i++)
                lc_schema_unref(s->priv->held[i]);
        free(s->priv->held);
        free(s->priv->index);
        lc_arena_free(&s->priv->arena);
        free(s->priv);
        free(s);
}

void lc_schema_unref(const lc_schema_t *s)
{
        if (s && s->refs >= 0 && __atomic_sub_fetch((int *)&s->refs, 1, __ATOMIC_ACQ_REL) == 0)
                destroy((lc_schema_t *)s);
}

static bool same_text(const char *a, const char *b)
{
        return a == b || (a && b && !strcmp(a, b));
}

bool lc_schema_equal(const lc_schema_t *a, const lc_schema_t *b)
{
        if (a == b)
                return true;
        if (!a || !b || a->type != b->type || a->optional != b->optional || a->nfields != b->nfields ||
            a->has_version != b->has_version || (a->has_version && a->version != b->version) ||
            a->has_default != b->has_default || !same_text(a->name, b->name) || !same_text(a->doc, b->doc))
                return false;
        if (!a->params != !b->params || (a->params && !lc_props_equal(a->params, b->params)))
                return false;
        for (uint32_t i = 0; i < a->nfields; i++)
                if (strcmp(a->fields[i].name, b->fields[i].name) != 0 ||
                    !lc_schema_equal(a->fields[i].schema, b->fields[i].schema))
                        return false;
        if (a->has_default && !lc_value_equal(&a->def, &b->def))
                return false;
        return lc_schema_equal(a->key, b->key) && lc_schema_equal(a->elem, b->elem);
}

static uint32_t hash_name(const char *s, size_t n)
{
        uint32_t h = 2166136261u;

        for (size_t i = 0; i < n; i++)
                h = (h ^ (unsigned char)s[i]) * 16777619u;
        return h;
}

int lc_schema_field_index(const lc_schema_t *s, const char *name, size_t len)
{
        const struct lc_schema_private *p = s->priv;

        if (p && p->index) {
                for (uint32_t h = hash_name(name, len);; h++) {
                        uint32_t at = p->index[h & p->index_mask];
                        if (!at)
                                return -1;
                        if (!strncmp(s->fields[at - 1].name, name, len) && !s->fields[at - 1].name[len])
                                return (int)at - 1;
                }
        }
        for (uint32_t i = 0; i < s->nfields; i++)
                if (!strncmp(s->fields[i].name, name, len) && !s->fields[i].name[len])
                        return (int)i;
        return -1;
}

static void index_field(lc_schema_t *s, uint32_t i)
{
        struct lc_schema_private *p = s->priv;
        uint32_t h = hash_name(s->fields[i].name, strlen(s->fields[i].name));

        while (p->index[h & p->index_mask])
                h++;
        p->index[h & p->index_mask] = i + 1;
}

/* The table is at most half full, so every probe ends. */
static void index_grow(lc_schema_t *s)
{
        struct lc_schema_private *p = s->priv;
        uint32_t size = 32;

        while (size < s->nfields * 4)
                size *= 2;
        free(p->index);
        p->index = lc_calloc(size, sizeof(*p->index));
        p->index_mask = size - 1;
        for (uint32_t i = 0; i < s->nfields; i++)
                index_field(s, i);
}

void lc_schema_to_string(const lc_schema_t *s, lc_buf_t *out)
{
        lc_buf_adds(out, "Schema{");
        if (s->name) {
                lc_buf_adds(out, s->name);
                lc_buf_addc(out, ':');
        }
        lc_buf_adds(out, lc_type_name(s->type));
        lc_buf_addc(out, '}');
}

/* ---- builder ---- */

lc_schema_builder_t *lc_schema_builder_new(lc_type_t type)
{
        lc_schema_builder_t *b = lc_calloc(1, sizeof(*b));

        b->s = lc_calloc(1, sizeof(*b->s));
        b->s->refs = 1;
        b->s->type = type;
        b->s->priv = lc_calloc(1, sizeof(*b->s->priv));
        lc_arena_init(&b->s->priv->arena);
        return b;
}

void lc_schema_builder_free(lc_schema_builder_t *b)
{
        if (!b)
                return;
        lc_schema_unref(b->s);
        free(b);
}

void lc_schema_builder_optional(lc_schema_builder_t *b, bool optional)
{
        b->s->optional = optional;
}

/* `logical` and `scale` are read from name and parameters, whichever comes last. */
static void find_logical(lc_schema_t *s)
{
        const char *text = s->params ? lc_props_get(s->params, "scale") : NULL;
        const char *n = s->name;
        char *end;
        long scale;

        s->logical = LC_NULL;
        s->has_scale = false;
        if (!n)
                return;
        if (!strcmp(n, LC_NAME_DECIMAL))
                s->logical = LC_DECIMAL;
        else if (!strcmp(n, LC_NAME_DATE))
                s->logical = LC_DATE;
        else if (!strcmp(n, LC_NAME_TIME))
                s->logical = LC_TIME;
        else if (!strcmp(n, LC_NAME_TIMESTAMP))
                s->logical = LC_TIMESTAMP;
        if (s->logical != LC_DECIMAL || !text ||
            !(*text == '-' || *text == '+' || (*text >= '0' && *text <= '9')))
                return;
        errno = 0;
        scale = strtol(text, &end, 10);
        if (*end || end == text || errno || scale < INT_MIN || scale > INT_MAX)
                return;
        s->scale = (int32_t)scale;
        s->has_scale = true;
}

void lc_schema_builder_name(lc_schema_builder_t *b, const char *name)
{
        char *copy = lc_strdup(name);

        free((char *)b->s->name);
        b->s->name = copy;
        find_logical(b->s);
}

void lc_schema_builder_version(lc_schema_builder_t *b, int version)
{
        b->s->has_version = true;
        b->s->version = version;
}

void lc_schema_builder_doc(lc_schema_builder_t *b, const char *doc)
{
        char *copy = lc_strdup(doc);

        free((char *)b->s->doc);
        b->s->doc = copy;
}

void lc_schema_builder_param(lc_schema_builder_t *b, const char *key, const char *value)
{
        if (!b->s->params)
                b->s->params = lc_props_new();
        lc_props_set((lc_props_t *)b->s->params, key, value);
        find_logical(b->s);
}

void lc_schema_builder_no_params(lc_schema_builder_t *b)
{
        lc_props_free((lc_props_t *)b->s->params);
        b->s->params = NULL;
        find_logical(b->s);
}

/* A default made of structs borrows their schemas: hold them as long as the default lives. */
static void hold_schemas(struct lc_schema_private *p, const lc_value_t *v)
{
        uint32_t n = 0;
        const lc_value_t *items = NULL;

        if (v->type == LC_STRUCT && v->u.st) {
                p->held = lc_realloc(p->held, (p->nheld + 1) * sizeof(*p->held));
                p->held[p->nheld++] = lc_schema_ref(v->u.st->schema);
                items = v->u.st->fields;
                n = v->u.st->schema->nfields;
        } else if (v->type == LC_ARRAY || v->type == LC_MAP) {
                items = v->u.items;
                n = v->type == LC_MAP ? v->len * 2 : v->len;
        }
        for (uint32_t i = 0; i < n; i++)
                hold_schemas(p, &items[i]);
}

static int set_default(lc_schema_t *s, const lc_value_t *value, lc_err_t *err)
{
        if (lc_value_copy(&s->priv->arena, value, &s->def) < 0)
                return lc_err_set(err, LC_FATAL, ENOMEM, "Out of memory for the default value of a schema");
        hold_schemas(s->priv, &s->def);
        s->has_default = value->type != LC_NULL;
        return 0;
}

/* Are there more than *left values? A default whose nulls stand for the defaults of inner schemas, and theirs for
 * others, doubles with each level: a text of 1 kB would be more than any memory. */
static bool too_many(const lc_value_t *v, uint32_t *left)
{
        const lc_value_t *items = v->u.items;
        size_t n = v->type == LC_ARRAY ? v->len : v->type == LC_MAP ? (size_t)v->len * 2 : 0;

        if (v->type == LC_STRUCT) {
                items = v->u.st->fields;
                n = v->u.st->schema->nfields;
        }
        if (*left < n)
                return true;
        *left -= (uint32_t)n;
        for (size_t i = 0; i < n; i++)
                if (too_many(&items[i], left))
                        return true;
        return false;
}

int lc_schema_builder_default(lc_schema_builder_t *b, const lc_value_t *value, lc_err_t *err)
{
        uint32_t left = LC_MAX_DEFAULT;
        lc_err_t why;

        lc_err_clear(&why);
        if (too_many(value, &left)) {
                lc_err_set_cls(err, LC_DATA, 0, LC_CLS_SCHEMA_BUILDER, "Invalid default value");
                if (err)
                        lc_err_cause(err, LC_CLS_DATA, "The default value has more than %d parts",
                                     LC_MAX_DEFAULT);
                return -1;
        }
        if (lc_validate_value(b->s, value, &why) < 0) {
                lc_err_set_cls(err, LC_DATA, 0, LC_CLS_SCHEMA_BUILDER, "Invalid default value");
                if (err)
                        lc_err_cause(err, LC_CLS_DATA, "%s", why.msg);
                return -1;
        }
        return set_default(b->s, value, err);
}

void lc_schema_builder_no_default(lc_schema_builder_t *b)
{
        b->s->has_default = false;
        b->s->def = lc_value_null();
}

static void add_field(lc_schema_t *s, const char *name, const lc_schema_t *type)
{
        struct lc_schema_private *p = s->priv;
        lc_field_t *fields;

        if (s->nfields == p->fields_cap) {
                p->fields_cap = p->fields_cap ? p->fields_cap * 2 : 8;
                s->fields = lc_realloc((lc_field_t *)s->fields, p->fields_cap * sizeof(*s->fields));
        }
        fields = (lc_field_t *)s->fields;
        fields[s->nfields].name = lc_strdup(name);
        fields[s->nfields].schema = lc_schema_ref(type);
        s->nfields++;
        if (p->index && s->nfields * 2 <= p->index_mask + 1)
                index_field(s, s->nfields - 1);
        else if (s->nfields > LINEAR_FIELDS)
                index_grow(s);
}

int lc_schema_builder_field(lc_schema_builder_t *b, const char *name, const lc_schema_t *s, lc_err_t *err)
{
        lc_buf_t text = LC_BUF_INIT;

        if (b->s->type != LC_STRUCT) {
                lc_schema_to_string(b->s, &text);
                lc_err_set_cls(err, LC_DATA, 0, LC_CLS_SCHEMA_BUILDER, "Cannot create fields on type %s",
                               lc_type_name(b->s->type));
                lc_buf_free(&text);
                return -1;
        }
        if (!name || !*name)
                return lc_err_set_cls(err, LC_DATA, 0, LC_CLS_SCHEMA_BUILDER, "fieldName cannot be null.");
        if (!s)
                return lc_err_set_cls(err, LC_DATA, 0, LC_CLS_SCHEMA_BUILDER,
                                      "fieldSchema for field %s cannot be null.", name);
        if (lc_schema_field_index(b->s, name, strlen(name)) >= 0)
                return lc_err_set_cls(err, LC_DATA, 0, LC_CLS_SCHEMA_BUILDER,
                                      "Cannot create field because of field name duplication %s", name);
        add_field(b->s, name, s);
        return 0;
}

void lc_schema_builder_key(lc_schema_builder_t *b, const lc_schema_t *s)
{
        lc_schema_ref(s);
        lc_schema_unref(b->s->key);
        b->s->key = s;
}

void lc_schema_builder_elem(lc_schema_builder_t *b, const lc_schema_t *s)
{
        lc_schema_ref(s);
        lc_schema_unref(b->s->elem);
        b->s->elem = s;
}

const lc_schema_t *lc_schema_builder_peek(const lc_schema_builder_t *b)
{
        return b->s;
}

const lc_schema_t *lc_schema_builder_finish(lc_schema_builder_t *b)
{
        const lc_schema_t *s = b->s;

        free(b);
        return s;
}

lc_schema_builder_t *lc_schema_builder_from(const lc_schema_t *from)
{
        lc_schema_builder_t *b = lc_schema_builder_new(from->type);
        lc_schema_t *s = b->s;

        s->optional = from->optional;
        s->has_version = from->has_version;
        s->version = from->version;
        s->doc = lc_strdup(from->doc);
        if (from->params)
                s->params = lc_props_copy(from->params);
        lc_schema_builder_name(b, from->name);
        s->key = lc_schema_ref(from->key);
        s->elem = lc_schema_ref(from->elem);
        for (uint32_t i = 0; i < from->nfields; i++)
                add_field(s, from->fields[i].name, from->fields[i].schema);
        if (from->has_default)
                lc_assert(set_default(s, &from->def, NULL) == 0);
        return b;
}

const lc_schema_t *lc_schema_logical(lc_type_t logical, int scale, bool optional)
{
        static const char *const names[] = {LC_NAME_DECIMAL, LC_NAME_DATE, LC_NAME_TIME, LC_NAME_TIMESTAMP};
        static const lc_type_t types[] = {LC_BYTES, LC_INT32, LC_INT32, LC_INT64};
        lc_schema_builder_t *b;

        lc_assert(logical >= LC_DECIMAL && logical <= LC_TIMESTAMP);
        b = lc_schema_builder_new(types[logical - LC_DECIMAL]);
        lc_schema_builder_name(b, names[logical - LC_DECIMAL]);
        lc_schema_builder_version(b, 1);
        lc_schema_builder_optional(b, optional);
        if (logical == LC_DECIMAL) {
                char *text = lc_asprintf("%d", scale);
                lc_schema_builder_param(b, "scale", text);
                free(text);
        }
        return lc_schema_builder_finish(b);
}
