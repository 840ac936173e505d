/*
 * loggers.h - /admin/loggers: levels by name, over base/log's areas. A name is an area ("OFFSET") or
 * anything a client sets; setting one also sets those below it ("a.b" is below "a"), root sets all.
 *
 * Threads:   any; one lock inside, which also orders the changes to base/log.
 * Source:    reference rest.md 2.4, 6.6.   Tests: spec/unit/rest_spec.lua
 */
#ifndef LC_REST_LOGGERS_H
#define LC_REST_LOGGERS_H
#include "rest/http.h"

typedef struct lc_loggers lc_loggers_t;
lc_loggers_t *lc_loggers_new(const char *root_level); /* NULL: INFO */
void lc_loggers_free(lc_loggers_t *l);
void lc_loggers_list(lc_loggers_t *l, lc_buf_t *out); /* {"root":{"level":..,"last_modified":..},...} */
bool lc_loggers_get(lc_loggers_t *l, const char *name, lc_buf_t *out); /* false: unknown */
bool lc_loggers_is_level(const char *text);                            /* one of log4j's */
/* The names that changed, as a JSON list. -1: no such level. */
int lc_loggers_set(lc_loggers_t *l, const char *name, const char *level, lc_buf_t *out);

#endif
