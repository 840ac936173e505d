/* tracker.c - see tracker.h. The task's thread only. */
#include "runtime/tracker.h"
#include "base/alloc.h"
#include "base/hash.h"
#include <stdlib.h>
#include <string.h>

enum {
        CACHED = 4,    /* partition objects that remember one FIFO; interning makes more than one rare */
        KEEP_IDLE = 64 /* FIFOs kept although they are empty: recreating them costs more */
};

typedef struct fifo {
        lc_record_t *head, *tail;
        struct fifo *ready_next;
        bool ready;       /* on the ready list: something was acknowledged */
        bool has_pending; /* pending may be NULL: remove the offset */
        bool has_writing;
        char *json;
        char *pending, *writing;
        lc_record_t *last;     /* popped last; its offset becomes pending at the next harvest */
        lc_batch_t *run_batch; /* of `last`: `run` of its references are ours to drop */
        uint32_t run;
        lc_source_partition_t *cached[CACHED];
        uint32_t ncached, evict;
        UT_hash_handle hh;
} fifo_t;

struct lc_tracker {
        fifo_t *fifos; /* by json */
        fifo_t *ready;
        uint64_t harvested;
        lc_offset_entry_t *entries;
        size_t nentries, cap;
        bool writing;
};

lc_tracker_t *lc_tracker_new(void)
{
        return lc_calloc(1, sizeof(lc_tracker_t));
}

static void forget(lc_source_partition_t *p)
{
        p->tracker = NULL;
        lc_source_partition_unref(p);
}

static void remember(fifo_t *f, lc_source_partition_t *p)
{
        uint32_t at = f->ncached;

        if (at == CACHED) {
                at = f->evict++ % CACHED;
                forget(f->cached[at]);
        } else {
                f->ncached++;
        }
        p->refs++;
        p->tracker = f;
        f->cached[at] = p;
}

static fifo_t *find_slow(lc_tracker_t *t, lc_source_partition_t *p)
{
        fifo_t *f = NULL;

        HASH_FIND(hh, t->fifos, p->json, p->len, f);
        if (!f) {
                f = lc_calloc(1, sizeof(*f));
                f->json = lc_strndup(p->json, p->len);
                HASH_ADD_KEYPTR(hh, t->fifos, f->json, p->len, f);
        }
        remember(f, p);
        return f;
}

static inline fifo_t *find(lc_tracker_t *t, lc_source_partition_t *p)
{
        return p->tracker ? p->tracker : find_slow(t, p);
}

void lc_tracker_submit(lc_tracker_t *t, lc_record_t *records, uint32_t n)
{
        for (lc_record_t *r = records, *end = records + n; r < end; r++) {
                fifo_t *f;

                if (r->state != LC_REC_NEW || !r->u.src.partition)
                        continue;
                f = find(t, r->u.src.partition);
                r->u.src.next = NULL;
                if (f->head)
                        f->tail->u.src.next = r;
                else
                        f->head = r;
                f->tail = r;
        }
}

/* Drop `n` references of one batch; never the batch itself before the last. */
static void release(lc_batch_t *b, uint32_t n)
{
        if (!n)
                return;
        b->refs -= (int)n - 1;
        lc_batch_unref(b);
}

/* Take the head off. Its batch stays until a newer record is `last`. */
static inline void pop(lc_tracker_t *t, fifo_t *f)
{
        lc_record_t *r = f->head;

        if (r->batch != f->run_batch) {
                release(f->run_batch, f->run);
                f->run_batch = r->batch;
                f->run = 0;
        }
        f->run++;
        f->last = r;
        f->head = r->u.src.next;
        t->harvested++;
}

void lc_tracker_ack(lc_tracker_t *t, lc_record_t *r)
{
        fifo_t *f;

        r->state = LC_REC_ACKED;
        if (!r->u.src.partition) {
                t->harvested++;
                lc_batch_unref(r->batch);
                return;
        }
        f = find(t, r->u.src.partition);
        if (f->head == r)
                pop(t, f); /* nearly always, and the record is in the cache now */
        if (!f->ready) {
                f->ready = true;
                f->ready_next = t->ready;
                t->ready = f;
        }
}

void lc_tracker_lost(lc_tracker_t *t, lc_record_t *r)
{
        (void)t;
        if (!r->u.src.partition)
                lc_batch_unref(r->batch);
}

static int set_pending(fifo_t *f, const lc_record_t *r, lc_err_t *err)
{
        lc_buf_t b = LC_BUF_INIT;

        if (r->u.src.offset.type == LC_NULL) {
                free(f->pending);
                f->pending = NULL;
                f->has_pending = true;
                return 0;
        }
        if (lc_record_offset_json(r, &b, err) || !lc_buf_ok(&b)) {
                lc_buf_free(&b);
                return lc_err_set(err, LC_DATA, 0, "The source offset of a record cannot be written as JSON");
        }
        free(f->pending);
        f->pending = lc_buf_take(&b, NULL);
        f->has_pending = true;
        return 0;
}

static int harvest_fifo(lc_tracker_t *t, fifo_t *f, lc_err_t *err)
{
        int rc = 0;

        while (f->head && f->head->state == LC_REC_ACKED)
                pop(t, f);
        if (f->last)
                rc = set_pending(f, f->last, err);
        release(f->run_batch, f->run);
        f->last = NULL;
        f->run_batch = NULL;
        f->run = 0;
        return rc;
}

int lc_tracker_harvest(lc_tracker_t *t, lc_err_t *err)
{
        int rc = 0;

        while (t->ready) {
                fifo_t *f = t->ready;
                t->ready = f->ready_next;
                f->ready = false;
                if (harvest_fifo(t, f, err))
                        rc = -1;
        }
        return rc;
}

uint64_t lc_tracker_take_count(lc_tracker_t *t)
{
        uint64_t n = t->harvested;

        t->harvested = 0;
        return n;
}

size_t lc_tracker_begin(lc_tracker_t *t, const lc_offset_entry_t **entries)
{
        lc_assert(!t->writing);
        t->writing = true;
        t->nentries = 0;
        for (fifo_t *f = t->fifos; f; f = f->hh.next) {
                if (!f->has_pending)
                        continue;
                if (t->nentries == t->cap) {
                        t->cap = t->cap ? 2 * t->cap : 4;
                        t->entries = lc_realloc(t->entries, t->cap * sizeof(*t->entries));
                }
                f->writing = f->pending;
                f->has_writing = true;
                f->pending = NULL;
                f->has_pending = false;
                t->entries[t->nentries++] = (lc_offset_entry_t){.partition = f->json, .offset = f->writing};
        }
        *entries = t->entries;
        return t->nentries;
}

static void remove_fifo(lc_tracker_t *t, fifo_t *f)
{
        for (uint32_t i = 0; i < f->ncached; i++)
                forget(f->cached[i]);
        HASH_DELETE(hh, t->fifos, f);
        free(f->json);
        free(f->pending);
        free(f->writing);
        free(f);
}

void lc_tracker_end(lc_tracker_t *t, bool ok)
{
        fifo_t *f, *next;

        if (!t->writing)
                return;
        t->writing = false;
        HASH_ITER(hh, t->fifos, f, next)
        {
                if (f->has_writing) {
                        if (!ok && !f->has_pending) {
                                f->pending = f->writing;
                                f->has_pending = true;
                        } else {
                                free(f->writing);
                        }
                        f->writing = NULL;
                        f->has_writing = false;
                }
                /* a connector may go through any number of partitions in its life */
                if (!f->head && !f->ready && !f->has_pending && HASH_COUNT(t->fifos) > KEEP_IDLE)
                        remove_fifo(t, f);
        }
}

void lc_tracker_free(lc_tracker_t *t)
{
        fifo_t *f, *next;

        if (!t)
                return;
        HASH_ITER(hh, t->fifos, f, next)
        {
                for (lc_record_t *r = f->head, *after; r; r = after) {
                        after = r->u.src.next;
                        if (r->state == LC_REC_SUBMITTED || r->state == LC_REC_ACKED)
                                lc_batch_unref(r->batch);
                }
                release(f->run_batch, f->run);
                remove_fifo(t, f);
        }
        free(t->entries);
        free(t);
}
