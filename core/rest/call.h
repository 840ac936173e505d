/*
 * call.h - one request from its bytes to its answer, without a server:
 *
 *   lc_rest_begin()   parses and routes; answers at once, or leaves a request for the herder in call->req
 *   lc_rest_finish()  writes the answer of a request the herder is done with
 *   lc_rest_forwarded()  the answer of another worker, see forward.h
 *   lc_rest_late()    writes the answer of one whose time is over
 *
 * Threads:   a call has one owner at a time; the context is shared and read-only.
 * Ownership: call->in borrows; the call owns the rest, lc_rest_call_free() ends it (call->req too, unless
 *            it was taken out for the herder).
 * Source:    reference rest.md.   Tests: spec/unit/rest_spec.lua, spec/golden/rest_raw_spec.lua
 */
#ifndef LC_REST_CALL_H
#define LC_REST_CALL_H
#include "herder/herder.h"
#include "rest/filters.h"
#include "rest/http.h"
#include "rest/loggers.h"
#include "rest/routes.h"

#define LC_REST_VERSION "4.3.1"
#define LC_REST_COMMIT  "26b251a451ce941d"
enum { LC_REST_TIMEOUT_MS = 90000, LC_REST_HEALTH_TIMEOUT_MS = 10000 };

typedef struct lc_rest_context { /* all borrowed */
        bool serving;            /* false: every path is the 404 page of a server without resources */
        bool starting;           /* true: /health says so, whatever the herder says */
        bool distributed;
        bool topic_tracking, topic_reset, admin;
        const char *cluster_id;
        const lc_plugins_t *plugins;
        lc_loggers_t *loggers;
        const lc_filters_t *filters;
} lc_rest_context_t;

typedef struct lc_rest_call {
        lc_rest_request_t in;
        lc_match_t match;
        char order[3]; /* ?expand= as asked: of 's' and 'i' */
        bool expand;
        char *type; /* Content-Type of a success */
        lc_request_t *req;
        lc_rest_answer_t out;
} lc_rest_call_t;

/* 0: answered, see call->out. 1: submit call->req, then finish or late. call->in is filled by the caller,
 * the rest is zero. */
int lc_rest_begin(const lc_rest_context_t *ctx, lc_rest_call_t *call);
void lc_rest_finish(const lc_rest_context_t *ctx, lc_rest_call_t *call);
/* stage: sentence on the herder, "" when unknown; ready: the herder has started. Reads nothing of
 * call->req: the herder still has it. */
void lc_rest_late(const lc_rest_context_t *ctx, lc_rest_call_t *call, const char *stage, bool ready);
void lc_rest_call_free(lc_rest_call_t *call);

/* For the handlers. Returns 0: answered. message NULL: JSON null. */
int lc_rest_error(lc_rest_call_t *call, int status, const char *message);
void lc_rest_success(lc_rest_call_t *call, int status);
/* Location: this server's URL of the connector. -1: it has none, the call is answered with that. */
int lc_rest_location(lc_rest_call_t *call, const char *connector);
void lc_rest_retry_after(lc_rest_call_t *call, int seconds); /* <= 0: none */
/* 200 healthy, 503 starting, 500 unhealthy. */
void lc_rest_health(lc_rest_call_t *call, int status, const char *stage);

#endif
