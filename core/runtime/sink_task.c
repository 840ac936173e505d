/*
 * sink_task.c - the loop of a sink task: consume, convert, put, commit, rebalances.
 *
 * Threads:   the task's. Consumer callbacks run on it, inside lc_consumer_poll and lc_consumer_close.
 * Ownership: the batch in hand belongs to the loop until put returned; scripts may pin it by views.
 * Source:    worker-tasks 5.   Tests: spec/unit/sink_task_spec.lua (mock cluster), spec/kafka
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "config/client_config.h"
#include "config/topic_regex.h"
#include "runtime/sink.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
        MAX_POLL_RECORDS = 2000, /* Java's 500 when its name is set by the user */
        WAIT_MAX_MS = 10000,     /* the consumer has to be polled now and then */
        RETRY_MIN_MS = 1000,
        RETRY_MAX_MS = 60000,
        REWIND_MS = 100 /* before a seek that did not work is tried again */
};

/* ---- records ------------------------------------------------------------------------------------- */

static int convert_key(void *arg, lc_record_t *r, lc_err_t *err)
{
        lc_task_t *t = arg;
        const lc_schema_t *schema = NULL;

        if (t->key->cls->to_connect(t->key, r->topic, NULL, r->key_bytes, &r->batch->arena, &schema, &r->key,
                                    err))
                return -1;
        r->key_schema = schema;
        if (schema && lc_batch_hold_schema(r->batch, schema))
                return lc_err_set(err, LC_FATAL, 0, "Out of memory for the schemas of a batch");
        return 0;
}

static int convert_value(void *arg, lc_record_t *r, lc_err_t *err)
{
        lc_task_t *t = arg;
        const lc_schema_t *schema = NULL;

        if (t->value->cls->to_connect(t->value, r->topic, NULL, r->value_bytes, &r->batch->arena, &schema,
                                      &r->value, err))
                return -1;
        r->value_schema = schema;
        if (schema && lc_batch_hold_schema(r->batch, schema))
                return lc_err_set(err, LC_FATAL, 0, "Out of memory for the schemas of a batch");
        return 0;
}

static int convert_headers(void *arg, lc_record_t *r, lc_err_t *err)
{
        lc_task_t *t = arg;

        for (uint16_t i = 0; i < r->nheaders; i++) {
                lc_header_t *h = &r->headers[i];
                const lc_schema_t *schema = NULL;
                if (t->header->cls->to_connect(t->header, r->topic, h->name, h->bytes, &r->batch->arena,
                                               &schema, &h->value, err))
                        return -1;
                h->schema = schema;
                if (schema && lc_batch_hold_schema(r->batch, schema))
                        return lc_err_set(err, LC_FATAL, 0, "Out of memory for the schemas of a batch");
        }
        return 0;
}

static int convert(lc_task_t *t, lc_record_t *r, lc_err_t *err)
{
        int rc = 0;

        if (t->sv->local) /* they come as values */
                return 0;
        if (convert_key(t, r, err))
                rc = lc_operator_failed(&t->op, LC_STAGE_KEY_CONVERTER, t->key->cls->class_name, r,
                                        convert_key, t, err);
        if (!rc && convert_value(t, r, err))
                rc = lc_operator_failed(&t->op, LC_STAGE_VALUE_CONVERTER, t->value->cls->class_name, r,
                                        convert_value, t, err);
        if (!rc && r->nheaders && convert_headers(t, r, err))
                rc = lc_operator_failed(&t->op, LC_STAGE_HEADER_CONVERTER, t->header->cls->class_name, r,
                                        convert_headers, t, err);
        return rc;
}

/* Convert records[0..*n): what is skipped or no longer ours becomes LC_REC_DROPPED. 0; -1: records[*n] fails.
 */
static int convert_all(lc_sink_t *s, uint32_t *n, lc_err_t *err)
{
        lc_task_t *t = s->t;
        lc_batch_t *b = s->batch;
        lc_sink_part_t *part = NULL;
        const char *topic = NULL;

        for (uint32_t i = 0; i < *n; i++) {
                lc_record_t *r = &b->records[i];
                int rc;

                if (!part || r->u.snk.topic != topic || r->u.snk.partition != part->partition) {
                        topic = r->u.snk.topic;
                        part = lc_sink_parts_find(&s->parts, topic, r->u.snk.partition);
                        if (part && part->from == LC_NO_OFFSET)
                                part->from = r->u.snk.offset;
                        lc_topics_used_note(&s->used, t, topic, s->now);
                }
                r->state = LC_REC_NEW;
                if (!part) { /* no longer ours */
                        r->state = LC_REC_DROPPED;
                        continue;
                }
                rc = convert(t, r, err);
                if (rc < 0) {
                        *n = i;
                        return -1;
                }
                if (rc)
                        r->state = LC_REC_DROPPED;
                part->consumed = r->u.snk.offset + 1;
        }
        return 0;
}

/* Convert and transform s->batch in place; failed and dropped records leave it but count as consumed. */
static int prepare(lc_sink_t *s, lc_err_t *err)
{
        lc_task_t *t = s->t;
        lc_batch_t *b = s->batch;
        uint32_t n = b->n, keep = 0;
        uint64_t skipped = t->op.skipped;
        lc_err_t converting, transforming;
        int bad;

        lc_err_clear(&converting);
        lc_err_clear(&transforming);
        if (t->chain->n)
                lc_operator_hold(&t->op);
        bad = convert_all(s, &n, &converting);
        if (t->chain->n && t->op.reporters && lc_batch_keep_given(b))
                bad = lc_err_set(&transforming, LC_FATAL, 0,
                                 "Out of memory for the records before transforms");
        else if (t->chain->n && lc_chain_run(t->chain, &t->op, b, &n, &transforming))
                bad = -1;
        lc_operator_release(&t->op, &b->records[n]);
        if (bad) { /* an earlier record's transform comes before a later one's converter */
                *err = transforming.kind ? transforming : converting;
                return -1;
        }
        for (uint32_t i = 0; i < b->n; i++) {
                if (b->records[i].state != LC_REC_NEW)
                        continue;
                if (keep != i) {
                        b->records[keep] = b->records[i];
                        if (b->given)
                                b->given[keep] = b->given[i];
                }
                keep++;
        }
        s->batch_all = b->n;
        s->batch_bad = (uint32_t)(t->op.skipped - skipped);
        b->n = keep;
        return 0;
}

/* ---- delivery ------------------------------------------------------------------------------------ */

static void retry_later(lc_sink_t *s, const lc_err_t *err)
{
        lc_log(LC_ERROR, "TASK", "%s RetriableException from SinkTask: %s %s", s->t->label, err->msg,
               err->detail);
        if (!s->redelivery) {
                s->redelivery = true;
                lc_sink_set_paused(s, true, NULL);
                s->retry_ms = 0;
        }
        s->retry_ms = lc_backoff(s->retry_ms, RETRY_MIN_MS, RETRY_MAX_MS);
}

/* Give s->batch (or nothing) to put. 0 also when it has to come again. */
static int deliver(lc_sink_t *s, lc_err_t *err)
{
        lc_task_t *t = s->t;
        uint64_t skipped = t->op.skipped;
        lc_err_t e;
        int rc;

        if (!lc_sink_may_put(s))
                return 0;
        lc_err_clear(&e);
        lc_err_clear(&s->put_retry);
        rc = lc_script_put(t->script, s->batch ? s->batch : s->empty, lc_sink_on_failed, s, &e);
        LC_FAULT("sink.after_put");
        if (!rc && s->put_retry.kind) {
                e = s->put_retry;
                rc = -1;
        }
        if (rc && e.kind == LC_RETRIABLE && !s->put_err.kind) {
                if (s->batch) /* what failed in it will fail again */
                        lc_letters_drop(t->letters, s->batch, false);
                retry_later(s, &e);
                return 0;
        }
        if (!rc && s->put_err.kind) {
                e = s->put_err;
                rc = -1;
        }
        if (rc) {
                lc_log(t->sv->local ? LC_DEBUG : LC_ERROR, "TASK",
                       "%s Task threw an uncaught and unrecoverable exception. Task is being killed and will "
                       "not "
                       "recover until manually restarted. Error: %s",
                       t->label, e.msg);
                lc_err_wrap(&e, LC_CLS_CONNECT, "Exiting WorkerSinkTask due to unrecoverable exception.");
                if (e.kind != LC_FENCED)
                        e.kind = LC_FATAL;
                *err = e;
                return -1;
        }
        if (lc_sink_judge(s, (uint32_t)(t->op.skipped - skipped)))
                return 0;
        for (size_t i = 0; i < s->parts.n; i++) {
                lc_sink_part_t *p = &s->parts.v[i];
                if (p->consumed >= 0)
                        p->current = p->consumed;
                p->from = LC_NO_OFFSET;
        }
        lc_batch_unref(s->batch);
        s->batch = NULL;
        if (s->redelivery) {
                s->redelivery = false;
                if (!lc_sink_held_back(s))
                        lc_sink_set_paused(s, false, lc_sink_not_user_paused);
        }
        lc_letters_send(t->letters);
        return 0;
}

/* ---- the loop ------------------------------------------------------------------------------------ */

static void follow_target(lc_sink_t *s)
{
        lc_task_t *t = s->t;
        bool want = lc_task_target(t) == LC_TARGET_PAUSED;

        if (want == s->paused)
                return;
        lc_task_rearm(t);
        s->paused = want;
        if (want) {
                lc_sink_set_paused(s, true, NULL);
                s->commit_requested = true;
                lc_log(LC_INFO, "TASK", "%s is paused", t->label);
        } else if (!lc_sink_held_back(s)) {
                lc_sink_set_paused(s, false, lc_sink_not_user_paused);
        }
        if (!want)
                lc_log(LC_INFO, "TASK", "%s is resumed", t->label);
        lc_task_status(t, want ? LC_PAUSED : LC_RUNNING, NULL);
}

/* Has a callback failed in a way that fails the task? */
static bool callback_failed(const lc_sink_t *s, lc_err_t *err)
{
        const lc_err_t *why = s->rebalance_err.kind ? &s->rebalance_err : &s->t->broken;

        if (why->kind)
                *err = *why;
        return why->kind != 0;
}

/* One poll that waits until records, the end, a target change, or `ms`. */
static int consume(lc_sink_t *s, int64_t ms, lc_batch_t **batch, lc_err_t *err)
{
        lc_task_t *t = s->t;
        int64_t end = lc_now_ms() + ms;
        bool rewinding = s->rewinds; /* a seek that did not work: not at once again */

        *batch = NULL;
        for (;;) {
                int64_t left;

                lc_waker_clear(&t->waker);
                if (lc_task_stopping(t) || (lc_task_target(t) == LC_TARGET_PAUSED) != s->paused)
                        return 0;
                if (lc_consumer_poll(s->consumer, 0, s->max_records, batch, err))
                        return -1;
                if (callback_failed(s, err))
                        return -1;
                lc_letters_serve(t->letters);
                if (lc_letters_check(t->letters, err))
                        return -1;
                if (lc_consumer_full(s->consumer) && !s->committing)
                        s->commit_requested = true;
                if (*batch && lc_sink_held_back(s)) { /* fetched before the pause took lc_sink_hold */
                        lc_sink_hold(s, *batch);
                        *batch = NULL;
                }
                if (s->repause)
                        lc_sink_apply_pauses(s);
                if (*batch || (s->rewinds && !rewinding) || (s->commit_requested && !s->committing))
                        return 0;
                left = end - lc_now_ms();
                if (left <= 0)
                        return 0;
                lc_waker_wait(&t->waker, left > WAIT_MAX_MS ? WAIT_MAX_MS : (int)left);
        }
}

static int iterate(lc_sink_t *s, lc_err_t *err)
{
        lc_task_t *t = s->t;
        lc_batch_t *batch = NULL;
        int64_t wait;

        if (!lc_task_may_work(t)) { /* others may run it by now: no put, no commit, no poll */
                lc_task_rearm(t);
                lc_letters_hold(t->letters);
                lc_task_hold(t);
                return 0;
        }
        s->now = lc_now_ms();
        follow_target(s);
        if (lc_sink_tend_letters(s, err))
                return -1;
        if (!s->committing && (s->commit_requested || s->now >= s->next_commit)) {
                lc_sink_commit_all(s, false);
                s->next_commit = s->now + t->sv->flush_interval_ms;
                s->commit_requested = false;
                if (callback_failed(s, err))
                        return -1;
                if (s->put_err.kind) { /* flush reported a record beyond the tolerance */
                        *err = s->put_err;
                        return -1;
                }
        }
        if (s->committing && s->now >= s->commit_started + t->sv->flush_timeout_ms) {
                lc_log(LC_WARN, "OFFSET", "%s Commit of offsets timed out", t->label);
                s->committing = false;
        }
        lc_sink_apply_rewinds(s);
        wait = s->next_commit > s->now ? s->next_commit - s->now : 0;
        if (s->committing && s->commit_started + t->sv->flush_timeout_ms - s->now < wait)
                wait = s->commit_started + t->sv->flush_timeout_ms - s->now;
        if (s->timeout_ms >= 0 && s->timeout_ms < wait)
                wait = s->timeout_ms;
        else if (s->timeout_ms < 0 && s->redelivery && s->retry_ms < wait)
                wait = s->retry_ms;
        s->timeout_ms = -1;
        if (s->tripped_until && s->tripped_until - s->now < wait)
                wait = s->tripped_until > s->now ? s->tripped_until - s->now : 0;
        if (lc_letters_pending(t->letters) && wait > RETRY_MIN_MS) /* some may be waiting to be sent */
                wait = RETRY_MIN_MS;
        if ((s->rewinds || s->choked) && wait > REWIND_MS)
                wait = REWIND_MS;
        if (s->nheld && !lc_sink_held_back(s) && !lc_sink_any_user_paused(s))
                wait = 0;
        if (consume(s, wait, &batch, err)) {
                lc_batch_unref(batch);
                return -1;
        }
        s->now = lc_now_ms();
        if (lc_task_stopping(t)) {
                lc_batch_unref(batch); /* not delivered, not committed: they come again */
                return 0;
        }
        batch = lc_sink_next_batch(s, batch);
        if (batch) {
                s->batch = batch;
                if (prepare(s, err))
                        return -1;
        }
        while (!lc_task_may_work(t)) {
                if (lc_task_stopping(t))
                        return 0; /* not delivered, not committed: they come again */
                lc_task_hold(t);
        }
        return deliver(s, err);
}

static int execute(lc_task_t *t, lc_err_t *err)
{
        lc_sink_t *s = t->impl;
        size_t n;
        lc_topic_partition_t *tps;
        int rc = 0;

        s->next_commit = lc_now_ms() + t->sv->flush_interval_ms;
        if (lc_consumer_subscribe(s->consumer, &s->topics, s->regex, err))
                return -1;
        while (!rc && !lc_task_stopping(t))
                rc = iterate(s, err);
        /* Java: all partitions are closed with a last commit, whatever ended the loop */
        if (!lc_task_cancelled(t)) {
                lc_sink_settle(s);
                lc_sink_commit_all(s, true);
        }
        tps = lc_sink_parts_collect(&s->parts, NULL, &n);
        if (n)
                lc_sink_close_parts(s, tps, n);
        free(tps);
        if (!rc && callback_failed(s, err))
                rc = -1;
        return rc ? rc : lc_letters_check(t->letters, err);
}

/* topics.regex is Java's; the consumer takes what is between "^(" and ")$" of a POSIX expression. */
static int topic_pattern(lc_sink_t *s, const char *java, lc_err_t *err)
{
        lc_buf_t posix = LC_BUF_INIT;
        int rc = 0;

        if (!java || !*java)
                return 0;
        rc = lc_topic_regex_posix(java, &posix, err);
        if (!rc)
                s->regex = lc_strndup(posix.p + 2, posix.len - 4);
        lc_buf_free(&posix);
        return rc;
}

static int64_t max_poll_records(const lc_task_t *t)
{
        const char *v = lc_props_get(t->config, "consumer.override.max.poll.records");

        if (!v)
                v = lc_props_get(lc_worker_config_originals(t->sv->config), "consumer.max.poll.records");
        return v && atoll(v) > 0 ? atoll(v) : MAX_POLL_RECORDS;
}

static int build(lc_task_t *t, lc_err_t *err)
{
        lc_sink_t *s = t->impl = lc_calloc(1, sizeof(*s));
        const char *topics = lc_props_get(t->config, "topics");
        char *id = lc_asprintf("connector-consumer-%s-%d", t->connector, t->id);
        char *group = lc_asprintf("connect-%s", t->connector);
        lc_props_t *conf = lc_client_config(t->sv->config, LC_CLIENT_CONSUMER, t->config, id, err);
        int rc;

        s->t = t;
        s->timeout_ms = -1;
        s->max_records = (uint32_t)max_poll_records(t);
        s->empty = lc_batch_new(0);
        lc_breaker_init(&s->breaker, t->config);
        lc_strv_split(&s->topics, topics ? topics : "");
        rc = topic_pattern(s, lc_props_get(t->config, "topics.regex"), err);
        if (conf && !lc_props_has(conf, "group.id"))
                lc_props_set(conf, "group.id", group);
        if (conf && !rc && t->sv->local)
                s->consumer = lc_consumer_local_new(&t->sv->local->local, &t->waker, &lc_sink_events, s);
        else if (conf && !rc)
                s->consumer = lc_consumer_new(conf, &t->waker, &lc_sink_events, s, err);
        lc_props_free(conf);
        free(id);
        free(group);
        if (!s->consumer)
                return -1;
        if (!s->empty)
                return lc_err_set(err, LC_FATAL, 0, "Out of memory for a sink task");
        lc_sink_fill_host(&t->host);
        return 0;
}

static void close_sink(lc_task_t *t)
{
        lc_sink_t *s = t->impl;

        if (!s)
                return;
        s->left = true;
        lc_batch_unref(s->batch);
        lc_batch_unref(s->empty);
        for (size_t i = 0; i < s->nheld; i++)
                lc_batch_unref(s->held[i]);
        free(s->held);
        s->held = NULL;
        s->nheld = 0;
        s->batch = s->empty = NULL;
        lc_script_free(t->script); /* views pin batches, and batches must go before the consumer */
        t->script = NULL;
        t->impl = NULL;
        lc_consumer_close(s->consumer);
        lc_sink_parts_free(&s->parts);
        lc_breaker_free(&s->breaker);
        lc_sink_forget_sent(s);
        lc_topics_used_free(&s->used);
        lc_strv_free(&s->topics);
        free(s->regex);
        free(s->assignment);
        free(s);
}

const lc_task_ops_t lc_sink_task_ops = {.role = LC_SCRIPT_SINK_TASK,
                                        .java_class = "WorkerSinkTask",
                                        .build = build,
                                        .execute = execute,
                                        .close = close_sink};
