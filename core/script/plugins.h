/*
 * plugins.h - making a set of plugins, step by step. Internal to script/; plugins.c and reload.c.
 *
 * Threads:   one, until the set is given out.
 * Tests:     spec/unit/plugins_spec.lua, reload_spec.lua
 */
#ifndef LC_SCRIPT_PLUGINS_H
#define LC_SCRIPT_PLUGINS_H
#include "script/declaration.h"

lc_plugins_t *lc_set_new(const char *home, lc_code_t *code); /* code: taken */
/* The entry's file run with impl's bytecode; found is freed by the caller in any case. */
int lc_set_load(lc_plugin_set_t *impl, const lc_entry_t *e, lc_declarations_t *found, lc_err_t *err);
void lc_set_take(lc_plugins_t *set, lc_declarations_t *found); /* the set has them now */
void lc_set_add(lc_plugins_t *set, lc_plugin_t *p);            /* takes it */
void lc_set_add_broken(lc_plugins_t *set, const lc_entry_t *e, const char *why);
void lc_set_finish(lc_plugins_t *set); /* C converters; sorted */

/* examples.c: each example of these plugins of one file: what is wrong with it, or NULL. Until done returns
 * nonzero. -1: the examples of a plugin cannot be read. */
typedef int lc_example_fn(void *arg, const lc_plugin_t *p, int number, const lc_err_t *why);
int lc_examples_each(const lc_plugins_t *set, lc_plugin_t *const *v, size_t n, lc_example_fn *done, void *arg,
                     lc_err_t *err);
/* The same for a reload. -1: one fails, or all together take longer than they may. */
int lc_examples_run(const lc_plugins_t *set, lc_plugin_t *const *v, size_t n, lc_err_t *err);

#endif
