/*
 * producer.c - see producer.h: records in by rd_kafka_produce_batch without copying, reports out of the event
 * queue. One owner thread, no locks. spec/unit/producer_spec.lua
 *
 * A run (same topic, same partition, no own timestamp, no headers) is one call. What could fail for single
 * messages inside such a call (size) is checked before, so that what librdkafka took is always a prefix.
 */
#include "kafka/producer.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "kafka/conf.h"
#include "kafka/local.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
        RUN = 1024,                /* messages a produce_batch: more gains nothing (librdkafka 5) */
        RECORD_OVERHEAD = 61 + 21, /* Java's estimate: batch header, largest record header */
        PURGE_WAIT_MS = 10000,
        SMALL_BATCH = 16384 /* Java's batch.size: no topic that works with that refuses it */
};

typedef struct topic {
        char *name;
        rd_kafka_topic_t *rkt;
        UT_hash_handle hh;
} topic_t;

struct lc_producer {
        lc_local_producer_t *local; /* not NULL: nothing else is used */
        lc_kafka_client_t *client;
        lc_props_t *conf;
        int64_t batch_size; /* of conf */
        bool shrink;        /* a batch was refused: smaller ones as soon as nothing is out */
        rd_kafka_queue_t *queue;
        lc_delivery_fn *on_report;
        void *arg;
        lc_waker_t *waker;
        topic_t *topics, *last;
        size_t outstanding;
        rd_kafka_message_t *run; /* _private: the record. Grows: most producers never send many at once */
        uint32_t run_cap;
        int64_t copied_offset; /* of the last record of send_copy that was acknowledged */
        lc_err_t copy_err;     /* of the first that was not */
};

/* Java's defaults of what conf may leave open; its retries end with message.timeout.ms alone. */
static const char *const defaults[][2] = {{"partitioner", "murmur2_random"},
                                          {"message.send.max.retries", "2147483647"},
                                          /* A topic may be created much later. Not the allowed 3600000: 2.0.2
                                             counts it in an int of microseconds. */
                                          {"topic.metadata.propagation.max.ms", "2000000"},
                                          {NULL, NULL}};

static void attach(lc_producer_t *p, lc_kafka_client_t *client)
{
        p->client = client;
        p->queue = rd_kafka_queue_get_main(p->client->rk);
        if (p->waker)
                lc_kafka_queue_wakes(p->queue, p->waker);
}

static void close_client(lc_producer_t *p)
{
        topic_t *t, *next;

        rd_kafka_queue_io_event_enable(p->queue, -1, NULL, 0);
        rd_kafka_queue_destroy(p->queue);
        HASH_ITER(hh, p->topics, t, next)
        {
                HASH_DEL(p->topics, t);
                rd_kafka_topic_destroy(t->rkt);
                free(t->name);
                free(t);
        }
        p->last = NULL;
        lc_kafka_close(p->client);
}

/* Bytes; 0: a record a batch. */
static int64_t batch_size(const lc_props_t *conf)
{
        if (!strcmp(lc_props_get_or(conf, "batch.num.messages", ""), "1"))
                return 0;
        return strtoll(lc_props_get_or(conf, "batch.size", "1000000"), NULL, 10);
}

bool lc_producer_smaller(lc_props_t *conf)
{
        int64_t now = batch_size(conf);
        char bytes[24];

        snprintf(bytes, sizeof(bytes), "%d", SMALL_BATCH);
        if (now > SMALL_BATCH)
                lc_props_set(conf, "batch.size", bytes);
        else if (now)
                lc_props_set(conf, "batch.num.messages", "1");
        return now > 0;
}

lc_producer_t *lc_producer_new(const lc_props_t *conf, lc_waker_t *waker, lc_delivery_fn *on_report,
                               void *arg, lc_err_t *err)
{
        lc_kafka_client_t *client = lc_kafka_open(RD_KAFKA_PRODUCER, conf, defaults, RD_KAFKA_EVENT_DR, err);
        lc_producer_t *p;

        if (!client)
                return NULL;
        p = lc_calloc(1, sizeof(*p));
        p->conf = lc_props_copy(conf);
        p->batch_size = batch_size(conf);
        p->on_report = on_report;
        p->arg = arg;
        p->waker = waker;
        attach(p, client);
        return p;
}

lc_producer_t *lc_producer_local_new(const lc_local_t *to, lc_waker_t *waker, lc_delivery_fn *on_report,
                                     void *arg)
{
        lc_producer_t *p = lc_calloc(1, sizeof(*p));

        p->local = lc_local_producer_new(to, waker, on_report, arg);
        return p;
}

struct rd_kafka_s *lc_producer_handle(lc_producer_t *p)
{
        return p->client->rk;
}

bool lc_producer_lingers(const lc_producer_t *p)
{
        return p->client && p->client->lingers;
}

size_t lc_producer_outstanding(const lc_producer_t *p)
{
        return p->local ? lc_local_producer_outstanding(p->local) : p->outstanding;
}

/* Names live in batches, so a pointer may come back with another text: compare the text once a run. */
static rd_kafka_topic_t *topic_handle(lc_producer_t *p, const char *name, lc_err_t *err)
{
        topic_t *t = p->last;

        if (t && !strcmp(t->name, name))
                return t->rkt;
        HASH_FIND_STR(p->topics, name, t);
        if (!t) {
                rd_kafka_topic_t *rkt = rd_kafka_topic_new(p->client->rk, name, NULL);
                if (!rkt) {
                        lc_kafka_err_set(err, p->client->rk, rd_kafka_last_error(), NULL,
                                         "Cannot produce to topic '%s'", name);
                        return NULL;
                }
                t = lc_calloc(1, sizeof(*t));
                t->name = lc_strdup(name);
                t->rkt = rkt;
                HASH_ADD_KEYPTR(hh, p->topics, t->name, strlen(t->name), t);
        }
        p->last = t;
        return t->rkt;
}

static size_t varint_size(size_t n)
{
        size_t v = n << 1, bytes = 1; /* zigzag of a number >= 0 */

        while (v >= 0x80) {
                v >>= 7;
                bytes++;
        }
        return bytes;
}

static size_t field_size(const lc_slice_t *s)
{
        return s->p ? varint_size(s->len) + s->len : 1;
}

/* The size Java's producer compares with max.request.size (estimateSizeInBytesUpperBound). */
static size_t java_size(const lc_record_t *r)
{
        size_t n = RECORD_OVERHEAD + field_size(&r->key_bytes) + field_size(&r->value_bytes) +
                   varint_size(r->nheaders);

        for (uint16_t i = 0; i < r->nheaders; i++) {
                size_t name = strlen(r->headers[i].name);
                n += varint_size(name) + name + field_size(&r->headers[i].bytes);
        }
        return n;
}

static bool too_large(const lc_producer_t *p, const lc_record_t *r)
{
        size_t rough = r->key_bytes.len + r->value_bytes.len + RECORD_OVERHEAD + 30;

        if (!r->nheaders && rough <= (size_t)p->client->max_message)
                return false;
        return java_size(r) > (size_t)p->client->max_message;
}

static bool is_plain(const lc_record_t *r)
{
        return !r->nheaders && r->timestamp < 0;
}

static void taken(lc_producer_t *p, lc_record_t *r)
{
        lc_batch_ref(r->batch);
        r->state = LC_REC_SUBMITTED;
        p->outstanding++;
}

/* Why a message was not taken. Returns 0 for a full queue, else -1 with err. */
static int refused(lc_producer_t *p, const lc_record_t *r, rd_kafka_resp_err_t code, lc_err_t *err)
{
        if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL)
                return 0;
        if (r->partition >= 0)
                return lc_kafka_err_set(err, p->client->rk, code, NULL,
                                        "Cannot send a record to topic '%s' partition %d", r->topic,
                                        (int)r->partition);
        return lc_kafka_err_set(err, p->client->rk, code, NULL, "Cannot send a record to topic '%s'",
                                r->topic);
}

/* One record with its own timestamp or headers. 1 taken, 0 queue full, -1. */
static int send_one(lc_producer_t *p, rd_kafka_topic_t *rkt, lc_record_t *r, lc_err_t *err)
{
        rd_kafka_headers_t *headers = NULL;
        rd_kafka_resp_err_t code;

        if (r->nheaders) {
                /* an owned list: inline headers crash 2.0.2 when the partition does not exist */
                headers = rd_kafka_headers_new(r->nheaders);
                for (uint16_t i = 0; i < r->nheaders; i++)
                        rd_kafka_header_add(headers, r->headers[i].name, -1, r->headers[i].bytes.p,
                                            (ssize_t)r->headers[i].bytes.len);
        }
        /* librdkafka takes timestamp 0 for "now": the one instant that cannot be sent */
        code = headers ? rd_kafka_producev(p->client->rk, RD_KAFKA_V_RKT(rkt),
                                           RD_KAFKA_V_PARTITION(r->partition), RD_KAFKA_V_MSGFLAGS(0),
                                           RD_KAFKA_V_VALUE((void *)r->value_bytes.p, r->value_bytes.len),
                                           RD_KAFKA_V_KEY(r->key_bytes.p, r->key_bytes.len),
                                           RD_KAFKA_V_TIMESTAMP(r->timestamp > 0 ? r->timestamp : 0),
                                           RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(r), RD_KAFKA_V_END)
                       : rd_kafka_producev(p->client->rk, RD_KAFKA_V_RKT(rkt),
                                           RD_KAFKA_V_PARTITION(r->partition), RD_KAFKA_V_MSGFLAGS(0),
                                           RD_KAFKA_V_VALUE((void *)r->value_bytes.p, r->value_bytes.len),
                                           RD_KAFKA_V_KEY(r->key_bytes.p, r->key_bytes.len),
                                           RD_KAFKA_V_TIMESTAMP(r->timestamp > 0 ? r->timestamp : 0),
                                           RD_KAFKA_V_OPAQUE(r), RD_KAFKA_V_END);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
                taken(p, r);
                return 1;
        }
        if (headers)
                rd_kafka_headers_destroy(headers); /* only a taken message owns them */
        return refused(p, r, code, err);
}

/* The run that starts at records[from]. Returns the index behind what was taken or skipped; *stop is set
 * when it ended early (queue full, or err). */
static uint32_t send_run(lc_producer_t *p, rd_kafka_topic_t *rkt, lc_record_t *records, uint32_t from,
                         uint32_t n, bool *stop, lc_err_t *err)
{
        const char *topic = records[from].topic;
        int32_t partition = records[from].partition;
        uint32_t at = from, most = n - from < RUN ? n - from : RUN;
        int k = 0, good;

        if (most > p->run_cap) {
                free(p->run);
                p->run = lc_calloc(most, sizeof(*p->run));
                p->run_cap = most;
        }
        for (; at < n && k < RUN; at++) {
                lc_record_t *r = &records[at];
                rd_kafka_message_t *m = &p->run[k];

                if (r->state == LC_REC_DROPPED || r->state == LC_REC_SUBMITTED)
                        continue;
                if ((r->topic != topic && strcmp(r->topic, topic) != 0) || r->partition != partition ||
                    !is_plain(r) || too_large(p, r))
                        break;
                m->payload = (void *)r->value_bytes.p;
                m->len = r->value_bytes.len;
                m->key = (void *)r->key_bytes.p;
                m->key_len = r->key_bytes.len;
                m->_private = r;
                m->err = RD_KAFKA_RESP_ERR_NO_ERROR;
                k++;
        }
        good = rd_kafka_produce_batch(rkt, partition, 0, p->run, k);
        if (good == k) {
                for (int i = 0; i < k; i++)
                        taken(p, p->run[i]._private);
                return at;
        }
        *stop = true;
        at = n;
        for (int i = 0; i < k; i++) {
                if (p->run[i].err == RD_KAFKA_RESP_ERR_NO_ERROR) {
                        taken(p, p->run[i]._private); /* skipped by state when the caller comes again */
                } else if (at == n) {
                        at = (uint32_t)((lc_record_t *)p->run[i]._private - records);
                        refused(p, p->run[i]._private, p->run[i].err, err);
                }
        }
        return at;
}

/* Nothing is out. */
static int use_smaller_batches(lc_producer_t *p, lc_err_t *err)
{
        lc_kafka_client_t *client;

        if (batch_size(p->conf) == p->batch_size) /* else it was made smaller, and opening it failed */
                lc_producer_smaller(p->conf);
        client = lc_kafka_open(RD_KAFKA_PRODUCER, p->conf, defaults, RD_KAFKA_EVENT_DR, err);
        if (!client)
                return -1;
        close_client(p);
        attach(p, client);
        p->batch_size = batch_size(p->conf);
        p->shrink = false;
        return 0;
}

uint32_t lc_producer_send(lc_producer_t *p, lc_record_t *records, uint32_t n, lc_err_t *err)
{
        uint32_t i = 0;
        bool stop = false;

        if (p->local)
                return lc_local_producer_send(p->local, records, n);
        if (p->shrink && (p->outstanding || use_smaller_batches(p, err)))
                return 0;
        while (i < n && !stop) {
                lc_record_t *r = &records[i];
                rd_kafka_topic_t *rkt;
                int rc;

                if (r->state == LC_REC_DROPPED || r->state == LC_REC_SUBMITTED) {
                        i++;
                        continue;
                }
                rkt = topic_handle(p, r->topic, err);
                if (!rkt)
                        return i;
                if (too_large(p, r)) {
                        lc_err_set_cls(err, LC_DATA, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
                                       lc_kafka_err_cls(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE),
                                       "The message is %zu bytes when serialized which is larger than %lld, "
                                       "which is the value of the max.request.size configuration.",
                                       java_size(r), (long long)p->client->max_message);
                        return i;
                }
                if (is_plain(r)) {
                        i = send_run(p, rkt, records, i, n, &stop, err);
                        continue;
                }
                rc = send_one(p, rkt, r, err);
                if (rc <= 0)
                        return i;
                i++;
        }
        return i;
}

int lc_producer_send_copy(lc_producer_t *p, const char *topic, int32_t partition, const void *key,
                          size_t key_len, const void *value, size_t value_len, lc_err_t *err)
{
        rd_kafka_topic_t *rkt = topic_handle(p, topic, err);
        rd_kafka_resp_err_t code;

        if (!rkt)
                return -1;
        code = rd_kafka_producev(p->client->rk, RD_KAFKA_V_RKT(rkt), RD_KAFKA_V_PARTITION(partition),
                                 RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                 RD_KAFKA_V_VALUE((void *)value, value_len), RD_KAFKA_V_KEY(key, key_len),
                                 RD_KAFKA_V_OPAQUE(NULL), RD_KAFKA_V_END);
        if (code)
                return lc_kafka_err_set(err, p->client->rk, code, NULL, "Cannot send a record to topic '%s'",
                                        topic);
        p->outstanding++;
        return 0;
}

int lc_producer_copied(lc_producer_t *p, int64_t *offset, lc_err_t *err)
{
        int rc = p->copy_err.kind ? -1 : 0;

        if (rc && err && !err->kind)
                *err = p->copy_err;
        if (offset)
                *offset = p->copied_offset;
        lc_err_clear(&p->copy_err);
        p->copied_offset = -1;
        return rc;
}

/* See lc_producer_smaller(). */
static bool only_the_batch(const lc_producer_t *p, const rd_kafka_message_t *m, size_t size)
{
        return m->err == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE && p->batch_size > 0 &&
               size <= (size_t)p->batch_size;
}

static void report_copy(lc_producer_t *p, const rd_kafka_message_t *m)
{
        if (!m->err) {
                p->copied_offset = m->offset;
                return;
        }
        lc_kafka_err_set(&p->copy_err, p->client->rk, m->err, NULL, "Cannot write to topic '%s'",
                         rd_kafka_topic_name(m->rkt));
        if (only_the_batch(p, m, m->key_len + m->len + RECORD_OVERHEAD))
                p->copy_err.kind = LC_RETRIABLE;
}

static bool transactional(const lc_producer_t *p)
{
        return lc_props_has(p->conf, "transactional.id");
}

static void tell_refused(lc_producer_t *p, lc_record_t *r, int code)
{
        lc_err_t err;

        lc_err_clear(&err);
        lc_err_set_cls(&err, LC_RETRIABLE, code, lc_kafka_err_cls(RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE),
                       "Topic '%s' refused a batch (its max.message.bytes; ours are of up to %lld bytes)",
                       r->topic, (long long)p->batch_size);
        p->on_report(p->arg, r, &err, NULL);
}

/* Records come back as if they were purged, the ones behind them, too, and are sent again in their order. */
static void take_back(lc_producer_t *p, lc_record_t *r)
{
        if (!p->shrink) {
                p->shrink = true;
                lc_log(LC_WARN, "KAFKA",
                       "%s: topic '%s' refused a batch (its max.message.bytes; ours are of up to %lld "
                       "bytes): smaller "
                       "ones from here on",
                       p->client->name, r->topic, (long long)p->batch_size);
                lc_producer_purge(p);
        }
        tell_refused(p, r, LC_PURGED);
}

static void report(lc_producer_t *p, const rd_kafka_message_t *m)
{
        lc_record_t *r = m->_private;

        p->outstanding--;
        if (!r) {
                report_copy(p, m);
        } else if (!m->err) {
                lc_delivery_t to = {m->partition, m->offset};

                p->on_report(p->arg, r, NULL, &to);
        } else if (only_the_batch(p, m, java_size(r))) {
                if (transactional(p))
                        tell_refused(p, r, LC_TOO_LARGE);
                else
                        take_back(p, r);
        } else {
                lc_err_t err;

                lc_err_clear(&err);
                lc_kafka_err_set(&err, p->client->rk, m->err, NULL,
                                 "Delivery to topic '%s' partition %d failed", rd_kafka_topic_name(m->rkt),
                                 (int)m->partition);
                /* librdkafka has retried what can be retried; what arrives is final */
                if (err.kind == LC_RETRIABLE)
                        err.kind = LC_FATAL;
                p->on_report(p->arg, r, &err, NULL);
        }
}

int lc_producer_poll(lc_producer_t *p, int ms)
{
        rd_kafka_event_t *ev;
        int n = 0;

        if (p->local)
                return lc_local_producer_poll(p->local);
        while ((ev = rd_kafka_queue_poll(p->queue, n ? 0 : ms))) {
                const rd_kafka_message_t *m;

                if (rd_kafka_event_type(ev) == RD_KAFKA_EVENT_DR)
                        while ((m = rd_kafka_event_message_next(ev))) {
                                report(p, m);
                                n++;
                        }
                rd_kafka_event_destroy(ev);
                ms = 0;
        }
        return n;
}

_Static_assert((int)LC_PURGED == (int)RD_KAFKA_RESP_ERR__PURGE_QUEUE &&
                       (int)LC_QUEUE_FULL == (int)RD_KAFKA_RESP_ERR__QUEUE_FULL &&
                       (int)LC_BAD_STATE == (int)RD_KAFKA_RESP_ERR__STATE &&
                       (int)LC_TOO_LARGE == (int)RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
               "producer.h names the codes");

void lc_producer_purge(lc_producer_t *p)
{
        if (!p->local) /* a local one has nothing that was not written */
                rd_kafka_purge(p->client->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

int lc_producer_topic_partitions(lc_producer_t *p, const char *topic, int ms, lc_err_t *err)
{
        const struct rd_kafka_metadata *md = NULL;
        rd_kafka_topic_t *rkt = topic_handle(p, topic, err);
        rd_kafka_resp_err_t code;
        int n = -1;

        if (!rkt)
                return -1;
        code = rd_kafka_metadata(p->client->rk, 0, rkt, &md, ms);
        if (!code && md->topic_cnt)
                code = md->topics[0].err;
        if (!code)
                n = md->topic_cnt ? md->topics[0].partition_cnt : 0;
        else if (code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
                n = 0;
        else
                lc_kafka_err_set(err, p->client->rk, code, NULL, "Cannot read the metadata of topic '%s'",
                                 topic);
        if (md)
                rd_kafka_metadata_destroy(md);
        return n;
}

void lc_producer_destroy(lc_producer_t *p, int flush_ms)
{
        int64_t until = lc_now_ms() + flush_ms;

        if (!p)
                return;
        if (p->local) {
                lc_local_producer_destroy(p->local);
                free(p);
                return;
        }
        /* a plain flush waits a linger and never sees reports that nobody serves */
        while (p->outstanding && lc_now_ms() < until) {
                rd_kafka_flush(p->client->rk, 1);
                lc_producer_poll(p, 10);
        }
        if (p->outstanding) {
                lc_log(LC_WARN, "KAFKA",
                       "%s: %zu records were not acknowledged within %d ms and are given up", p->client->name,
                       p->outstanding, flush_ms);
                rd_kafka_purge(p->client->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
                until = lc_now_ms() + PURGE_WAIT_MS;
                while (p->outstanding && lc_now_ms() < until)
                        lc_producer_poll(p, 50);
        }
        lc_producer_poll(p, 0);
        close_client(p);
        lc_props_free(p->conf);
        free(p->run);
        free(p);
}
