/*
 * offset_store_memory.c - source offsets that live as long as the process.
 *
 * Threads:   any. Lock: `lock` guards the map; `done` is called without it, at once, in the caller.
 * Tests:     spec/unit/memory_stores_spec.lua
 */
#include "base/alloc.h"
#include "storage/offset_map.h"
#include "storage/offset_store.h"
#include <pthread.h>
#include <stdlib.h>

typedef struct store {
        lc_offset_store_t base;
        pthread_mutex_t lock;
        lc_offset_map_t *map;
} store_t;

static int start(lc_offset_store_t *base, const volatile int *stop, lc_err_t *err)
{
        (void)base;
        (void)stop;
        (void)err;
        return 0;
}

static int get(lc_offset_store_t *base, const char *connector, const char *partition, lc_buf_t *out,
               lc_err_t *err)
{
        store_t *s = (store_t *)base;
        int rc;

        (void)err;
        pthread_mutex_lock(&s->lock);
        rc = lc_offset_map_get(s->map, connector, partition, out);
        pthread_mutex_unlock(&s->lock);
        return rc;
}

/* fn must not call the store: it only collects. */
static int list(lc_offset_store_t *base, const char *connector,
                void (*fn)(void *arg, const char *partition, const char *offset), void *arg, lc_err_t *err)
{
        store_t *s = (store_t *)base;

        (void)err;
        pthread_mutex_lock(&s->lock);
        lc_offset_map_list(s->map, connector, fn, arg);
        pthread_mutex_unlock(&s->lock);
        return 0;
}

static void set(lc_offset_store_t *base, const char *connector, const lc_offset_entry_t *entries, size_t n,
                lc_offset_done_fn *done, void *arg)
{
        store_t *s = (store_t *)base;

        pthread_mutex_lock(&s->lock);
        for (size_t i = 0; i < n; i++)
                lc_offset_map_set(s->map, connector, entries[i].partition, entries[i].offset);
        pthread_mutex_unlock(&s->lock);
        if (done)
                done(arg, NULL);
}

static void stop_store(lc_offset_store_t *base)
{
        store_t *s = (store_t *)base;

        lc_offset_map_free(s->map);
        pthread_mutex_destroy(&s->lock);
        free(s);
}

lc_offset_store_t *lc_offset_store_memory_new(void)
{
        static const lc_offset_store_ops_t ops = {
                .start = start,
                .get = get,
                .list = list,
                .set = set,
                .stop = stop_store,
        };
        store_t *s = lc_calloc(1, sizeof(*s));

        s->base.ops = &ops;
        s->map = lc_offset_map_new();
        pthread_mutex_init(&s->lock, NULL);
        return &s->base;
}
