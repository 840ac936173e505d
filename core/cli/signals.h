/*
 * signals.h - SIGTERM and SIGINT: the first asks the worker to stop, at any point of its life; the second
 * ends the process at once.
 *
 * Threads:   lc_signals_start() from the main thread before any other thread exists, so that all inherit
 *            the blocked signals; one small thread waits for them for the rest of the process.
 * Tests:     spec/unit/cli_spec.lua
 */
#ifndef LC_CLI_SIGNALS_H
#define LC_CLI_SIGNALS_H
#include "base/err.h"
#include "base/waker.h"

/* *stop becomes the signal's number and `waker` is woken. Both must live as long as the process. */
int lc_signals_start(volatile int *stop, lc_waker_t *waker, lc_err_t *err);

#endif
