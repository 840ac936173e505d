/*
 * fake_coordinator.c - a broker that coordinates a group of one, for specs: answers at once, with the errors
 * it is told to give. Compiled by fake_coordinator.lua, never part of the program.
 *
 * Threads: one serves all connections; `lock` guards the orders.
 */
#include "base/alloc.h"
#include "base/waker.h"
#include "kafka/wire/buffer.h"
#include "kafka/wire/requests.h"
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_CONNS = 16, MAX_ERRORS = 32, APIS = 64 };

typedef struct fake {
        int listener, port;
        int fds[MAX_CONNS];
        pthread_t thread;
        pthread_mutex_t lock;
        lc_waker_t stop;
        int errors[APIS][MAX_ERRORS], nerrors[APIS], seen[APIS];
        int silent;    /* answer nothing to this API (0: answer) */
        int hang_up;   /* close the connection when this API is asked */
        int garbage;   /* answer with this many bytes of garbage */
        int leave_max; /* LeaveGroup versions offered */
        int spoil_api, spoil, spoil_at; /* see fake_spoil() */
        unsigned random;
        char extra_id[64], extra[4096]; /* another member, its metadata, what the leader gave it */
        int extra_len, nassignments;
        char extra_given[4096];
        int extra_given_len;
        int ids, generation;
        char member[64], foreign_leader[64];
        char metadata[4096];
        int metadata_len;
        char assignment[4096];
        int assignment_len; /* of a foreign leader */
} fake_t;

static int take_error(fake_t *f, int api)
{
        int code = 0;

        if (f->nerrors[api] > 0) {
                code = f->errors[api][0];
                f->nerrors[api]--;
                memmove(f->errors[api], f->errors[api] + 1, (size_t)f->nerrors[api] * sizeof(int));
        }
        return code;
}

static int read_n(int fd, void *p, size_t n)
{
        for (size_t at = 0; at < n;) {
                ssize_t got = recv(fd, (char *)p + at, n - at, 0);
                if (got <= 0)
                        return -1;
                at += (size_t)got;
        }
        return 0;
}

static void versions(fake_t *f, lc_buf_t *b)
{
        static const int16_t api[][2] = {{10, 2}, {11, 5}, {12, 3}, {13, 3}, {14, 3}, {18, 0}};

        lc_wire_put_i16(b, 0);
        lc_wire_put_i32(b, 6);
        for (int i = 0; i < 6; i++) {
                lc_wire_put_i16(b, api[i][0]);
                lc_wire_put_i16(b, 0);
                lc_wire_put_i16(b, api[i][0] == 13 ? (int16_t)f->leave_max : api[i][1]);
        }
}

static void join(fake_t *f, lc_wire_reader_t *r, int error, lc_buf_t *b)
{
        char *group = lc_wire_str(r), *id, *type;
        int32_t n;

        lc_wire_i32(r);
        lc_wire_i32(r);
        id = lc_wire_str(r);
        free(lc_wire_str(r));
        type = lc_wire_str(r);
        n = lc_wire_i32(r);
        if (!error && !*id) {
                error = 79;
                snprintf(f->member, sizeof(f->member), "member-%d", ++f->ids);
        } else if (!error && strcmp(id, f->member) != 0) {
                error = 25;
        }
        lc_wire_put_i32(b, 0);
        lc_wire_put_i16(b, (int16_t)error);
        lc_wire_put_i32(b, error ? -1 : ++f->generation);
        for (int32_t i = 0; i < n; i++) {
                char *name = lc_wire_str(r);
                lc_wire_reader_t m = lc_wire_bytes(r);
                if (i == 0) {
                        const char *leader = f->foreign_leader[0] ? f->foreign_leader : f->member;
                        lc_wire_put_str(b, error ? "" : name);
                        lc_wire_put_str(b, error ? "" : leader);
                        lc_wire_put_str(b, f->member);
                        lc_wire_put_i32(b, error || f->foreign_leader[0] ? 0 : f->extra_id[0] ? 2 : 1);
                        f->metadata_len = (int)lc_wire_left(&m);
                        memcpy(f->metadata, m.p, lc_wire_left(&m));
                        if (!error && !f->foreign_leader[0]) {
                                lc_wire_put_str(b, f->member);
                                lc_wire_put_str(b, NULL);
                                lc_wire_put_bytes(b, m.p, lc_wire_left(&m));
                                if (f->extra_id[0]) {
                                        lc_wire_put_str(b, f->extra_id);
                                        lc_wire_put_str(b, "static-instance");
                                        lc_wire_put_bytes(b, f->extra, (size_t)f->extra_len);
                                }
                        }
                }
                free(name);
        }
        free(group);
        free(id);
        free(type);
}

static void sync_group(fake_t *f, lc_wire_reader_t *r, int error, lc_buf_t *b)
{
        lc_wire_reader_t given = {NULL, NULL, false};
        int32_t n;

        free(lc_wire_str(r));
        lc_wire_i32(r);
        free(lc_wire_str(r));
        free(lc_wire_str(r));
        n = lc_wire_i32(r);
        if (n > 0) {
                free(lc_wire_str(r));
                given = lc_wire_bytes(r);
        }
        f->nassignments = n;
        if (n > 1) {
                lc_wire_reader_t other;
                free(lc_wire_str(r));
                other = lc_wire_bytes(r);
                f->extra_given_len = (int)lc_wire_left(&other);
                memcpy(f->extra_given, other.p, lc_wire_left(&other));
        }
        lc_wire_put_i32(b, 0);
        lc_wire_put_i16(b, (int16_t)error);
        if (error)
                lc_wire_put_bytes(b, "", 0);
        else if (f->foreign_leader[0])
                lc_wire_put_bytes(b, f->assignment, (size_t)f->assignment_len);
        else
                lc_wire_put_bytes(b, given.p, lc_wire_left(&given));
}

static void heartbeat(fake_t *f, lc_wire_reader_t *r, int error, lc_buf_t *b)
{
        char *group = lc_wire_str(r), *id;
        int32_t generation = lc_wire_i32(r);

        id = lc_wire_str(r);
        if (!error && strcmp(id, f->member) != 0)
                error = 25;
        if (!error && generation != f->generation)
                error = 22;
        lc_wire_put_i32(b, 0);
        lc_wire_put_i16(b, (int16_t)error);
        free(group);
        free(id);
}

/* Make an answer what no broker would send. False: close after it. */
static bool spoil(fake_t *f, lc_buf_t *b)
{
        int32_t size;
        bool keep = true;

        switch (f->spoil) {
        case 1: /* one byte longer each time, the length says so: until the answer is whole */
                if (4 + (size_t)f->spoil_at >= b->len)
                        f->spoil = 0;
                else
                        b->len = 4 + (size_t)f->spoil_at++;
                break;
        case 2: /* the length is given, what follows is not as long */
                size = (int32_t)htonl((uint32_t)f->spoil_at);
                memcpy(b->p, &size, 4);
                return true;
        case 3: /* the connection ends in the middle, one byte later each time */
                keep = (size_t)f->spoil_at >= b->len;
                if (keep)
                        f->spoil = 0;
                else
                        b->len = (size_t)f->spoil_at++;
                return keep;
        case 4: /* a few bytes are other ones; spoil_at answers */
                if (f->spoil_at-- <= 0) {
                        f->spoil = 0;
                        return true;
                }
                for (int i = 0; i < 3 && b->len > 8; i++) {
                        f->random = f->random * 1103515245u + 12345u;
                        b->p[8 + (f->random >> 8) % (b->len - 8)] = (char)(f->random >> 24);
                }
                return true;
        }
        size = (int32_t)htonl((uint32_t)(b->len - 4));
        memcpy(b->p, &size, 4);
        return keep;
}

/* One request. -1: close. */
static int serve(fake_t *f, int fd)
{
        int32_t size, correlation;
        lc_buf_t b = LC_BUF_INIT;
        lc_wire_reader_t r;
        unsigned char *in;
        int16_t api, version;
        int rc = -1, error;

        if (read_n(fd, &size, 4) < 0)
                return -1;
        size = (int32_t)ntohl((uint32_t)size);
        in = lc_malloc((size_t)size);
        if (read_n(fd, in, (size_t)size) < 0)
                goto done;
        lc_wire_reader_init(&r, in, (size_t)size);
        api = lc_wire_i16(&r);
        version = lc_wire_i16(&r);
        correlation = lc_wire_i32(&r);
        free(lc_wire_str(&r));
        f->seen[api]++;
        if (f->hang_up == api)
                goto done;
        if (f->silent == api) {
                rc = 0;
                goto done;
        }
        error = take_error(f, api);
        lc_wire_put_i32(&b, 0);
        lc_wire_put_i32(&b, correlation);
        if (api == 18) {
                versions(f, &b);
        } else if (api == 10) {
                lc_wire_put_i32(&b, 0);
                lc_wire_put_i16(&b, (int16_t)error);
                lc_wire_put_str(&b, NULL);
                lc_wire_put_i32(&b, 1);
                lc_wire_put_str(&b, error ? "" : "127.0.0.1");
                lc_wire_put_i32(&b, error ? -1 : f->port);
        } else if (api == 11) {
                join(f, &r, error, &b);
        } else if (api == 14) {
                sync_group(f, &r, error, &b);
        } else if (api == 12) {
                heartbeat(f, &r, error, &b);
        } else if (api == 13) {
                if (version >= 1)
                        lc_wire_put_i32(&b, 0);
                lc_wire_put_i16(&b, (int16_t)error);
                if (version >= 3)
                        lc_wire_put_i32(&b, 0);
                f->member[0] = '\0';
        }
        size = (int32_t)htonl((uint32_t)(b.len - 4));
        memcpy(b.p, &size, 4);
        if (f->garbage > 0) {
                memset(b.p, 0x41, b.len);
                b.len = (size_t)f->garbage < b.len ? (size_t)f->garbage : b.len;
        }
        rc = f->spoil && f->spoil_api == api && !spoil(f, &b) ? -1 : 0;
        if (send(fd, b.p, b.len, MSG_NOSIGNAL) != (ssize_t)b.len)
                rc = -1;
done:
        free(in);
        lc_buf_free(&b);
        return rc;
}

static void *run(void *arg)
{
        fake_t *f = arg;

        for (;;) {
                struct pollfd p[MAX_CONNS + 2];

                p[0] = (struct pollfd){.fd = f->stop.fd, .events = POLLIN};
                p[1] = (struct pollfd){.fd = f->listener, .events = POLLIN};
                for (int i = 0; i < MAX_CONNS; i++)
                        p[i + 2] = (struct pollfd){.fd = f->fds[i], .events = POLLIN};
                poll(p, MAX_CONNS + 2, -1);
                if (p[0].revents)
                        return NULL;
                pthread_mutex_lock(&f->lock);
                for (int i = 0; i < MAX_CONNS; i++)
                        if (f->fds[i] >= 0 && p[i + 2].revents && serve(f, f->fds[i]) < 0) {
                                close(f->fds[i]);
                                f->fds[i] = -1;
                        }
                if (p[1].revents) {
                        int fd = accept(f->listener, NULL, NULL);
                        for (int i = 0; i < MAX_CONNS && fd >= 0; i++)
                                if (f->fds[i] < 0) {
                                        f->fds[i] = fd;
                                        fd = -1;
                                }
                        if (fd >= 0)
                                close(fd);
                }
                pthread_mutex_unlock(&f->lock);
        }
}

/* Listen on `port`, 0: any. */
fake_t *fake_new(int port)
{
        fake_t *f = lc_calloc(1, sizeof(*f));
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        socklen_t len = sizeof(a);
        int one = 1;

        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        f->leave_max = 3;
        for (int i = 0; i < MAX_CONNS; i++)
                f->fds[i] = -1;
        f->listener = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(f->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
        if (bind(f->listener, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(f->listener, 16) < 0 ||
            lc_waker_init(&f->stop) < 0)
                abort();
        getsockname(f->listener, (struct sockaddr *)&a, &len);
        f->port = ntohs(a.sin_port);
        pthread_mutex_init(&f->lock, NULL);
        pthread_create(&f->thread, NULL, run, f);
        return f;
}

int fake_port(fake_t *f)
{
        return f->port;
}

void fake_error(fake_t *f, int api, int code)
{
        pthread_mutex_lock(&f->lock);
        f->errors[api][f->nerrors[api]++] = code;
        pthread_mutex_unlock(&f->lock);
}

void fake_set(fake_t *f, int silent, int hang_up, int garbage, int leave_max)
{
        pthread_mutex_lock(&f->lock);
        f->silent = silent;
        f->hang_up = hang_up;
        f->garbage = garbage;
        f->leave_max = leave_max;
        pthread_mutex_unlock(&f->lock);
}

/* From now on another member leads and gives this assignment. */
void fake_lead(fake_t *f, const char *leader, const char *assignment, int len)
{
        pthread_mutex_lock(&f->lock);
        snprintf(f->foreign_leader, sizeof(f->foreign_leader), "%s", leader);
        memcpy(f->assignment, assignment, (size_t)len);
        f->assignment_len = len;
        pthread_mutex_unlock(&f->lock);
}

/* How answers to `api` are spoiled: see spoil(). */
void fake_spoil(fake_t *f, int api, int how, int at)
{
        pthread_mutex_lock(&f->lock);
        f->spoil_api = api;
        f->spoil = how;
        f->spoil_at = at;
        f->random = 4711;
        pthread_mutex_unlock(&f->lock);
}

int fake_spoils(fake_t *f)
{
        int how;

        pthread_mutex_lock(&f->lock);
        how = f->spoil;
        pthread_mutex_unlock(&f->lock);
        return how;
}

/* Another member in the leader's answer. */
void fake_other(fake_t *f, const char *id, const char *metadata, int len)
{
        pthread_mutex_lock(&f->lock);
        snprintf(f->extra_id, sizeof(f->extra_id), "%s", id);
        memcpy(f->extra, metadata, (size_t)len);
        f->extra_len = len;
        pthread_mutex_unlock(&f->lock);
}

/* What the leader gave it. */
int fake_given(fake_t *f, char *out)
{
        int n;

        pthread_mutex_lock(&f->lock);
        n = f->extra_given_len;
        memcpy(out, f->extra_given, (size_t)n);
        pthread_mutex_unlock(&f->lock);
        return n;
}

int fake_seen(fake_t *f, int api)
{
        int n;

        pthread_mutex_lock(&f->lock);
        n = f->seen[api];
        pthread_mutex_unlock(&f->lock);
        return n;
}

/* Metadata of the first protocol in the last JoinGroup. */
int fake_metadata(fake_t *f, char *out)
{
        int n;

        pthread_mutex_lock(&f->lock);
        n = f->metadata_len;
        memcpy(out, f->metadata, (size_t)n);
        pthread_mutex_unlock(&f->lock);
        return n;
}

void fake_free(fake_t *f)
{
        lc_waker_wake(&f->stop);
        pthread_join(f->thread, NULL);
        for (int i = 0; i < MAX_CONNS; i++)
                if (f->fds[i] >= 0)
                        close(f->fds[i]);
        close(f->listener);
        lc_waker_close(&f->stop);
        free(f);
}
