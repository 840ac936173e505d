/*
 * kafka_config_store.c - the config store over the hub's config topic: state from records, writes by the
 * recipes of storage.md 2.2. Lock: store.lock around the state; events are called without it.
 * With exactly-once support the leader's writes are transactions of a producer that is claimed (storage.md 2.2);
 * it belongs to whoever writes. spec/unit/config_store_spec.lua, spec/kafka/storage_spec.lua
 */
#include "base/alloc.h"
#include "base/buf.h"
#include "base/fault.h"
#include "base/clock.h"
#include "base/log.h"
#include "convert/json.h"
#include "kafka/topic_hub.h"
#include "kafka/transactions.h"
#include "storage/config_state.h"
#include "storage/topic_stores.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUDGET_MS = 30000 };

#define LC_CLS_PRIVILEGED_WRITE "org.apache.kafka.connect.storage.PrivilegedWriteException"

typedef struct store {
        lc_config_store_t base;
        lc_hub_topic_t *topic;
        pthread_mutex_t lock;
        lc_config_state_t *state;
        lc_config_events_t events;
        void *arg;
        bool started; /* events are wanted */
        char *name;
        lc_props_t *leader_conf; /* NULL: plain writes */
        lc_producer_t *leader;   /* claimed; the writer's */
        const volatile int *stop;
} store_t;

static void on_record(void *arg, const lc_hub_record_t *r)
{
        store_t *s = arg;
        lc_config_change_t change;
        bool fire;

        pthread_mutex_lock(&s->lock);
        lc_config_state_apply(s->state, r->key, r->key_len, r->value, r->value_len, r->partition, r->offset,
                              &change);
        fire = s->started;
        pthread_mutex_unlock(&s->lock);
        if (fire)
                lc_config_change_fire(&change, &s->events, s->arg);
        lc_config_change_clear(&change);
}

static int start(lc_config_store_t *base, const lc_config_events_t *events, void *arg,
                 const volatile int *stop, lc_err_t *err)
{
        store_t *s = (store_t *)base;

        s->stop = stop;
        if (lc_hub_topic_start(s->topic, stop, err) < 0)
                return -1;
        pthread_mutex_lock(&s->lock);
        if (events) {
                s->events = *events;
                s->arg = arg;
                s->started = true;
        }
        pthread_mutex_unlock(&s->lock);
        return 0;
}

static lc_config_snapshot_t *snapshot(lc_config_store_t *base)
{
        store_t *s = (store_t *)base;
        lc_config_snapshot_t *snap;

        pthread_mutex_lock(&s->lock);
        snap = lc_config_state_snapshot(s->state);
        pthread_mutex_unlock(&s->lock);
        return snap;
}

static int refresh(lc_config_store_t *base, int timeout_ms, lc_err_t *err)
{
        return lc_hub_topic_read_to_end(((store_t *)base)->topic, timeout_ms, err);
}

/* ---- writing ---- */

/* Records of one write; keys and values live in the buffer until it is sent. */
typedef struct writes {
        lc_hub_out_t *v;
        lc_buf_t *keys, *values;
        size_t n, cap;
} writes_t;

static void writes_init(writes_t *w, size_t cap)
{
        w->v = lc_calloc(cap, sizeof(*w->v));
        w->keys = lc_calloc(cap, sizeof(*w->keys));
        w->values = lc_calloc(cap, sizeof(*w->values));
        for (size_t i = 0; i < cap; i++)
                w->keys[i].sure = w->values[i].sure = true;
        w->n = 0;
        w->cap = cap;
}

/* The value buffer of a new record whose key is prefix + name (+ suffix); NULL value: see writes_tombstone.
 */
static lc_buf_t *writes_add(writes_t *w, const char *prefix, const char *name)
{
        lc_assert(w->n < w->cap);
        lc_buf_adds(&w->keys[w->n], prefix);
        lc_buf_adds(&w->keys[w->n], name);
        return &w->values[w->n++];
}

/* ---- the leader's transactions ---- */

static bool stopped(void *arg)
{
        return lc_stopped(((store_t *)arg)->stop);
}

static void relinquish(lc_config_store_t *base)
{
        store_t *s = (store_t *)base;

        lc_producer_destroy(s->leader, 0);
        s->leader = NULL;
}

static int claim(lc_config_store_t *base, lc_err_t *err)
{
        store_t *s = (store_t *)base;
        lc_err_t why;
        int rc = -1;

        if (!s->leader_conf)
                return 0;
        relinquish(base);
        lc_err_clear(&why);
        s->leader = lc_producer_new(s->leader_conf, NULL, NULL, NULL, &why);
        if (s->leader)
                rc = lc_txn_init(s->leader, BUDGET_MS, stopped, s, &why);
        if (!rc)
                return 0;
        relinquish(base);
        if (rc > 0)
                lc_err_set(&why, LC_FATAL, 0, "The worker is stopping");
        lc_err_wrap(&why, LC_CLS_CONNECT,
                    "Failed to create and initialize fencable producer for config topic");
        if (err && !err->kind)
                *err = why;
        return -1;
}

static int transact(store_t *s, const writes_t *w, int64_t *offset, lc_err_t *err)
{
        int rc = lc_txn_begin(s->leader, err);

        for (size_t i = 0; !rc && i < w->n; i++)
                rc = lc_producer_send_copy(s->leader, s->name, 0, w->v[i].key, w->v[i].key_len, w->v[i].value,
                                           w->v[i].value_len, err);
        if (!rc) {
                LC_FAULT("config.before_commit");
                rc = lc_txn_commit(s->leader, BUDGET_MS, stopped, s, err);
        }
        if (rc > 0)
                rc = lc_err_set(err, LC_FATAL, 0, "The worker is stopping");
        if (lc_producer_copied(s->leader, offset, rc ? NULL : err))
                rc = -1;
        return rc;
}

/* One batch, one transaction. Any failure: somebody else may lead, the privileges are gone. */
static int write_privileged(store_t *s, const writes_t *w, bool seen, lc_err_t *err)
{
        int64_t offset = -1, end = lc_now_ms() + BUDGET_MS, left;
        lc_err_t why;

        if (!s->leader)
                return lc_err_set_cls(
                        err, LC_FENCED, 0, "java.lang.IllegalStateException",
                        "Cannot produce to config topic without claiming write privileges first");
        lc_err_clear(&why);
        if (transact(s, w, &offset, &why)) {
                lc_log(LC_WARN, "CONFIG", "Failed to perform fencable send to config topic: %s", why.msg);
                relinquish(&s->base);
                lc_err_wrap(&why, LC_CLS_PRIVILEGED_WRITE, "Failed to perform fencable send to config topic");
                why.kind = LC_FENCED;
                if (err && !err->kind)
                        *err = why;
                return -1;
        }
        left = end - lc_now_ms();
        return seen && offset >= 0
                       ? lc_hub_topic_await(s->topic, 0, offset, left > 1000 ? (int)left : 1000, err)
                       : 0;
}

static int writes_send(store_t *s, writes_t *w, bool privileged, bool seen, lc_err_t *err)
{
        for (size_t i = 0; i < w->n; i++) {
                w->v[i] = (lc_hub_out_t){.key = w->keys[i].p,
                                         .key_len = w->keys[i].len,
                                         .value = w->values[i].p,
                                         .value_len = w->values[i].len,
                                         .partition = 0};
        }
        return privileged && s->leader_conf ? write_privileged(s, w, seen, err)
                                            : lc_hub_topic_write(s->topic, w->v, w->n, seen, BUDGET_MS, err);
}

static void writes_free(writes_t *w)
{
        for (size_t i = 0; i < w->cap; i++) {
                lc_buf_free(&w->keys[i]);
                lc_buf_free(&w->values[i]);
        }
        free(w->keys);
        free(w->values);
        free(w->v);
}

/* Send, and put Java's sentence over what went wrong; being fenced has one of its own. */
static int finish(store_t *s, writes_t *w, bool privileged, const char *sentence, lc_err_t *err)
{
        lc_err_t why;
        int rc;

        lc_err_clear(&why);
        rc = writes_send(s, w, privileged, privileged, &why);
        writes_free(w);
        if (rc < 0) {
                if (why.kind != LC_FENCED)
                        lc_err_wrap(&why, LC_CLS_CONNECT, "%s", sentence);
                if (err && !err->kind)
                        *err = why;
        }
        return rc;
}

static void write_target(lc_buf_t *b, lc_target_state_t t)
{
        lc_buf_printf(b, "{\"state\":\"%s\",\"state.v2\":\"%s\"}",
                      lc_target_state_name(t == LC_TARGET_STOPPED ? LC_TARGET_PAUSED : t),
                      lc_target_state_name(t));
}

static void write_properties(lc_buf_t *b, const lc_props_t *p)
{
        lc_buf_adds(b, "{\"properties\":");
        lc_json_write_props(b, p);
        lc_buf_adds(b, "}");
}

static int put_connector(lc_config_store_t *base, const char *name, const lc_props_t *config,
                         lc_target_state_t target, lc_err_t *err)
{
        writes_t w;

        writes_init(&w, 2);
        if (target != LC_TARGET_NONE) /* before the connector, or a reader could start it */
                write_target(writes_add(&w, "target-state-", name), target);
        write_properties(writes_add(&w, "connector-", name), config);
        return finish((store_t *)base, &w, true, "Error writing connector configuration to Kafka", err);
}

static int remove_connector(lc_config_store_t *base, const char *name, lc_err_t *err)
{
        writes_t w;

        writes_init(&w, 2);
        writes_add(&w, "connector-", name); /* nothing written: tombstones */
        writes_add(&w, "target-state-", name);
        return finish((store_t *)base, &w, true, "Error removing connector configuration from Kafka", err);
}

static int put_tasks(lc_config_store_t *base, const char *name, lc_props_t *const *configs, int n,
                     lc_err_t *err)
{
        static const char sentence[] = "Error writing task configurations to Kafka";
        store_t *s = (store_t *)base;
        lc_err_t why;
        writes_t w;

        /* deferred records of others must be in before ours */
        lc_err_clear(&why);
        if (lc_hub_topic_read_to_end(s->topic, BUDGET_MS, &why) < 0) {
                lc_err_wrap(&why, LC_CLS_CONNECT, "%s", sentence);
                if (err && !err->kind)
                        *err = why;
                return -1;
        }
        if (n > 0) {
                writes_init(&w, (size_t)n);
                for (int i = 0; i < n; i++) {
                        lc_buf_t *value = writes_add(&w, "task-", name);
                        lc_buf_printf(&w.keys[w.n - 1], "-%d", i);
                        write_properties(value, configs[i]);
                }
                if (finish(s, &w, true, sentence, err) < 0)
                        return -1;
        }
        LC_FAULT("config.after_task_records");
        writes_init(&w, 1);
        lc_buf_printf(writes_add(&w, "commit-", name), "{\"tasks\":%d}", n);
        return finish(s, &w, true, sentence, err);
}

static int put_target(lc_config_store_t *base, const char *name, lc_target_state_t t, lc_err_t *err)
{
        writes_t w;

        writes_init(&w, 1);
        write_target(writes_add(&w, "target-state-", name), t);
        return finish((store_t *)base, &w, false, "Error writing target state to Kafka", err);
}

static void add_string(lc_buf_t *b, const char *s)
{
        lc_json_write_string(b, s, strlen(s));
}

static int put_task_count(lc_config_store_t *base, const char *name, int count, lc_err_t *err)
{
        writes_t w;

        writes_init(&w, 1);
        lc_buf_printf(writes_add(&w, "tasks-fencing-", name), "{\"task-count\":%d}", count);
        return finish((store_t *)base, &w, true, "Error writing task count record to Kafka", err);
}

static int put_session_key(lc_config_store_t *base, const char *key, const char *algorithm,
                           int64_t created_ms, lc_err_t *err)
{
        writes_t w;
        lc_buf_t *b;

        writes_init(&w, 1);
        b = writes_add(&w, "session-key", "");
        lc_buf_adds(b, "{\"key\":");
        add_string(b, key);
        lc_buf_adds(b, ",\"algorithm\":");
        add_string(b, algorithm);
        lc_buf_printf(b, ",\"creation-timestamp\":%lld}", (long long)created_ms);
        return finish((store_t *)base, &w, true, "Error writing session key to Kafka", err);
}

static int put_restart(lc_config_store_t *base, const char *name, bool only_failed, bool include_tasks,
                       lc_err_t *err)
{
        char *sentence = lc_asprintf("Error writing restart request for {connectorName='%s', onlyFailed=%s, "
                                     "includeTasks=%s} to Kafka",
                                     name, only_failed ? "true" : "false", include_tasks ? "true" : "false");
        writes_t w;
        int rc;

        writes_init(&w, 1);
        lc_buf_printf(writes_add(&w, "restart-connector-", name), "{\"include-tasks\":%s,\"only-failed\":%s}",
                      include_tasks ? "true" : "false", only_failed ? "true" : "false");
        rc = finish((store_t *)base, &w, true, sentence, err);
        free(sentence);
        return rc;
}

static int put_logger(lc_config_store_t *base, const char *logger, const char *level, lc_err_t *err)
{
        writes_t w;
        lc_buf_t *b;

        writes_init(&w, 1);
        b = writes_add(&w, "logger-cluster-", logger);
        lc_buf_adds(b, "{\"level\":");
        add_string(b, level);
        lc_buf_adds(b, "}");
        return finish((store_t *)base, &w, false, "Error writing logger level to Kafka", err);
}

/* The hub goes on until it is freed: what still comes is only kept, nobody is told. */
static void stop(lc_config_store_t *base)
{
        store_t *s = (store_t *)base;

        pthread_mutex_lock(&s->lock);
        s->started = false;
        pthread_mutex_unlock(&s->lock);
        lc_hub_topic_detach(s->topic);
        relinquish(base);
        lc_props_free(s->leader_conf);
        free(s->name);
        lc_config_state_free(s->state);
        pthread_mutex_destroy(&s->lock);
        free(s);
}

static const lc_config_store_ops_t ops = {.start = start,
                                          .snapshot = snapshot,
                                          .refresh = refresh,
                                          .put_connector = put_connector,
                                          .remove_connector = remove_connector,
                                          .put_tasks = put_tasks,
                                          .put_target = put_target,
                                          .put_session_key = put_session_key,
                                          .put_restart = put_restart,
                                          .put_logger = put_logger,
                                          .stop = stop,
                                          .put_task_count = put_task_count,
                                          .claim = claim,
                                          .relinquish = relinquish};

lc_config_store_t *lc_config_store_kafka_new(lc_topic_hub_t *hub, const lc_hub_topic_conf_t *conf,
                                             const lc_props_t *transactional)
{
        store_t *s = lc_calloc(1, sizeof(*s));
        lc_hub_topic_conf_t c = *conf;

        s->base.ops = &ops;
        pthread_mutex_init(&s->lock, NULL);
        s->state = lc_config_state_new(conf->name);
        s->name = lc_strdup(conf->name);
        s->leader_conf = transactional ? lc_props_copy(transactional) : NULL;
        c.single_partition = true;
        c.write_ms = BUDGET_MS;
        c.on_record = on_record;
        c.arg = s;
        s->topic = lc_topic_hub_add(hub, &c);
        return &s->base;
}
