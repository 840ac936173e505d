/*
 * ffi.h - functions made for LuaJIT's FFI (lua/connect/ffi.lua): no lua_State, plain values.
 *
 * Threads:   the script's.   Tests: spec/unit/connect_lua_spec.lua
 */
#ifndef LC_SCRIPT_FFI_H
#define LC_SCRIPT_FFI_H
#include <stddef.h>
#include <stdint.h>
#include "data/record.h"
#include "script/state.h"

enum { LC_FFI_ABI = 3 }; /* raised when a struct or function that lua/connect/ffi.lua repeats changes */

uint32_t lc_ffi_abi(void);
/* Size of a repeated struct by its name, 0 if unknown: a second check against a stale ffi.lua. */
size_t lc_ffi_sizeof(const char *type);
/* Lua's reference of a batch. What gives it back allocates nothing, Lua's memory neither: without memory, too,
 * every batch must go before the consumer that it came from, which would wait for it for ever. */
typedef struct lc_lua_batch {
        lc_batch_t *b;
        uint64_t bytes; /* pinned, once records of it were looked at */
        bool viewed;
} lc_lua_batch_t;
void lc_ffi_batch_borrow(lc_lua_batch_t *h, lc_batch_t *b); /* an empty handle gets a reference of its own */
void lc_ffi_batch_view(lc_lua_batch_t *h, lc_ffi_exchange_t *x);
void lc_ffi_batch_drop(lc_lua_batch_t *h, lc_ffi_exchange_t *x); /* empty ones, too */

#endif
