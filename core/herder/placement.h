/*
 * placement.h - spreads items over workers of which not every one can run every item, as evenly as that can
 * be done: the sum of the squares of the loads is the smallest possible. The assignors use it when some
 * member cannot run some connector (assignor.h, can_run).
 *
 * Threads:   any; plain functions over the caller's arrays.
 * Tests:     spec/unit/assignor_can_run_spec.lua
 */
#ifndef LC_HERDER_PLACEMENT_H
#define LC_HERDER_PLACEMENT_H
#include <stdbool.h>
#include <stddef.h>

enum { LC_PLACE_NOWHERE = -1 };

typedef struct lc_placed {
        const bool *can; /* of each worker; NULL: all can. At least one is true */
        int at;          /* worker, LC_PLACE_NOWHERE before it is dealt */
        int was;         /* where it runs and costs a revocation if it leaves, LC_PLACE_NOWHERE: it is new */
} lc_placed_t;

/* Give each item that is nowhere to the least loaded worker that can run it, then even out the new ones. */
void lc_placement_deal(lc_placed_t *items, size_t nitems, size_t nworkers);
/* Move items until no move, nor any chain of moves, makes the loads more even. New items move first; items
 * that cannot go to a worker with less load stay where they are. */
void lc_placement_level(lc_placed_t *items, size_t nitems, size_t nworkers);

#endif
