/*
 * status_cache.h - what the status topic says so far, and who may write what: the rules of storage.md 4.
 *
 * Filled from the topic only. Knows nothing of Kafka.
 * Threads:   one at a time (its owner's lock).
 * Ownership: getters copy.   Tests: spec/unit/status_store_spec.lua
 */
#ifndef LC_STORAGE_STATUS_CACHE_H
#define LC_STORAGE_STATUS_CACHE_H
#include "base/buf.h"
#include "storage/status_store.h"
#include <stddef.h>

typedef struct lc_status_cache lc_status_cache_t;
lc_status_cache_t *lc_status_cache_new(const char *topic); /* for log lines */
void lc_status_cache_free(lc_status_cache_t *c);
/* One record; value NULL: tombstone. Bad ones are logged with topic, partition, offset and skipped. */
void lc_status_cache_apply(lc_status_cache_t *c, const char *key, size_t key_len, const char *value,
                           size_t value_len, int32_t partition, int64_t offset);
bool lc_status_cache_get(lc_status_cache_t *c, const char *connector, int task, lc_status_t *out);
size_t lc_status_cache_tasks(lc_status_cache_t *c, const char *connector, lc_status_t **out);
void lc_status_cache_connectors(lc_status_cache_t *c, lc_strv_t *out);
void lc_status_cache_topics(lc_status_cache_t *c, const char *connector, lc_strv_t *out);
/* Is a record of this topic known, or on its way (noted by lc_status_cache_topic_sent)? */
bool lc_status_cache_has_topic(lc_status_cache_t *c, const char *connector, const char *topic);
void lc_status_cache_topic_sent(lc_status_cache_t *c, const char *connector, const char *topic, bool sent);

typedef struct lc_status_ticket { /* what a write was allowed for; a retry asks again */
        uint64_t entry, sequence;
} lc_status_ticket_t;
/* May this be written? safe: only over nothing, my own, or no newer generation. Counts as a write. */
bool lc_status_cache_may_write(lc_status_cache_t *c, const char *connector, const lc_status_t *st, bool safe,
                               lc_status_ticket_t *ticket);
/* May the same write be tried again? Not when the entry is gone, a later generation was written by this
 * worker, or (safe) a newer write or a newer owner is known. */
bool lc_status_cache_may_retry(lc_status_cache_t *c, const char *connector, const lc_status_t *st, bool safe,
                               const lc_status_ticket_t *ticket);

void lc_status_key(lc_buf_t *key, const char *connector, int task);
void lc_status_topic_key(lc_buf_t *key, const char *connector, const char *topic);
void lc_status_value(lc_buf_t *value, const lc_status_t *st);
void lc_status_topic_value(lc_buf_t *value, const char *connector, int task, const char *topic,
                           int64_t now_ms);

#endif
