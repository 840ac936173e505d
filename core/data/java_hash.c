/*
 * java_hash.c - see java_hash.h. Any thread; owns nothing. Spec: spec/unit/data_spec.lua.
 */
#include "data/java_hash.h"
#include "data/schema.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_TABLE = 16, TREE_TABLE = 64, TREE_CHAIN = 8 };

/* Next code point of UTF-8 text; malformed bytes are U+FFFD one by one (their maps are rare enough). */
static uint32_t next_point(const unsigned char **at, const unsigned char *end)
{
        const unsigned char *p = *at;
        uint32_t c = *p++;
        int more = c >= 0xF0 && c < 0xF8 ? 3 : c >= 0xE0 ? 2 : c >= 0xC0 ? 1 : 0;

        if (c >= 0x80) {
                if (!more || c >= 0xF8 || end - p < more) {
                        *at = p;
                        return 0xFFFD;
                }
                c &= 0x3Fu >> more;
                for (int i = 0; i < more; i++) {
                        if ((p[i] & 0xC0) != 0x80) {
                                *at = p;
                                return 0xFFFD;
                        }
                        c = c << 6 | (p[i] & 0x3F);
                }
                p += more;
        }
        *at = p;
        return c;
}

int32_t lc_java_string_hash(const char *s, size_t n)
{
        const unsigned char *p = (const unsigned char *)s, *end = p + n;
        uint32_t h = 0;

        while (p < end) {
                uint32_t c = *p < 0x80 ? *p++ : next_point(&p, end);

                if (c > 0xFFFF) {
                        h = 31 * h + (0xD800 + ((c - 0x10000) >> 10));
                        c = 0xDC00 + ((c - 0x10000) & 0x3FF);
                }
                h = 31 * h + c;
        }
        return (int32_t)h;
}

static int32_t hash_long(int64_t i)
{
        return (int32_t)((uint64_t)i ^ (uint64_t)i >> 32);
}

/* BigInteger.hashCode(): 31 * over the ints of the magnitude, times the sign. */
static int32_t hash_decimal(const lc_value_t *v)
{
        const lc_decimal_t *d = v->u.dec;
        bool negative = d->len && d->unscaled[0] >= 0x80;
        uint32_t h = 0, zeros = 0; /* zero bytes at the end */

        while (zeros < d->len && !d->unscaled[d->len - 1 - zeros])
                zeros++;
        for (uint32_t word = (d->len + 3) / 4; word-- > 0;) {
                uint32_t w = 0;
                bool lower_zero = zeros >= word * 4;

                for (uint32_t i = 4; i-- > 0;) {
                        uint32_t at = word * 4 + i;
                        w = w << 8 | (at < d->len ? d->unscaled[d->len - 1 - at] : negative ? 0xff : 0);
                }
                if (negative)
                        w = lower_zero ? 0 - w : ~w;
                h = 31 * h + w;
        }
        if (negative)
                h = 0 - h;
        return (int32_t)(v->flags & LC_VF_BIGINT ? h : 31 * h + (uint32_t)d->scale);
}

static int32_t hash_float(float f)
{
        int32_t bits;

        if (isnan(f))
                return 0x7fc00000;
        memcpy(&bits, &f, sizeof(bits));
        return bits;
}

static int32_t hash_double(double f)
{
        int64_t bits = 0x7ff8000000000000;

        if (!isnan(f))
                memcpy(&bits, &f, sizeof(bits));
        return hash_long(bits);
}

int32_t lc_java_hash(const lc_value_t *v)
{
        uint32_t h;

        switch ((lc_type_t)v->type) {
        case LC_INT8:
        case LC_INT16:
        case LC_INT32:
                return (int32_t)v->u.i;
        case LC_INT64:
        case LC_DATE:
        case LC_TIME:
        case LC_TIMESTAMP:
                return hash_long(v->u.i);
        case LC_FLOAT32:
                return hash_float(v->u.f32);
        case LC_FLOAT64:
                return hash_double(v->u.f);
        case LC_BOOLEAN:
                return v->u.i ? 1231 : 1237;
        case LC_STRING:
                return lc_java_string_hash(v->u.s, v->len);
        case LC_DECIMAL:
                return hash_decimal(v);
        case LC_ARRAY:
                h = 1;
                for (uint32_t i = 0; i < v->len; i++)
                        h = 31 * h + (uint32_t)lc_java_hash(&v->u.items[i]);
                return (int32_t)h;
        case LC_MAP:
                h = 0;
                for (uint32_t i = 0; i < v->len; i++)
                        h += (uint32_t)lc_java_hash(&v->u.items[2 * i]) ^
                             (uint32_t)lc_java_hash(&v->u.items[2 * i + 1]);
                return (int32_t)h;
        default:
                return 0;
        }
}

/* The table's size after n puts: doubled beyond 3/4, and instead of making a tree in a small table. */
static uint32_t table_size(const uint32_t *hashes, uint32_t n)
{
        uint32_t size = FIRST_TABLE, chain;

        for (uint32_t i = 0; i < n; i++) {
                if (size < TREE_TABLE) {
                        chain = 0;
                        for (uint32_t j = 0; j < i; j++)
                                chain += ((hashes[j] ^ hashes[i]) & (size - 1)) == 0;
                        if (chain >= TREE_CHAIN)
                                size *= 2;
                }
                if (i + 1 > size - size / 4)
                        size *= 2;
        }
        return size;
}

/* The order of n spread hashes in a table they were put into one after the other. */
static int order_of(const uint32_t *hashes, uint32_t n, uint32_t *order)
{
        uint32_t size = table_size(hashes, n), out = 0, *heads;

        /* a stable counting sort by bucket */
        heads = calloc((size_t)size + 1, sizeof(*heads));
        if (!heads)
                return -1;
        for (uint32_t i = 0; i < n; i++)
                heads[(hashes[i] & (size - 1)) + 1]++;
        for (uint32_t i = 0; i < size; i++) {
                out += heads[i];
                heads[i] = out;
        }
        for (uint32_t i = 0; i < n; i++)
                order[heads[hashes[i] & (size - 1)]++] = i;
        free(heads);
        return 0;
}

static uint32_t spread(int32_t hash)
{
        return (uint32_t)hash ^ (uint32_t)hash >> 16;
}

int lc_java_hash_order(const lc_value_t *items, uint32_t n, uint32_t *order)
{
        uint32_t small[64], *hashes = small;
        int rc;

        if (n < 2) {
                if (n)
                        order[0] = 0;
                return 0;
        }
        if (n > 64 && !(hashes = malloc(n * sizeof(*hashes))))
                return -1;
        for (uint32_t i = 0; i < n; i++)
                hashes[i] = spread(lc_java_hash(&items[2 * i]));
        rc = order_of(hashes, n, order);
        if (hashes != small)
                free(hashes);
        return rc;
}

int lc_java_unique_entries(lc_value_t *items, uint32_t *n)
{
        size_t size = 16, mask;
        uint32_t kept = 0, *table;

        if (*n < 2)
                return 0;
        while (size < (size_t)*n * 2)
                size *= 2;
        mask = size - 1;
        table = calloc(size, sizeof(*table)); /* entry + 1 */
        if (!table)
                return -1;
        for (uint32_t i = 0; i < *n; i++) {
                const lc_value_t entry[2] = {items[2 * (size_t)i], items[2 * (size_t)i + 1]};
                uint32_t hash = (uint32_t)lc_java_hash(&entry[0]) * 2654435769u;
                size_t at = hash ^ hash >> 15;

                for (; table[at & mask]; at++)
                        if (lc_value_equal(&items[2 * (size_t)(table[at & mask] - 1)], &entry[0]))
                                break;
                if (table[at & mask]) {
                        items[2 * (size_t)(table[at & mask] - 1) + 1] = entry[1];
                        continue;
                }
                items[2 * (size_t)kept] = entry[0];
                items[2 * (size_t)kept + 1] = entry[1];
                table[at & mask] = ++kept;
        }
        free(table);
        *n = kept;
        return 0;
}

int lc_java_string_order(const char *const *keys, uint32_t n, uint32_t *order)
{
        uint32_t *hashes = malloc((n ? n : 1) * sizeof(*hashes));
        int rc;

        if (!hashes)
                return -1;
        for (uint32_t i = 0; i < n; i++)
                hashes[i] = spread(lc_java_string_hash(keys[i], strlen(keys[i])));
        rc = order_of(hashes, n, order);
        free(hashes);
        return rc;
}

int lc_java_string_compare(const char *a, const char *b)
{
        const unsigned char *x = (const unsigned char *)a, *y = (const unsigned char *)b;

        while (*x && *x == *y) {
                x++;
                y++;
        }
        /* bytes sort as UTF-16 units do, but for U+E000 to U+FFFF: behind the surrogates of all above them */
        if (*x >= 0xEE && *y >= 0xEE && (*x >= 0xF0) != (*y >= 0xF0))
                return *x >= 0xF0 ? -1 : 1;
        return (*x > *y) - (*x < *y);
}
