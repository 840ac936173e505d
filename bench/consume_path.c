/*
 * consume_path.c - what one record costs from the broker to a sink batch: core/kafka/consumer.c without Lua.
 *
 * Usage: consume_path BOOTSTRAP TOPIC RECORDS
 * Build: as produce_path.c. Prints one JSON line; checks that offsets of each partition rise by one.
 */
#include "base/clock.h"
#include "kafka/consumer.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static double cpu_ns(void)
{
        struct rusage u;

        getrusage(RUSAGE_SELF, &u);
        return ((double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
                (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec)) *
               1e3;
}

int main(int argc, char **argv)
{
        long total = argc > 3 ? atol(argv[3]) : 0, got = 0, batches = 0, bytes = 0, gaps = 0;
        int64_t next[64] = {0}, start, first = 0, until;
        lc_props_t *conf = lc_props_new();
        lc_strv_t topics = {0};
        lc_consumer_t *c;
        lc_waker_t waker;
        lc_err_t err;
        struct rusage usage;
        char group[64];
        double cpu = 0, seconds;

        if (argc < 4) {
                fprintf(stderr, "usage: %s BOOTSTRAP TOPIC RECORDS\n", argv[0]);
                return 1;
        }
        lc_err_clear(&err);
        snprintf(group, sizeof(group), "consume-path-%d", (int)getpid());
        lc_props_set(conf, "bootstrap.servers", argv[1]);
        lc_props_set(conf, "group.id", group);
        lc_props_set(conf, "queued.max.messages.kbytes", "4096");
        lc_waker_init(&waker);
        c = lc_consumer_new(conf, &waker, NULL, NULL, &err);
        lc_strv_add(&topics, argv[2]);
        if (!c || lc_consumer_subscribe(c, &topics, NULL, &err) < 0) {
                fprintf(stderr, "%s\n", err.msg);
                return 1;
        }
        start = lc_now_ms();
        until = start + 120000;
        while (got < total && lc_now_ms() < until) {
                lc_batch_t *b;

                lc_waker_clear(&waker);
                if (lc_consumer_poll(c, 1000, 500, &b, &err) < 0) {
                        fprintf(stderr, "%s\n", err.msg);
                        return 1;
                }
                if (!b)
                        continue;
                if (!first) {
                        first = lc_now_ms();
                        cpu = cpu_ns();
                }
                for (uint32_t i = 0; i < b->n; i++) {
                        lc_record_t *r = &b->records[i];
                        gaps += r->u.snk.offset != next[r->partition % 64];
                        next[r->partition % 64] = r->u.snk.offset + 1;
                        bytes += (long)r->value_bytes.len;
                }
                got += (long)b->n;
                batches++;
                lc_batch_unref(b);
        }
        seconds = (double)(lc_now_ms() - first) / 1000;
        cpu = cpu_ns() - cpu;
        getrusage(RUSAGE_SELF, &usage);
        printf("{\"bench\":\"consume_path\",\"records\":%ld,\"bytes\":%ld,\"seconds\":%.3f,\"first_after_"
               "ms\":%lld,"
               "\"records_per_s\":%.0f,\"cpu_ns_per_record\":%.0f,\"batches\":%ld,\"gaps\":%ld,\"max_rss_"
               "mb\":%ld}\n",
               got, bytes, seconds, (long long)(first - start), (double)got / seconds, cpu / (double)got,
               batches, gaps, usage.ru_maxrss / 1024);
        lc_consumer_close(c);
        lc_strv_free(&topics);
        lc_props_free(conf);
        lc_waker_close(&waker);
        return got < total;
}
