/*
 * breaker.h - errors.deadletterqueue.max.failure.ratio: when too many of the last records failed it is the
 * target that is broken, not the records, and they must not all become letters.
 *
 * It is told batch by batch, and looks at the last `window` records.
 * Threads:   the task's.   Tests: spec/unit/letters_spec.lua
 */
#ifndef LC_RUNTIME_BREAKER_H
#define LC_RUNTIME_BREAKER_H
#include "base/props.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct lc_breaker_batch {
        uint32_t all, bad;
} lc_breaker_batch_t;
typedef struct lc_breaker {
        double ratio;          /* 0: off */
        uint32_t window;       /* records */
        lc_breaker_batch_t *v; /* a ring of the last batches */
        uint32_t cap, at, n;
        uint64_t all, bad; /* sums of them */
} lc_breaker_t;

void lc_breaker_init(lc_breaker_t *b, const lc_props_t *config); /* resolved */
void lc_breaker_free(lc_breaker_t *b);
/* Are these, with those before them, too many failures? Nothing is judged by fewer than ten records. */
bool lc_breaker_trips(const lc_breaker_t *b, uint32_t all, uint32_t bad);
void lc_breaker_add(lc_breaker_t *b, uint32_t all, uint32_t bad);

#endif
