/*
 * forward.h - a request that is another worker's to answer: what is sent there, and what its answer becomes.
 *
 * Threads:   lc_rest_forward() on the thread that gave the herder's answer, lc_rest_forwarded() on
 *            libmicrohttpd's; both only look at what they are given.
 * Source:    reference rest.md 1.3, golden/cluster/01.   Tests: spec/unit/rest_spec.lua
 */
#ifndef LC_REST_FORWARD_H
#define LC_REST_FORWARD_H
#include "http/http.h"
#include "rest/call.h"

/* The request to the worker at req->forward_url, with what is left of its time; done and arg are the
 * caller's to set. `body` holds the bytes that came, and is empty afterwards. Signatures are not copied. */
lc_http_call_t *lc_rest_forward(const lc_rest_call_t *call, const lc_request_t *req, lc_buf_t *body);
/* Writes the answer from the other worker's, or from the reason why there is none. */
void lc_rest_forwarded(const lc_rest_context_t *ctx, lc_rest_call_t *call, const lc_http_call_t *answer);

#endif
