/* bootstrap.c - see bootstrap.h. Any thread. */
#include "kafka/wire/bootstrap.h"
#include "base/log.h"
#include "base/waker.h"
#include "kafka/wire/net.h"
#include "kafka/wire/resolve.h"
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKUP_MS = 30000 };

static bool cancelled(void *arg)
{
        return lc_stopped(*(const volatile int **)arg);
}

/* 1 resolves, 0 not */
static int resolves(const char *server, const lc_conn_wait_t *wait)
{
        struct addrinfo *found = NULL;
        char *host = NULL;
        lc_err_t why;
        int port, rc;

        lc_err_clear(&why);
        rc = lc_net_parse_server(server, &host, &port, &why);
        if (!rc)
                rc = lc_resolve(host, port, wait, LOOKUP_MS, &found, &why);
        if (rc && !wait->cancelled(wait->arg))
                lc_log(LC_WARN, "KAFKA",
                       "Couldn't resolve server %s from bootstrap.servers as DNS resolution failed for %s",
                       server, host ? host : server);
        if (found)
                freeaddrinfo(found);
        free(host);
        return !rc;
}

int lc_bootstrap_check(const lc_worker_config_t *wc, const volatile int *stop, lc_err_t *err)
{
        lc_strv_t list = {NULL, 0};
        lc_waker_t waker;
        lc_conn_wait_t wait = {&waker, cancelled, &stop, NULL};
        int any = 0;

        if (lc_waker_init(&waker) < 0)
                return lc_err_set(err, LC_FATAL, errno, "No descriptor: %s", strerror(errno));
        lc_worker_config_list(wc, "bootstrap.servers", &list);
        for (size_t i = 0; i < list.n && !any && !lc_stopped(stop); i++)
                any = resolves(list.v[i], &wait);
        lc_strv_free(&list);
        lc_waker_close(&waker);
        if (any || lc_stopped(stop))
                return 0;
        lc_err_set_cls(err, LC_FATAL, 2, "org.apache.kafka.common.KafkaException",
                       "Failed to create new KafkaAdminClient");
        lc_err_cause(err, LC_CLS_CONFIG, "No resolvable bootstrap urls given in bootstrap.servers");
        return -1;
}
