/*
 * request.c - requests and their answers: making, filling, freeing.
 *
 * Threads:   a request belongs to one thread at a time (herder.h).
 * Ownership: lc_request_free() frees what the maker put in and what the herder answered.
 * Tests:     spec/unit/herder_spec.lua
 */
#include "base/alloc.h"
#include "herder/internal.h"
#include <stdio.h>
#include <stdlib.h>

lc_request_t *lc_request_new(lc_request_op_t op, const char *connector)
{
        lc_request_t *req = lc_calloc(1, sizeof(*req));

        req->op = op;
        req->connector = lc_strdup(connector);
        req->task = -1;
        req->initial_state = LC_TARGET_NONE;
        req->forward = -1;
        return req;
}

static void info_clear(lc_connector_info_t *i)
{
        free(i->name);
        lc_props_free(i->config);
        for (int k = 0; i->tasks && k < i->ntasks; k++)
                lc_props_free(i->tasks[k]);
        free(i->tasks);
}

static void state_clear(lc_connector_state_t *s)
{
        free(s->name);
        lc_status_clear(&s->connector);
        for (size_t k = 0; k < s->ntasks; k++)
                lc_status_clear(&s->tasks[k]);
        free(s->tasks);
}

void lc_connector_info_free(lc_connector_info_t *i)
{
        if (!i)
                return;
        info_clear(i);
        free(i);
}

void lc_connector_state_free(lc_connector_state_t *s)
{
        if (!s)
                return;
        state_clear(s);
        free(s);
}

void lc_request_free(lc_request_t *req)
{
        size_t n;

        if (!req)
                return;
        n = req->ninfos ? req->ninfos : 1;
        if (req->op == LC_REQ_LIST)
                n = req->ninfos;
        for (size_t i = 0; req->info && i < n; i++)
                info_clear(&req->info[i]);
        for (size_t i = 0; req->state && i < n; i++)
                state_clear(&req->state[i]);
        free(req->info);
        free(req->state);
        free(req->connector);
        lc_props_free(req->config);
        for (int i = 0; req->tasks && i < req->ntasks; i++)
                lc_props_free(req->tasks[i]);
        free(req->tasks);
        free(req->level);
        free(req->signature);
        free(req->signature_algorithm);
        free(req->body);
        free(req->forward_url);
        free(req->error);
        lc_strv_free(&req->names);
        free(req->offsets_json);
        free(req->reload_json);
        lc_config_infos_free(req->infos);
        free(req);
}

void lc_request_answer(lc_request_t *req, int status)
{
        req->status = status;
        req->next = NULL;
        req->done(req);
}

void lc_request_fail(lc_request_t *req, int status, const char *fmt, ...)
{
        lc_buf_t b = LC_BUF_SURE;
        va_list ap;

        va_start(ap, fmt);
        lc_buf_vprintf(&b, fmt, ap);
        va_end(ap);
        free(req->error);
        req->error = lc_buf_take(&b, NULL);
        lc_request_answer(req, status);
}

void lc_request_fail_err(lc_request_t *req, int status, const lc_err_t *err)
{
        free(req->error);
        req->error = err && err->kind ? lc_strdup(err->msg) : NULL;
        lc_request_answer(req, status);
}

void lc_request_stale(lc_request_t *req)
{
        req->retry_after_s = 1;
        lc_request_fail(req, 409,
                        "Cannot complete request momentarily due to stale configuration (typically caused by "
                        "a concurrent config change)");
}

const char *lc_connector_type(const lc_plugins_t *any, const lc_props_t *config)
{
        const char *cls = config ? lc_props_get(config, "connector.class") : NULL, *type = "unknown";
        const lc_plugins_t *plugins = lc_plugins_current(any);
        const lc_plugin_t *p = NULL;

        if (cls && plugins)
                p = lc_plugins_find(plugins, 1u << LC_PLUGIN_SOURCE | 1u << LC_PLUGIN_SINK, cls, NULL);
        if (p)
                type = p->type == LC_PLUGIN_SOURCE ? "source" : "sink";
        lc_plugins_unref(plugins);
        return type;
}

void lc_connector_info_fill(lc_connector_info_t *info, const lc_plugins_t *plugins, const char *name,
                            const lc_props_t *config, const lc_config_connector_t *tasks_of,
                            bool task_configs)
{
        info->name = lc_strdup(name);
        info->config = lc_props_copy(config);
        info->type = lc_connector_type(plugins, config);
        info->ntasks = tasks_of ? lc_config_connector_task_count(tasks_of) : 0;
        if (!task_configs || info->ntasks <= 0)
                return;
        info->tasks = lc_calloc((size_t)info->ntasks, sizeof(*info->tasks));
        for (int i = 0; i < info->ntasks; i++)
                info->tasks[i] = lc_props_copy(tasks_of->tasks ? tasks_of->tasks[i] : NULL);
}
