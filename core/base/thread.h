/*
 * thread.h - threads of the core. Signals are the main thread's: all are blocked in these.
 *
 * Tests:     by those who start one
 */
#ifndef LC_BASE_THREAD_H
#define LC_BASE_THREAD_H
#include <pthread.h>
#include <stddef.h>

/* stack: bytes, 0 the usual size. t NULL: it is detached. 0, or an errno. */
int lc_thread_start(pthread_t *t, size_t stack, void *(*run)(void *), void *arg);

#endif
