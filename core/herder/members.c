/* members.c - see members.h. Lock: `lock`, a leaf. */
#include "herder/members.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "convert/json.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_AGAIN_MS = 1000, ASK_AGAIN_MAX_MS = 60000 };

typedef struct member {
        char *id, *url;
        bool own, known, asking;
        lc_strv_t classes;
        lc_strv_t said; /* classes whose absence is in the log */
        int64_t ask_at;
        int backoff_ms;
} member_t;

struct lc_members {
        const char *own_url;
        const lc_plugins_t *own;
        pthread_mutex_t lock;
        member_t *v;
        size_t n;
};

lc_members_t *lc_members_new(const char *own_url, const lc_plugins_t *own)
{
        lc_members_t *m = lc_calloc(1, sizeof(*m));

        m->own_url = own_url;
        m->own = own;
        pthread_mutex_init(&m->lock, NULL);
        return m;
}

static void clear(member_t *e)
{
        free(e->id);
        free(e->url);
        lc_strv_free(&e->classes);
        lc_strv_free(&e->said);
}

void lc_members_forget(lc_members_t *m)
{
        pthread_mutex_lock(&m->lock);
        for (size_t i = 0; i < m->n; i++)
                clear(&m->v[i]);
        free(m->v);
        m->v = NULL;
        m->n = 0;
        pthread_mutex_unlock(&m->lock);
}

void lc_members_free(lc_members_t *m)
{
        if (!m)
                return;
        lc_members_forget(m);
        pthread_mutex_destroy(&m->lock);
        free(m);
}

/* Under the lock. url NULL: any. */
static member_t *find(lc_members_t *m, const char *id, const char *url)
{
        for (size_t i = 0; i < m->n; i++)
                if (!strcmp(m->v[i].id, id) && (!url || !strcmp(m->v[i].url, url)))
                        return &m->v[i];
        return NULL;
}

static void say_same_url(const lc_group_member_t *members, size_t n)
{
        for (size_t i = 0; i < n; i++)
                for (size_t k = i + 1; k < n; k++)
                        if (!strcmp(members[i].url, members[k].url))
                                lc_log(LC_ERROR, "HERDER",
                                       "Two workers of the group advertise the same URL %s: members %s and "
                                       "%s. "
                                       "Requests for one of them reach the other; give each its own "
                                       "rest.advertised.host.name or rest.advertised.port",
                                       members[i].url, members[i].id, members[k].id);
}

void lc_members_set(lc_members_t *m, const lc_group_member_t *members, size_t n)
{
        member_t *v = lc_calloc(n + 1, sizeof(*v));

        say_same_url(members, n);
        pthread_mutex_lock(&m->lock);
        for (size_t i = 0; i < n; i++) {
                member_t *was = find(m, members[i].id, members[i].url);
                if (was) {
                        v[i] = *was;
                        memset(was, 0, sizeof(*was));
                        was->id = lc_strdup("");
                        was->url = lc_strdup("");
                } else {
                        v[i].id = lc_strdup(members[i].id);
                        v[i].url = lc_strdup(members[i].url);
                        v[i].own = v[i].known = !strcmp(members[i].url, m->own_url);
                }
        }
        for (size_t i = 0; i < m->n; i++)
                clear(&m->v[i]);
        free(m->v);
        m->v = v;
        m->n = n;
        pthread_mutex_unlock(&m->lock);
}

/* The names a class goes by: its own, the simple one, and that one without "Connector". */
static bool goes_by(const char *cls, const char *name)
{
        const char *simple = cls, *suffix = "Connector";
        size_t n;

        if (!strcmp(cls, name))
                return true;
        for (const char *p = cls; *p; p++)
                if (*p == '.' || *p == '$')
                        simple = p + 1;
        if (!strcmp(simple, name))
                return true;
        n = strlen(simple);
        return n > strlen(suffix) && !strcmp(simple + n - strlen(suffix), suffix) &&
               strlen(name) == n - strlen(suffix) && !strncmp(simple, name, strlen(name));
}

/* Of a raw config; NULL: it does not say (a variable, none). */
static const char *class_of(const lc_props_t *config)
{
        const char *cls = config ? lc_props_get(config, "connector.class") : NULL;

        return cls && !strstr(cls, "${") ? cls : NULL;
}

/* Under the lock, of a member that is known. */
static bool has(const lc_members_t *m, const member_t *e, const char *cls)
{
        const lc_plugins_t *own = lc_plugins_current(m->own);
        const lc_plugin_t *p = lc_plugins_find(own, 1u << LC_PLUGIN_SOURCE | 1u << LC_PLUGIN_SINK, cls, NULL);
        bool yes = e->own && p;

        for (size_t i = 0; !e->own && i < e->classes.n && !yes; i++)
                yes = goes_by(e->classes.v[i], cls) || (p && !strcmp(e->classes.v[i], p->class_name));
        lc_plugins_unref(own);
        return yes;
}

bool lc_members_can_run(lc_members_t *m, const char *id, const lc_props_t *config)
{
        const char *cls = class_of(config);
        const member_t *e;
        bool can;

        if (!cls)
                return true;
        pthread_mutex_lock(&m->lock);
        e = find(m, id, NULL);
        can = !e || !e->known || has(m, e, cls);
        pthread_mutex_unlock(&m->lock);
        return can;
}

bool lc_members_ask(lc_members_t *m, int64_t now, char **id, char **url, int64_t *next)
{
        bool found = false;

        *next = INT64_MAX;
        pthread_mutex_lock(&m->lock);
        for (size_t i = 0; i < m->n && !found; i++) {
                member_t *e = &m->v[i];
                if (e->known || e->asking)
                        continue;
                if (e->ask_at > now) {
                        *next = e->ask_at < *next ? e->ask_at : *next;
                        continue;
                }
                e->asking = found = true;
                *id = lc_strdup(e->id);
                *url = lc_strdup(e->url);
        }
        pthread_mutex_unlock(&m->lock);
        return found;
}

/* [{"class":"...",...},...]; NULL or why not. */
static const char *read_classes(const lc_buf_t *answer, lc_strv_t *classes)
{
        lc_json_t *doc = NULL;
        const char *why = NULL;
        lc_err_t err;

        lc_err_clear(&err);
        if (lc_json_parse(answer->p ? answer->p : "", answer->len, 0, &doc, &err) < 0 || !doc ||
            doc->type != LC_J_ARRAY)
                why = "its answer is no JSON list";
        for (const lc_json_t *p = why ? NULL : doc->child; p && !why; p = p->next) {
                const lc_json_t *cls = p->type == LC_J_OBJECT ? lc_json_get(p, "class") : NULL;
                if (!cls || cls->type != LC_J_STRING)
                        why = "its answer has an element without a class";
                else
                        lc_strv_add(classes, cls->s);
        }
        lc_json_free(doc);
        return why;
}

bool lc_members_answered(lc_members_t *m, const char *id, const char *url, const lc_buf_t *answer,
                         const char *why, int64_t now)
{
        lc_strv_t classes = {0};
        member_t *e;
        bool learned = false;

        if (!why)
                why = read_classes(answer, &classes);
        pthread_mutex_lock(&m->lock);
        e = find(m, id, url);
        if (e && e->asking) {
                e->asking = false;
                if (!why) {
                        e->known = learned = true;
                        e->classes = classes;
                        memset(&classes, 0, sizeof(classes));
                } else {
                        lc_log(e->backoff_ms ? LC_DEBUG : LC_INFO, "HERDER",
                               "Cannot learn which connector classes worker %s has, it is taken to have all "
                               "of "
                               "them: %s",
                               url, why);
                        e->backoff_ms = lc_backoff(e->backoff_ms, ASK_AGAIN_MS, ASK_AGAIN_MAX_MS);
                        e->ask_at = now + e->backoff_ms;
                }
        }
        pthread_mutex_unlock(&m->lock);
        lc_strv_free(&classes);
        return learned;
}

bool lc_members_misplaced(lc_members_t *m, const char *owner_url, const lc_props_t *config)
{
        const char *cls = class_of(config);
        bool cannot = false, other = false;

        if (!cls)
                return false;
        pthread_mutex_lock(&m->lock);
        for (size_t i = 0; i < m->n; i++) {
                const member_t *e = &m->v[i];
                bool owner = !strcmp(e->url, owner_url);
                if (!e->known)
                        cannot = cannot && !owner;
                else if (has(m, e, cls))
                        other = other || !owner;
                else
                        cannot = cannot || owner;
        }
        pthread_mutex_unlock(&m->lock);
        return cannot && other;
}

void lc_members_say_missing(lc_members_t *m, const lc_config_snapshot_t *s)
{
        pthread_mutex_lock(&m->lock);
        for (size_t i = 0; i < m->n; i++) {
                member_t *e = &m->v[i];
                for (size_t k = 0; e->known && k < s->n; k++) {
                        const char *cls = class_of(s->v[k].config);
                        if (!cls || lc_strv_has(&e->said, cls) || has(m, e, cls))
                                continue;
                        lc_strv_add(&e->said, cls);
                        lc_log(LC_INFO, "HERDER",
                               "Worker %s does not have the connector class %s (connector %s): such work "
                               "goes to "
                               "workers that have it, as long as there is one",
                               e->url, cls, s->v[k].name);
                }
        }
        pthread_mutex_unlock(&m->lock);
}
