/*
 * letters.h - the dead letter queue of a task: a reporter that keeps the failed record as it was read, and a
 * producer of its own that writes it to another topic (errors.md 6).
 *
 * A letter is made when the operator reports (its bytes are copied), waits until lc_letters_send(), and is
 * gone once Kafka has acknowledged it. Until then its record's offset must not be committed. A letter that
 * cannot be written stays, and lc_letters_check() fails: nothing is lost.
 * Threads:   the task's.
 * Ownership: the operator owns it as one of its reporters. NULL is fine everywhere: no queue.
 * Source:    errors.md 6; sources: docs/differences.md.   Tests: spec/unit/letters_spec.lua, spec/kafka/dlq_spec.lua
 */
#ifndef LC_RUNTIME_LETTERS_H
#define LC_RUNTIME_LETTERS_H
#include "base/waker.h"
#include "config/worker_config.h"
#include "runtime/operator.h"

typedef struct lc_letters lc_letters_t;

/* The queue that a resolved config names; *out NULL: none. The waker is woken by acknowledgements. */
int lc_letters_new(const lc_worker_config_t *wc, const char *connector, int task, bool sink,
                   const lc_props_t *config, lc_waker_t *waker, lc_letters_t **out, lc_err_t *err);
lc_reporter_t *lc_letters_reporter(lc_letters_t *l); /* for lc_operator_add(), which then owns it */
/* The topic exists and the producer works when this returns 0. LC_RETRIABLE: the cluster did not answer. */
int lc_letters_open(lc_letters_t *l, lc_err_t *err);

void lc_letters_send(lc_letters_t *l);  /* what was made since; never waits */
void lc_letters_serve(lc_letters_t *l); /* acknowledgements that are here */
/* Made and not acknowledged. */
size_t lc_letters_pending(const lc_letters_t *l);
/* Send, and wait for acknowledgements until the monotonic time. true: none is pending. */
bool lc_letters_wait(lc_letters_t *l, int64_t end_ms);
int lc_letters_check(const lc_letters_t *l, lc_err_t *err); /* -1: one could not be written */
/* The lowest offset of this partition with a pending letter, INT64_MAX without. */
int64_t lc_letters_lowest(const lc_letters_t *l, const char *topic, int32_t partition);
/* Not sent after all: failures of put about records of this batch, which comes again; `all`: every one. */
void lc_letters_drop(lc_letters_t *l, const lc_batch_t *of, bool all);
/* The work may not be ours: what is not on its way is taken back, to be sent by the next lc_letters_send(). */
void lc_letters_hold(lc_letters_t *l);
/* Attempts, and those that failed (metrics, errors.md 8). */
void lc_letters_counts(const lc_letters_t *l, uint64_t *requests, uint64_t *failures);

#endif
