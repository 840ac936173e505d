/*
 * java_date.c - see java_date.h: patterns, formatting and parsing. The calendar is java_calendar.c.
 *
 * Threads: one owner a format.   Tests: spec/golden/dates_spec.lua
 */
#include "convert/java_date.h"
#include <stdlib.h>
#include <strings.h>
#include "base/alloc.h"
#include "base/clock.h"
#include "convert/java_calendar.h"
#include "convert/java_date_zones.h"

static const char LETTERS[] = "GyMdkHmsSEDFwWahKzZYuXL";

typedef struct item {
        char letter; /* 0: literal text */
        int count;
        size_t from, len; /* of the literal in `text` */
} item_t;

struct lc_java_date {
        item_t *items;
        size_t n;
        lc_buf_t text;
        int32_t century_start; /* year 80 years ago */
        int64_t century_ms;
};

static item_t *add(lc_java_date_t *f)
{
        f->items = lc_realloc(f->items, (f->n + 1) * sizeof(*f->items));
        f->items[f->n] = (item_t){0};
        return &f->items[f->n++];
}

/* Literal characters side by side are one item. */
static void add_literal(lc_java_date_t *f, const char *s, size_t n)
{
        item_t *last = f->n ? &f->items[f->n - 1] : NULL;

        if (!last || last->letter) {
                last = add(f);
                last->from = f->text.len;
        }
        lc_buf_add(&f->text, s, n);
        last->len += n;
}

/* The last run of letters is complete. */
static int close_run(const lc_java_date_t *f, lc_err_t *err)
{
        const item_t *last = f->n ? &f->items[f->n - 1] : NULL;

        if (last && last->letter == 'X' && last->count > 3)
                return lc_err_set_cls(err, LC_FATAL, 0, "java.lang.IllegalArgumentException",
                                      "invalid ISO 8601 format: length=%d", last->count);
        return 0;
}

static int compile(lc_java_date_t *f, const char *p, lc_err_t *err)
{
        bool quoted = false;

        for (; *p; p++) {
                bool letter = !quoted && ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z'));

                if (letter && !strchr(LETTERS, *p))
                        return lc_err_set_cls(err, LC_FATAL, 0, "java.lang.IllegalArgumentException",
                                              "Illegal pattern character '%c'", *p);
                if (letter && f->n && f->items[f->n - 1].letter == *p) {
                        f->items[f->n - 1].count++;
                        continue;
                }
                if (close_run(f, err))
                        return -1;
                if (*p == '\'' && p[1] == '\'') {
                        add_literal(f, "'", 1);
                        p++;
                } else if (*p == '\'') {
                        quoted = !quoted;
                        add_literal(f, "", 0); /* even '' apart: letters around it do not join */
                } else if (!letter) {
                        add_literal(f, p, 1);
                } else {
                        item_t *i = add(f);

                        i->letter = *p;
                        i->count = 1;
                }
        }
        if (quoted)
                return lc_err_set_cls(err, LC_FATAL, 0, "java.lang.IllegalArgumentException",
                                      "Unterminated quote");
        return close_run(f, err);
}

lc_java_date_t *lc_java_date_new(const char *pattern, lc_err_t *err)
{
        lc_java_date_t *f = lc_calloc(1, sizeof(*f));
        int64_t now = lc_wall_ms();
        int32_t fields[LC_CAL_FIELDS];
        lc_calendar_t c = {.next = 0};

        if (compile(f, pattern, err)) {
                lc_java_date_free(f);
                return NULL;
        }
        lc_calendar_of(now, fields);
        f->century_start = fields[LC_CAL_YEAR] - 80;
        lc_calendar_set(&c, LC_CAL_YEAR, f->century_start);
        lc_calendar_set(&c, LC_CAL_MONTH, fields[LC_CAL_MONTH]);
        lc_calendar_set(&c, LC_CAL_DAY_OF_MONTH, fields[LC_CAL_DAY_OF_MONTH]);
        lc_calendar_time(&c, &f->century_ms);
        f->century_ms += now - now / 86400000 * 86400000;
        return f;
}

void lc_java_date_free(lc_java_date_t *f)
{
        if (!f)
                return;
        lc_buf_free(&f->text);
        free(f->items);
        free(f);
}

/* ---- names ---- */

static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};
static const char *const weekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};
static const char *const am_pm[] = {"AM", "PM"};
static const char *const eras[] = {"BC", "AD"};

/* ---- format ---- */

static int field_of(char letter)
{
        static const signed char fields[] = {
                LC_CAL_ERA,          LC_CAL_YEAR,          LC_CAL_MONTH,       LC_CAL_DAY_OF_MONTH,
                LC_CAL_HOUR_OF_DAY,  LC_CAL_HOUR_OF_DAY,   LC_CAL_MINUTE,      LC_CAL_SECOND,
                LC_CAL_MILLISECOND,  LC_CAL_DAY_OF_WEEK,   LC_CAL_DAY_OF_YEAR, LC_CAL_DAY_OF_WEEK_IN_MONTH,
                LC_CAL_WEEK_OF_YEAR, LC_CAL_WEEK_OF_MONTH, LC_CAL_AM_PM,       LC_CAL_HOUR,
                LC_CAL_HOUR,         LC_CAL_ZONE_OFFSET,   LC_CAL_ZONE_OFFSET, LC_CAL_WEEK_YEAR,
                LC_CAL_DAY_OF_WEEK,  LC_CAL_ZONE_OFFSET,   LC_CAL_MONTH};

        return fields[strchr(LETTERS, letter) - LETTERS];
}

static void padded(lc_buf_t *out, int64_t value, int digits)
{
        char text[24];
        int n = 0;
        uint64_t rest = (uint64_t)(value < 0 ? -value : value);

        do
                text[n++] = (char)('0' + rest % 10);
        while (rest /= 10);
        if (value < 0)
                lc_buf_addc(out, '-');
        for (int i = n; i < digits; i++)
                lc_buf_addc(out, '0');
        while (n)
                lc_buf_addc(out, text[--n]);
}

void lc_java_date_format(const lc_java_date_t *f, int64_t ms, lc_buf_t *out)
{
        int32_t fields[LC_CAL_FIELDS], v;

        lc_calendar_of(ms, fields);
        for (size_t k = 0; k < f->n; k++) { /* an empty pattern has no items */
                const item_t *i = &f->items[k];
                if (!i->letter) {
                        lc_buf_add(out, f->text.p ? f->text.p + i->from : "", i->len);
                        continue;
                }
                v = fields[field_of(i->letter)];
                switch (i->letter) {
                case 'G':
                        lc_buf_adds(out, eras[v]);
                        break;
                case 'y':
                case 'Y':
                        padded(out, i->count == 2 ? v % 100 : v, i->count);
                        break;
                case 'M':
                case 'L':
                        if (i->count >= 4)
                                lc_buf_adds(out, months[v]);
                        else if (i->count == 3)
                                lc_buf_add(out, months[v], 3);
                        else
                                padded(out, v + 1, i->count);
                        break;
                case 'E':
                        lc_buf_add(out, weekdays[v - 1], i->count >= 4 ? strlen(weekdays[v - 1]) : 3);
                        break;
                case 'u':
                        padded(out, v == 1 ? 7 : v - 1, i->count);
                        break;
                case 'a':
                        lc_buf_adds(out, am_pm[v]);
                        break;
                case 'k':
                        padded(out, v ? v : 24, i->count);
                        break;
                case 'h':
                        padded(out, v ? v : 12, i->count);
                        break;
                case 'z':
                        lc_buf_adds(out, i->count >= 4 ? "Coordinated Universal Time" : "UTC");
                        break;
                case 'Z':
                        lc_buf_adds(out, "+0000");
                        break;
                case 'X':
                        lc_buf_addc(out, 'Z');
                        break;
                default:
                        padded(out, v, i->count);
                }
        }
}

/* ---- parse ---- */

typedef struct reader {
        const char *s;
        size_t n, at;
        lc_calendar_t cal;
        bool ambiguous;
        int32_t century_start;
} reader_t;

/* DecimalFormat for whole numbers, then intValue(). `limit`: end of the text to look at. */
static bool number(reader_t *r, size_t *at, size_t limit, int32_t *value)
{
        size_t i = *at, digits;
        bool negative = false, big = false;
        int64_t v = 0;

        if (i + 3 <= limit && !memcmp(r->s + i, "NaN", 3)) {
                *at = i + 3;
                *value = 0;
                return true;
        }
        if (i < limit && r->s[i] == '-') {
                negative = true;
                i++;
        }
        for (digits = i; i < limit && r->s[i] >= '0' && r->s[i] <= '9'; i++)
                if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, r->s[i] - '0', &v))
                        big = true;
        if (i == digits)
                return false;
        if (i < limit && r->s[i] == 'E') { /* an exponent belongs to the number */
                size_t e = i + 1;
                bool down = e < limit && r->s[e] == '-';
                int exp = 0;

                e += down;
                if (e < limit && r->s[e] >= '0' && r->s[e] <= '9') {
                        for (i = e; i < limit && r->s[i] >= '0' && r->s[i] <= '9'; i++)
                                exp = exp < 1000 ? exp * 10 + (r->s[i] - '0') : exp;
                        for (; exp > 0 && v; exp--)
                                if (down)
                                        v /= 10;
                                else if (__builtin_mul_overflow(v, 10, &v))
                                        big = true;
                }
        }
        if (big) /* Java goes on with a double */
                *value = negative ? INT32_MIN : INT32_MAX;
        else
                *value = (int32_t)(negative ? -v : v);
        *at = i;
        return true;
}

/* The longest of the names (whole, or their first `shorten` letters too) at `at`. Its number, or -1. */
static int name(const reader_t *r, size_t at, const char *const *names, int count, size_t shorten,
                size_t *end)
{
        size_t best = 0;
        int found = -1;

        for (int i = 0; i < count; i++) {
                size_t len = strlen(names[i]);

                for (int k = 0; k < 2; k++) {
                        if (len > best && len <= r->n - at && !strncasecmp(r->s + at, names[i], len)) {
                                best = len;
                                found = i;
                        }
                        if (!shorten)
                                break;
                        len = shorten;
                }
        }
        *end = at + best;
        return found;
}

static int digit(const reader_t *r, size_t at)
{
        return at < r->n && r->s[at] >= '0' && r->s[at] <= '9' ? r->s[at] - '0' : -1;
}

/* hh[:]mm behind a sign; count as for X, 0 for the others. */
static bool numeric_zone(reader_t *r, size_t at, int sign, int count, bool colon)
{
        int hours = digit(r, at++), minutes = 0;

        if (hours < 0 || at >= r->n)
                return false;
        if (digit(r, at) >= 0)
                hours = hours * 10 + digit(r, at++);
        else if (count > 0 || !colon)
                return false;
        if (hours > 23)
                return false;
        if (count != 1) {
                if (colon && (at >= r->n || r->s[at++] != ':'))
                        return false;
                if (digit(r, at) < 0 || digit(r, at + 1) < 0)
                        return false;
                minutes = digit(r, at) * 10 + digit(r, at + 1);
                at += 2;
                if (minutes > 59)
                        return false;
        }
        lc_calendar_set(&r->cal, LC_CAL_ZONE_OFFSET, (hours * 60 + minutes) * 60000 * sign);
        lc_calendar_set(&r->cal, LC_CAL_DST_OFFSET, 0);
        r->at = at;
        return true;
}

static bool named_zone(reader_t *r, size_t at)
{
        const lc_java_zone_t *found = NULL;
        size_t best = 0;

        for (const lc_java_zone_t *z = lc_java_zones; z->name; z++) {
                size_t len = strlen(z->name);

                if (len > best && len <= r->n - at && !strncasecmp(r->s + at, z->name, len)) {
                        found = z;
                        best = len;
                }
        }
        if (!found)
                return false;
        lc_calendar_set(&r->cal, LC_CAL_ZONE_OFFSET, found->minutes * 60000);
        lc_calendar_set(&r->cal, LC_CAL_DST_OFFSET, 0);
        r->at = at + best;
        return true;
}

static int sign_at(const reader_t *r, size_t at)
{
        return at < r->n ? (r->s[at] == '+') - (r->s[at] == '-') : 0;
}

/* `start` before the blanks, `at` behind them. */
static bool zone(reader_t *r, const item_t *i, size_t start, size_t at)
{
        int sign = sign_at(r, at);

        if (i->letter == 'X') {
                if (r->s[at] == 'Z') {
                        lc_calendar_set(&r->cal, LC_CAL_ZONE_OFFSET, 0);
                        lc_calendar_set(&r->cal, LC_CAL_DST_OFFSET, 0);
                        r->at = at + 1;
                        return true;
                }
                return sign && numeric_zone(r, at + 1, sign, i->count, i->count == 3);
        }
        if (sign)
                return numeric_zone(r, at + 1, sign, 0, false);
        if ((r->s[at] | 0x20) == 'g' && r->n - start >= 3 && !strncasecmp(r->s + start, "GMT", 3)) {
                at = start + 3;
                sign = sign_at(r, at);
                if (sign)
                        return numeric_zone(r, at + 1, sign, 0, true);
                lc_calendar_set(&r->cal, LC_CAL_ZONE_OFFSET, 0);
                lc_calendar_set(&r->cal, LC_CAL_DST_OFFSET, 0);
                r->at = at;
                return true;
        }
        return named_zone(r, at);
}

static bool text_field(reader_t *r, const item_t *i, size_t start)
{
        size_t end;
        int found;

        switch (i->letter) {
        case 'G':
                found = name(r, start, eras, 2, 0, &end);
                break;
        case 'a':
                found = name(r, start, am_pm, 2, 0, &end);
                break;
        case 'E':
                found = name(r, start, weekdays, 7, 3, &end);
                found += found >= 0; /* Sunday is 1 */
                break;
        default:
                found = name(r, start, months, 12, 3, &end);
        }
        if (found < 0)
                return false;
        lc_calendar_set(&r->cal, field_of(i->letter), found);
        r->at = end;
        return true;
}

static bool field(reader_t *r, const item_t *i, bool exact)
{
        size_t start = r->at, at = start, limit = r->n;
        int32_t v;

        while (at < r->n && (r->s[at] == ' ' || r->s[at] == '\t'))
                at++;
        if (at == r->n)
                return false;
        if (strchr("zZX", i->letter))
                return zone(r, i, start, at);
        if (strchr("GaE", i->letter) || (strchr("ML", i->letter) && i->count > 2))
                return text_field(r, i, start);
        if (exact) { /* digits of the next field follow at once */
                if (start + (size_t)i->count > r->n)
                        return false;
                limit = start + (size_t)i->count;
        }
        r->at = at;
        if (at > limit || !number(r, &r->at, limit, &v))
                return false;
        switch (i->letter) {
        case 'y':
        case 'Y':
                if (i->count <= 2 && r->at - at == 2 && digit(r, at) >= 0 && digit(r, at + 1) >= 0) {
                        int32_t pivot = r->century_start % 100;

                        r->ambiguous = v == pivot;
                        v += r->century_start / 100 * 100 + (v < pivot ? 100 : 0);
                }
                break;
        case 'M':
        case 'L':
                v = (int32_t)((uint32_t)v - 1);
                break;
        case 'k':
                v = v == 24 ? 0 : v;
                break;
        case 'h':
                v = v == 12 ? 0 : v;
                break;
        case 'u':
                if (v >= 1 && v <= 7)
                        v = v == 7 ? 1 : v + 1;
                break;
        }
        lc_calendar_set(&r->cal, field_of(i->letter), v);
        return true;
}

/* Letters whose digits follow the field before them without a gap. */
static bool numeric(const item_t *i)
{
        if (!i->letter || strchr("GaEzZX", i->letter))
                return false;
        return !strchr("ML", i->letter) || i->count <= 2;
}

int lc_java_date_parse(const lc_java_date_t *f, const char *s, size_t n, int64_t *ms)
{
        reader_t r = {.s = s, .n = n, .century_start = f->century_start};

        for (size_t k = 0; k < f->n; k++) {
                const item_t *i = &f->items[k];

                if (i->letter) {
                        if (!field(&r, i, k + 1 < f->n && numeric(i + 1)))
                                return -1;
                } else {
                        if (i->len > n - r.at ||
                            (i->len && memcmp(s + r.at, f->text.p + i->from, i->len) != 0))
                                return -1;
                        r.at += i->len;
                }
        }
        if (!lc_calendar_time(&r.cal, ms))
                return -1;
        if (r.ambiguous && *ms < f->century_ms) {
                r.cal.value[LC_CAL_YEAR] += 100;
                r.cal.value[LC_CAL_WEEK_YEAR] += 100;
                lc_calendar_time(&r.cal, ms);
        }
        return 0;
}
