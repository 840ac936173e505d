/*
 * worker_config.h - worker.properties: parsed and checked against the one table (reference
 * worker-config). Unknown keys stay in the originals, are handed to clients and warned about once.
 *
 * Threads:   immutable after load.
 * Errors:    LC_FATAL, cls as Java's (mostly ConfigException), texts of
 *            golden/standalone/distributed-start-failures.jsonl.
 * Tests:     spec/unit/worker_config_spec.lua, spec/golden/start_failures_spec.lua
 */
#ifndef LC_CONFIG_WORKER_CONFIG_H
#define LC_CONFIG_WORKER_CONFIG_H
#include <stdint.h>
#include "config/def.h"

typedef enum { LC_DISTRIBUTED, LC_STANDALONE } lc_worker_mode_t;
typedef struct lc_worker_config lc_worker_config_t;

lc_worker_config_t *lc_worker_config_load(const char *path, lc_worker_mode_t mode, lc_err_t *err);
/* Takes a copy of props. */
lc_worker_config_t *lc_worker_config_new(const lc_props_t *props, lc_worker_mode_t mode, lc_err_t *err);
void lc_worker_config_free(lc_worker_config_t *wc);

/* Values of known keys after parsing; asking for a key that is no row is a bug (lc_assert). */
const char *lc_worker_config_str(const lc_worker_config_t *wc, const char *key); /* NULL = null */
int64_t lc_worker_config_int(const lc_worker_config_t *wc, const char *key);
bool lc_worker_config_bool(const lc_worker_config_t *wc, const char *key);
void lc_worker_config_list(const lc_worker_config_t *wc, const char *key, lc_strv_t *out);
/* As in the file (trimmed), unknown keys included: prefixes, topic settings, converter settings. */
const lc_props_t *lc_worker_config_originals(const lc_worker_config_t *wc);
lc_worker_mode_t lc_worker_config_mode(const lc_worker_config_t *wc);
/* exactly.once.source.support; standalone: always OFF. PREPARING: only the leader's writes are transactions. */
typedef enum { LC_EOS_OFF, LC_EOS_PREPARING, LC_EOS_ON } lc_eos_mode_t;
lc_eos_mode_t lc_worker_config_eos(const lc_worker_config_t *wc);
/* The file's config providers (config/providers.h). */
const struct lc_providers *lc_worker_config_providers(const lc_worker_config_t *wc);
/* Call after the plugin scan: "Invalid value X for configuration key.converter: Class X could not be found."
 * for the worker's three converters. */
struct lc_plugins;
int lc_worker_config_check_plugins(const lc_worker_config_t *wc, const struct lc_plugins *plugins,
                                   lc_err_t *err);
const lc_config_row_t *lc_worker_config_rows(lc_worker_mode_t mode, int *n); /* for docs */

/* First listener's host ("" = all) and port. */
int lc_worker_config_listener(const lc_worker_config_t *wc, lc_buf_t *host, int *port, lc_err_t *err);
/* Advertised URL "http://host:port/" and worker id "host:port", rules of worker-config 7. */
int lc_worker_config_advertised(const lc_worker_config_t *wc, int bound_port, lc_buf_t *url,
                                lc_buf_t *worker_id, lc_err_t *err);

#endif
