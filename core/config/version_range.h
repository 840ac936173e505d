/*
 * version_range.h - Maven version ranges of *.plugin.version keys: "[1.0,2.0)", "1.2" means exactly that
 * version, absent or "latest" any.
 *
 * Threads: any.   Tests: spec/unit/config_spec.lua
 */
#ifndef LC_CONFIG_VERSION_RANGE_H
#define LC_CONFIG_VERSION_RANGE_H
#include <stdbool.h>
#include "base/buf.h"
#include "base/err.h"

/* Does `version` lie in `range`? -1: the range is malformed (Maven's message in err). `text`, if not
 * NULL, gets the range as Maven prints it: "[9.9,9.9]". */
int lc_version_in_range(const char *range, const char *version, lc_buf_t *text, lc_err_t *err);
int lc_version_compare(const char *a, const char *b);

#endif
