/*
 * json_out.h - answers as JSON: the shapes of reference rest.md 2 with Connect's field order.
 *
 * Threads:   pure functions; they append to a buffer.   Tests: spec/unit/rest_spec.lua
 */
#ifndef LC_REST_JSON_OUT_H
#define LC_REST_JSON_OUT_H
#include "base/buf.h"
#include "herder/herder.h"

void lc_out_string(lc_buf_t *out, const char *s); /* NULL: null */
void lc_out_strings(lc_buf_t *out, const lc_strv_t *list);
void lc_out_info(lc_buf_t *out, const lc_connector_info_t *info);
void lc_out_config(lc_buf_t *out, const lc_connector_info_t *info);
void lc_out_state(lc_buf_t *out, const lc_connector_state_t *state);
void lc_out_task_state(lc_buf_t *out, const lc_status_t *task);
void lc_out_tasks(lc_buf_t *out, const lc_connector_info_t *info); /* GET /connectors/x/tasks */
/* GET /connectors?expand=: order holds 'i' and 's' as asked. */
void lc_out_expanded(lc_buf_t *out, const lc_request_t *req, const char *order);
void lc_out_topics(lc_buf_t *out, const char *connector, const lc_strv_t *topics);
void lc_out_plugins(lc_buf_t *out, const lc_plugins_t *plugins, bool connectors_only);
/* GET /connector-plugins/x/config: own rows, then the common ones a connector does not define itself. */
void lc_out_plugin_config(lc_buf_t *out, const lc_plugin_t *plugin);
void lc_out_config_infos(lc_buf_t *out, const lc_config_infos_t *infos);

#endif
