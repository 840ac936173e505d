/*
 * consumer.c - see consumer.h. One owner thread, no locks. spec/unit/consumer_spec.lua
 *
 * Two queues. `control` is the consumer's own: rebalances, commit results, errors; polling it also feeds
 * max.poll.interval.ms. `records` takes the messages of every assigned partition (forwarded before the
 * assign), so they come by rd_kafka_consume_batch_queue: 320 ns a record instead of 730 by consumer_poll.
 * 2.0.2 may misplace offsets when a batch call runs beside a seek, pause or rebalance: here a batch call
 * never waits and all of these are made by the same thread. What librdkafka does by itself (it pauses in a
 * rebalance) can only repeat a message; `next` of the partition drops it.
 * Callers: clear the waker, look at your flags, then poll: a wake-up that is pending ends the wait.
 */
#include "kafka/consumer.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "kafka/conf.h"
#include "kafka/local.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH_MAX = 10000, CALL_MS = 30000, SEEK_MS = 10000, CLOSE_MS = 5000 };

typedef struct part {
        char *topic;
        int32_t partition;
        int64_t next; /* offset expected next; -1 unknown. Lower ones are repetitions */
} part_t;

struct lc_consumer {
        lc_local_consumer_t *local; /* not NULL: nothing else is used */
        lc_kafka_client_t *client;
        rd_kafka_queue_t *control, *records;
        lc_waker_t *waker, own; /* own: when the caller brings none */
        lc_consumer_events_t events;
        void *arg;
        part_t *parts;
        size_t nparts;
        /* while the assigned callback runs: seeks go into the list to assign, pauses come after it */
        rd_kafka_topic_partition_list_t *assigning, *pause_after;
        bool closing, let_go; /* let_go: closing, and librdkafka was told that nothing is held any more */
        lc_err_t broken;      /* what ends the task; kind 0: nothing */
};

/* The consumed messages of one batch. */
typedef struct held {
        size_t n;
        rd_kafka_message_t *messages[];
} held_t;

static const char *const defaults[][2] = {{"enable.auto.commit", "false"},
                                          {"enable.auto.offset.store", "false"},
                                          {"auto.offset.reset", "earliest"},
                                          {NULL, NULL}};

lc_consumer_t *lc_consumer_new(const lc_props_t *conf, lc_waker_t *waker, const lc_consumer_events_t *events,
                               void *arg, lc_err_t *err)
{
        lc_consumer_t *c = lc_calloc(1, sizeof(*c));

        c->client = lc_kafka_open(
                RD_KAFKA_CONSUMER, conf, defaults,
                RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_OFFSET_COMMIT | RD_KAFKA_EVENT_ERROR, err);
        if (!c->client) {
                free(c);
                return NULL;
        }
        rd_kafka_poll_set_consumer(c->client->rk);
        c->own.fd = -1;
        if (!waker) {
                if (lc_waker_init(&c->own) < 0)
                        lc_log(LC_ERROR, "KAFKA", "%s: no descriptor for a wake-up", c->client->name);
                waker = &c->own;
        }
        c->waker = waker;
        if (events)
                c->events = *events;
        c->arg = arg;
        c->control = rd_kafka_queue_get_consumer(c->client->rk);
        c->records = rd_kafka_queue_new(c->client->rk);
        if (!c->control) {
                lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                               "Missing required configuration \"group.id\" which has no default value.");
                lc_consumer_close(c);
                return NULL;
        }
        lc_kafka_queue_wakes(c->control, waker);
        lc_kafka_queue_wakes(c->records, waker);
        return c;
}

lc_consumer_t *lc_consumer_local_new(const lc_local_t *from, lc_waker_t *waker,
                                     const lc_consumer_events_t *events, void *arg)
{
        lc_consumer_t *c = lc_calloc(1, sizeof(*c));

        c->local = lc_local_consumer_new(from, waker, events, arg);
        return c;
}

int lc_consumer_subscribe(lc_consumer_t *c, const lc_strv_t *topics, const char *regex, lc_err_t *err)
{
        if (c->local)
                return 0;
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_resp_err_t code;

        if (regex && *regex) {
                /* Java matches the whole name, librdkafka takes what starts with ^ for a pattern */
                char *pattern = lc_asprintf("^(%s)$", regex);
                rd_kafka_topic_partition_list_add(list, pattern, RD_KAFKA_PARTITION_UA);
                free(pattern);
        }
        for (size_t i = 0; topics && i < topics->n; i++)
                rd_kafka_topic_partition_list_add(list, topics->v[i], RD_KAFKA_PARTITION_UA);
        code = rd_kafka_subscribe(c->client->rk, list);
        rd_kafka_topic_partition_list_destroy(list);
        if (code)
                return lc_kafka_err_set(err, c->client->rk, code, NULL, "Cannot subscribe to %s",
                                        regex && *regex ? regex : "the topics");
        return 0;
}

static part_t *find_part(lc_consumer_t *c, const char *topic, int32_t partition)
{
        for (size_t i = 0; i < c->nparts; i++)
                if (c->parts[i].partition == partition && !strcmp(c->parts[i].topic, topic))
                        return &c->parts[i];
        return NULL;
}

static void add_part(lc_consumer_t *c, const char *topic, int32_t partition)
{
        part_t *p = find_part(c, topic, partition);

        if (!p) {
                c->parts = lc_realloc(c->parts, (c->nparts + 1) * sizeof(*c->parts));
                p = &c->parts[c->nparts++];
                p->topic = lc_strdup(topic);
                p->partition = partition;
        }
        p->next = -1;
}

static void remove_part(lc_consumer_t *c, const char *topic, int32_t partition)
{
        part_t *p = find_part(c, topic, partition);

        if (!p)
                return;
        free(p->topic);
        *p = c->parts[--c->nparts];
}

static rd_kafka_topic_partition_list_t *to_list(const lc_topic_partition_t *tps, size_t n)
{
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)n);

        for (size_t i = 0; i < n; i++)
                rd_kafka_topic_partition_list_add(list, tps[i].topic, tps[i].partition)->offset =
                        tps[i].offset;
        return list;
}

static lc_topic_partition_t *from_list(const rd_kafka_topic_partition_list_t *list)
{
        lc_topic_partition_t *tps = lc_calloc((size_t)list->cnt, sizeof(*tps));

        for (int i = 0; i < list->cnt; i++)
                tps[i] = (lc_topic_partition_t){.topic = list->elems[i].topic,
                                                .partition = list->elems[i].partition,
                                                .offset = RD_KAFKA_OFFSET_INVALID};
        return tps;
}

/* Offset to start at is settled by librdkafka (committed, else auto.offset.reset). */
static void on_assign(lc_consumer_t *c, rd_kafka_topic_partition_list_t *list, bool cooperative)
{
        lc_topic_partition_t *tps = from_list(list);
        rd_kafka_resp_err_t code = 0;
        rd_kafka_error_t *error = NULL;

        if (!cooperative)
                while (c->nparts)
                        remove_part(c, c->parts[0].topic, c->parts[0].partition);
        for (int i = 0; i < list->cnt; i++) {
                rd_kafka_queue_t *q = rd_kafka_queue_get_partition(c->client->rk, list->elems[i].topic,
                                                                   list->elems[i].partition);
                add_part(c, list->elems[i].topic, list->elems[i].partition);
                if (q) {
                        rd_kafka_queue_forward(q, c->records);
                        rd_kafka_queue_destroy(q);
                }
        }
        c->assigning = list;
        c->pause_after = rd_kafka_topic_partition_list_new(1);
        if (c->events.assigned)
                c->events.assigned(c->arg, tps, (size_t)list->cnt);
        c->assigning = NULL;
        if (cooperative)
                error = rd_kafka_incremental_assign(c->client->rk, list);
        else
                code = rd_kafka_assign(c->client->rk, list);
        if (error) {
                code = rd_kafka_error_code(error);
                rd_kafka_error_destroy(error);
        }
        if (code)
                lc_log(LC_ERROR, "KAFKA", "%s: cannot take the assigned partitions: %s", c->client->name,
                       rd_kafka_err2str(code));
        else if (c->pause_after->cnt)
                rd_kafka_pause_partitions(c->client->rk, c->pause_after);
        rd_kafka_topic_partition_list_destroy(c->pause_after);
        c->pause_after = NULL;
        free(tps);
}

/* A consumer that closes takes one answer for all rebalances that it told of and waits for that to a revocation. It may be
 * ending when another one comes, which librdkafka then drops, and the call would never return. */
static void let_go(lc_consumer_t *c)
{
        if (c->let_go || rd_kafka_consumer_closed(c->client->rk))
                return;
        c->let_go = true;
        rd_kafka_assign(c->client->rk, NULL);
}

static void on_revoke(lc_consumer_t *c, rd_kafka_topic_partition_list_t *list, bool cooperative)
{
        lc_topic_partition_t *tps = from_list(list);
        rd_kafka_resp_err_t code = 0;
        rd_kafka_error_t *error = NULL;

        if (rd_kafka_assignment_lost(c->client->rk)) {
                if (c->events.lost)
                        c->events.lost(c->arg, tps, (size_t)list->cnt);
        } else if (c->events.revoked) {
                c->events.revoked(c->arg, tps, (size_t)list->cnt);
        }
        if (c->closing)
                let_go(c);
        else if (cooperative)
                error = rd_kafka_incremental_unassign(c->client->rk, list);
        else
                code = rd_kafka_assign(c->client->rk, NULL);
        if (error) {
                code = rd_kafka_error_code(error);
                rd_kafka_error_destroy(error);
        }
        if (code)
                lc_log(LC_WARN, "KAFKA", "%s: cannot give the revoked partitions back: %s", c->client->name,
                       rd_kafka_err2str(code));
        for (int i = 0; i < list->cnt; i++)
                remove_part(c, list->elems[i].topic, list->elems[i].partition);
        free(tps);
}

static void on_rebalance(lc_consumer_t *c, rd_kafka_event_t *ev)
{
        rd_kafka_topic_partition_list_t *list = rd_kafka_event_topic_partition_list(ev);
        const char *protocol = rd_kafka_rebalance_protocol(c->client->rk);
        bool cooperative = protocol && !strcmp(protocol, "COOPERATIVE");
        rd_kafka_resp_err_t code = rd_kafka_event_error(ev);

        if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS && !c->closing) {
                on_assign(c, list, cooperative);
        } else if (code == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) {
                on_revoke(c, list, cooperative);
        } else if (c->closing) {
                /* a revocation follows, or no answer is waited for */
        } else {
                lc_log(LC_WARN, "KAFKA", "%s: rebalance failed: %s", c->client->name, rd_kafka_err2str(code));
                rd_kafka_assign(c->client->rk, NULL);
        }
}

static void on_committed(lc_consumer_t *c, rd_kafka_event_t *ev)
{
        uint64_t seq = (uint64_t)(uintptr_t)rd_kafka_event_opaque(ev);
        rd_kafka_resp_err_t code = rd_kafka_event_error(ev);
        const rd_kafka_topic_partition_list_t *list = rd_kafka_event_topic_partition_list(ev);
        lc_err_t err;

        for (int i = 0; !code && list && i < list->cnt; i++)
                code = list->elems[i].err;
        if (!c->events.committed)
                return;
        if (!code || code == RD_KAFKA_RESP_ERR__NO_OFFSET) {
                c->events.committed(c->arg, seq, NULL);
                return;
        }
        lc_err_clear(&err);
        lc_kafka_err_set(&err, NULL, code, NULL, "Commit of offsets failed");
        c->events.committed(c->arg, seq, &err);
}

static void on_error(lc_consumer_t *c, rd_kafka_resp_err_t code, const char *text)
{
        switch (code) {
        case RD_KAFKA_RESP_ERR__FATAL:
        case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
        case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
        case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
        case RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID:
        case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET: /* auto.offset.reset=error ("none" in Java) */
                if (!c->broken.kind) {
                        lc_kafka_err_set(&c->broken, c->client->rk, code, text, "Consumer cannot go on");
                        if (c->broken.kind == LC_RETRIABLE)
                                c->broken.kind = LC_FATAL;
                }
                break;
        case RD_KAFKA_RESP_ERR__MAX_POLL_EXCEEDED:
                lc_log(LC_WARN, "KAFKA", "%s: %s", c->client->name, text ? text : rd_kafka_err2str(code));
                break;
        case RD_KAFKA_RESP_ERR__TRANSPORT: /* said by the log callback, at its pace */
        case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
        case RD_KAFKA_RESP_ERR__RESOLVE:
        case RD_KAFKA_RESP_ERR__PARTITION_EOF:
                break;
        default:
                lc_log(LC_WARN, "KAFKA", "%s: %s", c->client->name, text ? text : rd_kafka_err2str(code));
        }
}

static void serve_control(lc_consumer_t *c)
{
        rd_kafka_event_t *ev;

        while ((ev = rd_kafka_queue_poll(c->control, 0))) {
                switch (rd_kafka_event_type(ev)) {
                case RD_KAFKA_EVENT_REBALANCE:
                        on_rebalance(c, ev);
                        break;
                case RD_KAFKA_EVENT_OFFSET_COMMIT:
                        on_committed(c, ev);
                        break;
                case RD_KAFKA_EVENT_ERROR:
                        on_error(c, rd_kafka_event_error(ev), rd_kafka_event_error_string(ev));
                        break;
                case RD_KAFKA_EVENT_FETCH: {
                        /* an error of a partition before its queue was forwarded */
                        const rd_kafka_message_t *m;
                        while ((m = rd_kafka_event_message_next(ev)))
                                if (m->err)
                                        on_error(c, m->err, rd_kafka_message_errstr(m));
                        break;
                }
                default:
                        break;
                }
                rd_kafka_event_destroy(ev);
        }
}

static void free_held(void *arg)
{
        held_t *h = arg;

        for (size_t i = 0; i < h->n; i++)
                rd_kafka_message_destroy(h->messages[i]);
        free(h);
}

static int add_headers(lc_batch_t *b, lc_record_t *r, const rd_kafka_message_t *m)
{
        rd_kafka_headers_t *list;
        size_t n;

        if (rd_kafka_message_headers(m, &list) != RD_KAFKA_RESP_ERR_NO_ERROR)
                return 0;
        n = rd_kafka_header_cnt(list);
        if (!n)
                return 0;
        if (n > UINT16_MAX)
                n = UINT16_MAX;
        r->headers = lc_arena_alloc(&b->arena, n * sizeof(*r->headers));
        if (!r->headers)
                return -1;
        memset(r->headers, 0, n * sizeof(*r->headers));
        for (size_t i = 0; i < n; i++) {
                const void *value;
                size_t len;
                if (rd_kafka_header_get_all(list, i, &r->headers[i].name, &value, &len))
                        break;
                r->headers[i].bytes = (lc_slice_t){value, len};
                r->nheaders = (uint16_t)(i + 1);
        }
        return 0;
}

static int add_record(lc_batch_t *b, const rd_kafka_message_t *m, const char *topic)
{
        lc_record_t *r = lc_batch_add(b);
        rd_kafka_timestamp_type_t type;

        if (!r)
                return -1;
        r->topic = topic;
        r->partition = m->partition;
        r->key_bytes = (lc_slice_t){m->key, m->key_len};
        r->value_bytes = (lc_slice_t){m->payload, m->len};
        r->timestamp = rd_kafka_message_timestamp(m, &type);
        r->timestamp_type = type == RD_KAFKA_TIMESTAMP_CREATE_TIME       ? 1
                            : type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME ? 2
                                                                         : 0;
        r->u.snk.topic = topic;
        r->u.snk.partition = m->partition;
        r->u.snk.offset = m->offset;
        return add_headers(b, r, m);
}

/* Up to max messages that are there now, as a batch. */
static int take(lc_consumer_t *c, uint32_t max, lc_batch_t **out, lc_err_t *err)
{
        held_t *h;
        lc_batch_t *b;
        const rd_kafka_topic_t *rkt = NULL;
        const char *topic = NULL;
        part_t *part = NULL;
        size_t there = rd_kafka_queue_length(c->records), keep = 0;
        ssize_t n;

        if (!there)
                return 0;
        if (max > there)
                max = (uint32_t)there;
        h = malloc(sizeof(*h) + max * sizeof(*h->messages));
        if (h)
                h->n = 0;
        b = lc_batch_new(max);
        if (!h || !b)
                goto oom;
        n = rd_kafka_consume_batch_queue(c->records, 0, h->messages, max);
        h->n = n > 0 ? (size_t)n : 0;
        for (size_t i = 0; i < h->n; i++) {
                rd_kafka_message_t *m = h->messages[i];
                if (m->err) {
                        on_error(c, m->err, rd_kafka_message_errstr(m));
                        rd_kafka_message_destroy(m);
                        continue;
                }
                if (m->rkt != rkt || !part || part->partition != m->partition) {
                        rkt = m->rkt;
                        topic = rd_kafka_topic_name(rkt);
                        part = find_part(c, topic, m->partition);
                }
                if (!part || m->offset < part->next) { /* no longer ours, or repeated */
                        rd_kafka_message_destroy(m);
                        continue;
                }
                part->next = m->offset + 1;
                h->messages[keep++] = m;
                if (add_record(b, m, topic) < 0) {
                        for (size_t k = i + 1; k < h->n; k++)
                                h->messages[keep++] = h->messages[k];
                        h->n = keep;
                        goto oom;
                }
        }
        h->n = keep;
        if (!keep) {
                free(h);
                lc_batch_unref(b);
                return 0;
        }
        b->on_free = free_held;
        b->on_free_arg = h;
        *out = b;
        return 0;
oom:
        if (h && !h->n)
                free(h);
        else if (h)
                free_held(h);
        if (b)
                lc_batch_unref(b);
        return lc_err_set(err, LC_FATAL, 0, "Out of memory for a batch of %u consumed records", max);
}

static int poll_once(lc_consumer_t *c, uint32_t max, lc_batch_t **batch, lc_err_t *err)
{
        serve_control(c);
        if (c->broken.kind) {
                if (err && !err->kind)
                        *err = c->broken;
                return -1;
        }
        if (take(c, max, batch, err) < 0)
                return -1;
        /* what stays behind wakes nobody any more: librdkafka writes on empty queues only */
        if (*batch && rd_kafka_queue_length(c->records))
                lc_waker_wake(c->waker);
        return 0;
}

int lc_consumer_poll(lc_consumer_t *c, int ms, uint32_t max_records, lc_batch_t **batch, lc_err_t *err)
{
        if (c->local) /* callers that wait use the waker themselves */
                return lc_local_consumer_poll(c->local, batch, err);
        int64_t until;

        *batch = NULL;
        if (!max_records || max_records > BATCH_MAX)
                max_records = BATCH_MAX;
        if (poll_once(c, max_records, batch, err) < 0)
                return -1;
        if (*batch || ms <= 0)
                return 0;
        if (c->waker != &c->own) {
                lc_waker_wait(c->waker, ms);
                return poll_once(c, max_records, batch, err);
        }
        for (until = lc_now_ms() + ms; !*batch && lc_now_ms() < until;) {
                lc_waker_wait(&c->own, (int)(until - lc_now_ms()));
                lc_waker_clear(&c->own);
                if (poll_once(c, max_records, batch, err) < 0)
                        return -1;
        }
        return 0;
}

static int each_err(lc_consumer_t *c, const rd_kafka_topic_partition_list_t *list, rd_kafka_resp_err_t code,
                    const char *what, lc_err_t *err)
{
        if (code)
                return lc_kafka_err_set(err, c->client->rk, code, NULL, "%s", what);
        for (int i = 0; i < list->cnt; i++)
                if (list->elems[i].err)
                        return lc_kafka_err_set(err, c->client->rk, list->elems[i].err, NULL, "%s of %s-%d",
                                                what, list->elems[i].topic, (int)list->elems[i].partition);
        return 0;
}

bool lc_consumer_full(const lc_consumer_t *c)
{
        return c->local && lc_local_consumer_full(c->local);
}

int lc_consumer_pause(lc_consumer_t *c, const lc_topic_partition_t *tps, size_t n, lc_err_t *err)
{
        if (c->local) {
                lc_local_consumer_pause(c->local, tps, n, true);
                return 0;
        }
        rd_kafka_topic_partition_list_t *list = to_list(tps, n);
        int rc = 0;

        if (c->assigning)
                for (size_t i = 0; i < n; i++) {
                        rd_kafka_topic_partition_list_del(c->pause_after, tps[i].topic, tps[i].partition);
                        rd_kafka_topic_partition_list_add(c->pause_after, tps[i].topic, tps[i].partition);
                }
        else
                rc = each_err(c, list, rd_kafka_pause_partitions(c->client->rk, list), "Pause", err);
        rd_kafka_topic_partition_list_destroy(list);
        return rc;
}

int lc_consumer_resume(lc_consumer_t *c, const lc_topic_partition_t *tps, size_t n, lc_err_t *err)
{
        if (c->local) {
                lc_local_consumer_pause(c->local, tps, n, false);
                return 0;
        }
        rd_kafka_topic_partition_list_t *list = to_list(tps, n);
        int rc;

        for (size_t i = 0; c->assigning && i < n; i++)
                rd_kafka_topic_partition_list_del(c->pause_after, tps[i].topic, tps[i].partition);
        rc = each_err(c, list, rd_kafka_resume_partitions(c->client->rk, list), "Resume", err);
        rd_kafka_topic_partition_list_destroy(list);
        return rc;
}

int lc_consumer_seek(lc_consumer_t *c, const lc_topic_partition_t *tp, lc_err_t *err)
{
        if (c->local)
                return lc_local_consumer_seek(c->local, tp, err);
        rd_kafka_topic_partition_list_t *list = to_list(tp, 1);
        part_t *part = find_part(c, tp->topic, tp->partition);
        rd_kafka_topic_partition_t *start;
        rd_kafka_error_t *error;
        int rc = 0;

        if (!part) {
                rd_kafka_topic_partition_list_destroy(list);
                return lc_err_set_cls(err, LC_FATAL, 0, "java.lang.IllegalStateException",
                                      "No current assignment for partition %s-%d", tp->topic,
                                      (int)tp->partition);
        }
        if (c->assigning &&
            (start = rd_kafka_topic_partition_list_find(c->assigning, tp->topic, tp->partition))) {
                start->offset = tp->offset;
                part->next = tp->offset >= 0 ? tp->offset : -1;
                rd_kafka_topic_partition_list_destroy(list);
                return 0;
        }
        /* 2.0.2 takes the timeout for microseconds (fixed in 2.1.0) and so gives up at once: the wait is made
         * a thousand times longer there. What was fetched before is outdated and dropped by librdkafka. */
        error = rd_kafka_seek_partitions(c->client->rk, list,
                                         rd_kafka_version() < 0x020100ff ? SEEK_MS * 1000 : SEEK_MS);
        if (error) {
                rc = lc_kafka_err_set(err, c->client->rk, rd_kafka_error_code(error),
                                      rd_kafka_error_string(error), "Seek of %s-%d to %lld", tp->topic,
                                      (int)tp->partition, (long long)tp->offset);
                rd_kafka_error_destroy(error);
        } else {
                rc = each_err(c, list, RD_KAFKA_RESP_ERR_NO_ERROR, "Seek", err);
        }
        if (rc == 0)
                part->next = tp->offset >= 0 ? tp->offset : -1;
        rd_kafka_topic_partition_list_destroy(list);
        return rc;
}

/* Committed offsets; where there is none, the end or beginning that auto.offset.reset would choose. */
static int settle(lc_consumer_t *c, lc_topic_partition_t *tp, lc_err_t *err)
{
        char reset[32] = "earliest";
        size_t n = sizeof(reset);
        int64_t low, high;
        rd_kafka_resp_err_t code;

        rd_kafka_conf_get(rd_kafka_conf(c->client->rk), "auto.offset.reset", reset, &n);
        code = rd_kafka_query_watermark_offsets(c->client->rk, tp->topic, tp->partition, &low, &high,
                                                CALL_MS);
        if (code)
                return lc_kafka_err_set(err, c->client->rk, code, NULL, "Cannot read the offsets of %s-%d",
                                        tp->topic, (int)tp->partition);
        /* 2.0.2 names the values "largest", "smallest" too */
        tp->offset =
                !strcmp(reset, "latest") || !strcmp(reset, "largest") || !strcmp(reset, "end") ? high : low;
        return 0;
}

int lc_consumer_position(lc_consumer_t *c, lc_topic_partition_t *tps, size_t n, lc_err_t *err)
{
        if (c->local) {
                lc_local_consumer_position(c->local, tps, n);
                return 0;
        }
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)n);
        int rc = 0;

        for (size_t i = 0; i < n; i++) {
                part_t *p = find_part(c, tps[i].topic, tps[i].partition);
                tps[i].offset = p && p->next >= 0 ? p->next : RD_KAFKA_OFFSET_INVALID;
                if (tps[i].offset < 0)
                        rd_kafka_topic_partition_list_add(list, tps[i].topic, tps[i].partition);
        }
        if (list->cnt)
                rc = each_err(c, list, rd_kafka_committed(c->client->rk, list, CALL_MS),
                              "Cannot read the committed offsets", err);
        for (size_t i = 0; rc == 0 && i < n; i++) {
                rd_kafka_topic_partition_t *e;
                if (tps[i].offset >= 0)
                        continue;
                e = rd_kafka_topic_partition_list_find(list, tps[i].topic, tps[i].partition);
                if (e && e->offset >= 0)
                        tps[i].offset = e->offset;
                else
                        rc = settle(c, &tps[i], err);
        }
        rd_kafka_topic_partition_list_destroy(list);
        return rc;
}

int lc_consumer_commit(lc_consumer_t *c, const lc_topic_partition_t *tps, size_t n, lc_err_t *err)
{
        if (c->local) {
                lc_local_consumer_commit(c->local, tps, n, 0);
                return 0;
        }
        rd_kafka_topic_partition_list_t *list = to_list(tps, n);
        rd_kafka_resp_err_t code = rd_kafka_commit(c->client->rk, list, 0);
        int rc = code == RD_KAFKA_RESP_ERR__NO_OFFSET
                         ? 0
                         : each_err(c, list, code, "Commit of offsets failed", err);

        rd_kafka_topic_partition_list_destroy(list);
        return rc;
}

int lc_consumer_commit_async(lc_consumer_t *c, const lc_topic_partition_t *tps, size_t n, uint64_t seq,
                             lc_err_t *err)
{
        if (c->local) {
                lc_local_consumer_commit(c->local, tps, n, seq);
                return 0;
        }
        rd_kafka_topic_partition_list_t *list = to_list(tps, n);
        rd_kafka_resp_err_t code =
                rd_kafka_commit_queue(c->client->rk, list, c->control, NULL, (void *)(uintptr_t)seq);

        rd_kafka_topic_partition_list_destroy(list);
        if (code)
                return lc_kafka_err_set(err, c->client->rk, code, NULL, "Commit of offsets failed");
        return 0;
}

void lc_consumer_close(lc_consumer_t *c)
{
        rd_kafka_error_t *error;
        int64_t until;

        if (!c)
                return;
        if (c->local) {
                lc_local_consumer_close(c->local);
                free(c);
                return;
        }
        if (c->control) {
                /* the last revocation comes as an event: serve it, or close would wait for ever */
                c->closing = true;
                error = rd_kafka_consumer_close_queue(c->client->rk, c->control);
                if (error)
                        rd_kafka_error_destroy(error);
                until = lc_now_ms() + CALL_MS;
                while (!rd_kafka_consumer_closed(c->client->rk) && lc_now_ms() < until) {
                        struct timespec nap = {0, 1000000};
                        serve_control(c);
                        if (lc_now_ms() > until - CALL_MS + CLOSE_MS)
                                let_go(c);
                        if (!rd_kafka_consumer_closed(c->client->rk))
                                nanosleep(&nap, NULL);
                }
                serve_control(c);
                rd_kafka_queue_io_event_enable(c->control, -1, NULL, 0);
                rd_kafka_queue_destroy(c->control);
        }
        rd_kafka_queue_io_event_enable(c->records, -1, NULL, 0);
        rd_kafka_queue_destroy(c->records);
        lc_kafka_close(c->client);
        while (c->nparts)
                remove_part(c, c->parts[0].topic, c->parts[0].partition);
        lc_waker_close(&c->own);
        free(c->parts);
        free(c);
}
