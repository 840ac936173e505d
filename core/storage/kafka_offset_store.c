/*
 * kafka_offset_store.c - source offsets in the hub's offsets topic (offset_store.h, storage.md 5).
 *
 * Java takes the bytes of a key for the identity, we take the map: an entry keeps every spelling of its key
 * that was read ("variants"), each with its Kafka partition. The newest living one answers, is written again,
 * and a removal removes all of them.
 * Lock: store.lock around the entries. done callbacks come on the hub's thread and do not touch the store.
 * spec/unit/offset_topic_spec.lua, spec/kafka/storage_spec.lua
 */
#include "base/alloc.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/log.h"
#include "convert/json.h"
#include "kafka/topic_hub.h"
#include "storage/topic_stores.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READ_MS = 60000, STOP_MS = 5000 };

typedef struct variant {
        char *key; /* bytes as read, terminated */
        size_t key_len;
        char *partition; /* JSON as read */
        int32_t kpartition;
        char *offset; /* JSON as read; NULL: removed */
        int64_t timestamp;
        uint64_t seq; /* order of reading */
} variant_t;

typedef struct entry {
        char *id; /* connector NUL canonical partition */
        size_t id_len;
        variant_t *v;
        size_t n;
        UT_hash_handle hh;
} entry_t;

typedef struct store {
        lc_offset_store_t base;
        lc_hub_topic_t *topic;
        char *name;
        pthread_mutex_t lock;
        entry_t *entries;
        uint64_t seq;
} store_t;

/* ---- entries ---- */

static void make_id(lc_buf_t *id, const char *connector, size_t n, const lc_json_t *partition)
{
        lc_buf_add(id, connector, n);
        lc_buf_addc(id, '\0');
        lc_json_write_canonical(id, partition);
}

static entry_t *find(store_t *s, const lc_buf_t *id)
{
        entry_t *e;

        HASH_FIND(hh, s->entries, id->p, id->len, e);
        return e;
}

static bool newer(const variant_t *a, const variant_t *b)
{
        return a->timestamp != b->timestamp ? a->timestamp > b->timestamp : a->seq > b->seq;
}

/* The spelling that counts: the newest with an offset. */
static variant_t *living(entry_t *e)
{
        variant_t *best = NULL;

        for (size_t i = 0; e && i < e->n; i++)
                if (e->v[i].offset && (!best || newer(&e->v[i], best)))
                        best = &e->v[i];
        return best;
}

/* The spelling to write: the newest at all. */
static variant_t *newest(entry_t *e)
{
        variant_t *best = living(e);

        for (size_t i = 0; !best && e && i < e->n; i++)
                if (!best || newer(&e->v[i], best))
                        best = &e->v[i];
        return best;
}

static void remember(store_t *s, const lc_hub_record_t *r, const lc_buf_t *id, const lc_json_t *partition,
                     char *offset)
{
        entry_t *e = find(s, id);
        variant_t *v = NULL;
        lc_buf_t text = LC_BUF_SURE;

        if (!e) {
                e = lc_calloc(1, sizeof(*e));
                e->id = lc_malloc(id->len);
                memcpy(e->id, id->p, id->len);
                e->id_len = id->len;
                HASH_ADD_KEYPTR(hh, s->entries, e->id, e->id_len, e);
        }
        for (size_t i = 0; i < e->n; i++)
                if (e->v[i].key_len == r->key_len && e->v[i].kpartition == r->partition &&
                    !memcmp(e->v[i].key, r->key, r->key_len))
                        v = &e->v[i];
        if (!v) {
                e->v = lc_realloc(e->v, (e->n + 1) * sizeof(*e->v));
                v = &e->v[e->n++];
                memset(v, 0, sizeof(*v));
                v->key = lc_malloc(r->key_len + 1);
                memcpy(v->key, r->key, r->key_len);
                v->key[r->key_len] = '\0';
                v->key_len = r->key_len;
                v->kpartition = r->partition;
                lc_json_write(&text, partition);
                v->partition = lc_buf_take(&text, NULL);
        }
        free(v->offset);
        v->offset = offset;
        v->timestamp = r->timestamp;
        v->seq = ++s->seq;
}

/* ---- reading records ---- */

static void bad(const store_t *s, const lc_hub_record_t *r, const char *why, const char *more)
{
        lc_log(LC_WARN, "OFFSET", "%s%s (record at %s-%d offset %lld skipped)", why, more, s->name,
               (int)r->partition, (long long)r->offset);
}

static const char *java_class(const lc_json_t *v)
{
        static const char *const names[] = {"null",
                                            "java.lang.Boolean",
                                            "java.lang.Boolean",
                                            "java.lang.Long",
                                            "java.lang.String",
                                            "java.util.ArrayList",
                                            "java.util.HashMap"};

        return v ? names[v->type] : "null";
}

/* The key's two parts, or false after a line in the log. */
static bool parse_key(store_t *s, const lc_hub_record_t *r, lc_json_t **doc, const lc_json_t **connector,
                      const lc_json_t **partition)
{
        lc_err_t err;
        char count[24];

        lc_err_clear(&err);
        if (!r->key) {
                bad(s, r, "Ignoring offset partition key with an unexpected null value", "");
                return false;
        }
        if (lc_json_parse_sure(r->key, r->key_len, 0, doc, &err) < 0) {
                bad(s, r, "Ignoring offset partition key with unknown serialization. Expected json. ",
                    err.msg);
                return false;
        }
        if (!*doc || (*doc)->type != LC_J_ARRAY) {
                bad(s, r,
                    "Ignoring offset partition key with an unexpected format. Expected type: java.util.List, "
                    "actual type: ",
                    java_class(*doc));
                return false;
        }
        if ((*doc)->len != 2) {
                snprintf(count, sizeof(count), "%zu", (*doc)->len);
                bad(s, r,
                    "Ignoring offset partition key with an unexpected number of elements. Expected: 2, "
                    "actual: ",
                    count);
                return false;
        }
        *connector = (*doc)->child;
        *partition = (*connector)->next;
        if ((*connector)->type != LC_J_STRING) {
                bad(s, r,
                    "Ignoring offset partition key with an unexpected format for the first element in the "
                    "partition key list. Expected type: java.lang.String, actual type: ",
                    java_class(*connector));
                return false;
        }
        if ((*partition)->type != LC_J_OBJECT) {
                if ((*partition)->type != LC_J_NULL) /* no partition: nothing to list, nothing wrong */
                        bad(s, r,
                            "Ignoring offset partition key with an unexpected format for the second element "
                            "in "
                            "the partition key list. Expected type: java.util.Map, actual type: ",
                            java_class(*partition));
                return false;
        }
        return true;
}

static void on_record(void *arg, const lc_hub_record_t *r)
{
        store_t *s = arg;
        lc_json_t *doc = NULL, *value = NULL;
        const lc_json_t *connector, *partition;
        lc_buf_t id = LC_BUF_SURE, offset = LC_BUF_SURE;
        lc_err_t err;

        lc_err_clear(&err);
        if (!parse_key(s, r, &doc, &connector, &partition))
                goto done;
        if (r->value) {
                if (lc_json_parse_sure(r->value, r->value_len, 0, &value, &err) < 0) {
                        bad(s, r, "Ignoring an offset that is no JSON: ", err.msg);
                        goto done;
                }
                if (!value || (value->type != LC_J_OBJECT && value->type != LC_J_NULL)) {
                        bad(s, r, "Offsets must be specified as a Map, not as ", java_class(value));
                        goto done;
                }
                if (value->type == LC_J_OBJECT)
                        lc_json_write(&offset, value);
        }
        make_id(&id, connector->s, connector->len, partition);
        pthread_mutex_lock(&s->lock);
        remember(s, r, &id, partition, offset.len ? lc_buf_take(&offset, NULL) : NULL);
        pthread_mutex_unlock(&s->lock);
done:
        lc_buf_free(&id);
        lc_buf_free(&offset);
        lc_json_free(value);
        lc_json_free(doc);
}

/* ---- the store ---- */

static int start(lc_offset_store_t *base, const volatile int *stop, lc_err_t *err)
{
        return lc_hub_topic_start(((store_t *)base)->topic, stop, err);
}

static int id_of(lc_buf_t *id, const char *connector, const char *partition, lc_err_t *err)
{
        lc_json_t *doc = NULL;
        int rc = -1;

        if (lc_json_parse_sure(partition, strlen(partition), 0, &doc, err) < 0)
                return -1;
        if (!doc || doc->type != LC_J_OBJECT) {
                lc_err_set_cls(err, LC_DATA, 0, LC_CLS_DATA, "A source partition must be a Map, but is %s",
                               partition);
        } else {
                make_id(id, connector, strlen(connector), doc);
                rc = 0;
        }
        lc_json_free(doc);
        return rc;
}

static int read_to_end(store_t *s, lc_err_t *err)
{
        return s->topic ? lc_hub_topic_read_to_end(s->topic, READ_MS, err) : 0;
}

static int get(lc_offset_store_t *base, const char *connector, const char *partition, lc_buf_t *out,
               lc_err_t *err)
{
        store_t *s = (store_t *)base;
        lc_buf_t id = LC_BUF_SURE;
        variant_t *v;
        int rc = -1;

        if (read_to_end(s, err) < 0 || id_of(&id, connector, partition, err) < 0)
                goto done;
        pthread_mutex_lock(&s->lock);
        v = living(find(s, &id));
        if (v)
                lc_buf_adds(out, v->offset);
        rc = v ? 1 : 0;
        pthread_mutex_unlock(&s->lock);
done:
        lc_buf_free(&id);
        return rc;
}

typedef struct listed {
        char *partition, *offset;
} listed_t;

static int list(lc_offset_store_t *base, const char *connector,
                void (*fn)(void *arg, const char *partition, const char *offset), void *arg, lc_err_t *err)
{
        store_t *s = (store_t *)base;
        size_t len = strlen(connector) + 1, n = 0;
        listed_t *all = NULL;
        entry_t *e, *next;

        if (read_to_end(s, err) < 0)
                return -1;
        pthread_mutex_lock(&s->lock);
        all = lc_calloc(HASH_COUNT(s->entries), sizeof(*all));
        HASH_ITER(hh, s->entries, e, next)
        {
                variant_t *v = e->id_len > len && !memcmp(e->id, connector, len) ? living(e) : NULL;
                if (v) {
                        all[n].partition = lc_strdup(v->partition);
                        all[n++].offset = lc_strdup(v->offset);
                }
        }
        pthread_mutex_unlock(&s->lock);
        for (size_t i = 0; i < n; i++) {
                fn(arg, all[i].partition, all[i].offset);
                free(all[i].partition);
                free(all[i].offset);
        }
        free(all);
        return 0;
}

/* One set: shared by its records. */
typedef struct setting {
        int left; /* atomic */
        pthread_mutex_t lock;
        lc_err_t err;
        lc_offset_done_fn *done;
        void *arg;
} setting_t;

static void one_less(setting_t *w)
{
        if (__atomic_sub_fetch(&w->left, 1, __ATOMIC_ACQ_REL) > 0)
                return;
        LC_FAULT("offsets.after_ack");
        if (w->done)
                w->done(w->arg, w->err.kind ? &w->err : NULL);
        pthread_mutex_destroy(&w->lock);
        free(w);
}

static void keep_error(setting_t *w, const lc_err_t *err)
{
        pthread_mutex_lock(&w->lock);
        if (!w->err.kind)
                w->err = *err;
        pthread_mutex_unlock(&w->lock);
}

static void acked(void *arg, const lc_err_t *err, int32_t partition, int64_t offset)
{
        setting_t *w = arg;

        (void)partition;
        (void)offset;
        if (err)
                keep_error(w, err);
        one_less(w);
}

static void send(store_t *s, setting_t *w, const char *key, size_t key_len, int32_t partition,
                 const char *offset)
{
        lc_hub_out_t out = {.key = key,
                            .key_len = key_len,
                            .value = offset,
                            .value_len = offset ? strlen(offset) : 0,
                            .partition = partition};

        __atomic_add_fetch(&w->left, 1, __ATOMIC_RELAXED);
        lc_hub_topic_send(s->topic, &out, acked, w);
}

/* ["connector",{canonical}] */
static void make_key(lc_buf_t *key, const char *connector, const lc_buf_t *id)
{
        size_t skip = strlen(connector) + 1;

        lc_buf_addc(key, '[');
        lc_json_write_string(key, connector, skip - 1);
        lc_buf_addc(key, ',');
        lc_buf_add(key, id->p + skip, id->len - skip);
        lc_buf_addc(key, ']');
}

typedef struct target {
        char *key;
        size_t key_len;
        int32_t partition;
} target_t;

/* Which keys to write for one entry: copies, so that sending needs no lock. */
static size_t targets_of(store_t *s, const char *connector, const lc_buf_t *id, bool removal, target_t **out)
{
        size_t n = 0, cap;
        lc_buf_t key = LC_BUF_SURE;
        entry_t *e;
        variant_t *v;

        pthread_mutex_lock(&s->lock);
        e = find(s, id);
        cap = e ? e->n + 1 : 1;
        *out = lc_calloc(cap, sizeof(**out));
        for (size_t i = 0; removal && e && i < e->n; i++)
                if (e->v[i].offset)
                        (*out)[n++] = (target_t){lc_strndup(e->v[i].key, e->v[i].key_len), e->v[i].key_len,
                                                 e->v[i].kpartition};
        v = n ? NULL : newest(e);
        if (v)
                (*out)[n++] = (target_t){lc_strndup(v->key, v->key_len), v->key_len, v->kpartition};
        pthread_mutex_unlock(&s->lock);
        if (!n) {
                make_key(&key, connector, id);
                (*out)[0].key_len = key.len;
                (*out)[0].key = lc_buf_take(&key, NULL);
                (*out)[0].partition = -1;
                n = 1;
        }
        return n;
}

static void set(lc_offset_store_t *base, const char *connector, const lc_offset_entry_t *entries, size_t n,
                lc_offset_done_fn *done, void *arg)
{
        store_t *s = (store_t *)base;
        setting_t *w = lc_calloc(1, sizeof(*w));

        w->left = 1; /* ours, until all are sent */
        w->done = done;
        w->arg = arg;
        pthread_mutex_init(&w->lock, NULL);
        LC_FAULT("offsets.before_send");
        for (size_t i = 0; i < n; i++) {
                lc_buf_t id = LC_BUF_SURE;
                target_t *targets = NULL;
                size_t count = 0;
                lc_err_t err;

                lc_err_clear(&err);
                if (id_of(&id, connector, entries[i].partition, &err) < 0)
                        keep_error(w, &err);
                else
                        count = targets_of(s, connector, &id, !entries[i].offset, &targets);
                for (size_t k = 0; k < count; k++) {
                        if (targets[k].key)
                                send(s, w, targets[k].key, targets[k].key_len, targets[k].partition,
                                     entries[i].offset);
                        free(targets[k].key);
                }
                free(targets);
                lc_buf_free(&id);
        }
        one_less(w);
}

static int records(lc_offset_store_t *base, const char *connector, const lc_offset_entry_t *entries, size_t n,
                   lc_offset_record_fn *fn, void *arg, lc_err_t *err)
{
        store_t *s = (store_t *)base;
        int rc = 0;

        for (size_t i = 0; i < n && !rc; i++) {
                lc_buf_t id = LC_BUF_SURE;
                target_t *targets = NULL;
                size_t count = 0;

                rc = id_of(&id, connector, entries[i].partition, err);
                if (!rc)
                        count = targets_of(s, connector, &id, !entries[i].offset, &targets);
                for (size_t k = 0; k < count; k++) {
                        if (!rc)
                                rc = fn(arg, targets[k].key, targets[k].key_len, targets[k].partition,
                                        entries[i].offset, err);
                        free(targets[k].key);
                }
                free(targets);
                lc_buf_free(&id);
        }
        return rc;
}

static void stop(lc_offset_store_t *base)
{
        store_t *s = (store_t *)base;
        entry_t *e, *next;

        if (s->topic) {
                lc_hub_topic_flush(s->topic, STOP_MS);
                lc_hub_topic_detach(s->topic);
        }
        HASH_ITER(hh, s->entries, e, next)
        {
                HASH_DEL(s->entries, e);
                for (size_t i = 0; i < e->n; i++) {
                        free(e->v[i].key);
                        free(e->v[i].partition);
                        free(e->v[i].offset);
                }
                free(e->v);
                free(e->id);
                free(e);
        }
        pthread_mutex_destroy(&s->lock);
        free(s->name);
        free(s);
}

static const lc_offset_store_ops_t ops = {start, get, list, set, stop, records};

lc_offset_store_t *lc_offset_store_kafka_new(lc_topic_hub_t *hub, const lc_hub_topic_conf_t *conf)
{
        store_t *s = lc_calloc(1, sizeof(*s));
        lc_hub_topic_conf_t c = *conf;

        s->base.ops = &ops;
        pthread_mutex_init(&s->lock, NULL);
        s->name = lc_strdup(conf->name);
        c.write_ms = 0;
        c.on_record = on_record;
        c.arg = s;
        s->topic = hub ? lc_topic_hub_add(hub, &c) : NULL;
        return &s->base;
}

void lc_offset_store_kafka_apply(lc_offset_store_t *base, const lc_hub_record_t *r)
{
        on_record(base, r);
}
