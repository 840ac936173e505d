/*
 * produce_path.c - what one record costs from lc_producer_send to its report: core/kafka/producer.c without
 * Lua.
 *
 * Usage: produce_path BOOTSTRAP TOPIC RECORDS [BYTES] [headers|timestamps]
 * Build: cc -O2 -Icore bench/produce_path.c -o produce_path -Lbuild -lluaconnect -lrdkafka (rpath build)
 * Prints one JSON line: records/s, CPU ns a record (whole process), maximum RSS.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "kafka/producer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { BATCH = 2000 };
static long delivered, failed;

static void on_report(void *arg, lc_record_t *r, const lc_err_t *err)
{
        (void)arg;
        if (err && !failed++)
                fprintf(stderr, "%s\n", err->msg);
        delivered += !err;
        lc_batch_unref(r->batch);
}

static double cpu_ns(void)
{
        struct rusage u;

        getrusage(RUSAGE_SELF, &u);
        return ((double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
                (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec)) *
               1e3;
}

static lc_batch_t *make(const char *topic, size_t bytes, const char *kind)
{
        static lc_header_t header = {.name = "h", .bytes = {"v", 1}};
        lc_batch_t *b = lc_batch_new(BATCH);

        for (int i = 0; i < BATCH; i++) {
                lc_record_t *r = lc_batch_add(b);
                char *value = lc_arena_alloc(&b->arena, bytes);
                memset(value, 'a' + i % 26, bytes);
                r->topic = topic;
                r->value_bytes = (lc_slice_t){value, bytes};
                if (!strcmp(kind, "headers")) {
                        r->headers = &header;
                        r->nheaders = 1;
                } else if (!strcmp(kind, "timestamps")) {
                        r->timestamp = 1700000000000LL + i;
                }
        }
        return b;
}

int main(int argc, char **argv)
{
        long total = argc > 3 ? atol(argv[3]) : 0, sent = 0, full = 0;
        size_t bytes = argc > 4 ? (size_t)atol(argv[4]) : 100;
        const char *kind = argc > 5 ? argv[5] : "plain";
        lc_props_t *conf = lc_props_new();
        lc_producer_t *p;
        lc_waker_t waker;
        lc_err_t err;
        struct rusage usage;
        double cpu, seconds;
        int64_t start;

        if (argc < 4) {
                fprintf(stderr, "usage: %s BOOTSTRAP TOPIC RECORDS [BYTES] [headers|timestamps]\n", argv[0]);
                return 1;
        }
        lc_err_clear(&err);
        lc_props_set(conf, "bootstrap.servers", argv[1]);
        lc_props_set(conf, "acks", "all");
        lc_props_set(conf, "max.in.flight", "1");
        lc_props_set(conf, "linger.ms", "5");
        lc_props_set(conf, "batch.size", "1000000");
        lc_props_set(conf, "queue.buffering.max.kbytes", "16384");
        lc_waker_init(&waker);
        p = lc_producer_new(conf, &waker, on_report, NULL, &err);
        if (!p || lc_producer_topic_partitions(p, argv[2], 10000, &err) < 0) {
                fprintf(stderr, "%s\n", err.msg);
                return 1;
        }
        start = lc_now_ms();
        cpu = cpu_ns();
        while (sent < total) {
                lc_batch_t *b = make(argv[2], bytes, kind);
                for (uint32_t at = 0; at < b->n;) {
                        at += lc_producer_send(p, b->records + at, b->n - at, &err);
                        if (err.kind) {
                                fprintf(stderr, "%s\n", err.msg);
                                return 1;
                        }
                        lc_waker_clear(&waker);
                        if (at < b->n && lc_producer_poll(p, 0) == 0) {
                                full++;
                                lc_waker_wait(&waker, 1000);
                        }
                }
                lc_producer_poll(p, 0);
                sent += (long)b->n;
                lc_batch_unref(b);
        }
        while (lc_producer_outstanding(p))
                lc_producer_poll(p, 100);
        seconds = (double)(lc_now_ms() - start) / 1000;
        cpu = cpu_ns() - cpu;
        getrusage(RUSAGE_SELF, &usage);
        printf("{\"bench\":\"produce_path\",\"kind\":\"%s\",\"records\":%ld,\"bytes\":%zu,\"seconds\":%.3f,"
               "\"records_per_s\":%.0f,\"cpu_ns_per_record\":%.0f,\"failed\":%ld,\"queue_full\":%ld,"
               "\"max_rss_mb\":%ld}\n",
               kind, sent, bytes, seconds, (double)sent / seconds, cpu / (double)sent, failed, full,
               usage.ru_maxrss / 1024);
        lc_producer_destroy(p, 5000);
        lc_waker_close(&waker);
        lc_props_free(conf);
        return failed || delivered != sent;
}
