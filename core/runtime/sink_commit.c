/*
 * sink_commit.c - offsets of a sink task: pre_commit, what may be committed, rewinds. See sink.h.
 *
 * Threads: the task's.
 * Source:  worker-tasks 5.4.   Tests: spec/unit/sink_task_spec.lua
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "runtime/sink.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void lc_sink_forget_sent(lc_sink_t *s)
{
        for (size_t i = 0; i < s->nsent; i++)
                free((char *)s->sent[i].topic);
        free(s->sent);
        s->sent = NULL;
        s->nsent = 0;
}

void lc_sink_apply_rewinds(lc_sink_t *s)
{
        if (!s->rewinds)
                return;
        s->rewinds = false;
        for (size_t i = 0; i < s->parts.n; i++) {
                lc_sink_part_t *p = &s->parts.v[i];
                lc_topic_partition_t tp = {.topic = p->topic, .partition = p->partition, .offset = p->rewind};
                lc_err_t err;

                if (p->rewind == LC_NO_OFFSET)
                        continue;
                lc_err_clear(&err);
                lc_log(LC_DEBUG, "TASK", "%s Rewind %s-%" PRId32 " to offset %" PRId64, s->t->label, p->topic,
                       p->partition, p->rewind);
                if (lc_consumer_seek(s->consumer, &tp, &err)) {
                        lc_log(LC_WARN, "TASK", "%s Cannot rewind %s-%" PRId32 " to offset %" PRId64 ": %s",
                               s->t->label, p->topic, p->partition, p->rewind, err.msg);
                        if (err.kind == LC_RETRIABLE) { /* before the next poll again */
                                s->rewinds = true;
                                continue;
                        }
                } else {
                        if (p->rewind != p->current) /* else what was delivered is still to be committed */
                                p->committed = p->rewind;
                        p->current = p->consumed = p->rewind;
                        lc_sink_drop_held(s, &tp, 1);
                }
                p->rewind = LC_NO_OFFSET;
        }
}

/* pre_commit failed: everything since the last commit comes again. */
static void rewind_to_committed(lc_sink_t *s)
{
        for (size_t i = 0; i < s->parts.n; i++) {
                lc_sink_part_t *p = &s->parts.v[i];
                if (p->committed < 0)
                        continue;
                p->rewind = p->committed;
                p->current = p->committed;
                s->rewinds = true;
        }
}

/* The commit `seq` is over. */
void lc_sink_commit_done(lc_sink_t *s, uint64_t seq, const lc_err_t *err)
{
        if (seq != s->commit_seq) {
                lc_log(LC_DEBUG, "OFFSET",
                       "%s Received out of order commit callback for sequence number %" PRIu64, s->t->label,
                       seq);
                return;
        }
        s->committing = false;
        if (err) {
                lc_log(LC_ERROR, "OFFSET",
                       "%s Commit of offsets threw an unexpected exception for sequence number %" PRIu64
                       ": %s",
                       s->t->label, seq, err->msg);
        } else {
                LC_FAULT("sink.after_commit");
                for (size_t i = 0; i < s->nsent; i++) {
                        lc_sink_part_t *p =
                                lc_sink_parts_find(&s->parts, s->sent[i].topic, s->sent[i].partition);
                        if (p)
                                p->committed = s->sent[i].offset;
                }
        }
        lc_sink_forget_sent(s);
}

/* Of what the task returned, what may and need be committed: into s->sent. */
static void choose(lc_sink_t *s, const lc_topic_partition_t *asked, const lc_topic_partition_t *got, size_t n)
{
        bool news = false;

        lc_sink_forget_sent(s);
        s->sent = lc_calloc(n + 1, sizeof(*s->sent));
        for (size_t i = 0; i < n; i++) {
                const lc_sink_part_t *p = lc_sink_parts_find(&s->parts, got[i].topic, got[i].partition);
                int64_t lowest;

                if (got[i].offset == LC_NO_OFFSET)
                        continue;
                if (!p) {
                        lc_log(LC_WARN, "OFFSET",
                               "%s Ignoring invalid task provided offset %s-%" PRId32 "/%" PRId64
                               " -- partition not assigned",
                               s->t->label, got[i].topic, got[i].partition, got[i].offset);
                        continue;
                }
                if (!lc_sink_in_list(asked, n, got[i].topic, got[i].partition))
                        continue;
                if (got[i].offset < 0 || got[i].offset > p->current) {
                        lc_log(LC_WARN, "OFFSET",
                               "%s Ignoring invalid task provided offset %s-%" PRId32 "/%" PRId64
                               " -- not yet consumed, taskOffset=%" PRId64 " currentOffset=%" PRId64,
                               s->t->label, got[i].topic, got[i].partition, got[i].offset, got[i].offset,
                               p->current);
                        continue;
                }
                lowest = lc_letters_lowest(s->t->letters, p->topic, p->partition);
                if (got[i].offset == p->committed || (lowest <= p->committed && p->committed >= 0))
                        continue;
                news = true;
                s->sent[s->nsent] = got[i];
                if (lowest < got[i].offset) /* its letter is on its way */
                        s->sent[s->nsent].offset = lowest;
                s->sent[s->nsent++].topic = lc_strdup(got[i].topic);
        }
        if (!news)
                lc_sink_forget_sent(s);
}

/* Offsets of the given partitions (asked[].offset = current). closing: wait for the broker's answer. */
void lc_sink_commit(lc_sink_t *s, const lc_topic_partition_t *asked, size_t n, bool closing)
{
        lc_task_t *t = s->t;
        lc_topic_partition_t *got;
        lc_err_t err;

        if (!n || !lc_task_may_call(t) || !lc_task_may_work(t)) /* no flush either: it may write */
                return;
        lc_err_clear(&err);
        s->committing = true;
        s->commit_seq++;
        s->commit_started = lc_now_ms();
        got = lc_malloc(n * sizeof(*got));
        memcpy(got, asked, n * sizeof(*got));
        if (lc_script_pre_commit(t->script, got, n, &err)) {
                if (lc_task_call_failed(t, &err)) { /* the task is about to fail */
                        lc_log(LC_ERROR, "OFFSET", "%s Offset commit failed: %s", t->label, err.msg);
                } else if (closing) {
                        lc_log(LC_WARN, "OFFSET", "%s Offset commit failed during close: %s", t->label,
                               err.msg);
                        lc_task_end_failed(t, "pre_commit", &err);
                } else {
                        lc_log(LC_ERROR, "OFFSET",
                               "%s Offset commit failed, rewinding to last committed offsets: %s", t->label,
                               err.msg);
                        rewind_to_committed(s);
                }
                lc_sink_commit_done(s, s->commit_seq, &err);
                goto done;
        }
        if (closing)
                lc_sink_settle(s); /* flush may have reported some */
        else
                lc_letters_send(t->letters);
        choose(s, asked, got, n);
        if (!s->nsent || lc_task_cancelled(t)) {
                s->committing = false;
                goto done;
        }
        LC_FAULT("sink.before_commit");
        lc_log(LC_DEBUG, "OFFSET", "%s Committing offsets %s using sequence number %" PRIu64, t->label,
               closing ? "synchronously" : "asynchronously", s->commit_seq);
        if (closing) {
                int rc = lc_consumer_commit(s->consumer, s->sent, s->nsent, &err);
                lc_sink_commit_done(s, s->commit_seq, rc ? &err : NULL);
        } else if (lc_consumer_commit_async(s->consumer, s->sent, s->nsent, s->commit_seq, &err)) {
                lc_sink_commit_done(s, s->commit_seq, &err);
        }
done:
        free(got);
}

static bool has_current(const lc_sink_part_t *p)
{
        return p->current >= 0;
}

void lc_sink_commit_all(lc_sink_t *s, bool closing)
{
        size_t n;
        lc_topic_partition_t *tps = lc_sink_parts_collect(&s->parts, has_current, &n);

        lc_sink_commit(s, tps, n, closing);
        free(tps);
}
