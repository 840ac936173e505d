/*
 * connector_config.c - the common rows of connector configs in definition order (reference
 * connector-config 1.1-1.3) and typed reads for the runtime.
 *
 * Threads: any; rows are read-only once made.  Tests: spec/unit/connector_config_spec.lua
 */
#include "config/connector_config.h"
#include "base/alloc.h"
#include "config/providers.h"
#include "config/version_range.h"
#include "convert/java_regex.h"
#include <pthread.h>
#include <stdlib.h>

static bool check_name(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        bool found = false;

        (void)row;
        if (!value)
                return true;
        if (!*value) {
                lc_buf_adds(reason, "String may not be empty");
                return false;
        }
        for (const unsigned char *p = (const unsigned char *)value; *p; p++) {
                unsigned c = *p;

                if (c == 0xC2 && p[1] >= 0x80 && p[1] < 0xA0) /* U+0080..U+009F are controls too */
                        c = *++p;
                else if (c >= 0x20 && c != 0x7f)
                        continue;
                lc_buf_adds(reason, found ? ", "
                                          : "String may not contain control sequences but had the following "
                                            "ASCII chars: ");
                lc_buf_printf(reason, "%u", c);
                found = true;
        }
        return !found;
}

static bool check_range_syntax(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        lc_err_t err = {0};

        (void)row;
        if (lc_version_in_range(value, "0", NULL, &err) >= 0)
                return true;
        lc_buf_adds(reason, err.msg);
        return false;
}

static bool check_regex(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        lc_err_t err = {0};
        int rc;

        (void)row;
        if (!value)
                return true;
        rc = lc_java_regex_check(value, &err);
        if (rc)
                lc_buf_printf(reason, "Invalid regex: %s", err.msg);
        return !rc;
}

static bool check_null_or_not_negative(const lc_config_row_t *row, const char *value, lc_buf_t *reason)
{
        return !value || lc_check_at_least(row, value, reason);
}

static const char *const reload_values[] = {"none", "restart", NULL};
static const char *const tolerance_values[] = {"none", "all", NULL};
static const char *const policy_values[] = {"none", "on-failure", NULL};
static const char *const eos_values[] = {"REQUIRED", "REQUESTED", NULL};
static const char *const boundary_values[] = {"INTERVAL", "POLL", "CONNECTOR", NULL};

#define R(n, t, d, i, g, o, w, disp, text)                                                                   \
        .name = n, .type = LC_CFG_##t, .def = d, .importance = LC_##i, .group = g, .order = o,               \
        .width = LC_WIDTH_##w, .display = disp, .doc = text

/* clang-format off */
static const lc_config_row_t common[] = {
        { R("name", STRING, NULL, HIGH, "Common", 1, MEDIUM, "Connector name",
            "Name of the connector, unique in the cluster."),
          .required = true, .check = check_name },
        { R("connector.class", STRING, NULL, HIGH, "Common", 2, LONG, "Connector class",
            "Class of the connector: full name, simple name or alias."), .required = true },
        { R("connector.plugin.version", STRING, NULL, MEDIUM, "Common", 3, MEDIUM, "Connector version",
            "Version or version range of the connector class."), .check = check_range_syntax },
        { R("tasks.max", INT, "1", HIGH, "Common", 4, SHORT, "Tasks max",
            "Most tasks the connector may run."), .check = lc_check_at_least, .min = 1 },
        { R("tasks.max.enforce", BOOLEAN, "true", LOW, "Common", 5, SHORT, "Enforce tasks max",
            "Fail a connector that asks for more tasks than tasks.max (deprecated).") },
        { R("key.converter", CLASS, NULL, LOW, "Common", 6, SHORT, "Key converter class",
            "Converter of record keys; the worker's unless given.") },
        { R("key.converter.plugin.version", STRING, NULL, LOW, "Common", 7, SHORT, "Key converter version",
            "Version range of the key converter."), .check = check_range_syntax },
        { R("value.converter", CLASS, NULL, LOW, "Common", 8, SHORT, "Value converter class",
            "Converter of record values; the worker's unless given.") },
        { R("value.converter.plugin.version", STRING, NULL, LOW, "Common", 9, SHORT,
            "Value converter version", "Version range of the value converter."),
          .check = check_range_syntax },
        { R("header.converter", CLASS, NULL, LOW, "Common", 10, SHORT, "Header converter class",
            "Converter of record headers; the worker's unless given.") },
        { R("header.converter.plugin.version", STRING, NULL, LOW, "Common", 11, SHORT,
            "Header converter version", "Version range of the header converter."),
          .check = check_range_syntax },
        { R("transforms", LIST, "", LOW, "Transforms", 12, LONG, "Transforms",
            "Aliases of the transformations, in the order they are applied."), .check = lc_check_aliases },
        { R("predicates", LIST, "", LOW, "Predicates", 13, LONG, "Predicates",
            "Aliases of the predicates transformations refer to."), .check = lc_check_aliases },
        { R("config.action.reload", STRING, "restart", LOW, "Common", 14, MEDIUM, "Reload Action",
            "What to do when a config provider's value expires: none or restart."),
          .check = lc_check_one_of, .one_of = reload_values },
        { R("errors.retry.timeout", LONG, "0", MEDIUM, "Error Handling", 1, MEDIUM,
            "Retry Timeout for Errors",
            "Milliseconds a failed operation is retried for; 0 never, -1 for ever.") },
        { R("errors.retry.delay.max.ms", LONG, "60000", MEDIUM, "Error Handling", 2, MEDIUM,
            "Maximum Delay Between Retries for Errors", "Longest pause between two retries.") },
        { R("errors.tolerance", STRING, "none", MEDIUM, "Error Handling", 3, SHORT, "Error Tolerance",
            "none: the first bad record fails the task; all: bad records are skipped."),
          .check = lc_check_one_of, .one_of = tolerance_values },
        { R("errors.log.enable", BOOLEAN, "false", MEDIUM, "Error Handling", 4, SHORT, "Log Errors",
            "Log each failed operation.") },
        { R("errors.log.include.messages", BOOLEAN, "false", MEDIUM, "Error Handling", 5, SHORT,
            "Log Error Details", "Log what record failed: topic, partition, offset and the like.") },
};

static const lc_config_row_t source_only[] = {
        { R("topic.creation.groups", LIST, "", LOW, "Topic Creation", 1, LONG, "Topic Creation Groups",
            "Groups of topics this connector creates, with settings topic.creation.GROUP.*."),
          .check = lc_check_aliases },
        { R("exactly.once.support", STRING, "requested", MEDIUM, "Exactly Once Support", 2, SHORT,
            "Exactly once support", "required: refuse a connector that cannot do exactly-once delivery."),
          .check = lc_check_one_of_ci, .one_of = eos_values },
        { R("transaction.boundary", STRING, "poll", MEDIUM, "Exactly Once Support", 3, SHORT,
            "Transaction Boundary", "When transactions end: poll, interval or connector."),
          .check = lc_check_one_of_ci, .one_of = boundary_values },
        { R("transaction.boundary.interval.ms", LONG, NULL, LOW, "Exactly Once Support", 4, SHORT,
            "Transaction boundary interval", "Length of transactions for transaction.boundary=interval."),
          .check = check_null_or_not_negative },
        { R("offsets.storage.topic", STRING, NULL, LOW, "offsets.topic", 1, LONG, "Offsets topic",
            "Topic of this connector's own offsets; the worker's unless given."),
          .check = lc_check_non_empty },
};

static const lc_config_row_t sink_only[] = {
        { R("topics", LIST, "", HIGH, "Common", 4, LONG, "Topics", "Topics to consume, with commas."),
          .check = lc_check_list, .whole = true },
        { R("topics.regex", STRING, "", HIGH, "Common", 4, LONG, "Topics regex",
            "Regular expression of the topics to consume (docs/differences.md lists what is not taken)."),
          .check = check_regex },
        { R("errors.deadletterqueue.topic.name", STRING, "", MEDIUM, "Error Handling", 6, MEDIUM,
            "Dead Letter Queue Topic Name", "Topic that bad records are written to; empty: none.") },
        { R("errors.deadletterqueue.topic.replication.factor", SHORT, "3", MEDIUM, "Error Handling", 7,
            MEDIUM, "Dead Letter Queue Topic Replication Factor",
            "Replication factor when that topic is created.") },
        { R("errors.deadletterqueue.context.headers.enable", BOOLEAN, "false", MEDIUM, "Error Handling", 8,
            MEDIUM, "Enable Error Context Headers", "Describe the error in headers of the written record.") },
};
/* clang-format on */

#define COUNT(a) ((int)(sizeof(a) / sizeof(*(a))))

/* Beyond Connect: looked at, shown and counted only where a config has them, so that the answers about
 * others stay as Connect's. */
/* clang-format off */
static const lc_config_row_t ours[] = {
        { R("errors.deadletterqueue.source.topic.name", STRING, "", MEDIUM, "Error Handling", 9, MEDIUM,
            "Dead Letter Queue Topic Name (source)",
            "Sources: topic that records which could not be transformed or converted are written to.") },
        { R("errors.deadletterqueue.max.failure.ratio", DOUBLE, "0", LOW, "Error Handling", 10, SHORT,
            "Most Failures",
            "Sinks: part of the last records that may fail (0 to 1) before the task pauses and reads them again "
            "instead of writing letters; 0: any."), .check = lc_check_range, .min = 0, .max = 1 },
        { R("errors.deadletterqueue.failure.window.records", INT, "100", LOW, "Error Handling", 11, SHORT,
            "Failure Window", "How many records errors.deadletterqueue.max.failure.ratio looks back."),
          .check = lc_check_at_least, .min = 1 },
        { R("restart.policy", STRING, "none", MEDIUM, "Error Handling", 12, SHORT, "Restart Policy",
            "on-failure: a connector or task that FAILED is started again by itself, 1 s to 5 min later."),
          .check = lc_check_one_of, .one_of = policy_values },
        { R("restart.policy.max.per.hour", INT, "12", LOW, "Error Handling", 13, SHORT, "Restarts an Hour",
            "Most restarts by restart.policy within an hour, of a connector and of each task."),
          .check = lc_check_at_least, .min = 1 },
};
/* clang-format on */

const lc_config_row_t *lc_connector_config_own_rows(int *n)
{
        *n = COUNT(ours);
        return ours;
}

static lc_config_row_t source_rows[COUNT(common) + COUNT(source_only)];
static lc_config_row_t sink_rows[COUNT(common) + COUNT(sink_only)];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make(void)
{
        memcpy(source_rows, common, sizeof(common));
        memcpy(source_rows + COUNT(common), source_only, sizeof(source_only));
        memcpy(sink_rows, common, sizeof(common));
        memcpy(sink_rows + COUNT(common), sink_only, sizeof(sink_only));
}

/* Other types than source and sink get the rows that both share. */
const lc_config_row_t *lc_connector_config_rows(lc_plugin_type_t type, int *n)
{
        pthread_once(&once, make);
        switch (type) {
        case LC_PLUGIN_SOURCE:
                *n = COUNT(source_rows);
                return source_rows;
        case LC_PLUGIN_SINK:
                *n = COUNT(sink_rows);
                return sink_rows;
        default:
                *n = COUNT(common);
                return common;
        }
}

static const lc_config_row_t *row_of(const char *key)
{
        int n;

        for (int t = LC_PLUGIN_SINK; t <= LC_PLUGIN_SOURCE; t++) {
                const lc_config_row_t *rows = lc_connector_config_rows((lc_plugin_type_t)t, &n);

                for (int i = 0; i < n; i++)
                        if (!strcmp(rows[i].name, key))
                                return &rows[i];
        }
        for (int i = 0; i < COUNT(ours); i++)
                if (!strcmp(ours[i].name, key))
                        return &ours[i];
        return NULL;
}

char *lc_connector_config_get(const lc_props_t *config, const char *key)
{
        const lc_config_row_t *row = row_of(key);
        lc_strv_t errors = {NULL, 0};
        char *value;

        if (!row)
                return lc_strdup(lc_props_get(config, key));
        if (lc_config_parse(row, key, config, &value, &errors)) {
                free(value);
                value = NULL;
        }
        lc_strv_free(&errors);
        return value;
}

int64_t lc_connector_config_int(const lc_props_t *config, const char *key)
{
        char *v = lc_connector_config_get(config, key);
        int64_t n = v ? strtoll(v, NULL, 10) : 0;

        free(v);
        return n;
}

bool lc_connector_config_bool(const lc_props_t *config, const char *key)
{
        char *v = lc_connector_config_get(config, key);
        bool yes = v && !strcmp(v, "true");

        free(v);
        return yes;
}

lc_props_t *lc_config_resolve(const lc_worker_config_t *wc, const lc_props_t *raw, lc_err_t *err)
{
        return lc_providers_resolve(lc_worker_config_providers(wc), raw, err);
}
