/* home.c - lc_home_find(): the folder that holds lua/ and connectors/. Any thread. Spec: plugins_spec.lua. */
#include "script/script.h"
#include "base/alloc.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *if_home(char *folder)
{
        char *file = lc_asprintf("%s/lua/connect/boot.lua", folder);
        bool there = access(file, R_OK) == 0;
        char *real = there ? realpath(folder, NULL) : NULL;

        free(file);
        free(folder);
        return real;
}

/* Beside a program or library: its folder, the one above (build/..), share/ of an install prefix. */
static char *beside(const char *binary)
{
        char *folder = lc_strdup(binary), *slash = strrchr(folder, '/'), *found = NULL;
        static const char *const tails[] = {"", "/..", "/../share/luaconnect", "/../../share/luaconnect"};

        if (slash) {
                *slash = '\0';
                for (size_t i = 0; i < sizeof(tails) / sizeof(*tails) && !found; i++)
                        found = if_home(lc_asprintf("%s%s", folder, tails[i]));
        }
        free(folder);
        return found;
}

char *lc_home_find(lc_err_t *err)
{
        const char *env = getenv("LUACONNECT_HOME");
        char exe[PATH_MAX], *found = NULL;
        Dl_info info;
        ssize_t n;

        if (env && env[0]) {
                found = if_home(lc_strdup(env));
                if (!found)
                        lc_err_set(err, LC_FATAL, 0,
                                   "LUACONNECT_HOME is %s, but there is no lua/connect in it", env);
                return found;
        }
        n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
        if (n > 0) {
                exe[n] = '\0';
                found = beside(exe);
        }
        if (!found && dladdr((void *)(uintptr_t)lc_home_find, &info) && info.dli_fname) {
                char *lib = realpath(info.dli_fname, NULL);
                found = lib ? beside(lib) : NULL;
                free(lib);
        }
#ifdef LC_PREFIX
        if (!found)
                found = if_home(lc_strdup(LC_PREFIX "/share/luaconnect"));
#endif
        if (!found)
                lc_err_set(err, LC_FATAL, 0,
                           "cannot find the folder with lua/connect beside the program: set LUACONNECT_HOME");
        return found;
}
