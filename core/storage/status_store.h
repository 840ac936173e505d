/*
 * status_store.h - statuses of connectors and tasks, topics in use: status topic or memory.
 *
 * Threads:   any; puts never block (they are queued, sent and retried by the store).
 * Ownership: getters fill caller-owned structs, free with the functions here.
 * Rules:     storage.md 4: safe puts, tombstones, UNASSIGNED after RUNNING, the cache is filled from the
 *            topic only.   Tests: spec/unit/status_store_spec.lua, spec/kafka/storage_spec.lua
 */
#ifndef LC_STORAGE_STATUS_STORE_H
#define LC_STORAGE_STATUS_STORE_H
#include "base/err.h"
#include "base/strv.h"
#include <stdint.h>

typedef enum {
        LC_UNASSIGNED,
        LC_RUNNING,
        LC_PAUSED,
        LC_FAILED,
        LC_RESTARTING,
        LC_STOPPED,
        LC_DESTROYED
} lc_state_t;
const char *lc_state_name(lc_state_t s); /* "RUNNING" */

typedef struct lc_status {
        int task; /* -1: the connector */
        lc_state_t state;
        char *worker_id;
        char *trace;   /* or NULL */
        char *version; /* or NULL */
        char *restart; /* what restart.policy does about it, a JSON object, or NULL */
        int32_t generation;
} lc_status_t;
void lc_status_clear(lc_status_t *s); /* frees the strings */

typedef struct lc_status_store lc_status_store_t;
typedef struct lc_status_store_ops {
        int (*start)(lc_status_store_t *s, const volatile int *stop, lc_err_t *err);
        /* st->task -1: connector. LC_DESTROYED writes the tombstone. safe: UNASSIGNED and FAILED. */
        void (*put)(lc_status_store_t *s, const char *connector, const lc_status_t *st, bool safe);
        /* true and *out filled when known. */
        bool (*get)(lc_status_store_t *s, const char *connector, int task, lc_status_t *out);
        /* All task statuses sorted by id: *out malloc'ed (clear each, free), returns the count. */
        size_t (*tasks)(lc_status_store_t *s, const char *connector, lc_status_t **out);
        void (*connectors)(lc_status_store_t *s, lc_strv_t *out); /* with a connector or task status */
        void (*topic_used)(lc_status_store_t *s, const char *connector, int task, const char *topic);
        void (*topics)(lc_status_store_t *s, const char *connector, lc_strv_t *out);
        void (*topics_reset)(lc_status_store_t *s, const char *connector);
        void (*flush)(lc_status_store_t *s, int timeout_ms);
        void (*stop)(lc_status_store_t *s);
} lc_status_store_ops_t;
struct lc_status_store {
        const lc_status_store_ops_t *ops;
};
lc_status_store_t *lc_status_store_memory_new(void);

#endif
