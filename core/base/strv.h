/*
 * strv.h - a list of owned strings.   Threads: one owner.   Tests: spec/unit/base_spec.lua
 */
#ifndef LC_BASE_STRV_H
#define LC_BASE_STRV_H
#include <stdbool.h>
#include <stddef.h>

typedef struct lc_strv {
        char **v;
        size_t n;
} lc_strv_t;

void lc_strv_add(lc_strv_t *s, const char *item); /* copies */
bool lc_strv_has(const lc_strv_t *s, const char *item);
void lc_strv_sort(lc_strv_t *s);
/* Of equal items only the first stays, the order is kept. How many went. */
size_t lc_strv_unique(lc_strv_t *s);
void lc_strv_free(lc_strv_t *s);
/* Java ConfigDef's LIST: split on commas with blanks around them; "" gives an empty list. */
void lc_strv_split(lc_strv_t *s, const char *text);

#endif
