/*
 * config_snapshot.c - the immutable picture of the config topic that every store hands out (config_store.h).
 *
 * Threads:   any; only the reference count changes after a snapshot was made.
 * Ownership: the last unref frees everything.
 * Tests:     spec/unit/config_store_spec.lua
 */
#include "base/alloc.h"
#include "storage/config_store.h"
#include <stdlib.h>
#include <string.h>

const char *lc_target_state_name(lc_target_state_t t)
{
        switch (t) {
        case LC_TARGET_STARTED:
                return "STARTED";
        case LC_TARGET_PAUSED:
                return "PAUSED";
        case LC_TARGET_STOPPED:
                return "STOPPED";
        case LC_TARGET_NONE:
                break;
        }
        return "NONE";
}

lc_config_snapshot_t *lc_config_snapshot_ref(lc_config_snapshot_t *s)
{
        __atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
        return s;
}

void lc_config_snapshot_unref(lc_config_snapshot_t *s)
{
        if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) > 0)
                return;
        for (size_t i = 0; i < s->n; i++) {
                lc_config_connector_t *c = &s->v[i];
                free(c->name);
                lc_props_free(c->config);
                lc_props_free(c->applied);
                for (int k = 0; c->tasks && k < c->ntasks; k++)
                        lc_props_free(c->tasks[k]);
                free(c->tasks);
        }
        free(s->v);
        free(s->session_key);
        free(s->session_key_algorithm);
        free(s);
}

const lc_config_connector_t *lc_config_snapshot_find(const lc_config_snapshot_t *s, const char *name)
{
        size_t lo = 0, hi = s->n;

        while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;
                int d = strcmp(s->v[mid].name, name);
                if (!d)
                        return &s->v[mid];
                if (d < 0)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        return NULL;
}

int lc_config_connector_task_count(const lc_config_connector_t *c)
{
        return c->inconsistent ? 0 : c->ntasks;
}
