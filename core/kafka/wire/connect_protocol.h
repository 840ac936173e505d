/*
 * connect_protocol.h - the bytes Kafka Connect members exchange through the group: metadata (what a member
 * reports when it joins) and assignment (what the leader gives it), versions 0, 1 and 2.
 *
 * Threads:   pure functions.
 * Errors:    decode: LC_DATA with what is wrong; *out is then empty. encode: -1 when a name is longer than
 *            32767 bytes.
 * Source:    reference group 2.   Tests: spec/unit/wire_spec.lua, spec/golden/group_protocol_spec.lua
 */
#ifndef LC_KAFKA_WIRE_CONNECT_PROTOCOL_H
#define LC_KAFKA_WIRE_CONNECT_PROTOCOL_H
#include "base/buf.h"
#include "base/err.h"
#include "kafka/group.h"

typedef struct lc_connect_metadata {
        int16_t version;
        char *url;
        int64_t config_offset;
        bool has_allocation;
        lc_assignment_t allocation; /* of assigned work; generation and member_id are not on the wire */
} lc_connect_metadata_t;
void lc_connect_metadata_clear(lc_connect_metadata_t *m);

/* Appends to *out. allocation NULL: none (version 0 never has one). */
int lc_connect_metadata_encode(lc_buf_t *out, int16_t version, const char *url, int64_t config_offset,
                               const lc_assignment_t *allocation);
int lc_connect_metadata_decode(const void *data, size_t n, lc_connect_metadata_t *out, lc_err_t *err);
int lc_connect_assignment_encode(lc_buf_t *out, int16_t version, const lc_assignment_t *a);
/* Sets protocol (the version), error, leader, leader_url, config_offset, work, delay; the rest is zero.
 * Fields that are missing at the end have their defaults. Free the contents with lc_assignment_clear(). */
int lc_connect_assignment_decode(const void *data, size_t n, lc_assignment_t *out, lc_err_t *err);
void lc_assignment_clear(lc_assignment_t *a); /* frees what it holds, zeroes it */

/* "sessioned" 2, "compatible" 1, "default" 0; -1 unknown. And back. */
int16_t lc_connect_protocol_version(const char *name);
const char *lc_connect_protocol_name(int16_t version);

#endif
