/* queue.c - see queue.h. */
#include "base/queue.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/cond.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

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

        lc_cond_init(&q->filled);
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
        int64_t end = ms > 0 ? lc_now_ms() + ms : 0;
        node_t *n = NULL;
        void *item = NULL;
        bool late = ms == 0;

        pthread_mutex_lock(&q->lock);
        while (!q->head && !q->woken && !late) {
                if (ms < 0)
                        pthread_cond_wait(&q->filled, &q->lock);
                else
                        late = !lc_cond_wait_until(&q->filled, &q->lock, end);
        }
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
