/*
 * letter.h - one dead letter: the failed record as it was read, copied, with the headers that say why.
 *
 * Threads:   the task's.
 * Ownership: a letter owns its batch of one record; whoever sends it takes a reference of its own.
 * Source:    errors.md 6.   Tests: spec/unit/letters_spec.lua
 */
#ifndef LC_RUNTIME_LETTER_H
#define LC_RUNTIME_LETTER_H
#include "convert/converter.h"
#include "runtime/operator.h"

typedef struct lc_letter lc_letter_t;
struct lc_letter {
        lc_letter_t *next, *prev; /* letters.c */
        lc_batch_t *b;
        const lc_batch_t *of; /* where the record was; only compared */
        lc_stage_t stage;
        const char *topic; /* where it was consumed; NULL: it was not */
        int32_t partition;
        int64_t offset;
        bool context; /* it has the headers that say why */
        bool sent, shortened;
};

/* How the values of a source's records become bytes: JSON with schemas, else Java's text. */
typedef struct lc_letter_writer {
        lc_converter_t *key, *value, *header;
} lc_letter_writer_t;
lc_letter_writer_t *lc_letter_writer_new(lc_err_t *err);
void lc_letter_writer_free(lc_letter_writer_t *w); /* NULL is fine */

/* `topic` outlives it. headers: the ten __connect.errors.*. w: of a source, NULL for a sink. NULL: no memory. */
lc_letter_t *lc_letter_new(const char *topic, bool headers, const lc_letter_writer_t *w,
                           const lc_failure_t *f);
void lc_letter_free(lc_letter_t *x);
lc_letter_t *lc_letter_of(const lc_batch_t *b);
/* Without the stack trace, which may be what makes it too large. false: there is none (any more). */
bool lc_letter_shorten(lc_letter_t *x);
/* Which record it is, as one line of err->detail. */
void lc_letter_describe(const lc_letter_t *x, lc_err_t *err);

#endif
