/*
 * try_watch.c - `luaconnect try --watch`: all of it again in a child process when a file changes, so that a
 * script that hangs or crashes ends with its child. Files are looked at every 200 ms (size, time, inode):
 * editors replace files in many ways, and a poll sees them all.
 *
 * Threads:   main; a child inherits nothing but the input.
 * Tests:     spec/unit/kit_spec.lua
 */
#include "cli/try.h"
#include "base/buf.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EVERY_MS = 200, MOST_STDIN = 256 << 20, DEEPEST = 8 };

static uint64_t mix(uint64_t h, uint64_t v)
{
        return (h ^ v) * 1099511628211u;
}

/* A fingerprint of the file, or of the Lua files below the folder. */
static uint64_t look(const char *path, int depth, uint64_t h)
{
        struct stat st;
        DIR *d;
        struct dirent *e;
        uint64_t sum = 0; /* of entries, in any order */

        if (stat(path, &st))
                return mix(h, 1);
        if (!S_ISDIR(st.st_mode)) {
                h = mix(h, (uint64_t)st.st_size);
                h = mix(h, (uint64_t)st.st_ino);
                return mix(mix(h, (uint64_t)st.st_mtim.tv_sec), (uint64_t)st.st_mtim.tv_nsec);
        }
        d = depth < DEEPEST ? opendir(path) : NULL;
        while (d && (e = readdir(d))) {
                size_t n = strlen(e->d_name);
                char inner[4096];
                struct stat in;
                if (e->d_name[0] == '.' ||
                    snprintf(inner, sizeof(inner), "%s/%s", path, e->d_name) >= (int)sizeof(inner) ||
                    stat(inner, &in))
                        continue;
                if (S_ISDIR(in.st_mode) || (n > 4 && !strcmp(e->d_name + n - 4, ".lua"))) {
                        uint64_t name = 14695981039346656037u;
                        for (size_t i = 0; i < n; i++)
                                name = mix(name, (unsigned char)e->d_name[i]);
                        sum += look(inner, depth + 1, name);
                }
        }
        if (d)
                closedir(d);
        return mix(h, sum);
}

static uint64_t fingerprint(const lc_try_t *t)
{
        const char *files[] = {t->file, t->connector, t->input};
        uint64_t h = 14695981039346656037u;

        for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
                if (files[i])
                        h = look(files[i], 0, h);
        for (size_t i = 0; i < t->plugin_path.n; i++)
                h = look(t->plugin_path.v[i], 0, h);
        return h;
}

/* stdin is read once, every run gets it from the start. -1: told. */
static int keep_stdin(void)
{
        int fd = memfd_create("stdin", MFD_CLOEXEC);
        static char chunk[65536];
        size_t all = 0;
        ssize_t n = 0;

        while (fd >= 0 && ((n = read(0, chunk, sizeof(chunk))) > 0 || (n < 0 && errno == EINTR))) {
                for (ssize_t at = 0; at < n;) {
                        ssize_t w = write(fd, chunk + at, (size_t)(n - at));
                        if (w < 0)
                                break;
                        at += w;
                }
                all += n > 0 ? (size_t)n : 0;
                if (all > MOST_STDIN) {
                        fprintf(stderr,
                                "luaconnect try: --watch keeps stdin in memory, this is more than %d MiB: "
                                "use --input FILE\n",
                                (int)MOST_STDIN >> 20);
                        close(fd);
                        return -1;
                }
        }
        if (fd < 0 || n < 0) {
                fprintf(stderr, "luaconnect try: cannot read stdin: %s\n", strerror(errno));
                return -1;
        }
        return fd;
}

static pid_t start(lc_try_t *t, int (*run)(lc_try_t *t), int kept)
{
        pid_t parent = getpid(), pid;

        fflush(NULL);
        pid = fork();
        if (pid)
                return pid;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(LC_KIT_FAILED);
        if (kept >= 0) { /* a description of its own: its own place in the file */
                char path[64];
                int fd;
                snprintf(path, sizeof(path), "/proc/self/fd/%d", kept);
                fd = open(path, O_RDONLY | O_CLOEXEC);
                if (fd < 0 || dup2(fd, 0) < 0)
                        _exit(LC_KIT_FAILED);
        }
        exit(run(t));
}

static void end(pid_t pid)
{
        struct timespec nap = {.tv_nsec = 20 * 1000000};

        kill(pid, SIGTERM);
        for (int i = 0; i < 50; i++) {
                if (waitpid(pid, NULL, WNOHANG) == pid)
                        return;
                nanosleep(&nap, NULL);
        }
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
}

int lc_try_run_watched(lc_try_t *t, int (*run)(lc_try_t *t))
{
        struct timespec nap = {.tv_nsec = EVERY_MS * 1000000};
        int kept = -1;

        if (!t->input && !t->source) {
                kept = keep_stdin();
                if (kept < 0)
                        return LC_KIT_USAGE;
        }
        for (;;) {
                uint64_t seen = fingerprint(t);
                pid_t pid = start(t, run, kept), running = pid;
                if (pid < 0) {
                        fprintf(stderr, "luaconnect try: cannot start a process: %s\n", strerror(errno));
                        return LC_KIT_FAILED;
                }
                while (fingerprint(t) == seen) {
                        int status;
                        if (running && waitpid(pid, &status, WNOHANG) == pid) {
                                running = 0;
                                if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE)
                                        return LC_KIT_OK; /* nobody reads any more */
                                fprintf(stderr, "--- status %d; waiting for a change, Ctrl-C ends it\n",
                                        WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
                        }
                        nanosleep(&nap, NULL);
                }
                if (running)
                        end(pid);
                fprintf(stderr, "--- changed: again\n");
        }
}
