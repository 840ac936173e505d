/*
 * policy.c - see policy.h.
 *
 * Threads: any.  Tests: spec/unit/connector_config_spec.lua
 */
#include "config/policy.h"

const char *lc_override_policy_name(const char *value)
{
        static const char *const names[] = {"All", "None", "Principal", "Allowlist"};
        static const char package[] = "org.apache.kafka.connect.connector.policy.";
        static const char suffix[] = "ConnectorClientConfigOverridePolicy";

        if (!strncmp(value, package, sizeof(package) - 1))
                value += sizeof(package) - 1;
        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
                size_t n = strlen(names[i]);

                if (!strncmp(value, names[i], n) && (!value[n] || !strcmp(value + n, suffix)))
                        return names[i];
        }
        return NULL;
}

bool lc_override_allowed(const lc_worker_config_t *wc, const char *key, lc_buf_t *message)
{
        const char *name =
                lc_override_policy_name(lc_worker_config_str(wc, "connector.client.config.override.policy"));
        bool ok = name && !strcmp(name, "All");

        if (name && !strcmp(name, "Principal")) {
                ok = !strcmp(key, "sasl.jaas.config") || !strcmp(key, "sasl.mechanism") ||
                     !strcmp(key, "security.protocol");
        } else if (name && !strcmp(name, "Allowlist")) {
                lc_strv_t list = {NULL, 0};

                lc_strv_split(&list, lc_props_get_or(lc_worker_config_originals(wc),
                                                     "connector.client.config.override.allowlist", ""));
                ok = lc_strv_has(&list, key);
                lc_strv_free(&list);
        }
        if (!ok)
                lc_buf_printf(message,
                              "The '%s' policy does not allow '%s' to be overridden in the connector "
                              "configuration.",
                              name ? name : "unknown", key);
        return ok;
}
