/*
 * plugin.h - what the worker knows of a plugin: plain data that script/ fills from Lua declarations and
 * convert/ from its C converters. config/ and rest/ read it.
 *
 * Threads:   immutable after lc_plugins_scan(); a reload (issue 5) makes a new set.
 * Ownership: the set owns its plugins.
 * Tests:     spec/unit/plugins_spec.lua
 */
#ifndef LC_CONFIG_PLUGIN_H
#define LC_CONFIG_PLUGIN_H
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
        char *class_name;  /* "org.apache.kafka.connect.file.FileStreamSourceConnector" */
        char *task_class;  /* connectors: what task records carry as task.class */
        char *version;     /* "undefined": REST leaves it out */
        char *location;    /* file or folder; "standard" for shipped ones */
        char *error;       /* why it could not be loaded; then class_name is the file's name */
        lc_strv_t aliases; /* simple name and pruned name, and those declared */
        const lc_config_row_t *rows;
        int nrows;
        /* Checks the rows cannot express (Lua check functions, validate): adds errors to `infos` values
         * of the plugin's own keys. NULL: none. Runs user code: never on herder, REST or group threads. */
        int (*validate)(const lc_plugin_t *plugin, const lc_props_t *config, lc_config_infos_t *infos,
                        lc_err_t *err);
        /* exactlyOnceSupport(config). NULL: answers LC_EOS_NULL. */
        lc_eos_t (*exactly_once)(const lc_plugin_t *plugin, const lc_props_t *config, lc_err_t *err);
        void *impl; /* script/'s */
};
typedef struct lc_plugins {
        lc_plugin_t **v; /* sorted by type, then class name */
        size_t n;
        void *impl; /* script/'s: bytecode, arenas */
} lc_plugins_t;

/* By class name or an alias that names one class only, among types in `mask` (1u << type; 0 = any).
 * NULL: unknown (err LC_FATAL code 404) or ambiguous. Plugins with an error are not found: the error
 * text says why. */
const lc_plugin_t *lc_plugins_find(const lc_plugins_t *set, unsigned mask, const char *name, lc_err_t *err);
/* "PluginDesc{klass=class C, name='C', ...}, PluginDesc{...}" of the types in mask, in the set's order. */
void lc_plugin_list_text(const lc_plugins_t *set, unsigned mask, lc_buf_t *out);
const char *lc_plugin_type_name(lc_plugin_type_t t); /* "source", "header_converter" */

#endif
