/* props.c - see props.h: uthash keeps insertion order, an array gives access by position. */
#include "base/props.h"
#include "base/hash.h"
#include "base/alloc.h"
#include <stdlib.h>
#include <string.h>

typedef struct entry {
        char *key, *value;
        size_t at; /* position in list */
        UT_hash_handle hh;
} entry_t;

struct lc_props {
        entry_t *table;
        entry_t **list;
        size_t n, cap;
};

lc_props_t *lc_props_new(void)
{
        return lc_calloc(1, sizeof(lc_props_t));
}

static entry_t *find(const lc_props_t *p, const char *key)
{
        entry_t *e = NULL;

        if (p)
                HASH_FIND_STR(p->table, key, e);
        return e;
}

void lc_props_merge(lc_props_t *into, const lc_props_t *from)
{
        for (size_t i = 0; from && i < from->n; i++)
                lc_props_set(into, from->list[i]->key, from->list[i]->value);
}

lc_props_t *lc_props_copy(const lc_props_t *p)
{
        lc_props_t *copy = lc_props_new();

        lc_props_merge(copy, p);
        return copy;
}

static void entry_free(entry_t *e)
{
        free(e->key);
        free(e->value);
        free(e);
}

void lc_props_free(lc_props_t *p)
{
        if (!p)
                return;
        HASH_CLEAR(hh, p->table);
        for (size_t i = 0; i < p->n; i++)
                entry_free(p->list[i]);
        free(p->list);
        free(p);
}

void lc_props_set(lc_props_t *p, const char *key, const char *value)
{
        entry_t *e = find(p, key);
        char *copy = lc_strdup(value); /* value may be e's own */

        if (e) {
                free(e->value);
                e->value = copy;
                return;
        }
        e = lc_calloc(1, sizeof(*e));
        e->key = lc_strdup(key);
        e->value = copy;
        if (p->n == p->cap) {
                p->cap = p->cap ? p->cap * 2 : 8;
                p->list = lc_realloc(p->list, p->cap * sizeof(*p->list));
        }
        e->at = p->n;
        p->list[p->n++] = e;
        HASH_ADD_KEYPTR(hh, p->table, e->key, strlen(e->key), e);
}

bool lc_props_del(lc_props_t *p, const char *key)
{
        entry_t *e = find(p, key);

        if (!e)
                return false;
        HASH_DEL(p->table, e);
        for (size_t i = e->at; i + 1 < p->n; i++) {
                p->list[i] = p->list[i + 1];
                p->list[i]->at = i;
        }
        p->n--;
        entry_free(e);
        return true;
}

bool lc_props_has(const lc_props_t *p, const char *key)
{
        return find(p, key) != NULL;
}

const char *lc_props_get(const lc_props_t *p, const char *key)
{
        entry_t *e = find(p, key);
        return e ? e->value : NULL;
}

const char *lc_props_get_or(const lc_props_t *p, const char *key, const char *other)
{
        const char *v = lc_props_get(p, key);
        return v ? v : other;
}

size_t lc_props_count(const lc_props_t *p)
{
        return p ? p->n : 0;
}

const char *lc_props_key(const lc_props_t *p, size_t i)
{
        return p->list[i]->key;
}

const char *lc_props_value(const lc_props_t *p, size_t i)
{
        return p->list[i]->value;
}

bool lc_props_equal(const lc_props_t *a, const lc_props_t *b)
{
        if (lc_props_count(a) != lc_props_count(b))
                return false;
        for (size_t i = 0; i < lc_props_count(a); i++) {
                entry_t *e = find(b, a->list[i]->key);
                const char *v = a->list[i]->value;
                if (!e || !e->value != !v || (v && strcmp(v, e->value)))
                        return false;
        }
        return true;
}

lc_props_t *lc_props_prefixed(const lc_props_t *p, const char *prefix)
{
        lc_props_t *out = lc_props_new();
        size_t len = strlen(prefix);

        for (size_t i = 0; i < lc_props_count(p); i++)
                if (!strncmp(p->list[i]->key, prefix, len))
                        lc_props_set(out, p->list[i]->key + len, p->list[i]->value);
        return out;
}
