/*
 * conf.c - see conf.h. No locks: `said` and `held_back` are atomics in effect (lc_log_due, __atomic).
 */
#include "kafka/conf.h"
#include "base/alloc.h"
#include "base/log.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAY_AGAIN_MS = 10000 };

static bool is_connection_trouble(const char *fac)
{
        return !strcmp(fac, "FAIL") || !strcmp(fac, "ERROR") || !strcmp(fac, "CONNECT");
}

static void log_line(const rd_kafka_t *rk, int level, const char *fac, const char *text)
{
        lc_kafka_client_t *c = rd_kafka_opaque(rk);
        lc_log_level_t to = level <= 3 ? LC_ERROR : level == 4 ? LC_WARN : level <= 6 ? LC_INFO : LC_DEBUG;
        char before[120];
        int held;

        /* settings that only the other kind of client knows; a topic that appears or goes; what the call that
         * commits says, too, and the task may mend */
        if (!strcmp(fac, "CONFWARN") || !strcmp(fac, "PARTCNT") || !strcmp(fac, "TXNERR"))
                to = LC_DEBUG;
        if (!c) {
                lc_log(to, "KAFKA", "%s: %s", fac, text);
                return;
        }
        snprintf(before, sizeof(before), "%s", lc_log_get_context());
        lc_log_context(c->context);
        if (!is_connection_trouble(fac)) {
                lc_log(to, "KAFKA", "%s: %s", fac, text);
        } else if (lc_log_due(&c->said, SAY_AGAIN_MS)) {
                held = __atomic_exchange_n(&c->held_back, 0, __ATOMIC_RELAXED);
                lc_log(LC_WARN, "KAFKA", "%s: waiting for a broker, trying again: %s%s", c->name, text,
                       held ? " (and more of the like)" : "");
        } else {
                __atomic_add_fetch(&c->held_back, 1, __ATOMIC_RELAXED);
                lc_log(LC_DEBUG, "KAFKA", "%s: %s", c->name, text);
        }
        lc_log_context(before);
}

static int set_one(rd_kafka_conf_t *conf, const char *key, const char *value, lc_err_t *err)
{
        char why[512];

        if (rd_kafka_conf_set(conf, key, value, why, sizeof(why)) == RD_KAFKA_CONF_OK)
                return 0;
        return lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG, "Invalid value %s for configuration %s: %s",
                              value, key, why);
}

lc_kafka_client_t *lc_kafka_open(rd_kafka_type_t type, const lc_props_t *conf,
                                 const char *const (*defaults)[2], int events, lc_err_t *err)
{
        rd_kafka_conf_t *kc = rd_kafka_conf_new();
        lc_kafka_client_t *c = lc_calloc(1, sizeof(*c));
        char why[512], max[32];
        size_t n = sizeof(max);

        for (; defaults && (*defaults)[0]; defaults++)
                if (!lc_props_has(conf, (*defaults)[0]) &&
                    set_one(kc, (*defaults)[0], (*defaults)[1], err) < 0)
                        goto fail;
        for (size_t i = 0; i < lc_props_count(conf); i++) {
                const char *value = lc_props_value(conf, i);
                if (value && set_one(kc, lc_props_key(conf, i), value, err) < 0)
                        goto fail;
        }
        snprintf(c->context, sizeof(c->context), "%s", lc_log_get_context());
        snprintf(c->name, sizeof(c->name), "%s", lc_props_get_or(conf, "client.id", "rdkafka"));
        if (rd_kafka_conf_get(kc, "message.max.bytes", max, &n) == RD_KAFKA_CONF_OK)
                c->max_message = strtoll(max, NULL, 10);
        n = sizeof(max);
        if (rd_kafka_conf_get(kc, "linger.ms", max, &n) == RD_KAFKA_CONF_OK)
                c->lingers = strtod(max, NULL) > 0;
        rd_kafka_conf_set_opaque(kc, c);
        rd_kafka_conf_set_log_cb(kc, log_line);
        rd_kafka_conf_set_events(kc, events);
        c->rk = rd_kafka_new(type, kc, why, sizeof(why));
        if (!c->rk) {
                lc_err_set_cls(err, LC_FATAL, rd_kafka_last_error(), "org.apache.kafka.common.KafkaException",
                               "Failed to create Kafka client %s: %s", c->name, why);
                goto fail;
        }
        return c;
fail:
        rd_kafka_conf_destroy(kc);
        free(c);
        return NULL;
}

void lc_kafka_close(lc_kafka_client_t *c)
{
        if (!c)
                return;
        rd_kafka_destroy(c->rk);
        free(c);
}

void lc_kafka_queue_wakes(rd_kafka_queue_t *q, const lc_waker_t *w)
{
        uint64_t one = 1; /* an eventfd takes exactly 8 bytes */

        rd_kafka_queue_io_event_enable(q, w->fd, &one, sizeof(one));
}

#define ERRORS "org.apache.kafka.common.errors."
static const struct {
        rd_kafka_resp_err_t code;
        lc_err_kind_t kind;
        const char *cls;
} table[] = {
        {RD_KAFKA_RESP_ERR__TIMED_OUT, LC_RETRIABLE, ERRORS "TimeoutException"},
        {RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE, LC_RETRIABLE, ERRORS "TimeoutException"},
        {RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, LC_RETRIABLE, ERRORS "TimeoutException"},
        {RD_KAFKA_RESP_ERR__TRANSPORT, LC_RETRIABLE, ERRORS "DisconnectException"},
        {RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, LC_RETRIABLE, ERRORS "DisconnectException"},
        {RD_KAFKA_RESP_ERR__RESOLVE, LC_RETRIABLE, ERRORS "DisconnectException"},
        {RD_KAFKA_RESP_ERR__QUEUE_FULL, LC_RETRIABLE,
         "org.apache.kafka.clients.producer.BufferExhaustedException"},
        {RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, LC_RETRIABLE, ERRORS "UnknownTopicOrPartitionException"},
        {RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, LC_RETRIABLE, ERRORS "UnknownTopicOrPartitionException"},
        {RD_KAFKA_RESP_ERR__WAIT_COORD, LC_RETRIABLE, ERRORS "CoordinatorNotAvailableException"},
        {RD_KAFKA_RESP_ERR__RETRY, LC_RETRIABLE, NULL},
        {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, LC_RETRIABLE, ERRORS "UnknownTopicOrPartitionException"},
        {RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, LC_RETRIABLE, ERRORS "LeaderNotAvailableException"},
        {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, LC_RETRIABLE, ERRORS "NotLeaderOrFollowerException"},
        {RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, LC_RETRIABLE, ERRORS "TimeoutException"},
        {RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE, LC_RETRIABLE, NULL},
        {RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE, LC_RETRIABLE, ERRORS "ReplicaNotAvailableException"},
        {RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION, LC_RETRIABLE, ERRORS "NetworkException"},
        {RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS, LC_RETRIABLE,
         ERRORS "CoordinatorLoadInProgressException"},
        {RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE, LC_RETRIABLE,
         ERRORS "CoordinatorNotAvailableException"},
        {RD_KAFKA_RESP_ERR_NOT_COORDINATOR, LC_RETRIABLE, ERRORS "NotCoordinatorException"},
        {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, LC_RETRIABLE, ERRORS "NotEnoughReplicasException"},
        {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, LC_RETRIABLE,
         ERRORS "NotEnoughReplicasAfterAppendException"},
        {RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR, LC_RETRIABLE, ERRORS "KafkaStorageException"},
        {RD_KAFKA_RESP_ERR_NOT_CONTROLLER, LC_RETRIABLE, ERRORS "NotControllerException"},
        {RD_KAFKA_RESP_ERR_UNSTABLE_OFFSET_COMMIT, LC_RETRIABLE, ERRORS "UnstableOffsetCommitException"},
        {RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS, LC_RETRIABLE, ERRORS "RebalanceInProgressException"},
        {RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID, LC_RETRIABLE,
         "org.apache.kafka.clients.consumer.CommitFailedException"},
        {RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION, LC_RETRIABLE,
         "org.apache.kafka.clients.consumer.CommitFailedException"},
        {RD_KAFKA_RESP_ERR_CONCURRENT_TRANSACTIONS, LC_RETRIABLE, ERRORS "ConcurrentTransactionsException"},
        {RD_KAFKA_RESP_ERR_THROTTLING_QUOTA_EXCEEDED, LC_RETRIABLE,
         ERRORS "ThrottlingQuotaExceededException"},
        {RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR, LC_FATAL, ERRORS "InvalidReplicationFactorException"},
        {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, LC_DATA, ERRORS "RecordTooLargeException"},
        {RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, LC_DATA, ERRORS "RecordTooLargeException"},
        {RD_KAFKA_RESP_ERR_INVALID_RECORD, LC_DATA, "org.apache.kafka.common.InvalidRecordException"},
        {RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, LC_DATA, ERRORS "InvalidTimestampException"},
        {RD_KAFKA_RESP_ERR_INVALID_MSG, LC_DATA, ERRORS "CorruptRecordException"},
        {RD_KAFKA_RESP_ERR__FENCED, LC_FENCED, ERRORS "ProducerFencedException"},
        {RD_KAFKA_RESP_ERR_PRODUCER_FENCED, LC_FENCED, ERRORS "ProducerFencedException"},
        {RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, LC_FENCED, ERRORS "InvalidProducerEpochException"},
        {RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID, LC_FENCED, ERRORS "FencedInstanceIdException"},
        {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, LC_FATAL, ERRORS "TopicAuthorizationException"},
        {RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED, LC_FATAL, ERRORS "GroupAuthorizationException"},
        {RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, LC_FATAL, ERRORS "ClusterAuthorizationException"},
        {RD_KAFKA_RESP_ERR_TRANSACTIONAL_ID_AUTHORIZATION_FAILED, LC_FATAL,
         ERRORS "TransactionalIdAuthorizationException"},
        {RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, LC_FATAL, ERRORS "SaslAuthenticationException"},
        {RD_KAFKA_RESP_ERR__AUTHENTICATION, LC_FATAL, ERRORS "AuthenticationException"},
        {RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION, LC_FATAL, ERRORS "UnsupportedVersionException"},
        {RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, LC_FATAL, ERRORS "InvalidTopicException"},
        {RD_KAFKA_RESP_ERR_POLICY_VIOLATION, LC_FATAL, ERRORS "PolicyViolationException"},
};

static int find(rd_kafka_resp_err_t code)
{
        for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
                if (table[i].code == code)
                        return (int)i;
        return -1;
}

lc_err_kind_t lc_kafka_err_kind(rd_kafka_resp_err_t code)
{
        int i = find(code);

        return i < 0 ? LC_FATAL : table[i].kind;
}

const char *lc_kafka_err_cls(rd_kafka_resp_err_t code)
{
        int i = find(code);

        return i < 0 || !table[i].cls ? "org.apache.kafka.common.KafkaException" : table[i].cls;
}

int lc_kafka_err_set(lc_err_t *err, rd_kafka_t *rk, rd_kafka_resp_err_t code, const char *text,
                     const char *fmt, ...)
{
        char head[512], fatal[512];
        lc_err_kind_t kind = lc_kafka_err_kind(code);
        rd_kafka_resp_err_t real;
        va_list ap;

        /* what a fenced or broken producer reports on each message is only a consequence (_PURGE_QUEUE) */
        if (rk && (real = rd_kafka_fatal_error(rk, fatal, sizeof(fatal))) != RD_KAFKA_RESP_ERR_NO_ERROR) {
                code = real;
                kind = lc_kafka_err_kind(code) == LC_FENCED ? LC_FENCED : LC_FATAL;
                text = fatal;
        }
        va_start(ap, fmt);
        vsnprintf(head, sizeof(head), fmt, ap);
        va_end(ap);
        return lc_err_set_cls(err, kind, code, lc_kafka_err_cls(code), "%s: %s", head,
                              text && *text ? text : rd_kafka_err2str(code));
}

int32_t lc_kafka_partition(const void *key, size_t len, int32_t partitions)
{
        const uint32_t m = 0x5bd1e995;
        const unsigned char *p = key;
        uint32_t h = 0x9747b28cu ^ (uint32_t)len;
        size_t left = len;

        if (partitions <= 0)
                return -1;
        for (; left >= 4; left -= 4, p += 4) {
                uint32_t k =
                        (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
                k *= m;
                k ^= k >> 24;
                k *= m;
                h *= m;
                h ^= k;
        }
        if (left >= 3)
                h ^= (uint32_t)p[2] << 16;
        if (left >= 2)
                h ^= (uint32_t)p[1] << 8;
        if (left >= 1) {
                h ^= p[0];
                h *= m;
        }
        h ^= h >> 13;
        h *= m;
        h ^= h >> 15;
        return (int32_t)((h & 0x7fffffffu) % (uint32_t)partitions);
}
