/*
 * producer.h - librdkafka producer for one task or store: batches of records in, delivery reports out.
 *
 * Threads:   one owner thread for send and poll; librdkafka's own threads stay hidden.
 * Ownership: a record given to send (state LC_REC_SUBMITTED) and its batch live until its report came
 *            through poll or destroy: send takes a batch reference a record, the report callback's caller
 *            (the runtime's tracker) drops it. No copies are made of key_bytes and value_bytes.
 * Errors:    by kind; a fatal producer (fenced) reports LC_FENCED on every later call.
 * Source:    DESIGN 3 and 8, reference librdkafka 5.   Tests: spec/unit/producer_spec.lua (mock cluster)
 */
#ifndef LC_KAFKA_PRODUCER_H
#define LC_KAFKA_PRODUCER_H
#include "base/props.h"
#include "base/waker.h"
#include "data/record.h"

typedef struct lc_producer lc_producer_t;
/* err NULL: delivered, and `to` says where; else `to` is NULL. Called from lc_producer_poll/destroy on the owner's
 * thread. */
typedef void lc_delivery_fn(void *arg, lc_record_t *record, const lc_err_t *err, const lc_delivery_t *to);

/* conf: librdkafka names (config/client_config.h). `waker` is woken when reports wait; may be NULL. */
lc_producer_t *lc_producer_new(const lc_props_t *conf, lc_waker_t *waker, lc_delivery_fn *on_report,
                               void *arg, lc_err_t *err);
/* Hand records[0..n) to librdkafka in order: runs of one topic without own timestamp or headers by
 * rd_kafka_produce_batch, else producev. Returns how many were taken. Fewer than n with err unset: the
 * queue is full, poll and come again from there. Fewer with err set: records[taken] was refused
 * (LC_DATA: too large, ...; LC_RETRIABLE; LC_FATAL). Records with state LC_REC_DROPPED are skipped. */
uint32_t lc_producer_send(lc_producer_t *p, lc_record_t *records, uint32_t n, lc_err_t *err);
/* One record, copied; its report is not on_report's: lc_producer_copied() tells. partition -1: Kafka's
 * partitioner on the key. -1 LC_RETRIABLE: the queue is full, poll and come again. */
int lc_producer_send_copy(lc_producer_t *p, const char *topic, int32_t partition, const void *key,
                          size_t key_len, const void *value, size_t value_len, lc_err_t *err);
/* Of the copied records since the last call: -1 and why, if one failed; else 0 and the last one's offset. */
int lc_producer_copied(lc_producer_t *p, int64_t *offset, lc_err_t *err);
/* Serve reports for up to ms. Returns their number. */
int lc_producer_poll(lc_producer_t *p, int ms);
/* librdkafka's codes that callers ask for. */
enum { LC_PURGED = -152, LC_QUEUE_FULL = -184, LC_BAD_STATE = -172, LC_TOO_LARGE = 10 };
/* Give up what was not sent yet. It is reported with the code RD_KAFKA_RESP_ERR__PURGE_QUEUE (LC_PURGED)
 * by the next polls; what is on its way is not touched. */
void lc_producer_purge(lc_producer_t *p);
/* A batch can be too large for its topic (max.message.bytes) though its records are not; Java's producer splits it.
 * Without transactions it comes back with LC_PURGED, too, and what is sent from then on goes in smaller batches. In
 * a transaction it cannot be told what was sent from what was not: LC_RETRIABLE with LC_TOO_LARGE, and whoever
 * aborted it may begin again with a smaller conf. Here: one step smaller. false: it has single records already. */
bool lc_producer_smaller(lc_props_t *conf);
size_t lc_producer_outstanding(const lc_producer_t *p); /* sent, report not yet served */
bool lc_producer_lingers(const lc_producer_t *p);       /* a batch may wait for more records: linger.ms */
/* Partition count of a topic, asking the cluster up to ms; 0 if it does not exist, -1 with err. */
int lc_producer_topic_partitions(lc_producer_t *p, const char *topic, int ms, lc_err_t *err);
struct rd_kafka_s *lc_producer_handle(lc_producer_t *p);
/* Wait up to flush_ms for reports, purge the rest (they are reported with an error), free. */
void lc_producer_destroy(lc_producer_t *p, int flush_ms);

#endif
