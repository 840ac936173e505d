/*
 * source_offsets.h - where the offsets of one source connector are: in the worker's store, or in a topic of its
 * own (offsets.storage.topic) in front of it (storage.md 5.1).
 *
 * Reading: what the own topic does not have shows through from the worker's store. Writing: removals first to
 * the worker's store, then everything to the own topic, then the rest to the worker's store as well as can be.
 * With exactly-once support the primary one is written by the task's transactions, the other one around them.
 * Threads:   get and list from one thread at a time; callbacks come on the stores' threads.
 * Ownership: closing it waits for nothing; what is out ends by itself.
 * Tests:     spec/unit/exactly_once_spec.lua, spec/kafka/exactly_once_spec.lua
 */
#ifndef LC_RUNTIME_SOURCE_OFFSETS_H
#define LC_RUNTIME_SOURCE_OFFSETS_H
#include "runtime/services.h"

typedef struct lc_source_offsets lc_source_offsets_t;
/* task -1: of the connector. config: resolved. May wait for a broker until *stop. */
lc_source_offsets_t *lc_source_offsets_open(lc_services_t *sv, const char *connector, int task,
                                            const lc_props_t *config, const volatile int *stop,
                                            lc_err_t *err);
void lc_source_offsets_close(lc_source_offsets_t *o); /* NULL is fine */
/* The topic of the primary store; NULL: not a topic. */
const char *lc_source_offsets_topic(const lc_source_offsets_t *o);

/* As those of offset_store.h. */
int lc_source_offsets_get(lc_source_offsets_t *o, const char *partition, lc_buf_t *out, lc_err_t *err);
int lc_source_offsets_list(lc_source_offsets_t *o,
                           void (*fn)(void *arg, const char *partition, const char *offset), void *arg,
                           lc_err_t *err);
void lc_source_offsets_set(lc_source_offsets_t *o, const lc_offset_entry_t *entries, size_t n,
                           lc_offset_done_fn *done, void *arg);

/* Exactly-once: before the transaction, the records to write in it, after it. */
int lc_source_offsets_before(lc_source_offsets_t *o, const lc_offset_entry_t *entries, size_t n,
                             bool (*quit)(void *arg), void *arg, lc_err_t *err);
int lc_source_offsets_records(lc_source_offsets_t *o, const lc_offset_entry_t *entries, size_t n,
                              lc_offset_record_fn *fn, void *arg, lc_err_t *err);
void lc_source_offsets_after(lc_source_offsets_t *o, const lc_offset_entry_t *entries, size_t n);

#endif
