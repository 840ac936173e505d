/*
 * kafka_stores.c - the worker's three stores over one hub (kafka_stores.h): names, settings, client settings.
 * Threads: the herder's, before and after everything else. spec/kafka/storage_spec.lua
 */
#include "storage/kafka_stores.h"
#include "base/alloc.h"
#include "base/log.h"
#include "config/client_config.h"
#include "kafka/producer.h"
#include "storage/topic_stores.h"
#include <stdlib.h>
#include <string.h>

enum { API_MS = 60000 };

/* Topic settings: what follows the prefix, minus what is not one. */
static lc_props_t *topic_settings(const lc_worker_config_t *wc, const char *prefix, bool is_config)
{
        lc_props_t *p = lc_props_prefixed(lc_worker_config_originals(wc), prefix);

        if (is_config && lc_props_has(p, "partitions"))
                lc_log(LC_WARN, "CONFIG",
                       "Ignoring '%spartitions=%s' setting, since config topic partitions is always 1",
                       prefix, lc_props_get_or(p, "partitions", ""));
        if (lc_props_has(p, "cleanup.policy"))
                lc_log(LC_WARN, "CONFIG",
                       "Ignoring '%scleanup.policy=%s' setting, since compaction is always used", prefix,
                       lc_props_get_or(p, "cleanup.policy", ""));
        lc_props_del(p, "cleanup.policy");
        lc_props_del(p, "topic");
        lc_props_del(p, "partitions");
        lc_props_del(p, "replication.factor");
        return p;
}

static int api_ms(const lc_worker_config_t *wc)
{
        const char *ms = lc_client_java_value(wc, LC_CLIENT_INTERNAL_ADMIN, NULL, "default.api.timeout.ms");
        long n = ms ? strtol(ms, NULL, 10) : 0;

        return n > 0 && n < 3600000 ? (int)n : API_MS;
}

static int check_topic(const lc_worker_config_t *wc, const char *key, const char *text, lc_err_t *err)
{
        const char *name = lc_worker_config_str(wc, key);

        while (name && (*name == ' ' || *name == '\t'))
                name++;
        return name && *name ? 0 : lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG, "%s", text);
}

/* Of the producer that only the leader has. */
static lc_props_t *leader_config(const lc_worker_config_t *wc, lc_err_t *err)
{
        const char *group = lc_worker_config_str(wc, "group.id"),
                   *client = lc_worker_config_str(wc, "client.id");
        char *id = client && *client ? lc_asprintf("%s-%s-configs-leader", group, client)
                                     : lc_asprintf("%s-configs-leader", group);
        char *transactional = lc_asprintf("connect-cluster-%s", group);
        lc_props_t *conf =
                lc_client_config_transactional(wc, LC_CLIENT_INTERNAL_PRODUCER, NULL, id, transactional, err);

        if (conf) {
                lc_props_set(conf, "allow.auto.create.topics", "false");
                lc_producer_smaller(conf); /* a topic that takes Java's batches takes these */
        }
        free(transactional);
        free(id);
        return conf;
}

static lc_hub_topic_conf_t offsets_topic(const lc_worker_config_t *wc, const char *topic, const char *setting,
                                         const lc_props_t *settings)
{
        return (lc_hub_topic_conf_t){
                .name = topic,
                .setting = setting,
                .purpose = "source connector offsets",
                .partitions = (int)lc_worker_config_int(wc, "offset.storage.partitions"),
                .replication = (int)lc_worker_config_int(wc, "offset.storage.replication.factor"),
                .settings = settings,
        };
}

lc_offset_store_t *lc_kafka_own_offsets_new(const lc_worker_config_t *wc, const lc_props_t *connector_config,
                                            const char *topic, const char *suffix, lc_topic_hub_t **hub,
                                            lc_err_t *err)
{
        char *pid = lc_asprintf("connector-producer-%s-offsets", suffix),
             *cid = lc_asprintf("connector-consumer-%s", suffix);
        lc_props_t *producer = lc_client_config(wc, LC_CLIENT_PRODUCER, connector_config, pid, err);
        lc_props_t *consumer =
                producer ? lc_client_config(wc, LC_CLIENT_CONSUMER, connector_config, cid, err) : NULL;
        lc_offset_store_t *store = NULL;
        const char *level = NULL;

        *hub = NULL;
        if (consumer && lc_worker_config_eos(wc) != LC_EOS_ON) {
                lc_props_t *java = lc_client_java_settings(wc, LC_CLIENT_CONSUMER, connector_config);
                level = lc_props_get(java, "isolation.level") ? "theirs" : NULL;
                lc_props_free(java);
        }
        if (consumer) {
                lc_props_set(producer, "linger.ms", "0");
                lc_props_set(consumer, "allow.auto.create.topics", "false");
                *hub = lc_topic_hub_new(producer, consumer, !level, api_ms(wc), err);
        }
        if (*hub) {
                lc_props_t *settings = topic_settings(wc, "offset.storage.", false);
                lc_hub_topic_conf_t conf = offsets_topic(wc, topic, "offsets.storage.topic", settings);

                store = lc_offset_store_kafka_new(*hub, &conf);
                lc_props_free(settings);
        }
        lc_props_free(producer);
        lc_props_free(consumer);
        free(pid);
        free(cid);
        return store;
}

void lc_kafka_own_offsets_free(lc_topic_hub_t *hub)
{
        lc_topic_hub_free(hub);
}

int lc_kafka_stores_new(const lc_worker_config_t *wc, lc_kafka_stores_t *out, lc_err_t *err)
{
        const char *group = lc_worker_config_str(wc, "group.id"),
                   *client = lc_worker_config_str(wc, "client.id");
        bool committed = lc_worker_config_eos(wc) == LC_EOS_ON;
        lc_props_t *producer = NULL, *consumer = NULL, *leader = NULL, *settings;
        char *id = NULL;
        lc_hub_topic_conf_t conf;
        int rc = -1;

        memset(out, 0, sizeof(*out));
        if (check_topic(wc, "offset.storage.topic", "Offset storage topic must be specified", err) < 0 ||
            check_topic(wc, "status.storage.topic", "Must specify topic for connector status.", err) < 0 ||
            check_topic(wc, "config.storage.topic", "Must specify topic for connector configuration.", err) <
                    0)
                return -1;
        id = client && *client ? lc_asprintf("%s-%s-shared-log", group, client)
                               : lc_asprintf("%s-shared-log", group);
        producer = lc_client_config(wc, LC_CLIENT_INTERNAL_PRODUCER, NULL, id, err);
        consumer = producer ? lc_client_config(wc, LC_CLIENT_INTERNAL_CONSUMER, NULL, id, err) : NULL;
        if (!consumer)
                goto done;
        if (committed && lc_props_has(consumer, "isolation.level") &&
            strcmp(lc_props_get_or(consumer, "isolation.level", ""), "read_committed") &&
            lc_props_has(lc_worker_config_originals(wc), "isolation.level"))
                lc_log(LC_WARN, "CONFIG",
                       "The value '%s' for the 'isolation.level' property will be ignored as it cannot be "
                       "overridden when exactly-once source support is enabled. The value 'read_committed' "
                       "will be used instead.",
                       lc_props_get_or(consumer, "isolation.level", ""));
        if (lc_worker_config_eos(wc) != LC_EOS_OFF && !(leader = leader_config(wc, err)))
                goto done;
        out->hub = lc_topic_hub_new(producer, consumer, committed, api_ms(wc), err);
        if (!out->hub)
                goto done;
        if (leader)
                lc_topic_hub_expect_markers(out->hub);

        settings = topic_settings(wc, "offset.storage.", false);
        conf = offsets_topic(wc, lc_worker_config_str(wc, "offset.storage.topic"), "offset.storage.topic",
                             settings);
        out->offset = lc_offset_store_kafka_new(out->hub, &conf);
        lc_props_free(settings);

        settings = topic_settings(wc, "status.storage.", false);
        conf = (lc_hub_topic_conf_t){
                .name = lc_worker_config_str(wc, "status.storage.topic"),
                .setting = "status.storage.topic",
                .purpose = "connector and task statuses",
                .partitions = (int)lc_worker_config_int(wc, "status.storage.partitions"),
                .replication = (int)lc_worker_config_int(wc, "status.storage.replication.factor"),
                .settings = settings,
        };
        out->status = lc_status_store_kafka_new(out->hub, &conf);
        lc_props_free(settings);

        settings = topic_settings(wc, "config.storage.", true);
        conf = (lc_hub_topic_conf_t){
                .name = lc_worker_config_str(wc, "config.storage.topic"),
                .setting = "config.storage.topic",
                .purpose = "connector configurations",
                .partitions = 1,
                .replication = (int)lc_worker_config_int(wc, "config.storage.replication.factor"),
                .settings = settings,
        };
        out->config = lc_config_store_kafka_new(out->hub, &conf, leader);
        lc_props_free(settings);
        rc = 0;
done:
        lc_props_free(producer);
        lc_props_free(consumer);
        lc_props_free(leader);
        free(id);
        return rc;
}

char *lc_kafka_stores_cluster_id(lc_kafka_stores_t *ks, const volatile int *stop, lc_err_t *err)
{
        lc_err_t why;
        char *id;

        lc_err_clear(&why);
        id = lc_topic_hub_cluster_id(ks->hub, stop, &why);
        if (!id) {
                lc_err_wrap(&why, LC_CLS_CONNECT,
                            "Failed to connect to and describe Kafka cluster. Check worker's "
                            "broker connection and security properties.");
                if (err && !err->kind)
                        *err = why;
        }
        return id;
}

void lc_kafka_stores_free(lc_kafka_stores_t *ks)
{
        lc_topic_hub_free(ks->hub);
        memset(ks, 0, sizeof(*ks));
}
