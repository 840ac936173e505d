/*
 * declaration.h - what one plugin file declares, read from Lua into lc_plugin_t. Internal to script/.
 *
 * Threads:   the caller's.   Tests: spec/unit/plugins_spec.lua
 */
#ifndef LC_SCRIPT_DECLARATION_H
#define LC_SCRIPT_DECLARATION_H
#include "script/state.h"

typedef struct lc_declarations {
        lc_plugin_set_t *set;
        const char *path, *folder, *root, *location; /* folder NULL: a single file */
        const char *version;                         /* NULL: what the declaration says */
        lc_plugin_t **v;                             /* out */
        size_t n;
        uint64_t loaded;   /* of the plugins */
        lc_strv_t modules; /* scratch */
} lc_declarations_t;

/* Run the file in a state of its own, within the load phase's time, and fill v. */
int lc_declarations_load(lc_declarations_t *d, lc_err_t *err);
void lc_declarations_free(lc_declarations_t *d); /* plugins that were not taken (set to NULL) too */
void lc_plugin_free(lc_plugin_t *p);             /* NULL is fine */
lc_plugin_t *lc_plugin_copy(const lc_plugin_t *p, lc_plugin_set_t *set); /* for another set */
void lc_plugin_add_aliases(lc_plugin_t *p); /* Java's: simple name, and without its type's ending */

/* Of lc_plugin_t. */
int lc_declaration_validate(const lc_plugin_t *plugin, const lc_props_t *config, lc_config_infos_t *infos,
                            lc_err_t *err);
lc_eos_t lc_declaration_exactly_once(const lc_plugin_t *plugin, const lc_props_t *config, lc_err_t *err);
lc_eos_t lc_declaration_boundaries(const lc_plugin_t *plugin, const lc_props_t *config, lc_err_t *err);

#endif
