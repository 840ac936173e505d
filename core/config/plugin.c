/*
 * plugin.c - finding a plugin by class name or alias, the texts that name plugins, and the sets that replace
 * one another.
 *
 * Threads: any; a set is immutable.  Lock: family->lock, a leaf; family->reload is held while plugins are
 * loaded. Tests: spec/unit/connector_config_spec.lua, reload_spec.lua
 */
#include "config/plugin.h"
#include "base/alloc.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct lc_plugin_family {
        int refs; /* atomic: one for each set */
        pthread_mutex_t lock, reload;
        const lc_plugins_t *current; /* a reference; NULL: settled */
};

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
        lc_buf_t list = LC_BUF_SURE;

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
                lc_buf_t list = LC_BUF_SURE;

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

/* ---- sets that replace one another -------------------------------------------------------------- */

const lc_plugins_t *lc_plugins_ref(const lc_plugins_t *set)
{
        if (set && set->destroy)
                __atomic_add_fetch(&((lc_plugins_t *)set)->refs, 1, __ATOMIC_RELAXED);
        return set;
}

static void family_unref(lc_plugin_family_t *f)
{
        if (!f || __atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL))
                return;
        pthread_mutex_destroy(&f->lock);
        pthread_mutex_destroy(&f->reload);
        free(f);
}

void lc_plugins_unref(const lc_plugins_t *cset)
{
        lc_plugins_t *set = (lc_plugins_t *)cset;
        lc_plugin_family_t *family;

        if (!set || !set->destroy || __atomic_sub_fetch(&set->refs, 1, __ATOMIC_ACQ_REL))
                return;
        family = set->family;
        set->destroy(set);
        family_unref(family);
}

const lc_plugins_t *lc_plugins_current(const lc_plugins_t *any)
{
        const lc_plugins_t *set;

        if (!any || !any->family)
                return lc_plugins_ref(any);
        pthread_mutex_lock(&any->family->lock);
        set = lc_plugins_ref(any->family->current ? any->family->current : any);
        pthread_mutex_unlock(&any->family->lock);
        return set;
}

void lc_plugins_begin(lc_plugins_t *first)
{
        lc_plugin_family_t *f = lc_calloc(1, sizeof(*f));

        f->refs = 1;
        pthread_mutex_init(&f->lock, NULL);
        pthread_mutex_init(&f->reload, NULL);
        first->family = f;
        f->current = lc_plugins_ref(first);
}

static void set_current(lc_plugin_family_t *f, const lc_plugins_t *next)
{
        const lc_plugins_t *old;

        pthread_mutex_lock(&f->lock);
        old = f->current;
        f->current = next;
        pthread_mutex_unlock(&f->lock);
        lc_plugins_unref(old);
}

void lc_plugins_replace(const lc_plugins_t *any, lc_plugins_t *next)
{
        lc_plugin_family_t *f = any->family;

        __atomic_add_fetch(&f->refs, 1, __ATOMIC_RELAXED);
        next->family = f;
        set_current(f, next);
}

void lc_plugins_settle(lc_plugins_t *any)
{
        if (any && any->family)
                set_current(any->family, NULL);
}

void lc_plugins_reload_lock(const lc_plugins_t *any)
{
        pthread_mutex_lock(&any->family->reload);
}

void lc_plugins_reload_unlock(const lc_plugins_t *any)
{
        pthread_mutex_unlock(&any->family->reload);
}

struct uses {
        const lc_plugins_t *was, *now;
        bool differ, gone;
};

static void use(struct uses *u, unsigned mask, const char *name)
{
        const lc_plugin_t *a, *b;

        if (!name)
                return;
        a = lc_plugins_find(u->was, mask, name, NULL);
        b = lc_plugins_find(u->now, mask, name, NULL);
        if (!b)
                u->gone = true;
        else if (!a || a->loaded != b->loaded)
                u->differ = true;
}

/* The types of the aliases that the list `key` names. */
static void use_listed(struct uses *u, const lc_props_t *config, const char *key, lc_plugin_type_t type)
{
        const char *list = lc_props_get(config, key);
        lc_strv_t aliases = {NULL, 0};

        lc_strv_split(&aliases, list ? list : "");
        for (size_t i = 0; i < aliases.n; i++) {
                char *name = lc_asprintf("%s.%s.type", key, aliases.v[i]);
                use(u, 1u << type, lc_props_get(config, name));
                free(name);
        }
        lc_strv_free(&aliases);
}

bool lc_plugins_differ(const lc_plugins_t *was, const lc_plugins_t *now, const lc_props_t *config,
                       const lc_props_t *worker, bool task)
{
        static const struct {
                const char *key;
                lc_plugin_type_t type;
        } converters[] = {{"key.converter", LC_PLUGIN_CONVERTER},
                          {"value.converter", LC_PLUGIN_CONVERTER},
                          {"header.converter", LC_PLUGIN_HEADER_CONVERTER}};
        struct uses u = {.was = was, .now = now};

        if (was == now)
                return false;
        use(&u, CONNECTORS, lc_props_get(config, "connector.class"));
        if (task) {
                use_listed(&u, config, "transforms", LC_PLUGIN_TRANSFORMATION);
                use_listed(&u, config, "predicates", LC_PLUGIN_PREDICATE);
                for (size_t i = 0; i < sizeof(converters) / sizeof(*converters); i++) {
                        const char *name = lc_props_get(config, converters[i].key);
                        if (!name && worker)
                                name = lc_props_get(worker, converters[i].key);
                        use(&u, 1u << converters[i].type, name);
                }
        }
        return u.differ && !u.gone;
}
