/*
 * java_map.h - the order in which Java's HashMap<String, ?> lists its keys, and the text of such a map:
 * visible in messages and in the order of some REST answers.
 *
 * Threads: any.   Tests: spec/unit/config_spec.lua
 */
#ifndef LC_CONFIG_JAVA_MAP_H
#define LC_CONFIG_JAVA_MAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/props.h"

/* order[0..n): positions of keys as a HashMap lists them that was filled in the given order, one put() after
 * the other, or (copied) by new HashMap<>(map), which has another size. */
void lc_java_map_order(const char *const *keys, size_t n, bool copied, size_t *order);
/* "{k=v, a=null}" of a HashMap copied from these entries. Appends. */
void lc_java_map_text(const lc_props_t *props, lc_buf_t *out);

#endif
