/* thread.c - see thread.h. */
#include "base/thread.h"
#include <signal.h>

int lc_thread_start(pthread_t *t, size_t stack, void *(*run)(void *), void *arg)
{
        pthread_attr_t attr;
        pthread_t detached;
        sigset_t all, old;
        int rc;

        pthread_attr_init(&attr);
        if (!t)
                pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        if (stack)
                pthread_attr_setstacksize(&attr, stack);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        rc = pthread_create(t ? t : &detached, &attr, run, arg);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        pthread_attr_destroy(&attr);
        return rc;
}
