/*
 * config_state.h - what the config topic says so far: one record in, at most one change out; snapshots on
 * demand. Knows the rules of storage.md 2.3 and nothing of Kafka.
 *
 * Threads:   one at a time (its owner's lock).
 * Ownership: a change borrows nothing: lc_config_change_clear() frees it.
 * Source:    storage.md 2.   Tests: spec/unit/config_store_spec.lua
 */
#ifndef LC_STORAGE_CONFIG_STATE_H
#define LC_STORAGE_CONFIG_STATE_H
#include "storage/config_store.h"

typedef struct lc_config_state lc_config_state_t;

typedef enum {
        LC_CHANGE_NONE = 0,
        LC_CHANGE_CONNECTOR,
        LC_CHANGE_REMOVED,
        LC_CHANGE_TASKS,
        LC_CHANGE_TARGET,
        LC_CHANGE_RESTART,
        LC_CHANGE_SESSION_KEY,
        LC_CHANGE_LOGGER
} lc_change_kind_t;
typedef struct lc_config_change {
        lc_change_kind_t kind;
        char *name;  /* connector or logger */
        char *level; /* LOGGER */
        int ntasks;  /* TASKS */
        bool only_failed, include_tasks;
} lc_config_change_t;
void lc_config_change_clear(lc_config_change_t *c);
/* Call the function of `events` that fits. */
void lc_config_change_fire(const lc_config_change_t *c, const lc_config_events_t *events, void *arg);

lc_config_state_t *lc_config_state_new(const char *topic); /* for log lines */
void lc_config_state_free(lc_config_state_t *s);
/* value NULL: tombstone. Bad records are logged with topic, partition and offset and change nothing; the
 * offset moves on unless the value is no JSON at all. */
void lc_config_state_apply(lc_config_state_t *s, const char *key, size_t key_len, const char *value,
                           size_t value_len, int32_t partition, int64_t offset, lc_config_change_t *change);
/* A reference for the caller; the same one until something changes. */
lc_config_snapshot_t *lc_config_state_snapshot(lc_config_state_t *s);

#endif
