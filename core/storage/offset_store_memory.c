/*
 * offset_store_memory.c - see offset_store_memory.h: source offsets that live as long as the process.
 *
 * Threads:   any. `done` is called without the lock, at once, in the caller.
 * Tests:     spec/unit/memory_stores_spec.lua
 */
#include "storage/offset_store_memory.h"
#include "base/alloc.h"
#include <stdlib.h>

void lc_offset_memory_init(lc_offset_memory_t *m, const lc_offset_store_ops_t *ops)
{
        m->base.ops = ops;
        m->map = lc_offset_map_new();
        pthread_mutex_init(&m->lock, NULL);
}

void lc_offset_memory_clear(lc_offset_memory_t *m)
{
        lc_offset_map_free(m->map);
        pthread_mutex_destroy(&m->lock);
}

int lc_offset_memory_get(lc_offset_store_t *base, const char *connector, const char *partition, lc_buf_t *out,
                         lc_err_t *err)
{
        lc_offset_memory_t *m = (lc_offset_memory_t *)base;
        int rc;

        (void)err;
        pthread_mutex_lock(&m->lock);
        rc = lc_offset_map_get(m->map, connector, partition, out);
        pthread_mutex_unlock(&m->lock);
        return rc;
}

int lc_offset_memory_list(lc_offset_store_t *base, const char *connector,
                          void (*fn)(void *arg, const char *partition, const char *offset), void *arg,
                          lc_err_t *err)
{
        lc_offset_memory_t *m = (lc_offset_memory_t *)base;

        (void)err;
        pthread_mutex_lock(&m->lock);
        lc_offset_map_list(m->map, connector, fn, arg);
        pthread_mutex_unlock(&m->lock);
        return 0;
}

void lc_offset_memory_take(lc_offset_memory_t *m, const char *connector, const lc_offset_entry_t *entries,
                           size_t n)
{
        for (size_t i = 0; i < n; i++)
                lc_offset_map_set(m->map, connector, entries[i].partition, entries[i].offset);
}

static int start(lc_offset_store_t *base, const volatile int *stop, lc_err_t *err)
{
        (void)base;
        (void)stop;
        (void)err;
        return 0;
}

static void set(lc_offset_store_t *base, const char *connector, const lc_offset_entry_t *entries, size_t n,
                lc_offset_done_fn *done, void *arg)
{
        lc_offset_memory_t *m = (lc_offset_memory_t *)base;

        pthread_mutex_lock(&m->lock);
        lc_offset_memory_take(m, connector, entries, n);
        pthread_mutex_unlock(&m->lock);
        if (done)
                done(arg, NULL);
}

static void stop_store(lc_offset_store_t *base)
{
        lc_offset_memory_clear((lc_offset_memory_t *)base);
        free(base);
}

lc_offset_store_t *lc_offset_store_memory_new(void)
{
        static const lc_offset_store_ops_t ops = {
                .start = start,
                .get = lc_offset_memory_get,
                .list = lc_offset_memory_list,
                .set = set,
                .stop = stop_store,
        };
        lc_offset_memory_t *m = lc_calloc(1, sizeof(*m));

        lc_offset_memory_init(m, &ops);
        return &m->base;
}
