/* guard.c - see guard.h. Lock: list.lock. Spec: spec/unit/stuck_spec.lua. */
#include "script/guard.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/thread.h"
#include "script/state.h"
#include "script/traceback.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { STEP_MIN_MS = 5, STEP_MAX_MS = 500 };
enum { WHY = 7, CALL = WHY + 1 }; /* of lc_guard_t.call: the bits of the reason, and one call */
enum {
        STACK_ROOM = 160 * 1024
}; /* of C stack that one call into Lua may nest calls into; threads have more */

static struct {
        pthread_mutex_t lock;
        pthread_cond_t wake;
        lc_state_t *head;
        bool thread; /* there is a watch thread */
        int asleep;  /* atomic: it waits without end */
} list = {.lock = PTHREAD_MUTEX_INITIALIZER};
static pthread_once_t once = PTHREAD_ONCE_INIT;

static _Thread_local struct {
        const void *owner;
        int max_call_ms;
} mine;

void lc_script_owner(const void *owner, int max_call_ms)
{
        mine.owner = owner;
        mine.max_call_ms = max_call_ms;
}

/* ---- the flag ----------------------------------------------------------------------------------- */

static void flag(lc_guard_t *g, bool on)
{
        if (g->slot)
                __atomic_store_n(g->slot, on ? g->yes : g->no, __ATOMIC_SEQ_CST);
}

static uint64_t bits(double d)
{
        uint64_t u;

        memcpy(&u, &d, sizeof(u));
        return u;
}

static void check(lua_State *L, int level);

static int check_function(lua_State *L)
{
        check(L, 1);
        return 0;
}

/* Where t[1] of the table on top of the stack lies: found by what was stored in it, inside the block that the
 * allocator gave for the table, so nothing of LuaJIT's layout is assumed. */
static uint64_t *find_slot(lua_State *L, const lc_state_t *st)
{
        const double first = 1234.5, second = 6789.25;
        uint64_t *block = (uint64_t *)lua_topointer(L, -1);

        if (block != st->last || ((uintptr_t)block & 7))
                return NULL;
        lua_pushnumber(L, first);
        lua_rawseti(L, -2, 1);
        lua_pushnumber(L, second);
        lua_rawseti(L, -2, 2);
        for (size_t i = 0; (i + 2) * sizeof(*block) <= st->last_size; i++)
                if (block[i] == bits(first) && block[i + 1] == bits(second))
                        return &block[i];
        return NULL;
}

static void set_boolean(lua_State *L, bool b)
{
        lua_pushboolean(L, b);
        lua_rawseti(L, -2, 1);
}

static bool reads_as(lua_State *L, bool b)
{
        bool is;

        lua_rawgeti(L, -1, 1);
        is = lua_isboolean(L, -1) && lua_toboolean(L, -1) == b;
        lua_pop(L, 1);
        return is;
}

void lc_guard_prepare(lua_State *L)
{
        lc_state_t *st = lc_state_of(L);
        lc_guard_t *g = &st->guard;
        uint64_t *slot;

        lua_createtable(L, 2, 0);
        lua_createtable(L, 2, 0);
        slot = find_slot(L, st);
        set_boolean(L, true);
        g->yes = slot ? *slot : 0;
        set_boolean(L, false);
        g->no = slot ? *slot : 0;
        if (slot) {
                *slot = g->yes;
                if (reads_as(L, true)) {
                        *slot = g->no;
                        g->slot = reads_as(L, false) ? slot : NULL;
                }
        }
        if (!g->slot) {
                set_boolean(L, false);
                lc_log(LC_WARN, "SCRIPT", "With this LuaJIT endless loops of scripts cannot be ended");
        }
        lua_pushcfunction(L, check_function);
        lua_rawseti(L, -2, 2);
        lua_rawseti(L, -2, 1);
        lua_createtable(L, 1, 0);
        lua_pushnumber(L, 0);
        lua_rawseti(L, -2, 1);
        lua_rawseti(L, -2, 2);
        lua_setfield(L, LUA_REGISTRYINDEX, "connect.guard");
}

/* Why the running call is to end. */
static lc_guard_why_t why_of(const lc_guard_t *g)
{
        return (lc_guard_why_t)(__atomic_load_n(&g->call, __ATOMIC_SEQ_CST) & WHY);
}

/* Ends the call `call`, as it was read, unless it has ended or is to end for another reason: the one that
 * came after it is not meant. */
static void set_why(lc_guard_t *g, uint32_t call, lc_guard_why_t why)
{
        if (!(call & WHY))
                __atomic_compare_exchange_n(&g->call, &call, call | why, false, __ATOMIC_SEQ_CST,
                                            __ATOMIC_SEQ_CST);
}

/* ---- ending a call ------------------------------------------------------------------------------ */

size_t lc_guard_held(const lc_state_t *st)
{
        return st->used + (size_t)st->xch.pinned;
}

static void say(lc_state_t *st, int why)
{
        lc_guard_t *g = &st->guard;

        switch (why) {
        case LC_GUARD_STOP:
                snprintf(g->text, sizeof(g->text),
                         "the script did not return after it was asked to stop: ended");
                break;
        case LC_GUARD_CALL:
                snprintf(g->text, sizeof(g->text), "this call takes longer than %d ms: ended", g->limit_ms);
                break;
        case LC_GUARD_LOAD:
                snprintf(g->text, sizeof(g->text),
                         "this takes longer than %d ms: stopped (no long work while a plugin is loaded or "
                         "validated)",
                         g->limit_ms);
                break;
        default:
                snprintf(g->text, sizeof(g->text),
                         "not enough memory: the script holds %zu bytes (plugin.max.memory is %zu)",
                         lc_guard_held(st), st->limit);
                break;
        }
}

static void again(lua_State *L, lua_Debug *ar);

/* Raises, and sees to it that whatever runs next in this state raises too. The first time it takes the
 * traceback: of the coroutine it is in, and before a pcall has unwound it. */
static void end_now(lua_State *L, int why, int level)
{
        lc_state_t *st = lc_state_of(L);
        lc_guard_t *g = &st->guard;

        lua_sethook(L, again, LUA_MASKCOUNT, 1);
        flag(g, true);
        if (!g->told) {
                g->told = true;
                say(st, why);
                if (st->err) {
                        lc_err_clear(st->err);
                        lc_traceback(L, level, st->err->detail, sizeof(st->err->detail));
                }
        }
        luaL_error(L, "%s", g->text);
}

static void again(lua_State *L, lua_Debug *ar)
{
        lc_guard_why_t why = why_of(&lc_state_of(L)->guard);

        (void)ar;
        if (why)
                end_now(L, why, 0);
}

static bool too_much(const lc_state_t *st, double more)
{
        return st->limit && (double)lc_guard_held(st) + more > (double)(st->limit - st->limit / 16);
}

static void check(lua_State *L, int level)
{
        lc_state_t *st = lc_state_of(L);
        lc_guard_t *g = &st->guard;

        if (g->over && !why_of(g)) {
                lua_gc(L, LUA_GCCOLLECT, 0); /* what it holds may be garbage */
                g->over = false;
                if (too_much(st, 0))
                        set_why(g, __atomic_load_n(&g->call, __ATOMIC_SEQ_CST), LC_GUARD_MEMORY);
        }
        flag(g, false); /* before the look: who sets the reason sets the flag after it */
        if (why_of(g))
                end_now(L, why_of(g), level);
}

void lc_guard_check(lua_State *L)
{
        const lc_guard_t *g = &lc_state_of(L)->guard;

        if (g->over || why_of(g))
                check(L, 0);
}

void lc_guard_late(lua_State *L)
{
        lc_guard_t *g = &lc_state_of(L)->guard;

        set_why(g, __atomic_load_n(&g->call, __ATOMIC_SEQ_CST), LC_GUARD_LOAD);
        end_now(L, why_of(g), 0);
}

void lc_guard_over(lc_state_t *st)
{
        if (st->guard.over || !__atomic_load_n(&st->guard.running, __ATOMIC_RELAXED))
                return;
        st->guard.over = true;
        flag(&st->guard, true);
}

void lc_guard_room(lua_State *L, double bytes)
{
        lc_state_t *st = lc_state_of(L);

        if (!too_much(st, bytes))
                return;
        lua_gc(L, LUA_GCCOLLECT, 0);
        if (too_much(st, bytes))
                luaL_error(L,
                           "not enough memory: the script holds %f bytes and wants %f more "
                           "(plugin.max.memory is %f)",
                           (double)lc_guard_held(st), bytes, (double)st->limit);
}

void lc_guard_stack(lua_State *L)
{
        const char *top = lc_state_of(L)->guard.stack;

        if (top && top - (const char *)__builtin_frame_address(0) > STACK_ROOM)
                luaL_error(L, "stack overflow: calls nested too deep in C functions");
}

void lc_guard_enter(lc_state_t *st, int limit_ms)
{
        lc_guard_t *g = &st->guard;

        __atomic_store_n(&g->call, (g->call & ~(uint32_t)WHY) + CALL, __ATOMIC_SEQ_CST);
        flag(g, false);
        g->told = g->over = false;
        g->stack = __builtin_frame_address(0);
        __atomic_store_n(&g->owner, mine.owner, __ATOMIC_RELAXED);
        limit_ms = limit_ms ? -limit_ms : mine.max_call_ms;
        __atomic_store_n(&g->limit_ms, limit_ms < 0 ? -limit_ms : limit_ms, __ATOMIC_RELAXED);
        g->load = limit_ms < 0;
        if (limit_ms)
                __atomic_store_n(&g->since, lc_now_ms(), __ATOMIC_RELAXED);
        __atomic_store_n(&g->running, 1, __ATOMIC_SEQ_CST);
        if (limit_ms && __atomic_load_n(&list.asleep, __ATOMIC_SEQ_CST)) {
                pthread_mutex_lock(&list.lock);
                pthread_cond_signal(&list.wake);
                pthread_mutex_unlock(&list.lock);
        }
}

bool lc_guard_leave(lc_state_t *st)
{
        lc_guard_t *g = &st->guard;
        bool ended;

        __atomic_store_n(&g->running, 0, __ATOMIC_SEQ_CST);
        ended = g->told;
        if (ended)
                lua_sethook(st->L, NULL, 0, 0);
        flag(g, false);
        return ended;
}

/* ---- all states, and who watches them ------------------------------------------------------------ */

/* With the lock held, so the state and its host are there. call: as read before `running` and the rest. */
static void end_call(lc_state_t *st, uint32_t call, lc_guard_why_t why)
{
        lc_guard_t *g = &st->guard;

        set_why(g, call, why);
        flag(g, true);
        if (st->host && st->host->stop)
                lc_waker_wake(st->host->stop); /* a sleep ends and looks */
}

int lc_script_interrupt(const void *owner)
{
        int n = 0;

        pthread_mutex_lock(&list.lock);
        for (lc_state_t *st = list.head; st; st = st->guard.next) {
                uint32_t call = __atomic_load_n(&st->guard.call, __ATOMIC_SEQ_CST);

                if (!__atomic_load_n(&st->guard.running, __ATOMIC_SEQ_CST) ||
                    __atomic_load_n(&st->guard.owner, __ATOMIC_RELAXED) != owner)
                        continue;
                end_call(st, call, LC_GUARD_STOP);
                n++;
        }
        pthread_mutex_unlock(&list.lock);
        return n;
}

/* Ends what is late. When to look again: ms, -1: nothing runs that has a limit. */
static int look(void)
{
        int64_t now = lc_now_ms(), next = -1;

        for (lc_state_t *st = list.head; st; st = st->guard.next) {
                lc_guard_t *g = &st->guard;
                uint32_t call = __atomic_load_n(&g->call, __ATOMIC_SEQ_CST);
                int64_t left;
                int limit = __atomic_load_n(&g->limit_ms, __ATOMIC_RELAXED);

                if (!__atomic_load_n(&g->running, __ATOMIC_SEQ_CST) || !limit || (call & WHY))
                        continue;
                left = __atomic_load_n(&g->since, __ATOMIC_RELAXED) + limit - now;
                if (left <= 0)
                        end_call(st, call, g->load ? LC_GUARD_LOAD : LC_GUARD_CALL);
                else if (next < 0 || left < next)
                        next = left;
        }
        return next < 0             ? -1
               : next < STEP_MIN_MS ? STEP_MIN_MS
               : next > STEP_MAX_MS ? STEP_MAX_MS
                                    : (int)next;
}

static void *watch(void *arg)
{
        (void)arg;
        pthread_setname_np(pthread_self(), "script-watch");
        pthread_mutex_lock(&list.lock);
        while (list.head) {
                int ms;

                __atomic_store_n(&list.asleep, 1, __ATOMIC_SEQ_CST);
                ms = look();
                if (ms < 0) {
                        pthread_cond_wait(&list.wake, &list.lock);
                } else {
                        int64_t end = lc_now_ms() + ms;

                        __atomic_store_n(&list.asleep, 0, __ATOMIC_SEQ_CST);
                        lc_cond_wait_until(&list.wake, &list.lock, end);
                }
        }
        list.thread = false;
        __atomic_store_n(&list.asleep, 0, __ATOMIC_SEQ_CST);
        pthread_mutex_unlock(&list.lock);
        return NULL;
}

static void init(void)
{

        lc_cond_init(&list.wake);
}

/* With the lock held. */
static void start_watch(void)
{
        int rc;

        rc = lc_thread_start(NULL, 128 * 1024, watch, NULL);
        list.thread = rc == 0;
        if (rc)
                lc_log(LC_ERROR, "SCRIPT", "No thread that watches scripts: %s", strerror(rc));
}

void lc_guard_link(lc_state_t *st)
{
        pthread_once(&once, init);
        pthread_mutex_lock(&list.lock);
        st->guard.next = list.head;
        st->guard.prev = &list.head;
        if (list.head)
                list.head->guard.prev = &st->guard.next;
        list.head = st;
        if (!list.thread)
                start_watch();
        pthread_mutex_unlock(&list.lock);
}

void lc_guard_unlink(lc_state_t *st)
{
        pthread_mutex_lock(&list.lock);
        *st->guard.prev = st->guard.next;
        if (st->guard.next)
                st->guard.next->guard.prev = st->guard.prev;
        if (!list.head)
                pthread_cond_signal(&list.wake);
        pthread_mutex_unlock(&list.lock);
}
