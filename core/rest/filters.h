/*
 * filters.h - headers every answer gets: CORS (access.control.*) and response.http.headers.config.
 *
 * Threads:   immutable after lc_filters_new().
 * Source:    reference worker-config 7, golden/rest/12.   Tests: spec/unit/rest_spec.lua
 */
#ifndef LC_REST_FILTERS_H
#define LC_REST_FILTERS_H
#include "base/err.h"
#include "rest/http.h"

typedef struct lc_filters lc_filters_t;
/* origins, methods: the values of access.control.allow.*; headers: "set X-A: b, add X-C: d". NULL or ""
 * each: none. A malformed rule is a ConfigException. */
lc_filters_t *lc_filters_new(const char *origins, const char *methods, const char *headers, lc_err_t *err);
void lc_filters_free(lc_filters_t *f);
void lc_filters_apply(const lc_filters_t *f, const lc_rest_request_t *in, lc_rest_answer_t *out);

#endif
