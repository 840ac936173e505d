/*
 * worker.h - runs connectors and tasks for a herder: task threads, the pool for connector code, statuses.
 *
 * Threads:   functions from the herder's thread. `done` callbacks come on pool threads and only push
 *            events. One thread a task; lc_worker_run() and connector code on a small pool, one call at a
 *            time per connector, abandoned past task.shutdown.graceful.timeout.ms and replaced.
 * Ownership: configs are copied.
 * Source:    reference worker-tasks.md, connector-config 5.   Tests: spec/unit/worker_spec.lua, spec/kafka
 */
#ifndef LC_RUNTIME_WORKER_H
#define LC_RUNTIME_WORKER_H
#include "config/plugin.h"
#include "config/worker_config.h"
#include "kafka/group.h"
#include "kafka/local.h"
#include "storage/config_store.h"
#include "storage/offset_store.h"
#include "storage/status_store.h"

struct lc_ticket;

typedef struct lc_worker lc_worker_t;
typedef struct lc_worker_deps {
        const lc_worker_config_t *config;
        const lc_plugins_t *plugins;
        lc_offset_store_t *offsets;
        lc_status_store_t *statuses;
        const char *worker_id;
        void (*reconfigure)(void *arg, const char *connector); /* a connector asks for new task configs */
        /* Something FAILED that lc_worker_restarts() will name; may be NULL. From any of the worker's threads. */
        void (*failed)(void *arg);
        /* May tasks write? (lc_group_may_work.) Asked by task threads before each poll, produce, put and
         * commit; NULL: always. */
        bool (*may_work)(void *arg);
        void *arg;
        const struct lc_local_ends *local; /* NULL: tasks work with Kafka */
        /* Exactly-once source tasks, on their threads; answered once, from any thread (ticket.h). fence:
         * producers of earlier task sets cannot write any more; verify: the set is still the newest, and the
         * task this worker's. LC_RETRIABLE: ask again. NULL: there is nobody to ask. */
        void (*fence)(void *arg, const char *connector, int task, struct lc_ticket *ticket);
        void (*verify)(void *arg, const char *connector, int task, struct lc_ticket *ticket);
} lc_worker_deps_t;
/* Tasks without Kafka (luaconnect try). Borrowed; outlives the worker's threads. */
typedef struct lc_local_ends {
        lc_local_t local;
        struct lc_reporter *(*reporter)(void *arg); /* one more reporter of failing records, a task */
        /* On the task's thread: what failed while it was being ended, after its last status. */
        void (*failed)(void *arg, const char *what, const lc_err_t *err);
        void *arg;
} lc_local_ends_t;
lc_worker_t *lc_worker_new(const lc_worker_deps_t *deps, lc_err_t *err);
void lc_worker_free(lc_worker_t *w);                               /* stops what still runs */
void lc_worker_set_generation(lc_worker_t *w, int32_t generation); /* for statuses */
/* Outside of the group: what is stopped now may run elsewhere already, so no UNASSIGNED is written for it (it
 * would reach the topic after the new owner's status). */
void lc_worker_set_outside(lc_worker_t *w, bool outside);
/* Run fn(arg) on the pool: validation and other user code of the herder. */
void lc_worker_run(lc_worker_t *w, void (*fn)(void *arg), void *arg);

typedef void lc_worker_done_fn(void *arg, const char *connector, const lc_err_t *err);
/* config: raw. Status RUNNING/PAUSED/STOPPED or FAILED is written by the worker. done may be NULL. */
void lc_worker_start_connector(lc_worker_t *w, const char *name, const lc_props_t *config,
                               lc_target_state_t target, lc_worker_done_fn *done, void *arg);
void lc_worker_stop_connector(lc_worker_t *w, const char *name); /* UNASSIGNED; waits at most 5 s */
void lc_worker_connector_target(lc_worker_t *w, const char *name, lc_target_state_t target,
                                lc_worker_done_fn *done, void *arg);
bool lc_worker_has_connector(const lc_worker_t *w, const char *name);
bool lc_worker_connector_started(const lc_worker_t *w, const char *name); /* STARTED and not FAILED */

typedef void lc_task_configs_fn(void *arg, const char *connector, lc_props_t **configs, int n,
                                const lc_err_t *err); /* configs are the callee's */
/* taskConfigs(tasks.max), checked against tasks.max.enforce, task.class and topics added, variables
 * written back raw (reverseTransform). config: raw. */
void lc_worker_task_configs(lc_worker_t *w, const char *name, const lc_props_t *config,
                            lc_task_configs_fn *done, void *arg);

/* Start one task's thread. A failure before the thread exists is written as FAILED and returned. */
int lc_worker_start_task(lc_worker_t *w, const char *name, int task, const lc_props_t *connector_config,
                         int task_count, const lc_props_t *task_config, lc_target_state_t target,
                         lc_err_t *err);
/* Stop all of `ids` (task >= 0) together: offsets committed, UNASSIGNED written; waits at most
 * task.shutdown.graceful.timeout.ms in all, then abandons. */
void lc_worker_stop_tasks(lc_worker_t *w, const lc_work_t *ids);
/* Ask them, and do not wait. */
void lc_worker_ask_tasks(lc_worker_t *w, const lc_work_t *ids);
/* From here on stops wait so long instead. */
void lc_worker_set_stop_ms(lc_worker_t *w, int64_t ms);
void lc_worker_tasks_target(lc_worker_t *w, const char *connector, lc_target_state_t target);
/* Offsets of a source connector as GET offsets shows them. config: raw. Waits for brokers: not on the herder's
 * thread; *stop ends it. */
int lc_worker_source_offsets(lc_worker_t *w, const char *name, const lc_props_t *config,
                             const volatile int *stop,
                             void (*fn)(void *arg, const char *partition, const char *offset), void *arg,
                             lc_err_t *err);
void lc_worker_running(const lc_worker_t *w, lc_work_t *out); /* connectors (-1) and tasks it has */
/* What FAILED and is to be started again by its restart.policy: those whose (monotonic) time has come, and when
 * the next one's comes, INT64_MAX: none. lc_worker_restarting() before that is done, lc_worker_restarted()
 * behind it: what is started outside of the two has its first pause again when it fails. */
void lc_worker_restarts(const lc_worker_t *w, int64_t now, lc_work_t *due, int64_t *next);
void lc_worker_restarting(lc_worker_t *w, const char *name, int task);
void lc_worker_restarted(lc_worker_t *w);
void lc_worker_afresh(lc_worker_t *w, const char *name); /* a new config or target: as if it were started */
void lc_worker_forget(lc_worker_t *w,
                      const char *name); /* of a connector that was deleted: what was restarted */
/* Those of them, FAILED ones too, whose plugins were loaded anew since: to be restarted. */
void lc_worker_outdated(const lc_worker_t *w, lc_work_t *out);

#endif
