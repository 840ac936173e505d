/*
 * letters.c - see letters.h. The task's thread only.
 */
#include "runtime/letters.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "config/client_config.h"
#include "config/connector_config.h"
#include "config/topic_regex.h"
#include "kafka/admin.h"
#include "kafka/producer.h"
#include "runtime/letter.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
        ASK_MS = 3000,   /* one call to the cluster while the topic is looked up or made */
        REST_MS = 10000, /* without letters the producer is closed */
        SLICE_MS = 50
};

#define KEY_SINK    "errors.deadletterqueue.topic.name"
#define KEY_SOURCE  "errors.deadletterqueue.source.topic.name"
#define KEY_FACTOR  "errors.deadletterqueue.topic.replication.factor"
#define KEY_HEADERS "errors.deadletterqueue.context.headers.enable"

struct lc_letters {
        lc_reporter_t base;
        lc_waker_t *waker;
        char *topic;
        int replication;
        bool sink, headers;
        lc_letter_writer_t *writer; /* of a source: how records become bytes */
        lc_props_t *producer_conf, *admin_conf;
        lc_producer_t *producer; /* NULL while there is nothing to write */
        int64_t last_sent;
        lc_letter_t *first, *last;
        size_t n;
        bool failed;
        lc_err_t err; /* valid once failed */
        uint64_t requests, failures;
};

/* ---- the list ----------------------------------------------------------------------------------- */

static void append(lc_letters_t *l, lc_letter_t *x)
{
        x->prev = l->last;
        *(l->last ? &l->last->next : &l->first) = x;
        l->last = x;
        l->n++;
}

static void take_out(lc_letters_t *l, lc_letter_t *x)
{
        *(x->prev ? &x->prev->next : &l->first) = x->next;
        *(x->next ? &x->next->prev : &l->last) = x->prev;
        l->n--;
        lc_letter_free(x);
}

size_t lc_letters_pending(const lc_letters_t *l)
{
        return l ? l->n : 0;
}

int64_t lc_letters_lowest(const lc_letters_t *l, const char *topic, int32_t partition)
{
        int64_t lowest = INT64_MAX;

        for (const lc_letter_t *x = l ? l->first : NULL; x; x = x->next)
                if (x->offset < lowest && x->partition == partition && x->topic && !strcmp(x->topic, topic))
                        lowest = x->offset;
        return lowest;
}

void lc_letters_drop(lc_letters_t *l, const lc_batch_t *of, bool all)
{
        lc_letter_t *next;

        for (lc_letter_t *x = l ? l->first : NULL; x; x = next) {
                next = x->next;
                if (!x->sent && (all || (x->stage == LC_STAGE_TASK_PUT && x->of == of)))
                        take_out(l, x);
        }
}

/* ---- writing ------------------------------------------------------------------------------------ */

/* The one that failed stays in the list: its offset is never committed. */
static void fail(lc_letters_t *l, const lc_letter_t *x, const lc_err_t *cause)
{
        lc_err_t err = *cause;

        l->failures++;
        lc_letter_describe(x, &err);
        lc_err_wrap(&err, LC_CLS_CONNECT, "Could not produce message to dead letter queue. topic=%s",
                    l->topic);
        if (err.kind != LC_FENCED)
                err.kind = LC_FATAL;
        lc_log(LC_ERROR, "ERRORS", "%s %s", err.msg, err.detail);
        if (l->failed)
                return;
        l->failed = true;
        l->err = err;
}

static void on_report(void *arg, lc_record_t *r, const lc_err_t *err, const lc_delivery_t *to)
{
        lc_letters_t *l = arg;
        lc_batch_t *b = r->batch;
        lc_letter_t *x = lc_letter_of(b);

        (void)to;
        if (!err) {
                LC_FAULT("letters.acked");
                take_out(l, x);
        } else {
                x->sent = false;
                r->state = LC_REC_NEW;
                if (err->code != LC_PURGED)
                        fail(l, x, err);
        }
        lc_batch_unref(b); /* the producer's */
}

static int open_producer(lc_letters_t *l, lc_err_t *err)
{
        if (!l->producer)
                l->producer = lc_producer_new(l->producer_conf, l->waker, on_report, l, err);
        return l->producer ? 0 : -1;
}

/* 1 taken, 0 come again, -1 it cannot be written. */
static int send_one(lc_letters_t *l, lc_letter_t *x)
{
        lc_record_t *r = &x->b->records[0];
        lc_err_t err;

        for (;;) {
                lc_err_clear(&err);
                if (lc_producer_send(l->producer, r, 1, &err)) {
                        LC_FAULT("letters.after_send");
                        x->sent = true;
                        l->requests++;
                        l->last_sent = lc_now_ms();
                        return 1;
                }
                if (!err.kind || err.kind == LC_RETRIABLE)
                        return 0;
                if (err.kind != LC_DATA || !lc_letter_shorten(x))
                        break;
                lc_log(LC_WARN, "ERRORS",
                       "A letter to the dead letter queue %s is written without the stack trace: %s",
                       l->topic, err.msg);
        }
        l->requests++;
        fail(l, x, &err);
        return -1;
}

void lc_letters_send(lc_letters_t *l)
{
        lc_err_t err;

        if (!l || !l->first || l->failed)
                return;
        lc_err_clear(&err);
        if (open_producer(l, &err)) {
                fail(l, l->first, &err);
                return;
        }
        for (lc_letter_t *x = l->first; x; x = x->next)
                if (!x->sent && send_one(l, x) <= 0)
                        return;
}

void lc_letters_serve(lc_letters_t *l)
{
        if (!l || !l->producer)
                return;
        lc_producer_poll(l->producer, 0);
        if (l->n || lc_now_ms() - l->last_sent < REST_MS)
                return;
        lc_producer_destroy(l->producer, 0);
        l->producer = NULL;
}

bool lc_letters_wait(lc_letters_t *l, int64_t end_ms)
{
        for (;;) {
                int64_t left = end_ms - lc_now_ms();

                lc_letters_send(l);
                if (!lc_letters_pending(l))
                        return true;
                if (l->failed || left <= 0 || !l->producer)
                        return false;
                lc_producer_poll(l->producer, left < SLICE_MS ? (int)left : SLICE_MS);
        }
}

int lc_letters_check(const lc_letters_t *l, lc_err_t *err)
{
        if (!l || !l->failed)
                return 0;
        *err = l->err;
        return -1;
}

void lc_letters_hold(lc_letters_t *l)
{
        if (!l || !l->producer)
                return;
        if (lc_producer_outstanding(l->producer))
                lc_producer_purge(l->producer);
        lc_producer_poll(l->producer, 0);
}

void lc_letters_counts(const lc_letters_t *l, uint64_t *requests, uint64_t *failures)
{
        *requests = l ? l->requests : 0;
        *failures = l ? l->failures : 0;
}

/* ---- the reporter ------------------------------------------------------------------------------- */

static void report(lc_reporter_t *base, const lc_failure_t *f)
{
        lc_letters_t *l = (lc_letters_t *)base;
        lc_letter_t *x;

        if (!l->sink && f->stage == LC_STAGE_KAFKA_PRODUCE)
                return; /* what Kafka refused once it refuses again */
        if (!f->record) {
                l->requests++;
                l->failures++;
                lc_log(LC_ERROR, "ERRORS",
                       "A failure without its record cannot go to the dead letter queue %s", l->topic);
                return;
        }
        x = lc_letter_new(l->topic, l->headers, l->writer, f);
        if (x) {
                append(l, x);
                return;
        }
        l->failures++;
        if (!l->failed)
                lc_err_set(&l->err, LC_FATAL, 0,
                           "Could not produce message to dead letter queue. topic=%s: out of memory",
                           l->topic);
        l->failed = true;
}

static void destroy(lc_reporter_t *base)
{
        lc_letters_t *l = (lc_letters_t *)base;

        lc_producer_destroy(l->producer, 0);
        while (l->first)
                take_out(l, l->first);
        lc_letter_writer_free(l->writer);
        lc_props_free(l->producer_conf);
        lc_props_free(l->admin_conf);
        free(l->topic);
        free(l);
}

lc_reporter_t *lc_letters_reporter(lc_letters_t *l)
{
        return &l->base;
}

/* ---- the set-up --------------------------------------------------------------------------------- */

static char *trimmed(const lc_props_t *config, const char *key)
{
        char *text = lc_connector_config_get(config, key);
        char *name = lc_strtrim(text ? text : "");

        free(text);
        return name;
}

/* A sink that reads its own letters would write them for ever. The validation says the same, but a config
 * may have come past it. */
static int check_loop(const lc_letters_t *l, const lc_props_t *config, lc_err_t *err)
{
        const char *topics = lc_props_get(config, "topics"), *regex = lc_props_get(config, "topics.regex");
        lc_strv_t list = {0};
        int rc = 0;

        lc_strv_split(&list, topics ? topics : "");
        if (lc_strv_has(&list, l->topic))
                rc = lc_err_set_cls(
                        err, LC_FATAL, 0, LC_CLS_CONFIG,
                        "The DLQ topic '%s' may not be included in the list of topics ('topics=%s') "
                        "consumed by the connector",
                        l->topic, topics);
        else if (regex && *regex && lc_topic_regex_matches(regex, l->topic))
                rc = lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                                    "The DLQ topic '%s' may not be matched by the regex for the topics "
                                    "('topics.regex=%s') consumed by the connector",
                                    l->topic, regex);
        lc_strv_free(&list);
        return rc;
}

/* Keys that are for the other kind of connector do nothing, as in Java, but not without a word. */
static void say_ignored(const char *connector, bool sink, const lc_props_t *config)
{
        const char *other = sink ? KEY_SOURCE : KEY_SINK, *mine = sink ? KEY_SINK : KEY_SOURCE;
        const char *v = lc_props_get(config, other);

        if (v && *v && !lc_props_has(config, mine))
                lc_log(LC_WARN, "ERRORS",
                       "%s of the %s connector %s does nothing: its dead letter queue is named by %s", other,
                       sink ? "sink" : "source", connector, mine);
}

int lc_letters_new(const lc_worker_config_t *wc, const char *connector, int task, bool sink,
                   const lc_props_t *config, lc_waker_t *waker, lc_letters_t **out, lc_err_t *err)
{
        char *topic = trimmed(config, sink ? KEY_SINK : KEY_SOURCE), *id;
        lc_letters_t *l;

        *out = NULL;
        say_ignored(connector, sink, config);
        if (!*topic) {
                free(topic);
                return 0;
        }
        l = lc_calloc(1, sizeof(*l));
        l->base.report = report;
        l->base.destroy = destroy;
        l->waker = waker;
        l->topic = topic;
        l->sink = sink;
        l->replication = (int)lc_connector_config_int(config, KEY_FACTOR);
        l->headers = lc_connector_config_bool(config, KEY_HEADERS);
        id = lc_asprintf("connector-dlq-producer-%s-%d", connector, task);
        l->producer_conf = lc_client_config(wc, LC_CLIENT_PRODUCER, config, id, err);
        free(id);
        id = lc_asprintf("connector-dlq-adminclient-%s-%d", connector, task);
        l->admin_conf = l->producer_conf ? lc_client_config(wc, LC_CLIENT_ADMIN, config, id, err) : NULL;
        free(id);
        if (!l->admin_conf || (sink && check_loop(l, config, err)) ||
            (!sink && !(l->writer = lc_letter_writer_new(err)))) {
                destroy(&l->base);
                return -1;
        }
        *out = l;
        return 0;
}

/* Java asks with a future: the cause is shown twice. */
static int not_there(const lc_letters_t *l, lc_err_t *why, lc_err_t *err)
{
        static const char by[] = "Caused by: ";
        const char *cause = strstr(why->detail, by);
        char text[sizeof(why->detail)];

        if (why->kind == LC_RETRIABLE) {
                lc_err_wrap(why, LC_CLS_CONNECT, "Could not initialize dead letter queue with topic=%s",
                            l->topic);
                *err = *why;
                return -1;
        }
        snprintf(text, sizeof(text), "%s", cause ? cause + strlen(by) : "");
        text[strcspn(text, "\n")] = '\0';
        lc_err_clear(err);
        lc_err_set(err, LC_FATAL, why->code, "Could not initialize dead letter queue with topic=%s",
                   l->topic);
        if (cause) {
                lc_err_cause(err, "java.util.concurrent.ExecutionException", "%s", text);
                snprintf(err->detail + strlen(err->detail), sizeof(err->detail) - strlen(err->detail),
                         "Caused by: %s\n", text);
        } else {
                lc_err_cause(err, why->cls, "%s", why->msg);
        }
        return -1;
}

/* 0 the topic is there, -1 with why. */
static int ensure_topic(const lc_letters_t *l, lc_admin_t *admin, lc_err_t *why)
{
        int n = lc_admin_partitions(admin, l->topic, ASK_MS, why);

        if (n)
                return n < 0 ? -1 : 0;
        lc_log(LC_ERROR, "ERRORS", "Topic %s doesn't exist. Will attempt to create topic.", l->topic);
        n = lc_admin_create_topic(admin, l->topic, 1, l->replication, NULL, ASK_MS, why);
        if (n)
                return n < 0 ? -1 : 0;
        /* another task was first; or we may not, which creation takes for that */
        n = lc_admin_partitions(admin, l->topic, ASK_MS, why);
        if (n)
                return n < 0 ? -1 : 0;
        lc_err_set_cls(why, LC_FATAL, 0, "org.apache.kafka.common.errors.TopicAuthorizationException",
                       "Not authorized to access topics: [%s]", l->topic);
        lc_err_cause(why, "org.apache.kafka.common.errors.TopicAuthorizationException",
                     "Not authorized to access topics: [%s]", l->topic);
        return -1;
}

int lc_letters_open(lc_letters_t *l, lc_err_t *err)
{
        lc_admin_t *admin;
        lc_err_t why;
        int rc;

        if (!l)
                return 0;
        if (open_producer(l, err)) /* to find bad settings now */
                return -1;
        l->last_sent = lc_now_ms();
        admin = lc_admin_new(l->admin_conf, err);
        if (!admin)
                return -1;
        lc_err_clear(&why);
        rc = ensure_topic(l, admin, &why);
        lc_admin_free(admin);
        return rc ? not_there(l, &why, err) : 0;
}
