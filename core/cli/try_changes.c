/*
 * try_changes.c - lc_try_output_changes(): old -> new per field, for `luaconnect try --each`.
 * Main thread. Spec: spec/unit/kit_spec.lua
 */
#include "cli/try_output.h"
#include "data/schema_builder.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct changes {
        lc_try_output_t *o;
        lc_buf_t path, old, new;
        int n;
} changes_t;

static void paint(changes_t *c, const char *code)
{
        if (c->o->color)
                lc_buf_printf(&c->o->buf, "\033[%sm", code);
}

static void text_of(const lc_schema_t *s, const lc_value_t *v, lc_buf_t *out)
{
        lc_err_t err = {0};
        size_t at;

        lc_buf_clear(out);
        at = out->len;
        if (lc_json_write_value(&lc_try_json, s, v, out, &err)) {
                out->len = at;
                lc_buf_adds(out, "?");
        }
}

/* A line "path: old -> new"; one of them NULL: added or removed. */
static void line(changes_t *c, const char *old, const char *new)
{
        lc_buf_t *out = &c->o->buf;

        c->n++;
        lc_buf_adds(out, "      ");
        lc_buf_add(out, c->path.p ? c->path.p : "", c->path.len);
        lc_buf_adds(out, ": ");
        paint(c, "31");
        lc_buf_adds(out, old ? old : "(absent)");
        paint(c, "0");
        lc_buf_adds(out, " -> ");
        paint(c, "32");
        lc_buf_adds(out, new ? new : "(absent)");
        paint(c, "0");
        lc_buf_addc(out, '\n');
}

static size_t push(changes_t *c, const char *name, size_t n)
{
        size_t before = c->path.len;

        lc_buf_addc(&c->path, '.');
        lc_buf_add(&c->path, name, n);
        return before;
}

static void pop(changes_t *c, size_t before)
{
        c->path.len = before;
        c->path.p[before] = '\0';
}

/* What a value is, where its text does not tell: 7 (INT32) -> 7 (INT64). */
static void add_type(const lc_schema_t *s, const lc_value_t *v, lc_buf_t *out)
{
        lc_buf_printf(out, " (%s%s)", s && s->name ? s->name : lc_type_name((lc_type_t)v->type),
                      s ? s->optional ? ", optional" : "" : ", no schema");
}

static bool same_schema(const lc_schema_t *a, const lc_schema_t *b)
{
        return a == b || (a && b && lc_schema_equal(a, b));
}

static void leaf(changes_t *c, const lc_schema_t *as, const lc_value_t *a, const lc_schema_t *bs,
                 const lc_value_t *b)
{
        text_of(as, a, &c->old);
        text_of(bs, b, &c->new);
        if (!strcmp(c->old.p ? c->old.p : "", c->new.p ? c->new.p : "")) {
                add_type(as, a, &c->old);
                add_type(bs, b, &c->new);
        }
        line(c, c->old.p, c->new.p);
}

static void compare(changes_t *c, const lc_schema_t *as, const lc_value_t *a, const lc_schema_t *bs,
                    const lc_value_t *b);

/* Field i of a struct or, of a map with text keys, entry i. */
typedef struct member {
        const char *name;
        size_t len;
        const lc_schema_t *schema;
        const lc_value_t *value;
} member_t;

static uint32_t members(const lc_value_t *v)
{
        return v->type == LC_STRUCT ? v->u.st->schema->nfields : v->len;
}

static member_t member_at(const lc_schema_t *s, const lc_value_t *v, uint32_t i)
{
        if (v->type == LC_STRUCT) {
                const lc_field_t *f = &v->u.st->schema->fields[i];
                return (member_t){f->name, strlen(f->name), f->schema, &v->u.st->fields[i]};
        }
        return (member_t){v->u.items[2 * i].u.s, v->u.items[2 * i].len, s ? s->elem : NULL,
                          &v->u.items[2 * i + 1]};
}

static bool find(const lc_schema_t *s, const lc_value_t *v, const member_t *like, uint32_t hint,
                 member_t *out)
{
        uint32_t n = members(v);

        for (uint32_t k = 0; k < n; k++) { /* mostly at the same place */
                *out = member_at(s, v, (hint + k) % n);
                if (out->len == like->len && !memcmp(out->name, like->name, like->len))
                        return true;
        }
        return false;
}

static bool has_members(const lc_value_t *v)
{
        if (v->type == LC_STRUCT)
                return true;
        if (v->type != LC_MAP)
                return false;
        for (uint32_t i = 0; i < v->len; i++)
                if (v->u.items[2 * i].type != LC_STRING)
                        return false;
        return true;
}

static void compare_members(changes_t *c, const lc_schema_t *as, const lc_value_t *a, const lc_schema_t *bs,
                            const lc_value_t *b)
{
        uint32_t na = members(a), nb = members(b);
        member_t other;

        for (uint32_t i = 0; i < na; i++) {
                member_t m = member_at(as, a, i);
                size_t before = push(c, m.name, m.len);
                if (find(bs, b, &m, i, &other)) {
                        compare(c, m.schema, m.value, other.schema, other.value);
                } else {
                        text_of(m.schema, m.value, &c->old);
                        line(c, c->old.p, NULL);
                }
                pop(c, before);
        }
        for (uint32_t i = 0; i < nb; i++) {
                member_t m = member_at(bs, b, i);
                size_t before;
                if (find(as, a, &m, i, &other))
                        continue;
                before = push(c, m.name, m.len);
                text_of(m.schema, m.value, &c->new);
                line(c, NULL, c->new.p);
                pop(c, before);
        }
}

static void schema_name(const lc_schema_t *s, lc_buf_t *out)
{
        lc_buf_clear(out);
        if (!s)
                lc_buf_adds(out, "no schema");
        else
                lc_schema_to_string(s, out);
        if (s && s->has_version)
                lc_buf_printf(out, " version %d", s->version);
}

static void compare(changes_t *c, const lc_schema_t *as, const lc_value_t *a, const lc_schema_t *bs,
                    const lc_value_t *b)
{
        if (has_members(a) && has_members(b)) {
                if (!same_schema(as, bs)) {
                        schema_name(as, &c->old);
                        schema_name(bs, &c->new);
                        if (strcmp(c->old.p, c->new.p)) {
                                size_t before = c->path.len;
                                lc_buf_adds(&c->path, " (schema)");
                                line(c, c->old.p, c->new.p);
                                pop(c, before);
                        }
                }
                compare_members(c, as, a, bs, b);
        } else if (a->type != b->type || !lc_value_equal(a, b) || !same_schema(as, bs)) {
                leaf(c, as, a, bs, b);
        }
}

static void set_path(changes_t *c, const char *name)
{
        lc_buf_clear(&c->path);
        lc_buf_adds(&c->path, name);
}

static void compare_numbers(changes_t *c, const char *name, int64_t a, int64_t b)
{
        char x[32] = "null", y[32] = "null";

        if (a == b)
                return;
        if (a >= 0)
                snprintf(x, sizeof(x), "%" PRId64, a);
        if (b >= 0)
                snprintf(y, sizeof(y), "%" PRId64, b);
        set_path(c, name);
        line(c, x, y);
}

static bool same_header(const lc_header_t *a, const lc_header_t *b)
{
        return !strcmp(a->name, b->name) && same_schema(a->schema, b->schema) &&
               lc_value_equal(&a->value, &b->value);
}

/* Headers have an order and may repeat: what is the same at both ends is left out. */
static void compare_headers(changes_t *c, const lc_record_t *a, const lc_record_t *b)
{
        int from = 0, na = a->nheaders, nb = b->nheaders;

        while (from < na && from < nb && same_header(&a->headers[from], &b->headers[from]))
                from++;
        while (na > from && nb > from && same_header(&a->headers[na - 1], &b->headers[nb - 1])) {
                na--;
                nb--;
        }
        for (int i = from; i < na || i < nb; i++) {
                const lc_header_t *x = i < na ? &a->headers[i] : NULL, *y = i < nb ? &b->headers[i] : NULL;
                if (x && y && !strcmp(x->name, y->name)) {
                        set_path(c, "header ");
                        lc_buf_adds(&c->path, x->name);
                        compare(c, x->schema, &x->value, y->schema, &y->value);
                        continue;
                }
                if (x) {
                        set_path(c, "header ");
                        lc_buf_adds(&c->path, x->name);
                        text_of(x->schema, &x->value, &c->old);
                        line(c, c->old.p, NULL);
                }
                if (y) {
                        set_path(c, "header ");
                        lc_buf_adds(&c->path, y->name);
                        text_of(y->schema, &y->value, &c->new);
                        line(c, NULL, c->new.p);
                }
        }
}

int lc_try_output_changes(lc_try_output_t *o, const lc_record_t *a, const lc_record_t *b)
{
        changes_t c = {.o = o};

        if (strcmp(a->topic, b->topic)) {
                set_path(&c, "topic");
                line(&c, a->topic, b->topic);
        }
        compare_numbers(&c, "partition", a->partition, b->partition);
        compare_numbers(&c, "timestamp", a->timestamp, b->timestamp);
        set_path(&c, "key");
        compare(&c, a->key_schema, &a->key, b->key_schema, &b->key);
        set_path(&c, "value");
        compare(&c, a->value_schema, &a->value, b->value_schema, &b->value);
        compare_headers(&c, a, b);
        lc_buf_free(&c.path);
        lc_buf_free(&c.old);
        lc_buf_free(&c.new);
        return c.n;
}
