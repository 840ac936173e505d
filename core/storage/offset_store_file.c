/*
 * offset_store_file.c - source offsets of standalone mode in Java's file (offset_file_format.h), so that a
 * Java worker can take it over and the other way round.
 *
 * Unlike Java, the file is replaced as a whole (temporary file, fsync, rename): a crash leaves the old or
 * the new offsets, never half of them. Where the folder does not allow that (a file mounted by itself), it
 * is rewritten in place.
 * Threads:   any. Lock: `lock` guards the map and the file; `done` is called without it, in the caller.
 * Tests:     spec/unit/offset_file_spec.lua
 */
#include "base/alloc.h"
#include "base/fault.h"
#include "base/log.h"
#include "storage/offset_file_format.h"
#include "storage/offset_store_memory.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct store {
        lc_offset_memory_t m; /* first */
        char *path;
} store_t;

/* ConnectException with Java's name for the failure. */
static int io_error(lc_err_t *err, lc_err_kind_t kind, int error, const char *path)
{
        switch (error) {
        case ENOENT:
        case ENOTDIR:
                return lc_err_set(err, kind, error, "java.nio.file.NoSuchFileException: %s", path);
        case EACCES:
        case EPERM:
                return lc_err_set(err, kind, error, "java.nio.file.AccessDeniedException: %s", path);
        default:
                return lc_err_set(err, kind, error, "java.io.IOException: %s: %s", path, strerror(error));
        }
}

static int read_all(const char *path, lc_buf_t *out, lc_err_t *err)
{
        /* O_NONBLOCK: a fifo must not hold the start up */
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        struct stat st;
        char chunk[16384];
        ssize_t n;
        int rc = 0;

        if (fd < 0)
                return errno == ENOENT ? 0 : io_error(err, LC_FATAL, errno, path);
        if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
                rc = lc_err_set(err, LC_FATAL, EINVAL, "java.io.IOException: %s: not a regular file", path);
        while (rc == 0 && (n = read(fd, chunk, sizeof(chunk))) != 0) {
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        rc = io_error(err, LC_FATAL, errno, path);
                else
                        lc_buf_add(out, chunk, (size_t)n);
        }
        close(fd);
        if (rc == 0 && !lc_buf_ok(out))
                rc = io_error(err, LC_FATAL, ENOMEM, path);
        return rc;
}

static int start(lc_offset_store_t *base, const volatile int *stop, lc_err_t *err)
{
        store_t *s = (store_t *)base;
        lc_buf_t data = LC_BUF_INIT;
        lc_err_t problem = {0};
        int rc, strays = 0;

        (void)stop;
        lc_log(LC_INFO, "OFFSET", "Starting FileOffsetBackingStore with file %s", s->path);
        pthread_mutex_lock(&s->m.lock);
        rc = read_all(s->path, &data, err);
        if (rc == 0 && data.len && lc_offset_file_read(data.p, data.len, s->m.map, &strays, &problem) < 0) {
                if (problem.kind == LC_DATA) { /* Java, too, starts on; what is complete is right */
                        lc_log(LC_WARN, "OFFSET", "%s: %s. Going on with the %zu offsets before it.", s->path,
                               problem.msg, lc_offset_map_count(s->m.map));
                } else {
                        if (err && !err->kind)
                                *err = problem;
                        rc = -1;
                }
        }
        pthread_mutex_unlock(&s->m.lock);
        lc_buf_free(&data);
        if (strays)
                lc_log(LC_WARN, "OFFSET",
                       "Ignoring offset partition key with an unexpected format (%d of them). Expected a "
                       "list of a "
                       "connector name and a partition.",
                       strays);
        return rc;
}

static int write_all(int fd, const lc_buf_t *b)
{
        for (size_t at = 0; at < b->len;) {
                ssize_t n = write(fd, b->p + at, b->len - at);
                if (n < 0 && errno != EINTR)
                        return -1;
                if (n > 0)
                        at += (size_t)n;
        }
        return 0;
}

/* The room is taken first, so that a full disk leaves the old offsets. */
static int rewrite_in_place(const char *path, const lc_buf_t *b)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666), rc, error;

        if (fd < 0)
                return -1;
        rc = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)b->len);
        if (rc < 0 && errno != ENOSPC && errno != EDQUOT) /* no such thing here */
                rc = 0;
        if (rc == 0)
                rc = write_all(fd, b);
        if (rc == 0)
                rc = ftruncate(fd, (off_t)b->len);
        if (rc == 0)
                rc = fsync(fd);
        error = errno;
        if (close(fd) < 0 && rc == 0)
                return -1;
        errno = error;
        return rc;
}

static void sync_folder(const char *path)
{
        char *copy = lc_strdup(path);
        int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd >= 0) {
                fsync(fd);
                close(fd);
        }
        free(copy);
}

/* Errors that say "not this way here", not "no file at all". */
static bool try_in_place(int error)
{
        return error == EACCES || error == EPERM || error == EROFS || error == EBUSY || error == EXDEV;
}

static int replace(const char *path, const lc_buf_t *b)
{
        char *temporary = lc_asprintf("%s.tmp", path);
        struct stat st;
        int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), rc = -1, error;

        if (fd < 0)
                goto done;
        if (stat(path, &st) == 0 && fchmod(fd, st.st_mode & 07777) < 0)
                errno = 0; /* not ours: the new file keeps the default mode */
        rc = write_all(fd, b);
        if (rc == 0)
                rc = fsync(fd);
        error = errno;
        if (close(fd) < 0 && rc == 0) {
                rc = -1;
                error = errno;
        }
        LC_FAULT("offset_file.before_rename");
        if (rc == 0 && rename(temporary, path) < 0) {
                rc = -1;
                error = errno;
        }
        if (rc < 0) {
                unlink(temporary);
                errno = error;
        }
done:
        error = errno;
        free(temporary);
        errno = error;
        return rc;
}

static int save(store_t *s, lc_err_t *err)
{
        char *real = realpath(s->path, NULL); /* a link stays a link */
        const char *path = real ? real : s->path;
        lc_buf_t b = LC_BUF_INIT;
        int rc, error;

        lc_offset_file_write(s->m.map, &b);
        if (!lc_buf_ok(&b)) {
                errno = ENOMEM;
                rc = -1;
        } else {
                rc = replace(path, &b);
                if (rc == 0)
                        sync_folder(path);
                else if (try_in_place(errno))
                        rc = rewrite_in_place(path, &b);
        }
        error = errno;
        lc_buf_free(&b);
        free(real);
        return rc < 0 ? io_error(err, LC_RETRIABLE, error, s->path) : 0;
}

static void set(lc_offset_store_t *base, const char *connector, const lc_offset_entry_t *entries, size_t n,
                lc_offset_done_fn *done, void *arg)
{
        store_t *s = (store_t *)base;
        lc_err_t err = {0};
        int rc;

        pthread_mutex_lock(&s->m.lock);
        lc_offset_memory_take(&s->m, connector, entries, n);
        rc = save(s, &err);
        pthread_mutex_unlock(&s->m.lock);
        if (done)
                done(arg, rc < 0 ? &err : NULL);
}

static void stop_store(lc_offset_store_t *base)
{
        store_t *s = (store_t *)base;

        lc_offset_memory_clear(&s->m);
        free(s->path);
        free(s);
}

lc_offset_store_t *lc_offset_store_file_new(const char *path)
{
        static const lc_offset_store_ops_t ops = {
                .start = start,
                .get = lc_offset_memory_get,
                .list = lc_offset_memory_list,
                .set = set,
                .stop = stop_store,
        };
        store_t *s = lc_calloc(1, sizeof(*s));

        lc_offset_memory_init(&s->m, &ops);
        s->path = lc_strdup(path);
        return &s->m.base;
}
