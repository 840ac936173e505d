/*
 * conn.h - one connection to a broker: non-blocking TCP, TLS and SASL as net.h says, requests and answers
 * with deadlines. Every wait ends when the caller's waker rings and `cancelled` says so.
 *
 * Threads:   one owner.
 * Errors:    LC_RETRIABLE for what may work later (code ECANCELED: cancelled, ETIMEDOUT: deadline),
 *            LC_FATAL for refused credentials, certificates that do not verify and versions the broker
 *            does not speak. After any failure of a call the connection is of no use: close it.
 * Tests:     spec/unit/wire_spec.lua, spec/kafka/group_spec.lua
 */
#ifndef LC_KAFKA_WIRE_CONN_H
#define LC_KAFKA_WIRE_CONN_H
#include "base/buf.h"
#include "base/err.h"
#include "base/waker.h"
#include "kafka/wire/buffer.h"
#include "kafka/wire/net.h"

typedef struct lc_conn_wait {
        lc_waker_t *waker;
        bool (*cancelled)(void *arg); /* asked after each ring; the ring is cleared before */
        void *arg;
        void (*slice)(void *arg); /* while waiting: at least every 500 ms; may be NULL */
} lc_conn_wait_t;

typedef struct lc_conn lc_conn_t;

/* Resolve, connect, TLS, ApiVersions, SASL. `net`, `client_id` and `wait` are borrowed while it is open. */
lc_conn_t *lc_conn_open(const lc_net_t *net, const char *client_id, const char *host, int port,
                        const lc_conn_wait_t *wait, lc_err_t *err);
void lc_conn_close(lc_conn_t *c); /* NULL is fine */
/* One request (header v1) and its answer (header v0, so non-flexible versions only). *answer points into
 * the connection's buffer until the next call. */
int lc_conn_call(lc_conn_t *c, int16_t api, int16_t version, const lc_buf_t *body, int64_t timeout_ms,
                 lc_wire_reader_t *answer, lc_err_t *err);
/* The highest version of `api` that both sides speak, at most `want`, at least `least`; -1 none. */
int16_t lc_conn_version(const lc_conn_t *c, int16_t api, int16_t least, int16_t want);
bool lc_conn_is(const lc_conn_t *c, const char *host, int port);
int lc_conn_fd(const lc_conn_t *c); /* readable while idle: lc_conn_alive() tells whether it is broken */
bool lc_conn_alive(lc_conn_t *c);
const char *lc_conn_name(const lc_conn_t *c); /* "host:port" */

#endif
