/*
 * herder.c - the herder's thread: one queue of events, the list of requests that wait for their turn, the
 * stages that time-out texts and /health tell. What to do is in the mode (distributed.c, standalone.c).
 *
 * Threads:   T and R are made and joined here; everybody else only pushes.
 * Locks:     h->lock, a leaf but for the queues' own mutex.
 * Ownership: lc_herder_stop() frees; an event whose callback never comes keeps the memory (internal.h).
 * Tests:     spec/unit/herder_spec.lua
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "herder/internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STALLED_MS = 5000 }; /* how long requests wait for a rebalance */

/* Stages. */

void lc_stage(lc_herder_t *h, const char *fmt, ...)
{
        char text[sizeof(h->stage)];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        pthread_mutex_lock(&h->lock);
        if (h->stage_ended || strcmp(text, h->stage) != 0) { /* else it goes on */
                memcpy(h->stage, text, sizeof(text));
                h->stage_began = lc_wall_ms();
                h->stage_ended = 0;
        }
        pthread_mutex_unlock(&h->lock);
}

void lc_stage_done(lc_herder_t *h)
{
        pthread_mutex_lock(&h->lock);
        if (!h->stage_ended)
                h->stage_ended = lc_wall_ms();
        pthread_mutex_unlock(&h->lock);
}

void lc_herder_stage(const lc_herder_t *ch, lc_buf_t *out)
{
        lc_herder_t *h = (lc_herder_t *)ch;
        char stage[sizeof(h->stage)], began[32], ended[32];
        int64_t end;

        pthread_mutex_lock(&h->lock);
        memcpy(stage, h->stage, sizeof(stage));
        lc_iso8601(h->stage_began, began);
        end = h->stage_ended;
        lc_iso8601(end, ended);
        pthread_mutex_unlock(&h->lock);
        if (!stage[0])
                return;
        if (end)
                lc_buf_printf(out,
                              "The last operation the worker completed was %s, which began at %s and "
                              "completed at %s.",
                              stage, began, ended);
        else
                lc_buf_printf(out, "The worker is currently %s, which began at %s.", stage, began);
}

/* Events. */

lc_hev_t *lc_hev_new(lc_herder_t *h, lc_hev_kind_t kind, const char *name)
{
        lc_hev_t *ev = lc_calloc(1, sizeof(*ev));

        ev->kind = kind;
        ev->h = h;
        ev->name = lc_strdup(name);
        ev->target = LC_TARGET_NONE;
        return ev;
}

void lc_hev_set_err(lc_hev_t *ev, const lc_err_t *err)
{
        if (!err)
                return;
        ev->err = lc_malloc(sizeof(*ev->err));
        *ev->err = *err;
}

void lc_hev_free(lc_hev_t *ev)
{
        if (!ev)
                return;
        free(ev->name);
        lc_props_free(ev->config);
        lc_config_infos_free(ev->infos);
        for (int i = 0; ev->tasks && i < ev->ntasks; i++)
                lc_props_free(ev->tasks[i]);
        free(ev->tasks);
        lc_assignment_free(ev->assignment);
        free(ev->level);
        free(ev->url);
        lc_buf_free(&ev->answer);
        if (ev->ticket) {
                lc_err_t err;

                lc_err_clear(&err);
                lc_err_set(&err, LC_FATAL, 0, LC_SHUTTING_DOWN);
                lc_ticket_answer(ev->ticket, &err);
        }
        free(ev->err);
        free(ev);
}

/* The herder will not serve it any more. */
static void dismiss(lc_hev_t *ev)
{
        if (ev->req)
                lc_request_fail(ev->req, 500, LC_SHUTTING_DOWN);
        ev->req = NULL;
        lc_hev_free(ev);
}

void lc_herder_push(lc_herder_t *h, lc_hev_t *ev)
{
        bool closed;

        pthread_mutex_lock(&h->lock);
        closed = h->closed;
        if (!closed)
                lc_queue_push(h->events, ev);
        pthread_mutex_unlock(&h->lock);
        if (closed)
                dismiss(ev);
}

void lc_herder_unref(lc_herder_t *h)
{
        if (__atomic_sub_fetch(&h->refs, 1, __ATOMIC_ACQ_REL) == 0)
                lc_herder_base_free(h);
}

void lc_hev_out(lc_hev_t *ev)
{
        lc_herder_t *h = ev->h;

        __atomic_add_fetch(&h->refs, 1, __ATOMIC_RELAXED);
        pthread_mutex_lock(&h->lock);
        ev->is_out = true;
        ev->out_prev = NULL;
        ev->out_next = h->out;
        if (h->out)
                h->out->out_prev = ev;
        h->out = ev;
        pthread_mutex_unlock(&h->lock);
}

bool lc_hev_back(lc_hev_t *ev)
{
        lc_herder_t *h = ev->h;
        bool known;

        pthread_mutex_lock(&h->lock);
        known = ev->is_out;
        if (known) {
                if (ev->out_prev)
                        ev->out_prev->out_next = ev->out_next;
                else
                        h->out = ev->out_next;
                if (ev->out_next)
                        ev->out_next->out_prev = ev->out_prev;
                ev->is_out = false;
        }
        pthread_mutex_unlock(&h->lock);
        if (!known) {
                lc_hev_free(ev);
                lc_herder_unref(h);
        }
        return known;
}

bool lc_hev_wanted(lc_hev_t *ev)
{
        bool yes;

        pthread_mutex_lock(&ev->h->lock);
        yes = ev->is_out && !ev->h->closed;
        pthread_mutex_unlock(&ev->h->lock);
        return yes;
}

void lc_hev_back_push(lc_hev_t *ev)
{
        lc_herder_t *h = ev->h;

        if (!lc_hev_back(ev))
                return;
        lc_herder_push(h, ev);
        lc_herder_unref(h);
}

/* Requests. */

void lc_pending_add(lc_herder_t *h, lc_hev_t *ev)
{
        ev->next = NULL;
        *h->pending_tail = ev;
        h->pending_tail = &ev->next;
}

lc_hev_t *lc_pending_take(lc_herder_t *h)
{
        lc_hev_t *ev = h->pending;

        if (!ev)
                return NULL;
        h->pending = ev->next;
        if (!h->pending)
                h->pending_tail = &h->pending;
        ev->next = NULL;
        return ev;
}

static void time_out(lc_herder_t *h, lc_request_t *req)
{
        lc_buf_t text = LC_BUF_SURE;

        lc_herder_stage(h, &text);
        lc_request_fail(req, 500, "Request timed out%s%s", text.len ? ". " : "", text.len ? text.p : "");
        lc_buf_free(&text);
}

/* Who asked has been told that it timed out: do not do it behind his back later. Nor does anybody wait long
 * for a rebalance. Returns when to look again, INT64_MAX never. */
static int64_t expire(lc_herder_t *h)
{
        int64_t now = lc_now_ms(), next = INT64_MAX, end;
        bool stalled = h->pending && h->mode->stalled && h->mode->stalled(h);
        lc_hev_t **at = &h->pending, *ev;

        while ((ev = *at)) {
                lc_request_t *req = ev->req;
                end = req && req->deadline_ms ? req->deadline_ms : INT64_MAX;
                if (req && stalled && req->op != LC_REQ_HEALTH) {
                        if (!ev->stalled_at)
                                ev->stalled_at = now;
                        if (ev->stalled_at + STALLED_MS < end)
                                end = ev->stalled_at + STALLED_MS;
                }
                if (now < end) {
                        next = end < next ? end : next;
                        at = &ev->next;
                        continue;
                }
                *at = ev->next;
                if (req->deadline_ms && now >= req->deadline_ms)
                        time_out(h, req);
                else
                        lc_request_stale(req);
                ev->req = NULL;
                lc_hev_free(ev);
        }
        h->pending_tail = &h->pending;
        while (*h->pending_tail)
                h->pending_tail = &(*h->pending_tail)->next;
        return next;
}

static void arrive(lc_herder_t *h, lc_hev_t *ev)
{
        if (ev->kind != LC_HEV_REQUEST) {
                h->mode->event(h, ev);
                return;
        }
        if (h->mode->admit && !h->mode->admit(h, ev->req)) {
                ev->req = NULL;
                lc_hev_free(ev);
                return;
        }
        switch (ev->req->op) {
        case LC_REQ_CREATE:
        case LC_REQ_PUT_CONFIG:
                if (lc_check_name(ev->req) == 0)
                        lc_validation_begin(h, ev->req);
                break;
        case LC_REQ_VALIDATE:
                lc_validation_begin(h, ev->req);
                break;
        case LC_REQ_OFFSETS:
                lc_offsets_begin(h, ev->req);
                break;
        case LC_REQ_RELOAD:
                lc_reload_begin(h, ev->req);
                break;
        case LC_REQ_PAUSE:
        case LC_REQ_RESUME:
        case LC_REQ_LOGGER: /* any worker at any time */
                h->mode->request(h, ev);
                return;
        default:
                lc_pending_add(h, ev);
                return;
        }
        ev->req = NULL;
        lc_hev_free(ev);
}

void lc_herder_drain(lc_herder_t *h)
{
        lc_hev_t *ev;

        while (!lc_stopping(h) && (ev = lc_queue_pop(h->events, 0)))
                arrive(h, ev);
}

void lc_herder_submit(lc_herder_t *h, lc_request_t *req)
{
        lc_hev_t *ev;
        bool closed;

        if (!lc_reads_op(req->op)) {
                ev = lc_hev_new(h, LC_HEV_REQUEST, NULL);
                ev->req = req;
                lc_herder_push(h, ev);
                return;
        }
        pthread_mutex_lock(&h->lock);
        closed = h->closed;
        if (!closed)
                lc_queue_push(h->reads, req);
        pthread_mutex_unlock(&h->lock);
        if (closed)
                lc_request_fail(req, 500, LC_SHUTTING_DOWN);
}

typedef struct call {
        pthread_mutex_t lock;
        pthread_cond_t answered;
        bool done;
} call_t;

static void call_done(lc_request_t *req)
{
        call_t *c = req->arg;

        pthread_mutex_lock(&c->lock);
        c->done = true;
        pthread_cond_signal(&c->answered);
        pthread_mutex_unlock(&c->lock);
}

void lc_herder_call(lc_herder_t *h, lc_request_t *req)
{
        call_t c = {.lock = PTHREAD_MUTEX_INITIALIZER, .answered = PTHREAD_COND_INITIALIZER};

        req->done = call_done;
        req->arg = &c;
        lc_herder_submit(h, req);
        pthread_mutex_lock(&c.lock);
        while (!c.done)
                pthread_cond_wait(&c.answered, &c.lock);
        pthread_mutex_unlock(&c.lock);
        pthread_cond_destroy(&c.answered);
        pthread_mutex_destroy(&c.lock);
}

/* R. */
static void *reader_main(void *arg)
{
        lc_herder_t *h = arg;

        for (;;) {
                lc_request_t *req = lc_queue_pop(h->reads, -1);
                bool closed;

                pthread_mutex_lock(&h->lock);
                closed = h->closed;
                pthread_mutex_unlock(&h->lock);
                if (closed) {
                        if (req)
                                lc_request_fail(req, 500, LC_SHUTTING_DOWN);
                        return NULL;
                }
                if (req)
                        lc_reads_serve(h, req);
        }
}

/* Config. */

void lc_herder_set_config(lc_herder_t *h, lc_config_snapshot_t *s)
{
        lc_config_snapshot_t *old;

        pthread_mutex_lock(&h->config_lock);
        old = h->config;
        h->config = s;
        pthread_mutex_unlock(&h->config_lock);
        if (old)
                lc_config_snapshot_unref(old);
}

lc_config_snapshot_t *lc_herder_config_ref(lc_herder_t *h)
{
        lc_config_snapshot_t *s;

        pthread_mutex_lock(&h->config_lock);
        s = h->config ? lc_config_snapshot_ref(h->config) : NULL;
        pthread_mutex_unlock(&h->config_lock);
        return s;
}

/* T. */

static int start_thread(pthread_t *t, void *(*fn)(void *), void *arg, lc_err_t *err)
{
        int rc = lc_thread_start(t, 0, fn, arg);

        return rc ? lc_err_set(err, LC_FATAL, rc, "Cannot start a thread: %s", strerror(rc)) : 0;
}

static void be_ready(lc_herder_t *h)
{
        if (!h->ticked || h->ready)
                return;
        __atomic_store_n(&h->ready, 1, __ATOMIC_RELEASE);
        if (h->deps.on_ready)
                h->deps.on_ready(h->deps.arg);
}

/* Nothing is accepted any more; everything that waits is answered. */
static void close_queues(lc_herder_t *h)
{
        lc_hev_t *ev, *out;
        lc_request_t *req;

        pthread_mutex_lock(&h->lock);
        h->closed = true;
        pthread_mutex_unlock(&h->lock);
        lc_queue_wake(h->reads);
        if (h->reader_started)
                pthread_join(h->reader, NULL);
        h->reader_started = false;
        while ((req = lc_queue_pop(h->reads, 0)))
                lc_request_fail(req, 500, LC_SHUTTING_DOWN);
        while ((ev = lc_pending_take(h)))
                dismiss(ev);
        while ((ev = lc_queue_pop(h->events, 0)))
                dismiss(ev);
        for (;;) {
                pthread_mutex_lock(&h->lock);
                out = h->out;
                req = NULL;
                if (out) {
                        h->out = out->out_next;
                        if (h->out)
                                h->out->out_prev = NULL;
                        req = out->req;
                        out->req = NULL;
                        out->is_out = false;
                }
                pthread_mutex_unlock(&h->lock);
                if (!out)
                        break;
                if (req)
                        lc_request_fail(req, 500, LC_SHUTTING_DOWN);
        }
        lc_hconn_free_all(h);
        lc_reload_close(h);
}

static void *herder_main(void *arg)
{
        lc_herder_t *h = arg;
        lc_err_t err;
        bool begun;

        lc_err_clear(&err);
        lc_log(LC_INFO, "HERDER", "Herder starting");
        lc_stage(h, "initializing and reading to the end of internal topics");
        begun = h->mode->begin(h, &err) == 0;
        lc_stage_done(h);
        if (begun && start_thread(&h->reader, reader_main, h, &err) == 0) {
                h->reader_started = true;
                lc_log(LC_INFO, "HERDER", "Herder started");
        } else {
                begun = false;
        }
        while (begun && !lc_stopping(h) && !h->fatal) {
                int ms = h->mode->tick(h);
                int64_t next;
                lc_hev_t *ev;

                be_ready(h);
                if (lc_stopping(h) || h->fatal)
                        break;
                next = expire(h);
                if (next != INT64_MAX && next - lc_now_ms() < ms)
                        ms = next > lc_now_ms() ? (int)(next - lc_now_ms()) : 0;
                ev = lc_queue_pop(h->events, ms);
                if (ev)
                        arrive(h, ev);
                lc_herder_drain(h);
                expire(h); /* before the tick would serve them */
        }
        if (h->fatal)
                err = *h->fatal;
        if ((!begun && !lc_stopping(h)) || h->fatal) {
                if (h->deps.on_fatal)
                        h->deps.on_fatal(h->deps.arg, &err);
                else
                        lc_log(LC_ERROR, "HERDER", "Uncaught exception in herder work thread: %s", err.msg);
        }
        lc_log(LC_INFO, "HERDER", "Herder stopping");
        lc_stage(h, "shutting down");
        h->mode->end(h);
        close_queues(h);
        return NULL;
}

lc_herder_t *lc_herder_base_init(lc_herder_t *h, const lc_herder_mode_t *mode, const lc_herder_deps_t *deps)
{
        h->mode = mode;
        h->deps = *deps;
        lc_plugins_ref(h->deps.plugins);
        h->refs = 1;
        h->events = lc_queue_new();
        h->reads = lc_queue_new();
        pthread_mutex_init(&h->lock, NULL);
        pthread_mutex_init(&h->config_lock, NULL);
        h->pending_tail = &h->pending;
        lc_stage(h, "awaiting startup");
        return h;
}

void lc_herder_base_free(lc_herder_t *h)
{
        if (h->config)
                lc_config_snapshot_unref(h->config);
        lc_queue_free(h->events);
        lc_queue_free(h->reads);
        pthread_mutex_destroy(&h->lock);
        pthread_mutex_destroy(&h->config_lock);
        lc_plugins_unref(h->deps.plugins);
        free(h->cluster_id);
        free(h->fatal);
        free(h);
}

int lc_herder_start(lc_herder_t *h, const volatile int *stop, lc_err_t *err)
{
        if (h->mode->open(h, stop, err) < 0)
                return -1;
        if (start_thread(&h->thread, herder_main, h, err) < 0)
                return -1;
        h->thread_started = true;
        return 0;
}

void lc_herder_stop(lc_herder_t *h)
{
        if (!h)
                return;
        __atomic_store_n(&h->stop, 1, __ATOMIC_RELEASE);
        lc_queue_wake(h->events);
        if (h->thread_started)
                pthread_join(h->thread, NULL);
        else
                close_queues(h);
        if (h->worker)
                lc_worker_free(h->worker);
        h->worker = NULL;
        h->mode->close(h);
        lc_log(LC_INFO, "HERDER", "Herder stopped");
        lc_herder_unref(h);
}

const char *lc_herder_cluster_id(const lc_herder_t *h)
{
        return h->cluster_id;
}

bool lc_herder_ready(const lc_herder_t *h)
{
        return __atomic_load_n(&h->ready, __ATOMIC_ACQUIRE);
}

const lc_plugins_t *lc_herder_plugins(const lc_herder_t *h)
{
        return h->deps.plugins;
}

const lc_worker_config_t *lc_herder_config(const lc_herder_t *h)
{
        return h->deps.config;
}
