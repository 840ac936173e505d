/*
 * herder_sim.c - for herder_spec.lua and herder_cluster_spec.lua: the distributed herder between a worker, a group and a config topic
 * that are made of a few lines, so that its decisions can be watched without a broker. The spec builds it
 * together with the herder's sources (herder_sim.h). Assignor, config state, memory stores are the core's.
 *
 * Calls and records are written into one trace, a line each.
 */
#include "base/alloc.h"
#include "convert/json.h"
#include "herder/internal.h"
#include "storage/config_state.h"
#include "kafka/wire/bootstrap.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The trace. */

static pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t sim_cond = PTHREAD_COND_INITIALIZER;
static lc_buf_t sim_trace;
static char sim_fail_start[64], sim_fail_write[64]; /* under sim_lock */
static int sim_protocol = 1, sim_second, sim_follower, sim_silent, sim_frozen;
static char sim_ghost[64], sim_url2[64], sim_leader_url[64];

static void say(const char *fmt, ...)
{
        va_list ap;

        pthread_mutex_lock(&sim_lock);
        va_start(ap, fmt);
        lc_buf_vprintf(&sim_trace, fmt, ap);
        va_end(ap);
        lc_buf_addc(&sim_trace, '\n');
        pthread_mutex_unlock(&sim_lock);
}

/* What shall fail, as a copy. */
static void sim_failing(const char *from, char to[64])
{
        pthread_mutex_lock(&sim_lock);
        memcpy(to, from, 64);
        pthread_mutex_unlock(&sim_lock);
}

/* The worker: everything succeeds at once, on the caller's thread. */

struct lc_worker {
        lc_worker_deps_t deps;
        lc_work_t has;
        lc_strv_t started;
        int32_t generation;
};

/* What a reload left to restart, until it was started again. */
static lc_work_t outdated;
static lc_worker_t *sim_worker;

static void status(lc_worker_t *w, const char *name, int task, lc_state_t state)
{
        lc_status_t st = {.task = task, .state = state, .generation = w->generation};

        st.worker_id = lc_strdup(w->deps.worker_id);
        w->deps.statuses->ops->put(w->deps.statuses, name, &st, state == LC_UNASSIGNED);
        lc_status_clear(&st);
}

lc_worker_t *lc_worker_new(const lc_worker_deps_t *deps, lc_err_t *err)
{
        lc_worker_t *w = lc_calloc(1, sizeof(*w));

        (void)err;
        w->deps = *deps;
        sim_worker = w;
        return w;
}

void lc_worker_free(lc_worker_t *w)
{
        lc_work_free(&w->has);
        lc_strv_free(&w->started);
        free(w);
}

void lc_worker_set_outside(lc_worker_t *w, bool outside)
{
        (void)w;
        (void)outside;
}

void lc_worker_set_generation(lc_worker_t *w, int32_t generation)
{
        w->generation = generation;
}

void lc_worker_run(lc_worker_t *w, void (*fn)(void *), void *arg)
{
        (void)w;
        fn(arg);
}

int lc_worker_source_offsets(lc_worker_t *w, const char *name, const lc_props_t *config,
                             const volatile int *stop,
                             void (*fn)(void *arg, const char *partition, const char *offset), void *arg,
                             lc_err_t *err)
{
        (void)config;
        (void)stop;
        return w->deps.offsets->ops->list(w->deps.offsets, name, fn, arg, err);
}

/* What the herder answers a task; malloc'ed, "" for yes. */
__attribute__((visibility("default"))) char *sim_gate(const char *what, const char *connector, int task)
{
        lc_ticket_t *ticket = lc_ticket_new();
        lc_err_t err;
        int rc;

        lc_err_clear(&err);
        (strcmp(what, "fence") ? sim_worker->deps.verify : sim_worker->deps.fence)(sim_worker->deps.arg, connector,
                                                                                  task, ticket);
        rc = lc_ticket_wait(ticket, NULL, NULL, lc_now_ms() + 5000, &err);
        return lc_strdup(rc < 0 ? err.msg : rc ? "no answer" : "");
}

int lc_txn_fence(const lc_props_t *conf, const char *prefix, int n, int ms, lc_txn_quit_fn *quit, void *arg,
                 lc_err_t *err)
{
        (void)conf;
        (void)ms;
        (void)quit;
        (void)arg;
        (void)err;
        say("fence %s-0..%d", prefix, n - 1);
        return 0;
}

static void set_started(lc_worker_t *w, const char *name, bool yes)
{
        lc_strv_t left = {0};

        for (size_t i = 0; i < w->started.n; i++)
                if (strcmp(w->started.v[i], name) != 0)
                        lc_strv_add(&left, w->started.v[i]);
        if (yes)
                lc_strv_add(&left, name);
        lc_strv_free(&w->started);
        w->started = left;
}

static void bring_to(lc_worker_t *w, const char *name, lc_target_state_t t, lc_worker_done_fn *done,
                     void *arg)
{
        char failing[64];
        lc_err_t err;

        lc_err_clear(&err);
        sim_failing(sim_fail_start, failing);
        if (!strcmp(failing, name) && t == LC_TARGET_STARTED) {
                status(w, name, -1, LC_FAILED);
                lc_err_set(&err, LC_FATAL, 0, "it does not start");
        } else {
                set_started(w, name, t == LC_TARGET_STARTED);
                status(w, name, -1,
                       t == LC_TARGET_STARTED  ? LC_RUNNING
                       : t == LC_TARGET_PAUSED ? LC_PAUSED
                                               : LC_STOPPED);
        }
        if (done)
                done(arg, name, err.kind ? &err : NULL);
}

void lc_worker_start_connector(lc_worker_t *w, const char *name, const lc_props_t *config,
                               lc_target_state_t t, lc_worker_done_fn *done, void *arg)
{
        (void)config;
        say("start %s %s g%d", name, lc_target_state_name(t), (int)w->generation);
        lc_work_add(&w->has, name, -1);
        lc_work_remove(&outdated, name, -1);
        bring_to(w, name, t, done, arg);
}

void lc_worker_connector_target(lc_worker_t *w, const char *name, lc_target_state_t t,
                                lc_worker_done_fn *done, void *arg)
{
        say("target %s %s", name, lc_target_state_name(t));
        bring_to(w, name, t, done, arg);
}

void lc_worker_stop_connector(lc_worker_t *w, const char *name)
{
        say("stop %s g%d", name, (int)w->generation);
        lc_work_remove(&w->has, name, -1);
        set_started(w, name, false);
        status(w, name, -1, LC_UNASSIGNED);
}

bool lc_worker_has_connector(const lc_worker_t *w, const char *name)
{
        return lc_work_has(&w->has, name, -1);
}

bool lc_worker_connector_started(const lc_worker_t *w, const char *name)
{
        return lc_strv_has(&w->started, name);
}

void lc_worker_task_configs(lc_worker_t *w, const char *name, const lc_props_t *config,
                            lc_task_configs_fn *done, void *arg)
{
        int n = atoi(lc_props_get_or(config, "tasks.max", "1"));
        lc_props_t **made = lc_calloc((size_t)n + 1, sizeof(*made));

        (void)w;
        for (int i = 0; i < n; i++) {
                made[i] = lc_props_copy(config);
                lc_props_set(made[i], "task.class", "T");
        }
        done(arg, name, made, n, NULL);
}

int lc_worker_start_task(lc_worker_t *w, const char *name, int task, const lc_props_t *cc, int count,
                         const lc_props_t *tc, lc_target_state_t t, lc_err_t *err)
{
        (void)cc;
        (void)tc;
        if (lc_work_has(&w->has, name, task)) {
                say("ERROR %s-%d runs already", name, task);
                return lc_err_set(err, LC_FATAL, 0, "Task already exists");
        }
        say("start %s-%d of %d %s g%d", name, task, count, lc_target_state_name(t), (int)w->generation);
        lc_work_add(&w->has, name, task);
        lc_work_remove(&outdated, name, task);
        status(w, name, task, t == LC_TARGET_PAUSED ? LC_PAUSED : LC_RUNNING);
        return 0;
}

void lc_worker_stop_tasks(lc_worker_t *w, const lc_work_t *ids)
{
        for (size_t i = 0; i < ids->n; i++) {
                if (!lc_work_has(&w->has, ids->v[i].connector, ids->v[i].task))
                        continue;
                say("stop %s-%d g%d", ids->v[i].connector, (int)ids->v[i].task, (int)w->generation);
                lc_work_remove(&w->has, ids->v[i].connector, ids->v[i].task);
                status(w, ids->v[i].connector, ids->v[i].task, LC_UNASSIGNED);
        }
}

void lc_worker_tasks_target(lc_worker_t *w, const char *connector, lc_target_state_t t)
{
        for (size_t i = 0; i < w->has.n; i++)
                if (w->has.v[i].task >= 0 && !strcmp(w->has.v[i].connector, connector))
                        say("target %s-%d %s", connector, (int)w->has.v[i].task, lc_target_state_name(t));
}

void lc_worker_running(const lc_worker_t *w, lc_work_t *out)
{
        lc_work_copy(out, &w->has);
}

/* What failed, and when it is to be restarted. Under sim_lock. */
static struct {
        char name[32];
        int task;
        int64_t at;
} sim_failed[8];
static size_t sim_nfailed;

void lc_worker_restarts(const lc_worker_t *w, int64_t now, lc_work_t *due, int64_t *next)
{
        *next = INT64_MAX;
        pthread_mutex_lock(&sim_lock);
        for (size_t i = 0; i < sim_nfailed; i++) {
                if (!lc_work_has(&w->has, sim_failed[i].name, sim_failed[i].task))
                        continue;
                if (sim_failed[i].at <= now)
                        lc_work_add(due, sim_failed[i].name, sim_failed[i].task);
                else if (sim_failed[i].at < *next)
                        *next = sim_failed[i].at;
        }
        pthread_mutex_unlock(&sim_lock);
}

void lc_worker_restarting(lc_worker_t *w, const char *name, int task)
{
        (void)w;
        say("restarting %s %d", name, task);
        pthread_mutex_lock(&sim_lock);
        for (size_t i = 0; i < sim_nfailed; i++)
                if (!strcmp(sim_failed[i].name, name) && sim_failed[i].task == task)
                        sim_failed[i].at = INT64_MAX;
        pthread_mutex_unlock(&sim_lock);
}

void lc_worker_restarted(lc_worker_t *w)
{
        (void)w;
        say("restarted");
}

void lc_worker_afresh(lc_worker_t *w, const char *name)
{
        (void)w;
        say("afresh %s", name);
}

void lc_worker_forget(lc_worker_t *w, const char *name)
{
        (void)w;
        (void)name;
}

void lc_worker_outdated(const lc_worker_t *w, lc_work_t *out)
{
        for (size_t i = 0; i < outdated.n; i++)
                if (lc_work_has(&w->has, outdated.v[i].connector, outdated.v[i].task))
                        lc_work_add(out, outdated.v[i].connector, outdated.v[i].task);
}

/* The config topic: the core's config state, records applied at once, events on the writer's thread. */

typedef struct topic {
        lc_config_store_t base;
        pthread_mutex_t lock;
        lc_config_state_t *state;
        lc_config_events_t events;
        void *arg;
        int64_t next;
        bool started;
} topic_t;
static topic_t *sim_topic;

static void put_record(topic_t *t, const char *key, const char *value)
{
        lc_config_change_t change = {0};

        pthread_mutex_lock(&t->lock);
        lc_config_state_apply(t->state, key, strlen(key), value, value ? strlen(value) : 0, 0, t->next++,
                              &change);
        pthread_mutex_unlock(&t->lock);
        if (t->started)
                lc_config_change_fire(&change, &t->events, t->arg);
        lc_config_change_clear(&change);
}

static int put_f(lc_config_store_t *s, lc_err_t *err, const char *value, const char *fmt, ...)
{
        lc_buf_t key = LC_BUF_INIT;
        char failing[64];
        va_list ap;

        va_start(ap, fmt);
        lc_buf_vprintf(&key, fmt, ap);
        va_end(ap);
        sim_failing(sim_fail_write, failing);
        if (failing[0] && !strncmp(key.p, failing, strlen(failing))) {
                lc_buf_free(&key);
                return lc_err_set(err, LC_RETRIABLE, 0, "Error writing to Kafka");
        }
        say("put %s %s", key.p,
            strstr(key.p, "connector-") == key.p || strstr(key.p, "task-") == key.p ||
                            !strcmp(key.p, "session-key")
                    ? value ? "..." : "null"
            : value ? value
                    : "null");
        put_record((topic_t *)s, key.p, value);
        lc_buf_free(&key);
        return 0;
}

static int t_start(lc_config_store_t *s, const lc_config_events_t *e, void *arg,
                   const volatile int *stop_flag, lc_err_t *err)
{
        topic_t *t = (topic_t *)s;

        (void)stop_flag;
        (void)err;
        t->events = *e;
        t->arg = arg;
        t->started = true;
        return 0;
}

static lc_config_snapshot_t *t_snapshot(lc_config_store_t *s)
{
        topic_t *t = (topic_t *)s;
        lc_config_snapshot_t *snap;

        pthread_mutex_lock(&t->lock);
        snap = lc_config_state_snapshot(t->state);
        pthread_mutex_unlock(&t->lock);
        return snap;
}

static int t_refresh(lc_config_store_t *s, int ms, lc_err_t *err)
{
        (void)s;
        (void)ms;
        (void)err;
        return 0;
}

static int t_target(lc_config_store_t *s, const char *name, lc_target_state_t t, lc_err_t *err)
{
        char *v = lc_asprintf("{\"state\":\"%s\",\"state.v2\":\"%s\"}",
                              t == LC_TARGET_STARTED ? "STARTED" : "PAUSED", lc_target_state_name(t));
        int rc = put_f(s, err, v, "target-state-%s", name);

        free(v);
        return rc;
}

static int put_props(lc_config_store_t *s, lc_err_t *err, const lc_props_t *p, const char *key)
{
        lc_buf_t b = LC_BUF_INIT;
        int rc;

        lc_buf_adds(&b, "{\"properties\":");
        lc_json_write_props(&b, p);
        lc_buf_adds(&b, "}");
        rc = put_f(s, err, b.p, "%s", key);
        lc_buf_free(&b);
        return rc;
}

static int t_connector(lc_config_store_t *s, const char *name, const lc_props_t *config, lc_target_state_t t,
                       lc_err_t *err)
{
        char *key = lc_asprintf("connector-%s", name);
        int rc = t != LC_TARGET_NONE ? t_target(s, name, t, err) : 0;

        if (rc == 0)
                rc = put_props(s, err, config, key);
        free(key);
        return rc;
}

static int t_remove(lc_config_store_t *s, const char *name, lc_err_t *err)
{
        return put_f(s, err, NULL, "connector-%s", name) < 0 ? -1
                                                             : put_f(s, err, NULL, "target-state-%s", name);
}

static int t_tasks(lc_config_store_t *s, const char *name, lc_props_t *const *configs, int n, lc_err_t *err)
{
        char *v = lc_asprintf("{\"tasks\":%d}", n);
        int rc = 0;

        for (int i = 0; i < n && rc == 0; i++) {
                char *key = lc_asprintf("task-%s-%d", name, i);
                rc = put_props(s, err, configs[i], key);
                free(key);
        }
        if (rc == 0)
                rc = put_f(s, err, v, "commit-%s", name);
        free(v);
        return rc;
}

static int t_key(lc_config_store_t *s, const char *key, const char *algorithm, int64_t at, lc_err_t *err)
{
        char *v = lc_asprintf("{\"key\":\"%s\",\"algorithm\":\"%s\",\"creation-timestamp\":%lld}", key,
                              algorithm, (long long)at);
        int rc = put_f(s, err, v, "session-key");

        free(v);
        return rc;
}

static int t_restart(lc_config_store_t *s, const char *name, bool only_failed, bool include_tasks,
                     lc_err_t *err)
{
        char *v = lc_asprintf("{\"include-tasks\":%s,\"only-failed\":%s}", include_tasks ? "true" : "false",
                              only_failed ? "true" : "false");
        int rc = put_f(s, err, v, "restart-connector-%s", name);

        free(v);
        return rc;
}

static int t_task_count(lc_config_store_t *s, const char *name, int count, lc_err_t *err)
{
        char *v = lc_asprintf("{\"task-count\":%d}", count);
        int rc = put_f(s, err, v, "tasks-fencing-%s", name);

        free(v);
        return rc;
}

static int t_logger(lc_config_store_t *s, const char *logger, const char *level, lc_err_t *err)
{
        char *v = lc_asprintf("{\"level\":\"%s\"}", level);
        int rc = put_f(s, err, v, "logger-cluster-%s", logger);

        free(v);
        return rc;
}

static void t_stop(lc_config_store_t *s)
{
        topic_t *t = (topic_t *)s;

        lc_config_state_free(t->state);
        pthread_mutex_destroy(&t->lock);
        free(t);
        sim_topic = NULL;
}

static const lc_config_store_ops_t topic_ops = {
        .start = t_start,
        .snapshot = t_snapshot,
        .refresh = t_refresh,
        .put_connector = t_connector,
        .remove_connector = t_remove,
        .put_tasks = t_tasks,
        .put_target = t_target,
        .put_session_key = t_key,
        .put_restart = t_restart,
        .put_logger = t_logger,
        .stop = t_stop,
        .put_task_count = t_task_count,
};

static topic_t *topic(void)
{
        if (!sim_topic) {
                sim_topic = lc_calloc(1, sizeof(*sim_topic));
                sim_topic->base.ops = &topic_ops;
                sim_topic->state = lc_config_state_new("configs");
                pthread_mutex_init(&sim_topic->lock, NULL);
        }
        return sim_topic;
}

int lc_kafka_stores_new(const lc_worker_config_t *wc, lc_kafka_stores_t *out, lc_err_t *err)
{
        (void)wc;
        (void)err;
        out->config = &topic()->base;
        out->offset = lc_offset_store_memory_new();
        out->status = lc_status_store_memory_new();
        return 0;
}

char *lc_kafka_stores_cluster_id(lc_kafka_stores_t *ks, const volatile int *stop_flag, lc_err_t *err)
{
        (void)ks;
        (void)stop_flag;
        (void)err;
        return lc_strdup("sim");
}

void lc_kafka_stores_free(lc_kafka_stores_t *ks)
{
        (void)ks;
}

/* The admin client: a cluster id, and a group with two offsets. */

int lc_bootstrap_check(const lc_worker_config_t *wc, const volatile int *stop, lc_err_t *err)
{
        (void)wc;
        (void)stop;
        (void)err;
        return 0; /* the simulated broker needs no name service */
}

lc_admin_t *lc_admin_new(const lc_props_t *conf, lc_err_t *err)
{
        (void)err;
        say("admin %s", lc_props_get_or(conf, "client.id", "?"));
        return lc_malloc(1);
}

void lc_admin_free(lc_admin_t *a)
{
        free(a);
}

char *lc_admin_cluster_id(lc_admin_t *a, int ms, lc_err_t *err)
{
        (void)a;
        (void)ms;
        (void)err;
        return lc_strdup("sim");
}

int lc_admin_group_offsets(lc_admin_t *a, const char *group, int ms,
                           void (*fn)(void *arg, const char *topic, int32_t partition, int64_t offset),
                           void *arg, lc_err_t *err)
{
        (void)a;
        (void)ms;
        say("offsets of %s", group);
        if (!strcmp(group, "bad"))
                return lc_err_set(err, LC_RETRIABLE, 0, "no such broker");
        fn(arg, "a\"b", 0, 42);
        fn(arg, "t", 1, 7);
        return 0;
}

/* The group: this member and, when sim_second, another one that does what it is told. */

struct lc_group {
        lc_group_events_t events;
        void *arg;
        pthread_t thread;
        bool running, ending, want;
        int16_t protocol; /* of the last round */
        int32_t generation, done;
        int64_t offset;
        lc_work_t allocation, other;
};
static lc_group_t *sim_group;

lc_group_t *lc_group_new(const lc_worker_config_t *wc, const char *url, const lc_group_events_t *events,
                         void *arg, lc_err_t *err)
{
        lc_group_t *g = lc_calloc(1, sizeof(*g));

        (void)wc;
        (void)url;
        (void)err;
        g->events = *events;
        g->arg = arg;
        g->protocol = (int16_t)sim_protocol;
        sim_group = g;
        return g;
}

void lc_group_set_state(lc_group_t *g, int64_t offset, const lc_work_t *allocation)
{
        pthread_mutex_lock(&sim_lock);
        g->offset = offset;
        lc_work_copy(&g->allocation, allocation);
        pthread_mutex_unlock(&sim_lock);
}

static void give(lc_work_t *to, const lc_assignment_t *a)
{
        for (size_t i = 0; i < a->revoked.n; i++)
                lc_work_remove(to, a->revoked.v[i].connector, a->revoked.v[i].task);
        for (size_t i = 0; i < a->assigned.n; i++)
                lc_work_add(to, a->assigned.v[i].connector, a->assigned.v[i].task);
}

static void round_of(lc_group_t *g)
{
        lc_assignment_t *out[2] = {lc_calloc(1, sizeof(lc_assignment_t)),
                                   lc_calloc(1, sizeof(lc_assignment_t))};
        lc_assignment_t both[2] = {{0}, {0}};
        lc_group_member_t members[2] = {{.id = "m1", .url = "http://m1/"}, {.id = "m2"}};
        size_t n = sim_second ? 2 : 1;
        char ghost[64], url2[64], leader_url[64];
        bool again = false;

        sim_failing(sim_ghost, ghost);
        sim_failing(sim_url2, url2);
        sim_failing(sim_leader_url, leader_url);
        members[1].url = url2;

        g->events.preparing(g->arg, g->protocol); /* that of the last round */
        g->protocol = (int16_t)sim_protocol;
        pthread_mutex_lock(&sim_lock);
        members[0].config_offset = members[1].config_offset = g->offset;
        lc_work_copy(&members[0].allocation, &g->allocation);
        lc_work_copy(&members[1].allocation, &g->other);
        pthread_mutex_unlock(&sim_lock);
        g->events.assign(g->arg, g->protocol, g->generation + 1, members, n, both);
        g->generation++;
        for (size_t i = 0; i < 2; i++) {
                *out[i] = both[i];
                out[i]->generation = g->generation;
                out[i]->protocol = g->protocol;
                out[i]->leader = lc_strdup(sim_follower ? "m2" : "m1");
                out[i]->leader_url = lc_strdup(sim_follower ? leader_url : "http://m1/");
                out[i]->member_id = lc_strdup(members[i].id);
                out[i]->is_leader = !sim_follower && i == 0;
                lc_work_free(&members[i].allocation);
        }
        if (ghost[0]) { /* the leader knows what the config topic does not */
                lc_work_add(&out[0]->assigned, ghost, -1);
                lc_work_add(&out[0]->assigned, ghost, 0);
        }
        if (n == 2) {
                give(&g->other, out[1]);
                again = out[1]->revoked.n > 0;
        }
        lc_assignment_free(out[1]);
        say("round %d", (int)g->generation);
        g->events.assigned(g->arg, out[0]);
        pthread_mutex_lock(&sim_lock);
        while (g->done < g->generation && !g->ending)
                pthread_cond_wait(&sim_cond, &sim_lock);
        if (again)
                g->want = true;
        pthread_mutex_unlock(&sim_lock);
}

static void *group_main(void *arg)
{
        lc_group_t *g = arg;

        for (;;) {
                pthread_mutex_lock(&sim_lock);
                while ((!g->want || sim_silent) && !g->ending)
                        pthread_cond_wait(&sim_cond, &sim_lock);
                g->want = false;
                pthread_mutex_unlock(&sim_lock);
                if (g->ending)
                        return NULL;
                round_of(g);
        }
}

int lc_group_start(lc_group_t *g, lc_err_t *err)
{
        (void)err;
        g->want = g->running = true;
        return pthread_create(&g->thread, NULL, group_main, g) ? -1 : 0;
}

void lc_group_rejoin(lc_group_t *g, const char *reason)
{
        say("rejoin: %s", reason);
        pthread_mutex_lock(&sim_lock);
        g->want = true;
        pthread_cond_broadcast(&sim_cond);
        pthread_mutex_unlock(&sim_lock);
}

void lc_group_assignment_done(lc_group_t *g, int32_t generation)
{
        pthread_mutex_lock(&sim_lock);
        g->done = generation;
        pthread_cond_broadcast(&sim_cond);
        pthread_mutex_unlock(&sim_lock);
}

int32_t lc_group_last_generation(const lc_group_t *g)
{
        return g->generation ? g->generation : -1;
}

bool lc_group_may_work(const lc_group_t *g)
{
        bool frozen;

        (void)g;
        pthread_mutex_lock(&sim_lock);
        frozen = sim_frozen;
        pthread_mutex_unlock(&sim_lock);
        return !frozen;
}

void lc_group_tick(lc_group_t *g)
{
        (void)g;
}

void lc_group_leave(lc_group_t *g, int backoff_ms, const char *reason)
{
        (void)g;
        (void)backoff_ms;
        say("leave: %s", reason);
}

void lc_group_quit(lc_group_t *g)
{
        pthread_mutex_lock(&sim_lock);
        g->ending = true;
        pthread_cond_broadcast(&sim_cond);
        pthread_mutex_unlock(&sim_lock);
        if (g->running)
                pthread_join(g->thread, NULL);
        g->running = false;
}

void lc_group_stop(lc_group_t *g)
{
        lc_group_quit(g);
        lc_work_free(&g->allocation);
        lc_work_free(&g->other);
        free(g);
        sim_group = NULL;
        say("left");
}

/* Requests to other workers: they wait for the spec to answer. */

static lc_http_call_t *sim_calls;

lc_http_call_t *lc_http_call_new(const char *method, const char *url)
{
        lc_http_call_t *c = lc_calloc(1, sizeof(*c));

        c->method = lc_strdup(method);
        c->url = lc_strdup(url);
        return c;
}

void lc_http_call_free(lc_http_call_t *c)
{
        if (!c)
                return;
        free(c->method);
        free(c->url);
        lc_strv_free(&c->headers);
        lc_buf_free(&c->body);
        lc_buf_free(&c->answer);
        free(c->content_type);
        free(c);
}

void lc_http_submit(lc_http_t *http, lc_http_call_t *call)
{
        lc_buf_t text = LC_BUF_INIT;

        (void)http;
        lc_buf_printf(&text, "http %s %s", call->method, call->url);
        for (size_t i = 0; i < call->headers.n; i++)
                lc_buf_printf(&text, " [%s]", call->headers.v[i]);
        if (call->has_body)
                lc_buf_printf(&text, " %s", call->body.p);
        pthread_mutex_lock(&sim_lock);
        call->next = sim_calls;
        sim_calls = call;
        pthread_mutex_unlock(&sim_lock);
        say("%s", text.p);
        lc_buf_free(&text);
}

static void answer_call(lc_http_call_t *call, int status, const char *body)
{
        if (status <= 0)
                lc_err_set(&call->err, LC_RETRIABLE, -status, "m2:80: %s", body);
        else
                lc_buf_adds(&call->answer, body);
        call->status = status > 0 ? status : 0;
        call->done(call);
}

/* For the spec. */
#pragma GCC visibility push(default)

static void logger_level(void *arg, const char *logger, const char *level)
{
        (void)arg;
        say("logger %s %s", logger, level);
}

/* protocol -1: standalone. */
lc_herder_t *sim_start(const lc_worker_config_t *wc, const lc_plugins_t *plugins, int protocol)
{
        lc_herder_deps_t deps = {.config = wc,
                                 .plugins = plugins,
                                 .url = "http://m1/",
                                 .worker_id = "w:1",
                                 .http = protocol < 0 ? NULL : (lc_http_t *)&sim_calls,
                                 .logger_level = logger_level};
        static const volatile int never;
        lc_herder_t *h;
        lc_err_t err;

        lc_err_clear(&err);
        sim_protocol = protocol;
        sim_second = sim_follower = sim_silent = sim_frozen = 0;
        sim_ghost[0] = '\0';
        strcpy(sim_url2, "http://m2/");
        strcpy(sim_leader_url, "http://m2/");
        pthread_mutex_lock(&sim_lock);
        sim_fail_start[0] = sim_fail_write[0] = '\0';
        sim_nfailed = 0;
        pthread_mutex_unlock(&sim_lock);
        lc_buf_clear(&sim_trace);
        h = protocol < 0 ? lc_herder_standalone_new(&deps, &err) : lc_herder_distributed_new(&deps, &err);
        if (lc_herder_start(h, &never, &err) < 0) {
                lc_herder_stop(h);
                return NULL;
        }
        return h;
}

/* A record somebody else wrote: before the start, or while it runs. */
void sim_record(const char *key, const char *value)
{
        put_record(topic(), key, value);
}

void sim_fail(const char *start, const char *write)
{
        pthread_mutex_lock(&sim_lock);
        snprintf(sim_fail_start, sizeof(sim_fail_start), "%s", start);
        snprintf(sim_fail_write, sizeof(sim_fail_write), "%s", write);
        pthread_mutex_unlock(&sim_lock);
}

void sim_members(int second, int follower)
{
        pthread_mutex_lock(&sim_lock);
        if (sim_second && !second)
                lc_work_free(&sim_group->other);
        sim_second = second;
        sim_follower = follower;
        sim_group->want = true;
        pthread_cond_broadcast(&sim_cond);
        pthread_mutex_unlock(&sim_lock);
}

/* A member came, or left, that makes the group agree on another protocol: a round. */
void sim_turn(int protocol)
{
        pthread_mutex_lock(&sim_lock);
        sim_protocol = protocol;
        sim_group->want = true;
        pthread_cond_broadcast(&sim_cond);
        pthread_mutex_unlock(&sim_lock);
}

/* The coordinator is gone: no rounds until it is back; it comes back when nothing is reported to run. */
void sim_coordinator(int gone)
{
        pthread_mutex_lock(&sim_lock);
        sim_silent = gone;
        sim_group->want = true;
        pthread_cond_broadcast(&sim_cond);
        pthread_mutex_unlock(&sim_lock);
        if (gone)
                sim_group->events.coordinator_lost(sim_group->arg);
}

/* From the next round on. NULL: as it is. */
void sim_names(const char *ghost, const char *url2, const char *leader_url)
{
        pthread_mutex_lock(&sim_lock);
        if (ghost)
                snprintf(sim_ghost, sizeof(sim_ghost), "%s", ghost);
        if (url2)
                snprintf(sim_url2, sizeof(sim_url2), "%s", url2);
        if (leader_url)
                snprintf(sim_leader_url, sizeof(sim_leader_url), "%s", leader_url);
        pthread_mutex_unlock(&sim_lock);
}

void sim_freeze(int frozen)
{
        pthread_mutex_lock(&sim_lock);
        sim_frozen = frozen;
        pthread_mutex_unlock(&sim_lock);
}

/* Answers the oldest request whose URL begins so; status 0 or less: no answer, -status is the errno.
 * false: there is none. */
bool sim_answer(const char *url, int status, const char *body)
{
        lc_http_call_t **at, *call = NULL, **found = NULL;

        pthread_mutex_lock(&sim_lock);
        for (at = &sim_calls; *at; at = &(*at)->next)
                if (!strncmp((*at)->url, url, strlen(url)))
                        found = at;
        if (found) {
                call = *found;
                *found = call->next;
        }
        pthread_mutex_unlock(&sim_lock);
        if (call)
                answer_call(call, status, body);
        return call != NULL;
}

void sim_request_task(lc_request_t *req, const lc_props_t *task)
{
        req->tasks = realloc(req->tasks, sizeof(*req->tasks) * ((size_t)req->ntasks + 1));
        req->tasks[req->ntasks++] = lc_props_copy(task);
}

void sim_request_text(lc_request_t *req, const char *what, const char *text)
{
        char **to = !strcmp(what, "level")       ? &req->level
                    : !strcmp(what, "signature") ? &req->signature
                    : !strcmp(what, "algorithm") ? &req->signature_algorithm
                                                 : &req->body;

        *to = lc_strdup(text);
        if (to == &req->body)
                req->body_len = strlen(text);
}

static void *back_later(void *ms)
{
        usleep((useconds_t)(intptr_t)ms * 1000);
        sim_coordinator(0);
        return NULL;
}

/* The coordinator is back after ms; wait with sim_back_wait(). */
static pthread_t sim_later;
void sim_back_after(int ms)
{
        if (pthread_create(&sim_later, NULL, back_later, (void *)(intptr_t)ms))
                abort();
}
void sim_back_wait(void)
{
        pthread_join(sim_later, NULL);
}

/* It is to be restarted at the next reload. */
/* It FAILED, and is to be restarted in so many ms. */
void sim_fails(lc_herder_t *h, const char *name, int task, int ms)
{
        status(h->worker, name, task, LC_FAILED);
        pthread_mutex_lock(&sim_lock);
        snprintf(sim_failed[sim_nfailed].name, sizeof(sim_failed[0].name), "%s", name);
        sim_failed[sim_nfailed].task = task;
        sim_failed[sim_nfailed++].at = lc_now_ms() + ms;
        pthread_mutex_unlock(&sim_lock);
        h->worker->deps.failed(h->worker->deps.arg);
}

void sim_outdate(const char *connector, int task)
{
        lc_work_add(&outdated, connector, task);
}

void sim_set_offset(lc_herder_t *h, const char *connector, const char *partition, const char *offset)
{
        lc_offset_entry_t entry = {partition, offset};

        h->offsets->ops->set(h->offsets, connector, &entry, 1, NULL, NULL);
}

char *sim_take_trace(void)
{
        char *text;

        pthread_mutex_lock(&sim_lock);
        text = lc_buf_take(&sim_trace, NULL);
        pthread_mutex_unlock(&sim_lock);
        return text;
}

void sim_call(lc_herder_t *h, lc_request_t *req)
{
        lc_herder_call(h, req);
}
bool sim_ready(lc_herder_t *h)
{
        return lc_herder_ready(h);
}
void sim_stage(lc_herder_t *h, lc_buf_t *out)
{
        lc_herder_stage(h, out);
}
void sim_reconfigure(lc_herder_t *h, const char *name)
{
        h->worker->deps.reconfigure(h->worker->deps.arg, name);
}
/* What is out comes back when the herder is gone. */
void sim_stop(lc_herder_t *h)
{
        lc_herder_stop(h);
        lc_work_free(&outdated);
        while (sim_answer("", -ECANCELED, "the client has stopped"))
                ;
}
lc_request_t *sim_request(int op, const char *connector)
{
        return lc_request_new((lc_request_op_t)op, connector);
}
void sim_request_free(lc_request_t *req)
{
        lc_request_free(req);
}
#pragma GCC visibility pop
