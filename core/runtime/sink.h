/*
 * sink.h - the state of one sink task and what its files give each other: sink_task.c (records, put, loop),
 * sink_commit.c (offsets), sink_owned.c (partitions, pauses, rebalances, held batches), sink_letters.c (what
 * put reports, dead letters, the breaker).
 *
 * Threads:   the task's.
 * Tests:     spec/unit/sink_task_spec.lua
 */
#ifndef LC_RUNTIME_SINK_H
#define LC_RUNTIME_SINK_H
#include "runtime/breaker.h"
#include "runtime/sink_parts.h"
#include "runtime/task.h"

typedef struct lc_sink {
        lc_task_t *t;
        lc_consumer_t *consumer;
        lc_sink_parts_t parts;
        lc_strv_t topics;
        char *regex;
        uint32_t max_records;
        lc_batch_t *batch; /* converted, not yet accepted by put */
        lc_batch_t *empty; /* what put gets when there is nothing */
        lc_topics_used_t used;
        bool paused;     /* by the target state; told in the status */
        bool redelivery; /* put asked for the same batch again: all partitions paused */
        bool choked;     /* too many dead letters are out: all partitions paused */
        int retry_ms;
        int64_t now;
        int64_t timeout_ms; /* context.timeout, one shot; -1 none */
        bool commit_requested;
        bool committing;
        int64_t next_commit, commit_started;
        uint64_t commit_seq;
        lc_topic_partition_t *sent; /* offsets of the commit that is out; topics are copies */
        size_t nsent;
        bool rewinds;                     /* some part has one */
        lc_topic_partition_t *assignment; /* what the script saw last */
        lc_batch_t **held;                /* fetched, but paused before they were delivered; in order */
        size_t nheld;
        bool repause;           /* pauses to be set again after an assignment */
        bool left;              /* the loop has ended: callbacks of the close are ignored */
        lc_err_t rebalance_err; /* of a callback, thrown after the poll */
        lc_err_t put_err;       /* first record failure beyond the tolerance that the script reported */
        lc_err_t put_retry;     /* a failure of put that is retriable: the batch comes again */
        lc_breaker_t breaker;
        uint32_t batch_all, batch_bad; /* records of the batch in hand: fetched; failed before put */
        int64_t tripped_until;         /* the breaker has tripped: nothing is put before; 0 it has not */
        bool tripped;                  /* and since then no batch has gone well */
        int tripped_ms;
} lc_sink_t;

/* Records that are fetched meanwhile wait. */
static inline bool lc_sink_held_back(const lc_sink_t *s)
{
        return s->paused || s->redelivery || s->choked;
}

/* sink_owned.c */
extern const lc_consumer_events_t lc_sink_events;
void lc_sink_fill_host(lc_script_host_t *host);
bool lc_sink_in_list(const lc_topic_partition_t *tps, size_t n, const char *topic, int32_t partition);
bool lc_sink_not_user_paused(const lc_sink_part_t *p);
bool lc_sink_any_user_paused(const lc_sink_t *s);
void lc_sink_set_paused(lc_sink_t *s, bool on, bool (*which)(const lc_sink_part_t *part)); /* NULL: all */
void lc_sink_apply_pauses(lc_sink_t *s); /* after an assignment */
void lc_sink_close_parts(lc_sink_t *s, const lc_topic_partition_t *tps, size_t n);
/* A fetched batch that may not be delivered now. Takes it. */
void lc_sink_hold(lc_sink_t *s, lc_batch_t *b);
/* Fetched records of these partitions are not wanted any more. */
void lc_sink_drop_held(lc_sink_t *s, const lc_topic_partition_t *tps, size_t n);
/* What may be delivered now: of what is held, else of what was just fetched. Takes `fetched` (or NULL). */
lc_batch_t *lc_sink_next_batch(lc_sink_t *s, lc_batch_t *fetched);

/* sink_letters.c */
/* After a put that went well. true: the breaker has tripped, and the batch will be read again. */
bool lc_sink_judge(lc_sink_t *s, uint32_t failed);
/* Is the time of the breaker over? Then partitions go on. */
bool lc_sink_may_put(lc_sink_t *s);
/* Reads no further while too many letters are out. -1: one could not be written. */
int lc_sink_tend_letters(lc_sink_t *s, lc_err_t *err);
/* What failed is written now, before offsets are committed for the last time. */
void lc_sink_settle(lc_sink_t *s);
/* ctx:report(): -1 with the failure beyond the tolerance. */
int lc_sink_report(void *arg, lc_record_t *record, const lc_err_t *failure, lc_err_t *err);
void lc_sink_on_failed(void *arg, uint32_t index, const lc_err_t *cause); /* a failure that put returned */

/* sink_commit.c */
/* Offsets of the given partitions (asked[].offset = current). closing: wait for the broker's answer. */
void lc_sink_commit(lc_sink_t *s, const lc_topic_partition_t *asked, size_t n, bool closing);
void lc_sink_commit_all(lc_sink_t *s, bool closing);
void lc_sink_commit_done(lc_sink_t *s, uint64_t seq, const lc_err_t *err);
void lc_sink_forget_sent(lc_sink_t *s);
void lc_sink_apply_rewinds(lc_sink_t *s);

#endif
