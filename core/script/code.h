/*
 * code.h - Lua files compiled once, as bytecode shared by all states of a plugin set.
 *
 * A file keeps the bytes it had when it was first loaded, whatever happens to it on disk.
 * Threads:   any; one mutex, held while a file is read and compiled, never while Lua code runs.
 * Tests:     spec/unit/plugins_spec.lua
 */
#ifndef LC_SCRIPT_CODE_H
#define LC_SCRIPT_CODE_H
#include <lua.h>
#include <stdbool.h>
#include "base/err.h"

typedef struct lc_code lc_code_t;
lc_code_t *lc_code_new(void);
void lc_code_free(lc_code_t *code);
/* Another table with the same files, but not `without` (a file) and those below the folder `below` (NULL:
 * none). */
lc_code_t *lc_code_copy(lc_code_t *code, const char *without, const char *below);
void lc_code_drop(lc_code_t *code, const char *file, const char *below); /* of a table nobody else has yet */
/* Of these files what `from` has, in place of what `code`, which nobody else has yet, has. */
void lc_code_take(lc_code_t *code, lc_code_t *from, const char *file, const char *below);
/* Push the chunk of the file as a function: 0. Nothing pushed: -1. Raises nothing but Lua's out of memory.
 * checked: with the guard's tests (checked.h); the same for a path each time. */
int lc_code_push(lc_code_t *code, lua_State *L, const char *path, bool checked, lc_err_t *err);
/* Text -> function pushed and 0, or a message pushed. name: "@path" or "=text". Only text, no bytecode. */
int lc_code_load(lua_State *L, const char *text, size_t n, const char *name, bool checked);
bool lc_code_exists(lc_code_t *code, const char *path); /* loaded before, or a readable regular file */

#endif
