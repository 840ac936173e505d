/*
 * java_regex_scan.h - a Java pattern while it is read: the cursor, messages and escapes. Inside this room
 * only.
 *
 * The cursor moves as java.util.regex.Pattern's does, because the index in its messages is that cursor.
 * Threads:   any.   Tests: spec/golden/regex_spec.lua
 */
#ifndef LC_CONVERT_JAVA_REGEX_SCAN_H
#define LC_CONVERT_JAVA_REGEX_SCAN_H
#include <stdint.h>
#include "convert/java_regex_class.h"
#include "convert/java_regex_parse.h"

enum {
        LC_REGEX_CASE = 1,
        LC_REGEX_LINES = 2,
        LC_REGEX_DOTALL = 4,
        LC_REGEX_UNIX = 8,
        LC_REGEX_UCASE = 16,
        LC_REGEX_COMMENTS = 32,
        LC_REGEX_UCLASS = 64
};
enum { LC_REGEX_NO_CHAR = -1, LC_REGEX_FAILED = -2 };

typedef struct lc_regex_parser {
        const char *java;
        int32_t *temp; /* code points and two zeros */
        int n, cursor, flags, depth, groups, total;
        bool endless; /* the part being read has no maximum length */
        lc_buf_t *out;
        lc_strv_t *names;
        int **numbers;
        lc_err_t *err;
} lc_regex_parser_t;

/* PatternSyntaxException at the cursor. Returns LC_REGEX_FAILED. */
int lc_regex_fail(lc_regex_parser_t *p, const char *what);
/* The same for what Java takes and PCRE2 does not. */
int lc_regex_refuse(lc_regex_parser_t *p, const char *what);
bool lc_regex_has(const lc_regex_parser_t *p, int flag);
int32_t lc_regex_at(const lc_regex_parser_t *p, int i);
/* The cursor: blanks and comments are passed over with (?x). */
int32_t lc_regex_peek(lc_regex_parser_t *p);
int32_t lc_regex_read_one(lc_regex_parser_t *p);
int32_t lc_regex_next(lc_regex_parser_t *p);
int32_t lc_regex_next_escaped(lc_regex_parser_t *p);
int32_t lc_regex_skip(lc_regex_parser_t *p);
bool lc_regex_is_digit(int32_t c);
bool lc_regex_is_alpha(int32_t c);
/* The name of a group from `c` on, malloc'ed; NULL with the error set. */
char *lc_regex_group_name(lc_regex_parser_t *p, int32_t c);
/* Number of a named group, -1. */
int lc_regex_group_of(const lc_regex_parser_t *p, const char *name);
/* \A, \b and their kin written to out; false for other letters. */
bool lc_regex_assertion(lc_regex_parser_t *p, int32_t c);
/* At a backslash. A code point; LC_REGEX_NO_CHAR when something else was written to out (in a class: to set).
 */
int32_t lc_regex_escape(lc_regex_parser_t *p, bool in_class, bool is_range, lc_set_t *set);

#endif
