/*
 * group_work.c - sets of work and assignments (kafka/group.h): plain values, one owner each.
 * Tests: spec/unit/group_spec.lua
 */
#include "base/alloc.h"
#include "kafka/group.h"
#include "kafka/wire/connect_protocol.h"
#include <stdlib.h>
#include <string.h>

/* Position of (connector, task), or where it belongs. */
static size_t find(const lc_work_t *w, const char *connector, int32_t task, bool *found)
{
        size_t low = 0, high = w->n;

        *found = false;
        while (low < high) {
                size_t mid = low + (high - low) / 2;
                int c = strcmp(w->v[mid].connector, connector);

                if (!c)
                        c = (w->v[mid].task > task) - (w->v[mid].task < task);
                if (!c) {
                        *found = true;
                        return mid;
                }
                if (c < 0)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

void lc_work_add(lc_work_t *w, const char *connector, int32_t task)
{
        bool found;
        size_t at = find(w, connector, task, &found);

        if (found)
                return;
        if ((w->n & (w->n - 1)) == 0) /* the capacity is the next power of two */
                w->v = lc_realloc(w->v, (w->n ? w->n * 2 : 1) * sizeof(*w->v));
        memmove(w->v + at + 1, w->v + at, (w->n - at) * sizeof(*w->v));
        w->v[at].connector = lc_strdup(connector);
        w->v[at].task = task;
        w->n++;
}

void lc_work_remove(lc_work_t *w, const char *connector, int32_t task)
{
        bool found;
        size_t at = find(w, connector, task, &found);

        if (!found)
                return;
        free(w->v[at].connector);
        w->n--;
        memmove(w->v + at, w->v + at + 1, (w->n - at) * sizeof(*w->v));
        /* keep the rule that a power of two means "full": the next add grows from here */
}

bool lc_work_has(const lc_work_t *w, const char *connector, int32_t task)
{
        bool found;

        find(w, connector, task, &found);
        return found;
}

void lc_work_copy(lc_work_t *to, const lc_work_t *from)
{
        lc_work_t copy = {NULL, 0};

        /* in order, so each one is added at the end */
        for (size_t i = 0; from && i < from->n; i++)
                lc_work_add(&copy, from->v[i].connector, from->v[i].task);
        lc_work_free(to);
        *to = copy;
}

void lc_work_free(lc_work_t *w)
{
        for (size_t i = 0; i < w->n; i++)
                free(w->v[i].connector);
        free(w->v);
        w->v = NULL;
        w->n = 0;
}

void lc_assignment_clear(lc_assignment_t *a)
{
        free(a->member_id);
        free(a->leader);
        free(a->leader_url);
        lc_work_free(&a->assigned);
        lc_work_free(&a->revoked);
        memset(a, 0, sizeof(*a));
}

void lc_assignment_free(lc_assignment_t *a)
{
        if (!a)
                return;
        lc_assignment_clear(a);
        free(a);
}
