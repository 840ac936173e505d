/* chain.c - see chain.h. The task's thread only. */
#include "runtime/chain.h"
#include "base/alloc.h"
#include <stdio.h>
#include <stdlib.h>

lc_chain_t *lc_chain_new(const lc_plugins_t *plugins, const lc_props_t *config, bool source,
                         const lc_script_host_t *host, lc_err_t *err)
{
        lc_chain_t *c = lc_calloc(1, sizeof(*c));

        c->host = (lc_script_host_t){.connector = host->connector,
                                     .task = host->task,
                                     .stop = host->stop,
                                     .stopping = host->stopping};
        c->script = lc_script_chain_new(plugins, config, source, &c->host, err);
        if (!c->script) { /* Java: new ConnectException(cause), whose text is the cause's class and text */
                const char *cls = err->cls ? err->cls : LC_CLS_CONNECT;
                char text[sizeof(err->msg)];
                snprintf(text, sizeof(text), "%.*s", (int)sizeof(text) - 1, err->msg);
                lc_err_wrap(err, LC_CLS_CONNECT, "%s: %s", cls, text);
                free(c);
                return NULL;
        }
        c->n = lc_script_chain_stages(c->script);
        return c;
}

void lc_chain_free(lc_chain_t *c)
{
        if (!c)
                return;
        lc_script_chain_free(c->script);
        free(c);
}

/* One record, from the stage that failed on: what the operator tries again. */
typedef struct attempt {
        lc_chain_t *chain;
        size_t stage;
        bool later; /* a later stage of the record failed: that is its own operation */
        uint32_t at;
        size_t failed;
        lc_err_t err;
} attempt_t;

static int again(void *arg, lc_record_t *r, lc_err_t *err)
{
        attempt_t *a = arg;
        uint32_t i = (uint32_t)(r - r->batch->records);

        a->later = false;
        lc_err_clear(&a->err);
        if (!lc_script_chain_run(a->chain->script, r->batch, i, a->stage, i + 1, &a->at, &a->failed, &a->err))
                return 0;
        if (a->failed > a->stage) {
                a->later = true;
                return 0;
        }
        *err = a->err;
        return -1;
}

/* records[i] failed in `stage` with *err. 0: it went through after all, or is dropped. */
static int failed(lc_chain_t *c, lc_operator_t *op, lc_record_t *r, size_t stage, lc_err_t *err)
{
        attempt_t a = {.chain = c, .stage = stage};

        for (;;) {
                int rc = lc_operator_failed(op, LC_STAGE_TRANSFORMATION,
                                            lc_script_chain_class(c->script, a.stage), r, again, &a, err);
                if (rc < 0)
                        return -1;
                if (rc > 0) {
                        r->state = LC_REC_DROPPED;
                        return 0;
                }
                if (!a.later)
                        return 0;
                *err = a.err;
                a.stage = a.failed;
                a.later = false;
        }
}

int lc_chain_run(lc_chain_t *c, lc_operator_t *op, lc_batch_t *b, uint32_t *n, lc_err_t *err)
{
        uint32_t from = 0, at;
        size_t stage;

        while (from < *n && lc_script_chain_run(c->script, b, from, 0, *n, &at, &stage, err)) {
                if (failed(c, op, &b->records[at], stage, err)) {
                        *n = at;
                        return -1;
                }
                from = at + 1;
        }
        return 0;
}
