/* ticket.c - see ticket.h. */
#include "runtime/ticket.h"
#include "base/alloc.h"
#include "base/clock.h"
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

enum { LOOK_MS = 100 };

struct lc_ticket {
        int refs; /* atomic */
        pthread_mutex_t lock;
        pthread_cond_t answered; /* monotonic clock */
        bool done;
        lc_err_t err;
};

lc_ticket_t *lc_ticket_new(void)
{
        lc_ticket_t *t = lc_calloc(1, sizeof(*t));
        pthread_condattr_t attr;

        t->refs = 2;
        pthread_mutex_init(&t->lock, NULL);
        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(&t->answered, &attr);
        pthread_condattr_destroy(&attr);
        return t;
}

static void unref(lc_ticket_t *t)
{
        if (__atomic_sub_fetch(&t->refs, 1, __ATOMIC_ACQ_REL))
                return;
        pthread_cond_destroy(&t->answered);
        pthread_mutex_destroy(&t->lock);
        free(t);
}

void lc_ticket_answer(lc_ticket_t *t, const lc_err_t *err)
{
        pthread_mutex_lock(&t->lock);
        t->done = true;
        if (err)
                t->err = *err;
        pthread_cond_signal(&t->answered);
        pthread_mutex_unlock(&t->lock);
        unref(t);
}

int lc_ticket_wait(lc_ticket_t *t, bool (*quit)(void *arg), void *arg, int64_t end_ms, lc_err_t *err)
{
        int rc = 1;

        pthread_mutex_lock(&t->lock);
        while (!t->done && !(quit && quit(arg)) && !(end_ms && lc_now_ms() >= end_ms)) {
                int64_t at = lc_now_ms() + LOOK_MS;
                struct timespec ts = {.tv_sec = at / 1000, .tv_nsec = (long)(at % 1000) * 1000000};

                pthread_cond_timedwait(&t->answered, &t->lock, &ts);
        }
        if (t->done) {
                rc = t->err.kind ? -1 : 0;
                if (rc && err && !err->kind)
                        *err = t->err;
        }
        pthread_mutex_unlock(&t->lock);
        unref(t);
        return rc;
}
