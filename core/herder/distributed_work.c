/*
 * distributed_work.c - what the group says becomes work: revocations first, then the check of the config
 * offset, then connectors and tasks are started. Reference group 3, 4, 6.
 *
 * Threads:   T; the callbacks of the group run on the membership thread and push events, but on_assign,
 *            which computes under assign_lock.
 * Tests:     spec/unit/herder_spec.lua, spec/kafka, golden/topics/lifecycle.jsonl
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "herder/distributed.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOST_FLUSH_MS = 500, BACKOFF_LEAST_MS = 100, TRIM_MS = 3000 };

/* Membership thread. */

typedef struct round {
        lc_members_t *who;
        const lc_group_member_t *members;
        const lc_config_snapshot_t *config;
} round_t;

static bool can_run(void *arg, size_t member, const char *connector)
{
        const round_t *r = arg;
        const lc_config_connector_t *c = lc_config_snapshot_find(r->config, connector);

        return lc_members_can_run(r->who, r->members[member].id, c ? c->config : NULL);
}

static int on_assign(void *arg, int16_t protocol, int32_t generation, const lc_group_member_t *members,
                     size_t n, lc_assignment_t *out)
{
        lc_distributed_t *d = arg;
        lc_config_snapshot_t *s = lc_herder_config_ref(&d->base);
        lc_assignor_work_t *work;
        round_t round = {d->members, members, NULL};
        int64_t newest = -1;
        int rc;

        lc_members_set(d->members, members, n);
        for (size_t i = 0; i < n; i++)
                if (members[i].config_offset > newest)
                        newest = members[i].config_offset;
        if (s->offset < newest) {
                lc_config_snapshot_unref(s);
                s = d->base.configs->ops->snapshot(d->base.configs);
        }
        round.config = s;
        work = lc_calloc(s->n + 1, sizeof(*work));
        for (size_t i = 0; i < s->n; i++)
                work[i] = (lc_assignor_work_t){s->v[i].name, lc_config_connector_task_count(&s->v[i])};
        pthread_mutex_lock(&d->assign_lock);
        rc = lc_assignor_assign(d->assignor,
                                &(lc_assignor_round_t){.protocol = protocol,
                                                       .generation = generation,
                                                       .last_generation = lc_group_last_generation(d->group),
                                                       .config_offset = s->offset,
                                                       .work = work,
                                                       .nwork = s->n,
                                                       .members = members,
                                                       .nmembers = n,
                                                       .now_ms = lc_now_ms(),
                                                       .can_run = can_run,
                                                       .arg = &round},
                                out);
        pthread_mutex_unlock(&d->assign_lock);
        free(work);
        lc_config_snapshot_unref(s);
        return rc;
}

static void on_assigned(void *arg, lc_assignment_t *a)
{
        lc_distributed_t *d = arg;
        lc_hev_t *ev = lc_hev_new(&d->base, LC_HEV_ASSIGNED, NULL);

        ev->assignment = a;
        lc_herder_push(&d->base, ev);
}

static void on_preparing(void *arg, int16_t protocol)
{
        lc_distributed_t *d = arg;
        lc_hev_t *ev = lc_hev_new(&d->base, LC_HEV_PREPARING, NULL);

        /* here, not when T comes to it: by then the next round may have been computed */
        pthread_mutex_lock(&d->assign_lock);
        lc_assignor_forget_owners(d->assignor);
        pthread_mutex_unlock(&d->assign_lock);
        ev->protocol = protocol;
        lc_herder_push(&d->base, ev);
}

static void on_coordinator_lost(void *arg)
{
        lc_distributed_t *d = arg;

        lc_herder_push(&d->base, lc_hev_new(&d->base, LC_HEV_COORDINATOR_LOST, NULL));
}

static void on_error(void *arg, const lc_err_t *err)
{
        lc_distributed_t *d = arg;
        lc_hev_t *ev = lc_hev_new(&d->base, LC_HEV_FATAL, NULL);

        lc_hev_set_err(ev, err);
        lc_herder_push(&d->base, ev);
}

static void on_stage(void *arg, lc_buf_t *out)
{
        lc_distributed_t *d = arg;

        lc_herder_stage(&d->base, out);
}

const lc_group_events_t lc_dist_group_events = {
        .assign = on_assign,
        .assigned = on_assigned,
        .preparing = on_preparing,
        .coordinator_lost = on_coordinator_lost,
        .error = on_error,
        .stage = on_stage,
};

/* T. */

/* Forgets earlier rounds, as a new leader would. */
void lc_dist_new_assignor(lc_distributed_t *d)
{
        int64_t delay = lc_worker_config_int(d->base.deps.config, "scheduled.rebalance.max.delay.ms");
        lc_assignor_t *a = lc_assignor_new((int32_t)delay), *old;

        pthread_mutex_lock(&d->assign_lock);
        old = d->assignor;
        d->assignor = a;
        pthread_mutex_unlock(&d->assign_lock);
        lc_assignor_free(old);
}

void lc_dist_set_state(lc_distributed_t *d)
{
        lc_group_set_state(d->group, d->base.config->offset, &d->assigned);
}

void lc_dist_rejoin(lc_distributed_t *d, const char *reason)
{
        d->rejoining = true;
        lc_group_rejoin(d->group, reason);
}

static size_t count_tasks(const lc_work_t *w)
{
        size_t n = 0;

        for (size_t i = 0; i < w->n; i++)
                n += w->v[i].task >= 0;
        return n;
}

/* Of connectors that are gone the topics are forgotten, once nothing of them runs any more. */
static void reset_topics(lc_distributed_t *d, const lc_work_t *work)
{
        lc_herder_t *h = &d->base;

        if (!lc_worker_config_bool(h->deps.config, "topic.tracking.enable"))
                return;
        for (size_t i = 0; i < work->n; i++) {
                const char *name = work->v[i].connector;
                if (i && !strcmp(work->v[i - 1].connector, name))
                        continue;
                if (!lc_config_snapshot_find(h->config, name))
                        h->statuses->ops->topics_reset(h->statuses, name);
        }
}

static void revoke_work(lc_distributed_t *d, const lc_work_t *revoked, int flush_ms)
{
        lc_herder_t *h = &d->base;
        lc_work_t work = {0}, tasks = {0};

        if (!revoked->n)
                return;
        lc_work_copy(&work, revoked); /* it may be one of the sets that shrink here */
        lc_stage(h, "stopping %zu and %zu tasks", work.n - count_tasks(&work), count_tasks(&work));
        for (size_t i = 0; i < work.n; i++) {
                if (work.v[i].task >= 0)
                        lc_work_add(&tasks, work.v[i].connector, work.v[i].task);
                else if (lc_worker_has_connector(h->worker, work.v[i].connector))
                        lc_worker_stop_connector(h->worker, work.v[i].connector);
        }
        if (tasks.n)
                lc_worker_stop_tasks(h->worker, &tasks);
        lc_stage_done(h);
        lc_log(LC_INFO, "HERDER", "Finished stopping tasks in preparation for rebalance");
        for (size_t i = 0; i < work.n; i++) {
                lc_work_remove(&d->running, work.v[i].connector, work.v[i].task);
                lc_work_remove(&d->restart, work.v[i].connector, work.v[i].task);
                lc_work_remove(&d->assigned, work.v[i].connector, work.v[i].task);
        }
        reset_topics(d, &work);
        lc_stage(h, "flushing updates to the status topic");
        h->statuses->ops->flush(h->statuses, flush_ms);
        lc_stage_done(h);
        lc_work_free(&work);
        lc_work_free(&tasks);
}

static void destroy_status(lc_distributed_t *d, const char *name, int task)
{
        lc_herder_t *h = &d->base;
        lc_status_t st = {.task = task, .state = LC_DESTROYED, .generation = d->assignment->generation};

        st.worker_id = lc_strdup(h->deps.worker_id);
        h->statuses->ops->put(h->statuses, name, &st, false);
        lc_status_clear(&st);
}

/* The leader's duty: statuses of what was removed before this rebalance. Only now, because the workers
 * that ran it wrote UNASSIGNED while they stopped it. */
static void clean_statuses(lc_distributed_t *d)
{
        lc_herder_t *h = &d->base;
        lc_config_snapshot_t *s = h->configs->ops->snapshot(h->configs);
        lc_strv_t names = {0};

        h->statuses->ops->connectors(h->statuses, &names);
        for (size_t i = 0; i < names.n; i++) {
                const lc_config_connector_t *c = lc_config_snapshot_find(s, names.v[i]);
                int remain = c ? lc_config_connector_task_count(c) : 0;
                lc_status_t *tasks = NULL;
                size_t n = h->statuses->ops->tasks(h->statuses, names.v[i], &tasks);

                for (size_t k = 0; k < n; k++) {
                        if (tasks[k].task >= remain)
                                destroy_status(d, names.v[i], tasks[k].task);
                        lc_status_clear(&tasks[k]);
                }
                free(tasks);
                if (!c)
                        destroy_status(d, names.v[i], -1);
        }
        lc_strv_free(&names);
        lc_config_snapshot_unref(s);
}

static void claim(lc_distributed_t *d)
{
        lc_err_t err;

        lc_err_clear(&err);
        lc_stage(&d->base, "claiming write privileges for the config topic");
        if (lc_dist_claim(d, &err) < 0)
                lc_log(LC_ERROR, "HERDER",
                       "Unable to claim write privileges for config topic after being elected leader during "
                       "rebalance: %s",
                       err.msg);
        lc_stage_done(&d->base);
}

/* The first eager assignment after cooperative ones came while everything ran: nobody stopped for it. What it
 * gives to one may still run on another, so all stop now and the next round deals work that runs nowhere. */
static void turn_eager(lc_distributed_t *d)
{
        lc_log(LC_INFO, "HERDER",
               "The group has turned to the eager protocol: stopping everything and joining again");
        revoke_work(d, &d->running, LC_STATUS_FLUSH_MS);
        lc_work_free(&d->assigned);
        d->resolved = true;
        lc_dist_set_state(d);
        lc_group_assignment_done(d->group, d->assignment->generation);
        lc_dist_rejoin(d, "the group turned to the eager protocol");
}

void lc_dist_assigned(lc_distributed_t *d, lc_hev_t *ev)
{
        lc_herder_t *h = &d->base;
        lc_assignment_t *a = ev->assignment;

        ev->assignment = NULL;
        d->rejoining = false;
        d->resolved = false;
        if (a->protocol > 0)
                revoke_work(d, &a->revoked, LC_STATUS_FLUSH_MS);
        else
                lc_work_free(&d->assigned); /* eager: what comes is everything */
        for (size_t i = 0; i < a->assigned.n; i++)
                lc_work_add(&d->assigned, a->assigned.v[i].connector, a->assigned.v[i].task);
        lc_assignment_free(d->assignment);
        d->assignment = a;
        lc_worker_set_generation(h->worker, a->generation);
        lc_worker_set_outside(h->worker, false);
        d->scheduled_at = a->delay_ms > 0 ? lc_now_ms() + a->delay_ms : INT64_MAX;
        lc_log(LC_INFO, "HERDER",
               "Joined group at generation %d with protocol version %d as %s%s: config offset %lld, "
               "%zu connectors and tasks are new, %zu revoked, %zu in all, rebalance delay %d ms",
               (int)a->generation, (int)a->protocol, a->is_leader ? "leader" : "follower",
               a->error ? " (assignment failed)" : "", (long long)a->config_offset, a->assigned.n,
               a->revoked.n, d->assigned.n, (int)a->delay_ms);
        if (a->is_leader) {
                clean_statuses(d);
                claim(d);
                lc_members_say_missing(d->members, h->config);
        } else {
                lc_members_forget(d->members);
                if (h->configs->ops->relinquish)
                        h->configs->ops->relinquish(h->configs);
                d->claimed = -1;
        }
        if (a->protocol == 0 && d->running.n)
                turn_eager(d);
        else
                lc_dist_set_state(d);
}

void lc_dist_preparing(lc_distributed_t *d, int16_t protocol)
{
        d->rejoining = true;
        if (protocol == 0) {
                revoke_work(d, &d->running, LC_STATUS_FLUSH_MS);
                lc_work_free(&d->assigned);
        }
        lc_dist_set_state(d);
}

/* The group may run our work elsewhere by now. It joins again by itself once it was told that nothing runs.
 * Whoever leads after such an outage has seen nobody leave: earlier rounds are forgotten, so that what was
 * stopped is dealt again at once instead of waiting for a worker that is back already. */
void lc_dist_coordinator_lost(lc_distributed_t *d)
{
        lc_log(LC_WARN, "HERDER",
               "Revoking previous assignment (%zu connectors and tasks) to avoid running tasks while not "
               "being a member of the group",
               d->assigned.n);
        d->rejoining = d->resolved = true;
        d->scheduled_at = INT64_MAX;
        lc_dist_new_assignor(d);
        lc_worker_set_outside(d->base.worker, true);
        revoke_work(d, &d->assigned, LOST_FLUSH_MS);
        lc_work_free(&d->assigned);
        lc_dist_set_state(d);
}

static void back_off(lc_distributed_t *d)
{
        const lc_worker_config_t *wc = d->base.deps.config;
        int64_t ms;

        if (d->assignment && d->assignment->protocol == 0) {
                ms = lc_worker_config_int(wc, "worker.unsync.backoff.ms");
        } else if (d->backoff_retries > 0) {
                ms = lc_worker_config_int(wc, "scheduled.rebalance.max.delay.ms") / 10 / d->backoff_retries;
                d->backoff_retries--;
        } else {
                lc_log(LC_INFO, "HERDER",
                       "Revoking current running assignment because after %d retries the worker has not "
                       "caught up with the latest Connect cluster updates",
                       LC_BACKOFF_RETRIES);
                revoke_work(d, &d->assigned, LOST_FLUSH_MS);
                lc_dist_set_state(d);
                d->backoff_retries = LC_BACKOFF_RETRIES;
                ms = 0;
        }
        if (ms < BACKOFF_LEAST_MS)
                ms = BACKOFF_LEAST_MS;
        d->rejoining = true;
        d->read_again_at = lc_now_ms() + ms;
        lc_group_leave(d->group, (int)ms, "taking too long to read the log");
}

bool lc_dist_read_to_end(lc_distributed_t *d)
{
        lc_herder_t *h = &d->base;
        lc_err_t err;
        int rc;

        lc_err_clear(&err);
        lc_log(LC_INFO, "HERDER", "Reading to end of config log; current config state offset: %lld",
               (long long)h->config->offset);
        lc_stage(h, "reading to the end of the config topic");
        rc = h->configs->ops->refresh(
                h->configs, (int)lc_worker_config_int(h->deps.config, "worker.sync.timeout.ms"), &err);
        lc_stage_done(h);
        if (rc < 0) {
                lc_log(LC_WARN, "HERDER", "Didn't reach end of config log quickly enough: %s", err.msg);
                d->can_read = false;
                back_off(d);
                return false;
        }
        d->can_read = true;
        d->backoff_retries = LC_BACKOFF_RETRIES;
        lc_dist_take_snapshot(d);
        lc_dist_set_state(d);
        lc_log(LC_INFO, "HERDER",
               "Finished reading to end of log and updated config snapshot, new config log offset: %lld",
               (long long)h->config->offset);
        return true;
}

/* Work that the config topic knows as far as it was read. */
static bool known(const lc_distributed_t *d, const lc_work_item_t *w)
{
        const lc_config_connector_t *c = lc_config_snapshot_find(d->base.config, w->connector);

        return c && c->config && w->task < lc_config_connector_task_count(c);
}

static void say_unknown(const lc_distributed_t *d, const lc_work_item_t *w)
{
        char task[16] = "";

        if (w->task >= 0)
                snprintf(task, sizeof(task), "-%d", (int)w->task);
        lc_log(LC_ERROR, "HERDER",
               "The leader %s at %s assigned %s %s%s to this worker, but the config topic does not know it "
               "up to "
               "offset %lld: it is not started",
               d->assignment->leader, d->assignment->leader_url, w->task < 0 ? "connector" : "task",
               w->connector, task, (long long)d->base.config->offset);
}

static void start_work(lc_distributed_t *d)
{
        lc_herder_t *h = &d->base;
        lc_work_t was;
        size_t n = 0;
        lc_err_t err;

        for (size_t i = 0; i < d->restart.n; i++)
                lc_work_remove(&d->running, d->restart.v[i].connector, d->restart.v[i].task);
        lc_work_free(&d->restart);
        for (size_t i = 0; i < d->assigned.n; i++)
                n += !lc_work_has(&d->running, d->assigned.v[i].connector, d->assigned.v[i].task);
        if (!n)
                return;
        lc_log(LC_INFO, "HERDER", "Starting connectors and tasks using config offset %lld",
               (long long)d->assignment->config_offset);
        lc_stage(h, "starting %zu connector(s) and task(s) after a rebalance", n);
        for (int tasks = 0; tasks < 2; tasks++) {
                for (size_t i = 0; i < d->assigned.n && !lc_stopping(h); i++) {
                        const lc_work_item_t *w = &d->assigned.v[i];
                        if ((w->task >= 0) != (bool)tasks || lc_work_has(&d->running, w->connector, w->task))
                                continue;
                        lc_err_clear(&err);
                        if (!known(d, w))
                                say_unknown(d, w);
                        else if (!tasks)
                                lc_start_connector(h, w->connector, NULL);
                        else if (lc_start_task(h, w->connector, w->task, &err) < 0)
                                lc_log(LC_ERROR, "HERDER", "Failed to start task %s-%d: %s", w->connector,
                                       (int)w->task, err.msg);
                        lc_group_tick(d->group);
                }
        }
        lc_stage_done(h);
        was = d->running;
        memset(&d->running, 0, sizeof(d->running));
        for (size_t i = 0; i < d->assigned.n; i++) { /* the unknown ones start when they become known */
                const lc_work_item_t *w = &d->assigned.v[i];
                if (lc_work_has(&was, w->connector, w->task) || known(d, w))
                        lc_work_add(&d->running, w->connector, w->task);
        }
        lc_work_free(&was);
        d->trim_at = lc_now_ms() + TRIM_MS;
        lc_log(LC_INFO, "HERDER", "Finished starting connectors and tasks");
}

bool lc_dist_handle_rebalance(lc_distributed_t *d)
{
        lc_herder_t *h = &d->base;
        lc_assignment_t *a = d->assignment;
        bool read = false;
        const char *again = NULL;

        if (d->resolved)
                return true;
        d->resolved = true; /* once, whatever comes of it: where it is of no use another join is under way */
        if (a->error) {
                read = a->is_leader || h->config->offset < a->config_offset;
                lc_log(LC_WARN, "HERDER", "Join group completed, but assignment failed%s",
                       read ? ". Reading to end of config and retrying."
                            : ". We were up to date, so just retrying.");
        } else if (h->config->offset < a->config_offset) {
                lc_log(LC_WARN, "HERDER", "Catching up to assignment's config offset %lld (here: %lld).",
                       (long long)a->config_offset, (long long)h->config->offset);
                read = true;
        }
        if (read && !lc_dist_read_to_end(d)) {
                lc_group_assignment_done(d->group, a->generation);
                return false;
        }
        if (!a->error && h->config->offset != a->config_offset) {
                lc_log(LC_INFO, "HERDER",
                       "Current config state offset %lld does not match group assignment %lld. Forcing "
                       "rebalance.",
                       (long long)h->config->offset, (long long)a->config_offset);
                again = "the config offset does not match the assignment's";
        }
        if (a->error) { /* the member joins again by itself */
                d->rejoining = true;
                lc_dist_set_state(d);
                lc_group_assignment_done(d->group, a->generation);
                return false;
        }
        if (again) {
                lc_dist_set_state(d);
                lc_group_assignment_done(d->group, a->generation);
                lc_dist_rejoin(d, again);
                return false;
        }
        if (read) { /* the assignment was made of what was just read: no rebalance for that */
                d->needs_rebalance = false;
                lc_dist_config_updates(d, true);
        }
        lc_dist_let_go(d);
        start_work(d);
        lc_dist_set_state(d);
        lc_group_assignment_done(d->group, a->generation);
        if (a->protocol > 0 && a->revoked.n) {
                lc_work_free(&a->revoked);
                lc_dist_rejoin(d, "work was revoked, it can be assigned now");
                return false;
        }
        return true;
}
