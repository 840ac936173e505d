/*
 * assignor.c - see assignor.h. The steps are numbered as in reference group 5.
 *
 * A round is computed over one table of all items that play a part in it, in Java's order of names, with
 * flags instead of sets. Members are taken in the order of a Java HashMap of their ids: where Connect's
 * leader walks over them "in any order", a cluster gets the same answer from ours.
 * Lock: `lock` guards everything in lc_assignor_t; it is a leaf.
 */
#include "herder/assignor.h"
#include "herder/assignor_table.h"
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

/* ---- work that not every member can run ---- */

/* The items of a kind for placement.h, connectors and tasks together with kind -1; index[k] is the item of
 * placed[k]. Pending: with what is revoked in this round and dealt in the next. */
static size_t list_placed(const lc_assignor_table_t *t, int kind, bool pending, lc_placed_t *placed,
                          size_t *index)
{
        size_t n = 0;

        for (size_t i = 0; i < t->nitems; i++) {
                const lc_assignor_item_t *it = &t->items[i];
                lc_placed_t p = {it->can, LC_PLACE_NOWHERE, LC_PLACE_NOWHERE};
                bool leaving = false;

                if ((kind >= 0 && lc_assignor_kind(it) != kind) || !(it->flags & LC_ITEM_CONFIGURED))
                        continue;
                for (size_t w = 0; w < t->nworkers; w++) {
                        leaving = leaving || t->workers[w].revoke[i];
                        if (t->workers[w].next[i]) {
                                p.at = (int)w;
                                p.was = t->workers[w].has[i] ? (int)w : LC_PLACE_NOWHERE;
                        }
                }
                if (p.at == LC_PLACE_NOWHERE && !(it->flags & LC_ITEM_FRESH) && !(pending && leaving))
                        continue;
                placed[n] = p;
                index[n++] = i;
        }
        return n;
}

/* What is new goes where the placement has it. */
static void settle(lc_assignor_table_t *t, const lc_placed_t *placed, const size_t *index, size_t n)
{
        for (size_t k = 0; k < n; k++) {
                lc_assignor_item_t *it = &t->items[index[k]];
                lc_assignor_worker_t *to = &t->workers[placed[k].at];

                if (placed[k].was != LC_PLACE_NOWHERE)
                        continue;
                if (it->flags & LC_ITEM_FRESH) {
                        it->flags &= ~(unsigned)LC_ITEM_FRESH;
                        lc_assignor_give(t, to, index[k]);
                        continue;
                }
                for (size_t w = 0; w < t->nworkers; w++)
                        if (t->workers[w].next[index[k]] && &t->workers[w] != to) {
                                t->workers[w].next[index[k]] = false;
                                t->workers[w].n[lc_assignor_kind(it)]--;
                                lc_assignor_give(t, to, index[k]);
                                break;
                        }
        }
}

static void deal_by_ability(lc_assignor_table_t *t, int kind)
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
static void take_misplaced(lc_assignor_table_t *t)
{
        for (size_t w = 0; w < t->nworkers; w++)
                for (size_t i = 0; i < t->nitems; i++)
                        if (t->workers[w].next[i] && !lc_assignor_can_run(t, &t->items[i], &t->workers[w]))
                                lc_assignor_take(t, &t->workers[w], i);
}

/* ---- the eager assignor (5.4) ---- */

static void assign_eager(lc_assignor_table_t *t, lc_assignment_t *out)
{
        size_t next = 0;

        for (size_t i = 0; i < t->nitems; i++)
                t->items[i].flags |= LC_ITEM_FRESH;
        if (t->excluded)
                deal_by_ability(t, -1);
        for (int kind = 0; !t->excluded && kind < 2; kind++)
                for (size_t i = 0; i < t->nitems; i++)
                        if (lc_assignor_kind(&t->items[i]) == kind)
                                lc_assignor_give(t, &t->workers[next++ % t->nworkers], i);
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

static bool all_previous_here(const lc_assignor_t *a, lc_assignor_table_t *t)
{
        for (size_t i = 0; i < a->previous_members.n; i++)
                if (!lc_assignor_worker_named(t, a->previous_members.v[i]))
                        return false;
        return true;
}

static void reassign_lost(lc_assignor_table_t *t)
{
        for (size_t i = 0; i < t->nitems; i++)
                if (t->items[i].flags & LC_ITEM_LOST)
                        t->items[i].flags |= LC_ITEM_FRESH;
}

/* Deal lost connectors, then lost tasks, round-robin to the candidates that are still members; what none of
 * them can run goes to the others. false: there are no candidates. */
static bool give_to_candidates(const lc_assignor_t *a, lc_assignor_table_t *t)
{
        lc_assignor_worker_t **to = lc_calloc(a->candidates.n + 1, sizeof(*to));
        size_t nto = 0;

        for (size_t i = 0; i < a->candidates.n; i++) {
                lc_assignor_worker_t *w = lc_assignor_worker_named(t, a->candidates.v[i]);
                if (w)
                        to[nto++] = w;
        }
        for (int kind = 0; nto && kind < 2; kind++) {
                size_t next = 0, tries;
                for (size_t i = 0; i < t->nitems; i++) {
                        lc_assignor_item_t *it = &t->items[i];

                        if (!(it->flags & LC_ITEM_LOST) || lc_assignor_kind(it) != kind)
                                continue;
                        for (tries = 0; tries < nto && !lc_assignor_can_run(t, it, to[(next + tries) % nto]);
                             tries++)
                                ;
                        if (tries == nto) {
                                it->flags |= LC_ITEM_FRESH;
                                continue;
                        }
                        next += tries;
                        lc_assignor_give(t, to[next++ % nto], i);
                }
        }
        free(to);
        return nto > 0;
}

/* Workers without work become candidates, in the order of a HashSet of them. */
static void add_candidates(lc_assignor_t *a, lc_assignor_table_t *t)
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
static void handle_lost(lc_assignor_t *a, lc_assignor_table_t *t)
{
        int64_t now = t->r->now_ms, left;
        bool any = false;

        for (size_t i = 0; i < t->nitems; i++)
                any = any || t->items[i].flags & LC_ITEM_LOST;
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
static bool balance(const lc_assignor_table_t *t, int kind, bool **plan)
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
                        const lc_assignor_worker_t *wk = &t->workers[w];

                        if (lc_assignor_kind(&t->items[i]) == kind && wk->next[i] &&
                            wk->has[i] == (k < t->nitems)) {
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
static void balance_load(lc_assignor_t *a, lc_assignor_table_t *t)
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
                                        lc_assignor_take(t, &t->workers[w], i);
        for (size_t w = 0; w < t->nworkers; w++)
                free(plan[w]);
        free(plan);
}

/* Step 8 when some member cannot run some connector: the most even placement of everything is looked for,
 * what is new takes its place in it, and what has to move for it is revoked. The round that deals what was
 * revoked finds that placement again or one as even, so that nothing is revoked then. */
static void balance_by_ability(lc_assignor_t *a, lc_assignor_table_t *t)
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
                                lc_assignor_take(t, &t->workers[p->was], index[kind][k]);
                }
                if (revoke || !any)
                        settle(t, placed[kind], index[kind], n[kind]);
                free(placed[kind]);
                free(index[kind]);
        }
}

typedef struct load {
        lc_assignor_worker_t *worker;
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
static void deal(lc_assignor_table_t *t, int kind)
{
        load_t *loads = lc_calloc(t->nworkers, sizeof(*loads));
        size_t to = 0, level;

        for (size_t w = 0; w < t->nworkers; w++)
                loads[w] = (load_t){&t->workers[w], t->workers[w].n[kind]};
        qsort(loads, t->nworkers, sizeof(*loads), by_load);
        level = loads[0].has;
        for (size_t k = 0; k < 2 * t->nitems; k++) {
                size_t i = k % t->nitems;
                unsigned f = t->items[i].flags & (LC_ITEM_FRESH | LC_ITEM_LOST);

                if (f != (k < t->nitems ? LC_ITEM_FRESH : LC_ITEM_FRESH | LC_ITEM_LOST) ||
                    lc_assignor_kind(&t->items[i]) != kind)
                        continue;
                if (to == t->nworkers || loads[to].has > level) {
                        to = 0;
                        level = loads[0].has;
                }
                loads[to].has++;
                lc_assignor_give(t, loads[to++].worker, i);
        }
        free(loads);
}

/* Steps 10 and 11. */
static void finish(lc_assignor_t *a, const lc_assignor_table_t *t, lc_assignment_t *out)
{
        lc_work_t previous = {NULL, 0}, revocation = {NULL, 0};

        for (size_t i = 0; i < t->nitems; i++) {
                const lc_assignor_item_t *it = &t->items[i];
                bool next = false, revoke = false;

                for (size_t k = 0; k < t->nworkers; k++) {
                        const lc_assignor_worker_t *w = &t->workers[k];
                        if (w->next[i] && !w->has[i])
                                lc_work_add(&out[w->member].assigned, it->connector, it->task);
                        if (w->revoke[i])
                                lc_work_add(&out[w->member].revoked, it->connector, it->task);
                        next = next || w->next[i];
                        revoke = revoke || w->revoke[i];
                }
                if ((next && !revoke) || it->flags & LC_ITEM_LOST)
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

static void derive_sets(lc_assignor_table_t *t)
{
        bool kept = false;

        for (size_t i = 0; i < t->nitems; i++)
                kept = kept || (t->items[i].flags & (LC_ITEM_UNASSIGNED | LC_ITEM_ACTIVE)) ==
                                       (LC_ITEM_UNASSIGNED | LC_ITEM_ACTIVE);
        for (size_t i = 0; i < t->nitems; i++) {
                unsigned f = t->items[i].flags;

                if (kept) /* 3: a revocation that did not take effect */
                        f = f & LC_ITEM_ACTIVE ? f | LC_ITEM_PREVIOUS : f & ~(unsigned)LC_ITEM_PREVIOUS;
                if ((f & LC_ITEM_PREVIOUS) && !(f & LC_ITEM_CONFIGURED)) /* 4 */
                        f |= LC_ITEM_DELETED;
                if ((f & LC_ITEM_PREVIOUS) && !(f & (LC_ITEM_ACTIVE | LC_ITEM_DELETED)))
                        f |= LC_ITEM_LOST;
                if ((f & LC_ITEM_CONFIGURED) && !(f & (LC_ITEM_PREVIOUS | LC_ITEM_ACTIVE)))
                        f |= LC_ITEM_FRESH;
                t->items[i].flags = f;
                for (size_t k = 0; k < t->nworkers; k++) { /* 5, 6 */
                        lc_assignor_worker_t *w = &t->workers[k];
                        if (!w->has[i])
                                continue;
                        if (f & (LC_ITEM_DELETED | LC_ITEM_DUPLICATED))
                                w->revoke[i] = true;
                        else
                                lc_assignor_give(t, w, i);
                }
        }
}

static void assign_cooperative(lc_assignor_t *a, lc_assignor_table_t *t, lc_assignment_t *out)
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
        lc_assignor_table_t t;
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
        lc_assignor_table_init(&t, r);
        pthread_mutex_lock(&a->lock);
        if (r->protocol == 0) {
                lc_assignor_table_fill(&t, &nothing, &nothing);
                assign_eager(&t, out);
        } else { /* 1, 2: what was assigned before a round that was missed is not known any more */
                bool missed = a->previous_generation != r->last_generation;

                lc_assignor_table_fill(&t, missed ? &nothing : &a->previous_assignment,
                                       &a->previous_revocation);
                assign_cooperative(a, &t, out);
        }
        note_owners(a, r, out);
        pthread_mutex_unlock(&a->lock);
        lc_assignor_table_free(&t);
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
