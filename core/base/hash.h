/*
 * hash.h - uthash, which gets its memory from lc_malloc: its own would end the process without a word.
 *
 * Threads: as uthash: one at a time.   Tests: spec/fault/10_memory_spec.lua
 */
#ifndef LC_BASE_HASH_H
#define LC_BASE_HASH_H
#include "base/alloc.h"
#define uthash_malloc(size) lc_malloc(size)
#include <uthash.h>

#endif
