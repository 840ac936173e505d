/* loggers.c - see loggers.h. Lock: `lock` guards the table; base/log's own lock is below it. */
#include "rest/loggers.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "convert/json.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct logger {
        char *name;
        const char *level;     /* one of `levels` */
        int64_t last_modified; /* 0: never */
} logger_t;
struct lc_loggers {
        pthread_mutex_t lock;
        logger_t *v; /* sorted by name */
        size_t n;
};

/* log4j's levels and the nearest of base/log. */
static const struct {
        const char *name, *ours;
} levels[] = {{"OFF", "OFF"},   {"FATAL", "ERROR"}, {"ERROR", "ERROR"}, {"WARN", "WARN"},
              {"INFO", "INFO"}, {"DEBUG", "DEBUG"}, {"TRACE", "TRACE"}, {"ALL", "TRACE"}};

/* Names that are there from the start: what a user would otherwise have to guess. */
static const char *const areas[] = {"CONFIG", "CONSUMER", "GROUP", "HERDER", "KAFKA", "MAIN",  "OFFSET",
                                    "PLUGIN", "PRODUCER", "REST",  "STORE",  "TASK",  "WORKER"};

static int level_index(const char *text)
{
        const char *s = text + strspn(text, " \t");
        size_t n = strlen(s);

        while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t'))
                n--;
        for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
                if (strlen(levels[i].name) == n && !strncasecmp(levels[i].name, s, n))
                        return (int)i;
        return -1;
}

bool lc_loggers_is_level(const char *text)
{
        return level_index(text) >= 0;
}

static bool is_root(const char *name)
{
        return !strcasecmp(name, "root");
}

static logger_t *find(lc_loggers_t *l, const char *name)
{
        for (size_t i = 0; i < l->n; i++)
                if (!strcmp(l->v[i].name, name))
                        return &l->v[i];
        return NULL;
}

static logger_t *add(lc_loggers_t *l, const char *name, const char *level)
{
        size_t at = 0;

        while (at < l->n && strcmp(l->v[at].name, name) < 0)
                at++;
        l->v = lc_realloc(l->v, (l->n + 1) * sizeof(*l->v));
        memmove(l->v + at + 1, l->v + at, (l->n - at) * sizeof(*l->v));
        l->n++;
        l->v[at] = (logger_t){lc_strdup(name), level, 0};
        return &l->v[at];
}

lc_loggers_t *lc_loggers_new(const char *root_level)
{
        lc_loggers_t *l = lc_calloc(1, sizeof(*l));
        int level = level_index(root_level ? root_level : "INFO");
        const char *name = levels[level < 0 ? level_index("INFO") : level].name;

        pthread_mutex_init(&l->lock, NULL);
        add(l, "root", name);
        for (size_t i = 0; i < sizeof(areas) / sizeof(areas[0]); i++)
                add(l, areas[i], name);
        return l;
}

void lc_loggers_free(lc_loggers_t *l)
{
        if (!l)
                return;
        for (size_t i = 0; i < l->n; i++)
                free(l->v[i].name);
        free(l->v);
        pthread_mutex_destroy(&l->lock);
        free(l);
}

static void write_level(lc_buf_t *out, const logger_t *g)
{
        lc_buf_printf(out, "{\"level\":\"%s\",\"last_modified\":", g->level);
        if (g->last_modified)
                lc_buf_printf(out, "%lld}", (long long)g->last_modified);
        else
                lc_buf_adds(out, "null}");
}

void lc_loggers_list(lc_loggers_t *l, lc_buf_t *out)
{
        bool first = true;

        pthread_mutex_lock(&l->lock);
        lc_buf_addc(out, '{');
        for (size_t i = 0; i < l->n; i++) {
                if (!strcmp(l->v[i].level, "OFF"))
                        continue;
                if (!first)
                        lc_buf_addc(out, ',');
                first = false;
                lc_json_write_string(out, l->v[i].name, strlen(l->v[i].name));
                lc_buf_addc(out, ':');
                write_level(out, &l->v[i]);
        }
        lc_buf_addc(out, '}');
        pthread_mutex_unlock(&l->lock);
}

bool lc_loggers_get(lc_loggers_t *l, const char *name, lc_buf_t *out)
{
        logger_t *g;

        pthread_mutex_lock(&l->lock);
        g = find(l, is_root(name) ? "root" : name);
        if (g)
                write_level(out, g);
        pthread_mutex_unlock(&l->lock);
        return g != NULL;
}

static bool covers(const char *name, bool root, const char *other)
{
        size_t n = strlen(name);

        return root || !strcmp(name, other) || (!strncmp(name, other, n) && other[n] == '.');
}

int lc_loggers_set(lc_loggers_t *l, const char *name, const char *level, lc_buf_t *out)
{
        int index = level_index(level);
        bool root = is_root(name), first = true;

        if (index < 0)
                return -1;
        pthread_mutex_lock(&l->lock);
        if (!root && !find(l, name))
                add(l, name, find(l, "root")->level); /* it had its parent's level until now */
        lc_buf_addc(out, '[');
        for (size_t i = 0; i < l->n; i++) {
                logger_t *g = &l->v[i];
                if (!covers(name, root, g->name) || !strcmp(g->level, levels[index].name))
                        continue;
                g->level = levels[index].name;
                g->last_modified = lc_wall_ms();
                if (!first)
                        lc_buf_addc(out, ',');
                first = false;
                lc_json_write_string(out, g->name, strlen(g->name));
                if (!is_root(g->name))
                        lc_log_set_level(g->name, levels[index].ours);
        }
        lc_buf_addc(out, ']');
        if (root)
                lc_log_set_level(NULL, levels[index].ours); /* forgets the areas' own levels */
        pthread_mutex_unlock(&l->lock);
        return 0;
}
