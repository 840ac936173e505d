/*
 * waker.h - an interruptible wait: a sticky wake-up that is also a descriptor for poll(2).
 *
 * Threads:   any thread wakes; one thread waits.
 * Tests:     spec/unit/base_spec.lua
 */
#ifndef LC_BASE_WAKER_H
#define LC_BASE_WAKER_H
#include <stdbool.h>

typedef struct lc_waker {
        int fd; /* eventfd: readable while woken */
} lc_waker_t;

int lc_waker_init(lc_waker_t *w); /* 0, or -1 with errno */
void lc_waker_close(lc_waker_t *w);
void lc_waker_wake(lc_waker_t *w);  /* async-signal-safe */
void lc_waker_clear(lc_waker_t *w); /* forget wake-ups so far */
/* Wait up to `ms` (negative: for ever). true = woken (stays woken until lc_waker_clear). */
bool lc_waker_wait(lc_waker_t *w, int ms);
/* Wait until `fd` is readable, the waker is woken, or `ms` passed. 1 readable, 0 otherwise. */
int lc_waker_wait_fd(lc_waker_t *w, int fd, int ms);

/* A stop flag that another thread or a signal sets: every wait looks at it after a wake-up. NULL: never. */
static inline bool lc_stopped(const volatile int *flag)
{
        return flag && __atomic_load_n(flag, __ATOMIC_ACQUIRE) != 0;
}

#endif
