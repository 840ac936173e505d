/*
 * config_store_memory.c - configs of standalone mode: nothing persists, events run in the caller
 * (reference standalone 5.1).
 *
 * Threads:   any. Lock: `lock` guards the connectors and the cached snapshot; events are called without it.
 * Ownership: snapshots are counted; the cached one is replaced by each write.
 * Tests:     spec/unit/memory_stores_spec.lua
 */
#include "base/alloc.h"
#include "storage/config_store.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
        char *name;
        lc_props_t *config, *applied;
        lc_target_state_t target;
        lc_props_t **tasks;
        int ntasks, generation;
} entry_t;

typedef struct store {
        lc_config_store_t base;
        pthread_mutex_t lock;
        lc_config_events_t events;
        void *arg;
        entry_t *v; /* sorted by name */
        size_t n;
        lc_config_snapshot_t *snapshot; /* NULL after a write */
} store_t;

static entry_t *find(store_t *s, const char *name, size_t *at)
{
        size_t low = 0, high = s->n;

        while (low < high) {
                size_t mid = low + (high - low) / 2;
                int c = strcmp(s->v[mid].name, name);
                if (!c) {
                        *at = mid;
                        return &s->v[mid];
                }
                if (c < 0)
                        low = mid + 1;
                else
                        high = mid;
        }
        *at = low;
        return NULL;
}

static void clear_tasks(entry_t *e)
{
        for (int i = 0; i < e->ntasks; i++)
                lc_props_free(e->tasks[i]);
        free(e->tasks);
        e->tasks = NULL;
        e->ntasks = 0;
}

static void clear_entry(entry_t *e)
{
        clear_tasks(e);
        lc_props_free(e->config);
        lc_props_free(e->applied);
        free(e->name);
}

static void changed(store_t *s)
{
        lc_config_snapshot_unref(s->snapshot);
        s->snapshot = NULL;
}

static int start(lc_config_store_t *base, const lc_config_events_t *events, void *arg,
                 const volatile int *stop, lc_err_t *err)
{
        store_t *s = (store_t *)base;

        (void)stop;
        (void)err;
        if (events)
                s->events = *events;
        s->arg = arg;
        return 0;
}

static lc_config_snapshot_t *build(const store_t *s)
{
        lc_config_snapshot_t *snap = lc_calloc(1, sizeof(*snap));

        snap->refs = 1;
        snap->offset = -1;
        snap->n = s->n;
        snap->v = lc_calloc(s->n, sizeof(*snap->v));
        for (size_t i = 0; i < s->n; i++) {
                const entry_t *e = &s->v[i];
                lc_config_connector_t *c = &snap->v[i];

                c->name = lc_strdup(e->name);
                c->config = lc_props_copy(e->config);
                c->applied = e->applied ? lc_props_copy(e->applied) : NULL;
                c->target = e->target;
                c->ntasks = e->ntasks;
                c->generation = e->generation;
                c->task_count_record = -1;
                c->tasks = lc_calloc((size_t)e->ntasks, sizeof(*c->tasks));
                for (int k = 0; k < e->ntasks; k++)
                        c->tasks[k] = lc_props_copy(e->tasks[k]);
        }
        return snap;
}

static lc_config_snapshot_t *snapshot(lc_config_store_t *base)
{
        store_t *s = (store_t *)base;
        lc_config_snapshot_t *snap;

        pthread_mutex_lock(&s->lock);
        if (!s->snapshot)
                s->snapshot = build(s);
        snap = lc_config_snapshot_ref(s->snapshot);
        pthread_mutex_unlock(&s->lock);
        return snap;
}

static int refresh(lc_config_store_t *base, int timeout_ms, lc_err_t *err)
{
        (void)base;
        (void)timeout_ms;
        (void)err;
        return 0;
}

static int put_connector(lc_config_store_t *base, const char *name, const lc_props_t *config,
                         lc_target_state_t target, lc_err_t *err)
{
        store_t *s = (store_t *)base;
        lc_props_t *copy = lc_props_copy(config);
        entry_t *e;
        size_t at;

        (void)err;
        pthread_mutex_lock(&s->lock);
        e = find(s, name, &at);
        if (!e) {
                s->v = lc_realloc(s->v, (s->n + 1) * sizeof(*s->v));
                memmove(s->v + at + 1, s->v + at, (s->n - at) * sizeof(*s->v));
                s->n++;
                e = &s->v[at];
                *e = (entry_t){.name = lc_strdup(name), .target = LC_TARGET_STARTED, .generation = -1};
        }
        lc_props_free(e->config);
        e->config = copy;
        if (target != LC_TARGET_NONE)
                e->target = target;
        changed(s);
        pthread_mutex_unlock(&s->lock);
        if (s->events.connector_updated)
                s->events.connector_updated(s->arg, name);
        return 0;
}

static int remove_connector(lc_config_store_t *base, const char *name, lc_err_t *err)
{
        store_t *s = (store_t *)base;
        entry_t *e;
        size_t at;
        bool found;

        (void)err;
        pthread_mutex_lock(&s->lock);
        e = find(s, name, &at);
        found = e != NULL;
        if (found) {
                clear_entry(e);
                s->n--;
                memmove(s->v + at, s->v + at + 1, (s->n - at) * sizeof(*s->v));
                changed(s);
        }
        pthread_mutex_unlock(&s->lock);
        if (found && s->events.connector_removed)
                s->events.connector_removed(s->arg, name);
        return 0;
}

static int put_tasks(lc_config_store_t *base, const char *name, lc_props_t *const *configs, int n,
                     lc_err_t *err)
{
        store_t *s = (store_t *)base;
        entry_t *e;
        size_t at;

        pthread_mutex_lock(&s->lock);
        e = find(s, name, &at);
        if (e) {
                lc_props_t **copies = lc_calloc((size_t)(n > 0 ? n : 0), sizeof(*copies));
                for (int i = 0; i < n; i++)
                        copies[i] = lc_props_copy(configs[i]);
                clear_tasks(e);
                e->tasks = copies;
                e->ntasks = n > 0 ? n : 0;
                e->generation++;
                lc_props_free(e->applied);
                e->applied = lc_props_copy(e->config);
                changed(s);
        }
        pthread_mutex_unlock(&s->lock);
        if (!e)
                return lc_err_set_cls(err, LC_FATAL, 0, "java.lang.IllegalArgumentException",
                                      n > 0 ? "Cannot put tasks for non-existing connector"
                                            : "Cannot remove tasks for non-existing connector");
        if (s->events.tasks_updated)
                s->events.tasks_updated(s->arg, name, n > 0 ? n : 0);
        return 0;
}

static int put_target(lc_config_store_t *base, const char *name, lc_target_state_t t, lc_err_t *err)
{
        store_t *s = (store_t *)base;
        entry_t *e;
        size_t at;
        bool other = false;

        pthread_mutex_lock(&s->lock);
        e = find(s, name, &at);
        if (e && e->target != t && t != LC_TARGET_NONE) {
                e->target = t;
                other = true;
                changed(s);
        }
        pthread_mutex_unlock(&s->lock);
        if (!e)
                return lc_err_set_cls(err, LC_FATAL, 0, "java.lang.IllegalArgumentException",
                                      "No connector `%s` configured", name);
        if (other && s->events.target_changed)
                s->events.target_changed(s->arg, name);
        return 0;
}

static int put_session_key(lc_config_store_t *base, const char *key, const char *algorithm,
                           int64_t created_ms, lc_err_t *err)
{
        (void)base;
        (void)key;
        (void)algorithm;
        (void)created_ms;
        (void)err;
        return 0;
}

static int put_restart(lc_config_store_t *base, const char *name, bool only_failed, bool include_tasks,
                       lc_err_t *err)
{
        (void)base;
        (void)name;
        (void)only_failed;
        (void)include_tasks;
        (void)err;
        return 0;
}

static int put_logger(lc_config_store_t *base, const char *logger, const char *level, lc_err_t *err)
{
        (void)base;
        (void)logger;
        (void)level;
        (void)err;
        return 0;
}

static void stop_store(lc_config_store_t *base)
{
        store_t *s = (store_t *)base;

        for (size_t i = 0; i < s->n; i++)
                clear_entry(&s->v[i]);
        free(s->v);
        lc_config_snapshot_unref(s->snapshot);
        pthread_mutex_destroy(&s->lock);
        free(s);
}

lc_config_store_t *lc_config_store_memory_new(void)
{
        static const lc_config_store_ops_t ops = {
                .start = start,
                .snapshot = snapshot,
                .refresh = refresh,
                .put_connector = put_connector,
                .remove_connector = remove_connector,
                .put_tasks = put_tasks,
                .put_target = put_target,
                .put_session_key = put_session_key,
                .put_restart = put_restart,
                .put_logger = put_logger,
                .stop = stop_store,
        };
        store_t *s = lc_calloc(1, sizeof(*s));

        s->base.ops = &ops;
        pthread_mutex_init(&s->lock, NULL);
        return &s->base;
}
