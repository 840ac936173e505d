/*
 * cond.h - condition variables whose waits end at a time of lc_now_ms(), whatever is done to the wall clock.
 *
 * Threads:   as pthread's.   Tests: spec/unit/base_spec.lua (by queue.c)
 */
#ifndef LC_BASE_COND_H
#define LC_BASE_COND_H
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

void lc_cond_init(pthread_cond_t *c); /* pthread_cond_destroy ends it */
/* false: the time is over. */
bool lc_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *m, int64_t end_ms);

#endif
