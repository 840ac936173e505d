/*
 * try_steps.h - the transforms of `luaconnect try`, written on the command line, as a connector's config.
 *
 * Threads:   main.   Tests: spec/unit/kit_spec.lua
 */
#ifndef LC_CLI_TRY_STEPS_H
#define LC_CLI_TRY_STEPS_H
#include "base/err.h"
#include "base/props.h"
#include "config/plugin.h"

/* 'Class:key=value;key=value' becomes the next of `transforms`; \; and \: are ; and : in a value. */
int lc_try_add_step(lc_props_t *config, const char *text, lc_err_t *err);
/* 'name=Class:key=value' becomes a predicate. */
int lc_try_add_predicate(lc_props_t *config, const char *text, lc_err_t *err);
/* key=value, of -c. */
int lc_try_add_setting(lc_props_t *config, const char *text, lc_err_t *err);
/* Says on stderr which keys of the steps their classes do not know: they would be ignored. */
void lc_try_warn_of_keys(const lc_props_t *config, const lc_plugins_t *plugins);

#endif
