/*
 * ticket.h - one answer from another thread to one that waits for it, or has stopped waiting.
 *
 * Threads:   any. Counted: the waiter's reference and the answerer's; the answerer's goes with the answer.
 * Lock:      the ticket's own, a leaf.
 * Tests:     spec/unit/exactly_once_spec.lua
 */
#ifndef LC_RUNTIME_TICKET_H
#define LC_RUNTIME_TICKET_H
#include "base/err.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct lc_ticket lc_ticket_t;
lc_ticket_t *lc_ticket_new(void); /* both references */
/* Once; err NULL: fine. */
void lc_ticket_answer(lc_ticket_t *t, const lc_err_t *err);
/* 0 or -1 as answered; 1: quit said so (asked ten times a second) or `end` (monotonic, 0: never) has come. The
 * waiter's reference goes in any case. */
int lc_ticket_wait(lc_ticket_t *t, bool (*quit)(void *arg), void *arg, int64_t end_ms, lc_err_t *err);

#endif
