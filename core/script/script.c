/*
 * script.c - see script.h: the calls into one connector or task.
 *
 * Each call hands its arguments to a function of lua/connect/boot.lua (run under lc_state_run) and takes the
 * result out of xch or of its own struct.
 * Threads:   one caller at a time.   Tests: spec/unit/script_spec.lua
 */
#include "script/state.h"
#include "base/alloc.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OFFSET_NONE = -1001 };
static const uint64_t PINNED_STEP = 8 * 1024 * 1024; /* batches held by views before a collection is forced */

struct lc_script {
        lc_state_t *st;
        const lc_plugin_t *plugin;
        lc_script_role_t role;
        bool has_commit, has_commit_record, has_pre_commit;
        bool started; /* start was called, perhaps in vain: stop is due */
};

struct call {
        lc_script_t *s;
        const char *name;
        const lc_props_t *config;
        int max;
        lc_props_t **configs;
        int n;
        lc_topic_partition_t *tps;
        size_t ntps;
        lc_batch_t *batch;
        void (*failed)(void *arg, uint32_t index, const lc_err_t *err);
        void *arg;
};

static void run_new(lua_State *L, void *arg)
{
        struct call *c = arg;
        static const char *const roles[] = {"connector", "source", "sink"};

        lc_state_function(L, "new");
        lua_pushstring(L, roles[c->s->role]);
        lua_call(L, 1, 1);
        luaL_checktype(L, -1, LUA_TTABLE);
        lua_getfield(L, -1, "commit");
        c->s->has_commit = lua_toboolean(L, -1);
        lua_getfield(L, -2, "commit_record");
        c->s->has_commit_record = lua_toboolean(L, -1);
        lua_getfield(L, -3, "pre_commit");
        c->s->has_pre_commit = lua_toboolean(L, -1);
}

lc_script_t *lc_script_new(const lc_plugin_t *plugin, lc_script_role_t role, const lc_script_host_t *host,
                           lc_err_t *err)
{
        lc_script_t *s = lc_calloc(1, sizeof(*s));
        struct call c = {.s = s};

        s->plugin = plugin;
        s->role = role;
        s->st = lc_state_for_plugin(plugin, host, err);
        if (!s->st || lc_state_run(s->st, run_new, &c, err) < 0) {
                lc_script_free(s);
                return NULL;
        }
        return s;
}

void lc_script_free(lc_script_t *s)
{
        if (!s)
                return;
        lc_state_free(s->st);
        free(s);
}

size_t lc_script_memory(const lc_script_t *s)
{
        return s->st->used;
}

/* ---- every role --------------------------------------------------------------------------------- */

static void run_start(lua_State *L, void *arg)
{
        struct call *c = arg;

        lc_state_function(L, "start");
        lc_state_push_config(L, c->s->plugin, c->config, NULL);
        lua_call(L, 1, 0);
}

int lc_script_start(lc_script_t *s, const lc_props_t *config, lc_err_t *err)
{
        struct call c = {.s = s, .config = config};

        s->started = true;
        return lc_state_run(s->st, run_start, &c, err);
}

static void run_plain(lua_State *L, void *arg)
{
        struct call *c = arg;

        lc_state_function(L, c->name);
        lua_call(L, 0, 0);
}

int lc_script_stop(lc_script_t *s, lc_err_t *err)
{
        struct call c = {.s = s, .name = "stop"};

        if (!s->started)
                return 0;
        s->started = false;
        return lc_state_run(s->st, run_plain, &c, err);
}

/* ---- connector ---------------------------------------------------------------------------------- */

/* The result: a list of tables name -> text, written over the connector's config. */
static void run_task_configs(lua_State *L, void *arg)
{
        struct call *c = arg;
        size_t n;

        lc_state_function(L, "task_configs");
        lc_state_push_config(L, c->s->plugin, c->config, NULL);
        lua_pushinteger(L, c->max);
        lua_call(L, 2, 1);
        n = lua_objlen(L, -1);
        c->configs = lc_calloc(n ? n : 1, sizeof(*c->configs));
        for (size_t i = 0; i < n; i++) {
                c->configs[i] = lc_props_copy(c->config);
                c->n = (int)i + 1;
                lua_rawgeti(L, -1, (int)i + 1);
                for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
                        if (lua_type(L, -1) == LUA_TSTRING)
                                lc_props_set(c->configs[i], lua_tostring(L, -2), lua_tostring(L, -1));
                        else
                                lc_props_del(c->configs[i], lua_tostring(L, -2));
                }
                lua_pop(L, 1);
        }
}

int lc_script_task_configs(lc_script_t *s, const lc_props_t *config, int max_tasks, lc_props_t ***out, int *n,
                           lc_err_t *err)
{
        struct call c = {.s = s, .config = config, .max = max_tasks};

        *out = NULL;
        *n = 0;
        if (lc_state_run(s->st, run_task_configs, &c, err) < 0) {
                for (int i = 0; i < c.n; i++)
                        lc_props_free(c.configs[i]);
                free(c.configs);
                return -1;
        }
        *out = c.configs;
        *n = c.n;
        return 0;
}

/* ---- source task -------------------------------------------------------------------------------- */

/* Lua's collector sees a handle of a few bytes where a batch of megabytes hangs: help it. */
static void collect_pinned(lc_state_t *st)
{
        if (st->xch.pinned < st->pinned_after_gc + PINNED_STEP) {
                if (st->xch.pinned < st->pinned_after_gc)
                        st->pinned_after_gc = st->xch.pinned;
                return;
        }
        lua_gc(st->L, LUA_GCCOLLECT, 0);
        st->pinned_after_gc = st->xch.pinned;
}

static void run_collect(lua_State *L, void *arg)
{
        struct call *c = arg;

        if (c) {
                lc_state_function(L, "put_done");
                lua_call(L, 0, 0);
        }
        collect_pinned(lc_state_of(L)); /* finalizers may raise */
}

int lc_script_poll(lc_script_t *s, lc_batch_t **batch, lc_err_t *err)
{
        struct call c = {.s = s, .name = "poll"};

        *batch = NULL;
        if (lc_state_run(s->st, run_plain, &c, err) < 0) {
                lc_batch_unref(s->st->xch.batch);
                s->st->xch.batch = NULL;
                return -1;
        }
        *batch = s->st->xch.batch;
        s->st->xch.batch = NULL;
        if (*batch && !(*batch)->n) {
                lc_batch_unref(*batch);
                *batch = NULL;
        }
        return 0;
}

int lc_script_commit(lc_script_t *s, lc_err_t *err)
{
        struct call c = {.s = s, .name = "commit"};

        return s->has_commit ? lc_state_run(s->st, run_plain, &c, err) : 0;
}

bool lc_script_has_commit_record(const lc_script_t *s)
{
        return s->has_commit_record;
}

int lc_script_commit_record(lc_script_t *s, lc_record_t *r, const lc_delivery_t *to, lc_err_t *err)
{
        struct call c = {.s = s, .name = "commit_record"};
        lc_err_t ignored;
        int rc;

        if (!s->has_commit_record)
                return 0;
        s->st->xch.batch = r->batch;
        s->st->xch.index = (uint32_t)(r - r->batch->records);
        s->st->xch.sent = to != NULL;
        if (to)
                s->st->xch.to = *to;
        rc = lc_state_run(s->st, run_plain, &c, err);
        s->st->xch.batch = NULL;
        lc_state_run(s->st, run_collect, NULL, &ignored);
        return rc;
}

/* ---- sink task ---------------------------------------------------------------------------------- */

static void push_tps(lua_State *L, const lc_topic_partition_t *tps, size_t n)
{
        lua_createtable(L, (int)n, 0);
        for (size_t i = 0; i < n; i++) {
                lua_createtable(L, 0, 4);
                lua_pushstring(L, tps[i].topic);
                lua_setfield(L, -2, "topic");
                lua_pushinteger(L, tps[i].partition);
                lua_setfield(L, -2, "partition");
                lua_pushfstring(L, "%s-%d", tps[i].topic, (int)tps[i].partition);
                lua_setfield(L, -2, "key");
                if (tps[i].offset != OFFSET_NONE) {
                        lua_pushnumber(L, (lua_Number)tps[i].offset);
                        lua_setfield(L, -2, "offset");
                }
                lua_rawseti(L, -2, (int)i + 1);
        }
}

static void run_with_tps(lua_State *L, void *arg)
{
        struct call *c = arg;

        lc_state_function(L, c->name);
        push_tps(L, c->tps, c->ntps);
        lua_call(L, 1, 0);
}

int lc_script_open(lc_script_t *s, const lc_topic_partition_t *tps, size_t n, lc_err_t *err)
{
        struct call c = {.s = s, .name = "open", .tps = (lc_topic_partition_t *)tps, .ntps = n};

        return lc_state_run(s->st, run_with_tps, &c, err);
}

int lc_script_close(lc_script_t *s, const lc_topic_partition_t *tps, size_t n, lc_err_t *err)
{
        struct call c = {.s = s, .name = "close", .tps = (lc_topic_partition_t *)tps, .ntps = n};

        return lc_state_run(s->st, run_with_tps, &c, err);
}

static lc_err_kind_t kind_named(const char *name)
{
        if (name && !strcmp(name, "retriable"))
                return LC_RETRIABLE;
        return name && !strcmp(name, "fatal") ? LC_FATAL : LC_DATA;
}

/* put() -> nil or list of {index (from 1), kind, message, class or nil, detail or nil} */
static void run_put(lua_State *L, void *arg)
{
        struct call *c = arg;
        size_t n;

        lc_state_function(L, "put");
        lua_call(L, 0, 1);
        if (lua_isnil(L, -1))
                return;
        n = lua_objlen(L, -1);
        for (size_t i = 1; i <= n; i++) {
                lc_err_t err = {0};
                lc_err_kind_t kind;
                lua_Number index;

                lua_rawgeti(L, -1, (int)i);
                lua_getfield(L, -1, "index");
                lua_getfield(L, -2, "kind");
                lua_getfield(L, -3, "message");
                lua_getfield(L, -4, "class");
                lua_getfield(L, -5, "detail");
                index = lua_tonumber(L, -5);
                kind = kind_named(lua_tostring(L, -4));
                lc_err_set_cls(&err, kind, 0,
                               lc_state_class(lua_tostring(L, -2), kind == LC_DATA        ? LC_CLS_DATA
                                                                   : kind == LC_RETRIABLE ? LC_CLS_RETRIABLE
                                                                                          : NULL),
                               "%s", lua_tostring(L, -3));
                if (lua_isstring(L, -1))
                        snprintf(err.detail, sizeof(err.detail), "%s", lua_tostring(L, -1));
                if (index >= 1 && index <= c->batch->n && c->failed)
                        c->failed(c->arg, (uint32_t)index - 1, &err);
                lua_pop(L, 6);
        }
}

int lc_script_put(lc_script_t *s, lc_batch_t *batch,
                  void (*failed)(void *arg, uint32_t index, const lc_err_t *err), void *arg, lc_err_t *err)
{
        struct call c = {.s = s, .batch = batch, .failed = failed, .arg = arg};
        lc_err_t ignored;
        int rc;

        s->st->xch.batch = batch;
        rc = lc_state_run(s->st, run_put, &c, err);
        s->st->xch.batch = NULL;
        lc_state_run(s->st, run_collect, &c, &ignored);
        return rc < 0 ? rc : lc_state_memory(s->st, err);
}

/* pre_commit({tp -> offset}) -> {tp -> offset}, or true: leave them */
static void run_pre_commit(lua_State *L, void *arg)
{
        struct call *c = arg;

        lc_state_function(L, "pre_commit");
        push_tps(L, c->tps, c->ntps);
        lua_call(L, 1, 1);
        if (lua_isboolean(L, -1) && lua_toboolean(L, -1))
                return;
        for (size_t i = 0; i < c->ntps; i++) {
                c->tps[i].offset = OFFSET_NONE;
                if (!lua_istable(L, -1))
                        continue;
                lua_pushfstring(L, "%s-%d", c->tps[i].topic, (int)c->tps[i].partition);
                lua_gettable(L, -2);
                if (lua_isnumber(L, -1))
                        c->tps[i].offset = (int64_t)lua_tonumber(L, -1);
                else if (!lua_isnil(L, -1))
                        luaL_error(L, "pre_commit: the offset of %s-%d is a %s, not a number",
                                   c->tps[i].topic, (int)c->tps[i].partition, luaL_typename(L, -1));
                lua_pop(L, 1);
        }
}

int lc_script_pre_commit(lc_script_t *s, lc_topic_partition_t *offsets, size_t n, lc_err_t *err)
{
        struct call c = {.s = s, .tps = offsets, .ntps = n};

        return lc_state_run(s->st, run_pre_commit, &c, err);
}
