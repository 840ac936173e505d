/*
 * topic_stores.h - the three stores over topics of a hub, for kafka_stores.c and specs. conf: name, setting,
 * purpose, partitions, replication and settings; the rest is the store's.
 *
 * Ownership: a store is freed by its stop(), before the hub.   Tests: spec/kafka/storage_spec.lua
 */
#ifndef LC_STORAGE_TOPIC_STORES_H
#define LC_STORAGE_TOPIC_STORES_H
#include "kafka/topic_hub.h"
#include "storage/config_store.h"
#include "storage/offset_store.h"
#include "storage/status_store.h"

/* transactional: librdkafka settings of the leader's producer, copied; NULL: plain writes. */
lc_config_store_t *lc_config_store_kafka_new(lc_topic_hub_t *hub, const lc_hub_topic_conf_t *conf,
                                             const lc_props_t *transactional);
lc_offset_store_t *lc_offset_store_kafka_new(lc_topic_hub_t *hub, const lc_hub_topic_conf_t *conf);
lc_status_store_t *lc_status_store_kafka_new(lc_topic_hub_t *hub, const lc_hub_topic_conf_t *conf);
/* One record as if read. With hub NULL the offset store only gets these: for specs. */
void lc_offset_store_kafka_apply(lc_offset_store_t *s, const lc_hub_record_t *r);

#endif
