/*
 * placement.c - see placement.h.
 *
 * An assignment of equal items to machines of which each item allows some is as even as possible exactly when
 * there is no chain of moves from a worker to one with at least two items less. Such chains are searched
 * breadth first, so the shortest one is taken and few items move. Each chain makes the sum of the squares of
 * the loads smaller: the search ends.
 */
#include "herder/placement.h"
#include "base/alloc.h"
#include <stdlib.h>

typedef struct plan {
        lc_placed_t *items;
        size_t nitems, nworkers;
        bool all;      /* items that run somewhere may move, too */
        size_t *load;  /* of each worker */
        long *edge;    /* edge[from * nworkers + to]: the item that would move, -1 none */
        size_t *from;  /* breadth first: how a worker was reached */
        size_t *queue; /* workers in the order they were reached */
        bool *seen;
} plan_t;

static bool can(const lc_placed_t *it, size_t worker)
{
        return !it->can || it->can[worker];
}

/* The first item of `from` for each other worker, new ones before those that run. */
static void find_edges(plan_t *p, size_t from)
{
        long *edge = p->edge + from * p->nworkers;

        for (size_t to = 0; to < p->nworkers; to++)
                edge[to] = -1;
        for (int running = 0; running <= (int)p->all; running++) {
                size_t open = 0;

                for (size_t to = 0; to < p->nworkers; to++)
                        open += to != from && edge[to] < 0;
                for (size_t i = 0; open && i < p->nitems; i++) {
                        const lc_placed_t *it = &p->items[i];

                        if (it->at != (int)from || (it->was != LC_PLACE_NOWHERE) != (running == 1))
                                continue;
                        for (size_t to = 0; to < p->nworkers; to++)
                                if (to != from && edge[to] < 0 && can(it, to)) {
                                        edge[to] = (long)i;
                                        open--;
                                }
                }
        }
}

static void plan_init(plan_t *p, lc_placed_t *items, size_t nitems, size_t nworkers, bool all)
{
        *p = (plan_t){.items = items, .nitems = nitems, .nworkers = nworkers, .all = all};
        p->load = lc_calloc(nworkers, sizeof(*p->load));
        p->edge = lc_calloc(nworkers * nworkers, sizeof(*p->edge));
        p->from = lc_calloc(nworkers, sizeof(*p->from));
        p->queue = lc_calloc(nworkers, sizeof(*p->queue));
        p->seen = lc_calloc(nworkers, sizeof(*p->seen));
        for (size_t i = 0; i < nitems; i++)
                if (items[i].at != LC_PLACE_NOWHERE)
                        p->load[items[i].at]++;
        for (size_t w = 0; w < nworkers; w++)
                find_edges(p, w);
}

static void plan_free(plan_t *p)
{
        free(p->load);
        free(p->edge);
        free(p->from);
        free(p->queue);
        free(p->seen);
}

/* The nearest of the least loaded workers a chain from `start` leads to; `start` itself if none is worth it.
 */
static size_t search(plan_t *p, size_t start)
{
        size_t n = 0, best = start;

        for (size_t w = 0; w < p->nworkers; w++)
                p->seen[w] = false;
        p->seen[start] = true;
        p->queue[n++] = start;
        for (size_t at = 0; at < n; at++) {
                size_t w = p->queue[at];

                if (p->load[w] + 2 <= p->load[start] && p->load[w] < p->load[best])
                        best = w;
                for (size_t to = 0; to < p->nworkers; to++)
                        if (!p->seen[to] && p->edge[w * p->nworkers + to] >= 0) {
                                p->seen[to] = true;
                                p->from[to] = w;
                                p->queue[n++] = to;
                        }
        }
        return best;
}

/* Each worker on the chain hands one item to the next. */
static void move_along(plan_t *p, size_t start, size_t end)
{
        for (size_t to = end; to != start; to = p->from[to])
                p->items[p->edge[p->from[to] * p->nworkers + to]].at = (int)to;
        for (size_t to = end; to != start; to = p->from[to])
                find_edges(p, to);
        find_edges(p, start);
        p->load[start]--;
        p->load[end]++;
}

/* One chain from the most loaded worker that has one. */
static bool improve(plan_t *p, bool *tried)
{
        for (size_t w = 0; w < p->nworkers; w++)
                tried[w] = false;
        for (;;) {
                size_t start = p->nworkers, end;

                for (size_t w = 0; w < p->nworkers; w++)
                        if (!tried[w] && (start == p->nworkers || p->load[w] > p->load[start]))
                                start = w;
                if (start == p->nworkers || p->load[start] < 2)
                        return false;
                end = search(p, start);
                if (end != start) {
                        move_along(p, start, end);
                        return true;
                }
                tried[start] = true;
        }
}

static void even_out(lc_placed_t *items, size_t nitems, size_t nworkers, bool all)
{
        plan_t p;
        bool *tried = lc_calloc(nworkers, sizeof(*tried));

        plan_init(&p, items, nitems, nworkers, all);
        while (improve(&p, tried))
                ;
        plan_free(&p);
        free(tried);
}

void lc_placement_deal(lc_placed_t *items, size_t nitems, size_t nworkers)
{
        size_t *load = lc_calloc(nworkers, sizeof(*load));
        bool dealt = false;

        for (size_t i = 0; i < nitems; i++)
                if (items[i].at != LC_PLACE_NOWHERE)
                        load[items[i].at]++;
        for (size_t i = 0; i < nitems; i++) {
                size_t best = nworkers;

                if (items[i].at != LC_PLACE_NOWHERE)
                        continue;
                for (size_t w = 0; w < nworkers; w++)
                        if (can(&items[i], w) && (best == nworkers || load[w] < load[best]))
                                best = w;
                items[i].at = (int)best;
                load[best]++;
                dealt = true;
        }
        free(load);
        if (dealt)
                even_out(items, nitems, nworkers, false);
}

void lc_placement_level(lc_placed_t *items, size_t nitems, size_t nworkers)
{
        even_out(items, nitems, nworkers, true);
}
