/* worker.c - see worker.h: the maps of connectors and tasks. The herder's thread but for lc_worker_run(). */
#include "runtime/worker.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "config/connector_config.h"
#include "runtime/connector.h"
#include "runtime/pool.h"
#include "runtime/source_offsets.h"
#include "runtime/task.h"
#include "script/script.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
        POOL_SIZE = 4,
        POOL_CAP = 64,
        CONNECTOR_STOP_MS = 5000, /* connector-config 5: slow shutdown */
        POOL_STOP_MS = 2000
};

typedef struct connector_entry {
        lc_connector_t *c;
        char *name;
        UT_hash_handle hh;
} connector_entry_t;
typedef struct task_entry {
        lc_task_t *t;
        char *key; /* "name-0": numbers never follow another '-' ambiguously, names are compared whole */
        UT_hash_handle hh;
} task_entry_t;

struct lc_worker {
        lc_services_t *sv;
        lc_pool_t *pool;
        int64_t stop_ms; /* how long a stop of tasks waits */
        bool by_policy;  /* what is started now is started again by restart.policy */
        connector_entry_t *connectors;
        task_entry_t *tasks;
};

lc_worker_t *lc_worker_new(const lc_worker_deps_t *deps, lc_err_t *err)
{
        lc_worker_t *w = lc_calloc(1, sizeof(*w));

        (void)err;
        w->sv = lc_services_new(deps);
        w->stop_ms = w->sv->graceful_ms;
        w->pool = lc_pool_new(POOL_SIZE, (int)(w->sv->graceful_ms > 1000 ? w->sv->graceful_ms : 1000),
                              POOL_CAP);
        return w;
}

void lc_worker_set_generation(lc_worker_t *w, int32_t generation)
{
        __atomic_store_n(&w->sv->generation, generation, __ATOMIC_RELAXED);
}

void lc_worker_set_outside(lc_worker_t *w, bool outside)
{
        __atomic_store_n(&w->sv->outside, outside, __ATOMIC_RELAXED);
}

typedef struct call {
        void (*fn)(void *arg);
        void *arg;
} call_t;

/* Called in any case, also when the pool is about to go: whoever waits for the answer gets it. */
static int call_job(void *arg, bool dropped)
{
        call_t *call = arg;

        (void)dropped;
        call->fn(call->arg);
        free(call);
        return -1;
}

void lc_worker_run(lc_worker_t *w, void (*fn)(void *arg), void *arg)
{
        call_t *call = lc_malloc(sizeof(*call));

        *call = (call_t){.fn = fn, .arg = arg};
        lc_pool_push(w->pool, call_job, call);
}

/* ---- connectors ---------------------------------------------------------------------------------- */

static connector_entry_t *find_connector(const lc_worker_t *w, const char *name)
{
        connector_entry_t *e;

        HASH_FIND_STR(w->connectors, name, e);
        return e;
}

static void drop_connector(lc_worker_t *w, connector_entry_t *e)
{
        HASH_DEL(w->connectors, e);
        lc_connector_unref(e->c);
        free(e->name);
        free(e);
}

typedef struct refusal { /* done with an error, on a pool thread */
        lc_worker_done_fn *done;
        lc_task_configs_fn *configs;
        void *arg;
        char *name;
        lc_err_t err;
} refusal_t;

static void refuse_now(void *arg)
{
        refusal_t *r = arg;

        if (r->done)
                r->done(r->arg, r->name, &r->err);
        if (r->configs)
                r->configs(r->arg, r->name, NULL, 0, &r->err);
        free(r->name);
        free(r);
}

static void refuse(lc_worker_t *w, const char *name, lc_worker_done_fn *done, lc_task_configs_fn *configs,
                   void *arg, const char *why)
{
        refusal_t *r = lc_calloc(1, sizeof(*r));

        r->done = done;
        r->configs = configs;
        r->arg = arg;
        r->name = lc_strdup(name);
        lc_err_set(&r->err, LC_FATAL, 0, why, name);
        lc_worker_run(w, refuse_now, r);
}

void lc_worker_start_connector(lc_worker_t *w, const char *name, const lc_props_t *config,
                               lc_target_state_t target, lc_worker_done_fn *done, void *arg)
{
        connector_entry_t *e = find_connector(w, name);

        if (e && lc_connector_exists(e->c)) {
                refuse(w, name, done, NULL, arg, "Connector with name %s already exists");
                return;
        }
        if (e)
                drop_connector(w, e);
        e = lc_calloc(1, sizeof(*e));
        e->name = lc_strdup(name);
        e->c = lc_connector_new(w->sv, w->pool, name, config);
        HASH_ADD_KEYPTR(hh, w->connectors, e->name, strlen(e->name), e);
        if (!w->by_policy)
                lc_restarts_afresh(w->sv->restarts, name, -1);
        lc_connector_target(e->c, target, done, arg);
}

/* Ends the scripts of all that were asked to stop and have not. */
static void end_scripts(lc_worker_t *w)
{
        for (const connector_entry_t *e = w->connectors; e; e = e->hh.next)
                if (lc_connector_stopping(e->c) && !lc_connector_ended(e->c) && lc_script_interrupt(e->c))
                        lc_log(LC_WARN, "WORKER", "Connector %s does not return from its script: ended",
                               e->name);
        for (const task_entry_t *e = w->tasks; e; e = e->hh.next)
                if (lc_task_stopping(e->t) && !lc_task_ended(e->t) && lc_script_interrupt(e->t))
                        lc_log(LC_WARN, "WORKER", "Task %s does not return from its script: ended", e->key);
}

/* Until it has ended or the time came: from the half of `total` ms on scripts that still run are ended. */
static bool wait_ended(lc_worker_t *w, bool (*has_ended)(void *x), void *x, int64_t end, int64_t total)
{
        int64_t step = total / 8 > 10 ? total / 8 : 10, next = end - total / 2;
        bool ended;

        pthread_mutex_lock(&w->sv->lock);
        for (;;) {
                int64_t now = lc_now_ms();

                ended = has_ended(x);
                if (ended || now >= end)
                        break;
                if (now >= next) {
                        next = now + step;
                        pthread_mutex_unlock(&w->sv->lock);
                        end_scripts(w);
                        pthread_mutex_lock(&w->sv->lock);
                } else {
                        lc_services_wait_until(w->sv, next < end ? next : end);
                }
        }
        pthread_mutex_unlock(&w->sv->lock);
        return ended;
}

static bool connector_ended(void *c)
{
        return lc_connector_ended(c);
}

static bool task_ended(void *t)
{
        return lc_task_ended(t);
}

static void finish_connector(lc_worker_t *w, connector_entry_t *e, int64_t end)
{
        if (!wait_ended(w, connector_ended, e->c, end, CONNECTOR_STOP_MS)) {
                lc_log(LC_ERROR, "WORKER",
                       "Connector '%s' failed to properly shut down, has become unresponsive, and "
                       "may be consuming external resources. Correct the configuration for this connector or "
                       "remove "
                       "the connector. After fixing the connector, it may be necessary to restart this "
                       "worker to "
                       "release any consumed resources.",
                       e->name);
                lc_connector_cancel(e->c);
        }
        drop_connector(w, e);
}

void lc_worker_stop_connector(lc_worker_t *w, const char *name)
{
        connector_entry_t *e = find_connector(w, name);

        if (!e) {
                lc_log(LC_WARN, "WORKER", "Ignoring stop request for unowned connector %s", name);
                return;
        }
        lc_log(LC_INFO, "WORKER", "Stopping connector %s", name);
        lc_connector_stop(e->c);
        finish_connector(w, e, lc_now_ms() + CONNECTOR_STOP_MS);
}

void lc_worker_connector_target(lc_worker_t *w, const char *name, lc_target_state_t target,
                                lc_worker_done_fn *done, void *arg)
{
        connector_entry_t *e = find_connector(w, name);

        if (!e) {
                if (done)
                        refuse(w, name, done, NULL, arg, "Connector %s is not running on this worker");
                return;
        }
        lc_connector_target(e->c, target, done, arg);
}

bool lc_worker_has_connector(const lc_worker_t *w, const char *name)
{
        const connector_entry_t *e = find_connector(w, name);

        return e && lc_connector_exists(e->c);
}

bool lc_worker_connector_started(const lc_worker_t *w, const char *name)
{
        const connector_entry_t *e = find_connector(w, name);

        return e && lc_connector_started(e->c);
}

void lc_worker_task_configs(lc_worker_t *w, const char *name, const lc_props_t *config,
                            lc_task_configs_fn *done, void *arg)
{
        connector_entry_t *e = find_connector(w, name);

        if (e)
                lc_connector_task_configs(e->c, config, done, arg);
        else
                refuse(w, name, NULL, done, arg, "Connector %s not found in this worker.");
}

/* ---- tasks --------------------------------------------------------------------------------------- */

static task_entry_t *find_task(const lc_worker_t *w, const char *name, int task)
{
        task_entry_t *e;
        char *key = lc_asprintf("%s-%d", name, task);

        HASH_FIND_STR(w->tasks, key, e);
        free(key);
        return e;
}

static void drop_task(lc_worker_t *w, task_entry_t *e)
{
        HASH_DEL(w->tasks, e);
        lc_task_unref(e->t);
        free(e->key);
        free(e);
}

int lc_worker_start_task(lc_worker_t *w, const char *name, int task, const lc_props_t *connector_config,
                         int task_count, const lc_props_t *task_config, lc_target_state_t target,
                         lc_err_t *err)
{
        task_entry_t *e = find_task(w, name, task);
        lc_err_t mine;
        char *trace;

        lc_err_clear(&mine);
        if (e)
                return lc_err_set(err, LC_FATAL, 0, "Task already exists in this worker: %s-%d", name, task);
        lc_log(LC_INFO, "WORKER", "Creating task %s-%d", name, task);
        e = lc_calloc(1, sizeof(*e));
        e->key = lc_asprintf("%s-%d", name, task);
        if (!w->by_policy)
                lc_restarts_afresh(w->sv->restarts, name, task);
        e->t = lc_task_new(w->sv, name, task, connector_config, task_count, task_config, target);
        if (!lc_task_start_thread(e->t, &mine)) {
                HASH_ADD_KEYPTR(hh, w->tasks, e->key, strlen(e->key), e);
                return 0;
        }
        lc_log(LC_ERROR, "WORKER", "Failed to start task %s-%d: %s", name, task, mine.msg);
        trace = lc_err_trace(&mine);
        lc_services_status(w->sv, name, task, LC_FAILED, trace, NULL, NULL);
        free(trace);
        lc_task_unref(e->t);
        free(e->key);
        free(e);
        if (err && !err->kind)
                *err = mine;
        return -1;
}

static void finish_task(lc_worker_t *w, task_entry_t *e, int64_t end)
{
        if (wait_ended(w, task_ended, e->t, end, w->stop_ms)) {
                pthread_join(e->t->thread, NULL);
        } else {
                lc_log(LC_ERROR, "WORKER", "Graceful stop of task %s failed.", e->key);
                lc_task_cancel(e->t);
                pthread_detach(e->t->thread);
        }
        drop_task(w, e);
}

static task_entry_t *task_of(const lc_worker_t *w, const lc_work_t *ids, size_t i)
{
        return ids->v[i].task < 0 ? NULL : find_task(w, ids->v[i].connector, ids->v[i].task);
}

void lc_worker_ask_tasks(lc_worker_t *w, const lc_work_t *ids)
{
        for (size_t i = 0; i < ids->n; i++) {
                task_entry_t *e = task_of(w, ids, i);

                if (e) {
                        lc_log(LC_INFO, "WORKER", "Stopping task %s", e->key);
                        lc_task_stop(e->t);
                } else if (ids->v[i].task >= 0) {
                        lc_log(LC_DEBUG, "WORKER", "Ignoring stop request for unowned task %s-%d",
                               ids->v[i].connector, (int)ids->v[i].task);
                }
        }
}

void lc_worker_set_stop_ms(lc_worker_t *w, int64_t ms)
{
        w->stop_ms = ms;
}

void lc_worker_stop_tasks(lc_worker_t *w, const lc_work_t *ids)
{
        int64_t end;

        lc_worker_ask_tasks(w, ids);
        end = lc_now_ms() + w->stop_ms;
        for (size_t i = 0; i < ids->n; i++) {
                task_entry_t *e = task_of(w, ids, i);
                if (e)
                        finish_task(w, e, end);
        }
}

void lc_worker_tasks_target(lc_worker_t *w, const char *connector, lc_target_state_t target)
{
        for (task_entry_t *e = w->tasks; e; e = e->hh.next)
                if (!strcmp(e->t->connector, connector))
                        lc_task_set_target(e->t, target);
}

int lc_worker_source_offsets(lc_worker_t *w, const char *name, const lc_props_t *config,
                             const volatile int *stop,
                             void (*fn)(void *arg, const char *partition, const char *offset), void *arg,
                             lc_err_t *err)
{
        lc_props_t *resolved = lc_config_resolve(w->sv->config, config, err);
        lc_source_offsets_t *o =
                resolved ? lc_source_offsets_open(w->sv, name, -1, resolved, stop, err) : NULL;
        int rc = o ? lc_source_offsets_list(o, fn, arg, err) : -1;

        lc_source_offsets_close(o);
        lc_props_free(resolved);
        return rc;
}

void lc_worker_running(const lc_worker_t *w, lc_work_t *out)
{
        for (const connector_entry_t *e = w->connectors; e; e = e->hh.next)
                if (lc_connector_exists(e->c))
                        lc_work_add(out, e->name, -1);
        for (const task_entry_t *e = w->tasks; e; e = e->hh.next)
                lc_work_add(out, e->t->connector, e->t->id);
}

static void restart_at(int64_t at, int64_t now, const char *name, int task, lc_work_t *due, int64_t *next)
{
        if (at && at <= now)
                lc_work_add(due, name, task);
        else if (at && at < *next)
                *next = at;
}

void lc_worker_restarts(const lc_worker_t *w, int64_t now, lc_work_t *due, int64_t *next)
{
        *next = INT64_MAX;
        for (const connector_entry_t *e = w->connectors; e; e = e->hh.next)
                restart_at(lc_connector_restart_at(e->c), now, e->name, -1, due, next);
        for (const task_entry_t *e = w->tasks; e; e = e->hh.next)
                restart_at(lc_task_restart_at(e->t), now, e->t->connector, e->t->id, due, next);
}

void lc_worker_restarting(lc_worker_t *w, const char *name, int task)
{
        w->by_policy = true;
        lc_restarts_begun(w->sv->restarts, name, task, lc_now_ms());
}

void lc_worker_restarted(lc_worker_t *w)
{
        w->by_policy = false;
}

void lc_worker_afresh(lc_worker_t *w, const char *name)
{
        lc_restarts_afresh(w->sv->restarts, name, LC_RESTARTS_ALL);
}

void lc_worker_forget(lc_worker_t *w, const char *name)
{
        lc_restarts_forget(w->sv->restarts, name);
}

void lc_worker_outdated(const lc_worker_t *w, lc_work_t *out)
{
        const lc_plugins_t *now = lc_plugins_current(w->sv->plugins);

        for (const connector_entry_t *e = w->connectors; e; e = e->hh.next)
                if (lc_connector_outdated(e->c, now))
                        lc_work_add(out, e->name, -1);
        for (const task_entry_t *e = w->tasks; e; e = e->hh.next)
                if (lc_task_outdated(e->t, now))
                        lc_work_add(out, e->t->connector, e->t->id);
        lc_plugins_unref(now);
}

void lc_worker_free(lc_worker_t *w)
{
        connector_entry_t *c, *cnext;
        task_entry_t *t, *tnext;
        int64_t end;

        if (!w)
                return;
        for (c = w->connectors; c; c = c->hh.next)
                lc_connector_stop(c->c);
        for (t = w->tasks; t; t = t->hh.next)
                lc_task_stop(t->t);
        end = lc_now_ms() + CONNECTOR_STOP_MS;
        HASH_ITER(hh, w->connectors, c, cnext)
        finish_connector(w, c, end);
        end = lc_now_ms() + w->stop_ms;
        HASH_ITER(hh, w->tasks, t, tnext)
        finish_task(w, t, end);
        lc_pool_free(w->pool, POOL_STOP_MS);
        lc_services_shut(w->sv);
        lc_services_unref(w->sv);
        free(w);
}
