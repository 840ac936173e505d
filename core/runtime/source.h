/*
 * source.h - the state of one source task and what its files give each other: source_task.c (records, sends,
 * loop), source_commit.c (offsets of acknowledged records), source_transaction.c (exactly-once: records and
 * offsets in transactions), source_fence.c (what comes before these).
 *
 * Threads:   the task's.
 * Tests:     spec/unit/source_task_spec.lua, spec/unit/exactly_once_spec.lua
 */
#ifndef LC_RUNTIME_SOURCE_H
#define LC_RUNTIME_SOURCE_H
#include "kafka/producer.h"
#include "runtime/source_offsets.h"
#include "runtime/task.h"
#include "runtime/topic_creation.h"
#include "runtime/tracker.h"

enum { LC_SOURCE_HOLD_MS = 100 }; /* while the work may not be ours: until offsets are looked at again */

struct lc_offset_commit;
struct lc_source_txn;

typedef struct lc_source {
        lc_task_t *t;
        lc_props_t *conf;             /* the producer's */
        lc_producer_t *producer;      /* NULL while the source rests */
        struct lc_source_txn *txn;    /* NULL: at least once */
        lc_source_offsets_t *offsets; /* from the start on */
        int64_t last_sent;
        lc_topic_creation_t *creation;
        lc_tracker_t *tracker;
        lc_batch_t *batch;  /* being sent */
        uint32_t at, limit; /* records[at..limit) are left to send */
        uint32_t to;        /* [at..to) of them before a transaction ends; limit if none does */
        bool scattered;     /* the producer may have taken later records before an earlier one */
        bool failed_after; /* `after` happened at records[limit]: the task fails when those before are sent */
        lc_err_t after;
        bool send_failed; /* a delivery failed under tolerance none */
        lc_err_t send_err;
        bool commits_records; /* the script has commit_record */
        lc_record_t **purged; /* taken back from the producer while the work was not ours: to be sent again */
        size_t npurged, at_purged;
        bool unsettled;   /* some were asked back: which, the reports of all that is out will say */
        uint64_t batches; /* how many there were */
        bool closing;
        lc_topics_used_t topics;
        int64_t now; /* of this round */
        int64_t next_commit, commit_deadline;
        struct lc_offset_commit *commit;
        int idle_ms;
        uint64_t undelivered; /* records that failed since the last line about them */
        int64_t undelivered_said;
} lc_source_t;

static inline size_t lc_source_outstanding(const lc_source_t *s)
{
        return s->producer ? lc_producer_outstanding(s->producer) : 0;
}

/* source_task.c */
void lc_source_serve_reports(lc_source_t *s, int ms);
/* The script's. `to` NULL: it was not sent. */
void lc_source_commit_record(lc_source_t *s, lc_record_t *r, const lc_delivery_t *to);

/* source_commit.c */
void lc_source_tend_offsets(lc_source_t *s); /* harvest; commit when it is time */
void lc_source_commit_now(lc_source_t *s, int64_t end);
void lc_source_final_commit(lc_source_t *s);
void lc_source_committed(lc_source_t *s); /* the script's commit */
/* What is acknowledged becomes committable. -1: an offset cannot be written as JSON; the log says so. */
int lc_source_harvest(lc_source_t *s, lc_err_t *err);
void lc_source_abandon_commit(lc_source_t *s);

/* source_fence.c: before the producer begins. 0, 1 stopped meanwhile, -1. */
int lc_source_fence(lc_task_t *t, lc_err_t *err);
int lc_source_verify(lc_task_t *t, lc_err_t *err);

/* source_transaction.c. -1: the task fails. */
int lc_source_txn_new(lc_source_t *s, lc_err_t *err);
void lc_source_txn_free(lc_source_t *s);
/* Fencing, the producer, the check that the task is still wanted. 1: stopped meanwhile. */
int lc_source_txn_start(lc_source_t *s, lc_err_t *err);
void lc_source_txn_enter(lc_source_t *s); /* the loop begins, or goes on after a pause */
void lc_source_txn_before_poll(
        lc_source_t *s); /* what the script asks for from here on is of the next batch */
uint32_t lc_source_txn_section(const lc_source_t *s); /* the end of what may be sent before one ends */
void lc_source_txn_await_topic(lc_source_t *s, const char *topic);
int lc_source_txn_begin(lc_source_t *s, lc_err_t *err);
/* Offsets are written for records that are not sent yet: no end of the transaction before they are. */
bool lc_source_txn_amid(const lc_source_t *s);
void lc_source_txn_sent(lc_source_t *s, uint32_t from, uint32_t to);
void lc_source_txn_passed(lc_source_t *s, uint32_t from, uint32_t to); /* the dropped ones among them */
void lc_source_txn_report(lc_source_t *s, lc_record_t *r, const lc_err_t *err, const lc_delivery_t *to);
int lc_source_txn_section_done(lc_source_t *s, lc_err_t *err); /* at == to */
int lc_source_txn_batch_done(lc_source_t *s, lc_err_t *err);   /* also of a poll without records */
int lc_source_txn_tend(lc_source_t *s, lc_err_t *err);         /* while there is nothing to send */
int lc_source_txn_final(lc_source_t *s, lc_err_t *err);        /* stop, pause */
void lc_source_txn_settle(lc_source_t *s); /* the task has failed: the letter that says why is on its way */
/* A record that cannot be sent, or a delivery that failed: the task's error. */
int lc_source_txn_failed(lc_source_t *s, const lc_err_t *cause, lc_err_t *err);
bool lc_source_txn_broken(const lc_source_t *s); /* a delivery has failed: no commit can succeed */
int lc_source_txn_broke(lc_source_t *s, lc_err_t *err);
bool lc_source_txn_forbids(const lc_source_t *s, const char *topic);

#endif
