/* resolve.c - see resolve.h. `refs` (atomic) is shared by the caller and the lookup thread, nothing else is.
 */
#include "kafka/wire/resolve.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { LOOK_MS = 200 };

typedef struct lookup {
        atomic_int refs, finished;
        lc_waker_t done; /* rung by the thread; result and rc are written before */
        char *host, port[8];
        struct addrinfo *result;
        int rc, error;
} lookup_t;

static void drop(lookup_t *l)
{
        if (atomic_fetch_sub(&l->refs, 1) != 1)
                return;
        if (l->result)
                freeaddrinfo(l->result);
        lc_waker_close(&l->done);
        free(l->host);
        free(l);
}

static int look_up(const char *host, const char *port, int flags, struct addrinfo **out)
{
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};

        return getaddrinfo(host, port, &hints, out);
}

static void *run(void *arg)
{
        lookup_t *l = arg;

        l->rc = look_up(l->host, l->port, 0, &l->result);
        l->error = errno;
        atomic_store_explicit(&l->finished, 1, memory_order_release);
        lc_waker_wake(&l->done);
        drop(l);
        return NULL;
}

int lc_resolve(const char *host, int port, const lc_conn_wait_t *wait, int64_t timeout_ms,
               struct addrinfo **out, lc_err_t *err)
{
        char service[8];
        lookup_t *l;
        int64_t end = lc_now_ms() + timeout_ms;
        int rc = -1;

        snprintf(service, sizeof(service), "%d", port);
        *out = NULL;
        if (look_up(host, service, AI_NUMERICHOST, out) == 0)
                return 0;
        l = lc_calloc(1, sizeof(*l));
        l->refs = 2;
        l->host = lc_strdup(host);
        snprintf(l->port, sizeof(l->port), "%s", service);
        if (lc_waker_init(&l->done) < 0 || (errno = lc_thread_start(NULL, 0, run, l)) != 0) {
                lc_err_set(err, LC_RETRIABLE, errno, "Cannot look up %s: %s", host, strerror(errno));
                drop(l);
                drop(l);
                return -1;
        }
        for (;;) {
                int64_t left = end - lc_now_ms();

                /* looked at now and then, too: a stop flag may have no waker */
                if (lc_waker_wait_fd(wait->waker, l->done.fd,
                                     left > LOOK_MS ? LOOK_MS
                                     : left > 0     ? (int)left
                                                    : 0) &&
                    atomic_load_explicit(&l->finished, memory_order_acquire)) {
                        if (l->rc == 0) {
                                *out = l->result;
                                l->result = NULL;
                                rc = 0;
                        } else {
                                lc_err_set(err, LC_RETRIABLE, l->rc, "Couldn't resolve server %s:%d: %s",
                                           host, port,
                                           l->rc == EAI_SYSTEM ? strerror(l->error) : gai_strerror(l->rc));
                        }
                        break;
                }
                lc_waker_clear(wait->waker);
                if (wait->cancelled && wait->cancelled(wait->arg)) {
                        lc_err_set(err, LC_RETRIABLE, ECANCELED, "Interrupted while looking up %s", host);
                        break;
                }
                if (left <= 0) {
                        lc_err_set(err, LC_RETRIABLE, ETIMEDOUT, "Looking up %s took longer than %lld ms",
                                   host, (long long)timeout_ms);
                        break;
                }
        }
        drop(l);
        return rc;
}
