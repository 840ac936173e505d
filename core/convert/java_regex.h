/*
 * java_regex.h - java.util.regex over PCRE2: whole matches, the first find and Java's replacement texts.
 *
 * The pattern is parsed as java.util.regex.Pattern does (its messages, its flags, classes with && and
 * unions) and written as a PCRE2 pattern; what still differs is listed in docs/differences.md. Every match
 * has a limit of steps: a pattern that would take for ever ends with an error.
 * Threads:   a compiled expression has one owner.
 * Ownership: lc_java_regex_free().
 * Errors:    patterns: LC_FATAL, java.util.regex.PatternSyntaxException. Matches and replacements:
 *            LC_FATAL, with Java's class where Java has the case.
 * Tests:     spec/golden/regex_spec.lua
 */
#ifndef LC_CONVERT_JAVA_REGEX_H
#define LC_CONVERT_JAVA_REGEX_H
#include <stdbool.h>
#include "base/buf.h"
#include "base/err.h"

typedef struct lc_java_regex lc_java_regex_t;

lc_java_regex_t *lc_java_regex_compile(const char *pattern, lc_err_t *err);
void lc_java_regex_free(lc_java_regex_t *re); /* NULL is fine */
/* Pattern.compile(pattern) alone: 0, or -1 with the text. */
int lc_java_regex_check(const char *pattern, lc_err_t *err);
/* Matcher.matches(): 1, 0; -1 when it took too many steps. */
int lc_java_regex_matches(lc_java_regex_t *re, const char *s, size_t n, lc_err_t *err);
/* Matcher.replaceFirst(replacement), appended. -1: a bad replacement, or too many steps. */
int lc_java_regex_replace_first(lc_java_regex_t *re, const char *s, size_t n, const char *replacement,
                                lc_buf_t *out, lc_err_t *err);

#endif
