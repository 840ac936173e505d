/*
 * props.h - an ordered map of strings: worker files, connector and task configs.
 *
 * Order is that of first insertion. A value may be NULL (JSON null in a connector config).
 * Threads:   one owner, or read-only sharing.
 * Ownership: keys and values are copied in; getters return borrowed strings.
 * Tests:     spec/unit/base_spec.lua
 */
#ifndef LC_BASE_PROPS_H
#define LC_BASE_PROPS_H
#include <stdbool.h>
#include <stddef.h>

typedef struct lc_props lc_props_t;

lc_props_t *lc_props_new(void);
lc_props_t *lc_props_copy(const lc_props_t *p); /* NULL gives an empty one */
void lc_props_free(lc_props_t *p);              /* NULL is fine */
void lc_props_set(lc_props_t *p, const char *key, const char *value);
bool lc_props_del(lc_props_t *p, const char *key);
bool lc_props_has(const lc_props_t *p, const char *key);
const char *lc_props_get(const lc_props_t *p, const char *key); /* NULL: absent or null */
const char *lc_props_get_or(const lc_props_t *p, const char *key, const char *other);
size_t lc_props_count(const lc_props_t *p);
const char *lc_props_key(const lc_props_t *p, size_t i);
const char *lc_props_value(const lc_props_t *p, size_t i);
bool lc_props_equal(const lc_props_t *a, const lc_props_t *b); /* as maps: order does not count */
/* The entries whose keys start with `prefix`, the prefix cut off. */
lc_props_t *lc_props_prefixed(const lc_props_t *p, const char *prefix);
void lc_props_merge(lc_props_t *into, const lc_props_t *from);

#endif
