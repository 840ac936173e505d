/*
 * worker_checks.h - the worker keys' own checks (rows in worker_rows.c) and the listener pattern.
 *
 * Threads: any.   Tests: spec/unit/worker_config_spec.lua
 */
#ifndef LC_CONFIG_WORKER_CHECKS_H
#define LC_CONFIG_WORKER_CHECKS_H
#include <stdint.h>
#include "config/def.h"

bool lc_worker_check_listeners(const lc_config_row_t *row, const char *value, lc_buf_t *reason);
bool lc_worker_check_admin_listeners(const lc_config_row_t *row, const char *value, lc_buf_t *reason);
bool lc_worker_check_headers(const lc_config_row_t *row, const char *value, lc_buf_t *reason);
bool lc_worker_check_verification(const lc_config_row_t *row, const char *value, lc_buf_t *reason);
bool lc_worker_check_mac(const lc_config_row_t *row, const char *value, lc_buf_t *reason);
bool lc_worker_check_key_algorithm(const lc_config_row_t *row, const char *value, lc_buf_t *reason);
bool lc_worker_check_protocol(const lc_config_row_t *row, const char *value, lc_buf_t *reason);
bool lc_worker_check_partitions(const lc_config_row_t *row, const char *value, lc_buf_t *reason);
bool lc_worker_check_replication(const lc_config_row_t *row, const char *value, lc_buf_t *reason);

/* "scheme://host:port" by Java's pattern, brackets of IPv6 removed. Strings are malloc'ed. */
int lc_listener_parse(const char *listener, char **scheme, char **host, int *port, lc_err_t *err);

/* 1024, 64k, 256m, 1g. */
bool lc_worker_check_size(const lc_config_row_t *row, const char *value, lc_buf_t *reason);
/* Its bytes, -1: not a size. */
int64_t lc_worker_size(const char *text);

#endif
