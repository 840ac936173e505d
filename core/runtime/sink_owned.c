/*
 * sink_owned.c - what a sink task owns: pauses, fetched batches that wait, rebalances, and what its script
 * may ask about them. See sink.h.
 *
 * Threads: the task's; the callbacks run inside lc_consumer_poll and lc_consumer_close.
 * Source:  worker-tasks 5.1, 5.5, 5.6.   Tests: spec/unit/sink_task_spec.lua
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "runtime/sink.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
        RETRY_MIN_MS = 1000,
        RETRY_MAX_MS = 60000,
        OPEN_RETRY_ALL_MS = 150000 /* half of max.poll.interval.ms: open runs inside a rebalance */
};

#define CLS_ILLEGAL "org.apache.kafka.connect.errors.IllegalWorkerStateException"

bool lc_sink_in_list(const lc_topic_partition_t *tps, size_t n, const char *topic, int32_t partition)
{
        for (size_t i = 0; i < n; i++)
                if (tps[i].partition == partition && !strcmp(tps[i].topic, topic))
                        return true;
        return false;
}

/* ---- pausing ------------------------------------------------------------------------------------ */

static bool is_user_paused(const lc_sink_part_t *p)
{
        return p->user_paused;
}

bool lc_sink_not_user_paused(const lc_sink_part_t *p)
{
        return !p->user_paused;
}

void lc_sink_set_paused(lc_sink_t *s, bool on, bool (*which)(const lc_sink_part_t *part))
{
        size_t n;
        lc_topic_partition_t *tps = lc_sink_parts_collect(&s->parts, which, &n);
        lc_err_t err;

        lc_err_clear(&err);
        if (n && (on ? lc_consumer_pause : lc_consumer_resume)(s->consumer, tps, n, &err))
                lc_log(LC_WARN, "TASK", "%s Could not %s its partitions: %s", s->t->label,
                       on ? "pause" : "resume", err.msg);
        free(tps);
}

void lc_sink_apply_pauses(lc_sink_t *s)
{
        s->repause = false;
        if (lc_sink_held_back(s))
                lc_sink_set_paused(s, true, NULL);
        else
                lc_sink_set_paused(s, true, is_user_paused);
}

/* ---- batches in hand ----------------------------------------------------------------------------- */

typedef bool wanted_fn(const lc_sink_t *s, const lc_record_t *r, const lc_topic_partition_t *tps, size_t n);

/* A batch with those records of *from that are wanted, over the same memory; NULL when none is. The one
 * they came from stays as it is: views may look at it. Out of memory counts as none: what is not delivered
 * is not committed. */
static lc_batch_t *subset(const lc_sink_t *s, lc_batch_t *from, wanted_fn *wanted,
                          const lc_topic_partition_t *tps, size_t n)
{
        lc_record_t *given = NULL;
        lc_batch_t *b;
        uint32_t keep = 0;

        for (uint32_t i = 0; i < from->n; i++)
                keep += wanted(s, &from->records[i], tps, n);
        if (keep == from->n) {
                lc_batch_ref(from);
                return from;
        }
        b = keep ? lc_batch_new(keep) : NULL;
        if (b && from->given && !(given = lc_arena_alloc(&b->arena, keep * sizeof(*given)))) {
                lc_batch_unref(b);
                b = NULL;
        }
        if (!b)
                return NULL;
        for (uint32_t i = 0; i < from->n; i++) {
                lc_record_t *r;
                if (!wanted(s, &from->records[i], tps, n))
                        continue;
                r = lc_batch_add(b); /* there is room */
                *r = from->records[i];
                r->batch = b;
                if (given)
                        given[b->n - 1] = from->given[i];
        }
        b->given = given;
        lc_batch_ref(from);
        b->on_free = (void (*)(void *))lc_batch_unref;
        b->on_free_arg = from;
        return b;
}

static bool not_listed(const lc_sink_t *s, const lc_record_t *r, const lc_topic_partition_t *tps, size_t n)
{
        (void)s;
        return !lc_sink_in_list(tps, n, r->u.snk.topic, r->u.snk.partition);
}

static bool user_paused(const lc_sink_t *s, const lc_record_t *r, const lc_topic_partition_t *tps, size_t n)
{
        const lc_sink_part_t *p =
                lc_sink_parts_find((lc_sink_parts_t *)&s->parts, r->u.snk.topic, r->u.snk.partition);

        (void)tps;
        (void)n;
        return p && p->user_paused;
}

static bool not_user_paused(const lc_sink_t *s, const lc_record_t *r, const lc_topic_partition_t *tps,
                            size_t n)
{
        return !user_paused(s, r, tps, n);
}

static void replace(lc_batch_t **at, lc_batch_t *by)
{
        lc_batch_unref(*at);
        *at = by;
}

static void pack_held(lc_sink_t *s)
{
        size_t keep = 0;

        for (size_t i = 0; i < s->nheld; i++)
                if (s->held[i])
                        s->held[keep++] = s->held[i];
        s->nheld = keep;
}

void lc_sink_hold(lc_sink_t *s, lc_batch_t *b)
{
        s->held = lc_realloc(s->held, (s->nheld + 1) * sizeof(*s->held));
        s->held[s->nheld++] = b;
}

/* Fetched records of these partitions are not wanted any more. */
void lc_sink_drop_held(lc_sink_t *s, const lc_topic_partition_t *tps, size_t n)
{
        for (size_t i = 0; i < s->nheld; i++)
                replace(&s->held[i], subset(s, s->held[i], not_listed, tps, n));
        pack_held(s);
}

static void drop_records(lc_sink_t *s, const lc_topic_partition_t *tps, size_t n)
{
        if (s->batch)
                replace(&s->batch, subset(s, s->batch, not_listed, tps, n));
        lc_sink_drop_held(s, tps, n);
}

bool lc_sink_any_user_paused(const lc_sink_t *s)
{
        for (size_t i = 0; i < s->parts.n; i++)
                if (s->parts.v[i].user_paused)
                        return true;
        return false;
}

/* What may be delivered now: of what is held, else of what was just fetched. Takes `fetched`. */
lc_batch_t *lc_sink_next_batch(lc_sink_t *s, lc_batch_t *fetched)
{
        lc_batch_t *b = NULL;

        if (fetched)
                lc_sink_hold(s, fetched);
        if (lc_sink_held_back(s))
                return NULL;
        for (size_t i = 0; i < s->nheld && !b; i++) {
                if (!lc_sink_any_user_paused(s)) {
                        b = s->held[i];
                        s->held[i] = NULL;
                } else {
                        b = subset(s, s->held[i], not_user_paused, NULL, 0);
                        replace(&s->held[i], subset(s, s->held[i], user_paused, NULL, 0));
                }
        }
        pack_held(s);
        return b;
}

/* ---- the script's context ------------------------------------------------------------------------ */

static int host_pausing(void *arg, const lc_topic_partition_t *tps, size_t n, bool on, lc_err_t *err)
{
        lc_task_t *t = arg;
        lc_sink_t *s = t->impl;

        for (size_t i = 0; i < n; i++)
                if (!lc_sink_parts_find(&s->parts, tps[i].topic, tps[i].partition))
                        return lc_err_set_cls(
                                err, LC_FATAL, 0, CLS_ILLEGAL,
                                "SinkTasks may not %s partitions that are not currently assigned to "
                                "them.",
                                on ? "pause" : "resume");
        for (size_t i = 0; i < n; i++)
                lc_sink_parts_find(&s->parts, tps[i].topic, tps[i].partition)->user_paused = on;
        if (s->repause || lc_sink_held_back(s))
                return 0; /* set or kept paused anyway; what was asked for is remembered */
        return (on ? lc_consumer_pause : lc_consumer_resume)(s->consumer, tps, n, err);
}

static int host_pause(void *arg, const lc_topic_partition_t *tps, size_t n, lc_err_t *err)
{
        return host_pausing(arg, tps, n, true, err);
}

static int host_resume(void *arg, const lc_topic_partition_t *tps, size_t n, lc_err_t *err)
{
        return host_pausing(arg, tps, n, false, err);
}

static void host_seek(void *arg, const lc_topic_partition_t *tp)
{
        lc_task_t *t = arg;
        lc_sink_t *s = t->impl;
        lc_sink_part_t *p = lc_sink_parts_find(&s->parts, tp->topic, tp->partition);

        if (!p || tp->offset < 0) {
                lc_log(LC_WARN, "TASK", "%s Cannot rewind %s-%" PRId32 " to offset %" PRId64, t->label,
                       tp->topic, tp->partition, tp->offset);
                return;
        }
        p->rewind = tp->offset;
        s->rewinds = true;
}

static void host_timeout(void *arg, int64_t ms)
{
        lc_task_t *t = arg;

        t->after_ms = ms;
        ((lc_sink_t *)t->impl)->timeout_ms = ms;
}

static void host_request_commit(void *arg)
{
        lc_task_t *t = arg;

        ((lc_sink_t *)t->impl)->commit_requested = true;
}

static size_t host_assignment(void *arg, const lc_topic_partition_t **tps)
{
        lc_task_t *t = arg;
        lc_sink_t *s = t->impl;
        size_t n;

        free(s->assignment);
        s->assignment = lc_sink_parts_collect(&s->parts, NULL, &n);
        *tps = s->assignment;
        return n;
}

/* ---- rebalances ---------------------------------------------------------------------------------- */

static void keep_failure(lc_sink_t *s, const lc_err_t *err)
{
        if (!s->rebalance_err.kind)
                s->rebalance_err = *err;
}

/* Runs inside a rebalance, so not for ever: half of max.poll.interval.ms. */
static int open_parts(lc_sink_t *s, const lc_topic_partition_t *tps, size_t n, lc_err_t *err)
{
        lc_task_t *t = s->t;
        int64_t give_up = lc_now_ms() + OPEN_RETRY_ALL_MS;
        int delay = RETRY_MIN_MS;
        bool told = false;

        for (t->after_ms = -1; lc_script_open(t->script, tps, n, err); t->after_ms = -1) {
                int64_t wait = t->after_ms >= 0 ? t->after_ms : delay, end = lc_now_ms() + wait, left;
                char *trace;

                if (err->kind != LC_RETRIABLE || end > give_up)
                        return -1;
                lc_log(LC_WARN, "TASK", "%s open failed and is tried again in %lld ms: %s", t->label,
                       (long long)wait, err->msg);
                trace = lc_err_trace(err);
                lc_task_status(t, LC_RUNNING, trace);
                free(trace);
                told = true;
                while (!lc_task_stopping(t) && (left = end - lc_now_ms()) > 0) {
                        lc_task_rearm(t);
                        lc_waker_wait(&t->stop, (int)left);
                }
                if (lc_task_stopping(t))
                        return 0;
                lc_err_clear(err);
                delay = lc_backoff(delay, RETRY_MIN_MS, RETRY_MAX_MS);
        }
        if (told)
                lc_task_status(t, LC_RUNNING, NULL);
        return 0;
}

static void on_assigned(void *arg, const lc_topic_partition_t *tps, size_t n)
{
        lc_sink_t *s = arg;
        lc_topic_partition_t *at;
        lc_err_t err;

        if (s->left || !n)
                return;
        lc_err_clear(&err);
        for (size_t i = 0; i < n; i++)
                lc_sink_parts_add(&s->parts, tps[i].topic, tps[i].partition);
        at = lc_malloc(n * sizeof(*at));
        memcpy(at, tps, n * sizeof(*at));
        if (lc_consumer_position(s->consumer, at, n, &err)) {
                if (err.kind == LC_RETRIABLE || err.kind == LC_DATA)
                        lc_log(LC_WARN, "TASK", "%s The position is not known yet: %s", s->t->label, err.msg);
                else
                        keep_failure(s, &err);
                lc_err_clear(&err);
        }
        for (size_t i = 0; i < n; i++) {
                lc_sink_part_t *p = lc_sink_parts_find(&s->parts, at[i].topic, at[i].partition);
                if (at[i].offset >= 0)
                        p->committed = p->current = p->consumed = at[i].offset;
                lc_log(LC_DEBUG, "TASK", "%s Assigned topic partition %s-%" PRId32 " with offset %" PRId64,
                       s->t->label, at[i].topic, at[i].partition, at[i].offset);
        }
        free(at);
        if (s->redelivery && !s->batch && !s->tripped_until)
                s->redelivery = false;
        s->repause = true; /* the consumer takes pauses once it has the partitions */
        if (!s->rebalance_err.kind && lc_task_may_call(s->t) && open_parts(s, tps, n, &err)) {
                lc_task_call_failed(s->t, &err);
                keep_failure(s, &err);
        }
}

void lc_sink_close_parts(lc_sink_t *s, const lc_topic_partition_t *tps, size_t n)
{
        lc_err_t err;

        if (!lc_task_may_call(s->t))
                return;
        lc_err_clear(&err);
        if (!lc_script_close(s->t->script, tps, n, &err))
                return;
        lc_task_call_failed(s->t, &err);
        keep_failure(s, &err);
}

static void give_up_parts(lc_sink_t *s, const lc_topic_partition_t *tps, size_t n)
{
        drop_records(s, tps, n);
        for (size_t i = 0; i < n; i++)
                lc_sink_parts_remove(&s->parts, tps[i].topic, tps[i].partition);
        s->repause = true;
}

static void on_revoked(void *arg, const lc_topic_partition_t *tps, size_t n)
{
        lc_sink_t *s = arg;
        lc_topic_partition_t *asked;
        size_t k = 0;

        if (s->left || !n)
                return;
        asked = lc_calloc(n, sizeof(*asked));
        for (size_t i = 0; i < n; i++) {
                const lc_sink_part_t *p = lc_sink_parts_find(&s->parts, tps[i].topic, tps[i].partition);
                if (p && p->current >= 0) {
                        asked[k] = tps[i];
                        asked[k++].offset = p->current;
                }
        }
        lc_sink_commit(s, asked, k, true);
        free(asked);
        lc_sink_close_parts(s, tps, n);
        give_up_parts(s, tps, n);
}

static void on_lost(void *arg, const lc_topic_partition_t *tps, size_t n)
{
        lc_sink_t *s = arg;

        if (s->left || !n)
                return;
        lc_log(LC_WARN, "TASK", "%s has lost %zu partitions to other members of its group", s->t->label, n);
        lc_sink_close_parts(s, tps, n);
        give_up_parts(s, tps, n);
}

static void on_committed(void *arg, uint64_t seq, const lc_err_t *err)
{
        lc_sink_commit_done(arg, seq, err);
}

const lc_consumer_events_t lc_sink_events = {
        .assigned = on_assigned, .revoked = on_revoked, .lost = on_lost, .committed = on_committed};

void lc_sink_fill_host(lc_script_host_t *host)
{
        host->pause = host_pause;
        host->resume = host_resume;
        host->seek = host_seek;
        host->timeout = host_timeout;
        host->request_commit = host_request_commit;
        host->assignment = host_assignment;
        host->report = lc_sink_report;
}
