/* transactions.c - see transactions.h. The owner's thread, no state. */
#include "kafka/transactions.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "kafka/conf.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
        SLICE_MS = 500,     /* the longest call that nobody can end */
        SERVE_MS = 2,       /* reports come in bursts: a commit waits for them */
        FENCE_AT_ONCE = 16, /* a producer costs three threads while it lasts */
        FENCE_SLICE_MS = 20,
        DRAIN_MS = 10000
};

typedef struct patience {
        int64_t end; /* 0: for ever */
        lc_txn_quit_fn *quit;
        void *arg;
} patience_t;

static patience_t patience(int ms, lc_txn_quit_fn *quit, void *arg)
{
        return (patience_t){ms > 0 ? lc_now_ms() + ms : 0, quit, arg};
}

static bool quits(const patience_t *p)
{
        return p->quit && p->quit(p->arg);
}

static int left(const patience_t *p, int most)
{
        int64_t ms = p->end ? p->end - lc_now_ms() : most;

        return ms > most ? most : ms > 0 ? (int)ms : 0;
}

/* What the call said becomes err, e is freed. Returns -1. */
static int failed(rd_kafka_t *rk, rd_kafka_error_t *e, const char *what, lc_err_t *err)
{
        bool retriable = rd_kafka_error_is_retriable(e) && !rd_kafka_error_is_fatal(e);
        lc_err_t why;

        lc_err_clear(&why);
        lc_kafka_err_set(&why, rk, rd_kafka_error_code(e), rd_kafka_error_string(e), "%s", what);
        if (why.kind != LC_FENCED)
                why.kind = retriable ? LC_RETRIABLE : LC_FATAL;
        rd_kafka_error_destroy(e);
        if (err && !err->kind)
                *err = why;
        return -1;
}

/* One of librdkafka's resumable calls until it is through. */
static int through(lc_producer_t *p, rd_kafka_error_t *(*call)(rd_kafka_t *rk, int ms), const patience_t *pt,
                   const char *what, lc_err_t *err)
{
        rd_kafka_t *rk = lc_producer_handle(p);

        for (;;) {
                int ms = left(pt, SLICE_MS);
                rd_kafka_error_t *e = call(rk, ms > 0 ? ms : 1);

                lc_producer_poll(p, 0);
                if (!e)
                        return 0;
                if (!rd_kafka_error_is_retriable(e) || rd_kafka_error_is_fatal(e) ||
                    rd_kafka_error_txn_requires_abort(e))
                        return failed(rk, e, what, err);
                if (quits(pt)) {
                        rd_kafka_error_destroy(e);
                        return 1;
                }
                if (pt->end && lc_now_ms() >= pt->end)
                        return failed(rk, e, what, err);
                if (rd_kafka_error_code(e) != RD_KAFKA_RESP_ERR__TIMED_OUT) /* it came back at once */
                        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
                rd_kafka_error_destroy(e);
        }
}

/* Java's words for what a person has to put right. */
static void name_refusal(lc_err_t *err)
{
        if (err->code == RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT) {
                lc_err_clear(err);
                lc_err_set_cls(
                        err, LC_FATAL, RD_KAFKA_RESP_ERR_INVALID_TRANSACTION_TIMEOUT,
                        "org.apache.kafka.common.KafkaException",
                        "Unexpected error in InitProducerIdResponse; The transaction timeout is larger "
                        "than the maximum value allowed by the broker (as configured by "
                        "transaction.max.timeout.ms).");
        } else if (err->code == RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED) {
                lc_err_clear(err);
                lc_err_set_cls(err, LC_FATAL, RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                               lc_kafka_err_cls(RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
                               "Transactional Id authorization failed.");
        }
}

int lc_txn_init(lc_producer_t *p, int ms, lc_txn_quit_fn *quit, void *arg, lc_err_t *err)
{
        patience_t pt = patience(ms, quit, arg);
        lc_err_t why;
        int rc;

        lc_err_clear(&why);
        rc = through(p, rd_kafka_init_transactions, &pt, "Cannot initialize transactions", &why);
        if (rc < 0) {
                name_refusal(&why);
                if (err && !err->kind)
                        *err = why;
        }
        return rc;
}

int lc_txn_begin(lc_producer_t *p, lc_err_t *err)
{
        rd_kafka_t *rk = lc_producer_handle(p);
        rd_kafka_error_t *e = rd_kafka_begin_transaction(rk);

        return e ? failed(rk, e, "Cannot begin a transaction", err) : 0;
}

/* Why the open transaction can only be aborted; NULL: it can go on. */
static rd_kafka_error_t *abort_reason(rd_kafka_t *rk)
{
        /* valid in no state that an open transaction can have: says why, and changes nothing */
        rd_kafka_error_t *e = rd_kafka_begin_transaction(rk);

        if (e && !rd_kafka_error_txn_requires_abort(e)) {
                rd_kafka_error_destroy(e);
                e = NULL;
        }
        return e;
}

void lc_txn_reason(lc_producer_t *p, lc_err_t *err)
{
        rd_kafka_t *rk = lc_producer_handle(p);
        rd_kafka_error_t *e = abort_reason(rk);

        if (!e)
                return;
        lc_err_clear(err);
        failed(rk, e, "The transaction cannot go on", err);
}

/* A plain flush never sees reports that nobody serves; a short one ends the linger. */
static int drain(lc_producer_t *p, const patience_t *pt, lc_err_t *err)
{
        rd_kafka_t *rk = lc_producer_handle(p);
        char text[256];

        while (lc_producer_outstanding(p)) {
                rd_kafka_resp_err_t fatal;

                if (lc_producer_lingers(p))
                        rd_kafka_flush(rk, 1);
                lc_producer_poll(p, SERVE_MS);
                if (quits(pt))
                        return 1;
                fatal = rd_kafka_fatal_error(rk, text, sizeof(text));
                if (fatal)
                        return lc_kafka_err_set(err, rk, fatal, text, "Cannot commit the transaction");
                if (pt->end && lc_now_ms() >= pt->end)
                        return lc_err_set_cls(err, LC_RETRIABLE, RD_KAFKA_RESP_ERR__TIMED_OUT,
                                              lc_kafka_err_cls(RD_KAFKA_RESP_ERR__TIMED_OUT),
                                              "%zu records of the transaction are not acknowledged yet",
                                              lc_producer_outstanding(p));
        }
        return 0;
}

int lc_txn_commit(lc_producer_t *p, int ms, lc_txn_quit_fn *quit, void *arg, lc_err_t *err)
{
        patience_t pt = patience(ms, quit, arg);
        int rc = drain(p, &pt, err);

        return rc ? rc : through(p, rd_kafka_commit_transaction, &pt, "Cannot commit the transaction", err);
}

int lc_txn_abort(lc_producer_t *p, int ms, lc_txn_quit_fn *quit, void *arg, lc_err_t *err)
{
        patience_t pt = patience(ms, quit, arg),
                   first = patience(ms && ms / 2 < DRAIN_MS ? ms / 2 : DRAIN_MS, quit, arg);
        rd_kafka_t *rk = lc_producer_handle(p);
        rd_kafka_error_t *e = abort_reason(rk);
        lc_err_t why;
        int rc;

        /* What is purged before its partition was added to the transaction leaves librdkafka (2.0.2) believing
         * in a transaction that the broker does not know, which ends the producer: let it arrive. After a failed
         * delivery it does not: nothing is sent any more, nor given back before the abort. */
        lc_err_clear(&why);
        if (e)
                rd_kafka_error_destroy(e);
        else
                drain(p, &first, &why);
        rd_kafka_purge(rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        while (lc_producer_outstanding(p) && !rd_kafka_fatal_error(rk, NULL, 0)) {
                if (quits(&pt) || (pt.end && lc_now_ms() >= pt.end))
                        break;
                rd_kafka_flush(rk, 1);
                lc_producer_poll(p, SERVE_MS);
        }
        rc = through(p, rd_kafka_abort_transaction, &pt, "Cannot abort the transaction", err);
        lc_producer_poll(p, 0);
        return rc;
}

/* ---- fencing ---- */

typedef struct fencer {
        lc_kafka_client_t *client; /* NULL: free */
        int id;
} fencer_t;

static int open_fencer(fencer_t *f, const lc_props_t *conf, const char *prefix, int id, lc_err_t *err)
{
        lc_props_t *own = lc_props_copy(conf);
        char *name = lc_asprintf("%s-%d", prefix, id);

        lc_props_set(own, "transactional.id", name);
        lc_props_set(own, "enable.idempotence", "true");
        f->client = lc_kafka_open(RD_KAFKA_PRODUCER, own, NULL, 0, err);
        f->id = id;
        lc_props_free(own);
        free(name);
        return f->client ? 0 : -1;
}

/* 1 fenced, 0 not yet, -1. */
static int serve_fencer(fencer_t *f, const char *prefix, const patience_t *pt, lc_err_t *err)
{
        rd_kafka_error_t *e = rd_kafka_init_transactions(f->client->rk, FENCE_SLICE_MS);
        char what[256];
        int rc = 0;

        snprintf(what, sizeof(what), "Cannot fence the producer with the transactional id %.160s-%d", prefix,
                 f->id);
        if (!e)
                rc = 1;
        else if (!rd_kafka_error_is_retriable(e) || rd_kafka_error_is_fatal(e) ||
                 (pt->end && lc_now_ms() >= pt->end))
                rc = failed(f->client->rk, e, what, err);
        else
                rd_kafka_error_destroy(e);
        if (rc) {
                lc_kafka_close(f->client);
                f->client = NULL;
        }
        return rc;
}

int lc_txn_fence(const lc_props_t *conf, const char *prefix, int n, int ms, lc_txn_quit_fn *quit, void *arg,
                 lc_err_t *err)
{
        patience_t pt = patience(ms, quit, arg);
        fencer_t at_work[FENCE_AT_ONCE] = {0};
        int next = 0, done = 0, rc = 0;

        while (done < n && rc >= 0) {
                if (quits(&pt)) {
                        rc = 1;
                        break;
                }
                for (int i = 0; i < FENCE_AT_ONCE && rc >= 0; i++) {
                        fencer_t *f = &at_work[i];

                        if (!f->client && next < n)
                                rc = open_fencer(f, conf, prefix, next++, err);
                        if (f->client && rc >= 0) {
                                rc = serve_fencer(f, prefix, &pt, err);
                                done += rc > 0;
                        }
                }
        }
        for (int i = 0; i < FENCE_AT_ONCE; i++)
                lc_kafka_close(at_work[i].client);
        return rc < 0 ? -1 : done == n ? 0 : 1;
}
