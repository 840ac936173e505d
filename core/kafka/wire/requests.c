/* requests.c - see requests.h. */
#include "kafka/wire/requests.h"
#include "base/alloc.h"
#include <stdio.h>
#include <stdlib.h>

const char *lc_kafka_error_name(int code, char buf[24])
{
        static const struct {
                int code;
                const char *name;
        } names[] = {
                {-1, "UNKNOWN_SERVER_ERROR"},
                {LC_KE_NONE, "NONE"},
                {LC_KE_COORDINATOR_LOAD_IN_PROGRESS, "COORDINATOR_LOAD_IN_PROGRESS"},
                {LC_KE_COORDINATOR_NOT_AVAILABLE, "COORDINATOR_NOT_AVAILABLE"},
                {LC_KE_NOT_COORDINATOR, "NOT_COORDINATOR"},
                {LC_KE_ILLEGAL_GENERATION, "ILLEGAL_GENERATION"},
                {LC_KE_INCONSISTENT_GROUP_PROTOCOL, "INCONSISTENT_GROUP_PROTOCOL"},
                {LC_KE_INVALID_GROUP_ID, "INVALID_GROUP_ID"},
                {LC_KE_UNKNOWN_MEMBER_ID, "UNKNOWN_MEMBER_ID"},
                {LC_KE_INVALID_SESSION_TIMEOUT, "INVALID_SESSION_TIMEOUT"},
                {LC_KE_REBALANCE_IN_PROGRESS, "REBALANCE_IN_PROGRESS"},
                {LC_KE_GROUP_AUTHORIZATION_FAILED, "GROUP_AUTHORIZATION_FAILED"},
                {LC_KE_CLUSTER_AUTHORIZATION_FAILED, "CLUSTER_AUTHORIZATION_FAILED"},
                {LC_KE_UNSUPPORTED_SASL_MECHANISM, "UNSUPPORTED_SASL_MECHANISM"},
                {LC_KE_UNSUPPORTED_VERSION, "UNSUPPORTED_VERSION"},
                {LC_KE_SASL_AUTHENTICATION_FAILED, "SASL_AUTHENTICATION_FAILED"},
                {LC_KE_MEMBER_ID_REQUIRED, "MEMBER_ID_REQUIRED"},
                {LC_KE_GROUP_MAX_SIZE_REACHED, "GROUP_MAX_SIZE_REACHED"},
                {LC_KE_FENCED_INSTANCE_ID, "FENCED_INSTANCE_ID"},
        };

        for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
                if (names[i].code == code)
                        return names[i].name;
        snprintf(buf, 24, "ERROR_%d", code);
        return buf;
}

static int unreadable(lc_err_t *err, const char *what)
{
        return lc_err_set(err, LC_RETRIABLE, 0, "Malformed %s response", what);
}

void lc_find_coordinator_put(lc_buf_t *b, int16_t version, const char *group)
{
        lc_wire_put_str(b, group);
        if (version >= 1)
                lc_wire_put_i8(b, 0); /* a group, not a transaction */
}

int lc_find_coordinator_get(lc_wire_reader_t *r, int16_t version, lc_coordinator_t *out, lc_err_t *err)
{
        memset(out, 0, sizeof(*out));
        if (version >= 1)
                lc_wire_i32(r);
        out->error = lc_wire_i16(r);
        if (version >= 1)
                out->message = lc_wire_str(r);
        out->node = lc_wire_i32(r);
        out->host = lc_wire_str(r);
        out->port = lc_wire_i32(r);
        if (!r->bad && (out->error || (out->host && *out->host && out->port > 0 && out->port < 65536)))
                return 0;
        lc_coordinator_clear(out);
        return unreadable(err, "FindCoordinator");
}

void lc_coordinator_clear(lc_coordinator_t *c)
{
        free(c->host);
        free(c->message);
        memset(c, 0, sizeof(*c));
}

void lc_join_put(lc_buf_t *b, int16_t version, const char *group, int32_t session_ms, int32_t rebalance_ms,
                 const char *member_id, const lc_join_protocol_t *protocols, size_t n)
{
        lc_wire_put_str(b, group);
        lc_wire_put_i32(b, session_ms);
        if (version >= 1)
                lc_wire_put_i32(b, rebalance_ms);
        lc_wire_put_str(b, member_id);
        if (version >= 5)
                lc_wire_put_str(b, NULL); /* never a static member */
        lc_wire_put_str(b, "connect");
        lc_wire_put_i32(b, (int32_t)n);
        for (size_t i = 0; i < n; i++) {
                lc_wire_put_str(b, protocols[i].name);
                lc_wire_put_bytes(b, protocols[i].metadata.p, protocols[i].metadata.len);
        }
}

int lc_join_get(lc_wire_reader_t *r, int16_t version, lc_join_answer_t *out, lc_err_t *err)
{
        int32_t n;

        memset(out, 0, sizeof(*out));
        if (version >= 2)
                lc_wire_i32(r);
        out->error = lc_wire_i16(r);
        out->generation = lc_wire_i32(r);
        out->protocol = lc_wire_str(r);
        out->leader = lc_wire_str(r);
        out->member_id = lc_wire_str(r);
        n = lc_wire_count(r, version >= 5 ? 8 : 6);
        if (!r->bad && n > 0)
                out->members = lc_calloc((size_t)n, sizeof(*out->members));
        for (int32_t i = 0; i < n && !r->bad; i++) {
                lc_join_member_t *m = &out->members[out->nmembers++];
                m->id = lc_wire_str(r);
                if (version >= 5)
                        free(lc_wire_str(r));
                m->metadata = lc_wire_bytes(r);
                if (!m->id)
                        r->bad = true;
        }
        if (!r->bad && (out->error || (out->protocol && out->leader && out->member_id)))
                return 0;
        lc_join_answer_clear(out);
        return unreadable(err, "JoinGroup");
}

void lc_join_answer_clear(lc_join_answer_t *a)
{
        for (size_t i = 0; i < a->nmembers; i++)
                free(a->members[i].id);
        free(a->members);
        free(a->protocol);
        free(a->leader);
        free(a->member_id);
        memset(a, 0, sizeof(*a));
}

void lc_heartbeat_put(lc_buf_t *b, int16_t version, const char *group, int32_t generation,
                      const char *member_id)
{
        lc_wire_put_str(b, group);
        lc_wire_put_i32(b, generation);
        lc_wire_put_str(b, member_id);
        if (version >= 3)
                lc_wire_put_str(b, NULL);
}

void lc_sync_put(lc_buf_t *b, int16_t version, const char *group, int32_t generation, const char *member_id)
{
        lc_heartbeat_put(b, version, group, generation, member_id); /* begins alike */
}

int lc_sync_get(lc_wire_reader_t *r, int16_t version, int16_t *error, lc_wire_reader_t *assignment,
                lc_err_t *err)
{
        if (version >= 1)
                lc_wire_i32(r);
        *error = lc_wire_i16(r);
        *assignment = lc_wire_bytes(r);
        return r->bad ? unreadable(err, "SyncGroup") : 0;
}

void lc_leave_put(lc_buf_t *b, int16_t version, const char *group, const char *member_id)
{
        lc_wire_put_str(b, group);
        if (version >= 3) {
                lc_wire_put_i32(b, 1);
                lc_wire_put_str(b, member_id);
                lc_wire_put_str(b, NULL);
        } else {
                lc_wire_put_str(b, member_id);
        }
}

int lc_error_get(lc_wire_reader_t *r, int16_t version, int16_t *error, lc_err_t *err)
{
        if (version >= 1)
                lc_wire_i32(r);
        *error = lc_wire_i16(r);
        return r->bad ? unreadable(err, "group") : 0;
}
