/* watch.c - see watch.h. The thread owns everything but the waker. */
#include "base/watch.h"
#include "base/thread.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/waker.h"
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

enum { POLL_MS = 1000, LOOK_MS = 2000, DEEPEST = 16, PATIENCE = 10 };
enum {
        EVENTS = IN_MODIFY | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
                 IN_DELETE_SELF | IN_MOVE_SELF
};

struct lc_watch {
        lc_strv_t folders;
        int quiet_ms;
        void (*changed)(void *arg);
        void *arg;
        lc_waker_t stop;
        int stopping; /* atomic */
        pthread_t thread;
        /* the thread's */
        int fd;              /* of inotify; -1: compare times */
        bool lost;           /* a folder is not there: look again from time to time */
        uint64_t seen;       /* without inotify: what was there */
        int64_t first, last; /* of the changes not told yet; 0: none */
};

static bool is_lua(const char *name)
{
        size_t n = strlen(name);

        return n > 4 && !strcmp(name + n - 4, ".lua");
}

static uint64_t mix(uint64_t h, const void *p, size_t n)
{
        const unsigned char *s = p;

        for (size_t i = 0; i < n; i++)
                h = (h ^ s[i]) * 1099511628211u;
        return h;
}

/* Adds up names, times and sizes (the order of a folder does not matter), and puts inotify on each folder. */
static uint64_t walk(lc_watch_t *w, const char *folder, int depth)
{
        DIR *d = opendir(folder);
        struct dirent *e;
        uint64_t sum = 0;

        if (!d) {
                w->lost = w->lost || !depth;
                return 0;
        }
        if (w->fd >= 0 && inotify_add_watch(w->fd, folder, EVENTS | IN_ONLYDIR) < 0 && errno != ENOENT &&
            errno != ENOTDIR) {
                lc_log(LC_WARN, "WATCH", "Cannot watch %s, its files are looked at each second: %s", folder,
                       strerror(errno));
                close(w->fd);
                w->fd = -1;
        }
        while ((e = readdir(d))) {
                struct stat st;
                char *path;
                if (e->d_name[0] == '.')
                        continue;
                path = lc_asprintf("%s/%s", folder, e->d_name);
                if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
                        if (depth < DEEPEST)
                                sum += walk(w, path, depth + 1);
                } else if (is_lua(e->d_name)) {
                        uint64_t h = mix(14695981039346656037u, path, strlen(path));
                        h = mix(h, &st.st_mtim.tv_sec, sizeof(st.st_mtim.tv_sec));
                        h = mix(h, &st.st_mtim.tv_nsec, sizeof(st.st_mtim.tv_nsec));
                        h = mix(h, &st.st_ino, sizeof(st.st_ino));
                        sum += mix(h, &st.st_size, sizeof(st.st_size));
                }
                free(path);
        }
        closedir(d);
        return sum;
}

static uint64_t walk_all(lc_watch_t *w)
{
        uint64_t sum = 0;

        w->lost = false;
        for (size_t i = 0; i < w->folders.n; i++)
                sum += walk(w, w->folders.v[i], 0);
        return sum;
}

static void note(lc_watch_t *w)
{
        w->last = lc_now_ms();
        if (!w->first)
                w->first = w->last;
}

/* A folder that came brings its files along: whatever is below is walked before the change is told. */
static void read_events(lc_watch_t *w)
{
        char buf[8192] __attribute__((aligned(__alignof__(struct inotify_event))));
        ssize_t n;

        while ((n = read(w->fd, buf, sizeof(buf))) > 0)
                for (char *p = buf; p < buf + n;) {
                        const struct inotify_event *e = (const struct inotify_event *)p;
                        bool folder = e->mask & (IN_ISDIR | IN_DELETE_SELF | IN_MOVE_SELF | IN_Q_OVERFLOW);
                        if (folder || (e->len && is_lua(e->name)))
                                note(w);
                        if (e->mask & (IN_DELETE_SELF | IN_MOVE_SELF))
                                w->lost = true;
                        p += sizeof(*e) + e->len;
                }
}

static void look(lc_watch_t *w)
{
        uint64_t now = walk_all(w);

        if (now != w->seen)
                note(w);
        w->seen = now;
}

static void tell(lc_watch_t *w)
{
        w->first = w->last = 0;
        w->seen = walk_all(w); /* new folders are watched before they are read */
        w->changed(w->arg);
}

static int wait_ms(const lc_watch_t *w, int64_t now)
{
        int64_t due;

        if (!w->last)
                return w->fd < 0 ? POLL_MS : w->lost ? LOOK_MS : -1;
        due = w->last + w->quiet_ms;
        if (due > w->first + (int64_t)w->quiet_ms * PATIENCE)
                due = w->first + (int64_t)w->quiet_ms * PATIENCE;
        due = due > now ? due - now : 0;
        return w->fd < 0 && due > POLL_MS ? POLL_MS : (int)due;
}

static void *watch_main(void *arg)
{
        lc_watch_t *w = arg;

        tell(w);
        while (!__atomic_load_n(&w->stopping, __ATOMIC_ACQUIRE)) {
                struct pollfd fds[2] = {{.fd = w->stop.fd, .events = POLLIN},
                                        {.fd = w->fd, .events = POLLIN}};
                int ms = wait_ms(w, lc_now_ms()), n = ms ? poll(fds, w->fd < 0 ? 1 : 2, ms) : 0;
                if (n > 0 && fds[0].revents)
                        continue; /* stopping */
                if (w->fd >= 0 && n > 0)
                        read_events(w);
                else if (!n && (w->fd < 0 || w->lost))
                        look(w);
                if (w->last && !wait_ms(w, lc_now_ms()))
                        tell(w);
        }
        if (w->fd >= 0)
                close(w->fd);
        return NULL;
}

lc_watch_t *lc_watch_new(const lc_strv_t *folders, int quiet_ms, bool poll_only, void (*changed)(void *arg),
                         void *arg, lc_err_t *err)
{
        lc_watch_t *w = lc_calloc(1, sizeof(*w));
        int rc;

        w->quiet_ms = quiet_ms;
        w->changed = changed;
        w->arg = arg;
        if (lc_waker_init(&w->stop)) {
                lc_err_set(err, LC_FATAL, errno, "Cannot watch files: %s", strerror(errno));
                free(w);
                return NULL;
        }
        for (size_t i = 0; i < folders->n; i++)
                lc_strv_add(&w->folders, folders->v[i]);
        w->fd = poll_only ? -1 : inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        rc = lc_thread_start(&w->thread, 0, watch_main, w);
        if (!rc)
                return w;
        lc_err_set(err, LC_FATAL, rc, "Cannot watch files: %s", strerror(rc));
        if (w->fd >= 0)
                close(w->fd);
        lc_waker_close(&w->stop);
        lc_strv_free(&w->folders);
        free(w);
        return NULL;
}

void lc_watch_free(lc_watch_t *w)
{
        if (!w)
                return;
        __atomic_store_n(&w->stopping, 1, __ATOMIC_RELEASE);
        lc_waker_wake(&w->stop);
        pthread_join(w->thread, NULL);
        lc_waker_close(&w->stop);
        lc_strv_free(&w->folders);
        free(w);
}
