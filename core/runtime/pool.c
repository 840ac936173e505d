/* pool.c - see pool.h. Lock: pool->lock, a leaf. */
#include "runtime/pool.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "base/thread.h"
#include "script/script.h"
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { IDLE_MS = 30000, STACK = 4 * 1024 * 1024 }; /* as a task's (task.c) */

typedef struct job {
        struct job *next;
        lc_job_fn *fn;
        void *arg;
} job_t;

struct lc_strand {
        lc_pool_t *pool;
        lc_strand_t *next; /* in ready, or among all that wait */
        job_t *head, **tail;
        int64_t due; /* a waiting job's time */
        int64_t started;
        bool queued, waiting, running, late, kicked, closed; /* closed: freed with its last job */
        lc_strand_t *run_next;                               /* among the running */
};

struct lc_pool {
        pthread_mutex_t lock;
        pthread_cond_t work, ended;
        lc_strand_t *ready, **ready_tail;
        lc_strand_t *waiting, *running;
        int size, late_ms, cap;
        int threads, idle, active; /* active: running and not late */
        bool closing;
};

static void *pool_thread(void *arg);

lc_pool_t *lc_pool_new(int size, int late_ms, int cap)
{
        lc_pool_t *p = lc_calloc(1, sizeof(*p));

        pthread_mutex_init(&p->lock, NULL);
        lc_cond_init(&p->work);
        lc_cond_init(&p->ended);
        p->ready_tail = &p->ready;
        p->size = size;
        p->late_ms = late_ms;
        p->cap = cap;
        return p;
}

/* With the lock held. */
static void spawn(lc_pool_t *p)
{
        int rc;

        if (p->threads >= p->cap)
                return;
        rc = lc_thread_start(NULL, STACK, pool_thread, p);
        if (rc) {
                lc_log(LC_ERROR, "POOL", "No thread for connector code: %s", strerror(rc));
                return;
        }
        p->threads++;
        p->idle++;
}

static void make_ready(lc_pool_t *p, lc_strand_t *s)
{
        if (s->queued || s->running || s->waiting || !s->head)
                return;
        s->queued = true;
        s->next = NULL;
        *p->ready_tail = s;
        p->ready_tail = &s->next;
        if (!p->idle)
                spawn(p);
        pthread_cond_signal(&p->work);
}

static void unlink_waiting(lc_pool_t *p, lc_strand_t *s)
{
        for (lc_strand_t **l = &p->waiting; *l; l = &(*l)->next)
                if (*l == s) {
                        *l = s->next;
                        break;
                }
        s->waiting = false;
}

/* Late jobs stop counting, jobs whose time has come get ready. Returns when to look again. */
static int64_t look(lc_pool_t *p, int64_t now)
{
        int64_t next = INT64_MAX;

        for (lc_strand_t *s = p->running; s; s = s->run_next) {
                if (s->late)
                        continue;
                if (now - s->started >= p->late_ms) {
                        s->late = true;
                        p->active--;
                        lc_log(LC_WARN, "POOL",
                               "Connector code has been running for %lld ms; others go on without it",
                               (long long)(now - s->started));
                } else if (s->started + p->late_ms < next) {
                        next = s->started + p->late_ms;
                }
        }
        for (lc_strand_t *s = p->waiting, *after; s; s = after) {
                after = s->next;
                if (s->due <= now) {
                        unlink_waiting(p, s);
                        make_ready(p, s);
                } else if (s->due < next) {
                        next = s->due;
                }
        }
        return next;
}

static lc_strand_t *take(lc_pool_t *p)
{
        lc_strand_t *s = p->ready;

        if (!s || p->active >= p->size)
                return NULL;
        p->ready = s->next;
        if (!p->ready)
                p->ready_tail = &p->ready;
        s->queued = false;
        return s;
}

/* Called with the lock held, returns with it held. */
static void run(lc_pool_t *p, lc_strand_t *s)
{
        job_t *j = s->head;
        lc_strand_t **l;
        int again;

        s->running = true;
        s->late = s->kicked = false;
        s->started = lc_now_ms();
        s->run_next = p->running;
        p->running = s;
        p->active++;
        p->idle--;
        if (!p->idle)
                spawn(p); /* someone has to keep the time */
        else
                pthread_cond_signal(&p->work);
        pthread_mutex_unlock(&p->lock);
        again = j->fn(j->arg, false);
        lc_log_context(NULL);
        lc_script_owner(NULL, 0);
        pthread_mutex_lock(&p->lock);
        p->idle++;
        if (!s->late)
                p->active--;
        for (l = &p->running; *l != s; l = &(*l)->run_next)
                ;
        *l = s->run_next;
        s->running = false;
        if (again >= 0 && (s->closed || p->closing)) {
                pthread_mutex_unlock(&p->lock);
                j->fn(j->arg, true);
                pthread_mutex_lock(&p->lock);
                again = -1;
        }
        if (again >= 0 && !s->kicked) {
                s->due = lc_now_ms() + again;
                s->waiting = true;
                s->next = p->waiting;
                p->waiting = s;
        } else if (again < 0) {
                s->head = j->next;
                if (!s->head)
                        s->tail = &s->head;
                free(j);
        }
        if (s->closed && !s->head)
                free(s);
        else
                make_ready(p, s);
        pthread_cond_broadcast(&p->ended);
}

static void *pool_thread(void *arg)
{
        lc_pool_t *p = arg;
        int64_t idle_since = lc_now_ms();

        pthread_mutex_lock(&p->lock);
        while (!p->closing) {
                int64_t now = lc_now_ms(), next = look(p, now);
                lc_strand_t *s = take(p);

                if (s) {
                        run(p, s);
                        idle_since = lc_now_ms();
                        continue;
                }
                if (now - idle_since >= IDLE_MS && (p->idle > 1 || (!p->running && !p->waiting && !p->ready)))
                        break;
                if (next > idle_since + IDLE_MS && idle_since + IDLE_MS > now)
                        next = idle_since + IDLE_MS;
                if (next == INT64_MAX || next <= now)
                        next = now + IDLE_MS;
                lc_cond_wait_until(&p->work, &p->lock, next);
        }
        p->threads--;
        p->idle--;
        pthread_cond_broadcast(&p->ended);
        pthread_mutex_unlock(&p->lock);
        return NULL;
}

lc_strand_t *lc_strand_new(lc_pool_t *p)
{
        lc_strand_t *s = lc_calloc(1, sizeof(*s));

        s->pool = p;
        s->tail = &s->head;
        return s;
}

/* false: too late. */
static bool push(lc_strand_t *s, lc_job_fn *fn, void *arg, bool last)
{
        lc_pool_t *p = s->pool;
        bool open;

        pthread_mutex_lock(&p->lock);
        open = !s->closed && !p->closing;
        if (open) {
                job_t *j = lc_malloc(sizeof(*j));
                *j = (job_t){.fn = fn, .arg = arg};
                *s->tail = j;
                s->tail = &j->next;
                s->closed = last;
                make_ready(p, s);
        }
        pthread_mutex_unlock(&p->lock);
        return open;
}

void lc_strand_push(lc_strand_t *s, lc_job_fn *fn, void *arg)
{
        if (!push(s, fn, arg, false))
                fn(arg, true);
}

void lc_pool_push(lc_pool_t *p, lc_job_fn *fn, void *arg)
{
        lc_strand_t *s = lc_strand_new(p);

        if (push(s, fn, arg, true))
                return;
        free(s);
        fn(arg, true);
}

void lc_strand_kick(lc_strand_t *s)
{
        lc_pool_t *p = s->pool;

        pthread_mutex_lock(&p->lock);
        s->kicked = true;
        if (s->waiting) {
                unlink_waiting(p, s);
                make_ready(p, s);
        }
        pthread_mutex_unlock(&p->lock);
}

/* With the lock held: the jobs that do not run, taken off. */
static job_t *detach(lc_pool_t *p, lc_strand_t *s)
{
        job_t *rest;

        if (s->queued) {
                lc_strand_t **l = &p->ready;
                while (*l != s)
                        l = &(*l)->next;
                *l = s->next;
                for (p->ready_tail = &p->ready; *p->ready_tail;)
                        p->ready_tail = &(*p->ready_tail)->next;
                s->queued = false;
        }
        if (s->waiting)
                unlink_waiting(p, s);
        if (s->running) {
                rest = s->head->next;
                s->head->next = NULL;
                s->tail = &s->head->next;
        } else {
                rest = s->head;
                s->head = NULL;
                s->tail = &s->head;
        }
        return rest;
}

static void drop(job_t *j)
{
        while (j) {
                job_t *next = j->next;
                j->fn(j->arg, true);
                free(j);
                j = next;
        }
}

void lc_strand_close(lc_strand_t *s)
{
        lc_pool_t *p;
        job_t *rest;
        bool idle;

        if (!s)
                return;
        p = s->pool;
        pthread_mutex_lock(&p->lock);
        rest = detach(p, s);
        s->closed = true;
        idle = !s->running;
        pthread_mutex_unlock(&p->lock);
        drop(rest);
        if (idle)
                free(s);
}

void lc_pool_free(lc_pool_t *p, int ms)
{
        int64_t end = lc_now_ms() + ms;
        int left;

        if (!p)
                return;
        pthread_mutex_lock(&p->lock);
        p->closing = true;
        while (p->ready || p->waiting) {
                lc_strand_t *s = p->ready ? p->ready : p->waiting;
                job_t *rest = detach(p, s);
                bool last = s->closed;
                pthread_mutex_unlock(&p->lock);
                drop(rest);
                if (last)
                        free(s);
                pthread_mutex_lock(&p->lock);
        }
        pthread_cond_broadcast(&p->work);
        while (p->threads && lc_cond_wait_until(&p->ended, &p->lock, end))
                ;
        left = p->threads;
        pthread_mutex_unlock(&p->lock);
        if (left) { /* their code has not returned: they will still look at the pool when it does */
                lc_log(LC_WARN, "POOL", "%d calls of connector code did not return", left);
                return;
        }
        pthread_cond_destroy(&p->work);
        pthread_cond_destroy(&p->ended);
        pthread_mutex_destroy(&p->lock);
        free(p);
}
