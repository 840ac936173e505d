/* java_calendar.c - see java_calendar.h. Threads: any. Tests: spec/golden/dates_spec.lua */
#include "convert/java_calendar.h"
#include <string.h>

enum { MS_PER_DAY = 86400000, CUTOVER_YEAR = 1582, SUNDAY = 1 };
/* Days are counted from 1 = Monday, January 1 of the year 1 (Gregorian). */
#define EPOCH_DAY   719163
#define CUTOVER_DAY 577736 /* October 15, 1582 */

static int64_t floor_div(int64_t a, int64_t b)
{
        return a / b - (a % b < 0);
}

static int64_t floor_mod(int64_t a, int64_t b)
{
        int64_t r = a % b;

        return r < 0 ? r + b : r; /* b is positive; floor_div(a, b) * b may not fit */
}

/* Day of a date, month 1 to 12; year 0 is 1 BC. */
static int64_t gregorian(int64_t y, int m, int64_t d)
{
        int64_t era, yoe, doy;

        if (m <= 2)
                y--;
        era = floor_div(y, 400);
        yoe = y - era * 400;
        doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
        return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468 + EPOCH_DAY;
}

static int64_t julian(int64_t y, int m, int64_t d)
{
        int64_t doy;

        if (m <= 2)
                y--;
        doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
        return y * 365 + floor_div(y, 4) + doy - 719470 + EPOCH_DAY;
}

static int64_t new_year(int64_t y)
{
        return y <= CUTOVER_YEAR ? julian(y, 1, 1) : gregorian(y, 1, 1);
}

/* Year, month and day of a day. */
static void date_of(int64_t day, int64_t *y, int *m, int *d)
{
        int64_t z = day - EPOCH_DAY + 719468, era, doe, yoe, doy, mp;

        if (day >= CUTOVER_DAY) {
                era = floor_div(z, 146097);
                doe = z - era * 146097;
                yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
                *y = yoe + era * 400;
                doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
        } else {
                z += 2;
                era = floor_div(z, 1461);
                doe = z - era * 1461;
                yoe = (doe - doe / 1460) / 365;
                *y = yoe + era * 4;
                doy = doe - 365 * yoe;
        }
        mp = (5 * doy + 2) / 153;
        *d = (int)(doy - (153 * mp + 2) / 5 + 1);
        *m = (int)(mp < 10 ? mp + 3 : mp - 9);
        if (*m <= 2)
                ++*y;
}

/* The last such day of the week on or before a day. */
static int64_t on_or_before(int64_t day, int64_t day_of_week)
{
        return day - floor_mod(day - (day_of_week - 1), 7);
}

static int week_number(int64_t first, int64_t day)
{
        int64_t start = on_or_before(first + 6, SUNDAY);

        if (start - first >= 1)
                start -= 7;
        return (int)floor_div(day - start, 7) + 1;
}

void lc_calendar_of(int64_t ms, int32_t f[LC_CAL_FIELDS])
{
        int64_t day = floor_div(ms, MS_PER_DAY), in_day = floor_mod(ms, MS_PER_DAY), y, jan1, next, month1;
        int m, d, week;

        day += EPOCH_DAY;
        date_of(day, &y, &m, &d);
        jan1 = new_year(y);
        month1 = day - d + 1;
        if (y == CUTOVER_YEAR && m == 10 && day >= CUTOVER_DAY)
                month1 = julian(y, 10, 1);
        f[LC_CAL_ERA] = y > 0;
        f[LC_CAL_YEAR] = (int32_t)(y > 0 ? y : 1 - y);
        f[LC_CAL_MONTH] = m - 1;
        f[LC_CAL_DAY_OF_MONTH] = d;
        f[LC_CAL_DAY_OF_YEAR] = (int32_t)(day - jan1) + 1;
        f[LC_CAL_DAY_OF_WEEK] = (int32_t)floor_mod(day, 7) + 1;
        f[LC_CAL_DAY_OF_WEEK_IN_MONTH] = (int32_t)(day - month1) / 7 + 1;
        week = week_number(jan1, day);
        next = on_or_before(new_year(y + 1) + 6, SUNDAY);
        if (next - new_year(y + 1) >= 1 && day >= next - 7)
                week = 1;
        f[LC_CAL_WEEK_OF_YEAR] = week;
        f[LC_CAL_WEEK_OF_MONTH] = week_number(month1, day);
        f[LC_CAL_WEEK_YEAR] = (int32_t)(m == 1 ? y - (week >= 52) : y + (week == 1));
        f[LC_CAL_HOUR_OF_DAY] = (int32_t)(in_day / 3600000);
        f[LC_CAL_AM_PM] = f[LC_CAL_HOUR_OF_DAY] / 12;
        f[LC_CAL_HOUR] = f[LC_CAL_HOUR_OF_DAY] % 12;
        f[LC_CAL_MINUTE] = (int32_t)(in_day / 60000 % 60);
        f[LC_CAL_SECOND] = (int32_t)(in_day / 1000 % 60);
        f[LC_CAL_MILLISECOND] = (int32_t)(in_day % 1000);
        f[LC_CAL_ZONE_OFFSET] = f[LC_CAL_DST_OFFSET] = 0;
}

void lc_calendar_set(lc_calendar_t *c, int field, int32_t value)
{
        c->stamp[field] = ++c->next;
        c->value[field] = value;
}

/* ---- from fields to the instant: the newest complete group of fields decides ---- */

static int both(int a, int b)
{
        return !a || !b ? 0 : a > b ? a : b;
}

static int newer(int a, int b)
{
        return a > b ? a : b;
}

enum { BY_DAY, BY_WEEK_OF_MONTH, BY_WEEKDAY_IN_MONTH, BY_DAY_OF_YEAR, BY_WEEK_OF_YEAR };
typedef struct choice {
        int how;
        bool weekday, in_month; /* DAY_OF_WEEK and DAY_OF_WEEK_IN_MONTH count */
} choice_t;

static choice_t choose(const int *stamp)
{
        int dow = stamp[LC_CAL_DAY_OF_WEEK], dom = stamp[LC_CAL_DAY_OF_MONTH],
            doy = stamp[LC_CAL_DAY_OF_YEAR];
        int wom = both(stamp[LC_CAL_WEEK_OF_MONTH], dow), woy = both(stamp[LC_CAL_WEEK_OF_YEAR], dow);
        int dowim = both(stamp[LC_CAL_DAY_OF_WEEK_IN_MONTH], dow);
        int best = newer(newer(newer(dom, wom), newer(dowim, doy)), woy);
        choice_t c = {BY_DAY, dow != 0, stamp[LC_CAL_DAY_OF_WEEK_IN_MONTH] != 0};

        if (!best) { /* nothing complete: a week or a day of the week alone */
                wom = stamp[LC_CAL_WEEK_OF_MONTH];
                dowim = newer(stamp[LC_CAL_DAY_OF_WEEK_IN_MONTH], dow);
                woy = stamp[LC_CAL_WEEK_OF_YEAR];
                best = newer(newer(wom, dowim), woy);
                if (!best)
                        best = dom = stamp[LC_CAL_MONTH];
        }
        if (best == dom) {
                c.how = BY_DAY;
        } else if ((best == wom && stamp[LC_CAL_WEEK_OF_MONTH] >= stamp[LC_CAL_WEEK_OF_YEAR]) ||
                   (best == dowim && stamp[LC_CAL_DAY_OF_WEEK_IN_MONTH] >= stamp[LC_CAL_WEEK_OF_YEAR])) {
                bool week = wom == dowim ? stamp[LC_CAL_WEEK_OF_MONTH] >= stamp[LC_CAL_DAY_OF_WEEK_IN_MONTH]
                                         : best == wom;

                c.how = week ? BY_WEEK_OF_MONTH : BY_WEEKDAY_IN_MONTH;
        } else {
                c.how = best == doy ? BY_DAY_OF_YEAR : BY_WEEK_OF_YEAR;
        }
        return c;
}

static int64_t day_of(bool julian_calendar, int64_t y, int m, int64_t d)
{
        return julian_calendar ? julian(y, m, d) : gregorian(y, m, d);
}

static int month_length(int64_t y, int month)
{
        int m = month + 1;
        bool old = y < CUTOVER_YEAR;

        return (int)(day_of(old, m == 12 ? y + 1 : y, m == 12 ? 1 : m + 1, 1) - day_of(old, y, m, 1));
}

static int64_t fixed_day(const lc_calendar_t *c, const choice_t *how, bool julian_calendar, int64_t y)
{
        int64_t month = 0, day, dow = how->weekday ? c->value[LC_CAL_DAY_OF_WEEK] : SUNDAY, first;

        if (how->how <= BY_WEEKDAY_IN_MONTH) {
                month = c->value[LC_CAL_MONTH];
                y += floor_div(month, 12);
                month = floor_mod(month, 12);
        }
        day = day_of(julian_calendar, y, (int)month + 1, 1);
        first = on_or_before(day + 6, SUNDAY);
        if (first - day >= 1)
                first -= 7;
        switch (how->how) {
        case BY_DAY:
                return c->stamp[LC_CAL_DAY_OF_MONTH] ? day + c->value[LC_CAL_DAY_OF_MONTH] - 1 : day;
        case BY_WEEK_OF_MONTH:
                if (how->weekday)
                        first = on_or_before(first + 6, dow);
                return first + 7 * ((int64_t)c->value[LC_CAL_WEEK_OF_MONTH] - 1);
        case BY_WEEKDAY_IN_MONTH: {
                int64_t n = how->in_month ? c->value[LC_CAL_DAY_OF_WEEK_IN_MONTH] : 1;

                if (n >= 0)
                        return on_or_before(day + 7 * n - 1, dow);
                return on_or_before(day + month_length(y, (int)month) + 7 * (n + 1) - 1, dow);
        }
        case BY_DAY_OF_YEAR:
                return day + c->value[LC_CAL_DAY_OF_YEAR] - 1;
        default:
                if (how->weekday && dow != SUNDAY)
                        first = on_or_before(first + 6, dow);
                return first + 7 * ((int64_t)c->value[LC_CAL_WEEK_OF_YEAR] - 1);
        }
}

/* `extra` days more, because the time of day may hold some. */
static int64_t resolve(const lc_calendar_t *c, const choice_t *how, int64_t y, int64_t extra)
{
        int64_t new = extra + fixed_day(c, how, false, y), old = extra + fixed_day(c, how, true, y);

        if (y > CUTOVER_YEAR)
                if (new >= CUTOVER_DAY)
                        return new;
        if (y < CUTOVER_YEAR) {
                if (old < CUTOVER_DAY)
                        return old;
                new = old;
        }
        if (how->how >= BY_DAY_OF_YEAR)
                return old;
        return new >= CUTOVER_DAY &&old >= CUTOVER_DAY ? new : new >= CUTOVER_DAY ? new : old;
}

static void set_date(lc_calendar_t *c, int64_t day)
{
        int64_t y;
        int m, d;

        date_of(day, &y, &m, &d);
        lc_calendar_set(c, LC_CAL_ERA, y > 0);
        lc_calendar_set(c, LC_CAL_YEAR, (int32_t)(y > 0 ? y : 1 - y));
        lc_calendar_set(c, LC_CAL_MONTH, m - 1);
        lc_calendar_set(c, LC_CAL_DAY_OF_MONTH, d);
}

/* Calendar.setWeekDate() with what CalendarBuilder does for days of the week outside of 1 to 7. */
static void by_week_date(lc_calendar_t *c)
{
        int64_t week = c->stamp[LC_CAL_WEEK_OF_YEAR] ? c->value[LC_CAL_WEEK_OF_YEAR] : 1;
        int64_t dow = c->stamp[LC_CAL_DAY_OF_WEEK] ? c->value[LC_CAL_DAY_OF_WEEK] : SUNDAY, start,
                given = dow;
        int64_t y = c->value[LC_CAL_WEEK_YEAR];
        choice_t how = {BY_WEEK_OF_YEAR, true, false};
        lc_calendar_t first = {.next = 0};

        if (c->stamp[LC_CAL_ERA] && c->value[LC_CAL_ERA] == 0)
                y = 1 - y;
        if (dow >= 8) {
                dow--;
                week += dow / 7;
                dow = dow % 7 + 1;
        } else if (dow <= 0) {
                int64_t weeks = (7 - dow) / 7;

                dow += 7 * weeks;
                week -= weeks;
        }
        if (dow != given) /* what is out of range counts as Java counts ISO days */
                dow = dow == 7 ? SUNDAY : dow + 1;
        first.value[LC_CAL_WEEK_OF_YEAR] = 1;
        first.value[LC_CAL_DAY_OF_WEEK] = SUNDAY;
        start = resolve(&first, &how, y, 0);
        set_date(c, start + dow - SUNDAY + 7 * (week - 1));
}

bool lc_calendar_time(const lc_calendar_t *given, int64_t *ms)
{
        lc_calendar_t c = *given;
        int hour = both(c.stamp[LC_CAL_HOUR], c.stamp[LC_CAL_AM_PM]), best;
        int64_t y, in_day = 0, days;
        choice_t how;

        if (c.stamp[LC_CAL_WEEK_YEAR] && c.stamp[LC_CAL_WEEK_YEAR] > c.stamp[LC_CAL_YEAR])
                by_week_date(&c);
        how = choose(c.stamp);
        y = c.stamp[LC_CAL_YEAR] ? c.value[LC_CAL_YEAR] : 1970;
        if (c.stamp[LC_CAL_ERA] && c.value[LC_CAL_ERA] == 0)
                y = 1 - y;
        best = newer(hour, c.stamp[LC_CAL_HOUR_OF_DAY]);
        if (!best)
                best = newer(c.stamp[LC_CAL_HOUR], c.stamp[LC_CAL_AM_PM]);
        if (best && best == c.stamp[LC_CAL_HOUR_OF_DAY])
                in_day = c.value[LC_CAL_HOUR_OF_DAY];
        else if (best)
                in_day = (int64_t)c.value[LC_CAL_HOUR] +
                         (c.stamp[LC_CAL_AM_PM] ? 12 * (int64_t)c.value[LC_CAL_AM_PM] : 0);
        in_day = ((in_day * 60 + c.value[LC_CAL_MINUTE]) * 60 + c.value[LC_CAL_SECOND]) * 1000 +
                 c.value[LC_CAL_MILLISECOND];
        days = floor_div(in_day, MS_PER_DAY);
        in_day -= days * MS_PER_DAY;
        days = resolve(&c, &how, y, days);
        *ms = (int64_t)((uint64_t)(days - EPOCH_DAY) * MS_PER_DAY + (uint64_t)in_day) -
              (c.value[LC_CAL_ZONE_OFFSET] + c.value[LC_CAL_DST_OFFSET]);
        return true;
}
