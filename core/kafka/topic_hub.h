/*
 * topic_hub.h - the shared log of the internal topics (storage.md 1): created or checked, read to the end,
 * then followed for ever, written with acknowledgement. One pair of librdkafka handles and one thread for
 * all.
 *
 * Threads:   any, but nothing that waits from inside on_record or done: these run on the hub's thread.
 *            One mutex (hub.lock), never held while calling out.
 * Ownership: a hub owns its topics. Records in on_record are borrowed for the call. send and write copy.
 * Errors:    texts of storage.md 1; start waits for brokers for ever (or until *stop), says so every 10 s.
 * Source:    storage.md 1, DESIGN 3.   Tests: spec/kafka/storage_spec.lua
 */
#ifndef LC_KAFKA_TOPIC_HUB_H
#define LC_KAFKA_TOPIC_HUB_H
#include "base/err.h"
#include "base/props.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct lc_topic_hub lc_topic_hub_t;
typedef struct lc_hub_topic lc_hub_topic_t;

typedef struct lc_hub_record {
        const char *topic;
        int32_t partition;
        int64_t offset, timestamp;
        const char *key, *value; /* NULL: none; not terminated */
        size_t key_len, value_len;
} lc_hub_record_t;

typedef struct lc_hub_topic_conf { /* copied */
        const char *name;          /* the topic */
        const char *setting;       /* "config.storage.topic": for messages */
        const char *purpose;       /* "connector configurations" */
        int partitions, replication;
        bool single_partition;      /* more are an error */
        const lc_props_t *settings; /* at creation; cleanup.policy=compact is added */
        int write_ms;               /* a record not acknowledged by then fails; 0: never gives up */
        void (*on_record)(void *arg, const lc_hub_record_t *r);
        void (*on_tick)(void *arg); /* about every second, on the hub's thread; may be NULL */
        void *arg;
} lc_hub_topic_conf_t;

/* producer, consumer: librdkafka settings, client.id included. read_committed: exactly-once clusters.
 * api_ms: default.api.timeout.ms, for which creation and the cluster id are retried. */
lc_topic_hub_t *lc_topic_hub_new(const lc_props_t *producer, const lc_props_t *consumer, bool read_committed,
                                 int api_ms, lc_err_t *err);
/* Some writers use transactions. The position passes their markers only with an empty fetch, so that reading to
 * the end would wait half a second for it: fetches wait less. Before the start; read_committed implies it. */
void lc_topic_hub_expect_markers(lc_topic_hub_t *hub);
/* Of a connector's own topic: what is denied fails the start, as does a broker that is not there within ms (0: it is
 * waited for). The worker's own topics are waited for until somebody mends them. Before the start. */
void lc_topic_hub_impatient(lc_topic_hub_t *hub, int ms);
lc_hub_topic_t *lc_topic_hub_add(lc_topic_hub_t *hub, const lc_hub_topic_conf_t *conf); /* before any start */
void lc_topic_hub_free(lc_topic_hub_t *hub); /* what is out fails; joins the thread */
/* The id of the cluster, malloc'ed. NULL after api_ms or on *stop. */
char *lc_topic_hub_cluster_id(lc_topic_hub_t *hub, const volatile int *stop, lc_err_t *err);

/* The first start brings all topics up; each then waits for its own: every record that was there has gone
 * through on_record when it returns 0. */
int lc_hub_topic_start(lc_hub_topic_t *t, const volatile int *stop, lc_err_t *err);
int lc_hub_topic_partition_count(lc_hub_topic_t *t); /* 0 before the start */
/* After it returned, on_record and on_tick are not called any more for this topic; done still is, once for
 * each record that is out. Not from the hub's thread. */
void lc_hub_topic_detach(lc_hub_topic_t *t);
/* What was sent before is acknowledged, and what the topic holds now has gone through on_record. */
int lc_hub_topic_read_to_end(lc_hub_topic_t *t, int ms, lc_err_t *err);

typedef struct lc_hub_out {
        const char *key, *value; /* value NULL: tombstone */
        size_t key_len, value_len;
        int32_t partition; /* -1: Kafka's partitioner on the key */
} lc_hub_out_t;
/* err NULL: acknowledged. On the hub's thread, exactly once (also from lc_topic_hub_free). */
typedef void lc_hub_done_fn(void *arg, const lc_err_t *err, int32_t partition, int64_t offset);
void lc_hub_topic_send(lc_hub_topic_t *t, const lc_hub_out_t *out, lc_hub_done_fn *done, void *arg);
/* All in order, acknowledged within ms; with `seen` also come back through on_record. */
int lc_hub_topic_write(lc_hub_topic_t *t, const lc_hub_out_t *out, size_t n, bool seen, int ms,
                       lc_err_t *err);
/* What another producer wrote at this place has gone through on_record. */
int lc_hub_topic_await(lc_hub_topic_t *t, int32_t partition, int64_t offset, int ms, lc_err_t *err);
/* Wait until everything sent to the topic so far is done; false after ms. */
bool lc_hub_topic_flush(lc_hub_topic_t *t, int ms);

#endif
