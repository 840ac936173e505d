/*
 * admin.c - see admin.h. Over a consumer handle without a group: it asks for metadata without creating
 * topics, which a producer handle does by default. spec/kafka/admin_spec.lua
 */
#include "kafka/admin.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "kafka/conf.h"
#include "kafka/admin_calls.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct lc_admin {
        lc_kafka_client_t *client;
};

lc_admin_t *lc_admin_new(const lc_props_t *conf, lc_err_t *err)
{
        lc_admin_t *a = lc_calloc(1, sizeof(*a));

        a->client = lc_kafka_open(RD_KAFKA_CONSUMER, conf, NULL, 0, err);
        if (!a->client) {
                free(a);
                return NULL;
        }
        return a;
}

void lc_admin_free(lc_admin_t *a)
{
        if (!a)
                return;
        lc_kafka_close(a->client);
        free(a);
}

char *lc_admin_cluster_id(lc_admin_t *a, int ms, lc_err_t *err)
{
        char *id = rd_kafka_clusterid(a->client->rk, ms), *copy;

        if (!id) {
                lc_err_set_cls(err, LC_RETRIABLE, RD_KAFKA_RESP_ERR__TIMED_OUT,
                               "org.apache.kafka.common.errors.TimeoutException",
                               "Timed out waiting for a node assignment. Call: listNodes");
                return NULL;
        }
        copy = lc_strdup(id);
        rd_kafka_mem_free(a->client->rk, id);
        return copy;
}

int lc_admin_partitions(lc_admin_t *a, const char *topic, int ms, lc_err_t *err)
{
        int n = 0;

        return lc_kafka_topic_partitions(a->client->rk, &topic, 1, &n, ms, err) < 0 ? -1 : n;
}

int lc_admin_create_topic(lc_admin_t *a, const char *topic, int partitions, int replication,
                          const lc_props_t *settings, int ms, lc_err_t *err)
{
        lc_kafka_new_topic_t t = {
                .name = topic, .partitions = partitions, .replication = replication, .settings = settings};
        int64_t until = lc_now_ms() + ms;

        if (lc_kafka_create_topics(a->client->rk, &t, 1, ms, err) < 0)
                return -1;
        /* the broker that answered may know before others: wait until it can be seen */
        while (t.created && lc_now_ms() < until) {
                struct timespec nap = {0, 20 * 1000000};
                int n = 0;
                if (lc_kafka_topic_partitions(a->client->rk, &topic, 1, &n, (int)(until - lc_now_ms()),
                                              NULL) == 0 &&
                    n > 0)
                        break;
                nanosleep(&nap, NULL);
        }
        return t.created ? 1 : 0;
}

char *lc_admin_topic_config(lc_admin_t *a, const char *topic, const char *name, int ms, lc_err_t *err)
{
        char *value = NULL;

        return lc_kafka_topic_configs(a->client->rk, &topic, 1, name, &value, ms, err) < 0 ? NULL : value;
}

int lc_admin_group_offsets(lc_admin_t *a, const char *group, int ms,
                           void (*fn)(void *arg, const char *topic, int32_t partition, int64_t offset),
                           void *arg, lc_err_t *err)
{
        rd_kafka_ListConsumerGroupOffsets_t *ask = rd_kafka_ListConsumerGroupOffsets_new(group, NULL);
        rd_kafka_AdminOptions_t *options =
                rd_kafka_AdminOptions_new(a->client->rk, RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS);
        rd_kafka_queue_t *q = rd_kafka_queue_new(a->client->rk);
        const rd_kafka_topic_partition_list_t *list;
        const rd_kafka_group_result_t **groups;
        rd_kafka_event_t *ev = NULL;
        size_t n = 0;
        int rc = -1;

        rd_kafka_AdminOptions_set_request_timeout(options, ms, NULL, 0);
        rd_kafka_ListConsumerGroupOffsets(a->client->rk, &ask, 1, options, q);
        ev = rd_kafka_queue_poll(q, ms + 1000);
        if (!ev || rd_kafka_event_error(ev)) {
                lc_kafka_err_set(err, NULL, ev ? rd_kafka_event_error(ev) : RD_KAFKA_RESP_ERR__TIMED_OUT,
                                 ev ? rd_kafka_event_error_string(ev) : NULL,
                                 "Cannot read the committed offsets of group '%s'", group);
                goto done;
        }
        groups = rd_kafka_ListConsumerGroupOffsets_result_groups(
                rd_kafka_event_ListConsumerGroupOffsets_result(ev), &n);
        if (n && rd_kafka_group_result_error(groups[0])) {
                lc_kafka_err_set(err, NULL, rd_kafka_error_code(rd_kafka_group_result_error(groups[0])),
                                 rd_kafka_error_string(rd_kafka_group_result_error(groups[0])),
                                 "Cannot read the committed offsets of group '%s'", group);
                goto done;
        }
        list = n ? rd_kafka_group_result_partitions(groups[0]) : NULL;
        for (int i = 0; list && i < list->cnt; i++)
                if (!list->elems[i].err && list->elems[i].offset >= 0)
                        fn(arg, list->elems[i].topic, list->elems[i].partition, list->elems[i].offset);
        rc = 0;
done:
        if (ev)
                rd_kafka_event_destroy(ev);
        rd_kafka_queue_destroy(q);
        rd_kafka_AdminOptions_destroy(options);
        rd_kafka_ListConsumerGroupOffsets_destroy(ask);
        return rc;
}
