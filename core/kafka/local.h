/*
 * local.h - the ends of a task without Kafka: what its producer writes goes to a function, what its consumer
 * reads comes from one. For `luaconnect try`; the task between them is the worker's own.
 *
 * Threads:   a consumer and a producer belong to one thread, as producer.h and consumer.h say. `write` is
 *            called on the thread of each source task, `read` and `ended` on the sink task's.
 * Ownership: a batch that `read` gives is the consumer's. Its records carry keys and values already: they do
 *            not go through converters. It keeps the last 64 batches, so that a task may seek back; those that
 *            are not committed only go after the task was asked for a commit.
 * Tests:     spec/unit/try_connector_spec.lua
 */
#ifndef LC_KAFKA_LOCAL_H
#define LC_KAFKA_LOCAL_H
#include "kafka/consumer.h"
#include "kafka/producer.h"

typedef struct lc_local {
        void *arg;
        /* Those of records[0..n) that are LC_REC_NEW, in order. How many records are done with; fewer: no more
         * are wanted for now. */
        uint32_t (*write)(void *arg, const lc_record_t *records, uint32_t n);
        /* The partitions that a sink task has from the start; *tps stays the callee's. */
        size_t (*partitions)(void *arg, const lc_topic_partition_t **tps);
        /* What is there, without waiting: 1; 0 nothing now, `waker` is woken when there may be; -1 with err, or
         * without: the end. Offsets rise within a partition. */
        int (*read)(void *arg, lc_waker_t *waker, lc_batch_t **batch, lc_err_t *err);
        void (*ended)(void *arg); /* all was read and put; once */
        /* Offsets are committed. */
        void (*committed)(void *arg, const lc_topic_partition_t *tps, size_t n);
} lc_local_t;

lc_producer_t *lc_producer_local_new(const lc_local_t *to, lc_waker_t *waker, lc_delivery_fn *on_report,
                                     void *arg);
lc_consumer_t *lc_consumer_local_new(const lc_local_t *from, lc_waker_t *waker,
                                     const lc_consumer_events_t *events, void *arg);

/* For producer.c and consumer.c: the functions of the same names for a local one. */
typedef struct lc_local_producer lc_local_producer_t;
lc_local_producer_t *lc_local_producer_new(const lc_local_t *to, lc_waker_t *waker, lc_delivery_fn *on_report,
                                           void *arg);
uint32_t lc_local_producer_send(lc_local_producer_t *p, lc_record_t *records, uint32_t n);
int lc_local_producer_poll(lc_local_producer_t *p);
size_t lc_local_producer_outstanding(const lc_local_producer_t *p);
void lc_local_producer_destroy(lc_local_producer_t *p);
typedef struct lc_local_consumer lc_local_consumer_t;
lc_local_consumer_t *lc_local_consumer_new(const lc_local_t *from, lc_waker_t *waker,
                                           const lc_consumer_events_t *events, void *arg);
bool lc_local_consumer_full(const lc_local_consumer_t *c);
int lc_local_consumer_poll(lc_local_consumer_t *c, lc_batch_t **batch, lc_err_t *err);
void lc_local_consumer_pause(lc_local_consumer_t *c, const lc_topic_partition_t *tps, size_t n, bool on);
int lc_local_consumer_seek(lc_local_consumer_t *c, const lc_topic_partition_t *tp, lc_err_t *err);
void lc_local_consumer_position(const lc_local_consumer_t *c, lc_topic_partition_t *tps, size_t n);
/* seq 0: told to nobody. */
void lc_local_consumer_commit(lc_local_consumer_t *c, const lc_topic_partition_t *tps, size_t n,
                              uint64_t seq);
void lc_local_consumer_close(lc_local_consumer_t *c);

#endif
