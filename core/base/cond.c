/* cond.c - see cond.h. */
#include "base/cond.h"
#include <errno.h>
#include <time.h>

void lc_cond_init(pthread_cond_t *c)
{
        pthread_condattr_t attr;

        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(c, &attr);
        pthread_condattr_destroy(&attr);
}

bool lc_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *m, int64_t end_ms)
{
        struct timespec end = {.tv_sec = end_ms / 1000, .tv_nsec = (long)(end_ms % 1000) * 1000000};

        return pthread_cond_timedwait(c, m, &end) != ETIMEDOUT;
}
