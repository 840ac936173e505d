/*
 * source_task.c - the loop of a source task: poll, transform, convert, send, reports. Its offsets are
 * source_commit.c's, with exactly-once support source_transaction.c's.
 *
 * Threads:   the task's.
 * Ownership: a batch from poll is held until all its records were accepted or dropped; the producer and the
 *            tracker hold it record by record after that.
 * Source:    worker-tasks 3.   Tests: spec/unit/source_task_spec.lua (mock cluster), spec/kafka
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "config/client_config.h"
#include "runtime/source.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
        UNDELIVERED_MS = 10000,
        IDLE_MIN_MS = 100,
        IDLE_MAX_MS = 1000, /* after a poll without records */
        FULL_MS = 100,      /* the producer's queue is full, or a send may be tried again */
        LETTERS_MAX = 2000, /* more dead letters are not made before these are written */
        REST_MS = 10000     /* without records the producer is closed: resting, one costs
                               three threads, two connections and 0.1 % of a core */
};

typedef lc_source_t source_t;

/* ---- the producer ----------------------------------------------------------------------------- */

static lc_delivery_fn on_report;

static int open_producer(source_t *s, lc_err_t *err)
{
        const lc_local_ends_t *local = s->t->sv->local;

        if (!s->producer && local)
                s->producer = lc_producer_local_new(&local->local, &s->t->waker, on_report, s);
        else if (!s->producer)
                s->producer = lc_producer_new(s->conf, &s->t->waker, on_report, s, err);
        return s->producer ? 0 : -1;
}

void lc_source_serve_reports(source_t *s, int ms)
{
        if (s->producer)
                lc_producer_poll(s->producer, ms);
        lc_letters_serve(s->t->letters);
}

static void close_when_resting(source_t *s)
{
        /* one with transactions stays: another with its id could fence the next owner's */
        if (!s->producer || s->txn || lc_source_outstanding(s) || s->now - s->last_sent < REST_MS)
                return;
        lc_log(LC_DEBUG, "TASK", "%s No records for %d s: the producer is closed until there are some",
               s->t->label, REST_MS / 1000);
        lc_producer_destroy(s->producer, 0);
        s->producer = NULL;
        lc_topic_creation_rest(s->creation);
}

/* ---- delivery reports -------------------------------------------------------------------------- */

void lc_source_commit_record(source_t *s, lc_record_t *r, const lc_delivery_t *to)
{
        lc_err_t err;

        if (!s->commits_records || s->closing || !lc_task_may_call(s->t))
                return;
        lc_err_clear(&err);
        if (!lc_script_commit_record(s->t->script, r, to, &err))
                return;
        lc_log(LC_ERROR, "TASK", "%s Exception thrown while calling task.commitRecord(): %s", s->t->label,
               err.msg);
        lc_task_call_failed(s->t, &err);
}

/* Where a record came from, for the person who reads the trace. */
static void add_origin(const lc_record_t *r, lc_err_t *err)
{
        size_t used = strlen(err->detail);
        lc_buf_t offset = LC_BUF_INIT;

        if (!r->u.src.partition)
                return;
        if (r->u.src.offset.type != LC_NULL)
                lc_record_offset_json(r, &offset, NULL);
        snprintf(err->detail + used, sizeof(err->detail) - used,
                 "\tat source partition %.400s, offset %.200s\n", r->u.src.partition->json,
                 offset.len ? offset.p : "null");
        lc_buf_free(&offset);
}

/* A record that cannot be delivered. true: skipped, it counts as acknowledged. */
static bool delivery_failed(source_t *s, lc_record_t *r, const lc_err_t *cause)
{
        lc_task_t *t = s->t;
        lc_err_t err = *cause;

        add_origin(r, &err);
        lc_log(LC_ERROR, "TASK", "%s failed to send record to %s: %s %s", t->label, r->topic, err.msg,
               err.detail);
        if (err.kind != LC_FENCED && t->op.tolerate_all) {
                err.kind = LC_DATA; /* tolerance all skips whatever the producer gave up (errors.md 2) */
                lc_operator_report(&t->op, LC_STAGE_KAFKA_PRODUCE,
                                   "org.apache.kafka.connect.runtime.WorkerSourceTask", r, false, &err);
                return true;
        }
        if (!s->send_failed) {
                s->send_failed = true;
                s->send_err = err;
        }
        return false;
}

/* Not acknowledged and not lost: it keeps its place in the tracker and is sent again. */
static void take_back(source_t *s, lc_record_t *r)
{
        if ((s->npurged & (s->npurged - 1)) == 0) /* the capacity is the next power of two */
                s->purged = lc_realloc(s->purged, (s->npurged ? s->npurged * 2 : 1) * sizeof(lc_record_t *));
        s->purged[s->npurged++] = r;
}

static void on_report(void *arg, lc_record_t *r, const lc_err_t *err, const lc_delivery_t *to)
{
        source_t *s = arg;

        if (s->txn) {
                lc_source_txn_report(s, r, err, to);
                return;
        }
        if (!err) {
                if (r->topic != s->topics.last || s->topics.v[s->topics.last_at].told_ms != s->now)
                        lc_topics_used_note(&s->topics, s->t, r->topic, s->now);
                lc_source_commit_record(s, r, to);
                lc_tracker_ack(s->tracker, r);
                return;
        }
        if (err->code == LC_PURGED && err->kind != LC_FENCED && !s->closing) {
                take_back(s, r);
                return;
        }
        if (!s->closing && delivery_failed(s, r, err)) {
                lc_source_commit_record(s, r, NULL);
                lc_tracker_ack(s->tracker, r);
                return;
        }
        lc_tracker_lost(s->tracker, r);
}

/* ---- records ------------------------------------------------------------------------------------ */

static int convert_headers(void *arg, lc_record_t *r, lc_err_t *err)
{
        lc_task_t *t = arg;

        for (uint16_t i = 0; i < r->nheaders; i++) {
                lc_header_t *h = &r->headers[i];
                if (t->header->cls->from_connect(t->header, r->topic, h->name, h->schema, &h->value,
                                                 &r->batch->arena, &h->bytes, err))
                        return -1;
        }
        return 0;
}

static int convert_key(void *arg, lc_record_t *r, lc_err_t *err)
{
        lc_task_t *t = arg;

        return t->key->cls->from_connect(t->key, r->topic, NULL, r->key_schema, &r->key, &r->batch->arena,
                                         &r->key_bytes, err);
}

static int convert_value(void *arg, lc_record_t *r, lc_err_t *err)
{
        lc_task_t *t = arg;

        return t->value->cls->from_connect(t->value, r->topic, NULL, r->value_schema, &r->value,
                                           &r->batch->arena, &r->value_bytes, err);
}

/* Headers, key, value: Java's order. 0, 1 skip the record, -1. */
static int convert(lc_task_t *t, lc_record_t *r, lc_err_t *err)
{
        int rc = 0;

        if (r->nheaders && convert_headers(t, r, err))
                rc = lc_operator_failed(&t->op, LC_STAGE_HEADER_CONVERTER, t->header->cls->class_name, r,
                                        convert_headers, t, err);
        if (!rc && !lc_task_is_nothing(t->key, r->key_schema, &r->key) && convert_key(t, r, err))
                rc = lc_operator_failed(&t->op, LC_STAGE_KEY_CONVERTER, t->key->cls->class_name, r,
                                        convert_key, t, err);
        if (!rc && !lc_task_is_nothing(t->value, r->value_schema, &r->value) && convert_value(t, r, err))
                rc = lc_operator_failed(&t->op, LC_STAGE_VALUE_CONVERTER, t->value->cls->class_name, r,
                                        convert_value, t, err);
        return rc;
}

/* What a report or commit_record shows is the record as the script made it (Java: preTransformRecord). */
static int transform(source_t *s)
{
        lc_task_t *t = s->t;

        if ((s->commits_records || t->op.reporters) && lc_batch_keep_given(s->batch))
                return lc_err_set(&s->after, LC_FATAL, 0, "Out of memory for the records before transforms");
        return lc_chain_run(t->chain, &t->op, s->batch, &s->limit, &s->after);
}

/* Transform and convert the whole batch. A failure is kept until the records before it are sent; the
 * earliest record's counts. */
static void prepare(source_t *s)
{
        lc_task_t *t = s->t;
        lc_batch_t *b = s->batch;
        lc_err_t err;

        lc_err_clear(&err);
        b->number = ++s->batches;
        s->at = 0;
        s->limit = b->n;
        s->scattered = false;
        if (t->chain->n)
                lc_operator_hold(&t->op);
        if (t->chain->n && transform(s))
                s->failed_after = true;
        for (uint32_t i = 0; i < s->limit; i++) {
                lc_record_t *r = &b->records[i];
                int rc = __builtin_expect(r->state == LC_REC_NEW, 1) ? convert(t, r, &err) : 1;

                if (!rc && s->txn && lc_source_txn_forbids(s, r->topic))
                        rc = lc_err_set(&err, LC_FATAL, 0,
                                        "Source tasks may not produce to their own offsets topics when "
                                        "exactly-once support is enabled");
                if (!rc && __builtin_expect(r->timestamp < -1, 0))
                        rc = lc_err_set_cls(&err, LC_FATAL, 0,
                                            "org.apache.kafka.common.errors.InvalidRecordException",
                                            "Invalid record timestamp %" PRId64, r->timestamp);
                if (rc > 0) {
                        /* not registered: its offset is covered by a later record */
                        r->state = LC_REC_DROPPED;
                        if (!s->txn) /* else when its transaction is committed */
                                lc_source_commit_record(s, r, NULL);
                } else if (rc < 0) {
                        s->limit = i;
                        s->failed_after = true;
                        s->after = err;
                        break;
                }
        }
        lc_operator_release(&t->op, &b->records[s->limit]);
        lc_letters_send(t->letters);
        lc_tracker_submit(s->tracker, b->records, s->limit);
        s->to = s->txn ? lc_source_txn_section(s) : s->limit;
}

/* Topics of records[at..limit) as far as they are known or could be made: the index behind them. */
static int ensure_topics(source_t *s, uint32_t *until, lc_err_t *err)
{
        const char *last = NULL;

        *until = s->to;
        if (!s->creation && !s->txn)
                return 0;
        for (uint32_t i = s->at; i < s->to; i++) {
                const lc_record_t *r = &s->batch->records[i];
                if (r->state != LC_REC_NEW || r->topic == last)
                        continue;
                if (s->creation && lc_topic_creation_ensure(s->creation, r->topic, err)) {
                        *until = i;
                        return -1;
                }
                if (s->txn)
                        lc_source_txn_await_topic(s, r->topic);
                last = r->topic;
        }
        return 0;
}

/* records[at] was refused for good: skip it under tolerance all, else the task is about to fail. */
static void refused(source_t *s, const lc_err_t *err)
{
        lc_record_t *r = &s->batch->records[s->at];
        bool skip = delivery_failed(s, r, err);

        lc_batch_ref(r->batch); /* as if it had been accepted: acknowledged or lost */
        r->state = LC_REC_SUBMITTED;
        if (skip) {
                lc_source_commit_record(s, r, NULL);
                lc_tracker_ack(s->tracker, r);
        } else {
                lc_tracker_lost(s->tracker, r);
        }
        s->at++;
}

/* Wait for reports, the end or a target change, at most ms. */
static void rest(source_t *s, int ms)
{
        lc_waker_wait(&s->t->waker, ms);
        lc_waker_clear(&s->t->waker);
        lc_source_serve_reports(s, 0);
}

static int by_age(const void *a, const void *b)
{
        const lc_record_t *x = *(lc_record_t *const *)a, *y = *(lc_record_t *const *)b;

        if (x->batch != y->batch)
                return x->batch->number < y->batch->number ? -1 : 1;
        return x < y ? -1 : x > y;
}

/* librdkafka gives back what it has in its partitions' queues before what was in a request already, and what is on its
 * way to the broker may come back still: only when nothing is out is it known what to send again, and in which
 * order. false: not yet. */
static bool settle(source_t *s)
{
        if (s->unsettled && lc_source_outstanding(s)) {
                rest(s, FULL_MS);
                return false;
        }
        if (s->unsettled && s->npurged)
                qsort(s->purged + s->at_purged, s->npurged - s->at_purged, sizeof(*s->purged), by_age);
        s->unsettled = false;
        return true;
}

static void ask_back(source_t *s)
{
        if (s->txn || !lc_source_outstanding(s)) /* what a transaction holds is the next owner's to abort */
                return;
        lc_producer_purge(s->producer);
        s->unsettled = true;
}

/* What was taken back, in the order in which it was given. 0 also when some is left, -1 the task fails. */
static int send_purged(source_t *s, lc_err_t *err)
{
        if (!settle(s))
                return 0;
        if (s->npurged && open_producer(s, err))
                return -1;
        while (s->at_purged < s->npurged) {
                lc_record_t *r = s->purged[s->at_purged];
                lc_batch_t *b = r->batch;
                lc_err_t e;

                lc_err_clear(&e);
                r->state = LC_REC_NEW;
                s->last_sent = s->now;
                if (lc_producer_send(s->producer, r, 1, &e)) {
                        s->at_purged++;
                        lc_batch_unref(b); /* it was counted the first time, too */
                        continue;
                }
                r->state = LC_REC_SUBMITTED;
                if (e.kind && e.kind != LC_RETRIABLE) {
                        lc_err_wrap(&e, LC_CLS_CONNECT, "Unrecoverable exception trying to send");
                        *err = e;
                        return -1;
                }
                rest(s, FULL_MS);
                return 0;
        }
        s->npurged = s->at_purged = 0;
        return 0;
}

/* Is there something to send before `stop`, or were all dropped? */
static bool any_new(const source_t *s, uint32_t stop)
{
        for (uint32_t i = s->at; i < stop; i++)
                if (s->batch->records[i].state == LC_REC_NEW)
                        return true;
        return false;
}

/* 0 all sent or to be tried again, -1 the task fails. */
static int send_some(source_t *s, lc_err_t *err)
{
        uint32_t until;
        lc_err_t e;

        lc_err_clear(&e);
        while (s->scattered && s->at < s->to && s->batch->records[s->at].state != LC_REC_NEW) {
                if (s->txn)
                        lc_source_txn_passed(s, s->at, s->at + 1);
                s->at++;
        }
        if (s->at == s->to)
                return 0;
        if (ensure_topics(s, &until, &e) && e.kind != LC_RETRIABLE) {
                *err = e;
                return -1;
        }
        if (s->at < until) {
                lc_err_t sent;
                uint32_t stop = until, took, from = s->at;
                /* what was taken out of turn may be acknowledged by now: the producer must not see it again
                 */
                for (uint32_t i = s->at; s->scattered && i < stop; i++)
                        if (s->batch->records[i].state != LC_REC_NEW)
                                stop = i;
                lc_err_clear(&sent);
                if (s->txn && any_new(s, stop) && lc_source_txn_begin(s, err))
                        return -1;
                s->last_sent = s->now;
                took = lc_producer_send(s->producer, &s->batch->records[s->at], stop - s->at, &sent);
                s->at += took;
                if (s->txn) {
                        lc_source_txn_sent(s, from, stop);
                        lc_source_txn_passed(s, from, s->at);
                }
                LC_FAULT("source.after_send");
                if (s->at < stop)
                        s->scattered = true;
                else
                        until = stop;
                if (sent.kind)
                        e = sent;
        }
        if (e.kind && e.kind != LC_RETRIABLE && s->txn)
                return lc_source_txn_failed(s, &e, err);
        if (e.kind == LC_DATA) {
                refused(s, &e);
        } else if (e.kind == LC_RETRIABLE) {
                lc_log(LC_WARN, "TASK",
                       "%s Failed to send record to topic '%s'. Backing off before retrying: %s", s->t->label,
                       s->batch->records[s->at].topic, e.msg);
                rest(s, FULL_MS);
        } else if (e.kind) {
                lc_err_wrap(&e, LC_CLS_CONNECT, "Unrecoverable exception trying to send");
                *err = e;
                return -1;
        } else if (s->at < until) { /* the queue is full */
                rest(s, FULL_MS);
        }
        return 0;
}

static int send_failure(source_t *s, lc_err_t *err)
{
        *err = s->send_err;
        if (err->kind != LC_FENCED)
                err->kind = LC_FATAL;
        lc_err_wrap(err, LC_CLS_CONNECT, "Unrecoverable exception from producer send callback");
        return -1;
}

/* ---- the loop ----------------------------------------------------------------------------------- */

static int tend(source_t *s, lc_err_t *err)
{
        if (s->txn)
                return lc_source_txn_tend(s, err);
        lc_source_tend_offsets(s);
        return 0;
}

/* Nothing to read: sleep until the next poll, serving reports and commits. */
static int idle(source_t *s, lc_err_t *err)
{
        lc_task_t *t = s->t;
        int64_t end = lc_now_ms() + (t->after_ms >= 0 ? t->after_ms : s->idle_ms);

        t->after_ms = -1;
        s->idle_ms = lc_backoff(s->idle_ms, IDLE_MIN_MS, IDLE_MAX_MS);
        lc_task_rearm(t);
        while (!lc_task_stopping(t) && lc_task_target(t) != LC_TARGET_PAUSED && !s->send_failed &&
               !t->broken.kind && (!lc_source_outstanding(s) || lc_task_may_work(t))) {
                int64_t next = end;
                if (tend(s, err))
                        return -1;
                close_when_resting(s);
                if (s->now >= end)
                        return 0;
                if (!s->commit && s->next_commit < next)
                        next = s->next_commit;
                if (s->commit && s->commit_deadline < next)
                        next = s->commit_deadline;
                rest(s, next > s->now ? (int)(next - s->now) : 0);
        }
        return 0;
}

static int paused(source_t *s, lc_err_t *err)
{
        lc_task_t *t = s->t;

        lc_task_rearm(t);
        if (!s->txn)
                lc_source_commit_now(s, lc_now_ms() + t->sv->flush_timeout_ms);
        else if (lc_source_txn_final(s, err))
                return -1;
        lc_task_status(t, LC_PAUSED, NULL);
        lc_log(LC_INFO, "TASK", "%s is paused", t->label);
        while (!lc_task_stopping(t) && lc_task_target(t) != LC_TARGET_STARTED && !t->broken.kind) {
                int64_t next;
                if (tend(s, err))
                        return -1;
                close_when_resting(s);
                if (lc_source_outstanding(s) && !lc_task_may_work(t))
                        ask_back(s);
                next = lc_source_outstanding(s) ? s->now + LC_SOURCE_HOLD_MS
                       : s->commit              ? s->commit_deadline
                                                : s->next_commit;
                rest(s, next > s->now ? (int)(next - s->now < 60000 ? next - s->now : 60000) : 0);
        }
        lc_task_rearm(t);
        if (lc_task_stopping(t) || t->broken.kind)
                return 0;
        lc_task_status(t, LC_RUNNING, NULL);
        lc_log(LC_INFO, "TASK", "%s is resumed", t->label);
        s->idle_ms = IDLE_MIN_MS;
        if (s->txn)
                lc_source_txn_enter(s);
        return 0;
}

/* The next batch from the script. 0 with or without one, -1 the task fails. */
static int poll_script(source_t *s, lc_err_t *err)
{
        lc_task_t *t = s->t;

        if (s->txn)
                lc_source_txn_before_poll(s);
        if (lc_script_poll(t->script, &s->batch, err)) {
                if (err->kind != LC_RETRIABLE)
                        return -1;
                lc_log(LC_WARN, "TASK", "%s failed to poll records from SourceTask. Will retry operation. %s",
                       t->label, err->msg);
                lc_err_clear(err);
                s->batch = NULL;
        }
        LC_FAULT("source.after_poll");
        if (s->batch && !s->batch->n) {
                lc_batch_unref(s->batch);
                s->batch = NULL;
        }
        if (!s->batch) {
                if (s->txn && lc_source_txn_batch_done(s, err))
                        return -1;
                return idle(s, err);
        }
        s->idle_ms = IDLE_MIN_MS;
        if (open_producer(s, err))
                return -1;
        prepare(s);
        return 0;
}

/* Others may run this task by now: nothing is written, what librdkafka has not sent is taken back. */
static void hold(source_t *s)
{
        ask_back(s);
        lc_letters_hold(s->t->letters);
        lc_task_rearm(s->t);
        lc_task_hold(s->t);
        lc_source_serve_reports(s, 0);
}

static int loop(source_t *s, lc_err_t *err)
{
        lc_task_t *t = s->t;

        while (!lc_task_stopping(t) && !t->broken.kind) {
                if (!lc_task_may_work(t)) {
                        hold(s);
                        continue;
                }
                lc_source_serve_reports(s, 0);
                if (!s->txn)
                        lc_source_tend_offsets(s);
                else if (lc_source_txn_broken(s))
                        return lc_source_txn_broke(s, err);
                if (t->broken.kind)
                        break;
                if (lc_task_target(t) == LC_TARGET_PAUSED && !lc_source_txn_amid(s)) {
                        if (paused(s, err))
                                return -1;
                        continue;
                }
                if (s->send_failed)
                        return send_failure(s, err);
                if (lc_letters_check(t->letters, err))
                        return -1;
                if (lc_letters_pending(t->letters) > LETTERS_MAX) {
                        rest(s, FULL_MS);
                        continue;
                }
                if (s->npurged || s->unsettled) {
                        if (send_purged(s, err))
                                return -1;
                        continue;
                }
                if (!s->batch) {
                        if (poll_script(s, err))
                                return -1;
                        continue;
                }
                if (s->at < s->to && send_some(s, err))
                        return -1;
                if (s->txn && s->at >= s->to) {
                        if (lc_source_txn_section_done(s, err))
                                return -1;
                        s->to = lc_source_txn_section(s);
                }
                if (s->at >= s->limit) {
                        if (s->failed_after) {
                                *err = s->after;
                                return -1;
                        }
                        lc_batch_unref(s->batch);
                        s->batch = NULL;
                        if (s->txn && lc_source_txn_batch_done(s, err))
                                return -1;
                }
        }
        return 0;
}

static int execute(lc_task_t *t, lc_err_t *err)
{
        source_t *s = t->impl;
        int rc;

        s->commits_records = lc_script_has_commit_record(t->script);
        s->last_sent = lc_now_ms();
        s->next_commit = s->last_sent + t->sv->flush_interval_ms;
        s->idle_ms = IDLE_MIN_MS;
        t->after_ms = -1;
        if (s->txn)
                lc_source_txn_enter(s);
        rc = loop(s, err);
        if (!s->txn)
                lc_source_final_commit(s);
        else if (rc || t->broken.kind)
                lc_source_txn_settle(s);
        else
                rc = lc_source_txn_final(s, err);
        if (!rc && t->broken.kind) {
                *err = t->broken;
                rc = -1;
        }
        return rc;
}

static lc_props_t *transactional(const lc_task_t *t, const char *client_id, lc_err_t *err)
{
        char *id =
                lc_asprintf("%s-%s-%d", lc_worker_config_str(t->sv->config, "group.id"), t->connector, t->id);
        lc_props_t *conf = lc_client_config_transactional(t->sv->config, LC_CLIENT_PRODUCER, t->config,
                                                          client_id, id, err);

        free(id);
        return conf;
}

static int prepare_start(lc_task_t *t, lc_err_t *err)
{
        source_t *s = t->impl;
        int rc = s->txn ? lc_source_txn_start(s, err) : 0;

        if (rc)
                return rc;
        /* behind the fencing: what is read now is the last that was written */
        s->offsets = lc_source_offsets_open(t->sv, t->connector, t->id, t->config, &t->stopping, err);
        return s->offsets ? 0 : lc_task_stopping(t) ? 1 : -1;
}

static int offset_get(lc_task_t *t, const char *partition, lc_buf_t *out, lc_err_t *err)
{
        source_t *s = t->impl;

        if (!s || !s->offsets)
                return lc_err_set(err, LC_FATAL, 0, "There are no offsets before the task has started");
        return lc_source_offsets_get(s->offsets, partition, out, err);
}

static int build(lc_task_t *t, lc_err_t *err)
{
        source_t *s = t->impl = lc_calloc(1, sizeof(*s));
        char *id = lc_asprintf("connector-producer-%s-%d", t->connector, t->id);

        s->t = t;
        s->conf = t->sv->exactly_once
                          ? transactional(t, id, err)
                          : lc_client_config(t->sv->config, LC_CLIENT_PRODUCER, t->config, id, err);
        free(id);
        for (int i = 0; s->conf && i < t->smaller; i++)
                lc_producer_smaller(s->conf);
        if (!s->conf || (t->sv->exactly_once && lc_source_txn_new(s, err)) ||
            open_producer(s, err)) /* opened here to find bad settings */
                return -1;
        s->tracker = lc_tracker_new();
        return lc_topic_creation_new(t->sv->config, t->connector, t->id, t->config, &s->creation, err);
}

static void close_source(lc_task_t *t)
{
        source_t *s = t->impl;

        if (!s)
                return;
        t->impl = NULL;
        s->closing = true;
        lc_source_abandon_commit(s);
        lc_source_txn_free(s);               /* aborts what is open */
        lc_producer_destroy(s->producer, 0); /* execute() has waited for what was in flight */
        lc_props_free(s->conf);
        for (; s->at_purged < s->npurged; s->at_purged++)
                if (!s->purged[s->at_purged]->u.src.partition) /* the tracker has the others */
                        lc_tracker_lost(s->tracker, s->purged[s->at_purged]);
        free(s->purged);
        lc_tracker_free(s->tracker);
        lc_source_offsets_close(s->offsets);
        lc_batch_unref(s->batch);
        lc_topic_creation_free(s->creation);
        lc_topics_used_free(&s->topics);
        free(s);
}

const lc_task_ops_t lc_source_task_ops = {.role = LC_SCRIPT_SOURCE_TASK,
                                          .java_class = "WorkerSourceTask",
                                          .build = build,
                                          .prepare = prepare_start,
                                          .offset_get = offset_get,
                                          .execute = execute,
                                          .close = close_source};
