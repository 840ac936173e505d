/*
 * line_reader.h - a text file, fifo or stdin as batches of records, one a line.
 *
 * Lines end with '\n', '\r\n' or '\r'; a '\r' at the end of what was read waits for the next byte; a last
 * line without an end waits for its end. Positions are bytes. Values are slices of the block they were read
 * into (no copies, no checks: converters replace malformed UTF-8); a batch keeps its block alive.
 * Files may appear later, grow, be truncated, replaced or deleted: see line_reader.c.
 *
 * Threads:   the task's thread. Waits end when `stop` is woken.
 * Ownership: path and topic are copied; a batch from poll is the caller's and may outlive the reader.
 * Errors:    LC_FATAL with the path for what cannot get better (unreadable, a line too large).
 * Source:    reference file-connectors 1.1.   Tests: spec/unit/lines_spec.lua
 */
#ifndef LC_FILE_LINE_READER_H
#define LC_FILE_LINE_READER_H
#include "base/waker.h"
#include "data/record.h"

typedef struct lc_line_reader lc_line_reader_t;
typedef struct lc_line_reader_conf {
        const char *path; /* NULL or "": standard input */
        const char *topic;
        int64_t position;    /* first byte to read; 0: the beginning */
        int64_t max_line;    /* bytes; longer ones are errors. 0: no limit */
        uint32_t batch_size; /* records a batch at most; 0 counts as 1 */
        bool skip_large;     /* lines above max_line are skipped with a warning */
        bool timestamps;     /* records get the wall clock; else the producer's time is theirs */
        lc_waker_t *stop;    /* may be NULL */
} lc_line_reader_conf_t;

/* Opens nothing yet. Never NULL. */
lc_line_reader_t *lc_line_reader_new(const lc_line_reader_conf_t *conf);
/* *batch NULL: nothing now. Waits a little when asked again too soon. */
int lc_line_reader_poll(lc_line_reader_t *r, lc_batch_t **batch, lc_err_t *err);
int64_t lc_line_reader_position(const lc_line_reader_t *r); /* byte behind the last line handed out */
void lc_line_reader_free(lc_line_reader_t *r);              /* NULL is fine */

#endif
