/*
 * members.h - which connector classes the members of the group have, as far as the leader knows: it asks each
 * one's REST (GET connector-plugins), so that work goes to workers that can run it. A member that was not
 * asked yet, or does not answer, is taken to have everything.
 *
 * Threads:   lc_members_set() and lc_members_can_run() on the membership thread, all else on the herder's;
 * one lock, a leaf. Nothing here waits: the herder sends the questions that lc_members_ask() names.
 * Ownership: copies of everything.
 * Tests:     spec/unit/herder_cluster_spec.lua
 */
#ifndef LC_HERDER_MEMBERS_H
#define LC_HERDER_MEMBERS_H
#include "config/plugin.h"
#include "kafka/group.h"
#include "storage/config_store.h"

typedef struct lc_members lc_members_t;

/* own_url: this worker's; what it has is in own. Both borrowed. */
lc_members_t *lc_members_new(const char *own_url, const lc_plugins_t *own);
void lc_members_free(lc_members_t *m);

/* The members of the generation being formed. What was learned stays with those that remain. Two workers that
 * advertise one URL are an ERROR in the log: requests for one reach the other. */
void lc_members_set(lc_members_t *m, const lc_group_member_t *members, size_t n);
/* config: a connector's, raw; NULL: anybody can. */
bool lc_members_can_run(lc_members_t *m, const char *id, const lc_props_t *config);

void lc_members_forget(lc_members_t *m); /* another one leads */
/* A member to be asked now: *id and *url are the caller's (free), a question is out until it is answered.
 * false: nobody; *next (monotonic) then says when to look again, INT64_MAX never. */
bool lc_members_ask(lc_members_t *m, int64_t now, char **id, char **url, int64_t *next);
/* The answer's body, or NULL and why there is none. true: something was learned. */
bool lc_members_answered(lc_members_t *m, const char *id, const char *url, const lc_buf_t *answer,
                         const char *why, int64_t now);
/* Is it known that the worker at owner_url cannot run this connector, and that another one can? */
bool lc_members_misplaced(lc_members_t *m, const char *owner_url, const lc_props_t *config);
/* Says once in the log which class of a configured connector is missing where. */
void lc_members_say_missing(lc_members_t *m, const lc_config_snapshot_t *s);

#endif
