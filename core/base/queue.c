/* queue.c - see queue.h. */
#include "base/queue.h"
#include "base/alloc.h"
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

typedef struct node {
        struct node *next;
        void *item;
} node_t;

struct lc_queue {
        pthread_mutex_t lock;
        pthread_cond_t filled;
        node_t *head, **tail;
        size_t len;
        bool woken;
};

lc_queue_t *lc_queue_new(void)
{
        lc_queue_t *q = lc_calloc(1, sizeof(*q));
        pthread_condattr_t attr;

        pthread_condattr_init(&attr);
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        pthread_cond_init(&q->filled, &attr);
        pthread_condattr_destroy(&attr);
        pthread_mutex_init(&q->lock, NULL);
        q->tail = &q->head;
        return q;
}

void lc_queue_free(lc_queue_t *q)
{
        if (!q)
                return;
        while (q->head) {
                node_t *n = q->head;
                q->head = n->next;
                free(n);
        }
        pthread_cond_destroy(&q->filled);
        pthread_mutex_destroy(&q->lock);
        free(q);
}

void lc_queue_push(lc_queue_t *q, void *item)
{
        node_t *n = lc_malloc(sizeof(*n));

        n->item = item;
        n->next = NULL;
        pthread_mutex_lock(&q->lock);
        *q->tail = n;
        q->tail = &n->next;
        q->len++;
        pthread_cond_signal(&q->filled);
        pthread_mutex_unlock(&q->lock);
}

void lc_queue_wake(lc_queue_t *q)
{
        pthread_mutex_lock(&q->lock);
        q->woken = true;
        pthread_cond_signal(&q->filled);
        pthread_mutex_unlock(&q->lock);
}

void *lc_queue_pop(lc_queue_t *q, int ms)
{
        struct timespec end;
        node_t *n = NULL;
        void *item = NULL;
        int rc = 0;

        if (ms > 0) {
                clock_gettime(CLOCK_MONOTONIC, &end);
                end.tv_sec += ms / 1000;
                end.tv_nsec += (long)(ms % 1000) * 1000000;
                if (end.tv_nsec >= 1000000000) {
                        end.tv_sec++;
                        end.tv_nsec -= 1000000000;
                }
        }
        pthread_mutex_lock(&q->lock);
        while (!q->head && !q->woken && ms != 0 && rc != ETIMEDOUT)
                rc = ms < 0 ? pthread_cond_wait(&q->filled, &q->lock)
                            : pthread_cond_timedwait(&q->filled, &q->lock, &end);
        q->woken = false;
        n = q->head;
        if (n) {
                q->head = n->next;
                if (!q->head)
                        q->tail = &q->head;
                q->len--;
                item = n->item;
        }
        pthread_mutex_unlock(&q->lock);
        free(n);
        return item;
}

size_t lc_queue_len(lc_queue_t *q)
{
        size_t n;

        pthread_mutex_lock(&q->lock);
        n = q->len;
        pthread_mutex_unlock(&q->lock);
        return n;
}
