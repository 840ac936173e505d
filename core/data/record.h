/*
 * record.h - records and batches: what the record path carries from poll to the producer and from the
 * consumer to put.
 *
 * A batch is an array of records and the arena behind them. lua/connect/ffi.lua repeats these structs
 * (lc_ffi_abi() guards it): change both.
 * Threads:   the task's thread only, so nothing here is atomic.
 * Ownership: a batch is counted: its creator holds one reference, each record submitted to a producer
 *            one (dropped when it leaves the offset tracker), each Lua view one. At 0 on_free runs and
 *            everything goes.
 * Tests:     spec/unit/record_spec.lua
 */
#ifndef LC_DATA_RECORD_H
#define LC_DATA_RECORD_H
#include "data/schema.h"
#include "data/value.h"

typedef struct lc_slice { /* p NULL: null, len 0: empty */
        const char *p;
        size_t len;
} lc_slice_t;

/* A source partition, interned by whoever makes records. `json` is canonical: keys sorted, no blanks. */
typedef struct lc_source_partition {
        int refs;
        uint32_t len;
        char *json;
        void *tracker; /* the runtime's FIFO of this partition, or NULL; reset by its owner */
} lc_source_partition_t;
lc_source_partition_t *lc_source_partition_new(const char *json, size_t len);
void lc_source_partition_unref(lc_source_partition_t *p); /* NULL is fine */

typedef struct lc_header {
        const char *name; /* terminated, in the arena */
        const lc_schema_t *schema;
        lc_value_t value;
        lc_slice_t bytes; /* as consumed or converted */
} lc_header_t;

typedef struct lc_batch lc_batch_t;
typedef struct lc_record lc_record_t;

/* Where Kafka has put a record. */
typedef struct lc_delivery {
        int32_t partition;
        int64_t offset; /* -1: not known */
} lc_delivery_t;

enum { LC_REC_NEW = 0, LC_REC_DROPPED, LC_REC_SUBMITTED, LC_REC_ACKED };

struct lc_record {
        lc_batch_t *batch;
        const char *topic;      /* terminated; same pointer within runs of one topic */
        int32_t partition;      /* Kafka partition, -1: the partitioner decides */
        uint8_t state;          /* LC_REC_* */
        uint8_t timestamp_type; /* sink: 0 none, 1 CreateTime, 2 LogAppendTime */
        uint16_t nheaders;
        int64_t timestamp; /* ms; -1 none */
        lc_value_t key, value;
        const lc_schema_t *key_schema, *value_schema; /* borrowed: lc_batch_hold_schema() */
        lc_header_t *headers;
        lc_slice_t key_bytes, value_bytes; /* source: converted; sink: as consumed */
        union {
                struct {                                  /* source */
                        lc_source_partition_t *partition; /* NULL: no offsets (stdin) */
                        /* a MAP; or an INT64 n, short for {batch->offset_field: n}; or NULL */
                        lc_value_t offset;
                        lc_record_t *next; /* the tracker's FIFO */
                } src;
                struct { /* sink: where it came from, whatever transforms say */
                        const char *topic;
                        int64_t offset;
                        int32_t partition;
                } snk;
        } u;
};

struct lc_batch {
        int refs;
        uint32_t n, cap;
        lc_record_t *records;
        const char *offset_field; /* see src.offset; a literal or in the arena */
        lc_arena_t arena;
        void (*on_free)(void *arg); /* e.g. destroys the consumed messages; may be NULL */
        void *on_free_arg;
        const lc_schema_t **schemas; /* references dropped with the batch */
        uint32_t nschemas, schemas_cap;
        lc_source_partition_t **partitions; /* likewise */
        uint32_t npartitions, partitions_cap;
        lc_record_t *given; /* records[] as they were before transforms, or NULL: lc_batch_keep_given() */
        uint64_t number;    /* source: which of the task's */
};

/* A batch with room for `cap` records (grows by lc_batch_add). NULL when memory is out. */
lc_batch_t *lc_batch_new(uint32_t cap);
void lc_batch_ref(lc_batch_t *b);
void lc_batch_unref(lc_batch_t *b); /* NULL is fine */
/* Next record, zeroed but batch, partition -1 and timestamp -1. Growing moves records: take no pointers
 * to them before the batch is complete. NULL when memory is out. */
lc_record_t *lc_batch_add(lc_batch_t *b);
/* The batch keeps a reference of its own until it is freed. Cheap when asked again for the last one. */
int lc_batch_hold_schema(lc_batch_t *b, const lc_schema_t *s);
int lc_batch_hold_partition(lc_batch_t *b, lc_source_partition_t *p);
/* Remember the records as they are now: transforms never write into what a record points to. -1: no memory.
 */
int lc_batch_keep_given(lc_batch_t *b);
/* The record as it was given, itself if that was not kept. */
static inline const lc_record_t *lc_record_given(const lc_record_t *r)
{
        return r && r->batch && r->batch->given ? &r->batch->given[r - r->batch->records] : r;
}
/* The record's source offset as JSON text (fields as the value has them). */
int lc_record_offset_json(const lc_record_t *r, lc_buf_t *out, lc_err_t *err);

#endif
