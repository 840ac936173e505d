/*
 * distributed_internal.c - requests between workers: the checks of their signature, and what the leader does
 * with them.
 *
 * A signature is asked for only when the group speaks the sessioned protocol. It is checked before anything
 * else, also by a worker that does not lead (which sends the request on, as Connect does, without a new
 * signature: it ends at the next hop).
 * Threads:   T.
 * Source:    rest.md 2.5, group 4.   Tests: spec/unit/herder_cluster_spec.lua, golden/cluster
 */
#include "base/alloc.h"
#include "base/log.h"
#include "herder/distributed.h"
#include "herder/session_key.h"
#include <stdlib.h>
#include <string.h>

static bool sessioned(const lc_distributed_t *d)
{
        const char *configured;

        if (d->assignment)
                return d->assignment->protocol >= 2;
        configured = lc_worker_config_str(d->base.deps.config, "connect.protocol");
        return configured && !strcasecmp(configured, "sessioned");
}

static bool permitted(const lc_herder_t *h, lc_request_t *req)
{
        lc_strv_t list = {0};
        lc_buf_t text = LC_BUF_INIT;
        bool yes;

        lc_worker_config_list(h->deps.config, "inter.worker.verification.algorithms", &list);
        yes = lc_strv_has(&list, req->signature_algorithm);
        for (size_t i = 0; !yes && i < list.n; i++)
                lc_buf_printf(&text, "%s%s", i ? ", " : "", list.v[i]);
        if (!yes)
                lc_request_fail(req, 400,
                                "This worker does not support the '%s' key signing algorithm used by other "
                                "workers. This worker is currently configured to use: [%s]. Check that all "
                                "workers' configuration files permit the same set of signature algorithms, "
                                "and correct any misconfigured worker and restart it.",
                                req->signature_algorithm, text.len ? text.p : "");
        lc_buf_free(&text);
        lc_strv_free(&list);
        return yes;
}

/* With the newest key there is: a request signed with an older one is tried again by who sent it. */
static bool signed_well(lc_herder_t *h, lc_request_t *req)
{
        lc_config_snapshot_t *s = h->configs->ops->snapshot(h->configs);
        bool yes = false;

        if (!s->session_key)
                lc_request_fail(req, 503,
                                "This worker is still starting up and has not been able to read a session "
                                "key from the config topic yet");
        else if (!lc_session_verify(s->session_key, req->signature_algorithm, req->signature, req->body,
                                    req->body_len))
                lc_request_fail(req, 403, "Internal request contained invalid signature.");
        else
                yes = true;
        lc_config_snapshot_unref(s);
        return yes;
}

bool lc_dist_admit(lc_herder_t *h, lc_request_t *req)
{
        lc_err_t err;

        if (req->op != LC_REQ_PUT_TASKS && req->op != LC_REQ_FENCE)
                return true;
        lc_err_clear(&err);
        if (req->signature && req->signature_algorithm &&
            lc_session_signature_check(req->signature_algorithm, req->signature, &err) < 0) {
                lc_request_fail_err(req, 400, &err);
                return false;
        }
        if (!sessioned(lc_dist(h)))
                return true;
        if (!req->signature || !req->signature_algorithm) {
                lc_request_fail(req, 400, "Internal request missing required signature");
                return false;
        }
        return permitted(h, req) && signed_well(h, req);
}

void lc_dist_put_tasks(lc_distributed_t *d, lc_request_t *req)
{
        lc_herder_t *h = &d->base;
        const lc_config_connector_t *c;
        lc_config_snapshot_t *s;
        lc_err_t err;
        int rc;

        if (!lc_dist_leads(d))
                lc_log(LC_DEBUG, "HERDER", "Only the leader may write task configurations.");
        if (!lc_dist_leading(d, req))
                return;
        lc_err_clear(&err);
        s = h->configs->ops->snapshot(h->configs);
        c = lc_config_snapshot_find(s, req->connector);
        if (!c || !c->config) {
                lc_request_fail(req, 404, "Connector %s not found", req->connector);
        } else if (req->ntasks > 0 && c->target == LC_TARGET_STOPPED) {
                lc_request_fail(req, 400, "Cannot submit non-empty set of task configs for stopped connector %s",
                                req->connector);
        } else {
                lc_stage(h, "writing %d task configs for connector %s to the config topic", req->ntasks,
                         req->connector);
                rc = h->configs->ops->put_tasks(h->configs, req->connector, req->tasks, req->ntasks, &err);
                lc_stage_done(h);
                if (rc < 0)
                        lc_request_fail_err(req, 500, &err);
                else
                        lc_request_answer(req, 204);
        }
        lc_config_snapshot_unref(s);
}

/* A source task of a worker with exactly-once support wants the producers of earlier task sets fenced. */
void lc_dist_fence(lc_distributed_t *d, lc_request_t *req)
{
        lc_herder_t *h = &d->base;
        lc_config_snapshot_t *s;
        const lc_config_connector_t *c;

        if (!lc_dist_leads(d))
                lc_log(LC_DEBUG, "HERDER", "Only the leader may perform zombie fencing.");
        if (!lc_dist_leading(d, req))
                return;
        s = h->configs->ops->snapshot(h->configs);
        c = lc_config_snapshot_find(s, req->connector);
        if (!c || !c->config)
                lc_request_fail(req, 404, "Connector %s not found", req->connector);
        else if (!strcmp(lc_connector_type(h->deps.plugins, c->config), "sink"))
                lc_request_fail(req, 400, "Connector %s is not a source connector", req->connector);
        else /* the round of fencing has its place here */
                lc_request_fail(req, 500,
                                "The leader of this cluster cannot fence the tasks of connector %s: this "
                                "version has no support for exactly-once source connectors",
                                req->connector);
        lc_config_snapshot_unref(s);
}
