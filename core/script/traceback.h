/*
 * traceback.h - where a Lua stack is, as luaL_traceback says it. Internal to script/.
 *
 * Needs no room on the Lua stack and no Lua memory, so it works in the handler of a stack overflow and of
 * memory that has run out, where luaL_traceback fails; and it prints no addresses.
 * Threads:  the state's.   Tests: spec/unit/script_spec.lua, spec/unit/stuck_spec.lua
 */
#ifndef LC_SCRIPT_TRACEBACK_H
#define LC_SCRIPT_TRACEBACK_H
#include <lua.h>
#include <stddef.h>

/* "stack traceback:\n\tFILE:LINE: in function 'NAME'..." from `level` (0: the running function) on into out
 * (size > 0), with a line feed at the end; of a deep stack the first 12 and the last 10. What does not fit is
 * left out by whole lines. */
void lc_traceback(lua_State *L, int level, char *out, size_t size);

#endif
