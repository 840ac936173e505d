/*
 * reads.c - questions that need no order among the requests and no group: connectors, configs, statuses,
 * topics. They are answered from the stores while the herder's thread may be busy, waiting for a broker
 * or in a rebalance, so that a script that polls a status never waits for somebody's slow stop.
 *
 * Threads:   R (internal.h); the stores' getters take any thread, a snapshot is immutable.
 * Tests:     spec/unit/herder_spec.lua, golden/rest/05
 */
#include "base/alloc.h"
#include "herder/internal.h"
#include <stdlib.h>
#include <string.h>

bool lc_reads_op(lc_request_op_t op)
{
        switch (op) {
        case LC_REQ_LIST:
        case LC_REQ_INFO:
        case LC_REQ_STATUS:
        case LC_REQ_TASKS:
        case LC_REQ_TASK_STATUS:
        case LC_REQ_TOPICS:
        case LC_REQ_TOPICS_RESET:
                return true;
        default:
                return false;
        }
}

bool lc_state_fill(lc_herder_t *h, const lc_config_snapshot_t *s, const char *name, lc_connector_state_t *out)
{
        const lc_config_connector_t *c;

        memset(out, 0, sizeof(*out));
        if (!h->statuses->ops->get(h->statuses, name, -1, &out->connector))
                return false;
        out->name = lc_strdup(name);
        out->ntasks = h->statuses->ops->tasks(h->statuses, name, &out->tasks);
        c = lc_config_snapshot_find(s, name);
        out->type = lc_connector_type(h->deps.plugins, c ? c->config : NULL);
        return true;
}

static void list(lc_herder_t *h, const lc_config_snapshot_t *s, lc_request_t *req)
{
        if (req->want_info)
                req->info = lc_calloc(s->n + 1, sizeof(*req->info));
        if (req->want_status)
                req->state = lc_calloc(s->n + 1, sizeof(*req->state));
        for (size_t i = 0; i < s->n; i++) {
                const lc_config_connector_t *c = &s->v[i];
                if (!c->config)
                        continue;
                if (req->want_status && !lc_state_fill(h, s, c->name, &req->state[req->ninfos]))
                        continue; /* as Connect: no status yet, not shown */
                if (req->want_info)
                        lc_connector_info_fill(&req->info[req->ninfos], h->deps.plugins, c->name, c->config,
                                               c, false);
                lc_strv_add(&req->names, c->name);
                if (req->want_info || req->want_status)
                        req->ninfos++;
        }
        lc_request_answer(req, 200);
}

static void info(lc_herder_t *h, const lc_config_snapshot_t *s, lc_request_t *req)
{
        const lc_config_connector_t *c = lc_config_snapshot_find(s, req->connector);

        if (!c || !c->config) {
                lc_request_fail(req, 404, "Connector %s not found", req->connector);
                return;
        }
        req->info = lc_calloc(1, sizeof(*req->info));
        lc_connector_info_fill(req->info, h->deps.plugins, c->name, c->config, c, req->op == LC_REQ_TASKS);
        lc_request_answer(req, 200);
}

static void task_status(lc_herder_t *h, lc_request_t *req)
{
        lc_connector_state_t *st = lc_calloc(1, sizeof(*st));

        st->tasks = lc_calloc(1, sizeof(*st->tasks));
        if (!h->statuses->ops->get(h->statuses, req->connector, req->task, &st->tasks[0]) || req->task < 0) {
                lc_status_clear(&st->tasks[0]);
                free(st->tasks);
                free(st);
                lc_request_fail(req, 404, "No status found for task %s-%d", req->connector, req->task);
                return;
        }
        st->name = lc_strdup(req->connector);
        st->type = "unknown";
        st->ntasks = 1;
        req->state = st;
        lc_request_answer(req, 200);
}

static void topics(lc_herder_t *h, lc_request_t *req)
{
        if (!lc_worker_config_bool(h->deps.config, "topic.tracking.enable")) {
                lc_request_fail(req, 403, "Topic tracking is disabled.");
        } else if (req->op == LC_REQ_TOPICS) {
                h->statuses->ops->topics(h->statuses, req->connector, &req->names);
                lc_request_answer(req, 200);
        } else if (!lc_worker_config_bool(h->deps.config, "topic.tracking.allow.reset")) {
                lc_request_fail(req, 403, "Topic tracking reset is disabled.");
        } else {
                h->statuses->ops->topics_reset(h->statuses, req->connector);
                lc_request_answer(req, 202);
        }
}

void lc_reads_serve(lc_herder_t *h, lc_request_t *req)
{
        lc_config_snapshot_t *s = h->configs->ops->snapshot(h->configs);

        switch (req->op) {
        case LC_REQ_LIST:
                list(h, s, req);
                break;
        case LC_REQ_INFO:
        case LC_REQ_TASKS:
                info(h, s, req);
                break;
        case LC_REQ_STATUS:
                req->state = lc_calloc(1, sizeof(*req->state));
                if (lc_state_fill(h, s, req->connector, req->state)) {
                        lc_request_answer(req, 200);
                } else {
                        free(req->state);
                        req->state = NULL;
                        lc_request_fail(req, 404, "No status found for connector %s", req->connector);
                }
                break;
        case LC_REQ_TASK_STATUS:
                task_status(h, req);
                break;
        default:
                topics(h, req);
        }
        lc_config_snapshot_unref(s);
}
