/*
 * log.h - one line a message: time, level, [context], area, text.
 *
 *   2026-11-30 01:02:03,004 INFO  [file-src|task-0|offsets] OFFSET  Committing offsets for 3 ...
 *
 * The context is Connect's connector.context (KIP-449), set per thread. The level is per process and,
 * by lc_log_set_level("area", ...), per area.
 * Threads:   any; a line is one write(2), so lines never mix.
 * Tests:     spec/unit/base_spec.lua
 */
#ifndef LC_BASE_LOG_H
#define LC_BASE_LOG_H

typedef enum { LC_LOG_OFF = 0, LC_ERROR, LC_WARN, LC_INFO, LC_DEBUG, LC_TRACE } lc_log_level_t;

/* Area: a short word in capitals that can be grepped: "GROUP", "OFFSET", "REST". */
void lc_log_(lc_log_level_t level, const char *area, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
extern int lc_log_max_level; /* the most verbose level any area logs; by lc_log_most() only */
static inline int lc_log_most(void)
{
        return __atomic_load_n(&lc_log_max_level, __ATOMIC_RELAXED);
}
#define lc_log(level, area, ...)                                                                             \
        ((int)(level) <= lc_log_most() ? lc_log_((level), (area), __VA_ARGS__) : (void)0)

/* Context of this thread's lines, e.g. "file-src|task-0"; NULL for none. Copied (120 bytes). */
void lc_log_context(const char *context);
const char *lc_log_get_context(void);
/* name: "off","error","warn","info","debug","trace" in any case. Returns 0, -1 if unknown. */
int lc_log_set_level(const char *area /* NULL: all */, const char *name);
void lc_log_set_fd(int fd); /* default 1: stdout, as Connect's log4j configuration does */

/* True at most once every `ms` for this `last` (a static int64_t that starts 0): for repeats. */
#include <stdbool.h>
#include <stdint.h>
bool lc_log_due(int64_t *last, int64_t ms);

#endif
