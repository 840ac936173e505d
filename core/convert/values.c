/*
 * values.c - the grammar of header texts: Kafka Connect's Values.parseString, tokens, rewinds and all.
 *
 * Threads:   any; a parser lives on the stack.
 * Tests:     spec/golden/converters_spec.lua
 */
#include "convert/values.h"
#include "base/alloc.h"
#include "convert/cast.h"
#include "convert/converter.h"
#include "convert/json.h"
#include "convert/text.h"
#include "data/decimal.h"
#include "data/java_hash.h"
#include "data/schema_builder.h"
#include "data/validate.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 1000 };
enum { OK = 0, OOM = -1, REFUSED = -2 /* a DataException */, BROKEN = -3 /* anything else */ };

typedef struct token {
        const char *p;
        size_t n;
} token_t;

typedef struct parser {
        const char *text, *end, *at;
        token_t next; /* p NULL: none read ahead */
        int depth;
        lc_arena_t *arena;
        lc_values_held_t *held;
} parser_t;

typedef struct typed {
        const lc_schema_t *schema; /* NULL: Java's null result */
        lc_value_t value;
} typed_t;

void lc_values_release(lc_values_held_t *h)
{
        for (size_t i = 0; i < h->n; i++)
                lc_schema_unref(h->v[i]);
        free(h->v);
        memset(h, 0, sizeof(*h));
}

static const lc_schema_t *hold(parser_t *ps, const lc_schema_t *s)
{
        lc_values_held_t *h = ps->held;

        if (s->refs < 0)
                return s;
        if (h->n == h->cap) {
                h->cap = h->cap ? h->cap * 2 : 8;
                h->v = lc_realloc(h->v, h->cap * sizeof(*h->v));
        }
        h->v[h->n++] = s;
        return s;
}

/* ---- tokens ---- */

static token_t trim(token_t t)
{
        while (t.n && (unsigned char)t.p[t.n - 1] <= ' ')
                t.n--;
        while (t.n && (unsigned char)*t.p <= ' ') {
                t.p++;
                t.n--;
        }
        return t;
}

static bool special(char c)
{
        return c == ':' || c == ',' || c == '{' || c == '}' || c == '[' || c == ']' || c == '"';
}

static token_t consume(parser_t *ps)
{
        const char *start = ps->at;
        bool escaped = false;

        for (; ps->at < ps->end; ps->at++) {
                char c = *ps->at;

                if (c == '\\') {
                        escaped = !escaped;
                        continue;
                }
                if (special(c) && !escaped) {
                        if (ps->at == start)
                                ps->at++;
                        break;
                }
                escaped = false;
        }
        return (token_t){start, (size_t)(ps->at - start)};
}

static const char *mark(const parser_t *ps)
{
        return ps->at - (ps->next.p ? ps->next.n : 0);
}

static void rewind_to(parser_t *ps, const char *at)
{
        ps->at = at;
        ps->next.p = NULL;
}

static bool has_next(const parser_t *ps)
{
        return ps->next.p || ps->at < ps->end;
}

static token_t next_token(parser_t *ps)
{
        token_t t = ps->next.p ? ps->next : consume(ps);

        ps->next.p = NULL;
        return t;
}

/* Kafka's Utils.isBlank(): nothing is left after trim(). */
static bool is_blank(token_t t)
{
        return trim(t).n == 0;
}

/* Blank tokens before the next one are lost, blanks inside a token stay. */
static bool can_consume(parser_t *ps, const char *expected)
{
        size_t n = strlen(expected);
        token_t t;

        if (!ps->next.p) {
                if (!has_next(ps))
                        return false;
                ps->next = consume(ps);
        }
        while (is_blank(ps->next) && ps->at < ps->end)
                ps->next = consume(ps);
        t = trim(ps->next);
        if (t.n != n || memcmp(t.p, expected, n) != 0)
                return false;
        ps->next.p = NULL;
        return true;
}

static bool single_literal(parser_t *ps, bool embedded, const char *word)
{
        const char *start = mark(ps);

        if (can_consume(ps, word) && (embedded || !has_next(ps)))
                return true;
        rewind_to(ps, start);
        return false;
}

/* ---- scalars ---- */

static void take_string(typed_t *out, const char *p, size_t n)
{
        out->schema = &lc_schema_string;
        out->value = lc_value_string(p, n);
}

static bool take_temporal(parser_t *ps, const char *p, size_t n, typed_t *out)
{
        lc_type_t type;
        int64_t ms;

        if (!lc_values_parse_temporal(p, n, &type, &ms))
                return false;
        out->schema = hold(ps, lc_schema_logical(type, 0, false));
        out->value = (lc_value_t){.type = (uint8_t)type, .u.i = ms};
        return true;
}

static void take_int(int64_t i, typed_t *out)
{
        lc_type_t t = i == (int8_t)i    ? LC_INT8
                      : i == (int16_t)i ? LC_INT16
                      : i == (int32_t)i ? LC_INT32
                                        : LC_INT64;

        out->schema = lc_schema_plain(t, false);
        out->value = (lc_value_t){.type = (uint8_t)t, .u.i = i};
}

/* BigDecimal takes the digits of all scripts: the token with ASCII digits. false when memory is out. */
static bool plain_digits(parser_t *ps, token_t *t)
{
        char *copy;
        size_t n = 0, used;

        if (lc_text_ascii(t->p, t->n))
                return true;
        copy = lc_arena_alloc(ps->arena, t->n);
        if (!copy)
                return false;
        for (size_t i = 0; i < t->n; i += used) {
                int d = lc_java_digit(lc_utf8_next(t->p + i, t->n - i, &used, NULL));

                if (d >= 0) {
                        copy[n++] = (char)('0' + d);
                } else {
                        memcpy(copy + n, t->p + i, used);
                        n += used;
                }
        }
        *t = (token_t){copy, n};
        return true;
}

static int take_number(parser_t *ps, token_t t, typed_t *out)
{
        const lc_decimal_t *d;
        lc_buf_t text = LC_BUF_INIT;
        bool exact;
        int64_t i;
        double wide;
        float narrow;
        int rc;

        if (t.n > LC_DECIMAL_MAX_DIGITS)
                return REFUSED; /* a text, not hours of arithmetic */
        rc = plain_digits(ps, &t) ? lc_decimal_parse(ps->arena, t.p, t.n, &d) : LC_DECIMAL_OOM;

        if (rc < 0)
                return rc == LC_DECIMAL_OOM ? OOM : REFUSED;
        i = lc_decimal_int64(d, &exact);
        if (exact) {
                take_int(i, out);
                return OK;
        }
        if (lc_decimal_to_text(d, &text) < 0) {
                lc_buf_free(&text);
                return OOM;
        }
        narrow = strtof(text.p, NULL);
        wide = strtod(text.p, NULL);
        lc_buf_free(&text);
        if (isfinite(narrow) && d->scale) {
                out->schema = lc_schema_plain(LC_FLOAT32, false);
                out->value = (lc_value_t){.type = LC_FLOAT32, .u.f32 = narrow};
        } else if (isfinite(wide) && d->scale) {
                out->schema = lc_schema_plain(LC_FLOAT64, false);
                out->value = (lc_value_t){.type = LC_FLOAT64, .u.f = wide};
        } else {
                out->schema = hold(ps, lc_schema_logical(LC_DECIMAL, d->scale, false));
                out->value = lc_value_decimal(d);
        }
        return OK;
}

/* The token with the four after it (a timestamp has two colons), else alone. */
static bool token_as_temporal(parser_t *ps, token_t t, typed_t *out)
{
        const char *start = mark(ps);
        char joined[128];
        int i;

        for (i = 0; i < 4 && has_next(ps); i++)
                next_token(ps);
        if (i == 4) {
                size_t more = (size_t)(ps->at - start);

                if (t.n + more <= sizeof(joined)) {
                        memcpy(joined, t.p, t.n);
                        memcpy(joined + t.n, start, more);
                        if (take_temporal(ps, joined, t.n + more, out))
                                return true;
                }
        }
        rewind_to(ps, start);
        return take_temporal(ps, t.p, t.n, out);
}

static int parse_token(parser_t *ps, bool embedded, token_t t, typed_t *out)
{
        size_t used;
        char c;

        c = *t.p;
        if (c & 0x80 && lc_java_digit(lc_utf8_next(t.p, t.n, &used, NULL)) >= 0)
                c = '0';
        if (c >= '0' && c <= '9' && token_as_temporal(ps, t, out))
                return OK;
        if ((c >= '0' && c <= '9') || c == '+' || c == '-') {
                int rc = take_number(ps, t, out);

                if (rc != REFUSED)
                        return rc;
        }
        if (embedded)
                return REFUSED;
        take_string(out, ps->text, (size_t)(ps->end - ps->text));
        return OK;
}

/* Behind the opening quote. */
static int parse_quoted(parser_t *ps, typed_t *out)
{
        lc_buf_t b = LC_BUF_INIT;
        char *copy = NULL;

        while (has_next(ps)) {
                token_t t;

                if (can_consume(ps, "\""))
                        break;
                t = next_token(ps);
                lc_buf_add(&b, t.p, t.n);
        }
        if (lc_buf_ok(&b) && !take_temporal(ps, b.p ? b.p : "", b.len, out)) {
                copy = lc_arena_dup(ps->arena, b.p ? b.p : "", b.len);
                if (copy)
                        take_string(out, copy, b.len);
        } else if (lc_buf_ok(&b)) {
                copy = b.p;
        }
        lc_buf_free(&b);
        return copy ? OK : OOM;
}

/* ---- arrays and maps ---- */

typedef struct merger {
        const lc_schema_t *common;
        bool incompatible;
} merger_t;

static bool numeric(lc_type_t t)
{
        return t >= LC_INT8 && t <= LC_FLOAT64;
}

static void merge(merger_t *m, const typed_t *v)
{
        const lc_schema_t *old = m->common, *new = v->schema;

        if (!new || m->incompatible)
                return;
        if (!old || old->type == new->type)
                m->common = new;
        else if (numeric(old->type) && numeric(new->type))
                m->common = new->type > old->type ? new : old;
        else
                m->common = NULL;
        m->incompatible = !m->common;
}

typedef struct list {
        typed_t *v;
        size_t n, cap;
} list_t;

static void push(list_t *l, const typed_t *v)
{
        if (l->n == l->cap) {
                l->cap = l->cap ? l->cap * 2 : 8;
                l->v = lc_realloc(l->v, l->cap * sizeof(*l->v));
        }
        l->v[l->n++] = *v;
}

/* Values.convertTo() as far as merged schemas need it. */
static int align(const lc_schema_t *s, lc_value_t *v)
{
        int64_t i = v->u.i;
        double d = v->type == LC_FLOAT32 ? (double)v->u.f32 : v->type == LC_FLOAT64 ? v->u.f : (double)i;

        if (v->type == LC_NULL)
                return s->optional ? OK : REFUSED;
        if (lc_value_fits(s, v))
                return OK;
        if (!numeric(v->type))
                return REFUSED;
        if (s->logical == LC_DATE)
                *v = (lc_value_t){.type = LC_DATE, .u.i = (int32_t)i * (int64_t)86400000};
        else if (s->logical == LC_TIME && (i < 0 || i > 86400000))
                return REFUSED;
        else if (s->logical == LC_TIME || s->logical == LC_TIMESTAMP)
                *v = (lc_value_t){.type = (uint8_t)s->logical, .u.i = i};
        else if (s->type == LC_FLOAT32)
                *v = (lc_value_t){.type = LC_FLOAT32, .u.f32 = (float)d};
        else if (s->type == LC_FLOAT64)
                *v = (lc_value_t){.type = LC_FLOAT64, .u.f = d};
        else
                v->type = (uint8_t)s->type;
        return OK;
}

static int parse(parser_t *ps, bool embedded, typed_t *out);

static int finish_array(parser_t *ps, const merger_t *m, const list_t *l, typed_t *out)
{
        lc_schema_builder_t *b = lc_schema_builder_new(LC_ARRAY);
        lc_value_t *items = lc_arena_alloc(ps->arena, l->n * sizeof(*items) + 1);
        int rc = items ? OK : OOM;

        lc_schema_builder_elem(b, m->common);
        out->schema = hold(ps, lc_schema_builder_finish(b));
        for (size_t i = 0; i < l->n && rc == OK; i++) {
                items[i] = l->v[i].value;
                if (m->common)
                        rc = align(m->common, &items[i]);
        }
        out->value = (lc_value_t){.type = LC_ARRAY, .len = (uint32_t)l->n, .u.items = items};
        return rc;
}

static int parse_array(parser_t *ps, typed_t *out)
{
        list_t l = {NULL, 0, 0};
        merger_t m = {NULL, false};
        int rc = REFUSED;

        while (has_next(ps)) {
                const char *start;
                typed_t item;

                if (can_consume(ps, "]")) {
                        rc = finish_array(ps, &m, &l, out);
                        break;
                }
                if (can_consume(ps, ","))
                        break;
                if ((rc = parse(ps, true, &item)) != OK)
                        break;
                rc = REFUSED;
                merge(&m, &item);
                push(&l, &item);
                start = mark(ps);
                if (can_consume(ps, "]"))
                        rewind_to(ps, start);
                else if (!can_consume(ps, ","))
                        break;
        }
        free(l.v);
        return rc;
}

static int finish_map(parser_t *ps, const merger_t *mk, const merger_t *mv, const list_t *l, typed_t *out)
{
        lc_schema_builder_t *b = lc_schema_builder_new(LC_MAP);
        lc_value_t *items = lc_arena_alloc(ps->arena, l->n * sizeof(*items) + 1);
        uint32_t n = (uint32_t)(l->n / 2);
        int rc = items ? OK : OOM;

        lc_schema_builder_key(b, mk->common);
        lc_schema_builder_elem(b, mk->common ? mv->common : NULL);
        out->schema = hold(ps, lc_schema_builder_finish(b));
        for (size_t i = 0; i < l->n && rc == OK; i += 2) {
                items[i] = l->v[i].value;
                items[i + 1] = l->v[i + 1].value;
                if (mk->common)
                        rc = align(mk->common, &items[i]);
                if (mk->common && mv->common && rc == OK)
                        rc = align(mv->common, &items[i + 1]);
        }
        if (rc == OK && lc_java_unique_entries(items, &n) < 0)
                rc = OOM;
        out->value = (lc_value_t){.type = LC_MAP, .len = n, .u.items = items};
        return rc;
}

static int parse_map(parser_t *ps, typed_t *out)
{
        list_t l = {NULL, 0, 0};
        merger_t mk = {NULL, false}, mv = {NULL, false};
        int rc = REFUSED;

        while (has_next(ps)) {
                typed_t key, value;

                if (can_consume(ps, "}")) {
                        rc = finish_map(ps, &mk, &mv, &l, out);
                        break;
                }
                if (can_consume(ps, ","))
                        break;
                if ((rc = parse(ps, true, &key)) != OK)
                        break;
                rc = REFUSED;
                if (key.value.type == LC_NULL || !can_consume(ps, ":"))
                        break;
                if ((rc = parse(ps, true, &value)) != OK)
                        break;
                rc = REFUSED;
                push(&l, &key);
                push(&l, &value);
                can_consume(ps, ",");
                merge(&mk, &key);
                merge(&mv, &value);
        }
        free(l.v);
        return rc;
}

static int parse(parser_t *ps, bool embedded, typed_t *out)
{
        const char *start;
        token_t t;
        int rc = REFUSED;

        out->schema = NULL;
        out->value = lc_value_null();
        if (!has_next(ps))
                return OK;
        if (embedded && can_consume(ps, "\""))
                return parse_quoted(ps, out);
        if (single_literal(ps, embedded, "null"))
                return OK;
        out->value.u.i = single_literal(ps, embedded, "true");
        if (out->value.u.i || single_literal(ps, embedded, "false")) {
                out->schema = lc_schema_plain(LC_BOOLEAN, false);
                out->value.type = LC_BOOLEAN;
                return OK;
        }
        if (++ps->depth > DEPTH)
                return BROKEN; /* Java's stack ends somewhere, too */
        start = mark(ps);
        if (can_consume(ps, "["))
                rc = parse_array(ps, out);
        else if (can_consume(ps, "{"))
                rc = parse_map(ps, out);
        else
                start = NULL;
        ps->depth--;
        if (start) {
                if (rc != REFUSED)
                        return rc;
                rewind_to(ps, start);
        }
        t = next_token(ps);
        if (is_blank(t)) {
                take_string(out, t.p, t.n);
                return OK;
        }
        return parse_token(ps, embedded, trim(t), out);
}

int lc_values_parse(const char *text, size_t n, lc_arena_t *a, lc_values_held_t *held,
                    const lc_schema_t **schema, lc_value_t *value)
{
        parser_t ps = {.text = text, .end = text + n, .at = text, .arena = a, .held = held};
        typed_t out;
        int rc = OK;

        if (n)
                rc = parse(&ps, false, &out);
        else
                take_string(&out, text, n);
        if (rc != OK)
                return rc == OOM ? -1 : 1;
        *schema = out.schema;
        *value = out.value;
        return 0;
}

/* ---- texts ---- */

static void append_text(const char *s, size_t n, bool embedded, lc_buf_t *out)
{
        if (!embedded) {
                lc_utf8_append(out, s, n);
                return;
        }
        lc_buf_addc(out, '"');
        for (size_t from = 0, i = 0; i <= n; i++)
                if (i == n || s[i] == '"' || s[i] == '\\') {
                        lc_utf8_append(out, s + from, i - from);
                        if (i < n)
                                lc_buf_addc(out, '\\');
                        from = i;
                }
        lc_buf_addc(out, '"');
}

static int append(const lc_value_t *v, bool embedded, lc_buf_t *out, lc_err_t *err)
{
        lc_buf_t text = LC_BUF_INIT;
        int rc = 0;

        switch ((lc_type_t)v->type) {
        case LC_STRING:
                append_text(v->u.s, v->len, embedded, out);
                return 0;
        case LC_BYTES:
                if (embedded)
                        lc_buf_addc(out, '"');
                lc_base64_append(out, v->u.s, v->len);
                if (embedded)
                        lc_buf_addc(out, '"');
                return 0;
        case LC_ARRAY:
                lc_buf_addc(out, '[');
                for (uint32_t i = 0; i < v->len && rc == 0; i++) {
                        if (i)
                                lc_buf_addc(out, ',');
                        rc = append(&v->u.items[i], true, out, err);
                }
                lc_buf_addc(out, ']');
                return rc;
        case LC_MAP:
                lc_buf_addc(out, '{');
                for (uint32_t i = 0; i < v->len && rc == 0; i++) {
                        if (i)
                                lc_buf_addc(out, ',');
                        rc = append(&v->u.items[2 * i], true, out, err);
                        lc_buf_addc(out, ':');
                        if (rc == 0)
                                rc = append(&v->u.items[2 * i + 1], true, out, err);
                }
                lc_buf_addc(out, '}');
                return rc;
        case LC_STRUCT:
                lc_buf_addc(out, '{');
                for (uint32_t i = 0; i < v->u.st->schema->nfields && rc == 0; i++) {
                        const lc_field_t *f = &v->u.st->schema->fields[i];
                        const lc_value_t *at = &v->u.st->fields[i];

                        if (i)
                                lc_buf_addc(out, ',');
                        append_text(f->name, strlen(f->name), true, out);
                        lc_buf_addc(out, ':');
                        if (at->type == LC_NULL && f->schema->has_default)
                                at = &f->schema->def;
                        rc = append(at, true, out, err);
                }
                lc_buf_addc(out, '}');
                return rc;
        case LC_DATE:
        case LC_TIME:
        case LC_TIMESTAMP:
                lc_values_format_date(v->u.i, out);
                return 0;
        case LC_OBJECT:
                lc_value_to_java_string(v, NULL, &text);
                lc_err_set_cls(err, LC_DATA, 0, LC_CLS_DATA,
                               "Failed to serialize unexpected value type %s: %s", lc_value_java_class(v),
                               text.p ? text.p : "");
                lc_buf_free(&text);
                return -1;
        default:
                return lc_value_to_java_string(v, NULL, out);
        }
}

int lc_values_to_string(const lc_value_t *v, lc_buf_t *out, lc_err_t *err)
{
        return append(v, false, out, err);
}
