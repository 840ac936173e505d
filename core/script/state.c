/* state.c - see state.h. One caller at a time. Spec: spec/unit/script_spec.lua. */
#include "script/state.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "data/schema_builder.h"
#include "script/traceback.h"
#include <luajit.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { HOOK_EVERY = 20000 };                          /* instructions between two looks at the clock */
static const size_t SLACK = 32 * 1024 * 1024;         /* beyond the limit, until the script's next step */
static size_t max_memory = (size_t)256 * 1024 * 1024; /* atomic */

static int max_files = 1024; /* atomic */

void lc_script_max_files(int n)
{
        __atomic_store_n(&max_files, n, __ATOMIC_RELAXED);
}

int lc_state_max_files(void)
{
        int most = __atomic_load_n(&max_files, __ATOMIC_RELAXED);
        struct rlimit all;

        if (most && getrlimit(RLIMIT_NOFILE, &all) == 0 && all.rlim_cur / 4 < (rlim_t)most)
                most = (int)(all.rlim_cur / 4);
        return most;
}

void lc_script_max_memory(size_t bytes)
{
        __atomic_store_n(&max_memory, bytes, __ATOMIC_RELAXED);
}

lc_state_t *lc_state_of(lua_State *L)
{
        void *ud;

        lua_getallocf(L, &ud);
        return ud;
}

static void *count_alloc(void *ud, void *p, size_t old, size_t size)
{
        lc_state_t *st = ud;

        if (!size) {
                st->used -= p ? old : 0;
                free(p);
                return NULL;
        }
        old = p ? old : 0;
        if (st->limit && size > old && lc_guard_held(st) + (size - old) > st->limit) {
                lc_guard_over(st); /* the script is ended at its next step, with a traceback */
                if (lc_guard_held(st) + (size - old) > st->limit + (st->limit > SLACK ? st->limit : SLACK))
                        return NULL;
        }
        p = realloc(p, size);
        if (p) {
                st->used += size - old;
                st->last = p;
                st->last_size = size;
        }
        return p;
}

static int panic(lua_State *L)
{
        const char *text = lua_tostring(L, -1);

        lc_log(LC_ERROR, "SCRIPT", "Lua error outside a protected call: %s", text ? text : "?");
        return 0; /* LuaJIT exits */
}

/* ---- errors ----------------------------------------------------------------------------------- */

/* Java classes that an error of connect's may name: lc_err_t keeps a pointer, so they are literals here. */
const char *lc_state_class(const char *name, const char *other)
{
        static const char *const known[] = {
                LC_CLS_CONNECT,
                LC_CLS_DATA,
                LC_CLS_RETRIABLE,
                LC_CLS_CONFIG,
                LC_CLS_SERIALIZATION,
                LC_CLS_SCHEMA_BUILDER,
                "java.lang.ArithmeticException",
                "java.lang.ClassCastException",
                "java.lang.IllegalArgumentException",
                "java.lang.IllegalStateException",
                "java.lang.IndexOutOfBoundsException",
                "java.lang.NullPointerException",
                "java.lang.NumberFormatException",
                "java.lang.StringIndexOutOfBoundsException",
                "java.lang.UnsupportedOperationException",
                "java.util.regex.PatternSyntaxException",
        };

        for (size_t i = 0; name && i < sizeof(known) / sizeof(*known); i++)
                if (!strcmp(known[i], name))
                        return known[i];
        return other;
}

static void own_kind(lua_State *L, lc_state_t *st, lc_err_kind_t kind)
{
        static const char *const cls[] = {[LC_DATA] = LC_CLS_DATA,
                                          [LC_RETRIABLE] = LC_CLS_RETRIABLE,
                                          [LC_FATAL] = NULL,
                                          [LC_FENCED] = NULL};
        const char *text;

        lua_getfield(L, 1, "message");
        text = lua_tostring(L, -1);
        lc_err_set_cls(st->err, kind, 0, cls[kind], "%s", text ? text : "");
        lua_getfield(L, 1, "after_ms");
        if (kind == LC_RETRIABLE && lua_isnumber(L, -1) && st->host && st->host->timeout)
                st->host->timeout(st->host->arg, (int64_t)lua_tonumber(L, -1));
        lua_getfield(L, 1, "class");
        st->err->cls = lc_state_class(lua_tostring(L, -1), st->err->cls);
        lua_getfield(L, 1, "detail");
        text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
        snprintf(st->err->detail, sizeof(st->err->detail), "%s", text);
        lua_pop(L, 4);
}

static lc_err_kind_t kind_of(lua_State *L)
{
        lc_err_kind_t kind = 0;
        const char *name;

        if (!lua_istable(L, 1))
                return 0;
        lua_pushliteral(L, "kind");
        lua_rawget(L, 1);
        name = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
        if (!strcmp(name, "retriable"))
                kind = LC_RETRIABLE;
        else if (!strcmp(name, "data_error"))
                kind = LC_DATA;
        else if (!strcmp(name, "fatal"))
                kind = LC_FATAL;
        else if (!strcmp(name, "fenced"))
                kind = LC_FENCED;
        lua_pop(L, 1);
        return kind;
}

/* Runs inside the failed pcall, so it may raise too (out of memory: LUA_ERRERR). Fills st->err at once:
 * nothing of the error must be read from Lua afterwards. */
static int handler(lua_State *L)
{
        lc_state_t *st = lc_state_of(L);
        lc_err_kind_t kind;
        const char *text;

        if (st->err->kind)
                return 1;
        kind = kind_of(L);
        if (kind) {
                own_kind(L, st, kind);
        } else {
                if (lua_isstring(L, 1))
                        lua_pushvalue(L, 1);
                else if (!luaL_getmetafield(L, 1, "__tostring") || (lua_pushvalue(L, 1), false) ||
                         lua_pcall(L, 1, 1, 0) || !lua_isstring(L, -1))
                        lua_pushfstring(L, "error object is a %s value", luaL_typename(L, 1));
                text = lua_tostring(L, -1);
                lc_err_set(st->err, LC_FATAL, 0, "%s", text ? text : "?");
                lua_pop(L, 1);
        }
        if (st->err->detail[0]) /* of an error that came from C: its causes say more than our Lua does */
                return 1;
        lc_traceback(L, 1, st->err->detail, sizeof(st->err->detail));
        return 1;
}

static int entry(lua_State *L)
{
        lc_state_t *st = lc_state_of(L);

        st->fn(L, st->arg);
        return 0;
}

/* The call was ended by the guard: its reason, and the traceback of where it was. */
static void end_error(lc_state_t *st)
{
        char *trace;

        if (st->err->kind && strstr(st->err->msg, st->guard.text)) {
                st->err->kind = LC_FATAL;
                st->err->code = LC_SCRIPT_ENDED;
                return;
        }
        trace = lc_strdup(st->err->detail);
        lc_err_clear(st->err);
        lc_err_set(st->err, LC_FATAL, LC_SCRIPT_ENDED, "%s", st->guard.text);
        snprintf(st->err->detail, sizeof(st->err->detail), "%s", trace);
        free(trace);
}

static int run(lc_state_t *st, int limit_ms, void (*fn)(lua_State *L, void *arg), void *arg, lc_err_t *err)
{
        lc_err_t own = {0};
        bool ended;
        int rc;

        st->err = err ? err : &own;
        lc_err_clear(st->err);
        st->fn = fn;
        st->arg = arg;
        lc_guard_enter(st, limit_ms);
        lua_pushvalue(st->L, LC_SLOT_ENTRY); /* allocates nothing: the stack has room */
        rc = lua_pcall(st->L, 0, 0, LC_SLOT_HANDLER);
        ended = lc_guard_leave(st);
        lua_settop(st->L, LC_SLOTS);
        if (ended) { /* whatever the script made of it */
                rc = -1;
                end_error(st);
        } else if (rc != 0) {
                if (rc == LUA_ERRMEM)
                        lc_err_set(st->err, LC_FATAL, LC_SCRIPT_ENDED,
                                   "not enough memory: the script held %zu bytes (plugin.max.memory is %zu)",
                                   lc_guard_held(st), st->limit);
                else
                        lc_err_set(st->err, LC_FATAL, 0,
                                   "stack overflow, or an error while an error was reported");
        }
        lc_assert(lua_gettop(st->L) == LC_SLOTS);
        st->err = NULL;
        return rc ? -1 : 0;
}

static void collect(lua_State *L, void *arg)
{
        (void)arg;
        lua_gc(L, LUA_GCCOLLECT, 0);
}

int lc_state_memory(lc_state_t *st, lc_err_t *err)
{
        lc_err_t ignored = {0};

        if (!st->limit || lc_guard_held(st) <= st->limit)
                return 0;
        run(st, 0, collect, NULL, &ignored);
        if (lc_guard_held(st) <= st->limit)
                return 0;
        return lc_err_set(
                err, LC_FATAL, LC_SCRIPT_ENDED,
                "not enough memory: the script holds %zu bytes, and %zu bytes of records that it keeps "
                "(plugin.max.memory is %zu)",
                st->used, (size_t)st->xch.pinned, st->limit);
}

int lc_state_run(lc_state_t *st, void (*fn)(lua_State *L, void *arg), void *arg, lc_err_t *err)
{
        return run(st, 0, fn, arg, err);
}

static void out_of_time(lua_State *L, lua_Debug *ar)
{
        lc_state_t *st = lc_state_of(L);

        (void)ar;
        if (!st->deadline || lc_now_ms() < st->deadline)
                return;
        lc_guard_late(L);
}

int lc_state_run_limited(lc_state_t *st, int ms, void (*fn)(lua_State *L, void *arg), void *arg,
                         lc_err_t *err)
{
        int rc;

        st->deadline = lc_now_ms() + ms;
        luaJIT_setmode(st->L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF); /* compiled loops see no hooks */
        lua_sethook(st->L, out_of_time, LUA_MASKCOUNT, HOOK_EVERY);
        rc = run(st, ms, fn, arg, err);
        lua_sethook(st->L, NULL, 0, 0);
        luaJIT_setmode(st->L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_ON);
        st->deadline = 0;
        return rc;
}

int lc_state_raise(lua_State *L, const lc_err_t *err)
{
        static const char *const kinds[] = {[LC_FATAL] = "fatal",
                                            [LC_RETRIABLE] = "retriable",
                                            [LC_DATA] = "data_error",
                                            [LC_FENCED] = "fenced"};

        lua_newtable(L);
        lua_pushstring(L, kinds[err->kind ? err->kind : LC_FATAL]);
        lua_setfield(L, -2, "kind");
        lua_pushstring(L, err->msg);
        lua_setfield(L, -2, "message");
        if (err->cls) {
                lua_pushstring(L, err->cls);
                lua_setfield(L, -2, "class");
        }
        if (err->detail[0]) {
                lua_pushstring(L, err->detail);
                lua_setfield(L, -2, "detail");
        }
        lua_getfield(L, LUA_REGISTRYINDEX, "connect.error");
        if (lua_istable(L, -1))
                lua_setmetatable(L, -2);
        else
                lua_pop(L, 1);
        return lua_error(L);
}

void lc_state_function(lua_State *L, const char *name)
{
        lua_getfield(L, LUA_REGISTRYINDEX, "connect.runtime");
        lua_getfield(L, -1, name);
        lua_remove(L, -2);
}

/* ---- making a state --------------------------------------------------------------------------- */

struct boot {
        lc_state_t *st;
        const char *root, *folder;
        bool standard;
};

/* package.loaders' only entry for privileged code: lua/connect from the home folder, by bytecode. */
static int load_module(lua_State *L)
{
        lc_state_t *st = lc_state_of(L);
        const char *name = luaL_checkstring(L, 1), *path;
        lc_err_t err = {0};

        luaL_gsub(L, name, ".", "/");
        path = lua_pushfstring(L, "%s/lua/%s.lua", st->home, lua_tostring(L, -1));
        if (!lc_code_exists(st->code, path))
                path = lua_pushfstring(L, "%s/lua/%s/init.lua", st->home, lua_tostring(L, -2));
        if (!lc_code_exists(st->code, path)) {
                lua_pushfstring(L, "\n\tno file '%s'", path);
                return 1;
        }
        if (lc_code_push(st->code, L, path, false, &err) < 0)
                return lc_state_raise(L, &err);
        return 1;
}

static void boot(lua_State *L, void *arg)
{
        struct boot *b = arg;
        lc_err_t err = {0};

        luaL_openlibs(L);
        lc_guard_prepare(L);
        lua_getglobal(L, "package");
        lua_getfield(L, -1, "loaders");
        for (int i = (int)lua_objlen(L, -1); i > 1; i--) { /* 1: preload (ffi) */
                lua_pushnil(L);
                lua_rawseti(L, -2, i);
        }
        lua_pushcfunction(L, load_module);
        lua_rawseti(L, -2, 2);
        lua_getfield(L, -2, "loaded");
        lc_host_push(L);
        lua_setfield(L, -2, "connect.host");
        lua_settop(L, 0);
        lua_pushfstring(L, "%s/lua/connect/boot.lua", b->st->home);
        if (lc_code_push(b->st->code, L, lua_tostring(L, -1), false, &err) < 0)
                lc_state_raise(L, &err);
        lua_pushstring(L, b->root);
        lua_pushstring(L, b->folder);
        lua_pushboolean(L, b->standard);
        lua_call(L, 3, 1);
        luaL_checktype(L, -1, LUA_TTABLE);
        lua_setfield(L, LUA_REGISTRYINDEX, "connect.runtime");
}

/* Before there is a handler: only this much runs under a bare cpcall. */
static int prepare(lua_State *L)
{
        lua_pop(L, 1);
        lua_checkstack(L, LC_SLOTS + LUA_MINSTACK);
        lua_pushcfunction(L, handler);
        lua_setfield(L, LUA_REGISTRYINDEX, "connect.handler");
        lua_pushcfunction(L, entry);
        lua_setfield(L, LUA_REGISTRYINDEX, "connect.entry");
        return 0;
}

lc_state_t *lc_state_new(lc_code_t *code, const char *home, const lc_script_host_t *host, const char *root,
                         const char *folder, bool standard, lc_err_t *err)
{
        lc_state_t *st = lc_calloc(1, sizeof(*st));
        struct boot b = {.st = st, .root = root, .folder = folder, .standard = standard};

        st->code = code;
        st->home = home;
        st->host = host;
        st->xch.stop = host ? host->stop : NULL;
        st->xch.max_request_size = host ? host->max_request_size : 0;
        st->limit = __atomic_load_n(&max_memory, __ATOMIC_RELAXED);
        lc_guard_link(st);
        st->L = lua_newstate(count_alloc, st);
        if (!st->L || (lua_atpanic(st->L, panic), lua_cpcall(st->L, prepare, NULL)) != 0) {
                lc_err_set(err, LC_FATAL, 0, "not enough memory for a Lua state");
                goto fail;
        }
        lua_settop(st->L, 0);
        lua_getfield(st->L, LUA_REGISTRYINDEX, "connect.handler"); /* both keys are interned: no allocation */
        lua_getfield(st->L, LUA_REGISTRYINDEX, "connect.entry");
        if (lc_state_run(st, boot, &b, err) < 0)
                goto fail;
        return st;
fail:
        lc_state_free(st);
        return NULL;
}

void lc_state_free(lc_state_t *st)
{
        if (!st)
                return;
        lc_guard_unlink(st);
        if (st->L) {
                st->limit = 0; /* finalizers give batches back: nothing must keep one from running */
                lua_sethook(st->L, NULL, 0, 0);
                lua_close(st->L);
        }
        lc_batch_unref(st->xch.batch);
        lc_partitions_free(st->partitions);
        lc_buf_free(&st->scratch);
        lc_strv_free(&st->texts);
        free(st->text);
        free(st);
}
