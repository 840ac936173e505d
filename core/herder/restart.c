/* restart.c - see restart.h. */
#include "herder/restart.h"
#include "base/alloc.h"
#include "base/log.h"
#include "herder/internal.h"
#include <stdlib.h>
#include <string.h>

bool lc_restart_plan(lc_herder_t *h, const char *name, bool include_tasks, bool only_failed,
                     lc_restart_plan_t *out)
{
        lc_config_snapshot_t *s;
        bool known;

        memset(out, 0, sizeof(*out));
        s = h->configs->ops->snapshot(h->configs);
        known = lc_state_fill(h, s, name, &out->state);
        lc_config_snapshot_unref(s);
        if (!known)
                return false;
        out->connector = !only_failed || out->state.connector.state == LC_FAILED;
        if (out->connector)
                out->state.connector.state = LC_RESTARTING;
        if (!include_tasks)
                return true;
        out->tasks = lc_calloc(out->state.ntasks + 1, sizeof(*out->tasks));
        for (size_t i = 0; i < out->state.ntasks; i++) {
                lc_status_t *t = &out->state.tasks[i];
                if (only_failed && t->state != LC_FAILED)
                        continue;
                out->tasks[out->ntasks++] = t->task;
                t->state = LC_RESTARTING;
        }
        return true;
}

void lc_restart_plan_free(lc_restart_plan_t *p)
{
        lc_connector_state_t *s = lc_malloc(sizeof(*s));

        *s = p->state;
        lc_connector_state_free(s);
        free(p->tasks);
        memset(p, 0, sizeof(*p));
}

void lc_restart_answer(lc_request_t *req, lc_restart_plan_t *p)
{
        req->state = lc_malloc(sizeof(*req->state));
        *req->state = p->state;
        memset(&p->state, 0, sizeof(p->state));
        lc_request_answer(req, 202);
}

static int rank(bool only_failed, bool include_tasks)
{
        return (only_failed ? 0 : 2) + (include_tasks ? 1 : 0);
}

void lc_restart_merge(bool *only_failed, bool *include_tasks, bool only_failed2, bool include_tasks2)
{
        if (rank(only_failed2, include_tasks2) < rank(*only_failed, *include_tasks))
                return;
        *only_failed = only_failed2;
        *include_tasks = include_tasks2;
}

static void put_restarting(lc_herder_t *h, const char *name, int task, int32_t generation)
{
        lc_status_t st = {.task = task, .state = LC_RESTARTING, .generation = generation};

        st.worker_id = lc_strdup(h->deps.worker_id);
        h->statuses->ops->put(h->statuses, name, &st, false);
        lc_status_clear(&st);
}

void lc_restart_planned(lc_herder_t *h, const char *name, bool connector, const lc_work_t *tasks,
                        int32_t generation)
{
        lc_err_t err;

        if (connector) {
                lc_worker_stop_connector(h->worker, name);
                put_restarting(h, name, -1, generation);
        }
        if (tasks->n)
                lc_worker_stop_tasks(h->worker, tasks);
        for (size_t i = 0; i < tasks->n; i++)
                put_restarting(h, name, tasks->v[i].task, generation);
        if (connector)
                lc_start_connector(h, name, NULL);
        for (size_t i = 0; i < tasks->n; i++) {
                lc_err_clear(&err);
                if (lc_start_task(h, name, tasks->v[i].task, &err) < 0)
                        lc_log(LC_ERROR, "HERDER", "Task '%s-%d' restart failed: %s", name,
                               (int)tasks->v[i].task, err.msg);
        }
}

void lc_restart_work(lc_herder_t *h, const lc_work_item_t *item, const char *why, const char *stage)
{
        lc_work_t one = {0};
        lc_err_t err;

        if (item->task < 0) {
                lc_log(LC_INFO, "HERDER", "Restarting connector %s%s", item->connector, why);
                lc_stage(h, "restarting connector %s%s", item->connector, stage);
                lc_worker_stop_connector(h->worker, item->connector);
                lc_start_connector(h, item->connector, NULL);
        } else {
                lc_log(LC_INFO, "HERDER", "Restarting task %s-%d%s", item->connector, (int)item->task, why);
                lc_stage(h, "restarting task %s-%d%s", item->connector, (int)item->task, stage);
                lc_work_add(&one, item->connector, item->task);
                lc_worker_stop_tasks(h->worker, &one);
                lc_err_clear(&err);
                if (lc_start_task(h, item->connector, item->task, &err) < 0)
                        lc_log(LC_ERROR, "HERDER", "Failed to start task %s-%d: %s", item->connector,
                               (int)item->task, err.msg);
                lc_work_free(&one);
        }
        lc_stage_done(h);
}
