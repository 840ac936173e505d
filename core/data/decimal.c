/*
 * decimal.c - see decimal.h. Numbers are magnitudes of 64-bit limbs, little end first, while we calculate.
 * Any thread. Spec: spec/unit/data_spec.lua.
 */
#include "data/decimal.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t TEN19 = 10000000000000000000u;
enum { DIGITS19 = 19 };

typedef unsigned __int128 wide_t;

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

/* mag * mul + add; returns the new length. The caller left room for one more limb. */
static size_t mul_add(uint64_t *mag, size_t n, uint64_t mul, uint64_t add)
{
        wide_t carry = add;

        for (size_t i = 0; i < n; i++) {
                carry += (wide_t)mag[i] * mul;
                mag[i] = (uint64_t)carry;
                carry >>= 64;
        }
        if (carry)
                mag[n++] = (uint64_t)carry;
        return n;
}

static uint64_t div_small(uint64_t *mag, size_t *n, uint64_t by)
{
        wide_t rest = 0;

        for (size_t i = *n; i-- > 0;) {
                rest = rest << 64 | mag[i];
                mag[i] = (uint64_t)(rest / by);
                rest %= by;
        }
        while (*n && !mag[*n - 1])
                --*n;
        return (uint64_t)rest;
}

static uint64_t pow10_of(size_t k)
{
        uint64_t p = 1;

        while (k--)
                p *= 10;
        return p;
}

static const lc_decimal_t *from_magnitude(lc_arena_t *a, const uint64_t *mag, size_t n, bool negative,
                                          int32_t scale)
{
        size_t len = n * 8 + 1;
        uint8_t *bytes = lc_arena_alloc(a, len);
        unsigned carry = 1;

        if (!bytes)
                return NULL;
        bytes[0] = 0;
        for (size_t i = 0; i < n * 8; i++)
                bytes[len - 1 - i] = (uint8_t)(mag[i / 8] >> (i % 8 * 8));
        if (negative)
                for (size_t i = len; i-- > 0;) {
                        carry += (uint8_t)~bytes[i];
                        bytes[i] = (uint8_t)carry;
                        carry >>= 8;
                }
        return lc_decimal_from_bytes(a, bytes, len, scale);
}

const lc_decimal_t *lc_decimal_from_bytes(lc_arena_t *a, const void *p, size_t n, int32_t scale)
{
        const uint8_t *b = p;
        lc_decimal_t *d = lc_arena_alloc(a, sizeof(*d));

        while (n > 1 && ((b[0] == 0 && b[1] < 0x80) || (b[0] == 0xff && b[1] >= 0x80))) {
                b++;
                n--;
        }
        if (!n) {
                b = (const uint8_t *)"";
                n = 1;
        }
        if (!d || n > UINT32_MAX || !(d->unscaled = lc_arena_dup(a, b, n)))
                return NULL;
        d->scale = scale;
        d->len = (uint32_t)n;
        return d;
}

const lc_decimal_t *lc_decimal_from_int64(lc_arena_t *a, int64_t unscaled, int32_t scale)
{
        uint64_t mag = unscaled < 0 ? 0 - (uint64_t)unscaled : (uint64_t)unscaled;

        return from_magnitude(a, &mag, 1, unscaled < 0, scale);
}

/* BigDecimal's exponent: at most 10 digits without leading zeros, and the scale must fit an int. */
static int read_exponent(const char *s, const char *end, int64_t *exp)
{
        bool negative = false;

        if (s < end && (*s == '+' || *s == '-'))
                negative = *s++ == '-';
        if (s == end)
                return -1;
        while (s < end && *s == '0')
                s++;
        if (end - s > 10)
                return -1;
        for (*exp = 0; s < end; s++) {
                if (!is_digit(*s))
                        return -1;
                *exp = *exp * 10 + (*s - '0');
        }
        if (negative)
                *exp = -*exp;
        return *exp > INT_MAX || *exp < INT_MIN ? -1 : 0;
}

int lc_decimal_parse(lc_arena_t *a, const char *s, size_t n, const lc_decimal_t **out)
{
        const char *end = s + n, *p;
        bool negative = false, point = false;
        int64_t scale = 0, exp = 0;
        size_t digits = 0, limbs = 0, have = 0;
        uint64_t part = 0, *mag;
        int rc;

        if (s < end && (*s == '+' || *s == '-'))
                negative = *s++ == '-';
        for (p = s; p < end && *p != 'e' && *p != 'E'; p++) {
                if (*p == '.') {
                        if (point)
                                return LC_DECIMAL_BAD;
                        point = true;
                } else if (is_digit(*p)) {
                        digits++;
                        scale += point;
                } else {
                        return LC_DECIMAL_BAD;
                }
        }
        if (!digits || (p < end && read_exponent(p + 1, end, &exp) < 0))
                return LC_DECIMAL_BAD;
        scale -= exp;
        if (scale > INT_MAX || scale < INT_MIN)
                return LC_DECIMAL_BAD;
        mag = malloc((digits / DIGITS19 + 2) * sizeof(*mag));
        if (!mag)
                return LC_DECIMAL_OOM;
        for (end = p, p = s; p < end; p++) {
                if (*p == '.')
                        continue;
                part = part * 10 + (uint64_t)(*p - '0');
                if (++have == DIGITS19) {
                        limbs = mul_add(mag, limbs, TEN19, part);
                        part = have = 0;
                }
        }
        if (have)
                limbs = mul_add(mag, limbs, pow10_of(have), part);
        *out = from_magnitude(a, mag, limbs, negative, (int32_t)scale);
        rc = *out ? 0 : LC_DECIMAL_OOM;
        free(mag);
        return rc;
}

/* malloc'ed magnitude; *n without leading zero limbs (0 for zero). */
static uint64_t *magnitude(const lc_decimal_t *d, size_t *n, bool *negative)
{
        size_t limbs = d->len / 8 + 2;
        uint64_t *mag = calloc(limbs, sizeof(*mag));
        unsigned carry = 1;

        if (!mag)
                return NULL;
        *negative = d->len && d->unscaled[0] >= 0x80;
        for (size_t i = 0; i < d->len; i++) {
                uint8_t byte = d->unscaled[d->len - 1 - i];

                if (*negative) {
                        carry += (uint8_t)~byte;
                        byte = (uint8_t)carry;
                        carry >>= 8;
                }
                mag[i / 8] |= (uint64_t)byte << (i % 8 * 8);
        }
        if (*negative && carry)
                mag[d->len / 8] |= (uint64_t)1 << (d->len % 8 * 8);
        while (limbs && !mag[limbs - 1])
                limbs--;
        *n = limbs;
        return mag;
}

/* Decimal digits of the unscaled number without sign, most significant first. malloc'ed. */
static char *digits_of(const lc_decimal_t *d, size_t *len, bool *negative)
{
        size_t n = 0, cap, at;
        uint64_t *mag = magnitude(d, &n, negative);
        char *text;

        if (!mag)
                return NULL;
        cap = at = n * 20 + 1;
        text = malloc(cap);
        if (!text) {
                free(mag);
                return NULL;
        }
        while (n) {
                uint64_t part = div_small(mag, &n, TEN19);

                for (int i = 0; i < DIGITS19 && (n || part); i++, part /= 10)
                        text[--at] = (char)('0' + part % 10);
        }
        if (at == cap)
                text[--at] = '0';
        *len = cap - at;
        memmove(text, text + at, *len);
        free(mag);
        return text;
}

int lc_decimal_to_text(const lc_decimal_t *d, lc_buf_t *out)
{
        bool negative = false;
        size_t n = 0;
        char *t = digits_of(d, &n, &negative);
        int64_t adjusted;

        if (!t)
                return -1;
        adjusted = -(int64_t)d->scale + ((int64_t)n - 1);
        if (negative)
                lc_buf_addc(out, '-');
        if (d->scale == 0) {
                lc_buf_add(out, t, n);
        } else if (d->scale > 0 && adjusted >= -6) {
                int64_t whole = (int64_t)n - d->scale;

                if (whole > 0) {
                        lc_buf_add(out, t, (size_t)whole);
                        lc_buf_addc(out, '.');
                        lc_buf_add(out, t + whole, n - (size_t)whole);
                } else {
                        lc_buf_adds(out, "0.");
                        for (; whole < 0; whole++)
                                lc_buf_addc(out, '0');
                        lc_buf_add(out, t, n);
                }
        } else {
                lc_buf_addc(out, t[0]);
                if (n > 1) {
                        lc_buf_addc(out, '.');
                        lc_buf_add(out, t + 1, n - 1);
                }
                if (adjusted)
                        lc_buf_printf(out, "E%s%lld", adjusted > 0 ? "+" : "", (long long)adjusted);
        }
        free(t);
        return out->oom ? -1 : 0;
}

int64_t lc_decimal_int64(const lc_decimal_t *d, bool *exact)
{
        bool negative = false, lost = false;
        size_t n = 0;
        uint64_t *mag = magnitude(d, &n, &negative), low = 0;

        if (!mag) {
                if (exact)
                        *exact = false;
                return 0;
        }
        for (int64_t cut = d->scale; cut > 0 && n; cut -= DIGITS19)
                lost |= div_small(mag, &n, cut < DIGITS19 ? pow10_of((size_t)cut) : TEN19) != 0;
        if (n) {
                lost |= n > 1;
                low = mag[0];
                /* from the 64th multiplication on the low 64 bits are zero */
                for (int64_t up = d->scale; up < 0 && low; up++) {
                        lost |= low > UINT64_MAX / 10;
                        low *= 10;
                }
        }
        free(mag);
        lost |= negative ? low > (uint64_t)INT64_MAX + 1 : low > (uint64_t)INT64_MAX;
        if (exact)
                *exact = !lost;
        return (int64_t)(negative ? 0 - low : low);
}

double lc_decimal_double(const lc_decimal_t *d)
{
        lc_buf_t b = LC_BUF_INIT;
        double value;

        lc_decimal_to_text(d, &b);
        value = b.p && !b.oom ? strtod(b.p, NULL) : 0;
        lc_buf_free(&b);
        return value;
}
