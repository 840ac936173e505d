/*
 * config_store.h - connector and task configs, target states, session key: in the config topic
 * (distributed) or in memory (standalone), behind one table of functions.
 *
 * Threads:   reads and writes from any thread but writes one at a time (the herder); events come on the
 *            store's thread and only push to the herder's queue.
 * Ownership: a snapshot is immutable and counted.
 * Errors:    texts of storage 2.2, e.g. "Error writing connector configuration to Kafka".
 * Source:    storage.md 1 to 3.   Tests: spec/unit/config_store_spec.lua, spec/kafka/storage_spec.lua
 */
#ifndef LC_STORAGE_CONFIG_STORE_H
#define LC_STORAGE_CONFIG_STORE_H
#include "base/err.h"
#include "base/props.h"
#include "base/strv.h"
#include <stdint.h>

typedef enum { LC_TARGET_STARTED, LC_TARGET_PAUSED, LC_TARGET_STOPPED, LC_TARGET_NONE } lc_target_state_t;
const char *lc_target_state_name(lc_target_state_t t); /* "STARTED" */

typedef struct lc_config_connector {
        char *name;
        lc_props_t *config;  /* raw; NULL: only a target state is known */
        lc_props_t *applied; /* raw config in force when the tasks were committed, or NULL */
        lc_target_state_t target;
        lc_props_t **tasks;    /* committed raw task configs */
        int ntasks;            /* the committed count */
        int generation;        /* of task sets, first = 0; -1 none */
        int task_count_record; /* tasks-fencing; -1 none */
        bool pending_fencing;  /* tasks were committed since that record */
        bool inconsistent;     /* commit without all ids: no tasks to run */
} lc_config_connector_t;

typedef struct lc_config_snapshot {
        int refs;                 /* atomic */
        int64_t offset;           /* last parsed record + 1; -1 empty, always -1 in memory */
        lc_config_connector_t *v; /* those with a config, sorted by name */
        size_t n;
        char *session_key, *session_key_algorithm; /* base64; NULL none */
        int64_t session_key_created;
} lc_config_snapshot_t;
lc_config_snapshot_t *lc_config_snapshot_ref(lc_config_snapshot_t *s);
void lc_config_snapshot_unref(lc_config_snapshot_t *s);
const lc_config_connector_t *lc_config_snapshot_find(const lc_config_snapshot_t *s, const char *name);
/* Ids to run: 0 when inconsistent or STOPPED set was committed. */
int lc_config_connector_task_count(const lc_config_connector_t *c);

typedef struct lc_config_events { /* only after the first read; names are borrowed */
        void (*connector_updated)(void *arg, const char *name);
        void (*connector_removed)(void *arg, const char *name);
        void (*tasks_updated)(void *arg, const char *name, int ntasks);
        void (*target_changed)(void *arg, const char *name);
        void (*restart_requested)(void *arg, const char *name, bool only_failed, bool include_tasks);
        void (*session_key_updated)(void *arg);
        void (*logger_level)(void *arg, const char *logger, const char *level);
} lc_config_events_t;

typedef struct lc_config_store lc_config_store_t;
typedef struct lc_config_store_ops {
        /* Create or check the topic, read to its end; blocks, ends early when *stop becomes nonzero. */
        int (*start)(lc_config_store_t *s, const lc_config_events_t *events, void *arg,
                     const volatile int *stop, lc_err_t *err);
        lc_config_snapshot_t *(*snapshot)(lc_config_store_t *s);             /* a reference for the caller */
        int (*refresh)(lc_config_store_t *s, int timeout_ms, lc_err_t *err); /* read to the end */
        int (*put_connector)(lc_config_store_t *s, const char *name, const lc_props_t *config,
                             lc_target_state_t target /* LC_TARGET_NONE: leave */, lc_err_t *err);
        int (*remove_connector)(lc_config_store_t *s, const char *name, lc_err_t *err);
        int (*put_tasks)(lc_config_store_t *s, const char *name, lc_props_t *const *configs, int n,
                         lc_err_t *err);
        int (*put_target)(lc_config_store_t *s, const char *name, lc_target_state_t t, lc_err_t *err);
        int (*put_session_key)(lc_config_store_t *s, const char *key_base64, const char *algorithm,
                               int64_t created_ms, lc_err_t *err);
        int (*put_restart)(lc_config_store_t *s, const char *name, bool only_failed, bool include_tasks,
                           lc_err_t *err);
        int (*put_logger)(lc_config_store_t *s, const char *logger, const char *level, lc_err_t *err);
        void (*stop)(lc_config_store_t *s); /* frees */
        /* tasks-fencing-NAME. NULL: nobody needs it here. */
        int (*put_task_count)(lc_config_store_t *s, const char *name, int count, lc_err_t *err);
        /* With exactly-once support the leader writes in transactions. claim: earlier leaders cannot write any
         * more; before that, and once fenced, privileged writes (not put_target, put_logger) fail with
         * LC_FENCED. NULL: not here. */
        int (*claim)(lc_config_store_t *s, lc_err_t *err);
        void (*relinquish)(lc_config_store_t *s);
} lc_config_store_ops_t;
struct lc_config_store {
        const lc_config_store_ops_t *ops; /* implementations put their state behind it */
};
lc_config_store_t *lc_config_store_memory_new(void);
/* lc_config_store_kafka_new(): storage/kafka_stores.h */

#endif
