/* embedded_broker.c - see embedded_broker.h. */
#include "cli/embedded_broker.h"
#include "base/alloc.h"
#include "base/log.h"
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdlib.h>
#include <string.h>

struct lc_embedded_broker {
        rd_kafka_t *handle; /* the mock cluster lives inside a client */
        rd_kafka_mock_cluster_t *cluster;
};

static void on_log(const rd_kafka_t *rk, int level, const char *area, const char *text)
{
        (void)rk;
        lc_log(level <= 4 ? LC_WARN : LC_DEBUG, "BROKER", "%s: %s", area, text);
}

lc_embedded_broker_t *lc_embedded_broker_new(const lc_strv_t *topics, lc_err_t *err)
{
        lc_embedded_broker_t *b = lc_calloc(1, sizeof(*b));
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char text[512];

        rd_kafka_conf_set_log_cb(conf, on_log);
        b->handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
        if (!b->handle) {
                rd_kafka_conf_destroy(conf);
                lc_err_set(err, LC_FATAL, 0, "The embedded broker cannot start: %s", text);
                goto failed;
        }
        b->cluster = rd_kafka_mock_cluster_new(b->handle, 1);
        if (!b->cluster) {
                lc_err_set(err, LC_FATAL, 0, "The embedded broker cannot start");
                goto failed;
        }
        for (size_t i = 0; i < topics->n; i++) {
                rd_kafka_resp_err_t code = rd_kafka_mock_topic_create(b->cluster, topics->v[i], 1, 1);
                if (code) {
                        lc_err_set(err, LC_FATAL, code, "The embedded broker cannot create topic '%s': %s",
                                   topics->v[i], rd_kafka_err2str(code));
                        goto failed;
                }
        }
        return b;
failed:
        lc_embedded_broker_free(b);
        return NULL;
}

const char *lc_embedded_broker_bootstrap(const lc_embedded_broker_t *b)
{
        return rd_kafka_mock_cluster_bootstraps(b->cluster);
}

static void set_default(lc_props_t *p, const char *key, const char *value)
{
        if (!lc_props_has(p, key))
                lc_props_set(p, key, value);
}

void lc_embedded_broker_configure(const lc_embedded_broker_t *b, lc_props_t *worker)
{
        lc_props_set(worker, "bootstrap.servers", lc_embedded_broker_bootstrap(b));
        /* a group that is left takes a session timeout to notice */
        set_default(worker, "consumer.session.timeout.ms", "6000");
        /* CreateTopics is not answered; the broker makes a topic when it is first asked for */
        set_default(worker, "topic.creation.enable", "false");
}

void lc_embedded_broker_free(lc_embedded_broker_t *b)
{
        if (!b)
                return;
        if (b->cluster)
                rd_kafka_mock_cluster_destroy(b->cluster);
        if (b->handle)
                rd_kafka_destroy(b->handle);
        free(b);
}
