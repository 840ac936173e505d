/*
 * task_configs.h - what becomes of the maps a connector makes for its tasks before they are published
 * (connector-config 4): tasks.max, task.class, topics, variables written back raw, Java's order.
 *
 * Threads: pure functions.   Tests: spec/unit/worker_spec.lua
 */
#ifndef LC_RUNTIME_TASK_CONFIGS_H
#define LC_RUNTIME_TASK_CONFIGS_H
#include "config/plugin.h"
#include "base/err.h"

/* TooManyTasksException, or a warning with tasks.max.enforce=false. config: resolved. */
int lc_tasks_max_check(const char *connector, const lc_props_t *config, int ntasks, lc_err_t *err);
/* The map of one task as it is written. `made` is what the connector gave for it. */
lc_props_t *lc_task_config_finish(const lc_plugin_t *plugin, const lc_props_t *raw,
                                  const lc_props_t *resolved, const lc_props_t *made);

#endif
