/*
 * entries.h - where plugins are on disk: the entries NAME.lua and NAME/init.lua of the standard folders and
 * of plugin.path, and whether their files changed. Internal to script/.
 *
 * Threads:   the caller's.   Tests: spec/unit/plugins_spec.lua, reload_spec.lua
 */
#ifndef LC_SCRIPT_ENTRIES_H
#define LC_SCRIPT_ENTRIES_H
#include "config/plugin.h"

typedef struct lc_entry {
        char *path;             /* the Lua file */
        char *folder;           /* NULL: a single file */
        char *root;             /* NAME */
        bool standard;          /* ships with the program */
        lc_plugin_type_t guess; /* what it is when it cannot be loaded */
        uint64_t print;         /* of the bytes of its Lua files, as they were before it was loaded */
} lc_entry_t;
typedef struct lc_entries {
        lc_entry_t *v;
        size_t n;
} lc_entries_t;

/* In the order of the folders, each file once. say: log what is skipped, and why. */
void lc_entries_find(lc_entries_t *out, const char *home, const lc_strv_t *plugin_path, bool say);
void lc_entries_add(lc_entries_t *out, const lc_entry_t *e); /* a copy */
void lc_entries_free(lc_entries_t *e);
const lc_entry_t *lc_entries_at(const lc_entries_t *e, const char *path); /* or NULL */
uint64_t lc_entry_print(const lc_entry_t *e);
/* The Lua files below a plugin's folder, sorted; those of its spec folder are not its own. */
void lc_entry_files(const char *folder, lc_strv_t *out);

#endif
