/*
 * values_time.c - dates and times in header texts: SimpleDateFormat's lenient reading and
 * Values.dateFormatFor, in the process's time zone although the patterns end in a literal Z (as Java does).
 *
 * Threads:   any.
 * Tests:     spec/golden/converters_spec.lua
 */
#include "convert/text.h"
#include "convert/values.h"
#include <string.h>
#include <time.h>

enum { DATE_LENGTH = 10, TIME_LENGTH = 13, TIMESTAMP_LENGTH = 24, MS_PER_DAY = 86400000 };

/* One number of a pattern: blanks, then digits. */
static bool number(const char **p, const char *end, int64_t *out)
{
        const char *q = *p;

        while (q < end && (*q == ' ' || *q == '\t'))
                q++;
        if (q == end || *q < '0' || *q > '9')
                return false;
        for (*out = 0; q < end && *q >= '0' && *q <= '9'; q++)
                if (*out < (int64_t)1 << 58)
                        *out = *out * 10 + (*q - '0');
                else
                        *out = INT32_MAX;
        *out = (int32_t)*out; /* Number.intValue() */
        *p = q;
        return true;
}

static bool literal(const char **p, const char *end, char c)
{
        if (*p == end || **p != c)
                return false;
        ++*p;
        return true;
}

static int64_t floor_div(int64_t a, int64_t b)
{
        return a / b - (a % b < 0);
}

/* Days since 1970 of a date whose month may be anything; before the cutover of 1582-10-15 Julian. */
static int64_t days_of(int64_t y, int64_t m, int64_t d)
{
        int64_t era, yoe, doy, days;

        m -= 1;
        y += floor_div(m, 12);
        m -= floor_div(m, 12) * 12;
        m += 1;
        if (m <= 2)
                y--;
        era = floor_div(y, 400);
        yoe = y - era * 400;
        doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5;
        days = era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468 + d - 1;
        if (days >= -141427)
                return days;
        return y * 365 + floor_div(y, 4) + doy - 719470 + d - 1;
}

/* Milliseconds since 1970 of a local wall clock. */
static int64_t to_utc(int64_t local_ms)
{
        int64_t s = floor_div(local_ms, 1000), guess = s;

        for (int i = 0; i < 2; i++) {
                time_t t = (time_t)guess;
                struct tm tm;

                if (!localtime_r(&t, &tm))
                        break;
                guess = s - tm.tm_gmtoff;
        }
        return local_ms + (guess - s) * 1000;
}

static bool parse_date(const char **p, const char *end, int64_t *days)
{
        int64_t y, m, d;

        if (!number(p, end, &y) || !literal(p, end, '-') || !number(p, end, &m) || !literal(p, end, '-') ||
            !number(p, end, &d))
                return false;
        *days = days_of(y, m, d);
        return true;
}

static bool parse_time(const char **p, const char *end, int64_t *ms)
{
        int64_t h, m, s, f;

        if (!number(p, end, &h) || !literal(p, end, ':') || !number(p, end, &m) || !literal(p, end, ':') ||
            !number(p, end, &s) || !literal(p, end, '.') || !number(p, end, &f) || !literal(p, end, 'Z'))
                return false;
        *ms = ((h * 60 + m) * 60 + s) * 1000 + f;
        return true;
}

/* Length in UTF-16 units. */
static size_t units(const char *s, size_t n)
{
        size_t count = 0, used;

        for (size_t i = 0; i < n; i += used)
                count += lc_utf8_next(s + i, n - i, &used, NULL) > 0xFFFF ? 2 : 1;
        return count;
}

bool lc_values_parse_temporal(const char *text, size_t n, lc_type_t *type, int64_t *ms)
{
        char s[4 * TIMESTAMP_LENGTH + 1];
        int64_t days = 0, of_day = 0;
        const char *p = s, *end;
        size_t len = 0, length;

        for (size_t i = 0; i < n; i++) { /* an escaped colon is a colon */
                if (text[i] == '\\' && i + 1 < n && text[i + 1] == ':')
                        continue;
                if (len == sizeof(s) - 1)
                        return false;
                s[len++] = text[i];
        }
        end = s + len;
        length = units(s, len);
        if (length == TIME_LENGTH) {
                *type = LC_TIME;
                if (!parse_time(&p, end, &of_day))
                        return false;
        } else if (length == TIMESTAMP_LENGTH) {
                *type = LC_TIMESTAMP;
                if (!parse_date(&p, end, &days) || !literal(&p, end, 'T') || !parse_time(&p, end, &of_day))
                        return false;
        } else if (length == DATE_LENGTH) {
                *type = LC_DATE;
                if (!parse_date(&p, end, &days))
                        return false;
        } else {
                return false;
        }
        *ms = to_utc(days * MS_PER_DAY + of_day);
        return true;
}

void lc_values_format_date(int64_t ms, lc_buf_t *out)
{
        time_t s = (time_t)floor_div(ms, 1000);
        int fraction = (int)(ms - floor_div(ms, 1000) * 1000);
        struct tm tm;

        if (!localtime_r(&s, &tm))
                memset(&tm, 0, sizeof(tm));
        if (ms >= MS_PER_DAY)
                lc_buf_printf(out, "%04d-%02d-%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
        if (ms >= MS_PER_DAY && ms % MS_PER_DAY == 0)
                return;
        if (ms >= MS_PER_DAY)
                lc_buf_addc(out, 'T');
        lc_buf_printf(out, "%02d:%02d:%02d.%03dZ", tm.tm_hour, tm.tm_min, tm.tm_sec, fraction);
}
