/*
 * http.c - see http.h: one thread around curl's multi interface.
 *
 * A call is queued by its maker, becomes a transfer (a curl handle) on the client's thread and is given back
 * there through done(). curl keeps idle connections by host and port and takes them again.
 *
 * Threads:   `run` owns multi and the transfers; submit, close and stop only queue, set flags and wake it.
 * Locks:     `lock` guards the queue of new calls and the two flags; never held while calling out.
 * Ownership: a transfer borrows its call's url, headers and body until it ends.
 * Tests:     spec/unit/http_spec.lua
 */
#include "http/http.h"
#include "base/alloc.h"
#include "base/log.h"
#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

enum {
        DEFAULT_TIMEOUT_MS = 90000,
        DEFAULT_MAX_ANSWER = 64 << 20,
        POLL_MS = 60000,
        IDLE_S = 25, /* Jetty closes a connection after 30 s without a request */
        IDLE_CONNECTIONS = 64
};

typedef struct transfer transfer_t;
struct transfer {
        lc_http_call_t *call;
        CURL *easy;
        struct curl_slist *headers;
        lc_buf_t server; /* "host:port", for messages */
        size_t max_answer;
        bool too_large;
        char error[CURL_ERROR_SIZE];
        transfer_t *prev, *next;
};

struct lc_http {
        CURLM *multi;
        char *user_agent;
        pthread_t thread;
        pthread_mutex_t lock;
        lc_http_call_t *first, **last; /* new calls, under lock */
        bool closed, stopping;         /* under lock */
        transfer_t *out;               /* the thread's */
};

lc_http_call_t *lc_http_call_new(const char *method, const char *url)
{
        lc_http_call_t *call = lc_calloc(1, sizeof(*call));

        call->method = lc_strdup(method);
        call->url = lc_strdup(url);
        return call;
}

void lc_http_call_free(lc_http_call_t *call)
{
        if (!call)
                return;
        free(call->method);
        free(call->url);
        lc_strv_free(&call->headers);
        lc_buf_free(&call->body);
        free(call->content_type);
        lc_buf_free(&call->answer);
        free(call);
}

static void finish(lc_http_call_t *call)
{
        call->next = NULL;
        call->done(call);
}

static void cancel(lc_http_call_t *call)
{
        lc_err_set(&call->err, LC_RETRIABLE, ECANCELED, "The HTTP client is stopping");
        finish(call);
}

/* --- a transfer --- */

static void transfer_free(transfer_t *t)
{
        if (t->easy)
                curl_easy_cleanup(t->easy);
        curl_slist_free_all(t->headers);
        lc_buf_free(&t->server);
        free(t);
}

static size_t on_answer(char *data, size_t one, size_t n, void *arg)
{
        transfer_t *t = arg;
        lc_buf_t *b = &t->call->answer;

        if (n > t->max_answer - b->len) {
                t->too_large = true;
                return 0; /* ends the transfer */
        }
        lc_buf_add(b, data, n);
        return lc_buf_ok(b) ? one * n : 0;
}

/* Checked here: curl guesses a scheme where there is none, and a message must not show a password. */
static int check_url(const char *url, lc_buf_t *server, lc_err_t *err)
{
        CURLU *u = curl_url();
        char *scheme = NULL, *host = NULL, *port = NULL;
        CURLUcode rc = CURLUE_OUT_OF_MEMORY;
        int fine = -1;

        if (u)
                rc = curl_url_set(u, CURLUPART_URL, url, CURLU_PATH_AS_IS | CURLU_NON_SUPPORT_SCHEME);
        if (!rc)
                rc = curl_url_get(u, CURLUPART_SCHEME, &scheme, 0);
        if (!rc && strcasecmp(scheme, "http") != 0 && strcasecmp(scheme, "https") != 0)
                rc = CURLUE_UNSUPPORTED_SCHEME;
        if (!rc)
                rc = curl_url_get(u, CURLUPART_HOST, &host, 0);
        if (!rc)
                rc = curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
        if (rc) {
                const char *why = rc == CURLUE_UNSUPPORTED_SCHEME ? "its scheme is neither http nor https"
                                  : !strstr(url, "://")           ? "it has no scheme"
                                  : rc == CURLUE_NO_HOST          ? "it has no host"
                                  : rc == CURLUE_BAD_PORT_NUMBER  ? "its port is none"
                                  : rc == CURLUE_OUT_OF_MEMORY    ? "out of memory"
                                                                  : "it is malformed";
                lc_err_set(err, LC_FATAL, EINVAL, "Not a URL for a request: %s", why);
        } else {
                lc_buf_printf(server, "%s:%s", host, port);
                fine = 0;
        }
        curl_free(scheme);
        curl_free(host);
        curl_free(port);
        curl_url_cleanup(u);
        return fine;
}

static bool is_token(const char *s, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (s[i] <= ' ' || s[i] == 127 || strchr("()<>@,;:\\\"/[]?={}", s[i]))
                        return false;
        return n > 0;
}

static void add_header(transfer_t *t, const char *line)
{
        struct curl_slist *longer = curl_slist_append(t->headers, line);

        lc_assert(longer != NULL);
        t->headers = longer;
}

/* A line break in a value would begin another header. */
static int set_headers(transfer_t *t, lc_err_t *err)
{
        const lc_strv_t *headers = &t->call->headers;
        bool typed = false;

        for (size_t i = 0; i < headers->n; i++) {
                const char *line = headers->v[i], *value;
                size_t n = strcspn(line, ":");
                if (!is_token(line, n) || !line[n] || strpbrk(line, "\r\n"))
                        return lc_err_set(err, LC_FATAL, EINVAL, "Not a header of a request: %.*s",
                                          (int)strcspn(line, ":\r\n"), line);
                value = line + n + 1;
                typed |= n == strlen("Content-Type") && !strncasecmp(line, "Content-Type", n);
                if (value[strspn(value, " \t")]) {
                        add_header(t, line);
                } else { /* curl's word for a header without a value */
                        char *bare = lc_asprintf("%.*s;", (int)n, line);
                        add_header(t, bare);
                        free(bare);
                }
        }
        if (!typed)
                add_header(t, "Content-Type:"); /* none, where curl would say it is a form */
        add_header(t, "Expect:");
        return 0;
}

static int set_method(transfer_t *t, lc_err_t *err)
{
        const lc_http_call_t *call = t->call;
        const char *method = call->method;

        if (!is_token(method, strlen(method)))
                return lc_err_set(err, LC_FATAL, EINVAL, "Not a method of a request: '%s'", method);
        if (call->has_body || !strcmp(method, "POST") || !strcmp(method, "PUT")) {
                curl_easy_setopt(t->easy, CURLOPT_POST, 1L);
                curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS,
                                 call->has_body && call->body.p ? call->body.p : "");
                curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                                 (curl_off_t)(call->has_body ? call->body.len : 0));
        } else if (!strcmp(method, "HEAD")) {
                curl_easy_setopt(t->easy, CURLOPT_NOBODY, 1L);
        }
        curl_easy_setopt(t->easy, CURLOPT_CUSTOMREQUEST, method);
        return 0;
}

static void set_options(const lc_http_t *h, transfer_t *t)
{
        const lc_http_call_t *call = t->call;
        CURL *easy = t->easy;

        curl_easy_setopt(easy, CURLOPT_URL, call->url);
        curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
#if LIBCURL_VERSION_NUM >= 0x075500
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
#if LIBCURL_VERSION_NUM >= 0x075700
        curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* a slow name server does not hold the thread up */
#endif
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        curl_easy_setopt(easy, CURLOPT_USERAGENT, h->user_agent);
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, t->headers);
        curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
        curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
                         (long)(call->timeout_ms > 0 ? call->timeout_ms : DEFAULT_TIMEOUT_MS));
        curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)IDLE_S);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, t);
        curl_easy_setopt(easy, CURLOPT_PRIVATE, t);
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, t->error);
}

static void start(lc_http_t *h, lc_http_call_t *call)
{
        transfer_t *t = lc_calloc(1, sizeof(*t));
        CURLMcode rc;

        t->call = call;
        t->max_answer = call->max_answer ? call->max_answer : DEFAULT_MAX_ANSWER;
        t->easy = curl_easy_init();
        lc_assert(t->easy != NULL);
        if (check_url(call->url, &t->server, &call->err) || set_method(t, &call->err) ||
            set_headers(t, &call->err)) {
                transfer_free(t);
                finish(call);
                return;
        }
        set_options(h, t);
        rc = curl_multi_add_handle(h->multi, t->easy);
        if (rc) {
                lc_err_set(&call->err, LC_RETRIABLE, EIO, "%s: %s", t->server.p, curl_multi_strerror(rc));
                transfer_free(t);
                finish(call);
                return;
        }
        t->next = h->out;
        if (t->next)
                t->next->prev = t;
        h->out = t;
}

/* What went wrong, for a person: curl's words, and the system's where curl leaves them out. */
static void failed(transfer_t *t, CURLcode rc)
{
        const char *text = *t->error ? t->error : curl_easy_strerror(rc), *why = "";
        long number = 0;
        int code = EIO;

        if (t->too_large) {
                lc_err_set(&t->call->err, LC_RETRIABLE, EMSGSIZE, "%s: the answer is larger than %zu bytes",
                           t->server.p, t->max_answer);
                return;
        }
        if (rc == CURLE_COULDNT_CONNECT && !curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &number) &&
            number > 0) {
                code = (int)number;
                why = strerror(code);
        } else if (rc == CURLE_OPERATION_TIMEDOUT) {
                code = ETIMEDOUT;
        } else if (rc == CURLE_OUT_OF_MEMORY || !lc_buf_ok(&t->call->answer)) {
                code = ENOMEM;
        }
        lc_err_set(&t->call->err, LC_RETRIABLE, code, "%s: %s%s%s%s", t->server.p, text, *why ? " (" : "",
                   why, *why ? ")" : "");
}

static void end(lc_http_t *h, transfer_t *t)
{
        if (t->prev)
                t->prev->next = t->next;
        else
                h->out = t->next;
        if (t->next)
                t->next->prev = t->prev;
        curl_multi_remove_handle(h->multi, t->easy);
        transfer_free(t);
}

static void ended(lc_http_t *h, transfer_t *t, CURLcode rc)
{
        lc_http_call_t *call = t->call;
        const char *type = NULL;
        curl_off_t wait = 0;
        long status = 0;

        if (rc) {
                failed(t, rc);
                lc_buf_free(&call->answer);
        } else {
                curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
                curl_easy_getinfo(t->easy, CURLINFO_CONTENT_TYPE, &type);
                curl_easy_getinfo(t->easy, CURLINFO_RETRY_AFTER, &wait);
                call->status = (int)status;
                call->content_type = lc_strdup(type);
                call->retry_after_s = wait > 0 ? (int)(wait < 86400 ? wait : 86400) : 0;
                lc_buf_adds(&call->answer, "");
        }
        end(h, t);
        finish(call);
}

/* --- the client's thread --- */

static lc_http_call_t *take_new(lc_http_t *h, bool *closed, bool *stopping)
{
        lc_http_call_t *list;

        pthread_mutex_lock(&h->lock);
        list = h->first;
        h->first = NULL;
        h->last = &h->first;
        *closed = h->closed;
        *stopping = h->stopping;
        pthread_mutex_unlock(&h->lock);
        return list;
}

static void collect(lc_http_t *h)
{
        CURLMsg *m;
        int left;

        while ((m = curl_multi_info_read(h->multi, &left)) != NULL) {
                char *t = NULL;
                CURLcode rc = m->data.result; /* m is gone with its handle */
                if (m->msg != CURLMSG_DONE)
                        continue;
                curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t);
                ended(h, (transfer_t *)t, rc);
        }
}

static void cancel_out(lc_http_t *h)
{
        while (h->out) {
                lc_http_call_t *call = h->out->call;
                lc_buf_free(&call->answer);
                end(h, h->out);
                cancel(call);
        }
}

/* Out of descriptors or memory: not at once again. */
static void complain(CURLMcode rc)
{
        struct timespec pause = {0, 100 * 1000 * 1000};

        lc_log(LC_ERROR, "HTTP", "The HTTP client cannot work: %s", curl_multi_strerror(rc));
        nanosleep(&pause, NULL);
}

static void *run(void *arg)
{
        lc_http_t *h = arg;
        bool closed = false, stopping = false;

        pthread_setname_np(pthread_self(), "http-client");
        for (;;) {
                lc_http_call_t *list = take_new(h, &closed, &stopping), *next;
                CURLMcode rc;
                int running;

                if (closed)
                        cancel_out(h);
                if (stopping && !list)
                        return NULL;
                for (; list; list = next) {
                        next = list->next;
                        if (closed)
                                cancel(list);
                        else
                                start(h, list);
                }
                rc = curl_multi_perform(h->multi, &running);
                collect(h);
                if (!rc && !stopping)
                        rc = curl_multi_poll(h->multi, NULL, 0, POLL_MS, NULL);
                if (rc)
                        complain(rc);
        }
}

/* --- any thread --- */

static void init_curl(void)
{
        curl_global_init(CURL_GLOBAL_DEFAULT);
}

lc_http_t *lc_http_new(const char *user_agent, lc_err_t *err)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        lc_http_t *h;
        int rc;

        pthread_once(&once, init_curl);
        h = lc_calloc(1, sizeof(*h));
        h->multi = curl_multi_init();
        if (!h->multi) {
                lc_err_set(err, LC_FATAL, ENOMEM, "Unable to initialize the HTTP client");
                free(h);
                return NULL;
        }
        curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)IDLE_CONNECTIONS);
        h->user_agent = lc_strdup(user_agent);
        h->last = &h->first;
        pthread_mutex_init(&h->lock, NULL);
        rc = pthread_create(&h->thread, NULL, run, h);
        if (!rc)
                return h;
        lc_err_set(err, LC_FATAL, rc, "Unable to start a thread for the HTTP client: %s", strerror(rc));
        pthread_mutex_destroy(&h->lock);
        curl_multi_cleanup(h->multi);
        free(h->user_agent);
        free(h);
        return NULL;
}

void lc_http_submit(lc_http_t *h, lc_http_call_t *call)
{
        call->next = NULL;
        call->status = 0;
        lc_err_clear(&call->err);
        pthread_mutex_lock(&h->lock);
        *h->last = call;
        h->last = &call->next;
        pthread_mutex_unlock(&h->lock);
        curl_multi_wakeup(h->multi);
}

static void set_flags(lc_http_t *h, bool stopping)
{
        pthread_mutex_lock(&h->lock);
        h->closed = true;
        h->stopping |= stopping;
        pthread_mutex_unlock(&h->lock);
        curl_multi_wakeup(h->multi);
}

void lc_http_close(lc_http_t *h)
{
        if (h)
                set_flags(h, false);
}

void lc_http_stop(lc_http_t *h)
{
        if (!h)
                return;
        set_flags(h, true);
        pthread_join(h->thread, NULL);
        curl_multi_cleanup(h->multi);
        pthread_mutex_destroy(&h->lock);
        free(h->user_agent);
        free(h);
}
