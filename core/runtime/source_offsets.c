/* source_offsets.c - see source_offsets.h. */
#include "runtime/source_offsets.h"
#include "base/alloc.h"
#include "base/log.h"
#include "config/client_config.h"
#include "convert/json.h"
#include "kafka/topic_hub.h"
#include "runtime/ticket.h"
#include "storage/kafka_stores.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_MS = 60000 }; /* default.api.timeout.ms */

/* What callbacks see of the own store: gone once the offsets are closed. Lock: gate.lock around its use; inside
 * it only the store's own. */
typedef struct gate {
        int refs; /* atomic */
        pthread_mutex_t lock;
        lc_offset_store_t *own;
} gate_t;

struct lc_source_offsets {
        lc_services_t *sv;
        char *connector, *topic;
        lc_offset_store_t *own; /* NULL: the worker's alone */
        struct lc_topic_hub *hub;
        gate_t *gate; /* with own */
};

static void gate_unref(gate_t *g)
{
        if (!g || __atomic_sub_fetch(&g->refs, 1, __ATOMIC_ACQ_REL))
                return;
        pthread_mutex_destroy(&g->lock);
        free(g);
}

/* The worker's cluster? Java compares the settings, too. */
static bool same_servers(const lc_services_t *sv, const lc_props_t *config)
{
        const char *a = lc_client_java_value(sv->config, LC_CLIENT_PRODUCER, config, "bootstrap.servers");
        const char *b = lc_worker_config_str(sv->config, "bootstrap.servers");

        return a && b && !strcmp(a, b);
}

static bool needs_own(const lc_services_t *sv, const lc_props_t *config, const char **topic)
{
        const char *own = lc_props_get(config, "offsets.storage.topic"), *workers;

        *topic = NULL;
        if (sv->local || lc_worker_config_mode(sv->config) != LC_DISTRIBUTED)
                return false;
        workers = lc_worker_config_str(sv->config, "offset.storage.topic");
        *topic = own ? own : workers;
        if (!own && !sv->exactly_once)
                return false;
        return strcmp(*topic, workers) != 0 || !same_servers(sv, config);
}

lc_source_offsets_t *lc_source_offsets_open(lc_services_t *sv, const char *connector, int task,
                                            const lc_props_t *config, const volatile int *stop, lc_err_t *err)
{
        lc_source_offsets_t *o = lc_calloc(1, sizeof(*o));
        const char *topic;
        bool own = needs_own(sv, config, &topic);
        char *suffix;

        o->sv = lc_services_ref(sv);
        o->connector = lc_strdup(connector);
        o->topic = lc_strdup(topic);
        if (!own)
                return o;
        suffix = task < 0 ? lc_strdup(connector) : lc_asprintf("%s-%d", connector, task);
        o->own = lc_kafka_own_offsets_new(sv->config, config, topic, suffix, &o->hub, err);
        free(suffix);
        if (o->hub) /* a task waits for its broker; who only asks (REST, a connector's script) has Java's patience */
                lc_topic_hub_impatient(o->hub, task < 0 ? ASK_MS : 0);
        o->gate = lc_calloc(1, sizeof(*o->gate));
        o->gate->refs = 1;
        o->gate->own = o->own;
        pthread_mutex_init(&o->gate->lock, NULL);
        if (!o->own || o->own->ops->start(o->own, stop, err)) {
                lc_source_offsets_close(o);
                return NULL;
        }
        return o;
}

void lc_source_offsets_close(lc_source_offsets_t *o)
{
        if (!o)
                return;
        if (o->gate) {
                pthread_mutex_lock(&o->gate->lock);
                o->gate->own = NULL;
                pthread_mutex_unlock(&o->gate->lock);
                gate_unref(o->gate);
        }
        if (o->own)
                o->own->ops->stop(o->own);
        lc_kafka_own_offsets_free(o->hub);
        lc_services_unref(o->sv);
        free(o->connector);
        free(o->topic);
        free(o);
}

const char *lc_source_offsets_topic(const lc_source_offsets_t *o)
{
        return o->topic;
}

/* ---- reading ---- */

int lc_source_offsets_get(lc_source_offsets_t *o, const char *partition, lc_buf_t *out, lc_err_t *err)
{
        int rc = o->own ? o->own->ops->get(o->own, o->connector, partition, out, err) : 0;

        return rc ? rc : lc_services_offset_get(o->sv, o->connector, partition, out, err);
}

typedef struct listing {
        void (*fn)(void *arg, const char *partition, const char *offset);
        void *arg;
        lc_strv_t seen; /* canonical partitions of the own topic */
} listing_t;

static char *canonical(const char *partition)
{
        lc_buf_t b = LC_BUF_SURE;
        lc_json_t *doc = NULL;
        lc_err_t err;

        lc_err_clear(&err);
        if (lc_json_parse_sure(partition, strlen(partition), 0, &doc, &err) < 0 || !doc)
                return lc_strdup(partition);
        lc_json_write_canonical(&b, doc);
        lc_json_free(doc);
        return lc_buf_take(&b, NULL);
}

static void own_one(void *arg, const char *partition, const char *offset)
{
        listing_t *l = arg;
        char *c = canonical(partition);

        if (c)
                lc_strv_add(&l->seen, c);
        free(c);
        l->fn(l->arg, partition, offset);
}

static void workers_one(void *arg, const char *partition, const char *offset)
{
        listing_t *l = arg;
        char *c = canonical(partition);

        if (!c || !lc_strv_has(&l->seen, c))
                l->fn(l->arg, partition, offset);
        free(c);
}

int lc_source_offsets_list(lc_source_offsets_t *o,
                           void (*fn)(void *arg, const char *partition, const char *offset), void *arg,
                           lc_err_t *err)
{
        lc_services_t *sv = o->sv;
        listing_t l = {.fn = fn, .arg = arg};
        int rc = 0;

        if (o->own)
                rc = o->own->ops->list(o->own, o->connector, own_one, &l, err);
        if (!rc && !lc_services_enter(sv)) {
                rc = lc_err_set(err, LC_FATAL, 0, "The worker has stopped");
        } else if (!rc) {
                rc = sv->offsets->ops->list(sv->offsets, o->connector, workers_one, &l, err);
                lc_services_leave(sv);
        }
        lc_strv_free(&l.seen);
        return rc;
}

/* ---- writing ---- */

/* A set that goes to both stores, step by step: callbacks begin the next one. */
typedef struct both {
        lc_services_t *sv;
        char *connector;
        gate_t *gate;
        lc_offset_entry_t *entries, *part;
        size_t n;
        lc_offset_done_fn *done;
        void *arg;
} both_t;

static lc_offset_entry_t *copy_entries(const lc_offset_entry_t *entries, size_t n)
{
        lc_offset_entry_t *copy = lc_calloc(n ? n : 1, sizeof(*copy));

        for (size_t i = 0; i < n; i++)
                copy[i] = (lc_offset_entry_t){lc_strdup(entries[i].partition), lc_strdup(entries[i].offset)};
        return copy;
}

/* The removals, or the others: borrowed from `entries`. */
static size_t select_entries(const lc_offset_entry_t *entries, size_t n, bool removals,
                             lc_offset_entry_t *out)
{
        size_t k = 0;

        for (size_t i = 0; i < n; i++)
                if (!entries[i].offset == removals)
                        out[k++] = entries[i];
        return k;
}

static void both_free(both_t *b)
{
        for (size_t i = 0; i < b->n; i++) {
                free((char *)b->entries[i].partition);
                free((char *)b->entries[i].offset);
        }
        free(b->entries);
        free(b->part);
        free(b->connector);
        gate_unref(b->gate);
        lc_services_unref(b->sv);
        free(b);
}

static void in_workers_too(void *arg, const lc_err_t *err)
{
        both_t *b = arg;

        if (err)
                lc_log(LC_WARN, "OFFSET",
                       "Failed to write the offsets of connector %s to the worker's offsets topic; they are "
                       "in "
                       "the connector's own one: %s",
                       b->connector, err->msg);
        both_free(b);
}

/* The last step: as well as can be. Frees b. */
static void to_workers(both_t *b)
{
        size_t k = select_entries(b->entries, b->n, false, b->part);
        lc_services_t *sv;

        if (!k || !lc_services_enter(b->sv)) {
                both_free(b);
                return;
        }
        sv = lc_services_ref(b->sv); /* b may be gone when set returns */
        sv->offsets->ops->set(sv->offsets, b->connector, b->part, k, in_workers_too, b);
        lc_services_leave(sv);
        lc_services_unref(sv);
}

static void in_own(void *arg, const lc_err_t *err)
{
        both_t *b = arg;

        b->done(b->arg, err);
        if (err)
                both_free(b);
        else
                to_workers(b);
}

static void shut(lc_offset_done_fn *done, void *arg)
{
        lc_err_t err;

        lc_err_clear(&err);
        lc_err_set(&err, LC_FATAL, 0, "The offsets of this connector are closed");
        done(arg, &err);
}

static void removed(void *arg, const lc_err_t *err)
{
        both_t *b = arg;
        gate_t *g = b->gate;
        bool open;

        if (err) {
                b->done(b->arg, err);
                both_free(b);
                return;
        }
        __atomic_add_fetch(&g->refs, 1, __ATOMIC_RELAXED); /* b may be gone when set returns */
        pthread_mutex_lock(&g->lock);
        open = g->own != NULL;
        if (open)
                g->own->ops->set(g->own, b->connector, b->entries, b->n, in_own, b);
        pthread_mutex_unlock(&g->lock);
        gate_unref(g);
        if (!open) {
                shut(b->done, b->arg);
                both_free(b);
        }
}

static both_t *both_new(lc_source_offsets_t *o, const lc_offset_entry_t *entries, size_t n)
{
        both_t *b = lc_calloc(1, sizeof(*b));

        b->sv = lc_services_ref(o->sv);
        b->connector = lc_strdup(o->connector);
        b->gate = o->gate;
        __atomic_add_fetch(&o->gate->refs, 1, __ATOMIC_RELAXED);
        b->entries = copy_entries(entries, n);
        b->part = lc_calloc(n ? n : 1, sizeof(*b->part));
        b->n = n;
        return b;
}

void lc_source_offsets_set(lc_source_offsets_t *o, const lc_offset_entry_t *entries, size_t n,
                           lc_offset_done_fn *done, void *arg)
{
        lc_services_t *sv = o->sv;
        both_t *b;
        size_t k;

        if (!lc_services_enter(sv)) {
                shut(done, arg);
                return;
        }
        if (!o->own) {
                sv->offsets->ops->set(sv->offsets, o->connector, entries, n, done, arg);
        } else {
                b = both_new(o, entries, n);
                b->done = done;
                b->arg = arg;
                k = select_entries(b->entries, n, true, b->part);
                if (k)
                        sv->offsets->ops->set(sv->offsets, o->connector, b->part, k, removed, b);
                else
                        removed(b, NULL);
        }
        lc_services_leave(sv);
}

/* ---- exactly-once ---- */

static void answer(void *arg, const lc_err_t *err)
{
        lc_ticket_answer(arg, err);
}

int lc_source_offsets_before(lc_source_offsets_t *o, const lc_offset_entry_t *entries, size_t n,
                             bool (*quit)(void *arg), void *arg, lc_err_t *err)
{
        lc_services_t *sv = o->sv;
        lc_offset_entry_t *removals;
        lc_ticket_t *ticket;
        size_t k;
        int rc;

        if (!o->own)
                return 0;
        removals = lc_calloc(n ? n : 1, sizeof(*removals));
        k = select_entries(entries, n, true, removals);
        if (!k) {
                rc = 0;
        } else if (!lc_services_enter(sv)) {
                rc = lc_err_set(err, LC_FATAL, 0, "The worker has stopped");
        } else {
                ticket = lc_ticket_new();
                sv->offsets->ops->set(sv->offsets, o->connector, removals, k, answer, ticket);
                lc_services_leave(sv);
                rc = lc_ticket_wait(ticket, quit, arg, 0, err);
        }
        free(removals);
        return rc;
}

static int plain_records(const lc_source_offsets_t *o, const lc_offset_entry_t *entries, size_t n,
                         lc_offset_record_fn *fn, void *arg, lc_err_t *err)
{
        int rc = 0;

        for (size_t i = 0; i < n && !rc; i++) {
                lc_buf_t key = LC_BUF_SURE;

                lc_buf_addc(&key, '[');
                lc_json_write_string(&key, o->connector, strlen(o->connector));
                lc_buf_printf(&key, ",%s]", entries[i].partition);
                rc = fn(arg, key.p, key.len, -1, entries[i].offset, err);
                lc_buf_free(&key);
        }
        return rc;
}

int lc_source_offsets_records(lc_source_offsets_t *o, const lc_offset_entry_t *entries, size_t n,
                              lc_offset_record_fn *fn, void *arg, lc_err_t *err)
{
        lc_services_t *sv = o->sv;
        lc_offset_store_t *s = o->own ? o->own : sv->offsets;
        int rc;

        if (!lc_services_enter(sv))
                return lc_err_set(err, LC_FATAL, 0, "The worker has stopped");
        rc = s->ops->records ? s->ops->records(s, o->connector, entries, n, fn, arg, err)
                             : plain_records(o, entries, n, fn, arg, err);
        lc_services_leave(sv);
        return rc;
}

void lc_source_offsets_after(lc_source_offsets_t *o, const lc_offset_entry_t *entries, size_t n)
{
        if (o->own && n)
                to_workers(both_new(o, entries, n));
}
