/*
 * kafka_stores.h - the three stores of distributed mode over one pair of librdkafka handles (topic_hub.h).
 *
 * Order: new, start of each store, use, stop of each store, free. While brokers are away the log says every
 * 10 s what is being waited for.
 */
#ifndef LC_STORAGE_KAFKA_STORES_H
#define LC_STORAGE_KAFKA_STORES_H
#include "config/worker_config.h"
#include "storage/config_store.h"
#include "storage/offset_store.h"
#include "storage/status_store.h"

typedef struct lc_kafka_stores {
        lc_config_store_t *config;
        lc_offset_store_t *offset;
        lc_status_store_t *status;
        struct lc_topic_hub *hub;
} lc_kafka_stores_t;
int lc_kafka_stores_new(const lc_worker_config_t *wc, lc_kafka_stores_t *out, lc_err_t *err);
/* describeCluster: the id, malloc'ed. Failure text of worker-config 9 step 5 after its timeout. */
char *lc_kafka_stores_cluster_id(lc_kafka_stores_t *ks, const volatile int *stop, lc_err_t *err);
void lc_kafka_stores_free(lc_kafka_stores_t *ks); /* after the stores were stopped */

/* A source connector's own offsets topic (storage.md 5.1), made like the worker's if it is missing, with clients
 * of the connector. suffix: of their ids, "NAME" or "NAME-0". Start it, use it, stop it, free the hub. */
lc_offset_store_t *lc_kafka_own_offsets_new(const lc_worker_config_t *wc, const lc_props_t *connector_config,
                                            const char *topic, const char *suffix, struct lc_topic_hub **hub,
                                            lc_err_t *err);
void lc_kafka_own_offsets_free(struct lc_topic_hub *hub);

#endif
