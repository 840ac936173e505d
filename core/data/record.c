/*
 * record.c - see record.h: batches and source partitions. The task's thread. Spec: spec/unit/record_spec.lua.
 * (lc_record_offset_json is in convert/offset_json.c: it needs the JSON writer.)
 */
#include "data/record.h"
#include "base/alloc.h"
#include <stdlib.h>
#include <string.h>

lc_source_partition_t *lc_source_partition_new(const char *json, size_t len)
{
        lc_source_partition_t *p = lc_calloc(1, sizeof(*p));

        p->refs = 1;
        p->len = (uint32_t)len;
        p->json = lc_strndup(json, len);
        return p;
}

void lc_source_partition_unref(lc_source_partition_t *p)
{
        if (!p || --p->refs > 0)
                return;
        free(p->json);
        free(p);
}

lc_batch_t *lc_batch_new(uint32_t cap)
{
        lc_batch_t *b = calloc(1, sizeof(*b));

        if (!b)
                return NULL;
        b->refs = 1;
        b->cap = cap;
        lc_arena_init(&b->arena);
        if (cap && !(b->records = malloc((size_t)cap * sizeof(*b->records)))) {
                free(b);
                return NULL;
        }
        return b;
}

void lc_batch_ref(lc_batch_t *b)
{
        b->refs++;
}

static void destroy(lc_batch_t *b)
{
        if (b->on_free)
                b->on_free(b->on_free_arg);
        for (uint32_t i = 0; i < b->nschemas; i++)
                lc_schema_unref(b->schemas[i]);
        for (uint32_t i = 0; i < b->npartitions; i++)
                lc_source_partition_unref(b->partitions[i]);
        free(b->schemas);
        free(b->partitions);
        free(b->records);
        lc_arena_free(&b->arena);
        free(b);
}

void lc_batch_unref(lc_batch_t *b)
{
        if (b && --b->refs == 0)
                destroy(b);
}

static int grow(lc_batch_t *b)
{
        uint32_t cap = b->cap ? b->cap * 2 : 16;
        lc_record_t *records;

        if (cap < b->cap)
                return -1;
        records = realloc(b->records, (size_t)cap * sizeof(*records));
        if (!records)
                return -1;
        b->records = records;
        b->cap = cap;
        return 0;
}

lc_record_t *lc_batch_add(lc_batch_t *b)
{
        lc_record_t *r;

        if (__builtin_expect(b->n == b->cap, 0) && grow(b) < 0)
                return NULL;
        r = &b->records[b->n++];
        memset(r, 0, sizeof(*r));
        r->batch = b;
        r->partition = -1;
        r->timestamp = -1;
        return r;
}

/* One array of references each; asking for the last ones again costs a compare. */
#define HOLD(array, count, capacity, item)                                                                   \
        do {                                                                                                 \
                for (uint32_t i_ = b->count, stop_ = i_ > 4 ? i_ - 4 : 0; i_ > stop_; i_--)                  \
                        if (b->array[i_ - 1] == (item))                                                      \
                                return 0;                                                                    \
                if (b->count == b->capacity) {                                                               \
                        uint32_t cap_ = b->capacity ? b->capacity * 2 : 4;                                   \
                        void *grown_ = realloc(b->array, cap_ * sizeof(*b->array));                          \
                        if (!grown_)                                                                         \
                                return -1;                                                                   \
                        b->array = grown_;                                                                   \
                        b->capacity = cap_;                                                                  \
                }                                                                                            \
        } while (0)

int lc_batch_hold_schema(lc_batch_t *b, const lc_schema_t *s)
{
        if (!s || s->refs < 0)
                return 0;
        HOLD(schemas, nschemas, schemas_cap, s);
        b->schemas[b->nschemas++] = lc_schema_ref(s);
        return 0;
}

int lc_batch_hold_partition(lc_batch_t *b, lc_source_partition_t *p)
{
        if (!p)
                return 0;
        HOLD(partitions, npartitions, partitions_cap, p);
        p->refs++;
        b->partitions[b->npartitions++] = p;
        return 0;
}

int lc_batch_keep_given(lc_batch_t *b)
{
        if (!b->n)
                return 0;
        b->given = lc_arena_dup(&b->arena, b->records, (size_t)b->n * sizeof(*b->records));
        return b->given ? 0 : -1;
}
