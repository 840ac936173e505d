/*
 * java_map.c - see java_map.h: buckets by hash ^ hash >>> 16, 16 at first, doubled at three quarters, in a
 * bucket the order of insertion (resizing keeps it; buckets of eight and more are not modelled).
 *
 * Threads: any.  Tests: spec/unit/config_spec.lua
 */
#include "config/java_map.h"
#include "base/alloc.h"
#include "data/java_hash.h"
#include <stdlib.h>
#include <string.h>

void lc_java_map_order(const char *const *keys, size_t n, bool copied, size_t *order)
{
        size_t cap = 16, at = 0;
        uint32_t *bucket = lc_malloc((n + 1) * sizeof(*bucket));

        if (copied)
                for (cap = 1; (double)cap < (double)n / 0.75 + 1;)
                        cap *= 2;
        while (n > cap * 3 / 4)
                cap *= 2;
        for (size_t i = 0; i < n; i++) {
                uint32_t h = (uint32_t)lc_java_string_hash(keys[i], strlen(keys[i]));

                bucket[i] = (h ^ h >> 16) & (uint32_t)(cap - 1);
                order[i] = i;
        }
        for (size_t i = 1; i < n; i++) { /* stable; configs are short */
                size_t o = order[i];

                for (at = i; at && bucket[order[at - 1]] > bucket[o]; at--)
                        order[at] = order[at - 1];
                order[at] = o;
        }
        free(bucket);
}

void lc_java_map_text(const lc_props_t *props, lc_buf_t *out)
{
        size_t n = lc_props_count(props);
        const char **keys = lc_malloc((n + 1) * sizeof(*keys));
        size_t *order = lc_malloc((n + 1) * sizeof(*order));

        for (size_t i = 0; i < n; i++)
                keys[i] = lc_props_key(props, i);
        lc_java_map_order(keys, n, true, order);
        lc_buf_addc(out, '{');
        for (size_t i = 0; i < n; i++) {
                const char *v = lc_props_value(props, order[i]);

                lc_buf_printf(out, "%s%s=%s", i ? ", " : "", keys[order[i]], v ? v : "null");
        }
        lc_buf_addc(out, '}');
        free(keys);
        free(order);
}
