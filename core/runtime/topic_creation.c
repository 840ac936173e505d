/* topic_creation.c - see topic_creation.h. The task's thread only. */
#include "runtime/topic_creation.h"
#include "base/alloc.h"
#include "base/log.h"
#include "config/client_config.h"
#include "convert/java_regex.h"
#include "kafka/admin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_MS = 30000 };

#define PREFIX "topic.creation."

typedef struct patterns {
        lc_java_regex_t **v;
        size_t n;
} patterns_t;

typedef struct group {
        char *name;
        patterns_t include, exclude;
        int partitions, replication;
        lc_props_t *settings;
} group_t;

struct lc_topic_creation {
        lc_admin_t *admin;
        lc_props_t *admin_conf;
        group_t *groups; /* in order of the list, default last */
        size_t n;
        lc_strv_t known; /* topics that exist */
};

static int compile(patterns_t *p, const char *list, lc_err_t *err)
{
        lc_strv_t items = {0};
        int rc = 0;

        lc_strv_split(&items, list ? list : "");
        p->v = lc_calloc(items.n + 1, sizeof(*p->v));
        for (size_t i = 0; i < items.n && !rc; i++) {
                lc_err_t why = {0};

                p->v[p->n] = lc_java_regex_compile(items.v[i], &why);
                if (!p->v[p->n])
                        rc = lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                                            "Syntax error in regular expression: %s", why.msg);
                else
                        p->n++;
        }
        lc_strv_free(&items);
        return rc;
}

static bool matches(const patterns_t *p, const char *topic)
{
        for (size_t i = 0; i < p->n; i++)
                if (lc_java_regex_matches(p->v[i], topic, strlen(topic), NULL) > 0)
                        return true;
        return false;
}

static int number(const lc_props_t *p, const char *group, const char *key, const group_t *def, int other,
                  int *out, lc_err_t *err)
{
        char *name = lc_asprintf("%s.%s", group, key);
        const char *v = lc_props_get(p, name);
        char *end;
        long n;
        int rc = 0;

        if (!v && def) {
                *out = other;
        } else if (!v) {
                rc = lc_err_set_cls(
                        err, LC_FATAL, 0, LC_CLS_CONFIG,
                        "Missing required configuration \"" PREFIX "%s\" which has no default value.", name);
        } else {
                n = strtol(v, &end, 10);
                if (end == v || *end)
                        rc = lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                                            "Invalid value %s for configuration " PREFIX
                                            "%s: Not a number of type %s",
                                            v, name, !strcmp(key, "partitions") ? "INT" : "SHORT");
                else if (n != -1 && (n < 1 || n > INT32_MAX))
                        rc = lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                                            "Invalid value %s for configuration " PREFIX
                                            "%s: Value must be at least 1, or -1 to use the broker's default",
                                            v, name);
                *out = (int)n;
        }
        free(name);
        return rc;
}

static int parse_group(group_t *g, const lc_props_t *all, const char *name, const group_t *def, lc_err_t *err)
{
        static const char *const own[] = {"include", "exclude", "partitions", "replication.factor"};
        char *prefix = lc_asprintf("%s.", name);
        const char *include, *exclude;
        int rc = -1;

        g->name = lc_strdup(name);
        g->settings = lc_props_prefixed(all, prefix);
        include = lc_props_get(g->settings, "include");
        exclude = lc_props_get(g->settings, "exclude");
        if (number(all, name, "replication.factor", def, def ? def->replication : 0, &g->replication, err) ||
            number(all, name, "partitions", def, def ? def->partitions : 0, &g->partitions, err) ||
            (def && compile(&g->include, include, err)) || (def && compile(&g->exclude, exclude, err)))
                goto done;
        for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
                lc_props_del(g->settings, own[i]);
        rc = 0;
done:
        free(prefix);
        return rc;
}

static int parse(lc_topic_creation_t *tc, const lc_props_t *all, lc_err_t *err)
{
        lc_strv_t names = {0};
        const char *list = lc_props_get(all, "groups");
        group_t def;
        int rc = -1;

        memset(&def, 0, sizeof(def));
        lc_strv_split(&names, list ? list : "");
        tc->groups = lc_calloc(names.n + 1, sizeof(*tc->groups));
        if (parse_group(&def, all, "default", NULL, err)) {
                tc->groups[tc->n++] = def;
                goto done;
        }
        for (size_t i = 0; i < names.n; i++) {
                if (!strcmp(names.v[i], "default")) {
                        lc_log(LC_WARN, "TASK",
                               "'default' topic creation group always exists and does not need to be listed "
                               "explicitly");
                        continue;
                }
                if (parse_group(&tc->groups[tc->n++], all, names.v[i], &def, err)) {
                        lc_props_free(def.settings);
                        free(def.name);
                        goto done;
                }
        }
        tc->groups[tc->n++] = def;
        rc = 0;
done:
        lc_strv_free(&names);
        return rc;
}

int lc_topic_creation_new(const lc_worker_config_t *wc, const char *connector, int task,
                          const lc_props_t *config, lc_topic_creation_t **out, lc_err_t *err)
{
        lc_props_t *all = lc_props_prefixed(config, PREFIX);
        lc_topic_creation_t *tc = NULL;
        char *id = NULL;
        int rc = -1;

        *out = NULL;
        if (!lc_props_count(all) || !lc_worker_config_bool(wc, "topic.creation.enable")) {
                rc = 0;
                goto done;
        }
        tc = lc_calloc(1, sizeof(*tc));
        if (parse(tc, all, err))
                goto done;
        id = lc_asprintf("connector-adminclient-%s-%d", connector, task);
        tc->admin_conf = lc_client_config(wc, LC_CLIENT_ADMIN, config, id, err);
        if (!tc->admin_conf)
                goto done;
        *out = tc;
        tc = NULL;
        rc = 0;
done:
        free(id);
        lc_topic_creation_free(tc);
        lc_props_free(all);
        return rc;
}

static void free_patterns(patterns_t *p)
{
        for (size_t i = 0; i < p->n; i++)
                lc_java_regex_free(p->v[i]);
        free(p->v);
}

void lc_topic_creation_free(lc_topic_creation_t *tc)
{
        if (!tc)
                return;
        for (size_t i = 0; i < tc->n; i++) {
                group_t *g = &tc->groups[i];
                free_patterns(&g->include);
                free_patterns(&g->exclude);
                lc_props_free(g->settings);
                free(g->name);
        }
        free(tc->groups);
        lc_strv_free(&tc->known);
        lc_props_free(tc->admin_conf);
        if (tc->admin)
                lc_admin_free(tc->admin);
        free(tc);
}

void lc_topic_creation_rest(lc_topic_creation_t *tc)
{
        if (!tc || !tc->admin)
                return;
        lc_admin_free(tc->admin);
        tc->admin = NULL;
}

static const group_t *group_of(const lc_topic_creation_t *tc, const char *topic)
{
        for (size_t i = 0; i + 1 < tc->n; i++) {
                const group_t *g = &tc->groups[i];
                if (matches(&g->include, topic) && !matches(&g->exclude, topic))
                        return g;
        }
        return &tc->groups[tc->n - 1];
}

const char *lc_topic_creation_group(const lc_topic_creation_t *tc, const char *topic)
{
        return group_of(tc, topic)->name;
}

/* "(name=T, numPartitions=1, replicationFactor=1, replicasAssignments=null, configs={a=b})" */
static void describe(const group_t *g, const char *topic, lc_buf_t *out)
{
        lc_buf_printf(out, "(name=%s, numPartitions=", topic);
        if (g->partitions < 0)
                lc_buf_adds(out, "default");
        else
                lc_buf_printf(out, "%d", g->partitions);
        lc_buf_adds(out, ", replicationFactor=");
        if (g->replication < 0)
                lc_buf_adds(out, "default");
        else
                lc_buf_printf(out, "%d", g->replication);
        lc_buf_adds(out, ", replicasAssignments=null, configs={");
        for (size_t i = 0; i < lc_props_count(g->settings); i++) {
                const char *v = lc_props_value(g->settings, i);
                lc_buf_printf(out, "%s%s=%s", i ? ", " : "", lc_props_key(g->settings, i), v ? v : "null");
        }
        lc_buf_adds(out, "})");
}

int lc_topic_creation_ensure(lc_topic_creation_t *tc, const char *topic, lc_err_t *err)
{
        const group_t *g;
        lc_buf_t text = LC_BUF_SURE;
        int n;

        if (lc_strv_has(&tc->known, topic))
                return 0;
        if (!tc->admin && !(tc->admin = lc_admin_new(tc->admin_conf, err)))
                return -1;
        n = lc_admin_partitions(tc->admin, topic, ASK_MS, err);
        if (n < 0)
                return -1;
        if (n > 0) {
                lc_log(LC_DEBUG, "TASK", "Topic '%s' already exists.", topic);
                lc_strv_add(&tc->known, topic);
                return 0;
        }
        g = group_of(tc, topic);
        describe(g, topic, &text);
        lc_log(LC_INFO, "TASK", "Creating topic '%s' with the settings of group '%s': %s", topic, g->name,
               text.p);
        n = lc_admin_create_topic(tc->admin, topic, g->partitions, g->replication, g->settings, ASK_MS, err);
        if (n >= 0)
                lc_strv_add(&tc->known, topic);
        else if (err->kind != LC_RETRIABLE)
                lc_err_wrap(
                        err, LC_CLS_CONNECT,
                        "Task failed to create new topic %s. Ensure that the task is authorized to create "
                        "topics or that the topic exists and restart the task",
                        text.p);
        lc_buf_free(&text);
        return n < 0 ? -1 : 0;
}
