/*
 * connector.c - fuzz target: validation of connector configs. The bytes choose keys and values from those that
 * mean something, or are keys and values themselves.
 */
#include "fuzz.h"
#include "config/connector_config.h"
#include "script/script.h"

static lc_plugins_t *plugins;
static lc_worker_config_t *wc;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
        lc_props_t *p = lc_props_new();
        lc_err_t err = {0};
        char *home;

        (void)argc, (void)argv;
        lc_log_set_level(NULL, "OFF");
        home = lc_home_find(&err);
        fuzz_check(home != NULL, err.msg);
        plugins = lc_plugins_scan(home, NULL, &err);
        fuzz_check(plugins != NULL, err.msg);
        free(home);
        lc_props_set(p, "bootstrap.servers", "127.0.0.1:1");
        lc_props_set(p, "group.id", "g");
        lc_props_set(p, "key.converter", "org.apache.kafka.connect.json.JsonConverter");
        lc_props_set(p, "value.converter", "org.apache.kafka.connect.json.JsonConverter");
        lc_props_set(p, "config.storage.topic", "c");
        lc_props_set(p, "offset.storage.topic", "o");
        lc_props_set(p, "status.storage.topic", "s");
        wc = lc_worker_config_new(p, LC_DISTRIBUTED, &err);
        fuzz_check(wc != NULL, err.msg);
        lc_props_free(p);
        return 0;
}

static const char *const keys[] = {
        "connector.class", "name", "tasks.max", "topics", "topics.regex", "file", "topic", "batch.size",
        "transforms", "transforms.a.type", "transforms.b.type", "transforms.a.field", "transforms.a.fields",
        "transforms.a.predicate", "transforms.a.negate", "predicates", "predicates.p.type",
        "predicates.p.pattern", "predicates.p.name", "key.converter", "key.converter.schemas.enable",
        "value.converter", "value.converter.decimal.format", "header.converter", "errors.tolerance",
        "errors.retry.timeout", "errors.deadletterqueue.topic.name", "config.action.reload",
        "topic.creation.groups", "topic.creation.default.replication.factor",
        "topic.creation.default.partitions", "topic.creation.g.include", "topic.creation.g.exclude",
        "exactly.once.support", "transaction.boundary", "offsets.storage.topic",
        "producer.override.acks", "consumer.override.max.poll.records", "transforms.a.spec",
        "transforms.a.regex", "transforms.a.replacement", "transforms.b.format", "transforms.b.target.type",
        "connector.plugin.version", "tasks.max.enforce", "transforms.b.renames", "transforms.b.headers"};
static const char *const values[] = {
        "FileStreamSource", "FileStreamSink", "a", "b", "a,b", "a,a", "p", "1", "-1", "0", "true", "false", "",
        " ", ",", "x:y", "id:int8,name:string", "org.apache.kafka.connect.transforms.Cast$Value",
        "org.apache.kafka.connect.transforms.InsertField$Key", "RegexRouter", "TimestampConverter$Value",
        "ReplaceField$Value", "HeaderFrom$Value", "TopicNameMatches", "RecordIsTombstone", "HasHeaderKey",
        "JsonConverter", "StringConverter", "nope.Nope", "(", "[a-z", ".*", "all", "none", "required", "g",
        "99999999999999999999", "1.5", "NUMERIC", "string", "yyyy", "${file:/nope:k}", "${", "default"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
        fuzz_t f = {data, n};
        lc_props_t *p = lc_props_new();
        lc_config_infos_t *infos;
        lc_err_t err = {0};

        if (fuzz_byte(&f) & 3) {
                lc_props_set(p, "connector.class", f.n & 1 ? "FileStreamSource" : "FileStreamSink");
                lc_props_set(p, "name", "n");
        }
        for (int i = 0; f.n && i < 40; i++) {
                uint8_t k = fuzz_byte(&f), v = fuzz_byte(&f);
                char *key = k < 250 ? lc_strdup(keys[k % (sizeof(keys) / sizeof(*keys))]) : fuzz_text(&f, 60);
                char *value = v == 249  ? NULL
                              : v < 250 ? lc_strdup(values[v % (sizeof(values) / sizeof(*values))])
                                        : fuzz_text(&f, 60);
                lc_props_set(p, key, value);
                free(key);
                free(value);
        }
        infos = lc_connector_validate(wc, plugins, p, &err);
        if (infos)
                free(lc_config_infos_rejection(infos));
        else
                fuzz_check(err.msg[0] && err.code, "refused without an error");
        lc_config_infos_free(infos);
        lc_props_free(p);
        return 0;
}
