/*
 * listener.h - the listening socket of the REST server: the first of `listeners`.
 *
 * Threads:   the main thread, before the server runs.
 * Ownership: the socket is the caller's.
 * Tests:     spec/golden/rest_raw_spec.lua, spec/golden/start_failures_spec.lua
 */
#ifndef LC_REST_LISTENER_H
#define LC_REST_LISTENER_H
#include "config/worker_config.h"

/* *port: the bound one. What of the listeners this server cannot do is said in the log, or refused. */
int lc_rest_listen(const lc_worker_config_t *wc, int *fd, int *port, lc_err_t *err);

#endif
