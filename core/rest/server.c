/*
 * server.c - the REST server over libmicrohttpd (see rest.h): connections, bodies, suspension, deadlines.
 *
 * An exchange is one request on a connection:
 *
 *   READING  -> body arrives (bounded; what is too much is read and thrown away, so that the client gets
 *               its answer instead of a reset connection)
 *   PENDING  -> with the herder, then perhaps with another worker (forward.h); the connection is suspended
 *               and hangs in `pending`
 *   ANSWERED, LATE, STOPPED -> resumed; the handler writes the answer on libmicrohttpd's thread
 *   SENT     -> queued
 *
 * Threads:   libmicrohttpd's one thread runs every callback of it; the herder's (or any) thread runs
 *            herder_done(), the HTTP client's forward_done(); `timer` sleeps until the next deadline;
 *            the main thread starts and stops.
 * Locks:     `lock` guards pending, states and counts. libmicrohttpd's own locks are below it: resume and
 *            suspend are called with it held, and it is never taken while libmicrohttpd holds one.
 * Ownership: an exchange has two references, the connection's and (while asked) the herder's or the HTTP
 *            client's, so an answer after the deadline finds it and is dropped. Each holds one of lc_rest_t.
 * Tests:     spec/unit/rest_spec.lua (pure parts), spec/unit/rest_server_spec.lua,
 *            spec/golden/rest_raw_spec.lua (over a socket)
 */
#include "rest/rest.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "rest/call.h"
#include "rest/forward.h"
#include "rest/listener.h"
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
        MAX_BODY = 32 << 20,    /* of one request */
        MAX_BODIES = 128 << 20, /* of all requests that are in memory at a time */
        MAX_DISCARD = 1 << 30,  /* what is read of a body that is too large */
        IDLE_SECONDS = 90,      /* Jetty's idle timeout */
        MAX_CONNECTIONS = 4000,
        FORWARD_MS = 2000, /* the HTTP client's own timeout comes first, with a better text */
        STOP_MS = 3000     /* for answers that are on their way when the server stops */
};

typedef enum { READING, PENDING, ANSWERED, LATE, STOPPED, SENT } state_t;

typedef struct exchange exchange_t;
struct exchange {
        lc_rest_t *rest;
        struct MHD_Connection *mhd;
        char *uri, *method;
        bool started; /* headers were seen */
        state_t state;
        int refs; /* under rest->lock */
        lc_rest_call_t call;
        lc_buf_t body;
        size_t counted;            /* what rest->body_bytes has of it */
        lc_http_call_t *forwarded; /* the answer of another worker */
        size_t discarded;
        bool too_large, crowded;
        int refused; /* status of a malformed request, 0 none */
        const char *refusal;
        int64_t deadline_ms, start_ms;
        int status; /* for the request log */
        size_t length;
        exchange_t *prev, *next; /* pending */
};

struct lc_rest {
        pthread_mutex_t lock;
        pthread_cond_t changed; /* timer: deadlines or stop; lc_rest_stop: busy fell */
        int refs;
        struct MHD_Daemon *daemon;
        int listen_fd, port;
        pthread_t timer;
        bool timer_runs, stopping;
        exchange_t *pending;
        size_t busy; /* exchanges behind READING */
        size_t body_bytes;
        lc_rest_context_t ctx;
        lc_herder_t *herder;
        lc_http_t *http;
        lc_loggers_t *loggers;
        lc_filters_t *filters;
};

static void rest_unref(lc_rest_t *r)
{
        int left;

        pthread_mutex_lock(&r->lock);
        left = --r->refs;
        pthread_mutex_unlock(&r->lock);
        if (left)
                return;
        lc_loggers_free(r->loggers);
        lc_filters_free(r->filters);
        pthread_cond_destroy(&r->changed);
        pthread_mutex_destroy(&r->lock);
        free(r);
}

static lc_rest_context_t context(lc_rest_t *r)
{
        lc_rest_context_t ctx;

        pthread_mutex_lock(&r->lock);
        ctx = r->ctx;
        pthread_mutex_unlock(&r->lock);
        return ctx;
}

static void body_drop(exchange_t *x)
{
        lc_buf_free(&x->body);
        if (!x->counted)
                return;
        pthread_mutex_lock(&x->rest->lock);
        x->rest->body_bytes -= x->counted;
        pthread_mutex_unlock(&x->rest->lock);
        x->counted = 0;
}

static void exchange_free(exchange_t *x)
{
        lc_rest_t *r = x->rest;

        body_drop(x);
        lc_rest_call_free(&x->call);
        lc_http_call_free(x->forwarded);
        free(x->uri);
        free(x->method);
        free(x);
        rest_unref(r);
}

/* --- the list of suspended exchanges; all under rest->lock --- */

static void pending_add(exchange_t *x)
{
        x->prev = NULL;
        x->next = x->rest->pending;
        if (x->next)
                x->next->prev = x;
        x->rest->pending = x;
}

static void pending_remove(exchange_t *x)
{
        if (x->prev)
                x->prev->next = x->next;
        else
                x->rest->pending = x->next;
        if (x->next)
                x->next->prev = x->prev;
}

static void resume(exchange_t *x, state_t state)
{
        x->state = state;
        pending_remove(x);
        MHD_resume_connection(x->mhd);
}

static void *run_timer(void *arg)
{
        lc_rest_t *r = arg;

        pthread_setname_np(pthread_self(), "rest-timer");
        pthread_mutex_lock(&r->lock);
        while (!r->stopping) {
                int64_t now = lc_now_ms(), first = INT64_MAX;
                for (exchange_t *x = r->pending, *next; x; x = next) {
                        next = x->next;
                        if (x->deadline_ms <= now)
                                resume(x, LATE);
                        else if (x->deadline_ms < first)
                                first = x->deadline_ms;
                }
                if (first == INT64_MAX)
                        pthread_cond_wait(&r->changed, &r->lock);
                else
                        lc_cond_wait_until(&r->changed, &r->lock, first);
        }
        pthread_mutex_unlock(&r->lock);
        return NULL;
}

/* --- answers --- */

static enum MHD_Result respond(exchange_t *x)
{
        lc_rest_answer_t *out = &x->call.out;
        struct MHD_Response *response;
        enum MHD_Result rc;
        size_t len = 0;
        char *body;

        if (!lc_buf_ok(&out->body)) {
                lc_buf_free(&out->body);
                lc_rest_answer_error(out, 500, "Out of memory", true);
        }
        lc_buf_adds(&out->body, "");
        body = lc_buf_take(&out->body, &len);
        response = MHD_create_response_from_buffer(len, body ? body : (char *)"",
                                                   body ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
        if (!response) {
                free(body);
                return MHD_NO;
        }
        if (out->content_type)
                MHD_add_response_header(response, "Content-Type", out->content_type);
        for (size_t i = 0; i < out->headers.n; i++) {
                char *line = lc_strdup(out->headers.v[i]), *colon = strstr(line, ": ");
                if (colon) {
                        *colon = 0;
                        MHD_add_response_header(response, line, colon + 2);
                }
                free(line);
        }
        if (out->close)
                MHD_add_response_header(response, "Connection", "close");
        x->status = out->status;
        x->length = len;
        rc = MHD_queue_response(x->mhd, (unsigned)out->status, response);
        MHD_destroy_response(response);
        pthread_mutex_lock(&x->rest->lock);
        if (x->state == READING)
                x->rest->busy++;
        x->state = SENT;
        pthread_mutex_unlock(&x->rest->lock);
        return rc;
}

/* One of both: the herder's answer, or that of another worker. */
static void give_back(exchange_t *x, lc_request_t *req, lc_http_call_t *forwarded)
{
        lc_rest_t *r = x->rest;
        bool late = false, last;

        pthread_mutex_lock(&r->lock);
        if (x->state == PENDING) {
                x->call.req = req;
                x->forwarded = forwarded;
                resume(x, ANSWERED);
        } else {
                late = true;
        }
        last = --x->refs == 0;
        pthread_mutex_unlock(&r->lock);
        if (late) {
                lc_request_free(req);
                lc_http_call_free(forwarded);
        }
        if (last)
                exchange_free(x);
}

/* On the HTTP client's thread. */
static void forward_done(lc_http_call_t *answer)
{
        give_back(answer->arg, NULL, answer);
}

/* On the herder's thread, or on any that answers for it. What is another worker's goes there: the exchange
 * stays pending, and the client has the herder's reference. */
static void herder_done(lc_request_t *req)
{
        exchange_t *x = req->arg;
        lc_rest_t *r = x->rest;
        lc_http_call_t *call = NULL;

        if (!req->status && req->forward_url && r->http) {
                pthread_mutex_lock(&r->lock);
                if (x->state == PENDING) { /* else the client's headers are gone */
                        call = lc_rest_forward(&x->call, req, &x->body);
                        x->deadline_ms = lc_now_ms() + call->timeout_ms + FORWARD_MS;
                }
                pthread_mutex_unlock(&r->lock);
        }
        if (!call) {
                give_back(x, req, NULL);
                return;
        }
        lc_request_free(req);
        call->done = forward_done;
        call->arg = x;
        lc_http_submit(r->http, call);
}

/* Only what may have to be forwarded is needed after it was parsed. */
static bool keeps_body(const exchange_t *x)
{
        const lc_route_t *route = x->call.match.route;

        return x->rest->http && (route->flags & LC_ROUTE_BODY) && route->op != LC_REQ_VALIDATE &&
               route->op != LC_REQ_LOGGER && x->call.req->forward != 0;
}

static enum MHD_Result ask_herder(exchange_t *x)
{
        lc_rest_t *r = x->rest;
        lc_request_t *req = x->call.req;

        if (!keeps_body(x))
                body_drop(x);
        x->call.req = NULL;
        x->call.in.body = NULL;
        req->done = herder_done;
        req->arg = x;
        x->deadline_ms = req->deadline_ms;
        pthread_mutex_lock(&r->lock);
        if (r->stopping) {
                pthread_mutex_unlock(&r->lock);
                lc_request_free(req);
                lc_rest_error(&x->call, 500, "Worker is shutting down");
                return respond(x);
        }
        x->state = PENDING;
        x->refs++;
        r->busy++;
        pending_add(x);
        pthread_cond_broadcast(&r->changed);
        /* before the herder can answer: an answer resumes what is suspended */
        MHD_suspend_connection(x->mhd);
        pthread_mutex_unlock(&r->lock);
        lc_herder_submit(r->herder, req);
        return MHD_YES;
}

static enum MHD_Result answer_late(exchange_t *x)
{
        lc_rest_context_t ctx = context(x->rest);
        lc_buf_t stage = LC_BUF_SURE;

        lc_herder_stage(x->rest->herder, &stage);
        lc_rest_late(&ctx, &x->call, stage.p ? stage.p : "", lc_herder_ready(x->rest->herder));
        lc_log(LC_WARN, "REST", "%s %s got no answer in time. %s", x->method, x->uri, stage.p ? stage.p : "");
        lc_buf_free(&stage);
        return respond(x);
}

/* The body is there. */
static enum MHD_Result answer_request(exchange_t *x)
{
        lc_rest_context_t ctx = context(x->rest);
        char text[128];

        if (x->refused) {
                lc_rest_answer_page(&x->call.out, x->method, x->refused, x->refusal, x->uri, true);
                x->call.out.close = true;
                return respond(x);
        }
        if (x->too_large || x->crowded) {
                snprintf(text, sizeof(text),
                         x->too_large ? "The request body is larger than %d bytes"
                                      : "The request bodies being read are larger than %d bytes together, "
                                        "try again",
                         x->too_large ? (int)MAX_BODY : (int)MAX_BODIES);
                lc_rest_error(&x->call, x->too_large ? 413 : 503, text);
                return respond(x);
        }
        x->call.in.body = x->body.p ? x->body.p : "";
        x->call.in.body_len = x->body.len;
        if (lc_rest_begin(&ctx, &x->call))
                return ask_herder(x);
        return respond(x);
}

/* --- libmicrohttpd's callbacks --- */

/* The raw request target: libmicrohttpd's own split of it would lose what is not UTF-8 text. */
static void *on_uri(void *cls, const char *uri, struct MHD_Connection *mhd)
{
        lc_rest_t *r = cls;
        exchange_t *x = lc_calloc(1, sizeof(*x));

        x->rest = r;
        x->mhd = mhd;
        x->uri = lc_strdup(uri);
        x->method = lc_strdup("");
        x->refs = 1;
        x->start_ms = lc_now_ms();
        pthread_mutex_lock(&r->lock);
        r->refs++;
        pthread_mutex_unlock(&r->lock);
        return x;
}

/* Decoding is ours (http.c): the default turns %2F into / and cuts at %00. */
static size_t keep_escapes(void *cls, struct MHD_Connection *mhd, char *s)
{
        (void)cls;
        (void)mhd;
        return strlen(s);
}

static void refuse(exchange_t *x, int status, const char *why)
{
        if (!x->refused) {
                x->refused = status;
                x->refusal = why;
        }
}

typedef struct seen {
        exchange_t *x;
        int hosts;
        bool length, chunked;
} seen_t;

static enum MHD_Result on_header(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
        seen_t *seen = cls;
        lc_rest_request_t *in = &seen->x->call.in;

        (void)kind;
        if (!*name || strpbrk(name, " \t"))
                refuse(seen->x, 400, "Illegal character SPACE=' '");
        if (!strcasecmp(name, "Host")) {
                seen->hosts++;
                in->host = value;
        } else if (!strcasecmp(name, "Accept")) {
                in->accept = value;
        } else if (!strcasecmp(name, "Content-Type")) {
                in->content_type = value;
        } else if (!strcasecmp(name, "Origin")) {
                in->origin = value;
        } else if (!strcasecmp(name, "Access-Control-Request-Method")) {
                in->preflight = value;
        } else if (!strcasecmp(name, "Authorization")) {
                in->authorization = value;
        } else if (!strcasecmp(name, "X-Connect-Authorization")) {
                in->signature = value;
        } else if (!strcasecmp(name, "X-Connect-Request-Signature-Algorithm")) {
                in->signature_algorithm = value;
        } else if (!strcasecmp(name, "Content-Length")) {
                if (seen->length) /* whichever is believed: a proxy in front may believe the other */
                        refuse(seen->x, 400, "Multiple Content-Lengths");
                seen->length = true;
                if (!value || strspn(value, "0123456789") != strlen(value))
                        refuse(seen->x, 400, "Invalid Content-Length Value");
                else if (strtoull(value, NULL, 10) > MAX_BODY)
                        seen->x->too_large = true;
        } else if (!strcasecmp(name, "Transfer-Encoding")) {
                seen->chunked = true;
        }
        return MHD_YES;
}

static void on_headers(exchange_t *x, const char *method, const char *version)
{
        seen_t seen = {x, 0, false, false};

        free(x->method);
        x->method = lc_strdup(method);
        x->call.in.method = x->method;
        x->call.in.uri = x->uri;
        MHD_get_connection_values(x->mhd, MHD_HEADER_KIND, on_header, &seen);
        if (seen.hosts > 1)
                refuse(x, 400, "Duplicate Host Header");
        if (seen.hosts == 0 && !strcmp(version, "HTTP/1.1"))
                refuse(x, 400, "No Host");
        if (seen.length && seen.chunked)
                refuse(x, 400, "Transfer-Encoding and Content-Length");
}

static enum MHD_Result on_body(exchange_t *x, const char *data, size_t n)
{
        lc_rest_t *r = x->rest;
        if (x->body.len + n > MAX_BODY)
                x->too_large = true;
        if (!x->too_large && !x->crowded && !x->refused) {
                lc_buf_add(&x->body, data, n);
                pthread_mutex_lock(&r->lock);
                r->body_bytes += x->body.cap - x->counted;
                x->counted = x->body.cap;
                if (r->body_bytes > MAX_BODIES || x->body.oom)
                        x->crowded = true;
                pthread_mutex_unlock(&r->lock);
        }
        if (x->too_large || x->crowded || x->refused) {
                body_drop(x);
                x->discarded += n;
                if (x->discarded > MAX_DISCARD)
                        return MHD_NO;
        }
        return MHD_YES;
}

static enum MHD_Result on_access(void *cls, struct MHD_Connection *mhd, const char *url, const char *method,
                                 const char *version, const char *data, size_t *size, void **con_cls)
{
        exchange_t *x = *con_cls;
        lc_rest_context_t ctx;
        state_t state;

        (void)cls;
        (void)mhd;
        (void)url;
        if (!x)
                return MHD_NO;
        if (!x->started) {
                x->started = true;
                on_headers(x, method, version);
                return MHD_YES;
        }
        if (*size) {
                size_t n = *size;
                *size = 0;
                return on_body(x, data, n);
        }
        pthread_mutex_lock(&x->rest->lock);
        state = x->state;
        pthread_mutex_unlock(&x->rest->lock);
        switch (state) {
        case READING:
                return answer_request(x);
        case ANSWERED:
                ctx = context(x->rest);
                if (x->forwarded)
                        lc_rest_forwarded(&ctx, &x->call, x->forwarded);
                else
                        lc_rest_finish(&ctx, &x->call);
                return respond(x);
        case LATE:
                return answer_late(x);
        case STOPPED:
                lc_rest_error(&x->call, 500, "Worker is shutting down");
                x->call.out.close = true;
                return respond(x);
        default:
                return MHD_YES; /* suspended, or answered */
        }
}

/* Extended NCSA with the time taken, as Connect's request log. */
static void log_request(const exchange_t *x)
{
        const union MHD_ConnectionInfo *info;
        char host[NI_MAXHOST] = "-";
        const char *agent;

        if (!x->status)
                return;
        info = MHD_get_connection_info(x->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        if (info && info->client_addr)
                getnameinfo(info->client_addr,
                            info->client_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                                     : sizeof(struct sockaddr_in),
                            host, sizeof(host), NULL, 0, NI_NUMERICHOST);
        agent = MHD_lookup_connection_value(x->mhd, MHD_HEADER_KIND, "User-Agent");
        lc_log(LC_INFO, "REST", "%s \"%s %s\" %d %zu \"%s\" %lld", host, x->method, x->uri, x->status,
               x->length, agent ? agent : "-", (long long)(lc_now_ms() - x->start_ms));
}

static void on_completed(void *cls, struct MHD_Connection *mhd, void **con_cls,
                         enum MHD_RequestTerminationCode why)
{
        exchange_t *x = *con_cls;
        lc_rest_t *r;
        bool last;

        (void)cls;
        (void)mhd;
        (void)why;
        if (!x)
                return;
        *con_cls = NULL;
        r = x->rest;
        if (lc_log_most() >= LC_INFO)
                log_request(x);
        pthread_mutex_lock(&r->lock);
        if (x->state == PENDING)
                pending_remove(x);
        if (x->state != READING)
                r->busy--;
        x->state = SENT;
        last = --x->refs == 0;
        pthread_cond_broadcast(&r->changed);
        pthread_mutex_unlock(&r->lock);
        if (last)
                exchange_free(x);
}

__attribute__((format(printf, 2, 0))) static void on_log(void *cls, const char *fmt, va_list ap)
{
        lc_buf_t b = LC_BUF_SURE;

        (void)cls;
        lc_buf_vprintf(&b, fmt, ap);
        lc_log(LC_DEBUG, "REST", "%s", b.p ? b.p : "");
        lc_buf_free(&b);
}

/* --- start and stop --- */

static void read_settings(lc_rest_t *r, const lc_worker_config_t *wc)
{
        lc_rest_context_t *ctx = &r->ctx;

        ctx->distributed = lc_worker_config_mode(wc) == LC_DISTRIBUTED;
        ctx->topic_tracking = lc_worker_config_bool(wc, "topic.tracking.enable");
        ctx->topic_reset = lc_worker_config_bool(wc, "topic.tracking.allow.reset");
        ctx->admin = lc_worker_config_str(wc, "admin.listeners") == NULL;
        ctx->loggers = r->loggers;
        ctx->filters = r->filters;
}

static const char *current_level(void)
{
        static const char *const names[] = {"OFF", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"};

        return names[lc_log_most()];
}

lc_rest_t *lc_rest_new(const lc_worker_config_t *wc, lc_err_t *err)
{
        lc_rest_t *r = lc_calloc(1, sizeof(*r));
        int rc = -1;

        r->refs = 1;
        r->listen_fd = -1;
        pthread_mutex_init(&r->lock, NULL);
        lc_cond_init(&r->changed);
        r->filters = lc_filters_new(lc_worker_config_str(wc, "access.control.allow.origin"),
                                    lc_worker_config_str(wc, "access.control.allow.methods"),
                                    lc_worker_config_str(wc, "response.http.headers.config"), err);
        if (!r->filters)
                goto done;
        r->loggers = lc_loggers_new(current_level());
        read_settings(r, wc);
        if (lc_rest_listen(wc, &r->listen_fd, &r->port, err))
                goto done;
        if (pthread_create(&r->timer, NULL, run_timer, r)) {
                lc_err_set(err, LC_FATAL, errno, "Unable to start a thread for the REST server");
                goto done;
        }
        r->timer_runs = true;
        r->daemon = MHD_start_daemon(
                MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG, 0,
                NULL, NULL, on_access, r, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET,
                r->listen_fd, MHD_OPTION_URI_LOG_CALLBACK, on_uri, r, MHD_OPTION_UNESCAPE_CALLBACK,
                keep_escapes, NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed, r,
                MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_CONNECTION_LIMIT,
                (unsigned)MAX_CONNECTIONS, MHD_OPTION_END);
        if (!r->daemon) {
                lc_err_set(err, LC_FATAL, errno, "Unable to initialize REST server");
                goto done;
        }
        lc_log(LC_INFO, "REST", "REST server listening on port %d", r->port);
        rc = 0;
done:
        if (rc) {
                lc_rest_stop(r);
                lc_rest_free(r);
                return NULL;
        }
        return r;
}

int lc_rest_port(const lc_rest_t *r)
{
        return r->port;
}

void lc_rest_serve(lc_rest_t *r, lc_herder_t *h, lc_http_t *http)
{
        pthread_mutex_lock(&r->lock);
        r->herder = h;
        r->http = http;
        r->ctx.plugins = lc_herder_plugins(h);
        r->ctx.cluster_id = lc_herder_cluster_id(h);
        r->ctx.serving = true;
        pthread_mutex_unlock(&r->lock);
}

void lc_rest_hold_health(lc_rest_t *r, bool hold)
{
        pthread_mutex_lock(&r->lock);
        r->ctx.starting = hold;
        pthread_mutex_unlock(&r->lock);
}

void lc_rest_logger_level(lc_rest_t *r, const char *logger, const char *level)
{
        lc_buf_t changed = LC_BUF_SURE;

        if (lc_loggers_set(r->loggers, logger, level, &changed))
                lc_log(LC_WARN, "REST", "Ignoring the level '%s' of logger %s: there is no such level", level,
                       logger);
        else
                lc_log(LC_INFO, "REST", "Level of logger %s set to %s for the whole cluster, changed: %s",
                       logger, level, changed.p);
        lc_buf_free(&changed);
}

void lc_rest_stop(lc_rest_t *r)
{
        int64_t until = lc_now_ms() + STOP_MS;

        if (!r)
                return;
        pthread_mutex_lock(&r->lock);
        r->stopping = true;
        while (r->pending)
                resume(r->pending, STOPPED);
        pthread_cond_broadcast(&r->changed);
        pthread_mutex_unlock(&r->lock);
        if (r->timer_runs)
                pthread_join(r->timer, NULL);
        if (r->daemon) {
                MHD_quiesce_daemon(r->daemon); /* no new connections; the listening socket is ours again */
                pthread_mutex_lock(&r->lock);
                while (r->busy && lc_cond_wait_until(&r->changed, &r->lock, until))
                        ;
                pthread_mutex_unlock(&r->lock);
                MHD_stop_daemon(r->daemon);
        }
        if (r->listen_fd >= 0)
                close(r->listen_fd);
        r->listen_fd = -1;
        r->daemon = NULL;
        r->timer_runs = false;
}

void lc_rest_free(lc_rest_t *r)
{
        if (r)
                rest_unref(r);
}
