/*
 * assignor.c - see assignor.h. The steps are numbered as in reference group 5.
 *
 * A round is computed over one table of all items that play a part in it, in Java's order of names, with
 * flags instead of sets. Members are taken in the order of a Java HashMap of their ids: where Connect's
 * leader walks over them "in any order", a cluster gets the same answer from ours. Lock: `lock` guards
 * everything in lc_assignor_t; it is a leaf.
 */
#include "herder/assignor.h"
#include "base/alloc.h"
#include "base/strv.h"
#include "data/java_hash.h"
#include "herder/placement.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct owned_url {
        char *url;
        lc_work_t work;
} owned_url_t;

struct lc_assignor {
        pthread_mutex_t lock;
        int32_t max_delay_ms;
        lc_work_t previous_assignment; /* all work assigned in the last round, lost work included */
        lc_work_t previous_revocation;
        int32_t previous_generation;
        lc_strv_t previous_members;
        lc_strv_t candidates; /* workers that were empty while lost work waited, in order of discovery */
        int64_t scheduled_ms; /* time of the scheduled rebalance, 0 none */
        int32_t delay_ms;
        bool revoked_in_previous;
        int successive_revocations;
        owned_url_t *owners;
        size_t nowners;
};

enum {
        CONFIGURED = 1 << 0,
        PREVIOUS = 1 << 1,   /* in the previous assignment */
        UNASSIGNED = 1 << 2, /* in the previous revocation */
        ACTIVE = 1 << 3,     /* reported by a member */
        DUPLICATED = 1 << 4, /* reported by several */
        DELETED = 1 << 5,
        LOST = 1 << 6,
        FRESH = 1 << 7 /* to be assigned in this round */
};

typedef struct item {
        const char *connector;
        int32_t task;
        unsigned flags;
        const bool *can; /* of each worker; NULL: all can */
} item_t;

/* One member while a round is computed; has, next and revoke are of each item. */
typedef struct worker {
        const char *id;
        size_t member; /* its number in the round */
        bool *has;     /* reported */
        bool *next, *revoke;
        size_t n[2]; /* connectors and tasks in next */
} worker_t;

typedef struct table {
        const lc_assignor_round_t *r;
        worker_t *workers;
        size_t nworkers;
        item_t *items;
        size_t nitems;
        size_t nconfigured[2];
        bool **can; /* of each configured connector: of each worker, NULL: all can */
        bool excluded;
} table_t;

lc_assignor_t *lc_assignor_new(int32_t max_delay_ms)
{
        lc_assignor_t *a = lc_calloc(1, sizeof(*a));

        pthread_mutex_init(&a->lock, NULL);
        a->max_delay_ms = max_delay_ms;
        a->previous_generation = -1;
        return a;
}

static void free_owners(lc_assignor_t *a)
{
        for (size_t i = 0; i < a->nowners; i++) {
                free(a->owners[i].url);
                lc_work_free(&a->owners[i].work);
        }
        free(a->owners);
        a->owners = NULL;
        a->nowners = 0;
}

void lc_assignor_free(lc_assignor_t *a)
{
        if (!a)
                return;
        free_owners(a);
        lc_work_free(&a->previous_assignment);
        lc_work_free(&a->previous_revocation);
        lc_strv_free(&a->previous_members);
        lc_strv_free(&a->candidates);
        pthread_mutex_destroy(&a->lock);
        free(a);
}

/* ---- the table ---- */

static int kind_of(const item_t *it)
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
static void order_workers(table_t *t)
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
static void ask_who_can(table_t *t)
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

static void note_entry(table_t *t, size_t item, const entry_t *e)
{
        item_t *it = &t->items[item];

        if (e->from == FROM_CONFIG) {
                t->nconfigured[kind_of(it)] += !(it->flags & CONFIGURED);
                it->flags |= CONFIGURED;
                it->can = e->can;
        } else if (e->from == FROM_PREVIOUS) {
                it->flags |= PREVIOUS;
        } else if (e->from == FROM_REVOKED) {
                it->flags |= UNASSIGNED;
        } else {
                it->flags |= it->flags & ACTIVE ? DUPLICATED : ACTIVE;
                t->workers[e->from].has[item] = true;
        }
}

static void fill_table(table_t *t, const lc_work_t *previous, const lc_work_t *revoked)
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

static void free_table(table_t *t)
{
        for (size_t i = 0; i < t->r->nwork; i++)
                free(t->can[i]);
        free(t->can);
        for (size_t w = 0; w < t->nworkers; w++)
                free(t->workers[w].has);
        free(t->workers);
        free(t->items);
}

static worker_t *worker_named(table_t *t, const char *id)
{
        for (size_t i = 0; i < t->nworkers; i++)
                if (!strcmp(t->workers[i].id, id))
                        return &t->workers[i];
        return NULL;
}

static bool can_run(const table_t *t, const item_t *it, const worker_t *w)
{
        return !it->can || it->can[w - t->workers];
}

static void give(table_t *t, worker_t *w, size_t item)
{
        w->next[item] = true;
        w->n[kind_of(&t->items[item])]++;
}

static void take(table_t *t, worker_t *w, size_t item)
{
        w->revoke[item] = true;
        if (w->next[item])
                w->n[kind_of(&t->items[item])]--;
        w->next[item] = false;
}

/* ---- work that not every member can run ---- */

/* The items of a kind for placement.h, connectors and tasks together with kind -1; index[k] is the item of
 * placed[k]. Pending: with what is revoked in this round and dealt in the next. */
static size_t list_placed(const table_t *t, int kind, bool pending, lc_placed_t *placed, size_t *index)
{
        size_t n = 0;

        for (size_t i = 0; i < t->nitems; i++) {
                const item_t *it = &t->items[i];
                lc_placed_t p = {it->can, LC_PLACE_NOWHERE, LC_PLACE_NOWHERE};
                bool leaving = false;

                if ((kind >= 0 && kind_of(it) != kind) || !(it->flags & CONFIGURED))
                        continue;
                for (size_t w = 0; w < t->nworkers; w++) {
                        leaving = leaving || t->workers[w].revoke[i];
                        if (t->workers[w].next[i]) {
                                p.at = (int)w;
                                p.was = t->workers[w].has[i] ? (int)w : LC_PLACE_NOWHERE;
                        }
                }
                if (p.at == LC_PLACE_NOWHERE && !(it->flags & FRESH) && !(pending && leaving))
                        continue;
                placed[n] = p;
                index[n++] = i;
        }
        return n;
}

/* What is new goes where the placement has it. */
static void settle(table_t *t, const lc_placed_t *placed, const size_t *index, size_t n)
{
        for (size_t k = 0; k < n; k++) {
                item_t *it = &t->items[index[k]];
                worker_t *to = &t->workers[placed[k].at];

                if (placed[k].was != LC_PLACE_NOWHERE)
                        continue;
                if (it->flags & FRESH) {
                        it->flags &= ~(unsigned)FRESH;
                        give(t, to, index[k]);
                        continue;
                }
                for (size_t w = 0; w < t->nworkers; w++)
                        if (t->workers[w].next[index[k]] && &t->workers[w] != to) {
                                t->workers[w].next[index[k]] = false;
                                t->workers[w].n[kind_of(it)]--;
                                give(t, to, index[k]);
                                break;
                        }
        }
}

static void deal_by_ability(table_t *t, int kind)
{
        lc_placed_t *placed = lc_calloc(t->nitems + 1, sizeof(*placed));
        size_t *index = lc_calloc(t->nitems + 1, sizeof(*index));
        size_t n = list_placed(t, kind, false, placed, index);

        lc_placement_deal(placed, n, t->nworkers);
        settle(t, placed, index, n);
        free(placed);
        free(index);
}

/* A member gives up what it cannot run and another one can. */
static void take_misplaced(table_t *t)
{
        for (size_t w = 0; w < t->nworkers; w++)
                for (size_t i = 0; i < t->nitems; i++)
                        if (t->workers[w].next[i] && !can_run(t, &t->items[i], &t->workers[w]))
                                take(t, &t->workers[w], i);
}

/* ---- the eager assignor (5.4) ---- */

static void assign_eager(table_t *t, lc_assignment_t *out)
{
        size_t next = 0;

        for (size_t i = 0; i < t->nitems; i++)
                t->items[i].flags |= FRESH;
        if (t->excluded)
                deal_by_ability(t, -1);
        for (int kind = 0; !t->excluded && kind < 2; kind++)
                for (size_t i = 0; i < t->nitems; i++)
                        if (kind_of(&t->items[i]) == kind)
                                give(t, &t->workers[next++ % t->nworkers], i);
        for (size_t w = 0; w < t->nworkers; w++)
                for (size_t i = 0; i < t->nitems; i++)
                        if (t->workers[w].next[i])
                                lc_work_add(&out[t->workers[w].member].assigned, t->items[i].connector,
                                            t->items[i].task);
}

/* ---- the incremental cooperative assignor ---- */

static void reset_delay(lc_assignor_t *a)
{
        lc_strv_free(&a->candidates);
        a->scheduled_ms = 0;
        a->delay_ms = 0;
}

static bool all_previous_here(const lc_assignor_t *a, table_t *t)
{
        for (size_t i = 0; i < a->previous_members.n; i++)
                if (!worker_named(t, a->previous_members.v[i]))
                        return false;
        return true;
}

static void reassign_lost(table_t *t)
{
        for (size_t i = 0; i < t->nitems; i++)
                if (t->items[i].flags & LOST)
                        t->items[i].flags |= FRESH;
}

/* Deal lost connectors, then lost tasks, round-robin to the candidates that are still members; what none of
 * them can run goes to the others. false: there are no candidates. */
static bool give_to_candidates(const lc_assignor_t *a, table_t *t)
{
        worker_t **to = lc_calloc(a->candidates.n + 1, sizeof(*to));
        size_t nto = 0;

        for (size_t i = 0; i < a->candidates.n; i++) {
                worker_t *w = worker_named(t, a->candidates.v[i]);
                if (w)
                        to[nto++] = w;
        }
        for (int kind = 0; nto && kind < 2; kind++) {
                size_t next = 0, tries;
                for (size_t i = 0; i < t->nitems; i++) {
                        item_t *it = &t->items[i];

                        if (!(it->flags & LOST) || kind_of(it) != kind)
                                continue;
                        for (tries = 0; tries < nto && !can_run(t, it, to[(next + tries) % nto]); tries++)
                                ;
                        if (tries == nto) {
                                it->flags |= FRESH;
                                continue;
                        }
                        next += tries;
                        give(t, to[next++ % nto], i);
                }
        }
        free(to);
        return nto > 0;
}

/* Workers without work become candidates, in the order of a HashSet of them. */
static void add_candidates(lc_assignor_t *a, table_t *t)
{
        const char **ids = lc_calloc(t->nworkers, sizeof(*ids));
        uint32_t *order = lc_calloc(t->nworkers, sizeof(*order)), n = 0;

        for (size_t w = 0; w < t->nworkers; w++)
                if (!t->workers[w].n[0] && !t->workers[w].n[1])
                        ids[n++] = t->workers[w].id;
        if (lc_java_string_order(ids, n, order) == 0)
                for (uint32_t i = 0; i < n; i++)
                        if (!lc_strv_has(&a->candidates, ids[order[i]]))
                                lc_strv_add(&a->candidates, ids[order[i]]);
        free(ids);
        free(order);
}

/* Step 7 (5.1). What may be reassigned now becomes fresh. */
static void handle_lost(lc_assignor_t *a, table_t *t)
{
        int64_t now = t->r->now_ms, left;
        bool any = false;

        for (size_t i = 0; i < t->nitems; i++)
                any = any || t->items[i].flags & LOST;
        if (!any && !a->revoked_in_previous) {
                reset_delay(a);
                return;
        }
        /* nobody left: some worker did not get its assignment in the last round */
        if (a->scheduled_ms <= 0 && all_previous_here(a, t)) {
                reassign_lost(t);
                return;
        }
        if (a->max_delay_ms == 0) {
                reassign_lost(t);
                return;
        }
        if (a->scheduled_ms > 0 && now >= a->scheduled_ms) {
                if (!give_to_candidates(a, t))
                        reassign_lost(t);
                reset_delay(a);
                a->revoked_in_previous = false;
                return;
        }
        add_candidates(a, t);
        left = a->scheduled_ms - now;
        a->delay_ms = left > 0 && left < a->max_delay_ms ? (int32_t)left : a->max_delay_ms;
        a->scheduled_ms = now + a->delay_ms;
}

/* 5.2 for one kind: what each worker is to give up. */
static bool balance(const table_t *t, int kind, bool **plan)
{
        size_t n = t->nworkers, total = t->nconfigured[kind];
        size_t min = total / n, extra = total % n, at_min = 0, at_extra = 0, extras = 0;
        bool any = false;

        for (size_t w = 0; w < n; w++) {
                at_min += t->workers[w].n[kind] == min;
                at_extra += t->workers[w].n[kind] == min + 1;
        }
        if (at_extra == extra && at_min + at_extra == n)
                return false;
        for (size_t w = 0; w < n; w++) {
                size_t has = t->workers[w].n[kind], keep = min;

                if (has <= min)
                        continue;
                if (extras < extra) {
                        extras++;
                        keep = min + 1;
                }
                /* what it reported, then what it got as a candidate just now */
                for (size_t k = 0; k < 2 * t->nitems && has > keep; k++) {
                        size_t i = k % t->nitems;
                        const worker_t *wk = &t->workers[w];

                        if (kind_of(&t->items[i]) == kind && wk->next[i] && wk->has[i] == (k < t->nitems)) {
                                plan[w][i] = true;
                                any = true;
                                has--;
                        }
                }
        }
        return any;
}

/* min(max delay, 40^n), 0 when the delay is switched off. As Connect's, which also limits the exponent: that
 * can make the limit one less. */
static int32_t revocation_backoff(const lc_assignor_t *a)
{
        double limit, ms;

        if (a->max_delay_ms <= 1)
                return a->max_delay_ms;
        limit = log((double)a->max_delay_ms) / log(40.0);
        ms = pow(40.0, fmin((double)a->successive_revocations, limit));
        return ms < (double)a->max_delay_ms ? (int32_t)ms : a->max_delay_ms;
}

/* Step 8: may this round revoke for balance? any: there is something. */
static bool may_revoke(lc_assignor_t *a, bool any, int64_t now)
{
        if (!any) {
                if (a->revoked_in_previous) {
                        a->revoked_in_previous = false;
                        a->successive_revocations = 0;
                }
                return false;
        }
        if (a->revoked_in_previous) {
                a->successive_revocations += a->successive_revocations < INT32_MAX;
                a->delay_ms = revocation_backoff(a);
                if (a->delay_ms)
                        a->scheduled_ms = now + a->delay_ms;
                return a->delay_ms == 0;
        }
        a->revoked_in_previous = true;
        return true;
}

/* Step 8 when all can run all. */
static void balance_load(lc_assignor_t *a, table_t *t)
{
        bool **plan = lc_calloc(t->nworkers, sizeof(*plan)), empty = true, any = false;

        for (size_t w = 0; w < t->nworkers; w++) {
                plan[w] = lc_calloc(t->nitems + 1, sizeof(**plan));
                empty = empty && !t->workers[w].n[0] && !t->workers[w].n[1];
        }
        if (!empty && (t->nconfigured[0] || t->nconfigured[1])) {
                any = balance(t, 0, plan);
                any = balance(t, 1, plan) || any;
        }
        if (may_revoke(a, any, t->r->now_ms))
                for (size_t w = 0; w < t->nworkers; w++)
                        for (size_t i = 0; i < t->nitems; i++)
                                if (plan[w][i])
                                        take(t, &t->workers[w], i);
        for (size_t w = 0; w < t->nworkers; w++)
                free(plan[w]);
        free(plan);
}

/* Step 8 when some member cannot run some connector: the most even placement of everything is looked for,
 * what is new takes its place in it, and what has to move for it is revoked. The round that deals what was
 * revoked finds that placement again or one as even, so that nothing is revoked then. */
static void balance_by_ability(lc_assignor_t *a, table_t *t)
{
        lc_placed_t *placed[2];
        size_t *index[2], n[2];
        bool any = false, revoke;

        for (int kind = 0; kind < 2; kind++) {
                placed[kind] = lc_calloc(t->nitems + 1, sizeof(**placed));
                index[kind] = lc_calloc(t->nitems + 1, sizeof(**index));
                n[kind] = list_placed(t, kind, true, placed[kind], index[kind]);
                lc_placement_deal(placed[kind], n[kind], t->nworkers);
                lc_placement_level(placed[kind], n[kind], t->nworkers);
                for (size_t k = 0; k < n[kind]; k++)
                        any = any || (placed[kind][k].was != LC_PLACE_NOWHERE &&
                                      placed[kind][k].was != placed[kind][k].at);
        }
        revoke = may_revoke(a, any, t->r->now_ms);
        for (int kind = 0; kind < 2; kind++) {
                for (size_t k = 0; revoke && k < n[kind]; k++) {
                        const lc_placed_t *p = &placed[kind][k];
                        if (p->was != LC_PLACE_NOWHERE && p->was != p->at)
                                take(t, &t->workers[p->was], index[kind][k]);
                }
                if (revoke || !any)
                        settle(t, placed[kind], index[kind], n[kind]);
                free(placed[kind]);
                free(index[kind]);
        }
}

typedef struct load {
        worker_t *worker;
        size_t has;
} load_t;

static int by_load(const void *a, const void *b)
{
        const load_t *x = a, *y = b;

        if (x->has != y->has)
                return x->has < y->has ? -1 : 1;
        return lc_java_string_compare(x->worker->id, y->worker->id);
}

/* 5.3 for one kind: from the least loaded on, everybody on the first one's level gets one, again and again.
 * What was created goes first, then what was lost. */
static void deal(table_t *t, int kind)
{
        load_t *loads = lc_calloc(t->nworkers, sizeof(*loads));
        size_t to = 0, level;

        for (size_t w = 0; w < t->nworkers; w++)
                loads[w] = (load_t){&t->workers[w], t->workers[w].n[kind]};
        qsort(loads, t->nworkers, sizeof(*loads), by_load);
        level = loads[0].has;
        for (size_t k = 0; k < 2 * t->nitems; k++) {
                size_t i = k % t->nitems;
                unsigned f = t->items[i].flags & (FRESH | LOST);

                if (f != (k < t->nitems ? FRESH : FRESH | LOST) || kind_of(&t->items[i]) != kind)
                        continue;
                if (to == t->nworkers || loads[to].has > level) {
                        to = 0;
                        level = loads[0].has;
                }
                loads[to].has++;
                give(t, loads[to++].worker, i);
        }
        free(loads);
}

/* Steps 10 and 11. */
static void finish(lc_assignor_t *a, const table_t *t, lc_assignment_t *out)
{
        lc_work_t previous = {NULL, 0}, revocation = {NULL, 0};

        for (size_t i = 0; i < t->nitems; i++) {
                const item_t *it = &t->items[i];
                bool next = false, revoke = false;

                for (size_t k = 0; k < t->nworkers; k++) {
                        const worker_t *w = &t->workers[k];
                        if (w->next[i] && !w->has[i])
                                lc_work_add(&out[w->member].assigned, it->connector, it->task);
                        if (w->revoke[i])
                                lc_work_add(&out[w->member].revoked, it->connector, it->task);
                        next = next || w->next[i];
                        revoke = revoke || w->revoke[i];
                }
                if ((next && !revoke) || it->flags & LOST)
                        lc_work_add(&previous, it->connector, it->task);
                if (revoke)
                        lc_work_add(&revocation, it->connector, it->task);
        }
        lc_work_free(&a->previous_assignment);
        lc_work_free(&a->previous_revocation);
        lc_strv_free(&a->previous_members);
        a->previous_assignment = previous;
        a->previous_revocation = revocation;
        for (size_t i = 0; i < t->nworkers; i++) {
                out[i].delay_ms = a->delay_ms;
                lc_strv_add(&a->previous_members, t->workers[i].id);
        }
        a->previous_generation = t->r->generation;
}

static void derive_sets(table_t *t)
{
        bool kept = false;

        for (size_t i = 0; i < t->nitems; i++)
                kept = kept || (t->items[i].flags & (UNASSIGNED | ACTIVE)) == (UNASSIGNED | ACTIVE);
        for (size_t i = 0; i < t->nitems; i++) {
                unsigned f = t->items[i].flags;

                if (kept) /* 3: a revocation that did not take effect */
                        f = f & ACTIVE ? f | PREVIOUS : f & ~(unsigned)PREVIOUS;
                if ((f & PREVIOUS) && !(f & CONFIGURED)) /* 4 */
                        f |= DELETED;
                if ((f & PREVIOUS) && !(f & (ACTIVE | DELETED)))
                        f |= LOST;
                if ((f & CONFIGURED) && !(f & (PREVIOUS | ACTIVE)))
                        f |= FRESH;
                t->items[i].flags = f;
                for (size_t k = 0; k < t->nworkers; k++) { /* 5, 6 */
                        worker_t *w = &t->workers[k];
                        if (!w->has[i])
                                continue;
                        if (f & (DELETED | DUPLICATED))
                                w->revoke[i] = true;
                        else
                                give(t, w, i);
                }
        }
}

static void assign_cooperative(lc_assignor_t *a, table_t *t, lc_assignment_t *out)
{
        derive_sets(t); /* 3 to 6 */
        if (t->excluded)
                take_misplaced(t);
        handle_lost(a, t);    /* 7 */
        if (a->delay_ms != 0) /* 8: lost work is waited for */
                a->revoked_in_previous = false;
        else if (t->excluded)
                balance_by_ability(a, t);
        else
                balance_load(a, t);
        for (int kind = 0; kind < 2; kind++) { /* 9 */
                if (t->excluded)
                        deal_by_ability(t, kind);
                else
                        deal(t, kind);
        }
        finish(a, t, out); /* 10, 11 */
}

/* What each member owns once the round is applied. */
static void note_owners(lc_assignor_t *a, const lc_assignor_round_t *r, const lc_assignment_t *out)
{
        free_owners(a);
        a->owners = lc_calloc(r->nmembers, sizeof(*a->owners));
        a->nowners = r->nmembers;
        for (size_t i = 0; i < r->nmembers; i++) {
                lc_work_t *owned = &a->owners[i].work;
                const lc_work_t *had = &r->members[i].allocation, *got = &out[i].assigned;

                a->owners[i].url = lc_strdup(r->members[i].url ? r->members[i].url : "");
                for (size_t k = 0; r->protocol && k < had->n; k++)
                        if (!lc_work_has(&out[i].revoked, had->v[k].connector, had->v[k].task))
                                lc_work_add(owned, had->v[k].connector, had->v[k].task);
                for (size_t k = 0; k < got->n; k++)
                        lc_work_add(owned, got->v[k].connector, got->v[k].task);
        }
}

int lc_assignor_assign(lc_assignor_t *a, const lc_assignor_round_t *r, lc_assignment_t *out)
{
        static const lc_work_t nothing;
        table_t t = {.r = r};
        int64_t max = r->config_offset;
        bool behind;

        for (size_t i = 0; i < r->nmembers; i++)
                if (r->members[i].config_offset > max)
                        max = r->members[i].config_offset;
        behind = r->config_offset < max;
        for (size_t i = 0; i < r->nmembers; i++) {
                out[i].error = behind ? 1 : 0;
                out[i].config_offset = max;
        }
        if (behind)
                return -1;
        order_workers(&t);
        ask_who_can(&t);
        pthread_mutex_lock(&a->lock);
        if (r->protocol == 0) {
                fill_table(&t, &nothing, &nothing);
                assign_eager(&t, out);
        } else { /* 1, 2: what was assigned before a round that was missed is not known any more */
                bool missed = a->previous_generation != r->last_generation;

                fill_table(&t, missed ? &nothing : &a->previous_assignment, &a->previous_revocation);
                assign_cooperative(a, &t, out);
        }
        note_owners(a, r, out);
        pthread_mutex_unlock(&a->lock);
        free_table(&t);
        return 0;
}

bool lc_assignor_owner_url(lc_assignor_t *a, const char *connector, int32_t task, lc_buf_t *url)
{
        bool found = false;

        pthread_mutex_lock(&a->lock);
        for (size_t i = 0; i < a->nowners && !found; i++)
                if (lc_work_has(&a->owners[i].work, connector, task)) {
                        lc_buf_adds(url, a->owners[i].url);
                        found = true;
                }
        pthread_mutex_unlock(&a->lock);
        return found;
}

void lc_assignor_forget_owners(lc_assignor_t *a)
{
        pthread_mutex_lock(&a->lock);
        free_owners(a);
        pthread_mutex_unlock(&a->lock);
}
