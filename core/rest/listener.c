/* listener.c - see listener.h. */
#include "rest/listener.h"
#include "base/log.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

static int bind_one(const struct addrinfo *a)
{
        int on = 1, off = 0, fd;

        fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
        if (fd < 0)
                return -1;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        if (a->ai_family == AF_INET6)
                setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
        if (bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, 128)) {
                int e = errno;
                close(fd);
                errno = e;
                return -1;
        }
        return fd;
}

static int bind_listener(const char *host, int *port, lc_err_t *err)
{
        struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                 .ai_socktype = SOCK_STREAM,
                                 .ai_flags = AI_PASSIVE | AI_NUMERICSERV},
                        *list = NULL;
        struct sockaddr_storage bound;
        socklen_t len = sizeof(bound);
        const char *why = NULL;
        char service[16];
        int rc, fd = -1;

        snprintf(service, sizeof(service), "%d", *port);
        rc = getaddrinfo(*host ? host : NULL, service, &hints, &list);
        if (rc)
                why = gai_strerror(rc);
        /* all interfaces: the IPv6 socket takes IPv4 too, where there is IPv6 */
        for (int pass = 0; pass < 2 && fd < 0; pass++)
                for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
                        if (*host ? pass == 0 : (a->ai_family == AF_INET6) == (pass == 0)) {
                                fd = bind_one(a);
                                if (fd < 0 && (!why || errno == EADDRINUSE))
                                        why = strerror(errno);
                                if (fd < 0 && errno == EADDRINUSE)
                                        pass = 2;
                        }
        if (list)
                freeaddrinfo(list);
        if (fd < 0) {
                lc_err_set(err, LC_FATAL, 0, "Unable to initialize REST server");
                lc_err_cause(err, "java.io.IOException", "Failed to bind to %s/%s:%d", "",
                             *host ? host : "0.0.0.0", *port);
                lc_err_cause(err, "java.net.BindException", "%s", why ? why : "no address");
                return -1;
        }
        if (!getsockname(fd, (struct sockaddr *)&bound, &len))
                *port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                          : ((struct sockaddr_in *)&bound)->sin_port);
        return fd;
}

/* What of the listeners this server cannot do is said, or refused. */
static int check_listeners(const lc_worker_config_t *wc, lc_err_t *err)
{
        lc_strv_t list = {NULL, 0};
        const char *admin = lc_worker_config_str(wc, "admin.listeners");
        int rc = 0;

        lc_worker_config_list(wc, "listeners", &list);
        if (list.n && !strncasecmp(list.v[0], "https:", 6))
                rc = lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                                    "The listener %s needs TLS, which this version "
                                    "of luaconnect does not support",
                                    list.v[0]);
        for (size_t i = 1; i < list.n && !rc; i++)
                lc_log(LC_WARN, "REST", "Only the first of 'listeners' is served, %s is not", list.v[i]);
        if (admin && *admin && !rc)
                lc_log(LC_WARN, "REST", "'admin.listeners' are not supported: /admin is not served");
        lc_strv_free(&list);
        return rc;
}

int lc_rest_listen(const lc_worker_config_t *wc, int *fd, int *port, lc_err_t *err)
{
        lc_buf_t host = LC_BUF_SURE;
        int rc = -1;

        if (!check_listeners(wc, err) && !lc_worker_config_listener(wc, &host, port, err)) {
                *fd = bind_listener(host.p ? host.p : "", port, err);
                rc = *fd < 0 ? -1 : 0;
        }
        lc_buf_free(&host);
        return rc;
}
