/* tool.c - see tool.h. */
#include "script/tool.h"
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>

struct tool {
        const char *home, *name;
        int argc, status;
        char **argv;
};

static int traceback(lua_State *L)
{
        if (lua_isstring(L, 1) || luaL_callmeta(L, 1, "__tostring"))
                luaL_traceback(L, L, lua_tostring(L, -1), 1);
        return 1;
}

static int run(lua_State *L)
{
        struct tool *t = lua_touserdata(L, 1);

        luaL_openlibs(L);
        lua_getglobal(L, "package");
        lua_getfield(L, -1, "path");
        lua_pushfstring(L, "%s/lua/?.lua;%s/lua/?/init.lua;%s", t->home, t->home, lua_tostring(L, -1));
        lua_setfield(L, -3, "path");
        lua_pushcfunction(L, traceback);
        lua_pushfstring(L, "%s/lua/connect/cli/%s.lua", t->home, t->name);
        if (luaL_loadfile(L, lua_tostring(L, -1)))
                return lua_error(L);
        lua_call(L, 0, 1);
        lua_createtable(L, t->argc, 1);
        lua_pushstring(L, t->home);
        lua_setfield(L, -2, "home");
        for (int i = 0; i < t->argc; i++) {
                lua_pushstring(L, t->argv[i]);
                lua_rawseti(L, -2, i + 1);
        }
        if (lua_pcall(L, 1, 1, -4))
                return lua_error(L);
        t->status = (int)lua_tointeger(L, -1);
        return 0;
}

int lc_tool_run(const char *home, const char *name, int argc, char **argv, int *status, lc_err_t *err)
{
        struct tool t = {.home = home, .name = name, .argc = argc, .argv = argv};
        lua_State *L = luaL_newstate();
        int rc;

        if (!L)
                return lc_err_set(err, LC_FATAL, 0, "not enough memory for a Lua state");
        rc = lua_cpcall(L, run, &t);
        if (rc)
                lc_err_set(err, LC_FATAL, 0, "%s", lua_tostring(L, -1) ? lua_tostring(L, -1) : "?");
        *status = t.status;
        lua_close(L);
        return rc ? -1 : 0;
}
