/*
 * plugins.c - sets of plugins: the first one, and what a reload makes the next one of (reload.c).
 *
 * Threads:   one; a set is immutable afterwards (its bytecode table has its own lock).
 * Ownership: the set owns everything; rows of C converters are static.
 * Tests:     spec/unit/plugins_spec.lua
 */
#include "script/plugins.h"
#include "base/alloc.h"
#include "base/log.h"
#include "config/properties.h"
#include "convert/converter.h"
#include "script/declaration.h"
#include <stdlib.h>
#include <string.h>

static const char VERSION[] = "4.3.1"; /* of standard plugins: Kafka Connect's, which they stand for */

void lc_set_add(lc_plugins_t *set, lc_plugin_t *p)
{
        set->v = lc_realloc(set->v, (set->n + 1) * sizeof(*set->v));
        set->v[set->n++] = p;
}

void lc_set_add_broken(lc_plugins_t *set, const lc_entry_t *e, const char *why)
{
        lc_plugin_t *p = lc_calloc(1, sizeof(*p));

        p->type = e->guess;
        p->class_name = lc_strdup(e->root);
        p->version = lc_strdup("undefined");
        p->location = lc_strdup(e->standard ? "standard" : e->path);
        p->path = lc_strdup(e->path);
        p->error = lc_strdup(why && *why ? why : "cannot be loaded");
        lc_log(LC_ERROR, "PLUGIN", "Plugin %s cannot be loaded: %s", e->path, p->error);
        lc_set_add(set, p);
}

int lc_set_load(lc_plugin_set_t *impl, const lc_entry_t *e, lc_declarations_t *found, lc_err_t *err)
{
        *found = (lc_declarations_t){.set = impl,
                                     .path = e->path,
                                     .folder = e->folder,
                                     .root = e->root,
                                     .location = e->standard ? "standard"
                                                 : e->folder ? e->folder
                                                             : e->path,
                                     .version = e->standard ? VERSION : NULL};
        return lc_declarations_load(found, err);
}

void lc_set_take(lc_plugins_t *set, lc_declarations_t *found)
{
        for (size_t i = 0; i < found->n; i++) {
                lc_plugin_t *p = found->v[i];
                lc_log(LC_DEBUG, "PLUGIN", "Added plugin '%s' (%s, version %s) from %s", p->class_name,
                       lc_plugin_type_name(p->type), p->version, p->path);
                ((lc_plugin_impl_t *)p->impl)->set = set->impl;
                lc_set_add(set, p);
                found->v[i] = NULL;
        }
}

static void add_converter(lc_plugins_t *set, const lc_converter_class_t *cls, lc_plugin_type_t type)
{
        lc_plugin_t *p = lc_calloc(1, sizeof(*p));

        p->type = type;
        p->class_name = lc_strdup(cls->class_name);
        p->version = lc_strdup(VERSION);
        p->location = lc_strdup("standard");
        p->rows = cls->rows;
        p->nrows = cls->nrows;
        lc_plugin_add_aliases(p);
        /* a class that is both has one set of aliases */
        if (type == LC_PLUGIN_HEADER_CONVERTER && cls->converter) {
                lc_plugin_t as = {.type = LC_PLUGIN_CONVERTER, .class_name = p->class_name};
                lc_plugin_add_aliases(&as);
                for (size_t i = 0; i < as.aliases.n; i++)
                        if (!lc_strv_has(&p->aliases, as.aliases.v[i]))
                                lc_strv_add(&p->aliases, as.aliases.v[i]);
                lc_strv_free(&as.aliases);
        }
        lc_set_add(set, p);
}

static int by_type_and_class(const void *a, const void *b)
{
        const lc_plugin_t *x = *(lc_plugin_t *const *)a, *y = *(lc_plugin_t *const *)b;

        return x->type != y->type ? (int)x->type - (int)y->type : strcmp(x->class_name, y->class_name);
}

void lc_set_finish(lc_plugins_t *set)
{
        for (const lc_converter_class_t *const *c = lc_converter_classes; *c; c++) {
                if ((*c)->converter)
                        add_converter(set, *c, LC_PLUGIN_CONVERTER);
                if ((*c)->header_converter)
                        add_converter(set, *c, LC_PLUGIN_HEADER_CONVERTER);
        }
        if (set->n)
                qsort(set->v, set->n, sizeof(*set->v), by_type_and_class);
}

static void destroy(lc_plugins_t *set)
{
        lc_plugin_set_t *impl = set->impl;

        for (size_t i = 0; i < set->n; i++)
                lc_plugin_free(set->v[i]);
        free(set->v);
        lc_code_free(impl->code);
        lc_entries_free(&impl->entries);
        free(impl->home);
        free(impl);
        free(set);
}

lc_plugins_t *lc_set_new(const char *home, lc_code_t *code)
{
        lc_plugins_t *set = lc_calloc(1, sizeof(*set));
        lc_plugin_set_t *impl = lc_calloc(1, sizeof(*impl));

        set->refs = 1;
        set->destroy = destroy;
        set->impl = impl;
        impl->home = lc_strdup(home);
        impl->code = code;
        return set;
}

/* May the file declare one of these classes? Its name stands in it as a text. */
static bool may_declare(const char *path, const lc_strv_t *names)
{
        size_t len;
        lc_err_t ignored = {0};
        char *text = lc_file_read(path, &len, &ignored);
        bool yes = !text;

        for (size_t i = 0; i < names->n && !yes; i++) {
                const char *dot = strrchr(names->v[i], '.'), *name = dot ? dot + 1 : names->v[i];
                size_t n = strcspn(name, "$");
                yes = n && memmem(text, len, name, n);
        }
        free(text);
        return yes;
}

lc_plugins_t *lc_plugins_scan(const char *home, const lc_strv_t *plugin_path, lc_err_t *err)
{
        return lc_plugins_scan_for(home, plugin_path, NULL, err);
}

lc_plugins_t *lc_plugins_scan_for(const char *home, const lc_strv_t *plugin_path, const lc_strv_t *names,
                                  lc_err_t *err)
{
        lc_plugins_t *set = lc_set_new(home, lc_code_new());
        lc_plugin_set_t *impl = set->impl;

        /* our own Lua must load; afterwards only plugins can be broken */
        impl->scan = lc_state_new(impl->code, impl->home, NULL, "scan", NULL, true, err);
        if (!impl->scan) {
                lc_plugins_unref(set);
                return NULL;
        }
        lc_entries_find(&impl->entries, home, plugin_path, true);
        for (size_t i = 0; i < impl->entries.n; i++) {
                lc_entry_t *e = &impl->entries.v[i];
                lc_declarations_t found;
                lc_err_t why = {0};

                if (names && e->standard && (e->guess == LC_PLUGIN_SOURCE || !may_declare(e->path, names)))
                        continue;
                e->print = lc_entry_print(e);
                if (lc_set_load(impl, e, &found, &why) < 0)
                        lc_set_add_broken(set, e, why.msg);
                else
                        lc_set_take(set, &found);
                lc_declarations_free(&found);
        }
        lc_state_free(impl->scan);
        impl->scan = NULL;
        lc_set_finish(set);
        lc_plugins_begin(set);
        return set;
}

void lc_plugins_free(lc_plugins_t *first)
{
        lc_plugins_settle(first);
        lc_plugins_unref(first);
}
