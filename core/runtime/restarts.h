/*
 * restarts.h - restart.policy=on-failure: when a connector or task that FAILED is started again by itself.
 * The decisions and what they remember; the herder acts on them (herder/policy.c).
 *
 * The pause is 1 s, doubling to 5 min with up to a fifth more at random, and 1 s again after a run of more
 * than 5 min, or when somebody else had a hand in it (lc_restarts_afresh). Within an hour there are at most
 * restart.policy.max.per.hour restarts: then it waits. What was fenced, and what the configuration is to blame
 * for, is never started again.
 * Threads:   any. Lock: its own, a leaf.
 * Tests:     spec/unit/restarts_spec.lua
 */
#ifndef LC_RUNTIME_RESTARTS_H
#define LC_RUNTIME_RESTARTS_H
#include "base/err.h"
#include "base/props.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct lc_restarts lc_restarts_t;
lc_restarts_t *lc_restarts_new(void);
void lc_restarts_free(lc_restarts_t *r);
/* It FAILED now (monotonic ms), after it had run for ran_ms. config: of the connector. When to start it again,
 * 0: not. *shown: what the status says of it, JSON, malloc'ed; NULL without the policy. */
int64_t lc_restarts_failed(lc_restarts_t *r, const char *connector, int task, const lc_props_t *config,
                           const lc_err_t *err, int64_t ran_ms, int64_t now, char **shown);
/* It is started again by the policy. */
void lc_restarts_begun(lc_restarts_t *r, const char *connector, int task, int64_t now);
/* Somebody started it, or its config or target is another one: the pause after its next failure is the first
 * one again. What was restarted within the hour still counts. task: LC_RESTARTS_ALL for the connector, too. */
enum { LC_RESTARTS_ALL = -2 };
void lc_restarts_afresh(lc_restarts_t *r, const char *connector, int task);
void lc_restarts_forget(lc_restarts_t *r, const char *connector); /* it was deleted, with its tasks */
/* What the status of one that runs says: NULL when it was never restarted. malloc'ed. */
char *lc_restarts_shown(lc_restarts_t *r, const char *connector, int task);

#endif
