/* call.c - see call.h: refusals, the answers of the herder, the late ones. */
#include "rest/call.h"
#include "base/alloc.h"
#include "rest/json_out.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_URI = 8000 };

int lc_rest_error(lc_rest_call_t *call, int status, const char *message)
{
        lc_rest_answer_error(&call->out, status, message, true);
        return 0;
}

void lc_rest_success(lc_rest_call_t *call, int status)
{
        call->out.status = status;
        if (status != 204 && status != 202)
                lc_rest_answer_type(&call->out, call->type ? call->type : "application/json");
}

void lc_rest_health(lc_rest_call_t *call, int status, const char *stage)
{
        const char *word = "unhealthy",
                   *message = "Worker was unable to handle this request and may be unable to "
                              "handle other requests.";
        lc_buf_t *b = &call->out.body;
        char *text;

        if (status == 200) {
                word = "healthy";
                message = "Worker has completed startup and is ready to handle requests.";
        } else if (status == 503) {
                word = "starting";
                message = "Worker is still starting up.";
        }
        lc_rest_success(call, status);
        lc_buf_clear(b);
        lc_buf_printf(b, "{\"status\":\"%s\",\"message\":", word);
        text = lc_asprintf("%s%s%s", message, *stage ? " " : "", stage);
        lc_out_string(b, text);
        free(text);
        lc_buf_addc(b, '}');
}

int lc_rest_location(lc_rest_call_t *call, const char *connector)
{
        lc_buf_t url = LC_BUF_SURE, variable = LC_BUF_SURE;
        int rc;

        if (call->in.host)
                lc_buf_printf(&url, "http://%s", call->in.host);
        lc_buf_adds(&url, "/connectors/");
        rc = lc_http_encode_path(connector, &url, &variable);
        if (rc) {
                char *text =
                        lc_asprintf("The template variable '%s' has no value", variable.p ? variable.p : "");
                lc_rest_error(call, 500, text);
                free(text);
        } else {
                lc_rest_answer_header(&call->out, "Location", url.p);
        }
        lc_buf_free(&url);
        lc_buf_free(&variable);
        return rc;
}

void lc_rest_retry_after(lc_rest_call_t *call, int seconds)
{
        char text[16];

        if (seconds <= 0)
                return;
        snprintf(text, sizeof(text), "%d", seconds);
        lc_rest_answer_header(&call->out, "Retry-After", text);
}

/* Does the herder's answer hold what the renderer needs? */
static bool complete(const lc_rest_call_t *call)
{
        const lc_request_t *req = call->req;

        switch (req->op) {
        case LC_REQ_INFO:
        case LC_REQ_CREATE:
        case LC_REQ_PUT_CONFIG:
        case LC_REQ_PATCH_CONFIG:
        case LC_REQ_TASKS:
                return req->info != NULL;
        case LC_REQ_STATUS:
                return req->state != NULL;
        case LC_REQ_TASK_STATUS:
                return req->state && req->state->ntasks > 0;
        case LC_REQ_OFFSETS:
                return req->offsets_json != NULL;
        case LC_REQ_RELOAD:
                return req->reload_json != NULL;
        case LC_REQ_VALIDATE:
                return req->infos != NULL;
        default:
                return true;
        }
}

void lc_rest_finish(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        const lc_route_t *route = call->match.route;

        if (call->req->status == 0 && call->req->forward_url) {
                lc_rest_error(call, 500, "Failed to start RestClient: this worker has none");
        } else if (call->req->status >= 400) {
                if (call->req->op == LC_REQ_HEALTH)
                        lc_rest_health(call, call->req->status == 503 ? 503 : 500,
                                       call->req->error ? call->req->error : "");
                else
                        lc_rest_error(call, call->req->status, call->req->error);
                lc_rest_retry_after(call, call->req->retry_after_s);
        } else if (!complete(call)) {
                lc_rest_error(call, 500, "The worker gave no answer to this request");
        } else {
                lc_rest_success(call, route->status);
                if (route->render)
                        route->render(ctx, call);
        }
        lc_filters_apply(ctx->filters, &call->in, &call->out);
}

void lc_rest_late(const lc_rest_context_t *ctx, lc_rest_call_t *call, const char *stage, bool ready)
{
        lc_buf_t text = LC_BUF_SURE;

        if (call->match.route->op == LC_REQ_HEALTH) {
                lc_rest_health(call, ready ? 500 : 503, stage);
        } else {
                lc_buf_adds(&text, "Request timed out");
                if (*stage)
                        lc_buf_printf(&text, ". %s", stage);
                if (call->match.route->op == LC_REQ_VALIDATE && text.p[text.len - 1] == '.')
                        text.p[--text.len] = 0;
                lc_rest_error(call, 500, text.p);
        }
        lc_buf_free(&text);
        lc_filters_apply(ctx->filters, &call->in, &call->out);
}

/* --- the way in --- */

/* Jetty's own refusals, before any resource is asked. true: answered. */
static bool refused_by_server(const lc_rest_context_t *ctx, lc_rest_call_t *call, const char *path)
{
        const lc_rest_request_t *in = &call->in;
        bool bad_request, relative = *in->uri == '/';
        char *url = lc_asprintf("http://%s%s", relative && in->host ? in->host : "", in->uri);
        const char *title;

        if (strlen(in->uri) > MAX_URI) {
                lc_rest_answer_page(&call->out, in->method, 414, lc_http_reason(414), "/badMessage", true);
                call->out.close = true;
        } else if (!strcmp(in->uri, "*")) {
                lc_rest_answer_page(&call->out, in->method, 404, lc_http_reason(404), "*", false);
        } else if ((title = lc_http_path_refused(path, &bad_request)) != NULL) {
                lc_rest_answer_page(&call->out, in->method, 400, title, bad_request ? url : "/badURI",
                                    bad_request);
                call->out.close = !bad_request;
        } else if (!ctx->serving) {
                lc_rest_answer_page(&call->out, in->method, 404, lc_http_reason(404), url, false);
        } else {
                free(url);
                return false;
        }
        free(url);
        return true;
}

static void options(lc_rest_call_t *call)
{
        const char *accept = call->in.accept;

        call->out.status = 200;
        lc_rest_answer_header(&call->out, "Allow", call->match.allow.p);
        if (lc_http_accepts_text(accept)) {
                lc_rest_answer_type(&call->out, "text/plain");
                lc_buf_add(&call->out.body, call->match.allow.p, call->match.allow.len);
        } else {
                char *first = lc_strndup(accept, strcspn(accept, ",; \t"));
                lc_rest_answer_type(&call->out, first);
                free(first);
        }
}

/* The order of Jersey: path, method, type of the body, type of the answer. true: answered. */
static bool refused_by_routing(lc_rest_call_t *call)
{
        const lc_match_t *m = &call->match;
        const lc_route_t *route = m->route;
        lc_media_t media = lc_http_media(call->in.content_type);
        char *message = NULL, *url;
        int status = 0;
        bool typed = false;

        if (m->status) {
                status = m->status;
                typed = m->typed;
        } else if (m->options) {
                options(call);
                return true;
        } else if (!(route->flags & LC_ROUTE_ANY_TYPE) && media == LC_MEDIA_BAD) {
                url = lc_asprintf("http://%s%s", call->in.host ? call->in.host : "", call->in.uri);
                lc_rest_answer_page(&call->out, call->in.method, 400, lc_http_reason(400), url, true);
                free(url);
                return true;
        } else if (!(route->flags & LC_ROUTE_ANY_TYPE) && media == LC_MEDIA_OTHER) {
                status = 415;
        } else if (!lc_http_accepts_json(call->in.accept, &call->type)) {
                status = 406;
        } else if ((route->flags & LC_ROUTE_BODY) && media == LC_MEDIA_NONE && call->in.body_len > 0) {
                status = 415; /* found out by the reader of the body, so the error has a type */
                typed = true;
        }
        if (!status)
                return false;
        message = lc_asprintf("HTTP %d %s", status, lc_http_reason(status));
        lc_rest_answer_error(&call->out, status, message, typed);
        free(message);
        if (status == 405)
                lc_rest_answer_header(&call->out, "Allow", m->allow.p);
        return true;
}

int lc_rest_begin(const lc_rest_context_t *ctx, lc_rest_call_t *call)
{
        lc_buf_t path = LC_BUF_SURE;
        int rc = 0;

        lc_http_path(call->in.uri, &path);
        if (refused_by_server(ctx, call, path.p)) {
                lc_buf_free(&path);
                return 0;
        }
        lc_route_match(call->in.method, path.p, ctx->admin, &call->match);
        lc_buf_free(&path);
        if (!refused_by_routing(call))
                rc = call->match.route->begin(ctx, call);
        if (rc == 0)
                lc_filters_apply(ctx->filters, &call->in, &call->out);
        return rc;
}

void lc_rest_call_free(lc_rest_call_t *call)
{
        lc_match_free(&call->match);
        free(call->type);
        if (call->req)
                lc_request_free(call->req);
        lc_rest_answer_free(&call->out);
        call->type = NULL;
        call->req = NULL;
}
