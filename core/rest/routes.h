/*
 * routes.h - the table of paths and methods, and the rules of matching: 404, 405, OPTIONS, HEAD.
 *
 * Threads:   the table is constant; a match belongs to its caller.
 * Source:    reference rest.md 2, golden/rest/01.   Tests: spec/unit/rest_spec.lua
 */
#ifndef LC_REST_ROUTES_H
#define LC_REST_ROUTES_H
#include "rest/http.h"
#include "herder/herder.h"

struct lc_rest_call;
struct lc_rest_context;

/* Answers at once (call->out) and returns 0, or prepares call->req for the herder and returns 1. */
typedef int lc_route_begin_t(const struct lc_rest_context *ctx, struct lc_rest_call *call);
/* Writes the body of a success from call->req; status and type are set already. */
typedef void lc_route_render_t(const struct lc_rest_context *ctx, struct lc_rest_call *call);

enum {
        LC_ROUTE_BODY = 1,     /* reads a JSON body */
        LC_ROUTE_ANY_TYPE = 2, /* does not look at Content-Type */
        LC_ROUTE_ADMIN = 4     /* gone when admin.listeners is empty */
};
typedef struct lc_route {
        const char *method, *path; /* {name} matches one segment, {#name} a decimal int */
        unsigned flags;
        lc_route_begin_t *begin;
        lc_request_op_t op;        /* what it asks the herder */
        int status;                /* of a success */
        lc_route_render_t *render; /* NULL: no body */
} lc_route_t;
const lc_route_t *lc_routes(size_t *n); /* handlers.c */

enum { LC_ROUTE_MAX_PARAMS = 2 };
typedef struct lc_match {
        const lc_route_t *route;           /* NULL unless status is 0 */
        char *params[LC_ROUTE_MAX_PARAMS]; /* decoded, matrix parameters cut off */
        int number;                        /* of {#name} */
        int status;                        /* 0 matched; 404, 405 */
        bool typed;                        /* the 404 carries a Content-Type (a bad {#name}) */
        bool options;                      /* OPTIONS of a known path: answer with `allow` */
        lc_buf_t allow;                    /* "HEAD, GET, OPTIONS" when the path is known */
} lc_match_t;
/* path: as lc_http_path() gives it, not refused. */
void lc_route_match(const char *method, const char *path, bool admin, lc_match_t *m);
void lc_match_free(lc_match_t *m);

#endif
