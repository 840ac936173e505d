/*
 * properties.h - Java .properties files (java.util.Properties.load): comments, continuation lines,
 * \uXXXX, the three separators. A later key wins. ISO-8859-1 bytes above 0x7f become UTF-8.
 *
 * Threads: any.  Ownership: *props is the caller's.  Errors: LC_FATAL naming file (and line).
 * Tests:   spec/unit/properties_spec.lua
 */
#ifndef LC_CONFIG_PROPERTIES_H
#define LC_CONFIG_PROPERTIES_H
#include "base/err.h"
#include "base/props.h"

int lc_properties_parse(const char *text, size_t len, lc_props_t **props, lc_err_t *err);
int lc_properties_load(const char *path, lc_props_t **props, lc_err_t *err);

#endif
