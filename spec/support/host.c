/*
 * host.c - runs a Lua script as luajit does, for builds with a sanitizer: the sanitizer's runtime must be the
 * program's own, since preloading it into luajit would reach every shell, curl and compiler a spec starts.
 *
 * Usage: luaconnect-specs SCRIPT [ARGS...]
 */
#include <dlfcn.h>
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>

static int traceback(lua_State *L)
{
        luaL_traceback(L, L, lua_tostring(L, 1), 1);
        return 1;
}

int main(int argc, char **argv)
{
        lua_State *L = luaL_newstate();
        const char *library = getenv("LUACONNECT_LIB");
        int rc;

        /* stays loaded to the end, so that reports of leaks have names */
        if (library && !dlopen(library, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE))
                fprintf(stderr, "%s\n", dlerror());
        if (!L || argc < 2)
                return 2;
        luaL_openlibs(L);
        lua_createtable(L, argc - 2, 1);
        for (int i = 1; i < argc; i++) {
                lua_pushstring(L, argv[i]);
                lua_rawseti(L, -2, i - 1);
        }
        lua_setglobal(L, "arg");
        lua_pushcfunction(L, traceback);
        rc = luaL_loadfile(L, argv[1]);
        if (!rc) {
                for (int i = 2; i < argc; i++)
                        lua_pushstring(L, argv[i]);
                rc = lua_pcall(L, argc - 2, 0, 1);
        }
        if (rc)
                fprintf(stderr, "%s\n", lua_tostring(L, -1));
        lua_close(L); /* runs the finalizers of what specs hold */
        return rc ? 1 : 0;
}
