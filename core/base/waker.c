/* waker.c - see waker.h. */
#include "base/waker.h"
#include "base/clock.h"
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int lc_waker_init(lc_waker_t *w)
{
        w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        return w->fd < 0 ? -1 : 0;
}

void lc_waker_close(lc_waker_t *w)
{
        if (w->fd >= 0)
                close(w->fd);
        w->fd = -1;
}

void lc_waker_wake(lc_waker_t *w)
{
        uint64_t one = 1;
        ssize_t ignored = write(w->fd, &one, sizeof(one));
        (void)ignored; /* full counter: already woken */
}

void lc_waker_clear(lc_waker_t *w)
{
        uint64_t n;
        ssize_t ignored = read(w->fd, &n, sizeof(n));
        (void)ignored;
}

/* poll(2) that goes on after a signal until the time is really over. */
static int wait_fds(struct pollfd *fds, nfds_t n, int ms)
{
        int64_t end = ms < 0 ? 0 : lc_now_ms() + ms;

        for (;;) {
                int rc = poll(fds, n, ms);
                if (rc >= 0 || errno != EINTR)
                        return rc;
                if (ms >= 0) {
                        int64_t left = end - lc_now_ms();
                        ms = left > 0 ? (int)left : 0;
                }
        }
}

bool lc_waker_wait(lc_waker_t *w, int ms)
{
        struct pollfd f = {.fd = w->fd, .events = POLLIN};

        return wait_fds(&f, 1, ms) > 0;
}

int lc_waker_wait_fd(lc_waker_t *w, int fd, int ms)
{
        struct pollfd f[2] = {{.fd = w->fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

        return wait_fds(f, 2, ms) > 0 && f[1].revents ? 1 : 0;
}
