/*
 * group_session.h - one member's conversation with the group's coordinator: find, join, sync, heartbeat,
 * leave. Says what each answer means for the member; when to do what is group.c's job.
 *
 * Threads:   the membership thread only.
 * Errors:    the step's result; *err says why for everything but LC_STEP_OK.
 * Tests:     spec/unit/group_spec.lua, spec/kafka/group_spec.lua
 */
#ifndef LC_KAFKA_GROUP_SESSION_H
#define LC_KAFKA_GROUP_SESSION_H
#include "kafka/group.h"
#include "kafka/wire/conn.h"

typedef enum {
        LC_STEP_OK,
        LC_STEP_RETRY,   /* the same again after a backoff */
        LC_STEP_REJOIN,  /* the group is rebalancing, or this member was forgotten: join (again) */
        LC_STEP_LOST,    /* the coordinator moved or cannot be reached: find it */
        LC_STEP_STOPPED, /* the wait was cancelled */
        LC_STEP_FATAL
} lc_step_t;

typedef struct lc_group_session {
        const lc_net_t *net;
        lc_net_t hurried; /* the same with short timeouts; shares everything */
        char *group, *client_id;
        int32_t session_ms, rebalance_ms, heartbeat_ms;
        int16_t newest; /* the newest protocol offered: 2, 1 or 0 */
        lc_conn_wait_t wait;
        lc_conn_t *conn; /* to the coordinator, NULL: unknown */
        char *host;      /* the coordinator last known, for leaving */
        int port, node;
        size_t next_server;
        char *member_id;    /* "" before the broker gave one */
        int32_t generation; /* -1: not a member */
        int16_t protocol;   /* of the generation; before the first one the newest offered */
} lc_group_session_t;

/* What JoinGroup reports and who computes the assignment if this member leads. */
typedef struct lc_group_join {
        const char *url;
        int64_t config_offset;
        const lc_assignment_t *allocation; /* NULL none */
        const lc_group_events_t *events;
        void *arg;
} lc_group_join_t;

void lc_session_init(lc_group_session_t *s, const lc_worker_config_t *wc, const lc_net_t *net,
                     const char *url);
void lc_session_free(lc_group_session_t *s);
/* limit_ms > 0: give up that early. */
lc_step_t lc_session_find(lc_group_session_t *s, int64_t limit_ms, lc_err_t *err);
lc_step_t lc_session_join(lc_group_session_t *s, const lc_group_join_t *join, lc_assignment_t **out,
                          lc_err_t *err);
lc_step_t lc_session_heartbeat(lc_group_session_t *s, int64_t timeout_ms, lc_err_t *err);
void lc_session_leave(lc_group_session_t *s, const char *reason); /* best effort, within 2 s */
void lc_session_drop(lc_group_session_t *s, const char *cause);   /* the coordinator is unknown from now on */
void lc_session_reset(lc_group_session_t *s, bool member_id, const char *cause);

#endif
