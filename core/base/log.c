/* log.c - see log.h. Lock: `lock` guards the table of area levels only. */
#include "base/log.h"
#include "base/clock.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

enum { MAX_AREAS = 64 };

static const char *const level_names[] = {"OFF", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
        char area[24];
        int level;
} areas[MAX_AREAS];
static int area_count;
static int root_level = LC_INFO;
static atomic_int log_fd = 1;
static _Thread_local char context[120];

int lc_log_max_level = LC_INFO;

void lc_log_context(const char *text)
{
        snprintf(context, sizeof(context), "%s", text ? text : "");
}

const char *lc_log_get_context(void)
{
        return context;
}

void lc_log_set_fd(int fd)
{
        log_fd = fd;
}

static int area_index(const char *area)
{
        for (int i = 0; i < area_count; i++)
                if (!strcasecmp(areas[i].area, area))
                        return i;
        return -1;
}

int lc_log_set_level(const char *area, const char *name)
{
        int level = -1;

        for (int i = 0; i <= LC_TRACE; i++)
                if (!strcasecmp(level_names[i], name))
                        level = i;
        if (level < 0)
                return -1;
        pthread_mutex_lock(&lock);
        if (!area) {
                root_level = level;
                area_count = 0;
        } else {
                int i = area_index(area);
                if (i < 0 && area_count < MAX_AREAS) {
                        i = area_count++;
                        snprintf(areas[i].area, sizeof(areas[i].area), "%s", area);
                }
                if (i >= 0)
                        areas[i].level = level;
        }
        level = root_level;
        for (int i = 0; i < area_count; i++)
                if (areas[i].level > level)
                        level = areas[i].level;
        __atomic_store_n(&lc_log_max_level, level, __ATOMIC_RELAXED);
        pthread_mutex_unlock(&lock);
        return 0;
}

static int level_of(const char *area)
{
        int level, i;

        pthread_mutex_lock(&lock);
        i = area_count ? area_index(area) : -1;
        level = i < 0 ? root_level : areas[i].level;
        pthread_mutex_unlock(&lock);
        return level;
}

void lc_log_(lc_log_level_t level, const char *area, const char *fmt, ...)
{
        char few[1024], *line = few, *more = NULL;
        int64_t now = lc_wall_ms();
        time_t s = (time_t)(now / 1000);
        struct tm tm;
        size_t start, len;
        ssize_t ignored;
        va_list ap;
        int n;

        if ((int)level > level_of(area))
                return;
        localtime_r(&s, &tm);
        start = (size_t)snprintf(few, sizeof(few), "%04d-%02d-%02d %02d:%02d:%02d,%03d %-5s %s%s%s%-7.100s ",
                                 tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
                                 tm.tm_sec, (int)(now % 1000), level_names[level], context[0] ? "[" : "",
                                 context, context[0] ? "] " : "", area);
        va_start(ap, fmt);
        n = vsnprintf(few + start, sizeof(few) - start, fmt, ap);
        va_end(ap);
        len = start + (n > 0 ? (size_t)n : 0);
        if (len + 1 > sizeof(few)) {
                more = malloc(len + 1);
                if (more) {
                        memcpy(more, few, start);
                        va_start(ap, fmt);
                        vsnprintf(more + start, len + 1 - start, fmt, ap);
                        va_end(ap);
                        line = more;
                } else {
                        len = sizeof(few) - 1; /* what fits is better than nothing */
                }
        }
        /* one line each: a line break inside a message would break every log reader */
        for (size_t i = start; i < len; i++)
                if (line[i] == '\n')
                        line[i] = ' ';
        while (len > start && line[len - 1] == ' ')
                len--;
        line[len++] = '\n'; /* over the NUL at most */
        ignored = write(log_fd, line, len);
        (void)ignored;
        free(more);
}

bool lc_log_due(int64_t *last, int64_t ms)
{
        int64_t now = lc_now_ms(), before = __atomic_load_n(last, __ATOMIC_RELAXED);

        if (before && now - before < ms)
                return false;
        return __atomic_compare_exchange_n(last, &before, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
