/*
 * offset_store_memory.h - offsets in a map under a lock: the memory store, and what the file store builds on.
 *
 * Threads:   any. Lock: `lock` guards the map; nothing is called out under it but list's callback.
 * Ownership: whoever embeds it begins with it, so that an lc_offset_store_t * is one of these.
 * Tests:     spec/unit/memory_stores_spec.lua, offset_file_spec.lua
 */
#ifndef LC_STORAGE_OFFSET_STORE_MEMORY_H
#define LC_STORAGE_OFFSET_STORE_MEMORY_H
#include "storage/offset_map.h"
#include "storage/offset_store.h"
#include <pthread.h>

typedef struct lc_offset_memory {
        lc_offset_store_t base;
        pthread_mutex_t lock;
        lc_offset_map_t *map;
} lc_offset_memory_t;

void lc_offset_memory_init(lc_offset_memory_t *m, const lc_offset_store_ops_t *ops);
void lc_offset_memory_clear(lc_offset_memory_t *m); /* frees what init made, not m */
/* get and list of lc_offset_store_ops_t. fn must not call the store: it only collects. */
int lc_offset_memory_get(lc_offset_store_t *base, const char *connector, const char *partition, lc_buf_t *out,
                         lc_err_t *err);
int lc_offset_memory_list(lc_offset_store_t *base, const char *connector,
                          void (*fn)(void *arg, const char *partition, const char *offset), void *arg,
                          lc_err_t *err);
/* Under the lock: take the entries over. */
void lc_offset_memory_take(lc_offset_memory_t *m, const char *connector, const lc_offset_entry_t *entries,
                           size_t n);

#endif
