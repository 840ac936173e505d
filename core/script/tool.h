/*
 * tool.h - the parts of the program that are written in Lua: lua/connect/cli/NAME.lua, run in a plain state
 * with all libraries (no sandbox: it is our own code, and runs the user's specs as busted would).
 *
 * Threads:   main.   Tests: spec/unit/kit_author_spec.lua
 */
#ifndef LC_SCRIPT_TOOL_H
#define LC_SCRIPT_TOOL_H
#include "base/err.h"

/* Calls the function that the file returns with the arguments as a list. *status: what it returned. -1: it
 * could not be loaded, or raised. */
int lc_tool_run(const char *home, const char *name, int argc, char **argv, int *status, lc_err_t *err);

#endif
