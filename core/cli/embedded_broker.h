/*
 * embedded_broker.h - a Kafka broker inside the process, for a first look and for tests without Kafka:
 * librdkafka's mock cluster. Its limits: nothing survives the exit; about 5 MiB a partition are kept; no
 * admin calls, no compaction, aborted transactions are read; topics that were not named at the start have
 * four partitions. Never for real data.
 *
 * Threads:   librdkafka's; new and free from the main thread.
 * Tests:     spec/unit/cli_spec.lua
 */
#ifndef LC_CLI_EMBEDDED_BROKER_H
#define LC_CLI_EMBEDDED_BROKER_H
#include "base/err.h"
#include "base/props.h"
#include "base/strv.h"

typedef struct lc_embedded_broker lc_embedded_broker_t;
/* topics: created with one partition each. */
lc_embedded_broker_t *lc_embedded_broker_new(const lc_strv_t *topics, lc_err_t *err);
const char *lc_embedded_broker_bootstrap(const lc_embedded_broker_t *b); /* "127.0.0.1:PORT" */
/* Sets bootstrap.servers and what such a broker needs otherwise, unless the file says more. */
void lc_embedded_broker_configure(const lc_embedded_broker_t *b, lc_props_t *worker);
void lc_embedded_broker_free(lc_embedded_broker_t *b); /* NULL is fine */

#endif
