/*
 * plugin.h - what the worker knows of a plugin: plain data that script/ fills from Lua declarations and
 * convert/ from its C converters. config/ and rest/ read it.
 *
 * A set never changes. A reload makes the next one: lc_plugins_current() of any set of the family is the
 * newest.
 *
 * Threads:   any. Who keeps a pointer into a set beyond one call holds a reference to the set.
 * Lock:      the family's, a leaf.
 * Ownership: the set owns its plugins.
 * Tests:     spec/unit/plugins_spec.lua, reload_spec.lua
 */
#ifndef LC_CONFIG_PLUGIN_H
#define LC_CONFIG_PLUGIN_H
#include <stdint.h>
#include "config/def.h"

typedef enum { /* in the order of GET /connector-plugins */
               LC_PLUGIN_SINK,
               LC_PLUGIN_SOURCE,
               LC_PLUGIN_TRANSFORMATION,
               LC_PLUGIN_PREDICATE,
               LC_PLUGIN_CONVERTER,
               LC_PLUGIN_HEADER_CONVERTER,
               LC_PLUGIN_TYPES
} lc_plugin_type_t;
typedef enum { LC_EOS_NULL, LC_EOS_SUPPORTED, LC_EOS_UNSUPPORTED } lc_eos_t;

typedef struct lc_plugin lc_plugin_t;
struct lc_plugin {
        lc_plugin_type_t type;
        char *class_name;   /* "org.apache.kafka.connect.file.FileStreamSourceConnector" */
        char *task_class;   /* connectors: what task records carry as task.class */
        char *version;      /* "undefined": REST leaves it out */
        char *location;     /* file or folder; "standard" for shipped ones */
        char *path;         /* its Lua file; NULL: a C converter */
        uint64_t loaded;    /* differs from set to set only when its file was loaded anew */
        char *error;        /* why it could not be loaded; then class_name is the file's name */
        char *reload_error; /* why the file as it is now was not taken: this is the code before it */
        lc_strv_t aliases;  /* simple name and pruned name, and those declared */
        const lc_config_row_t *rows;
        int nrows;
        /* Checks the rows cannot express (Lua check functions, validate): adds errors to `infos` values
         * of the plugin's own keys. NULL: none. Runs user code: never on herder, REST or group threads. */
        int (*validate)(const lc_plugin_t *plugin, const lc_props_t *config, lc_config_infos_t *infos,
                        lc_err_t *err);
        /* exactlyOnceSupport(config). NULL: answers LC_EOS_NULL. */
        lc_eos_t (*exactly_once)(const lc_plugin_t *plugin, const lc_props_t *config, lc_err_t *err);
        /* canDefineTransactionBoundaries(config). NULL: Java's default, UNSUPPORTED. */
        lc_eos_t (*boundaries)(const lc_plugin_t *plugin, const lc_props_t *config, lc_err_t *err);
        void *impl; /* script/'s */
};
typedef struct lc_plugin_family lc_plugin_family_t;
typedef struct lc_plugins lc_plugins_t;
struct lc_plugins {
        lc_plugin_t **v; /* sorted by type, then class name */
        size_t n;
        void *impl;                         /* script/'s: bytecode, arenas */
        int refs;                           /* atomic */
        lc_plugin_family_t *family;         /* NULL: it has no successors */
        void (*destroy)(lc_plugins_t *set); /* NULL: not counted */
};

const lc_plugins_t *lc_plugins_ref(const lc_plugins_t *set);
void lc_plugins_unref(const lc_plugins_t *set); /* NULL is fine */
/* A reference to the newest set of this one's family. */
const lc_plugins_t *lc_plugins_current(const lc_plugins_t *any);
/* For who makes sets: the first of a family; `next` (a reference, taken) becomes the current one; the end of
 * a family, after which each set is its own current one. */
void lc_plugins_begin(lc_plugins_t *first);
void lc_plugins_replace(const lc_plugins_t *any, lc_plugins_t *next);
void lc_plugins_settle(lc_plugins_t *any);
/* Reloads of a family come one after the other. */
void lc_plugins_reload_lock(const lc_plugins_t *any);
void lc_plugins_reload_unlock(const lc_plugins_t *any);

/* Were plugins that this resolved config names loaded anew from `was` to `now`? Connectors: of the connector
 * itself only, else of its tasks (transforms, predicates, converters, those of the worker's own config where
 * it names none). No when one of them is gone: the code that runs is all there is of it. */
bool lc_plugins_differ(const lc_plugins_t *was, const lc_plugins_t *now, const lc_props_t *config,
                       const lc_props_t *worker, bool task);

/* By class name or an alias that names one class only, among types in `mask` (1u << type; 0 = any).
 * NULL: unknown (err LC_FATAL code 404) or ambiguous. Plugins with an error are not found: the error
 * text says why. */
const lc_plugin_t *lc_plugins_find(const lc_plugins_t *set, unsigned mask, const char *name, lc_err_t *err);
/* "PluginDesc{klass=class C, name='C', ...}, PluginDesc{...}" of the types in mask, in the set's order. */
void lc_plugin_list_text(const lc_plugins_t *set, unsigned mask, lc_buf_t *out);
const char *lc_plugin_type_name(lc_plugin_type_t t); /* "source", "header_converter" */

#endif
