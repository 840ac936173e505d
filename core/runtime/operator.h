/*
 * operator.h - the error operator of the record path: retries, tolerance, reporters.
 *
 * A step (converter, transformation) is called directly; only when it failed its caller comes here, so a
 * record that goes well costs nothing. Algorithm, stage names and texts: errors.md 2 to 5.
 *
 * Threads:   the task's thread; `cancelled` may be set by any.
 * Ownership: reporters belong to the operator from lc_operator_add().
 * Tests:     spec/unit/operator_spec.lua
 */
#ifndef LC_RUNTIME_OPERATOR_H
#define LC_RUNTIME_OPERATOR_H
#include "base/props.h"
#include "data/record.h"

typedef enum {
        LC_STAGE_TRANSFORMATION,
        LC_STAGE_KEY_CONVERTER,
        LC_STAGE_VALUE_CONVERTER,
        LC_STAGE_HEADER_CONVERTER,
        LC_STAGE_KAFKA_PRODUCE,
        LC_STAGE_TASK_PUT
} lc_stage_t;
const char *lc_stage_name(lc_stage_t s); /* "VALUE_CONVERTER" */

typedef struct lc_failure { /* what a reporter is told */
        const char *connector;
        int task;
        lc_stage_t stage;
        const char *class_name;    /* of what was executed */
        const lc_record_t *record; /* or NULL */
        bool sink;                 /* record->u.snk is valid, else u.src */
        const lc_err_t *err;
} lc_failure_t;

typedef struct lc_reporter lc_reporter_t;
struct lc_reporter {
        void (*report)(lc_reporter_t *r, const lc_failure_t *f);
        void (*destroy)(lc_reporter_t *r);
        lc_reporter_t *next;
};
/* errors.log.enable: one ERROR line per failing operation. */
lc_reporter_t *lc_log_reporter_new(bool include_messages);

typedef enum { LC_WAITED, LC_WAIT_STOPPED, LC_WAIT_CANCELLED } lc_wait_t;

typedef struct lc_operator {
        const char *connector; /* borrowed */
        int task;
        bool sink;
        int64_t retry_timeout_ms; /* < 0: for ever */
        int64_t retry_delay_max_ms;
        bool tolerate_all;
        /* Sleep up to ms, less when the task is stopped or cancelled. */
        lc_wait_t (*wait)(void *arg, int64_t ms);
        void *wait_arg;
        lc_reporter_t *reporters;
        struct lc_held_failure **held; /* not reported yet, by record */
        size_t nheld;
        bool holding;
        unsigned seed;                                       /* of the random delays */
        uint64_t failures, errors, skipped, retries, logged; /* metrics, errors.md 8 */
        int64_t last_error_ms;                               /* wall clock; 0 none */
} lc_operator_t;

/* Reads errors.* of a resolved connector config and adds the log reporter when it is wanted. */
void lc_operator_init(lc_operator_t *op, const char *connector, int task, bool sink,
                      const lc_props_t *config);
void lc_operator_add(lc_operator_t *op, lc_reporter_t *r);
void lc_operator_close(lc_operator_t *op); /* destroys the reporters */

/* A batch goes through one step after the other, but people expect what failed in the order of its records, as Java
 * works: from hold on failures are kept; release tells the reporters of those up to record `last` of the batch and
 * forgets the others, which come again. */
void lc_operator_hold(lc_operator_t *op);
void lc_operator_release(lc_operator_t *op, const lc_record_t *last);

/* `*err` is the failure of the first attempt at `step` (NULL: cannot be repeated) on `record`.
 * 0: a later attempt succeeded; 1: tolerated, skip the record (both clear *err); -1: the task fails with
 * *err, now "Tolerance exceeded in error handler" over its cause. A task that is stopped between two attempts
 * gets -1 and the last failure as it is: nothing was reported, the record comes again. */
int lc_operator_failed(lc_operator_t *op, lc_stage_t stage, const char *class_name, lc_record_t *record,
                       int (*step)(void *arg, lc_record_t *record, lc_err_t *err), void *arg, lc_err_t *err);
/* A failure outside of execute(): KAFKA_PRODUCE, TASK_PUT. Reported; 1 tolerated, -1 with *err wrapped
 * when `wrap`. */
int lc_operator_report(lc_operator_t *op, lc_stage_t stage, const char *class_name, lc_record_t *record,
                       bool wrap, lc_err_t *err);

/* "{topic='t', partition=0, ...}" of a sink record, "SourceRecord{...} ConnectRecord{...}" of a source
 * record, as Java prints them. Appends. */
void lc_record_describe(const lc_record_t *r, bool sink, lc_buf_t *out);

#endif
