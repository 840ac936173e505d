/* offset_map.c - see offset_map.h: uthash keeps the order of arrival. */
#include "storage/offset_map.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "convert/json.h"
#include <stdlib.h>

typedef struct entry {
        char *id; /* connector NUL canonical partition; of a key in another form: its bytes after a NUL */
        size_t id_len;
        char *connector, *partition; /* the partition as stored; NULL for another form */
        char *key, *value;           /* bytes, NUL behind them */
        size_t key_len, value_len;
        UT_hash_handle hh;
} entry_t;

struct lc_offset_map {
        entry_t *table;
};

lc_offset_map_t *lc_offset_map_new(void)
{
        return lc_calloc(1, sizeof(lc_offset_map_t));
}

static void entry_free(entry_t *e)
{
        free(e->id);
        free(e->connector);
        free(e->partition);
        free(e->key);
        free(e->value);
        free(e);
}

void lc_offset_map_free(lc_offset_map_t *m)
{
        entry_t *e, *next;

        if (!m)
                return;
        HASH_ITER(hh, m->table, e, next)
        {
                HASH_DEL(m->table, e);
                entry_free(e);
        }
        free(m);
}

static char *dup_bytes(const char *p, size_t n)
{
        char *copy;

        if (!p)
                return NULL;
        copy = lc_malloc(n + 1);
        memcpy(copy, p, n);
        copy[n] = '\0';
        return copy;
}

static char *make_id(const char *connector, const char *canonical, size_t canonical_len, size_t *len)
{
        size_t n = strlen(connector);
        char *id = lc_malloc(n + 1 + canonical_len + 1);

        memcpy(id, connector, n + 1);
        memcpy(id + n + 1, canonical, canonical_len);
        id[n + 1 + canonical_len] = '\0';
        *len = n + 1 + canonical_len;
        return id;
}

static entry_t *find(lc_offset_map_t *m, const char *id, size_t len)
{
        entry_t *e;

        HASH_FIND(hh, m->table, id, len, e);
        return e;
}

static void set_value(entry_t *e, const char *value, size_t len)
{
        free(e->value);
        e->value = dup_bytes(value, len);
        e->value_len = value ? len : 0;
}

bool lc_offset_map_load(lc_offset_map_t *m, const char *key, size_t key_len, const char *value,
                        size_t value_len)
{
        lc_json_t *doc = NULL;
        const lc_json_t *name, *partition;
        lc_buf_t canonical = LC_BUF_SURE, stored = LC_BUF_SURE;
        lc_err_t err = {0};
        entry_t *e, *old;
        bool good = false;

        e = lc_calloc(1, sizeof(*e));
        if (lc_json_parse_sure(key, key_len, 0, &doc, &err) == 0 && doc && doc->type == LC_J_ARRAY &&
            doc->len == 2) {
                name = doc->child;
                partition = name->next;
                if (name->type == LC_J_STRING && !memchr(name->s, 0, name->len) &&
                    partition->type == LC_J_OBJECT) {
                        good = true;
                        e->connector = lc_strndup(name->s, name->len);
                        lc_json_write_canonical(&canonical, partition);
                        lc_json_write(&stored, partition);
                        e->id = make_id(e->connector, canonical.p, canonical.len, &e->id_len);
                        e->partition = lc_buf_take(&stored, NULL);
                }
        }
        lc_json_free(doc);
        lc_buf_free(&canonical);
        if (!good)
                e->id = make_id("", key, key_len, &e->id_len);
        e->key = dup_bytes(key, key_len);
        e->key_len = key_len;
        set_value(e, value, value_len);
        old = find(m, e->id, e->id_len);
        if (old) {
                HASH_DEL(m->table, old);
                entry_free(old);
        }
        HASH_ADD_KEYPTR(hh, m->table, e->id, e->id_len, e);
        return good;
}

void lc_offset_map_set(lc_offset_map_t *m, const char *connector, const char *partition, const char *offset)
{
        size_t len;
        char *id = make_id(connector, partition, strlen(partition), &len);
        entry_t *e = find(m, id, len);

        if (e) {
                free(id);
        } else {
                lc_buf_t key = LC_BUF_SURE;

                e = lc_calloc(1, sizeof(*e));
                e->id = id;
                e->id_len = len;
                e->connector = lc_strdup(connector);
                e->partition = lc_strdup(partition);
                lc_buf_addc(&key, '[');
                lc_json_write_string(&key, connector, strlen(connector));
                lc_buf_addc(&key, ',');
                lc_buf_adds(&key, partition);
                lc_buf_addc(&key, ']');
                e->key = lc_buf_take(&key, &e->key_len);
                HASH_ADD_KEYPTR(hh, m->table, e->id, e->id_len, e);
        }
        set_value(e, offset, offset ? strlen(offset) : 0);
}

int lc_offset_map_get(lc_offset_map_t *m, const char *connector, const char *partition, lc_buf_t *out)
{
        size_t len;
        char *id = make_id(connector, partition, strlen(partition), &len);
        entry_t *e = find(m, id, len);

        free(id);
        if (!e || !e->connector || !e->value)
                return 0;
        lc_buf_add(out, e->value, e->value_len);
        return 1;
}

void lc_offset_map_list(lc_offset_map_t *m, const char *connector,
                        void (*fn)(void *arg, const char *partition, const char *offset), void *arg)
{
        for (entry_t *e = m->table; e; e = e->hh.next)
                if (e->connector && e->value && !strcmp(e->connector, connector))
                        fn(arg, e->partition, e->value);
}

size_t lc_offset_map_count(const lc_offset_map_t *m)
{
        return HASH_COUNT(m->table);
}

void lc_offset_map_each(const lc_offset_map_t *m,
                        void (*fn)(void *arg, const char *key, size_t key_len, const char *value,
                                   size_t value_len),
                        void *arg)
{
        for (entry_t *e = m->table; e; e = e->hh.next)
                fn(arg, e->key, e->key_len, e->value, e->value_len);
}
