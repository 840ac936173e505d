/*
 * assignor_table.h - what one round of the assignors is computed over: all items that play a part in it, in
 * Java's order of names, with flags instead of sets; the members, in the order Connect's leader takes them;
 * who can run what. Only for assignor.c.
 *
 * Threads:   any; one thread a table.
 * Ownership: names and ids are those of the round and of the sets it was filled from: valid while they are.
 * Tests:     spec/golden/assignor_spec.lua, spec/unit/assignor_spec.lua, spec/unit/assignor_can_run_spec.lua
 */
#ifndef LC_HERDER_ASSIGNOR_TABLE_H
#define LC_HERDER_ASSIGNOR_TABLE_H
#include "herder/assignor.h"

enum {
        LC_ITEM_CONFIGURED = 1 << 0,
        LC_ITEM_PREVIOUS = 1 << 1,   /* in the previous assignment */
        LC_ITEM_UNASSIGNED = 1 << 2, /* in the previous revocation */
        LC_ITEM_ACTIVE = 1 << 3,     /* reported by a member */
        LC_ITEM_DUPLICATED = 1 << 4, /* reported by several */
        LC_ITEM_DELETED = 1 << 5,
        LC_ITEM_LOST = 1 << 6,
        LC_ITEM_FRESH = 1 << 7 /* to be assigned in this round */
};

typedef struct lc_assignor_item {
        const char *connector;
        int32_t task;
        unsigned flags;
        const bool *can; /* of each worker; NULL: all can */
} lc_assignor_item_t;

/* One member while a round is computed; has, next and revoke are of each item. */
typedef struct lc_assignor_worker {
        const char *id;
        size_t member; /* its number in the round */
        bool *has;     /* reported */
        bool *next, *revoke;
        size_t n[2]; /* connectors and tasks in next */
} lc_assignor_worker_t;

typedef struct lc_assignor_table {
        const lc_assignor_round_t *r;
        lc_assignor_worker_t *workers;
        size_t nworkers;
        lc_assignor_item_t *items;
        size_t nitems;
        size_t nconfigured[2];
        bool **can; /* of each configured connector: of each worker, NULL: all can */
        bool excluded;
} lc_assignor_table_t;

/* Order the members and ask who can run what. */
void lc_assignor_table_init(lc_assignor_table_t *t, const lc_assignor_round_t *r);
/* Enter what is configured, reported, was assigned before and was revoked last. */
void lc_assignor_table_fill(lc_assignor_table_t *t, const lc_work_t *previous, const lc_work_t *revoked);
void lc_assignor_table_free(lc_assignor_table_t *t);
int lc_assignor_kind(const lc_assignor_item_t *it); /* 0 connector, 1 task */
lc_assignor_worker_t *lc_assignor_worker_named(lc_assignor_table_t *t, const char *id);
bool lc_assignor_can_run(const lc_assignor_table_t *t, const lc_assignor_item_t *it,
                         const lc_assignor_worker_t *w);
void lc_assignor_give(lc_assignor_table_t *t, lc_assignor_worker_t *w, size_t item);
void lc_assignor_take(lc_assignor_table_t *t, lc_assignor_worker_t *w, size_t item);

#endif
