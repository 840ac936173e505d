/*
 * base64.h - base64 as java.util.Base64 reads it. (Jackson's variant, for JSON, is in text.h.)
 *
 * Threads:   any.
 * Errors:    LC_DATA with the texts of Java's IllegalArgumentException, code 400.
 * Tests:     spec/unit/herder_cluster_spec.lua
 */
#ifndef LC_CONVERT_BASE64_H
#define LC_CONVERT_BASE64_H
#include "base/err.h"
#include <stddef.h>

/* Base64.getDecoder(): no blanks, the padding may be absent. out: strlen(text) bytes are enough. */
int lc_base64_decode_basic(const char *text, unsigned char *out, size_t *len, lc_err_t *err);

#endif
