/*
 * body.h - JSON bodies of requests: config maps with their coerced scalars, the create request, the
 * level of a logger. Texts are Jackson's and Java's where they are short; status is always 500 then.
 *
 * Threads:   pure functions.
 * Errors:    err->code is the HTTP status.
 * Source:    reference rest.md 1, 6.2, golden/rest/01, 02, 04.   Tests: spec/unit/rest_spec.lua
 */
#ifndef LC_REST_BODY_H
#define LC_REST_BODY_H
#include "base/err.h"
#include "base/props.h"
#include "storage/config_store.h"

/* A map of strings; *config NULL for an empty body or JSON null. */
int lc_body_config(const char *body, size_t len, lc_props_t **config, lc_err_t *err);

typedef struct lc_create_body {
        char *name;                      /* trimmed, "" when absent */
        lc_props_t *config;              /* NULL: absent or null */
        lc_target_state_t initial_state; /* LC_TARGET_NONE: not given */
} lc_create_body_t;
/* The body of POST /connectors. `lenient` ignores unknown properties and text behind the document, as
 * the connector files of standalone mode do. */
int lc_body_create(const char *body, size_t len, bool lenient, lc_create_body_t *out, lc_err_t *err);
void lc_create_body_free(lc_create_body_t *b);

/* The list of maps in an internal POST of task configs. *tasks is malloc'ed with *ntasks configs, NULL for
 * none; tasks NULL: only checked. */
int lc_body_task_configs(const char *body, size_t len, lc_props_t ***tasks, int *ntasks, lc_err_t *err);

#endif
