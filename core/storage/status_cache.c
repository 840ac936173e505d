/* status_cache.c - see status_cache.h. No locks: the owner has one. spec/unit/status_store_spec.lua */
#include "storage/status_cache.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "convert/json.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry { /* key: the record's */
        char *key, *connector;
        int task;   /* -1: the connector */
        bool known; /* a status was read */
        lc_status_t status;
        uint64_t id, sequence;
        UT_hash_handle hh;
} entry_t;

typedef struct used { /* topic in use */
        char *key, *connector, *topic;
        bool known, on_its_way;
        UT_hash_handle hh;
} used_t;

struct lc_status_cache {
        char *topic;
        entry_t *entries;
        used_t *topics;
        uint64_t ids;
        int32_t generation; /* the last one this worker wrote */
};

/* ---- keys and values ---- */

void lc_status_key(lc_buf_t *key, const char *connector, int task)
{
        if (task < 0)
                lc_buf_printf(key, "status-connector-%s", connector);
        else
                lc_buf_printf(key, "status-task-%s-%d", connector, task);
}

void lc_status_topic_key(lc_buf_t *key, const char *connector, const char *topic)
{
        lc_buf_printf(key, "status-topic-%s:connector-%s", topic, connector);
}

static void add_string(lc_buf_t *b, const char *s)
{
        if (s)
                lc_json_write_string(b, s, strlen(s));
        else
                lc_buf_adds(b, "null");
}

void lc_status_value(lc_buf_t *b, const lc_status_t *st)
{
        lc_buf_printf(b, "{\"state\":\"%s\",\"trace\":", lc_state_name(st->state));
        add_string(b, st->trace);
        lc_buf_adds(b, ",\"worker_id\":");
        add_string(b, st->worker_id);
        lc_buf_printf(b, ",\"generation\":%d,\"version\":", (int)st->generation);
        add_string(b, st->version);
        if (st->restart) /* a Java worker skips what it does not know */
                lc_buf_printf(b, ",\"restart\":%s", st->restart);
        lc_buf_adds(b, "}");
}

void lc_status_topic_value(lc_buf_t *b, const char *connector, int task, const char *topic, int64_t now_ms)
{
        lc_buf_adds(b, "{\"topic\":{\"name\":");
        add_string(b, topic);
        lc_buf_adds(b, ",\"connector\":");
        add_string(b, connector);
        lc_buf_printf(b, ",\"task\":%d,\"discoverTimestamp\":%lld}}", task, (long long)now_ms);
}

/* ---- entries ---- */

static entry_t *find(lc_status_cache_t *c, const char *connector, int task)
{
        lc_buf_t key = LC_BUF_SURE;
        entry_t *e;

        lc_status_key(&key, connector, task);
        HASH_FIND(hh, c->entries, key.p, key.len, e);
        lc_buf_free(&key);
        return e;
}

static entry_t *get_or_add(lc_status_cache_t *c, const char *connector, int task)
{
        entry_t *e = find(c, connector, task);
        lc_buf_t key = LC_BUF_SURE;

        if (e)
                return e;
        e = lc_calloc(1, sizeof(*e));
        lc_status_key(&key, connector, task);
        e->key = lc_buf_take(&key, NULL);
        e->connector = lc_strdup(connector);
        e->task = task;
        e->id = ++c->ids;
        HASH_ADD_KEYPTR(hh, c->entries, e->key, strlen(e->key), e);
        return e;
}

static void remove_entry(lc_status_cache_t *c, entry_t *e)
{
        HASH_DEL(c->entries, e);
        lc_status_clear(&e->status);
        free(e->key);
        free(e->connector);
        free(e);
}

static used_t *find_topic(lc_status_cache_t *c, const char *connector, const char *topic, bool add)
{
        lc_buf_t key = LC_BUF_SURE;
        used_t *u;

        lc_status_topic_key(&key, connector, topic);
        HASH_FIND(hh, c->topics, key.p, key.len, u);
        if (!u && add) {
                u = lc_calloc(1, sizeof(*u));
                u->connector = lc_strdup(connector);
                u->topic = lc_strdup(topic);
                u->key = lc_buf_take(&key, NULL);
                HASH_ADD_KEYPTR(hh, c->topics, u->key, strlen(u->key), u);
        }
        lc_buf_free(&key);
        return u;
}

static void remove_topic(lc_status_cache_t *c, used_t *u)
{
        HASH_DEL(c->topics, u);
        free(u->key);
        free(u->connector);
        free(u->topic);
        free(u);
}

/* ---- records ---- */

typedef struct rec {
        lc_status_cache_t *c;
        const char *key, *value;
        size_t value_len;
        int32_t partition;
        int64_t offset;
} rec_t;

static void skip(const rec_t *r, const char *why, const char *more)
{
        lc_log(LC_ERROR, "STATUS", "%s%s (record at %s-%d offset %lld skipped)", why, more, r->c->topic,
               (int)r->partition, (long long)r->offset);
}

static char *string_of(const lc_json_t *object, const char *name)
{
        const lc_json_t *v = lc_json_get(object, name);

        return v && v->type == LC_J_STRING ? lc_strndup(v->s, v->len) : NULL;
}

static char *object_of(const lc_json_t *object, const char *name)
{
        const lc_json_t *v = lc_json_get(object, name);
        lc_buf_t text = LC_BUF_SURE;

        if (!v || v->type != LC_J_OBJECT)
                return NULL;
        lc_json_write(&text, v);
        return lc_buf_take(&text, NULL);
}

/* 0, or -1 after a line in the log. */
static int parse_status(const rec_t *r, const char *what, lc_status_t *out)
{
        lc_json_t *doc = NULL;
        const lc_json_t *generation;
        char *state = NULL;
        lc_err_t err;
        bool exact = false;
        int rc = -1, k;

        memset(out, 0, sizeof(*out));
        lc_err_clear(&err);
        if (lc_json_parse_sure(r->value, r->value_len, 0, &doc, &err) < 0) {
                skip(r, what, err.msg);
                return -1;
        }
        if (!doc || doc->type != LC_J_OBJECT) {
                skip(r, what, "expected a Map");
                goto done;
        }
        state = string_of(doc, "state");
        for (k = LC_UNASSIGNED; state && k <= LC_DESTROYED; k++)
                if (!strcmp(lc_state_name((lc_state_t)k), state))
                        break;
        generation = lc_json_get(doc, "generation");
        if (!state || k > LC_DESTROYED) {
                skip(r, what, "no such state");
                goto done;
        }
        if (!generation || generation->type != LC_J_NUMBER) {
                skip(r, what, "the generation is no number");
                goto done;
        }
        out->state = (lc_state_t)k;
        out->generation = (int32_t)lc_json_int64(generation, &exact);
        out->worker_id = string_of(doc, "worker_id");
        out->trace = string_of(doc, "trace");
        out->version = string_of(doc, "version");
        out->restart = object_of(doc, "restart");
        rc = 0;
done:
        free(state);
        lc_json_free(doc);
        return rc;
}

static void on_connector(const rec_t *r, const char *name)
{
        lc_status_cache_t *c = r->c;
        lc_status_t st;
        entry_t *e, *next;

        if (!*name) {
                skip(r, "Discarding record with invalid connector status key ", r->key);
                return;
        }
        if (!r->value) {
                HASH_ITER(hh, c->entries, e, next)
                if (!strcmp(e->connector, name))
                        remove_entry(c, e);
                return;
        }
        if (parse_status(r, "Failed to deserialize connector status: ", &st) < 0)
                return;
        e = get_or_add(c, name, -1);
        lc_status_clear(&e->status);
        st.task = -1;
        e->status = st;
        e->known = true;
}

static void on_task(const rec_t *r, const char *rest)
{
        const char *dash = strrchr(rest, '-');
        lc_status_t st;
        char *name, *end = NULL;
        long id = -1;
        entry_t *e;

        errno = 0;
        if (dash && dash > rest && dash[1] >= '0' && dash[1] <= '9')
                id = strtol(dash + 1, &end, 10);
        if (id < 0 || id > INT_MAX || errno || *end) {
                skip(r, "Failed to parse task id from the status key ", r->key);
                return;
        }
        name = lc_strndup(rest, (size_t)(dash - rest));
        if (!r->value) {
                e = find(r->c, name, (int)id);
                if (e)
                        remove_entry(r->c, e);
        } else if (parse_status(r, "Failed to deserialize task status: ", &st) == 0) {
                e = get_or_add(r->c, name, (int)id);
                if (st.state == LC_UNASSIGNED && e->known && e->status.state == LC_RUNNING &&
                    e->status.generation >= st.generation) {
                        /* late word of the owner before */
                        lc_log(LC_DEBUG, "STATUS",
                               "Ignoring UNASSIGNED of task %s-%ld in generation %d: it runs in "
                               "generation %d",
                               name, id, (int)st.generation, (int)e->status.generation);
                        lc_status_clear(&st);
                } else {
                        lc_status_clear(&e->status);
                        st.task = (int)id;
                        e->status = st;
                        e->known = true;
                }
        }
        free(name);
}

static void on_topic(const rec_t *r, const char *rest)
{
        static const char mark[] = "connector-";
        const char *colon = strchr(rest, ':'), *connector;
        lc_json_t *doc = NULL;
        lc_err_t err;
        used_t *u;
        char *topic;

        if (!colon || colon == rest || strncmp(colon + 1, mark, sizeof(mark) - 1) != 0 ||
            !colon[sizeof(mark)]) {
                skip(r, "Discarding record with invalid topic status key ", r->key);
                return;
        }
        connector = colon + sizeof(mark);
        topic = lc_strndup(rest, (size_t)(colon - rest));
        lc_err_clear(&err);
        if (!r->value) {
                u = find_topic(r->c, connector, topic, false);
                if (u)
                        remove_topic(r->c, u);
        } else if (lc_json_parse_sure(r->value, r->value_len, 0, &doc, &err) < 0) {
                skip(r, "Failed to deserialize topic status: ", err.msg);
        } else if (!doc || doc->type != LC_J_OBJECT || !lc_json_get(doc, "topic") ||
                   lc_json_get(doc, "topic")->type != LC_J_OBJECT) {
                skip(r, "Failed to deserialize topic status: ", "expected a Map with topic");
        } else {
                u = find_topic(r->c, connector, topic, true);
                u->known = true;
                u->on_its_way = false;
        }
        lc_json_free(doc);
        free(topic);
}

void lc_status_cache_apply(lc_status_cache_t *c, const char *key, size_t key_len, const char *value,
                           size_t value_len, int32_t partition, int64_t offset)
{
        rec_t r = {.c = c, .value = value, .value_len = value_len, .partition = partition, .offset = offset};
        char *name;

        r.key = "null";
        if (!key || memchr(key, '\0', key_len)) {
                skip(&r, "Discarding record with invalid key ", key ? "(with NUL)" : "null");
                return;
        }
        name = lc_strndup(key, key_len);
        r.key = name;
        if (!strncmp(name, "status-connector-", 17))
                on_connector(&r, name + 17);
        else if (!strncmp(name, "status-task-", 12))
                on_task(&r, name + 12);
        else if (!strncmp(name, "status-topic-", 13))
                on_topic(&r, name + 13);
        else
                skip(&r, "Discarding record with invalid key ", name);
        free(name);
}

/* ---- asking ---- */

static void copy(const entry_t *e, lc_status_t *out)
{
        *out = e->status;
        out->task = e->task;
        out->worker_id = lc_strdup(e->status.worker_id);
        out->trace = lc_strdup(e->status.trace);
        out->version = lc_strdup(e->status.version);
        out->restart = lc_strdup(e->status.restart);
}

bool lc_status_cache_get(lc_status_cache_t *c, const char *connector, int task, lc_status_t *out)
{
        entry_t *e = find(c, connector, task < 0 ? -1 : task);

        if (!e || !e->known)
                return false;
        copy(e, out);
        return true;
}

static int by_task(const void *a, const void *b)
{
        const lc_status_t *x = a, *y = b;

        return x->task < y->task ? -1 : x->task > y->task;
}

size_t lc_status_cache_tasks(lc_status_cache_t *c, const char *connector, lc_status_t **out)
{
        entry_t *e, *next;
        size_t n = 0;

        *out = NULL;
        HASH_ITER(hh, c->entries, e, next)
        {
                if (!e->known || e->task < 0 || strcmp(e->connector, connector) != 0)
                        continue;
                *out = lc_realloc(*out, (n + 1) * sizeof(**out));
                copy(e, &(*out)[n++]);
        }
        if (n)
                qsort(*out, n, sizeof(**out), by_task);
        return n;
}

void lc_status_cache_connectors(lc_status_cache_t *c, lc_strv_t *out)
{
        entry_t *e, *next;
        lc_strv_t all = {0};

        HASH_ITER(hh, c->entries, e, next)
        if (e->known)
                lc_strv_add(&all, e->connector);
        lc_strv_sort(&all);
        for (size_t i = 0; i < all.n; i++)
                if (!i || strcmp(all.v[i - 1], all.v[i]) != 0)
                        lc_strv_add(out, all.v[i]);
        lc_strv_free(&all);
}

void lc_status_cache_topics(lc_status_cache_t *c, const char *connector, lc_strv_t *out)
{
        used_t *u, *next;

        HASH_ITER(hh, c->topics, u, next)
        if (u->known && !strcmp(u->connector, connector))
                lc_strv_add(out, u->topic);
        lc_strv_sort(out);
}

bool lc_status_cache_has_topic(lc_status_cache_t *c, const char *connector, const char *topic)
{
        used_t *u = find_topic(c, connector, topic, false);

        return u && (u->known || u->on_its_way);
}

void lc_status_cache_topic_sent(lc_status_cache_t *c, const char *connector, const char *topic, bool sent)
{
        used_t *u = find_topic(c, connector, topic, sent);

        if (u)
                u->on_its_way = sent;
}

/* ---- writing ---- */

static bool safe_over(const entry_t *e, const lc_status_t *st)
{
        return !e->known ||
               (e->status.worker_id && st->worker_id && !strcmp(e->status.worker_id, st->worker_id)) ||
               e->status.generation <= st->generation;
}

bool lc_status_cache_may_write(lc_status_cache_t *c, const char *connector, const lc_status_t *st, bool safe,
                               lc_status_ticket_t *ticket)
{
        entry_t *e = get_or_add(c, connector, st->task < 0 ? -1 : st->task);

        c->generation = st->generation;
        if (safe && !safe_over(e, st))
                return false;
        ticket->entry = e->id;
        ticket->sequence = ++e->sequence;
        return true;
}

bool lc_status_cache_may_retry(lc_status_cache_t *c, const char *connector, const lc_status_t *st, bool safe,
                               const lc_status_ticket_t *ticket)
{
        entry_t *e = find(c, connector, st->task < 0 ? -1 : st->task);

        if (!e || e->id != ticket->entry || st->generation != c->generation)
                return false;
        return !safe || (e->sequence == ticket->sequence && safe_over(e, st));
}

lc_status_cache_t *lc_status_cache_new(const char *topic)
{
        lc_status_cache_t *c = lc_calloc(1, sizeof(*c));

        c->topic = lc_strdup(topic);
        return c;
}

void lc_status_cache_free(lc_status_cache_t *c)
{
        entry_t *e, *enext;
        used_t *u, *unext;

        if (!c)
                return;
        HASH_ITER(hh, c->entries, e, enext)
        remove_entry(c, e);
        HASH_ITER(hh, c->topics, u, unext)
        remove_topic(c, u);
        free(c->topic);
        free(c);
}
