/* ticket.c - see ticket.h. */
#include "runtime/ticket.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/cond.h"
#include <pthread.h>
#include <stdlib.h>

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

        t->refs = 2;
        pthread_mutex_init(&t->lock, NULL);
        lc_cond_init(&t->answered);
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
        while (!t->done && !(quit && quit(arg)) && !(end_ms && lc_now_ms() >= end_ms))
                lc_cond_wait_until(&t->answered, &t->lock, lc_now_ms() + LOOK_MS);
        if (t->done) {
                rc = t->err.kind ? -1 : 0;
                if (rc && err && !err->kind)
                        *err = t->err;
        }
        pthread_mutex_unlock(&t->lock);
        unref(t);
        return rc;
}
