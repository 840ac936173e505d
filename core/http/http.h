/*
 * http.h - the client side of HTTP, over libcurl: requests to other workers, later those of connectors.
 *
 * One thread serves all requests of a client (curl's multi interface), so a slow server holds nobody up.
 * Threads:   lc_http_submit() from any thread; `done` is called on the client's thread, exactly once a call
 *            (also for calls that are still out when the client stops), and must not block.
 * Ownership: a call belongs to the client from submit to done, then to its maker again.
 * Errors:    err.kind LC_RETRIABLE when no answer came (err.msg: curl's text, with the URL's host and
 *            port; code ECANCELED: the client stopped, ETIMEDOUT), else err is clear and status is set.
 *            LC_FATAL for a URL that is none, or a method or header no request can have. http and https
 *            only. Redirects are not followed; proxies of the environment are not used; a path is sent as
 *            it is.
 * Tests:     spec/unit/http_spec.lua
 */
#ifndef LC_HTTP_HTTP_H
#define LC_HTTP_HTTP_H
#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"

typedef struct lc_http lc_http_t;
typedef struct lc_http_call lc_http_call_t;
struct lc_http_call {
        char *method, *url;
        lc_strv_t headers; /* "Name: value" */
        lc_buf_t body;
        bool has_body;     /* else none is sent: no Content-Type, no Content-Length but for POST and PUT */
        int timeout_ms;    /* for the whole of it; 0: 90 s */
        size_t max_answer; /* bytes of the answer's body, more is an error; 0: 64 MiB */
        void (*done)(lc_http_call_t *call);
        void *arg;
        /* the answer */
        lc_err_t err;
        int status;
        char *content_type; /* NULL: none */
        int retry_after_s;  /* of Retry-After; 0: none */
        lc_buf_t answer;
        lc_http_call_t *next; /* the client's */
};
lc_http_call_t *lc_http_call_new(const char *method, const char *url);
void lc_http_call_free(lc_http_call_t *call); /* NULL is fine */

lc_http_t *lc_http_new(const char *user_agent, lc_err_t *err);
void lc_http_submit(lc_http_t *h, lc_http_call_t *call);
/* Ends what is out and whatever is submitted from now on, on the client's thread: done with ECANCELED. For
 * owners of calls that wait for them before they end. Does not wait itself. NULL is fine. */
void lc_http_close(lc_http_t *h);
/* The same, then joins the thread and frees. Nobody submits any more. NULL is fine. */
void lc_http_stop(lc_http_t *h);

#endif
