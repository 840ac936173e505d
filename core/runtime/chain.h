/*
 * chain.h - the transform chain of a task: stages in order, each with its predicate (errors.md 2,
 * connector-config 1.5).
 *
 * Threads: the task's.   Tests: spec/unit/source_task_spec.lua
 */
#ifndef LC_RUNTIME_CHAIN_H
#define LC_RUNTIME_CHAIN_H
#include "runtime/operator.h"
#include "runtime/services.h"

typedef struct lc_stage_ops {
        /* Change *r in place or set *drop. */
        int (*apply)(void *impl, lc_record_t *r, bool *drop, lc_err_t *err);
        void (*destroy)(void *impl);
} lc_stage_ops_t;
typedef struct lc_chain_stage {
        const lc_stage_ops_t *ops;
        void *impl;
        char *class_name; /* what error reports name: org.apache.kafka.connect.transforms.Cast$Value */
} lc_chain_stage_t;
typedef struct lc_chain {
        lc_chain_stage_t *stages;
        size_t n;
        bool drop; /* of the record in hand */
} lc_chain_t;

/* The chain that `transforms` of a resolved config asks for. */
lc_chain_t *lc_chain_new(const lc_services_t *sv, const lc_props_t *config, lc_err_t *err);
void lc_chain_free(lc_chain_t *c);
/* All stages on one record through the operator. 0 go on, 1 dropped or skipped, -1 the task fails. */
int lc_chain_apply(lc_chain_t *c, lc_operator_t *op, lc_record_t *r, lc_err_t *err);

#endif
