/*
 * source_fence.c - what an exactly-once source task asks the herder before it starts (KIP-618): that the leader fences all
 * earlier producers of the connector, and that the task is still wanted. See source.h.
 *
 * Threads:   the task's; the herder answers through a ticket.
 * Source:    worker-tasks 4.   Tests: spec/unit/exactly_once_spec.lua, spec/kafka/exactly_once_cluster_spec.lua
 */
#include "base/clock.h"
#include "base/log.h"
#include "runtime/source.h"
#include "runtime/ticket.h"

enum {
        FENCE_MS = 120000, /* a round may take 90 s */
        FENCE_AGAIN_MIN_MS = 250,
        FENCE_AGAIN_MAX_MS = 5000
};

/* One question to the herder. 0, 1 stopped, -1. */
static int ask(lc_task_t *t,
               void (*question)(void *arg, const char *connector, int task, lc_ticket_t *ticket),
               lc_err_t *err)
{
        lc_ticket_t *ticket = lc_ticket_new();

        if (!lc_services_enter(t->sv)) {
                lc_ticket_answer(ticket, NULL);
                lc_ticket_wait(ticket, NULL, NULL, 0, NULL);
                return 1;
        }
        question(t->sv->arg, t->connector, t->id, ticket);
        lc_services_leave(t->sv);
        return lc_ticket_wait(ticket, lc_task_quits, t, 0, err);
}

/* The leader may be changing, the brokers may not answer for a while: that is no reason to fail. */
static int ask_again(lc_task_t *t, const char *what,
                     void (*question)(void *arg, const char *connector, int task, lc_ticket_t *ticket),
                     lc_err_t *err)
{
        int64_t end = lc_now_ms() + FENCE_MS;
        int wait = 0, rc;

        while ((rc = ask(t, question, err)) < 0 && err->kind == LC_RETRIABLE && lc_now_ms() < end) {
                wait = lc_backoff(wait, FENCE_AGAIN_MIN_MS, FENCE_AGAIN_MAX_MS);
                lc_log(wait == FENCE_AGAIN_MIN_MS ? LC_INFO : LC_WARN, "TASK",
                       "%s %s is tried again in %d ms: %s", t->label, what, wait, err->msg);
                lc_err_clear(err);
                lc_waker_wait(&t->waker, wait);
                lc_waker_clear(&t->waker);
                if (lc_task_stopping(t))
                        return 1;
        }
        return rc;
}

int lc_source_fence(lc_task_t *t, lc_err_t *err)
{
        if (!t->sv->fence)
                return lc_err_set_cls(
                        err, LC_FATAL, 0, "java.lang.UnsupportedOperationException",
                        "This worker is not able to communicate with the leader of the cluster, which is "
                        "required "
                        "for exactly-once source tasks. If running MirrorMaker 2 in dedicated mode, consider "
                        "enabling inter-worker communication via the 'dedicated.mode.enable.internal.rest' "
                        "property.");
        return ask_again(t, "Zombie fencing", t->sv->fence, err);
}

int lc_source_verify(lc_task_t *t, lc_err_t *err)
{
        return t->sv->verify ? ask_again(t, "The check that the task is still wanted", t->sv->verify, err)
                             : 0;
}
