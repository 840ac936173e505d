/*
 * alloc.h - allocation that either succeeds or ends the process with a message.
 *
 * For bookkeeping whose size the program decides. Memory whose size records or users decide comes
 * from arena.h or plain malloc, is checked, and its failure is an lc_err_t.
 * Threads: any.   Tests: spec/unit/base_spec.lua
 */
#ifndef LC_BASE_ALLOC_H
#define LC_BASE_ALLOC_H
#include <stddef.h>

void *lc_malloc(size_t size);
void *lc_calloc(size_t count, size_t size);
void *lc_realloc(void *old, size_t size);
char *lc_strdup(const char *s); /* NULL gives NULL */
char *lc_strndup(const char *s, size_t n);
char *lc_strtrim(const char *s); /* a copy without blanks and control characters around: Java's trim() */
char *lc_asprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void lc_no_memory(void); /* what these do when there is none: a message, then abort() */
void lc_alloc_trim(void); /* free pages go back to the system, where the allocator can; some milliseconds */

/* A broken invariant ends the process with file and line, in release builds too. Never for input. */
_Noreturn void lc_assert_failed(const char *what, const char *file, int line);
#define lc_assert(x) ((x) ? (void)0 : lc_assert_failed(#x, __FILE__, __LINE__))

#endif
