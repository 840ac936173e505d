/*
 * consumer.h - librdkafka consumer of one sink task: batches of records out, rebalances as callbacks.
 *
 * Threads:   one owner thread; callbacks run on it, inside poll and close.
 * Ownership: a batch from poll is the caller's; its records point into librdkafka's messages, which the
 *            batch holds until it is freed (free batches before closing the consumer).
 * Errors:    broker trouble is logged and retried by librdkafka; -1 only for what ends the task.
 * Source:    worker-tasks 5.   Tests: spec/unit/consumer_spec.lua (mock cluster)
 */
#ifndef LC_KAFKA_CONSUMER_H
#define LC_KAFKA_CONSUMER_H
#include "base/props.h"
#include "base/strv.h"
#include "base/waker.h"
#include "data/record.h"

typedef struct lc_consumer lc_consumer_t;
typedef struct lc_topic_partition {
        const char *topic;
        int32_t partition;
        int64_t offset; /* -1001 (RD_KAFKA_OFFSET_INVALID): none */
} lc_topic_partition_t;

typedef struct lc_consumer_events {
        void (*assigned)(void *arg, const lc_topic_partition_t *tps, size_t n); /* new ones only */
        void (*revoked)(void *arg, const lc_topic_partition_t *tps, size_t n);
        void (*lost)(void *arg, const lc_topic_partition_t *tps, size_t n);
        /* result of lc_consumer_commit_async; err NULL: fine */
        void (*committed)(void *arg, uint64_t seq, const lc_err_t *err);
} lc_consumer_events_t;

/* conf: librdkafka names, group.id included. `waker` is woken when something waits; may be NULL. */
lc_consumer_t *lc_consumer_new(const lc_props_t *conf, lc_waker_t *waker, const lc_consumer_events_t *events,
                               void *arg, lc_err_t *err);
int lc_consumer_subscribe(lc_consumer_t *c, const lc_strv_t *topics, const char *regex, lc_err_t *err);
/* Up to max_records that are there, waiting at most ms for the first. *batch NULL: none.
 * Sink records get bytes, topic, partition, offset, timestamp, raw headers; key and value undecoded. */
int lc_consumer_poll(lc_consumer_t *c, int ms, uint32_t max_records, lc_batch_t **batch, lc_err_t *err);
/* No more records before offsets are committed. Only of a local one (local.h). */
bool lc_consumer_full(const lc_consumer_t *c);
int lc_consumer_pause(lc_consumer_t *c, const lc_topic_partition_t *tps, size_t n, lc_err_t *err);
int lc_consumer_resume(lc_consumer_t *c, const lc_topic_partition_t *tps, size_t n, lc_err_t *err);
int lc_consumer_seek(lc_consumer_t *c, const lc_topic_partition_t *tp, lc_err_t *err);
/* Position (next offset) of assigned partitions: committed, or by auto.offset.reset. */
int lc_consumer_position(lc_consumer_t *c, lc_topic_partition_t *tps, size_t n, lc_err_t *err);
int lc_consumer_commit(lc_consumer_t *c, const lc_topic_partition_t *tps, size_t n,
                       lc_err_t *err); /* waits */
int lc_consumer_commit_async(lc_consumer_t *c, const lc_topic_partition_t *tps, size_t n, uint64_t seq,
                             lc_err_t *err);
void lc_consumer_close(lc_consumer_t *c); /* revokes (callbacks run), leaves the group, frees */

#endif
