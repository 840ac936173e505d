/*
 * watch.h - tells when Lua files below some folders change: a thread of its own with inotify, or, where that
 * is not to be had, one that compares times and sizes each second.
 *
 * Threads:   `changed` is called on the watch's thread: at first once, for what happened before it watched,
 * then when nothing has changed any more for quiet_ms (a file is often written in pieces), at the latest
 *            after ten times as long.
 * Ownership: folders are copied. Folders may come and go while they are watched.
 * Tests:     spec/unit/watch_spec.lua
 */
#ifndef LC_BASE_WATCH_H
#define LC_BASE_WATCH_H
#include <stdbool.h>
#include "base/err.h"
#include "base/strv.h"

typedef struct lc_watch lc_watch_t;
lc_watch_t *lc_watch_new(const lc_strv_t *folders, int quiet_ms, bool poll_only, void (*changed)(void *arg),
                         void *arg, lc_err_t *err);
void lc_watch_free(lc_watch_t *w); /* `changed` is not called any more when it returns; NULL is fine */

#endif
