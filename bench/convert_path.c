/*
 * convert_path.c - CPU time of one conversion of a 100-byte line, both ways; built and run by
 * convert_bench.lua.
 */
#include "base/props.h"
#include "convert/converter.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS = 5, CALLS = 500000, BATCH = 1000 };

static double now_ns(void)
{
        struct timespec t;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void measure(const char *title, const char *name, const char *schemas, const char *text)
{
        const lc_converter_class_t *cls = lc_converter_class_find(name);
        lc_props_t *config = lc_props_new();
        lc_value_t in = lc_value_string(text, strlen(text)), out;
        double best_from = 1e9, best_to = 1e9;
        const lc_schema_t *schema;
        lc_slice_t bytes, copy;
        lc_arena_t arena;
        lc_converter_t *cv;
        lc_err_t err;
        char *kept;

        lc_err_clear(&err);
        lc_arena_init(&arena);
        if (schemas)
                lc_props_set(config, "schemas.enable", schemas);
        cv = cls->create(cls, config, "value", &err);
        if (!cv || cls->from_connect(cv, "t", NULL, &lc_schema_string, &in, &arena, &bytes, &err) < 0) {
                fprintf(stderr, "%s: %s\n", title, err.msg);
                exit(1);
        }
        kept = malloc(bytes.len);
        memcpy(kept, bytes.p, bytes.len);
        copy = (lc_slice_t){kept, bytes.len};
        for (int run = 0; run < RUNS; run++) {
                double t = now_ns();

                for (int i = 0; i < CALLS; i++) {
                        cls->from_connect(cv, "t", NULL, &lc_schema_string, &in, &arena, &bytes, &err);
                        if (i % BATCH == 0)
                                lc_arena_reset(&arena);
                }
                t = (now_ns() - t) / CALLS;
                best_from = t < best_from ? t : best_from;
                t = now_ns();
                for (int i = 0; i < CALLS; i++) {
                        cls->to_connect(cv, "t", NULL, copy, &arena, &schema, &out, &err);
                        if (i % BATCH == 0)
                                lc_arena_reset(&arena);
                }
                t = (now_ns() - t) / CALLS;
                best_to = t < best_to ? t : best_to;
        }
        if (err.kind || out.len != in.len || memcmp(out.u.s, in.u.s, in.len) != 0) {
                fprintf(stderr, "%s: the text did not come back\n", title);
                exit(1);
        }
        printf("%-40s from_connect %7.1f ns   to_connect %7.1f ns\n", title, best_from, best_to);
        cls->destroy(cv);
        lc_props_free(config);
        lc_arena_free(&arena);
        free(kept);
}

int main(void)
{
        static const char ascii[] =
                "GET /index.html?id=4711 HTTP/1.1 200 5120 Mozilla/5.0 (X11; Linux x86_64) "
                "AppleWebKit/537.36 (KHTML)";
        static const char utf8[] = "Gr\xC3\xBC\xC3\x9F"
                                   "e aus K\xC3\xB6ln, \xE6\x97\xA5\xE6\x9C\xAC \xE2\x82\xAC 4711, "
                                   "Gr\xC3\xBC\xC3\x9F"
                                   "e aus K\xC3\xB6ln, \xE6\x97\xA5\xE6\x9C\xAC \xE2\x82\xAC 4711 und mehr";
        static const char escapes[] =
                "{\"id\":4711,\"name\":\"say \\\"hi\\\"\",\"path\":\"C:\\\\temp\\\\new\","
                "\"list\":[1,2,3],\"ok\":true,\"note\":\"x\"}";

        measure("JsonConverter, ASCII", "JsonConverter", NULL, ascii);
        measure("JsonConverter, UTF-8", "JsonConverter", NULL, utf8);
        measure("JsonConverter, JSON inside", "JsonConverter", NULL, escapes);
        measure("JsonConverter, schemas.enable=false", "JsonConverter", "false", ascii);
        measure("StringConverter, ASCII", "StringConverter", NULL, ascii);
        measure("StringConverter, UTF-8", "StringConverter", NULL, utf8);
        return 0;
}
