/*
 * plugin.c - finding a plugin by class name or alias, and the texts that name plugins.
 *
 * Threads: any; the set is immutable.  Tests: spec/unit/connector_config_spec.lua
 */
#include "config/plugin.h"
#include "base/alloc.h"

#define CONNECTORS (1u << LC_PLUGIN_SINK | 1u << LC_PLUGIN_SOURCE)

const char *lc_plugin_type_name(lc_plugin_type_t t)
{
        static const char *const names[] = {"sink",      "source",    "transformation",
                                            "predicate", "converter", "header_converter"};
        return t < LC_PLUGIN_TYPES ? names[t] : "unknown";
}

static bool in(const lc_plugin_t *p, unsigned mask)
{
        return !mask || mask & 1u << p->type;
}

void lc_plugin_list_text(const lc_plugins_t *set, unsigned mask, lc_buf_t *out)
{
        bool first = true;

        for (size_t i = 0; set && i < set->n; i++) {
                const lc_plugin_t *p = set->v[i];
                const char *c = p->class_name, *v = p->version ? p->version : "undefined";
                const char *t = lc_plugin_type_name(p->type);

                if (!in(p, mask) || p->error)
                        continue;
                lc_buf_printf(out,
                              "%sPluginDesc{klass=class %s, name='%s', version='%s', encodedVersion=%s, "
                              "type=%s, typeName='%s', location='%s'}",
                              first ? "" : ", ", c, c, v, v, t, t,
                              !p->location || !strcmp(p->location, "standard") ? "classpath" : p->location);
                first = false;
        }
}

static void unknown(const lc_plugins_t *set, unsigned mask, const char *name, lc_err_t *err)
{
        lc_buf_t list = LC_BUF_INIT;

        if (mask && !(mask & ~CONNECTORS)) {
                lc_plugin_list_text(set, mask, &list);
                lc_err_set(err, LC_FATAL, 404,
                           "Failed to find any class that implements Connector and which name matches %s, "
                           "available connectors are: %s",
                           name, list.p ? list.p : "");
        } else {
                lc_err_set(err, LC_FATAL, 404, "Class %s could not be found.", name);
        }
        lc_buf_free(&list);
}

const lc_plugin_t *lc_plugins_find(const lc_plugins_t *set, unsigned mask, const char *name, lc_err_t *err)
{
        const lc_plugin_t *found = NULL, *broken = NULL;
        lc_strv_t classes = {NULL, 0};

        for (size_t i = 0; set && i < set->n; i++) {
                lc_plugin_t *p = set->v[i];

                if (!in(p, mask) || strcmp(p->class_name, name))
                        continue;
                if (!p->error)
                        return p;
                broken = p;
        }
        for (size_t i = 0; set && i < set->n; i++) {
                lc_plugin_t *p = set->v[i];

                if (!in(p, mask) || !lc_strv_has(&p->aliases, name))
                        continue;
                if (p->error) {
                        broken = p;
                } else if (!lc_strv_has(&classes, p->class_name)) {
                        lc_strv_add(&classes, p->class_name);
                        found = found ? found : p;
                }
        }
        if (classes.n > 1) {
                lc_buf_t list = LC_BUF_INIT;

                for (size_t i = 0; i < classes.n; i++)
                        lc_buf_printf(&list, "%s%s", i ? ", " : "", classes.v[i]);
                lc_err_set(err, LC_FATAL, 404,
                           "More than one connector matches alias %s. Please use full package and class name "
                           "instead. Classes found: %s",
                           name, list.p);
                lc_buf_free(&list);
                found = NULL;
        } else if (!found && broken) {
                lc_err_set(err, LC_FATAL, 404, "Plugin %s (%s) could not be loaded: %s", broken->class_name,
                           broken->location ? broken->location : "unknown location", broken->error);
        } else if (!found) {
                unknown(set, mask, name, err);
        }
        lc_strv_free(&classes);
        return found;
}
