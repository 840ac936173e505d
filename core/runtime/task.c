/* task.c - see task.h: the life of a task's thread. */
#include "runtime/task.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/thread.h"
#include "config/client_config.h"
#include "config/connector_config.h"
#include "runtime/task_configs.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A script that recurses through C (string.format, __tostring) reaches the end of Lua's stack with 2.3 MB of
 * C's; what is not touched costs nothing. */
enum { STACK = 4 * 1024 * 1024, RETRY_MIN_MS = 1000, RETRY_MAX_MS = 60000, HOLD_MS = 100, GROUP_MS = 60000 };

lc_task_t *lc_task_new(lc_services_t *sv, const char *connector, int id, const lc_props_t *connector_config,
                       int task_count, const lc_props_t *task_config, lc_target_state_t target)
{
        lc_task_t *t = lc_calloc(1, sizeof(*t));

        t->refs = 1;
        t->sv = lc_services_ref(sv);
        t->connector = lc_strdup(connector);
        t->id = id;
        t->task_count = task_count;
        t->raw_config = lc_props_copy(connector_config);
        t->raw_task = lc_props_copy(task_config);
        t->target = target;
        t->stop.fd = t->waker.fd = -1;
        snprintf(t->label, sizeof(t->label), "WorkerTask{id=%.40s-%d}", connector, id);
        pthread_mutex_init(&t->lock, NULL);
        lc_cond_init(&t->cancelling);
        return t;
}

lc_task_t *lc_task_ref(lc_task_t *t)
{
        __atomic_add_fetch(&t->refs, 1, __ATOMIC_RELAXED);
        return t;
}

void lc_task_unref(lc_task_t *t)
{
        if (!t || __atomic_sub_fetch(&t->refs, 1, __ATOMIC_ACQ_REL))
                return;
        lc_waker_close(&t->stop);
        lc_waker_close(&t->waker);
        lc_props_free(t->raw_config);
        lc_props_free(t->raw_task);
        lc_props_free(t->config);
        lc_props_free(t->task_config);
        pthread_cond_destroy(&t->cancelling);
        pthread_mutex_destroy(&t->lock);
        lc_plugins_unref(t->plugins);
        lc_services_unref(t->sv);
        free(t->connector);
        free(t);
}

static void wake(lc_task_t *t)
{
        lc_waker_wake(&t->stop);
        lc_waker_wake(&t->waker);
}

void lc_task_stop(lc_task_t *t)
{
        __atomic_store_n(&t->stopping, 1, __ATOMIC_RELEASE);
        pthread_mutex_lock(&t->lock);
        pthread_cond_broadcast(&t->cancelling);
        pthread_mutex_unlock(&t->lock);
        wake(t);
}

void lc_task_cancel(lc_task_t *t)
{
        __atomic_store_n(&t->stopping, 1, __ATOMIC_RELEASE);
        pthread_mutex_lock(&t->lock);
        t->cancelled = true;
        pthread_cond_broadcast(&t->cancelling);
        pthread_mutex_unlock(&t->lock);
        wake(t);
        lc_script_interrupt(t);
}

void lc_task_set_target(lc_task_t *t, lc_target_state_t target)
{
        bool changed;

        pthread_mutex_lock(&t->lock);
        changed = t->target != target;
        t->target = target;
        pthread_mutex_unlock(&t->lock);
        if (changed)
                wake(t);
}

lc_target_state_t lc_task_target(lc_task_t *t)
{
        lc_target_state_t target;

        pthread_mutex_lock(&t->lock);
        target = t->target;
        pthread_mutex_unlock(&t->lock);
        return target;
}

bool lc_task_outdated(lc_task_t *t, const lc_plugins_t *now)
{
        const lc_plugins_t *was;

        pthread_mutex_lock(&t->lock);
        was = t->plugins;
        pthread_mutex_unlock(&t->lock);
        /* before it has some it will take the newest; the config was there first */
        return was && lc_plugins_differ(was, now, t->config, lc_worker_config_originals(t->sv->config), true);
}

bool lc_task_cancelled(lc_task_t *t)
{
        bool yes;

        pthread_mutex_lock(&t->lock);
        yes = t->cancelled;
        pthread_mutex_unlock(&t->lock);
        return yes;
}

bool lc_task_ended(lc_task_t *t)
{
        return __atomic_load_n(&t->ended, __ATOMIC_ACQUIRE);
}

/* As Java: no version before the task was built, and none in UNASSIGNED. */
void lc_task_status(lc_task_t *t, lc_state_t state, const char *trace)
{
        const char *version = t->built && state != LC_UNASSIGNED ? t->plugin->version : NULL;

        pthread_mutex_lock(&t->lock);
        if (!t->cancelled)
                lc_services_status(t->sv, t->connector, t->id, state, trace, version, NULL);
        pthread_mutex_unlock(&t->lock);
}

/* Its last status, and what its restart.policy makes of it. */
static void report_failed(lc_task_t *t, const lc_err_t *err, const char *trace)
{
        const char *version = t->built ? t->plugin->version : NULL;
        int64_t now = lc_now_ms(), at = 0;
        char *shown = NULL;

        pthread_mutex_lock(&t->lock);
        if (!t->cancelled) {
                at = lc_services_failed(t->sv, t->connector, t->id, t->config ? t->config : t->raw_config,
                                        err, t->began_ms ? now - t->began_ms : 0, &shown);
                lc_services_status(t->sv, t->connector, t->id, LC_FAILED, trace, version, shown);
        }
        pthread_mutex_unlock(&t->lock);
        __atomic_store_n(&t->restart_at, at, __ATOMIC_RELEASE);
        free(shown);
}

int64_t lc_task_restart_at(const lc_task_t *t)
{
        return __atomic_load_n(&t->ended, __ATOMIC_ACQUIRE)
                       ? __atomic_load_n(&t->restart_at, __ATOMIC_ACQUIRE)
                       : 0;
}

void lc_task_rearm(lc_task_t *t)
{
        lc_waker_clear(&t->stop);
        if (lc_task_stopping(t))
                lc_waker_wake(&t->stop);
}

bool lc_task_may_work(lc_task_t *t)
{
        bool yes = lc_services_may_work(t->sv);

        if (yes != t->held)
                return yes;
        if (yes)
                lc_log(LC_INFO, "TASK", "%s The worker is a member of its group again: going on", t->label);
        else
                lc_log(LC_WARN, "TASK",
                       "%s The worker has not heard from its group for a session: nothing is written until "
                       "it has",
                       t->label);
        t->held = !yes;
        return yes;
}

void lc_task_hold(lc_task_t *t)
{
        lc_waker_wait(&t->waker, HOLD_MS);
        lc_waker_clear(&t->waker);
}

/* The operator's delay. */
static lc_wait_t wait_between(void *arg, int64_t ms)
{
        lc_task_t *t = arg;
        int64_t end = lc_now_ms() + ms;
        lc_wait_t waited;

        pthread_mutex_lock(&t->lock);
        while (!t->cancelled && !lc_task_stopping(t) && lc_cond_wait_until(&t->cancelling, &t->lock, end))
                ;
        waited = t->cancelled ? LC_WAIT_CANCELLED : lc_task_stopping(t) ? LC_WAIT_STOPPED : LC_WAITED;
        pthread_mutex_unlock(&t->lock);
        return waited;
}

int lc_task_retry(lc_task_t *t, const char *what, int (*step)(lc_task_t *t, lc_err_t *err), lc_err_t *err)
{
        int delay = RETRY_MIN_MS;

        for (t->after_ms = -1; step(t, err); t->after_ms = -1) {
                int64_t wait = t->after_ms >= 0 ? t->after_ms : delay, end = lc_now_ms() + wait, left;
                char *trace;

                if (err->kind != LC_RETRIABLE)
                        return -1;
                lc_log(LC_WARN, "TASK", "%s %s failed and is tried again in %lld ms: %s", t->label, what,
                       (long long)wait, err->msg);
                trace = lc_err_trace(err);
                lc_task_status(t, LC_UNASSIGNED, trace);
                free(trace);
                lc_err_clear(err);
                while (!lc_task_stopping(t) && (left = end - lc_now_ms()) > 0) {
                        lc_task_rearm(t);
                        lc_waker_wait(&t->stop, (int)left);
                }
                if (lc_task_stopping(t))
                        return 1;
                delay = lc_backoff(delay, RETRY_MIN_MS, RETRY_MAX_MS);
        }
        return 0;
}

static int host_offset_get(void *arg, const char *partition, lc_buf_t *out, lc_err_t *err)
{
        lc_task_t *t = arg;

        return t->ops->offset_get(t, partition, out, err);
}

static void host_timeout(void *arg, int64_t ms)
{
        ((lc_task_t *)arg)->after_ms = ms;
}

/* What stays the same however often the task begins again. */
static int resolve(lc_task_t *t, lc_err_t *err)
{
        t->config = lc_config_resolve(t->sv->config, t->raw_config, err);
        if (!t->config)
                return -1;
        t->task_config = lc_config_resolve(t->sv->config, t->raw_task, err);
        if (!t->task_config)
                return -1;
        pthread_mutex_lock(&t->lock);
        t->plugins = lc_plugins_current(t->sv->plugins);
        pthread_mutex_unlock(&t->lock);
        t->plugin = lc_services_connector_plugin(t->plugins, t->config, err);
        if (!t->plugin)
                return -1;
        t->ops = t->plugin->type == LC_PLUGIN_SOURCE ? &lc_source_task_ops : &lc_sink_task_ops;
        snprintf(t->label, sizeof(t->label), "%s{id=%.40s-%d}", t->ops->java_class, t->connector, t->id);
        return lc_tasks_max_check(t->connector, t->config, t->task_count, err);
}

static int build(lc_task_t *t, lc_err_t *err)
{
        const char *size;

        lc_operator_init(&t->op, t->connector, t->id, t->ops->role == LC_SCRIPT_SINK_TASK, t->config);
        t->op.wait = wait_between;
        t->op.wait_arg = t;
        if (t->sv->local) { /* without Kafka letters are shown to a person */
                lc_operator_add(&t->op, t->sv->local->reporter(t->sv->local->arg));
        } else {
                if (lc_letters_new(t->sv->config, t->connector, t->id, t->op.sink, t->config, &t->waker,
                                   &t->letters, err))
                        return -1;
                if (t->letters)
                        lc_operator_add(&t->op, lc_letters_reporter(t->letters));
        }
        if (!(t->key = lc_services_converter(t->sv, t->plugins, t->config, "key", err)) ||
            !(t->value = lc_services_converter(t->sv, t->plugins, t->config, "value", err)) ||
            !(t->header = lc_services_converter(t->sv, t->plugins, t->config, "header", err)))
                return -1;
        size = lc_client_java_value(t->sv->config, LC_CLIENT_PRODUCER, t->config, "max.request.size");
        t->host = (lc_script_host_t){.arg = t,
                                     .connector = t->connector,
                                     .task = t->id,
                                     .stop = &t->stop,
                                     .stopping = &t->stopping,
                                     .max_request_size = size ? atoll(size) : 1048576};
        if (t->ops->role == LC_SCRIPT_SOURCE_TASK) {
                t->host.offset_get = host_offset_get;
                t->host.timeout = host_timeout;
        }
        t->chain = lc_chain_new(t->plugins, t->config, t->ops->role == LC_SCRIPT_SOURCE_TASK, &t->host, err);
        if (!t->chain)
                return -1;
        if (t->ops->build(t, err))
                return -1;
        t->script = lc_script_new(t->plugin, t->ops->role, &t->host, err);
        if (!t->script)
                return -1;
        t->built = true;
        return 0;
}

static int open_letters(lc_task_t *t, lc_err_t *err)
{
        return lc_letters_open(t->letters, err);
}

static int script_start(lc_task_t *t, lc_err_t *err)
{
        return lc_script_start(t->script, t->task_config, err);
}

/* false: stopped while waiting. */
static bool wait_while_paused(lc_task_t *t)
{
        bool told = false;

        while (!lc_task_stopping(t) && lc_task_target(t) == LC_TARGET_PAUSED) {
                if (!told)
                        lc_task_status(t, LC_PAUSED, NULL);
                told = true;
                lc_waker_wait(&t->waker, -1);
                lc_waker_clear(&t->waker);
        }
        lc_task_rearm(t);
        return !lc_task_stopping(t);
}

/* 0 ended, -1 failed. */
static int run(lc_task_t *t, bool *started, lc_err_t *err)
{
        int rc;

        if (build(t, err))
                return -1;
        if (lc_task_stopping(t) || lc_task_target(t) == LC_TARGET_STOPPED || !wait_while_paused(t))
                return 0;
        rc = lc_task_retry(t, "The set-up of the dead letter queue", open_letters, err);
        if (!rc && t->ops->prepare)
                rc = t->ops->prepare(t, err);
        if (rc)
                return rc < 0 ? -1 : 0;
        *started = true;
        rc = lc_task_retry(t, "start", script_start, err);
        if (rc)
                return rc < 0 ? -1 : 0;
        lc_log(LC_INFO, "TASK", "%s %s task finished initialization and start", t->label,
               t->ops->role == LC_SCRIPT_SOURCE_TASK ? "Source" : "Sink");
        t->began_ms = lc_now_ms();
        lc_task_status(t, LC_RUNNING, NULL);
        return t->ops->execute(t, err);
}

bool lc_task_may_call(lc_task_t *t)
{
        return !t->broken.kind && (!lc_task_stopping(t) || !lc_task_cancelled(t));
}

bool lc_task_call_failed(lc_task_t *t, const lc_err_t *err)
{
        if (err->code != LC_SCRIPT_ENDED)
                return false;
        if (!t->broken.kind)
                t->broken = *err;
        return true;
}

void lc_task_end_failed(lc_task_t *t, const char *what, const lc_err_t *err)
{
        if (t->sv->local)
                t->sv->local->failed(t->sv->local->arg, what, err);
}

static void close_converter(lc_converter_t **cv)
{
        if (*cv)
                (*cv)->cls->destroy(*cv);
        *cv = NULL;
}

static void close_all(lc_task_t *t, bool started)
{
        int limit = t->sv->call_ms;
        lc_err_t err;

        lc_err_clear(&err);
        if (!limit) /* a status waits for it */
                limit = t->sv->graceful_ms < INT32_MAX ? (int)t->sv->graceful_ms : INT32_MAX;
        lc_script_owner(t, limit > 0 ? limit : 1);
        if (started && lc_script_stop(t->script, &err)) {
                lc_log(LC_WARN, "TASK", "%s Could not stop task: %s", t->label, err.msg);
                lc_task_end_failed(t, "stop", &err);
        }
        if (t->ops)
                t->ops->close(t);
        lc_script_free(t->script); /* after the last batch it may have made was given back */
        t->script = NULL;
        t->letters = NULL;
        lc_operator_close(&t->op);
        lc_chain_free(t->chain);
        t->chain = NULL;
        close_converter(&t->key);
        close_converter(&t->value);
        close_converter(&t->header);
}

/* It has failed with err: is it ready for one more run? */
static bool begins_again(lc_task_t *t, bool *started, lc_err_t *err)
{
        char *trace;

        if (!t->again || t->broken.kind || lc_task_stopping(t))
                return false;
        trace = lc_err_trace(err);
        lc_log(LC_WARN, "TASK", "%s The task begins again from its committed offsets: %s", t->label, trace);
        free(trace);
        close_all(t, *started);
        lc_script_owner(t, t->sv->call_ms);
        lc_err_clear(err);
        *started = t->again = false;
        return true;
}

/* What `top -H` and gdb show: CONNECTOR-N, its name cut where the system cuts thread names (15 bytes). */
static void name_thread(const lc_task_t *t)
{
        char number[16], name[16];
        int n = snprintf(number, sizeof(number), "-%d", t->id);

        snprintf(name, sizeof(name), "%.*s%s", 15 - n, t->connector, number);
        pthread_setname_np(pthread_self(), name);
}

/* Who was frozen may be about to learn that others run its work, and have fenced it: their status counts, not
 * that this one failed. */
static void await_group(lc_task_t *t)
{
        int64_t end = lc_now_ms() + GROUP_MS;

        while (!lc_task_stopping(t) && !lc_services_may_work(t->sv) && lc_now_ms() < end)
                lc_task_hold(t);
}

static void *task_thread(void *arg)
{
        lc_task_t *t = arg;
        lc_services_t *sv = lc_services_ref(t->sv);
        bool started = false, failed, stopped;
        lc_err_t err;
        char *trace;
        char context[120];

        snprintf(context, sizeof(context), "%.90s|task-%d", t->connector, t->id);
        lc_log_context(context);
        name_thread(t);
        lc_script_owner(t, sv->call_ms);
        lc_err_clear(&err);
        failed = resolve(t, &err) || run(t, &started, &err);
        while (failed && begins_again(t, &started, &err))
                failed = run(t, &started, &err) != 0;
        if (failed)
                await_group(t);
        stopped = lc_task_stopping(t); /* a failure while stopping ends UNASSIGNED */
        trace = failed ? lc_err_trace(&err) : NULL;
        if (failed && stopped) {
                lc_log(LC_WARN, "TASK", "%s Task failed while it was being stopped: %s", t->label, trace);
                lc_task_end_failed(t, "the task's end", &err);
        } else if (failed) { /* the status says it, too, and that is what a person without Kafka is shown */
                lc_log(t->sv->local ? LC_DEBUG : LC_ERROR, "TASK",
                       "%s Task threw an uncaught and unrecoverable exception. Task is being killed and will "
                       "not "
                       "recover until manually restarted: %s",
                       t->label, trace);
        }
        close_all(t, started);
        if (failed && !stopped)
                report_failed(t, &err, trace);
        else
                lc_task_status(t, LC_UNASSIGNED, NULL);
        free(trace);
        __atomic_store_n(&t->ended, true, __ATOMIC_RELEASE);
        pthread_mutex_lock(&sv->lock);
        pthread_cond_broadcast(&sv->changed);
        pthread_mutex_unlock(&sv->lock);
        if (lc_task_restart_at(t))
                lc_services_tell_failed(sv);
        lc_task_unref(t);
        lc_services_unref(sv);
        return NULL;
}

int lc_task_start_thread(lc_task_t *t, lc_err_t *err)
{
        int rc;

        if (lc_waker_init(&t->stop) || lc_waker_init(&t->waker))
                return lc_err_set(err, LC_FATAL, errno, "No descriptors for task %s-%d: %s", t->connector,
                                  t->id, strerror(errno));
        lc_task_ref(t);
        rc = lc_thread_start(&t->thread, STACK, task_thread, t);
        if (rc) {
                lc_task_unref(t);
                return lc_err_set(err, LC_FATAL, rc, "No thread for task %s-%d: %s", t->connector, t->id,
                                  strerror(rc));
        }
        return 0;
}

void lc_topics_used_note(lc_topics_used_t *u, lc_task_t *t, const char *topic, int64_t now_ms)
{
        size_t i = u->last_at;

        if (i >= u->n || topic != u->last || strcmp(u->v[i].name, topic) != 0) {
                for (i = 0; i < u->n && strcmp(u->v[i].name, topic) != 0; i++)
                        ;
                if (i == u->n) {
                        u->v = lc_realloc(u->v, (u->n + 1) * sizeof(*u->v));
                        u->v[u->n++] = (lc_topic_use_t){.name = lc_strdup(topic), .told_ms = -1};
                }
                u->last = topic;
                u->last_at = i;
        }
        if (now_ms == u->v[i].told_ms)
                return;
        u->v[i].told_ms = now_ms;
        lc_services_topic_used(t->sv, t->connector, t->id, topic);
}

void lc_topics_used_free(lc_topics_used_t *u)
{
        for (size_t i = 0; i < u->n; i++)
                free(u->v[i].name);
        free(u->v);
        memset(u, 0, sizeof(*u));
}
