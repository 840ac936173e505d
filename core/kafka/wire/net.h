/*
 * net.h - how this worker reaches its brokers: bootstrap servers, timeouts, TLS context and SASL
 * credentials, read once from the worker config.
 *
 * Threads:   immutable after lc_net_new().
 * Errors:    LC_FATAL, cls ConfigException, naming the key.
 * Tests:     spec/unit/wire_spec.lua
 */
#ifndef LC_KAFKA_WIRE_NET_H
#define LC_KAFKA_WIRE_NET_H
#include "base/err.h"
#include "config/worker_config.h"

typedef struct lc_net_server {
        char *host;
        int port;
} lc_net_server_t;

typedef enum {
        LC_SASL_NONE,
        LC_SASL_PLAIN,
        LC_SASL_SCRAM_SHA_256,
        LC_SASL_SCRAM_SHA_512
} lc_sasl_mechanism_t;

typedef struct lc_net {
        lc_net_server_t *servers;
        size_t nservers;
        int64_t connect_timeout_ms, request_timeout_ms, retry_backoff_ms, retry_backoff_max_ms;
        int64_t session_ms; /* a peer that is silent on the TCP level for that long is gone */
        void *tls;          /* SSL_CTX, NULL: plain text */
        bool verify_host;
        lc_sasl_mechanism_t sasl;
        char *user, *password;
} lc_net_t;

lc_net_t *lc_net_new(const lc_worker_config_t *wc, lc_err_t *err);
void lc_net_free(lc_net_t *net); /* NULL is fine */

/* "host:port", "[::1]:9092", "PLAINTEXT://host:port": 0, or -1 with Java's text. *host is malloc'ed. */
int lc_net_parse_server(const char *text, char **host, int *port, lc_err_t *err);
/* The value of `option` in a JAAS config line, malloc'ed; NULL when it is not there. */
char *lc_net_jaas_option(const char *jaas, const char *option);

#endif
