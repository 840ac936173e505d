/* forward.c - see forward.h. */
#include "rest/forward.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "convert/json.h"
#include "rest/json_out.h"
#include <stdlib.h>
#include <string.h>

/* --- the way there --- */

/* The path stays as the client wrote it: names with escapes must arrive as they are. */
static char *make_url(const lc_rest_call_t *call, const lc_request_t *req)
{
        lc_buf_t url = LC_BUF_SURE, path = LC_BUF_SURE;
        size_t n = strlen(req->forward_url);

        lc_http_path(call->in.uri, &path);
        lc_buf_add(&url, req->forward_url, n > 0 && req->forward_url[n - 1] == '/' ? n - 1 : n);
        lc_buf_printf(&url, "%s%s?forward=%s", *path.p == '/' ? "" : "/", path.p,
                      req->forward < 0 ? "true" : "false");
        if (req->op == LC_REQ_RESTART)
                lc_buf_printf(&url, "&includeTasks=%s&onlyFailed=%s", req->include_tasks ? "true" : "false",
                              req->only_failed ? "true" : "false");
        lc_buf_free(&path);
        return lc_buf_take(&url, NULL);
}

lc_http_call_t *lc_rest_forward(const lc_rest_call_t *call, const lc_request_t *req, lc_buf_t *body)
{
        char *url = make_url(call, req);
        lc_http_call_t *out = lc_http_call_new(call->in.method, url);
        int64_t left = req->deadline_ms - lc_now_ms();

        free(url);
        lc_strv_add(&out->headers, "Accept: application/json");
        if (call->in.authorization) {
                char *line = lc_asprintf("Authorization: %s", call->in.authorization);
                lc_strv_add(&out->headers, line);
                free(line);
        }
        if (body->len > 0 && (call->match.route->flags & LC_ROUTE_BODY)) {
                lc_strv_add(&out->headers, "Content-Type: application/json");
                out->has_body = true;
                out->body = *body;
                memset(body, 0, sizeof(*body));
        }
        out->timeout_ms = left < 1 ? 1 : left > LC_REST_TIMEOUT_MS ? LC_REST_TIMEOUT_MS : (int)left;
        lc_log(LC_DEBUG, "REST", "Forwarding request %s %s", out->method, out->url);
        return out;
}

/* --- the way back --- */

static void failed(lc_rest_call_t *call, const lc_http_call_t *answer, const char *what, const char *why)
{
        char *text = lc_asprintf("%s: %s", what, why);

        lc_log(LC_ERROR, "REST", "%s forwarding REST request to %s : %s",
               !strncmp(what, "IO", 2) ? "IO error" : "Error", answer->url, why);
        lc_rest_error(call, 500, text);
        free(text);
}

static void unexpected(lc_rest_call_t *call, const lc_http_call_t *answer)
{
        char *text =
                lc_asprintf("Unexpected status code when handling forwarded request: %d", answer->status);

        lc_rest_error(call, 500, text);
        free(text);
}

/* {"error_code":N,"message":"..."}: passed on with its own code, which need not be the status. */
static void pass_error(lc_rest_call_t *call, const lc_http_call_t *answer)
{
        const lc_json_t *code = NULL, *message = NULL;
        lc_json_t *doc = NULL;

        if (!lc_json_parse(answer->answer.p, answer->answer.len, 0, &doc, NULL) && doc &&
            doc->type == LC_J_OBJECT) {
                code = lc_json_get(doc, "error_code");
                message = lc_json_get(doc, "message");
        }
        if (code && code->type == LC_J_NUMBER && code->integral && message &&
            (message->type == LC_J_STRING || message->type == LC_J_NULL)) {
                lc_buf_t *b = &call->out.body;
                bool exact;
                lc_rest_success(call, answer->status);
                lc_rest_answer_type(&call->out, "application/json");
                lc_buf_printf(b, "{\"error_code\":%lld,\"message\":", (long long)lc_json_int64(code, &exact));
                if (message->type == LC_J_STRING)
                        lc_json_write_string(b, message->s, message->len);
                else
                        lc_buf_adds(b, "null");
                lc_buf_addc(b, '}');
                lc_rest_retry_after(call, answer->retry_after_s);
        } else {
                unexpected(call, answer);
        }
        lc_json_free(doc);
}

/* 201 says where the connector is: here, for this client. */
static int locate(lc_rest_call_t *call, const lc_json_t *info)
{
        const lc_json_t *name = info->type == LC_J_OBJECT ? lc_json_get(info, "name") : NULL;
        char *text;
        int rc;

        if (!name || name->type != LC_J_STRING)
                return lc_rest_location(call, call->match.params[0] ? call->match.params[0] : "");
        text = lc_strndup(name->s, name->len);
        rc = lc_rest_location(call, text);
        free(text);
        return rc;
}

static void pass_success(lc_rest_call_t *call, const lc_http_call_t *answer)
{
        const lc_route_t *route = call->match.route;
        const lc_buf_t *body = &answer->answer;
        lc_json_t *doc = NULL;
        lc_err_t err;

        lc_err_clear(&err);
        if (!route->render || answer->status == 204 || (answer->status == 202 && !body->len)) {
                lc_rest_success(call, answer->status);
                lc_rest_answer_type(&call->out, NULL);
                return;
        }
        if (lc_json_parse(body->p, body->len, 0, &doc, &err) || !doc) {
                failed(call, answer, "IO Error trying to forward REST request",
                       err.kind ? err.msg : "No content to map due to end-of-input");
        } else if (answer->status != 201 || !locate(call, doc)) {
                lc_rest_success(call, answer->status);
                lc_rest_answer_type(&call->out, call->type ? call->type : "application/json");
                lc_buf_add(&call->out.body, body->p, body->len);
        }
        lc_json_free(doc);
}

void lc_rest_forwarded(const lc_rest_context_t *ctx, lc_rest_call_t *call, const lc_http_call_t *answer)
{
        if (answer->err.kind == LC_FATAL)
                failed(call, answer, "Error trying to forward REST request", answer->err.msg);
        else if (answer->err.kind)
                failed(call, answer, "IO Error trying to forward REST request", answer->err.msg);
        else if (answer->status >= 400)
                pass_error(call, answer);
        else if (answer->status >= 200 && answer->status < 300)
                pass_success(call, answer);
        else
                unexpected(call, answer);
        lc_filters_apply(ctx->filters, &call->in, &call->out);
}
