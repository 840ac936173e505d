/*
 * policy.h - connector.client.config.override.policy: which client settings a connector may override.
 *
 * Threads: any.   Source: reference worker-config 5.   Tests: spec/unit/connector_config_spec.lua
 */
#ifndef LC_CONFIG_POLICY_H
#define LC_CONFIG_POLICY_H
#include "config/worker_config.h"

/* "All", "None", "Principal", "Allowlist" for an alias or a Java class name; NULL: unknown. */
const char *lc_override_policy_name(const char *value);
/* May a connector set `key` (prefix cut off)? If not, "The 'None' policy does not allow ..." is appended. */
bool lc_override_allowed(const lc_worker_config_t *wc, const char *key, lc_buf_t *message);

#endif
