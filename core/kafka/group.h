/*
 * group.h - membership in Kafka Connect's own group (protocol type "connect"), on our own socket.
 *
 * One thread per worker speaks FindCoordinator, JoinGroup, SyncGroup, Heartbeat, LeaveGroup. Heartbeats go
 * on whatever the herder does. Bytes of metadata and assignment: kafka/wire/connect_protocol.h.
 * Threads:   functions below from the herder's thread; callbacks on the membership thread: they only
 *            push events to the herder's queue (assign() computes, from a snapshot, without blocking).
 * Rule:      after delivering an assignment the member does not join again before the herder said
 *            lc_group_assignment_done() or rebalance.timeout.ms passed, so that the allocation it reports
 *            is the one that runs.
 * Source:    reference group.md.   Tests: spec/unit/group_spec.lua (fixtures, mock),
 * spec/kafka/group_spec.lua
 */
#ifndef LC_KAFKA_GROUP_H
#define LC_KAFKA_GROUP_H
#include "base/buf.h"
#include "config/worker_config.h"

typedef struct lc_group lc_group_t;

/* A set of work: connectors and tasks. task -1 = the connector instance. Sorted by name, then task. */
typedef struct lc_work_item {
        char *connector;
        int32_t task;
} lc_work_item_t;
typedef struct lc_work {
        lc_work_item_t *v;
        size_t n;
} lc_work_t;
void lc_work_add(lc_work_t *w, const char *connector, int32_t task); /* a set: no duplicates, sorted */
void lc_work_remove(lc_work_t *w, const char *connector, int32_t task);
bool lc_work_has(const lc_work_t *w, const char *connector, int32_t task);
void lc_work_copy(lc_work_t *to, const lc_work_t *from);
void lc_work_free(lc_work_t *w);

typedef struct lc_assignment {
        int32_t generation;
        int16_t protocol; /* 0 default (eager), 1 compatible, 2 sessioned */
        int16_t error;    /* 0, 1 CONFIG_MISMATCH */
        char *member_id, *leader, *leader_url;
        bool is_leader;
        int64_t config_offset;
        lc_work_t assigned, revoked; /* v0: assigned is everything; v1, v2: the new work */
        int32_t delay_ms;
} lc_assignment_t;
void lc_assignment_free(lc_assignment_t *a); /* NULL is fine */

typedef struct lc_group_member { /* what the leader sees of each member */
        const char *id, *url;
        int64_t config_offset;
        lc_work_t allocation; /* empty for v0 */
} lc_group_member_t;

typedef struct lc_group_events {
        /* Leader: fill out[i] for members[i] (generation, member_id, protocol, leader and leader_url are set
         * by the caller). `generation` is the one being formed. -1: give everybody CONFIG_MISMATCH. */
        int (*assign)(void *arg, int16_t protocol, int32_t generation, const lc_group_member_t *members,
                      size_t n, lc_assignment_t *out);
        void (*assigned)(void *arg, lc_assignment_t *a); /* ownership goes to the callee */
        /* A rebalance starts. Eager (protocol 0): stop all work, then lc_group_set_state() with an empty
         * allocation; the member joins after that, or when rebalance.timeout.ms passed. */
        void (*preparing)(void *arg, int16_t protocol);
        /* The coordinator was unreachable for heartbeat.interval.ms, or has put this member out of the group
         * (it was silent for longer than its session): others may run its work by now. Stop everything, then
         * lc_group_set_state() with an empty allocation (joining again waits for that as above). Only when
         * there was an assignment. */
        void (*coordinator_lost)(void *arg);
        void (*error)(void *arg, const lc_err_t *err); /* cannot be helped: the worker ends */
        /* What the herder is doing, appended to *out when it was silent too long; may be NULL. */
        void (*stage)(void *arg, lc_buf_t *out);
} lc_group_events_t;

/* url: advertised, ends with "/". Nothing is sent before lc_group_start(). */
lc_group_t *lc_group_new(const lc_worker_config_t *wc, const char *url, const lc_group_events_t *events,
                         void *arg, lc_err_t *err);
/* What the next JoinGroup reports; call whenever either changes. Copies. */
void lc_group_set_state(lc_group_t *g, int64_t config_offset, const lc_work_t *allocation);
int lc_group_start(lc_group_t *g, lc_err_t *err);
void lc_group_rejoin(lc_group_t *g, const char *reason);
/* Every assignment delivered is answered by this once the work runs (or was refused), also one with an error;
 * after an error the member then joins again by itself. */
void lc_group_assignment_done(lc_group_t *g, int32_t generation);
/* The generation of the last assignment delivered, -1 none (also within assign()). Any thread. */
int32_t lc_group_last_generation(const lc_group_t *g);
/* Is it sure that the work of the last assignment is still ours? False from the moment on in which the
 * coordinator may have given it to others: no answer to a heartbeat for session.timeout.ms (a process that
 * was frozen, a cut network), left, put out. While it is false tasks write nothing. Any thread, cheap. */
bool lc_group_may_work(const lc_group_t *g);
void lc_group_tick(lc_group_t *g); /* the herder is alive; silence > rebalance.timeout.ms leaves the group */
/* Leave now and join again after backoff_ms (6.2: config topic could not be read). */
void lc_group_leave(lc_group_t *g, int backoff_ms, const char *reason);
/* LeaveGroup, joins the thread. lc_group_may_work() goes on saying no until lc_group_stop(). */
void lc_group_quit(lc_group_t *g);
void lc_group_stop(lc_group_t *g); /* the same, and frees */

#endif
