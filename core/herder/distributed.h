/*
 * distributed.h - what the files of the distributed herder share. Included by distributed*.c only.
 *
 * Threads:   T owns everything here but the fields under assign_lock, which the membership thread needs to
 *            compute an assignment (distributed_work.c: on_assign).
 * Locks:     assign_lock; inside it h->config_lock, the assignor's own and that of members.
 */
#ifndef LC_HERDER_DISTRIBUTED_H
#define LC_HERDER_DISTRIBUTED_H
#include "herder/assignor.h"
#include "herder/internal.h"
#include "herder/members.h"
#include "kafka/group.h"
#include "storage/kafka_stores.h"

enum { LC_STATUS_FLUSH_MS = 5000, LC_BACKOFF_RETRIES = 5 };

typedef struct lc_restart_order {
        char *name;
        bool only_failed, include_tasks;
        struct lc_restart_order *next;
} lc_restart_order_t;

typedef struct lc_fencing lc_fencing_t;

typedef struct lc_distributed {
        lc_herder_t base;
        lc_kafka_stores_t stores;
        lc_group_t *group;

        pthread_mutex_t assign_lock;
        lc_assignor_t *assignor;
        lc_members_t *members;  /* locks itself */
        bool check_members;     /* T's: an answer came, is work where it can run? */
        lc_fencing_t *fencings; /* T's, of the leader */
        bool fenced;            /* a write as the leader failed: claim the config topic again */
        int64_t claim_at;
        int32_t claimed; /* the generation of the group in which it was claimed last */

        /* membership */
        lc_assignment_t *assignment; /* the last one delivered; NULL before the first */
        lc_work_t assigned;          /* what the group says is ours: reported at the next join */
        lc_work_t running;           /* what was started of it */
        lc_work_t restart;           /* tasks stopped for new configs, started after the rebalance */
        bool rejoining;              /* a join was asked for or has begun, its assignment is not here yet */
        bool resolved;               /* the assignment was acted on */
        int64_t trim_at;             /* when starts leave memory behind, give it back; 0: nothing to do */
        int64_t scheduled_at;        /* INT64_MAX: no scheduled rebalance */
        bool can_read;               /* the config topic could be read the last time */
        int backoff_retries;
        int64_t read_again_at;

        /* config updates seen and not acted on yet */
        bool dirty; /* the store has news: take a snapshot */
        bool needs_rebalance;
        bool hurry;                     /* what changed cannot wait for more of it */
        int64_t hold_since, hold_until; /* the rejoin for it is held back; 0: it is not */
        lc_strv_t updated;              /* connectors whose config was written or removed */
        lc_strv_t retarget;             /* with another target state */
        lc_strv_t retasked;             /* with another set of tasks */
        lc_restart_order_t *orders;
} lc_distributed_t;

static inline lc_distributed_t *lc_dist(lc_herder_t *h)
{
        return (lc_distributed_t *)h;
}
/* Not with a leadership that others may have by now: a leader that was frozen writes nothing. */
static inline bool lc_dist_leads(const lc_distributed_t *d)
{
        return d->assignment && d->assignment->is_leader && lc_group_may_work(d->group);
}

/* distributed_work.c: what the group says */
extern const lc_group_events_t lc_dist_group_events;
void lc_dist_new_assignor(lc_distributed_t *d);
void lc_dist_set_state(lc_distributed_t *d);
void lc_dist_rejoin(lc_distributed_t *d, const char *reason);
void lc_dist_assigned(lc_distributed_t *d, lc_hev_t *ev);
void lc_dist_preparing(lc_distributed_t *d, int16_t protocol);
void lc_dist_coordinator_lost(lc_distributed_t *d);
bool lc_dist_handle_rebalance(lc_distributed_t *d); /* true: the assignment runs */
bool lc_dist_read_to_end(lc_distributed_t *d);

/* distributed_config.c: what the config topic says */
extern const lc_config_events_t lc_dist_config_events;
void lc_dist_take_snapshot(lc_distributed_t *d); /* notes what changed */
/* Acts on it; may ask for a rejoin, now or (at_once false) a little later: hold_until. */
void lc_dist_config_updates(lc_distributed_t *d, bool at_once);
void lc_dist_let_go(lc_distributed_t *d); /* the assignment here covers what was held back */
void lc_dist_stop_retasked(lc_distributed_t *d);
void lc_dist_order(lc_distributed_t *d, const char *name, bool only_failed, bool include_tasks);
void lc_dist_run_orders(lc_distributed_t *d);
void lc_dist_forget_updates(lc_distributed_t *d);

/* distributed_internal.c: requests between workers */
bool lc_dist_admit(lc_herder_t *h, lc_request_t *req);
void lc_dist_put_tasks(lc_distributed_t *d, lc_request_t *req);
/* A follower's task configs on their way to the leader: 1, LC_HEV_PUBLISHED tells; or -1. */
int lc_dist_send_tasks(lc_distributed_t *d, const char *name, lc_props_t *const *tasks, int n, lc_err_t *err);
/* The question of a task for the leader; takes the ticket unless -1. */
int lc_dist_send_fence(lc_distributed_t *d, const char *name, lc_ticket_t *ticket, lc_err_t *err);
int64_t lc_dist_ask_members(lc_distributed_t *d); /* the leader's; when to ask again */
void lc_dist_member_answered(lc_distributed_t *d, lc_hev_t *ev);
void lc_dist_check_members(lc_distributed_t *d); /* may ask for a rejoin */

/* fencing.c */
void lc_dist_fence(lc_distributed_t *d, lc_request_t *req);
void lc_dist_ask_fence(void *arg, const char *connector, int task, lc_ticket_t *ticket);  /* any thread */
void lc_dist_ask_verify(void *arg, const char *connector, int task, lc_ticket_t *ticket); /* any thread */
void lc_dist_gate(lc_distributed_t *d, lc_hev_t *ev); /* LC_HEV_FENCE, _VERIFY, _FENCED in turn; owns it */
void lc_dist_fence_answered(lc_hev_t *ev);            /* LC_HEV_FENCE_ANSWER; owns it */
void lc_dist_fence_outdated(lc_distributed_t *d, const char *name); /* it has a new task set */
void lc_dist_fence_close(lc_distributed_t *d);

/* distributed_requests.c */
/* What a write to the config topic returned: fenced, the error says that it may be tried again. */
int lc_dist_wrote(lc_distributed_t *d, int rc, lc_err_t *err);
int lc_dist_claim(lc_distributed_t *d,
                  lc_err_t *err); /* the config topic, for the leader of this generation */
bool lc_dist_leading(lc_distributed_t *d, lc_request_t *req); /* false: the request was sent on or answered */
void lc_dist_request(lc_herder_t *h, lc_hev_t *ev);
void lc_dist_reconfigured(lc_herder_t *h, const char *name, lc_request_t *req, const lc_err_t *err);
void lc_dist_start_failed(lc_herder_t *h, const char *name, lc_request_t *req, const lc_err_t *err);
int lc_dist_publish(lc_herder_t *h, const char *name, lc_props_t *const *tasks, int n, lc_err_t *err);

#endif
