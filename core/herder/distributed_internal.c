/*
 * distributed_internal.c - requests between workers: the checks of their signature, what the leader does with
 * them, and those that this worker sends: task configs to the leader, and, as the leader, the question which
 * connector classes a member has.
 *
 * A signature is asked for only when the group speaks the sessioned protocol. It is checked before anything
 * else, also by a worker that does not lead (which sends the request on, as Connect does, without a new
 * signature: it ends at the next hop).
 * Threads:   T; answers come on the HTTP client's thread, which only pushes them.
 * Source:    rest.md 2.5, group 4.   Tests: spec/unit/herder_cluster_spec.lua, golden/cluster
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "convert/json.h"
#include "herder/distributed.h"
#include "herder/session_key.h"
#include <stdlib.h>
#include <string.h>

enum { ASK_MS = 10000, MOST_PLUGINS = 4 << 20, MOST_ANSWER = 1 << 20 };

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
        lc_buf_t text = LC_BUF_SURE;
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
                lc_request_fail(req, 400,
                                "Cannot submit non-empty set of task configs for stopped connector %s",
                                req->connector);
        } else {
                lc_stage(h, "writing %d task configs for connector %s to the config topic", req->ntasks,
                         req->connector);
                rc = h->configs->ops->put_tasks(h->configs, req->connector, req->tasks, req->ntasks, &err);
                lc_stage_done(h);
                if (lc_dist_wrote(d, rc, &err) < 0)
                        lc_request_fail_err(req, 500, &err);
                else
                        lc_request_answer(req, 204);
        }
        lc_config_snapshot_unref(s);
}

/* What this worker sends. */

/* One segment of a path: what a server would take for something else is escaped. */
static void add_segment(lc_buf_t *url, const char *s)
{
        for (; *s; s++) {
                unsigned char c = (unsigned char)*s;
                if (c > ' ' && c < 0x7F && !strchr("/?#%;\"<>\\^`{|}[]", c))
                        lc_buf_addc(url, (char)c);
                else
                        lc_buf_printf(url, "%%%02X", c);
        }
}

static void start_url(lc_buf_t *url, const char *base)
{
        lc_buf_adds(url, base);
        if (!url->len || url->p[url->len - 1] != '/')
                lc_buf_addc(url, '/');
}

static void add_header(lc_http_call_t *call, const char *name, const char *value)
{
        char *line = lc_asprintf("%s: %s", name, value);

        lc_strv_add(&call->headers, line);
        free(line);
}

/* The message of an error answer, else the beginning of whatever came. */
static void refusal(const lc_http_call_t *call, lc_err_t *err)
{
        const lc_json_t *message;
        lc_json_t *doc = NULL;
        lc_err_t bad;

        lc_err_clear(&bad);
        if (lc_json_parse(call->answer.p ? call->answer.p : "", call->answer.len, 0, &doc, &bad) < 0)
                doc = NULL;
        message = doc && doc->type == LC_J_OBJECT ? lc_json_get(doc, "message") : NULL;
        if (message && message->type == LC_J_STRING)
                lc_err_set(err, LC_RETRIABLE, call->status, "%s answered %d: %s", call->url, call->status,
                           message->s);
        else
                lc_err_set(err, LC_RETRIABLE, call->status, "%s answered %d: %.200s", call->url, call->status,
                           call->answer.p ? call->answer.p : "");
        lc_json_free(doc);
}

/* HTTP client's thread. The event takes what came. */
static void came_back(lc_http_call_t *call)
{
        lc_hev_t *ev = call->arg;
        lc_err_t err = call->err;

        if (!err.kind && call->status / 100 != 2)
                refusal(call, &err);
        if (err.kind) {
                lc_hev_set_err(ev, &err);
        } else {
                ev->answer = call->answer;
                memset(&call->answer, 0, sizeof(call->answer));
        }
        lc_http_call_free(call);
        lc_hev_back_push(ev);
}

static void submit(lc_herder_t *h, lc_http_call_t *call, lc_hev_t *ev)
{
        call->done = came_back;
        call->arg = ev;
        lc_hev_out(ev);
        lc_http_submit(h->deps.http, call);
}

/* As the protocol wants it: with the newest key; without one a sessioned leader would refuse. */
static int sign(lc_distributed_t *d, lc_http_call_t *call, lc_err_t *err)
{
        lc_herder_t *h = &d->base;
        lc_config_snapshot_t *s = h->configs->ops->snapshot(h->configs);
        const char *algorithm = lc_worker_config_str(h->deps.config, "inter.worker.signature.algorithm");
        char *signature = NULL;
        int rc = 0;

        if (s->session_key) {
                signature = lc_session_sign(s->session_key, algorithm, call->body.p, call->body.len, err);
                rc = signature ? 0 : -1;
        } else if (d->assignment->protocol >= 2) {
                rc = lc_err_set(err, LC_RETRIABLE, 0,
                                "There is no session key in the config topic yet to sign the request to the "
                                "leader with");
        }
        if (signature) {
                add_header(call, "X-Connect-Authorization", signature);
                add_header(call, "X-Connect-Request-Signature-Algorithm", algorithm);
        }
        free(signature);
        lc_config_snapshot_unref(s);
        return rc;
}

/* NULL with err: nobody to send it to. */
static lc_http_call_t *call_leader(lc_distributed_t *d, const char *method, const char *name,
                                   const char *rest, const char *nowhere, lc_err_t *err)
{
        const char *leader = d->assignment ? d->assignment->leader_url : NULL;
        lc_buf_t url = LC_BUF_SURE;
        lc_http_call_t *call;

        if (!d->assignment || d->assignment->is_leader) {
                lc_err_set(err, LC_RETRIABLE, 0, "This worker may not lead the cluster any more");
                return NULL;
        }
        if (!leader || !leader[0]) {
                lc_err_set(err, LC_RETRIABLE, 0, "%s", nowhere);
                return NULL;
        }
        if (!d->base.deps.http) {
                lc_err_set(err, LC_RETRIABLE, 0, "There is no HTTP client for requests to the leader");
                return NULL;
        }
        start_url(&url, leader);
        lc_buf_adds(&url, "connectors/");
        add_segment(&url, name);
        lc_buf_adds(&url, rest);
        call = lc_http_call_new(method, url.p);
        lc_buf_free(&url);
        call->max_answer = MOST_ANSWER;
        return call;
}

int lc_dist_send_tasks(lc_distributed_t *d, const char *name, lc_props_t *const *tasks, int n, lc_err_t *err)
{
        lc_http_call_t *call =
                call_leader(d, "POST", name, "/tasks?forward=false",
                            "Request to leader to reconfigure connector tasks failed because the URL of "
                            "the leader's REST interface is empty!",
                            err);

        if (!call)
                return -1;
        lc_buf_addc(&call->body, '[');
        for (int i = 0; i < n; i++) {
                if (i)
                        lc_buf_addc(&call->body, ',');
                lc_json_write_props(&call->body, tasks[i]);
        }
        lc_buf_addc(&call->body, ']');
        call->has_body = true;
        add_header(call, "Content-Type", "application/json");
        add_header(call, "Accept", "application/json");
        if (sign(d, call, err) < 0) {
                lc_http_call_free(call);
                return -1;
        }
        lc_log(LC_DEBUG, "HERDER", "Forwarding task configurations for connector %s to leader %s", name,
               d->assignment->leader_url);
        submit(&d->base, call, lc_hev_new(&d->base, LC_HEV_PUBLISHED, name));
        return 1;
}

int lc_dist_send_fence(lc_distributed_t *d, const char *name, lc_ticket_t *ticket, lc_err_t *err)
{
        lc_http_call_t *call = call_leader(d, "PUT", name, "/fence?forward=false", LC_NO_LEADER_URL, err);
        lc_hev_t *ev;

        if (!call)
                return -1;
        add_header(call, "Accept", "application/json");
        if (sign(d, call, err) < 0) {
                lc_http_call_free(call);
                return -1;
        }
        lc_log(LC_DEBUG, "HERDER", "Forwarding zombie fencing request for connector %s to leader at %s", name,
               call->url);
        ev = lc_hev_new(&d->base, LC_HEV_FENCE_ANSWER, name);
        ev->ticket = ticket;
        submit(&d->base, call, ev);
        return 1;
}

/* Which connector classes do the members have? Their REST tells; nothing waits for it. */

int64_t lc_dist_ask_members(lc_distributed_t *d)
{
        lc_herder_t *h = &d->base;
        int64_t next = INT64_MAX;
        char *id, *url;

        if (!lc_dist_leads(d) || !h->deps.http)
                return INT64_MAX;
        while (lc_members_ask(d->members, lc_now_ms(), &id, &url, &next)) {
                lc_hev_t *ev = lc_hev_new(h, LC_HEV_MEMBER, id);
                lc_buf_t at = LC_BUF_SURE;
                lc_http_call_t *call;

                ev->url = url;
                start_url(&at, url);
                lc_buf_adds(&at, "connector-plugins?connectorsOnly=true");
                call = lc_http_call_new("GET", at.p);
                call->timeout_ms = ASK_MS;
                call->max_answer = MOST_PLUGINS;
                add_header(call, "Accept", "application/json");
                submit(h, call, ev);
                lc_buf_free(&at);
                free(id);
        }
        return next;
}

void lc_dist_member_answered(lc_distributed_t *d, lc_hev_t *ev)
{
        if (!lc_members_answered(d->members, ev->name, ev->url, &ev->answer, ev->err ? ev->err->msg : NULL,
                                 lc_now_ms()))
                return;
        d->check_members = true;
        lc_members_say_missing(d->members, d->base.config);
}

static bool misplaced(lc_distributed_t *d, const lc_config_connector_t *c, int task)
{
        lc_buf_t url = LC_BUF_SURE;
        bool yes;

        pthread_mutex_lock(&d->assign_lock);
        yes = lc_assignor_owner_url(d->assignor, c->name, task, &url);
        pthread_mutex_unlock(&d->assign_lock);
        yes = yes && url.p && lc_members_misplaced(d->members, url.p, c->config);
        lc_buf_free(&url);
        return yes;
}

/* Work that was dealt before the answer was known: dealt again, it goes where it can run. */
void lc_dist_check_members(lc_distributed_t *d)
{
        const lc_config_snapshot_t *s = d->base.config;

        if (!d->check_members || d->rejoining || !d->resolved)
                return;
        d->check_members = false;
        if (!lc_dist_leads(d))
                return;
        for (size_t i = 0; i < s->n; i++)
                for (int task = -1; task < lc_config_connector_task_count(&s->v[i]); task++)
                        if (misplaced(d, &s->v[i], task)) {
                                lc_log(LC_INFO, "HERDER",
                                       "Connector %s is on a worker that does not have its class, and "
                                       "another "
                                       "worker has it: asking for a rebalance",
                                       s->v[i].name);
                                lc_dist_rejoin(d, "work is on a worker that does not have its class");
                                return;
                        }
}
