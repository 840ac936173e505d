/*
 * distributed_requests.c - REST operations that need order, the leader or the owner of the work.
 *
 * Where a request is not ours to do, forward() gives it back with the URL of the worker that it belongs to;
 * who submitted it sends it there.
 * Threads:   T, in the tick, with a resolved assignment (but pause and resume, which any worker does at any
 *            time).
 * Source:    rest.md 2.2, 4.   Tests: spec/unit/herder_spec.lua, golden/rest/02, 04, 06
 */
#include "base/alloc.h"
#include "base/log.h"
#include "herder/distributed.h"
#include <stdlib.h>
#include <string.h>

/* url: where it belongs, NULL when nobody knows. */
static void forward(lc_distributed_t *d, lc_request_t *req, const char *url)
{
        if (req->forward == 0) { /* it has made its two hops */
                lc_request_fail(req, 409,
                                "Cannot complete request because of a conflicting operation (e.g. worker "
                                "rebalance)");
        } else if (!url || !url[0]) {
                lc_request_fail(req, 409, LC_NO_LEADER_URL);
        } else if (!strcmp(url, d->base.deps.url)) {
                lc_request_stale(req); /* given to this worker, and not begun yet */
        } else {
                req->forward_url = lc_strdup(url);
                lc_request_answer(req, 0);
        }
}

/* Not ours because this is not the leader: forwards and returns false. */
bool lc_dist_leading(lc_distributed_t *d, lc_request_t *req)
{
        if (lc_dist_leads(d))
                return true;
        forward(d, req, d->assignment ? d->assignment->leader_url : NULL);
        return false;
}

/* Work that is not on this worker: only the leader knows where. */
static void to_owner(lc_distributed_t *d, lc_request_t *req, int task)
{
        lc_buf_t url = LC_BUF_SURE;

        if (!lc_dist_leading(d, req))
                return;
        pthread_mutex_lock(&d->assign_lock);
        lc_assignor_owner_url(d->assignor, req->connector, task, &url);
        pthread_mutex_unlock(&d->assign_lock);
        forward(d, req, url.len ? url.p : NULL);
        lc_buf_free(&url);
}

int lc_dist_wrote(lc_distributed_t *d, int rc, lc_err_t *err)
{
        if (rc < 0 && err->kind == LC_FENCED) {
                lc_log(LC_WARN, "HERDER",
                       "Failed to write to config topic as leader; will rejoin group if necessary and, if "
                       "still "
                       "leader, attempt to reclaim write privileges for the config topic: %s",
                       err->msg);
                d->fenced = true;
                lc_err_wrap(err, LC_CLS_CONNECT,
                            "Failed to write to config topic; this may be due to a transient error and the "
                            "request can be safely retried");
                err->kind = LC_RETRIABLE;
        }
        return rc;
}

/* Earlier leaders may have written since the last time, unless no generation lies between. */
int lc_dist_claim(lc_distributed_t *d, lc_err_t *err)
{
        lc_herder_t *h = &d->base;
        int32_t generation = d->assignment->generation;

        if (!h->configs->ops->claim)
                return 0;
        if (!d->fenced && d->claimed >= 0 && generation - d->claimed <= 1) {
                d->claimed = generation;
                return 0;
        }
        d->claimed = -1;
        if (h->configs->ops->claim(h->configs, err) < 0) {
                d->fenced = true;
                return -1;
        }
        d->fenced = false;
        d->claimed = generation;
        return 0;
}

static bool in_store(lc_herder_t *h, const char *name)
{
        lc_config_snapshot_t *s = h->configs->ops->snapshot(h->configs);
        bool there = lc_config_snapshot_find(s, name) != NULL;

        lc_config_snapshot_unref(s);
        return there;
}

static void put_config(lc_distributed_t *d, lc_hev_t *ev)
{
        lc_herder_t *h = &d->base;
        lc_request_t *req = ev->req;
        lc_config_snapshot_t *s;
        const lc_config_connector_t *was;
        lc_err_t err;
        int rc;

        if (lc_check_validated(ev) < 0 || !lc_dist_leading(d, req))
                return;
        s = h->configs->ops->snapshot(h->configs);
        was = lc_config_snapshot_find(s, req->connector);
        if (req->op == LC_REQ_CREATE && was) {
                lc_request_fail(req, 409, "Connector %s already exists", req->connector);
                goto done;
        }
        lc_err_clear(&err);
        lc_stage(h, "writing a config for connector %s to the config topic", req->connector);
        rc = h->configs->ops->put_connector(h->configs, req->connector, req->config,
                                            req->op == LC_REQ_CREATE ? req->initial_state : LC_TARGET_NONE,
                                            &err);
        lc_stage_done(h);
        if (lc_dist_wrote(d, rc, &err) < 0) {
                lc_request_fail_err(req, 500, &err);
                goto done;
        }
        req->created = !was;
        req->info = lc_calloc(1, sizeof(*req->info)); /* its tasks: those known before the write */
        lc_connector_info_fill(req->info, h->deps.plugins, req->connector, req->config, was, false);
        lc_request_answer(req, was ? 200 : 201);
done:
        lc_config_snapshot_unref(s);
}

static void patch(lc_distributed_t *d, lc_request_t *req)
{
        lc_herder_t *h = &d->base;
        lc_config_snapshot_t *s;
        const lc_config_connector_t *c;

        if (!lc_dist_leading(d, req))
                return;
        s = h->configs->ops->snapshot(h->configs);
        c = lc_config_snapshot_find(s, req->connector);
        if (!c || !c->config) {
                lc_request_fail(req, 404, "Connector %s not found", req->connector);
        } else {
                if (req->config)
                        lc_patch_config(req, c->config);
                lc_validation_begin(h, req);
        }
        lc_config_snapshot_unref(s);
}

static void delete (lc_distributed_t *d, lc_request_t *req)
{
        lc_herder_t *h = &d->base;
        lc_err_t err;
        int rc;

        if (!lc_dist_leading(d, req))
                return;
        if (!in_store(h, req->connector)) {
                lc_request_fail(req, 404, "Connector %s not found", req->connector);
                return;
        }
        lc_err_clear(&err);
        lc_stage(h, "removing the config for connector %s from the config topic", req->connector);
        rc = h->configs->ops->remove_connector(h->configs, req->connector, &err);
        lc_stage_done(h);
        if (lc_dist_wrote(d, rc, &err) < 0)
                lc_request_fail_err(req, 500, &err);
        else
                lc_request_answer(req, 204);
}

/* Tasks first: a RUNNING connector without tasks is healthy, a STOPPED one with tasks is not. */
static void stop(lc_distributed_t *d, lc_request_t *req)
{
        lc_herder_t *h = &d->base;
        lc_err_t err;
        int rc;

        if (!in_store(h, req->connector)) {
                lc_request_fail(req, 404, "Unknown connector %s", req->connector);
                return;
        }
        if (!lc_dist_leading(d, req))
                return;
        lc_err_clear(&err);
        lc_stage(h, "writing 0 task configs for connector %s to the config topic", req->connector);
        rc = h->configs->ops->put_tasks(h->configs, req->connector, NULL, 0, &err);
        if (rc == 0) {
                lc_stage(h, "writing the STOPPED target stage for connector %s to the config topic",
                         req->connector);
                rc = h->configs->ops->put_target(h->configs, req->connector, LC_TARGET_STOPPED, &err);
        }
        lc_stage_done(h);
        if (lc_dist_wrote(d, rc, &err) < 0) {
                lc_request_fail_err(req, 500, &err);
                return;
        }
        lc_stage(h, "reading to the end of the config topic");
        if (h->configs->ops->refresh(h->configs,
                                     (int)lc_worker_config_int(h->deps.config, "worker.sync.timeout.ms"),
                                     &err) < 0)
                lc_log(LC_WARN, "HERDER",
                       "Failed to read to end of config topic after writing the STOPPED target state for "
                       "connector %s: %s",
                       req->connector, err.msg);
        lc_stage_done(h);
        d->dirty = true;
        lc_request_answer(req, 204);
}

static void pause_resume(lc_herder_t *h, lc_request_t *req)
{
        lc_err_t err;

        lc_err_clear(&err);
        if (!in_store(h, req->connector))
                lc_request_fail(req, 404, "Unknown connector %s", req->connector);
        else if (h->configs->ops->put_target(h->configs, req->connector,
                                             req->op == LC_REQ_PAUSE ? LC_TARGET_PAUSED : LC_TARGET_STARTED,
                                             &err) < 0)
                lc_request_fail_err(req, 500, &err);
        else
                lc_request_answer(req, 202);
}

static void put_logger(lc_herder_t *h, lc_request_t *req)
{
        lc_err_t err;

        lc_err_clear(&err);
        if (h->configs->ops->put_logger(h->configs, req->connector, req->level, &err) < 0)
                lc_request_fail_err(req, 500, &err);
        else
                lc_request_answer(req, 204); /* this worker too sets it when it reads the record */
}

static void restart_with_plan(lc_distributed_t *d, lc_request_t *req)
{
        lc_herder_t *h = &d->base;
        lc_restart_plan_t plan;
        lc_err_t err;

        if (!lc_dist_leading(d, req))
                return;
        lc_err_clear(&err);
        if (lc_dist_wrote(d,
                          h->configs->ops->put_restart(h->configs, req->connector, req->only_failed,
                                                       req->include_tasks, &err),
                          &err) < 0) {
                lc_request_fail_err(req, 500, &err);
                return;
        }
        if (!lc_restart_plan(h, req->connector, req->include_tasks, req->only_failed, &plan)) {
                lc_request_fail(req, 404, "Status for connector %s not found", req->connector);
                return;
        }
        lc_restart_answer(req, &plan);
        lc_restart_plan_free(&plan);
}

static void restart(lc_distributed_t *d, lc_request_t *req)
{
        lc_herder_t *h = &d->base;

        if (!lc_config_snapshot_find(h->config, req->connector)) {
                lc_request_fail(req, 404, "Unknown connector: %s", req->connector);
        } else if (req->include_tasks || req->only_failed) {
                restart_with_plan(d, req);
        } else if (lc_work_has(&d->running, req->connector, -1)) {
                lc_stage(h, "stopping connector %s", req->connector);
                lc_worker_stop_connector(h->worker, req->connector);
                lc_stage_done(h);
                lc_start_connector(h, req->connector, req); /* answered when its tasks were looked at */
        } else {
                to_owner(d, req, -1);
        }
}

static void restart_task(lc_distributed_t *d, lc_request_t *req)
{
        lc_herder_t *h = &d->base;
        const lc_config_connector_t *c = lc_config_snapshot_find(h->config, req->connector);
        lc_work_t task = {0};
        lc_err_t err;

        if (!c) {
                lc_request_fail(req, 404, "Unknown connector: %s", req->connector);
                return;
        }
        /* Connect keeps configs of earlier sets: such a task is known, only nobody owns it. */
        if (req->task < 0 ||
            (req->task >= c->ntasks && req->task >= lc_hconn_get(h, req->connector)->task_high)) {
                lc_request_fail(req, 404, "Unknown task: %s-%d", req->connector, req->task);
                return;
        }
        if (!lc_work_has(&d->running, req->connector, req->task)) {
                to_owner(d, req, req->task);
                return;
        }
        lc_err_clear(&err);
        lc_work_add(&task, req->connector, req->task);
        lc_stage(h, "restarting task %s-%d", req->connector, req->task);
        lc_worker_stop_tasks(h->worker, &task);
        if (lc_start_task(h, req->connector, req->task, &err) < 0) {
                lc_log(LC_ERROR, "HERDER", "Failed to start task %s-%d: %s", req->connector, req->task,
                       err.msg);
                lc_request_fail(req, 500, "Failed to start task: %s-%d", req->connector, req->task);
        } else {
                lc_request_answer(req, 204);
        }
        lc_stage_done(h);
        lc_work_free(&task);
}

void lc_dist_reconfigured(lc_herder_t *h, const char *name, lc_request_t *req, const lc_err_t *err)
{
        (void)h;
        (void)name;
        (void)err; /* tried again by itself: the restart was done */
        lc_request_answer(req, 204);
}

void lc_dist_start_failed(lc_herder_t *h, const char *name, lc_request_t *req, const lc_err_t *err)
{
        (void)h;
        (void)err; /* in the status */
        lc_request_fail(req, 500, "Failed to start connector: %s", name);
}

int lc_dist_publish(lc_herder_t *h, const char *name, lc_props_t *const *tasks, int n, lc_err_t *err)
{
        lc_distributed_t *d = lc_dist(h);
        int rc;

        if (!lc_dist_leads(d))
                return lc_dist_send_tasks(d, name, tasks, n, err);
        lc_stage(h, "writing %d task configs for connector %s to the config topic", n, name);
        rc = h->configs->ops->put_tasks(h->configs, name, tasks, n, err);
        lc_stage_done(h);
        return lc_dist_wrote(d, rc, err);
}

/* A restart acts on what runs: it has to see the newest config first. */
static bool unsettled(lc_distributed_t *d, const lc_request_t *req)
{
        return (req->op == LC_REQ_RESTART || req->op == LC_REQ_RESTART_TASK) && (d->dirty || d->hold_since);
}

void lc_dist_request(lc_herder_t *h, lc_hev_t *ev)
{
        lc_distributed_t *d = lc_dist(h);
        lc_request_t *req = ev->req;

        if (ev->kind == LC_HEV_TASK_CONFIGS) {
                lc_reconfigure_result(h, ev);
                return;
        }
        if (ev->kind == LC_HEV_FENCE || ev->kind == LC_HEV_VERIFY || ev->kind == LC_HEV_FENCED) {
                lc_dist_gate(d, ev);
                return;
        }
        if (ev->kind == LC_HEV_VALIDATED) {
                put_config(d, ev);
                lc_hev_free(ev);
                return;
        }
        if (ev->kind == LC_HEV_RELOADED) {
                if (d->dirty)
                        lc_dist_config_updates(d, true);
                if (d->rejoining || !lc_reload_step(h, ev))
                        lc_pending_add(h, ev);
                return;
        }
        if (unsettled(d, req)) {
                lc_dist_config_updates(d, true);
                if (d->rejoining) { /* after the rebalance */
                        lc_pending_add(h, ev);
                        return;
                }
        }
        ev->req = NULL;
        lc_hev_free(ev);
        switch (req->op) {
        case LC_REQ_PATCH_CONFIG:
                patch(d, req);
                break;
        case LC_REQ_DELETE:
                delete (d, req);
                break;
        case LC_REQ_STOP:
                stop(d, req);
                break;
        case LC_REQ_PAUSE:
        case LC_REQ_RESUME:
                pause_resume(h, req);
                break;
        case LC_REQ_RESTART:
                restart(d, req);
                break;
        case LC_REQ_RESTART_TASK:
                restart_task(d, req);
                break;
        case LC_REQ_PUT_TASKS:
                lc_dist_put_tasks(d, req);
                break;
        case LC_REQ_FENCE:
                lc_dist_fence(d, req);
                break;
        case LC_REQ_LOGGER:
                put_logger(h, req);
                break;
        default: /* LC_REQ_HEALTH: the thread is alive */
                lc_request_answer(req, 200);
        }
}
