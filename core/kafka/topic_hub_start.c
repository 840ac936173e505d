/*
 * topic_hub_start.c - bringing the internal topics up: metadata, creation, checks, offsets, first reading.
 * Hub's thread only. See topic_hub.h, topic_hub_internal.h. spec/kafka/storage_spec.lua
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "kafka/admin_calls.h"
#include "kafka/topic_hub_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
        SLICE_MS = 500, /* longest time the thread does not look at quit */
        SAY_MS = 10000,
        METADATA_MS = 30000, /* a topic that exists or was created must show its leaders */
        POLL_NEW_MS = 15,
        RETRY_MS = 250
};

static bool nap(lc_topic_hub_t *hub, int ms)
{
        lc_waker_clear(&hub->waker);
        if (!lc_hub_quits(hub))
                lc_waker_wait(&hub->waker, ms);
        return !lc_hub_quits(hub);
}

/* One line every 10 s for as long as brokers are missing. */
static void say_waiting(lc_topic_hub_t *hub, int64_t since, const char *what, const lc_err_t *err)
{
        int64_t now = lc_now_ms();

        if (now - since < SAY_MS / 5 || (hub->said && now - hub->said < SAY_MS))
                return;
        hub->said = now;
        lc_log(LC_WARN, "KAFKA", "Waiting for Kafka at %s to %s (%lld s so far): %s", hub->servers, what,
               (long long)(now - since) / 1000, err->kind ? err->msg : "no answer yet");
}

int lc_hub_reader_open(lc_topic_hub_t *hub, lc_hub_reader_t *r, const char *wait_ms, lc_err_t *err)
{
        static const char *const defaults[][2] = {{"reconnect.backoff.ms", "50"},
                                                  {"reconnect.backoff.max.ms", "1000"},
                                                  {"queued.max.messages.kbytes", "4096"},
                                                  {"fetch.error.backoff.ms", "50"},
                                                  {"topic.metadata.refresh.fast.interval.ms", "100"},
                                                  {NULL, NULL}};
        lc_props_t *conf = lc_props_copy(hub->consumer_conf);

        lc_props_set(conf, "fetch.wait.max.ms", wait_ms);
        lc_props_set(conf, "auto.offset.reset", "earliest");
        lc_props_set(conf, "enable.partition.eof", "true"); /* also tells positions behind control records */
        lc_props_set(conf, "enable.auto.commit", "false");
        lc_props_set(conf, "enable.auto.offset.store", "false");
        r->client = lc_kafka_open(RD_KAFKA_CONSUMER, conf, defaults, RD_KAFKA_EVENT_ERROR, err);
        lc_props_free(conf);
        if (!r->client)
                return -1;
        r->queue = rd_kafka_queue_new(r->client->rk);
        lc_kafka_queue_wakes(r->queue, &hub->waker);
        return 0;
}

int lc_hub_reader_start(lc_hub_reader_t *r, lc_hub_topic_t *t, int partition, int64_t offset)
{
        if (!r->topics[t->index])
                r->topics[t->index] = rd_kafka_topic_new(r->client->rk, t->name, NULL);
        if (!r->topics[t->index] ||
            rd_kafka_consume_start_queue(r->topics[t->index], partition, offset, r->queue) < 0) {
                lc_log(LC_ERROR, "KAFKA", "Cannot read %s-%d: %s", t->name, partition,
                       rd_kafka_err2str(rd_kafka_last_error()));
                return -1;
        }
        if (partition >= r->partitions[t->index])
                r->partitions[t->index] = partition + 1;
        return 0;
}

void lc_hub_reader_close(lc_hub_reader_t *r)
{
        if (!r->client)
                return;
        rd_kafka_queue_io_event_enable(r->queue, -1, NULL, 0);
        for (int i = 0; i < LC_HUB_TOPICS; i++) {
                for (int p = 0; p < r->partitions[i]; p++)
                        rd_kafka_consume_stop(r->topics[i], p); /* an error: was not started */
                if (r->topics[i])
                        rd_kafka_topic_destroy(r->topics[i]);
        }
        rd_kafka_queue_destroy(r->queue);
        lc_kafka_close(r->client);
        memset(r, 0, sizeof(*r));
}

void lc_topic_hub_expect_markers(lc_topic_hub_t *hub)
{
        hub->markers = true;
}

void lc_hub_topic_free(lc_hub_topic_t *t)
{
        if (t->out)
                rd_kafka_topic_destroy(t->out);
        free(t->name);
        free(t->setting);
        free(t->purpose);
        lc_props_free(t->settings);
        free(t->position);
        free(t->behind);
        free(t->first_end);
        free(t->reading);
        free(t->end);
        free(t);
}

void lc_hub_fail(lc_hub_topic_t *t, const lc_err_t *err)
{
        pthread_mutex_lock(&t->hub->lock);
        if (!t->failed) {
                t->error = *err;
                t->failed = true;
        }
        pthread_cond_broadcast(&t->hub->changed);
        pthread_mutex_unlock(&t->hub->lock);
}

void lc_topic_hub_impatient(lc_topic_hub_t *hub, int ms)
{
        hub->impatient = true;
        hub->start_ms = ms;
}

bool lc_hub_refused(lc_topic_hub_t *hub, lc_hub_topic_t *t, rd_kafka_resp_err_t code)
{
        bool denied = code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
                      code == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED;

        for (int i = 0; i < hub->ntopics && hub->impatient && denied; i++) {
                lc_err_t err;

                if (t && t != hub->topics[i])
                        continue;
                lc_err_clear(&err);
                lc_kafka_err_set(&err, NULL, code, NULL, "Cannot read topic '%s'", hub->topics[i]->name);
                err.kind = LC_FATAL;
                lc_hub_fail(hub->topics[i], &err);
        }
        return hub->impatient && denied;
}

/* Partition counts of all topics, waiting for a broker for ever. */
static int look(lc_topic_hub_t *hub, int *counts)
{
        const char *names[LC_HUB_TOPICS];
        int64_t since = lc_now_ms();
        lc_err_t err;

        for (int i = 0; i < hub->ntopics; i++)
                names[i] = hub->topics[i]->name;
        while (!lc_hub_quits(hub)) {
                lc_err_clear(&err);
                if (lc_kafka_topic_partitions(hub->fast.client->rk, names, hub->ntopics, counts, SLICE_MS,
                                              &err) == 0)
                        return 0;
                if (lc_hub_refused(hub, NULL, err.code))
                        break;
                say_waiting(hub, since, "look up the internal topics", &err);
                if (!nap(hub, 20))
                        break;
        }
        return -1;
}

/* Wait until the topics that are wanted show leaders. Those that do not in time fail. */
static int await_leaders(lc_topic_hub_t *hub, int *counts)
{
        int64_t until = lc_now_ms() + METADATA_MS;
        lc_err_t err;

        for (;;) {
                bool missing = false;
                if (look(hub, counts) < 0)
                        return -1;
                for (int i = 0; i < hub->ntopics; i++)
                        missing = missing || (!counts[i] && !hub->topics[i]->failed);
                if (!missing)
                        return 0;
                if (lc_now_ms() >= until)
                        break;
                if (!nap(hub, POLL_NEW_MS))
                        return -1;
        }
        for (int i = 0; i < hub->ntopics; i++) {
                if (counts[i] || hub->topics[i]->failed)
                        continue;
                lc_err_clear(&err);
                lc_err_set(&err, LC_FATAL, 0,
                           "Could not look up partition metadata for topic '%s' in the allotted "
                           "period. This could indicate a connectivity issue, unavailable topic partitions, "
                           "or if "
                           "this is your first use of the topic it may have taken too long to create.",
                           hub->topics[i]->name);
                lc_hub_fail(hub->topics[i], &err);
        }
        return 0;
}

static bool creation_again(const lc_err_t *err)
{
        return err->code == RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR || err->kind == LC_RETRIABLE;
}

/* Create the topics with counts[i] == 0; created[i] says which are new. */
static int create(lc_topic_hub_t *hub, const int *counts, bool *created)
{
        int64_t since = lc_now_ms();
        bool left[LC_HUB_TOPICS];

        for (int i = 0; i < hub->ntopics; i++)
                left[i] = counts[i] == 0;
        for (;;) {
                lc_kafka_new_topic_t ask[LC_HUB_TOPICS];
                int from[LC_HUB_TOPICS], n = 0;
                bool last_try = lc_now_ms() - since >= hub->api_ms, again = false;

                for (int i = 0; i < hub->ntopics; i++) {
                        if (!left[i])
                                continue;
                        from[n] = i;
                        memset(&ask[n], 0, sizeof(ask[n]));
                        ask[n].name = hub->topics[i]->name;
                        ask[n].partitions = hub->topics[i]->conf.partitions;
                        ask[n].replication = hub->topics[i]->conf.replication;
                        ask[n].settings = hub->topics[i]->settings;
                        n++;
                }
                if (!n)
                        return 0;
                lc_kafka_create_topics(hub->producer->rk, ask, n, 10 * SLICE_MS, NULL);
                for (int k = 0; k < n; k++) {
                        lc_hub_topic_t *t = hub->topics[from[k]];
                        if (!ask[k].err.kind) {
                                left[from[k]] = false;
                                created[from[k]] = ask[k].created;
                                if (ask[k].created)
                                        lc_log(LC_INFO, "KAFKA",
                                               "Created topic '%s' (%d partitions, replication "
                                               "factor %d, compacted)",
                                               t->name, t->conf.partitions, t->conf.replication);
                        } else if (last_try || !creation_again(&ask[k].err)) {
                                left[from[k]] = false;
                                lc_hub_fail(t, &ask[k].err);
                        } else {
                                again = true;
                                say_waiting(hub, since, "create the internal topics", &ask[k].err);
                        }
                }
                if (again && !nap(hub, RETRY_MS))
                        return -1;
        }
}

/* cleanup.policy of topics that were there before. */
static void verify(lc_topic_hub_t *hub, const bool *created)
{
        const char *names[LC_HUB_TOPICS];
        char *values[LC_HUB_TOPICS];
        int from[LC_HUB_TOPICS], n = 0;
        lc_err_t err;

        for (int i = 0; i < hub->ntopics; i++)
                if (!created[i] && !hub->topics[i]->failed) {
                        from[n] = i;
                        names[n++] = hub->topics[i]->name;
                }
        if (!n)
                return;
        lc_err_clear(&err);
        lc_kafka_topic_configs(hub->producer->rk, names, n, "cleanup.policy", values, 10 * SLICE_MS, &err);
        for (int k = 0; k < n; k++) {
                lc_hub_topic_t *t = hub->topics[from[k]];
                if (!values[k]) {
                        lc_log(LC_INFO, "KAFKA",
                               "Unable to use admin client to verify the cleanup policy of '%s' "
                               "topic is 'compact': %s",
                               t->name, err.msg);
                } else if (strcmp(values[k], "compact") != 0) {
                        lc_err_t bad;
                        lc_err_clear(&bad);
                        lc_err_set_cls(
                                &bad, LC_FATAL, 0, LC_CLS_CONFIG,
                                "Topic '%s' supplied via the '%s' property is required to have "
                                "'cleanup.policy=compact' to guarantee consistency and durability of %s, but "
                                "found the topic currently has 'cleanup.policy=%s'. Continuing would likely "
                                "result in eventually losing %s and problems restarting this Connect cluster "
                                "in the future. Change the '%s' property in the Connect worker "
                                "configurations "
                                "to use a topic with 'cleanup.policy=compact'.",
                                t->name, t->setting, t->purpose, values[k], t->purpose, t->setting);
                        lc_hub_fail(t, &bad);
                }
                free(values[k]);
        }
}

int lc_hub_query_ends(rd_kafka_t *rk, lc_hub_topic_t *const *topics, int n, int64_t time, int ms,
                      int64_t *const *out, lc_err_t *err)
{
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(32);
        rd_kafka_resp_err_t code;
        int rc = -1;

        /* in one ListOffsets a broker: the "times" -1 and -2 are the end and the beginning */
        for (int i = 0; i < n; i++)
                for (int p = 0; p < topics[i]->npartitions; p++)
                        rd_kafka_topic_partition_list_add(list, topics[i]->name, p)->offset = time;
        if (!list->cnt) {
                rc = 0;
                goto done;
        }
        code = rd_kafka_offsets_for_times(rk, list, ms);
        for (int i = 0; !code && i < list->cnt; i++)
                code = list->elems[i].err;
        if (code) {
                lc_kafka_err_set(err, NULL, code, NULL, "Unable to get the end offsets of topic '%s'",
                                 topics[0]->name);
                goto done;
        }
        for (int i = 0; i < n; i++)
                for (int p = 0; p < topics[i]->npartitions; p++) {
                        rd_kafka_topic_partition_t *e =
                                rd_kafka_topic_partition_list_find(list, topics[i]->name, p);
                        out[i][p] = e && e->offset >= 0 ? e->offset : 0;
                }
        rc = 0;
done:
        rd_kafka_topic_partition_list_destroy(list);
        return rc;
}

static int find_offsets(lc_topic_hub_t *hub, lc_hub_topic_t **live, int n)
{
        int64_t *ends[LC_HUB_TOPICS], *starts[LC_HUB_TOPICS], since = lc_now_ms();
        lc_err_t err;

        for (int i = 0; i < n; i++) {
                ends[i] = live[i]->first_end;
                starts[i] = live[i]->position;
        }
        while (!lc_hub_quits(hub)) {
                lc_err_clear(&err);
                if (lc_hub_query_ends(hub->fast.client->rk, live, n, RD_KAFKA_OFFSET_END, 4 * SLICE_MS, ends,
                                      &err) == 0 &&
                    lc_hub_query_ends(hub->fast.client->rk, live, n, RD_KAFKA_OFFSET_BEGINNING, 4 * SLICE_MS,
                                      starts, &err) == 0)
                        return 0;
                if (lc_hub_refused(hub, NULL, err.code))
                        break;
                say_waiting(hub, since, "read the end offsets of the internal topics", &err);
                if (!nap(hub, 50))
                        break;
        }
        return -1;
}

/* The producer's handles are made only now: one made before the topic existed would remember that. */
static void open_for_writing(lc_topic_hub_t *hub, lc_hub_topic_t *t)
{
        rd_kafka_topic_conf_t *tc = rd_kafka_default_topic_conf_dup(hub->producer->rk);
        char ms[16], why[128];

        snprintf(ms, sizeof(ms), "%d", t->conf.write_ms);
        if (rd_kafka_topic_conf_set(tc, "message.timeout.ms", ms, why, sizeof(why)) != RD_KAFKA_CONF_OK)
                lc_log(LC_WARN, "KAFKA", "message.timeout.ms of '%s': %s", t->name, why);
        t->out = rd_kafka_topic_new(hub->producer->rk, t->name, tc);
}

/* So that the first write need not ask. */
static void learn_leaders(lc_topic_hub_t *hub, lc_hub_topic_t **live, int n)
{
        const char *names[LC_HUB_TOPICS];
        int counts[LC_HUB_TOPICS];

        for (int i = 0; i < n; i++)
                names[i] = live[i]->name;
        if (n)
                lc_kafka_topic_partitions(hub->producer->rk, names, n, counts, SLICE_MS, NULL);
}

static void step(int64_t since, const char *what)
{
        lc_log(LC_DEBUG, "KAFKA", "Internal topics: %s after %lld ms", what,
               (long long)(lc_now_ms() - since));
}

int lc_hub_bring_up(lc_topic_hub_t *hub)
{
        int64_t since = lc_now_ms();
        int counts[LC_HUB_TOPICS] = {0}, n = 0;
        bool created[LC_HUB_TOPICS] = {false}, missing = false;
        lc_hub_topic_t *live[LC_HUB_TOPICS], *old[LC_HUB_TOPICS];
        int nold = 0;
        lc_err_t err;

        if (look(hub, counts) < 0)
                return -1;
        step(since, "looked up");
        for (int i = 0; i < hub->ntopics; i++)
                missing = missing || !counts[i];
        if (missing && create(hub, counts, created) < 0)
                return -1;
        step(since, "created");
        if (missing && await_leaders(hub, counts) < 0)
                return -1;
        step(since, "leaders seen");
        verify(hub, created);
        step(since, "checked");
        for (int i = 0; i < hub->ntopics; i++) {
                lc_hub_topic_t *t = hub->topics[i];
                if (!t->failed && t->conf.single_partition && counts[i] > 1) {
                        lc_err_clear(&err);
                        lc_err_set_cls(
                                &err, LC_FATAL, 0, LC_CLS_CONFIG,
                                "Topic '%s' supplied via the '%s' property is required to have a single "
                                "partition in order to guarantee consistency of %s, but found %d partitions.",
                                t->name, t->setting, t->purpose, counts[i]);
                        lc_hub_fail(t, &err);
                }
                if (t->failed)
                        continue;
                open_for_writing(hub, t);
                pthread_mutex_lock(&hub->lock);
                t->npartitions = counts[i];
                t->position = lc_calloc((size_t)counts[i], sizeof(*t->position));
                t->behind = lc_calloc((size_t)counts[i], sizeof(*t->behind));
                t->first_end = lc_calloc((size_t)counts[i], sizeof(*t->first_end));
                t->end = lc_calloc((size_t)counts[i], sizeof(*t->end));
                t->reading = lc_calloc((size_t)counts[i], sizeof(*t->reading));
                pthread_mutex_unlock(&hub->lock);
                live[n++] = t;
                if (!created[i]) /* what we made is empty; asking a leader that new takes most of a second */
                        old[nold++] = t;
        }
        learn_leaders(hub, live, n);
        if (find_offsets(hub, old, nold) < 0)
                return -1;
        step(since, "offsets known");
        /* A fetch that holds only partitions without data waits for fetch.wait.max.ms: start what has some.
         */
        for (int i = 0; i < n; i++)
                for (int p = 0; p < live[i]->npartitions; p++) {
                        live[i]->reading[p] = live[i]->position[p] < live[i]->first_end[p];
                        if (live[i]->reading[p])
                                lc_hub_reader_start(&hub->fast, live[i], p, live[i]->position[p]);
                }
        return 0;
}
