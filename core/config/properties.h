/*
 * properties.h - Java .properties files (java.util.Properties.load): comments, continuation lines,
 * \uXXXX, the three separators. A later key wins. ISO-8859-1 bytes above 0x7f become UTF-8.
 *
 * Threads: any.  Ownership: *props is the caller's.  Errors: LC_FATAL with Java's class and message; the
 * detail names file and line.
 * Tests:   spec/unit/properties_spec.lua
 */
#ifndef LC_CONFIG_PROPERTIES_H
#define LC_CONFIG_PROPERTIES_H
#include <stddef.h>
#include "base/err.h"
#include "base/props.h"

int lc_properties_parse(const char *text, size_t len, lc_props_t **props, lc_err_t *err);
int lc_properties_load(const char *path, lc_props_t **props, lc_err_t *err);
/* The same for text that is UTF-8 already, as Java's Properties.load(Reader): config providers' files. */
int lc_properties_parse_utf8(const char *text, size_t len, lc_props_t **props, lc_err_t *err);

/* A whole file, malloc'ed, NUL behind it. Errors are those of java.nio.file.Files: the class in err->cls,
 * the path in err->msg, errno in err->code. */
char *lc_file_read(const char *path, size_t *len, lc_err_t *err);

#endif
