/*
 * resolve.h - getaddrinfo(3) that can be given up: the lookup runs in a thread of its own.
 *
 * Threads:   the caller waits on its own thread; an abandoned lookup frees its result itself.
 * Tests:     spec/unit/wire_spec.lua
 */
#ifndef LC_KAFKA_WIRE_RESOLVE_H
#define LC_KAFKA_WIRE_RESOLVE_H
#include "kafka/wire/conn.h"

struct addrinfo;
/* *out: freeaddrinfo() it. A literal address needs no thread. */
int lc_resolve(const char *host, int port, const lc_conn_wait_t *wait, int64_t timeout_ms,
               struct addrinfo **out, lc_err_t *err);

#endif
