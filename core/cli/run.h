/*
 * run.h - the life of a worker process: start in Connect's order, wait, stop.
 *
 *   settings -> plugins -> REST port bound -> herder started -> REST serves -> connector files -> ready
 *
 * Threads:   the main thread; the herder's callbacks only set flags and wake it.
 * Source:    reference worker-config 1, 9, standalone 1.
 * Tests:     spec/unit/cli_spec.lua, spec/golden/start_failures_spec.lua
 */
#ifndef LC_CLI_RUN_H
#define LC_CLI_RUN_H
#include "base/strv.h"
#include "config/worker_config.h"

typedef struct lc_run_args {
        lc_worker_mode_t mode;
        const char *properties;
        char **files; /* connector files, standalone only */
        int nfiles;
        bool embedded_broker;
        lc_strv_t topics; /* of the embedded broker */
} lc_run_args_t;

enum { LC_EXIT_OK = 0, LC_EXIT_USAGE = 1, LC_EXIT_HERDER = 1, LC_EXIT_START = 2, LC_EXIT_CONNECT = 3 };
/* Returns the exit status: 0 after SIGTERM or SIGINT, 1 when the herder ended by itself, 2 when the start
 * failed, 3 when the herder or a connector file failed at start. */
int lc_run_worker(const lc_run_args_t *args);

#endif
