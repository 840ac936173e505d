/*
 * connector.h - one connector instance: its script, its states, one call at a time on the pool.
 *
 * Threads:   the herder's thread calls; the script runs on pool threads, never two at once; `done`
 *            callbacks come on pool threads, or on the caller's when a call is pre-empted or dropped.
 * Ownership: counted: the worker's map and every job hold a reference.
 * Lock:      connector->lock guards what is pending and the cancelled flag; the status store is called
 *            under it (never blocks). Order: connector->lock, then services->lock.
 * Source:    connector-config 4 and 5.   Tests: spec/unit/worker_spec.lua
 */
#ifndef LC_RUNTIME_CONNECTOR_H
#define LC_RUNTIME_CONNECTOR_H
#include "runtime/pool.h"
#include "runtime/services.h"

typedef struct lc_connector lc_connector_t;

lc_connector_t *lc_connector_new(lc_services_t *sv, lc_pool_t *pool, const char *name,
                                 const lc_props_t *config);
void lc_connector_unref(lc_connector_t *c);
bool lc_connector_exists(const lc_connector_t *c); /* it could be made, or is not made yet */
bool lc_connector_started(const lc_connector_t *c);
/* Was it made from a plugin that `now` has a newer one of? Also of one that has failed. */
bool lc_connector_outdated(lc_connector_t *c, const lc_plugins_t *now);
/* A newer request pre-empts one that has not begun or waits to be tried again. */
void lc_connector_target(lc_connector_t *c, lc_target_state_t target, lc_worker_done_fn *done, void *arg);
void lc_connector_task_configs(lc_connector_t *c, const lc_props_t *config, lc_task_configs_fn *done,
                               void *arg);
void lc_connector_stop(lc_connector_t *c);           /* asks; sv->changed is signalled when it is over */
bool lc_connector_stopping(const lc_connector_t *c); /* it was asked to */
bool lc_connector_ended(lc_connector_t *c);
int64_t lc_connector_restart_at(const lc_connector_t *c); /* of one that FAILED; 0: it stays as it is */
/* Give it up: UNASSIGNED is written, nothing it does later shows. */
void lc_connector_cancel(lc_connector_t *c);

#endif
