/* conn.c - see conn.h. */
#include "kafka/wire/conn.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "kafka/wire/requests.h"
#include "kafka/wire/resolve.h"
#include "kafka/wire/sasl.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
        LARGEST_ANSWER = 16 << 20,
        READ_STEP = 64 << 10, /* an announced length is believed this much at a time */
        MAX_API = 64,
        AUTH_TIMEOUT_MS = 30000,
        WAIT_SLICE_MS = 500,
        LONGEST_WAIT_MS = 60000
};

struct lc_conn {
        const lc_net_t *net;
        const char *client_id;
        lc_conn_wait_t wait;
        int fd;
        SSL *ssl;
        char *host, *name;
        int port;
        int32_t correlation;
        lc_buf_t out, in;
        struct {
                int16_t min, max; /* max -1: not spoken */
        } api[MAX_API];
        int64_t reauth_at; /* credentials must be shown again, 0 never */
};

/* ---- waiting and raw input and output ---- */

static int wait_for(lc_conn_t *c, short events, int64_t deadline, lc_err_t *err)
{
        const int most = c->wait.slice ? WAIT_SLICE_MS : LONGEST_WAIT_MS;

        for (;;) {
                struct pollfd f[2] = {{.fd = c->wait.waker->fd, .events = POLLIN},
                                      {.fd = c->fd, .events = events}};
                int64_t left = deadline - lc_now_ms();
                int rc;

                if (left <= 0)
                        return lc_err_set(err, LC_RETRIABLE, ETIMEDOUT, "%s did not answer in time", c->name);
                rc = poll(f, 2, left > most ? most : (int)left);
                if (c->wait.slice)
                        c->wait.slice(c->wait.arg);
                if (rc < 0 && errno != EINTR)
                        return lc_err_set(err, LC_RETRIABLE, errno, "poll: %s", strerror(errno));
                if (rc <= 0)
                        continue;
                if (f[0].revents) {
                        lc_waker_clear(c->wait.waker);
                        if (c->wait.cancelled && c->wait.cancelled(c->wait.arg))
                                return lc_err_set(err, LC_RETRIABLE, ECANCELED,
                                                  "Interrupted while waiting for %s", c->name);
                }
                if (f[1].revents)
                        return 0;
        }
}

static const char *tls_reason(lc_conn_t *c)
{
        long verify = SSL_get_verify_result(c->ssl);
        unsigned long e = ERR_peek_last_error();
        const char *text = e ? ERR_reason_error_string(e) : NULL;

        if (verify != X509_V_OK)
                return X509_verify_cert_error_string(verify);
        return text ? text : "connection closed";
}

static int disconnected(lc_conn_t *c, int error, lc_err_t *err)
{
        return lc_err_set(err, LC_RETRIABLE, error, "Connection to %s: %s", c->name,
                          error ? strerror(error) : "closed by the broker");
}

/* What an SSL call that returned rc <= 0 wants: 0 and *events, or -1. */
static int tls_wants(lc_conn_t *c, int rc, short *events, lc_err_t *err)
{
        int saved = errno, e = SSL_get_error(c->ssl, rc);

        if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE) {
                *events = e == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
                return 0;
        }
        if (e == SSL_ERROR_SSL && ERR_GET_REASON(ERR_peek_last_error()) != SSL_R_UNEXPECTED_EOF_WHILE_READING)
                return lc_err_set_cls(err, LC_FATAL, 0,
                                      "org.apache.kafka.common.errors.SslAuthenticationException",
                                      "SSL handshake failed with %s: %s", c->name, tls_reason(c));
        return disconnected(c, e == SSL_ERROR_SYSCALL ? saved : 0, err);
}

static int write_all(lc_conn_t *c, const char *p, size_t n, int64_t deadline, lc_err_t *err)
{
        while (n) {
                short events = POLLOUT;
                ssize_t done;

                if (c->ssl) {
                        ERR_clear_error();
                        done = SSL_write(c->ssl, p, n > INT32_MAX ? INT32_MAX : (int)n);
                        if (done <= 0 && tls_wants(c, (int)done, &events, err) < 0)
                                return -1;
                } else {
                        done = send(c->fd, p, n, MSG_NOSIGNAL);
                        if (done < 0 && errno != EAGAIN && errno != EINTR)
                                return disconnected(c, errno, err);
                }
                if (done > 0) {
                        p += done;
                        n -= (size_t)done;
                } else if (wait_for(c, events, deadline, err) < 0) {
                        return -1;
                }
        }
        return 0;
}

/* Read exactly n more bytes into c->in. */
static int read_more(lc_conn_t *c, size_t n, int64_t deadline, lc_err_t *err)
{
        while (n) {
                size_t step = n < READ_STEP ? n : READ_STEP;
                short events = POLLIN;
                ssize_t got;

                if (lc_buf_reserve(&c->in, step) < 0)
                        return lc_err_set(err, LC_RETRIABLE, ENOMEM, "Out of memory for an answer of %s",
                                          c->name);
                if (c->ssl) {
                        ERR_clear_error();
                        got = SSL_read(c->ssl, c->in.p + c->in.len, (int)step);
                        if (got <= 0 && tls_wants(c, (int)got, &events, err) < 0)
                                return -1;
                } else {
                        got = recv(c->fd, c->in.p + c->in.len, step, 0);
                        if (got == 0)
                                return disconnected(c, 0, err);
                        if (got < 0 && errno != EAGAIN && errno != EINTR)
                                return disconnected(c, errno, err);
                }
                if (got > 0) {
                        c->in.len += (size_t)got;
                        n -= (size_t)got;
                } else if (wait_for(c, events, deadline, err) < 0) {
                        return -1;
                }
        }
        return 0;
}

static int call(lc_conn_t *c, int16_t api, int16_t version, const lc_buf_t *body, int64_t timeout_ms,
                lc_wire_reader_t *answer, lc_err_t *err)
{
        int64_t deadline = lc_now_ms() + timeout_ms;
        int32_t size;

        lc_buf_clear(&c->out);
        lc_wire_put_i32(&c->out, 0);
        lc_wire_put_i16(&c->out, api);
        lc_wire_put_i16(&c->out, version);
        lc_wire_put_i32(&c->out, ++c->correlation);
        lc_wire_put_str(&c->out, c->client_id);
        if (body)
                lc_buf_add(&c->out, body->p, body->len);
        if (!lc_buf_ok(&c->out) || (body && !lc_buf_ok(body)) || c->out.len > INT32_MAX) {
                lc_buf_free(&c->out);
                return lc_err_set(err, LC_RETRIABLE, ENOMEM, "A request to %s is too large", c->name);
        }
        size = (int32_t)htonl((uint32_t)(c->out.len - 4));
        memcpy(c->out.p, &size, sizeof(size));
        if (write_all(c, c->out.p, c->out.len, deadline, err) < 0)
                return -1;
        lc_buf_clear(&c->in);
        if (read_more(c, 4, deadline, err) < 0)
                return -1;
        memcpy(&size, c->in.p, sizeof(size));
        size = (int32_t)ntohl((uint32_t)size);
        if (size < 4 || size > LARGEST_ANSWER)
                return lc_err_set(err, LC_RETRIABLE, EPROTO,
                                  "Invalid receive (size = %d) from %s: is security.protocol the listener's?",
                                  size, c->name);
        lc_buf_clear(&c->in);
        if (read_more(c, (size_t)size, deadline, err) < 0)
                return -1;
        lc_wire_reader_init(answer, c->in.p, c->in.len);
        if (lc_wire_i32(answer) != c->correlation)
                return lc_err_set(err, LC_RETRIABLE, EPROTO, "%s answered another request", c->name);
        return 0;
}

/* ---- opening ---- */

static int connect_to(lc_conn_t *c, const struct addrinfo *a, int64_t deadline, lc_err_t *err)
{
        int one = 1, error = 0;
        socklen_t len = sizeof(error);
        int session = c->net->session_ms < INT32_MAX ? (int)c->net->session_ms : INT32_MAX;
        int probe_s = session < 4000 ? 1 : session / 4000, probes = 3;

        c->fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol);
        if (c->fd < 0)
                return lc_err_set(err, LC_RETRIABLE, errno, "socket: %s", strerror(errno));
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        /* a cut network is noticed within a session although a JoinGroup may be answered much later */
        setsockopt(c->fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
        setsockopt(c->fd, IPPROTO_TCP, TCP_KEEPIDLE, &probe_s, sizeof(probe_s));
        setsockopt(c->fd, IPPROTO_TCP, TCP_KEEPINTVL, &probe_s, sizeof(probe_s));
        setsockopt(c->fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
        setsockopt(c->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &session, sizeof(session));
        if (connect(c->fd, a->ai_addr, a->ai_addrlen) == 0)
                return 0;
        if (errno == EINPROGRESS || errno == EINTR) {
                if (wait_for(c, POLLOUT, deadline, err) < 0)
                        return -1;
                getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len);
        } else {
                error = errno;
        }
        return error ? disconnected(c, error, err) : 0;
}

static int start_tls(lc_conn_t *c, int64_t deadline, lc_err_t *err)
{
        unsigned char address[16];
        bool literal =
                inet_pton(AF_INET, c->host, address) == 1 || inet_pton(AF_INET6, c->host, address) == 1;
        short events = POLLIN;

        c->ssl = SSL_new(c->net->tls);
        if (!c->ssl || SSL_set_fd(c->ssl, c->fd) != 1)
                return lc_err_set(err, LC_RETRIABLE, ENOMEM, "Cannot start TLS with %s", c->name);
        if (!literal)
                SSL_set_tlsext_host_name(c->ssl, c->host);
        if (c->net->verify_host && literal)
                X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(c->ssl), c->host);
        else if (c->net->verify_host)
                SSL_set1_host(c->ssl, c->host);
        for (;;) {
                int rc;

                ERR_clear_error();
                rc = SSL_connect(c->ssl);
                if (rc == 1)
                        return 0;
                if (tls_wants(c, rc, &events, err) < 0 || wait_for(c, events, deadline, err) < 0)
                        return -1;
        }
}

static int read_versions(lc_conn_t *c, int64_t deadline, lc_err_t *err)
{
        lc_wire_reader_t r;
        int16_t error;
        int32_t n;

        for (int i = 0; i < MAX_API; i++)
                c->api[i].max = -1;
        if (call(c, LC_API_API_VERSIONS, 0, NULL, deadline - lc_now_ms(), &r, err) < 0)
                return -1;
        error = lc_wire_i16(&r);
        n = lc_wire_count(&r, 6);
        for (int32_t i = 0; i < n && !r.bad; i++) {
                int16_t key = lc_wire_i16(&r), min = lc_wire_i16(&r), max = lc_wire_i16(&r);
                if (key >= 0 && key < MAX_API) {
                        c->api[key].min = min;
                        c->api[key].max = max;
                }
        }
        if (error || r.bad) {
                char name[24];
                return lc_err_set(err, LC_RETRIABLE, error, "ApiVersions at %s failed: %s", c->name,
                                  error ? lc_kafka_error_name(error, name) : "malformed response");
        }
        return 0;
}

static int sasl_message(lc_conn_t *c, const lc_buf_t *message, lc_buf_t *reply, lc_err_t *err)
{
        int16_t version = lc_conn_version(c, LC_API_SASL_AUTHENTICATE, 0, 1), error;
        lc_buf_t body = LC_BUF_INIT;
        lc_wire_reader_t r, bytes;
        char *text = NULL;
        int64_t lifetime = 0;
        int rc;

        lc_wire_put_bytes(&body, message->p, message->len);
        rc = call(c, LC_API_SASL_AUTHENTICATE, version < 0 ? 0 : version, &body, AUTH_TIMEOUT_MS, &r, err);
        lc_buf_free(&body);
        if (rc < 0)
                return -1;
        error = lc_wire_i16(&r);
        text = lc_wire_str(&r);
        bytes = lc_wire_bytes(&r);
        if (version >= 1)
                lifetime = lc_wire_i64(&r);
        if (error)
                rc = lc_err_set_cls(
                        err, LC_FATAL, error, "org.apache.kafka.common.errors.SaslAuthenticationException",
                        "%s", text && *text ? text : "Authentication failed during SASL authentication");
        else if (r.bad)
                rc = lc_err_set(err, LC_RETRIABLE, EPROTO, "Malformed SaslAuthenticate response of %s",
                                c->name);
        else
                lc_buf_add(reply, bytes.p, lc_wire_left(&bytes));
        /* as Java: show the credentials again at 85 % of the session's life */
        if (rc == 0 && lifetime > 0)
                c->reauth_at = lc_now_ms() + lifetime / 100 * 85;
        free(text);
        return rc;
}

static int sasl_scram(lc_conn_t *c, lc_err_t *err)
{
        lc_scram_t s = {.mechanism = c->net->sasl, .user = c->net->user, .password = c->net->password};
        lc_buf_t out = LC_BUF_INIT, in = LC_BUF_INIT;
        int rc = -1;

        if (lc_scram_first(&s, &out, err) < 0 || sasl_message(c, &out, &in, err) < 0)
                goto done;
        lc_buf_addc(&in, '\0');
        lc_buf_clear(&out);
        if (lc_scram_final(&s, in.p, &out, err) < 0)
                goto done;
        lc_buf_clear(&in);
        if (sasl_message(c, &out, &in, err) < 0)
                goto done;
        lc_buf_addc(&in, '\0');
        rc = lc_scram_verify(&s, in.p, err);
done:
        lc_scram_clear(&s);
        lc_buf_free(&out);
        lc_buf_free(&in);
        return rc;
}

static int authenticate(lc_conn_t *c, lc_err_t *err)
{
        const char *mechanism = lc_sasl_name(c->net->sasl);
        lc_buf_t body = LC_BUF_INIT, reply = LC_BUF_INIT;
        lc_wire_reader_t r;
        int16_t error;
        int rc;

        c->reauth_at = 0;
        lc_wire_put_str(&body, mechanism);
        rc = call(c, LC_API_SASL_HANDSHAKE, 1, &body, AUTH_TIMEOUT_MS, &r, err);
        if (rc == 0) {
                error = lc_wire_i16(&r);
                if (error == LC_KE_UNSUPPORTED_SASL_MECHANISM)
                        rc = lc_err_set_cls(
                                err, LC_FATAL, error,
                                "org.apache.kafka.common.errors.UnsupportedSaslMechanismException",
                                "Client SASL mechanism '%s' not enabled in the server", mechanism);
                else if (error || r.bad)
                        rc = lc_err_set(err, LC_RETRIABLE, error, "SaslHandshake at %s failed: error %d",
                                        c->name, error);
        }
        if (rc == 0 && c->net->sasl == LC_SASL_PLAIN) {
                lc_buf_clear(&body);
                lc_sasl_plain(c->net->user, c->net->password, &body);
                rc = sasl_message(c, &body, &reply, err);
        } else if (rc == 0) {
                rc = sasl_scram(c, err);
        }
        if (body.p)
                explicit_bzero(body.p, body.len);
        lc_buf_free(&body);
        lc_buf_free(&reply);
        return rc;
}

lc_conn_t *lc_conn_open(const lc_net_t *net, const char *client_id, const char *host, int port,
                        const lc_conn_wait_t *wait, lc_err_t *err)
{
        lc_conn_t *c = lc_calloc(1, sizeof(*c));
        struct addrinfo *list = NULL;
        lc_err_t last = {0};
        int rc = -1;

        c->net = net;
        c->client_id = client_id;
        c->wait = *wait;
        c->fd = -1;
        c->host = lc_strdup(host);
        c->port = port;
        c->name = lc_asprintf(strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
        if (lc_resolve(host, port, wait, net->connect_timeout_ms, &list, &last) < 0)
                goto done;
        for (struct addrinfo *a = list; a && rc < 0 && last.code != ECANCELED; a = a->ai_next) {
                int64_t deadline = lc_now_ms() + net->connect_timeout_ms;

                lc_err_clear(&last);
                if (c->fd >= 0)
                        close(c->fd);
                rc = connect_to(c, a, deadline, &last);
        }
        freeaddrinfo(list);
        if (rc == 0) {
                int64_t deadline = lc_now_ms() + net->connect_timeout_ms;

                if ((net->tls && start_tls(c, deadline, &last) < 0) ||
                    read_versions(c, deadline, &last) < 0 ||
                    (net->sasl != LC_SASL_NONE && authenticate(c, &last) < 0))
                        rc = -1;
        }
done:
        if (rc < 0) {
                if (err && !err->kind)
                        *err = last;
                lc_conn_close(c);
                return NULL;
        }
        return c;
}

void lc_conn_close(lc_conn_t *c)
{
        if (!c)
                return;
        if (c->ssl) {
                ERR_clear_error();
                SSL_free(c->ssl); /* no close_notify: nothing is cut that was promised whole */
        }
        if (c->fd >= 0)
                close(c->fd);
        if (c->out.p)
                explicit_bzero(c->out.p, c->out.len);
        lc_buf_free(&c->out);
        lc_buf_free(&c->in);
        free(c->host);
        free(c->name);
        free(c);
}

int lc_conn_call(lc_conn_t *c, int16_t api, int16_t version, const lc_buf_t *body, int64_t timeout_ms,
                 lc_wire_reader_t *answer, lc_err_t *err)
{
        if (c->reauth_at && lc_now_ms() >= c->reauth_at && authenticate(c, err) < 0)
                return -1;
        return call(c, api, version, body, timeout_ms, answer, err);
}

int16_t lc_conn_version(const lc_conn_t *c, int16_t api, int16_t least, int16_t want)
{
        int16_t max;

        if (api < 0 || api >= MAX_API)
                return -1;
        max = c->api[api].max < want ? c->api[api].max : want;
        return max < least || max < c->api[api].min ? -1 : max;
}

bool lc_conn_is(const lc_conn_t *c, const char *host, int port)
{
        return c->port == port && !strcmp(c->host, host);
}

int lc_conn_fd(const lc_conn_t *c)
{
        return c->fd;
}

bool lc_conn_alive(lc_conn_t *c)
{
        char byte;

        if (c->ssl) { /* a session ticket makes the descriptor readable, too */
                int rc, e;

                ERR_clear_error();
                rc = SSL_peek(c->ssl, &byte, 1);
                e = SSL_get_error(c->ssl, rc);
                return rc <= 0 && (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE);
        }
        return recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR);
}

const char *lc_conn_name(const lc_conn_t *c)
{
        return c->name;
}
