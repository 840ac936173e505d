/*
 * client_config.h - Java client settings to librdkafka's: the one translation table.
 *
 * Precedence as worker-config 4: Connect's defaults < worker producer./consumer./admin. keys (plain keys
 * for internal clients) < connector producer.override. etc. What cannot be translated is warned about by
 * name, once. Result: librdkafka property names and values, ready for rd_kafka_conf_set.
 * Threads: any.  Tests: spec/unit/client_config_spec.lua; docs/configuration.md is printed from the table.
 */
#ifndef LC_CONFIG_CLIENT_CONFIG_H
#define LC_CONFIG_CLIENT_CONFIG_H
#include "config/worker_config.h"

typedef enum {
        LC_CLIENT_PRODUCER,          /* source tasks: producer. + producer.override. */
        LC_CLIENT_CONSUMER,          /* sink tasks */
        LC_CLIENT_ADMIN,             /* connectors' admin: plain keys, admin., admin.override. */
        LC_CLIENT_INTERNAL_PRODUCER, /* internal topics: plain keys only */
        LC_CLIENT_INTERNAL_CONSUMER,
        LC_CLIENT_INTERNAL_ADMIN
} lc_client_kind_t;

/* connector_config (variables resolved) may be NULL. client_id: used unless the settings name one; NULL:
 * none. Consumers of connectors get group.id connect-NAME unless overridden, internal ones the worker's (they
 * only assign). */
lc_props_t *lc_client_config(const lc_worker_config_t *wc, lc_client_kind_t kind,
                             const lc_props_t *connector_config, const char *client_id, lc_err_t *err);
/* Of a producer with transactions: the id, and idempotence, whatever the settings say (a warning says so).
 * kind: LC_CLIENT_PRODUCER or LC_CLIENT_INTERNAL_PRODUCER, whose warnings nobody needs. */
lc_props_t *lc_client_config_transactional(const lc_worker_config_t *wc, lc_client_kind_t kind,
                                           const lc_props_t *connector_config, const char *client_id,
                                           const char *transactional_id, lc_err_t *err);
/* Java's name of the value in force, for what the worker itself must know (max.request.size). NULL: the
 * Java default does not exist. */
const char *lc_client_java_value(const lc_worker_config_t *wc, lc_client_kind_t kind,
                                 const lc_props_t *connector_config, const char *java_key);

/* The Java settings in force: Connect's defaults, worker, overrides. For docs and specs; the caller's. */
lc_props_t *lc_client_java_settings(const lc_worker_config_t *wc, lc_client_kind_t kind,
                                    const lc_props_t *connector_config);
/* SCRAM against Kafka >= 4 fails before librdkafka 2.6.1: LC_FATAL. version: rd_kafka_version(). */
int lc_client_check_scram(int version, const char *mechanism, lc_err_t *err);

#endif
