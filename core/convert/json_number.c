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

double lc_json_double(const lc_json_t *number)
{
        char space[MAX_LITERAL + 1];
        double d = strtod(terminated(number, space), NULL);

        return d == 0 ? 0 : d; /* Java comes through BigDecimal, which has no -0 */
}

float lc_json_float(const lc_json_t *number)
{
        char space[MAX_LITERAL + 1];
        float f = strtof(terminated(number, space), NULL);

        return f == 0 ? 0 : f;
}
