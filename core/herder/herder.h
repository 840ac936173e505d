/*
 * herder.h - the decisions: what REST asks for, what the config topic says, what the group assigns.
 * One thread per herder serves one queue of events (request, config change, assignment, tick).
 *
 * Threads:   lc_herder_submit from any thread; answers come through request->done, exactly once each, also at
 *            shutdown: on the herder's thread, its reading thread, a pool thread (validation, offsets), or,
 *            once the herder has ended, on the submitter's own before submit returns. REST times out by
 *            itself and keeps its connection state apart from the request, which it gets back later.
 * Ownership: a request belongs to the herder from submit to done, then to its maker again.
 * Source:    reference group 6, rest.md, standalone 4.   Tests: spec/unit/herder_spec.lua, spec/kafka
 */
#ifndef LC_HERDER_HERDER_H
#define LC_HERDER_HERDER_H
#include "config/plugin.h"
#include "config/worker_config.h"
#include "http/http.h"
#include "runtime/worker.h"
#include "storage/config_store.h"
#include "storage/offset_store.h"
#include "storage/status_store.h"

typedef enum {
        LC_REQ_HEALTH,       /* a no-op through the herder's thread */
        LC_REQ_LIST,         /* -> names */
        LC_REQ_INFO,         /* -> info (name, config, tasks, type) */
        LC_REQ_CREATE,       /* connector may be NULL; config, initial_state -> info, 201 */
        LC_REQ_PUT_CONFIG,   /* config -> info, 201 or 200 */
        LC_REQ_PATCH_CONFIG, /* config (NULL value removes) -> info, 200 */
        LC_REQ_DELETE,       /* 204 */
        LC_REQ_STATUS,       /* -> state */
        LC_REQ_TASKS,        /* -> info with task configs */
        LC_REQ_TASK_STATUS,  /* task -> state.tasks[0] */
        LC_REQ_RESTART,      /* include_tasks, only_failed -> 204, or 202 with state */
        LC_REQ_RESTART_TASK, /* 204 */
        LC_REQ_PAUSE,
        LC_REQ_RESUME, /* 202 */
        LC_REQ_STOP,   /* 204 */
        LC_REQ_TOPICS, /* -> names */
        LC_REQ_TOPICS_RESET,
        LC_REQ_OFFSETS,   /* -> offsets */
        LC_REQ_VALIDATE,  /* config -> infos */
        LC_REQ_PUT_TASKS, /* between workers: tasks, ntasks, body, signature -> 204 */
        LC_REQ_FENCE,     /* between workers: body, signature -> 204 */
        LC_REQ_LOGGER,    /* connector = the logger, level: for the whole cluster -> 204 */
        LC_REQ_RELOAD     /* plugin files are looked at again, on this worker -> reload_json, 200 */
} lc_request_op_t;

typedef struct lc_connector_info {
        char *name;
        lc_props_t *config; /* raw */
        int ntasks;
        lc_props_t **tasks; /* LC_REQ_TASKS only, raw */
        const char *type;   /* "source", "sink", "unknown" */
} lc_connector_info_t;
typedef struct lc_connector_state {
        char *name;
        lc_status_t connector;
        lc_status_t *tasks; /* sorted by id */
        size_t ntasks;
        const char *type;
} lc_connector_state_t;
void lc_connector_info_free(lc_connector_info_t *i);
void lc_connector_state_free(lc_connector_state_t *s);

typedef struct lc_request lc_request_t;
struct lc_request {
        lc_request_op_t op;
        char *connector;
        int task;
        lc_props_t *config;
        lc_target_state_t initial_state; /* LC_TARGET_NONE: not given */
        bool include_tasks, only_failed;
        bool want_info, want_status; /* LIST with ?expand= */
        int forward;                 /* ?forward=: -1 absent, 0, 1 */
        lc_props_t **tasks;          /* PUT_TASKS: raw task configs */
        int ntasks;
        char *level; /* LOGGER */
        /* What a request between workers is verified by: its headers (NULL: absent) and body bytes. */
        char *signature, *signature_algorithm, *body;
        size_t body_len;
        int64_t deadline_ms; /* monotonic: answered with the 500 of rest 1.2 when it passes */
        void (*done)(lc_request_t *req);
        void *arg;
        /* the answer */
        int status; /* HTTP; 0: see forward_url */
        /* Not ours to do: base URL (ends with "/") of the worker that it belongs to. The caller sends it
         * there with ?forward=true when forward was absent, else false (rest 1.3). status is 0 then. */
        char *forward_url;
        int retry_after_s; /* > 0: Retry-After, with a 409 */
        char *error;       /* message when status >= 400 (may be NULL: "message":null) */
        bool created;
        lc_strv_t names;
        lc_connector_info_t *info;   /* one, or ninfos for LIST */
        lc_connector_state_t *state; /* likewise */
        size_t ninfos;
        char *reload_json;  /* LC_REQ_RELOAD: the finished list */
        char *offsets_json; /* LC_REQ_OFFSETS: the finished {"offsets":[...]} */
        lc_config_infos_t *infos;
        lc_request_t *next; /* the herder's */
};
lc_request_t *lc_request_new(lc_request_op_t op, const char *connector);
void lc_request_free(lc_request_t *req);

typedef struct lc_herder lc_herder_t;
/* Herder of worker.properties' mode. url and worker_id are the advertised ones. Everything passed in is
 * borrowed. on_fatal: the herder's thread ends by itself (the process exits 1): only say so to the main
 * thread there, which calls lc_herder_stop(). */
typedef struct lc_herder_deps {
        const lc_worker_config_t *config;
        const lc_plugins_t *plugins;
        const char *url, *worker_id;
        void (*on_ready)(void *arg);
        void (*on_fatal)(void *arg, const lc_err_t *err);
        void *arg;
        lc_http_t *http; /* to other workers; NULL in standalone mode */
        /* A level for the whole cluster arrived: apply it here. On the herder's thread; may be NULL. */
        void (*logger_level)(void *arg, const char *logger, const char *level);
        void *logger_arg;
} lc_herder_deps_t;
lc_herder_t *lc_herder_distributed_new(const lc_herder_deps_t *deps, lc_err_t *err);
lc_herder_t *lc_herder_standalone_new(const lc_herder_deps_t *deps, lc_err_t *err);
/* Stores are opened, the cluster id read (blocking up to 60 s; 2 = exit status), thread started. */
int lc_herder_start(lc_herder_t *h, const volatile int *stop, lc_err_t *err);
void lc_herder_submit(lc_herder_t *h, lc_request_t *req);
/* Submit and wait for the answer: for threads that may wait (specs). Uses done and arg. */
void lc_herder_call(lc_herder_t *h, lc_request_t *req);
const char *lc_herder_cluster_id(const lc_herder_t *h);
bool lc_herder_ready(const lc_herder_t *h); /* first tick done */
/* "polling the group coordinator until interrupted" and since when: for timeouts and /health (rest 1.2).
 * Appends the sentence, nothing when unknown. Any thread. */
void lc_herder_stage(const lc_herder_t *h, lc_buf_t *out);
const lc_plugins_t *lc_herder_plugins(const lc_herder_t *h);
const lc_worker_config_t *lc_herder_config(const lc_herder_t *h);
/* Stop tasks and connectors (offsets committed), leave the group, answer what waits, join, free. */
void lc_herder_stop(lc_herder_t *h);

#endif
