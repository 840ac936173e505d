/*
 * java_calendar.h - java.util.GregorianCalendar in UTC: fields of an instant and the lenient way back, with
 * the change from Julian dates in October 1582; weeks begin on Sunday, the first has one day (as in the US).
 *
 * Threads:   any.   Tests: spec/golden/dates_spec.lua
 */
#ifndef LC_CONVERT_JAVA_CALENDAR_H
#define LC_CONVERT_JAVA_CALENDAR_H
#include <stdbool.h>
#include <stdint.h>

/* Java's order; a day of the week is 1 (Sunday) to 7. LC_CAL_WEEK_YEAR is the formats' own. */
enum {
        LC_CAL_ERA, /* 0: BC, 1: AD */
        LC_CAL_YEAR,
        LC_CAL_MONTH, /* 0 to 11 */
        LC_CAL_WEEK_OF_YEAR,
        LC_CAL_WEEK_OF_MONTH,
        LC_CAL_DAY_OF_MONTH,
        LC_CAL_DAY_OF_YEAR,
        LC_CAL_DAY_OF_WEEK,
        LC_CAL_DAY_OF_WEEK_IN_MONTH,
        LC_CAL_AM_PM,
        LC_CAL_HOUR,
        LC_CAL_HOUR_OF_DAY,
        LC_CAL_MINUTE,
        LC_CAL_SECOND,
        LC_CAL_MILLISECOND,
        LC_CAL_ZONE_OFFSET, /* ms */
        LC_CAL_DST_OFFSET,
        LC_CAL_WEEK_YEAR,
        LC_CAL_FIELDS
};

/* Fields that were set: stamp 0 = not set, else the order in which they were. */
typedef struct lc_calendar {
        int stamp[LC_CAL_FIELDS], next;
        int32_t value[LC_CAL_FIELDS];
} lc_calendar_t;

void lc_calendar_of(int64_t ms, int32_t fields[LC_CAL_FIELDS]);
void lc_calendar_set(lc_calendar_t *c, int field, int32_t value);
/* The instant; false where Java throws (a day of the week that is none). */
bool lc_calendar_time(const lc_calendar_t *c, int64_t *ms);

#endif
