/*
 * chain.h - the transform chain of a task: stages in order, each with its predicate, through the error
 * operator (errors.md 2, connector-config 1.5). The stages themselves are script/'s.
 *
 * Threads: the task's.   Tests: spec/unit/source_task_spec.lua, spec/unit/sink_task_spec.lua
 */
#ifndef LC_RUNTIME_CHAIN_H
#define LC_RUNTIME_CHAIN_H
#include "runtime/operator.h"
#include "config/plugin.h"
#include "script/script.h"

typedef struct lc_chain {
        lc_script_chain_t *script;
        lc_script_host_t host;
        size_t n; /* stages */
} lc_chain_t;

/* The chain that `transforms` of a resolved config asks for. host: the task's, of which stages get names and
 * the ends of waits. */
lc_chain_t *lc_chain_new(const lc_plugins_t *plugins, const lc_props_t *config, bool source,
                         const lc_script_host_t *host, lc_err_t *err);
void lc_chain_free(lc_chain_t *c); /* NULL is fine */
/* All stages over records[0..*n) through the operator: what is filtered out or skipped becomes
 * LC_REC_DROPPED. 0; -1: the task fails, those before records[*n] went through. */
int lc_chain_run(lc_chain_t *c, lc_operator_t *op, lc_batch_t *b, uint32_t *n, lc_err_t *err);

#endif
