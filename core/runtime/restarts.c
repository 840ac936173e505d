/* restarts.c - see restarts.h. */
#include "runtime/restarts.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "config/connector_config.h"
#include "convert/json.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
        DELAY_MIN_MS = 1000,
        DELAY_MAX_MS = 300000,
        HEALTHY_MS = 300000, /* a run as long as this begins anew */
        HOUR_MS = 3600000,
        FORGET_MS = 2 * HOUR_MS
};

typedef struct entry {
        char *key;
        int delay_ms;
        uint64_t count;
        int64_t *times; /* of the restarts within the last hour, rising */
        size_t n, cap;
        int64_t touched;
        char *reason;
        UT_hash_handle hh;
} entry_t;

struct lc_restarts {
        pthread_mutex_t lock;
        entry_t *entries;
        unsigned seed;
};

lc_restarts_t *lc_restarts_new(void)
{
        lc_restarts_t *r = lc_calloc(1, sizeof(*r));

        pthread_mutex_init(&r->lock, NULL);
        r->seed = (unsigned)lc_wall_ms();
        return r;
}

static void drop(lc_restarts_t *r, entry_t *e)
{
        HASH_DEL(r->entries, e);
        free(e->key);
        free(e->times);
        free(e->reason);
        free(e);
}

void lc_restarts_free(lc_restarts_t *r)
{
        entry_t *e, *next;

        if (!r)
                return;
        HASH_ITER(hh, r->entries, e, next)
        drop(r, e);
        pthread_mutex_destroy(&r->lock);
        free(r);
}

static entry_t *find(lc_restarts_t *r, const char *connector, int task, bool add)
{
        char *key = lc_asprintf("%s/%d", connector, task);
        entry_t *e;

        HASH_FIND_STR(r->entries, key, e);
        if (!e && add) {
                e = lc_calloc(1, sizeof(*e));
                e->key = key;
                HASH_ADD_KEYPTR(hh, r->entries, e->key, strlen(e->key), e);
                return e;
        }
        free(key);
        return e;
}

/* Those of connectors that are long gone. */
static void sweep(lc_restarts_t *r, int64_t now)
{
        entry_t *e, *next;

        HASH_ITER(hh, r->entries, e, next)
        if (now - e->touched > FORGET_MS)
                drop(r, e);
}

/* Would it fail in the same way for ever, or may it not run any more? */
static bool is_final(const lc_err_t *err)
{
        static const char *const final[] = {
                LC_CLS_CONFIG,
                "org.apache.kafka.connect.runtime.TooManyTasksException",
                "org.apache.kafka.common.errors.ProducerFencedException",
                "org.apache.kafka.common.errors.InvalidProducerEpochException",
                "org.apache.kafka.common.errors.FencedInstanceIdException",
        };

        if (err->kind == LC_FENCED)
                return true;
        for (size_t i = 0; i < sizeof(final) / sizeof(*final); i++) {
                size_t len = strlen(final[i]);
                char line[128];

                if (err->cls && !strcmp(err->cls, final[i]))
                        return true;
                if (!strncmp(err->msg, final[i], len) &&
                    err->msg[len] == ':') /* new ConnectException(cause) */
                        return true;
                snprintf(line, sizeof(line), "Caused by: %s", final[i]);
                if (strstr(err->detail, line))
                        return true;
        }
        return false;
}

static void forget_old(entry_t *e, int64_t now)
{
        size_t old = 0;

        while (old < e->n && e->times[old] <= now - HOUR_MS)
                old++;
        if (old)
                memmove(e->times, e->times + old, (e->n - old) * sizeof(*e->times));
        e->n -= old;
}

static int64_t next_time(lc_restarts_t *r, entry_t *e, int64_t max, int64_t ran_ms, int64_t now)
{
        int64_t next, delay;

        if (ran_ms > HEALTHY_MS)
                e->delay_ms = 0;
        e->delay_ms = lc_backoff(e->delay_ms, DELAY_MIN_MS, DELAY_MAX_MS);
        delay = e->delay_ms + (int64_t)((double)rand_r(&r->seed) / RAND_MAX * e->delay_ms / 5);
        next = now + (delay < DELAY_MAX_MS ? delay : DELAY_MAX_MS);
        forget_old(e, now);
        if (max > 0 && e->n >= (size_t)max && e->times[e->n - (size_t)max] + HOUR_MS > next)
                next = e->times[e->n - (size_t)max] + HOUR_MS;
        return next;
}

/* {"policy":"on-failure","count":2,"max_per_hour":12,"reason":"...","next_attempt":"..."} */
static char *show(const entry_t *e, int64_t max, bool failed, int64_t next, int64_t now)
{
        lc_buf_t b = LC_BUF_SURE;
        char at[32];

        lc_buf_printf(&b, "{\"policy\":\"on-failure\",\"count\":%llu", (unsigned long long)e->count);
        if (failed)
                lc_buf_printf(&b, ",\"max_per_hour\":%lld", (long long)max);
        lc_buf_adds(&b, ",\"reason\":");
        lc_json_write_string(&b, e->reason, strlen(e->reason));
        if (failed && next) {
                lc_iso8601(lc_wall_ms() + next - now, at);
                lc_buf_printf(&b, ",\"next_attempt\":\"%s\"", at);
        } else if (failed) {
                lc_buf_adds(&b, ",\"next_attempt\":null");
        }
        lc_buf_addc(&b, '}');
        return lc_buf_take(&b, NULL);
}

int64_t lc_restarts_failed(lc_restarts_t *r, const char *connector, int task, const lc_props_t *config,
                           const lc_err_t *err, int64_t ran_ms, int64_t now, char **shown)
{
        char *policy = lc_connector_config_get(config, "restart.policy");
        int64_t max = lc_connector_config_int(config, "restart.policy.max.per.hour"), next = 0;
        bool on = policy && !strcmp(policy, "on-failure");
        entry_t *e;

        free(policy);
        *shown = NULL;
        pthread_mutex_lock(&r->lock);
        sweep(r, now);
        e = find(r, connector, task, on);
        if (on) {
                e->touched = now;
                free(e->reason);
                e->reason = lc_asprintf(err->msg[0] ? "%s: %s" : "%s%s", err->cls ? err->cls : LC_CLS_CONNECT,
                                        err->msg);
                if (!is_final(err))
                        next = next_time(r, e, max, ran_ms, now);
                *shown = show(e, max, true, next, now);
        } else if (e) {
                drop(r, e);
        }
        pthread_mutex_unlock(&r->lock);
        return next;
}

void lc_restarts_begun(lc_restarts_t *r, const char *connector, int task, int64_t now)
{
        entry_t *e;

        pthread_mutex_lock(&r->lock);
        e = find(r, connector, task, false);
        if (e) {
                forget_old(e, now);
                if (e->n == e->cap) {
                        e->cap = e->cap ? e->cap * 2 : 8;
                        e->times = lc_realloc(e->times, e->cap * sizeof(*e->times));
                }
                e->times[e->n++] = now;
                e->count++;
                e->touched = now;
        }
        pthread_mutex_unlock(&r->lock);
}

static bool is_of(const entry_t *e, const char *connector)
{
        size_t len = strlen(connector);

        return !strncmp(e->key, connector, len) && e->key + len == strrchr(e->key, '/');
}

void lc_restarts_afresh(lc_restarts_t *r, const char *connector, int task)
{
        entry_t *e;

        pthread_mutex_lock(&r->lock);
        if (task != LC_RESTARTS_ALL && (e = find(r, connector, task, false)))
                e->delay_ms = 0;
        for (e = task == LC_RESTARTS_ALL ? r->entries : NULL; e; e = e->hh.next)
                if (is_of(e, connector))
                        e->delay_ms = 0;
        pthread_mutex_unlock(&r->lock);
}

void lc_restarts_forget(lc_restarts_t *r, const char *connector)
{
        entry_t *e, *next;

        pthread_mutex_lock(&r->lock);
        HASH_ITER(hh, r->entries, e, next)
        if (is_of(e, connector))
                drop(r, e);
        pthread_mutex_unlock(&r->lock);
}

char *lc_restarts_shown(lc_restarts_t *r, const char *connector, int task)
{
        const entry_t *e;
        char *shown = NULL;

        pthread_mutex_lock(&r->lock);
        e = find(r, connector, task, false);
        if (e && e->count)
                shown = show(e, 0, false, 0, 0);
        pthread_mutex_unlock(&r->lock);
        return shown;
}
