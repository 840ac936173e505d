/*
 * providers.h - config providers: variables ${provider:path:key} in worker and connector configs.
 *
 * Threads:   immutable after new; resolve from any thread (reads files each time, as Java does).
 * Ownership: answers are the caller's.
 * Errors:    LC_FATAL, ConfigException, Java's texts (reference worker-config 6). Code 500.
 * Tests:     spec/unit/config_spec.lua
 */
#ifndef LC_CONFIG_PROVIDERS_H
#define LC_CONFIG_PROVIDERS_H
#include <stdbool.h>
#include "base/err.h"
#include "base/props.h"

typedef struct lc_providers lc_providers_t;

/* From config.providers, config.providers.NAME.class and .param.* of a worker file. */
lc_providers_t *lc_providers_new(const lc_props_t *worker, lc_err_t *err);
void lc_providers_free(lc_providers_t *p);
lc_props_t *lc_providers_resolve(const lc_providers_t *p, const lc_props_t *raw, lc_err_t *err);
/* Does the text hold a variable, known provider or not? */
bool lc_has_variable(const char *text);

#endif
