/*
 * pool.h - a small pool of threads for code that may take long: connectors, validation.
 *
 * A strand is a queue whose jobs run one at a time and in order; strands run side by side. A job that runs
 * longer than `late_ms` no longer counts, so others go on in a new thread (up to `cap` threads in all).
 * One idle thread at least keeps the time while anything runs or waits.
 *
 * Threads:   any calls; jobs run on pool threads, jobs dropped by close or free on the caller's thread.
 * Ownership: every job is called until it says it is done, or once with dropped = true: never both.
 * Lock:      one mutex, never held while a job runs.
 * Tests:     spec/unit/worker_spec.lua
 */
#ifndef LC_RUNTIME_POOL_H
#define LC_RUNTIME_POOL_H
#include <stdbool.h>

typedef struct lc_pool lc_pool_t;
typedef struct lc_strand lc_strand_t;
/* -1: done; else run it again after that many ms (the strand waits with it). */
typedef int lc_job_fn(void *arg, bool dropped);

lc_pool_t *lc_pool_new(int size, int late_ms, int cap);
/* Drops what is queued, waits up to `ms` for what runs. Jobs that still run then keep the pool's memory. */
void lc_pool_free(lc_pool_t *p, int ms);
/* One job beside all others. */
void lc_pool_push(lc_pool_t *p, lc_job_fn *fn, void *arg);
lc_strand_t *lc_strand_new(lc_pool_t *p);
void lc_strand_push(lc_strand_t *s, lc_job_fn *fn, void *arg);
void lc_strand_kick(lc_strand_t *s); /* a job that waits runs now */
/* Drops what is queued or waits; the strand is freed when a running job has returned. */
void lc_strand_close(lc_strand_t *s);

#endif
