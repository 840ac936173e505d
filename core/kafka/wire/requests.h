/*
 * requests.h - the group requests Connect needs, in non-flexible versions: bodies out, answers in.
 *
 * Threads:   pure functions.
 * Errors:    LC_RETRIABLE for an answer that cannot be read. The broker's error codes are in `error`.
 * Tests:     spec/unit/wire_spec.lua
 */
#ifndef LC_KAFKA_WIRE_REQUESTS_H
#define LC_KAFKA_WIRE_REQUESTS_H
#include "kafka/wire/buffer.h"
#include "base/err.h"

enum {
        LC_API_FIND_COORDINATOR = 10,
        LC_API_JOIN_GROUP = 11,
        LC_API_HEARTBEAT = 12,
        LC_API_LEAVE_GROUP = 13,
        LC_API_SYNC_GROUP = 14,
        LC_API_SASL_HANDSHAKE = 17,
        LC_API_API_VERSIONS = 18,
        LC_API_SASL_AUTHENTICATE = 36
};

enum { /* versions used; a broker that lacks them gets the lower one */
       LC_FIND_COORDINATOR_MIN = 1,
       LC_FIND_COORDINATOR_MAX = 2,
       LC_JOIN_GROUP_MIN = 2,
       LC_JOIN_GROUP_MAX = 5,
       LC_SYNC_GROUP_MIN = 1,
       LC_SYNC_GROUP_MAX = 3,
       LC_HEARTBEAT_MIN = 1,
       LC_HEARTBEAT_MAX = 3,
       LC_LEAVE_GROUP_MIN = 0,
       LC_LEAVE_GROUP_MAX = 3
};

enum {
        LC_KE_NONE = 0,
        LC_KE_COORDINATOR_LOAD_IN_PROGRESS = 14,
        LC_KE_COORDINATOR_NOT_AVAILABLE = 15,
        LC_KE_NOT_COORDINATOR = 16,
        LC_KE_ILLEGAL_GENERATION = 22,
        LC_KE_INCONSISTENT_GROUP_PROTOCOL = 23,
        LC_KE_INVALID_GROUP_ID = 24,
        LC_KE_UNKNOWN_MEMBER_ID = 25,
        LC_KE_INVALID_SESSION_TIMEOUT = 26,
        LC_KE_REBALANCE_IN_PROGRESS = 27,
        LC_KE_GROUP_AUTHORIZATION_FAILED = 30,
        LC_KE_CLUSTER_AUTHORIZATION_FAILED = 31,
        LC_KE_UNSUPPORTED_SASL_MECHANISM = 33,
        LC_KE_UNSUPPORTED_VERSION = 35,
        LC_KE_SASL_AUTHENTICATION_FAILED = 58,
        LC_KE_MEMBER_ID_REQUIRED = 79,
        LC_KE_GROUP_MAX_SIZE_REACHED = 81,
        LC_KE_FENCED_INSTANCE_ID = 82
};
/* "NOT_COORDINATOR"; "ERROR_n" for a code that is not listed. `buf` holds 24 bytes. */
const char *lc_kafka_error_name(int code, char buf[24]);

typedef struct lc_coordinator {
        int16_t error;
        int32_t node;
        char *host, *message;
        int port;
} lc_coordinator_t;
void lc_find_coordinator_put(lc_buf_t *b, int16_t version, const char *group);
int lc_find_coordinator_get(lc_wire_reader_t *r, int16_t version, lc_coordinator_t *out, lc_err_t *err);
void lc_coordinator_clear(lc_coordinator_t *c);

typedef struct lc_join_protocol {
        const char *name;
        lc_buf_t metadata;
} lc_join_protocol_t;
typedef struct lc_join_member {
        char *id;
        lc_wire_reader_t metadata; /* points into the answer */
} lc_join_member_t;
typedef struct lc_join_answer {
        int16_t error;
        int32_t generation;
        char *protocol, *leader, *member_id;
        lc_join_member_t *members; /* the leader's answer only */
        size_t nmembers;
} lc_join_answer_t;
void lc_join_put(lc_buf_t *b, int16_t version, const char *group, int32_t session_ms, int32_t rebalance_ms,
                 const char *member_id, const lc_join_protocol_t *protocols, size_t n);
int lc_join_get(lc_wire_reader_t *r, int16_t version, lc_join_answer_t *out, lc_err_t *err);
void lc_join_answer_clear(lc_join_answer_t *a);

/* The assignments follow: lc_wire_put_i32(count), then id and bytes each. */
void lc_sync_put(lc_buf_t *b, int16_t version, const char *group, int32_t generation, const char *member_id);
int lc_sync_get(lc_wire_reader_t *r, int16_t version, int16_t *error, lc_wire_reader_t *assignment,
                lc_err_t *err);
void lc_heartbeat_put(lc_buf_t *b, int16_t version, const char *group, int32_t generation,
                      const char *member_id);
void lc_leave_put(lc_buf_t *b, int16_t version, const char *group, const char *member_id);
/* Heartbeat and LeaveGroup: [throttle from version 1], error. */
int lc_error_get(lc_wire_reader_t *r, int16_t version, int16_t *error, lc_err_t *err);

#endif
