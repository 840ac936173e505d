/*
 * reconfigure.c - from a running connector to its tasks: task configs are asked for when it started, was
 * resumed, was reconfigured or asks for it, compared with the committed ones, and published when they
 * differ: the leader writes them, a follower sends them to the leader. Failures are tried again with backoff,
 * 250 ms doubling to 60 s, from the start: who leads and what is committed may have changed.
 *
 * One computation per connector at a time; a trigger that comes meanwhile leads to another one after it,
 * so that what is published never is older than the last trigger.
 * Threads:   T; the callbacks of the worker only push.
 * Source:    connector-config 4, 4.1.   Tests: spec/unit/herder_spec.lua
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "herder/internal.h"
#include <stdlib.h>
#include <string.h>

enum { BACKOFF_MS = 250, BACKOFF_MAX_MS = 60000, KEY_ROTATION_MS = 60000 };

lc_hconn_t *lc_hconn_get(lc_herder_t *h, const char *name)
{
        lc_hconn_t *c;

        for (c = h->conns; c; c = c->next)
                if (!strcmp(c->name, name))
                        return c;
        c = lc_calloc(1, sizeof(*c));
        c->name = lc_strdup(name);
        c->next = h->conns;
        h->conns = c;
        return c;
}

static void free_conn(lc_hconn_t *c)
{
        free(c->generations);
        free(c->name);
        free(c);
}

static void remember_generation(lc_hconn_t *c, int task, int generation)
{
        if (task >= c->ngenerations) {
                c->generations = lc_realloc(c->generations, (size_t)(task + 1) * sizeof(*c->generations));
                while (c->ngenerations <= task)
                        c->generations[c->ngenerations++] = -1;
        }
        c->generations[task] = generation;
}

int lc_hconn_task_generation(lc_herder_t *h, const char *name, int task)
{
        const lc_hconn_t *c = lc_hconn_get(h, name);

        return task >= 0 && task < c->ngenerations ? c->generations[task] : -1;
}

void lc_hconn_prune(lc_herder_t *h)
{
        lc_hconn_t **at = &h->conns, *c;

        while ((c = *at)) {
                if (c->computing || c->waiters || c->busy || lc_config_snapshot_find(h->config, c->name)) {
                        at = &c->next;
                        continue;
                }
                *at = c->next;
                lc_worker_forget(h->worker, c->name);
                free_conn(c);
        }
}

void lc_hconn_free_all(lc_herder_t *h)
{
        lc_hconn_t *c;

        while ((c = h->conns)) {
                lc_request_t *req;
                while ((req = c->waiters)) {
                        c->waiters = req->next;
                        lc_request_fail(req, 500, LC_SHUTTING_DOWN);
                }
                h->conns = c->next;
                free_conn(c);
        }
}

static void finish(lc_herder_t *h, lc_hconn_t *c, const lc_err_t *err)
{
        lc_request_t *req = c->waiters;

        c->waiters = NULL;
        while (req) {
                lc_request_t *next = req->next;
                req->next = NULL;
                h->mode->reconfigured(h, c->name, req, err);
                req = next;
        }
}

static void configs_made(void *arg, const char *connector, lc_props_t **configs, int n, const lc_err_t *err)
{
        lc_hev_t *ev = arg;

        (void)connector;
        ev->tasks = configs;
        ev->ntasks = n;
        lc_hev_set_err(ev, err);
        lc_hev_back_push(ev);
}

void lc_reconfigure(lc_herder_t *h, const char *name, lc_request_t *req)
{
        lc_hconn_t *c = lc_hconn_get(h, name);
        const lc_config_connector_t *cc = lc_config_snapshot_find(h->config, name);
        lc_hev_t *ev;

        if (req) {
                lc_request_t **at = &c->waiters;
                while (*at)
                        at = &(*at)->next;
                req->next = NULL;
                *at = req;
        }
        if (c->computing) {
                c->again = true;
                return;
        }
        c->retry_at = 0;
        if (!cc || !cc->config || cc->target != LC_TARGET_STARTED ||
            !lc_worker_connector_started(h->worker, name)) {
                lc_log(LC_INFO, "HERDER", "Skipping reconfiguration of connector %s since it is not running",
                       name);
                finish(h, c, NULL);
                return;
        }
        if (!c->backoff_ms)
                c->tried_at = lc_now_ms();
        c->computing = true;
        ev = lc_hev_new(h, LC_HEV_TASK_CONFIGS, name);
        ev->config = lc_props_copy(cc->config);
        lc_hev_out(ev);
        lc_worker_task_configs(h->worker, name, cc->config, configs_made, ev);
}

static bool changed(const lc_config_connector_t *cc, lc_props_t *const *tasks, int n)
{
        if (cc->inconsistent || n != cc->ntasks)
                return true;
        for (int i = 0; i < n; i++)
                if (!cc->tasks || !cc->tasks[i] || !lc_props_equal(cc->tasks[i], tasks[i]))
                        return true;
        /* what the tasks get from the connector's config beside their own: converters, overrides ... */
        return !cc->applied || !lc_props_equal(cc->applied, cc->config);
}

static bool too_many(const lc_err_t *err)
{
        return err->cls && strstr(err->cls, "TooManyTasksException");
}

static void retry_later(lc_hconn_t *c, const lc_err_t *err)
{
        c->backoff_ms = lc_backoff(c->backoff_ms, BACKOFF_MS, BACKOFF_MAX_MS);
        c->retry_at = lc_now_ms() + c->backoff_ms;
        if (err->code == 403 && lc_now_ms() - c->tried_at <= KEY_ROTATION_MS)
                lc_log(LC_DEBUG, "HERDER",
                       "Failed to reconfigure connector's tasks (%s), possibly due to expired session key. "
                       "Retrying after backoff of %d ms",
                       c->name, c->backoff_ms);
        else
                lc_log(LC_ERROR, "HERDER",
                       "Failed to reconfigure connector's tasks (%s), retrying after backoff of %d ms: %s",
                       c->name, c->backoff_ms, err->msg);
}

static void succeeded(lc_herder_t *h, lc_hconn_t *c)
{
        c->backoff_ms = 0;
        finish(h, c, NULL);
}

static void failed(lc_herder_t *h, lc_hconn_t *c, const lc_err_t *err)
{
        retry_later(c, err);
        finish(h, c, err);
}

/* 0 nothing to write or written, 1 on its way, -1 err. */
static int publish(lc_herder_t *h, const lc_config_connector_t *cc, const lc_hev_t *ev, lc_err_t *err)
{
        return changed(cc, ev->tasks, ev->ntasks) ? h->mode->publish(h, ev->name, ev->tasks, ev->ntasks, err)
                                                  : 0;
}

void lc_reconfigure_result(lc_herder_t *h, lc_hev_t *ev)
{
        lc_hconn_t *c = lc_hconn_get(h, ev->name);
        lc_config_snapshot_t *s =
                h->configs->ops->snapshot(h->configs); /* the newest: never tasks for STOPPED */
        const lc_config_connector_t *cc = lc_config_snapshot_find(s, ev->name);
        lc_err_t err;
        int rc;

        lc_err_clear(&err);
        c->computing = false;
        if (c->again) {
                c->again = false;
                lc_reconfigure(h, ev->name, NULL);
        } else if (ev->err && too_many(ev->err)) {
                /* the worker has written FAILED; only another config helps */
                lc_log(LC_ERROR, "HERDER", "%s", ev->err->msg);
                c->backoff_ms = 0;
                finish(h, c, ev->err);
        } else if (!cc || cc->target != LC_TARGET_STARTED || !lc_props_equal(cc->config, ev->config) ||
                   !lc_worker_connector_started(h->worker, ev->name)) {
                finish(h, c, NULL); /* deleted, paused, changed, restarted: that brings its own trigger */
        } else if (ev->err) {
                failed(h, c, ev->err);
        } else if ((rc = publish(h, cc, ev, &err)) < 0) {
                failed(h, c, &err);
        } else if (rc > 0) {
                c->computing = true; /* what is triggered meanwhile comes after it */
        } else {
                succeeded(h, c);
        }
        lc_config_snapshot_unref(s);
        lc_hev_free(ev);
}

void lc_reconfigure_published(lc_herder_t *h, lc_hev_t *ev)
{
        lc_hconn_t *c = lc_hconn_get(h, ev->name);

        c->computing = false;
        if (c->again) {
                c->again = false;
                lc_reconfigure(h, ev->name, NULL);
        } else if (ev->err) {
                failed(h, c, ev->err);
        } else {
                succeeded(h, c);
        }
        lc_hev_free(ev);
}

int64_t lc_reconfigure_retries(lc_herder_t *h, int64_t now)
{
        int64_t next = INT64_MAX;

        for (lc_hconn_t *c = h->conns; c; c = c->next) {
                if (c->retry_at && c->retry_at <= now)
                        lc_reconfigure(h, c->name, NULL);
                if (c->retry_at && c->retry_at < next)
                        next = c->retry_at;
        }
        return next;
}

static void started(void *arg, const char *connector, const lc_err_t *err)
{
        lc_hev_t *ev = arg;

        (void)connector;
        lc_hev_set_err(ev, err);
        lc_hev_back_push(ev);
}

void lc_start_connector(lc_herder_t *h, const char *name, lc_request_t *req)
{
        const lc_config_connector_t *cc = lc_config_snapshot_find(h->config, name);
        lc_hev_t *ev;

        if (!cc || !cc->config) {
                lc_log(LC_WARN, "HERDER", "Connector %s is not in the config any more, it is not started",
                       name);
                if (req)
                        lc_request_fail(req, 404, "Connector %s not found", name);
                return;
        }
        lc_log(LC_INFO, "HERDER", "Starting connector %s", name);
        ev = lc_hev_new(h, LC_HEV_CONNECTOR, name);
        ev->req = req;
        ev->target = cc->target;
        lc_hev_out(ev);
        lc_worker_start_connector(h->worker, name, cc->config, cc->target, started, ev);
}

void lc_target_connector(lc_herder_t *h, const char *name, lc_target_state_t target)
{
        lc_hev_t *ev = lc_hev_new(h, LC_HEV_CONNECTOR, name);

        ev->target = target;
        lc_hev_out(ev);
        lc_worker_connector_target(h->worker, name, target, started, ev);
}

void lc_connector_event(lc_herder_t *h, lc_hev_t *ev)
{
        lc_request_t *req = ev->req;

        ev->req = NULL;
        if (ev->err) {
                lc_log(LC_ERROR, "HERDER", "Failed to %s connector '%s': %s",
                       ev->target == LC_TARGET_STARTED ? "start" : "transition", ev->name, ev->err->msg);
                if (req)
                        h->mode->start_failed(h, ev->name, req, ev->err);
        } else if (ev->target == LC_TARGET_STARTED) {
                lc_reconfigure(h, ev->name, req);
        } else if (req) {
                h->mode->reconfigured(h, ev->name, req, NULL);
        }
        lc_hev_free(ev);
}

int lc_start_task(lc_herder_t *h, const char *name, int task, lc_err_t *err)
{
        const lc_config_connector_t *cc = lc_config_snapshot_find(h->config, name);
        int n = cc && cc->config ? lc_config_connector_task_count(cc) : 0;

        if (task < 0 || task >= n)
                return lc_err_set(err, LC_FATAL, 0, "Task %s-%d is not in the config", name, task);
        lc_log(LC_INFO, "HERDER", "Starting task %s-%d", name, task);
        remember_generation(lc_hconn_get(h, name), task, cc->generation);
        return lc_worker_start_task(h->worker, name, task, cc->config, n, cc->tasks[task], cc->target, err);
}

/* Everything the worker has: tasks first, so that their offsets are committed. */
void lc_herder_stop_work(lc_herder_t *h)
{
        lc_work_t all = {0}, tasks = {0};

        lc_worker_running(h->worker, &all);
        for (size_t i = 0; i < all.n; i++)
                if (all.v[i].task >= 0)
                        lc_work_add(&tasks, all.v[i].connector, all.v[i].task);
        if (tasks.n)
                lc_worker_stop_tasks(h->worker, &tasks);
        for (size_t i = 0; i < all.n; i++)
                if (all.v[i].task < 0)
                        lc_worker_stop_connector(h->worker, all.v[i].connector);
        lc_work_free(&tasks);
        lc_work_free(&all);
}
