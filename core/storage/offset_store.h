/*
 * offset_store.h - source offsets: offsets topic, file (standalone, Java's format) or memory.
 *
 * Keys are compared as maps; a key that was read keeps its bytes and its Kafka partition when written
 * again, else it is ["connector",<canonical partition>] by the default partitioner.
 * Threads:   get, list and set from any thread.
 * Ownership: buffers are the caller's; `done` is called exactly once, on any thread, also after stop.
 * Source:    storage.md 5, standalone.md 5.3.   Tests: spec/unit/offset_file_spec.lua, spec/kafka
 */
#ifndef LC_STORAGE_OFFSET_STORE_H
#define LC_STORAGE_OFFSET_STORE_H
#include "base/buf.h"
#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

typedef struct lc_offset_entry {
        const char *partition; /* JSON object, canonical (record.h) */
        const char *offset;    /* JSON object; NULL: remove (tombstone) */
} lc_offset_entry_t;
typedef void lc_offset_done_fn(void *arg, const lc_err_t *err); /* NULL: all written and acknowledged */

/* offset NULL: tombstone; partition -1: by the key. 0, or -1 with err to end it. */
typedef int lc_offset_record_fn(void *arg, const char *key, size_t key_len, int32_t partition,
                                const char *offset, lc_err_t *err);

typedef struct lc_offset_store lc_offset_store_t;
typedef struct lc_offset_store_ops {
        int (*start)(lc_offset_store_t *s, const volatile int *stop, lc_err_t *err);
        /* Latest offset of a partition appended to *out: 1, 0 none, -1. Reads to the log's end first. */
        int (*get)(lc_offset_store_t *s, const char *connector, const char *partition, lc_buf_t *out,
                   lc_err_t *err);
        /* Every partition with an offset: fn(arg, partition JSON as stored, offset JSON as stored). */
        int (*list)(lc_offset_store_t *s, const char *connector,
                    void (*fn)(void *arg, const char *partition, const char *offset), void *arg,
                    lc_err_t *err);
        /* Copies the entries and returns; done comes later. */
        void (*set)(lc_offset_store_t *s, const char *connector, const lc_offset_entry_t *entries, size_t n,
                    lc_offset_done_fn *done, void *arg);
        void (*stop)(lc_offset_store_t *s); /* waits for what is out, frees */
        /* The records set() would write, for who writes them in a transaction. NULL: ["connector",partition]. */
        int (*records)(lc_offset_store_t *s, const char *connector, const lc_offset_entry_t *entries,
                       size_t n, lc_offset_record_fn *fn, void *arg, lc_err_t *err);
} lc_offset_store_ops_t;
struct lc_offset_store {
        const lc_offset_store_ops_t *ops;
};
lc_offset_store_t *lc_offset_store_memory_new(void);
lc_offset_store_t *lc_offset_store_file_new(const char *path);

#endif
