/*
 * bootstrap.h - at start: does any host of bootstrap.servers have an address? librdkafka would ask the name
 * service for ever; Java refuses to start, and so do we.
 *
 * Threads:   any; waits end when *stop becomes nonzero.
 * Errors:    LC_FATAL with Java's texts (golden distributed-start-failures, bootstrap.servers=no.such.host).
 * Tests:     spec/kafka/bad_input_spec.lua
 */
#ifndef LC_KAFKA_WIRE_BOOTSTRAP_H
#define LC_KAFKA_WIRE_BOOTSTRAP_H
#include "config/worker_config.h"

/* 0: at least one resolves (or the stop came first), -1. Each that does not is warned about. */
int lc_bootstrap_check(const lc_worker_config_t *wc, const volatile int *stop, lc_err_t *err);

#endif
