/*
 * rest.h - the REST API over libmicrohttpd: routes in a table, JSON in and out, no decisions.
 *
 * Threads:   libmicrohttpd's (epoll, one or few): a request is parsed, handed to the herder, its connection
 *            suspended and resumed with the answer; never a thread a connection. Every suspended request has
 *            a deadline (90 s; health 10 s); lc_rest_stop answers all before the daemon ends.
 * Source:    reference rest.md, golden/rest.   Tests: spec/unit/rest_spec.lua, spec/golden/rest_raw_spec.lua
 */
#ifndef LC_REST_REST_H
#define LC_REST_REST_H
#include "config/worker_config.h"
#include "herder/herder.h"
#include "http/http.h"

typedef struct lc_rest lc_rest_t;
/* Binds the first http listener; the port is open but answers 404 (empty context) until lc_rest_serve().
 * Port taken or unsupported scheme: LC_FATAL naming the listener. */
lc_rest_t *lc_rest_new(const lc_worker_config_t *wc, lc_err_t *err);
int lc_rest_port(const lc_rest_t *r); /* bound port */
/* http: to the workers that requests are forwarded to, NULL in standalone mode. Both are borrowed until they
 * have given back all they got; they may be stopped only after lc_rest_stop(). */
void lc_rest_serve(lc_rest_t *r, lc_herder_t *h, lc_http_t *http);
/* While true, /health answers 503 "starting" whatever the herder says: standalone mode is ready only after
 * its connector files. Before or after lc_rest_serve(). */
void lc_rest_hold_health(lc_rest_t *r, bool hold);
/* A level that came for the whole cluster: into /admin/loggers. Any thread, until lc_rest_free(). */
void lc_rest_logger_level(lc_rest_t *r, const char *logger, const char *level);
void lc_rest_stop(lc_rest_t *r); /* answers what waits, ends the server; NULL is fine */
void lc_rest_free(lc_rest_t *r); /* after lc_rest_stop(); NULL is fine */

#endif
