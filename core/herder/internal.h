/*
 * internal.h - what the herder's own files share: the thread and its queue, events, stages, answers. Nobody
 * outside core/herder includes it.
 *
 * Threads:   "T" below = the herder's thread, "R" = the reading thread, which answers questions that need
 *            neither group nor order (list, info, status, topics) also while T is busy or waits for a
 *            broker. Everything without a mark belongs to T.
 * Requests:  a request given to lc_herder_submit() is in exactly one place: a queue, the pending list, the
 *            request of an event, or among a connector's waiters; whoever takes it out calls done once.
 *            An event that is out (a worker or pool callback owes it) is in h->out, so that stopping can
 *            take its request and answer it; the late callback then finds none.
 * Locks:     h->lock (closed, out list, stage) and h->config_lock (h->config), both leaves.
 */
#ifndef LC_HERDER_INTERNAL_H
#define LC_HERDER_INTERNAL_H
#include "base/queue.h"
#include "herder/herder.h"
#include "herder/restart.h"
#include "runtime/ticket.h"
#include <pthread.h>

#define LC_SHUTTING_DOWN "Worker is shutting down"
#define LC_NO_LEADER_URL                                                                                     \
        "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was "    \
        "underway."

typedef enum {
        LC_HEV_REQUEST,      /* req */
        LC_HEV_VALIDATED,    /* req, config, infos or err */
        LC_HEV_CONNECTOR,    /* name, target, req or NULL, err: started or brought to target */
        LC_HEV_TASK_CONFIGS, /* name, config, tasks or err */
        LC_HEV_RECONFIGURE,  /* name: the connector asks for new task configs */
        LC_HEV_OFFSETS,      /* never queued: a job of offsets.c */
        LC_HEV_CONFIG,    /* name or NULL: the config topic has news; updated says it was a config record */
        LC_HEV_RESTART,   /* name, only_failed, include_tasks */
        LC_HEV_ASSIGNED,  /* assignment */
        LC_HEV_PREPARING, /* protocol */
        LC_HEV_COORDINATOR_LOST,
        LC_HEV_PUBLISHED,    /* name, err: the leader's answer to task configs sent to it */
        LC_HEV_LOGGER,       /* name, level: for the whole cluster */
        LC_HEV_MEMBER,       /* name, url, answer or err: which connector classes a member has */
        LC_HEV_FAILED,       /* something is to be restarted by its policy: look at it */
        LC_HEV_RELOADED,     /* answer: plugins were loaded; what uses them is restarted */
        LC_HEV_FENCE,        /* name, task, ticket: a source task wants its predecessors fenced */
        LC_HEV_VERIFY,       /* name, task, ticket: and is it still wanted itself? */
        LC_HEV_FENCED,       /* name, generation, err: the end of a round of fencing */
        LC_HEV_FENCE_ANSWER, /* ticket, err: the leader's answer */
        LC_HEV_FATAL         /* err */
} lc_hev_kind_t;

typedef struct lc_hev lc_hev_t;
struct lc_hev {
        lc_hev_t *next;
        lc_hev_t *out_prev, *out_next;
        bool is_out;
        lc_hev_kind_t kind;
        lc_herder_t *h;
        char *name;
        lc_request_t *req;
        lc_props_t *config;
        lc_config_infos_t *infos;
        lc_props_t **tasks;
        int ntasks;
        lc_target_state_t target;
        bool only_failed, include_tasks, updated, validate_only;
        int16_t protocol;
        struct lc_assignment *assignment;
        struct lc_ticket *ticket; /* answered at the latest when the event is freed */
        int task, generation;
        char *level, *url;
        lc_buf_t answer;
        int64_t stalled_at; /* monotonic: its request met a rebalance then; 0: not yet */
        lc_err_t *err;
};

/* What T knows of a connector beyond the config: pending task configs, who waits for them. */
typedef struct lc_hconn lc_hconn_t;

typedef struct lc_reload {  /* T's */
        bool busy;          /* loading, or restarting what is outdated */
        lc_request_t *now;  /* answered when that is done */
        lc_request_t *next; /* came since: the files may have changed again */
} lc_reload_t;

typedef struct lc_herder_mode {
        const char *name;
        int (*open)(lc_herder_t *h, const volatile int *stop, lc_err_t *err); /* caller of lc_herder_start */
        int (*begin)(lc_herder_t *h, lc_err_t *err); /* stores up; -1: fatal, or h->stop */
        int (*tick)(lc_herder_t *h);                 /* returns ms to wait for the next event */
        /* A request arrived: false, and answered, when it is refused before anything else; NULL: never. */
        bool (*admit)(lc_herder_t *h, lc_request_t *req);
        void (*request)(lc_herder_t *h, lc_hev_t *ev); /* one pending event; owns it */
        /* Do pending requests wait for a rebalance? Then only for 5 s; NULL: never. */
        bool (*stalled)(lc_herder_t *h);
        void (*event)(lc_herder_t *h, lc_hev_t *ev); /* what is not common; owns it */
        bool (*leads)(lc_herder_t *h);
        /* New task configs, already known to differ; takes nothing. 1: LC_HEV_PUBLISHED will tell. */
        int (*publish)(lc_herder_t *h, const char *name, lc_props_t *const *tasks, int n, lc_err_t *err);
        /* A request that waited for task configs; err: of making or publishing them. */
        void (*reconfigured)(lc_herder_t *h, const char *name, lc_request_t *req, const lc_err_t *err);
        void (*start_failed)(lc_herder_t *h, const char *name, lc_request_t *req, const lc_err_t *err);
        void (*end)(lc_herder_t *h);   /* stop work, leave; stores stay */
        void (*close)(lc_herder_t *h); /* after the worker is gone: stores stop; frees */
} lc_herder_mode_t;

struct lc_herder {
        const lc_herder_mode_t *mode;
        lc_herder_deps_t deps;
        lc_worker_t *worker;
        lc_config_store_t *configs;
        lc_offset_store_t *offsets;
        lc_status_store_t *statuses;
        char *cluster_id;
        lc_queue_t *events, *reads;
        pthread_t thread, reader;
        bool thread_started, reader_started;
        volatile int stop; /* atomic; the stores look at it, too */
        int refs;          /* atomic: the owner's, and one for each event that is out */

        pthread_mutex_t lock;
        bool closed;
        lc_hev_t *out;
        char stage[256];
        int64_t stage_began, stage_ended; /* wall clock; ended 0: still in it */

        pthread_mutex_t config_lock;
        lc_config_snapshot_t *config; /* T writes under the lock, reads without */

        lc_hev_t *pending, **pending_tail;
        lc_hconn_t *conns;
        lc_reload_t reload;
        bool ticked;
        int ready; /* atomic */
        lc_err_t *fatal;
};

static inline bool lc_stopping(const lc_herder_t *h)
{
        return __atomic_load_n(&h->stop, __ATOMIC_ACQUIRE) != 0;
}

/* herder.c */
lc_herder_t *lc_herder_base_init(lc_herder_t *h, const lc_herder_mode_t *mode, const lc_herder_deps_t *deps);
void lc_herder_base_free(lc_herder_t *h);
void lc_herder_unref(lc_herder_t *h); /* after lc_hev_back() said true, with ev done */
lc_hev_t *lc_hev_new(lc_herder_t *h, lc_hev_kind_t kind, const char *name);
void lc_hev_free(lc_hev_t *ev); /* answers nothing: req must be taken out */
void lc_hev_set_err(lc_hev_t *ev, const lc_err_t *err);
void lc_herder_push(lc_herder_t *h, lc_hev_t *ev); /* any thread; after closing its request is answered */
void lc_hev_out(lc_hev_t *ev);                     /* a callback now owes it */
/* The callback is here: false when the herder stopped meanwhile (then ev and its reference are gone). */
bool lc_hev_back(lc_hev_t *ev);
void lc_hev_back_push(lc_hev_t *ev); /* back, and to the queue */
bool lc_hev_wanted(lc_hev_t *ev);    /* before long work for it: does anybody still wait? */
void lc_pending_add(lc_herder_t *h, lc_hev_t *ev);
lc_hev_t *lc_pending_take(lc_herder_t *h);
void lc_herder_drain(lc_herder_t *h); /* what has arrived, without waiting */
void lc_stage(lc_herder_t *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void lc_stage_done(lc_herder_t *h);
void lc_herder_set_config(lc_herder_t *h, lc_config_snapshot_t *s); /* takes the reference */
lc_config_snapshot_t *lc_herder_config_ref(lc_herder_t *h);         /* any thread */

/* request.c */
void lc_request_answer(lc_request_t *req, int status);
void lc_request_fail(lc_request_t *req, int status, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
void lc_request_fail_err(lc_request_t *req, int status, const lc_err_t *err); /* err->msg, NULL: null */
void lc_request_stale(lc_request_t *req); /* 409, come back after the rebalance */
const char *lc_connector_type(const lc_plugins_t *any, const lc_props_t *config);
void lc_connector_info_fill(lc_connector_info_t *info, const lc_plugins_t *plugins, const char *name,
                            const lc_props_t *config, const lc_config_connector_t *tasks_of,
                            bool task_configs);

/* reads.c: on R */
void lc_reads_serve(lc_herder_t *h, lc_request_t *req);
bool lc_reads_op(lc_request_op_t op);
bool lc_state_fill(lc_herder_t *h, const lc_config_snapshot_t *s, const char *name,
                   lc_connector_state_t *out);

/* validation.c: name rules, validation on the pool, LC_REQ_CREATE, _PUT_CONFIG, _PATCH_CONFIG, _VALIDATE */
void lc_validation_begin(lc_herder_t *h, lc_request_t *req); /* the config is req->config */
/* CREATE and PUT: the name rules; answers and returns -1, or 0. */
int lc_check_name(lc_request_t *req);
/* What LC_HEV_VALIDATED says: answers and returns -1 when the config was rejected. */
int lc_check_validated(lc_hev_t *ev);
/* Old config with the patch of req->config laid over it becomes req->config. */
void lc_patch_config(lc_request_t *req, const lc_props_t *old);

/* offsets.c */
void lc_offsets_begin(lc_herder_t *h, lc_request_t *req);

/* reload.c */
void lc_reload_begin(lc_herder_t *h, lc_request_t *req);
/* LC_HEV_RELOADED in its turn: restarts one connector or task and puts ev back into the pending list, or
 * ends. false: what is to be restarted is busy, ev is still the caller's. */
bool lc_reload_step(lc_herder_t *h, lc_hev_t *ev);
void lc_reload_close(lc_herder_t *h); /* answers who waits */

/* policy.c: what restart.policy asks for, up to now. When to come again, INT64_MAX: when something failed. */
int64_t lc_policy_restarts(lc_herder_t *h, int64_t now);
void lc_policy_failed(void *arg); /* lc_worker_deps_t.failed; any thread */

/* reconfigure.c */
struct lc_hconn {
        char *name;
        bool computing, again;
        lc_request_t *waiters;
        int64_t retry_at; /* 0: none */
        int backoff_ms;
        int64_t tried_at; /* the first of the attempts that failed since */
        int task_high;    /* highest committed task count seen while the connector exists */
        int busy;         /* standalone: an operation is in flight */
        int *generations; /* of the task sets that the tasks here were started from, by task */
        int ngenerations;
        lc_hconn_t *next;
};
lc_hconn_t *lc_hconn_get(lc_herder_t *h, const char *name);
void lc_hconn_prune(lc_herder_t *h);    /* forget connectors that the config does not know */
void lc_hconn_free_all(lc_herder_t *h); /* answers waiters */
void lc_reconfigure(lc_herder_t *h, const char *name, lc_request_t *req /* waits; NULL */);
void lc_reconfigure_result(lc_herder_t *h, lc_hev_t *ev);    /* LC_HEV_TASK_CONFIGS; owns it */
void lc_reconfigure_published(lc_herder_t *h, lc_hev_t *ev); /* LC_HEV_PUBLISHED; owns it */
int64_t lc_reconfigure_retries(lc_herder_t *h, int64_t now); /* next time, INT64_MAX none */
void lc_start_connector(lc_herder_t *h, const char *name, lc_request_t *req);
void lc_target_connector(lc_herder_t *h, const char *name, lc_target_state_t target);
void lc_connector_event(lc_herder_t *h, lc_hev_t *ev); /* LC_HEV_CONNECTOR; owns it */
int lc_start_task(lc_herder_t *h, const char *name, int task, lc_err_t *err);
int lc_hconn_task_generation(lc_herder_t *h, const char *name, int task); /* -1: never started here */
void lc_herder_stop_work(lc_herder_t *h);                                 /* the worker ends */

#endif
