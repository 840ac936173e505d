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

enum { LC_FFI_ABI = 2 }; /* raised when a struct or function that lua/connect/ffi.lua repeats changes */

uint32_t lc_ffi_abi(void);
/* Size of a repeated struct by its name, 0 if unknown: a second check against a stale ffi.lua. */
size_t lc_ffi_sizeof(const char *type);
/* A batch handle of Lua is made and given up; `bytes` is what it pins. */
uint64_t lc_ffi_batch_bytes(const lc_batch_t *b);

#endif
