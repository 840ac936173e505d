/*
 * queue.h - a queue of pointers from many threads to one owner, first in first out.
 *
 * Threads:   any thread pushes; the owner pops. One internal mutex, never held while calling out.
 * Ownership: the queue owns nothing it carries; drain it before lc_queue_free().
 * Tests:     spec/unit/base_spec.lua
 */
#ifndef LC_BASE_QUEUE_H
#define LC_BASE_QUEUE_H
#include <stddef.h>

typedef struct lc_queue lc_queue_t;

lc_queue_t *lc_queue_new(void);
void lc_queue_free(lc_queue_t *q);
void lc_queue_push(lc_queue_t *q, void *item);
/* Next item, or NULL after `ms` (0: at once, negative: wait for ever) or lc_queue_wake(). */
void *lc_queue_pop(lc_queue_t *q, int ms);
void lc_queue_wake(lc_queue_t *q); /* makes one pending or next pop return */
size_t lc_queue_len(lc_queue_t *q);

#endif
