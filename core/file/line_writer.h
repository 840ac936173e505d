/*
 * line_writer.h - records as lines of text, appended to a file or printed to stdout.
 *
 * One line a record: Java's text of its value and '\n'. Strings are written as they are, malformed UTF-8
 * replaced. A batch is written whole or, when the disk is full, taken back, so that it can be given again.
 *
 * Threads:   the task's thread. A wait for a slow pipe ends when `stop` is woken.
 * Errors:    LC_FATAL when the file cannot be opened, LC_RETRIABLE when it cannot be written now; both
 *            name it.
 * Source:    reference file-connectors 2.
 * Tests:     spec/unit/lines_spec.lua
 */
#ifndef LC_FILE_LINE_WRITER_H
#define LC_FILE_LINE_WRITER_H
#include "base/waker.h"
#include "data/record.h"

typedef struct lc_line_writer lc_line_writer_t;

/* path NULL or "": standard output. Creates the file, appends to it. */
lc_line_writer_t *lc_line_writer_new(const char *path, lc_waker_t *stop, lc_err_t *err);
/* Every record but dropped ones. */
int lc_line_writer_write(lc_line_writer_t *w, const lc_batch_t *batch, lc_err_t *err);
void lc_line_writer_free(lc_line_writer_t *w); /* NULL is fine */

#endif
