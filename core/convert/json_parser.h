/*
 * json_parser.h - the state of the JSON reader, shared by json.c (structure), json_string.c and json_encoding.c.
 *
 * Threads:   a parser lives on one stack.
 * Errors:    LC_DATA with Jackson's class and text; all return -1.
 * Tests:     spec/unit/json_spec.lua
 */
#ifndef LC_CONVERT_JSON_PARSER_H
#define LC_CONVERT_JSON_PARSER_H
#include "convert/json.h"

#define LC_CLS_JSON_PARSE "com.fasterxml.jackson.core.JsonParseException"
#define LC_CLS_JSON_EOF   "com.fasterxml.jackson.core.io.JsonEOFException"

enum { LC_JSON_MAX_NUMBER = 1000 }; /* digits, StreamReadConstraints */

typedef struct lc_json_parser {
        const char *start, *p, *end;
        int flags, depth;
        char close;                /* of the innermost open container */
        lc_arena_t *arena, *texts; /* of nodes, of decoded strings */
        lc_err_t *err;
} lc_json_parser_t;

/* Set the error "TEXT\n at [Source: ...; line: L, column: C]" for the position `at`. */
int lc_json_fail(lc_json_parser_t *ps, const char *cls, const char *at, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
/* "Unexpected character ('x' (code 120)): COMMENT" */
int lc_json_unexpected(lc_json_parser_t *ps, const char *at, const char *comment);
void lc_json_describe(const char *at, char out[64]);
int lc_json_no_memory(lc_json_parser_t *ps);
/* Decode the text if it is UTF-16 or UTF-32, step over a mark. */
int lc_json_find_encoding(lc_json_parser_t *ps);
/* At the opening quote; what: "field name" or "VALUE_STRING". */
int lc_json_read_string(lc_json_parser_t *ps, const char *what, const char **text, size_t *len);

#endif
