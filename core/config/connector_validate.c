/*
 * connector_validate.c - the whole of connector-config 2 and 3: common rows, transforms, predicates, the
 * checks across keys, the connector's own keys, converters, client overrides; errors in Java's order.
 *
 * Threads: the connector pool's (plugin checks are user code).
 * Tests:   spec/unit/connector_config_spec.lua, spec/golden/validate_spec.lua
 */
#include "config/connector_blocks.h"
#include "base/alloc.h"
#include "config/java_map.h"
#include "config/topic_regex.h"
#include "config/version_range.h"
#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

#define CLS_BAD_REQUEST "org.apache.kafka.connect.runtime.rest.errors.BadRequestException"
#define CONNECTORS      (1u << LC_PLUGIN_SINK | 1u << LC_PLUGIN_SOURCE)

static bool blank(const char *s)
{
        while (s && isspace((unsigned char)*s))
                s++;
        return !s || !*s;
}

static lc_config_value_t *value_of(lc_validation_t *v, const char *name)
{
        return lc_config_infos_find(v->infos, name);
}

static const char *version_of(const lc_plugin_t *p)
{
        return p && p->version && strcmp(p->version, "undefined") ? p->version : NULL;
}

/* ---- the common rows ---- */

/* key.converter, value.converter, header.converter and their versions. */
static void converter_rows(lc_validation_t *v, const lc_config_row_t *class_row,
                           const lc_config_row_t *version_row, bool with_worker)
{
        lc_plugin_type_t type =
                strncmp(class_row->name, "header", 6) ? LC_PLUGIN_CONVERTER : LC_PLUGIN_HEADER_CONVERTER;
        bool own = lc_props_get(v->props, class_row->name);
        const char *worker = with_worker ? lc_worker_config_str(v->wc, class_row->name) : NULL;
        const lc_plugin_t *of_worker = worker ? lc_plugins_find(v->plugins, 1u << type, worker, NULL) : NULL,
                          *p;
        const char *version = NULL;
        size_t at = v->infos->n;
        lc_config_value_t *value, *version_value;

        value = lc_block_value(v->infos, class_row, class_row->name, v->props,
                               of_worker ? of_worker->class_name : worker);
        p = with_worker || own ? lc_block_class(v, value, class_row->name, type) : NULL;
        if (with_worker) {
                lc_block_recommend(v, value, type);
                if (!own)
                        version = lc_worker_config_str(v->wc, version_row->name);
                if (!version)
                        version = version_of(own ? p : of_worker);
        }
        version_value = lc_block_value(v->infos, version_row, version_row->name, v->props, version);
        value = &v->infos->values[at];
        version_value->visible = value->value != NULL;
        if (version_of(p) && with_worker)
                lc_strv_add(&version_value->recommended, version_of(p));
        if (p && own && !version_value->errors.n)
                lc_block_version(p, lc_props_get(v->props, version_row->name), value, version_value);
}

/* with_worker: the worker's converters are the defaults (false when the connector's version is wrong). */
static void common_rows(lc_validation_t *v, lc_plugin_type_t type, bool with_worker)
{
        int n;
        const lc_config_row_t *rows = lc_connector_config_rows(type, &n);

        for (int i = 0; i < n; i++) {
                lc_config_value_t *value;

                lc_block_group(v->infos, rows[i].group);
                if (rows[i].type == LC_CFG_CLASS) {
                        converter_rows(v, &rows[i], &rows[i + 1], with_worker);
                        i++;
                        continue;
                }
                if (!strcmp(rows[i].name, "connector.plugin.version")) {
                        const char *version = version_of(v->connector);

                        value = lc_block_value(v->infos, &rows[i], rows[i].name, v->props, version);
                        if (version)
                                lc_strv_add(&value->recommended, version);
                        continue;
                }
                lc_block_value(v->infos, &rows[i], rows[i].name, v->props, NULL);
        }
        rows = lc_connector_config_own_rows(&n);
        for (int i = 0; i < n; i++)
                if (lc_props_has(v->props, rows[i].name))
                        lc_block_value(v->infos, &rows[i], rows[i].name, v->props, NULL);
}

/* ---- checks across keys ---- */

static void both(lc_validation_t *v, const char *message)
{
        lc_strv_add(&value_of(v, "topics")->errors, message);
        lc_strv_add(&value_of(v, "topics.regex")->errors, message);
}

static void check_sink_topics(lc_validation_t *v)
{
        const char *topics = lc_props_get(v->props, "topics"),
                   *regex = lc_props_get(v->props, "topics.regex");
        char *dlq = lc_connector_config_get(v->props, "errors.deadletterqueue.topic.name"), *text;

        if (!blank(topics) && !blank(regex))
                both(v, "topics and topics.regex are mutually exclusive options, but both are set.");
        if (blank(topics) && blank(regex))
                both(v, "Must configure one of topics or topics.regex");
        if (!blank(dlq) && !blank(topics)) {
                lc_strv_t list = {NULL, 0};
                lc_buf_t shown = LC_BUF_SURE;

                lc_strv_split(&list, topics);
                if (lc_strv_has(&list, dlq)) {
                        lc_config_value_text(LC_CFG_LIST, topics, &shown);
                        text = lc_asprintf(
                                "The DLQ topic '%s' may not be included in the list of topics ('topics=%s') "
                                "consumed by the connector",
                                dlq, shown.p);
                        lc_strv_add(&value_of(v, "topics")->errors, text);
                        free(text);
                }
                lc_strv_free(&list);
                lc_buf_free(&shown);
        }
        if (!blank(dlq) && !blank(regex) && lc_topic_regex_matches(regex, dlq)) {
                text = lc_asprintf("The DLQ topic '%s' may not be matched by the regex for the topics "
                                   "('topics.regex=%s') consumed by the connector",
                                   dlq, regex);
                lc_strv_add(&value_of(v, "topics.regex")->errors, text);
                free(text);
        }
        free(dlq);
}

/* A sink's consumer group must not be the workers' own. The overriding key is listed once more, without
 * definition, as Java does. */
static void check_sink_group(lc_validation_t *v, lc_config_infos_t *undefined)
{
        static const char key[] = "consumer.override.group.id";
        const char *worker = lc_worker_config_str(v->wc, "group.id");
        char *text = NULL;

        if (lc_props_has(v->props, key)) {
                const char *group = lc_props_get(v->props, key);
                lc_config_value_t *value = lc_config_infos_add(undefined, NULL, key);

                value->value = lc_strdup(group);
                if (group && !strcmp(group, worker)) {
                        text = lc_asprintf("Consumer group %s conflicts with Connect worker group %s", group,
                                           worker);
                        lc_strv_add(&value->errors, text);
                }
        } else {
                lc_config_value_t *name = value_of(v, "name");
                char *group = lc_asprintf("connect-%s", name->value ? name->value : "null");

                if (!strcmp(group, worker)) {
                        text = lc_asprintf(
                                "Consumer group for sink connector named %s conflicts with Connect worker "
                                "group %s",
                                name->value ? name->value : "null", worker);
                        lc_strv_add(&name->errors, text);
                }
                free(group);
        }
        free(text);
}

/* The check itself failed: user code. */
static void unexpected(lc_config_value_t *value, const lc_err_t *err)
{
        char *text = err->msg[0] ? lc_asprintf("An unexpected error occurred during validation: %s", err->msg)
                                 : lc_strdup("An unexpected error occurred during validation; please see the "
                                             "worker logs for more details.");

        lc_strv_add(&value->errors, text);
        free(text);
}

static void check_exactly_once(lc_validation_t *v)
{
        lc_config_value_t *value = value_of(v, "exactly.once.support");
        lc_err_t err = {0};
        lc_eos_t answer = LC_EOS_NULL;

        if (value->errors.n || !value->value || strcasecmp(value->value, "required"))
                return;
        if (lc_worker_config_eos(v->wc) != LC_EOS_ON)
                lc_strv_add(&value->errors, "This worker does not have exactly-once source support enabled.");
        if (v->connector->exactly_once)
                answer = v->connector->exactly_once(v->connector, v->props, &err);
        if (err.kind) {
                unexpected(value, &err);
        } else if (answer == LC_EOS_NULL) {
                lc_strv_add(
                        &value->errors,
                        "The connector does not implement the API required for preflight validation of "
                        "exactly-once source support. Please consult the documentation for the connector to "
                        "determine whether it supports exactly-once semantics, and then consider "
                        "reconfiguring "
                        "the connector to use the value \"requested\" for this property (which will disable "
                        "this "
                        "preflight check and allow the connector to be created).");
        } else if (answer == LC_EOS_UNSUPPORTED) {
                lc_strv_add(&value->errors, "The connector does not support exactly-once semantics with the "
                                            "provided configuration.");
        }
}

static void check_boundary(lc_validation_t *v)
{
        lc_config_value_t *value = value_of(v, "transaction.boundary");
        lc_eos_t answer = LC_EOS_UNSUPPORTED;
        lc_err_t err = {0};

        if (value->errors.n || !value->value || strcasecmp(value->value, "connector"))
                return;
        if (v->connector->boundaries)
                answer = v->connector->boundaries(v->connector, v->props, &err);
        if (err.kind)
                unexpected(value, &err);
        else if (answer == LC_EOS_NULL)
                lc_strv_add(
                        &value->errors,
                        "This connector has returned a null value from its "
                        "canDefineTransactionBoundaries method, which is not permitted. The connector will "
                        "be treated as if it cannot define its own transaction boundaries, and cannot be "
                        "configured with 'transaction.boundary' set to 'connector'.");
        else if (answer == LC_EOS_UNSUPPORTED)
                lc_strv_add(&value->errors,
                            "The connector does not support connector-defined transaction boundaries with "
                            "the given "
                            "configuration. Please reconfigure it to use a different transaction boundary "
                            "definition.");
}

static void check_nulls(lc_validation_t *v, lc_config_infos_t *undefined)
{
        for (size_t i = 0; i < lc_props_count(v->props); i++) {
                const char *key = lc_props_key(v->props, i);
                lc_config_value_t *value;

                if (lc_props_value(v->props, i))
                        continue;
                value = value_of(v, key);
                if (!value)
                        value = lc_config_infos_find(undefined, key);
                if (!value)
                        value = lc_config_infos_add(undefined, NULL, key);
                lc_strv_add(&value->errors, "Null value can not be supplied as the configuration value.");
        }
}

/* ---- the connector's own keys ---- */

static void clear_value(lc_config_value_t *v)
{
        free(v->value);
        free(v->def);
        free(v->group);
        free(v->display);
        lc_strv_free(&v->errors);
        lc_strv_free(&v->recommended);
        v->value = v->def = v->group = v->display = NULL;
}

/* Java: Connector.validate(props) of all own keys; its values replace earlier ones of the same name, at
 * their place. A key without definition that was null stays where it was listed only if nobody defines it. */
static int own_keys(lc_validation_t *v, lc_config_infos_t *undefined, lc_err_t *err)
{
        const lc_plugin_t *p = v->connector;
        lc_config_infos_t *block = lc_config_infos_new("");
        int rc = 0;

        for (int i = 0; i < p->nrows; i++)
                lc_block_value(block, &p->rows[i], p->rows[i].name, v->props, NULL);
        if (p->validate)
                rc = p->validate(p, v->props, block, err);
        for (size_t i = 0; i < block->n; i++) {
                lc_config_value_t *from = &block->values[i], *to = value_of(v, from->name);
                lc_config_value_t *listed = lc_config_infos_find(undefined, from->name);

                if (!to)
                        to = lc_config_infos_add(v->infos, NULL, from->name);
                else
                        clear_value(to);
                free(from->name);
                from->name = to->name;
                *to = *from;
                memset(from, 0, sizeof(*from));
                if (listed) { /* the earlier, undefined one is overridden */
                        clear_value(listed);
                        free(listed->name);
                        memmove(listed, listed + 1,
                                (undefined->n - (size_t)(listed - undefined->values) - 1) * sizeof(*listed));
                        undefined->n--;
                }
        }
        for (int i = 0; i < p->nrows; i++)
                lc_block_group(v->infos, p->rows[i].group);
        block->n = 0;
        lc_config_infos_free(block);
        return rc;
}

/* ---- all of it ---- */

/* Undefined values in the order of Java's HashMap of all values, then the defined ones. */
static lc_config_infos_t *assemble(lc_validation_t *v, lc_config_infos_t *undefined)
{
        lc_config_infos_t *out = lc_config_infos_new(v->infos->name);
        size_t n = undefined->n + v->infos->n, k = 0;
        const char **names = lc_malloc((n + 1) * sizeof(*names));
        size_t *order = lc_malloc((n + 1) * sizeof(*order));

        for (size_t i = 0; i < v->infos->n; i++)
                names[k++] = v->infos->values[i].name;
        for (size_t i = 0; i < undefined->n; i++)
                names[k++] = undefined->values[i].name;
        lc_java_map_order(names, n, false, order);
        for (size_t i = 0; i < n; i++) {
                lc_config_value_t *to;

                if (order[i] < v->infos->n)
                        continue;
                to = lc_config_infos_add(out, NULL, "");
                free(to->name);
                *to = undefined->values[order[i] - v->infos->n];
        }
        undefined->n = 0;
        lc_block_move(out, v->infos);
        for (size_t i = 0; i < out->n; i++)
                out->error_count += (int)out->values[i].errors.n;
        free(names);
        free(order);
        return out;
}

static bool topic_creation(const lc_props_t *props)
{
        for (size_t i = 0; i < lc_props_count(props); i++)
                if (!strncmp(lc_props_key(props, i), "topic.creation.", 15))
                        return true;
        return false;
}

/* Which families of overrides are looked at (1.6). */
static void families(const lc_validation_t *v, bool want[LC_FAMILIES])
{
        if (v->connector->type == LC_PLUGIN_SOURCE) {
                bool offsets = lc_worker_config_mode(v->wc) == LC_DISTRIBUTED &&
                               (lc_worker_config_eos(v->wc) == LC_EOS_ON ||
                                lc_props_get(v->props, "offsets.storage.topic"));

                want[LC_FAMILY_PRODUCER] = true;
                want[LC_FAMILY_CONSUMER] = offsets;
                want[LC_FAMILY_ADMIN] =
                        offsets || topic_creation(v->props) ||
                        !blank(lc_props_get(v->props, "errors.deadletterqueue.source.topic.name"));
        } else {
                bool dlq = !blank(lc_props_get(v->props, "errors.deadletterqueue.topic.name"));

                want[LC_FAMILY_PRODUCER] = want[LC_FAMILY_ADMIN] = dlq;
                want[LC_FAMILY_CONSUMER] = true;
        }
}

static const lc_plugin_t *find_connector(const lc_plugins_t *plugins, const lc_props_t *props, lc_err_t *err)
{
        const char *name = lc_props_get(props, "connector.class");
        lc_buf_t text = LC_BUF_SURE;
        lc_err_t why = {0};
        const lc_plugin_t *p;

        if (!name) {
                lc_java_map_text(props, &text);
                lc_err_set_cls(err, LC_FATAL, 400, CLS_BAD_REQUEST,
                               "Connector config %s contains no connector type", text.p);
                lc_buf_free(&text);
                return NULL;
        }
        p = lc_plugins_find(plugins, CONNECTORS, name, &why);
        if (!p)
                lc_err_set_cls(err, LC_FATAL, 400, CLS_BAD_REQUEST, "%s", why.msg);
        return p;
}

static int validate_all(lc_validation_t *v, lc_config_infos_t *undefined, lc_err_t *err)
{
        bool distributed = lc_worker_config_mode(v->wc) == LC_DISTRIBUTED;

        common_rows(v, v->connector->type, true);
        if (lc_block_chain(v, LC_PLUGIN_TRANSFORMATION, err) || lc_block_chain(v, LC_PLUGIN_PREDICATE, err))
                return -1;
        if (v->connector->type == LC_PLUGIN_SINK) {
                check_sink_topics(v);
                if (distributed)
                        check_sink_group(v, undefined);
        } else if (distributed) {
                check_exactly_once(v);
                check_boundary(v);
        }
        check_nulls(v, undefined);
        return own_keys(v, undefined, err);
}

lc_config_infos_t *lc_connector_validate(const lc_worker_config_t *wc, const lc_plugins_t *any,
                                         const lc_props_t *config, lc_err_t *err)
{
        const lc_plugins_t *plugins = lc_plugins_current(any);
        static const char *const roles[] = {"header", "key", "value"};
        lc_props_t *props = lc_config_resolve(wc, config, err);
        lc_validation_t v = {wc, plugins, props, NULL, NULL};
        lc_config_infos_t *undefined = lc_config_infos_new(""), *out = NULL;
        lc_config_infos_t *overrides = lc_config_infos_new(""), *converters = lc_config_infos_new("");
        bool want[LC_FAMILIES];
        const char *range;
        lc_err_t why = {0};
        int rc = -1, in;

        if (!props || !(v.connector = find_connector(plugins, props, err)))
                goto done;
        v.infos = lc_config_infos_new(lc_props_get(props, "connector.class"));
        range = lc_props_get(props, "connector.plugin.version");
        in = version_of(v.connector) ? lc_version_in_range(range, v.connector->version, NULL, &why) : 1;
        if (in < 0) {
                lc_err_set_cls(err, LC_FATAL, 400, CLS_BAD_REQUEST, "%s", why.msg);
                goto done;
        }
        if (!in) { /* nothing else can be said about a connector that is not there */
                common_rows(&v, LC_PLUGIN_TYPES, false);
                lc_block_version(v.connector, range, value_of(&v, "connector.class"),
                                 value_of(&v, "connector.plugin.version"));
                out = assemble(&v, undefined);
                rc = 0;
                goto done;
        }
        if (validate_all(&v, undefined, err))
                goto done;
        for (int i = 0; i < 3; i++)
                if (lc_block_converter(&v, roles[i], converters, err))
                        goto done;
        families(&v, want);
        for (int i = 0; i < LC_FAMILIES; i++)
                if (want[i] && lc_block_overrides(&v, (lc_client_family_t)i, overrides, err))
                        goto done;
        out = assemble(&v, undefined);
        out->error_count += overrides->error_count + converters->error_count;
        lc_block_move(out, overrides);
        lc_block_move(out, converters);
        rc = 0;
done:
        lc_config_infos_free(v.infos);
        lc_config_infos_free(undefined);
        lc_config_infos_free(overrides);
        lc_config_infos_free(converters);
        lc_props_free(props);
        if (rc) {
                lc_config_infos_free(out);
                out = NULL;
        }
        if (out)
                out->plugins = plugins; /* its rows are theirs */
        else
                lc_plugins_unref(plugins);
        return out;
}
