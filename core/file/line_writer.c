/* line_writer.c - see line_writer.h. The task's thread. Spec: spec/unit/lines_spec.lua. */
#include "file/line_writer.h"
#include "base/alloc.h"
#include "base/log.h"
#include "convert/converter.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
        CHUNK = 1024 * 1024,   /* written when this much is there, whole lines only */
        KEEP_MOST = 4 * CHUNK, /* a larger buffer (one huge line) is not kept */
        WAIT_MS = 1000
};

struct lc_line_writer {
        char *path; /* NULL: stdout */
        int fd;
        bool regular;
        lc_waker_t *stop;
        lc_buf_t buf;
        off_t taken; /* bytes of the current batch that are in the file */
};

static const char *name_of(const lc_line_writer_t *w)
{
        return w->path ? w->path : "standard output";
}

static const char *java_class(int e)
{
        switch (e) {
        case ENOENT:
                return "java.nio.file.NoSuchFileException";
        case EACCES:
        case EPERM:
                return "java.nio.file.AccessDeniedException";
        default:
                return "java.nio.file.FileSystemException";
        }
}

lc_line_writer_t *lc_line_writer_new(const char *path, lc_waker_t *stop, lc_err_t *err)
{
        lc_line_writer_t *w = lc_calloc(1, sizeof(*w));
        struct stat st;
        int e;

        w->stop = stop;
        w->fd = STDOUT_FILENO;
        if (path && path[0]) {
                w->path = lc_strdup(path);
                /* O_NONBLOCK: a fifo without a reader must not hold the task */
                w->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
                e = errno;
                if (w->fd < 0) {
                        lc_err_set(err,
                                   e == ENXIO || e == EMFILE || e == ENFILE || e == EINTR ? LC_RETRIABLE
                                                                                          : LC_FATAL,
                                   e, "Couldn't find or create file '%s' for FileStreamSinkTask", path);
                        if (err)
                                lc_err_cause(err, java_class(e), "%s: %s", path, strerror(e));
                        lc_line_writer_free(w);
                        return NULL;
                }
        }
        w->regular = fstat(w->fd, &st) == 0 && S_ISREG(st.st_mode);
        return w;
}

void lc_line_writer_free(lc_line_writer_t *w)
{
        if (!w)
                return;
        if (w->path && w->fd >= 0)
                close(w->fd);
        lc_buf_free(&w->buf);
        free(w->path);
        free(w);
}

/* A pipe is full: wait until it takes more. -1 when stopping. */
static int wait_writable(const lc_line_writer_t *w)
{
        struct pollfd f[2] = {{.fd = w->fd, .events = POLLOUT},
                              {.fd = w->stop ? w->stop->fd : -1, .events = POLLIN}};

        for (;;) {
                int n = poll(f, 2, WAIT_MS);
                if (f[1].revents)
                        return -1;
                if (n > 0 && f[0].revents)
                        return 0;
                if (n < 0 && errno != EINTR)
                        return -1;
                if (!w->stop)
                        return -1;
        }
}

/* write(2) that a closed pipe does not end the process with. */
static ssize_t write_some(const lc_line_writer_t *w, const char *p, size_t n)
{
        sigset_t pipe_set, old, pending;
        ssize_t rc;
        int e;

        if (w->regular)
                return write(w->fd, p, n);
        sigemptyset(&pipe_set);
        sigaddset(&pipe_set, SIGPIPE);
        sigpending(&pending);
        pthread_sigmask(SIG_BLOCK, &pipe_set, &old);
        rc = write(w->fd, p, n);
        e = errno;
        if (rc < 0 && e == EPIPE && !sigismember(&pending, SIGPIPE))
                sigtimedwait(&pipe_set, NULL, &(struct timespec){0});
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        errno = e;
        return rc;
}

/* Take back what this batch put at the end of a regular file, unless another task wrote behind it. */
static void take_back(lc_line_writer_t *w)
{
        off_t end = lseek(w->fd, 0, SEEK_CUR); /* O_APPEND: behind our last byte */
        struct stat st;

        if (!w->taken || !w->regular)
                return;
        if (end < w->taken || fstat(w->fd, &st) < 0 || st.st_size != end ||
            ftruncate(w->fd, end - w->taken) < 0)
                lc_log(LC_WARN, "FILE",
                       "%s holds an incomplete batch (%lld bytes): its lines will be there twice", name_of(w),
                       (long long)w->taken);
        w->taken = 0;
}

static int put_out(lc_line_writer_t *w, lc_err_t *err)
{
        size_t done = 0;

        while (done < w->buf.len) {
                ssize_t n = write_some(w, w->buf.p + done, w->buf.len - done);
                if (n > 0) {
                        done += (size_t)n;
                        w->taken += n;
                        continue;
                }
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && wait_writable(w) == 0)
                        continue;
                return lc_err_set(err, LC_RETRIABLE, n < 0 ? errno : EIO, "Cannot write to %s: %s",
                                  name_of(w), strerror(n < 0 ? errno : EIO));
        }
        lc_buf_clear(&w->buf);
        return 0;
}

static int add_line(lc_buf_t *out, const lc_record_t *rec, lc_err_t *err)
{
        const lc_value_t *v = &rec->value;

        if (v->type == LC_STRING)
                lc_utf8_append(out, v->u.s, v->len);
        else
                lc_value_to_java_string(v, rec->value_schema, out);
        lc_buf_addc(out, '\n');
        if (lc_buf_ok(out))
                return 0;
        return lc_err_set(err, LC_FATAL, ENOMEM,
                          "out of memory for the text of a record of %s-%d at offset %lld",
                          rec->u.snk.topic ? rec->u.snk.topic : "?", (int)rec->u.snk.partition,
                          (long long)rec->u.snk.offset);
}

int lc_line_writer_write(lc_line_writer_t *w, const lc_batch_t *batch, lc_err_t *err)
{
        int rc = -1;

        w->taken = 0;
        for (uint32_t i = 0; i < batch->n; i++) {
                if (batch->records[i].state == LC_REC_DROPPED)
                        continue;
                if (add_line(&w->buf, &batch->records[i], err) < 0)
                        goto done;
                if (w->buf.len >= CHUNK && put_out(w, err) < 0)
                        goto done;
        }
        if (put_out(w, err) < 0)
                goto done;
        rc = 0;
done:
        if (rc < 0)
                take_back(w);
        lc_buf_clear(&w->buf);
        if (!lc_buf_ok(&w->buf) || w->buf.cap > KEEP_MOST)
                lc_buf_free(&w->buf);
        return rc;
}
