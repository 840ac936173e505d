/*
 * worker_config.c - a worker file from text to checked values, in Java's order: providers, each row's type
 * and check, then what Java finds while it builds REST server, clients and stores.
 *
 * Threads:   immutable after load.
 * Ownership: the caller frees the config; strings from the getters are borrowed.
 * Tests:     spec/unit/worker_config_spec.lua, spec/golden/start_failures_spec.lua
 */
#include "config/worker_config.h"
#include "base/alloc.h"
#include "base/log.h"
#include "config/client_table.h"
#include "config/plugin.h"
#include "config/policy.h"
#include "config/properties.h"
#include "config/providers.h"
#include "config/worker_checks.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <netdb.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLS_KAFKA "org.apache.kafka.common.KafkaException"

struct lc_worker_config {
        lc_worker_mode_t mode;
        lc_props_t *originals; /* trimmed, variables resolved */
        lc_props_t *values;    /* canonical text of every row; NULL = null */
        lc_providers_t *providers;
};

/* ---- reading ---- */

static lc_props_t *trimmed(const lc_props_t *props)
{
        lc_props_t *out = lc_props_new();

        for (size_t i = 0; i < lc_props_count(props); i++) {
                const char *v = lc_props_value(props, i);
                char *s = NULL;

                if (v) {
                        size_t n;

                        while (*v && (unsigned char)*v <= ' ')
                                v++;
                        n = strlen(v);
                        while (n && (unsigned char)v[n - 1] <= ' ')
                                n--;
                        s = lc_strndup(v, n);
                }
                lc_props_set(out, lc_props_key(props, i), s);
                free(s);
        }
        return out;
}

/* Java looks at plugin.discovery before anything else of the file. */
static int check_discovery(const lc_props_t *props, lc_err_t *err)
{
        static const char *const modes[] = {"only_scan", "hybrid_warn", "hybrid_fail", "service_load"};
        const char *v = lc_props_get(props, "plugin.discovery");

        for (int i = 0; i < 4; i++)
                if (!v || !strcasecmp(v, modes[i]))
                        return 0;
        return lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONNECT,
                              "Invalid plugin.discovery value, must be one of [only_scan, hybrid_warn, "
                              "hybrid_fail, service_load]");
}

/* The worker removes duplicates of lists that must not have any (Java's ValidList) and says so. */
static void drop_duplicates(const lc_config_row_t *row, lc_props_t *props)
{
        const char *v = lc_props_get(props, row->name);
        lc_strv_t items = {NULL, 0}, once = {NULL, 0};
        lc_buf_t b = LC_BUF_SURE;

        if (!v || row->type != LC_CFG_LIST ||
            (row->check != lc_check_list && row->check != lc_check_list_non_empty &&
             row->check != lc_check_list_or_null && row->check != lc_worker_check_admin_listeners))
                return;
        lc_strv_split(&items, v);
        for (size_t i = 0; i < items.n; i++) {
                if (lc_strv_has(&once, items.v[i]))
                        continue;
                lc_buf_printf(&b, "%s%s", once.n ? "," : "", items.v[i]);
                lc_strv_add(&once, items.v[i]);
        }
        if (once.n < items.n) {
                lc_log(LC_WARN, "CONFIG",
                       "Configuration key \"%s\" contains duplicate values. Duplicates will be removed. The "
                       "original value is: %s",
                       row->name, v);
                lc_props_set(props, row->name, b.p);
        }
        lc_strv_free(&items);
        lc_strv_free(&once);
        lc_buf_free(&b);
}

static int parse_rows(lc_worker_config_t *wc, lc_err_t *err)
{
        int n;
        const lc_config_row_t *rows = lc_worker_config_rows(wc->mode, &n);

        for (int i = 0; i < n; i++) {
                lc_strv_t errors = {NULL, 0};
                char *value;
                int rc;

                drop_duplicates(&rows[i], wc->originals);
                rc = lc_config_parse(&rows[i], rows[i].name, wc->originals, &value, &errors);
                if (rc)
                        lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG, "%s", errors.v[0]);
                else
                        lc_props_set(wc->values, rows[i].name, value);
                free(value);
                lc_strv_free(&errors);
                if (rc)
                        return -1;
        }
        return 0;
}

static void post_process(lc_worker_config_t *wc)
{
        static const char *const backoffs[] = {"reconnect.backoff", "retry.backoff"};

        if (wc->mode != LC_DISTRIBUTED)
                return;
        if (lc_props_has(wc->originals, "reconnect.backoff.ms") &&
            !lc_props_has(wc->originals, "reconnect.backoff.max.ms"))
                lc_props_set(wc->values, "reconnect.backoff.max.ms",
                             lc_props_get(wc->values, "reconnect.backoff.ms"));
        for (size_t i = 0; i < 2; i++) {
                char *low = lc_asprintf("%s.ms", backoffs[i]), *high = lc_asprintf("%s.max.ms", backoffs[i]);

                if (lc_worker_config_int(wc, low) > lc_worker_config_int(wc, high))
                        lc_log(LC_WARN, "CONFIG",
                               "Configuration '%s' with value '%s' is greater than configuration '%s' with "
                               "value "
                               "'%s'. A static backoff with value '%s' will be applied.",
                               low, lc_worker_config_str(wc, low), high, lc_worker_config_str(wc, high),
                               lc_worker_config_str(wc, high));
                free(low);
                free(high);
        }
}

/* ---- checks across keys ---- */

static int check_signing(const lc_worker_config_t *wc, lc_err_t *err)
{
        const char *algorithm = lc_worker_config_str(wc, "inter.worker.key.generation.algorithm");
        const char *size = lc_worker_config_str(wc, "inter.worker.key.size");
        const char *signature = lc_worker_config_str(wc, "inter.worker.signature.algorithm");
        lc_strv_t accepted = {NULL, 0};
        bool listed = false;

        if (size && lc_worker_config_int(wc, "inter.worker.key.size") < 40)
                return lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                                      "Unable to create key generator with algorithm %s and key size %s: Key "
                                      "length must be at least 40 bits",
                                      algorithm, size);
        lc_worker_config_list(wc, "inter.worker.verification.algorithms", &accepted);
        listed = lc_strv_has(&accepted, signature);
        lc_strv_free(&accepted);
        if (!listed)
                return lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                                      "Invalid value %s for configuration inter.worker.signature.algorithm: "
                                      "Signature algorithm must be present in "
                                      "inter.worker.verification.algorithms list",
                                      signature);
        return 0;
}

static int check_listeners(const lc_worker_config_t *wc, const char *key, lc_err_t *err)
{
        lc_strv_t list = {NULL, 0};
        int rc = 0;

        if (lc_worker_config_str(wc, key))
                lc_worker_config_list(wc, key, &list);
        for (size_t i = 0; !rc && i < list.n; i++) {
                char *scheme = NULL, *host = NULL;
                int port;

                rc = lc_listener_parse(list.v[i], &scheme, &host, &port, err);
                free(scheme);
                free(host);
        }
        lc_strv_free(&list);
        return rc;
}

/* .*?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+) */
static bool host_port(const char *url, long *port)
{
        const char *colon = strrchr(url, ':');
        size_t n = colon ? strlen(colon + 1) : 0;

        if (!n || strspn(colon + 1, "0123456789") != n)
                return false;
        *port = strtol(colon + 1, NULL, 10);
        return true;
}

static int check_bootstrap(const lc_worker_config_t *wc, lc_err_t *err)
{
        lc_strv_t list = {NULL, 0};
        char *bad = NULL;
        const char *what = NULL;

        lc_worker_config_list(wc, "bootstrap.servers", &list);
        for (size_t i = 0; !bad && i < list.n; i++) {
                long port = 0;

                if (!host_port(list.v[i], &port))
                        what = "url";
                else if (port > 65535)
                        what = "port";
                if (what)
                        bad = lc_strdup(list.v[i]);
        }
        lc_strv_free(&list);
        if (!bad)
                return 0;
        lc_err_set_cls(err, LC_FATAL, 0, CLS_KAFKA, "Failed to create new KafkaAdminClient");
        if (err)
                lc_err_cause(err, LC_CLS_CONFIG, "Invalid %s in bootstrap.servers: %s", what, bad);
        free(bad);
        return -1;
}

static bool blank(const char *s)
{
        while (s && isspace((unsigned char)*s))
                s++;
        return !s || !*s;
}

static int check_distributed(const lc_worker_config_t *wc, lc_err_t *err)
{
        static const struct {
                const char *key, *text;
        } topics[] = {
                {"offset.storage.topic", "Offset storage topic must be specified"},
                {"status.storage.topic", "Must specify topic for connector status."},
                {"config.storage.topic", "Must specify topic for connector configuration."},
        };

        for (size_t i = 0; i < 3; i++)
                if (blank(lc_worker_config_str(wc, topics[i].key)))
                        return lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG, "%s", topics[i].text);
        if (lc_worker_config_int(wc, "heartbeat.interval.ms") >=
            lc_worker_config_int(wc, "session.timeout.ms")) {
                lc_err_set_cls(err, LC_FATAL, 0, CLS_KAFKA, "Failed to construct kafka consumer");
                if (err)
                        lc_err_cause(err, "java.lang.IllegalArgumentException",
                                     "Heartbeat must be set lower than the session timeout");
                return -1;
        }
        if (blank(lc_worker_config_str(wc, "group.id"))) {
                lc_err_set_cls(err, LC_FATAL, 0, CLS_KAFKA, "Failed to construct kafka consumer");
                if (err)
                        lc_err_cause(err, "org.apache.kafka.common.errors.InvalidGroupIdException",
                                     "The configured group.id should not be an empty string or whitespace.");
                return -1;
        }
        return 0;
}

static int cross_checks(const lc_worker_config_t *wc, lc_err_t *err)
{
        const char *policy = lc_worker_config_str(wc, "connector.client.config.override.policy");

        if (wc->mode == LC_DISTRIBUTED && check_signing(wc, err))
                return -1;
        if (check_listeners(wc, "listeners", err) || check_listeners(wc, "admin.listeners", err))
                return -1;
        if (!lc_override_policy_name(policy))
                return lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONNECT,
                                      "Failed to find any class that implements interface "
                                      "org.apache.kafka.connect.connector.policy."
                                      "ConnectorClientConfigOverridePolicy and which name matches %s",
                                      policy);
        if (check_bootstrap(wc, err))
                return -1;
        return wc->mode == LC_DISTRIBUTED ? check_distributed(wc, err) : 0;
}

/* ---- warnings ---- */

static bool known(const lc_worker_config_t *wc, const char *key)
{
        static const char *const prefixes[] = {
                "producer.",
                "consumer.",
                "admin.",
                "config.storage.",
                "offset.storage.",
                "status.storage.",
                "listeners.https.",
                "admin.listeners.https.",
                "metrics.context.",
                "key.converter.",
                "value.converter.",
                "header.converter.",
                "config.providers.",
                "connector.client.config.override.",
        };

        if (lc_props_has(wc->values, key) || lc_client_setting_known(key))
                return true;
        for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
                if (!strncmp(key, prefixes[i], strlen(prefixes[i])))
                        return true;
        if (wc->mode == LC_STANDALONE) { /* one file for both modes is common */
                int n;
                const lc_config_row_t *rows = lc_worker_config_rows(LC_DISTRIBUTED, &n);

                for (int i = 0; i < n; i++)
                        if (!strcmp(rows[i].name, key))
                                return true;
        }
        return !strcmp(key, "offset.storage.file.filename");
}

static void warn(const lc_worker_config_t *wc)
{
        static const char *const stores[] = {"config", "offset", "status"};
        const char *eos = lc_props_get(wc->originals, "exactly.once.source.support");

        for (size_t i = 0; i < lc_props_count(wc->originals); i++) {
                const char *key = lc_props_key(wc->originals, i);

                if (!strncmp(key, "internal.key.converter", 22) ||
                    !strncmp(key, "internal.value.converter", 24))
                        lc_log(LC_WARN, "CONFIG",
                               "%s has no effect: internal data is always JSON without schemas", key);
                else if (!known(wc, key))
                        lc_log(LC_WARN, "CONFIG", "Unknown key '%s' in the worker configuration is ignored",
                               key);
        }
        if (wc->mode == LC_STANDALONE && eos && strcasecmp(eos, "disabled"))
                lc_log(LC_WARN, "CONFIG",
                       "exactly.once.source.support=%s has no effect in standalone mode: source tasks "
                       "deliver at least once",
                       eos);
        for (size_t i = 0; i < 3 && wc->mode == LC_DISTRIBUTED; i++) {
                char *policy = lc_asprintf("%s.storage.cleanup.policy", stores[i]);
                const char *v = lc_props_get(wc->originals, policy);

                if (v)
                        lc_log(LC_WARN, "CONFIG", "Ignoring '%s=%s' setting, since compaction is always used",
                               policy, v);
                free(policy);
        }
        if (wc->mode == LC_DISTRIBUTED && lc_props_get(wc->originals, "config.storage.partitions"))
                lc_log(LC_WARN, "CONFIG",
                       "Ignoring 'config.storage.partitions=%s' setting, since config topic partitions is "
                       "always 1",
                       lc_props_get(wc->originals, "config.storage.partitions"));
}

/* ---- the object ---- */

lc_worker_config_t *lc_worker_config_new(const lc_props_t *props, lc_worker_mode_t mode, lc_err_t *err)
{
        lc_worker_config_t *wc = lc_calloc(1, sizeof(*wc));
        lc_props_t *raw = trimmed(props);
        const char *path = lc_props_get(raw, "plugin.path");

        wc->mode = mode;
        wc->values = lc_props_new();
        if (lc_has_variable(path))
                lc_log(LC_WARN, "CONFIG",
                       "Variables cannot be used in the 'plugin.path' property, since the property is used "
                       "by "
                       "plugin scanning before the config providers that replace the variables are "
                       "initialized. "
                       "The raw value '%s' was used for plugin scanning.",
                       path);
        if (check_discovery(raw, err) || !(wc->providers = lc_providers_new(raw, err)) ||
            !(wc->originals = lc_providers_resolve(wc->providers, raw, err)))
                goto fail;
        if (path)
                lc_props_set(wc->originals, "plugin.path", path);
        if (parse_rows(wc, err))
                goto fail;
        post_process(wc);
        if (cross_checks(wc, err))
                goto fail;
        warn(wc);
        lc_props_free(raw);
        return wc;
fail:
        lc_props_free(raw);
        lc_worker_config_free(wc);
        return NULL;
}

lc_worker_config_t *lc_worker_config_load(const char *path, lc_worker_mode_t mode, lc_err_t *err)
{
        lc_props_t *props = NULL;
        lc_worker_config_t *wc;

        if (*path && lc_properties_load(path, &props, err)) /* Java: an empty name is an empty file */
                return NULL;
        wc = lc_worker_config_new(props, mode, err);
        lc_props_free(props);
        return wc;
}

void lc_worker_config_free(lc_worker_config_t *wc)
{
        if (!wc)
                return;
        lc_props_free(wc->originals);
        lc_props_free(wc->values);
        lc_providers_free(wc->providers);
        free(wc);
}

const char *lc_worker_config_str(const lc_worker_config_t *wc, const char *key)
{
        lc_assert(lc_props_has(wc->values, key));
        return lc_props_get(wc->values, key);
}

int64_t lc_worker_config_int(const lc_worker_config_t *wc, const char *key)
{
        const char *v = lc_worker_config_str(wc, key);
        return v ? strtoll(v, NULL, 10) : 0;
}

bool lc_worker_config_bool(const lc_worker_config_t *wc, const char *key)
{
        const char *v = lc_worker_config_str(wc, key);
        return v && !strcmp(v, "true");
}

void lc_worker_config_list(const lc_worker_config_t *wc, const char *key, lc_strv_t *out)
{
        const char *v = lc_worker_config_str(wc, key);

        if (v)
                lc_strv_split(out, v);
}

const lc_props_t *lc_worker_config_originals(const lc_worker_config_t *wc)
{
        return wc->originals;
}

lc_worker_mode_t lc_worker_config_mode(const lc_worker_config_t *wc)
{
        return wc->mode;
}

lc_eos_mode_t lc_worker_config_eos(const lc_worker_config_t *wc)
{
        const char *v;

        if (lc_worker_config_mode(wc) != LC_DISTRIBUTED)
                return LC_EOS_OFF;
        v = lc_worker_config_str(wc, "exactly.once.source.support");
        return !v || !strcasecmp(v, "disabled") ? LC_EOS_OFF
               : !strcasecmp(v, "enabled")      ? LC_EOS_ON
                                                : LC_EOS_PREPARING;
}

const lc_providers_t *lc_worker_config_providers(const lc_worker_config_t *wc)
{
        return wc->providers;
}

int lc_worker_config_check_plugins(const lc_worker_config_t *wc, const lc_plugins_t *plugins, lc_err_t *err)
{
        static const struct {
                const char *key;
                lc_plugin_type_t type;
        } keys[] = {
                {"key.converter", LC_PLUGIN_CONVERTER},
                {"value.converter", LC_PLUGIN_CONVERTER},
                {"header.converter", LC_PLUGIN_HEADER_CONVERTER},
        };

        for (size_t i = 0; i < 3; i++) {
                const char *name = lc_worker_config_str(wc, keys[i].key);
                const lc_plugin_t *p = lc_plugins_find(plugins, 1u << keys[i].type, name, NULL);

                if (!p && (p = lc_plugins_find(plugins, 0, name, NULL)))
                        return lc_err_set_cls(
                                err, LC_FATAL, 0, LC_CLS_CONFIG,
                                "Class class %s does not implement the %s interface", p->class_name,
                                keys[i].type == LC_PLUGIN_CONVERTER ? "Converter" : "HeaderConverter");
                if (!p)
                        return lc_err_set_cls(
                                err, LC_FATAL, 0, LC_CLS_CONFIG,
                                "Invalid value %s for configuration %s: Class %s could not be found.", name,
                                keys[i].key, name);
        }
        return 0;
}

/* ---- where the worker listens and how it is called ---- */

int lc_worker_config_listener(const lc_worker_config_t *wc, lc_buf_t *host, int *port, lc_err_t *err)
{
        lc_strv_t list = {NULL, 0};
        int rc = -1;
        bool found = false;

        lc_worker_config_list(wc, "listeners", &list);
        for (size_t i = 0; !found && i < list.n; i++) {
                char *scheme = NULL, *h = NULL;

                if (lc_listener_parse(list.v[i], &scheme, &h, port, err))
                        goto done;
                found = !strcmp(scheme, "http");
                if (found)
                        lc_buf_adds(host, h);
                free(scheme);
                free(h);
        }
        if (found)
                rc = 0;
        else
                lc_err_set_cls(
                        err, LC_FATAL, 0, LC_CLS_CONFIG,
                        "listeners=%s: HTTPS is not supported yet, name an http:// listener (behind a TLS "
                        "proxy, if need be)",
                        lc_worker_config_str(wc, "listeners"));
done:
        lc_strv_free(&list);
        return rc;
}

/* The address Java's InetAddress.getLocalHost() would give. */
static void local_address(lc_buf_t *out)
{
        struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *list = NULL;
        char name[256] = "", text[INET_ADDRSTRLEN] = "127.0.0.1";

        if (!gethostname(name, sizeof(name) - 1) && !getaddrinfo(name, NULL, &hints, &list) && list) {
                struct sockaddr_in sa;

                memcpy(&sa, list->ai_addr, sizeof(sa));
                inet_ntop(AF_INET, &sa.sin_addr, text, sizeof(text));
        }
        if (list)
                freeaddrinfo(list);
        lc_buf_adds(out, text);
}

int lc_worker_config_advertised(const lc_worker_config_t *wc, int bound_port, lc_buf_t *url,
                                lc_buf_t *worker_id, lc_err_t *err)
{
        const char *raw = lc_worker_config_str(wc, "listeners");
        const char *name = lc_worker_config_str(wc, "rest.advertised.host.name");
        const char *set = lc_worker_config_str(wc, "rest.advertised.listener");
        char *scheme = lc_strdup(set && *set               ? set
                                 : strstr(raw, "http://")  ? "http"
                                 : strstr(raw, "https://") ? "https"
                                                           : "http");
        char *listener_host = NULL;
        int port = 0, rc = -1;
        lc_strv_t list = {NULL, 0};
        lc_buf_t host = LC_BUF_SURE;

        for (char *s = scheme; *s; s++)
                *s = (char)tolower((unsigned char)*s);
        lc_worker_config_list(wc, "listeners", &list);
        for (size_t i = 0; !listener_host && i < list.n; i++) {
                char *s = NULL, *h = NULL;
                int p;

                if (lc_listener_parse(list.v[i], &s, &h, &p, err))
                        goto done;
                if (!strcmp(s, scheme)) {
                        listener_host = h;
                        port = p;
                } else {
                        free(h);
                }
                free(s);
        }
        if (name && *name)
                lc_buf_adds(&host, name);
        else if (listener_host && *listener_host)
                lc_buf_adds(&host, listener_host);
        else
                local_address(&host);
        if (strchr(host.p, ':') && *host.p != '[') { /* IPv6 in a URL */
                char *h = lc_asprintf("[%s]", host.p);

                lc_buf_clear(&host);
                lc_buf_adds(&host, h);
                free(h);
        }
        if (lc_worker_config_str(wc, "rest.advertised.port"))
                port = (int)lc_worker_config_int(wc, "rest.advertised.port");
        else if (port <= 0)
                port = bound_port;
        if (url)
                lc_buf_printf(url, "%s://%s:%d/", scheme, host.p, port);
        if (worker_id)
                lc_buf_printf(worker_id, "%s:%d", host.p, port);
        rc = 0;
done:
        free(scheme);
        free(listener_host);
        lc_strv_free(&list);
        lc_buf_free(&host);
        return rc;
}
