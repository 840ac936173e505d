/*
 * guard.h - ends scripts that do not return or hold too much memory. Internal to script/.
 *
 * Code of plugins is compiled with a test of a flag at every loop, every function's start and every goto
 * (checked.h); so is every few thousand steps of our string functions. The flag is one slot of a Lua table,
 * which the machine code of a loop reads too: LuaJIT's hooks are not seen there. Who sets it: the watch
 * thread when a call takes longer than it may, lc_script_interrupt() when a stop is overdue, the allocator
 * when the state holds more than plugin.max.memory. Then the script's own thread raises a Lua error, again
 * and again until the outermost call has returned, so that no pcall swallows it.
 *
 * Threads:   enter, leave, check: the script's. The flag's slot and `call` are set by any, atomically.
 * Lock:      the list of all states has one (guard.c), a leaf.
 * Tests:     spec/unit/stuck_spec.lua
 */
#ifndef LC_SCRIPT_GUARD_H
#define LC_SCRIPT_GUARD_H
#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lc_state;
typedef enum { LC_GUARD_NONE, LC_GUARD_STOP, LC_GUARD_CALL, LC_GUARD_LOAD, LC_GUARD_MEMORY } lc_guard_why_t;

typedef struct lc_guard {
        uint64_t *slot;   /* the flag, in a table that the registry holds; NULL: not found in this LuaJIT */
        uint64_t yes, no; /* its values */
        uint32_t call; /* atomic: number of the outermost call, above, and lc_guard_why_t in the low bits */
        int running;   /* atomic */
        int64_t since; /* atomic: when the running call began, lc_now_ms() */
        int limit_ms;  /* atomic: of the running call, 0: none */
        bool load;     /* the limit is that of the load phase */
        const void *owner; /* atomic: lc_script_owner() of the running call's thread */
        bool told;         /* the traceback was taken */
        bool over;         /* more memory than allowed, as far as the allocator knows */
        char *stack;       /* where the call's C stack began */
        char text[200];
        struct lc_state *next, **prev; /* all states */
} lc_guard_t;

/* The flag's table and the one beside it, registry "connect.guard" = {flag table, other}. Runs protected. */
void lc_guard_prepare(lua_State *L);
void lc_guard_link(struct lc_state *st);
void lc_guard_unlink(struct lc_state *st);
/* Around the outermost call. limit_ms 0: the thread's (lc_script_owner). leave: was it ended? */
void lc_guard_enter(struct lc_state *st, int limit_ms);
bool lc_guard_leave(struct lc_state *st);
/* From the hook of the load phase: its time is over. Raises. */
void lc_guard_late(lua_State *L);
/* From the allocator: look at the memory soon. */
void lc_guard_over(struct lc_state *st);
/* Raises when the call is to end. For C code that takes long, every few thousand steps. */
void lc_guard_check(lua_State *L);
/* Raises when `bytes` more would be too much. */
void lc_guard_room(lua_State *L, double bytes);
/* Raises when little of the C stack is left: before C calls back into Lua. */
void lc_guard_stack(lua_State *L);
/* Bytes that count: the Lua heap and batches that views hold. */
size_t lc_guard_held(const struct lc_state *st);

#endif
