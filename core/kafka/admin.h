/*
 * admin.h - topics, their settings, group offsets, the cluster id. Calls block up to `ms`.
 *
 * Threads:   any, one call at a time per admin.   Errors: LC_RETRIABLE or LC_FATAL with broker and topic.
 * Tests:     spec/kafka/admin_spec.lua
 */
#ifndef LC_KAFKA_ADMIN_H
#define LC_KAFKA_ADMIN_H
#include "base/props.h"
#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct lc_admin lc_admin_t;
lc_admin_t *lc_admin_new(const lc_props_t *conf, lc_err_t *err);
void lc_admin_free(lc_admin_t *a);

char *lc_admin_cluster_id(lc_admin_t *a, int ms, lc_err_t *err);                  /* malloc'ed */
int lc_admin_partitions(lc_admin_t *a, const char *topic, int ms, lc_err_t *err); /* 0: no such topic */
/* partitions, replication: -1 = broker's default. 1 created, 0 existed already, -1 error. */
int lc_admin_create_topic(lc_admin_t *a, const char *topic, int partitions, int replication,
                          const lc_props_t *settings, int ms, lc_err_t *err);
/* One setting of a topic, malloc'ed; NULL with err set if it cannot be read. */
char *lc_admin_topic_config(lc_admin_t *a, const char *topic, const char *name, int ms, lc_err_t *err);
/* Committed offsets of a group: calls fn for each partition that has one. */
int lc_admin_group_offsets(lc_admin_t *a, const char *group, int ms,
                           void (*fn)(void *arg, const char *topic, int32_t partition, int64_t offset),
                           void *arg, lc_err_t *err);

#endif
