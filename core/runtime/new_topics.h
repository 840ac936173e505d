/*
 * new_topics.h - topics that a source's records go to for the first time, awaited before they are registered with a
 * transaction.
 *
 * A partition that the broker does not know yet when it is to be registered is tried again only after half a second
 * (librdkafka): with the topic made before, the first records of a new topic are not late. One that is not made is
 * the producer's matter.
 *
 * Threads:   the task's.
 * Tests:     spec/unit/exactly_once_spec.lua
 */
#ifndef LC_RUNTIME_NEW_TOPICS_H
#define LC_RUNTIME_NEW_TOPICS_H
#include "kafka/producer.h"

typedef struct lc_new_topics lc_new_topics_t;
/* stop: ends a wait. */
lc_new_topics_t *lc_new_topics_new(lc_producer_t *producer, bool (*stop)(void *arg), void *arg);
void lc_new_topics_free(lc_new_topics_t *n); /* NULL is fine */
/* Waits up to a second for a topic that was not asked for before. */
void lc_new_topics_await(lc_new_topics_t *n, const char *name);

#endif
