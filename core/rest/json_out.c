/* json_out.c - see json_out.h. */
#include "rest/json_out.h"
#include "config/connector_config.h"
#include "convert/json.h"
#include <limits.h>
#include <string.h>

void lc_out_string(lc_buf_t *out, const char *s)
{
        if (s)
                lc_json_write_string(out, s, strlen(s));
        else
                lc_buf_adds(out, "null");
}

static void key(lc_buf_t *out, const char *name)
{
        char last = out->len ? out->p[out->len - 1] : '{';

        if (last != '{' && last != '[')
                lc_buf_addc(out, ',');
        lc_buf_printf(out, "\"%s\":", name);
}

static void string_field(lc_buf_t *out, const char *name, const char *value)
{
        key(out, name);
        lc_out_string(out, value);
}

void lc_out_strings(lc_buf_t *out, const lc_strv_t *list)
{
        lc_buf_addc(out, '[');
        for (size_t i = 0; i < list->n; i++) {
                if (i)
                        lc_buf_addc(out, ',');
                lc_out_string(out, list->v[i]);
        }
        lc_buf_addc(out, ']');
}

static void task_id(lc_buf_t *out, const char *connector, int task)
{
        lc_buf_adds(out, "{\"connector\":");
        lc_out_string(out, connector);
        lc_buf_printf(out, ",\"task\":%d}", task);
}

void lc_out_config(lc_buf_t *out, const lc_connector_info_t *info)
{
        if (info->config)
                lc_json_write_props(out, info->config);
        else
                lc_buf_adds(out, "{}");
}

void lc_out_info(lc_buf_t *out, const lc_connector_info_t *info)
{
        lc_buf_adds(out, "{\"name\":");
        lc_out_string(out, info->name);
        key(out, "config");
        lc_out_config(out, info);
        key(out, "tasks");
        lc_buf_addc(out, '[');
        for (int i = 0; i < info->ntasks; i++) {
                if (i)
                        lc_buf_addc(out, ',');
                task_id(out, info->name, i);
        }
        lc_buf_addc(out, ']');
        string_field(out, "type", info->type ? info->type : "unknown");
        lc_buf_addc(out, '}');
}

/* state, worker_id, version, trace: version null is printed, "undefined" is left out; no empty trace. */
static void state_fields(lc_buf_t *out, const lc_status_t *st)
{
        string_field(out, "state", lc_state_name(st->state));
        string_field(out, "worker_id", st->worker_id);
        if (!st->version || strcmp(st->version, "undefined"))
                string_field(out, "version", st->version);
        if (st->trace && *st->trace)
                string_field(out, "trace", st->trace);
        if (st->restart) { /* only with a restart.policy: clients may not know it */
                key(out, "restart");
                lc_buf_adds(out, st->restart);
        }
        lc_buf_addc(out, '}');
}

void lc_out_task_state(lc_buf_t *out, const lc_status_t *task)
{
        lc_buf_printf(out, "{\"id\":%d", task->task);
        state_fields(out, task);
}

void lc_out_state(lc_buf_t *out, const lc_connector_state_t *state)
{
        lc_buf_adds(out, "{\"name\":");
        lc_out_string(out, state->name);
        lc_buf_adds(out, ",\"connector\":{");
        state_fields(out, &state->connector);
        lc_buf_adds(out, ",\"tasks\":[");
        for (size_t i = 0; i < state->ntasks; i++) {
                if (i)
                        lc_buf_addc(out, ',');
                lc_out_task_state(out, &state->tasks[i]);
        }
        lc_buf_addc(out, ']');
        string_field(out, "type", state->type ? state->type : "unknown");
        lc_buf_addc(out, '}');
}

void lc_out_tasks(lc_buf_t *out, const lc_connector_info_t *info)
{
        lc_buf_addc(out, '[');
        for (int i = 0; i < info->ntasks; i++) {
                if (i)
                        lc_buf_addc(out, ',');
                lc_buf_adds(out, "{\"id\":");
                task_id(out, info->name, i);
                lc_buf_adds(out, ",\"config\":");
                if (info->tasks && info->tasks[i])
                        lc_json_write_props(out, info->tasks[i]);
                else
                        lc_buf_adds(out, "{}");
                lc_buf_addc(out, '}');
        }
        lc_buf_addc(out, ']');
}

/* The element of `name`: usually at the same place in each list. */
static const lc_connector_info_t *info_of(const lc_request_t *req, size_t at, const char *name)
{
        if (!req->info)
                return NULL;
        if (at < req->ninfos && req->info[at].name && !strcmp(req->info[at].name, name))
                return &req->info[at];
        for (size_t i = 0; i < req->ninfos; i++)
                if (req->info[i].name && !strcmp(req->info[i].name, name))
                        return &req->info[i];
        return NULL;
}

static const lc_connector_state_t *state_of(const lc_request_t *req, size_t at, const char *name)
{
        if (!req->state)
                return NULL;
        if (at < req->ninfos && req->state[at].name && !strcmp(req->state[at].name, name))
                return &req->state[at];
        for (size_t i = 0; i < req->ninfos; i++)
                if (req->state[i].name && !strcmp(req->state[i].name, name))
                        return &req->state[i];
        return NULL;
}

void lc_out_expanded(lc_buf_t *out, const lc_request_t *req, const char *order)
{
        lc_buf_addc(out, '{');
        for (size_t i = 0; i < req->names.n; i++) {
                const char *name = req->names.v[i];
                const lc_connector_info_t *info = info_of(req, i, name);
                const lc_connector_state_t *state = state_of(req, i, name);
                if ((strchr(order, 's') && !state) || (strchr(order, 'i') && !info))
                        continue; /* gone, or without a status yet */
                if (out->p[out->len - 1] != '{')
                        lc_buf_addc(out, ',');
                lc_out_string(out, name);
                lc_buf_adds(out, ":{");
                for (const char *o = order; *o; o++) {
                        key(out, *o == 's' ? "status" : "info");
                        if (*o == 's')
                                lc_out_state(out, state);
                        else
                                lc_out_info(out, info);
                }
                lc_buf_addc(out, '}');
        }
        lc_buf_addc(out, '}');
}

void lc_out_topics(lc_buf_t *out, const char *connector, const lc_strv_t *topics)
{
        lc_buf_addc(out, '{');
        lc_out_string(out, connector);
        lc_buf_adds(out, ":{\"topics\":");
        lc_out_strings(out, topics);
        lc_buf_adds(out, "}}");
}

static bool same_plugin(const lc_plugin_t *a, const lc_plugin_t *b)
{
        return a->type == b->type && !strcmp(a->class_name, b->class_name) &&
               !strcmp(a->version ? a->version : "", b->version ? b->version : "");
}

void lc_out_plugins(lc_buf_t *out, const lc_plugins_t *plugins, bool connectors_only)
{
        const lc_plugin_t *last = NULL;

        lc_buf_addc(out, '[');
        for (size_t i = 0; i < plugins->n; i++) {
                const lc_plugin_t *p = plugins->v[i];
                if (p->error || (connectors_only && p->type != LC_PLUGIN_SINK && p->type != LC_PLUGIN_SOURCE))
                        continue;
                if (last && same_plugin(last, p))
                        continue;
                if (last)
                        lc_buf_addc(out, ',');
                last = p;
                lc_buf_adds(out, "{\"class\":");
                lc_out_string(out, p->class_name);
                string_field(out, "type", lc_plugin_type_name(p->type));
                if (p->version && strcmp(p->version, "undefined"))
                        string_field(out, "version", p->version);
                if (p->reload_error) /* only then: clients that know Connect's three fields see these alone */
                        string_field(out, "reload_error", p->reload_error);
                lc_buf_addc(out, '}');
        }
        lc_buf_addc(out, ']');
}

static const char *const importances[] = {"HIGH", "MEDIUM", "LOW"};
static const char *const widths[] = {"NONE", "SHORT", "MEDIUM", "LONG"};

/* The overrides are those of lc_config_value_t: NULL and INT_MIN mean the row's. */
static void definition(lc_buf_t *out, const lc_config_row_t *row, const char *name, const char *group,
                       const char *display, const char *def, int order)
{
        lc_buf_addc(out, '{');
        string_field(out, "name", name);
        string_field(out, "type", lc_config_type_name(row->type));
        key(out, "required");
        lc_buf_adds(out, row->required ? "true" : "false");
        string_field(out, "default_value", def ? def : row->def);
        string_field(out, "importance", importances[row->importance]);
        string_field(out, "documentation", row->doc ? row->doc : "");
        string_field(out, "group", group ? group : row->group);
        key(out, "order_in_group");
        lc_buf_printf(out, "%d", order != INT_MIN ? order : row->order);
        string_field(out, "width", widths[row->width]);
        string_field(out, "display_name", display ? display : row->display ? row->display : name);
        lc_buf_adds(out, ",\"dependents\":[]}");
}

static bool defines(const lc_plugin_t *plugin, const char *name)
{
        for (int i = 0; i < plugin->nrows; i++)
                if (!strcmp(plugin->rows[i].name, name))
                        return true;
        return false;
}

void lc_out_plugin_config(lc_buf_t *out, const lc_plugin_t *plugin)
{
        bool connector = plugin->type == LC_PLUGIN_SINK || plugin->type == LC_PLUGIN_SOURCE;
        const lc_config_row_t *common = NULL;
        int n = 0;

        lc_buf_addc(out, '[');
        for (int i = 0; i < plugin->nrows; i++) {
                const lc_config_row_t *row = &plugin->rows[i];
                if (i)
                        lc_buf_addc(out, ',');
                definition(out, row, row->name, NULL, NULL, NULL, INT_MIN);
        }
        if (connector)
                common = lc_connector_config_rows(plugin->type, &n);
        for (int i = 0; i < n; i++) {
                bool version = !strcmp(common[i].name, "connector.plugin.version");
                if (defines(plugin, common[i].name))
                        continue;
                if (out->p[out->len - 1] != '[')
                        lc_buf_addc(out, ',');
                definition(out, &common[i], common[i].name, NULL, NULL, version ? plugin->version : NULL,
                           INT_MIN);
        }
        lc_buf_addc(out, ']');
}

void lc_out_config_infos(lc_buf_t *out, const lc_config_infos_t *infos)
{
        lc_buf_adds(out, "{\"name\":");
        lc_out_string(out, infos->name);
        lc_buf_printf(out, ",\"error_count\":%d,\"groups\":", infos->error_count);
        lc_out_strings(out, &infos->groups);
        lc_buf_adds(out, ",\"configs\":[");
        for (size_t i = 0; i < infos->n; i++) {
                const lc_config_value_t *v = &infos->values[i];
                const char *name = v->name ? v->name : v->row ? v->row->name : "";
                if (i)
                        lc_buf_addc(out, ',');
                lc_buf_adds(out, "{\"definition\":");
                if (v->row)
                        definition(out, v->row, name, v->group, v->display, v->def, v->order);
                else
                        lc_buf_adds(out, "null");
                lc_buf_adds(out, ",\"value\":{");
                string_field(out, "name", name);
                string_field(out, "value", v->value);
                key(out, "recommended_values");
                lc_out_strings(out, &v->recommended);
                key(out, "errors");
                lc_out_strings(out, &v->errors);
                key(out, "visible");
                lc_buf_adds(out, v->visible ? "true}}" : "false}}");
        }
        lc_buf_adds(out, "]}");
}
