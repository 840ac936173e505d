/* new_topics.c - see new_topics.h: asking for a topic's partitions makes it, where brokers make topics. */
#include "runtime/new_topics.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include <stdlib.h>
#include <string.h>

enum {
        WAIT_MS = 1000,
        AGAIN_MS = 10 /* what was made takes a few ms to be known */
};

typedef struct seen {
        UT_hash_handle hh;
        char name[];
} seen_t;

struct lc_new_topics {
        lc_producer_t *producer;
        bool (*stop)(void *arg);
        void *arg;
        seen_t *seen;
};

lc_new_topics_t *lc_new_topics_new(lc_producer_t *producer, bool (*stop)(void *arg), void *arg)
{
        lc_new_topics_t *n = lc_calloc(1, sizeof(*n));

        *n = (lc_new_topics_t){.producer = producer, .stop = stop, .arg = arg};
        return n;
}

void lc_new_topics_free(lc_new_topics_t *n)
{
        seen_t *s, *next;

        if (!n)
                return;
        HASH_ITER(hh, n->seen, s, next)
        {
                HASH_DEL(n->seen, s);
                free(s);
        }
        free(n);
}

void lc_new_topics_await(lc_new_topics_t *n, const char *name)
{
        int64_t end = lc_now_ms() + WAIT_MS;
        size_t len = strlen(name);
        seen_t *s;

        HASH_FIND(hh, n->seen, name, len, s);
        if (s)
                return;
        s = lc_calloc(1, sizeof(*s) + len + 1);
        memcpy(s->name, name, len);
        HASH_ADD_KEYPTR(hh, n->seen, s->name, len, s);
        while (!n->stop(n->arg) && lc_now_ms() < end &&
               !lc_producer_topic_partitions(n->producer, name, WAIT_MS, NULL))
                lc_producer_poll(n->producer, AGAIN_MS);
}
