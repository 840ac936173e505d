/*
 * restart.h - restarts with includeTasks or onlyFailed (KIP-745): which instances, and what REST shows of
 * them.
 *
 * Threads:   the herder's.   Ownership: a plan is the caller's.
 * Source:    rest.md 2.2, 6.4.   Tests: spec/unit/herder_spec.lua
 */
#ifndef LC_HERDER_RESTART_H
#define LC_HERDER_RESTART_H
#include "herder/herder.h"

typedef struct lc_restart_plan {
        bool connector;
        int *tasks;
        size_t ntasks;
        lc_connector_state_t state; /* as REST shows it: RESTARTING where it will be restarted */
} lc_restart_plan_t;
bool lc_restart_plan(lc_herder_t *h, const char *name, bool include_tasks, bool only_failed,
                     lc_restart_plan_t *out); /* false: no status */
void lc_restart_plan_free(lc_restart_plan_t *p);
void lc_restart_answer(lc_request_t *req, lc_restart_plan_t *p); /* 202; takes the state */
/* Two orders for one connector become one: the higher impact wins. */
void lc_restart_merge(bool *only_failed, bool *include_tasks, bool only_failed2, bool include_tasks2);
/* Stops these, shows them RESTARTING with this generation, starts them. tasks: of this connector. */
void lc_restart_planned(lc_herder_t *h, const char *name, bool connector, const lc_work_t *tasks,
                        int32_t generation);
/* Stops and starts one connector (task -1) or task. why, stage: what follows its name in the log and in what
 * the herder says it is doing. */
void lc_restart_work(lc_herder_t *h, const lc_work_item_t *item, const char *why, const char *stage);

#endif
