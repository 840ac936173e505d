/*
 * assignor.c - see assignor.h. The steps are numbered as in reference group 5.
 * Lock: `lock` guards everything in lc_assignor_t; it is a leaf.
 */
#include "herder/assignor.h"
#include "base/alloc.h"
#include "base/strv.h"
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

/* One member while a round is computed. */
typedef struct worker {
        const char *id;
        lc_work_t current; /* reported, minus deleted */
        lc_work_t next;
        lc_work_t revoke;
} worker_t;

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

/* ---- sets ---- */

static void add_all(lc_work_t *to, const lc_work_t *from)
{
        for (size_t i = 0; i < from->n; i++)
                lc_work_add(to, from->v[i].connector, from->v[i].task);
}

/* from - minus1 - minus2 (either may be NULL) */
static lc_work_t difference(const lc_work_t *from, const lc_work_t *minus1, const lc_work_t *minus2)
{
        lc_work_t out = {NULL, 0};

        for (size_t i = 0; i < from->n; i++) {
                const lc_work_item_t *it = &from->v[i];
                if ((!minus1 || !lc_work_has(minus1, it->connector, it->task)) &&
                    (!minus2 || !lc_work_has(minus2, it->connector, it->task)))
                        lc_work_add(&out, it->connector, it->task);
        }
        return out;
}

static void subtract(lc_work_t *from, const lc_work_t *minus)
{
        lc_work_t left;

        if (!minus->n)
                return;
        left = difference(from, minus, NULL);
        lc_work_free(from);
        *from = left;
}

static bool overlap(const lc_work_t *a, const lc_work_t *b)
{
        for (size_t i = 0; i < a->n; i++)
                if (lc_work_has(b, a->v[i].connector, a->v[i].task))
                        return true;
        return false;
}

/* Connectors (tasks false) or tasks in a set. */
static bool is_kind(const lc_work_item_t *it, bool tasks)
{
        return (it->task >= 0) == tasks;
}

static size_t count(const lc_work_t *w, bool tasks)
{
        size_t n = 0;

        for (size_t i = 0; i < w->n; i++)
                n += is_kind(&w->v[i], tasks);
        return n;
}

static worker_t *worker_named(worker_t *w, size_t n, const char *id)
{
        for (size_t i = 0; i < n; i++)
                if (!strcmp(w[i].id, id))
                        return &w[i];
        return NULL;
}

/* ---- the eager assignor (5.4) ---- */

typedef struct ordered {
        const char *id;
        size_t index;
} ordered_t;

static int by_id(const void *a, const void *b)
{
        return strcmp(((const ordered_t *)a)->id, ((const ordered_t *)b)->id);
}

static void assign_eager(const lc_work_t *configured, const lc_assignor_round_t *r, lc_assignment_t *out)
{
        ordered_t *members = lc_calloc(r->nmembers, sizeof(*members));
        size_t next = 0;

        for (size_t i = 0; i < r->nmembers; i++)
                members[i] = (ordered_t){r->members[i].id, i};
        qsort(members, r->nmembers, sizeof(*members), by_id);
        for (int tasks = 0; tasks < 2; tasks++)
                for (size_t i = 0; i < configured->n; i++)
                        if (is_kind(&configured->v[i], tasks)) {
                                lc_assignment_t *o = &out[members[next++ % r->nmembers].index];
                                lc_work_add(&o->assigned, configured->v[i].connector, configured->v[i].task);
                        }
        free(members);
}

/* ---- the incremental cooperative assignor ---- */

static void reset_delay(lc_assignor_t *a)
{
        lc_strv_free(&a->candidates);
        a->scheduled_ms = 0;
        a->delay_ms = 0;
}

static bool all_previous_here(const lc_assignor_t *a, worker_t *workers, size_t n)
{
        for (size_t i = 0; i < a->previous_members.n; i++)
                if (!worker_named(workers, n, a->previous_members.v[i]))
                        return false;
        return true;
}

/* Deal lost connectors, then lost tasks, round-robin to the candidates that are still members. */
static bool give_to_candidates(const lc_assignor_t *a, const lc_work_t *lost, worker_t *workers, size_t n)
{
        worker_t **to = lc_calloc(a->candidates.n, sizeof(*to));
        size_t nto = 0;

        for (size_t i = 0; i < a->candidates.n; i++) {
                worker_t *w = worker_named(workers, n, a->candidates.v[i]);
                if (w)
                        to[nto++] = w;
        }
        for (int tasks = 0; nto && tasks < 2; tasks++) {
                size_t next = 0;
                for (size_t i = 0; i < lost->n; i++)
                        if (is_kind(&lost->v[i], tasks))
                                lc_work_add(&to[next++ % nto]->next, lost->v[i].connector, lost->v[i].task);
        }
        free(to);
        return nto > 0;
}

/* Step 7 (5.1). What may be reassigned now is added to *reassign. */
static void handle_lost(lc_assignor_t *a, const lc_work_t *lost, lc_work_t *reassign, worker_t *workers,
                        size_t n, int64_t now)
{
        if (!lost->n && !a->revoked_in_previous) {
                reset_delay(a);
                return;
        }
        /* nobody left: some worker did not get its assignment in the last round */
        if (a->scheduled_ms <= 0 && all_previous_here(a, workers, n)) {
                add_all(reassign, lost);
                return;
        }
        if (a->max_delay_ms == 0) {
                add_all(reassign, lost);
                return;
        }
        if (a->scheduled_ms > 0 && now >= a->scheduled_ms) {
                if (!give_to_candidates(a, lost, workers, n))
                        add_all(reassign, lost);
                reset_delay(a);
                a->revoked_in_previous = false;
                return;
        }
        for (size_t i = 0; i < n; i++)
                if (!workers[i].next.n && !lc_strv_has(&a->candidates, workers[i].id))
                        lc_strv_add(&a->candidates, workers[i].id);
        a->delay_ms = now < a->scheduled_ms ? (int32_t)(a->scheduled_ms - now) : a->max_delay_ms;
        a->scheduled_ms = now + a->delay_ms;
}

/* 5.2 for one kind. Fills revoke[i] for workers[i]; true when something is to be revoked. */
static bool balance(bool tasks, size_t total, worker_t *workers, size_t n, lc_work_t *revoke)
{
        size_t min = total / n, extra = total % n, at_min = 0, at_extra = 0, extras = 0;
        bool any = false;

        for (size_t i = 0; i < n; i++) {
                size_t has = count(&workers[i].next, tasks);
                at_min += has == min;
                at_extra += has == min + 1;
        }
        if (at_extra == extra && at_min + at_extra == n)
                return false;
        for (size_t i = 0; i < n; i++) {
                size_t has = count(&workers[i].next, tasks), keep = min;
                const lc_work_t *w = &workers[i].next;

                if (has <= min)
                        continue;
                if (extras < extra) {
                        extras++;
                        keep = min + 1;
                }
                for (size_t k = 0; k < w->n && has > keep; k++)
                        if (is_kind(&w->v[k], tasks)) {
                                lc_work_add(&revoke[i], w->v[k].connector, w->v[k].task);
                                any = true;
                                has--;
                        }
        }
        return any;
}

static void apply_revocations(worker_t *workers, size_t n, const lc_work_t *revoke)
{
        for (size_t i = 0; i < n; i++) {
                add_all(&workers[i].revoke, &revoke[i]);
                subtract(&workers[i].next, &revoke[i]);
        }
}

/* min(max delay, 40^n), 0 when the delay is switched off */
static int32_t revocation_backoff(const lc_assignor_t *a)
{
        int64_t ms = 1;

        for (int i = 0; i < a->successive_revocations && ms < a->max_delay_ms; i++)
                ms *= 40;
        return ms < a->max_delay_ms ? (int32_t)ms : a->max_delay_ms;
}

/* Step 8. */
static void balance_load(lc_assignor_t *a, const lc_work_t *configured, worker_t *workers, size_t n,
                         int64_t now)
{
        lc_work_t *revoke;
        bool empty = true, any = false;

        if (a->delay_ms != 0) { /* lost work is waited for */
                a->revoked_in_previous = false;
                return;
        }
        revoke = lc_calloc(n, sizeof(*revoke));
        for (size_t i = 0; i < n; i++)
                empty = empty && !workers[i].next.n;
        if (!empty && configured->n) {
                any = balance(false, count(configured, false), workers, n, revoke);
                any = balance(true, count(configured, true), workers, n, revoke) || any;
        }
        if (a->revoked_in_previous && any) {
                a->successive_revocations++;
                a->delay_ms = revocation_backoff(a);
                if (a->delay_ms)
                        a->scheduled_ms = now + a->delay_ms;
                else
                        apply_revocations(workers, n, revoke);
        } else if (any) {
                apply_revocations(workers, n, revoke);
                a->revoked_in_previous = true;
        } else if (a->revoked_in_previous) {
                a->revoked_in_previous = false;
                a->successive_revocations = 0;
        }
        for (size_t i = 0; i < n; i++)
                lc_work_free(&revoke[i]);
        free(revoke);
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
        return strcmp(x->worker->id, y->worker->id);
}

/* 5.3 for one kind: from the least loaded on, everybody on the first one's level gets one, again and again.
 */
static void deal(const lc_work_t *items, bool tasks, worker_t *workers, size_t n)
{
        load_t *loads;
        size_t at = 0;

        if (!count(items, tasks))
                return;
        loads = lc_calloc(n, sizeof(*loads));
        for (size_t i = 0; i < n; i++)
                loads[i] = (load_t){&workers[i], count(&workers[i].next, tasks)};
        qsort(loads, n, sizeof(*loads), by_load);
        while (at < items->n) {
                size_t level = loads[0].has;
                for (size_t i = 0; i < n && loads[i].has <= level; i++) {
                        while (at < items->n && !is_kind(&items->v[at], tasks))
                                at++;
                        if (at == items->n)
                                break;
                        lc_work_add(&loads[i].worker->next, items->v[at].connector, items->v[at].task);
                        loads[i].has++;
                        at++;
                }
        }
        free(loads);
}

/* Steps 9 to 11. `fresh` is what is to be assigned. */
static void finish(lc_assignor_t *a, const lc_assignor_round_t *r, const lc_work_t *fresh,
                   const lc_work_t *lost, worker_t *workers, lc_assignment_t *out)
{
        size_t n = r->nmembers;

        deal(fresh, false, workers, n);
        deal(fresh, true, workers, n);
        lc_work_free(&a->previous_assignment);
        lc_strv_free(&a->previous_members);
        for (size_t i = 0; i < n; i++) {
                out[i].assigned = difference(&workers[i].next, &workers[i].current, NULL);
                lc_work_copy(&out[i].revoked, &workers[i].revoke);
                out[i].delay_ms = a->delay_ms;
                add_all(&a->previous_assignment, &workers[i].next);
                lc_strv_add(&a->previous_members, workers[i].id);
        }
        for (size_t i = 0; i < n; i++) {
                subtract(&a->previous_assignment, &workers[i].revoke);
                add_all(&a->previous_revocation, &workers[i].revoke);
        }
        add_all(&a->previous_assignment, lost);
        a->previous_generation = r->generation;
}

static void assign_cooperative(lc_assignor_t *a, const lc_assignor_round_t *r, const lc_work_t *configured,
                               lc_assignment_t *out)
{
        size_t n = r->nmembers;
        worker_t *workers = lc_calloc(n, sizeof(*workers));
        lc_work_t active = {NULL, 0}, duplicated = {NULL, 0}, deleted, lost, fresh;

        if (a->previous_generation != r->last_generation) /* 1 */
                lc_work_free(&a->previous_assignment);
        for (size_t i = 0; i < n; i++) { /* 2 */
                const lc_work_t *w = &r->members[i].allocation;
                for (size_t k = 0; k < w->n; k++) {
                        if (lc_work_has(&active, w->v[k].connector, w->v[k].task))
                                lc_work_add(&duplicated, w->v[k].connector, w->v[k].task);
                        else
                                lc_work_add(&active, w->v[k].connector, w->v[k].task);
                }
        }
        if (a->previous_revocation.n) { /* 3: a revocation that did not take effect */
                if (overlap(&a->previous_revocation, &active))
                        lc_work_copy(&a->previous_assignment, &active);
                lc_work_free(&a->previous_revocation);
        }
        deleted = difference(&a->previous_assignment, configured, NULL); /* 4 */
        lost = difference(&a->previous_assignment, &active, &deleted);
        fresh = difference(configured, &a->previous_assignment, &active);
        for (size_t i = 0; i < n; i++) { /* 5, 6 */
                const lc_work_t *w = &r->members[i].allocation;

                workers[i].id = r->members[i].id;
                workers[i].current = difference(w, &deleted, NULL);
                workers[i].next = difference(w, &deleted, &duplicated);
                workers[i].revoke = difference(w, &workers[i].next, NULL);
        }
        handle_lost(a, &lost, &fresh, workers, n, r->now_ms); /* 7 */
        balance_load(a, configured, workers, n, r->now_ms);   /* 8 */
        finish(a, r, &fresh, &lost, workers, out);            /* 9 to 11 */
        for (size_t i = 0; i < n; i++) {
                lc_work_free(&workers[i].current);
                lc_work_free(&workers[i].next);
                lc_work_free(&workers[i].revoke);
        }
        free(workers);
        lc_work_free(&active);
        lc_work_free(&duplicated);
        lc_work_free(&deleted);
        lc_work_free(&lost);
        lc_work_free(&fresh);
}

/* What each member owns once the round is applied. */
static void note_owners(lc_assignor_t *a, const lc_assignor_round_t *r, const lc_assignment_t *out)
{
        free_owners(a);
        a->owners = lc_calloc(r->nmembers, sizeof(*a->owners));
        a->nowners = r->nmembers;
        for (size_t i = 0; i < r->nmembers; i++) {
                a->owners[i].url = lc_strdup(r->members[i].url ? r->members[i].url : "");
                if (r->protocol != 0)
                        a->owners[i].work = difference(&r->members[i].allocation, &out[i].revoked, NULL);
                add_all(&a->owners[i].work, &out[i].assigned);
        }
}

int lc_assignor_assign(lc_assignor_t *a, const lc_assignor_round_t *r, lc_assignment_t *out)
{
        lc_work_t configured = {NULL, 0};
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
        for (size_t i = 0; i < r->nwork; i++)
                for (int task = -1; task < r->work[i].ntasks; task++)
                        lc_work_add(&configured, r->work[i].connector, task);
        pthread_mutex_lock(&a->lock);
        if (r->protocol == 0)
                assign_eager(&configured, r, out);
        else
                assign_cooperative(a, r, &configured, out);
        note_owners(a, r, out);
        pthread_mutex_unlock(&a->lock);
        lc_work_free(&configured);
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
