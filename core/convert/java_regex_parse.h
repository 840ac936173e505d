/*
 * java_regex_parse.h - a java.util.regex pattern as a PCRE2 pattern: inside this room only.
 *
 * Threads:   any.   Tests: spec/golden/regex_spec.lua
 */
#ifndef LC_CONVERT_JAVA_REGEX_PARSE_H
#define LC_CONVERT_JAVA_REGEX_PARSE_H
#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"

/* What the expression means, in PCRE2's words: every option is written out, so it is compiled with UTF alone.
 * names (numbers[i] is the group of names->v[i], malloc'ed) and the number of groups for replacements.
 * -1: LC_FATAL, java.util.regex.PatternSyntaxException with its text. */
int lc_java_regex_translate(const char *java, lc_buf_t *out, lc_strv_t *names, int **numbers, int *groups,
                            lc_err_t *err);
/* PatternSyntaxException.getMessage(). Returns -1. */
int lc_java_regex_syntax(const char *java, int index, const char *what, lc_err_t *err);

#endif
