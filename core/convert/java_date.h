/*
 * java_date.h - java.text.SimpleDateFormat for UTC and English: what TimestampConverter and TimestampRouter
 * use.
 *
 * Threads:   a format has one owner.
 * Ownership: lc_java_date_free().
 * Errors:    a bad pattern: LC_FATAL, java.lang.IllegalArgumentException with its text.
 * Tests:     spec/golden/dates_spec.lua
 */
#ifndef LC_CONVERT_JAVA_DATE_H
#define LC_CONVERT_JAVA_DATE_H
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"

typedef struct lc_java_date lc_java_date_t;

lc_java_date_t *lc_java_date_new(const char *pattern, lc_err_t *err);
void lc_java_date_free(lc_java_date_t *f); /* NULL is fine */
/* Text of an instant, appended. */
void lc_java_date_format(const lc_java_date_t *f, int64_t ms, lc_buf_t *out);
/* Lenient; what stands behind the match is ignored. 0, or -1 when the text does not match. */
int lc_java_date_parse(const lc_java_date_t *f, const char *s, size_t n, int64_t *ms);

#endif
