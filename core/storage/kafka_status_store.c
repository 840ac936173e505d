/*
 * kafka_status_store.c - statuses in the hub's status topic: a cache filled from the topic (status_cache.h),
 * puts that never block, retries by the rules of storage.md 4.2.
 *
 * Lock: store.lock around the cache and the list of retries; never held while calling the hub.
 * Ownership: writes that are out hold references, so the store outlives stop() until the last report.
 * spec/unit/status_store_spec.lua, spec/kafka/storage_spec.lua
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "kafka/topic_hub.h"
#include "storage/status_cache.h"
#include "storage/topic_stores.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Java sends once and resends by itself; librdkafka may try that long before we ask the rules again. */
enum { WRITE_MS = 10000, STOP_MS = 5000 };

typedef struct write write_t;
typedef struct store {
        lc_status_store_t base;
        lc_hub_topic_t *topic;
        pthread_mutex_t lock;
        lc_status_cache_t *cache;
        write_t *retries; /* oldest first: order of statuses is kept */
        write_t **retries_end;
        bool stopped;
        int refs; /* atomic: the store itself and each write */
} store_t;

struct write {
        store_t *s;
        lc_buf_t key, value;
        bool tombstone, safe, is_topic;
        char *connector;
        lc_status_t st; /* task, generation, worker_id */
        char *used;     /* the topic in use */
        lc_status_ticket_t ticket;
        write_t *next;
};

static void unref(store_t *s)
{
        if (__atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) > 0)
                return;
        lc_status_cache_free(s->cache);
        pthread_mutex_destroy(&s->lock);
        free(s);
}

static void write_free(write_t *w)
{
        store_t *s = w->s;

        lc_buf_free(&w->key);
        lc_buf_free(&w->value);
        lc_status_clear(&w->st);
        free(w->connector);
        free(w->used);
        free(w);
        unref(s);
}

static write_t *write_new(store_t *s, const char *connector)
{
        write_t *w = lc_calloc(1, sizeof(*w));

        __atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
        w->s = s;
        w->connector = lc_strdup(connector);
        w->key.sure = w->value.sure = true;
        return w;
}

/* Under the lock: is it still right to write this? */
static bool still_wanted(const write_t *w)
{
        if (w->s->stopped)
                return false;
        if (w->is_topic)
                return true;
        return lc_status_cache_may_retry(w->s->cache, w->connector, &w->st, w->safe, &w->ticket);
}

static void written(void *arg, const lc_err_t *err, int32_t partition, int64_t offset)
{
        write_t *w = arg;
        store_t *s = w->s;
        bool again;

        (void)partition;
        (void)offset;
        if (!err) {
                write_free(w);
                return;
        }
        pthread_mutex_lock(&s->lock);
        again = err->kind == LC_RETRIABLE && still_wanted(w);
        if (again) { /* by the next tick, not from inside a report */
                w->next = NULL;
                *s->retries_end = w;
                s->retries_end = &w->next;
        } else if (w->is_topic) {
                lc_status_cache_topic_sent(s->cache, w->connector, w->used, false);
        }
        pthread_mutex_unlock(&s->lock);
        if (again)
                return;
        if (err->kind != LC_RETRIABLE)
                lc_log(LC_ERROR, "STATUS", "Failed to write status update %s: %s", w->key.p, err->msg);
        write_free(w);
}

static void send(write_t *w)
{
        lc_hub_out_t out = {.key = w->key.p, .key_len = w->key.len, .partition = -1};

        if (!w->tombstone) {
                out.value = w->value.p;
                out.value_len = w->value.len;
        }
        lc_hub_topic_send(w->s->topic, &out, written, w);
}

static void on_tick(void *arg)
{
        store_t *s = arg;
        write_t *w, *next;

        pthread_mutex_lock(&s->lock);
        w = s->retries;
        s->retries = NULL;
        s->retries_end = &s->retries;
        pthread_mutex_unlock(&s->lock);
        for (; w; w = next) {
                bool wanted;
                next = w->next;
                pthread_mutex_lock(&s->lock);
                wanted = still_wanted(w);
                pthread_mutex_unlock(&s->lock);
                if (wanted)
                        send(w);
                else
                        write_free(w);
        }
}

static void on_record(void *arg, const lc_hub_record_t *r)
{
        store_t *s = arg;

        pthread_mutex_lock(&s->lock);
        lc_status_cache_apply(s->cache, r->key, r->key_len, r->value, r->value_len, r->partition, r->offset);
        pthread_mutex_unlock(&s->lock);
}

/* ---- the store ---- */

static int start(lc_status_store_t *base, const volatile int *stop, lc_err_t *err)
{
        return lc_hub_topic_start(((store_t *)base)->topic, stop, err);
}

static void put(lc_status_store_t *base, const char *connector, const lc_status_t *st, bool safe)
{
        store_t *s = (store_t *)base;
        write_t *w = write_new(s, connector);
        bool ok;

        w->safe = safe;
        w->st.task = st->task;
        w->st.state = st->state;
        w->st.generation = st->generation;
        w->st.worker_id = lc_strdup(st->worker_id);
        w->tombstone = st->state == LC_DESTROYED;
        lc_status_key(&w->key, connector, st->task);
        if (!w->tombstone)
                lc_status_value(&w->value, st);
        pthread_mutex_lock(&s->lock);
        ok = lc_status_cache_may_write(s->cache, connector, st, safe, &w->ticket);
        pthread_mutex_unlock(&s->lock);
        if (ok) {
                LC_FAULT("status.before_send");
                send(w);
        } else {
                lc_log(LC_DEBUG, "STATUS", "%s of %s not written: another worker's is newer",
                       lc_state_name(st->state), w->key.p);
                write_free(w);
        }
}

static bool get(lc_status_store_t *base, const char *connector, int task, lc_status_t *out)
{
        store_t *s = (store_t *)base;
        bool found;

        pthread_mutex_lock(&s->lock);
        found = lc_status_cache_get(s->cache, connector, task, out);
        pthread_mutex_unlock(&s->lock);
        return found;
}

static size_t tasks(lc_status_store_t *base, const char *connector, lc_status_t **out)
{
        store_t *s = (store_t *)base;
        size_t n;

        pthread_mutex_lock(&s->lock);
        n = lc_status_cache_tasks(s->cache, connector, out);
        pthread_mutex_unlock(&s->lock);
        return n;
}

static void connectors(lc_status_store_t *base, lc_strv_t *out)
{
        store_t *s = (store_t *)base;

        pthread_mutex_lock(&s->lock);
        lc_status_cache_connectors(s->cache, out);
        pthread_mutex_unlock(&s->lock);
}

static write_t *topic_write(store_t *s, const char *connector, const char *topic)
{
        write_t *w = write_new(s, connector);

        w->is_topic = true;
        w->used = lc_strdup(topic);
        lc_status_topic_key(&w->key, connector, topic);
        return w;
}

static void topic_used(lc_status_store_t *base, const char *connector, int task, const char *topic)
{
        store_t *s = (store_t *)base;
        write_t *w;
        bool known;

        pthread_mutex_lock(&s->lock);
        known = lc_status_cache_has_topic(s->cache, connector, topic);
        if (!known)
                lc_status_cache_topic_sent(s->cache, connector, topic, true);
        pthread_mutex_unlock(&s->lock);
        if (known)
                return;
        w = topic_write(s, connector, topic);
        lc_status_topic_value(&w->value, connector, task, topic, lc_wall_ms());
        send(w);
}

static void topics(lc_status_store_t *base, const char *connector, lc_strv_t *out)
{
        store_t *s = (store_t *)base;

        pthread_mutex_lock(&s->lock);
        lc_status_cache_topics(s->cache, connector, out);
        pthread_mutex_unlock(&s->lock);
}

static void topics_reset(lc_status_store_t *base, const char *connector)
{
        store_t *s = (store_t *)base;
        lc_strv_t known = {0};

        topics(base, connector, &known);
        for (size_t i = 0; i < known.n; i++) {
                write_t *w = topic_write(s, connector, known.v[i]);
                w->tombstone = true;
                send(w);
        }
        lc_strv_free(&known);
}

static void flush(lc_status_store_t *base, int timeout_ms)
{
        store_t *s = (store_t *)base;

        if (!lc_hub_topic_flush(s->topic, timeout_ms))
                lc_log(LC_WARN, "STATUS", "Statuses were not written within %d ms", timeout_ms);
}

static void stop(lc_status_store_t *base)
{
        store_t *s = (store_t *)base;
        write_t *w, *next;

        lc_hub_topic_flush(s->topic, STOP_MS);
        lc_hub_topic_detach(s->topic);
        pthread_mutex_lock(&s->lock);
        s->stopped = true;
        w = s->retries;
        s->retries = NULL;
        s->retries_end = &s->retries;
        pthread_mutex_unlock(&s->lock);
        for (; w; w = next) {
                next = w->next;
                write_free(w);
        }
        unref(s);
}

static const lc_status_store_ops_t ops = {start,      put,    get,          tasks, connectors,
                                          topic_used, topics, topics_reset, flush, stop};

lc_status_store_t *lc_status_store_kafka_new(lc_topic_hub_t *hub, const lc_hub_topic_conf_t *conf)
{
        store_t *s = lc_calloc(1, sizeof(*s));
        lc_hub_topic_conf_t c = *conf;

        s->base.ops = &ops;
        pthread_mutex_init(&s->lock, NULL);
        s->cache = lc_status_cache_new(conf->name);
        s->retries_end = &s->retries;
        s->refs = 1;
        c.write_ms = WRITE_MS;
        c.on_record = on_record;
        c.on_tick = on_tick;
        c.arg = s;
        s->topic = lc_topic_hub_add(hub, &c);
        return &s->base;
}
