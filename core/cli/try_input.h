/*
 * try_input.h - records for `luaconnect try` from lines of text: JSON, a JsonConverter envelope, whole
 * records as --full prints them, or raw text. Reads what is there and no more, so a pipe can be followed;
 * memory is one chunk of lines (and the longest line).
 *
 * Threads:   main.
 * Ownership: batches are the caller's; lines[] is valid until the next read.
 * Tests:     spec/unit/kit_spec.lua
 */
#ifndef LC_CLI_TRY_INPUT_H
#define LC_CLI_TRY_INPUT_H
#include "base/strv.h"
#include "convert/converter.h"

typedef struct lc_try_input {
        /* set by the caller */
        int fd;
        const char *name; /* of the file, for messages */
        bool raw, schemaless, records;
        const char *topic, *key; /* key NULL: none */
        lc_strv_t headers;       /* name=value */
        bool sink;               /* records have a partition, and as offset the number of lines before */
        bool no_wait;            /* read only what is there */
        void (*bad)(void *arg, uint64_t line, const lc_err_t *err);
        void *arg;
        /* its own */
        lc_buf_t buf;
        size_t at;      /* what was given out */
        size_t scanned; /* bytes behind it that hold no end of line */
        uint64_t line;  /* number of the last line */
        bool eof, skipping;
        bool waiting;    /* with no_wait: there is no more for now */
        uint64_t *lines; /* number of the line of each record of the last batch */
        size_t nlines;
        lc_arena_t nodes;
        lc_converter_t *simple; /* of header texts */
        lc_buf_t schema_text;   /* the last envelope's schema: one object for a run of equal ones */
        const lc_schema_t *schema;
} lc_try_input_t;

enum { LC_TRY_LONGEST = 512 << 20 }; /* bytes of a line */

/* At least one record unless the input ended (or `waiting` is set): *batch NULL then. Bad lines went to bad(). -1: err. */
int lc_try_input_read(lc_try_input_t *in, lc_batch_t **batch, lc_err_t *err);
void lc_try_input_free(lc_try_input_t *in);

#endif
