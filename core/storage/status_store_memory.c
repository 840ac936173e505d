/*
 * status_store_memory.c - statuses and topics of standalone mode (reference standalone 5.2): maps, every put
 * is plain, DESTROYED removes (a connector's takes its tasks along, as a tombstone in the topic does).
 *
 * Threads:   any. Lock: `lock` guards everything; nothing is called under it.
 * Tests:     spec/unit/memory_stores_spec.lua
 */
#include "base/alloc.h"
#include "storage/status_store.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
        char *connector;
        lc_status_t st;
} entry_t;

typedef struct used {
        char *connector;
        lc_strv_t topics;
} used_t;

typedef struct store {
        lc_status_store_t base;
        pthread_mutex_t lock;
        entry_t *v; /* sorted by connector, then task */
        size_t n;
        used_t *used;
        size_t nused;
} store_t;

static void copy_status(lc_status_t *to, const lc_status_t *from)
{
        *to = *from;
        to->worker_id = lc_strdup(from->worker_id);
        to->trace = lc_strdup(from->trace);
        to->version = lc_strdup(from->version);
        to->restart = lc_strdup(from->restart);
}

/* First entry that is not before (connector, task). */
static size_t position(const store_t *s, const char *connector, int task)
{
        size_t low = 0, high = s->n;

        while (low < high) {
                size_t mid = low + (high - low) / 2;
                int c = strcmp(s->v[mid].connector, connector);
                if (c < 0 || (c == 0 && s->v[mid].st.task < task))
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

static bool is_at(const store_t *s, size_t at, const char *connector, int task)
{
        return at < s->n && !strcmp(s->v[at].connector, connector) && s->v[at].st.task == task;
}

static void remove_at(store_t *s, size_t at, size_t count)
{
        if (!count)
                return;
        for (size_t i = at; i < at + count; i++) {
                free(s->v[i].connector);
                lc_status_clear(&s->v[i].st);
        }
        s->n -= count;
        memmove(s->v + at, s->v + at + count, (s->n - at) * sizeof(*s->v));
}

static int start(lc_status_store_t *base, const volatile int *stop, lc_err_t *err)
{
        (void)base;
        (void)stop;
        (void)err;
        return 0;
}

static void put(lc_status_store_t *base, const char *connector, const lc_status_t *st, bool safe)
{
        store_t *s = (store_t *)base;
        size_t at, end;

        (void)safe;
        pthread_mutex_lock(&s->lock);
        at = position(s, connector, st->task);
        if (st->state == LC_DESTROYED) {
                end = at;
                if (st->task < 0)
                        while (end < s->n && !strcmp(s->v[end].connector, connector))
                                end++;
                else if (is_at(s, at, connector, st->task))
                        end = at + 1;
                remove_at(s, at, end - at);
        } else if (is_at(s, at, connector, st->task)) {
                lc_status_t copy;

                copy_status(&copy, st); /* st may be a copy of ours with borrowed strings */
                lc_status_clear(&s->v[at].st);
                s->v[at].st = copy;
        } else {
                s->v = lc_realloc(s->v, (s->n + 1) * sizeof(*s->v));
                memmove(s->v + at + 1, s->v + at, (s->n - at) * sizeof(*s->v));
                s->v[at].connector = lc_strdup(connector);
                copy_status(&s->v[at].st, st);
                s->n++;
        }
        pthread_mutex_unlock(&s->lock);
}

static bool get(lc_status_store_t *base, const char *connector, int task, lc_status_t *out)
{
        store_t *s = (store_t *)base;
        size_t at;
        bool found;

        pthread_mutex_lock(&s->lock);
        at = position(s, connector, task);
        found = is_at(s, at, connector, task);
        if (found)
                copy_status(out, &s->v[at].st);
        pthread_mutex_unlock(&s->lock);
        return found;
}

static size_t tasks(lc_status_store_t *base, const char *connector, lc_status_t **out)
{
        store_t *s = (store_t *)base;
        size_t at, end;

        pthread_mutex_lock(&s->lock);
        at = end = position(s, connector, 0);
        while (end < s->n && !strcmp(s->v[end].connector, connector))
                end++;
        *out = lc_calloc(end - at, sizeof(**out));
        for (size_t i = at; i < end; i++)
                copy_status(&(*out)[i - at], &s->v[i].st);
        pthread_mutex_unlock(&s->lock);
        return end - at;
}

static void connectors(lc_status_store_t *base, lc_strv_t *out)
{
        store_t *s = (store_t *)base;

        pthread_mutex_lock(&s->lock);
        for (size_t i = 0; i < s->n; i++)
                if (i == 0 || strcmp(s->v[i].connector, s->v[i - 1].connector) != 0)
                        lc_strv_add(out, s->v[i].connector);
        pthread_mutex_unlock(&s->lock);
}

static used_t *used_by(store_t *s, const char *connector)
{
        for (size_t i = 0; i < s->nused; i++)
                if (!strcmp(s->used[i].connector, connector))
                        return &s->used[i];
        return NULL;
}

static void topic_used(lc_status_store_t *base, const char *connector, int task, const char *topic)
{
        store_t *s = (store_t *)base;
        used_t *u;

        (void)task;
        pthread_mutex_lock(&s->lock);
        u = used_by(s, connector);
        if (!u) {
                s->used = lc_realloc(s->used, (s->nused + 1) * sizeof(*s->used));
                u = &s->used[s->nused++];
                *u = (used_t){.connector = lc_strdup(connector)};
        }
        if (!lc_strv_has(&u->topics, topic))
                lc_strv_add(&u->topics, topic);
        pthread_mutex_unlock(&s->lock);
}

static void topics(lc_status_store_t *base, const char *connector, lc_strv_t *out)
{
        store_t *s = (store_t *)base;
        used_t *u;

        pthread_mutex_lock(&s->lock);
        u = used_by(s, connector);
        for (size_t i = 0; u && i < u->topics.n; i++)
                lc_strv_add(out, u->topics.v[i]);
        pthread_mutex_unlock(&s->lock);
}

static void topics_reset(lc_status_store_t *base, const char *connector)
{
        store_t *s = (store_t *)base;
        used_t *u;

        pthread_mutex_lock(&s->lock);
        u = used_by(s, connector);
        if (u) {
                free(u->connector);
                lc_strv_free(&u->topics);
                *u = s->used[--s->nused];
        }
        pthread_mutex_unlock(&s->lock);
}

static void flush(lc_status_store_t *base, int timeout_ms)
{
        (void)base;
        (void)timeout_ms;
}

static void stop_store(lc_status_store_t *base)
{
        store_t *s = (store_t *)base;

        remove_at(s, 0, s->n);
        free(s->v);
        for (size_t i = 0; i < s->nused; i++) {
                free(s->used[i].connector);
                lc_strv_free(&s->used[i].topics);
        }
        free(s->used);
        pthread_mutex_destroy(&s->lock);
        free(s);
}

lc_status_store_t *lc_status_store_memory_new(void)
{
        static const lc_status_store_ops_t ops = {
                .start = start,
                .put = put,
                .get = get,
                .tasks = tasks,
                .connectors = connectors,
                .topic_used = topic_used,
                .topics = topics,
                .topics_reset = topics_reset,
                .flush = flush,
                .stop = stop_store,
        };
        store_t *s = lc_calloc(1, sizeof(*s));

        s->base.ops = &ops;
        pthread_mutex_init(&s->lock, NULL);
        return &s->base;
}
