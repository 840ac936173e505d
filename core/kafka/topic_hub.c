/*
 * topic_hub.c - see topic_hub.h: the hub, and its thread, which follows the internal topics once they are up.
 * Lock: hub.lock (topic_hub_internal.h says what it guards). spec/kafka/storage_spec.lua
 *
 * Two readers, because fetch.wait.max.ms cannot change: the fast one (10 ms) reads to the end and stays for a
 * moment, the slow one (500 ms, one request twice a second when idle) takes over. Until that one is where the
 * fast one has stopped, a record is taken once: by its offset.
 */
#include "kafka/topic_hub.h"
#include "base/alloc.h"
#include "base/waker.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "kafka/producer.h"
#include "kafka/topic_hub_internal.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
        FAST_WAIT_MS = 10,
        OVERLAP_MS = 1500, /* the slow reader's partitions join its fetches within one wait */
        CHUNK = 512,
        IDLE_MS = 1000,
        START_LOOK_MS = 50
};

/* ---- making ---- */

lc_topic_hub_t *lc_topic_hub_new(const lc_props_t *producer, const lc_props_t *consumer, bool read_committed,
                                 int api_ms, lc_err_t *err)
{
        static const char *const defaults[][2] = {
                {"linger.ms", "0"},
                {"max.in.flight", "1"},
                {"acks", "all"},
                {"message.send.max.retries", "2147483647"},
                {"topic.metadata.propagation.max.ms", "2000000"},
                {"reconnect.backoff.ms", "50"},
                {"reconnect.backoff.max.ms", "1000"},
                {"retry.backoff.ms", "30"}, /* a new topic's leader refuses for a moment */
                {"topic.metadata.refresh.fast.interval.ms", "100"},
                {NULL, NULL}};
        lc_topic_hub_t *hub = lc_calloc(1, sizeof(*hub));
        lc_props_t *conf = lc_props_copy(producer);

        pthread_mutex_init(&hub->lock, NULL);
        lc_cond_init(&hub->changed);
        hub->waker.fd = -1;
        hub->api_ms = api_ms;
        hub->markers = read_committed;
        hub->consumer_conf = lc_props_copy(consumer);
        lc_props_del(hub->consumer_conf, "group.id");
        if (read_committed || !lc_props_has(consumer, "isolation.level"))
                lc_props_set(hub->consumer_conf, "isolation.level",
                             read_committed ? "read_committed" : "read_uncommitted");
        /* a topic that is missing must never appear with the broker's defaults, and the ends asked for are
         * the real ones, as Java's admin client asks */
        lc_props_set(conf, "allow.auto.create.topics", "false");
        lc_props_set(conf, "isolation.level", "read_uncommitted");
        lc_producer_smaller(conf); /* a topic that takes Java's batches takes these */
        hub->servers = lc_strdup(lc_props_get_or(producer, "bootstrap.servers", "?"));
        if (lc_waker_init(&hub->waker) < 0) {
                lc_err_set(err, LC_FATAL, errno, "No descriptor for a wake-up: %s", strerror(errno));
                goto fail;
        }
        hub->producer = lc_kafka_open(RD_KAFKA_PRODUCER, conf, defaults, RD_KAFKA_EVENT_DR, err);
        if (!hub->producer)
                goto fail;
        hub->reports = rd_kafka_queue_get_main(hub->producer->rk);
        lc_kafka_queue_wakes(hub->reports, &hub->waker);
        lc_props_free(conf);
        return hub;
fail:
        lc_props_free(conf);
        lc_topic_hub_free(hub);
        return NULL;
}

lc_hub_topic_t *lc_topic_hub_add(lc_topic_hub_t *hub, const lc_hub_topic_conf_t *conf)
{
        lc_hub_topic_t *t = lc_calloc(1, sizeof(*t));

        lc_assert(hub->ntopics < LC_HUB_TOPICS);
        t->hub = hub;
        t->index = hub->ntopics;
        t->conf = *conf;
        t->name = lc_strdup(conf->name);
        t->setting = lc_strdup(conf->setting);
        t->purpose = lc_strdup(conf->purpose);
        t->settings = lc_props_copy(conf->settings);
        lc_props_set(t->settings, "cleanup.policy", "compact");
        t->conf.settings = t->settings;
        hub->topics[hub->ntopics++] = t;
        return t;
}

/* ---- reading ---- */

static bool enter(lc_hub_topic_t *t)
{
        bool ok;

        pthread_mutex_lock(&t->hub->lock);
        ok = !t->detached;
        t->hub->calling = ok ? t : NULL;
        pthread_mutex_unlock(&t->hub->lock);
        return ok;
}

/* Under the lock. */
static void leave(lc_topic_hub_t *hub)
{
        if (hub->calling && hub->calling->detached)
                pthread_cond_broadcast(&hub->changed); /* somebody waits in detach */
        hub->calling = NULL;
}

void lc_hub_topic_detach(lc_hub_topic_t *t)
{
        pthread_mutex_lock(&t->hub->lock);
        t->detached = true;
        while (t->hub->calling == t)
                lc_cond_wait_until(&t->hub->changed, &t->hub->lock, lc_now_ms() + IDLE_MS);
        pthread_mutex_unlock(&t->hub->lock);
}

static lc_hub_topic_t *topic_of(lc_topic_hub_t *hub, const rd_kafka_message_t *m)
{
        const char *name = m->rkt ? rd_kafka_topic_name(m->rkt) : "";

        for (int i = 0; i < hub->ntopics; i++)
                if (!strcmp(hub->topics[i]->name, name))
                        return hub->topics[i];
        return NULL;
}

static void take_record(lc_topic_hub_t *hub, lc_hub_topic_t *t, const rd_kafka_message_t *m)
{
        rd_kafka_timestamp_type_t type;
        lc_hub_record_t r = {.topic = t->name, .partition = m->partition, .offset = m->offset};

        /* written by this thread only, so read without the lock */
        if (t->behind[m->partition] && m->offset < t->position[m->partition])
                return; /* the other reader had it */
        t->behind[m->partition] = t->behind[m->partition] && hub->fast.client;
        r.timestamp = rd_kafka_message_timestamp(m, &type);
        r.key = m->key;
        r.key_len = m->key_len;
        r.value = m->payload;
        r.value_len = m->len;
        if (enter(t))
                t->conf.on_record(t->conf.arg, &r);
        pthread_mutex_lock(&hub->lock);
        leave(hub);
        t->position[m->partition] = m->offset + 1;
        pthread_mutex_unlock(&hub->lock);
}

/* All that waits in the reader's queue. Returns whether anything moved. */
static bool serve_reader(lc_topic_hub_t *hub, lc_hub_reader_t *r)
{
        rd_kafka_message_t *batch[CHUNK];
        rd_kafka_event_t *ev;
        rd_kafka_queue_t *main_queue;
        bool moved = false;
        ssize_t n;

        if (!r->client)
                return false;
        while ((n = rd_kafka_consume_batch_queue(r->queue, 0, batch, CHUNK)) > 0) {
                for (ssize_t i = 0; i < n; i++) {
                        rd_kafka_message_t *m = batch[i];
                        lc_hub_topic_t *t = topic_of(hub, m);
                        if (t && m->partition >= 0 && m->partition < t->npartitions) {
                                if (!m->err) {
                                        take_record(hub, t, m);
                                        moved = true;
                                } else if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
                                        /* behind markers of transactions and aborted records */
                                        pthread_mutex_lock(&hub->lock);
                                        if (m->offset >= t->position[m->partition]) {
                                                t->position[m->partition] = m->offset;
                                                t->behind[m->partition] &= hub->fast.client != NULL;
                                        }
                                        pthread_mutex_unlock(&hub->lock);
                                        moved = true;
                                } else if (lc_kafka_err_kind(m->err) != LC_RETRIABLE) {
                                        lc_log(LC_ERROR, "KAFKA", "Error polling: %s-%d: %s", t->name,
                                               (int)m->partition, rd_kafka_message_errstr(m));
                                        lc_hub_refused(hub, t, m->err);
                                }
                        }
                        rd_kafka_message_destroy(m);
                }
                if (n < CHUNK)
                        break;
        }
        main_queue = rd_kafka_queue_get_main(r->client->rk);
        while ((ev = rd_kafka_queue_poll(main_queue, 0))) /* errors: the log callback says them */
                rd_kafka_event_destroy(ev);
        rd_kafka_queue_destroy(main_queue);
        return moved;
}

/* ---- the thread ---- */

static void note_ends(lc_topic_hub_t *hub)
{
        pthread_mutex_lock(&hub->lock);
        for (int i = 0; i < hub->ntopics; i++) {
                lc_hub_topic_t *t = hub->topics[i];
                bool at_end = t->npartitions > 0;
                for (int p = 0; p < t->npartitions && at_end; p++)
                        at_end = t->position[p] >= t->first_end[p];
                t->at_end = t->at_end || (at_end && !t->failed);
        }
        pthread_cond_broadcast(&hub->changed);
        pthread_mutex_unlock(&hub->lock);
}

static bool all_at_end(const lc_topic_hub_t *hub)
{
        for (int i = 0; i < hub->ntopics; i++)
                if (!hub->topics[i]->at_end && !hub->topics[i]->failed)
                        return false;
        return true;
}

static void start_slow(lc_topic_hub_t *hub)
{
        lc_err_t err;

        lc_err_clear(&err);
        if (lc_hub_reader_open(hub, &hub->slow, hub->markers ? "100" : "500", &err) < 0) {
                lc_log(LC_ERROR, "KAFKA", "%s; staying with short polls", err.msg);
                hub->swap_at = -1;
                return;
        }
        for (int i = 0; i < hub->ntopics; i++)
                for (int p = 0; p < hub->topics[i]->npartitions; p++) {
                        lc_hub_topic_t *t = hub->topics[i];
                        /* until the slow one is there the fast one listens to the empty ones too */
                        if (!t->reading[p])
                                lc_hub_reader_start(&hub->fast, t, p, t->position[p]);
                        t->reading[p] = t->behind[p] = true;
                        lc_hub_reader_start(&hub->slow, t, p, t->position[p]);
                }
        hub->swap_at = lc_now_ms() + OVERLAP_MS;
}

/* Destroying a handle takes a while; nobody needs to wait for it. */
static void *reap(void *arg)
{
        lc_hub_reader_t *r = arg;

        lc_hub_reader_close(r);
        free(r);
        return NULL;
}

static void drop_fast(lc_topic_hub_t *hub)
{
        lc_hub_reader_t *old = lc_malloc(sizeof(*old));

        rd_kafka_queue_io_event_enable(hub->fast.queue, -1, NULL, 0);
        *old = hub->fast;
        memset(&hub->fast, 0, sizeof(hub->fast));
        hub->swap_at = -1;
        if (pthread_create(&hub->reaper, NULL, reap, old) == 0)
                hub->reaping = true;
        else
                reap(old);
}

static void run_ticks(lc_topic_hub_t *hub)
{
        for (int i = 0; i < hub->ntopics; i++) {
                lc_hub_topic_t *t = hub->topics[i];
                if (!t->conf.on_tick || !enter(t))
                        continue;
                t->conf.on_tick(t->conf.arg);
                pthread_mutex_lock(&hub->lock);
                leave(hub);
                pthread_mutex_unlock(&hub->lock);
        }
}

static void *run(void *arg)
{
        lc_topic_hub_t *hub = arg;
        int64_t tick = lc_now_ms() + IDLE_MS;

        lc_log_context(hub->context);
        if (lc_hub_bring_up(hub) < 0)
                return NULL;
        note_ends(hub);
        while (!lc_hub_quits(hub)) {
                bool moved;
                int wait = IDLE_MS;

                lc_waker_clear(&hub->waker);
                moved = serve_reader(hub, &hub->fast);
                moved = serve_reader(hub, &hub->slow) || moved;
                lc_hub_serve_reports(hub);
                if (lc_now_ms() >= tick) {
                        run_ticks(hub);
                        tick = lc_now_ms() + IDLE_MS;
                }
                if (moved)
                        note_ends(hub);
                if (hub->swap_at == 0 && all_at_end(hub))
                        start_slow(hub);
                else if (hub->swap_at > 0 && lc_now_ms() >= hub->swap_at)
                        drop_fast(hub);
                if (hub->swap_at > 0 && hub->swap_at - lc_now_ms() < wait)
                        wait = (int)(hub->swap_at - lc_now_ms());
                if (!lc_hub_quits(hub))
                        lc_waker_wait(&hub->waker, wait > 0 ? wait : 0);
        }
        return NULL;
}

static int ensure_running(lc_topic_hub_t *hub, lc_err_t *err)
{
        char wait[8];
        int rc = 0;

        pthread_mutex_lock(&hub->lock);
        if (!hub->running) {
                snprintf(wait, sizeof(wait), "%d", FAST_WAIT_MS);
                snprintf(hub->context, sizeof(hub->context), "%s", lc_log_get_context());
                rc = lc_hub_reader_open(hub, &hub->fast, wait, err);
                if (rc == 0 && (rc = pthread_create(&hub->thread, NULL, run, hub)) != 0)
                        rc = lc_err_set(err, LC_FATAL, rc, "Cannot start a thread: %s", strerror(rc));
                hub->running = rc == 0;
        }
        pthread_mutex_unlock(&hub->lock);
        return rc;
}

int lc_hub_topic_start(lc_hub_topic_t *t, const volatile int *stop, lc_err_t *err)
{
        lc_topic_hub_t *hub = t->hub;
        int64_t end = hub->start_ms ? lc_now_ms() + hub->start_ms : INT64_MAX;
        int rc = -1;

        if (ensure_running(hub, err) < 0)
                return -1;
        pthread_mutex_lock(&hub->lock);
        hub->stop = stop;
        while (!t->at_end && !t->failed && !lc_stopped(stop) && lc_now_ms() < end)
                lc_cond_wait_until(&hub->changed, &hub->lock, lc_now_ms() + START_LOOK_MS);
        if (t->failed && err && !err->kind)
                *err = t->error;
        else if (!t->failed && !t->at_end)
                lc_err_set(err, LC_FATAL, 0, "%s while waiting for topic '%s'",
                           lc_stopped(stop) ? "Stopped" : "Timed out", t->name);
        else if (t->at_end)
                rc = 0;
        pthread_mutex_unlock(&hub->lock);
        return rc;
}

int lc_hub_topic_partition_count(lc_hub_topic_t *t)
{
        int n;

        pthread_mutex_lock(&t->hub->lock);
        n = t->npartitions;
        pthread_mutex_unlock(&t->hub->lock);
        return n;
}

/* ---- the rest ---- */

char *lc_topic_hub_cluster_id(lc_topic_hub_t *hub, const volatile int *stop, lc_err_t *err)
{
        int64_t since = lc_now_ms(), until = since + hub->api_ms, said = since;

        while (!lc_stopped(stop) && lc_now_ms() < until) {
                char *id = rd_kafka_clusterid(hub->producer->rk, 100);
                if (id) {
                        char *copy = lc_strdup(id);
                        rd_kafka_mem_free(hub->producer->rk, id);
                        return copy;
                }
                if (lc_now_ms() - said >= 10000) {
                        said = lc_now_ms();
                        lc_log(LC_WARN, "KAFKA",
                               "Waiting for Kafka at %s to describe the cluster (%lld s so far)",
                               hub->servers, (long long)(said - since) / 1000);
                }
        }
        lc_err_set_cls(err, LC_FATAL, RD_KAFKA_RESP_ERR__TIMED_OUT,
                       "org.apache.kafka.common.errors.TimeoutException",
                       lc_stopped(stop) ? "Stopped while waiting for a broker"
                                        : "Timed out waiting for a node assignment. Call: listNodes");
        return NULL;
}

void lc_topic_hub_free(lc_topic_hub_t *hub)
{
        if (!hub)
                return;
        __atomic_store_n(&hub->quit, 1, __ATOMIC_RELAXED);
        if (hub->running) {
                lc_waker_wake(&hub->waker);
                pthread_join(hub->thread, NULL);
        }
        if (hub->reaping)
                pthread_join(hub->reaper, NULL);
        lc_hub_reader_close(&hub->fast);
        lc_hub_reader_close(&hub->slow);
        if (hub->producer) {
                int64_t until = lc_now_ms() + 10000;
                rd_kafka_purge(hub->producer->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
                while (rd_kafka_outq_len(hub->producer->rk) > 0 && lc_now_ms() < until) {
                        lc_hub_serve_reports(hub);
                        lc_waker_clear(&hub->waker);
                        if (rd_kafka_outq_len(hub->producer->rk) > 0)
                                lc_waker_wait(&hub->waker, 20);
                }
                lc_hub_serve_reports(hub);
                rd_kafka_queue_io_event_enable(hub->reports, -1, NULL, 0);
                rd_kafka_queue_destroy(hub->reports);
        }
        for (int i = 0; i < hub->ntopics; i++)
                lc_hub_topic_free(hub->topics[i]);
        lc_kafka_close(hub->producer);
        if (hub->waker.fd >= 0)
                lc_waker_close(&hub->waker);
        lc_props_free(hub->consumer_conf);
        free(hub->servers);
        pthread_cond_destroy(&hub->changed);
        pthread_mutex_destroy(&hub->lock);
        free(hub);
}
