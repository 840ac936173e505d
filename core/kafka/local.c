/* local.c - see local.h. */
#include "kafka/local.h"
#include "base/alloc.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 64 }; /* batches a task may seek back by */

/* ---- producer ----------------------------------------------------------------------------------- */

struct lc_local_producer {
        const lc_local_t *to;
        lc_waker_t *waker;
        lc_delivery_fn *on_report;
        void *arg;
        lc_record_t **reports; /* written, not told yet */
        size_t n, cap;
        int64_t told; /* counted as offsets of one partition */
};

lc_local_producer_t *lc_local_producer_new(const lc_local_t *to, lc_waker_t *waker, lc_delivery_fn *on_report,
                                           void *arg)
{
        lc_local_producer_t *p = lc_calloc(1, sizeof(*p));

        p->to = to;
        p->waker = waker;
        p->on_report = on_report;
        p->arg = arg;
        return p;
}

uint32_t lc_local_producer_send(lc_local_producer_t *p, lc_record_t *records, uint32_t n)
{
        uint32_t took = p->to->write(p->to->arg, records, n);

        if (p->n + took > p->cap) {
                p->cap = p->n + took;
                p->reports = lc_realloc(p->reports, p->cap * sizeof(lc_record_t *));
        }
        for (uint32_t i = 0; i < took; i++)
                if (records[i].state == LC_REC_NEW) {
                        lc_batch_ref(records[i].batch);
                        records[i].state = LC_REC_SUBMITTED;
                        p->reports[p->n++] = &records[i];
                }
        if (p->n && p->waker)
                lc_waker_wake(p->waker);
        return took;
}

int lc_local_producer_poll(lc_local_producer_t *p)
{
        size_t n = p->n;

        for (size_t i = 0; i < n; i++) /* a report sends nothing */
                p->on_report(p->arg, p->reports[i], NULL, &(lc_delivery_t){0, p->told++});
        p->n = 0;
        return (int)n;
}

size_t lc_local_producer_outstanding(const lc_local_producer_t *p)
{
        return p->n;
}

void lc_local_producer_destroy(lc_local_producer_t *p)
{
        lc_local_producer_poll(p);
        free(p->reports);
        free(p);
}

/* ---- consumer ----------------------------------------------------------------------------------- */

typedef struct part {
        char *topic;
        int32_t partition;
        int64_t first, next, committed; /* offsets; next: of the next record to give; first: the least kept */
        bool paused;
} part_t;

typedef struct kept { /* records as they were read */
        lc_batch_t *batch;
        lc_record_t *records;
        uint32_t n;
} kept_t;

struct lc_local_consumer {
        const lc_local_t *from;
        lc_waker_t *waker;
        lc_consumer_events_t events;
        void *arg;
        part_t *parts;
        size_t nparts;
        bool begun, ended;
        enum { ROOM, ASKED, TOLD } commit; /* asked for one as there is no room; it has not helped */
        kept_t kept[KEPT];
        size_t nkept, at; /* at: the kept batch to give next; nkept: read a new one */
        uint64_t seq;     /* of the commit to be told, 0: none */
};

lc_local_consumer_t *lc_local_consumer_new(const lc_local_t *from, lc_waker_t *waker,
                                           const lc_consumer_events_t *events, void *arg)
{
        lc_local_consumer_t *c = lc_calloc(1, sizeof(*c));

        c->from = from;
        c->waker = waker;
        c->events = *events;
        c->arg = arg;
        return c;
}

static part_t *find_part(const lc_local_consumer_t *c, const char *topic, int32_t partition)
{
        for (size_t i = 0; i < c->nparts; i++)
                if (c->parts[i].partition == partition && !strcmp(c->parts[i].topic, topic))
                        return &c->parts[i];
        return NULL;
}

static void assign(lc_local_consumer_t *c, const lc_topic_partition_t *tps, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                c->parts = lc_realloc(c->parts, (c->nparts + 1) * sizeof(*c->parts));
                c->parts[c->nparts++] =
                        (part_t){.topic = lc_strdup(tps[i].topic), .partition = tps[i].partition};
        }
        if (n && c->events.assigned)
                c->events.assigned(c->arg, tps, n);
}

static void forget_first(lc_local_consumer_t *c)
{
        for (uint32_t i = 0; i < c->kept[0].n; i++) {
                const lc_record_t *r = &c->kept[0].records[i];
                part_t *p = find_part(c, r->u.snk.topic, r->u.snk.partition);
                if (p)
                        p->first = r->u.snk.offset + 1;
        }
        lc_batch_unref(c->kept[0].batch);
        free(c->kept[0].records);
        memmove(c->kept, c->kept + 1, (c->nkept - 1) * sizeof(*c->kept));
        c->nkept--;
        c->at -= c->at > 0;
}

static bool is_committed(const lc_local_consumer_t *c, const kept_t *k)
{
        const part_t *p = NULL;

        for (uint32_t i = k->n; i-- > 0;) {
                const lc_record_t *r = &k->records[i];
                if (!p || p->partition != r->u.snk.partition || strcmp(p->topic, r->u.snk.topic) != 0)
                        p = find_part(c, r->u.snk.topic, r->u.snk.partition);
                if (p && r->u.snk.offset >= p->committed)
                        return false;
        }
        return true;
}

/* A new batch, kept for seeks. 1, 0, -1 as `read`. */
static int read_more(lc_local_consumer_t *c, lc_err_t *err)
{
        lc_batch_t *b = NULL;
        kept_t *k;
        int rc;

        if (c->nkept == KEPT && c->commit == ROOM && !is_committed(c, &c->kept[0])) {
                c->commit = ASKED; /* the task may have to go back until then */
                lc_waker_wake(c->waker);
                return 0;
        }
        if (c->commit == ASKED)
                c->commit = TOLD;
        if (c->nkept == KEPT)
                forget_first(c);
        rc = c->from->read(c->from->arg, c->waker, &b, err);
        if (rc <= 0)
                return rc;
        k = &c->kept[c->nkept++];
        k->batch = b;
        k->n = b->n;
        k->records = lc_malloc((b->n ? b->n : 1) * sizeof(*k->records));
        memcpy(k->records, b->records, b->n * sizeof(*k->records));
        for (uint32_t i = 0; i < b->n; i++) {
                const lc_record_t *r = &b->records[i];
                if (!find_part(c, r->u.snk.topic, r->u.snk.partition)) {
                        lc_topic_partition_t tp = {
                                .topic = r->u.snk.topic, .partition = r->u.snk.partition, .offset = -1001};
                        assign(c, &tp, 1);
                }
        }
        return 1;
}

static void unref_batch(void *arg)
{
        lc_batch_unref(arg);
}

/* Those records of the kept batch that are wanted, as a batch that holds it. NULL: none are. */
static lc_batch_t *give(lc_local_consumer_t *c, const kept_t *k)
{
        lc_batch_t *b = lc_batch_new(k->n);

        for (uint32_t i = 0; b && i < k->n; i++) {
                part_t *p = find_part(c, k->records[i].u.snk.topic, k->records[i].u.snk.partition);
                lc_record_t *r;
                if (!p || k->records[i].u.snk.offset < p->next)
                        continue;
                p->next = k->records[i].u.snk.offset + 1;
                r = lc_batch_add(b);
                *r = k->records[i];
                r->batch = b;
        }
        if (b && !b->n) {
                lc_batch_unref(b);
                return NULL;
        }
        if (b) {
                b->on_free = unref_batch;
                b->on_free_arg = k->batch;
                lc_batch_ref(k->batch);
        }
        return b;
}

bool lc_local_consumer_full(const lc_local_consumer_t *c)
{
        return c->commit == ASKED;
}

int lc_local_consumer_poll(lc_local_consumer_t *c, lc_batch_t **batch, lc_err_t *err)
{
        *batch = NULL;
        if (c->seq) {
                uint64_t seq = c->seq;
                c->seq = 0;
                if (c->events.committed)
                        c->events.committed(c->arg, seq, NULL);
        }
        if (!c->begun) {
                const lc_topic_partition_t *tps = NULL;
                size_t n = c->from->partitions(c->from->arg, &tps);
                c->begun = true;
                assign(c, tps, n);
                lc_waker_wake(c->waker); /* pauses and failures of open() come first */
                return 0;
        }
        for (size_t i = 0; i < c->nparts; i++)
                if (c->parts[i].paused) /* one input: its order stays */
                        return 0;
        while (!*batch && !c->ended) {
                if (c->at == c->nkept) {
                        int rc = read_more(c, err);
                        if (!rc)
                                return 0;
                        if (rc < 0 && err->kind)
                                return -1;
                        if (rc < 0) {
                                c->ended = true;
                                c->from->ended(c->from->arg);
                                return 0;
                        }
                }
                *batch = give(c, &c->kept[c->at++]);
                if (*batch)
                        lc_waker_wake(c->waker); /* there may be more */
        }
        return 0;
}

void lc_local_consumer_pause(lc_local_consumer_t *c, const lc_topic_partition_t *tps, size_t n, bool on)
{
        for (size_t i = 0; i < n; i++) {
                part_t *p = find_part(c, tps[i].topic, tps[i].partition);
                if (p)
                        p->paused = on;
        }
        lc_waker_wake(c->waker);
}

int lc_local_consumer_seek(lc_local_consumer_t *c, const lc_topic_partition_t *tp, lc_err_t *err)
{
        part_t *p = find_part(c, tp->topic, tp->partition);

        if (!p)
                return lc_err_set_cls(err, LC_FATAL, 0, "java.lang.IllegalStateException",
                                      "No current assignment for partition %s-%" PRId32, tp->topic,
                                      tp->partition);
        if (tp->offset < p->first)
                return lc_err_set(err, LC_FATAL, 0,
                                  "records before offset %" PRId64 " are not kept: input is read once",
                                  p->first);
        if (tp->offset < p->next)
                c->at = 0; /* what other partitions have had is left out */
        p->next = tp->offset;
        c->ended = false;
        lc_waker_wake(c->waker);
        return 0;
}

void lc_local_consumer_position(const lc_local_consumer_t *c, lc_topic_partition_t *tps, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const part_t *p = find_part(c, tps[i].topic, tps[i].partition);
                tps[i].offset = p ? p->next : -1001;
        }
}

void lc_local_consumer_commit(lc_local_consumer_t *c, const lc_topic_partition_t *tps, size_t n, uint64_t seq)
{
        for (size_t i = 0; i < n; i++) {
                part_t *p = find_part(c, tps[i].topic, tps[i].partition);
                if (p)
                        p->committed = tps[i].offset;
        }
        c->commit = ROOM;
        c->from->committed(c->from->arg, tps, n);
        c->seq = seq;
        if (seq)
                lc_waker_wake(c->waker);
}

void lc_local_consumer_close(lc_local_consumer_t *c)
{
        while (c->nkept)
                forget_first(c);
        for (size_t i = 0; i < c->nparts; i++)
                free(c->parts[i].topic);
        free(c->parts);
        free(c);
}
