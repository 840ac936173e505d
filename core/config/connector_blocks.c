/*
 * connector_blocks.c - see connector_blocks.h; reference connector-config 1.5, 1.6 and 2.
 *
 * Threads: those of lc_connector_validate.  Tests: spec/unit/connector_config_spec.lua
 */
#include "config/connector_blocks.h"
#include "base/alloc.h"
#include "base/log.h"
#include "config/java_map.h"
#include "config/policy.h"
#include "config/version_range.h"
#include <limits.h>
#include <stdlib.h>

static const char *const interfaces[] = {"SinkConnector", "SourceConnector", "Transformation",
                                         "Predicate",     "Converter",       "HeaderConverter"};

static void add_error(lc_config_value_t *v, char *message) /* takes the message */
{
        lc_strv_add(&v->errors, message);
        free(message);
}

lc_config_value_t *lc_block_value(lc_config_infos_t *infos, const lc_config_row_t *row, const char *name,
                                  const lc_props_t *props, const char *def)
{
        lc_config_value_t *v = lc_config_infos_add(infos, row, name);
        lc_config_row_t with_default = *row;

        if (def) {
                with_default.def = def;
                v->def = lc_strdup(def);
        }
        lc_config_parse(&with_default, name, props, &v->value, &v->errors);
        if (row->type == LC_CFG_PASSWORD && v->value) {
                free(v->value);
                v->value = lc_strdup("[hidden]");
        }
        return v;
}

void lc_block_group(lc_config_infos_t *infos, const char *group)
{
        if (group && !lc_strv_has(&infos->groups, group))
                lc_strv_add(&infos->groups, group);
}

void lc_block_recommend(const lc_validation_t *v, lc_config_value_t *value, lc_plugin_type_t type)
{
        for (size_t i = 0; v->plugins && i < v->plugins->n; i++) {
                const lc_plugin_t *p = v->plugins->v[i];

                if (p->type == type && !p->error && !lc_strv_has(&value->recommended, p->class_name))
                        lc_strv_add(&value->recommended, p->class_name);
        }
}

/* Java's abstract outer classes: Cast when there are Cast$Key and Cast$Value. NULL: none such. */
static char *nested_classes(const lc_validation_t *v, const char *name, lc_plugin_type_t type)
{
        lc_buf_t b = LC_BUF_SURE;
        size_t n = strlen(name);

        for (size_t i = 0; v->plugins && i < v->plugins->n; i++) {
                const lc_plugin_t *p = v->plugins->v[i];

                if (p->type == type && !p->error && !strncmp(p->class_name, name, n) &&
                    p->class_name[n] == '$')
                        lc_buf_printf(&b, "%s%s", b.len ? ", " : "", p->class_name);
        }
        return b.p ? lc_buf_take(&b, NULL) : NULL;
}

const lc_plugin_t *lc_block_class(const lc_validation_t *v, lc_config_value_t *value, const char *full_name,
                                  lc_plugin_type_t type)
{
        const lc_plugin_t *p, *other;
        lc_err_t err = {0};
        char *name = value->value, *nested;

        if (!name)
                return NULL;
        p = lc_plugins_find(v->plugins, 1u << type, name, &err);
        if (p) {
                value->value = lc_strdup(p->class_name);
                free(name);
                return p;
        }
        other = lc_plugins_find(v->plugins, 0, name, NULL);
        nested = other ? NULL : nested_classes(v, name, type);
        if (other) {
                add_error(value, lc_asprintf("Class class %s does not implement the %s interface",
                                             other->class_name, interfaces[type]));
                value->value = lc_strdup(other->class_name);
                free(name);
        } else if (nested) {
                add_error(value, lc_asprintf("This class is abstract and cannot be created. Did you mean %s?",
                                             nested));
        } else {
                add_error(value,
                          lc_asprintf("Invalid value %s for configuration %s: %s", name, full_name, err.msg));
                value->value = NULL;
                free(name);
        }
        free(nested);
        return NULL;
}

bool lc_block_version(const lc_plugin_t *p, const char *range, lc_config_value_t *class_value,
                      lc_config_value_t *version_value)
{
        lc_buf_t text = LC_BUF_SURE;
        lc_err_t err = {0};
        char *message = NULL;
        int in;

        if (!range || !p->version || !strcmp(p->version, "undefined"))
                return true;
        in = lc_version_in_range(range, p->version, &text, &err);
        if (!in) {
                message = lc_asprintf(
                        "Plugin %s not found that matches the version range %s, available versions: "
                        "[%s]",
                        p->class_name, text.p ? text.p : range, p->version);
                lc_strv_add(&class_value->errors, message);
                lc_strv_add(&version_value->errors, message);
                free(message);
        }
        lc_buf_free(&text);
        return in > 0;
}

static const char *version_of(const lc_plugin_t *p)
{
        return p && p->version && strcmp(p->version, "undefined") ? p->version : NULL;
}

void lc_block_move(lc_config_infos_t *dst, lc_config_infos_t *src)
{
        for (size_t i = 0; i < src->groups.n; i++)
                lc_block_group(dst, src->groups.v[i]);
        for (size_t i = 0; i < src->n; i++) {
                lc_config_value_t *v = lc_config_infos_add(dst, NULL, "");

                free(v->name);
                *v = src->values[i];
        }
        src->n = 0;
}

/* ---- transforms and predicates ---- */

static const lc_config_row_t type_rows[] = {
        {.name = "type",
         .type = LC_CFG_CLASS,
         .required = true,
         .importance = LC_HIGH,
         .width = LC_WIDTH_LONG,
         .doc = "Class of the transformation or predicate."},
        {.name = "plugin.version",
         .type = LC_CFG_STRING,
         .importance = LC_HIGH,
         .width = LC_WIDTH_LONG,
         .doc = "Version range of that class."},
};
static const lc_config_row_t implicit_rows[] = {
        {.name = "predicate",
         .type = LC_CFG_STRING,
         .importance = LC_MEDIUM,
         .order = -1,
         .doc = "Alias of the predicate that decides whether the transformation is applied."},
        {.name = "negate",
         .type = LC_CFG_BOOLEAN,
         .def = "false",
         .importance = LC_MEDIUM,
         .order = -1,
         .doc = "Apply the transformation where the predicate does not match."},
};

/* ConfigDef.sortedConfigs(): without group first, groups in order of definition, then as listed here. */
static int group_rank(const lc_config_row_t *const *rows, int n, const char *group)
{
        if (!group)
                return -1;
        for (int i = 0; i < n; i++)
                if (rows[i]->group && !strcmp(rows[i]->group, group))
                        return i;
        return n;
}

static int compare_rows(const lc_config_row_t *a, int group_a, const lc_config_row_t *b, int group_b)
{
        if (group_a != group_b)
                return group_a - group_b;
        if (a->order != b->order)
                return a->order - b->order;
        if (a->required != b->required)
                return a->required ? -1 : 1;
        if (a->importance != b->importance)
                return (int)a->importance - (int)b->importance;
        return strcmp(a->name, b->name);
}

/* The plugin's rows and the implicit ones in their order; malloc'ed. */
static const lc_config_row_t **embedded_rows(const lc_plugin_t *p, int *n)
{
        const lc_config_row_t **rows = lc_malloc(((size_t)p->nrows + 2) * sizeof(*rows));
        int *rank;
        bool transform = p->type == LC_PLUGIN_TRANSFORMATION;

        *n = 0;
        for (int i = 0; transform && i < 2; i++)
                rows[(*n)++] = &implicit_rows[i];
        for (int i = 0; i < p->nrows; i++) {
                if (transform &&
                    (!strcmp(p->rows[i].name, "predicate") || !strcmp(p->rows[i].name, "negate")))
                        lc_log(LC_WARN, "CONFIG",
                               "Transformer config %s of %s is masked by implicit config of that "
                               "name",
                               p->rows[i].name, p->class_name);
                else
                        rows[(*n)++] = &p->rows[i];
        }
        rank = lc_malloc(((size_t)*n + 1) * sizeof(*rank));
        for (int i = 0; i < *n; i++)
                rank[i] = group_rank(rows, *n, rows[i]->group);
        for (int i = 1; i < *n; i++) {
                for (int j = i; j && compare_rows(rows[j], rank[j], rows[j - 1], rank[j - 1]) < 0; j--) {
                        const lc_config_row_t *r = rows[j];
                        int k = rank[j];

                        rows[j] = rows[j - 1];
                        rank[j] = rank[j - 1];
                        rows[j - 1] = r;
                        rank[j - 1] = k;
                }
        }
        free(rank);
        return rows;
}

/* Plugin code that checks more than rows can: it sees keys without prefix, so names are cut meanwhile. */
static int run_validate(const lc_plugin_t *p, const lc_props_t *props, const char *prefix,
                        lc_config_infos_t *block, lc_err_t *err)
{
        lc_props_t *own;
        size_t cut = strlen(prefix);
        int rc;

        if (!p->validate)
                return 0;
        own = lc_props_prefixed(props, prefix);
        for (size_t i = 0; i < block->n; i++)
                memmove(block->values[i].name, block->values[i].name + cut,
                        strlen(block->values[i].name) - cut + 1);
        rc = p->validate(p, own, block, err);
        for (size_t i = 0; i < block->n; i++) {
                char *full = lc_asprintf("%s%s", prefix, block->values[i].name);

                free(block->values[i].name);
                block->values[i].name = full;
        }
        lc_props_free(own);
        return rc;
}

static int embed(lc_validation_t *v, const lc_plugin_t *p, const char *prefix, const char *group,
                 lc_err_t *err)
{
        int n;
        const lc_config_row_t **rows = embedded_rows(p, &n);
        lc_config_infos_t *block = lc_config_infos_new("");
        int rc;

        for (int i = 0; i < n; i++) {
                char *name = lc_asprintf("%s%s", prefix, rows[i]->name);
                lc_config_value_t *value = lc_block_value(block, rows[i], name, v->props, NULL);

                value->order = 2 + i;
                value->group =
                        rows[i]->group ? lc_asprintf("%s: %s", group, rows[i]->group) : lc_strdup(group);
                lc_block_group(block, value->group);
                free(name);
        }
        rc = run_validate(p, v->props, prefix, block, err);
        lc_block_move(v->infos, block);
        lc_config_infos_free(block);
        free(rows);
        return rc;
}

static int chain_link(lc_validation_t *v, lc_plugin_type_t type, const char *list, const char *alias,
                      lc_err_t *err)
{
        bool transform = type == LC_PLUGIN_TRANSFORMATION;
        char *prefix = lc_asprintf("%s.%s.", list, alias);
        char *group = lc_asprintf("%s: %s", transform ? "Transforms" : "Predicates", alias);
        char *type_key = lc_asprintf("%stype", prefix),
             *version_key = lc_asprintf("%splugin.version", prefix);
        char *negate = lc_asprintf("%snegate", prefix), *predicate = lc_asprintf("%spredicate", prefix);
        const lc_plugin_t *p;
        lc_config_value_t *value, *version;
        size_t at = v->infos->n;
        bool usable;
        int rc = 0;

        value = lc_block_value(v->infos, &type_rows[0], type_key, v->props, NULL);
        p = lc_block_class(v, value, type_key, type);
        value->group = lc_strdup(group);
        value->order = 0;
        value->display = lc_asprintf("%s type for %s", interfaces[type], alias);
        lc_block_recommend(v, value, type);
        if (transform && p && lc_props_has(v->props, negate) && !lc_props_has(v->props, predicate))
                add_error(value,
                          lc_asprintf("Config '%s' was provided but there is no config '%s' defining a "
                                      "predicate to be negated.",
                                      negate, predicate));
        version = lc_block_value(v->infos, &type_rows[1], version_key, v->props, version_of(p));
        value = &v->infos->values[at]; /* the list may have moved */
        version->group = lc_strdup(group);
        version->order = 1;
        version->display = lc_asprintf("%s version for %s", interfaces[type], alias);
        if (version_of(p))
                lc_strv_add(&version->recommended, version_of(p));
        lc_block_group(v->infos, group);
        usable = p && lc_block_version(p, lc_props_get(v->props, version_key), value, version);
        if (usable)
                rc = embed(v, p, prefix, group, err);
        free(prefix);
        free(group);
        free(type_key);
        free(version_key);
        free(negate);
        free(predicate);
        return rc;
}

int lc_block_chain(lc_validation_t *v, lc_plugin_type_t type, lc_err_t *err)
{
        const char *list = type == LC_PLUGIN_TRANSFORMATION ? "transforms" : "predicates";
        lc_strv_t all = {NULL, 0}, once = {NULL, 0};
        int rc = 0;

        lc_strv_split(&all, lc_props_get_or(v->props, list, ""));
        for (size_t i = 0; i < all.n; i++)
                if (!lc_strv_has(&once, all.v[i]))
                        lc_strv_add(&once, all.v[i]);
        for (size_t i = 0; !rc && i < once.n; i++)
                rc = chain_link(v, type, list, once.v[i], err);
        lc_strv_free(&all);
        lc_strv_free(&once);
        return rc;
}

/* ---- converters ---- */

int lc_block_converter(lc_validation_t *v, const char *role, lc_config_infos_t *out, lc_err_t *err)
{
        lc_plugin_type_t type = strcmp(role, "header") ? LC_PLUGIN_CONVERTER : LC_PLUGIN_HEADER_CONVERTER;
        char *class_key = lc_asprintf("%s.converter", role), *prefix = lc_asprintf("%s.converter.", role);
        char *version_key = lc_asprintf("%s.converter.plugin.version", role);
        const lc_config_value_t *class_value = lc_config_infos_find(v->infos, class_key);
        const lc_config_value_t *version_value = lc_config_infos_find(v->infos, version_key);
        const lc_plugin_t *p;
        lc_props_t *own = NULL;
        lc_config_infos_t *block = NULL;
        const char **names = NULL;
        size_t *order = NULL;
        int rc = 0;

        if (!lc_props_get(v->props, class_key) || !class_value || !class_value->value ||
            class_value->errors.n || (version_value && version_value->errors.n))
                goto done;
        p = lc_plugins_find(v->plugins, 1u << type, class_value->value, err);
        if (!p) {
                rc = -1;
                goto done;
        }
        own = lc_props_prefixed(v->props, prefix);
        lc_props_del(own, "plugin.version");
        if (!lc_props_has(own, "converter.type"))
                lc_props_set(own, "converter.type", role);
        names = lc_malloc(((size_t)p->nrows + 1) * sizeof(*names));
        order = lc_malloc(((size_t)p->nrows + 1) * sizeof(*order));
        for (int i = 0; i < p->nrows; i++)
                names[i] = p->rows[i].name;
        lc_java_map_order(names, (size_t)p->nrows, false, order);
        block = lc_config_infos_new("");
        for (int i = 0; i < p->nrows; i++) {
                const lc_config_row_t *row = &p->rows[order[i]];

                lc_block_value(block, row, row->name, own, NULL);
                lc_block_group(block, row->group);
        }
        rc = run_validate(p, own, "", block, err);
        for (size_t i = 0; i < block->n; i++) {
                char *full = lc_asprintf("%s%s", prefix, block->values[i].name);

                free(block->values[i].name);
                block->values[i].name = full;
                out->error_count += block->values[i].errors.n > 0;
        }
        lc_block_move(out, block);
done:
        lc_config_infos_free(block);
        lc_props_free(own);
        free(names);
        free(order);
        free(class_key);
        free(prefix);
        free(version_key);
        return rc;
}

/* ---- client overrides ---- */

int lc_block_overrides(lc_validation_t *v, lc_client_family_t family, lc_config_infos_t *out, lc_err_t *err)
{
        static const char *const prefixes[] = {"producer.override.", "consumer.override.", "admin.override."};
        lc_props_t *own = lc_props_prefixed(v->props, prefixes[family]);
        size_t n = lc_props_count(own);
        const char **names = lc_malloc((n + 1) * sizeof(*names));
        size_t *order = lc_malloc((n + 1) * sizeof(*order));
        int rc = 0;

        for (size_t i = 0; i < n; i++)
                names[i] = lc_props_key(own, i);
        lc_java_map_order(names, n, false, order);
        for (size_t i = 0; !rc && i < n; i++) {
                const char *key = names[order[i]], *raw = lc_props_value(own, order[i]);
                const lc_config_row_t *row = lc_client_row(family, key);
                char *full = lc_asprintf("%s%s", prefixes[family], key);
                lc_config_value_t *value = lc_config_infos_add(out, row, full);
                lc_buf_t reason = LC_BUF_SURE, text = LC_BUF_SURE;

                /* a value of the wrong type ends the validation, as in Java */
                rc = lc_config_parse_type(row ? row->type : LC_CFG_STRING, raw, &value->value, &reason);
                if (rc) {
                        lc_config_invalid(&text, LC_CFG_STRING, raw, key, reason.p);
                        lc_err_set_cls(err, LC_FATAL, 500, LC_CLS_CONFIG, "%s", text.p);
                } else if (row && row->type == LC_CFG_PASSWORD && value->value) {
                        free(value->value);
                        value->value = lc_strdup("[hidden]");
                }
                if (!lc_override_allowed(v->wc, key, &text) && !rc)
                        lc_strv_add(&value->errors, text.p);
                out->error_count += value->errors.n > 0;
                lc_buf_free(&reason);
                lc_buf_free(&text);
                free(full);
        }
        lc_props_free(own);
        free(names);
        free(order);
        return rc;
}
