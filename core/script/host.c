/*
 * host.c - what lua/connect may ask of the worker, as lua_CFunctions: the module "connect.host" of a state.
 *
 * Threads:   the script's. Ownership: nothing is kept but scratch of the state.
 * Tests:     spec/unit/script_spec.lua
 */
#include "script/state.h"
#include "base/alloc.h"
#include "base/waker.h"
#include "base/log.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLICE_MS = 100 }; /* without a waker the stopping flag is looked at this often */

static int is_stopping(const lc_state_t *st)
{
        return st->host && lc_stopped(st->host->stopping);
}

/* sleep(ms) -> true when the wait ended early: stopping */
static int host_sleep(lua_State *L)
{
        lc_state_t *st = lc_state_of(L);
        lua_Number ms = luaL_checknumber(L, 1);
        int left = ms > 0 ? ms < 1e9 ? (int)ms : 1000000000 : 0;
        bool woken = false;

        if (st->host && st->host->stop) {
                woken = lc_waker_wait(st->host->stop, left);
        } else {
                for (; left > 0 && !is_stopping(st); left -= SLICE_MS) {
                        lc_guard_check(L);
                        nanosleep(
                                &(struct timespec){.tv_nsec = (left < SLICE_MS ? left : SLICE_MS) * 1000000L},
                                NULL);
                }
        }
        lc_guard_check(L);
        lua_pushboolean(L, woken || is_stopping(st));
        return 1;
}

static int host_stopping(lua_State *L)
{
        lua_pushboolean(L, is_stopping(lc_state_of(L)));
        return 1;
}

/* log(level, text): level "error", "warn", "info", "debug" */
static int host_log(lua_State *L)
{
        static const char *const names[] = {"error", "warn", "info", "debug", NULL};
        static const lc_log_level_t levels[] = {LC_ERROR, LC_WARN, LC_INFO, LC_DEBUG};
        int i = luaL_checkoption(L, 1, "info", names);

        lc_log(levels[i], "SCRIPT", "%s", luaL_checkstring(L, 2));
        return 0;
}

static int host_exists(lua_State *L)
{
        lua_pushboolean(L, lc_code_exists(lc_state_of(L)->code, luaL_checkstring(L, 1)));
        return 1;
}

/* load(path, checked) -> chunk. checked: it can be ended (checked.h) */
static int host_load(lua_State *L)
{
        lc_err_t err = {0};

        if (lc_code_push(lc_state_of(L)->code, L, luaL_checkstring(L, 1), lua_toboolean(L, 2), &err) < 0)
                return lc_state_raise(L, &err);
        return 1;
}

/* compile(text, name) -> chunk that can be ended, or nil and what is wrong */
static int host_compile(lua_State *L)
{
        size_t n;
        const char *text = luaL_checklstring(L, 1, &n);

        if (lc_code_load(L, text, n, luaL_optstring(L, 2, text), true) == 0)
                return 1;
        lua_pushnil(L);
        lua_insert(L, -2);
        return 2;
}

/* guard() -> the flag's table and the other one */
static int host_guard(lua_State *L)
{
        lua_getfield(L, LUA_REGISTRYINDEX, "connect.guard");
        lua_rawgeti(L, -1, 1);
        lua_rawgeti(L, -2, 2);
        return 2;
}

/* room(bytes): raises when so much more would be too much */
static int host_room(lua_State *L)
{
        lc_guard_room(L, luaL_checknumber(L, 1));
        return 0;
}

/* stack(): raises when C functions are nested too deep */
static int host_stack(lua_State *L)
{
        lc_guard_stack(L);
        return 0;
}

static const lc_script_host_t *need(lua_State *L, bool there, const char *what)
{
        lc_state_t *st = lc_state_of(L);

        if (!st->host || !there)
                luaL_error(L, "%s is not there for this kind of plugin", what);
        return st->host;
}
#define NEED(L, member, what) need(L, lc_state_of(L)->host &&lc_state_of(L)->host->member, what)

/* offset_get(canonical partition) -> JSON text or nil */
static int host_offset_get(lua_State *L)
{
        const lc_script_host_t *h = NEED(L, offset_get, "ctx.offsets");
        lc_state_t *st = lc_state_of(L);
        const char *partition = luaL_checkstring(L, 1);
        lc_err_t err = {0};
        int rc;

        lc_buf_clear(&st->scratch);
        rc = h->offset_get(h->arg, partition, &st->scratch, &err);
        if (rc < 0)
                return lc_state_raise(L, &err);
        if (rc == 0)
                return 0;
        if (!lc_buf_ok(&st->scratch))
                return luaL_error(L, "out of memory for a stored offset");
        lua_pushlstring(L, st->scratch.p ? st->scratch.p : "", st->scratch.len);
        return 1;
}

static int host_reconfigure(lua_State *L)
{
        const lc_script_host_t *h = NEED(L, reconfigure, "ctx:reconfigure()");

        h->reconfigure(h->arg);
        return 0;
}

/* raise(kind, message, detail or nil): the connector FAILED from outside a call */
static int host_raise(lua_State *L)
{
        static const char *const kinds[] = {"fatal", "retriable", "data_error", NULL};
        static const lc_err_kind_t values[] = {LC_FATAL, LC_RETRIABLE, LC_DATA};
        const lc_script_host_t *h = NEED(L, raise, "ctx:raise()");
        lc_err_t err = {0};

        lc_err_set(&err, values[luaL_checkoption(L, 1, "fatal", kinds)], 0, "%s", luaL_checkstring(L, 2));
        snprintf(err.detail, sizeof(err.detail), "%s", luaL_optstring(L, 3, ""));
        h->raise(h->arg, &err);
        return 0;
}

/* A list of {topic=, partition=, offset=}: pushed as userdata, so that nothing is lost when Lua raises. The
 * topics stay anchored by the list at `idx`. */
static lc_topic_partition_t *to_tps(lua_State *L, int idx, size_t *n)
{
        lc_topic_partition_t *tps;

        luaL_checktype(L, idx, LUA_TTABLE);
        *n = lua_objlen(L, idx);
        tps = lua_newuserdata(L, (*n ? *n : 1) * sizeof(*tps));
        for (size_t i = 0; i < *n; i++) {
                lua_rawgeti(L, idx, (int)i + 1);
                lua_getfield(L, -1, "topic");
                lua_getfield(L, -2, "partition");
                lua_getfield(L, -3, "offset");
                tps[i].topic = luaL_checkstring(L, -3);
                tps[i].partition = (int32_t)luaL_checknumber(L, -2);
                tps[i].offset = lua_isnumber(L, -1) ? (int64_t)lua_tonumber(L, -1) : -1001;
                lua_pop(L, 4);
        }
        return tps;
}

static int host_pause(lua_State *L)
{
        const lc_script_host_t *h = NEED(L, pause, "ctx:pause()");
        lc_err_t err = {0};
        size_t n;
        lc_topic_partition_t *tps = to_tps(L, 1, &n);

        return h->pause(h->arg, tps, n, &err) < 0 ? lc_state_raise(L, &err) : 0;
}

static int host_resume(lua_State *L)
{
        const lc_script_host_t *h = NEED(L, resume, "ctx:resume()");
        lc_err_t err = {0};
        size_t n;
        lc_topic_partition_t *tps = to_tps(L, 1, &n);

        return h->resume(h->arg, tps, n, &err) < 0 ? lc_state_raise(L, &err) : 0;
}

static int host_seek(lua_State *L)
{
        const lc_script_host_t *h = NEED(L, seek, "ctx:seek()");
        size_t n;
        lc_topic_partition_t *tps = to_tps(L, 1, &n);

        for (size_t i = 0; i < n; i++)
                h->seek(h->arg, &tps[i]);
        return 0;
}

static int host_timeout(lua_State *L)
{
        const lc_script_host_t *h = NEED(L, timeout, "ctx:timeout()");

        h->timeout(h->arg, (int64_t)luaL_checknumber(L, 1));
        return 0;
}

static int host_request_commit(lua_State *L)
{
        const lc_script_host_t *h = NEED(L, request_commit, "ctx:request_commit()");

        h->request_commit(h->arg);
        return 0;
}

/* report(kind, message, detail or nil, class or nil): the record at xch.batch, xch.index failed */
static int host_report(lua_State *L)
{
        const lc_script_host_t *h = NEED(L, report, "ctx:report()");
        lc_state_t *st = lc_state_of(L);
        lc_err_t failure = {0}, err = {0};
        bool data = strcmp(luaL_checkstring(L, 1), "retriable") != 0;

        /* whatever its kind: it is reported, so it is about this record */
        lc_err_set_cls(&failure, LC_DATA, 0,
                       lc_state_class(lua_tostring(L, 4), data ? LC_CLS_DATA : LC_CLS_RETRIABLE), "%s",
                       luaL_checkstring(L, 2));
        snprintf(failure.detail, sizeof(failure.detail), "%s", luaL_optstring(L, 3, ""));
        if (!st->xch.batch || st->xch.index >= st->xch.batch->n)
                return luaL_error(L, "ctx:report: there is no such record");
        if (h->report(h->arg, &st->xch.batch->records[st->xch.index], &failure, &err) < 0)
                return lc_state_raise(L, &err);
        return 0;
}

/* transaction(abort, record): record: its place in what this poll returns, from 1; nil: the batch */
static int host_transaction(lua_State *L)
{
        const lc_script_host_t *h = NEED(L, transaction, "ctx.transaction");
        int64_t record = lua_isnoneornil(L, 2) ? -1 : (int64_t)luaL_checknumber(L, 2) - 1;
        lc_err_t err = {0};

        return h->transaction(h->arg, lua_toboolean(L, 1), record, &err) < 0 ? lc_state_raise(L, &err) : 0;
}

static int host_assignment(lua_State *L)
{
        const lc_script_host_t *h = NEED(L, assignment, "ctx:assignment()");
        const lc_topic_partition_t *tps = NULL;
        size_t n = h->assignment(h->arg, &tps);

        lua_createtable(L, (int)n, 0);
        for (size_t i = 0; i < n; i++) {
                lua_createtable(L, 0, 2);
                lua_pushstring(L, tps[i].topic);
                lua_setfield(L, -2, "topic");
                lua_pushinteger(L, tps[i].partition);
                lua_setfield(L, -2, "partition");
                lua_rawseti(L, -2, (int)i + 1);
        }
        return 1;
}

/* error_class(metatable): errors that C raises become instances of it */
static int host_error_class(lua_State *L)
{
        luaL_checktype(L, 1, LUA_TTABLE);
        lua_settop(L, 1);
        lua_setfield(L, LUA_REGISTRYINDEX, "connect.error");
        return 0;
}

/* value_types{null=, array=, map=, float=, bytes=, data=}: the sentinels and metatables encode_value.c looks for */
static int host_value_types(lua_State *L)
{
        luaL_checktype(L, 1, LUA_TTABLE);
        lua_settop(L, 1);
        lua_setfield(L, LUA_REGISTRYINDEX, "connect.types");
        return 0;
}

static const luaL_Reg functions[] = {
        {"sleep", host_sleep},
        {"stopping", host_stopping},
        {"log", host_log},
        {"exists", host_exists},
        {"load", host_load},
        {"compile", host_compile},
        {"guard", host_guard},
        {"room", host_room},
        {"stack", host_stack},
        {"offset_get", host_offset_get},
        {"reconfigure", host_reconfigure},
        {"raise", host_raise},
        {"pause", host_pause},
        {"resume", host_resume},
        {"seek", host_seek},
        {"timeout", host_timeout},
        {"request_commit", host_request_commit},
        {"transaction", host_transaction},
        {"assignment", host_assignment},
        {"report", host_report},
        {"error_class", host_error_class},
        {"value_types", host_value_types},
        {"batch", lc_encode_batch},
        {"canonical", lc_encode_canonical},
        {"chain_value", lc_chain_set_value},
        {"chain_null", lc_chain_set_null},
        {"chain_headers", lc_chain_set_headers},
        {NULL, NULL},
};

void lc_host_push(lua_State *L)
{
        lc_state_t *st = lc_state_of(L);

        lua_newtable(L);
        for (const luaL_Reg *f = functions; f->name; f++) {
                lua_pushcfunction(L, f->func);
                lua_setfield(L, -2, f->name);
        }
        lc_strings_push(L);
        lc_files_push(L);
        if (lc_state_max_files()) {
                lua_pushinteger(L, lc_state_max_files());
                lua_setfield(L, -2, "max_files");
        }
        lua_pushlightuserdata(L, &st->xch);
        lua_setfield(L, -2, "exchange");
        lua_pushstring(L, st->home);
        lua_setfield(L, -2, "home");
        lua_pushstring(L, st->host ? st->host->connector : NULL);
        lua_setfield(L, -2, "connector");
        lua_pushinteger(L, st->host ? st->host->task : -1);
        lua_setfield(L, -2, "task");
        lua_pushboolean(L, st->host && st->host->transaction);
        lua_setfield(L, -2, "has_transaction");
}
