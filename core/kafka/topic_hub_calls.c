/*
 * topic_hub_calls.c - see topic_hub.h: what is called from other threads once the topics are up: writing, and waiting for
 * what was written, by this worker or another one.
 * Lock: hub.lock (topic_hub_internal.h says what it guards). spec/kafka/storage_spec.lua
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/cond.h"
#include "kafka/topic_hub_internal.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
        ASK_AGAIN_MS = 30,
        ASK_MS = 1000,        /* one query: librdkafka cannot be interrupted */
        STOP_GRACE_MS = 1000, /* what is left to a wait when a stop comes */
        STOP_LOOK_MS = 200
};

#define TIMED_OUT(err, ...)                                                                                  \
        lc_err_set_cls(err, LC_RETRIABLE, RD_KAFKA_RESP_ERR__TIMED_OUT,                                      \
                       lc_kafka_err_cls(RD_KAFKA_RESP_ERR__TIMED_OUT), __VA_ARGS__)

/* A wait of a caller that may be told to stop meanwhile: what began before the stop then has STOP_GRACE_MS
 * left, what begins after it (the last statuses) has its whole time. */
typedef struct patience {
        int64_t until; /* monotonic ms */
        bool stopped;  /* the stop is known */
} patience_t;

static patience_t patience(const lc_topic_hub_t *hub, int ms)
{
        return (patience_t){lc_now_ms() + ms, lc_stopped(hub->stop)};
}

/* Under the lock: false when the time is over. */
static bool wait_patiently(lc_topic_hub_t *hub, patience_t *p)
{
        int64_t now = lc_now_ms();

        if (!p->stopped && lc_stopped(hub->stop)) {
                p->stopped = true;
                if (p->until > now + STOP_GRACE_MS)
                        p->until = now + STOP_GRACE_MS;
        }
        if (now >= p->until)
                return false;
        lc_cond_wait_until(&hub->changed, &hub->lock,
                           p->until < now + STOP_LOOK_MS ? p->until : now + STOP_LOOK_MS);
        return true;
}

/* ---- writing ---- */

typedef struct sent {
        lc_hub_topic_t *t;
        lc_hub_done_fn *done;
        void *arg;
} sent_t;

/* What became of a record: told once. */
static void settle(sent_t *s, rd_kafka_resp_err_t code, int32_t partition, int64_t offset)
{
        lc_hub_topic_t *t = s->t;
        lc_err_t err;

        lc_err_clear(&err);
        if (code)
                lc_kafka_err_set(&err, t->hub->producer->rk, code, NULL, "Cannot write to topic '%s'",
                                 t->name);
        if (s->done)
                s->done(s->arg, code ? &err : NULL, partition, offset);
        free(s);
        pthread_mutex_lock(&t->hub->lock);
        t->done++;
        pthread_cond_broadcast(&t->hub->changed);
        pthread_mutex_unlock(&t->hub->lock);
}

void lc_hub_topic_send(lc_hub_topic_t *t, const lc_hub_out_t *out, lc_hub_done_fn *done, void *arg)
{
        lc_topic_hub_t *hub = t->hub;
        sent_t *s = lc_calloc(1, sizeof(*s));
        int32_t partition = out->partition;
        rd_kafka_resp_err_t code;

        s->t = t;
        s->done = done;
        s->arg = arg;
        pthread_mutex_lock(&hub->lock);
        t->sent++;
        if (partition < 0)
                partition = lc_kafka_partition(out->key, out->key_len, t->npartitions);
        pthread_mutex_unlock(&hub->lock);
        /* npartitions is set after `out` */
        code = partition < 0 ? RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION
                             : rd_kafka_producev(hub->producer->rk, RD_KAFKA_V_RKT(t->out),
                                                 RD_KAFKA_V_PARTITION(partition),
                                                 RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                                 RD_KAFKA_V_KEY(out->key, out->key_len),
                                                 RD_KAFKA_V_VALUE((void *)out->value, out->value_len),
                                                 RD_KAFKA_V_OPAQUE(s), RD_KAFKA_V_END);
        if (code)
                settle(s, code, partition, -1);
}

void lc_hub_serve_reports(lc_topic_hub_t *hub)
{
        const rd_kafka_message_t *m;
        rd_kafka_event_t *ev;

        while ((ev = rd_kafka_queue_poll(hub->reports, 0))) {
                if (rd_kafka_event_type(ev) == RD_KAFKA_EVENT_DR)
                        while ((m = rd_kafka_event_message_next(ev)))
                                settle(m->_private, m->err, m->partition, m->offset);
                rd_kafka_event_destroy(ev);
        }
}

/* Shared by the writer, which may give up, and the reports that are still to come. */
typedef struct write_state {
        lc_topic_hub_t *hub;
        int refs;
        size_t left;
        lc_err_t err;
        int32_t partition;
        int64_t offset; /* of the last record */
} write_state_t;

static void write_unref(write_state_t *w)
{
        if (__atomic_sub_fetch(&w->refs, 1, __ATOMIC_ACQ_REL) == 0)
                free(w);
}

static void write_done(void *arg, const lc_err_t *err, int32_t partition, int64_t offset)
{
        write_state_t *w = arg;
        lc_topic_hub_t *hub = w->hub;

        pthread_mutex_lock(&hub->lock);
        w->left--;
        if (err && !w->err.kind)
                w->err = *err;
        if (!err) {
                w->partition = partition;
                w->offset = offset;
        }
        pthread_cond_broadcast(&hub->changed);
        pthread_mutex_unlock(&hub->lock);
        write_unref(w);
}

int lc_hub_topic_write(lc_hub_topic_t *t, const lc_hub_out_t *out, size_t n, bool seen, int ms, lc_err_t *err)
{
        lc_topic_hub_t *hub = t->hub;
        write_state_t *w = lc_calloc(1, sizeof(*w));
        patience_t p;
        int rc = -1;

        w->hub = hub;
        w->refs = (int)n + 1;
        w->left = n;
        w->offset = -1;
        for (size_t i = 0; i < n; i++)
                lc_hub_topic_send(t, &out[i], write_done, w);
        pthread_mutex_lock(&hub->lock);
        p = patience(hub, ms);
        while (w->left && wait_patiently(hub, &p))
                ;
        if (w->err.kind) {
                if (err && !err->kind)
                        *err = w->err;
                goto done;
        }
        while (!w->left && seen && w->offset >= 0 && t->position[w->partition] <= w->offset)
                if (!wait_patiently(hub, &p))
                        break;
        if (w->left || (seen && w->offset >= 0 && t->position[w->partition] <= w->offset)) {
                TIMED_OUT(err,
                          w->left ? "Topic '%s' did not acknowledge within %d ms"
                                  : "What was written to topic '%s' did not come back within %d ms",
                          t->name, ms);
                goto done;
        }
        rc = 0;
done:
        pthread_mutex_unlock(&hub->lock);
        write_unref(w);
        return rc;
}

/* ---- reading to the end ---- */

/* Under the lock: everything sent so far is done. */
static bool wait_done(lc_hub_topic_t *t, patience_t *p)
{
        uint64_t upto = t->sent;

        while (t->done < upto)
                if (!wait_patiently(t->hub, p))
                        return false;
        return true;
}

bool lc_hub_topic_flush(lc_hub_topic_t *t, int ms)
{
        patience_t p;
        bool ok;

        pthread_mutex_lock(&t->hub->lock);
        p = patience(t->hub, ms);
        ok = wait_done(t, &p);
        pthread_mutex_unlock(&t->hub->lock);
        return ok;
}

/* Under the lock, which is given up meanwhile: one query, whose answer everybody gets who waits for one. */
static void query_ends(lc_hub_topic_t *t, const patience_t *p)
{
        lc_topic_hub_t *hub = t->hub;
        int64_t *ends = lc_calloc((size_t)t->npartitions, sizeof(*ends));
        int64_t left = p->until - lc_now_ms();
        uint64_t mine = ++t->asked;
        lc_err_t why;

        t->asking = true;
        pthread_mutex_unlock(&hub->lock);
        lc_err_clear(&why);
        while (lc_hub_query_ends(hub->producer->rk, &t, 1, RD_KAFKA_OFFSET_END,
                                 left > ASK_MS ? ASK_MS
                                 : left > 1    ? (int)left
                                               : 1,
                                 &ends, &why) < 0 &&
               why.kind == LC_RETRIABLE && (p->stopped || !lc_stopped(hub->stop)) &&
               (left = p->until - lc_now_ms()) > ASK_AGAIN_MS) {
                struct timespec pause = {0, ASK_AGAIN_MS * 1000000};
                nanosleep(&pause, NULL);
                lc_err_clear(&why);
        }
        pthread_mutex_lock(&hub->lock);
        t->asking = false;
        t->answered = mine;
        t->ask_error = why;
        if (!why.kind)
                memcpy(t->end, ends, (size_t)t->npartitions * sizeof(*ends));
        free(ends);
        pthread_cond_broadcast(&hub->changed);
}

/* Under the lock: t->end of a query that was sent after this call. */
static int ask_ends(lc_hub_topic_t *t, patience_t *p, lc_err_t *err)
{
        uint64_t need = t->asked + 1;

        while (t->answered < need) {
                if (!t->asking)
                        query_ends(t, p);
                else if (!wait_patiently(t->hub, p))
                        return TIMED_OUT(err, "Timed out reading the end offsets of topic '%s'", t->name);
        }
        if (!t->ask_error.kind)
                return 0;
        if (err && !err->kind)
                *err = t->ask_error;
        return -1;
}

int lc_hub_topic_read_to_end(lc_hub_topic_t *t, int ms, lc_err_t *err)
{
        lc_topic_hub_t *hub = t->hub;
        int64_t *ends = NULL;
        patience_t patient;
        int rc = -1;

        pthread_mutex_lock(&hub->lock);
        patient = patience(hub, ms);
        if (!t->npartitions) {
                lc_err_set(err, LC_FATAL, 0, "Topic '%s' was not started", t->name);
                goto done;
        }
        if (!wait_done(t, &patient)) {
                TIMED_OUT(err, "Timed out waiting for what was written to topic '%s'", t->name);
                goto done;
        }
        if (ask_ends(t, &patient, err) < 0)
                goto done;
        ends = lc_malloc((size_t)t->npartitions * sizeof(*ends));
        memcpy(ends, t->end, (size_t)t->npartitions * sizeof(*ends));
        for (int p = 0; p < t->npartitions;) {
                if (t->position[p] >= ends[p]) {
                        p++;
                } else if (!wait_patiently(hub, &patient)) {
                        TIMED_OUT(err,
                                  "Timed out reading topic '%s' to its end: partition %d is at %lld of %lld",
                                  t->name, p, (long long)t->position[p], (long long)ends[p]);
                        goto done;
                }
        }
        rc = 0;
done:
        pthread_mutex_unlock(&hub->lock);
        free(ends);
        return rc;
}

int lc_hub_topic_await(lc_hub_topic_t *t, int32_t partition, int64_t offset, int ms, lc_err_t *err)
{
        patience_t p;
        bool there;

        pthread_mutex_lock(&t->hub->lock);
        p = patience(t->hub, ms);
        while (!(there = t->position[partition] > offset) && wait_patiently(t->hub, &p))
                ;
        pthread_mutex_unlock(&t->hub->lock);
        return there ? 0
                     : TIMED_OUT(err, "What was written to topic '%s' did not come back within %d ms",
                                 t->name, ms);
}
