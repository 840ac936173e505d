/* clock.c - see clock.h. */
#include "base/clock.h"
#include <stdio.h>
#include <time.h>

static int64_t read_ms(clockid_t id)
{
        struct timespec t;

        clock_gettime(id, &t);
        return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t lc_now_ms(void)
{
        return read_ms(CLOCK_MONOTONIC);
}

int64_t lc_wall_ms(void)
{
        return read_ms(CLOCK_REALTIME);
}

void lc_iso8601(int64_t wall_ms, char out[32])
{
        time_t s = (time_t)(wall_ms / 1000);
        struct tm tm;

        gmtime_r(&s, &tm);
        snprintf(out, 32, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", (tm.tm_year + 1900) % 10000, tm.tm_mon + 1,
                 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(wall_ms % 1000));
}
