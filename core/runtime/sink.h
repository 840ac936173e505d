/*
 * sink.h - the state of one sink task and what its three files give each other: sink_task.c (records, put,
 * loop), sink_commit.c (offsets), sink_owned.c (partitions, pauses, rebalances, held batches).
 *
 * Threads:   the task's.
 * Tests:     spec/unit/sink_task_spec.lua
 */
#ifndef LC_RUNTIME_SINK_H
#define LC_RUNTIME_SINK_H
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
        lc_err_t put_err;       /* first record failure beyond the tolerance in a put */
} lc_sink_t;

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

/* sink_commit.c */
/* Offsets of the given partitions (asked[].offset = current). closing: wait for the broker's answer. */
void lc_sink_commit(lc_sink_t *s, const lc_topic_partition_t *asked, size_t n, bool closing);
void lc_sink_commit_all(lc_sink_t *s, bool closing);
void lc_sink_commit_done(lc_sink_t *s, uint64_t seq, const lc_err_t *err);
void lc_sink_forget_sent(lc_sink_t *s);
void lc_sink_apply_rewinds(lc_sink_t *s);

#endif
