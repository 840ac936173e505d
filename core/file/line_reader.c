/*
 * line_reader.c - see line_reader.h. The task's thread. Spec: spec/unit/lines_spec.lua.
 *
 * A block holds file bytes [base, base + used). Lines are handed out from `at` on; a batch holds a reference to
 * each block that it has lines of, so nothing is copied but an unfinished line that moves to the next block.
 * While a regular file has more, a batch goes on in the next block until it is full. A block that only the reader holds is grown in place for long lines (doubling, `scanned`
 * remembers what was searched).
 *
 * A regular file at its end is looked at again after 100 ms, doubling to 1 s, with one stat(2):
 *   longer            read on
 *   other inode       the open file is read to its end, then the new one from 0
 *   shorter than read from 0 again
 *   gone              the open file is kept until there is a new one
 */
#include "file/line_reader.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "convert/json.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
        BLOCK = 256 * 1024,
        ROOM_LEAST = 64 * 1024,  /* a block with less free room is not read into any more */
        BATCH_BYTES = 4 * BLOCK, /* no further block for a batch of this size */
        WAIT_FIRST = 100,
        WAIT_MOST = 1000,
        WARN_EVERY = 60000
};

typedef struct block {
        int refs; /* the reader and each batch; one thread */
        size_t cap, used;
        char data[];
} block_t;

typedef enum { KIND_NONE, KIND_REGULAR, KIND_STREAM } kind_t;

struct lc_line_reader {
        char *path, *topic; /* path NULL: stdin */
        lc_source_partition_t *partition;
        lc_waker_t *stop;
        uint32_t batch_size;
        bool skip_large, timestamps;
        int64_t max_line;

        int fd;
        kind_t kind;
        dev_t dev;
        ino_t ino;
        int64_t start; /* where to begin at the next open */
        int64_t base;  /* file position of block->data[0] */
        block_t *block;
        size_t at;      /* next line begins here */
        size_t scanned; /* no line end before this (>= at) */
        bool more;      /* the last read filled its room: the file has probably not ended */
        bool replaced;  /* the path names another file now */
        bool skipping;  /* inside a line that is too large; its first bytes are gone already */
        int64_t large_at, large_len;
        bool failed;      /* the too large line was reported: poll says it again */
        uint32_t average; /* bytes of a line, for sizing batches */

        int wait; /* ms until the file is looked at again */
        int64_t next_look;
        int64_t warned_missing, warned_folder;
        bool said_deleted;
};

static void block_unref(block_t *b)
{
        if (b && --b->refs == 0)
                free(b);
}

/* A batch's reference to a block; they lie in its arena. */
typedef struct hold {
        block_t *block;
        struct hold *next;
} hold_t;

static void release(void *arg)
{
        for (hold_t *h = arg; h; h = h->next)
                block_unref(h->block);
}

static int hold_block(lc_batch_t *b, block_t *block)
{
        hold_t *last = b->on_free_arg, *h;

        if (last && last->block == block)
                return 0;
        h = lc_arena_alloc(&b->arena, sizeof(*h));
        if (!h)
                return -1;
        *h = (hold_t){block, last};
        block->refs++;
        b->on_free = release;
        b->on_free_arg = h;
        return 0;
}

static const char *name_of(const lc_line_reader_t *r)
{
        return r->path ? r->path : "standard input";
}

lc_line_reader_t *lc_line_reader_new(const lc_line_reader_conf_t *conf)
{
        lc_line_reader_t *r = lc_calloc(1, sizeof(*r));

        if (conf->path && conf->path[0])
                r->path = lc_strdup(conf->path);
        r->topic = lc_strdup(conf->topic);
        r->stop = conf->stop;
        r->batch_size = conf->batch_size ? conf->batch_size : 1;
        r->skip_large = conf->skip_large;
        r->timestamps = conf->timestamps;
        r->max_line = conf->max_line;
        r->start = conf->position; /* a negative one is warned of when the file is opened */
        r->base = r->start > 0 ? r->start : 0;
        r->fd = -1;
        r->average = 64;
        return r;
}

void lc_line_reader_free(lc_line_reader_t *r)
{
        if (!r)
                return;
        block_unref(r->block);
        lc_source_partition_unref(r->partition);
        if (r->path && r->fd >= 0)
                close(r->fd);
        free(r->path);
        free(r->topic);
        free(r);
}

int64_t lc_line_reader_position(const lc_line_reader_t *r)
{
        return r->base + (int64_t)r->at;
}

/* ---- waiting ---------------------------------------------------------------------------------- */

/* The caller waits between empty polls too; whoever comes back sooner than the file is worth a look waits
 * the rest here. True: stopping. */
static bool wait_for_look(lc_line_reader_t *r)
{
        int64_t left = r->next_look - lc_now_ms();

        if (left <= 0)
                return false;
        if (r->stop)
                return lc_waker_wait(r->stop, (int)left);
        nanosleep(&(struct timespec){.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000}, NULL);
        return false;
}

static void look_again(lc_line_reader_t *r, int ms)
{
        r->wait = ms ? ms : r->wait ? r->wait * 2 : WAIT_FIRST;
        if (r->wait > WAIT_MOST)
                r->wait = WAIT_MOST;
        r->next_look = lc_now_ms() + r->wait;
}

/* ---- opening ---------------------------------------------------------------------------------- */

static void drop_block(lc_line_reader_t *r, int64_t base)
{
        block_unref(r->block);
        r->block = NULL;
        r->base = base;
        r->at = r->scanned = 0;
}

/* The next byte read is at `base` of a file read anew: no line goes on. */
static void start_at(lc_line_reader_t *r, int64_t base)
{
        drop_block(r, base);
        r->skipping = false;
}

static int cannot_read(const lc_line_reader_t *r, lc_err_t *err)
{
        return lc_err_set(err, LC_FATAL, errno, "Cannot read file %s: %s", r->path, strerror(errno));
}

static int make_partition(lc_line_reader_t *r, lc_err_t *err)
{
        lc_buf_t json = LC_BUF_INIT;

        if (r->partition)
                return 0;
        lc_buf_adds(&json, "{\"filename\":");
        lc_json_write_string(&json, r->path, strlen(r->path));
        lc_buf_addc(&json, '}');
        if (!lc_buf_ok(&json)) {
                lc_buf_free(&json);
                return lc_err_set(err, LC_FATAL, ENOMEM, "out of memory reading %s", r->path);
        }
        r->partition = lc_source_partition_new(json.p, json.len);
        lc_buf_free(&json);
        return 0;
}

static int open_regular(lc_line_reader_t *r, const struct stat *st, lc_err_t *err)
{
        if (make_partition(r, err) < 0)
                return -1;
        if (r->start < 0) {
                lc_log(LC_WARN, "FILE",
                       "The stored position %" PRId64 " of file %s is negative: reading from its beginning",
                       r->start, r->path);
                r->start = 0;
        }
        if (r->start > st->st_size) {
                lc_log(LC_WARN, "FILE",
                       "File %s is shorter (%" PRId64 " bytes) than the stored position %" PRId64
                       ": it was truncated or replaced, reading from its beginning",
                       r->path, (int64_t)st->st_size, r->start);
                r->start = 0;
        }
        if (r->start && lseek(r->fd, r->start, SEEK_SET) < 0)
                return lc_err_set(err, LC_FATAL, errno, "Cannot go to position %" PRId64 " of file %s: %s",
                                  r->start, r->path, strerror(errno));
        r->kind = KIND_REGULAR;
        r->dev = st->st_dev;
        r->ino = st->st_ino;
        start_at(r, r->start);
        return 0;
}

/* 1 open, 0 not there yet, -1. */
static int open_path(lc_line_reader_t *r, lc_err_t *err)
{
        struct stat st;
        int e;

        if (!r->path) {
                r->fd = STDIN_FILENO;
                r->kind = KIND_STREAM;
                start_at(r, 0);
                return 1;
        }
        /* O_NONBLOCK: opening a fifo must not wait for a writer */
        r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        e = errno;
        if (r->fd < 0 && (e == ENOENT || e == ENOTDIR)) {
                if (lc_log_due(&r->warned_missing, WARN_EVERY))
                        lc_log(LC_WARN, "FILE",
                               "Couldn't find file %s for FileStreamSourceTask, "
                               "sleeping to wait for it to be created",
                               r->path);
                look_again(r, WAIT_MOST);
                return 0;
        }
        if (r->fd < 0)
                return lc_err_set(err, e == EMFILE || e == ENFILE || e == EINTR ? LC_RETRIABLE : LC_FATAL, e,
                                  "Cannot open file %s for FileStreamSourceTask: %s", r->path, strerror(e));
        if (fstat(r->fd, &st) < 0)
                return cannot_read(r, err);
        if (S_ISDIR(st.st_mode)) {
                close(r->fd);
                r->fd = -1;
                if (lc_log_due(&r->warned_folder, WARN_EVERY))
                        lc_log(LC_WARN, "FILE",
                               "%s is a folder: there is nothing to read, waiting for a file", r->path);
                look_again(r, WAIT_MOST);
                return 0;
        }
        r->warned_missing = r->warned_folder = 0;
        r->said_deleted = r->replaced = false;
        if (S_ISREG(st.st_mode))
                return open_regular(r, &st, err) < 0 ? -1 : 1;
        r->kind = KIND_STREAM;
        start_at(r, 0);
        return 1;
}

static void close_file(lc_line_reader_t *r, int64_t start)
{
        if (r->path && r->fd >= 0)
                close(r->fd);
        r->fd = -1;
        r->kind = KIND_NONE;
        r->start = start;
        start_at(r, start);
}

static int64_t end_of_block(const lc_line_reader_t *r)
{
        return r->base + (r->block ? (int64_t)r->block->used : 0);
}

static void warn_unfinished(const lc_line_reader_t *r, const char *why)
{
        size_t left = r->block ? r->block->used - r->at : 0;

        if (left)
                lc_log(LC_WARN, "FILE", "File %s was %s: its last line (%zu bytes, no line end) is not read",
                       r->path, why, left);
}

/* What became of the regular file behind the open descriptor. 1 maybe more to read, 0 nothing. */
static int look(lc_line_reader_t *r, lc_err_t *err)
{
        struct stat st;
        int64_t end = end_of_block(r);

        if (stat(r->path, &st) < 0) {
                if (errno != ENOENT && errno != ENOTDIR)
                        return cannot_read(r, err);
                if (!r->said_deleted)
                        lc_log(LC_WARN, "FILE",
                               "File %s was deleted: keeping the open one, waiting for a new one", r->path);
                r->said_deleted = true;
                return fstat(r->fd, &st) == 0 && st.st_size > end;
        }
        r->said_deleted = false;
        if (st.st_dev != r->dev || st.st_ino != r->ino) {
                r->replaced = !S_ISDIR(st.st_mode);
                return 1; /* the old one to its end first */
        }
        if (st.st_size < end) {
                warn_unfinished(r, "truncated");
                lc_log(LC_WARN, "FILE",
                       "File %s became shorter (%" PRId64 " bytes) than what was read (%" PRId64
                       "): reading from its beginning",
                       r->path, (int64_t)st.st_size, end);
                if (lseek(r->fd, 0, SEEK_SET) < 0)
                        return cannot_read(r, err);
                start_at(r, 0);
                return st.st_size > 0;
        }
        return st.st_size > end;
}

/* ---- reading ---------------------------------------------------------------------------------- */

/* Room to read into: the rest of the block, or a new one that begins with the unfinished line. */
static int make_room(lc_line_reader_t *r, lc_err_t *err)
{
        block_t *b = r->block, *n;
        size_t left = b ? b->used - r->at : 0, cap;
        bool mine = b && b->refs == 1, huge = b && b->cap > 4 * BLOCK && left < BLOCK / 2;

        if (mine && !huge && left <= r->at / 2) { /* to the front again */
                memmove(b->data, b->data + r->at, left);
                r->base += (int64_t)r->at;
                r->scanned -= r->at;
                b->used = left;
                r->at = 0;
        }
        if (b && !huge && b->cap - b->used >= ROOM_LEAST)
                return 0;
        cap = BLOCK;
        while (cap < 2 * left || cap - left < ROOM_LEAST) {
                if (cap > SIZE_MAX / 4)
                        goto oom;
                cap *= 2;
        }
        if (mine && !huge && r->at == 0) {
                n = realloc(b, sizeof(*b) + cap);
                if (!n)
                        goto oom;
        } else {
                n = malloc(sizeof(*n) + cap);
                if (!n)
                        goto oom;
                n->refs = 1;
                n->used = left;
                if (left)
                        memcpy(n->data, b->data + r->at, left);
                r->base += (int64_t)r->at;
                r->scanned -= r->at;
                r->at = 0;
                block_unref(b);
        }
        n->cap = cap;
        r->block = n;
        return 0;
oom:
        return lc_err_set(err, LC_FATAL, ENOMEM,
                          "out of memory reading a line of more than %zu bytes at position %" PRId64 " of %s",
                          left, lc_line_reader_position(r), name_of(r));
}

/* 1 bytes came, 0 nothing now, -1. */
static int fill(lc_line_reader_t *r, lc_err_t *err)
{
        ssize_t n;

        if (make_room(r, err) < 0)
                return -1;
        do
                n = read(r->fd, r->block->data + r->block->used, r->block->cap - r->block->used);
        while (n < 0 && errno == EINTR && !(r->stop && lc_waker_wait(r->stop, 0)));
        r->more = false;
        if (n > 0) {
                r->more = (size_t)n == r->block->cap - r->block->used;
                r->block->used += (size_t)n;
                r->wait = 0;
                r->next_look = 0;
                return 1;
        }
        if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
                return lc_err_set(err, errno == EIO ? LC_RETRIABLE : LC_FATAL, errno,
                                  "Cannot read %s at position %" PRId64 ": %s", name_of(r), end_of_block(r),
                                  strerror(errno));
        if (r->block->used == r->at && r->block->refs == 1)
                drop_block(r, end_of_block(r)); /* an idle reader holds no block */
        return 0;
}

/* Bytes from a fifo or stdin: never a blocking read. */
static int fill_stream(lc_line_reader_t *r, lc_err_t *err)
{
        static const int PATIENCE = 100; /* delivery reports are served between polls */
        int rc;

        if (r->stop && !lc_waker_wait_fd(r->stop, r->fd, PATIENCE))
                return 0;
        rc = fill(r, err);
        if (rc == 0)
                look_again(r, 0); /* without a writer it counts as readable: wait by the clock */
        return rc;
}

static int fill_regular(lc_line_reader_t *r, lc_err_t *err)
{
        int rc;

        for (;;) {
                if (r->wait && !r->replaced) { /* at the end: one stat(2) tells whether to read */
                        rc = look(r, err);
                        if (rc < 0)
                                return -1;
                        if (rc == 0)
                                break;
                }
                rc = fill(r, err);
                if (rc != 0)
                        return rc;
                if (!r->replaced)
                        break;
                warn_unfinished(r, "replaced");
                lc_log(LC_INFO, "FILE", "File %s was replaced: reading the new one from its beginning",
                       r->path);
                close_file(r, 0);
                r->wait = 0;
                rc = open_path(r, err);
                if (rc < 0 && r->fd >= 0)
                        close_file(r, 0);
                if (rc <= 0 || r->kind != KIND_REGULAR)
                        return rc < 0 ? -1 : 0;
        }
        look_again(r, 0);
        return 0;
}

/* ---- lines ------------------------------------------------------------------------------------ */

/* End of the line at [from, end): its first end byte, or NULL. *next is behind the whole line end. *cr is
 * the first '\r' at or behind `from`, kept between calls so that a file without any pays one memchr. */
static inline const char *line_end(const char *from, const char *end, const char **cr, const char **next)
{
        const char *nl = memchr(from, '\n', (size_t)(end - from));

        if (*cr < from) {
                const char *p = memchr(from, '\r', (size_t)(end - from));
                *cr = p ? p : end;
        }
        if (*cr < (nl ? nl : end)) {
                const char *p = *cr;
                if (p + 1 == end)
                        return NULL; /* "\r\n" or a lone "\r": the next byte tells */
                *next = p + 1 + (p[1] == '\n');
                return p;
        }
        if (nl)
                *next = nl + 1;
        return nl;
}

static int too_large(lc_line_reader_t *r, int64_t len, bool whole, lc_err_t *err)
{
        int64_t at = r->large_at;

        if (r->skip_large) {
                lc_log(LC_WARN, "FILE",
                       "A line of %" PRId64 " bytes at position %" PRId64
                       " of %s is larger than max.request.size (%" PRId64
                       " bytes): skipped, as errors.tolerance is all",
                       len, at, name_of(r), r->max_line);
                return 0;
        }
        r->failed = true;
        r->large_len = len;
        return lc_err_set_cls(err, LC_FATAL, 0, "org.apache.kafka.common.errors.RecordTooLargeException",
                              "A line of %s%" PRId64 " bytes at position %" PRId64
                              " of %s is larger than max.request.size (%" PRId64 " bytes)",
                              whole ? "" : "at least ", len, at, name_of(r), r->max_line);
}

/* The head of the block belongs to a line that is too large: forget bytes until its end.
 * 1 its end was found and (when skipping is allowed) passed, 0 not yet, -1. */
static int pass_large(lc_line_reader_t *r, lc_err_t *err)
{
        block_t *b = r->block;
        const char *from = b->data + r->at, *end = b->data + b->used, *cr = NULL, *next, *p;
        size_t keep;

        p = line_end(from, end, &cr, &next);
        if (p) {
                if (too_large(r, r->large_len + (p - from), true, err) < 0)
                        return -1;
                r->skipping = false;
                r->at = r->scanned = (size_t)(next - b->data);
                return 1;
        }
        keep = end > from && end[-1] == '\r';
        r->large_len += (end - from) - (int64_t)keep;
        r->at = r->scanned = b->used - keep;
        return 0;
}

static lc_batch_t *new_batch(lc_line_reader_t *r, size_t bytes)
{
        size_t guess = bytes / r->average + 16;
        lc_batch_t *b = lc_batch_new((uint32_t)(guess < r->batch_size ? guess : r->batch_size));

        if (!b)
                return NULL;
        b->offset_field = "position";
        if (r->kind == KIND_REGULAR && lc_batch_hold_partition(b, r->partition) < 0) {
                lc_batch_unref(b);
                return NULL;
        }
        return b;
}

/* Complete lines of the block as a batch, or behind those that *batch has; *batch NULL if there is none. */
static int take_lines(lc_line_reader_t *r, lc_batch_t **batch, lc_err_t *err)
{
        block_t *blk = r->block;
        const char *data = blk->data, *end = data + blk->used, *at = data + r->at, *from = data + r->scanned;
        const char *cr = NULL, *next = NULL, *p;
        int64_t now = r->timestamps ? lc_wall_ms() : -1;
        lc_source_partition_t *partition = r->kind == KIND_REGULAR ? r->partition : NULL;
        lc_batch_t *b = *batch;
        const char *topic = b ? b->records[0].topic : NULL;
        uint32_t had = b ? b->n : 0;
        lc_record_t *rec;

        while ((!b || b->n < r->batch_size) && from < end && (p = line_end(from, end, &cr, &next))) {
                if ((r->max_line && p - at > r->max_line) || p - at > UINT32_MAX) {
                        r->large_at = r->base + (at - data);
                        r->large_len = 0;
                        r->skipping = true;
                        r->scanned = (size_t)(at - data);
                        break; /* pass_large says so, after the lines before it */
                }
                if (!b) {
                        b = new_batch(r, (size_t)(end - at));
                        topic = b ? lc_arena_strdup(&b->arena, r->topic) : NULL;
                        if (!topic)
                                goto oom;
                }
                rec = lc_batch_add(b);
                if (!rec || (b->n == had + 1 && hold_block(b, blk)))
                        goto oom;
                rec->topic = topic;
                rec->timestamp = now;
                rec->value = lc_value_string(at, (size_t)(p - at));
                rec->value_schema = &lc_schema_string;
                rec->u.src.partition = partition;
                if (partition)
                        rec->u.src.offset = lc_value_int64(r->base + (next - data));
                at = from = next;
        }
        if (b && b->n > had) {
                r->average = (uint32_t)((size_t)(at - data - (ptrdiff_t)r->at) / (b->n - had));
                r->average = r->average < 16 ? 16 : r->average;
        }
        r->at = (size_t)(at - data);
        if (r->skipping || (b && b->n == r->batch_size))
                r->scanned = r->at;
        else /* all searched; a '\r' at the very end is looked at again */
                r->scanned = blk->used - (blk->used > r->at && end[-1] == '\r');
        *batch = b;
        return 0;
oom:
        lc_batch_unref(b);
        *batch = NULL;
        return lc_err_set(err, LC_FATAL, ENOMEM, "out of memory reading %s", name_of(r));
}

/* The batch has lines: as many more as it may have and the file has now. What goes wrong here will again when the
 * batch has been given out. */
static int fill_batch(lc_line_reader_t *r, lc_batch_t **batch, int64_t from, lc_err_t *err)
{
        uint32_t had = 0;
        lc_err_t later;

        lc_err_clear(&later);
        while ((*batch)->n > had && (*batch)->n < r->batch_size && r->kind == KIND_REGULAR && r->more &&
               !r->skipping && lc_line_reader_position(r) - from < BATCH_BYTES && fill(r, &later) > 0) {
                had = (*batch)->n;
                if (take_lines(r, batch, err) < 0)
                        return -1;
        }
        return 0;
}

int lc_line_reader_poll(lc_line_reader_t *r, lc_batch_t **batch, lc_err_t *err)
{
        int64_t from;
        int rc;

        *batch = NULL;
        if (r->failed)
                return too_large(r, r->large_len, true, err);
        if (wait_for_look(r))
                return 0;
        if (r->kind == KIND_NONE) {
                rc = open_path(r, err);
                if (rc < 0 && r->path && r->fd >= 0)
                        close_file(r, r->start);
                if (rc <= 0)
                        return rc;
        }
        for (;;) {
                if (r->block && r->block->used > r->at) {
                        if (r->skipping) {
                                rc = pass_large(r, err);
                                if (rc < 0)
                                        return -1;
                                if (rc)
                                        continue;
                        } else {
                                from = lc_line_reader_position(r);
                                if (take_lines(r, batch, err) < 0)
                                        return -1;
                                if (*batch)
                                        return fill_batch(r, batch, from, err);
                                if (r->skipping)
                                        continue;
                                if (r->max_line && (int64_t)(r->block->used - r->at) > r->max_line + 1) {
                                        r->large_at = lc_line_reader_position(r);
                                        r->large_len = 0;
                                        r->skipping = true;
                                        continue;
                                }
                        }
                }
                if (r->stop && lc_waker_wait(r->stop, 0))
                        return 0;
                rc = r->kind == KIND_REGULAR ? fill_regular(r, err) : fill_stream(r, err);
                if (rc < 0)
                        return -1;
                if (rc == 0) {
                        if (r->skipping && r->large_len && !r->skip_large && r->kind != KIND_NONE)
                                return too_large(r, r->large_len, false, err);
                        return 0;
                }
        }
}
