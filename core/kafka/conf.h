/*
 * conf.h - what every librdkafka handle of ours has in common: configuration from a map, log lines, error
 * kinds, closing.
 *
 * Threads:   open and close by the owner; log lines come on librdkafka's threads with the context the opening
 *            thread had. Repeated connection errors are said at most once per 10 s and handle.
 * Ownership: lc_kafka_close() destroys the handle and frees the client; it waits for librdkafka's threads.
 * Tests:     spec/unit/producer_spec.lua
 */
#ifndef LC_KAFKA_CONF_H
#define LC_KAFKA_CONF_H
#include "base/err.h"
#include "base/props.h"
#include "base/waker.h"
#include <librdkafka/rdkafka.h>

typedef struct lc_kafka_client {
        rd_kafka_t *rk;
        int64_t max_message; /* message.max.bytes */
        bool lingers;        /* linger.ms is not 0 */
        char context[120];   /* of the log lines */
        char name[160];      /* client.id */
        int64_t said;        /* when the last connection error was logged */
        int held_back;       /* and how many were not */
} lc_kafka_client_t;

/* conf: librdkafka names and values; `defaults` (may be NULL): those that conf does not name. `events`:
 * RD_KAFKA_EVENT_*. */
lc_kafka_client_t *lc_kafka_open(rd_kafka_type_t type, const lc_props_t *conf,
                                 const char *const (*defaults)[2], int events, lc_err_t *err);
void lc_kafka_close(lc_kafka_client_t *c); /* NULL is fine */
/* Write to the waker's eventfd whenever something enters the empty queue. */
void lc_kafka_queue_wakes(rd_kafka_queue_t *q, const lc_waker_t *w);

lc_err_kind_t lc_kafka_err_kind(rd_kafka_resp_err_t code);
const char *lc_kafka_err_cls(rd_kafka_resp_err_t code); /* Java's class, or KafkaException */
/* "PREFIX: TEXT" by the code; asks rd_kafka_fatal_error() when rk is given. Returns -1. */
int lc_kafka_err_set(lc_err_t *err, rd_kafka_t *rk, rd_kafka_resp_err_t code, const char *text,
                     const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Kafka's own partitioner on a key: (murmur2 & 0x7fffffff) % partitions. */
int32_t lc_kafka_partition(const void *key, size_t len, int32_t partitions);

#endif
