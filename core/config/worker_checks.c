/*
 * worker_checks.c - see worker_checks.h. Texts are Java's.
 *
 * Threads: any.  Tests: spec/unit/worker_config_spec.lua, spec/golden/start_failures_spec.lua
 */
#include "config/worker_checks.h"
#include "base/alloc.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool blank(const char *s)
{
        while (isspace((unsigned char)*s))
                s++;
        return !*s;
}

static bool urls(const char *value, const char *what, lc_buf_t *reason)
{
        lc_strv_t items = {NULL, 0};
        bool ok = true;

        lc_strv_split(&items, value);
        for (size_t i = 0; i < items.n; i++)
                ok &= !blank(items.v[i]);
        lc_strv_free(&items);
        if (!ok)
                lc_buf_printf(reason, "Empty URL found when parsing %s list.", what);
        return ok;
}

bool lc_worker_check_listeners(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        static const char example[] = "http://localhost:8080,https://localhost:8443";

        (void)row;
        if (!value) {
                lc_buf_printf(reason, "Invalid value type for listeners (expected list of URLs , ex: %s).",
                              example);
                return false;
        }
        if (blank(value)) {
                lc_buf_printf(reason, "Invalid value for listeners, at least one URL is expected, ex: %s.",
                              example);
                return false;
        }
        return urls(value, "listeners", reason);
}

bool lc_worker_check_admin_listeners(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        return !value || lc_check_list(row, value, reason);
}

/* One rule "action name:value", Java's String.split rules: trailing empty parts do not count. */
static bool header_rule(const char *rule, lc_buf_t *reason)
{
        static const char *const actions[] = {"set", "add", "setDate", "addDate"};
        const char *end = rule + strlen(rule), *name, *colon;
        char *trimmed, *action = NULL, *header = NULL, *key = NULL;
        size_t n;
        bool known = false, ok = false;

        while (isspace((unsigned char)*rule))
                rule++;
        while (end > rule && isspace((unsigned char)end[-1]))
                end--;
        trimmed = lc_strndup(rule, (size_t)(end - rule));
        n = strcspn(trimmed, " \t\n\r\f\v");
        if (!trimmed[n]) {
                lc_buf_printf(reason,
                              "Invalid format of header config '%s'. Expected: '[action] [header "
                              "name]:[header value]'",
                              trimmed);
                goto done;
        }
        action = lc_strndup(trimmed, n);
        for (size_t i = 0; i < 4; i++)
                known |= !strcasecmp(action, actions[i]);
        if (!known) {
                lc_buf_printf(reason,
                              "Invalid header config action: '%s'. Expected one of [set, add, setDate, "
                              "addDate]",
                              action);
                goto done;
        }
        name = trimmed + n;
        while (isspace((unsigned char)*name))
                name++;
        header = lc_strdup(name);
        colon = strchr(header, ':');
        n = strlen(header);
        while (n && header[n - 1] == ':')
                n--;
        if (!colon || (size_t)(colon - header) >= n ||
            memchr(colon + 1, ':', n - (size_t)(colon + 1 - header))) {
                lc_buf_printf(reason,
                              "Invalid format of header name and header value pair '%s'. Expected: "
                              "'[header name]:[header value]'",
                              header);
                goto done;
        }
        n = (size_t)(colon - header);
        while (n && isspace((unsigned char)header[n - 1]))
                n--;
        key = lc_strndup(header, n);
        if (!*key || strpbrk(key, " \t\n\r\f\v")) {
                lc_buf_printf(reason,
                              "Invalid header name '%s'. The '[header name]' cannot contain whitespace", key);
                goto done;
        }
        ok = true;
done:
        free(trimmed);
        free(action);
        free(header);
        free(key);
        return ok;
}

bool lc_worker_check_headers(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        lc_buf_t rule = LC_BUF_SURE;
        bool quoted = false, ok = true;

        (void)row;
        if (!value || blank(value))
                return true;
        for (const char *p = value; ok; p++) { /* comma list, a rule with commas in double quotes */
                if (*p == '"') {
                        quoted = !quoted;
                } else if (!*p || (*p == ',' && !quoted)) {
                        ok = header_rule(rule.p ? rule.p : "", reason);
                        lc_buf_clear(&rule);
                        if (!*p)
                                break;
                } else {
                        lc_buf_addc(&rule, *p);
                }
        }
        lc_buf_free(&rule);
        return ok;
}

/* ---- request signing ---- */

static const char *const macs[] = {"HmacSHA1", "HmacSHA224", "HmacSHA256", "HmacSHA384", "HmacSHA512"};

static bool mac_known(const char *name)
{
        for (size_t i = 0; name && i < sizeof(macs) / sizeof(*macs); i++)
                if (!strcasecmp(name, macs[i]))
                        return true;
        return false;
}

static void unknown_mac(lc_buf_t *reason)
{
        lc_buf_adds(reason, "the algorithm is not supported by this JVM; the supported algorithms are: [");
        for (size_t i = 0; i < sizeof(macs) / sizeof(*macs); i++)
                lc_buf_printf(reason, "%s%s", i ? ", " : "", macs[i]);
        lc_buf_addc(reason, ']');
}

bool lc_worker_check_mac(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        (void)row;
        if (mac_known(value))
                return true;
        unknown_mac(reason);
        return false;
}

bool lc_worker_check_key_algorithm(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        return lc_worker_check_mac(row, value, reason);
}

bool lc_worker_check_verification(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        lc_strv_t items = {NULL, 0};
        lc_buf_t why = LC_BUF_SURE;
        bool ok;

        lc_strv_split(&items, value ? value : "");
        ok = items.n > 0;
        if (!ok)
                lc_config_invalid(reason, LC_CFG_LIST, value, row->name,
                                  "At least one signature verification algorithm must be provided");
        for (size_t i = 0; ok && i < items.n; i++) {
                ok = mac_known(items.v[i]);
                if (!ok) {
                        unknown_mac(&why);
                        lc_config_invalid(reason, LC_CFG_STRING, items.v[i], row->name, why.p);
                }
        }
        lc_buf_free(&why);
        lc_strv_free(&items);
        return ok;
}

bool lc_worker_check_protocol(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        (void)row;
        if (value && (!strcasecmp(value, "eager") || !strcasecmp(value, "compatible") ||
                      !strcasecmp(value, "sessioned")))
                return true;
        lc_buf_adds(reason, "Invalid Connect protocol compatibility");
        return false;
}

/* ---- internal topics ---- */

static bool positive_or_default(const char *value)
{
        long n = value ? strtol(value, NULL, 10) : 0;
        return n > 0 || n == -1;
}

bool lc_worker_check_partitions(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        (void)row;
        if (positive_or_default(value))
                return true;
        lc_buf_adds(reason, "Number of partitions must be positive, or -1 to use the broker's default");
        return false;
}

bool lc_worker_check_replication(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        (void)row;
        if (positive_or_default(value))
                return true;
        lc_buf_adds(reason,
                    "Replication factor must be positive and not larger than the number of brokers in "
                    "the Kafka cluster, or -1 to use the broker's default");
        return false;
}

/* ^(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+) : greedy, so the last "://" and the last colon that fits. */
int lc_listener_parse(const char *listener, char **scheme, char **host, int *port, lc_err_t *err)
{
        static const char host_chars[] =
                "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-%._:";
        const char *at = NULL, *h, *end, *colon = NULL;
        long p;

        for (const char *s = strstr(listener, "://"); s; s = strstr(s + 1, "://"))
                at = s;
        if (at) {
                h = at + 3 + (at[3] == '[');
                end = h + strspn(h, host_chars);
                if (*end == ']' && end[1] == ':') {
                        colon = end + 1;
                } else {
                        for (const char *s = end; s-- > h;) {
                                if (*s == ':' && (isdigit((unsigned char)s[1]) ||
                                                  (s[1] == '-' && isdigit((unsigned char)s[2])))) {
                                        colon = end = s;
                                        break;
                                }
                        }
                }
        }
        if (!colon ||
            !(isdigit((unsigned char)colon[1]) || (colon[1] == '-' && isdigit((unsigned char)colon[2]))))
                return lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                                      "Listener doesn't have the right format (protocol://hostname:port).");
        *scheme = lc_strndup(listener, (size_t)(at - listener));
        for (char *s = *scheme; *s; s++)
                *s = (char)tolower((unsigned char)*s);
        if (strcmp(*scheme, "http") && strcmp(*scheme, "https")) {
                free(*scheme);
                *scheme = NULL;
                return lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                                      "Listener protocol must be either \"http\" or \"https\".");
        }
        p = strtol(colon + 1, NULL, 10);
        if (p < 0 || p > 65535) {
                free(*scheme);
                *scheme = NULL;
                return lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                                      "Listener '%s': port %ld is not between 0 "
                                      "and 65535.",
                                      listener, p);
        }
        *host = lc_strndup(h, (size_t)(end - h));
        *port = (int)p;
        return 0;
}

int64_t lc_worker_size(const char *text)
{
        static const char units[] = "kmg";
        const char *unit;
        int64_t n = 0;

        if (!isdigit((unsigned char)*text))
                return -1;
        for (; isdigit((unsigned char)*text); text++) {
                n = n * 10 + (*text - '0');
                if (n > INT64_MAX / 4096)
                        return -1;
        }
        if (!*text)
                return n;
        unit = strchr(units, tolower((unsigned char)*text));
        if (!unit || text[1])
                return -1;
        for (int i = 0; i <= unit - units; i++) {
                if (n > INT64_MAX / 1024)
                        return -1;
                n *= 1024;
        }
        return n;
}

bool lc_worker_check_size(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        (void)row;
        if (value && lc_worker_size(value) >= 0)
                return true;
        lc_buf_printf(reason, "a number of bytes expected, with k, m or g behind it or nothing");
        return false;
}
