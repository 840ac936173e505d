/*
 * tls.h - the worker's ssl.* keys as an OpenSSL context: PEM (files or inline) and PKCS12 stores; JKS is
 * refused with a text that says how to convert it.
 *
 * Threads:   the context is shared read-only.
 * Errors:    LC_FATAL, cls ConfigException, naming key and file.
 * Tests:     spec/unit/wire_spec.lua
 */
#ifndef LC_KAFKA_WIRE_TLS_H
#define LC_KAFKA_WIRE_TLS_H
#include "base/err.h"
#include "config/worker_config.h"

void *lc_tls_context(const lc_worker_config_t *wc, lc_err_t *err); /* SSL_CTX, NULL on failure */
void lc_tls_context_free(void *ctx);

#endif
