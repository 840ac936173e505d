/*
 * json_number.c - literal numbers as Java's numbers. Any thread. Spec: spec/unit/json_spec.lua
 */
#include "convert/json_parser.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LITERAL = LC_JSON_MAX_NUMBER + 8 };

int64_t lc_json_int64(const lc_json_t *number, bool *exact)
{
        const char *p = number->s, *end = p + number->len, *q;
        bool negative = false, lost = false, point = false;
        uint64_t low = 0;
        int64_t whole = 0, exp = 0, seen = 0;

        if (number->integral &&
            number->len <= 19) { /* 18 digits and a sign, or 19 digits, which fit 64 bits */
                for (q = p + (*p == '-'); q < end; q++)
                        low = low * 10 + (uint64_t)(*q - '0');
                lost = low > (uint64_t)INT64_MAX;
                if (exact)
                        *exact = !lost;
                return (int64_t)(*p == '-' ? 0 - low : low);
        }
        if (p < end && *p == '-') {
                negative = true;
                p++;
        }
        for (q = p; q < end && *q != '.' && *q != 'e' && *q != 'E'; q++)
                whole++;
        for (; q < end && *q != 'e' && *q != 'E'; q++)
                ;
        if (q < end) {
                bool down = *++q == '-';

                for (q += *q == '-' || *q == '+'; q < end && exp < INT_MAX; q++)
                        exp = exp * 10 + (*q - '0');
                exp = down ? -exp : exp;
        }
        whole += exp; /* so many digits stand before the point */
        for (; p < end && *p != 'e' && *p != 'E'; p++) {
                if (*p == '.' && !point) {
                        point = true;
                        continue;
                }
                if (seen++ < whole) {
                        lost |= low > (UINT64_MAX - (uint64_t)(*p - '0')) / 10;
                        low = low * 10 + (uint64_t)(*p - '0');
                } else {
                        lost |= *p != '0';
                }
        }
        for (; seen < whole && low; seen++) { /* zero after 64 steps */
                lost |= low > UINT64_MAX / 10;
                low *= 10;
        }
        lost |= negative ? low > (uint64_t)INT64_MAX + 1 : low > (uint64_t)INT64_MAX;
        if (exact)
                *exact = !lost;
        return (int64_t)(negative ? 0 - low : low);
}

static const char *terminated(const lc_json_t *number, char space[MAX_LITERAL + 1])
{
        size_t n = number->len < MAX_LITERAL ? number->len : MAX_LITERAL;

        memcpy(space, number->s, n);
        space[n] = '\0';
        return space;
}

/* Up to 15 digits and a power of ten that a double holds exactly: one division or multiplication, rounded once,
 * is what strtod() gives (Clinger 1990). */
static bool short_double(const lc_json_t *number, double *d)
{
        static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
        const char *p = number->s, *end = p + number->len;
        bool negative = p < end && *p == '-';
        int places = 0, digits = 0;
        bool point = false;
        int64_t m = 0;

        for (p += negative; p < end; p++) {
                if (*p == '.' && !point) {
                        point = true;
                        continue;
                }
                if (*p < '0' || *p > '9' || (digits += m || *p != '0') > 15)
                        return false;
                m = m * 10 + (*p - '0');
                places += point;
        }
        if (places > 22)
                return false;
        *d = (double)(negative ? -m : m) / tens[places];
        return true;
}

/* Java comes through BigDecimal, which has no -0: only a number too small for the type keeps its sign. */
static bool is_zero(const lc_json_t *number)
{
        for (size_t i = 0; i < number->len && (number->s[i] | 32) != 'e'; i++)
                if (number->s[i] >= '1' && number->s[i] <= '9')
                        return false;
        return true;
}

double lc_json_double(const lc_json_t *number)
{
        char space[MAX_LITERAL + 1];
        double d;

        if (short_double(number, &d))
                return d;
        d = strtod(terminated(number, space), NULL);
        return d == 0 && is_zero(number) ? 0 : d;
}

float lc_json_float(const lc_json_t *number)
{
        char space[MAX_LITERAL + 1];
        float f = strtof(terminated(number, space), NULL);

        return f == 0 && is_zero(number) ? 0 : f;
}
