/*
 * java_text.c - String.valueOf() of Connect values: what StringConverter writes and FileStreamSink prints.
 * Maps come in HashMap order, dates in the process's time zone, byte arrays as [B@ and a number.
 *
 * Threads:   any.
 * Tests:     spec/golden/converters_spec.lua
 */
#include "convert/converter.h"
#include "convert/java_calendar.h"
#include "convert/json.h"
#include "data/decimal.h"
#include "data/java_hash.h"
#include "data/schema.h"
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

static int append(const lc_value_t *v, lc_buf_t *out);

static int append_map(const lc_value_t *v, lc_buf_t *out)
{
        uint32_t few[32], *order = v->len <= 32 ? few : malloc(v->len * sizeof(*order));
        int rc = order ? lc_java_hash_order(v->u.items, v->len, order) : -1;

        lc_buf_addc(out, '{');
        for (uint32_t i = 0; i < v->len && rc == 0; i++) {
                const lc_value_t *e = &v->u.items[2 * order[i]];

                if (i)
                        lc_buf_adds(out, ", ");
                rc = append(e, out);
                lc_buf_addc(out, '=');
                if (rc == 0)
                        rc = append(e + 1, out);
        }
        lc_buf_addc(out, '}');
        if (order != few)
                free(order);
        return rc;
}

static int append_array(const lc_value_t *v, lc_buf_t *out)
{
        lc_buf_addc(out, '[');
        for (uint32_t i = 0; i < v->len; i++) {
                if (i)
                        lc_buf_adds(out, ", ");
                if (append(&v->u.items[i], out) < 0)
                        return -1;
        }
        lc_buf_addc(out, ']');
        return 0;
}

/* Fields without a value are left out, defaults are not shown. */
static int append_struct(const lc_struct_value_t *st, lc_buf_t *out)
{
        bool first = true;

        lc_buf_adds(out, "Struct{");
        for (uint32_t i = 0; i < st->schema->nfields; i++) {
                if (st->fields[i].type == LC_NULL)
                        continue;
                if (!first)
                        lc_buf_addc(out, ',');
                first = false;
                lc_buf_adds(out, st->schema->fields[i].name);
                lc_buf_addc(out, '=');
                if (append(&st->fields[i], out) < 0)
                        return -1;
        }
        lc_buf_addc(out, '}');
        return 0;
}

/* Date.toString(): Thu Jan 01 00:00:00 UTC 1970 */
static void append_date(int64_t ms, lc_buf_t *out)
{
        static const char days[] = "SunMonTueWedThuFriSat", months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
        time_t s = (time_t)(ms / 1000 - (ms % 1000 < 0));
        int32_t f[LC_CAL_FIELDS];
        struct tm tm;

        if (!localtime_r(&s, &tm)) {
                lc_buf_printf(out, "%" PRId64, ms);
                return;
        }
        lc_calendar_of(ms + tm.tm_gmtoff * 1000, f); /* Julian before 1582, years without a sign */
        lc_buf_printf(out, "%.3s %.3s %02d %02d:%02d:%02d %s %d", days + 3 * (f[LC_CAL_DAY_OF_WEEK] - 1),
                      months + 3 * f[LC_CAL_MONTH], f[LC_CAL_DAY_OF_MONTH], f[LC_CAL_HOUR_OF_DAY],
                      f[LC_CAL_MINUTE], f[LC_CAL_SECOND], tm.tm_zone ? tm.tm_zone : "UTC", f[LC_CAL_YEAR]);
}

/* Java prints an identity; ours is made of the address. */
static void append_identity(const char *cls, const void *p, lc_buf_t *out)
{
        uint64_t h = (uint64_t)(uintptr_t)p * 0x9E3779B97F4A7C15u;

        lc_buf_printf(out, "%s@%x", cls, (unsigned)(h >> 33));
}

static int append(const lc_value_t *v, lc_buf_t *out)
{
        switch ((lc_type_t)v->type) {
        case LC_NULL:
                lc_buf_adds(out, "null");
                return 0;
        case LC_INT8:
        case LC_INT16:
        case LC_INT32:
        case LC_INT64:
                lc_buf_printf(out, "%" PRId64, v->u.i);
                return 0;
        case LC_FLOAT32:
                lc_java_float(out, v->u.f32);
                return 0;
        case LC_FLOAT64:
                lc_java_double(out, v->u.f);
                return 0;
        case LC_BOOLEAN:
                lc_buf_adds(out, v->u.i ? "true" : "false");
                return 0;
        case LC_STRING:
                lc_utf8_append(out, v->u.s, v->len);
                return 0;
        case LC_BYTES:
                if (v->flags & LC_VF_BYTEBUFFER)
                        lc_buf_printf(out, "java.nio.HeapByteBuffer[pos=0 lim=%u cap=%u]", v->len, v->len);
                else
                        append_identity("[B", v->u.s, out);
                return 0;
        case LC_ARRAY:
                return append_array(v, out);
        case LC_MAP:
                return append_map(v, out);
        case LC_STRUCT:
                return append_struct(v->u.st, out);
        case LC_DECIMAL:
                return lc_decimal_to_text(v->u.dec, out);
        case LC_DATE:
        case LC_TIME:
        case LC_TIMESTAMP:
                append_date(v->u.i, out);
                return 0;
        case LC_OBJECT:
                append_identity(v->u.s ? v->u.s : "java.lang.Object", v, out);
                return 0;
        }
        return 0;
}

int lc_value_to_java_string(const lc_value_t *v, const lc_schema_t *schema, lc_buf_t *out)
{
        (void)schema;
        return append(v, out) < 0 || !lc_buf_ok(out) ? -1 : 0;
}
