/* breaker.c - see breaker.h. The task's thread only. */
#include "runtime/breaker.h"
#include "base/alloc.h"
#include "config/connector_config.h"
#include <stdlib.h>
#include <string.h>

enum { JUDGED = 10 }; /* records at least */

void lc_breaker_init(lc_breaker_t *b, const lc_props_t *config)
{
        char *ratio = lc_connector_config_get(config, "errors.deadletterqueue.max.failure.ratio");

        memset(b, 0, sizeof(*b));
        b->ratio = ratio ? strtod(ratio, NULL) : 0;
        free(ratio);
        b->window =
                (uint32_t)lc_connector_config_int(config, "errors.deadletterqueue.failure.window.records");
}

void lc_breaker_free(lc_breaker_t *b)
{
        free(b->v);
        memset(b, 0, sizeof(*b));
}

bool lc_breaker_trips(const lc_breaker_t *b, uint32_t all, uint32_t bad)
{
        uint64_t sum_all = all, sum_bad = bad;
        uint32_t least = b->window < JUDGED ? b->window : JUDGED;

        if (b->ratio <= 0 || !bad)
                return false;
        for (uint32_t i = 0; i < b->n && sum_all < b->window; i++) { /* from the newest */
                const lc_breaker_batch_t *x = &b->v[(b->at + b->cap - 1 - i) % b->cap];
                sum_all += x->all;
                sum_bad += x->bad;
        }
        return sum_all >= least && (double)sum_bad > b->ratio * (double)sum_all;
}

static void grow(lc_breaker_t *b)
{
        uint32_t cap = b->cap ? b->cap * 2 : 16;
        lc_breaker_batch_t *v = lc_calloc(cap, sizeof(*v));

        for (uint32_t i = 0; i < b->n; i++)
                v[i] = b->v[(b->at + b->cap - b->n + i) % b->cap];
        free(b->v);
        b->v = v;
        b->cap = cap;
        b->at = b->n;
}

void lc_breaker_add(lc_breaker_t *b, uint32_t all, uint32_t bad)
{
        if (b->ratio <= 0 || !all)
                return;
        while (b->n) { /* those that the window does not reach any more */
                const lc_breaker_batch_t *oldest = &b->v[(b->at + b->cap - b->n) % b->cap];
                if (b->all + all - oldest->all < b->window)
                        break;
                b->all -= oldest->all;
                b->bad -= oldest->bad;
                b->n--;
        }
        if (b->n == b->cap)
                grow(b);
        b->v[b->at] = (lc_breaker_batch_t){all, bad};
        b->at = (b->at + 1) % b->cap;
        b->n++;
        b->all += all;
        b->bad += bad;
}
