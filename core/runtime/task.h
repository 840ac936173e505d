/*
 * task.h - what source and sink tasks share: the thread, its states, statuses, converters, the script.
 *
 * Life (worker-tasks 2): build, [wait while PAUSED], start, execute, close; then FAILED or UNASSIGNED, or once more from
 *            build: `again`.
 * Threads:   the herder's thread calls new, start, stop, cancel, target; everything else is the task's own
 *            thread. Offset stores call back on theirs and only set a flag and wake.
 * Ownership: counted: the worker's map, the thread, and each offset commit that is out hold a reference.
 *            The last one frees it.
 * Lock:      task->lock guards the fields below it; the status store is called under it (never blocks).
 *            Order: task->lock, then services->lock.
 * Tests:     spec/unit/{worker,source_task,sink_task}_spec.lua
 */
#ifndef LC_RUNTIME_TASK_H
#define LC_RUNTIME_TASK_H
#include "base/waker.h"
#include "runtime/chain.h"
#include "runtime/letters.h"
#include "runtime/operator.h"
#include "runtime/services.h"
#include "script/script.h"

typedef struct lc_task lc_task_t;
typedef struct lc_task_ops { /* one table for source tasks, one for sink tasks */
        lc_script_role_t role;
        const char *java_class; /* "WorkerSourceTask" */
        /* Fill task->host and make clients; what it made is freed by close. */
        int (*build)(lc_task_t *t, lc_err_t *err);
        /* Before the script starts; may wait. 1: stopped meanwhile. NULL: nothing to do. */
        int (*prepare)(lc_task_t *t, lc_err_t *err);
        int (*execute)(lc_task_t *t, lc_err_t *err); /* until stopped: 0, or the failure */
        void (*close)(lc_task_t *t);                 /* also after a failed build */
        /* Sources: ctx.offsets, from prepare on. */
        int (*offset_get)(lc_task_t *t, const char *partition, lc_buf_t *out, lc_err_t *err);
} lc_task_ops_t;
extern const lc_task_ops_t lc_source_task_ops;
extern const lc_task_ops_t lc_sink_task_ops;

struct lc_task {
        int refs; /* atomic */
        lc_services_t *sv;
        char *connector;
        int id;
        char label[80]; /* "WorkerSourceTask{id=file-src-0}", cut when the name is long */
        int task_count;
        lc_props_t *raw_config, *raw_task;
        lc_props_t *config, *task_config; /* resolved, once the thread runs */
        const lc_plugin_t *plugin;        /* of `plugins` */
        const lc_task_ops_t *ops;
        void *impl; /* the ops' */
        lc_script_t *script;
        lc_script_host_t host;
        lc_operator_t op;
        lc_letters_t *letters; /* one of the operator's reporters, or NULL */
        lc_chain_t *chain;
        lc_converter_t *key, *value, *header;
        lc_err_t broken;  /* kind set: a call was ended whose errors are otherwise only logged */
        int64_t after_ms; /* of the last retriable error, -1: the script did not say */
        bool held;        /* it was said that the work may not be ours */
        bool again;       /* it has failed, but need not when it begins again from its committed offsets */
        int smaller;      /* how often the producer's batches were made smaller */
        bool built;       /* statuses carry the version from here on */
        lc_waker_t stop;  /* the script's waits end; woken by stop and target changes */
        lc_waker_t waker; /* the task's waits end: the same, delivery reports, commits */
        volatile int stopping; /* atomic; the script reads it */
        bool ended;            /* atomic: the thread is past its last status */
        int64_t began_ms;      /* when it began to run; 0 it has not */
        int64_t restart_at;    /* atomic: FAILED, to be restarted then; 0 not */
        pthread_t thread;

        pthread_mutex_t lock;
        pthread_cond_t cancelling; /* `stopping` or `cancelled` was set; monotonic clock */
        bool cancelled;            /* abandoned: no statuses, no commits */
        lc_target_state_t target;
        const lc_plugins_t *plugins; /* a reference, set once by the task's thread, after `config` */
};

lc_task_t *lc_task_new(lc_services_t *sv, const char *connector, int id, const lc_props_t *connector_config,
                       int task_count, const lc_props_t *task_config, lc_target_state_t target);
lc_task_t *lc_task_ref(lc_task_t *t);
void lc_task_unref(lc_task_t *t);
int lc_task_start_thread(lc_task_t *t, lc_err_t *err);
void lc_task_stop(lc_task_t *t);   /* asks; does not wait */
void lc_task_cancel(lc_task_t *t); /* gives it up: the thread is on its own from here */
void lc_task_set_target(lc_task_t *t, lc_target_state_t target);
bool lc_task_ended(lc_task_t *t);
int64_t lc_task_restart_at(const lc_task_t *t); /* of one that has ended; 0: it stays as it is */
/* Was it built from plugins that `now` has newer ones of? Also of a task that has failed. */
bool lc_task_outdated(lc_task_t *t, const lc_plugins_t *now);

/* For the ops. */
static inline bool lc_task_stopping(const lc_task_t *t)
{
        return __atomic_load_n(&t->stopping, __ATOMIC_ACQUIRE) != 0;
}
static inline bool lc_task_quits(void *task) /* the same, for waits that ask a function */
{
        return lc_task_stopping(task);
}
lc_target_state_t lc_task_target(lc_task_t *t);
bool lc_task_cancelled(lc_task_t *t);
/* Is the work still ours (worker.h, may_work)? Asked before anything is written. The first no and the yes
 * after it are logged. */
bool lc_task_may_work(lc_task_t *t);
/* It is not: wait until it may be, the end or a target change, at most 100 ms. */
void lc_task_hold(lc_task_t *t);
/* Statuses: nothing once cancelled. */
void lc_task_status(lc_task_t *t, lc_state_t state, const char *trace);
/* One try of something that may be retriable; between tries 1 s to 60 s, the reason in the status.
 * 0, -1, or 1: stopped before it succeeded. */
int lc_task_retry(lc_task_t *t, const char *what, int (*step)(lc_task_t *t, lc_err_t *err), lc_err_t *err);
/* Callbacks whose errors are logged and no more: commit_record, commit, pre_commit, and those of partitions. None is
 * made once one was ended (LC_SCRIPT_ENDED), which fails the task, or once the task was given up. */
bool lc_task_may_call(lc_task_t *t);
/* Such a call has failed. true: it was ended, t->broken says why; the loop looks there. */
bool lc_task_call_failed(lc_task_t *t, const lc_err_t *err);
/* Something failed that no status will show: lc_local_ends_t is told. */
void lc_task_end_failed(lc_task_t *t, const char *what, const lc_err_t *err);
/* Forget wake-ups of the script's waker that were not for the end. */
void lc_task_rearm(lc_task_t *t);
/* Skip work for what every C converter maps to null: no schema, no value. */
static inline bool lc_task_is_nothing(const lc_converter_t *cv, const lc_schema_t *schema,
                                      const lc_value_t *v)
{
        return !schema && v->type == LC_NULL && !cv->cls->arg;
}

/* Topics in use, told to the status store at most once a second and topic. */
typedef struct lc_topic_use {
        char *name;
        int64_t told_ms;
} lc_topic_use_t;
typedef struct lc_topics_used {
        lc_topic_use_t *v;
        size_t n;
        const char *last; /* pointer of the last record's topic */
        size_t last_at;
} lc_topics_used_t;
void lc_topics_used_note(lc_topics_used_t *u, lc_task_t *t, const char *topic, int64_t now_ms);
void lc_topics_used_free(lc_topics_used_t *u);

#endif
