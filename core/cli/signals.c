/* signals.c - see signals.h. */
#include "cli/signals.h"
#include "base/clock.h"
#include "base/log.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { SAME_MS = 100 };

static sigset_t signals;
static volatile int *stop_flag;
static lc_waker_t *stop_waker;

static void *wait_for_signals(void *arg)
{
        int number = 0;
        int64_t first;

        (void)arg;
        pthread_setname_np(pthread_self(), "signals");
        while (sigwait(&signals, &number))
                ;
        lc_log(LC_INFO, "MAIN", "SIG%s received: stopping", sigabbrev_np(number));
        __atomic_store_n(stop_flag, number, __ATOMIC_SEQ_CST);
        lc_waker_wake(stop_waker);
        first = lc_now_ms();
        do /* the process and its group may both get one: timeout(1) sends two */
                while (sigwait(&signals, &number))
                        ;
        while (lc_now_ms() - first < SAME_MS);
        lc_log(LC_WARN, "MAIN", "SIG%s received again: ending at once", sigabbrev_np(number));
        _exit(128 + number);
}

int lc_signals_start(volatile int *stop, lc_waker_t *waker, lc_err_t *err)
{
        pthread_attr_t attr;
        pthread_t thread;
        int rc;

        stop_flag = stop;
        stop_waker = waker;
        signal(SIGPIPE, SIG_IGN);
        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGINT);
        pthread_sigmask(SIG_BLOCK, &signals, NULL);
        pthread_attr_init(&attr);
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        rc = pthread_create(&thread, &attr, wait_for_signals, NULL);
        pthread_attr_destroy(&attr);
        return rc ? lc_err_set(err, LC_FATAL, rc, "Unable to start a thread: %s", strerror(rc)) : 0;
}
