/* operator.c - see operator.h. The task's thread only. */
#include "runtime/operator.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/connector_config.h"
#include <stdlib.h>
#include <string.h>

static const char *const stage_names[] = {"TRANSFORMATION",   "KEY_CONVERTER", "VALUE_CONVERTER",
                                          "HEADER_CONVERTER", "KAFKA_PRODUCE", "TASK_PUT"};

const char *lc_stage_name(lc_stage_t s)
{
        return stage_names[s];
}

void lc_operator_init(lc_operator_t *op, const char *connector, int task, bool sink, const lc_props_t *config)
{
        char *tolerance = lc_connector_config_get(config, "errors.tolerance");

        memset(op, 0, sizeof(*op));
        op->connector = connector;
        op->task = task;
        op->sink = sink;
        op->seed = (unsigned)lc_now_ms() ^ (unsigned)task;
        op->retry_timeout_ms = lc_connector_config_int(config, "errors.retry.timeout");
        op->retry_delay_max_ms = lc_connector_config_int(config, "errors.retry.delay.max.ms");
        op->tolerate_all = tolerance && !strcmp(tolerance, "all");
        free(tolerance);
        if (lc_connector_config_bool(config, "errors.log.enable"))
                lc_operator_add(op, lc_log_reporter_new(
                                            lc_connector_config_bool(config, "errors.log.include.messages")));
}

void lc_operator_add(lc_operator_t *op, lc_reporter_t *r)
{
        lc_reporter_t **at = &op->reporters;

        while (*at)
                at = &(*at)->next;
        r->next = NULL;
        *at = r;
}

void lc_operator_close(lc_operator_t *op)
{
        free(op->held); /* empty: released before the end of a batch */
        while (op->reporters) {
                lc_reporter_t *r = op->reporters;
                op->reporters = r->next;
                r->destroy(r);
        }
}

typedef struct lc_held_failure {
        lc_stage_t stage;
        const char *class_name;
        const lc_record_t *record;
        lc_err_t err;
} held_t;

static void tell_reporters(lc_operator_t *op, lc_stage_t stage, const char *class_name,
                           const lc_record_t *record, const lc_err_t *err)
{
        lc_failure_t f = {.connector = op->connector,
                          .task = op->task,
                          .stage = stage,
                          .class_name = class_name,
                          .record = lc_record_given(record),
                          .sink = op->sink,
                          .err = err};

        op->errors++;
        for (lc_reporter_t *r = op->reporters; r; r = r->next)
                r->report(r, &f);
}

void lc_operator_hold(lc_operator_t *op)
{
        op->holding = op->reporters != NULL;
}

/* Steps go over the records in order, so what belongs in front is seldom far. */
static void hold_failure(lc_operator_t *op, const held_t *failure)
{
        held_t *h = lc_malloc(sizeof(*h));
        size_t i = op->nheld;

        *h = *failure;
        if ((op->nheld & (op->nheld - 1)) == 0) /* the capacity is the next power of two */
                op->held = lc_realloc(op->held, (op->nheld ? op->nheld * 2 : 1) * sizeof(*op->held));
        for (; i > 0 && op->held[i - 1]->record > h->record; i--)
                op->held[i] = op->held[i - 1];
        op->held[i] = h;
        op->nheld++;
}

void lc_operator_release(lc_operator_t *op, const lc_record_t *last)
{
        op->holding = false;
        for (size_t i = 0; i < op->nheld; i++) {
                held_t *h = op->held[i];

                if (h->record <= last)
                        tell_reporters(op, h->stage, h->class_name, h->record, &h->err);
                free(h);
        }
        op->nheld = 0;
}

static void tell(lc_operator_t *op, lc_stage_t stage, const char *class_name, const lc_record_t *record,
                 const lc_err_t *err)
{
        if (op->holding)
                hold_failure(op, &(held_t){stage, class_name, record, *err});
        else
                tell_reporters(op, stage, class_name, record, err);
}

/* Delay before attempt n + 1: 300 ms doubling; above the cap a random part of the cap. */
static int64_t backoff(lc_operator_t *op, int attempt, int64_t left)
{
        int64_t delay = attempt > 30 ? INT64_MAX : (int64_t)300 << (attempt - 1);
        int64_t cap = op->retry_delay_max_ms;

        if (delay > cap)
                delay = cap > 0 ? (int64_t)((double)rand_r(&op->seed) / RAND_MAX * (double)cap) : 0;
        return left >= 0 && delay > left ? left : delay;
}

int lc_operator_failed(lc_operator_t *op, lc_stage_t stage, const char *class_name, lc_record_t *record,
                       int (*step)(void *arg, lc_record_t *record, lc_err_t *err), void *arg, lc_err_t *err)
{
        int64_t timeout = op->retry_timeout_ms;
        int64_t deadline = timeout >= 0 ? lc_now_ms() + timeout : -1;

        for (int attempt = 1; err->kind == LC_RETRIABLE && step; attempt++) {
                int64_t now = lc_now_ms(), left = deadline < 0 ? -1 : deadline - now;

                op->failures++;
                if (deadline >= 0 && left <= 0)
                        break;
                lc_wait_t waited = op->wait ? op->wait(op->wait_arg, backoff(op, attempt, left)) : LC_WAITED;

                if (waited == LC_WAIT_STOPPED)
                        return -1;
                if (waited == LC_WAIT_CANCELLED) {
                        /* cancelled: nobody waits for this record any more */
                        op->last_error_ms = lc_wall_ms();
                        tell(op, stage, class_name, record, err);
                        lc_err_clear(err);
                        return 1;
                }
                op->retries++;
                lc_err_clear(err);
                if (!step(arg, record, err))
                        return 0;
        }
        return lc_operator_report(op, stage, class_name, record, true, err);
}

int lc_operator_report(lc_operator_t *op, lc_stage_t stage, const char *class_name, lc_record_t *record,
                       bool wrap, lc_err_t *err)
{
        bool tolerable = err->kind == LC_DATA || err->kind == LC_RETRIABLE;

        op->failures++;
        op->last_error_ms = lc_wall_ms();
        tell(op, stage, class_name, record, err);
        if (tolerable && op->tolerate_all) {
                op->skipped++;
                lc_err_clear(err);
                return 1;
        }
        if (wrap) {
                lc_err_wrap(err, LC_CLS_CONNECT,
                            tolerable ? "Tolerance exceeded in error handler"
                                      : "Unhandled exception in error handler");
                if (err->kind != LC_FENCED)
                        err->kind = LC_FATAL;
        }
        return -1;
}
