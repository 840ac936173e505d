/*
 * offset_map.h - source offsets in memory, as key and value bytes like the offsets topic's: shared by the
 * memory and the file store.
 *
 * Keys are ["connector",{partition}]; they are compared by connector and canonical partition, and keep the
 * bytes they were loaded with.
 * Threads:   one owner, or its lock.
 * Tests:     spec/unit/memory_stores_spec.lua, spec/unit/offset_file_spec.lua
 */
#ifndef LC_STORAGE_OFFSET_MAP_H
#define LC_STORAGE_OFFSET_MAP_H
#include "base/buf.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct lc_offset_map lc_offset_map_t;

lc_offset_map_t *lc_offset_map_new(void);
void lc_offset_map_free(lc_offset_map_t *m);
/* An entry as read; value NULL: a null value. A key of another form is kept for writing, but is no offset:
 * false. */
bool lc_offset_map_load(lc_offset_map_t *m, const char *key, size_t key_len, const char *value,
                        size_t value_len);
/* offset NULL stays as an entry with a null value. */
void lc_offset_map_set(lc_offset_map_t *m, const char *connector, const char *partition, const char *offset);
/* 1 and the offset appended, 0 none. */
int lc_offset_map_get(lc_offset_map_t *m, const char *connector, const char *partition, lc_buf_t *out);
/* Partitions of a connector with an offset, as stored. */
void lc_offset_map_list(lc_offset_map_t *m, const char *connector,
                        void (*fn)(void *arg, const char *partition, const char *offset), void *arg);
/* All entries in order of arrival: key and value bytes (value NULL: null). */
size_t lc_offset_map_count(const lc_offset_map_t *m);
void lc_offset_map_each(const lc_offset_map_t *m,
                        void (*fn)(void *arg, const char *key, size_t key_len, const char *value,
                                   size_t value_len),
                        void *arg);

#endif
