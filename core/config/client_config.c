/*
 * client_config.c - from worker file and connector config to librdkafka's settings, through the table in
 * client_table.c.
 *
 * Threads: any. Lock: `warned_lock` guards the list of warnings already given; it is held alone.
 * Tests:   spec/unit/client_config_spec.lua
 */
#include "config/client_config.h"
#include "base/alloc.h"
#include "base/log.h"
#include "config/client_security.h"
#include "config/client_table.h"
#include <ctype.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct kind_info {
        lc_client_family_t family;
        const char *label;    /* for warnings */
        bool plain;           /* the worker's keys without prefix count */
        const char *worker;   /* prefix in the worker file, NULL: none */
        const char *override; /* prefix in the connector config, NULL: none */
} kind_info_t;

static const kind_info_t kinds[] = {
        [LC_CLIENT_PRODUCER] = {LC_FAMILY_PRODUCER, "producer", false, "producer.", "producer.override."},
        [LC_CLIENT_CONSUMER] = {LC_FAMILY_CONSUMER, "consumer", false, "consumer.", "consumer.override."},
        [LC_CLIENT_ADMIN] = {LC_FAMILY_ADMIN, "admin client", true, "admin.", "admin.override."},
        [LC_CLIENT_INTERNAL_PRODUCER] = {LC_FAMILY_PRODUCER, "internal producer", true, NULL, NULL},
        [LC_CLIENT_INTERNAL_CONSUMER] = {LC_FAMILY_CONSUMER, "internal consumer", true, NULL, NULL},
        [LC_CLIENT_INTERNAL_ADMIN] = {LC_FAMILY_ADMIN, "internal admin client", true, NULL, NULL},
};

typedef struct pair {
        const char *name, *value;
} pair_t;

/* Kafka Connect's own defaults over those of the clients (reference worker-tasks 1, storage 1). */
static const pair_t connect_producer[] = {
        {"enable.idempotence", "false"},
        {"acks", "all"},
        {"max.in.flight.requests.per.connection", "1"},
        {"delivery.timeout.ms", "2147483647"},
        {"max.block.ms", "9223372036854775807"},
        {NULL, NULL},
};
static const pair_t connect_consumer[] = {
        {"enable.auto.commit", "false"},
        {"auto.offset.reset", "earliest"},
        {NULL, NULL},
};

/* Where librdkafka's own default would differ from a Java client's, or suits a worker badly. */
static const pair_t base_all[] = {
        {"socket.keepalive.enable", "true"},
        {"socket.nagle.disable", "true"},
        {"log.connection.close", "false"},
        {"reconnect.backoff.ms", "50"},
        {"reconnect.backoff.max.ms", "1000"},
        {"socket.timeout.ms", "30000"},
        {"socket.connection.setup.timeout.ms", "10000"},
        {NULL, NULL},
};
static const pair_t base_producer[] = {
        {"partitioner", "murmur2_random"},
        {"queue.buffering.max.messages", "50000"},
        {"queue.buffering.max.kbytes", "16384"},
        {"message.max.bytes", "1048576"},
        {"batch.size", "1000000"},
        {"linger.ms", "5"},
        {NULL, NULL},
};
static const pair_t base_consumer[] = {
        {"enable.auto.commit", "false"},
        {"enable.auto.offset.store", "false"},
        {"isolation.level", "read_uncommitted"},
        {"check.crcs", "true"},
        {"partition.assignment.strategy", "range"},
        {"queued.max.messages.kbytes", "4096"},
        {NULL, NULL},
};

static void set_all(lc_props_t *props, const pair_t *pairs)
{
        for (; pairs->name; pairs++)
                lc_props_set(props, pairs->name, pairs->value);
}

/* ---- warnings, once a process ---- */

static pthread_mutex_t warned_lock = PTHREAD_MUTEX_INITIALIZER;
static lc_strv_t warned;

static void warn_once(const kind_info_t *k, const char *key, const char *text)
{
        char *line = lc_asprintf("%s setting %s: %s", k->label, key, text);
        bool first;

        pthread_mutex_lock(&warned_lock);
        first = !lc_strv_has(&warned, line);
        if (first)
                lc_strv_add(&warned, line);
        pthread_mutex_unlock(&warned_lock);
        if (first)
                lc_log(LC_WARN, "CONFIG", "%s", line);
        free(line);
}

/* ---- the Java side ---- */

/* Plain worker keys that mean the group or the naming, not these clients. */
static bool not_plain(lc_client_kind_t kind, const char *name)
{
        static const char *const group[] = {"group.id",
                                            "group.instance.id",
                                            "session.timeout.ms",
                                            "heartbeat.interval.ms",
                                            "max.poll.interval.ms",
                                            "partition.assignment.strategy"};

        if (!strcmp(name, "client.id"))
                return true;
        for (size_t i = 0; kind == LC_CLIENT_INTERNAL_CONSUMER && i < sizeof(group) / sizeof(*group); i++)
                if (!strcmp(name, group[i]))
                        return true;
        return false;
}

static const pair_t *connect_defaults(lc_client_family_t family)
{
        static const pair_t none[] = {{NULL, NULL}};

        return family == LC_FAMILY_PRODUCER   ? connect_producer
               : family == LC_FAMILY_CONSUMER ? connect_consumer
                                              : none;
}

static void merge_prefixed(lc_props_t *into, const lc_props_t *from, const char *prefix)
{
        lc_props_t *part = lc_props_prefixed(from, prefix);

        lc_props_merge(into, part);
        lc_props_free(part);
}

lc_props_t *lc_client_java_settings(const lc_worker_config_t *wc, lc_client_kind_t kind,
                                    const lc_props_t *connector_config)
{
        const kind_info_t *k = &kinds[kind];
        const lc_props_t *worker = lc_worker_config_originals(wc);
        lc_props_t *java = lc_props_new();
        int n;
        const lc_client_setting_t *table = lc_client_settings(&n);

        lc_props_set(java, "bootstrap.servers", lc_worker_config_str(wc, "bootstrap.servers"));
        if (kind == LC_CLIENT_CONSUMER && lc_props_get(connector_config, "name")) {
                char *group = lc_asprintf("connect-%s", lc_props_get(connector_config, "name"));

                lc_props_set(java, "group.id", group);
                free(group);
        } else if (kind == LC_CLIENT_INTERNAL_CONSUMER) {
                lc_props_set(java, "group.id",
                             lc_worker_config_mode(wc) == LC_DISTRIBUTED
                                     ? lc_worker_config_str(wc, "group.id")
                                     : lc_props_get_or(worker, "group.id", "connect-standalone"));
        }
        set_all(java, connect_defaults(k->family));
        if (kind == LC_CLIENT_INTERNAL_PRODUCER) /* writers of internal topics wait for each record */
                lc_props_set(java, "linger.ms", "0");
        for (int i = 0; k->plain && i < n; i++)
                if (table[i].families & 1u << k->family && lc_props_get(worker, table[i].name) &&
                    !not_plain(kind, table[i].name))
                        lc_props_set(java, table[i].name, lc_props_get(worker, table[i].name));
        if (k->worker)
                merge_prefixed(java, worker, k->worker);
        if (k->override && connector_config)
                merge_prefixed(java, connector_config, k->override);
        return java;
}

static const char *prefixed(const lc_props_t *props, const char *prefix, const char *key)
{
        char *name = lc_asprintf("%s%s", prefix, key);
        const char *v = lc_props_get(props, name);

        free(name);
        return v;
}

const char *lc_client_java_value(const lc_worker_config_t *wc, lc_client_kind_t kind,
                                 const lc_props_t *connector_config, const char *java_key)
{
        const kind_info_t *k = &kinds[kind];
        const lc_props_t *worker = lc_worker_config_originals(wc);
        const lc_client_setting_t *s = lc_client_setting(k->family, java_key);
        const char *v = NULL;

        if (k->override && connector_config)
                v = prefixed(connector_config, k->override, java_key);
        if (!v && k->worker)
                v = prefixed(worker, k->worker, java_key);
        if (!v && k->plain && !not_plain(kind, java_key))
                v = lc_props_get(worker, java_key);
        if (!v && !strcmp(java_key, "bootstrap.servers"))
                v = lc_worker_config_str(wc, java_key);
        if (v)
                return v;
        for (const pair_t *p = connect_defaults(k->family); p->name; p++)
                if (!strcmp(p->name, java_key))
                        return p->value;
        return s ? s->def[k->family] : NULL;
}

/* ---- the translation ---- */

static void set_number(lc_props_t *rd, const char *name, double v)
{
        char text[32];

        snprintf(text, sizeof(text), "%.0f", v);
        lc_props_set(rd, name, text);
}

static double cut(const kind_info_t *k, const char *key, double v, double lo, double hi)
{
        double c = hi <= 0 ? v : v < lo ? lo : v > hi ? hi : v;
        char text[96];

        if (c != v && v != -1) { /* -1 means the system's choice */
                snprintf(text, sizeof(text), "%.0f is outside of what librdkafka takes, %.0f is used", v, c);
                warn_once(k, key, text);
        }
        return c;
}

static int assignors(const kind_info_t *k, const char *list, lc_props_t *rd, lc_err_t *err)
{
        static const pair_t names[] = {
                {"RangeAssignor", "range"},
                {"RoundRobinAssignor", "roundrobin"},
                {"CooperativeStickyAssignor", "cooperative-sticky"},
                {NULL, NULL},
        };
        lc_strv_t items = {NULL, 0};
        lc_buf_t b = LC_BUF_SURE;
        bool cooperative = false;
        int rc = 0;

        lc_strv_split(&items, list);
        for (size_t i = 0; i < items.n; i++) {
                const char *simple = strrchr(items.v[i], '.'), *name = NULL;

                simple = simple ? simple + 1 : items.v[i];
                for (const pair_t *p = names; p->name; p++)
                        if (!strcmp(simple, p->name) || !strcmp(simple, p->value))
                                name = p->value;
                if (!name) {
                        warn_once(k, "partition.assignment.strategy",
                                  "librdkafka has range, roundrobin and "
                                  "cooperative-sticky; others are left out");
                        continue;
                }
                if (b.len && cooperative != !strcmp(name, "cooperative-sticky")) {
                        warn_once(k, "partition.assignment.strategy",
                                  "librdkafka does not mix eager and cooperative assignors; the first kind "
                                  "is used");
                        continue;
                }
                cooperative = !strcmp(name, "cooperative-sticky");
                lc_buf_printf(&b, "%s%s", b.len ? "," : "", name);
        }
        if (b.len)
                lc_props_set(rd, "partition.assignment.strategy", b.p);
        else
                rc = lc_err_set_cls(
                        err, LC_FATAL, 0, LC_CLS_CONFIG,
                        "partition.assignment.strategy=%s names no assignor that librdkafka has (range, "
                        "roundrobin, cooperative-sticky)",
                        list);
        lc_buf_free(&b);
        lc_strv_free(&items);
        return rc;
}

static int offset_reset(const char *value, lc_props_t *rd, lc_err_t *err)
{
        if (!strcmp(value, "earliest") || !strcmp(value, "latest"))
                lc_props_set(rd, "auto.offset.reset", value);
        else if (!strcmp(value, "none"))
                lc_props_set(rd, "auto.offset.reset", "error");
        else
                return lc_err_set_cls(
                        err, LC_FATAL, 0, LC_CLS_CONFIG,
                        "Invalid value %s for configuration auto.offset.reset: luaconnect knows latest, "
                        "earliest and none",
                        value);
        return 0;
}

static int translate(const kind_info_t *k, const lc_client_setting_t *s, const char *value, lc_props_t *rd,
                     lc_err_t *err)
{
        bool numeric = s->type == LC_CFG_INT || s->type == LC_CFG_LONG || s->type == LC_CFG_SHORT;
        char *lower;

        switch (s->map) {
        case LC_MAP_SAME:
                if (!(s->rd_families & 1u << k->family))
                        return 0;
                if (!numeric) {
                        if (*value) /* Java's "" is "not given" */
                                lc_props_set(rd, s->rd, value);
                        return 0;
                }
                set_number(rd, s->rd, cut(k, s->name, strtod(value, NULL), s->lo, s->hi));
                if (!strcmp(s->name, "request.timeout.ms") && k->family == LC_FAMILY_PRODUCER)
                        set_number(rd, "request.timeout.ms", cut(k, s->name, strtod(value, NULL), 1, 900000));
                if (!strcmp(s->name, "metadata.max.age.ms")) {
                        double age = strtod(lc_props_get(rd, s->rd), NULL) * 3;
                        set_number(rd, "metadata.max.age.ms", age);
                }
                return 0;
        case LC_MAP_LOWER:
                lower = lc_strdup(value);
                for (char *p = lower; *p; p++)
                        *p = (char)tolower((unsigned char)*p);
                lc_props_set(rd, s->rd, lower);
                free(lower);
                return 0;
        case LC_MAP_KBYTES:
                set_number(rd, s->rd,
                           cut(k, s->name, (double)((strtoll(value, NULL, 10) + 1023) / 1024), s->lo, s->hi));
                return 0;
        case LC_MAP_ASSIGNORS:
                return assignors(k, value, rd, err);
        case LC_MAP_RESET:
                return offset_reset(value, rd, err);
        case LC_MAP_FIXED:
                if (*value && strcmp(value, "false"))
                        warn_once(k, s->name, s->note);
                return 0;
        case LC_MAP_NONE:
                warn_once(k, s->name, s->note);
                return 0;
        case LC_MAP_TLS:
        case LC_MAP_SASL:
        case LC_MAP_OURS:
                return 0;
        }
        return 0;
}

/* An idempotent librdkafka takes a request that has to be tried again for written as soon as one behind it was,
 * though brokers accept that one as a partition's first: records would be lost without a word. */
static void one_in_flight(const kind_info_t *k, lc_props_t *rd)
{
        static const char key[] = "max.in.flight.requests.per.connection";

        if (strcmp(lc_props_get_or(rd, key, "1"), "1") != 0)
                warn_once(k, key, "with idempotence 1 is used: librdkafka could lose records with more");
        lc_props_set(rd, key, "1");
}

/* What librdkafka demands of settings together. */
static void settle(const kind_info_t *k, lc_props_t *rd)
{
        double max = strtod(lc_props_get_or(rd, "message.max.bytes", "0"), NULL), v;

        if (k->family == LC_FAMILY_PRODUCER) {
                v = strtod(lc_props_get(rd, "queue.buffering.max.kbytes"), NULL);
                if (v * 1024 < max + 1048576) /* one record of the largest size must fit */
                        set_number(rd, "queue.buffering.max.kbytes", (max + 1048576) / 1024 + 1);
                if (lc_props_get(rd, "transactional.id")) {
                        double limit = strtod(lc_props_get_or(rd, "transaction.timeout.ms", "60000"), NULL);

                        lc_props_set(rd, "enable.idempotence", "true");
                        v = strtod(lc_props_get(rd, "message.timeout.ms"), NULL);
                        if (v > limit || v <= 0)
                                set_number(rd, "message.timeout.ms", limit);
                        /* One request at least must have its answer or its timeout within the transaction; a longer
                         * one librdkafka refuses. */
                        if (strtod(lc_props_get(rd, "socket.timeout.ms"), NULL) > limit - 100)
                                set_number(rd, "socket.timeout.ms", limit > 1000 ? limit - 100 : 900);
                }
                if (!strcmp(lc_props_get(rd, "enable.idempotence"), "true")) {
                        lc_props_set(rd, "acks", "all");
                        one_in_flight(k, rd);
                }
        }
        if (k->family == LC_FAMILY_CONSUMER) {
                double wait = strtod(lc_props_get_or(rd, "fetch.wait.max.ms", "500"), NULL);

                v = strtod(lc_props_get(rd, "socket.timeout.ms"), NULL);
                if (v < wait + 1500) /* else a waiting fetch counts as a dead connection */
                        set_number(rd, "socket.timeout.ms", wait + 1500);
                v = strtod(lc_props_get_or(rd, "fetch.max.bytes", "0"), NULL);
                if (v > 0 && v < 1000000)
                        set_number(rd, "message.max.bytes", v);
        }
}

/* What Java's producer demands of settings together with idempotence. Values that are no numbers are refused
 * elsewhere. */
static int check_idempotence(const lc_props_t *java, lc_err_t *err)
{
        const char *on = lc_props_get(java, "enable.idempotence"), *acks = lc_props_get(java, "acks");
        const char *retries = lc_props_get(java, "retries");
        const char *flying = lc_props_get(java, "max.in.flight.requests.per.connection");

        if (!on || strcasecmp(on, "true") != 0)
                return 0;
        if (retries && *retries && strtod(retries, NULL) == 0)
                return lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                                      "Must set retries to non-zero when using the idempotent producer.");
        if (acks && strcmp(acks, "all") != 0 && strcmp(acks, "-1") != 0)
                return lc_err_set_cls(
                        err, LC_FATAL, 0, LC_CLS_CONFIG,
                        "Must set acks to all in order to use the idempotent producer. Otherwise we cannot "
                        "guarantee idempotence.");
        if (flying && strtod(flying, NULL) > 5)
                return lc_err_set_cls(
                        err, LC_FATAL, 0, LC_CLS_CONFIG,
                        "Must set max.in.flight.requests.per.connection to at most 5 to use the "
                        "idempotent producer.");
        return 0;
}

/* java is freed. */
static lc_props_t *to_librdkafka(lc_client_kind_t kind, lc_props_t *java, const char *client_id,
                                 lc_err_t *err)
{
        const kind_info_t *k = &kinds[kind];
        lc_props_t *rd = lc_props_new();
        int rc = kind == LC_CLIENT_PRODUCER ? check_idempotence(java, err) : 0;

        set_all(rd, base_all);
        if (k->family == LC_FAMILY_PRODUCER)
                set_all(rd, base_producer);
        if (k->family == LC_FAMILY_CONSUMER)
                set_all(rd, base_consumer);
        if (kind == LC_CLIENT_CONSUMER)
                lc_props_set(rd, "allow.auto.create.topics", "true");
        if (client_id)
                lc_props_set(rd, "client.id", client_id);
        for (size_t i = 0; !rc && i < lc_props_count(java); i++) {
                const char *key = lc_props_key(java, i);
                const lc_client_setting_t *s = lc_client_setting(k->family, key);
                lc_buf_t reason = LC_BUF_SURE, text = LC_BUF_SURE;
                char *value = NULL;

                if (!s) {
                        warn_once(k, key, "unknown to Kafka's clients, ignored");
                        continue;
                }
                rc = lc_config_parse_type(s->type, lc_props_value(java, i), &value, &reason);
                if (rc) {
                        lc_config_invalid(&text, LC_CFG_STRING, lc_props_value(java, i), key, reason.p);
                        lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG, "%s", text.p);
                } else if (value) {
                        rc = translate(k, s, value, rd, err);
                }
                free(value);
                lc_buf_free(&reason);
                lc_buf_free(&text);
        }
        if (!rc)
                rc = lc_client_security(java, rd, err);
        if (!rc)
                settle(k, rd);
        lc_props_free(java);
        if (!rc)
                return rd;
        lc_props_free(rd);
        return NULL;
}

lc_props_t *lc_client_config(const lc_worker_config_t *wc, lc_client_kind_t kind,
                             const lc_props_t *connector_config, const char *client_id, lc_err_t *err)
{
        return to_librdkafka(kind, lc_client_java_settings(wc, kind, connector_config), client_id, err);
}

/* `given`: what a person set, NULL or Connect's default if nobody did. */
static void force(lc_props_t *java, const char *key, const char *given, const char *value)
{
        if (given && strcmp(given, value))
                lc_log(LC_WARN, "CONFIG",
                       "The value '%s' for the '%s' property will be ignored as it cannot be overridden for "
                       "connectors when exactly-once source support is enabled. The value '%s' will be used "
                       "instead.",
                       given, key, value);
        lc_props_set(java, key, value);
}

/* What a person set for producers of connectors, or NULL. */
static const char *given(const lc_worker_config_t *wc, const lc_props_t *connector_config, const char *key)
{
        const kind_info_t *k = &kinds[LC_CLIENT_PRODUCER];
        const char *v = connector_config ? prefixed(connector_config, k->override, key) : NULL;

        return v ? v : prefixed(lc_worker_config_originals(wc), k->worker, key);
}

lc_props_t *lc_client_config_transactional(const lc_worker_config_t *wc, lc_client_kind_t kind,
                                           const lc_props_t *connector_config, const char *client_id,
                                           const char *transactional_id, lc_err_t *err)
{
        /* The retries are those of registering partitions while the broker still completes the transaction
         * before: that takes a few ms. */
        static const pair_t faster[] = {{"retry.backoff.ms", "5"}, {NULL, NULL}};
        lc_props_t *java = lc_client_java_settings(wc, kind, connector_config);
        bool theirs = kind == LC_CLIENT_PRODUCER;
        bool by_poll = theirs &&
                       !strcasecmp(lc_props_get_or(connector_config, "transaction.boundary", "poll"), "poll");

        for (const pair_t *p = faster; theirs && p->name; p++)
                if (!given(wc, connector_config, p->name))
                        lc_props_set(java, p->name, p->value);
        /* By poll a batch is committed at once, and complete in the queue before its partition is registered. Else
         * the commit ends the linger, too; a longer one keeps librdkafka from turning in circles while what is in
         * flight must be acknowledged before more may go (a fourth of all processor time). */
        if (theirs && !given(wc, connector_config, "linger.ms"))
                lc_props_set(java, "linger.ms", by_poll ? "0" : "100");
        force(java, "enable.idempotence", theirs ? given(wc, connector_config, "enable.idempotence") : NULL,
              "true");
        force(java, "transactional.id", theirs ? lc_props_get(java, "transactional.id") : NULL,
              transactional_id);
        return to_librdkafka(kind, java, client_id, err);
}
