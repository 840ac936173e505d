/*
 * admin_calls.h - admin requests over any librdkafka handle, several topics in one request: what admin.c
 * and topic_hub.c share. All block up to `ms`.
 *
 * Threads:   any; one call uses its own queue.
 * Errors:    by kind, with Java's texts for topic creation.   Tests: spec/kafka/admin_spec.lua
 */
#ifndef LC_KAFKA_ADMIN_CALLS_H
#define LC_KAFKA_ADMIN_CALLS_H
#include "base/err.h"
#include "base/props.h"
#include <librdkafka/rdkafka.h>
#include <stdbool.h>

typedef struct lc_kafka_new_topic {
        const char *name;
        int partitions, replication; /* -1: the broker's default */
        const lc_props_t *settings;  /* may be NULL */
        bool created;                /* out; false: existed, or may not be created by us */
        lc_err_t err;                /* out; kind 0: fine */
} lc_kafka_new_topic_t;

/* Partition counts of n topics in one request; 0 = no such topic. Only partitions with a leader count once
 * all have one: a topic still without leaders gives 0 too. */
int lc_kafka_topic_partitions(rd_kafka_t *rk, const char *const *topics, int n, int *partitions, int ms,
                              lc_err_t *err);
/* Create what does not exist. Not allowed or not supported: taken for existing, as Java does. */
int lc_kafka_create_topics(rd_kafka_t *rk, lc_kafka_new_topic_t *topics, int n, int ms, lc_err_t *err);
/* One setting of n topics: values[i] malloc'ed, or NULL (err says why for the last such one; returns -1 if
 * any is NULL). */
int lc_kafka_topic_configs(rd_kafka_t *rk, const char *const *topics, int n, const char *setting,
                           char **values, int ms, lc_err_t *err);

#endif
