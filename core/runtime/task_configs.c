/* task_configs.c - see task_configs.h. Any thread. */
#include "runtime/task_configs.h"
#include "base/alloc.h"
#include "base/log.h"
#include "config/connector_config.h"
#include "data/java_hash.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CLS_TOO_MANY "org.apache.kafka.connect.runtime.TooManyTasksException"
#define TOO_MANY                                                                                             \
        "The connector %s has generated %d tasks, which is greater than %" PRId64                            \
        ", the maximum number of tasks it is configured to create. This behaviour should be considered a "   \
        "bug and is disallowed. If necessary, it can be permitted by reconfiguring the connector with "      \
        "'tasks.max.enforce' set to false; however, this option will be removed in a future release of "     \
        "Kafka Connect."

int lc_tasks_max_check(const char *connector, const lc_props_t *config, int ntasks, lc_err_t *err)
{
        int64_t max = lc_connector_config_int(config, "tasks.max");

        if (ntasks <= max)
                return 0;
        if (lc_connector_config_bool(config, "tasks.max.enforce"))
                return lc_err_set_cls(err, LC_FATAL, 0, CLS_TOO_MANY, TOO_MANY, connector, ntasks, max);
        lc_log(LC_WARN, "WORKER",
               "The connector %s has generated %d tasks, which is greater than %" PRId64
               ", the maximum number of tasks it is configured to create. This behaviour should be "
               "considered a "
               "bug and will be disallowed in future releases of Kafka Connect.",
               connector, ntasks, max);
        return 0;
}

/* The entries in the order of Java's HashMap, which is how the Java worker writes them. */
static lc_props_t *java_order(const lc_props_t *p)
{
        uint32_t n = (uint32_t)lc_props_count(p), *order = lc_malloc((n + 1) * sizeof(*order));
        lc_value_t *items = lc_calloc(2 * (size_t)n + 1, sizeof(*items));
        lc_props_t *out;

        for (uint32_t i = 0; i < n; i++) {
                const char *k = lc_props_key(p, i);
                items[2 * i] = lc_value_string(k, strlen(k));
        }
        if (lc_java_hash_order(items, n, order)) {
                out = lc_props_copy(p);
        } else {
                out = lc_props_new();
                for (uint32_t i = 0; i < n; i++)
                        lc_props_set(out, lc_props_key(p, order[i]), lc_props_value(p, order[i]));
        }
        free(items);
        free(order);
        return out;
}

static bool has_variable(const char *raw)
{
        const char *open = raw ? strstr(raw, "${") : NULL;
        const char *colon = open ? strchr(open, ':') : NULL;

        return colon && strchr(colon, '}');
}

lc_props_t *lc_task_config_finish(const lc_plugin_t *plugin, const lc_props_t *raw,
                                  const lc_props_t *resolved, const lc_props_t *made)
{
        static const char *const copied[] = {"topics", "topics.regex"};
        lc_props_t *p = lc_props_copy(made), *out;

        lc_props_set(p, "task.class", plugin->task_class);
        for (int i = 0; i < 2; i++)
                if (lc_props_has(resolved, copied[i]))
                        lc_props_set(p, copied[i], lc_props_get(resolved, copied[i]));
        for (size_t i = 0; i < lc_props_count(raw); i++) {
                const char *k = lc_props_key(raw, i);
                if (lc_props_has(p, k) && has_variable(lc_props_value(raw, i)))
                        lc_props_set(p, k, lc_props_value(raw, i));
        }
        out = java_order(p);
        lc_props_free(p);
        return out;
}
