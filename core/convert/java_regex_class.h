/*
 * java_regex_class.h - sets of characters while a Java pattern is translated: inside this room only.
 *
 * Threads:   any.   Tests: spec/golden/regex_spec.lua
 */
#ifndef LC_CONVERT_JAVA_REGEX_CLASS_H
#define LC_CONVERT_JAVA_REGEX_CLASS_H
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"

/* A set: items of one bracket expression, or a pattern that matches one character. */
typedef struct lc_charset_pattern {
        lc_buf_t text;
        enum { LC_SET_NONE, LC_SET_ITEMS, LC_SET_PATTERN } kind;
} lc_set_t;

void lc_set_free(lc_set_t *s);
void lc_set_items(lc_set_t *s, const char *items);   /* a new set of "a-z0-9" */
void lc_set_pattern(lc_set_t *s, const char *regex); /* a new set of what `regex` matches */
void lc_set_range(lc_set_t *s, int32_t lo, int32_t hi, bool nocase, bool unicode_case); /* adds */
void lc_set_union(lc_set_t *to, lc_set_t *with); /* `with` is consumed */
void lc_set_intersect(lc_set_t *to, const lc_set_t *with);
void lc_set_negate(lc_set_t *s);
/* Append the pattern for one character of the set. */
void lc_set_write(const lc_set_t *s, lc_buf_t *out);

/* The set of \p{NAME}: 0, or -1 when Java knows no such property and -2 when Java does but PCRE2 does not. */
int lc_set_property(lc_set_t *s, const char *name, bool nocase, bool unicode_class);
/* \p{key=value}: likewise. */
int lc_set_property_value(lc_set_t *s, const char *key, const char *value, bool nocase);

#endif
