/*
 * policy.c - restart.policy: what FAILED on this worker is started again when its time has come. When that is
 * was decided where it failed (runtime/restarts.h).
 *
 * Threads: T.   Tests: spec/unit/herder_spec.lua, spec/kafka/restart_policy_spec.lua
 */
#include "base/clock.h"
#include "herder/internal.h"
#include "herder/restart.h"

enum { BUSY_MS = 100 };

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
                const lc_work_item_t *item = &due.v[i];

                if (!lc_hconn_get(h, item->connector)->busy) {
                        lc_worker_restarting(h->worker, item->connector, item->task);
                        lc_restart_work(h, item, ", which failed: restart.policy is on-failure",
                                        ", which failed");
                        lc_worker_restarted(h->worker);
                } else if (now + BUSY_MS < next) {
                        next = now + BUSY_MS;
                }
        }
        lc_work_free(&due);
        return next;
}
