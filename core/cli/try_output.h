/*
 * try_output.h - what `luaconnect try` prints: records as JSON lines, and what a step changed in one.
 *
 * Threads:   main.   Tests: spec/unit/kit_spec.lua
 */
#ifndef LC_CLI_TRY_OUTPUT_H
#define LC_CLI_TRY_OUTPUT_H
#include "convert/json_data.h"
#include "data/record.h"

typedef struct lc_try_output {
        bool full, schemas, color;
        bool failed;
        bool source; /* records are a source's: full prints where they came from */
        lc_buf_t buf;
} lc_try_output_t; /* all zero: nothing printed yet */

extern const lc_json_options_t lc_try_json; /* how values are read, printed and compared */

void lc_try_output_free(lc_try_output_t *o);
/* Append the record as one line to buf. -1: a value does not convert; buf is as before. */
int lc_try_output_record(lc_try_output_t *o, const lc_record_t *r, lc_err_t *err);
/* Append the changes from a to b, one a line. How many; a number no one prints means nothing changed. */
int lc_try_output_changes(lc_try_output_t *o, const lc_record_t *a, const lc_record_t *b);
/* buf to stdout. -1: nobody reads it any more, or what failed is told and `failed` is set. */
int lc_try_output_flush(lc_try_output_t *o);

#endif
