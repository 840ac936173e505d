/* chain.c - see chain.h. The task's thread only. */
#include "runtime/chain.h"
#include "base/alloc.h"
#include <stdlib.h>

/* A stage that is configured must not be left out silently: until stages are run, the task fails. */
static int add_stage(const lc_services_t *sv, const lc_props_t *config, const char *alias, lc_err_t *err)
{
        char *key = lc_asprintf("transforms.%s.type", alias);
        const char *type = lc_props_get(config, key);
        const lc_plugin_t *plugin = NULL;

        if (!type)
                lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                               "Missing required configuration \"%s\" which has no default value.", key);
        else
                plugin = lc_plugins_find(sv->plugins, 1u << LC_PLUGIN_TRANSFORMATION, type, err);
        if (plugin)
                lc_err_set(
                        err, LC_FATAL, 0,
                        "This version of the worker does not run transformations yet: remove '%s' (%s) from "
                        "'transforms' of the connector",
                        alias, plugin->class_name);
        else if (type && !err->kind)
                lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                               "Invalid value %s for configuration %s: Class %s could not be found.", type,
                               key, type);
        free(key);
        return -1;
}

lc_chain_t *lc_chain_new(const lc_services_t *sv, const lc_props_t *config, lc_err_t *err)
{
        lc_chain_t *c = lc_calloc(1, sizeof(*c));
        const char *list = lc_props_get(config, "transforms");
        lc_strv_t aliases = {0};

        lc_strv_split(&aliases, list ? list : "");
        for (size_t i = 0; i < aliases.n; i++)
                if (add_stage(sv, config, aliases.v[i], err)) {
                        lc_chain_free(c);
                        c = NULL;
                        break;
                }
        lc_strv_free(&aliases);
        return c;
}

void lc_chain_free(lc_chain_t *c)
{
        if (!c)
                return;
        for (size_t i = 0; i < c->n; i++) {
                c->stages[i].ops->destroy(c->stages[i].impl);
                free(c->stages[i].class_name);
        }
        free(c->stages);
        free(c);
}

typedef struct step {
        lc_chain_t *chain;
        lc_chain_stage_t *stage;
} step_t;

static int apply_stage(void *arg, lc_record_t *r, lc_err_t *err)
{
        step_t *s = arg;

        s->chain->drop = false;
        return s->stage->ops->apply(s->stage->impl, r, &s->chain->drop, err);
}

int lc_chain_apply(lc_chain_t *c, lc_operator_t *op, lc_record_t *r, lc_err_t *err)
{
        for (size_t i = 0; i < c->n; i++) {
                step_t s = {.chain = c, .stage = &c->stages[i]};
                int rc = 0;

                if (apply_stage(&s, r, err))
                        rc = lc_operator_failed(op, LC_STAGE_TRANSFORMATION, s.stage->class_name, r,
                                                apply_stage, &s, err);
                if (rc)
                        return rc;
                if (c->drop)
                        return 1;
        }
        return 0;
}
