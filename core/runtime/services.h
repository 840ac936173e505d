/*
 * services.h - what connectors and tasks reach of the worker, behind a gate that can be shut: a thread that
 * was abandoned may come back after the stores are gone.
 *
 * Threads:   any. Counted; the last reference frees it.
 * Lock:      services->lock, a leaf but for the status store (its puts never block).
 * Tests:     spec/unit/worker_spec.lua
 */
#ifndef LC_RUNTIME_SERVICES_H
#define LC_RUNTIME_SERVICES_H
#include "convert/converter.h"
#include "runtime/restarts.h"
#include "runtime/worker.h"
#include <pthread.h>

typedef struct lc_services {
        int refs;
        const lc_worker_config_t *config;
        const lc_plugins_t *plugins; /* a reference; of any age: lc_plugins_current() */
        lc_offset_store_t *offsets;
        lc_status_store_t *statuses;
        char *worker_id;
        void (*reconfigure)(void *arg, const char *connector);
        void (*failed)(void *arg);   /* something is to be restarted; may be NULL */
        bool (*may_work)(void *arg); /* NULL: always */
        void (*fence)(void *arg, const char *connector, int task, struct lc_ticket *ticket);
        void (*verify)(void *arg, const char *connector, int task, struct lc_ticket *ticket);
        void *arg;
        const lc_local_ends_t *local; /* NULL: Kafka */
        lc_restarts_t *restarts;
        bool exactly_once;  /* source tasks write in transactions */
        int32_t generation; /* atomic */
        bool outside;       /* atomic: lc_worker_set_outside */
        bool track_topics;  /* topic.tracking.enable */
        int64_t flush_interval_ms, flush_timeout_ms, graceful_ms;
        int call_ms, connector_call_ms; /* plugin.max.call.ms, plugin.max.connector.call.ms */
        pthread_mutex_t lock;
        pthread_cond_t changed; /* something ended or left; monotonic clock */
        bool shut;
        int inside; /* threads inside a store */
} lc_services_t;

lc_services_t *lc_services_new(const lc_worker_deps_t *deps);
lc_services_t *lc_services_ref(lc_services_t *s);
void lc_services_unref(lc_services_t *s);
/* No store is touched any more when this returns (waits up to 5 s for threads inside). */
void lc_services_shut(lc_services_t *s);
/* false: shut. Between the two the stores and plugins exist. */
bool lc_services_enter(lc_services_t *s);
void lc_services_leave(lc_services_t *s);
/* May this worker's tasks write now? No once shut. */
bool lc_services_may_work(lc_services_t *s);

/* Statuses carry the worker's id and generation. `safe` is decided by the state. restart: lc_status_t's; NULL
 * of one that runs: what it was restarted for. */
void lc_services_status(lc_services_t *s, const char *connector, int task, lc_state_t state,
                        const char *trace, const char *version, const char *restart);
/* It FAILED: by its policy it is restarted at the monotonic time that is returned (0: never); the herder must
 * be told, once that can be seen. */
int64_t lc_services_failed(lc_services_t *s, const char *connector, int task, const lc_props_t *config,
                           const lc_err_t *err, int64_t ran_ms, char **shown);
void lc_services_tell_failed(lc_services_t *s);
void lc_services_topic_used(lc_services_t *s, const char *connector, int task, const char *topic);
int lc_services_offset_get(lc_services_t *s, const char *connector, const char *partition, lc_buf_t *out,
                           lc_err_t *err);

/* Wait on `changed` with the lock held until it is signalled or the monotonic time came: false then. */
bool lc_services_wait_until(lc_services_t *s, int64_t end_ms);

/* The converter of a role ("key", "value", "header"): class and settings from the level that names the
 * class, connector or worker, never mixed (converters.md 1). The set must outlive it. */
lc_converter_t *lc_services_converter(const lc_services_t *s, const lc_plugins_t *plugins,
                                      const lc_props_t *connector_config, const char *role, lc_err_t *err);
/* The connector's plugin by connector.class. */
const lc_plugin_t *lc_services_connector_plugin(const lc_plugins_t *plugins, const lc_props_t *config,
                                                lc_err_t *err);

#endif
