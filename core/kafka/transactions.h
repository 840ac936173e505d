/*
 * transactions.h - librdkafka's transactions over a producer whose conf has transactional.id: in short steps, so
 * that a stop ends each wait, and with errors by kind.
 *
 * Threads:   the producer's owner. fence: any thread, its producers are its own.
 * Errors:    LC_FENCED: another producer has the id, or the broker gave the transaction up; LC_RETRIABLE: no
 *            answer in time; LC_FATAL else. After a failed commit only abort or destroy help.
 * Source:    worker-tasks 4, reference librdkafka 1.   Tests: spec/unit/exactly_once_spec.lua, spec/kafka
 */
#ifndef LC_KAFKA_TRANSACTIONS_H
#define LC_KAFKA_TRANSACTIONS_H
#include "kafka/producer.h"

typedef bool lc_txn_quit_fn(void *arg); /* true: do not wait any longer */

/* All but begin: 0, -1, or 1 when quit said so. quit may be NULL. */
/* Ends what an earlier producer of this id left open and fences it. Waits up to ms (0: for ever). */
int lc_txn_init(lc_producer_t *p, int ms, lc_txn_quit_fn *quit, void *arg, lc_err_t *err);
int lc_txn_begin(lc_producer_t *p, lc_err_t *err);
/* Waits for the reports of all records, serving them, then commits. ms 0: for ever. */
int lc_txn_commit(lc_producer_t *p, int ms, lc_txn_quit_fn *quit, void *arg, lc_err_t *err);
/* While a transaction is open and its records are taken back (LC_PURGED): *err becomes why, if that is known. */
void lc_txn_reason(lc_producer_t *p, lc_err_t *err);
/* What was sent is given up; reports come from here. */
int lc_txn_abort(lc_producer_t *p, int ms, lc_txn_quit_fn *quit, void *arg, lc_err_t *err);
/* Fence the producers of ids prefix-0 .. prefix-(n-1), several at a time, within ms in all. conf: of an admin
 * or producer client. */
int lc_txn_fence(const lc_props_t *conf, const char *prefix, int n, int ms, lc_txn_quit_fn *quit, void *arg,
                 lc_err_t *err);

#endif
