/*
 * source_commit.c - offsets of what a source task's records were acknowledged for, written at least once: see
 * source.h.
 *
 * Threads:   the task's; a store's callback only marks its commit as done and wakes the task.
 * Source:    worker-tasks 3.2.   Tests: spec/unit/source_task_spec.lua
 */
#include "runtime/source.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* One offset commit that is out. The store may call back after the task has gone. */
typedef struct lc_offset_commit {
        int refs; /* atomic: the task, the store */
        lc_task_t *task;
        int done;     /* atomic */
        lc_err_t err; /* valid once done */
} commit_t;

static void commit_unref(commit_t *c)
{
        if (__atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL))
                return;
        lc_task_unref(c->task);
        free(c);
}

/* On any thread. */
static void on_offsets_written(void *arg, const lc_err_t *err)
{
        commit_t *c = arg;

        if (err)
                c->err = *err;
        __atomic_store_n(&c->done, 1, __ATOMIC_RELEASE);
        lc_waker_wake(&c->task->waker);
        commit_unref(c);
}

static void offsets_context(const lc_task_t *t, bool on)
{
        char context[120];

        snprintf(context, sizeof(context), "%.90s|task-%d%s", t->connector, t->id, on ? "|offsets" : "");
        lc_log_context(context);
}

void lc_source_committed(lc_source_t *s)
{
        lc_err_t err;

        if (!lc_task_may_call(s->t))
                return;
        lc_err_clear(&err);
        if (!lc_script_commit(s->t->script, &err))
                return;
        lc_log(LC_ERROR, "OFFSET", "%s Exception thrown while calling task.commit(): %s", s->t->label,
               err.msg);
        lc_task_call_failed(s->t, &err);
}

int lc_source_harvest(lc_source_t *s, lc_err_t *err)
{
        lc_err_clear(err);
        if (!lc_tracker_harvest(s->tracker, err))
                return 0;
        lc_log(LC_ERROR, "OFFSET",
               "CRITICAL: Failed to serialize offset data, making it impossible to commit offsets under "
               "namespace %s. %s",
               s->t->connector, err->msg);
        return -1;
}

/* At least once the others are committed all the same. */
static void harvest(lc_source_t *s)
{
        lc_err_t err;

        lc_source_harvest(s, &err);
}

static void start_commit(lc_source_t *s)
{
        lc_task_t *t = s->t;
        const lc_offset_entry_t *entries;
        uint64_t acked = lc_tracker_take_count(s->tracker);
        size_t n;

        offsets_context(t, true);
        lc_log(acked ? LC_INFO : LC_DEBUG, "OFFSET",
               "%s Committing offsets for %" PRIu64 " acknowledged messages", t->label, acked);
        n = lc_tracker_begin(s->tracker, &entries);
        if (!n) {
                lc_tracker_end(s->tracker, true);
                lc_source_committed(s);
        } else {
                commit_t *c = lc_calloc(1, sizeof(*c));
                c->refs = 2;
                c->task = lc_task_ref(t);
                s->commit = c;
                s->commit_deadline = lc_now_ms() + t->sv->flush_timeout_ms;
                LC_FAULT("source.before_offset_write");
                lc_source_offsets_set(s->offsets, entries, n, on_offsets_written, c);
        }
        offsets_context(t, false);
}

/* Look after the commit that is out. */
static void check_commit(lc_source_t *s)
{
        lc_task_t *t = s->t;
        commit_t *c = s->commit;
        bool done, ok;

        if (!c)
                return;
        done = __atomic_load_n(&c->done, __ATOMIC_ACQUIRE) != 0;
        if (!done && s->now < s->commit_deadline)
                return;
        ok = done && !c->err.kind;
        offsets_context(t, true);
        if (!done)
                lc_log(LC_ERROR, "OFFSET",
                       "%s Timed out waiting to flush offsets to storage; will try again on next flush "
                       "interval "
                       "with latest offsets",
                       t->label);
        else if (!ok)
                lc_log(LC_ERROR, "OFFSET", "%s Failed to flush offsets to storage: %s", t->label, c->err.msg);
        s->commit = NULL;
        commit_unref(c);
        lc_tracker_end(s->tracker, ok);
        s->next_commit = s->now + t->sv->flush_interval_ms;
        if (ok) {
                LC_FAULT("source.after_offset_write");
                lc_source_committed(s);
        }
        offsets_context(t, false);
}

/* Harvest; commit when it is time. */
void lc_source_tend_offsets(lc_source_t *s)
{
        s->now = lc_now_ms();
        harvest(s);
        check_commit(s);
        if (!s->commit && s->now >= s->next_commit) {
                /* what failed before what is acknowledged must be in the dead letter queue */
                bool mine =
                        lc_task_may_work(s->t) && lc_letters_wait(s->t->letters, s->now + LC_SOURCE_HOLD_MS);

                s->next_commit = s->now + (mine ? s->t->sv->flush_interval_ms : LC_SOURCE_HOLD_MS);
                if (mine)
                        start_commit(s);
        }
}

/* Offsets of everything acknowledged so far, waiting at most until `end`. */
void lc_source_commit_now(lc_source_t *s, int64_t end)
{
        lc_task_t *t = s->t;

        for (int round = 0; round < 2 && !lc_task_cancelled(t); round++) {
                if (!s->commit) {
                        if (!lc_task_may_work(t) || !lc_letters_wait(t->letters, end))
                                return;
                        harvest(s);
                        start_commit(s);
                        round = 1; /* else one was out: what came later needs another */
                }
                while (s->commit && !lc_task_cancelled(t)) {
                        s->now = lc_now_ms();
                        check_commit(s);
                        if (!s->commit || s->now >= end)
                                break;
                        lc_waker_wait(&t->waker, end - s->now > 100 ? 100 : (int)(end - s->now));
                        lc_waker_clear(&t->waker);
                        lc_source_serve_reports(s, 0);
                }
        }
}

/* The last commit: wait for what is in flight, then write (worker-tasks 3.2). With the broker away this has
 * to end before the task is abandoned, or its last status would be lost too. */
void lc_source_final_commit(lc_source_t *s)
{
        lc_task_t *t = s->t;
        int64_t graceful = t->sv->graceful_ms, most = t->sv->flush_timeout_ms;
        int64_t now = lc_now_ms(), end = now + (most < graceful * 3 / 4 ? most : graceful * 3 / 4);

        while (lc_source_outstanding(s) && lc_now_ms() < end && !lc_task_cancelled(t) && lc_task_may_work(t))
                lc_source_serve_reports(s, 50);
        if (lc_task_cancelled(t))
                return;
        if (!lc_task_may_work(t)) { /* not sent, not committed: the new owner reads it again */
                if (s->producer)
                        lc_producer_purge(s->producer);
                return;
        }
        now = lc_now_ms();
        lc_source_commit_now(s, end > now + graceful / 8 ? end : now + graceful / 8);
}

void lc_source_abandon_commit(lc_source_t *s)
{
        if (s->commit)
                commit_unref(s->commit);
        s->commit = NULL;
}
