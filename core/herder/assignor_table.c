/*
 * assignor_table.c - see assignor_table.h.
 */
#include "herder/assignor_table.h"
#include "base/alloc.h"
#include "data/java_hash.h"
#include <stdlib.h>
#include <string.h>

int lc_assignor_kind(const lc_assignor_item_t *it)
{
        return it->task >= 0;
}

typedef struct ordered {
        const char *id;
        size_t index;
} ordered_t;

static int by_id(const void *a, const void *b)
{
        return lc_java_string_compare(((const ordered_t *)a)->id, ((const ordered_t *)b)->id);
}

/* Workers: eager sorts them by id, cooperative takes them as a HashMap has them. */
static void order_workers(lc_assignor_table_t *t)
{
        const lc_assignor_round_t *r = t->r;
        size_t n = r->nmembers;

        t->nworkers = n;
        t->workers = lc_calloc(n, sizeof(*t->workers));
        if (r->protocol == 0) {
                ordered_t *o = lc_calloc(n, sizeof(*o));

                for (size_t i = 0; i < n; i++)
                        o[i] = (ordered_t){r->members[i].id, i};
                qsort(o, n, sizeof(*o), by_id);
                for (size_t i = 0; i < n; i++)
                        t->workers[i].member = o[i].index;
                free(o);
        } else {
                const char **ids = lc_calloc(n, sizeof(*ids));
                uint32_t *order = lc_calloc(n, sizeof(*order));

                for (size_t i = 0; i < n; i++)
                        ids[i] = r->members[i].id;
                if (lc_java_string_order(ids, (uint32_t)n, order) != 0)
                        for (size_t i = 0; i < n; i++)
                                order[i] = (uint32_t)i;
                for (size_t i = 0; i < n; i++)
                        t->workers[i].member = order[i];
                free(ids);
                free(order);
        }
        for (size_t i = 0; i < n; i++)
                t->workers[i].id = r->members[t->workers[i].member].id;
}

/* Who can run what. What nobody can run counts as what all can. */
static void ask_who_can(lc_assignor_table_t *t)
{
        const lc_assignor_round_t *r = t->r;

        t->can = lc_calloc(r->nwork + 1, sizeof(*t->can));
        for (size_t i = 0; r->can_run && i < r->nwork; i++) {
                bool *row = lc_calloc(t->nworkers, sizeof(*row));
                size_t n = 0;

                for (size_t w = 0; w < t->nworkers; w++) {
                        row[w] = r->can_run(r->arg, t->workers[w].member, r->work[i].connector);
                        n += row[w];
                }
                if (n > 0 && n < t->nworkers) {
                        t->can[i] = row;
                        t->excluded = true;
                } else {
                        free(row);
                }
        }
}

void lc_assignor_table_init(lc_assignor_table_t *t, const lc_assignor_round_t *r)
{
        *t = (lc_assignor_table_t){.r = r};
        order_workers(t);
        ask_who_can(t);
}

enum { FROM_CONFIG = -1, FROM_PREVIOUS = -2, FROM_REVOKED = -3 }; /* else the number of a worker */

typedef struct entry {
        const char *connector;
        int32_t task;
        int from;
        const bool *can;
} entry_t;

static int compare_work(const char *c, int32_t ctask, const char *d, int32_t dtask)
{
        int by_name = c == d ? 0 : lc_java_string_compare(c, d);

        return by_name ? by_name : (ctask > dtask) - (ctask < dtask);
}

static int by_work(const void *a, const void *b)
{
        const entry_t *x = a, *y = b;

        return compare_work(x->connector, x->task, y->connector, y->task);
}

static void add_entries(entry_t *entries, size_t *n, const lc_work_t *w, int from)
{
        for (size_t i = 0; i < w->n; i++)
                entries[(*n)++] = (entry_t){w->v[i].connector, w->v[i].task, from, NULL};
}

static void note_entry(lc_assignor_table_t *t, size_t item, const entry_t *e)
{
        lc_assignor_item_t *it = &t->items[item];

        if (e->from == FROM_CONFIG) {
                t->nconfigured[lc_assignor_kind(it)] += !(it->flags & LC_ITEM_CONFIGURED);
                it->flags |= LC_ITEM_CONFIGURED;
                it->can = e->can;
        } else if (e->from == FROM_PREVIOUS) {
                it->flags |= LC_ITEM_PREVIOUS;
        } else if (e->from == FROM_REVOKED) {
                it->flags |= LC_ITEM_UNASSIGNED;
        } else {
                it->flags |= it->flags & LC_ITEM_ACTIVE ? LC_ITEM_DUPLICATED : LC_ITEM_ACTIVE;
                t->workers[e->from].has[item] = true;
        }
}

void lc_assignor_table_fill(lc_assignor_table_t *t, const lc_work_t *previous, const lc_work_t *revoked)
{
        const lc_assignor_round_t *r = t->r;
        size_t max = previous->n + revoked->n, n = 0;
        entry_t *entries;

        for (size_t i = 0; i < r->nwork; i++)
                max += 1 + (size_t)(r->work[i].ntasks > 0 ? r->work[i].ntasks : 0);
        for (size_t i = 0; r->protocol && i < r->nmembers; i++)
                max += r->members[i].allocation.n;
        entries = lc_calloc(max + 1, sizeof(*entries));
        for (size_t i = 0; i < r->nwork; i++)
                for (int task = -1; task < r->work[i].ntasks; task++)
                        entries[n++] = (entry_t){r->work[i].connector, task, FROM_CONFIG, t->can[i]};
        add_entries(entries, &n, previous, FROM_PREVIOUS);
        add_entries(entries, &n, revoked, FROM_REVOKED);
        for (size_t w = 0; r->protocol && w < t->nworkers; w++)
                add_entries(entries, &n, &r->members[t->workers[w].member].allocation, (int)w);
        qsort(entries, n, sizeof(*entries), by_work);
        t->items = lc_calloc(n + 1, sizeof(*t->items));
        for (size_t w = 0; w < t->nworkers; w++) {
                t->workers[w].has = lc_calloc(3 * (n + 1), sizeof(bool));
                t->workers[w].next = t->workers[w].has + n + 1;
                t->workers[w].revoke = t->workers[w].next + n + 1;
        }
        for (size_t i = 0; i < n; i++) {
                if (i == 0 || by_work(&entries[i - 1], &entries[i]) != 0) {
                        t->items[t->nitems].connector = entries[i].connector;
                        t->items[t->nitems++].task = entries[i].task;
                }
                note_entry(t, t->nitems - 1, &entries[i]);
        }
        free(entries);
}

void lc_assignor_table_free(lc_assignor_table_t *t)
{
        for (size_t i = 0; i < t->r->nwork; i++)
                free(t->can[i]);
        free(t->can);
        for (size_t w = 0; w < t->nworkers; w++)
                free(t->workers[w].has);
        free(t->workers);
        free(t->items);
}

lc_assignor_worker_t *lc_assignor_worker_named(lc_assignor_table_t *t, const char *id)
{
        for (size_t i = 0; i < t->nworkers; i++)
                if (!strcmp(t->workers[i].id, id))
                        return &t->workers[i];
        return NULL;
}

bool lc_assignor_can_run(const lc_assignor_table_t *t, const lc_assignor_item_t *it,
                         const lc_assignor_worker_t *w)
{
        return !it->can || it->can[w - t->workers];
}

void lc_assignor_give(lc_assignor_table_t *t, lc_assignor_worker_t *w, size_t item)
{
        w->next[item] = true;
        w->n[lc_assignor_kind(&t->items[item])]++;
}

void lc_assignor_take(lc_assignor_table_t *t, lc_assignor_worker_t *w, size_t item)
{
        w->revoke[item] = true;
        if (w->next[item])
                w->n[lc_assignor_kind(&t->items[item])]--;
        w->next[item] = false;
}
