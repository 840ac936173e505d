/*
 * connector_config.h - connector configs: common definitions (reference connector-config 1), validation
 * (2, 3) and typed reads for the runtime.
 *
 * Threads:   validation runs user code (plugin checks): only on the connector pool.
 * Tests:     spec/unit/connector_config_spec.lua, golden/rest through spec/kafka
 */
#ifndef LC_CONFIG_CONNECTOR_CONFIG_H
#define LC_CONFIG_CONNECTOR_CONFIG_H
#include "config/plugin.h"
#include "config/worker_config.h"

/* Rows of source or sink connectors in definition order. */
const lc_config_row_t *lc_connector_config_rows(lc_plugin_type_t type, int *n);
/* Those beyond Connect, of both kinds: only for configs that have them. */
const lc_config_row_t *lc_connector_config_own_rows(int *n);

/* The whole of connector-config 2. Returns NULL with err->code = HTTP status and err->cls the Java class
 * when validation itself fails (no connector.class: 400 BadRequestException ...). `config` is raw. */
lc_config_infos_t *lc_connector_validate(const lc_worker_config_t *wc, const lc_plugins_t *plugins,
                                         const lc_props_t *config, lc_err_t *err);
/* Value of a common key after parsing, its default when absent; malloc'ed, NULL for null or bad. */
char *lc_connector_config_get(const lc_props_t *config, const char *key);
int64_t lc_connector_config_int(const lc_props_t *config, const char *key);
bool lc_connector_config_bool(const lc_props_t *config, const char *key);

/* Variables ${provider:path:key} resolved by the worker's config.providers; unknown ones stay. */
lc_props_t *lc_config_resolve(const lc_worker_config_t *wc, const lc_props_t *raw, lc_err_t *err);

#endif
