/*
 * topic_hub_internal.h - the inside of topic_hub.c (the thread), topic_hub_start.c (bringing up) and topic_hub_calls.c
 * (what other threads call).
 *
 * Lock: hub.lock guards what is marked L; everything else belongs to the hub's thread or never changes after
 * the first start. `changed` is signalled whenever anything marked L moved.
 */
#ifndef LC_KAFKA_TOPIC_HUB_INTERNAL_H
#define LC_KAFKA_TOPIC_HUB_INTERNAL_H
#include "base/waker.h"
#include "kafka/conf.h"
#include "kafka/topic_hub.h"
#include <pthread.h>

enum { LC_HUB_TOPICS = 8 };

/* Simple consumption into one queue: no group, no coordinator. */
typedef struct lc_hub_reader {
        lc_kafka_client_t *client;
        rd_kafka_queue_t *queue;
        rd_kafka_topic_t *topics[LC_HUB_TOPICS];
        int partitions[LC_HUB_TOPICS]; /* the highest one started, + 1 */
} lc_hub_reader_t;

struct lc_hub_topic {
        lc_topic_hub_t *hub;
        int index;
        char *name, *setting, *purpose;
        lc_props_t *settings;
        lc_hub_topic_conf_t conf; /* pointers replaced by the copies above */
        rd_kafka_topic_t *out;    /* of the producer */
        int npartitions;          /* L */
        int64_t *position;        /* L: next offset of each partition */
        bool *behind;             /* the slow reader may still give what the fast one has given */
        int64_t *first_end;       /* where the first read ends */
        bool *reading;            /* the fast reader was started on it */
        int64_t *end;             /* L: of the last query */
        bool at_end;              /* L: the first read is over */
        bool detached;            /* L: no calls any more */
        bool failed;              /* L: and `error` says why */
        lc_err_t error;
        uint64_t sent, done;      /* L: records */
        uint64_t asked, answered; /* L: queries for the ends */
        bool asking;              /* L */
        lc_err_t ask_error;       /* L: of the last query; kind 0: fine */
};

struct lc_topic_hub {
        pthread_mutex_t lock;
        pthread_cond_t changed; /* monotonic clock */
        lc_hub_topic_t *topics[LC_HUB_TOPICS];
        int ntopics;
        lc_kafka_client_t *producer; /* also the admin */
        rd_kafka_queue_t *reports;
        lc_props_t *consumer_conf;
        char *servers;
        bool markers; /* transactions are to be expected */
        bool impatient;
        int start_ms; /* 0: as long as it takes */
        int api_ms;
        lc_waker_t waker;
        lc_hub_reader_t fast, slow;
        int64_t swap_at; /* when the fast reader goes; 0: not yet */
        pthread_t thread, reaper;
        bool running, reaping;    /* L: running */
        lc_hub_topic_t *calling;  /* L: whose on_record or on_tick runs now */
        int quit;                 /* atomic */
        const volatile int *stop; /* L: the worker's stop flag, from the first start() */
        int64_t said;             /* last "waiting" line */
        char context[120];
};

static inline bool lc_hub_quits(const lc_topic_hub_t *hub)
{
        return __atomic_load_n(&hub->quit, __ATOMIC_RELAXED);
}

int lc_hub_reader_open(lc_topic_hub_t *hub, lc_hub_reader_t *r, const char *wait_ms, lc_err_t *err);
int lc_hub_reader_start(lc_hub_reader_t *r, lc_hub_topic_t *t, int partition, int64_t offset);
void lc_hub_reader_close(lc_hub_reader_t *r);
/* Metadata, creation, checks, offsets; then the fast reader runs on what is not empty. Topics that cannot be
 * had are marked failed. Returns -1 when the hub was told to quit. */
int lc_hub_bring_up(lc_topic_hub_t *hub);
/* An impatient hub: fails the topic (NULL: all) if this says that it is denied. Returns whether it does. */
bool lc_hub_refused(lc_topic_hub_t *hub, lc_hub_topic_t *t, rd_kafka_resp_err_t code);
void lc_hub_topic_free(lc_hub_topic_t *t);
/* Marks it failed under the lock and wakes everybody. */
void lc_hub_fail(lc_hub_topic_t *t, const lc_err_t *err);
/* Delivery reports: hub's thread, or nobody else's any more. */
void lc_hub_serve_reports(lc_topic_hub_t *hub);
/* Latest offsets of one topic into out[]; -1 with err. */
int lc_hub_query_ends(rd_kafka_t *rk, lc_hub_topic_t *const *topics, int n, int64_t time, int ms,
                      int64_t *const *out, lc_err_t *err);

#endif
