/*
 * policy.c - restart.policy: what FAILED on this worker is started again when its time has come. When that is
 * was decided where it failed (runtime/restarts.h).
 *
 * Threads: T.   Tests: spec/unit/herder_spec.lua, spec/kafka/restart_policy_spec.lua
 */
#include "base/clock.h"
#include "base/log.h"
#include "herder/internal.h"

enum { BUSY_MS = 100 };

static void restart(lc_herder_t *h, const lc_work_item_t *item)
{
        lc_work_t one = {0};
        lc_err_t err;

        lc_err_clear(&err);
        lc_worker_restarting(h->worker, item->connector, item->task);
        if (item->task < 0) {
                lc_log(LC_INFO, "HERDER",
                       "Restarting connector %s, which failed: restart.policy is on-failure",
                       item->connector);
                lc_stage(h, "restarting connector %s, which failed", item->connector);
                lc_worker_stop_connector(h->worker, item->connector);
                lc_start_connector(h, item->connector, NULL);
        } else {
                lc_log(LC_INFO, "HERDER", "Restarting task %s-%d, which failed: restart.policy is on-failure",
                       item->connector, (int)item->task);
                lc_stage(h, "restarting task %s-%d, which failed", item->connector, (int)item->task);
                lc_work_add(&one, item->connector, item->task);
                lc_worker_stop_tasks(h->worker, &one);
                if (lc_start_task(h, item->connector, item->task, &err) < 0)
                        lc_log(LC_ERROR, "HERDER", "Failed to start task %s-%d: %s", item->connector,
                               (int)item->task, err.msg);
                lc_work_free(&one);
        }
        lc_stage_done(h);
}

void lc_policy_failed(void *arg)
{
        lc_herder_push(arg, lc_hev_new(arg, LC_HEV_FAILED, NULL));
}

int64_t lc_policy_restarts(lc_herder_t *h, int64_t now)
{
        int64_t next = INT64_MAX;
        lc_work_t due = {0};

        lc_worker_restarts(h->worker, now, &due, &next);
        for (size_t i = 0; i < due.n && !lc_stopping(h); i++) {
                if (!lc_hconn_get(h, due.v[i].connector)->busy)
                        restart(h, &due.v[i]);
                else if (now + BUSY_MS < next)
                        next = now + BUSY_MS;
        }
        lc_work_free(&due);
        return next;
}
