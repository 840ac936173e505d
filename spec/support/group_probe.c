/*
 * group_probe.c - the herder's side of lc_group for specs: callbacks come on the membership thread, where no
 * Lua may run, so they are queued here. Compiled by group_probe.lua, never part of the program.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/queue.h"
#include "herder/assignor.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct probe_event {
        const char *kind;
        int protocol, nmembers;
        int32_t generation;
        int64_t at_ms;
        char text[512];
        lc_assignment_t *assignment;
} probe_event_t;

typedef struct probe {
        lc_queue_t *queue;
        lc_assignor_t *assignor;
        lc_group_t *group;
        pthread_mutex_t lock;
        lc_assignor_work_t work[64];
        size_t nwork;
        int64_t config_offset;
} probe_t;

static probe_event_t *event(const char *kind)
{
        probe_event_t *e = lc_calloc(1, sizeof(*e));
        e->kind = kind;
        e->at_ms = lc_now_ms();
        return e;
}

static int assign(void *arg, int16_t protocol, int32_t generation, const lc_group_member_t *members, size_t n,
                  lc_assignment_t *out)
{
        probe_t *p = arg;
        probe_event_t *e = event("assign");
        int rc;

        e->protocol = protocol;
        e->generation = generation;
        e->nmembers = (int)n;
        pthread_mutex_lock(&p->lock);
        rc = lc_assignor_assign(p->assignor,
                                &(lc_assignor_round_t){.protocol = protocol,
                                                       .generation = generation,
                                                       .last_generation = lc_group_last_generation(p->group),
                                                       .config_offset = p->config_offset,
                                                       .work = p->work,
                                                       .nwork = p->nwork,
                                                       .members = members,
                                                       .nmembers = n,
                                                       .now_ms = lc_now_ms()},
                                out);
        pthread_mutex_unlock(&p->lock);
        lc_queue_push(p->queue, e);
        return rc;
}

static void assigned(void *arg, lc_assignment_t *a)
{
        probe_event_t *e = event("assigned");
        e->protocol = a->protocol;
        e->generation = a->generation;
        e->assignment = a;
        lc_queue_push(((probe_t *)arg)->queue, e);
}

static void preparing(void *arg, int16_t protocol)
{
        probe_event_t *e = event("preparing");
        e->protocol = protocol;
        lc_queue_push(((probe_t *)arg)->queue, e);
}

static void lost(void *arg)
{
        lc_queue_push(((probe_t *)arg)->queue, event("lost"));
}

static void error(void *arg, const lc_err_t *err)
{
        probe_event_t *e = event("error");
        snprintf(e->text, sizeof(e->text), "%s", err->msg);
        lc_queue_push(((probe_t *)arg)->queue, e);
}

static void stage(void *arg, lc_buf_t *out)
{
        (void)arg;
        lc_buf_adds(out, "sleeping in a spec");
}

probe_t *probe_new(int max_delay_ms)
{
        probe_t *p = lc_calloc(1, sizeof(*p));
        p->queue = lc_queue_new();
        p->assignor = lc_assignor_new(max_delay_ms);
        p->config_offset = -1;
        pthread_mutex_init(&p->lock, NULL);
        return p;
}

void probe_start(probe_t *p, const lc_worker_config_t *wc, const char *url, lc_err_t *err)
{
        static const lc_group_events_t events = {assign, assigned, preparing, lost, error, stage};

        p->group = lc_group_new(wc, url, &events, p, err);
}

/* The configured work and the offset it was read at. */
void probe_config(probe_t *p, const char *connector, int ntasks, int64_t offset)
{
        size_t i;

        pthread_mutex_lock(&p->lock);
        for (i = 0; i < p->nwork && strcmp(p->work[i].connector, connector); i++)
                ;
        if (i == p->nwork)
                p->work[p->nwork++].connector = lc_strdup(connector);
        p->work[i].ntasks = ntasks;
        p->config_offset = offset;
        pthread_mutex_unlock(&p->lock);
}

probe_event_t *probe_next(probe_t *p, int ms)
{
        return lc_queue_pop(p->queue, ms);
}

void probe_event_free(probe_event_t *e)
{
        lc_assignment_free(e->assignment);
        free(e);
}

void probe_free(probe_t *p)
{
        probe_event_t *e;

        lc_group_stop(p->group);
        while ((e = lc_queue_pop(p->queue, 0)))
                probe_event_free(e);
        lc_queue_free(p->queue);
        lc_assignor_free(p->assignor);
        for (size_t i = 0; i < p->nwork; i++)
                free((char *)p->work[i].connector);
        free(p);
}
