/*
 * standalone.c - the standalone herder: memory stores and the offset file, no group, no leader. Create and
 * replace answer when the connector runs and its tasks were started.
 *
 * Operations of one connector come one after the other: while one waits for connector code, later requests
 * for the same connector stay in the pending list (hconn.busy), those for others go on.
 * Threads:   T; open on the caller's.
 * Source:    standalone.md 4.   Tests: spec/unit/herder_spec.lua, golden/standalone/rest.json
 */
#include "base/alloc.h"
#include "base/waker.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/client_config.h"
#include "herder/internal.h"
#include "kafka/admin.h"
#include "kafka/wire/bootstrap.h"
#include <stdlib.h>
#include <string.h>

enum { CLUSTER_ID_MS = 60000, CLUSTER_ID_TRY_MS = 1000, SAY_MS = 5000, TICK_MS = 5000 };

static void take_snapshot(lc_herder_t *h)
{
        lc_herder_set_config(h, h->configs->ops->snapshot(h->configs));
        lc_hconn_prune(h);
}

/* Events of the memory store come on T while it writes; what follows from a write is done there. */
static void ignore_name(void *arg, const char *name)
{
        (void)arg;
        (void)name;
}
static void ignore_tasks(void *arg, const char *name, int n)
{
        (void)arg;
        (void)name;
        (void)n;
}
static void ignore_restart(void *arg, const char *name, bool only_failed, bool include_tasks)
{
        (void)arg;
        (void)name;
        (void)only_failed;
        (void)include_tasks;
}
static void ignore(void *arg)
{
        (void)arg;
}
static void ignore_logger(void *arg, const char *logger, const char *level)
{
        (void)arg;
        (void)logger;
        (void)level;
}
static const lc_config_events_t no_events = {
        .connector_updated = ignore_name,
        .connector_removed = ignore_name,
        .tasks_updated = ignore_tasks,
        .target_changed = ignore_name,
        .restart_requested = ignore_restart,
        .session_key_updated = ignore,
        .logger_level = ignore_logger,
};

static void on_reconfigure(void *arg, const char *connector)
{
        lc_herder_push(arg, lc_hev_new(arg, LC_HEV_RECONFIGURE, connector));
}

static char *cluster_id(lc_herder_t *h, const volatile int *stop, lc_err_t *err)
{
        const char *servers = lc_worker_config_str(h->deps.config, "bootstrap.servers");
        int64_t end = lc_now_ms() + CLUSTER_ID_MS, said = lc_now_ms();
        lc_props_t *conf =
                lc_client_config(h->deps.config, LC_CLIENT_INTERNAL_ADMIN, NULL, "connect-admin", err);
        lc_admin_t *admin = conf ? lc_admin_new(conf, err) : NULL;
        char *id = NULL;
        lc_err_t last;

        lc_err_clear(&last);
        while (admin && !id && !lc_stopped(stop) && lc_now_ms() < end) {
                lc_err_clear(&last);
                id = lc_admin_cluster_id(admin, CLUSTER_ID_TRY_MS, &last);
                if (!id && lc_now_ms() - said >= SAY_MS) {
                        said = lc_now_ms();
                        lc_log(LC_WARN, "HERDER", "Waiting for the Kafka cluster at %s to tell its id: %s",
                               servers, last.msg);
                }
        }
        if (!id && lc_stopped(stop))
                lc_err_set(err, LC_FATAL, 0, "Stopped while connecting to the Kafka cluster");
        else if (!id)
                lc_err_set_cls(err, LC_FATAL, 2, LC_CLS_CONNECT,
                               "Failed to connect to and describe Kafka cluster. Check "
                               "worker's broker connection and security properties.");
        if (!id && last.kind)
                lc_err_cause(err, LC_CLS_CONNECT, "%s", last.msg);
        lc_admin_free(admin);
        lc_props_free(conf);
        return id;
}

static int open_parts(lc_herder_t *h, const volatile int *stop, lc_err_t *err)
{
        const char *file = lc_worker_config_str(h->deps.config, "offset.storage.file.filename");
        lc_worker_deps_t deps = {.config = h->deps.config,
                                 .plugins = h->deps.plugins,
                                 .worker_id = h->deps.worker_id,
                                 .reconfigure = on_reconfigure,
                                 .failed = lc_policy_failed,
                                 .arg = h};

        if (lc_bootstrap_check(h->deps.config, stop, err) < 0)
                return -1;
        h->cluster_id = cluster_id(h, stop, err);
        if (!h->cluster_id)
                return -1;
        lc_log(LC_INFO, "HERDER", "Kafka cluster ID: %s", h->cluster_id);
        h->configs = lc_config_store_memory_new();
        h->statuses = deps.statuses = lc_status_store_memory_new();
        h->offsets = deps.offsets =
                file && *file ? lc_offset_store_file_new(file) : lc_offset_store_memory_new();
        if (h->offsets->ops->start(h->offsets, &h->stop, err) < 0 ||
            h->statuses->ops->start(h->statuses, &h->stop, err) < 0 ||
            h->configs->ops->start(h->configs, &no_events, h, &h->stop, err) < 0) {
                if (err)
                        err->code = 3; /* the exit status: as Connect, when the herder cannot start */
                return -1;
        }
        h->worker = lc_worker_new(&deps, err);
        return h->worker ? 0 : -1;
}

static int begin(lc_herder_t *h, lc_err_t *err)
{
        (void)err;
        lc_worker_set_generation(h->worker, 0);
        take_snapshot(h);
        return 0;
}

static const lc_config_connector_t *find(lc_herder_t *h, const char *name)
{
        return lc_config_snapshot_find(h->config, name);
}

static void destroy_status(lc_herder_t *h, const char *name, int task)
{
        lc_status_t st = {.task = task, .state = LC_DESTROYED};

        st.worker_id = lc_strdup(h->deps.worker_id);
        h->statuses->ops->put(h->statuses, name, &st, false);
        lc_status_clear(&st);
}

/* Stops the tasks and forgets their statuses. Their configs stay. */
static void stop_tasks(lc_herder_t *h, const char *name)
{
        const lc_config_connector_t *c = find(h, name);
        int n = c ? lc_config_connector_task_count(c) : 0;
        lc_work_t tasks = {0};

        for (int i = 0; i < n; i++)
                lc_work_add(&tasks, name, i);
        if (!n)
                return;
        lc_stage(h, "stopping 0 and %d tasks", n);
        lc_worker_stop_tasks(h->worker, &tasks);
        lc_stage_done(h);
        for (int i = 0; i < n; i++)
                destroy_status(h, name, i);
        lc_work_free(&tasks);
}

static void start_tasks(lc_herder_t *h, const char *name)
{
        const lc_config_connector_t *c = find(h, name);
        int n = c ? lc_config_connector_task_count(c) : 0;
        lc_err_t err;

        for (int i = 0; i < n; i++) {
                lc_err_clear(&err);
                if (lc_start_task(h, name, i, &err) < 0)
                        lc_log(LC_ERROR, "HERDER", "Failed to start task %s-%d: %s", name, i, err.msg);
        }
}

static int publish(lc_herder_t *h, const char *name, lc_props_t *const *tasks, int n, lc_err_t *err)
{
        stop_tasks(h, name);
        if (h->configs->ops->put_tasks(h->configs, name, tasks, n, err) < 0)
                return -1;
        take_snapshot(h);
        start_tasks(h, name);
        return 0;
}

static void start_for(lc_herder_t *h, const char *name, lc_request_t *req)
{
        lc_hconn_get(h, name)->busy++;
        lc_start_connector(h, name, req);
}

/* The end of what start_for() began. */
static void reconfigured(lc_herder_t *h, const char *name, lc_request_t *req, const lc_err_t *err)
{
        const lc_config_connector_t *c = find(h, name);

        lc_hconn_get(h, name)->busy--;
        if (req->op == LC_REQ_RESTART) {
                lc_request_answer(req, 204);
        } else if (err && err->kind) {
                lc_request_fail_err(req, 500, err);
        } else {
                req->info = lc_calloc(1, sizeof(*req->info));
                lc_connector_info_fill(req->info, h->deps.plugins, name, req->config, c, false);
                lc_request_answer(req, req->created ? 201 : 200);
        }
}

static void start_failed(lc_herder_t *h, const char *name, lc_request_t *req, const lc_err_t *err)
{
        lc_hconn_get(h, name)->busy--;
        lc_request_fail_err(req, 500, err);
}

static void put_config(lc_herder_t *h, lc_hev_t *ev)
{
        lc_request_t *req = ev->req;
        const lc_config_connector_t *was;
        lc_err_t err;

        if (lc_check_validated(ev) < 0)
                return;
        was = find(h, req->connector);
        if (req->op == LC_REQ_CREATE && was) {
                lc_request_fail(req, 409, "Connector %s already exists", req->connector);
                return;
        }
        req->created = !was;
        lc_err_clear(&err);
        if (was) {
                lc_stage(h, "stopping connector %s", req->connector);
                lc_worker_stop_connector(h->worker, req->connector);
                lc_stage_done(h);
        }
        if (h->configs->ops->put_connector(h->configs, req->connector, req->config,
                                           req->op == LC_REQ_CREATE ? req->initial_state : LC_TARGET_NONE,
                                           &err) < 0) {
                lc_request_fail_err(req, 500, &err);
                return;
        }
        take_snapshot(h);
        lc_worker_afresh(h->worker, req->connector);
        start_for(h, req->connector, req);
}

static void delete (lc_herder_t *h, lc_request_t *req)
{
        const char *name = req->connector;
        lc_status_t *left = NULL;
        size_t n;
        lc_err_t err;

        if (!find(h, name)) {
                lc_request_fail(req, 404, "Connector %s not found", name);
                return;
        }
        stop_tasks(h, name);
        lc_stage(h, "stopping connector %s", name);
        lc_worker_stop_connector(h->worker, name);
        lc_stage_done(h);
        lc_err_clear(&err);
        if (h->configs->ops->remove_connector(h->configs, name, &err) < 0) {
                lc_request_fail_err(req, 500, &err);
                return;
        }
        n = h->statuses->ops->tasks(h->statuses, name, &left);
        for (size_t i = 0; i < n; i++) {
                destroy_status(h, name, left[i].task);
                lc_status_clear(&left[i]);
        }
        free(left);
        destroy_status(h, name, -1);
        h->statuses->ops->topics_reset(h->statuses, name);
        take_snapshot(h);
        lc_request_answer(req, 204);
}

static int set_target(lc_herder_t *h, const char *name, lc_target_state_t target, lc_err_t *err)
{
        lc_target_state_t was = find(h, name)->target;

        if (h->configs->ops->put_target(h->configs, name, target, err) < 0)
                return -1;
        take_snapshot(h);
        if (was == target)
                return 0;
        lc_worker_afresh(h->worker, name);
        lc_worker_tasks_target(h->worker, name, target);
        if (lc_worker_has_connector(h->worker, name))
                lc_target_connector(h, name, target);
        return 0;
}

static void pause_resume(lc_herder_t *h, lc_request_t *req)
{
        lc_err_t err;

        lc_err_clear(&err);
        if (!find(h, req->connector))
                lc_request_fail(req, 404, "Unknown connector %s", req->connector);
        else if (set_target(h, req->connector, req->op == LC_REQ_PAUSE ? LC_TARGET_PAUSED : LC_TARGET_STARTED,
                            &err) < 0)
                lc_request_fail_err(req, 500, &err);
        else
                lc_request_answer(req, 202);
}

static void stop(lc_herder_t *h, lc_request_t *req)
{
        lc_err_t err;

        if (!find(h, req->connector)) {
                lc_request_fail(req, 500, "No connector `%s` configured", req->connector);
                return;
        }
        lc_err_clear(&err);
        stop_tasks(h, req->connector);
        if (h->configs->ops->put_tasks(h->configs, req->connector, NULL, 0, &err) < 0 ||
            set_target(h, req->connector, LC_TARGET_STOPPED, &err) < 0)
                lc_request_fail_err(req, 500, &err);
        else
                lc_request_answer(req, 204);
}

static void restart_with_plan(lc_herder_t *h, lc_request_t *req)
{
        const char *name = req->connector;
        lc_work_t tasks = {0};
        lc_restart_plan_t plan;

        if (!find(h, name)) {
                lc_request_fail(req, 404, "Unknown connector: %s", name);
                return;
        }
        if (!lc_restart_plan(h, name, req->include_tasks, req->only_failed, &plan)) {
                lc_request_fail(req, 404, "Status for connector %s not found", name);
                return;
        }
        lc_stage(h, "handling restart request for connector %s", name);
        for (size_t i = 0; i < plan.ntasks; i++)
                if (plan.tasks[i] < lc_config_connector_task_count(find(h, name)))
                        lc_work_add(&tasks, name, plan.tasks[i]);
        lc_restart_planned(h, name, plan.connector, &tasks, 0);
        lc_stage_done(h);
        lc_work_free(&tasks);
        lc_restart_answer(req, &plan);
        lc_restart_plan_free(&plan);
}

static void restart(lc_herder_t *h, lc_request_t *req)
{
        if (req->include_tasks || req->only_failed) {
                restart_with_plan(h, req);
        } else if (!find(h, req->connector)) {
                lc_request_fail(req, 404, "Connector %s not found", req->connector);
        } else {
                lc_stage(h, "stopping connector %s", req->connector);
                lc_worker_stop_connector(h->worker, req->connector);
                lc_stage_done(h);
                start_for(h, req->connector, req);
        }
}

static void restart_task(lc_herder_t *h, lc_request_t *req)
{
        const lc_config_connector_t *c = find(h, req->connector);
        lc_work_t task = {0};
        lc_err_t err;

        if (!c || req->task < 0 || req->task >= lc_config_connector_task_count(c)) {
                lc_request_fail(req, 404, "Task %s-%d not found", req->connector, req->task);
                return;
        }
        lc_err_clear(&err);
        lc_work_add(&task, req->connector, req->task);
        lc_worker_stop_tasks(h->worker, &task);
        if (lc_start_task(h, req->connector, req->task, &err) < 0) {
                lc_log(LC_ERROR, "HERDER", "Failed to start task %s-%d: %s", req->connector, req->task,
                       err.msg);
                lc_request_fail(req, 500, "Failed to start task: %s-%d", req->connector, req->task);
        } else {
                lc_request_answer(req, 204);
        }
        lc_work_free(&task);
}

static void patch(lc_herder_t *h, lc_request_t *req)
{
        const lc_config_connector_t *c = find(h, req->connector);

        if (!c || !c->config) {
                lc_request_fail(req, 404, "Connector %s not found", req->connector);
                return;
        }
        if (req->config)
                lc_patch_config(req, c->config);
        lc_validation_begin(h, req);
}

/* This worker is the whole cluster. */
static void logger_level(lc_herder_t *h, lc_request_t *req)
{
        if (h->deps.logger_level)
                h->deps.logger_level(h->deps.logger_arg, req->connector, req->level);
        lc_request_answer(req, 204);
}

/* Nothing else of its connector goes on beside it. */
static bool in_turn(const lc_request_t *req)
{
        return req->op != LC_REQ_HEALTH && req->op != LC_REQ_LOGGER && req->op != LC_REQ_PUT_TASKS &&
               req->op != LC_REQ_FENCE;
}

static bool is_busy(lc_herder_t *h, const lc_hev_t *ev)
{
        return in_turn(ev->req) && find(h, ev->req->connector) && lc_hconn_get(h, ev->req->connector)->busy;
}

static void request(lc_herder_t *h, lc_hev_t *ev)
{
        lc_request_t *req = ev->req;

        if (ev->kind == LC_HEV_VALIDATED) {
                put_config(h, ev);
                lc_hev_free(ev);
                return;
        }
        if (is_busy(h, ev)) {
                lc_pending_add(h, ev); /* also pause and resume, which come here first */
                return;
        }
        ev->req = NULL;
        lc_hev_free(ev);
        switch (req->op) {
        case LC_REQ_PATCH_CONFIG:
                patch(h, req);
                break;
        case LC_REQ_DELETE:
                delete (h, req);
                break;
        case LC_REQ_PAUSE:
        case LC_REQ_RESUME:
                pause_resume(h, req);
                break;
        case LC_REQ_STOP:
                stop(h, req);
                break;
        case LC_REQ_RESTART:
                restart(h, req);
                break;
        case LC_REQ_RESTART_TASK:
                restart_task(h, req);
                break;
        case LC_REQ_LOGGER:
                logger_level(h, req);
                break;
        case LC_REQ_PUT_TASKS:
                lc_request_fail(req, 500,
                                "Kafka Connect in standalone mode does not support externally setting task "
                                "configurations.");
                break;
        case LC_REQ_FENCE:
                lc_request_fail(req, 500,
                                "Kafka Connect in standalone mode does not support exactly-once source "
                                "connectors.");
                break;
        default:
                lc_request_answer(req, 200);
        }
}

static int tick(lc_herder_t *h)
{
        lc_hev_t *ev, *later = NULL, **at = &later;
        int64_t now, retry, failed;

        h->ticked = true;
        while (!lc_stopping(h) && (ev = lc_pending_take(h))) {
                bool reload = ev->kind == LC_HEV_RELOADED;

                if (reload ? !lc_reload_step(h, ev) : is_busy(h, ev)) {
                        *at = ev; /* in its turn, when that operation has ended */
                        at = &ev->next;
                        continue;
                }
                if (reload)
                        lc_herder_drain(h); /* between two restarts others have their turn */
                else
                        request(h, ev);
        }
        while (later) {
                ev = later;
                later = ev->next;
                lc_pending_add(h, ev);
        }
        now = lc_now_ms();
        retry = lc_reconfigure_retries(h, now);
        failed = lc_policy_restarts(h, now);
        if (failed < retry)
                retry = failed;
        lc_stage(h, "waiting for requests");
        return retry - now < TICK_MS ? (retry > now ? (int)(retry - now) : 0) : TICK_MS;
}

static void event(lc_herder_t *h, lc_hev_t *ev)
{
        switch (ev->kind) {
        case LC_HEV_RELOADED:
        case LC_HEV_VALIDATED:
                lc_pending_add(h, ev);
                return;
        case LC_HEV_TASK_CONFIGS:
                lc_reconfigure_result(h, ev);
                return;
        case LC_HEV_CONNECTOR:
                lc_connector_event(h, ev);
                return;
        case LC_HEV_RECONFIGURE:
                lc_reconfigure(h, ev->name, NULL);
                break;
        default:
                break;
        }
        lc_hev_free(ev);
}

static bool leads(lc_herder_t *h)
{
        (void)h;
        return true;
}

static void end(lc_herder_t *h)
{
        lc_herder_stop_work(h);
}

static void close_parts(lc_herder_t *h)
{
        if (h->configs)
                h->configs->ops->stop(h->configs);
        if (h->offsets)
                h->offsets->ops->stop(h->offsets);
        if (h->statuses)
                h->statuses->ops->stop(h->statuses);
}

static const lc_herder_mode_t mode = {
        .name = "standalone",
        .open = open_parts,
        .begin = begin,
        .tick = tick,
        .request = request,
        .event = event,
        .leads = leads,
        .publish = publish,
        .reconfigured = reconfigured,
        .start_failed = start_failed,
        .end = end,
        .close = close_parts,
};

lc_herder_t *lc_herder_standalone_new(const lc_herder_deps_t *deps, lc_err_t *err)
{
        (void)err;
        return lc_herder_base_init(lc_calloc(1, sizeof(lc_herder_t)), &mode, deps);
}
