/*
 * distributed_config.c - changes of the config topic become work: storage 3.
 *
 * Events of the store only wake the herder; what changed is found by comparing the old snapshot with the new
 * one, so that it does not matter in which order events and snapshots arrive. The one exception is a config
 * written again unchanged: it restarts the connector instance, as in Connect.
 * Threads:   T; the callbacks of the store push events.
 * Tests:     spec/unit/herder_spec.lua, golden/topics/lifecycle.jsonl
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "herder/distributed.h"
#include <stdlib.h>
#include <string.h>

enum { HOLD_MS = 20, HOLD_MOST_MS = 250 };

static void news(void *arg, const char *name, bool updated)
{
        lc_distributed_t *d = arg;
        lc_hev_t *ev = lc_hev_new(&d->base, LC_HEV_CONFIG, name);

        ev->updated = updated;
        lc_herder_push(&d->base, ev);
}

static void on_connector_updated(void *arg, const char *name)
{
        lc_log(LC_INFO, "HERDER", "Connector %s config updated", name);
        news(arg, name, true);
}

static void on_connector_removed(void *arg, const char *name)
{
        lc_log(LC_INFO, "HERDER", "Connector %s config removed", name);
        news(arg, name, true);
}

static void on_tasks_updated(void *arg, const char *name, int ntasks)
{
        lc_log(LC_INFO, "HERDER", "Tasks of connector %s updated: %d", name, ntasks);
        news(arg, name, false);
}

static void on_target_changed(void *arg, const char *name)
{
        lc_log(LC_INFO, "HERDER", "Connector %s target state change", name);
        news(arg, name, false);
}

static void on_restart(void *arg, const char *name, bool only_failed, bool include_tasks)
{
        lc_distributed_t *d = arg;
        lc_hev_t *ev = lc_hev_new(&d->base, LC_HEV_RESTART, name);

        lc_log(LC_INFO, "HERDER", "Received restart request for %s (only-failed %d, include-tasks %d)", name,
               only_failed, include_tasks);
        ev->only_failed = only_failed;
        ev->include_tasks = include_tasks;
        lc_herder_push(&d->base, ev);
}

static void on_session_key(void *arg)
{
        lc_log(LC_INFO, "HERDER", "Session key updated");
        news(arg, NULL, false);
}

static void on_logger(void *arg, const char *logger, const char *level)
{
        lc_distributed_t *d = arg;
        lc_hev_t *ev = lc_hev_new(&d->base, LC_HEV_LOGGER, logger);

        ev->level = lc_strdup(level);
        lc_herder_push(&d->base, ev);
}

const lc_config_events_t lc_dist_config_events = {
        .connector_updated = on_connector_updated,
        .connector_removed = on_connector_removed,
        .tasks_updated = on_tasks_updated,
        .target_changed = on_target_changed,
        .restart_requested = on_restart,
        .session_key_updated = on_session_key,
        .logger_level = on_logger,
};

static void note(lc_strv_t *set, const char *name)
{
        if (!lc_strv_has(set, name))
                lc_strv_add(set, name);
}

static void compare(lc_distributed_t *d, const lc_config_snapshot_t *old, const lc_config_snapshot_t *new)
{
        for (size_t i = 0; i < old->n; i++) {
                if (lc_config_snapshot_find(new, old->v[i].name))
                        continue;
                d->needs_rebalance = d->hurry = true;
                note(&d->updated, old->v[i].name); /* its instance stops at once */
        }
        for (size_t i = 0; i < new->n; i++) {
                const lc_config_connector_t *c = &new->v[i], *was = lc_config_snapshot_find(old, c->name);
                if (!was) {
                        d->needs_rebalance = true;
                        continue;
                }
                if (was->target != c->target)
                        note(&d->retarget, c->name);
                if (was->generation != c->generation || was->ntasks != c->ntasks ||
                    was->inconsistent != c->inconsistent) {
                        lc_dist_fence_outdated(d, c->name);
                        d->needs_rebalance = true;
                        d->hurry |= was->ntasks > 0; /* tasks that run have to stop */
                        if (lc_config_connector_task_count(c) > 0)
                                note(&d->retasked, c->name); /* else the rebalance revokes them */
                }
        }
}

static void remember_tasks(lc_herder_t *h, const lc_config_snapshot_t *s)
{
        for (size_t i = 0; i < s->n; i++) {
                lc_hconn_t *c = s->v[i].ntasks > 0 ? lc_hconn_get(h, s->v[i].name) : NULL;
                if (c && c->task_high < s->v[i].ntasks)
                        c->task_high = s->v[i].ntasks;
        }
}

void lc_dist_take_snapshot(lc_distributed_t *d)
{
        lc_herder_t *h = &d->base;
        lc_config_snapshot_t *s = h->configs->ops->snapshot(h->configs);

        d->dirty = false;
        if (s == h->config) {
                lc_config_snapshot_unref(s);
                return;
        }
        compare(d, h->config, s);
        remember_tasks(h, h->config);
        remember_tasks(h, s);
        lc_herder_set_config(h, s);
        lc_hconn_prune(h);
}

void lc_dist_forget_updates(lc_distributed_t *d)
{
        lc_restart_order_t *o;

        lc_strv_free(&d->updated);
        lc_strv_free(&d->retarget);
        lc_strv_free(&d->retasked);
        while ((o = d->orders)) {
                d->orders = o->next;
                free(o->name);
                free(o);
        }
}

static lc_strv_t take(lc_strv_t *list)
{
        lc_strv_t taken = *list;

        memset(list, 0, sizeof(*list));
        return taken;
}

/* Only the instance is bounced; its tasks follow when it makes other configs for them. */
static void connector_updates(lc_distributed_t *d)
{
        lc_herder_t *h = &d->base;
        lc_strv_t names = take(&d->updated), start = {0};

        for (size_t i = 0; i < names.n; i++) {
                const char *name = names.v[i];
                bool remains = lc_config_snapshot_find(h->config, name) != NULL;
                lc_worker_afresh(h->worker, name);
                if (!lc_work_has(&d->running, name, -1))
                        continue;
                lc_log(LC_INFO, "HERDER", "Handling connector-only config update by %s connector %s",
                       remains ? "restarting" : "stopping", name);
                lc_stage(h, "stopping connector %s", name);
                lc_worker_stop_connector(h->worker, name);
                lc_stage_done(h);
                if (remains)
                        lc_strv_add(&start, name);
        }
        if (start.n) {
                lc_stage(h, "restarting %zu reconfigured connectors", start.n);
                for (size_t i = 0; i < start.n; i++)
                        lc_start_connector(h, start.v[i], NULL);
                lc_stage_done(h);
        }
        lc_strv_free(&names);
        lc_strv_free(&start);
}

static void target_updates(lc_distributed_t *d)
{
        lc_herder_t *h = &d->base;
        lc_strv_t names = take(&d->retarget);

        for (size_t i = 0; i < names.n; i++) {
                const lc_config_connector_t *c = lc_config_snapshot_find(h->config, names.v[i]);
                if (!c)
                        continue;
                lc_worker_afresh(h->worker, c->name);
                lc_worker_tasks_target(h->worker, c->name, c->target);
                if (lc_worker_has_connector(h->worker, c->name))
                        lc_target_connector(h, c->name, c->target);
        }
        lc_strv_free(&names);
}

/* Cooperative: all tasks of a connector with a new set stop now and start again after the rebalance. */
void lc_dist_stop_retasked(lc_distributed_t *d)
{
        lc_herder_t *h = &d->base;
        lc_strv_t names = take(&d->retasked);
        lc_work_t stop = {0};

        for (size_t i = 0; i < d->running.n; i++)
                if (d->running.v[i].task >= 0 && lc_strv_has(&names, d->running.v[i].connector))
                        lc_work_add(&stop, d->running.v[i].connector, d->running.v[i].task);
        if (stop.n) {
                lc_log(LC_INFO, "HERDER",
                       "Handling task config update by stopping %zu tasks, which will be restarted "
                       "after rebalance if still assigned to this worker",
                       stop.n);
                lc_stage(h, "stopping %zu reconfigured tasks", stop.n);
                lc_worker_stop_tasks(h->worker, &stop);
                lc_stage_done(h);
                for (size_t i = 0; i < stop.n; i++)
                        lc_work_add(&d->restart, stop.v[i].connector, stop.v[i].task);
        }
        lc_work_free(&stop);
        lc_strv_free(&names);
}

/* New connectors and the first tasks of one often come in rows: one rebalance for many of them is enough. */
static bool hold(lc_distributed_t *d, bool fresh)
{
        int64_t now = lc_now_ms();

        if (!d->hold_since)
                d->hold_since = now;
        if (fresh)
                d->hold_until = now + HOLD_MS;
        if (d->hold_until > d->hold_since + HOLD_MOST_MS)
                d->hold_until = d->hold_since + HOLD_MOST_MS;
        return now < d->hold_until;
}

void lc_dist_let_go(lc_distributed_t *d)
{
        if (!d->hold_since)
                return;
        d->needs_rebalance = d->hurry = false;
        d->hold_since = 0;
        lc_dist_stop_retasked(d);
}

void lc_dist_config_updates(lc_distributed_t *d, bool at_once)
{
        bool fresh = d->dirty;

        if (d->dirty)
                lc_dist_take_snapshot(d);
        else if (!d->needs_rebalance && !d->updated.n && !d->retarget.n && !d->retasked.n)
                return;
        lc_dist_set_state(d);
        if (d->needs_rebalance && d->assignment->protocol == 0) {
                /* all work stops in the rebalance and starts with the newest configs after it */
                lc_strv_free(&d->updated);
                lc_strv_free(&d->retarget);
                lc_strv_free(&d->retasked);
                d->hurry = true;
        }
        connector_updates(d);
        target_updates(d);
        if (d->needs_rebalance && !at_once && !d->hurry && hold(d, fresh))
                return;
        d->hold_since = 0;
        d->hurry = false;
        if (d->assignment->protocol > 0)
                lc_dist_stop_retasked(d);
        if (d->needs_rebalance) {
                d->needs_rebalance = false;
                lc_dist_rejoin(d, "connectors or tasks have changed");
        }
}

/* Restart orders (KIP-745). */

void lc_dist_order(lc_distributed_t *d, const char *name, bool only_failed, bool include_tasks)
{
        lc_restart_order_t **at, *o;

        for (at = &d->orders; (o = *at); at = &o->next)
                if (!strcmp(o->name, name)) {
                        lc_restart_merge(&o->only_failed, &o->include_tasks, only_failed, include_tasks);
                        return;
                }
        o = lc_calloc(1, sizeof(*o));
        o->name = lc_strdup(name);
        o->only_failed = only_failed;
        o->include_tasks = include_tasks;
        *at = o;
}

static void run_order(lc_distributed_t *d, const lc_restart_order_t *o)
{
        lc_herder_t *h = &d->base;
        int32_t generation = d->assignment->generation;
        lc_work_t tasks = {0};
        lc_restart_plan_t plan;
        bool connector;

        if (!lc_restart_plan(h, o->name, o->include_tasks, o->only_failed, &plan)) {
                lc_log(LC_DEBUG, "HERDER", "Skipping restart of connector '%s' since no status is available",
                       o->name);
                return;
        }
        lc_stage(h, "handling restart request for connector %s", o->name);
        connector = plan.connector && lc_work_has(&d->running, o->name, -1);
        for (size_t i = 0; i < plan.ntasks; i++)
                if (lc_work_has(&d->running, o->name, plan.tasks[i]))
                        lc_work_add(&tasks, o->name, plan.tasks[i]);
        lc_log(LC_INFO, "HERDER", "Restarting %s%zu of %zu tasks of connector %s",
               connector ? "the instance and " : "", tasks.n, plan.state.ntasks, o->name);
        lc_restart_planned(h, o->name, connector, &tasks, generation);
        lc_stage_done(h);
        lc_work_free(&tasks);
        lc_restart_plan_free(&plan);
}

void lc_dist_run_orders(lc_distributed_t *d)
{
        lc_restart_order_t *o;

        while (!lc_stopping(&d->base) && (o = d->orders)) {
                d->orders = o->next;
                run_order(d, o);
                free(o->name);
                free(o);
        }
}
