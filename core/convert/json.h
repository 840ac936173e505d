/*
 * json.h - the one JSON reader and writer for what comes from outside: records, REST bodies, internal
 * topics, offsets. Numbers keep their literal text until asked, the last of equal keys wins, errors say
 * line and column. (cJSON loses digits; it is for documents of our own making.)
 *
 * Threads:   any; no globals.
 * Ownership: a document owns its nodes; lc_json_free() frees all. Strings are decoded, terminated,
 *            may hold NULs (use len).
 * Tests:     spec/unit/json_spec.lua
 */
#ifndef LC_CONVERT_JSON_H
#define LC_CONVERT_JSON_H
#include "base/buf.h"
#include "base/err.h"
#include "base/props.h"
#include "data/value.h"

typedef enum {
        LC_J_NULL,
        LC_J_TRUE,
        LC_J_FALSE,
        LC_J_NUMBER,
        LC_J_STRING,
        LC_J_ARRAY,
        LC_J_OBJECT
} lc_jtype_t;

typedef struct lc_json lc_json_t;
struct lc_json {
        lc_jtype_t type;
        bool integral;   /* NUMBER: no fraction, no exponent */
        const char *s;   /* STRING: text; NUMBER: the literal */
        size_t len;      /* of s; ARRAY, OBJECT: number of children */
        const char *key; /* name in the parent object, NULL otherwise */
        size_t key_len;
        lc_json_t *child; /* first child */
        lc_json_t *next;  /* next sibling */
        const char *at;   /* where the value starts in the text */
};

enum {
        LC_JSON_LENIENT = 1, /* JsonConverter: leading zeros, ignore what follows the first value */
        LC_JSON_BORROW = 2,  /* texts may be slices of the input, not terminated: it must outlive them */
        LC_JSON_MAX_DEPTH = 1000
};
/* Parse text[len]. *doc gets the root (free with lc_json_free). An empty or blank text gives *doc NULL
 * and 0. Returns -1 with err LC_DATA: cls JsonParseException-like, message with line and column. */
int lc_json_parse(const char *text, size_t len, int flags, lc_json_t **doc, lc_err_t *err);
void lc_json_free(lc_json_t *doc);
/* lc_json_parse of what the worker itself wrote and keeps: a document that is not read for want of memory would
 * be taken for garbage and forgotten, so the process ends. */
int lc_json_parse_sure(const char *text, size_t len, int flags, lc_json_t **doc, lc_err_t *err);
/* The same into arenas of the caller's: nodes and numbers in one, decoded strings in the other. */
typedef struct lc_json_input {
        const char *text;
        size_t len;
        int flags;
        lc_arena_t *nodes, *texts;
} lc_json_input_t;
/* The root lies in `space` when that is not NULL; *root is NULL for a blank text. */
int lc_json_parse_document(const lc_json_input_t *in, lc_json_t *space, lc_json_t **root, lc_err_t *err);
/* Only the value at the start of the text, a member of some object; *end: what stands behind it. */
int lc_json_parse_member(const lc_json_input_t *in, lc_json_t *space, const char **end, lc_err_t *err);
const lc_json_t *lc_json_get(const lc_json_t *object, const char *key); /* NULL if absent */
/* NUMBER as int64: wraps to the low 64 bits beyond (as Jackson's longValue). *exact says it fitted. */
int64_t lc_json_int64(const lc_json_t *number, bool *exact);
double lc_json_double(const lc_json_t *number);
float lc_json_float(const lc_json_t *number);

/* Append "..." with JsonConverter's escapes (reference converters 3.1); malformed UTF-8 -> U+FFFD. */
void lc_json_write_string(lc_buf_t *out, const char *s, size_t n);
/* Append a node as compact JSON, numbers as their literals. */
void lc_json_write(lc_buf_t *out, const lc_json_t *node);
/* Append {"k":"v",...}; NULL values as null. */
void lc_json_write_props(lc_buf_t *out, const lc_props_t *props);
/* An object as the map it is with keys sorted by bytes, at every depth: the canonical form of source
 * partitions and offsets. */
void lc_json_write_canonical(lc_buf_t *out, const lc_json_t *node);
/* Java's text of a double or float: 1.0E10, 100.0, NaN. Appends. */
void lc_java_double(lc_buf_t *out, double d);
void lc_java_float(lc_buf_t *out, float f);

#endif
