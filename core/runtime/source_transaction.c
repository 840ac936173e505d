/*
 * source_transaction.c - exactly-once source tasks (KIP-618): records and their offsets in transactions of the
 * task's own producer, whose id fences every earlier instance. See source.h.
 *
 * A record counts as done in the tracker as soon as the producer has it: if it cannot be delivered the
 * transaction cannot be committed, and the offsets go with it. So its batch has two references, the tracker's
 * and one that its report drops.
 * After a failure nothing is committed: what is open is aborted, here or by the next instance.
 * Threads:   the task's.
 * Source:    worker-tasks 4.   Tests: spec/unit/exactly_once_spec.lua, spec/kafka/exactly_once_spec.lua
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "config/client_config.h"
#include "kafka/transactions.h"
#include "runtime/new_topics.h"
#include "runtime/source.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
        REASON_MS = 2000,
        CLOSE_MS = 2000, /* to abort what is open when the task has failed */
        FULL_MS = 20,
        LETTERS_SLICE_MS = 200,
        /* The broker completes a transaction a little after it has answered. Who begins the next one before that
         * is sent away, and librdkafka comes back only after 20 ms: see settle(). */
        SENT_AWAY_MS = 20,
        SETTLE_MOST_MS = 10,
        SETTLE_LESS_AFTER = 16 /* transactions in a row that were not sent away */
};

typedef enum { BY_POLL, BY_INTERVAL, BY_CONNECTOR } boundary_t;
enum { MARK_COMMIT = 1, MARK_ABORT = 2 };

/* A record that commit_record will be told of, with a batch reference. */
typedef struct done {
        lc_record_t *r;
        lc_delivery_t to;
        bool sent;
} done_t;

typedef struct lc_source_txn {
        boundary_t boundary;
        int64_t interval_ms, last_commit;
        int64_t timeout_ms, opened_at; /* the broker's patience with a transaction */
        int64_t committed_at;
        int settle_ms;                    /* between the end of one and the begin of the next */
        int in_time;                      /* transactions in a row whose first record was not late */
        bool reported;                    /* a record of the open one */
        const lc_offset_entry_t *entries; /* of the open one, if they were written in front of its records */
        size_t nentries;
        bool written;
        lc_new_topics_t *topics;
        bool open, ready; /* ready: initialized */
        bool aborting;
        bool commit_batch, abort_batch; /* what the script asked for */
        uint8_t *marks;                 /* of the records of the batch that is polled or sent */
        uint32_t nmarks;
        bool marked;
        done_t *done; /* for commit_record, in order of completion */
        size_t ndone;
        bool broken;        /* a delivery failed */
        bool refused;       /* because the transaction cannot go on */
        lc_err_t why;       /* LC_RETRIABLE with LC_TOO_LARGE: the batch, not the record */
        int64_t commit_end; /* of the commit that runs; 0: as long as it takes */
} txn_t;

/* ---- errors ---- */

/* The broker has forgotten the transaction, or has it aborted by itself. */
static bool expired(const txn_t *x, const lc_err_t *cause)
{
        return cause->cls &&
               (strstr(cause->cls, "InvalidProducerEpochException") ||
                (cause->kind == LC_FENCED && x->open && lc_now_ms() - x->opened_at >= x->timeout_ms));
}

/* A record that is taken back says nothing of the reason: another one's topic may be forbidden. */
static void find_reason(lc_source_t *s)
{
        txn_t *x = s->txn;

        if (x->why.code != LC_PURGED || x->why.kind == LC_FENCED || !x->open)
                return;
        lc_txn_reason(s->producer, &x->why);
        if (x->why.code != LC_PURGED)
                x->refused = true;
        if (x->why.code == LC_TOO_LARGE)
                x->why.kind = LC_RETRIABLE;
}

static bool only_together(const lc_err_t *why)
{
        return why->code == LC_TOO_LARGE && why->kind == LC_RETRIABLE;
}

/* What is aborted is polled again, and fits then. */
static bool fits_next_time(lc_source_t *s)
{
        return s->txn->broken && only_together(&s->txn->why) && lc_producer_smaller(s->conf);
}

/* A transaction that can only be aborted takes nothing any more. Of a refusal the report may be on its way still, and only
 * that knows whether the record was alone. */
static const lc_err_t *behind_bad_state(lc_source_t *s, const lc_err_t *cause)
{
        txn_t *x = s->txn;
        int64_t end = lc_now_ms() + REASON_MS;
        lc_err_t why, offset;

        if (cause->code != LC_BAD_STATE)
                return cause;
        lc_err_clear(&why);
        lc_err_clear(&offset);
        lc_txn_reason(s->producer, &why);
        while (why.code == LC_TOO_LARGE && !x->broken && lc_source_outstanding(s) && lc_now_ms() < end &&
               !lc_producer_copied(s->producer, NULL, &offset))
                lc_producer_poll(s->producer, FULL_MS);
        if (!x->broken) {
                x->broken = true;
                x->refused = why.kind && !offset.kind;
                x->why = offset.kind ? offset : why.kind ? why : *cause;
                if (x->refused && why.code == LC_TOO_LARGE)
                        x->why.kind = LC_RETRIABLE;
        }
        find_reason(s);
        return &x->why;
}

int lc_source_txn_failed(lc_source_t *s, const lc_err_t *cause, lc_err_t *err)
{
        lc_task_t *t = s->t;

        cause = behind_bad_state(s, cause);
        if (fits_next_time(s)) {
                t->smaller++;
                t->again = true;
        }
        *err = *cause;
        if (err->kind != LC_FENCED)
                err->kind = LC_FATAL;
        if (cause->kind == LC_DATA || (cause == &s->txn->why && s->txn->refused))
                lc_err_wrap(err, "org.apache.kafka.common.KafkaException",
                            "Cannot execute transactional method because we are in an error state");
        if (expired(s->txn, cause))
                lc_err_wrap(
                        err, LC_CLS_CONNECT,
                        "The task %s-%d was unable to finish writing records to Kafka before its producer "
                        "transaction expired. It may be necessary to reconfigure this connector in order "
                        "for it to run healthily with exactly-once support. Options for this include: tune "
                        "the connector's producer configuration for higher throughput, increase the "
                        "transaction timeout for the connector's producers, decrease the offset commit "
                        "interval (if using interval-based transaction boundaries), or use the 'poll' "
                        "transaction boundary (if the connector is not already configured to use it).",
                        t->connector, t->id);
        else
                lc_err_wrap(err, LC_CLS_CONNECT, "Failed to flush offsets and/or records for task %s-%d",
                            t->connector, t->id);
        return -1;
}

bool lc_source_txn_broken(const lc_source_t *s)
{
        return s->txn->broken;
}

int lc_source_txn_broke(lc_source_t *s, lc_err_t *err)
{
        find_reason(s);
        return lc_source_txn_failed(s, &s->txn->why, err);
}

/* ---- what the script asks for ---- */

static int both_asked(lc_err_t *err, const char *what)
{
        return lc_err_set_cls(err, LC_FATAL, 0, "java.lang.IllegalStateException",
                              "Connector requested both commit and abort of same %s", what);
}

/* ctx.transaction: record -1: the batch as a whole; else one of the batch that this poll returns. */
static int host_transaction(void *arg, bool abort, int64_t record, lc_err_t *err)
{
        const lc_task_t *t = arg;
        txn_t *x = ((lc_source_t *)t->impl)->txn;
        uint8_t mark = abort ? MARK_ABORT : MARK_COMMIT;

        if (record < 0) {
                if (abort ? x->commit_batch : x->abort_batch)
                        return both_asked(err, "transaction");
                if (abort)
                        x->abort_batch = true;
                else
                        x->commit_batch = true;
                return 0;
        }
        if (record >= x->nmarks) {
                uint32_t n = (uint32_t)record + 1 > 2 * x->nmarks ? (uint32_t)record + 1 : 2 * x->nmarks;

                x->marks = lc_realloc(x->marks, n);
                memset(x->marks + x->nmarks, 0, n - x->nmarks);
                x->nmarks = n;
        }
        x->marks[record] |= mark;
        x->marked = true;
        return 0;
}

void lc_source_txn_before_poll(lc_source_t *s)
{
        txn_t *x = s->txn;

        if (x->marked)
                memset(x->marks, 0, x->nmarks);
        x->marked = false;
}

/* ---- start and end ---- */

int lc_source_txn_new(lc_source_t *s, lc_err_t *err)
{
        static const char *const names[] = {"poll", "interval", "connector"};
        lc_task_t *t = s->t;
        const char *boundary = lc_props_get_or(t->config, "transaction.boundary", "poll");
        const char *ms = lc_props_get(t->config, "transaction.boundary.interval.ms");
        const char *timeout =
                lc_client_java_value(t->sv->config, LC_CLIENT_PRODUCER, t->config, "transaction.timeout.ms");
        txn_t *x = s->txn = lc_calloc(1, sizeof(*x));
        size_t i;

        for (i = 0; i < 3 && strcasecmp(boundary, names[i]) != 0; i++)
                ;
        if (i == 3)
                return lc_err_set_cls(
                        err, LC_FATAL, 0, LC_CLS_CONFIG,
                        "Invalid value %s for configuration transaction.boundary: String must be "
                        "one of (case insensitive): INTERVAL, POLL, CONNECTOR",
                        boundary);
        x->boundary = (boundary_t)i;
        x->interval_ms = ms ? strtoll(ms, NULL, 10) : t->sv->flush_interval_ms;
        x->timeout_ms = timeout ? strtoll(timeout, NULL, 10) : 60000;
        if (x->boundary == BY_CONNECTOR)
                t->host.transaction = host_transaction;
        return 0;
}

int lc_source_txn_start(lc_source_t *s, lc_err_t *err)
{
        lc_task_t *t = s->t;
        int rc;

        rc = lc_source_fence(t, err);
        if (rc)
                return rc;
        LC_FAULT("source.after_fencing");
        if (lc_task_stopping(t))
                return 1;
        rc = lc_txn_init(s->producer, 0, lc_task_quits, t, err);
        if (rc)
                return rc;
        s->txn->ready = true;
        s->txn->topics = lc_new_topics_new(s->producer, lc_task_quits, t);
        LC_FAULT("source.after_init");
        return lc_source_verify(t, err);
}

static void forget_done(txn_t *x)
{
        for (size_t i = 0; i < x->ndone; i++)
                lc_batch_unref(x->done[i].r->batch);
        x->ndone = 0;
}

/* With the broker away a commit has to end before the task is abandoned, also one that was under way when the stop
 * came. */
static int64_t end_of_stop(const lc_task_t *t)
{
        return lc_now_ms() + t->sv->graceful_ms * 3 / 4;
}

static bool over(void *arg)
{
        const lc_source_t *s = arg;
        txn_t *x = s->txn;

        if (lc_task_cancelled(s->t) || (x->broken && !x->aborting))
                return true;
        if (!x->commit_end && lc_task_stopping(s->t))
                x->commit_end = end_of_stop(s->t);
        return x->commit_end && lc_now_ms() >= x->commit_end;
}

/* With s->closing set: the producer's reports still come after this. */
void lc_source_txn_free(lc_source_t *s)
{
        txn_t *x = s->txn;
        int64_t ms = CLOSE_MS;
        lc_err_t err;

        if (!x)
                return;
        if (x->open && s->producer && !lc_task_cancelled(s->t)) {
                lc_err_clear(&err);
                x->commit_end = 0;
                x->aborting = true;
                lc_log(LC_INFO, "TASK", "%s Aborting incomplete transaction due to shutdown", s->t->label);
                if (lc_task_stopping(s->t) &&
                    s->t->sv->graceful_ms / 8 < ms) /* what a commit has left of it */
                        ms = s->t->sv->graceful_ms / 8;
                if (lc_txn_abort(s->producer, ms > 0 ? (int)ms : 1, over, s, &err) < 0)
                        lc_log(LC_WARN, "TASK",
                               "%s The transaction could not be aborted, the next producer of this task or "
                               "its "
                               "timeout will: %s",
                               s->t->label, err.msg);
        }
        lc_producer_destroy(s->producer, 0);
        s->producer = NULL;
        if (x->written)
                lc_tracker_end(s->tracker, false);
        forget_done(x);
        lc_new_topics_free(x->topics);
        free(x->done);
        free(x->marks);
        free(x);
        s->txn = NULL;
}

void lc_source_txn_enter(lc_source_t *s)
{
        s->now = lc_now_ms();
        s->txn->last_commit = s->now;
}

/* ---- records ---- */

bool lc_source_txn_forbids(const lc_source_t *s, const char *topic)
{
        const char *own = lc_source_offsets_topic(s->offsets);

        return own && !strcmp(own, topic);
}

uint32_t lc_source_txn_section(const lc_source_t *s)
{
        const txn_t *x = s->txn;
        uint32_t end = s->limit < x->nmarks ? s->limit : x->nmarks;

        for (uint32_t i = s->at; x->marked && i < end; i++)
                if (x->marks[i])
                        return i + 1;
        return s->limit;
}

/* The pause before a transaction finds its length by itself: two ms more when the first record came so late that
 * the broker must have sent the registration of its partition away, one less when that did not happen for long. */
static void settle(txn_t *x)
{
        if (lc_now_ms() - x->opened_at >= SENT_AWAY_MS) {
                x->settle_ms += x->settle_ms + 2 <= SETTLE_MOST_MS ? 2 : 0;
                x->in_time = 0;
        } else if (++x->in_time >= SETTLE_LESS_AFTER) {
                x->settle_ms -= x->settle_ms > 0;
                x->in_time = 0;
        }
}

/* One that was begun and has nothing in it costs nothing. */
static int begin(lc_source_t *s, lc_err_t *why)
{
        txn_t *x = s->txn;
        int64_t gap = x->committed_at + x->settle_ms - lc_now_ms();

        if (x->open)
                return 0;
        if (gap > 0)
                lc_source_serve_reports(s, (int)gap);
        if (lc_txn_begin(s->producer, why))
                return -1;
        x->open = true;
        x->reported = false;
        x->opened_at = lc_now_ms();
        return 0;
}

static void done_with(lc_source_t *s, uint32_t from, uint32_t to, uint8_t state)
{
        for (uint32_t i = from; i < to; i++) {
                lc_record_t *r = &s->batch->records[i];

                if (r->state != state)
                        continue;
                lc_batch_ref(r->batch);
                lc_tracker_ack(s->tracker, r);
        }
}

void lc_source_txn_sent(lc_source_t *s, uint32_t from, uint32_t to)
{
        if (!s->txn->written)
                done_with(s, from, to, LC_REC_SUBMITTED);
}

static void keep_done(lc_source_t *s, lc_record_t *r, const lc_delivery_t *to)
{
        txn_t *x = s->txn;

        if (!s->commits_records)
                return;
        if ((x->ndone & (x->ndone - 1)) == 0) /* the capacity is the next power of two */
                x->done = lc_realloc(x->done, (x->ndone ? x->ndone * 2 : 1) * sizeof(*x->done));
        lc_batch_ref(r->batch);
        x->done[x->ndone] = (done_t){.r = r, .sent = to != NULL};
        if (to)
                x->done[x->ndone].to = *to;
        x->ndone++;
}

void lc_source_txn_passed(lc_source_t *s, uint32_t from, uint32_t to)
{
        for (uint32_t i = from; i < to && s->commits_records; i++)
                if (s->batch->records[i].state == LC_REC_DROPPED)
                        keep_done(s, &s->batch->records[i], NULL);
}

void lc_source_txn_report(lc_source_t *s, lc_record_t *r, const lc_err_t *err, const lc_delivery_t *to)
{
        txn_t *x = s->txn;

        if (!err) {
                if (!x->reported && !lc_producer_lingers(s->producer))
                        settle(x);
                x->reported = true;
                if (r->topic != s->topics.last || s->topics.v[s->topics.last_at].told_ms != s->now)
                        lc_topics_used_note(&s->topics, s->t, r->topic, s->now);
                keep_done(s, r, to);
        } else if (!x->aborting && !s->closing && !x->broken) {
                x->broken = true;
                x->why = *err;
                find_reason(s);
                lc_log(only_together(&x->why) ? LC_WARN : LC_ERROR, "TASK",
                       "%s failed to send record to %s: %s %s", s->t->label, r->topic, x->why.msg,
                       x->why.detail);
        }
        lc_batch_unref(r->batch);
}

/* ---- the routine of a commit ---- */

static int write_offset(void *arg, const char *key, size_t key_len, int32_t partition, const char *offset,
                        lc_err_t *err)
{
        lc_source_t *s = arg;
        const char *topic = lc_source_offsets_topic(s->offsets);

        for (;;) {
                if (!lc_producer_send_copy(s->producer, topic, partition, key, key_len, offset,
                                           offset ? strlen(offset) : 0, err))
                        return 0;
                if (err->code != LC_QUEUE_FULL || over(s))
                        return -1;
                lc_err_clear(err);
                lc_producer_poll(s->producer, FULL_MS);
        }
}

static int harvest(lc_source_t *s, lc_err_t *err)
{
        lc_err_t why;

        if (!lc_source_harvest(s, &why))
                return 0;
        why.kind = LC_FATAL;
        return lc_source_txn_failed(s, &why, err);
}

static int too_late(lc_err_t *why, const char *text)
{
        return lc_err_set_cls(why, LC_FATAL, 0, "org.apache.kafka.common.errors.TimeoutException", "%s",
                              text);
}

/* Begins a transaction if none is open. */
static int write_offsets(lc_source_t *s, const lc_offset_entry_t *entries, size_t n, lc_err_t *why)
{
        int rc = lc_source_offsets_before(s->offsets, entries, n, over, s, why);

        if (!rc)
                rc = begin(s, why);
        if (!rc)
                rc = lc_source_offsets_records(s->offsets, entries, n, write_offset, s, why);
        return rc;
}

static int end_transaction(lc_source_t *s, const lc_offset_entry_t *entries, size_t n, lc_err_t *why)
{
        txn_t *x = s->txn;
        int rc = x->written ? 0 : write_offsets(s, entries, n, why);
        lc_err_t offset;

        if (!rc) {
                LC_FAULT("source.before_commit");
                rc = lc_txn_commit(s->producer, 0, over, s, why);
        }
        lc_err_clear(&offset);
        if (lc_producer_copied(s->producer, NULL, &offset)) {
                if (!x->broken && only_together(&offset)) {
                        x->broken = true;
                        x->why = offset;
                }
                if (!why->kind)
                        *why = offset;
                if (!rc)
                        rc = -1;
        }
        if (rc > 0)
                rc = too_late(why, "The transaction could not be committed in time");
        return rc;
}

static void committed(lc_source_t *s)
{
        txn_t *x = s->txn;

        if (x->open)
                x->committed_at = lc_now_ms();
        x->open = false;
        for (size_t i = 0; i < x->ndone; i++)
                lc_source_commit_record(s, x->done[i].r, x->done[i].sent ? &x->done[i].to : NULL);
        forget_done(x);
        lc_source_committed(s);
}

/* What failed before the offsets that are to be committed must be in the dead letter queue. While the broker is away
 * this waits as the records do. */
static int wait_for_letters(lc_source_t *s, lc_err_t *err)
{
        lc_task_t *t = s->t;
        lc_err_t why;

        lc_err_clear(&why);
        while (!lc_letters_wait(t->letters, lc_now_ms() + LETTERS_SLICE_MS))
                if (lc_letters_check(t->letters, &why) || over(s))
                        break;
        if (!lc_letters_pending(t->letters))
                return 0;
        if (!lc_letters_check(t->letters, &why))
                too_late(&why, "The dead letters of records before the commit could not be written in time");
        return lc_source_txn_failed(s, &why, err);
}

static int commit(lc_source_t *s, lc_err_t *err)
{
        txn_t *x = s->txn;
        const lc_offset_entry_t *entries = x->entries;
        size_t n = x->nentries;
        lc_err_t why;
        int rc;

        if (x->broken)
                return lc_source_txn_broke(s, err);
        if ((!x->written && harvest(s, err)) || wait_for_letters(s, err))
                return -1;
        if (!x->written) {
                lc_tracker_take_count(s->tracker);
                n = lc_tracker_begin(s->tracker, &entries);
        }
        if (!x->open && !n) {
                lc_tracker_end(s->tracker, true);
                committed(s);
                return 0;
        }
        lc_err_clear(&why);
        rc = end_transaction(s, entries, n, &why);
        if (!rc) {
                LC_FAULT("source.after_commit");
                lc_source_offsets_after(s->offsets, entries, n);
        }
        lc_tracker_end(s->tracker, !rc);
        x->written = false;
        if (rc)
                return x->broken ? lc_source_txn_broke(s, err) : lc_source_txn_failed(s, &why, err);
        committed(s);
        return 0;
}

/* The batch is the transaction and all of it is known, so its offsets can go first, and one record right behind:
 * librdkafka then registers their partitions in one request, not in two after each other. */
static int offsets_first(lc_source_t *s, lc_err_t *err)
{
        txn_t *x = s->txn;
        lc_err_t why, again;
        int rc;

        done_with(s, 0, s->limit, LC_REC_NEW);
        if (harvest(s, err))
                return -1;
        for (uint32_t i = 0; i < s->limit; i++) /* the tracker has let go of them: they are to be sent */
                if (s->batch->records[i].state == LC_REC_ACKED)
                        s->batch->records[i].state = LC_REC_NEW;
        lc_tracker_take_count(s->tracker);
        x->nentries = lc_tracker_begin(s->tracker, &x->entries);
        x->written = true;
        lc_err_clear(&why);
        rc = write_offsets(s, x->entries, x->nentries, &why);
        if (rc > 0)
                rc = too_late(&why, "The offsets of a batch could not be written in time");
        if (rc)
                return lc_source_txn_failed(s, &why, err);
        lc_err_clear(&again); /* what this says the caller hears, too, who sends them all */
        lc_producer_send(s->producer, &s->batch->records[s->at], 1, &again);
        return 0;
}

void lc_source_txn_await_topic(lc_source_t *s, const char *topic)
{
        lc_new_topics_await(s->txn->topics, topic);
}

int lc_source_txn_begin(lc_source_t *s, lc_err_t *err)
{
        txn_t *x = s->txn;
        lc_err_t why;

        if (x->open)
                return 0;
        lc_err_clear(&why);
        if (x->boundary == BY_POLL && !s->failed_after) {
                if (offsets_first(s, err))
                        return -1;
        } else if (begin(s, &why)) {
                return lc_source_txn_failed(s, &why, err);
        }
        LC_FAULT("source.after_begin");
        return 0;
}

bool lc_source_txn_amid(const lc_source_t *s)
{
        return s->txn && s->txn->written && s->batch;
}

/* The records are given up, their offsets are not: they are committed in a transaction of their own. */
static int abort_and_commit(lc_source_t *s, lc_err_t *err)
{
        txn_t *x = s->txn;
        lc_err_t why;
        int rc = 0;

        if (!x->open) {
                lc_log(LC_WARN, "TASK",
                       "%s Ignoring request by task to abort transaction as the current transaction is empty",
                       s->t->label);
        } else {
                lc_err_clear(&why);
                x->aborting = true;
                rc = lc_txn_abort(s->producer, 0, over, s, &why);
                x->aborting = false;
                if (rc > 0)
                        rc = lc_err_set(&why, LC_FATAL, 0, "The transaction could not be aborted in time");
                if (rc)
                        return lc_source_txn_failed(s, &why, err);
                x->open = false;
        }
        return commit(s, err);
}

/* ---- where transactions end ---- */

int lc_source_txn_section_done(lc_source_t *s, lc_err_t *err)
{
        txn_t *x = s->txn;
        uint32_t i = s->to - 1;
        uint8_t mark;

        if (!s->to || !x->marked || i >= x->nmarks || !x->marks[i])
                return 0;
        mark = x->marks[i];
        x->marks[i] = 0;
        if (mark == (MARK_COMMIT | MARK_ABORT)) {
                const lc_record_t *r = &s->batch->records[i];
                char what[400];

                snprintf(what, sizeof(what), "record against topic/partition %.300s/", r->topic);
                if (r->partition >= 0)
                        snprintf(what + strlen(what), 16, "%d", (int)r->partition);
                else
                        strcat(what, "null");
                return both_asked(err, what);
        }
        if (mark == MARK_COMMIT)
                return commit(s, err);
        lc_log(LC_INFO, "TASK", "%s Aborting transaction after record for connector as requested",
               s->t->label);
        return abort_and_commit(s, err);
}

static int as_asked(lc_source_t *s, lc_err_t *err)
{
        txn_t *x = s->txn;
        bool abort = x->abort_batch, asked = abort || x->commit_batch;

        x->abort_batch = x->commit_batch = false;
        if (!asked)
                return 0;
        if (!abort)
                return commit(s, err);
        lc_log(LC_INFO, "TASK", "%s Aborting transaction for batch as requested by connector", s->t->label);
        return abort_and_commit(s, err);
}

static int when_due(lc_source_t *s, lc_err_t *err)
{
        txn_t *x = s->txn;

        s->now = lc_now_ms();
        if (s->now < x->last_commit + x->interval_ms)
                return 0;
        x->last_commit = s->now;
        return commit(s, err);
}

int lc_source_txn_batch_done(lc_source_t *s, lc_err_t *err)
{
        switch (s->txn->boundary) {
        case BY_POLL:
                s->now = lc_now_ms();
                return commit(s, err);
        case BY_INTERVAL:
                return when_due(s, err);
        default:
                return as_asked(s, err);
        }
}

int lc_source_txn_tend(lc_source_t *s, lc_err_t *err)
{
        txn_t *x = s->txn;

        s->now = lc_now_ms();
        s->next_commit = x->boundary == BY_INTERVAL && x->open ? x->last_commit + x->interval_ms : INT64_MAX;
        if (x->broken)
                return lc_source_txn_broke(s, err);
        if (s->now < s->next_commit || lc_task_target(s->t) == LC_TARGET_PAUSED)
                return 0;
        s->next_commit = INT64_MAX;
        return when_due(s, err);
}

void lc_source_txn_settle(lc_source_t *s)
{
        const lc_task_t *t = s->t;
        int64_t ms = t->sv->graceful_ms * 3 / 4;

        if (!lc_letters_pending(t->letters) || lc_task_stopping(t) || !lc_task_may_work(s->t))
                return; /* of a task that is stopped the record comes again */
        lc_letters_wait(t->letters,
                        lc_now_ms() + (ms < t->sv->flush_timeout_ms ? ms : t->sv->flush_timeout_ms));
}

int lc_source_txn_final(lc_source_t *s, lc_err_t *err)
{
        lc_task_t *t = s->t;
        txn_t *x = s->txn;
        int rc;

        if (lc_task_cancelled(t) ||
            lc_source_txn_amid(s)) /* what is open is aborted by the end of the task */
                return 0;
        if (lc_task_stopping(t) && !x->commit_end)
                x->commit_end = end_of_stop(t);
        rc = x->boundary == BY_CONNECTOR ? as_asked(s, err) : commit(s, err);
        x->commit_end = 0;
        x->last_commit = lc_now_ms();
        return rc;
}
