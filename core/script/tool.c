/* tool.c - see tool.h. */
#include "script/tool.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "script/plugins.h"
#include "script/script.h"
#include <lauxlib.h>
#include <lua.h>
#include <luajit.h>
#include <lualib.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tool {
        const char *home, *name;
        int argc, status;
        char **argv;
        lc_plugins_t *set; /* of connect.tool's functions; one at a time */
        lc_strv_t files;   /* scratch */
        lc_buf_t in;       /* of stdin, read and not given out */
};

static int traceback(lua_State *L)
{
        if (lua_istable(L, 1)) /* an error of connect's says it all */
                return 1;
        luaL_traceback(L, L, lua_tostring(L, 1), 1);
        return 1;
}

/* ---- the module connect.tool ---------------------------------------------------------------------- */

static struct tool *tool_of(lua_State *L)
{
        return lua_touserdata(L, lua_upvalueindex(1));
}

/* The file itself, or what init.lua is in: under its real name, as plugin.path takes it. */
static void add_real(lc_strv_t *out, const char *path)
{
        char *real = realpath(path, NULL);
        size_t n = real ? strlen(real) : 0;

        if (n > 9 && !strcmp(real + n - 9, "/init.lua"))
                real[n - 9] = '\0';
        lc_strv_add(out, real ? real : path);
        free(real);
}

static bool is_at(const lc_plugin_t *p, const char *path)
{
        size_t n = strlen(path);

        return p->path && !strncmp(p->path, path, n) && (!p->path[n] || !strcmp(p->path + n, "/init.lua"));
}

/* Does it ship with the program? */
static bool is_standard(const struct tool *t, const char *real)
{
        size_t n = strlen(t->home);

        return !strncmp(real, t->home, n) &&
               (!strncmp(real + n, "/lua/transforms/", 16) || !strncmp(real + n, "/lua/predicates/", 16) ||
                !strncmp(real + n, "/connectors/", 12));
}

/* Standard ones and those of t->files. */
static void scan(lua_State *L, struct tool *t)
{
        lc_strv_t own = {NULL, 0};
        lc_err_t err = {0};

        for (size_t i = 0; i < t->files.n; i++) /* a standard one is there already */
                if (!is_standard(t, t->files.v[i]))
                        lc_strv_add(&own, t->files.v[i]);
        if (t->set)
                lc_plugins_free(t->set);
        lc_log_set_level("PLUGIN", "off"); /* what is wrong is told by the caller */
        t->set = lc_plugins_scan(t->home, &own, &err);
        lc_strv_free(&own);
        if (!t->set)
                luaL_error(L, "%s", err.msg);
}

static int add_result(void *arg, const lc_plugin_t *p, int number, const lc_err_t *why)
{
        lua_State *L = arg;

        lua_createtable(L, 0, 3);
        lua_pushstring(L, p->class_name);
        lua_setfield(L, -2, "class");
        lua_pushinteger(L, number);
        lua_setfield(L, -2, "number");
        if (why) {
                lua_pushstring(L, why->msg);
                lua_setfield(L, -2, "message");
        }
        lua_rawseti(L, -2, (int)lua_objlen(L, -2) + 1);
        return 0;
}

/* The plugins of a file and what their examples say, into the table on the stack. */
static void run_file(lua_State *L, struct tool *t, const char *path)
{
        lc_plugin_t **v = lua_newuserdata(L, (t->set->n + 1) * sizeof(lc_plugin_t *));
        lc_err_t err = {0};
        size_t n = 0;

        lua_insert(L, -2);
        for (size_t i = 0; i < t->set->n; i++)
                if (is_at(t->set->v[i], path))
                        v[n++] = t->set->v[i];
        if (n && v[0]->error)
                lc_err_set(&err, LC_FATAL, 0, "%s", v[0]->error);
        else if (!n)
                lc_err_set(&err, LC_FATAL, 0, "no plugin");
        else
                lc_examples_each(t->set, v, n, add_result, L, &err);
        lua_remove(L, -2);
        if (err.kind) {
                lua_pushstring(L, err.msg);
                lua_setfield(L, -2, "error");
        }
}

/* examples{file, ..} -> one table a file: a list of {class =, number =, message = (what is wrong)}, and error. */
static int tool_examples(lua_State *L)
{
        struct tool *t = tool_of(L);
        int n;

        luaL_checktype(L, 1, LUA_TTABLE);
        n = (int)lua_objlen(L, 1);
        lc_strv_free(&t->files);
        for (int i = 1; i <= n; i++) {
                lua_rawgeti(L, 1, i);
                add_real(&t->files, luaL_checkstring(L, -1));
                lua_pop(L, 1);
        }
        scan(L, t);
        lua_createtable(L, n, 0);
        for (int i = 0; i < n; i++) {
                lua_newtable(L);
                run_file(L, t, t->files.v[i]);
                lua_rawseti(L, -2, i + 1);
        }
        return 1;
}

/* check(file) -> nil, or why the worker would not load it, "FILE:LINE: .." where it is known. */
static int tool_check(lua_State *L)
{
        struct tool *t = tool_of(L);
        const char *file = luaL_checkstring(L, 1), *why = "no plugin";
        char *real;

        lc_strv_free(&t->files);
        add_real(&t->files, file);
        scan(L, t);
        for (size_t i = 0; i < t->set->n; i++)
                if (is_at(t->set->v[i], t->files.v[0]))
                        why = t->set->v[i]->error;
        if (!why)
                return 0;
        real = realpath(file, NULL);
        if (real && !strncmp(why, real, strlen(real)) && why[strlen(real)] == ':')
                lua_pushfstring(L, "%s%s", file, why + strlen(real));
        else
                lua_pushfstring(L, "%s: %s", file, why);
        free(real);
        return 1;
}

/* find(name) -> the file of a standard plugin, by class or alias; nil and why not. */
static int tool_find(lua_State *L)
{
        struct tool *t = tool_of(L);
        lc_err_t err = {0};
        const lc_plugin_t *p;

        lc_strv_free(&t->files);
        scan(L, t);
        p = lc_plugins_find(t->set, 0, luaL_checkstring(L, 1), &err);
        if (!p) { /* of two classes in one file */
                lua_pushfstring(L, "%s$Value", lua_tostring(L, 1));
                lc_err_clear(&err);
                p = lc_plugins_find(t->set, 0, lua_tostring(L, -1), &err);
        }
        if (p && p->path) {
                lua_pushstring(L, p->path);
                return 1;
        }
        lua_pushnil(L);
        lua_pushfstring(L, "no plugin '%s'; luaconnect plugins lists them", lua_tostring(L, 1));
        return 2;
}

/* standard(file): does it ship with the program? */
static int tool_standard(lua_State *L)
{
        struct tool *t = tool_of(L);

        lc_strv_free(&t->files);
        add_real(&t->files, luaL_checkstring(L, 1));
        lua_pushboolean(L, is_standard(t, t->files.v[0]));
        return 1;
}

/* ---- calls that can be ended ----------------------------------------------------------------------- */

static volatile sig_atomic_t interrupts; /* by SIGINT, since the last line or call */
static int64_t deadline;                 /* of the running call, lc_now_ms(); 0: none */

static void on_interrupt(int number)
{
        (void)number;
        if (++interrupts > 2) /* it does not listen */
                _exit(130);
}

/* Every thousand instructions; from the first error on at each one until the outermost call has returned, so
 * that a loop around pcall ends, too. */
static void on_count(lua_State *L, lua_Debug *ar)
{
        bool late = deadline && lc_now_ms() > deadline;

        (void)ar;
        if (!interrupts && !late)
                return;
        lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
        if (interrupts)
                luaL_error(L, "interrupted");
        luaL_error(L, "it takes longer than %d ms", LC_LOAD_PHASE_MS);
}

/* call(limited, f, ...) -> true and results, or false and the error: an error object, or a text with traceback.
 * limited: for as long as loading a plugin may take, and no traceback. SIGINT ends it when watch() was called. The JIT compiler
 * is off while it runs: its loops see no hooks. */
static int tool_call(lua_State *L)
{
        bool limited = lua_toboolean(L, 1);
        int rc;

        luaL_checktype(L, 2, LUA_TFUNCTION);
        if (limited)
                lua_pushnil(L);
        else
                lua_pushcfunction(L, traceback);
        lua_replace(L, 1);
        interrupts = 0;
        deadline = limited ? lc_now_ms() + LC_LOAD_PHASE_MS : 0;
        luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
        lua_sethook(L, on_count, LUA_MASKCOUNT, 1000);
        rc = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, limited ? 0 : 1);
        lua_sethook(L, NULL, 0, 0);
        luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_ON);
        if (rc == 0 && interrupts) { /* a pcall took it */
                lua_settop(L, 1);
                lua_pushstring(L, "interrupted");
                rc = LUA_ERRRUN;
        }
        deadline = 0;
        interrupts = 0;
        lua_pushboolean(L, rc == 0);
        lua_replace(L, 1);
        return lua_gettop(L);
}

/* watch(): from here on SIGINT ends a call instead of the program. */
static int tool_watch(lua_State *L)
{
        struct sigaction sa = {.sa_handler = on_interrupt}; /* a read is interrupted, too */

        (void)L;
        sigemptyset(&sa.sa_mask);
        sigaction(SIGINT, &sa, NULL);
        return 0;
}

/* is_terminal() of stdin */
static int tool_is_terminal(lua_State *L)
{
        lua_pushboolean(L, isatty(0));
        return 1;
}

/* line(prompt) -> the next line of stdin without its end; false when SIGINT came instead; nil at the end, or with why. */
static int tool_line(lua_State *L)
{
        struct tool *t = tool_of(L);
        const char *prompt = luaL_checkstring(L, 1);
        lc_buf_t *in = &t->in;

        fputs(prompt, stdout);
        fflush(stdout);
        interrupts = 0;
        for (;;) {
                char *end = in->len ? memchr(in->p, '\n', in->len) : NULL;
                ssize_t n = 0;
                if (!end && lc_buf_reserve(in, 65536))
                        return luaL_error(L, "not enough memory");
                if (!end)
                        n = read(0, in->p + in->len, 65536);
                if (n < 0) {
                        if (errno != EINTR) {
                                lua_pushnil(L);
                                lua_pushfstring(L, "cannot read stdin: %s", strerror(errno));
                                return 2;
                        }
                        lc_buf_clear(in);
                        lua_pushboolean(L, 0);
                        return 1;
                }
                in->len += (size_t)n;
                if (end || n == 0) {
                        size_t len = end ? (size_t)(end - in->p) : in->len, cut = end ? len + 1 : len;
                        if (!end && !len)
                                return 0;
                        lua_pushlstring(L, in->p, len && in->p[len - 1] == '\r' ? len - 1 : len);
                        memmove(in->p, in->p + cut, in->len - cut);
                        in->len -= cut;
                        return 1;
                }
        }
}

static int open_tool(lua_State *L)
{
        static const luaL_Reg functions[] = {{"examples", tool_examples},
                                             {"find", tool_find},
                                             {"standard", tool_standard},
                                             {"check", tool_check},
                                             {"call", tool_call},
                                             {"watch", tool_watch},
                                             {"is_terminal", tool_is_terminal},
                                             {"line", tool_line},
                                             {NULL, NULL}};

        lua_newtable(L);
        for (const luaL_Reg *f = functions; f->name; f++) {
                lua_pushvalue(L, lua_upvalueindex(1));
                lua_pushcclosure(L, f->func, 1);
                lua_setfield(L, -2, f->name);
        }
        return 1;
}

/* ---- running ------------------------------------------------------------------------------------- */

static int run(lua_State *L)
{
        struct tool *t = lua_touserdata(L, 1);

        luaL_openlibs(L);
        lua_getglobal(L, "package");
        lua_getfield(L, -1, "path");
        lua_pushfstring(L, "%s/lua/?.lua;%s/lua/?/init.lua;%s", t->home, t->home, lua_tostring(L, -1));
        lua_setfield(L, -3, "path");
        lua_getfield(L, -2, "preload");
        lua_pushlightuserdata(L, t);
        lua_pushcclosure(L, open_tool, 1);
        lua_setfield(L, -2, "connect.tool");
        lua_pop(L, 1);
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
                lc_err_set(err, LC_FATAL, 0, "%s",
                           lua_isstring(L, -1) || luaL_callmeta(L, -1, "__tostring") ? lua_tostring(L, -1)
                                                                                     : "?");
        *status = t.status;
        lua_close(L);
        if (t.set)
                lc_plugins_free(t.set);
        lc_strv_free(&t.files);
        lc_buf_free(&t.in);
        return rc ? -1 : 0;
}
