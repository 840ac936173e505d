/*
 * tracker.h - which records of a source task were acknowledged, and which offset may be committed.
 *
 * After Java's SubmittedRecords: a FIFO of submitted records per source partition (compared by JSON text);
 * only the acknowledged head of a FIFO is committable, so an unacknowledged record holds back later ones of
 * its own partition only. Records without a source partition are released when acknowledged.
 *
 * Threads:   the task's thread only.
 * Ownership: the producer takes a batch reference for each record it accepts; the tracker drops it when
 *            the record leaves. The submitter keeps the batch while records of it are not accepted yet.
 *            Entries from begin() are borrowed until end().
 * Cost:      a few ns a record; one offset text per partition and harvest.
 * Source:    worker-tasks 3.2.   Tests: spec/unit/tracker_spec.lua
 */
#ifndef LC_RUNTIME_TRACKER_H
#define LC_RUNTIME_TRACKER_H
#include "data/record.h"
#include "storage/offset_store.h"

typedef struct lc_tracker lc_tracker_t;
lc_tracker_t *lc_tracker_new(void);
void lc_tracker_free(lc_tracker_t *t); /* NULL is fine; releases what is still in flight */

/* Register those of records[0..n) with state LC_REC_NEW, in order, before they are sent: the producer may
 * accept a later one first. */
void lc_tracker_submit(lc_tracker_t *t, lc_record_t *records, uint32_t n);
/* An accepted record was acknowledged (or skipped under tolerance). Do not touch it afterwards. */
void lc_tracker_ack(lc_tracker_t *t, lc_record_t *r);
/* An accepted record failed: it holds back its partition for good. Do not touch it afterwards. */
void lc_tracker_lost(lc_tracker_t *t, lc_record_t *r);

/* Pop acknowledged heads. Their last offset per partition becomes committable. -1: an offset cannot be
 * written as JSON (the others were harvested). */
int lc_tracker_harvest(lc_tracker_t *t, lc_err_t *err);
/* Records harvested since the last call: "Committing offsets for N acknowledged messages". */
uint64_t lc_tracker_take_count(lc_tracker_t *t);
/* What is committable now; it counts as being written until end(). At most one at a time. */
size_t lc_tracker_begin(lc_tracker_t *t, const lc_offset_entry_t **entries);
/* ok false: what was being written is committable again unless something newer is. */
void lc_tracker_end(lc_tracker_t *t, bool ok);

#endif
