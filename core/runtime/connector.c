/* connector.c - see connector.h. */
#include "runtime/connector.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/waker.h"
#include "config/connector_config.h"
#include "runtime/source_offsets.h"
#include "runtime/task_configs.h"
#include "script/script.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RETRY_MIN_MS = 1000, RETRY_MAX_MS = 60000 };
enum { INIT, STARTED, PAUSED, STOPPED, FAILED };

typedef struct change {
        bool set;
        lc_target_state_t target;
        lc_worker_done_fn *done;
        void *arg;
} change_t;

struct lc_connector {
        int refs; /* atomic */
        lc_services_t *sv;
        char *name;
        lc_props_t *raw;
        lc_strand_t *strand;
        bool strand_closed; /* by cancel */
        lc_waker_t stop;
        volatile int stopping; /* atomic; the script reads it */
        int state;             /* atomic */
        bool missing;          /* atomic: it could not be made */
        bool ended;            /* atomic: the stop is over */
        int64_t restart_at;    /* atomic: when a FAILED one is restarted; 0 not */
        int64_t began_ms;      /* atomic: when it was started */
        /* pool threads only */
        lc_props_t *config;
        lc_source_offsets_t *offsets; /* of ctx.offsets, once it was asked for */
        const lc_plugin_t *plugin;    /* of `plugins` */
        lc_script_t *script;
        lc_script_host_t host;
        change_t current;
        bool calling; /* atomic: `current` belongs to a call that has not returned */
        int retry_ms;

        pthread_mutex_t lock;
        change_t pending;
        bool cancelled;
        const lc_plugins_t *plugins; /* a reference, set once by a pool thread, after `config` */
};

lc_connector_t *lc_connector_new(lc_services_t *sv, lc_pool_t *pool, const char *name,
                                 const lc_props_t *config)
{
        lc_connector_t *c = lc_calloc(1, sizeof(*c));

        c->refs = 1;
        c->sv = lc_services_ref(sv);
        c->name = lc_strdup(name);
        c->raw = lc_props_copy(config);
        c->strand = lc_strand_new(pool);
        if (lc_waker_init(&c->stop))
                lc_log(LC_WARN, "WORKER", "No descriptor for connector %s: its waits will not be interrupted",
                       name);
        pthread_mutex_init(&c->lock, NULL);
        return c;
}

static lc_connector_t *ref(lc_connector_t *c)
{
        __atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED);
        return c;
}

void lc_connector_unref(lc_connector_t *c)
{
        if (!c || __atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL))
                return;
        lc_script_free(c->script);
        lc_source_offsets_close(c->offsets);
        if (!c->strand_closed)
                lc_strand_close(c->strand);
        lc_waker_close(&c->stop);
        lc_props_free(c->raw);
        lc_props_free(c->config);
        lc_plugins_unref(c->plugins);
        pthread_mutex_destroy(&c->lock);
        lc_services_unref(c->sv);
        free(c->name);
        free(c);
}

static int state_of(const lc_connector_t *c)
{
        return __atomic_load_n(&c->state, __ATOMIC_ACQUIRE);
}

static void set_state(lc_connector_t *c, int state)
{
        __atomic_store_n(&c->state, state, __ATOMIC_RELEASE);
}

bool lc_connector_exists(const lc_connector_t *c)
{
        return !__atomic_load_n(&c->missing, __ATOMIC_ACQUIRE);
}

bool lc_connector_started(const lc_connector_t *c)
{
        return state_of(c) == STARTED;
}

bool lc_connector_stopping(const lc_connector_t *c)
{
        return __atomic_load_n(&c->stopping, __ATOMIC_ACQUIRE) != 0;
}

bool lc_connector_ended(lc_connector_t *c)
{
        return __atomic_load_n(&c->ended, __ATOMIC_ACQUIRE);
}

bool lc_connector_outdated(lc_connector_t *c, const lc_plugins_t *now)
{
        const lc_plugins_t *was;

        pthread_mutex_lock(&c->lock);
        was = c->plugins;
        pthread_mutex_unlock(&c->lock);
        return was && lc_plugins_differ(was, now, c->config, NULL, false);
}

static bool is_cancelled(lc_connector_t *c)
{
        bool yes;

        pthread_mutex_lock(&c->lock);
        yes = c->cancelled;
        pthread_mutex_unlock(&c->lock);
        return yes;
}

/* Java has no version in UNASSIGNED, nor before the connector was made. */
static void tell(lc_connector_t *c, lc_state_t state, const char *trace)
{
        const char *version = c->script && state != LC_UNASSIGNED ? c->plugin->version : NULL;

        pthread_mutex_lock(&c->lock);
        if (!c->cancelled)
                lc_services_status(c->sv, c->name, -1, state, trace, version, NULL);
        pthread_mutex_unlock(&c->lock);
}

static void fail(lc_connector_t *c, const lc_err_t *err)
{
        char *trace = lc_err_trace(err);
        const char *version = c->script ? c->plugin->version : NULL;
        int64_t began = __atomic_load_n(&c->began_ms, __ATOMIC_RELAXED), at = 0;
        char *shown = NULL;

        lc_log(LC_ERROR, "WORKER", "WorkerConnector{id=%s} %s", c->name, trace);
        pthread_mutex_lock(&c->lock);
        if (!c->cancelled && !lc_connector_stopping(c))
                at = lc_services_failed(c->sv, c->name, -1, c->config ? c->config : c->raw, err,
                                        began ? lc_now_ms() - began : 0, &shown);
        __atomic_store_n(&c->restart_at, at, __ATOMIC_RELEASE);
        set_state(c, FAILED);
        if (!c->cancelled)
                lc_services_status(c->sv, c->name, -1, LC_FAILED, trace, version, shown);
        pthread_mutex_unlock(&c->lock);
        if (at)
                lc_services_tell_failed(c->sv);
        free(shown);
        free(trace);
}

int64_t lc_connector_restart_at(const lc_connector_t *c)
{
        return state_of(c) == FAILED && !lc_connector_stopping(c)
                       ? __atomic_load_n(&c->restart_at, __ATOMIC_ACQUIRE)
                       : 0;
}

static void answer(const lc_connector_t *c, change_t *ch, const lc_err_t *err)
{
        if (ch->set && ch->done)
                ch->done(ch->arg, c->name, err);
        ch->set = false;
}

/* ---- the script's context ----------------------------------------------------------------------- */

static int host_offset_get(void *arg, const char *partition, lc_buf_t *out, lc_err_t *err)
{
        lc_connector_t *c = arg;

        if (!c->offsets)
                c->offsets = lc_source_offsets_open(c->sv, c->name, -1, c->config, &c->stopping, err);
        return c->offsets ? lc_source_offsets_get(c->offsets, partition, out, err) : -1;
}

static void host_reconfigure(void *arg)
{
        lc_connector_t *c = arg;

        if (is_cancelled(c) || !c->sv->reconfigure || !lc_services_enter(c->sv))
                return;
        c->sv->reconfigure(c->sv->arg, c->name);
        lc_services_leave(c->sv);
}

static void host_raise(void *arg, const lc_err_t *err)
{
        fail(arg, err);
}

/* ---- transitions, on pool threads ---------------------------------------------------------------- */

static int make(lc_connector_t *c, lc_err_t *err)
{
        lc_log(LC_INFO, "WORKER", "Creating connector %s of type %s", c->name,
               lc_props_get_or(c->raw, "connector.class", "null"));
        c->config = lc_config_resolve(c->sv->config, c->raw, err);
        if (c->config) {
                pthread_mutex_lock(&c->lock);
                c->plugins = lc_plugins_current(c->sv->plugins);
                pthread_mutex_unlock(&c->lock);
                c->plugin = lc_services_connector_plugin(c->plugins, c->config, err);
        }
        c->host = (lc_script_host_t){.arg = c,
                                     .connector = c->name,
                                     .task = -1,
                                     .stop = c->stop.fd >= 0 ? &c->stop : NULL,
                                     .stopping = &c->stopping,
                                     .reconfigure = host_reconfigure,
                                     .raise = host_raise};
        if (c->plugin && c->plugin->type == LC_PLUGIN_SOURCE)
                c->host.offset_get = host_offset_get;
        if (c->plugin)
                c->script = lc_script_new(c->plugin, LC_SCRIPT_CONNECTOR, &c->host, err);
        if (c->script)
                return 0;
        fail(c, err);
        __atomic_store_n(&c->missing, true, __ATOMIC_RELEASE);
        return -1;
}

/* 0, -1 failed, 1 to be tried again. */
static int start(lc_connector_t *c, lc_err_t *err)
{
        char *trace;

        if (!lc_script_start(c->script, c->config, err)) {
                set_state(c, STARTED);
                __atomic_store_n(&c->began_ms, lc_now_ms(), __ATOMIC_RELAXED);
                tell(c, LC_RUNNING, NULL);
                return 0;
        }
        if (err->kind != LC_RETRIABLE) {
                fail(c, err);
                return -1;
        }
        trace = lc_err_trace(err);
        tell(c, LC_UNASSIGNED, trace);
        free(trace);
        return 1;
}

static int suspend(lc_connector_t *c, bool pause, lc_err_t *err)
{
        int state = pause ? PAUSED : STOPPED;

        if (state_of(c) == state)
                return 0;
        if (state_of(c) == STARTED && lc_script_stop(c->script, err)) {
                lc_log(LC_ERROR, "WORKER", "WorkerConnector{id=%s} Error while shutting down connector: %s",
                       c->name, err->msg);
                if (pause) {
                        fail(c, err);
                        return -1;
                }
                lc_err_clear(err); /* stopped is stopped, whatever stop() says */
        }
        set_state(c, state);
        tell(c, pause ? LC_PAUSED : LC_STOPPED, NULL);
        return 0;
}

static int change(lc_connector_t *c, lc_target_state_t target, lc_err_t *err)
{
        if (!c->script && (!lc_connector_exists(c) || make(c, err))) {
                if (!err->kind)
                        lc_err_set(err, LC_FATAL, 0, "Connector %s could not be created", c->name);
                return -1;
        }
        if (state_of(c) == FAILED && target != LC_TARGET_STOPPED)
                return lc_err_set(
                        err, LC_FATAL, 0,
                        "WorkerConnector{id=%s} Cannot transition connector to %s since it has failed",
                        c->name, lc_target_state_name(target));
        if (target == LC_TARGET_STARTED)
                return state_of(c) == STARTED ? 0 : start(c, err);
        return suspend(c, target == LC_TARGET_PAUSED, err);
}

static void preempted(const lc_connector_t *c, change_t *old, lc_target_state_t by)
{
        lc_err_t err;

        if (!old->set)
                return;
        lc_err_clear(&err);
        lc_err_set(&err, LC_FATAL, 0,
                   "Could not begin changing connector state to %s before another request to change state "
                   "was made; "
                   "the new request (which is to change the state to %s) has pre-empted this one",
                   lc_target_state_name(old->target), lc_target_state_name(by));
        answer(c, old, &err);
}

static void abandoned(lc_connector_t *c, change_t *old)
{
        lc_err_t err;

        if (!old->set)
                return;
        lc_err_clear(&err);
        lc_err_set(&err, LC_FATAL, 0,
                   "Could not begin changing connector state to %s as the connector has been scheduled for "
                   "shutdown",
                   lc_target_state_name(old->target));
        answer(c, old, &err);
}

static change_t take_pending(lc_connector_t *c)
{
        change_t ch;

        pthread_mutex_lock(&c->lock);
        ch = c->pending;
        c->pending.set = false;
        pthread_mutex_unlock(&c->lock);
        return ch;
}

static void context(const lc_connector_t *c)
{
        char text[120];

        snprintf(text, sizeof(text), "%.100s|worker", c->name);
        lc_log_context(text);
        lc_script_owner(c, c->sv->connector_call_ms); /* the pool takes both back */
}

static int change_job(void *arg, bool dropped)
{
        lc_connector_t *c = arg;
        change_t next = take_pending(c);
        lc_err_t err;
        int rc;

        if (dropped || __atomic_load_n(&c->stopping, __ATOMIC_ACQUIRE)) {
                if (!__atomic_load_n(&c->calling, __ATOMIC_ACQUIRE))
                        abandoned(c, &c->current);
                abandoned(c, &next);
                lc_connector_unref(c);
                return -1;
        }
        context(c);
        if (next.set) {
                preempted(c, &c->current, next.target);
                c->current = next;
                c->retry_ms = RETRY_MIN_MS;
        }
        if (!c->current.set) {
                lc_connector_unref(c);
                return -1;
        }
        lc_err_clear(&err);
        __atomic_store_n(&c->calling, true, __ATOMIC_RELEASE);
        rc = change(c, c->current.target, &err);
        __atomic_store_n(&c->calling, false, __ATOMIC_RELEASE);
        if (rc > 0) {
                int delay = c->retry_ms;
                lc_log(LC_WARN, "WORKER",
                       "WorkerConnector{id=%s} start failed and is tried again in %d ms: %s", c->name, delay,
                       err.msg);
                c->retry_ms = lc_backoff(delay, RETRY_MIN_MS, RETRY_MAX_MS);
                return delay;
        }
        answer(c, &c->current, rc ? &err : NULL);
        lc_connector_unref(c);
        return -1;
}

void lc_connector_target(lc_connector_t *c, lc_target_state_t target, lc_worker_done_fn *done, void *arg)
{
        change_t old;

        pthread_mutex_lock(&c->lock);
        old = c->pending;
        c->pending = (change_t){.set = true, .target = target, .done = done, .arg = arg};
        pthread_mutex_unlock(&c->lock);
        preempted(c, &old, target);
        lc_strand_push(c->strand, change_job, ref(c));
        lc_strand_kick(c->strand);
}

static int stop_job(void *arg, bool dropped)
{
        lc_connector_t *c = arg;
        change_t next = take_pending(c);
        lc_services_t *sv;
        lc_err_t err;

        abandoned(c, &next);
        if (dropped) {
                lc_connector_unref(c);
                return -1;
        }
        abandoned(c, &c->current);
        context(c);
        lc_err_clear(&err);
        if (state_of(c) == STARTED && lc_script_stop(c->script, &err)) {
                lc_log(LC_ERROR, "WORKER", "WorkerConnector{id=%s} Error while shutting down connector: %s",
                       c->name, err.msg);
                fail(c, &err);
        } else if (c->script) {
                set_state(c, STOPPED);
                tell(c, LC_UNASSIGNED, NULL);
                lc_log(LC_INFO, "WORKER", "Completed shutdown for WorkerConnector{id=%s}", c->name);
        }
        lc_script_free(c->script);
        lc_source_offsets_close(c->offsets);
        c->offsets = NULL;
        c->script = NULL;
        sv = lc_services_ref(c->sv);
        __atomic_store_n(&c->ended, true, __ATOMIC_RELEASE);
        pthread_mutex_lock(&sv->lock);
        pthread_cond_broadcast(&sv->changed);
        pthread_mutex_unlock(&sv->lock);
        lc_connector_unref(c);
        lc_services_unref(sv);
        return -1;
}

void lc_connector_stop(lc_connector_t *c)
{
        __atomic_store_n(&c->stopping, 1, __ATOMIC_RELEASE);
        if (c->stop.fd >= 0)
                lc_waker_wake(&c->stop);
        lc_strand_push(c->strand, stop_job, ref(c));
        lc_strand_kick(c->strand);
}

void lc_connector_cancel(lc_connector_t *c)
{
        bool missing = !lc_connector_exists(c);

        pthread_mutex_lock(&c->lock);
        c->cancelled = true;
        pthread_mutex_unlock(&c->lock);
        if (!missing)
                lc_services_status(c->sv, c->name, -1, LC_UNASSIGNED, NULL, NULL, NULL);
        lc_script_interrupt(c);
        c->strand_closed = true;
        lc_strand_close(c->strand);
}

/* ---- task configs -------------------------------------------------------------------------------- */

typedef struct generate {
        lc_connector_t *c;
        lc_props_t *raw;
        lc_task_configs_fn *done;
        void *arg;
} generate_t;

static int generate(lc_connector_t *c, const lc_props_t *raw, lc_props_t ***out, int *n, lc_err_t *err)
{
        lc_props_t *resolved = NULL;
        int rc = -1;

        *out = NULL;
        *n = 0;
        if (!c->script) {
                lc_err_set(err, LC_FATAL, 0, "Connector %s is not running on this worker", c->name);
                goto done;
        }
        resolved = lc_config_resolve(c->sv->config, raw, err);
        if (!resolved)
                goto done;
        if (lc_script_task_configs(c->script, resolved, (int)lc_connector_config_int(resolved, "tasks.max"),
                                   out, n, err)) {
                if (err->code == LC_SCRIPT_ENDED)
                        fail(c, err);
                goto done;
        }
        if (lc_tasks_max_check(c->name, resolved, *n, err)) {
                fail(c, err);
                goto done;
        }
        for (int i = 0; i < *n; i++) {
                lc_props_t *made = (*out)[i];
                (*out)[i] = lc_task_config_finish(c->plugin, raw, resolved, made);
                lc_props_free(made);
        }
        rc = 0;
done:
        lc_props_free(resolved);
        if (rc && *out) {
                for (int i = 0; i < *n; i++)
                        lc_props_free((*out)[i]);
                free(*out);
                *out = NULL;
                *n = 0;
        }
        return rc;
}

static int generate_job(void *arg, bool dropped)
{
        generate_t *g = arg;
        lc_props_t **configs = NULL;
        lc_err_t err;
        int n = 0;

        lc_err_clear(&err);
        if (dropped || __atomic_load_n(&g->c->stopping, __ATOMIC_ACQUIRE)) {
                lc_err_set(&err, LC_FATAL, 0, "Connector %s has been shut down", g->c->name);
        } else {
                context(g->c);
                generate(g->c, g->raw, &configs, &n, &err);
        }
        g->done(g->arg, g->c->name, configs, n, err.kind ? &err : NULL);
        lc_props_free(g->raw);
        lc_connector_unref(g->c);
        free(g);
        return -1;
}

void lc_connector_task_configs(lc_connector_t *c, const lc_props_t *config, lc_task_configs_fn *done,
                               void *arg)
{
        generate_t *g = lc_malloc(sizeof(*g));

        *g = (generate_t){.c = ref(c), .raw = lc_props_copy(config), .done = done, .arg = arg};
        lc_strand_push(c->strand, generate_job, g);
}
