/*
 * java_number.c - Double.toString and Float.toString of Java 17, digit by digit.
 *
 * Java before 19 does not always print the shortest digits (2.0E-3 is fine, 2.2250738585072014E-308 too, but
 * 1.0E23 is 9.999999999999999E22), so the algorithm is repeated, not approximated: Steele and White with an
 * estimated exponent, in machine words where they suffice, else in big numbers.
 *
 * Threads:   any; everything on the stack.
 * Tests:     spec/unit/json_spec.lua
 */
#include "convert/json.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { EXP_SHIFT = 52, EXP_BIAS = 1023, FLOAT_EXP_SHIFT = 23, FLOAT_EXP_BIAS = 127, LIMBS = 40 };
#define FRACT_HOB ((int64_t)1 << EXP_SHIFT)

typedef struct digits {
        char d[32];
        int n, exp; /* 0.ddd * 10^exp */
} digits_t;

/* Big enough for 10^325 * 2^1100 and its likes. */
typedef struct big {
        uint64_t w[LIMBS];
        int n;
} big_t;

typedef unsigned __int128 wide_t;

static void big_mul(big_t *b, uint64_t by)
{
        wide_t carry = 0;

        for (int i = 0; i < b->n; i++) {
                carry += (wide_t)b->w[i] * by;
                b->w[i] = (uint64_t)carry;
                carry >>= 64;
        }
        if (carry)
                b->w[b->n++] = (uint64_t)carry;
}

static void big_shift(big_t *b, int bits)
{
        int words = bits / 64, rest = bits % 64;

        if (!b->n)
                return;
        memmove(b->w + words, b->w, (size_t)b->n * sizeof(b->w[0]));
        memset(b->w, 0, (size_t)words * sizeof(b->w[0]));
        b->n += words;
        if (rest)
                big_mul(b, (uint64_t)1 << rest);
}

/* v * 5^p5 * 2^p2 */
static void big_set(big_t *b, uint64_t v, int p5, int p2)
{
        static const uint64_t five27 = 7450580596923828125u;

        b->w[0] = v;
        b->n = v != 0;
        for (; p5 >= 27; p5 -= 27)
                big_mul(b, five27);
        for (; p5 > 0; p5--)
                big_mul(b, 5);
        big_shift(b, p2);
}

static int big_cmp(const big_t *a, const big_t *b)
{
        if (a->n != b->n)
                return a->n < b->n ? -1 : 1;
        for (int i = a->n; i-- > 0;)
                if (a->w[i] != b->w[i])
                        return a->w[i] < b->w[i] ? -1 : 1;
        return 0;
}

static void big_add(big_t *a, const big_t *b)
{
        wide_t carry = 0;
        int n = a->n > b->n ? a->n : b->n;

        for (int i = 0; i < n; i++) {
                carry += (wide_t)(i < a->n ? a->w[i] : 0) + (i < b->n ? b->w[i] : 0);
                a->w[i] = (uint64_t)carry;
                carry >>= 64;
        }
        a->n = n;
        if (carry)
                a->w[a->n++] = (uint64_t)carry;
}

static void big_sub(big_t *a, const big_t *b)
{
        uint64_t borrow = 0;

        for (int i = 0; i < a->n; i++) {
                wide_t d = (wide_t)a->w[i] - (i < b->n ? b->w[i] : 0) - borrow;
                a->w[i] = (uint64_t)d;
                borrow = (uint64_t)(d >> 64) != 0;
        }
        while (a->n && !a->w[a->n - 1])
                a->n--;
}

/* Quotient below 10, the remainder times 10 stays. */
static int big_digit(big_t *b, const big_t *s)
{
        int q = 0;

        for (; big_cmp(b, s) >= 0; q++)
                big_sub(b, s);
        big_mul(b, 10);
        return q;
}

static const int N_5_BITS[] = {0,  3,  5,  7,  10, 12, 14, 17, 19, 21, 24, 26, 28, 31,
                               33, 35, 38, 40, 42, 45, 47, 49, 52, 54, 56, 59, 61};
enum { N5 = sizeof(N_5_BITS) / sizeof(N_5_BITS[0]) };

static int64_t pow5(int n)
{
        int64_t p = 1;

        while (n-- > 0)
                p *= 5;
        return p;
}

static void round_up(digits_t *o)
{
        int i = o->n - 1;

        while (i > 0 && o->d[i] == '9')
                o->d[i--] = '0';
        if (o->d[i] == '9') {
                o->exp++;
                o->d[0] = '1';
        } else {
                o->d[i]++;
        }
}

/* A whole number, the low `insignificant` digits of which are noise. */
static void whole_digits(digits_t *o, int64_t v, int insignificant)
{
        char text[24], *at = text + sizeof(text);
        int len;

        o->exp = 0;
        if (insignificant) {
                int64_t p = pow5(insignificant) << insignificant, rest = v % p;

                v /= p;
                o->exp += insignificant;
                if (rest >= p >> 1)
                        v++;
        }
        do {
                *--at = (char)('0' + v % 10);
        } while ((v /= 10) > 0);
        len = (int)(text + sizeof(text) - at);
        o->exp += len;
        while (len > 1 && at[len - 1] == '0')
                len--;
        memcpy(o->d, at, (size_t)len);
        o->n = len;
}

static int insignificant_digits(int p)
{
        static const char table[] = {0,  0,  0,  0,  1,  1,  1,  2,  2,  2,  3,  3,  3,  3,  4,  4,
                                     4,  5,  5,  5,  6,  6,  6,  6,  7,  7,  7,  8,  8,  8,  9,  9,
                                     9,  9,  10, 10, 10, 11, 11, 11, 12, 12, 12, 12, 13, 13, 13, 14,
                                     14, 14, 15, 15, 15, 15, 16, 16, 16, 17, 17, 17, 18, 18, 18, 19};

        return p > 1 && p < (int)sizeof(table) ? table[p] : 0;
}

static int estimate_exponent(int64_t fract, int bin_exp)
{
        int64_t bits = (int64_t)EXP_BIAS << EXP_SHIFT | (fract & (FRACT_HOB - 1));
        double d2;

        memcpy(&d2, &bits, sizeof(d2));
        return (int)floor((d2 - 1.5) * 0.289529654 + 0.176091259 + (double)bin_exp * 0.301029995663981);
}

typedef struct scaled {
        int64_t fract; /* B = fract * 5^b5 * 2^b2, S = 5^s5 * 2^s2, M (half an ulp) = 5^b5 * 2^m2 */
        int b2, b5, s2, s5, m2, exp;
} scaled_t;

/* b + m > tens in Java's int or long. */
static bool sum_above(int64_t b, int64_t m, int64_t tens, int word)
{
        int64_t sum = (int64_t)((uint64_t)b + (uint64_t)m);

        return (word == 32 ? (int32_t)sum : sum) > tens;
}

/* Digits with 64-bit (`word` 64) or 32-bit arithmetic, which wraps as Java's does. */
static bool word_digits(digits_t *o, const scaled_t *k, int word, bool *low, bool *high, int64_t *diff)
{
        int64_t b = (k->fract * pow5(k->b5)) << k->b2, s = pow5(k->s5) << k->s2, m = pow5(k->b5) << k->m2,
                tens;
        int q;

#define WRAP(x) ((x) = word == 32 ? (int32_t)(x) : (x))
        WRAP(b);
        WRAP(s);
        WRAP(m);
        tens = s * 10;
        WRAP(tens);
        o->n = 0;
        o->exp = k->exp;
        q = (int)(b / s);
        b = 10 * (b % s);
        m = (int64_t)((uint64_t)m * 10);
        WRAP(m);
        *low = b < m;
        *high = sum_above(b, m, tens, word);
        if (q == 0 && !*high)
                o->exp--;
        else
                o->d[o->n++] = (char)('0' + q);
        if (o->exp < -3 || o->exp >= 8)
                *low = *high = false;
        while (!*low && !*high) {
                q = (int)(b / s);
                b = 10 * (b % s);
                m = (int64_t)((uint64_t)m * 10);
                WRAP(m);
                if (m > 0) {
                        *low = b < m;
                        *high = sum_above(b, m, tens, word);
                } else { /* m overflowed */
                        *low = *high = true;
                }
                o->d[o->n++] = (char)('0' + q);
        }
        *diff = (int64_t)(((uint64_t)b << 1) - (uint64_t)tens);
#undef WRAP
        return true;
}

static bool sum_reaches(const big_t *b, const big_t *m, const big_t *tens)
{
        big_t sum = *b;

        big_add(&sum, m);
        return big_cmp(tens, &sum) <= 0;
}

static void big_digits(digits_t *o, const scaled_t *k, bool *low, bool *high, int64_t *diff)
{
        big_t s, b, m, tens;
        int q;

        big_set(&s, 1, k->s5, k->s2);
        big_set(&b, (uint64_t)k->fract, k->b5, k->b2);
        big_set(&m, 1, k->b5 + 1, k->m2 + 1);
        big_set(&tens, 1, k->s5 + 1, k->s2 + 1);
        o->n = 0;
        o->exp = k->exp;
        q = big_digit(&b, &s);
        *low = big_cmp(&b, &m) < 0;
        *high = sum_reaches(&b, &m, &tens);
        if (q == 0 && !*high)
                o->exp--;
        else
                o->d[o->n++] = (char)('0' + q);
        if (o->exp < -3 || o->exp >= 8)
                *low = *high = false;
        while (!*low && !*high) {
                q = big_digit(&b, &s);
                big_mul(&m, 10);
                *low = big_cmp(&b, &m) < 0;
                *high = sum_reaches(&b, &m, &tens);
                o->d[o->n++] = (char)('0' + q);
        }
        *diff = 0;
        if (*high && *low) {
                big_shift(&b, 1);
                *diff = big_cmp(&b, &tens);
        }
}

static int max_int(int a, int b)
{
        return a > b ? a : b;
}

static void make_digits(digits_t *o, int bin_exp, int64_t fract, int significant)
{
        int zeros = __builtin_ctzll((unsigned long long)fract), nfract = EXP_SHIFT + 1 - zeros;
        int tiny = max_int(0, nfract - bin_exp - 1), common, bbits, sbits;
        scaled_t k;
        int64_t diff = 0;
        bool low, high;

        if (bin_exp <= 62 && bin_exp >= -21 && tiny == 0 && nfract < 64) {
                int noise = bin_exp > significant ? insignificant_digits(bin_exp - significant - 1) : 0;

                fract = bin_exp >= EXP_SHIFT ? fract << (bin_exp - EXP_SHIFT)
                                             : fract >> (EXP_SHIFT - bin_exp);
                whole_digits(o, fract, noise);
                return;
        }
        k.exp = estimate_exponent(fract, bin_exp);
        k.b5 = max_int(0, -k.exp);
        k.b2 = k.b5 + tiny + bin_exp;
        k.s5 = max_int(0, k.exp);
        k.s2 = k.s5 + tiny;
        k.m2 = k.b2 - significant;
        k.fract = fract >> zeros;
        k.b2 -= nfract - 1;
        common = k.b2 < k.s2 ? k.b2 : k.s2;
        k.b2 -= common;
        k.s2 -= common;
        k.m2 -= common;
        if (nfract == 1) /* below a power of two the next number is half as far */
                k.m2 -= 1;
        if (k.m2 < 0) {
                k.b2 -= k.m2;
                k.s2 -= k.m2;
                k.m2 = 0;
        }
        bbits = nfract + k.b2 + (k.b5 < N5 ? N_5_BITS[k.b5] : k.b5 * 3);
        sbits = k.s2 + 1 + (k.s5 + 1 < N5 ? N_5_BITS[k.s5 + 1] : (k.s5 + 1) * 3);
        if (bbits < 64 && sbits < 64)
                word_digits(o, &k, bbits < 32 && sbits < 32 ? 32 : 64, &low, &high, &diff);
        else
                big_digits(o, &k, &low, &high, &diff);
        o->exp++;
        if (high && (!low || diff > 0 || (diff == 0 && (o->d[o->n - 1] & 1))))
                round_up(o);
}

static void print(lc_buf_t *out, const digits_t *o)
{
        int e = o->exp;

        if (e > 0 && e < 8) {
                int n = o->n < e ? o->n : e;

                lc_buf_add(out, o->d, (size_t)n);
                for (int i = n; i < e; i++)
                        lc_buf_addc(out, '0');
                lc_buf_addc(out, '.');
                if (o->n > n)
                        lc_buf_add(out, o->d + n, (size_t)(o->n - n));
                else
                        lc_buf_addc(out, '0');
        } else if (e <= 0 && e > -3) {
                lc_buf_adds(out, "0.");
                for (; e < 0; e++)
                        lc_buf_addc(out, '0');
                lc_buf_add(out, o->d, (size_t)o->n);
        } else {
                lc_buf_addc(out, o->d[0]);
                lc_buf_addc(out, '.');
                if (o->n > 1)
                        lc_buf_add(out, o->d + 1, (size_t)(o->n - 1));
                else
                        lc_buf_addc(out, '0');
                lc_buf_addc(out, 'E');
                lc_buf_addi(out, e - 1);
        }
}

static bool special(lc_buf_t *out, double d)
{
        if (isnan(d)) {
                lc_buf_adds(out, "NaN");
                return true;
        }
        if (signbit(d))
                lc_buf_addc(out, '-');
        if (isinf(d))
                lc_buf_adds(out, "Infinity");
        else if (d == 0)
                lc_buf_adds(out, "0.0");
        else
                return false;
        return true;
}

void lc_java_double(lc_buf_t *out, double d)
{
        digits_t o;
        int64_t bits, fract;
        int exp, significant = EXP_SHIFT + 1;

        if (special(out, d))
                return;
        memcpy(&bits, &d, sizeof(bits));
        fract = bits & (FRACT_HOB - 1);
        exp = (int)(bits >> EXP_SHIFT & 0x7ff);
        if (exp == 0) {
                int lead = __builtin_clzll((unsigned long long)fract), shift = lead - (63 - EXP_SHIFT);

                fract <<= shift;
                exp = 1 - shift;
                significant = 64 - lead;
        } else {
                fract |= FRACT_HOB;
        }
        make_digits(&o, exp - EXP_BIAS, fract, significant);
        print(out, &o);
}

void lc_java_float(lc_buf_t *out, float f)
{
        digits_t o;
        int32_t bits, fract;
        int exp, significant = FLOAT_EXP_SHIFT + 1;

        if (special(out, (double)f))
                return;
        memcpy(&bits, &f, sizeof(bits));
        fract = bits & 0x7fffff;
        exp = bits >> FLOAT_EXP_SHIFT & 0xff;
        if (exp == 0) {
                int lead = __builtin_clz((unsigned)fract), shift = lead - (31 - FLOAT_EXP_SHIFT);

                fract <<= shift;
                exp = 1 - shift;
                significant = 32 - lead;
        } else {
                fract |= 1 << FLOAT_EXP_SHIFT;
        }
        make_digits(&o, exp - FLOAT_EXP_BIAS, (int64_t)fract << (EXP_SHIFT - FLOAT_EXP_SHIFT), significant);
        print(out, &o);
}
