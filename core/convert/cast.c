/* cast.c - see cast.h. Threads: any. Tests: spec/golden/smt_spec.lua */
#include "convert/cast.h"
#include "convert/converter.h"
#include "convert/text.h"
#include "convert/values.h"
#include "data/decimal.h"
#include "data/validate.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define INPUTS "[INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING, BYTES]"

enum { MS_PER_DAY = 86400000 };

/* ---- parsing ---- */

int lc_java_digit(uint32_t c)
{
        static const uint16_t zeros[] = {0x0030, 0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6,
                                         0x0B66, 0x0BE6, 0x0C66, 0x0CE6, 0x0D66, 0x0DE6, 0x0E50, 0x0ED0,
                                         0x0F20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80,
                                         0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900,
                                         0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10};

        for (size_t i = 0; i < sizeof(zeros) / sizeof(*zeros); i++)
                if (c >= zeros[i] && c < zeros[i] + 10u)
                        return (int)(c - zeros[i]);
        return -1;
}

static int bad_number(const char *s, size_t n, lc_buf_t *why)
{
        lc_buf_adds(why, "For input string: \"");
        lc_utf8_append(why, s, n);
        lc_buf_adds(why, "\"");
        return -1;
}

int lc_java_parse_integer(const char *s, size_t n, lc_type_t type, int64_t *out, lc_buf_t *why)
{
        bool negative = n && *s == '-';
        size_t i = negative || (n && *s == '+'), used;
        int64_t v = 0;

        if (i == n)
                return bad_number(s, n, why);
        for (; i < n; i += used) {
                int d = lc_java_digit(lc_utf8_next(s + i, n - i, &used, NULL));

                if (d < 0 || __builtin_mul_overflow(v, 10, &v) ||
                    __builtin_sub_overflow(v, d, &v)) /* below zero there is room for one more */
                        return bad_number(s, n, why);
        }
        if (!negative && v == INT64_MIN)
                return bad_number(s, n, why);
        v = negative ? v : -v;
        if (type != LC_INT64 && v != (int32_t)v)
                return bad_number(s, n, why);
        if ((type == LC_INT8 && v != (int8_t)v) || (type == LC_INT16 && v != (int16_t)v)) {
                lc_buf_adds(why, "Value out of range. Value:\"");
                lc_utf8_append(why, s, n);
                lc_buf_adds(why, "\" Radix:10");
                return -1;
        }
        *out = v;
        return 0;
}

static size_t skip(const char *s, const char *set)
{
        return strspn(s, set);
}

/* Length of the part that strtod reads when `s` is a Java float, else 0. s is terminated. */
static size_t float_length(const char *s)
{
        const char *p = s + (*s == '-' || *s == '+'), *digits = "0123456789";
        size_t whole, fraction = 0, more;
        bool is_hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X');

        if (!strcmp(p, "NaN") || !strcmp(p, "Infinity"))
                return strlen(s);
        if (is_hex) {
                p += 2;
                digits = "0123456789abcdefABCDEF";
        }
        p += whole = skip(p, digits);
        if (*p == '.')
                p += 1 + (fraction = skip(p + 1, digits));
        if (whole + fraction == 0)
                return 0;
        if (is_hex ? *p == 'p' || *p == 'P' : *p == 'e' || *p == 'E') {
                const char *e = p + 1 + (p[1] == '+' || p[1] == '-');

                more = skip(e, "0123456789");
                if (!more)
                        return 0;
                p = e + more;
        } else if (is_hex) {
                return 0;
        }
        more = (size_t)(p - s);
        if (*p && strchr("fFdD", *p))
                p++;
        return *p ? 0 : more;
}

int lc_java_parse_float(const char *s, size_t n, lc_type_t type, lc_value_t *out, lc_buf_t *why)
{
        char few[64], *text;
        size_t len;

        while (n && (unsigned char)*s <= ' ') {
                s++;
                n--;
        }
        while (n && (unsigned char)s[n - 1] <= ' ')
                n--;
        if (!n) {
                lc_buf_adds(why, "empty String");
                return -1;
        }
        text = n < sizeof(few) ? few : malloc(n + 1);
        if (!text) {
                lc_buf_adds(why, "out of memory");
                return -1;
        }
        memcpy(text, s, n);
        text[n] = '\0';
        len = strlen(text) == n ? float_length(text) : 0;
        text[len] = '\0';
        *out = (lc_value_t){.type = (uint8_t)type};
        if (type == LC_FLOAT32)
                out->u.f32 = strtof(text, NULL);
        else
                out->u.f = strtod(text, NULL);
        if (text[len ? len - 1 : 0] == 'N') /* Java has one NaN, without a sign */
                *out = type == LC_FLOAT32 ? (lc_value_t){.type = LC_FLOAT32, .u.f32 = NAN}
                                          : (lc_value_t){.type = LC_FLOAT64, .u.f = NAN};
        if (text != few)
                free(text);
        return len ? 0 : bad_number(s, n, why);
}

/* ---- numbers ---- */

static int64_t saturated(double d, int64_t min, int64_t max)
{
        if (isnan(d))
                return 0;
        if (d >= (double)max)
                return max;
        return d <= (double)min ? min : (int64_t)d;
}

/* Number.longValue() for INT64 and BOOLEAN, else intValue(). */
static int64_t whole(const lc_value_t *v, bool wide)
{
        switch (v->type) {
        case LC_FLOAT32:
                return wide ? saturated((double)v->u.f32, INT64_MIN, INT64_MAX)
                            : saturated((double)v->u.f32, INT32_MIN, INT32_MAX);
        case LC_FLOAT64:
                return wide ? saturated(v->u.f, INT64_MIN, INT64_MAX)
                            : saturated(v->u.f, INT32_MIN, INT32_MAX);
        case LC_DECIMAL:
                return lc_decimal_int64(v->u.dec, NULL);
        default:
                return v->u.i;
        }
}

static int decimal_float(const lc_value_t *v, lc_type_t target, lc_value_t *out)
{
        lc_buf_t text = LC_BUF_INIT;
        int rc = lc_decimal_to_text(v->u.dec, &text);

        if (rc == 0 && target == LC_FLOAT32)
                *out = (lc_value_t){.type = LC_FLOAT32, .u.f32 = strtof(text.p, NULL)};
        else if (rc == 0)
                *out = (lc_value_t){.type = LC_FLOAT64, .u.f = strtod(text.p, NULL)};
        lc_buf_free(&text);
        return rc;
}

static int to_float(const lc_value_t *v, lc_type_t target, lc_value_t *out)
{
        double wide = 0;
        float narrow = 0;

        switch (v->type) {
        case LC_DECIMAL:
                return decimal_float(v, target, out);
        case LC_FLOAT32:
                wide = (double)(narrow = v->u.f32);
                break;
        case LC_FLOAT64:
                narrow = (float)(wide = v->u.f);
                break;
        default:
                wide = (double)v->u.i;
                narrow = (float)v->u.i;
        }
        *out = target == LC_FLOAT32 ? (lc_value_t){.type = LC_FLOAT32, .u.f32 = narrow}
                                    : (lc_value_t){.type = LC_FLOAT64, .u.f = wide};
        return 0;
}

static int64_t narrowed(int64_t i, lc_type_t target)
{
        switch (target) {
        case LC_INT8:
                return (int8_t)i;
        case LC_INT16:
                return (int16_t)i;
        case LC_INT32:
                return (int32_t)i;
        default:
                return i;
        }
}

/* ---- the cast ---- */

static int out_of_range(const lc_value_t *v, const lc_buf_t *why, lc_err_t *err)
{
        lc_buf_t text = LC_BUF_INIT;

        lc_utf8_append(&text, v->u.s, v->len);
        lc_err_set_cls(err, LC_DATA, 0, LC_CLS_DATA, "Value (%s) was out of range for requested data type",
                       text.p ? text.p : "");
        lc_err_cause(err, "java.lang.NumberFormatException", "%s", why->p ? why->p : "");
        lc_buf_free(&text);
        return -1;
}

static int parse(const lc_value_t *v, lc_type_t target, lc_value_t *out, lc_err_t *err)
{
        lc_buf_t why = LC_BUF_INIT;
        lc_value_t made = {.type = (uint8_t)target};
        int rc;

        if (target == LC_FLOAT32 || target == LC_FLOAT64)
                rc = lc_java_parse_float(v->u.s, v->len, target, &made, &why);
        else
                rc = lc_java_parse_integer(v->u.s, v->len, target, &made.u.i, &why);
        if (rc)
                out_of_range(v, &why, err);
        else
                *out = made;
        lc_buf_free(&why);
        return rc;
}

static int to_text(const lc_value_t *v, lc_arena_t *a, lc_value_t *out, lc_err_t *err)
{
        lc_buf_t text = LC_BUF_INIT;
        const char *copy;
        int rc = 0;

        if (v->type == LC_STRING) {
                *out = *v;
                return 0;
        }
        if (v->type == LC_BYTES)
                lc_base64_append(&text, v->u.s, v->len);
        else if (v->type == LC_DATE || v->type == LC_TIME || v->type == LC_TIMESTAMP)
                lc_values_format_date(v->u.i, &text);
        else
                rc = lc_value_to_java_string(v, NULL, &text);
        copy = rc || !lc_buf_ok(&text) ? NULL : lc_arena_dup(a, text.p ? text.p : "", text.len);
        if (copy)
                *out = lc_value_string(copy, text.len);
        else
                rc = lc_err_set(err, LC_FATAL, 0, "out of memory");
        lc_buf_free(&text);
        return rc;
}

/* What the schema calls a Date, Time or Timestamp as its integer. */
static int logical(const lc_schema_t *schema, lc_value_t *v, lc_err_t *err)
{
        lc_type_t type = schema ? schema->logical : LC_NULL;

        if (v->type < LC_DATE || v->type > LC_TIMESTAMP)
                return 0;
        if (type == LC_DATE) {
                if (v->u.i % MS_PER_DAY)
                        return lc_err_set_cls(
                                err, LC_DATA, 0, LC_CLS_DATA,
                                "Kafka Connect Date type should not have any time fields set to "
                                "non-zero values.");
                *v = (lc_value_t){.type = LC_INT32, .u.i = v->u.i / MS_PER_DAY};
        } else if (type == LC_TIME) {
                if (v->u.i < 0 || v->u.i > MS_PER_DAY)
                        return lc_err_set_cls(
                                err, LC_DATA, 0, LC_CLS_DATA,
                                "Kafka Connect Time type should not have any date fields set to "
                                "non-zero values.");
                v->type = LC_INT32;
        } else if (type == LC_TIMESTAMP) {
                v->type = LC_INT64;
        }
        return 0;
}

static int unexpected(const lc_value_t *v, lc_err_t *err)
{
        return lc_err_set_cls(err, LC_DATA, 0, LC_CLS_DATA,
                              "Unexpected type in Cast transformation: class %s", lc_value_java_class(v));
}

static bool is_true(const lc_value_t *v)
{
        return v->len == 4 && (v->u.s[0] | 32) == 't' && (v->u.s[1] | 32) == 'r' && (v->u.s[2] | 32) == 'u' &&
               (v->u.s[3] | 32) == 'e';
}

static int check_input(const lc_schema_t *schema, const lc_value_t *v, lc_err_t *err)
{
        lc_type_t type = schema ? schema->type : (lc_type_t)v->type;

        if (type == LC_ARRAY || type == LC_MAP || type == LC_STRUCT)
                return lc_err_set_cls(err, LC_DATA, 0, LC_CLS_DATA,
                                      "Cast transformation does not support casting from %s; supported types "
                                      "are " INPUTS,
                                      lc_type_name(type));
        if (type > LC_STRUCT)
                return lc_err_set_cls(err, LC_DATA, 0, LC_CLS_DATA,
                                      "Cast transformation was passed a value of type class %s which is not "
                                      "supported by Connect's data API",
                                      lc_value_java_class(v));
        return 0;
}

int lc_cast_value(const lc_schema_t *schema, const lc_value_t *value, lc_type_t target, lc_arena_t *a,
                  lc_value_t *out, lc_err_t *err)
{
        lc_value_t v = *value;

        if (v.type == LC_NULL) {
                *out = v;
                return 0;
        }
        if (check_input(schema, &v, err))
                return -1;
        if (target == LC_STRING)
                return to_text(&v, a, out, err);
        if (logical(schema, &v, err))
                return -1;
        if (v.type == LC_STRING && target != LC_BOOLEAN)
                return parse(&v, target, out, err);
        if (!(v.type >= LC_INT8 && v.type <= LC_STRING) && v.type != LC_DECIMAL)
                return unexpected(&v, err);
        if (target == LC_FLOAT32 || target == LC_FLOAT64)
                return to_float(&v, target, out);
        if (target == LC_BOOLEAN)
                *out = (lc_value_t){.type = LC_BOOLEAN,
                                    .u.i = v.type == LC_STRING ? is_true(&v) : whole(&v, true) != 0};
        else
                *out = (lc_value_t){.type = (uint8_t)target,
                                    .u.i = narrowed(whole(&v, target == LC_INT64), target)};
        return 0;
}

/* new BigInteger(text) takes an optional sign and digits only. */
static bool whole_text(const char *s, size_t n)
{
        size_t i = n && (*s == '-' || *s == '+');

        if (i == n)
                return false;
        for (; i < n; i++)
                if (s[i] < '0' || s[i] > '9')
                        return false;
        return true;
}

static int no_number(const char *s, size_t n, const lc_value_t *like, lc_err_t *err)
{
        lc_err_set_cls(err, LC_DATA, 0, LC_CLS_DATA,
                       "Unable to convert %.*s (class java.lang.String) to %snumber", (int)n, s,
                       like->type == LC_DECIMAL ? "" : "a ");
        if (like->type == LC_DECIMAL && (like->flags & LC_VF_BIGINT))
                lc_java_big_integer_refused(s, n, err);
        else
                lc_java_big_decimal_refused(s, n, err);
        return -1;
}

int lc_java_convert_number(const char *s, size_t n, const lc_value_t *like, lc_arena_t *a, lc_value_t *out,
                           lc_err_t *err)
{
        const lc_decimal_t *d;
        lc_value_t v, made;
        int rc;

        if ((like->flags & LC_VF_BIGINT) && like->type == LC_DECIMAL && !whole_text(s, n))
                return no_number(s, n, like, err);
        rc = lc_decimal_parse(a, s, n, &d);
        if (rc < 0)
                return rc == LC_DECIMAL_OOM ? lc_err_set(err, LC_FATAL, 0, "out of memory")
                                            : no_number(s, n, like, err);
        v = lc_value_decimal(d);
        if (like->type == LC_DECIMAL) {
                v.flags = like->flags;
                *out = v;
                return 0;
        }
        if (like->type == LC_FLOAT32 || like->type == LC_FLOAT64) {
                rc = to_float(&v, LC_FLOAT64, &made);
                if (rc == 0 && like->type == LC_FLOAT32)
                        made = (lc_value_t){.type = LC_FLOAT32, .u.f32 = (float)made.u.f};
                *out = made;
                return rc ? lc_err_set(err, LC_FATAL, 0, "out of memory") : 0;
        }
        *out = (lc_value_t){.type = like->type,
                            .u.i = narrowed(lc_decimal_int64(d, NULL), (lc_type_t)like->type)};
        return 0;
}
