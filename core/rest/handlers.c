/* handlers.c - one function a kind of request; the table of routes is at the end. See call.h. */
#include "rest/call.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/version_range.h"
#include "rest/body.h"
#include "rest/json_out.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#ifndef LC_VERSION
#define LC_VERSION "unknown"
#endif
#define NULL_CONFIG "Cannot invoke \"java.util.Map.get(Object)\" because \"connectorConfig\" is null"

static int body_error(lc_rest_call_t *call, const lc_err_t *err)
{
        return lc_rest_error(call, err->code >= 400 && err->code < 600 ? err->code : 500, err->msg);
}

/* ?name=: Boolean.valueOf; -1 when absent or empty. */
static int flag(const lc_rest_call_t *call, const char *name)
{
        lc_buf_t value = LC_BUF_SURE;
        int result = -1;

        if (lc_http_query(call->in.uri, name, &value) && value.len)
                result = !strcasecmp(value.p, "true");
        lc_buf_free(&value);
        return result;
}

static const char *connector(const lc_rest_call_t *call)
{
        return call->match.params[0];
}

static lc_request_t *make_request(lc_rest_call_t *call, lc_request_op_t op, const char *name)
{
        lc_request_t *req = lc_request_new(op, name);

        req->task = call->match.number;
        req->initial_state = LC_TARGET_NONE;
        req->forward = flag(call, "forward");
        req->deadline_ms =
                lc_now_ms() + (op == LC_REQ_HEALTH ? LC_REST_HEALTH_TIMEOUT_MS : LC_REST_TIMEOUT_MS);
        call->req = req;
        return req;
}

/* --- / and /health --- */

static int begin_root(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        lc_buf_t *b = &call->out.body;

        lc_rest_success(call, 200);
        lc_buf_adds(b, "{\"version\":\"" LC_REST_VERSION "\",\"commit\":\"" LC_REST_COMMIT
                       "\",\"kafka_cluster_id\":");
        lc_out_string(b, ctx->cluster_id);
        lc_buf_addc(b, '}');
        lc_rest_answer_header(&call->out, "X-Luaconnect-Version", LC_VERSION);
        return 0;
}

static int begin_health(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        if (ctx->starting) {
                lc_rest_health(call, 503, "");
                return 0;
        }
        make_request(call, LC_REQ_HEALTH, NULL);
        return 1;
}

/* --- connectors --- */

static int begin_list(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        lc_strv_t values = {NULL, 0};
        lc_request_t *req = make_request(call, LC_REQ_LIST, NULL);

        (void)ctx;
        call->expand = lc_http_query_all(call->in.uri, "expand", &values) > 0;
        for (size_t i = 0; i < values.n; i++) {
                char letter = !strcmp(values.v[i], "status") ? 's' : !strcmp(values.v[i], "info") ? 'i' : 0;
                if (letter && !strchr(call->order, letter))
                        call->order[strlen(call->order)] = letter;
        }
        req->want_status = strchr(call->order, 's') != NULL;
        req->want_info = strchr(call->order, 'i') != NULL;
        lc_strv_free(&values);
        return 1;
}

/* A config's own "name" must be that of the request; when it has none it gets it. */
static int take_name(lc_rest_call_t *call, lc_props_t *config, const char *name)
{
        const char *included = lc_props_get(config, "name");
        char *text;

        if (!included) {
                if (lc_props_has(config, "name"))
                        lc_props_del(config, "name"); /* null: appended, as put() on a missing key */
                lc_props_set(config, "name", name);
                return 1;
        }
        if (!strcmp(included, name))
                return 1;
        text = lc_asprintf("Connector name configuration (%s) doesn't match connector name in the URL (%s)",
                           included, name);
        lc_rest_error(call, 400, text);
        free(text);
        return 0;
}

static int begin_create(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        lc_create_body_t body;
        lc_err_t err;
        lc_request_t *req;
        int rc = 0;

        (void)ctx;
        lc_err_clear(&err);
        if (lc_body_create(call->in.body, call->in.body_len, false, &body, &err))
                return body_error(call, &err);
        if (!body.config)
                lc_rest_error(call, 500, NULL_CONFIG);
        else if ((rc = take_name(call, body.config, body.name)) != 0) {
                req = make_request(call, LC_REQ_CREATE, body.name);
                req->config = body.config;
                req->initial_state = body.initial_state;
                body.config = NULL;
        }
        lc_create_body_free(&body);
        return rc;
}

static int begin_put_config(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        lc_props_t *config = NULL;
        lc_err_t err;

        (void)ctx;
        lc_err_clear(&err);
        if (lc_body_config(call->in.body, call->in.body_len, &config, &err))
                return body_error(call, &err);
        if (!config)
                return lc_rest_error(call, 500, NULL_CONFIG);
        if (!take_name(call, config, connector(call))) {
                lc_props_free(config);
                return 0;
        }
        make_request(call, LC_REQ_PUT_CONFIG, connector(call))->config = config;
        return 1;
}

static int begin_patch_config(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        lc_props_t *patch = NULL;
        lc_err_t err;

        (void)ctx;
        lc_err_clear(&err);
        if (lc_body_config(call->in.body, call->in.body_len, &patch, &err))
                return body_error(call, &err);
        make_request(call, LC_REQ_PATCH_CONFIG, connector(call))->config = patch ? patch : lc_props_new();
        return 1;
}

/* Nothing to read but the path. */
static int begin_plain(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        (void)ctx;
        make_request(call, call->match.route->op, connector(call));
        return 1;
}

static int begin_restart(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        lc_request_t *req = make_request(call, LC_REQ_RESTART, connector(call));

        (void)ctx;
        req->include_tasks = flag(call, "includeTasks") == 1;
        req->only_failed = flag(call, "onlyFailed") == 1;
        return 1;
}

static int begin_topics(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        if (!ctx->topic_tracking)
                return lc_rest_error(call, 403, "Topic tracking is disabled.");
        make_request(call, LC_REQ_TOPICS, connector(call));
        return 1;
}

static int begin_topics_reset(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        if (!ctx->topic_tracking)
                return lc_rest_error(call, 403, "Topic tracking is disabled.");
        if (!ctx->topic_reset)
                return lc_rest_error(call, 403, "Topic tracking reset is disabled.");
        make_request(call, LC_REQ_TOPICS_RESET, connector(call));
        return 1;
}

static int begin_change_offsets(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        (void)ctx;
        return lc_rest_error(
                call, 501, "This version of luaconnect does not support changing the offsets of a connector");
}

/* Requests between workers: the herder knows whether they must be signed, and how. */
static int internal_request(lc_rest_call_t *call, lc_request_op_t op)
{
        lc_request_t *req = make_request(call, op, connector(call));

        req->signature = lc_strdup(call->in.signature);
        req->signature_algorithm = lc_strdup(call->in.signature_algorithm);
        req->body = lc_malloc(call->in.body_len + 1);
        memcpy(req->body, call->in.body, call->in.body_len);
        req->body[call->in.body_len] = 0;
        req->body_len = call->in.body_len;
        return 1;
}

static int begin_post_tasks(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        lc_props_t **tasks = NULL;
        int ntasks = 0;
        lc_err_t err;

        lc_err_clear(&err);
        if (lc_body_task_configs(call->in.body, call->in.body_len, ctx->distributed ? &tasks : NULL, &ntasks,
                                 &err))
                return body_error(call, &err);
        if (!ctx->distributed)
                return lc_rest_error(call, 500,
                                     "Kafka Connect in standalone mode does not support externally setting "
                                     "task configurations.");
        internal_request(call, LC_REQ_PUT_TASKS);
        call->req->tasks = tasks;
        call->req->ntasks = ntasks;
        return 1;
}

static int begin_fence(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        if (!ctx->distributed)
                return lc_rest_error(call, 500,
                                     "Kafka Connect in standalone mode does not support exactly-once source "
                                     "connectors.");
        return internal_request(call, LC_REQ_FENCE);
}

/* --- plugins --- */

static int begin_plugins(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        const lc_plugins_t *plugins = lc_plugins_current(ctx->plugins);

        lc_rest_success(call, 200);
        lc_out_plugins(&call->out.body, plugins, flag(call, "connectorsOnly") != 0);
        lc_plugins_unref(plugins);
        return 0;
}

static int begin_reload(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        (void)ctx;
        make_request(call, LC_REQ_RELOAD, NULL);
        return 1;
}

static int begin_plugin_config(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        const lc_plugins_t *plugins = lc_plugins_current(ctx->plugins);
        const lc_plugin_t *p;
        lc_buf_t range = LC_BUF_SURE, printed = LC_BUF_SURE;
        lc_err_t err;
        char *text = NULL;

        lc_err_clear(&err);
        p = lc_plugins_find(plugins, 0, connector(call), &err);
        if (!p) {
                text = lc_asprintf("Unknown plugin %s.", connector(call));
                lc_rest_error(call, 404, text);
        } else {
                const char *version = p->version ? p->version : "undefined";
                int fits = 1;
                lc_err_clear(&err);
                if (lc_http_query(call->in.uri, "version", &range) && range.len)
                        fits = lc_version_in_range(range.p, version, &printed, &err);
                if (fits > 0) {
                        lc_rest_success(call, 200);
                        lc_out_plugin_config(&call->out.body, p);
                } else if (fits < 0) {
                        text = lc_asprintf("Invalid version specification: %s", range.p);
                        lc_rest_error(call, 400, text);
                } else {
                        text = lc_asprintf("Plugin %s not found that matches the version range %s, available "
                                           "versions: [%s]",
                                           p->class_name, printed.p ? printed.p : range.p, version);
                        lc_rest_error(call, 400, text);
                }
        }
        lc_buf_free(&range);
        lc_buf_free(&printed);
        free(text);
        lc_plugins_unref(plugins);
        return 0;
}

/* Length of a class name without the suffix that users leave out. */
static size_t pruned(const char *name)
{
        size_t n = strlen(name), suffix = strlen("Connector");

        return n > suffix && !strcmp(name + n - suffix, "Connector") ? n - suffix : n;
}

static int begin_validate(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        lc_props_t *config = NULL;
        const char *plugin = connector(call), *included;
        lc_err_t err;

        (void)ctx;
        lc_err_clear(&err);
        if (lc_body_config(call->in.body, call->in.body_len, &config, &err))
                return body_error(call, &err);
        if (!config)
                return lc_rest_error(call, 500, NULL_CONFIG);
        included = lc_props_get(config, "connector.class");
        if (included) {
                size_t have = pruned(included), want = pruned(plugin);
                if (have < want || memcmp(included + have - want, plugin, want)) {
                        char *text = lc_asprintf("Included connector type %s does not match request type %s",
                                                 included, plugin);
                        lc_rest_error(call, 400, text);
                        free(text);
                        lc_props_free(config);
                        return 0;
                }
        }
        make_request(call, LC_REQ_VALIDATE, plugin)->config = config;
        return 1;
}

/* --- loggers --- */

static int begin_loggers(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        lc_rest_success(call, 200);
        lc_loggers_list(ctx->loggers, &call->out.body);
        return 0;
}

static int begin_logger(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        char *text;

        if (lc_loggers_get(ctx->loggers, connector(call), &call->out.body)) {
                lc_rest_success(call, 200);
                return 0;
        }
        text = lc_asprintf("Logger %s not found.", connector(call));
        lc_rest_error(call, 404, text);
        free(text);
        return 0;
}

/* Every worker applies a level of the cluster when it reads it in the config topic, this one too. */
static int cluster_level(const lc_rest_context_t *ctx, lc_rest_call_t *call, const char *level)
{
        lc_buf_t changed = LC_BUF_SURE;

        if (ctx->distributed) {
                make_request(call, LC_REQ_LOGGER, connector(call))->level = lc_strdup(level);
                return 1;
        }
        lc_loggers_set(ctx->loggers, connector(call), level, &changed);
        lc_buf_free(&changed);
        lc_rest_success(call, 204);
        return 0;
}

static int begin_put_logger(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        lc_props_t *body = NULL;
        lc_buf_t scope = LC_BUF_SURE;
        lc_err_t err;
        const char *level;
        int rc = 0;

        lc_err_clear(&err);
        if (lc_body_config(call->in.body, call->in.body_len, &body, &err))
                return body_error(call, &err);
        level = body ? lc_props_get(body, "level") : NULL;
        lc_http_query(call->in.uri, "scope", &scope);
        if (!body) {
                lc_rest_error(call, 500,
                              "Cannot invoke \"java.util.Map.get(Object)\" because \"levelMap\" is null");
        } else if (!level) {
                lc_rest_error(call, 400, "Desired 'level' parameter was not specified in request.");
        } else if (!*level) {
                lc_rest_error(call, 500, "Illegal null or empty Level name.");
        } else if (!lc_loggers_is_level(level)) {
                char *text = lc_asprintf("invalid log level '%s'.", level);
                lc_rest_error(call, 404, text);
                free(text);
        } else if (!strcasecmp(scope.p, "cluster")) {
                rc = cluster_level(ctx, call, level);
        } else {
                if (scope.len && strcasecmp(scope.p, "worker"))
                        lc_log(LC_WARN, "REST",
                               "Received invalid scope '%s' in request to adjust log level; will "
                               "fall back to scope 'worker'",
                               scope.p);
                lc_rest_success(call, 200);
                lc_loggers_set(ctx->loggers, connector(call), level, &call->out.body);
        }
        lc_props_free(body);
        lc_buf_free(&scope);
        return rc;
}

/* --- answers of the herder --- */

static void render_list(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        (void)ctx;
        if (call->expand)
                lc_out_expanded(&call->out.body, call->req, call->order);
        else
                lc_out_strings(&call->out.body, &call->req->names);
}

static void render_info(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        (void)ctx;
        lc_out_info(&call->out.body, call->req->info);
}

/* 201 carries the URL of the new connector. */
static void render_stored(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        const char *name = call->req->connector ? call->req->connector : call->req->info->name;

        if (call->req->created) {
                call->out.status = 201;
                if (lc_rest_location(call, name))
                        return;
        }
        render_info(ctx, call);
}

static void render_config(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        (void)ctx;
        lc_out_config(&call->out.body, call->req->info);
}

static void render_tasks(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        (void)ctx;
        lc_out_tasks(&call->out.body, call->req->info);
}

static void render_state(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        (void)ctx;
        lc_out_state(&call->out.body, call->req->state);
}

static void render_task_state(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        (void)ctx;
        lc_out_task_state(&call->out.body, &call->req->state->tasks[0]);
}

/* 204 without a body, or 202 with the plan. */
static void render_restart(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        (void)ctx;
        if (!call->req->state)
                return;
        call->out.status = 202;
        lc_rest_answer_type(&call->out, call->type);
        lc_out_state(&call->out.body, call->req->state);
}

static void render_topics(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        (void)ctx;
        lc_out_topics(&call->out.body, connector(call), &call->req->names);
}

static void render_offsets(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        (void)ctx;
        lc_buf_adds(&call->out.body, call->req->offsets_json);
}

static void render_reload(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        (void)ctx;
        lc_buf_adds(&call->out.body, call->req->reload_json);
}

static void render_infos(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        (void)ctx;
        lc_out_config_infos(&call->out.body, call->req->infos);
}

/* A level of the cluster: 204, where one of this worker is 200 with names. */
static void render_logger(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        (void)ctx;
        lc_rest_success(call, 204);
        lc_rest_answer_type(&call->out, NULL);
}

static void render_health(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        (void)ctx;
        lc_rest_health(call, 200, "");
}

/* --- the table --- */

/* clang-format off */
#define C "/connectors/{connector}"
#define P "/connector-plugins"
enum { B = LC_ROUTE_BODY, ANY = LC_ROUTE_ANY_TYPE, ADM = LC_ROUTE_ADMIN };
#define NONE LC_REQ_LIST /* never asked */
static const lc_route_t routes[] = {
        { "GET", "/", ANY, begin_root, NONE, 200, NULL },
        { "GET", "/health", ANY, begin_health, LC_REQ_HEALTH, 200, render_health },
        { "POST", "/connectors", B, begin_create, LC_REQ_CREATE, 201, render_stored },
        { "GET", "/connectors", 0, begin_list, LC_REQ_LIST, 200, render_list },
        { "DELETE", C, 0, begin_plain, LC_REQ_DELETE, 204, NULL },
        { "GET", C, 0, begin_plain, LC_REQ_INFO, 200, render_info },
        { "GET", C "/config", 0, begin_plain, LC_REQ_INFO, 200, render_config },
        { "PUT", C "/config", B, begin_put_config, LC_REQ_PUT_CONFIG, 200, render_stored },
        { "PATCH", C "/config", B, begin_patch_config, LC_REQ_PATCH_CONFIG, 200, render_info },
        { "GET", C "/status", 0, begin_plain, LC_REQ_STATUS, 200, render_state },
        { "GET", C "/tasks", 0, begin_plain, LC_REQ_TASKS, 200, render_tasks },
        { "POST", C "/tasks", B, begin_post_tasks, LC_REQ_PUT_TASKS, 204, NULL },
        { "GET", C "/tasks/{#task}/status", 0, begin_plain, LC_REQ_TASK_STATUS, 200, render_task_state },
        { "POST", C "/tasks/{#task}/restart", 0, begin_plain, LC_REQ_RESTART_TASK, 204, NULL },
        { "POST", C "/restart", 0, begin_restart, LC_REQ_RESTART, 204, render_restart },
        { "PUT", C "/pause", 0, begin_plain, LC_REQ_PAUSE, 202, NULL },
        { "PUT", C "/resume", 0, begin_plain, LC_REQ_RESUME, 202, NULL },
        { "PUT", C "/stop", 0, begin_plain, LC_REQ_STOP, 204, NULL },
        { "GET", C "/topics", 0, begin_topics, LC_REQ_TOPICS, 200, render_topics },
        { "PUT", C "/topics/reset", 0, begin_topics_reset, LC_REQ_TOPICS_RESET, 202, NULL },
        { "DELETE", C "/offsets", 0, begin_change_offsets, NONE, 200, NULL },
        { "GET", C "/offsets", 0, begin_plain, LC_REQ_OFFSETS, 200, render_offsets },
        { "PATCH", C "/offsets", B, begin_change_offsets, NONE, 200, NULL },
        { "PUT", C "/fence", 0, begin_fence, LC_REQ_FENCE, 204, NULL },
        { "GET", P, 0, begin_plugins, NONE, 200, NULL },
        { "POST", P "/reload", ANY, begin_reload, LC_REQ_RELOAD, 200, render_reload },
        { "GET", P "/{plugin}/config", 0, begin_plugin_config, NONE, 200, NULL },
        { "PUT", P "/{plugin}/config/validate", B, begin_validate, LC_REQ_VALIDATE, 200, render_infos },
        { "GET", "/admin/loggers", ADM, begin_loggers, NONE, 200, NULL },
        { "GET", "/admin/loggers/{logger}", ADM, begin_logger, NONE, 200, NULL },
        { "PUT", "/admin/loggers/{logger}", ADM | B, begin_put_logger, LC_REQ_LOGGER, 200, render_logger }
};
/* clang-format on */

const lc_route_t *lc_routes(size_t *n)
{
        *n = sizeof(routes) / sizeof(routes[0]);
        return routes;
}
