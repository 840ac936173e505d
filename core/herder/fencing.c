/*
 * fencing.c - what exactly-once source tasks need of the cluster before they may write: that the producers of
 * earlier task sets are fenced, and that their own set is still the newest (KIP-618).
 *
 * The leader fences: it knows by a record in the config topic how many tasks an earlier set had, and writes
 * another one when it is done. Who asks while a round for the connector runs shares it. Followers send the
 * question to the leader.
 * Threads:   T; rounds run on the worker's pool, questions come from task threads and are pushed.
 * Source:    worker-tasks 4.1.   Tests: spec/unit/herder_spec.lua, spec/kafka/exactly_once_spec.lua
 */
#include "base/alloc.h"
#include "base/log.h"
#include "config/client_config.h"
#include "config/connector_config.h"
#include "herder/distributed.h"
#include "kafka/transactions.h"
#include <stdlib.h>
#include <string.h>

enum { ROUND_MS = 90000 };

typedef struct waiter { /* a request, or a task of ours */
        lc_request_t *req;
        lc_ticket_t *ticket;
        struct waiter *next;
} waiter_t;

struct lc_fencing { /* a round that runs */
        char *name;
        int generation; /* of the task set it is for */
        int count;      /* of its tasks */
        waiter_t *waiters;
        lc_fencing_t *next;
};

/* ---- answers ---- */

static void answer(waiter_t *w, int status, const lc_err_t *err)
{
        if (w->req && err)
                lc_request_fail_err(w->req, status, err);
        else if (w->req)
                lc_request_answer(w->req, 204);
        if (w->ticket)
                lc_ticket_answer(w->ticket, err);
        w->req = NULL;
        w->ticket = NULL;
}

static void refuse(waiter_t *w, int status, lc_err_kind_t kind, const char *fmt, const char *name)
{
        lc_err_t err;

        lc_err_clear(&err);
        lc_err_set(&err, kind, status, fmt, name);
        answer(w, status, &err);
}

static void end_round(lc_distributed_t *d, lc_fencing_t *f, int status, const lc_err_t *err)
{
        lc_fencing_t **at = &d->fencings;
        waiter_t *w;

        while (*at != f)
                at = &(*at)->next;
        *at = f->next;
        while ((w = f->waiters)) {
                f->waiters = w->next;
                answer(w, status, err);
                free(w);
        }
        free(f->name);
        free(f);
}

static lc_fencing_t *find_round(const lc_distributed_t *d, const char *name)
{
        lc_fencing_t *f = d->fencings;

        while (f && strcmp(f->name, name) != 0)
                f = f->next;
        return f;
}

void lc_dist_fence_outdated(lc_distributed_t *d, const char *name)
{
        lc_fencing_t *f = find_round(d, name);
        lc_err_t err;

        if (!f)
                return;
        lc_err_clear(&err);
        lc_err_set(&err, LC_RETRIABLE, 409,
                   "Failed to complete zombie fencing because a new set of task configs was generated");
        end_round(d, f, 409, &err);
}

void lc_dist_fence_close(lc_distributed_t *d)
{
        lc_err_t err;

        lc_err_clear(&err);
        lc_err_set(&err, LC_FATAL, 500, LC_SHUTTING_DOWN);
        while (d->fencings)
                end_round(d, d->fencings, 500, &err);
}

/* ---- a round ---- */

static bool over(void *arg)
{
        return !lc_hev_wanted(arg);
}

static int fence_all(lc_hev_t *ev, lc_err_t *err)
{
        const lc_worker_config_t *wc = ev->h->deps.config;
        lc_props_t *config = lc_config_resolve(wc, ev->config, err), *conf = NULL;
        char *client = lc_asprintf("connector-worker-adminclient-%s", ev->name);
        char *prefix = lc_asprintf("%s-%s", lc_worker_config_str(wc, "group.id"), ev->name);
        int rc = -1;

        if (config)
                conf = lc_client_config(wc, LC_CLIENT_ADMIN, config, client, err);
        if (conf)
                rc = lc_txn_fence(conf, prefix, ev->ntasks, ROUND_MS, over, ev, err);
        lc_props_free(conf);
        lc_props_free(config);
        free(client);
        free(prefix);
        return rc;
}

/* A pool thread. */
static void run_round(void *arg)
{
        lc_hev_t *ev = arg;
        lc_err_t err;

        lc_err_clear(&err);
        if (fence_all(ev, &err) < 0) {
                lc_err_wrap(&err, LC_CLS_CONNECT, "Failed to perform zombie fencing");
                lc_hev_set_err(ev, &err);
        }
        lc_hev_back_push(ev);
}

/* Only after a round, and the first time: the task set may write from here on. */
static void write_record(lc_distributed_t *d, const char *name, int count, bool after_round, int *status,
                         lc_err_t *err)
{
        lc_herder_t *h = &d->base;
        int rc;

        lc_stage(h, "writing a task count record for connector %s to the config topic%s", name,
                 after_round ? " after performing zombie fencing" : "");
        rc = h->configs->ops->put_task_count(h->configs, name, count, err);
        lc_stage_done(h);
        *status = lc_dist_wrote(d, rc, err) < 0 ? 500 : 204;
}

static bool refresh(lc_herder_t *h, lc_err_t *err)
{
        int rc;

        lc_stage(h, "reading to the end of the config topic");
        rc = h->configs->ops->refresh(
                h->configs, (int)lc_worker_config_int(h->deps.config, "worker.sync.timeout.ms"), err);
        lc_stage_done(h);
        return rc == 0;
}

static void begin_round(lc_distributed_t *d, const lc_config_connector_t *c, waiter_t *w)
{
        lc_herder_t *h = &d->base;
        lc_fencing_t *f = find_round(d, c->name);
        waiter_t *copy = lc_malloc(sizeof(*copy));
        lc_hev_t *ev;

        if (f && f->generation != c->generation) {
                lc_dist_fence_outdated(d, c->name);
                f = NULL;
        }
        if (!f) {
                f = lc_calloc(1, sizeof(*f));
                f->name = lc_strdup(c->name);
                f->generation = c->generation;
                f->count = c->ntasks;
                f->next = d->fencings;
                d->fencings = f;
                lc_stage(h, "initiating a round of zombie fencing for connector %s", c->name);
                lc_log(LC_INFO, "HERDER",
                       "Performing a round of zombie fencing for connector %s: %d producers", c->name,
                       c->task_count_record);
                ev = lc_hev_new(h, LC_HEV_FENCED, c->name);
                ev->config = lc_props_copy(c->config);
                ev->ntasks = c->task_count_record;
                ev->generation = c->generation;
                lc_hev_out(ev);
                lc_worker_run(h->worker, run_round, ev);
                lc_stage_done(h);
        }
        *copy = *w;
        copy->next = f->waiters;
        f->waiters = copy;
}

/* This is the leader. */
static void fence(lc_distributed_t *d, const char *name, waiter_t *w)
{
        lc_herder_t *h = &d->base;
        lc_config_snapshot_t *s;
        const lc_config_connector_t *c;
        lc_err_t err;
        int status;

        lc_err_clear(&err);
        if (!refresh(h, &err)) {
                lc_err_wrap(&err, LC_CLS_CONNECT,
                            "Failed to read to end of config topic before performing zombie fencing");
                answer(w, 500, &err);
                return;
        }
        s = h->configs->ops->snapshot(h->configs);
        c = lc_config_snapshot_find(s, name);
        if (!c || !c->config) {
                refuse(w, 404, LC_FATAL, "Connector %s not found", name);
        } else if (!strcmp(lc_connector_type(h->deps.plugins, c->config), "sink")) {
                refuse(w, 400, LC_FATAL, "Connector %s is not a source connector", name);
        } else if (!c->pending_fencing) {
                lc_log(LC_DEBUG, "HERDER",
                       "Skipping zombie fencing round for connector %s as all old task generations have "
                       "already "
                       "been fenced out",
                       name);
                answer(w, 204, NULL);
        } else if (c->task_count_record < 0 || (c->task_count_record == 1 && c->ntasks == 1)) {
                /* nothing was ever started, or the new producer fences the only old one by itself */
                lc_log(LC_DEBUG, "HERDER",
                       "Skipping zombie fencing round but writing task count record for connector %s", name);
                write_record(d, name, c->ntasks, false, &status, &err);
                answer(w, status, err.kind ? &err : NULL);
        } else {
                begin_round(d, c, w);
        }
        lc_config_snapshot_unref(s);
}

static void fenced(lc_distributed_t *d, const lc_hev_t *ev)
{
        lc_herder_t *h = &d->base;
        lc_fencing_t *f = find_round(d, ev->name);
        lc_config_snapshot_t *s;
        const lc_config_connector_t *c;
        lc_err_t err;
        int status = 500;

        if (!f || f->generation != ev->generation)
                return; /* it was given up meanwhile */
        lc_err_clear(&err);
        if (ev->err) {
                err = *ev->err;
        } else if (!lc_dist_leads(d)) {
                status = 409;
                lc_err_set(&err, LC_RETRIABLE, status, LC_NO_LEADER_URL);
        } else if (refresh(h, &err)) {
                s = h->configs->ops->snapshot(h->configs);
                c = lc_config_snapshot_find(s, ev->name);
                if (!c || c->generation != f->generation) {
                        status = 409;
                        lc_err_set(&err, LC_RETRIABLE, status,
                                   "Fencing failed because new task configurations were generated for the "
                                   "connector");
                } else {
                        write_record(d, ev->name, f->count, true, &status, &err);
                }
                lc_config_snapshot_unref(s);
        }
        end_round(d, f, status, err.kind ? &err : NULL);
}

/* From another worker: checked by lc_dist_admit(). */
void lc_dist_fence(lc_distributed_t *d, lc_request_t *req)
{
        waiter_t w = {.req = req};

        if (!lc_dist_leads(d))
                lc_log(LC_DEBUG, "HERDER", "Only the leader may perform zombie fencing.");
        if (lc_dist_leading(d, req))
                fence(d, req->connector, &w);
}

/* ---- questions of this worker's tasks ---- */

static void ask(lc_herder_t *h, lc_hev_kind_t kind, const char *connector, int task, lc_ticket_t *ticket)
{
        lc_hev_t *ev = lc_hev_new(h, kind, connector);

        ev->task = task;
        ev->ticket = ticket;
        lc_herder_push(h, ev);
}

void lc_dist_ask_fence(void *arg, const char *connector, int task, lc_ticket_t *ticket)
{
        ask(arg, LC_HEV_FENCE, connector, task, ticket);
}

void lc_dist_ask_verify(void *arg, const char *connector, int task, lc_ticket_t *ticket)
{
        ask(arg, LC_HEV_VERIFY, connector, task, ticket);
}

static void verify(lc_distributed_t *d, const lc_hev_t *ev, waiter_t *w)
{
        lc_herder_t *h = &d->base;
        lc_config_snapshot_t *s;
        const lc_config_connector_t *c;
        lc_err_t err;
        bool newest;

        lc_err_clear(&err);
        if (!refresh(h, &err)) {
                lc_err_wrap(&err, LC_CLS_CONNECT, "Failed to read to end of config topic");
                answer(w, 500, &err);
                return;
        }
        s = h->configs->ops->snapshot(h->configs);
        c = lc_config_snapshot_find(s, ev->name);
        newest = c && c->generation == lc_hconn_task_generation(h, ev->name, ev->task);
        lc_config_snapshot_unref(s);
        if (!newest)
                lc_err_set(&err, LC_FATAL, 0,
                           "Cannot start source task %s-%d with exactly-once support as the connector has "
                           "already generated a new set of task configs",
                           ev->name, ev->task);
        else if (!lc_work_has(&d->assigned, ev->name, ev->task))
                lc_err_set(&err, LC_FATAL, 0,
                           "Cannot start source task %s-%d as it has already been revoked from this worker",
                           ev->name, ev->task);
        answer(w, 0, err.kind ? &err : NULL);
}

static void to_leader(lc_distributed_t *d, const lc_hev_t *ev, waiter_t *w)
{
        lc_err_t err;

        lc_err_clear(&err);
        if (lc_dist_send_fence(d, ev->name, w->ticket, &err) < 0)
                answer(w, 0, &err);
}

void lc_dist_gate(lc_distributed_t *d, lc_hev_t *ev)
{
        waiter_t w = {.ticket = ev->ticket};

        ev->ticket = NULL;
        if (ev->kind == LC_HEV_FENCED)
                fenced(d, ev);
        else if (ev->kind == LC_HEV_VERIFY)
                verify(d, ev, &w);
        else if (lc_dist_leads(d))
                fence(d, ev->name, &w);
        else
                to_leader(d, ev, &w);
        lc_hev_free(ev);
}

/* The leader's answer. */
void lc_dist_fence_answered(lc_hev_t *ev)
{
        /* nobody there, a rebalance, a key that was rotated, a leader that starts: it may be better soon */
        if (ev->err && ev->err->code != 0 && ev->err->code != 409 && ev->err->code != 403 &&
            ev->err->code != 503 && ev->err->code >= 400 && ev->err->code < 600)
                ev->err->kind = LC_FATAL;
        lc_ticket_answer(ev->ticket, ev->err);
        ev->ticket = NULL;
        lc_hev_free(ev);
}
