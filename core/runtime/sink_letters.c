/*
 * sink_letters.c - what the script says of single records, dead letters between put and commit, and the
 * breaker. See sink.h.
 *
 * Threads: the task's.
 * Source:  worker-tasks 5.7, errors.md 6.   Tests: spec/unit/letters_spec.lua, spec/kafka/dlq_spec.lua
 */
#include "base/clock.h"
#include "base/log.h"
#include "runtime/sink.h"
#include <stdlib.h>

#define CLS_SINK_TASK "org.apache.kafka.connect.sink.SinkTask"

enum {
        LETTERS_MAX = 2000, /* out at once: then nothing is read until half of them are written */
        SETTLE_MS = 5000,
        TRIPPED_MIN_MS = 1000,
        TRIPPED_MAX_MS = 300000
};

/* ---- single records ----------------------------------------------------------------------------- */

/* The errant record reporter. */
int lc_sink_report(void *arg, lc_record_t *record, const lc_err_t *failure, lc_err_t *err)
{
        lc_sink_t *s = ((lc_task_t *)arg)->impl;
        lc_err_t e = *failure;

        if (lc_operator_report(&s->t->op, LC_STAGE_TASK_PUT, CLS_SINK_TASK, record, true, &e) >= 0)
                return 0;
        if (!s->put_err.kind)
                s->put_err = e;
        *err = e;
        return -1;
}

void lc_sink_on_failed(void *arg, uint32_t index, const lc_err_t *cause)
{
        lc_sink_t *s = arg;
        lc_err_t ignored;

        if (cause->kind != LC_RETRIABLE)
                lc_sink_report(s->t, &s->batch->records[index], cause, &ignored);
        else if (!s->put_retry.kind)
                s->put_retry = *cause;
}

/* ---- letters ------------------------------------------------------------------------------------ */

int lc_sink_tend_letters(lc_sink_t *s, lc_err_t *err)
{
        lc_letters_t *l = s->t->letters;
        size_t n;

        if (!l)
                return 0;
        lc_letters_serve(l);
        if (!s->batch) /* else they wait for what put says */
                lc_letters_send(l);
        if (lc_letters_check(l, err))
                return -1;
        n = lc_letters_pending(l);
        if (!s->choked && n > LETTERS_MAX && !s->batch) {
                s->choked = true;
                lc_sink_set_paused(s, true, NULL);
        } else if (s->choked && n <= LETTERS_MAX / 2) {
                s->choked = false;
                if (!lc_sink_held_back(s))
                        lc_sink_set_paused(s, false, lc_sink_not_user_paused);
        }
        return 0;
}

void lc_sink_settle(lc_sink_t *s)
{
        const lc_services_t *sv = s->t->sv;
        int64_t ms = sv->graceful_ms * 3 / 4;

        if (!lc_letters_pending(s->t->letters) || !lc_task_may_work(s->t))
                return;
        if (!lc_letters_wait(s->t->letters, lc_now_ms() + (ms < SETTLE_MS ? ms : SETTLE_MS)))
                lc_log(LC_WARN, "TASK",
                       "%s %zu records are not in the dead letter queue yet: their offsets are not committed",
                       s->t->label, lc_letters_pending(s->t->letters));
}

/* ---- the breaker -------------------------------------------------------------------------------- */

static void say_tripped(lc_sink_t *s, uint32_t failed)
{
        char at[32];
        lc_err_t err;
        char *trace;

        lc_iso8601(lc_wall_ms() + s->tripped_ms, at);
        lc_err_clear(&err);
        lc_err_set(&err, LC_RETRIABLE, 0,
                   "%u of the last %u records failed, more than errors.deadletterqueue.max.failure.ratio = "
                   "%g of the "
                   "last %u: the task pauses and reads them again at %s",
                   (unsigned)failed, (unsigned)s->batch_all, s->breaker.ratio, (unsigned)s->breaker.window,
                   at);
        lc_log(LC_ERROR, "TASK", "%s %s", s->t->label, err.msg);
        trace = lc_err_trace(&err);
        lc_task_status(s->t, LC_PAUSED, trace);
        free(trace);
}

/* As if the batch had never been read: no letters, no offsets. */
static void trip(lc_sink_t *s, uint32_t failed)
{
        lc_letters_drop(s->t->letters, NULL, true);
        for (size_t i = 0; i < s->parts.n; i++) {
                lc_sink_part_t *p = &s->parts.v[i];

                if (p->from == LC_NO_OFFSET)
                        continue;
                p->rewind = p->current = p->consumed = p->from;
                p->from = LC_NO_OFFSET;
                s->rewinds = true;
        }
        lc_batch_unref(s->batch);
        s->batch = NULL;
        if (!s->redelivery) {
                s->redelivery = true;
                lc_sink_set_paused(s, true, NULL);
        }
        s->tripped = true;
        s->tripped_ms = lc_backoff(s->tripped_ms, TRIPPED_MIN_MS, TRIPPED_MAX_MS);
        s->tripped_until = lc_now_ms() + s->tripped_ms;
        say_tripped(s, failed);
}

bool lc_sink_judge(lc_sink_t *s, uint32_t failed)
{
        uint32_t bad = s->batch_bad + failed;

        if (!s->batch || s->breaker.ratio <= 0 || s->put_err.kind)
                return false;
        if (lc_breaker_trips(&s->breaker, s->batch_all, bad)) {
                trip(s, bad);
                return true;
        }
        lc_breaker_add(&s->breaker, s->batch_all, bad);
        if (s->tripped) {
                lc_log(LC_INFO, "TASK", "%s Records go well again", s->t->label);
                s->tripped = false;
                s->tripped_ms = 0;
                if (!s->paused)
                        lc_task_status(s->t, LC_RUNNING, NULL);
        }
        return false;
}

bool lc_sink_may_put(lc_sink_t *s)
{
        if (!s->tripped_until)
                return true;
        if (s->now < s->tripped_until || s->rewinds) /* not before it reads from there */
                return false;
        s->tripped_until = 0;
        return true;
}
