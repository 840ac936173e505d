/* java_big.c - what BigDecimal and BigInteger of JDK 17 say of a text that is no number. See cast.h. */
#include "convert/cast.h"
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#define CLS_NUMBER "java.lang.NumberFormatException"

enum {
        COMPACT = 18 /* digits that fit into a long: the shorter way through BigDecimal has its own words */,
        GROUP = 9
};

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

/* Java's length of the text, in UTF-16 units. */
static size_t units(const char *s, const char *end)
{
        size_t n = 0;

        for (; s < end; s++)
                n += ((unsigned char)*s & 0xC0) != 0x80 ? 1 + ((unsigned char)*s >= 0xF0) : 0;
        return n;
}

static int bytes_of_character(const char *p, const char *end)
{
        int n = 1;

        while (p + n < end && ((unsigned char)p[n] & 0xC0) == 0x80)
                n++;
        return n;
}

/* It reads behind its text, and says so in its own way. */
static void ran_out(size_t length, lc_err_t *err)
{
        lc_err_cause(err, CLS_NUMBER, "%s", "");
        lc_err_cause(err, "java.lang.ArrayIndexOutOfBoundsException",
                     "Index %zu out of bounds for length %zu", length, length);
}

/* `p` is behind the 'e'. true: it said something. */
static bool exponent_refused(const char *p, const char *end, size_t length, int64_t *exp, lc_err_t *err)
{
        int64_t sign = 1;

        if (p < end && (*p == '-' || *p == '+'))
                sign = *p++ == '-' ? -1 : 1;
        if (p == end) {
                ran_out(length, err);
                return true;
        }
        while (end - p > 10 && *p == '0')
                p++;
        if (end - p > 10) {
                lc_err_cause(err, CLS_NUMBER, "Too many nonzero exponent digits.");
                return true;
        }
        for (*exp = 0; p < end; p++) {
                if (!is_digit(*p)) {
                        lc_err_cause(err, CLS_NUMBER, "Not a digit.");
                        return true;
                }
                *exp = *exp * 10 + (*p - '0');
        }
        *exp *= sign;
        if (*exp >= INT_MIN && *exp <= INT_MAX)
                return false;
        lc_err_cause(err, CLS_NUMBER, "Exponent overflow.");
        return true;
}

void lc_java_big_decimal_refused(const char *s, size_t n, lc_err_t *err)
{
        const char *end = s + n, *p = s + (n && (*s == '-' || *s == '+'));
        size_t length = units(s, end), digits = 0;
        bool compact = units(p, end) <= COMPACT, point = false;
        int64_t exp = 0;

        if (!n) {
                ran_out(0, err);
                return;
        }
        for (; p < end && *p != 'e' && *p != 'E'; p++) {
                if (is_digit(*p)) {
                        digits++;
                } else if (*p == '.' && !point) {
                        point = true;
                } else if (*p == '.') {
                        lc_err_cause(err, CLS_NUMBER,
                                     "Character array contains more than one decimal point.");
                        return;
                } else {
                        if (compact)
                                lc_err_cause(
                                        err, CLS_NUMBER,
                                        "Character %.*s is neither a decimal digit number, decimal point, "
                                        "nor \"e\" notation exponential mark.",
                                        bytes_of_character(p, end), p);
                        else
                                lc_err_cause(err, CLS_NUMBER,
                                             "Character array is missing \"e\" notation exponential mark.");
                        return;
                }
        }
        if (p < end && exponent_refused(p + 1, end, length, &exp, err))
                return;
        lc_err_cause(err, CLS_NUMBER, digits ? "Scale out of range." : "No digits found.");
}

void lc_java_big_integer_refused(const char *s, size_t n, lc_err_t *err)
{
        const char *end = s + n;
        size_t group;

        for (const char *p = s + 1; p < end; p++)
                if (*p == '-' || *p == '+') {
                        lc_err_cause(err, CLS_NUMBER, "Illegal embedded sign character");
                        return;
                }
        s += n && (*s == '-' || *s == '+');
        if (s == end) {
                lc_err_cause(err, CLS_NUMBER, "Zero length BigInteger");
                return;
        }
        while (s < end && *s == '0')
                s++;
        group = (size_t)(end - s) % GROUP ? (size_t)(end - s) % GROUP : GROUP;
        for (; s < end; s += group, group = GROUP) /* it reads nine digits at a time */
                for (size_t i = 0; i < group; i++)
                        if (!is_digit(s[i])) {
                                lc_err_cause(err, CLS_NUMBER, "For input string: \"%.*s\"", (int)group, s);
                                return;
                        }
}
