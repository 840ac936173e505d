/* config_state.c - see config_state.h. No locks: the owner has one. spec/unit/config_store_spec.lua */
#include "storage/config_state.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"
#include "convert/json.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct task {
        int id;
        lc_props_t *config;
} task_t;
typedef struct task_set { /* sparse: ids come from the topic */
        task_t *v;
        size_t n;
} task_set_t;

typedef struct conn {
        char *name;
        lc_props_t *config, *applied;
        lc_target_state_t target;
        task_set_t tasks, deferred;
        int count; /* of the last commit */
        int generation, task_count_record;
        bool inconsistent, pending_fencing;
        UT_hash_handle hh;
} conn_t;

struct lc_config_state {
        char *topic;
        int64_t offset;
        conn_t *conns;
        char *session_key, *session_key_algorithm;
        int64_t session_key_created;
        lc_config_snapshot_t *cached;
};

/* The record being applied. */
typedef struct rec {
        lc_config_state_t *s;
        const char *key;
        const lc_json_t *value; /* NULL: tombstone */
        int32_t partition;
        int64_t offset;
        lc_config_change_t *change;
} rec_t;

static void skip(const rec_t *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void skip(const rec_t *r, const char *fmt, ...)
{
        lc_buf_t b = LC_BUF_SURE;
        va_list ap;

        va_start(ap, fmt);
        lc_buf_vprintf(&b, fmt, ap);
        va_end(ap);
        lc_log(LC_ERROR, "CONFIG", "%s (record at %s-%d offset %lld skipped)", b.p ? b.p : "", r->s->topic,
               (int)r->partition, (long long)r->offset);
        lc_buf_free(&b);
}

/* ---- sets of tasks ---- */

static lc_props_t *set_get(const task_set_t *s, int id)
{
        for (size_t i = 0; i < s->n; i++)
                if (s->v[i].id == id)
                        return s->v[i].config;
        return NULL;
}

static void set_put(task_set_t *s, int id, lc_props_t *config)
{
        for (size_t i = 0; i < s->n; i++)
                if (s->v[i].id == id) {
                        lc_props_free(s->v[i].config);
                        s->v[i].config = config;
                        return;
                }
        s->v = lc_realloc(s->v, (s->n + 1) * sizeof(*s->v));
        s->v[s->n++] = (task_t){id, config};
}

static void set_clear(task_set_t *s)
{
        for (size_t i = 0; i < s->n; i++)
                lc_props_free(s->v[i].config);
        free(s->v);
        memset(s, 0, sizeof(*s));
}

/* 0..n-1 all there; more is fine: a smaller set may follow a larger one that compaction spared. */
static bool set_complete(const task_set_t *s, int n)
{
        if (n < 0 || s->n < (size_t)n)
                return false;
        for (int i = 0; i < n; i++)
                if (!set_get(s, i))
                        return false;
        return true;
}

static void set_move(task_set_t *from, task_set_t *to)
{
        for (size_t i = 0; i < from->n; i++)
                set_put(to, from->v[i].id, from->v[i].config);
        free(from->v);
        memset(from, 0, sizeof(*from));
}

/* ---- connectors ---- */

static conn_t *find(lc_config_state_t *s, const char *name)
{
        conn_t *c;

        HASH_FIND_STR(s->conns, name, c);
        return c;
}

static conn_t *get(lc_config_state_t *s, const char *name)
{
        conn_t *c = find(s, name);

        if (c)
                return c;
        c = lc_calloc(1, sizeof(*c));
        c->name = lc_strdup(name);
        c->target = LC_TARGET_NONE;
        c->generation = c->task_count_record = -1;
        HASH_ADD_KEYPTR(hh, s->conns, c->name, strlen(c->name), c);
        return c;
}

static void drop_data(conn_t *c)
{
        lc_props_free(c->config);
        lc_props_free(c->applied);
        c->config = c->applied = NULL;
        set_clear(&c->tasks);
        set_clear(&c->deferred);
        c->count = 0;
}

static void changed(lc_config_state_t *s)
{
        lc_config_snapshot_unref(s->cached);
        s->cached = NULL;
}

static void say(const rec_t *r, lc_change_kind_t kind, const char *name)
{
        r->change->kind = kind;
        r->change->name = lc_strdup(name);
}

/* ---- values ---- */

static const char *type_name(const lc_json_t *v)
{
        static const char *const names[] = {"null", "Boolean", "Boolean", "number", "String", "List", "Map"};

        return v ? names[v->type] : "null";
}

/* Java keeps what it reads; settings that are no strings become their text. */
static lc_props_t *props_of(const lc_json_t *object)
{
        lc_props_t *p = lc_props_new();

        for (const lc_json_t *v = object->child; v; v = v->next) {
                char *key = lc_strndup(v->key, v->key_len);
                if (v->type == LC_J_NULL) {
                        lc_props_set(p, key, NULL);
                } else if (v->type == LC_J_STRING) {
                        char *text = lc_strndup(v->s, v->len);
                        lc_props_set(p, key, text);
                        free(text);
                } else {
                        lc_buf_t b = LC_BUF_SURE;
                        lc_json_write(&b, v);
                        lc_props_set(p, key, b.p ? b.p : "");
                        lc_buf_free(&b);
                }
                free(key);
        }
        return p;
}

static char *string_of(const lc_json_t *object, const char *name)
{
        const lc_json_t *v = lc_json_get(object, name);

        return v && v->type == LC_J_STRING ? lc_strndup(v->s, v->len) : NULL;
}

/* A whole number that fits an int. */
static bool int_of(const lc_json_t *object, const char *name, int *out)
{
        const lc_json_t *v = lc_json_get(object, name);
        bool exact = false;
        int64_t n;

        if (!v || v->type != LC_J_NUMBER || !v->integral)
                return false;
        n = lc_json_int64(v, &exact);
        *out = (int)n;
        return exact && n >= INT_MIN && n <= INT_MAX;
}

/* ---- the kinds of records ---- */

static void on_target(rec_t *r, const char *name)
{
        conn_t *c = find(r->s, name);
        lc_target_state_t before = c ? c->target : LC_TARGET_NONE, now = LC_TARGET_NONE;
        char *text;

        if (!r->value) {
                /* the removal of the connector itself tells the herder */
                if (c)
                        c->target = c->config ? LC_TARGET_STARTED : LC_TARGET_NONE;
                changed(r->s);
                return;
        }
        if (r->value->type != LC_J_OBJECT) {
                skip(r, "Ignoring target state for connector '%s' because it is in the wrong format: %s",
                     name, type_name(r->value));
                return;
        }
        text = string_of(r->value, "state.v2");
        if (!text && lc_json_get(r->value, "state.v2"))
                lc_log(LC_ERROR, "CONFIG",
                       "Invalid data for target state for connector '%s': 'state.v2' field should "
                       "be a String but is %s",
                       name, type_name(lc_json_get(r->value, "state.v2")));
        if (!text)
                text = string_of(r->value, "state"); /* written by an older worker */
        if (!text) {
                skip(r,
                     "Invalid data for target state for connector '%s': 'state' field should be a String but "
                     "is %s",
                     name, type_name(lc_json_get(r->value, "state")));
                return;
        }
        for (int t = LC_TARGET_STARTED; t <= LC_TARGET_STOPPED; t++)
                if (!strcmp(lc_target_state_name((lc_target_state_t)t), text))
                        now = (lc_target_state_t)t;
        if (now == LC_TARGET_NONE) {
                skip(r, "Invalid target state for connector '%s': %s", name, text);
        } else {
                c = get(r->s, name);
                c->target = now;
                changed(r->s);
                if (now != before && c->config)
                        say(r, LC_CHANGE_TARGET, name);
        }
        free(text);
}

static void on_connector(rec_t *r, const char *name)
{
        const lc_json_t *props;
        conn_t *c;

        if (!r->value) {
                c = find(r->s, name);
                if (c)
                        drop_data(c);
                changed(r->s);
                say(r, LC_CHANGE_REMOVED, name);
                return;
        }
        if (r->value->type != LC_J_OBJECT) {
                skip(r, "Ignoring configuration for connector '%s' because it is in the wrong format: %s",
                     name, type_name(r->value));
                return;
        }
        props = lc_json_get(r->value, "properties");
        if (!props || props->type != LC_J_OBJECT) {
                skip(r,
                     "Invalid data for config for connector '%s': 'properties' field should be a Map but is "
                     "%s",
                     name, type_name(props));
                return;
        }
        c = get(r->s, name);
        lc_props_free(c->config);
        c->config = props_of(props);
        if (c->target == LC_TARGET_NONE)
                c->target = LC_TARGET_STARTED;
        changed(r->s);
        say(r, LC_CHANGE_CONNECTOR, name);
}

static void on_task(rec_t *r, const char *rest)
{
        const char *dash = strrchr(rest, '-');
        const lc_json_t *props;
        char *name, *end = NULL;
        long id = -1;

        errno = 0;
        if (dash && dash > rest && dash[1] >= '0' && dash[1] <= '9')
                id = strtol(dash + 1, &end, 10);
        if (id < 0 || id > INT_MAX || errno || *end) {
                skip(r, "Ignoring task configuration because %s couldn't be parsed as a task config key",
                     r->key);
                return;
        }
        name = lc_strndup(rest, (size_t)(dash - rest));
        props = r->value && r->value->type == LC_J_OBJECT ? lc_json_get(r->value, "properties") : NULL;
        if (!r->value)
                skip(r, "Ignoring task configuration for task %s-%ld because it is unexpectedly null", name,
                     id);
        else if (r->value->type != LC_J_OBJECT)
                skip(r,
                     "Ignoring task configuration for task %s-%ld because the value is not a Map but is %s",
                     name, id, type_name(r->value));
        else if (!props || props->type != LC_J_OBJECT)
                skip(r, "Invalid data for config of task %s-%ld 'properties' field should be a Map but is %s",
                     name, id, type_name(props));
        else
                set_put(&get(r->s, name)->deferred, (int)id, props_of(props));
        free(name);
}

static void on_commit(rec_t *r, const char *name)
{
        conn_t *c = find(r->s, name);
        int n;

        if (!c || !c->config) {
                /* deleted before, and compaction has removed every trace but this */
                if (c)
                        drop_data(c);
                changed(r->s);
                lc_log(LC_DEBUG, "CONFIG",
                       "Ignoring task configs for connector %s; it appears that the connector was "
                       "deleted previously and that log compaction has since removed any trace of its "
                       "previous "
                       "configurations from the config topic",
                       name);
                return;
        }
        if (!r->value || r->value->type != LC_J_OBJECT) {
                skip(r,
                     "Ignoring connector tasks configuration commit for connector '%s' because it is in the "
                     "wrong "
                     "format: %s",
                     name, type_name(r->value));
                return;
        }
        if (!int_of(r->value, "tasks", &n) || n < 0) {
                skip(r,
                     "Invalid data for the commit of task configurations of connector '%s': 'tasks' field "
                     "should be "
                     "an Integer but is %s",
                     name, type_name(lc_json_get(r->value, "tasks")));
                return;
        }
        c->inconsistent = !set_complete(&c->deferred, n);
        if (c->inconsistent) {
                lc_log(LC_DEBUG, "CONFIG",
                       "We have an incomplete set of task configs for connector '%s' probably due "
                       "to compaction. So we are not doing anything with the new configuration.",
                       name);
        } else {
                c->generation++;
                set_move(&c->deferred, &c->tasks);
                lc_props_free(c->applied);
                c->applied = lc_props_copy(c->config);
        }
        set_clear(&c->deferred);
        c->count = n;
        /* a new set needs a new round of fencing: the task count record counts for the old one only */
        c->pending_fencing = true;
        changed(r->s);
        say(r, LC_CHANGE_TASKS, name);
        r->change->ntasks = n;
}

static bool flag_of(const rec_t *r, const char *name, const char *field)
{
        const lc_json_t *v = lc_json_get(r->value, field);

        if (v && (v->type == LC_J_TRUE || v->type == LC_J_FALSE))
                return v->type == LC_J_TRUE;
        lc_log(LC_WARN, "CONFIG",
               "Invalid data for restart request '%s' field should be a Boolean but is %s, defaulting "
               "to false (connector '%s')",
               field, type_name(v), name);
        return false;
}

static void on_restart(rec_t *r, const char *name)
{
        if (!r->value || r->value->type != LC_J_OBJECT) {
                skip(r,
                     "Ignoring restart request for connector '%s' because the value is not a Map but is %s",
                     name, type_name(r->value));
                return;
        }
        say(r, LC_CHANGE_RESTART, name);
        r->change->only_failed = flag_of(r, name, "only-failed");
        r->change->include_tasks = flag_of(r, name, "include-tasks");
}

static void on_fencing(rec_t *r, const char *name)
{
        int n;

        if (!r->value || r->value->type != LC_J_OBJECT || !int_of(r->value, "task-count", &n)) {
                skip(r, "Ignoring task count record for connector '%s' because it is in the wrong format: %s",
                     name, type_name(r->value));
                return;
        }
        get(r->s, name)->task_count_record = n;
        get(r->s, name)->pending_fencing = false;
        changed(r->s);
}

static void on_session_key(rec_t *r)
{
        const lc_json_t *created;
        char *key, *algorithm;
        bool exact;

        if (!r->value || r->value->type != LC_J_OBJECT) {
                skip(r, "Ignoring session key because the value is not a Map but is %s", type_name(r->value));
                return;
        }
        key = string_of(r->value, "key");
        algorithm = string_of(r->value, "algorithm");
        created = lc_json_get(r->value, "creation-timestamp");
        if (!key || !algorithm || !created || created->type != LC_J_NUMBER) {
                skip(r, "Invalid data for session key: 'key' and 'algorithm' should be Strings, "
                        "'creation-timestamp' "
                        "a Long");
                free(key);
                free(algorithm);
                return;
        }
        free(r->s->session_key);
        free(r->s->session_key_algorithm);
        r->s->session_key = key;
        r->s->session_key_algorithm = algorithm;
        r->s->session_key_created = lc_json_int64(created, &exact);
        changed(r->s);
        r->change->kind = LC_CHANGE_SESSION_KEY;
}

static void on_logger(rec_t *r, const char *name)
{
        char *level = r->value && r->value->type == LC_J_OBJECT ? string_of(r->value, "level") : NULL;

        if (!level) {
                skip(r, "Ignoring logging level for namespace '%s' because it is in the wrong format: %s",
                     name, type_name(r->value));
                return;
        }
        say(r, LC_CHANGE_LOGGER, name);
        r->change->level = level;
}

static const struct {
        const char *prefix;
        void (*apply)(rec_t *r, const char *rest);
} kinds[] = {
        /* the order of the tests counts */
        {"target-state-", on_target}, {"connector-", on_connector},       {"task-", on_task},
        {"commit-", on_commit},       {"restart-connector-", on_restart}, {"tasks-fencing-", on_fencing},
};

static void dispatch(rec_t *r)
{
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
                size_t n = strlen(kinds[i].prefix);
                if (!strncmp(r->key, kinds[i].prefix, n)) {
                        kinds[i].apply(r, r->key + n);
                        return;
                }
        }
        if (!strcmp(r->key, "session-key"))
                on_session_key(r);
        else if (!strncmp(r->key, "logger-cluster-", 15))
                on_logger(r, r->key + 15);
        else
                skip(r, "Discarding config update record with invalid key: %s", r->key);
}

void lc_config_state_apply(lc_config_state_t *s, const char *key, size_t key_len, const char *value,
                           size_t value_len, int32_t partition, int64_t offset, lc_config_change_t *change)
{
        rec_t r = {.s = s, .partition = partition, .offset = offset, .change = change};
        lc_json_t *doc = NULL;
        lc_err_t err;
        char *name;

        memset(change, 0, sizeof(*change));
        lc_err_clear(&err);
        if (value && lc_json_parse_sure(value, value_len, 0, &doc, &err) < 0) {
                skip(&r, "Failed to convert config data to Kafka Connect format: %s", err.msg);
                return;
        }
        if (value && !doc) { /* blank, which is no tombstone */
                skip(&r, "Failed to convert config data to Kafka Connect format: Unknown schema type: null");
                return;
        }
        s->offset = offset + 1;
        if (s->cached) /* only the offset moved: copied on the next demand as well */
                changed(s);
        if (!key || memchr(key, '\0', key_len)) {
                skip(&r, "Discarding config update record with invalid key: %s", key ? key : "null");
        } else {
                name = lc_strndup(key, key_len);
                r.key = name;
                r.value = doc && doc->type != LC_J_NULL ? doc : NULL;
                dispatch(&r);
                free(name);
        }
        lc_json_free(doc);
}

/* ---- making and handing out ---- */

lc_config_state_t *lc_config_state_new(const char *topic)
{
        lc_config_state_t *s = lc_calloc(1, sizeof(*s));

        s->topic = lc_strdup(topic);
        s->offset = -1;
        return s;
}

void lc_config_state_free(lc_config_state_t *s)
{
        conn_t *c, *next;

        if (!s)
                return;
        HASH_ITER(hh, s->conns, c, next)
        {
                HASH_DEL(s->conns, c);
                drop_data(c);
                free(c->name);
                free(c);
        }
        changed(s);
        free(s->session_key);
        free(s->session_key_algorithm);
        free(s->topic);
        free(s);
}

static int by_name(const void *a, const void *b)
{
        return strcmp(((const lc_config_connector_t *)a)->name, ((const lc_config_connector_t *)b)->name);
}

static void picture(const conn_t *c, lc_config_connector_t *out)
{
        out->name = lc_strdup(c->name);
        out->config = lc_props_copy(c->config);
        out->applied = c->applied ? lc_props_copy(c->applied) : NULL;
        out->target = c->target;
        out->ntasks = c->count;
        out->generation = c->generation;
        out->task_count_record = c->task_count_record;
        out->inconsistent = c->inconsistent;
        out->pending_fencing = c->pending_fencing;
        /* an inconsistent set may claim any number: its old configs are nobody's business */
        if (c->inconsistent || !c->count)
                return;
        out->tasks = lc_calloc((size_t)c->count, sizeof(*out->tasks));
        for (int i = 0; i < c->count; i++)
                out->tasks[i] = lc_props_copy(set_get(&c->tasks, i));
}

lc_config_snapshot_t *lc_config_state_snapshot(lc_config_state_t *s)
{
        conn_t *c, *next;

        if (!s->cached) {
                lc_config_snapshot_t *snap = lc_calloc(1, sizeof(*snap));
                snap->refs = 1;
                snap->offset = s->offset;
                snap->v = lc_calloc(HASH_COUNT(s->conns), sizeof(*snap->v));
                HASH_ITER(hh, s->conns, c, next)
                if (c->config)
                        picture(c, &snap->v[snap->n++]);
                qsort(snap->v, snap->n, sizeof(*snap->v), by_name);
                snap->session_key = lc_strdup(s->session_key);
                snap->session_key_algorithm = lc_strdup(s->session_key_algorithm);
                snap->session_key_created = s->session_key_created;
                s->cached = snap;
        }
        return lc_config_snapshot_ref(s->cached);
}

void lc_config_change_clear(lc_config_change_t *c)
{
        free(c->name);
        free(c->level);
        memset(c, 0, sizeof(*c));
}

void lc_config_change_fire(const lc_config_change_t *c, const lc_config_events_t *e, void *arg)
{
        switch (c->kind) {
        case LC_CHANGE_NONE:
                break;
        case LC_CHANGE_CONNECTOR:
                e->connector_updated(arg, c->name);
                break;
        case LC_CHANGE_REMOVED:
                e->connector_removed(arg, c->name);
                break;
        case LC_CHANGE_TASKS:
                e->tasks_updated(arg, c->name, c->ntasks);
                break;
        case LC_CHANGE_TARGET:
                e->target_changed(arg, c->name);
                break;
        case LC_CHANGE_RESTART:
                e->restart_requested(arg, c->name, c->only_failed, c->include_tasks);
                break;
        case LC_CHANGE_SESSION_KEY:
                e->session_key_updated(arg);
                break;
        case LC_CHANGE_LOGGER:
                e->logger_level(arg, c->name, c->level);
                break;
        }
}
