/*
 * validation.c - configs on their way in: the rules of names, the patch, validation on the worker's pool.
 * User code (a plugin's checks) runs there, never on the herder's thread.
 *
 * Threads:   T, and a pool thread for the job itself, which has its own copy of the config.
 * Source:    rest.md 2.2, connector-config 2.   Tests: spec/unit/herder_spec.lua, golden/rest/02 and 04
 */
#include "base/alloc.h"
#include "config/connector_config.h"
#include "herder/internal.h"
#include <stdlib.h>
#include <string.h>

#define NULL_CONFIG "Cannot invoke \"java.util.Map.get(Object)\" because \"connectorConfig\" is null"

int lc_check_name(lc_request_t *req)
{
        const char *included;

        if (!req->connector)
                req->connector = lc_strdup("");
        if (req->op == LC_REQ_CREATE) {
                char *name = lc_strtrim(req->connector);
                free(req->connector);
                req->connector = name;
        }
        if (!req->config) {
                lc_request_fail(req, 500, NULL_CONFIG);
                return -1;
        }
        included = lc_props_get(req->config, "name");
        if (included && strcmp(included, req->connector) != 0) {
                lc_request_fail(
                        req, 400,
                        "Connector name configuration (%s) doesn't match connector name in the URL (%s)",
                        included, req->connector);
                return -1;
        }
        if (!included)
                lc_props_set(req->config, "name", req->connector);
        return 0;
}

void lc_patch_config(lc_request_t *req, const lc_props_t *old)
{
        lc_props_t *merged = lc_props_copy(old);

        for (size_t i = 0; i < lc_props_count(req->config); i++) {
                const char *key = lc_props_key(req->config, i), *value = lc_props_value(req->config, i);
                if (value)
                        lc_props_set(merged, key, value);
                else
                        lc_props_del(merged, key);
        }
        lc_props_free(req->config);
        req->config = merged;
}

/* PUT .../validate: the answer goes straight back. What validation throws is a 500 with its class there. */
static void answer_validate(lc_request_t *req, lc_hev_t *ev)
{
        if (ev->infos) {
                req->infos = ev->infos;
                ev->infos = NULL;
                lc_request_answer(req, 200);
        } else {
                lc_request_fail(req, 500, "%s: %s", ev->err && ev->err->cls ? ev->err->cls : LC_CLS_CONNECT,
                                ev->err ? ev->err->msg : "validation failed");
        }
}

static void validate(void *arg)
{
        lc_hev_t *ev = arg;
        lc_herder_t *h = ev->h;
        lc_err_t err;

        lc_err_clear(&err);
        if (lc_hev_wanted(ev))
                ev->infos = lc_connector_validate(h->deps.config, h->deps.plugins, ev->config, &err);
        if (!ev->infos) {
                if (!err.kind)
                        lc_err_set(&err, LC_FATAL, 500, "Validation gave no result");
                lc_hev_set_err(ev, &err);
        }
        if (!ev->validate_only) {
                lc_hev_back_push(ev);
        } else if (lc_hev_back(ev)) {
                answer_validate(ev->req, ev);
                lc_hev_free(ev);
                lc_herder_unref(h);
        }
}

void lc_validation_begin(lc_herder_t *h, lc_request_t *req)
{
        lc_hev_t *ev;

        if (!req->config) {
                lc_request_fail(req, 500, NULL_CONFIG);
                return;
        }
        ev = lc_hev_new(h, LC_HEV_VALIDATED, req->connector);
        ev->req = req;
        ev->config = lc_props_copy(req->config);
        ev->validate_only = req->op == LC_REQ_VALIDATE;
        lc_hev_out(ev);
        lc_worker_run(h->worker, validate, ev);
}

int lc_check_validated(lc_hev_t *ev)
{
        lc_request_t *req = ev->req;
        char *text;

        if (ev->err) {
                ev->req = NULL;
                lc_request_fail_err(req, ev->err->code >= 400 && ev->err->code < 600 ? ev->err->code : 500,
                                    ev->err);
                return -1;
        }
        text = lc_config_infos_rejection(ev->infos);
        if (!text)
                return 0;
        ev->req = NULL;
        lc_request_fail(req, 400, "%s", text);
        free(text);
        return -1;
}
