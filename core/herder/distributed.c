/*
 * distributed.c - the distributed herder: its parts brought up and down, and the tick, in the order of
 * reference group 6: config readable, membership, rebalance, session key, requests, restart orders, config
 * updates.
 *
 * Requests that write or need an owner wait while a rebalance is under way, 5 s at most, then who asked shall
 * come back (409); reads do not (reads.c), nor do pause, resume and log levels. A worker that has not joined
 * yet for the first time lets them wait until their deadline.
 * Threads:   T; open and close on the caller's.
 * Tests:     spec/unit/herder_spec.lua, spec/kafka, golden/rest, golden/topics/lifecycle.jsonl
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "herder/distributed.h"
#include "herder/session_key.h"
#include "kafka/wire/bootstrap.h"
#include <stdlib.h>
#include <string.h>

enum { TICK_MS = 5000, KEY_RETRY_MS = 1000, LEASE_MS = 100, CLAIM_RETRY_MS = 250 };

static void on_reconfigure(void *arg, const char *connector)
{
        lc_herder_push(arg, lc_hev_new(arg, LC_HEV_RECONFIGURE, connector));
}

static bool may_work(void *arg)
{
        return lc_group_may_work(lc_dist(arg)->group);
}

static int open_parts(lc_herder_t *h, const volatile int *stop, lc_err_t *err)
{
        lc_distributed_t *d = lc_dist(h);
        lc_worker_deps_t deps = {.config = h->deps.config,
                                 .plugins = h->deps.plugins,
                                 .worker_id = h->deps.worker_id,
                                 .reconfigure = on_reconfigure,
                                 .failed = lc_policy_failed,
                                 .may_work = may_work,
                                 .fence = lc_dist_ask_fence,
                                 .verify = lc_dist_ask_verify,
                                 .arg = h};

        if (lc_kafka_stores_new(h->deps.config, &d->stores, err) < 0)
                return -1;
        h->configs = d->stores.config;
        h->offsets = deps.offsets = d->stores.offset;
        h->statuses = deps.statuses = d->stores.status;
        if (lc_bootstrap_check(h->deps.config, stop, err) < 0)
                return -1;
        h->cluster_id = lc_kafka_stores_cluster_id(&d->stores, stop, err);
        if (!h->cluster_id)
                return -1;
        lc_log(LC_INFO, "HERDER", "Kafka cluster ID: %s", h->cluster_id);
        h->worker = lc_worker_new(&deps, err);
        if (!h->worker)
                return -1;
        lc_dist_new_assignor(d);
        d->members = lc_members_new(h->deps.url, h->deps.plugins);
        d->group = lc_group_new(h->deps.config, h->deps.url, &lc_dist_group_events, d, err);
        return d->group ? 0 : -1;
}

static int begin(lc_herder_t *h, lc_err_t *err)
{
        lc_distributed_t *d = lc_dist(h);

        if (h->offsets->ops->start(h->offsets, &h->stop, err) < 0 || lc_stopping(h) ||
            h->statuses->ops->start(h->statuses, &h->stop, err) < 0 || lc_stopping(h) ||
            h->configs->ops->start(h->configs, &lc_dist_config_events, d, &h->stop, err) < 0 ||
            lc_stopping(h))
                return -1;
        lc_herder_set_config(h, h->configs->ops->snapshot(h->configs));
        lc_log(LC_INFO, "HERDER", "Config topic read to its end: offset %lld, %zu connectors",
               (long long)h->config->offset, h->config->n);
        d->can_read = true;
        d->rejoining = true;
        lc_dist_set_state(d);
        return lc_group_start(d->group, err);
}

/* The leader's: 0, or -1 when it could not be written (configs are read again before anything else). */
static int rotate_key(lc_distributed_t *d)
{
        lc_herder_t *h = &d->base;
        int64_t now = lc_wall_ms();
        lc_err_t err;
        char *key;
        int rc = -1;

        if (!lc_dist_leads(d) || d->assignment->protocol < 2 ||
            !lc_session_key_due(h->deps.config, h->config, now))
                return 0;
        lc_err_clear(&err);
        lc_stage(h, "writing a new session key to the config topic");
        key = lc_session_key_make(h->deps.config, &err);
        if (key)
                rc = h->configs->ops->put_session_key(
                        h->configs, key,
                        lc_worker_config_str(h->deps.config, "inter.worker.key.generation.algorithm"), now,
                        &err);
        lc_stage_done(h);
        free(key);
        lc_dist_wrote(d, rc, &err);
        if (rc == 0) {
                lc_dist_take_snapshot(d);
                lc_dist_set_state(d);
                return 0;
        }
        lc_log(LC_INFO, "HERDER",
               "Failed to write new session key to config topic; forcing a read to the end of the "
               "config topic before possibly retrying: %s",
               err.msg);
        d->can_read = false;
        d->read_again_at = lc_now_ms() + KEY_RETRY_MS;
        return -1;
}

/* A leader that cannot write: was it fenced by accident? Milliseconds to wait, -1: fine. */
static int reclaim(lc_distributed_t *d, int64_t now)
{
        lc_herder_t *h = &d->base;
        lc_err_t err;
        int rc;

        if (!d->fenced)
                return -1;
        if (!lc_dist_leads(d)) {
                d->fenced = false;
                return -1;
        }
        if (now < d->claim_at)
                return (int)(d->claim_at - now);
        lc_err_clear(&err);
        lc_stage(h, "reclaiming write privileges for the config topic");
        rc = lc_dist_claim(d, &err);
        lc_stage_done(h);
        if (!rc)
                return -1;
        lc_log(LC_WARN, "HERDER",
               "Unable to claim write privileges for config topic. Will backoff and possibly retry if still "
               "the "
               "leader: %s",
               err.msg);
        d->claim_at = lc_now_ms() + CLAIM_RETRY_MS;
        return CLAIM_RETRY_MS;
}

static int until(int64_t when, int64_t now, int most)
{
        return when == INT64_MAX || when - now > most ? most : when > now ? (int)(when - now) : 0;
}

static int tick(lc_herder_t *h)
{
        lc_distributed_t *d = lc_dist(h);
        int64_t rebalance = lc_worker_config_int(h->deps.config, "rebalance.timeout.ms"), now = lc_now_ms();
        int most = rebalance / 3 < TICK_MS ? (int)(rebalance / 3) + 1 : TICK_MS, wait;
        int64_t retry, failed, key, ask;
        lc_hev_t *ev;

        lc_group_tick(d->group);
        if (!d->can_read) {
                if (now < d->read_again_at) {
                        lc_stage(h, "sleeping for a backoff duration of %lldms",
                                 (long long)(d->read_again_at - now));
                        return until(d->read_again_at, now, most);
                }
                if (!lc_dist_read_to_end(d))
                        return 0;
        }
        /* An assignment that arrived is acted on even if another join was asked for since: the group waits
         * for lc_group_assignment_done(). */
        if (d->assignment && !d->resolved && !lc_dist_handle_rebalance(d))
                return 0;
        if (d->rejoining || !d->assignment || !lc_group_may_work(d->group)) {
                lc_stage(h, "ensuring membership in the cluster");
                return d->rejoining || !d->assignment ? most : LEASE_MS; /* nobody tells when that changes */
        }
        h->ticked = true;
        wait = reclaim(d, now);
        if (wait >= 0)
                return wait;
        if (now >= d->scheduled_at) {
                d->scheduled_at = INT64_MAX;
                lc_dist_rejoin(d, "the scheduled rebalance delay has passed");
                return 0;
        }
        if (rotate_key(d) < 0)
                return 0;
        while (!lc_stopping(h) && !d->rejoining && d->resolved && (ev = lc_pending_take(h))) {
                lc_dist_request(h, ev);
                lc_herder_drain(h);
                lc_group_tick(d->group);
        }
        if (d->rejoining || !d->resolved || lc_stopping(h))
                return 0;
        lc_dist_run_orders(d);
        retry = lc_reconfigure_retries(h, lc_now_ms());
        failed = lc_policy_restarts(h, lc_now_ms());
        lc_dist_config_updates(d, false);
        lc_dist_check_members(d);
        if (d->rejoining || h->pending)
                return 0;
        ask = lc_dist_ask_members(d);
        now = lc_now_ms();
        wait = until(d->scheduled_at, now, most);
        wait = until(ask, now, wait);
        if (d->trim_at && d->trim_at <= now) {
                d->trim_at = 0;
                lc_alloc_trim();
        }
        if (d->trim_at)
                wait = until(d->trim_at, now, wait);
        if (d->hold_since)
                wait = until(d->hold_until, now, wait);
        wait = until(retry, now, wait);
        wait = until(failed, now, wait);
        key = lc_dist_leads(d) ? lc_session_key_expires(h->deps.config, h->config) : INT64_MAX;
        wait = until(key, lc_wall_ms(), wait);
        if (d->scheduled_at == INT64_MAX)
                lc_stage(h, "polling the group coordinator until interrupted");
        else
                lc_stage(h, "polling the group coordinator for up to %lldms or until interrupted",
                         (long long)(d->scheduled_at - now));
        return wait;
}

static void event(lc_herder_t *h, lc_hev_t *ev)
{
        lc_distributed_t *d = lc_dist(h);

        switch (ev->kind) {
        case LC_HEV_RELOADED: /* it restarts work, of which a rebalance may leave none here */
        case LC_HEV_FENCE:
        case LC_HEV_VERIFY:
        case LC_HEV_FENCED:
        case LC_HEV_VALIDATED:
        case LC_HEV_TASK_CONFIGS: /* they write: in their turn, not during a rebalance */
                lc_pending_add(h, ev);
                return;
        case LC_HEV_CONNECTOR:
                lc_connector_event(h, ev);
                return;
        case LC_HEV_PUBLISHED:
                lc_reconfigure_published(h, ev);
                return;
        case LC_HEV_FENCE_ANSWER:
                lc_dist_fence_answered(ev);
                return;
        case LC_HEV_RECONFIGURE:
                lc_reconfigure(h, ev->name, NULL);
                break;
        case LC_HEV_MEMBER:
                lc_dist_member_answered(d, ev);
                break;
        case LC_HEV_LOGGER:
                d->dirty = true; /* the offset moved */
                if (h->deps.logger_level)
                        h->deps.logger_level(h->deps.logger_arg, ev->name, ev->level);
                break;
        case LC_HEV_CONFIG:
                d->dirty = true;
                if (ev->updated && !lc_strv_has(&d->updated, ev->name))
                        lc_strv_add(&d->updated, ev->name);
                break;
        case LC_HEV_RESTART:
                d->dirty = true;
                lc_dist_order(d, ev->name, ev->only_failed, ev->include_tasks);
                break;
        case LC_HEV_ASSIGNED:
                lc_dist_assigned(d, ev);
                break;
        case LC_HEV_PREPARING:
                lc_dist_preparing(d, ev->protocol);
                break;
        case LC_HEV_COORDINATOR_LOST:
                lc_dist_coordinator_lost(d);
                break;
        case LC_HEV_FATAL:
                if (!h->fatal) {
                        h->fatal = ev->err;
                        ev->err = NULL;
                }
                break;
        case LC_HEV_FAILED: /* the tick looks */
        case LC_HEV_REQUEST:
        case LC_HEV_OFFSETS:
                break;
        }
        lc_hev_free(ev);
}

static bool stalled(lc_herder_t *h)
{
        lc_distributed_t *d = lc_dist(h);

        return h->ticked && (!d->can_read || d->rejoining || !d->resolved || !lc_group_may_work(d->group));
}

static bool leads(lc_herder_t *h)
{
        return lc_dist_leads(lc_dist(h));
}

static void end(lc_herder_t *h)
{
        lc_distributed_t *d = lc_dist(h);

        if (h->config) { /* begun: there may be work, and a group to leave */
                lc_log(LC_INFO, "HERDER",
                       "Stopping connectors and tasks that are still assigned to this worker.");
                lc_herder_stop_work(h);
                h->statuses->ops->flush(h->statuses, LC_STATUS_FLUSH_MS);
        }
        lc_dist_fence_close(d);
        lc_group_quit(d->group); /* tasks that were abandoned may still ask whether they may work */
}

static void close_parts(lc_herder_t *h)
{
        lc_distributed_t *d = lc_dist(h);

        if (d->group)
                lc_group_stop(d->group);
        if (h->configs)
                h->configs->ops->stop(h->configs);
        if (h->offsets)
                h->offsets->ops->stop(h->offsets);
        if (h->statuses)
                h->statuses->ops->stop(h->statuses);
        if (h->configs)
                lc_kafka_stores_free(&d->stores);
        lc_dist_fence_close(d);
        lc_assignor_free(d->assignor);
        lc_members_free(d->members);
        pthread_mutex_destroy(&d->assign_lock);
        lc_assignment_free(d->assignment);
        lc_work_free(&d->assigned);
        lc_work_free(&d->running);
        lc_work_free(&d->restart);
        lc_dist_forget_updates(d);
}

static const lc_herder_mode_t mode = {
        .name = "distributed",
        .open = open_parts,
        .begin = begin,
        .tick = tick,
        .admit = lc_dist_admit,
        .request = lc_dist_request,
        .stalled = stalled,
        .event = event,
        .leads = leads,
        .publish = lc_dist_publish,
        .reconfigured = lc_dist_reconfigured,
        .start_failed = lc_dist_start_failed,
        .end = end,
        .close = close_parts,
};

lc_herder_t *lc_herder_distributed_new(const lc_herder_deps_t *deps, lc_err_t *err)
{
        lc_distributed_t *d = lc_calloc(1, sizeof(*d));

        (void)err;
        pthread_mutex_init(&d->assign_lock, NULL);
        d->scheduled_at = INT64_MAX;
        d->backoff_retries = LC_BACKOFF_RETRIES;
        d->claimed = -1;
        return lc_herder_base_init(&d->base, &mode, deps);
}
