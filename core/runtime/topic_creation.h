/*
 * topic_creation.h - topic.creation.* groups of a source connector (connector-config 1.4): which settings a
 * new topic gets, and creating it once per topic and task.
 *
 * Threads:   the task's.
 * Tests:     spec/unit/source_task_spec.lua, spec/kafka
 */
#ifndef LC_RUNTIME_TOPIC_CREATION_H
#define LC_RUNTIME_TOPIC_CREATION_H
#include "config/worker_config.h"

typedef struct lc_topic_creation lc_topic_creation_t;

/* *out NULL: topics are left to the broker (no groups, or topic.creation.enable=false). */
int lc_topic_creation_new(const lc_worker_config_t *wc, const char *connector, int task,
                          const lc_props_t *config, lc_topic_creation_t **out, lc_err_t *err);
void lc_topic_creation_free(lc_topic_creation_t *tc); /* NULL is fine */
/* The topic exists when this returns 0. LC_RETRIABLE: the cluster did not answer. */
int lc_topic_creation_ensure(lc_topic_creation_t *tc, const char *topic, lc_err_t *err);
void lc_topic_creation_rest(lc_topic_creation_t *tc); /* closes its client until it is needed again */
/* Name of the group a topic belongs to: for specs. */
const char *lc_topic_creation_group(const lc_topic_creation_t *tc, const char *topic);

#endif
