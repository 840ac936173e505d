/*
 * value.c - see value.h: copying and comparing values. The arena's owner. Spec: spec/unit/data_spec.lua.
 */
#include "data/value.h"
#include "data/schema.h"
#include <math.h>
#include <string.h>

static int copy_items(lc_arena_t *a, const lc_value_t *from, size_t n, lc_value_t **out)
{
        lc_value_t *items;

        *out = NULL;
        if (!n)
                return 0;
        items = lc_arena_alloc(a, n * sizeof(*items));
        if (!items)
                return -1;
        for (size_t i = 0; i < n; i++)
                if (lc_value_copy(a, &from[i], &items[i]) < 0)
                        return -1;
        *out = items;
        return 0;
}

int lc_value_copy(lc_arena_t *a, const lc_value_t *from, lc_value_t *to)
{
        lc_value_t v = *from;

        switch ((lc_type_t)v.type) {
        case LC_STRING:
        case LC_BYTES:
                if (v.u.s && !(v.u.s = lc_arena_dup(a, from->u.s, v.len)))
                        return -1;
                break;
        case LC_ARRAY:
        case LC_MAP:
                if (copy_items(a, from->u.items, (size_t)v.len * (v.type == LC_MAP ? 2 : 1), &v.u.items) < 0)
                        return -1;
                break;
        case LC_STRUCT: {
                lc_struct_value_t *st = lc_arena_alloc(a, sizeof(*st));

                if (!st)
                        return -1;
                st->schema = from->u.st->schema;
                if (copy_items(a, from->u.st->fields, st->schema->nfields, &st->fields) < 0)
                        return -1;
                v.u.st = st;
                break;
        }
        case LC_DECIMAL: {
                lc_decimal_t *d = lc_arena_alloc(a, sizeof(*d));

                if (!d)
                        return -1;
                *d = *from->u.dec;
                if (!(d->unscaled = lc_arena_dup(a, from->u.dec->unscaled, d->len)))
                        return -1;
                v.u.dec = d;
                break;
        }
        case LC_OBJECT:
                if (v.u.s && !(v.u.s = lc_arena_strdup(a, from->u.s)))
                        return -1;
                break;
        default:
                break;
        }
        *to = v;
        return 0;
}

static bool same_entry(const lc_value_t *a, const lc_value_t *b)
{
        return lc_value_equal(&a[0], &b[0]) && lc_value_equal(&a[1], &b[1]);
}

static bool same_map(const lc_value_t *a, const lc_value_t *b)
{
        for (uint32_t i = 0; i < a->len; i++) {
                uint32_t j;

                if (same_entry(&a->u.items[2 * i], &b->u.items[2 * i]))
                        continue;
                for (j = 0; j < b->len; j++)
                        if (same_entry(&a->u.items[2 * i], &b->u.items[2 * j]))
                                break;
                if (j == b->len)
                        return false;
        }
        return true;
}

static bool is_date(const lc_value_t *v)
{
        return v->type >= LC_DATE && v->type <= LC_TIMESTAMP;
}

/* Java's equals: NaN is NaN, 0.0 is not -0.0, a BigDecimal's scale counts, java.util.Date is one class. */
bool lc_value_equal(const lc_value_t *a, const lc_value_t *b)
{
        if (a->type != b->type)
                return is_date(a) && is_date(b) && a->u.i == b->u.i;
        switch ((lc_type_t)a->type) {
        case LC_NULL:
                return true;
        case LC_FLOAT32:
                return (isnan(a->u.f32) && isnan(b->u.f32)) || !memcmp(&a->u.f32, &b->u.f32, sizeof(float));
        case LC_FLOAT64:
                return (isnan(a->u.f) && isnan(b->u.f)) || !memcmp(&a->u.f, &b->u.f, sizeof(double));
        case LC_STRING:
        case LC_BYTES:
                return a->len == b->len && (!a->len || !memcmp(a->u.s, b->u.s, a->len));
        case LC_ARRAY:
                if (a->len != b->len)
                        return false;
                for (uint32_t i = 0; i < a->len; i++)
                        if (!lc_value_equal(&a->u.items[i], &b->u.items[i]))
                                return false;
                return true;
        case LC_MAP:
                return a->len == b->len && same_map(a, b);
        case LC_STRUCT:
                if (!lc_schema_equal(a->u.st->schema, b->u.st->schema))
                        return false;
                for (uint32_t i = 0; i < a->u.st->schema->nfields; i++)
                        if (!lc_value_equal(&a->u.st->fields[i], &b->u.st->fields[i]))
                                return false;
                return true;
        case LC_DECIMAL:
                return a->u.dec->scale == b->u.dec->scale && a->u.dec->len == b->u.dec->len &&
                       !memcmp(a->u.dec->unscaled, b->u.dec->unscaled, a->u.dec->len);
        case LC_OBJECT:
                return a->u.s == b->u.s;
        default:
                return a->u.i == b->u.i;
        }
}
