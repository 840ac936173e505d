/*
 * json_path.c - what JsonConverter costs, both ways, on the records of a file, one a line; json.lua builds and
 * runs it beside JsonPath.java, which does the same with Java's class.
 *   json_path FILE true|false SECONDS ROUNDS      true: schemas.enable
 * Rounds of so many seconds, the first half as many again to warm up; per round the time of the thread for a
 * record. The functions are those a task calls, with a batch's arena for each 500 records.
 */
#include "base/buf.h"
#include "base/props.h"
#include "convert/converter.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 500, MOST = 4096 };

static struct {
        const lc_converter_class_t *cls;
        lc_converter_t *cv;
        lc_arena_t arena, kept;
        lc_slice_t text[MOST];
        const lc_schema_t *schemas[MOST];
        lc_value_t values[MOST];
        size_t n;
} b;

static volatile uint64_t blackhole;

static double seconds(clockid_t clock)
{
        struct timespec t;

        clock_gettime(clock, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(int rc, const lc_err_t *err)
{
        if (rc < 0) {
                fprintf(stderr, "json_path: %s\n", err->msg);
                exit(1);
        }
}

static uint64_t decode(void)
{
        uint64_t sum = 0;
        lc_err_t err;

        lc_err_clear(&err);
        for (size_t i = 0; i < BATCH; i++) {
                const lc_schema_t *schema;
                lc_value_t v;

                check(b.cls->to_connect(b.cv, "t", NULL, b.text[i % b.n], &b.arena, &schema, &v, &err), &err);
                sum += v.type + (uint64_t)(uintptr_t)v.u.s;
        }
        lc_arena_reset(&b.arena);
        return sum;
}

static uint64_t encode(void)
{
        uint64_t sum = 0;
        lc_err_t err;

        lc_err_clear(&err);
        for (size_t i = 0; i < BATCH; i++) {
                size_t at = i % b.n;
                lc_slice_t out;

                check(b.cls->from_connect(b.cv, "t", NULL, b.schemas[at], &b.values[at], &b.arena, &out,
                                          &err),
                      &err);
                sum += out.len + (uint64_t)(unsigned char)out.p[out.len / 2];
        }
        lc_arena_reset(&b.arena);
        return sum;
}

static void measure(const char *what, uint64_t (*f)(void), double length, int rounds)
{
        for (int r = -(rounds + 1) / 2; r < rounds; r++) {
                double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_THREAD_CPUTIME_ID), now;
                uint64_t n = 0;

                do {
                        blackhole += f();
                        n += BATCH;
                        now = seconds(CLOCK_MONOTONIC);
                } while (now - wall < length);
                cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
                if (r >= 0)
                        printf("%s %.1f %.1f\n", what, cpu / (double)n * 1e9, (now - wall) / (double)n * 1e9);
        }
}

static void load(const char *path)
{
        static char line[1 << 16];
        FILE *f = fopen(path, "r");

        if (!f) {
                perror(path);
                exit(1);
        }
        while (b.n < MOST && fgets(line, sizeof(line), f)) {
                size_t len = strcspn(line, "\n");

                b.text[b.n++] = (lc_slice_t){lc_arena_dup(&b.kept, line, len), len};
        }
        fclose(f);
}

int main(int argc, char **argv)
{
        lc_props_t *config = lc_props_new();
        uint64_t hash = 14695981039346656037u;
        size_t bytes = 0;
        lc_err_t err;

        if (argc != 5)
                return 2;
        lc_err_clear(&err);
        lc_arena_init(&b.arena);
        lc_arena_init(&b.kept);
        load(argv[1]);
        lc_props_set(config, "schemas.enable", argv[2]);
        b.cls = lc_converter_class_find("JsonConverter");
        b.cv = b.cls->create(b.cls, config, "value", &err);
        check(b.cv ? 0 : -1, &err);
        for (size_t i = 0; i < b.n; i++) {
                lc_slice_t out;

                check(b.cls->to_connect(b.cv, "t", NULL, b.text[i], &b.kept, &b.schemas[i], &b.values[i],
                                        &err),
                      &err);
                check(b.cls->from_connect(b.cv, "t", NULL, b.schemas[i], &b.values[i], &b.arena, &out, &err),
                      &err);
                bytes += out.len;
                for (size_t k = 0; k < out.len; k++)
                        hash = (hash ^ (unsigned char)out.p[k]) * 1099511628211u;
        }
        printf("written %zu %016llx\n", bytes, (unsigned long long)hash);
        measure("decode", decode, atof(argv[3]), atoi(argv[4]));
        measure("encode", encode, atof(argv[3]), atoi(argv[4]));
        b.cls->destroy(b.cv);
        lc_props_free(config);
        lc_arena_free(&b.arena);
        lc_arena_free(&b.kept);
        return 0;
}
