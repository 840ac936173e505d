/*
 * java_hash.h - the order in which Java's HashMap lists its entries: record keys must stay the same bytes
 * when a cluster moves, and texts of maps (StringConverter, FileStreamSink) are recorded in that order.
 *
 * Threads:   any.
 * Tests:     spec/unit/data_spec.lua, spec/golden/assignor_spec.lua
 */
#ifndef LC_DATA_JAVA_HASH_H
#define LC_DATA_JAVA_HASH_H
#include "data/value.h"

/* String.hashCode() of UTF-8 text: over UTF-16 units. */
int32_t lc_java_string_hash(const char *s, size_t n);
/* hashCode() of a value. Identity hashes (bytes, foreign objects) count as 0. */
int32_t lc_java_hash(const lc_value_t *v);
/* Fill order[0..n-1] with the entry numbers of a map (items: key, value, key, value) in the order of a
 * HashMap into which they were put one after the other. -1 when memory is out. */
int lc_java_hash_order(const lc_value_t *items, uint32_t n, uint32_t *order);
/* Of entries with equal keys only one stays, with the last value at the place of the first, as HashMap.put() does
 * it. *n: how many there are. -1 when memory is out. */
int lc_java_unique_entries(lc_value_t *items, uint32_t *n);
/* lc_java_hash_order() for a HashMap or HashSet of strings. */
int lc_java_string_order(const char *const *keys, uint32_t n, uint32_t *order);
/* String.compareTo() of UTF-8 texts, its sign only: by UTF-16 units. */
int lc_java_string_compare(const char *a, const char *b);

#endif
