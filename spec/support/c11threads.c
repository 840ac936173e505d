/*
 * c11threads.c - C11 threads on top of pthreads, for programs under the thread sanitizer.
 *
 * librdkafka uses C11's threads, which the sanitizer does not know: threads appear from nowhere, locks are
 * invisible, and it crashes. These definitions stand before libc's. glibc's own types are pthread's inside.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

typedef struct start {
        thrd_start_t fn;
        void *arg;
} start_t;

static int result(int rc)
{
        switch (rc) {
        case 0:
                return thrd_success;
        case ETIMEDOUT:
                return thrd_timedout;
        case EBUSY:
                return thrd_busy;
        case ENOMEM:
                return thrd_nomem;
        }
        return thrd_error;
}

static void *run(void *arg)
{
        start_t s = *(start_t *)arg;

        free(arg);
        return (void *)(intptr_t)s.fn(s.arg);
}

int thrd_create(thrd_t *t, thrd_start_t fn, void *arg)
{
        start_t *s = malloc(sizeof(*s));
        int rc;

        if (!s)
                return thrd_nomem;
        s->fn = fn;
        s->arg = arg;
        rc = pthread_create((pthread_t *)t, NULL, run, s);
        if (rc)
                free(s);
        return result(rc);
}

int thrd_join(thrd_t t, int *res)
{
        void *value = NULL;
        int rc = pthread_join((pthread_t)t, &value);

        if (res)
                *res = (int)(intptr_t)value;
        return result(rc);
}

int thrd_detach(thrd_t t)
{
        return result(pthread_detach((pthread_t)t));
}

thrd_t thrd_current(void)
{
        return (thrd_t)pthread_self();
}

int thrd_equal(thrd_t a, thrd_t b)
{
        return pthread_equal((pthread_t)a, (pthread_t)b);
}

void thrd_yield(void)
{
        sched_yield();
}

_Noreturn void thrd_exit(int res)
{
        pthread_exit((void *)(intptr_t)res);
}

int mtx_init(mtx_t *m, int type)
{
        pthread_mutexattr_t attr;
        int rc;

        pthread_mutexattr_init(&attr);
        if (type & mtx_recursive)
                pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
        rc = pthread_mutex_init((pthread_mutex_t *)m, &attr);
        pthread_mutexattr_destroy(&attr);
        return result(rc);
}

int mtx_lock(mtx_t *m)
{
        return result(pthread_mutex_lock((pthread_mutex_t *)m));
}

int mtx_trylock(mtx_t *m)
{
        return result(pthread_mutex_trylock((pthread_mutex_t *)m));
}

int mtx_timedlock(mtx_t *m, const struct timespec *t)
{
        return result(pthread_mutex_timedlock((pthread_mutex_t *)m, t));
}

int mtx_unlock(mtx_t *m)
{
        return result(pthread_mutex_unlock((pthread_mutex_t *)m));
}

void mtx_destroy(mtx_t *m)
{
        pthread_mutex_destroy((pthread_mutex_t *)m);
}

int cnd_init(cnd_t *c)
{
        return result(pthread_cond_init((pthread_cond_t *)c, NULL));
}

int cnd_signal(cnd_t *c)
{
        return result(pthread_cond_signal((pthread_cond_t *)c));
}

int cnd_broadcast(cnd_t *c)
{
        return result(pthread_cond_broadcast((pthread_cond_t *)c));
}

int cnd_wait(cnd_t *c, mtx_t *m)
{
        return result(pthread_cond_wait((pthread_cond_t *)c, (pthread_mutex_t *)m));
}

int cnd_timedwait(cnd_t *c, mtx_t *m, const struct timespec *t)
{
        return result(pthread_cond_timedwait((pthread_cond_t *)c, (pthread_mutex_t *)m, t));
}

void cnd_destroy(cnd_t *c)
{
        pthread_cond_destroy((pthread_cond_t *)c);
}
