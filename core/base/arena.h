/*
 * arena.h - bump allocation freed in one call; the memory of one batch of records.
 *
 * Threads:   one owner.
 * Errors:    NULL when memory is out; the caller reports it.
 * Tests:     spec/unit/base_spec.lua
 */
#ifndef LC_BASE_ARENA_H
#define LC_BASE_ARENA_H
#include <stddef.h>

typedef struct lc_arena_chunk lc_arena_chunk_t;
typedef struct lc_arena {
        lc_arena_chunk_t *head; /* the chunk being filled; older ones behind it */
        char *at, *end;         /* free part of the head chunk */
        size_t total;           /* bytes taken from malloc */
} lc_arena_t;

void lc_arena_init(lc_arena_t *a);
void lc_arena_free(lc_arena_t *a);  /* frees everything; the arena is as after init */
void lc_arena_reset(lc_arena_t *a); /* keeps one chunk for reuse */
void *lc_arena_more(lc_arena_t *a, size_t size, size_t align);

/* `size` bytes aligned to 8. */
static inline void *lc_arena_alloc(lc_arena_t *a, size_t size)
{
        char *p = (char *)(((size_t)a->at + 7) & ~(size_t)7);
        if (a->at && p <= a->end && size <= (size_t)(a->end - p)) {
                a->at = p + size;
                return p;
        }
        return lc_arena_more(a, size, 8);
}
void *lc_arena_dup(lc_arena_t *a, const void *data, size_t n); /* copy, NUL behind it */
char *lc_arena_strdup(lc_arena_t *a, const char *s);
/* Reserve at least `size` unaligned bytes at *room (end of the head chunk) without taking them; then
 * lc_arena_commit() takes what was written. Nothing else may be allocated in between. */
char *lc_arena_room(lc_arena_t *a, size_t size);
void lc_arena_commit(lc_arena_t *a, size_t used);

#endif
