/* admin_calls.c - see admin_calls.h. Any thread, no state. */
#include "kafka/admin_calls.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "kafka/conf.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Metadata of one topic out of an answer, or NULL. */
static const rd_kafka_metadata_topic_t *topic_of(const struct rd_kafka_metadata *md, const char *name)
{
        for (int i = 0; i < md->topic_cnt; i++)
                if (!strcmp(md->topics[i].topic, name))
                        return &md->topics[i];
        return NULL;
}

static int count(const rd_kafka_metadata_topic_t *t)
{
        for (int i = 0; i < t->partition_cnt; i++)
                if (t->partitions[i].leader < 0)
                        return 0;
        return t->partition_cnt;
}

int lc_kafka_topic_partitions(rd_kafka_t *rk, const char *const *topics, int n, int *partitions, int ms,
                              lc_err_t *err)
{
        rd_kafka_topic_t **handles = lc_calloc((size_t)n, sizeof(*handles));
        const struct rd_kafka_metadata *md = NULL;
        rd_kafka_resp_err_t code;
        int rc = -1;

        /* "only the topics known locally" asks for all of these in one request */
        for (int i = 0; i < n; i++) {
                partitions[i] = 0;
                handles[i] = rd_kafka_topic_new(rk, topics[i], NULL);
        }
        code = rd_kafka_metadata(rk, 0, n == 1 ? handles[0] : NULL, &md, ms);
        if (code) {
                lc_kafka_err_set(err, NULL, code, NULL, "Cannot read the metadata of topic '%s'", topics[0]);
                goto done;
        }
        for (int i = 0; i < n; i++) {
                const rd_kafka_metadata_topic_t *t = topic_of(md, topics[i]);
                if (!t || t->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
                    t->err == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE)
                        continue;
                if (t->err ==
                    RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION) /* a name that cannot exist: creation says why */
                        continue;
                if (t->err) {
                        lc_kafka_err_set(err, NULL, t->err, NULL, "Cannot read the metadata of topic '%s'",
                                         topics[i]);
                        goto done;
                }
                partitions[i] = count(t);
        }
        rc = 0;
done:
        if (md)
                rd_kafka_metadata_destroy(md);
        for (int i = 0; i < n; i++)
                if (handles[i])
                        rd_kafka_topic_destroy(handles[i]);
        free(handles);
        return rc;
}

/* What Java does with the answer for one topic. 0 fine, -1 err. */
static int judge(lc_kafka_new_topic_t *t, rd_kafka_resp_err_t code, const char *text)
{
        lc_err_t *err = &t->err;

        switch (code) {
        case RD_KAFKA_RESP_ERR_NO_ERROR:
                t->created = true;
                return 0;
        case RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS:
                return 0;
        case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
        case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
                lc_log(LC_DEBUG, "KAFKA",
                       "Not authorized to create topic(s) '%s'. Falling back to assume topic(s) "
                       "exist or will be auto-created by the broker.",
                       t->name);
                return 0;
        case RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION:
                lc_log(LC_DEBUG, "KAFKA",
                       "Unable to create topic(s) '%s' since the brokers do not support the "
                       "CreateTopics API. Falling back to assume topic(s) exist or will be auto-created by "
                       "the broker.",
                       t->name);
                return 0;
        case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
        case RD_KAFKA_RESP_ERR_INVALID_CONFIG:
                lc_err_set(err, LC_FATAL, code, "Unable to create topic(s) '%s': %s", t->name,
                           text ? text : rd_kafka_err2str(code));
                break;
        case RD_KAFKA_RESP_ERR__TIMED_OUT:
        case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
                lc_err_set(err, LC_RETRIABLE, code,
                           "Timed out while checking for or creating topic(s) '%s'. This "
                           "could indicate a connectivity issue, unavailable topic partitions, or if this is "
                           "your "
                           "first use of the topic it may have taken too long to create.",
                           t->name);
                break;
        default:
                lc_err_set(err, lc_kafka_err_kind(code) == LC_RETRIABLE ? LC_RETRIABLE : LC_FATAL, code,
                           "Unable to create topic(s) '%s': %s", t->name,
                           text ? text : rd_kafka_err2str(code));
                break;
        }
        lc_err_cause(err, lc_kafka_err_cls(code), "%s", text ? text : rd_kafka_err2str(code));
        return -1;
}

int lc_kafka_create_topics(rd_kafka_t *rk, lc_kafka_new_topic_t *topics, int n, int ms, lc_err_t *err)
{
        rd_kafka_NewTopic_t **list = lc_calloc((size_t)n, sizeof(*list));
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_CREATETOPICS);
        rd_kafka_queue_t *q = rd_kafka_queue_new(rk);
        const rd_kafka_topic_result_t **results;
        rd_kafka_event_t *ev = NULL;
        size_t count_results = 0;
        char why[512] = "";
        int rc = -1;

        for (int i = 0; i < n; i++) {
                topics[i].created = false;
                lc_err_clear(&topics[i].err);
        }
        for (int i = 0; i < n; i++) {
                list[i] = rd_kafka_NewTopic_new(topics[i].name, topics[i].partitions, topics[i].replication,
                                                why, sizeof(why));
                if (!list[i]) {
                        lc_err_set(&topics[i].err, LC_FATAL, RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION,
                                   "Unable to create topic(s) '%s': %s", topics[i].name, why);
                        goto done;
                }
                for (size_t k = 0; topics[i].settings && k < lc_props_count(topics[i].settings); k++)
                        rd_kafka_NewTopic_set_config(list[i], lc_props_key(topics[i].settings, k),
                                                     lc_props_value(topics[i].settings, k));
        }
        rd_kafka_AdminOptions_set_request_timeout(options, ms, NULL, 0);
        rd_kafka_AdminOptions_set_operation_timeout(options, ms, NULL, 0);
        rd_kafka_CreateTopics(rk, list, (size_t)n, options, q);
        ev = rd_kafka_queue_poll(q, ms + 1000);
        if (!ev || rd_kafka_event_error(ev)) {
                for (int i = 0; i < n; i++)
                        judge(&topics[i], ev ? rd_kafka_event_error(ev) : RD_KAFKA_RESP_ERR__TIMED_OUT,
                              ev ? rd_kafka_event_error_string(ev) : NULL);
                goto done;
        }
        results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(ev), &count_results);
        rc = 0;
        for (size_t k = 0; k < count_results; k++)
                for (int i = 0; i < n; i++)
                        if (!strcmp(topics[i].name, rd_kafka_topic_result_name(results[k])) &&
                            judge(&topics[i], rd_kafka_topic_result_error(results[k]),
                                  rd_kafka_topic_result_error_string(results[k])) < 0)
                                rc = -1;
done:
        for (int i = 0; err && i < n && !err->kind; i++)
                if (topics[i].err.kind)
                        *err = topics[i].err;
        if (ev)
                rd_kafka_event_destroy(ev);
        rd_kafka_queue_destroy(q);
        rd_kafka_AdminOptions_destroy(options);
        for (int i = 0; i < n; i++)
                if (list[i])
                        rd_kafka_NewTopic_destroy(list[i]);
        free(list);
        return rc;
}

static char *setting_of(const rd_kafka_ConfigResource_t *resource, const char *setting)
{
        size_t n = 0;
        const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resource, &n);

        for (size_t i = 0; i < n; i++)
                if (!strcmp(rd_kafka_ConfigEntry_name(entries[i]), setting))
                        return lc_strdup(rd_kafka_ConfigEntry_value(entries[i]));
        return NULL;
}

/* One DescribeConfigs. Returns -1 with err, or 0; *again is set when a topic is too new to be described. */
static int describe(rd_kafka_t *rk, const char *const *topics, int n, const char *setting, char **values,
                    int ms, bool *again, lc_err_t *err)
{
        rd_kafka_ConfigResource_t **ask = lc_calloc((size_t)n, sizeof(*ask));
        const rd_kafka_ConfigResource_t **got;
        rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(rk, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);
        rd_kafka_queue_t *q = rd_kafka_queue_new(rk);
        rd_kafka_event_t *ev;
        size_t count_got = 0;
        int rc = -1;

        for (int i = 0; i < n; i++)
                ask[i] = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topics[i]);
        rd_kafka_AdminOptions_set_request_timeout(options, ms, NULL, 0);
        rd_kafka_DescribeConfigs(rk, ask, (size_t)n, options, q);
        ev = rd_kafka_queue_poll(q, ms + 1000);
        if (!ev || rd_kafka_event_error(ev)) {
                lc_kafka_err_set(err, NULL, ev ? rd_kafka_event_error(ev) : RD_KAFKA_RESP_ERR__TIMED_OUT,
                                 ev ? rd_kafka_event_error_string(ev) : NULL,
                                 "Cannot read the settings of topic '%s'", topics[0]);
                goto done;
        }
        got = rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(ev),
                                                        &count_got);
        rc = 0;
        for (int i = 0; i < n; i++) {
                rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
                const char *text = NULL;
                for (size_t k = 0; k < count_got && !values[i]; k++) {
                        if (strcmp(rd_kafka_ConfigResource_name(got[k]), topics[i]) != 0)
                                continue;
                        code = rd_kafka_ConfigResource_error(got[k]);
                        text = rd_kafka_ConfigResource_error_string(got[k]);
                        if (!code)
                                values[i] = setting_of(got[k], setting);
                }
                if (values[i])
                        continue;
                *again = *again || code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
                rc = lc_kafka_err_set(err, NULL, code ? code : RD_KAFKA_RESP_ERR_INVALID_CONFIG, text,
                                      "Cannot read the setting %s of topic '%s'", setting, topics[i]);
        }
done:
        if (ev)
                rd_kafka_event_destroy(ev);
        rd_kafka_queue_destroy(q);
        rd_kafka_AdminOptions_destroy(options);
        rd_kafka_ConfigResource_destroy_array(ask, (size_t)n);
        free(ask);
        return rc;
}

int lc_kafka_topic_configs(rd_kafka_t *rk, const char *const *topics, int n, const char *setting,
                           char **values, int ms, lc_err_t *err)
{
        int64_t until = lc_now_ms() + ms;

        for (int i = 0; i < n; i++)
                values[i] = NULL;
        for (;;) {
                lc_err_t one;
                bool again = false;
                int64_t left = until - lc_now_ms();
                struct timespec nap = {0, 20 * 1000000};

                lc_err_clear(&one);
                if (describe(rk, topics, n, setting, values, left > 1 ? (int)left : 1, &again, &one) == 0)
                        return 0;
                /* right after its creation a topic may not be known to the broker that is asked */
                if (!again || lc_now_ms() >= until) {
                        if (err && !err->kind)
                                *err = one;
                        return -1;
                }
                nanosleep(&nap, NULL);
        }
}
