/*
 * offset_file_format.h - java.util.HashMap<byte[],byte[]> in Java's object serialization: the standalone
 * offset file.
 *
 * Threads:   pure functions.
 * Errors:    LC_FATAL, cls ConnectException, Java's texts ("java.io.StreamCorruptedException: ..."). A
 *            text that ends too early gives what was complete and LC_DATA.
 * Source:    reference standalone 5.3.
 * Tests:     spec/unit/offset_file_spec.lua
 */
#ifndef LC_STORAGE_OFFSET_FILE_FORMAT_H
#define LC_STORAGE_OFFSET_FILE_FORMAT_H
#include "base/buf.h"
#include "base/err.h"
#include "storage/offset_map.h"

/* Entries whose key is null are dropped; *strays counts keys of another form than ["connector",{..}]. */
int lc_offset_file_read(const char *data, size_t n, lc_offset_map_t *map, int *strays, lc_err_t *err);
void lc_offset_file_write(const lc_offset_map_t *map, lc_buf_t *out);

#endif
