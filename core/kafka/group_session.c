/* group_session.c - see group_session.h. Log lines are those of Java's AbstractCoordinator. */
#include "kafka/group_session.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "kafka/wire/connect_protocol.h"
#include "kafka/wire/requests.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { LEAVE_MS = 2000, JOIN_GRACE_MS = 5000 };

void lc_session_init(lc_group_session_t *s, const lc_worker_config_t *wc, const lc_net_t *net,
                     const char *url)
{
        const char *id = lc_worker_config_str(wc, "client.id");
        const char *protocol = lc_worker_config_str(wc, "connect.protocol");
        const char *host = strstr(url, "://") ? strstr(url, "://") + 3 : url;

        s->net = net;
        s->hurried = *net;
        s->group = lc_strdup(lc_worker_config_str(wc, "group.id"));
        s->client_id = id && *id ? lc_strdup(id) : lc_asprintf("connect-%.*s", (int)strcspn(host, "/"), host);
        s->session_ms = (int32_t)lc_worker_config_int(wc, "session.timeout.ms");
        s->rebalance_ms = (int32_t)lc_worker_config_int(wc, "rebalance.timeout.ms");
        s->heartbeat_ms = (int32_t)lc_worker_config_int(wc, "heartbeat.interval.ms");
        s->newest = !protocol || !strcasecmp(protocol, "sessioned") ? 2
                    : !strcasecmp(protocol, "compatible")           ? 1
                                                                    : 0;
        s->protocol = s->newest;
        s->member_id = lc_strdup("");
        s->generation = -1;
        /* workers that start together should not all ask the same broker */
        s->next_server = (size_t)lc_now_ms() % net->nservers;
}

void lc_session_free(lc_group_session_t *s)
{
        lc_conn_close(s->conn);
        free(s->group);
        free(s->client_id);
        free(s->host);
        free(s->member_id);
}

void lc_session_drop(lc_group_session_t *s, const char *cause)
{
        if (!s->conn)
                return;
        lc_log(LC_INFO, "GROUP",
               "Group coordinator %s (id: %d rack: null isFenced: false) is unavailable or invalid due to "
               "cause: "
               "%s. Rediscovery will be attempted.",
               lc_conn_name(s->conn), INT32_MAX - s->node, cause);
        lc_conn_close(s->conn);
        s->conn = NULL;
}

void lc_session_reset(lc_group_session_t *s, bool member_id, const char *cause)
{
        lc_log(LC_INFO, "GROUP", "Resetting generation %sdue to: %s", member_id ? "and member id " : "",
               cause);
        s->generation = -1;
        if (member_id) {
                free(s->member_id);
                s->member_id = lc_strdup("");
        }
}

static lc_step_t failed_call(lc_group_session_t *s, const lc_err_t *err)
{
        if (err->code == ECANCELED && err->kind != LC_FATAL) {
                lc_conn_close(s->conn); /* a request is out: its answer would be taken for another one's */
                s->conn = NULL;
                return LC_STEP_STOPPED;
        }
        lc_session_drop(s, err->msg);
        return err->kind == LC_FATAL ? LC_STEP_FATAL : LC_STEP_LOST;
}

/* Errors no retry can help against, with the text of Java's exception. */
static lc_step_t fatal_error(lc_group_session_t *s, int error, lc_err_t *err)
{
        static const struct {
                int code;
                const char *cls, *text;
        } known[] = {
                {LC_KE_INCONSISTENT_GROUP_PROTOCOL, "InconsistentGroupProtocolException",
                 "The group member's supported protocols are incompatible with those of existing members or "
                 "first group member tried to join with empty protocol type or empty protocol list."},
                {LC_KE_INVALID_GROUP_ID, "InvalidGroupIdException", "The group id is invalid."},
                {LC_KE_INVALID_SESSION_TIMEOUT, "InvalidSessionTimeoutException",
                 "The session timeout is not within the range allowed by the broker (as configured by "
                 "group.min.session.timeout.ms and group.max.session.timeout.ms)."},
                {LC_KE_CLUSTER_AUTHORIZATION_FAILED, "ClusterAuthorizationException",
                 "Cluster authorization failed."},
                {LC_KE_UNSUPPORTED_VERSION, "UnsupportedVersionException",
                 "The version of API is not supported."},
                {LC_KE_GROUP_MAX_SIZE_REACHED, "GroupMaxSizeReachedException",
                 "The group has reached its maximum size."},
                {LC_KE_FENCED_INSTANCE_ID, "FencedInstanceIdException",
                 "The broker rejected this static consumer since another consumer with the same "
                 "group.instance.id has registered with a different member.id."},
        };
        static const char *const group_cls = "org.apache.kafka.common.errors.GroupAuthorizationException";

        if (error == LC_KE_GROUP_AUTHORIZATION_FAILED) {
                lc_err_set_cls(err, LC_FATAL, error, group_cls, "Not authorized to access group: %s",
                               s->group);
                return LC_STEP_FATAL;
        }
        for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
                if (known[i].code == error) {
                        lc_err_set_cls(err, LC_FATAL, error, LC_CLS_CONNECT, "%s: %s", known[i].cls,
                                       known[i].text);
                        if (error == LC_KE_INVALID_SESSION_TIMEOUT) /* Java's text does not name our key */
                                lc_log(LC_ERROR, "GROUP", "The broker refuses session.timeout.ms=%d",
                                       (int)s->session_ms);
                        return LC_STEP_FATAL;
                }
        return LC_STEP_OK;
}

/* What a group error means in any request but FindCoordinator. `api` is Java's name of the request. */
static lc_step_t group_error(lc_group_session_t *s, int error, const char *api, lc_err_t *err)
{
        char buf[24], cause[160];
        const char *name = lc_kafka_error_name(error, buf);

        if (!error)
                return LC_STEP_OK;
        if (fatal_error(s, error, err) == LC_STEP_FATAL)
                return LC_STEP_FATAL;
        lc_err_set(err, LC_RETRIABLE, error, "%s failed: %s", api, name);
        snprintf(cause, sizeof(cause), "encountered %s from %s response", name, api);
        switch (error) {
        case LC_KE_NOT_COORDINATOR:
        case LC_KE_COORDINATOR_NOT_AVAILABLE:
                lc_session_drop(s, cause);
                return LC_STEP_LOST;
        case LC_KE_UNKNOWN_MEMBER_ID:
                lc_session_reset(s, true, cause);
                return LC_STEP_REJOIN;
        case LC_KE_ILLEGAL_GENERATION:
                lc_session_reset(s, false, cause);
                return LC_STEP_REJOIN;
        case LC_KE_REBALANCE_IN_PROGRESS:
                return LC_STEP_REJOIN;
        default:
                return LC_STEP_RETRY;
        }
}

static int no_version(lc_group_session_t *s, const char *api, lc_err_t *err)
{
        return lc_err_set(err, LC_FATAL, LC_KE_UNSUPPORTED_VERSION,
                          "The broker %s speaks no version of %s that this worker knows",
                          lc_conn_name(s->conn), api);
}

/* ---- finding the coordinator ---- */

static lc_step_t open_failed(const lc_err_t *err)
{
        if (err->kind == LC_FATAL)
                return LC_STEP_FATAL;
        return err->code == ECANCELED ? LC_STEP_STOPPED : LC_STEP_LOST;
}

lc_step_t lc_session_find(lc_group_session_t *s, int64_t limit_ms, lc_err_t *err)
{
        const lc_net_server_t *server = &s->net->servers[s->next_server % s->net->nservers];
        const lc_net_t *net = s->net;
        lc_buf_t body = LC_BUF_INIT;
        lc_coordinator_t found = {0};
        lc_wire_reader_t r;
        lc_step_t step;
        lc_conn_t *c;
        int16_t version;

        if (limit_ms > 0) {
                net = &s->hurried;
                s->hurried.connect_timeout_ms =
                        limit_ms < s->net->connect_timeout_ms ? limit_ms : s->net->connect_timeout_ms;
                s->hurried.request_timeout_ms =
                        limit_ms < s->net->request_timeout_ms ? limit_ms : s->net->request_timeout_ms;
        }
        s->next_server++;
        c = lc_conn_open(net, s->client_id, server->host, server->port, &s->wait, err);
        if (!c)
                return open_failed(err);
        s->conn = c;
        version =
                lc_conn_version(c, LC_API_FIND_COORDINATOR, LC_FIND_COORDINATOR_MIN, LC_FIND_COORDINATOR_MAX);
        if (version < 0) {
                no_version(s, "FindCoordinator", err);
                step = LC_STEP_FATAL;
                goto done;
        }
        lc_find_coordinator_put(&body, version, s->group);
        if (lc_conn_call(c, LC_API_FIND_COORDINATOR, version, &body, net->request_timeout_ms, &r, err) < 0 ||
            lc_find_coordinator_get(&r, version, &found, err) < 0) {
                step = open_failed(err);
                goto done;
        }
        if (found.error) {
                char buf[24];

                step = fatal_error(s, found.error, err) == LC_STEP_FATAL ? LC_STEP_FATAL : LC_STEP_LOST;
                lc_err_set(err, LC_RETRIABLE, found.error, "Group coordinator lookup failed: %s%s%s",
                           lc_kafka_error_name(found.error, buf), found.message ? ": " : "",
                           found.message ? found.message : "");
                goto done;
        }
        free(s->host);
        s->host = lc_strdup(found.host);
        s->port = found.port;
        s->node = found.node;
        if (!lc_conn_is(c, found.host, found.port)) {
                lc_conn_close(c);
                s->conn = NULL;
                s->conn = lc_conn_open(net, s->client_id, found.host, found.port, &s->wait, err);
                if (!s->conn) {
                        step = open_failed(err);
                        goto done;
                }
        }
        step = LC_STEP_OK;
        lc_log(LC_INFO, "GROUP", "Discovered group coordinator %s:%d (id: %d rack: null isFenced: false)",
               s->host, s->port, INT32_MAX - s->node);
done:
        if (step != LC_STEP_OK && s->conn) {
                lc_conn_close(s->conn);
                s->conn = NULL;
        }
        lc_buf_free(&body);
        lc_coordinator_clear(&found);
        return step;
}

/* ---- joining ---- */

/* The members whose metadata can be read, in the answer's order: their number. */
static size_t read_members(lc_group_session_t *s, const lc_join_answer_t *answer, lc_connect_metadata_t *meta,
                           lc_group_member_t *members)
{
        size_t n = 0;

        for (size_t i = 0; i < answer->nmembers; i++) {
                const lc_join_member_t *m = &answer->members[i];
                lc_err_t err = {0};

                /* one broken member must not take the group down; work given to it would run nowhere */
                if (lc_connect_metadata_decode(m->metadata.p, lc_wire_left(&m->metadata), &meta[n], &err) <
                    0) {
                        lc_log(LC_ERROR, "GROUP", "Member %s gets no work: %s", m->id, err.msg);
                        continue;
                }
                members[n].id = m->id;
                members[n].url = meta[n].url;
                members[n].config_offset = meta[n].config_offset;
                if (s->protocol > 0)
                        members[n].allocation = meta[n].allocation.assigned; /* lent */
                n++;
        }
        return n;
}

/* The leader's part: decode what the members reported, have the assignment computed, append it. */
static int put_assignments(lc_group_session_t *s, const lc_group_join_t *join, const lc_join_answer_t *answer,
                           lc_buf_t *body)
{
        size_t all = answer->nmembers, n, at = 0;
        lc_connect_metadata_t *meta = lc_calloc(all + 1, sizeof(*meta));
        lc_group_member_t *members = lc_calloc(all + 1, sizeof(*members));
        lc_assignment_t *out = lc_calloc(all + 1, sizeof(*out));
        const char *leader_url = join->url;
        int64_t max = -1;
        int rc = 0;

        n = read_members(s, answer, meta, members);
        for (size_t i = 0; i < n; i++) {
                if (members[i].config_offset > max)
                        max = members[i].config_offset;
                if (!strcmp(members[i].id, answer->leader))
                        leader_url = members[i].url;
        }
        if (join->events->assign(join->arg, s->protocol, answer->generation, members, n, out) < 0)
                for (size_t i = 0; i < n; i++) {
                        lc_assignment_clear(&out[i]);
                        out[i].error = 1; /* CONFIG_MISMATCH */
                        out[i].config_offset = max;
                }
        lc_wire_put_i32(body, (int32_t)all);
        for (size_t i = 0; i < all; i++) {
                lc_assignment_t none = {.config_offset = max}, *a = &none;
                lc_buf_t bytes = LC_BUF_INIT;

                if (at < n && members[at].id == answer->members[i].id)
                        a = &out[at++];
                if (!a->leader)
                        a->leader = lc_strdup(answer->leader);
                if (!a->leader_url)
                        a->leader_url = lc_strdup(leader_url);
                rc = lc_connect_assignment_encode(&bytes, s->protocol, a) < 0 ? -1 : rc;
                lc_wire_put_str(body, answer->members[i].id);
                lc_wire_put_bytes(body, bytes.p, bytes.len);
                lc_buf_free(&bytes);
                lc_assignment_clear(a);
        }
        for (size_t i = 0; i < n; i++)
                lc_connect_metadata_clear(&meta[i]);
        free(meta);
        free(members);
        free(out);
        return rc;
}

static const char *generation_text(const lc_group_session_t *s, char *buf, size_t size)
{
        snprintf(buf, size, "Generation{generationId=%d, memberId='%s', protocol='%s'}", s->generation,
                 s->member_id, lc_connect_protocol_name(s->protocol));
        return buf;
}

static lc_step_t sync_group(lc_group_session_t *s, const lc_group_join_t *join,
                            const lc_join_answer_t *answer, lc_assignment_t **out, lc_err_t *err)
{
        int16_t version = lc_conn_version(s->conn, LC_API_SYNC_GROUP, LC_SYNC_GROUP_MIN, LC_SYNC_GROUP_MAX),
                error;
        lc_buf_t body = LC_BUF_INIT;
        lc_wire_reader_t r, bytes;
        lc_assignment_t got;
        lc_step_t step;
        char text[320];
        int rc = 0;

        if (version < 0) {
                no_version(s, "SyncGroup", err);
                return LC_STEP_FATAL;
        }
        lc_sync_put(&body, version, s->group, s->generation, s->member_id);
        if (!strcmp(answer->leader, s->member_id))
                rc = put_assignments(s, join, answer, &body);
        else
                lc_wire_put_i32(&body, 0);
        if (rc < 0 || !lc_buf_ok(&body)) {
                lc_buf_free(&body);
                lc_err_set(err, LC_RETRIABLE, ENOMEM, "The assignment cannot be written");
                return LC_STEP_RETRY;
        }
        rc = lc_conn_call(s->conn, LC_API_SYNC_GROUP, version, &body,
                          (int64_t)s->rebalance_ms + JOIN_GRACE_MS, &r, err);
        lc_buf_free(&body);
        if (rc < 0 || lc_sync_get(&r, version, &error, &bytes, err) < 0)
                return failed_call(s, err);
        step = group_error(s, error, "SyncGroup", err);
        if (step != LC_STEP_OK) {
                lc_log(LC_INFO, "GROUP", "%s. Need to re-join the group", err->msg);
                return step;
        }
        if (lc_connect_assignment_decode(bytes.p, lc_wire_left(&bytes), &got, err) < 0) {
                lc_log(LC_WARN, "GROUP", "Leader %s sent no usable assignment: %s", answer->leader, err->msg);
                return LC_STEP_RETRY;
        }
        lc_log(LC_INFO, "GROUP", "Successfully synced group in generation %s",
               generation_text(s, text, sizeof(text)));
        got.protocol = s->protocol;
        got.generation = s->generation;
        got.member_id = lc_strdup(s->member_id);
        got.is_leader = !strcmp(got.leader, s->member_id);
        *out = lc_malloc(sizeof(**out));
        **out = got;
        return LC_STEP_OK;
}

/* One JoinGroup. The answer's strings are the caller's. */
static lc_step_t join_group(lc_group_session_t *s, const lc_group_join_t *join, lc_join_answer_t *answer,
                            lc_err_t *err)
{
        int16_t version = lc_conn_version(s->conn, LC_API_JOIN_GROUP, LC_JOIN_GROUP_MIN, LC_JOIN_GROUP_MAX);
        lc_join_protocol_t offered[3] = {{NULL, LC_BUF_INIT}, {NULL, LC_BUF_INIT}, {NULL, LC_BUF_INIT}};
        int64_t timeout = (int64_t)s->rebalance_ms + JOIN_GRACE_MS;
        lc_buf_t body = LC_BUF_INIT;
        lc_wire_reader_t r;
        size_t n = 0;
        int rc = 0;

        if (version < 0) {
                no_version(s, "JoinGroup", err);
                return LC_STEP_FATAL;
        }
        for (int16_t v = s->newest; v >= 0; v--, n++) {
                offered[n].name = lc_connect_protocol_name(v);
                if (lc_connect_metadata_encode(&offered[n].metadata, v, join->url, join->config_offset,
                                               join->allocation) < 0)
                        rc = lc_err_set(err, LC_RETRIABLE, ENOMEM, "The member's metadata cannot be written");
        }
        lc_join_put(&body, version, s->group, s->session_ms, s->rebalance_ms, s->member_id, offered, n);
        for (size_t i = 0; i < n; i++)
                lc_buf_free(&offered[i].metadata);
        if (rc == 0 && timeout < s->net->request_timeout_ms)
                timeout = s->net->request_timeout_ms;
        if (rc == 0)
                rc = lc_conn_call(s->conn, LC_API_JOIN_GROUP, version, &body, timeout, &r, err);
        lc_buf_free(&body);
        if (rc < 0 || lc_join_get(&r, version, answer, err) < 0)
                return failed_call(s, err);
        return LC_STEP_OK;
}

static void take_member_id(lc_group_session_t *s, const char *id)
{
        free(s->member_id);
        s->member_id = lc_strdup(id);
}

lc_step_t lc_session_join(lc_group_session_t *s, const lc_group_join_t *join, lc_assignment_t **out,
                          lc_err_t *err)
{
        lc_join_answer_t answer = {0};
        lc_step_t step;
        char text[320];

        lc_log(LC_INFO, "GROUP", "(Re-)joining group");
        step = join_group(s, join, &answer, err);
        if (step == LC_STEP_OK && answer.error == LC_KE_MEMBER_ID_REQUIRED && answer.member_id &&
            *answer.member_id) {
                lc_log(LC_INFO, "GROUP",
                       "Request joining group due to: need to re-join with the given member-id: %s",
                       answer.member_id);
                take_member_id(s, answer.member_id);
                lc_join_answer_clear(&answer);
                step = join_group(s, join, &answer, err);
        }
        if (step != LC_STEP_OK)
                goto done;
        if (answer.error) {
                step = group_error(s, answer.error, "JoinGroup", err);
                if (step != LC_STEP_LOST)
                        lc_log(LC_INFO, "GROUP", "%s. Trying again", err->msg);
                if (step == LC_STEP_REJOIN)
                        step = LC_STEP_RETRY; /* not at once: the broker did not make it wait */
                goto done;
        }
        s->protocol = lc_connect_protocol_version(answer.protocol);
        if (s->protocol < 0) {
                lc_err_set(err, LC_FATAL, LC_KE_INCONSISTENT_GROUP_PROTOCOL,
                           "The group chose protocol '%s', which is none of Connect's", answer.protocol);
                s->protocol = s->newest;
                step = LC_STEP_FATAL;
                goto done;
        }
        take_member_id(s, answer.member_id);
        s->generation = answer.generation;
        lc_log(LC_INFO, "GROUP", "Successfully joined group with generation %s",
               generation_text(s, text, sizeof(text)));
        step = sync_group(s, join, &answer, out, err);
done:
        lc_join_answer_clear(&answer);
        return step;
}

/* ---- staying and leaving ---- */

lc_step_t lc_session_heartbeat(lc_group_session_t *s, int64_t timeout_ms, lc_err_t *err)
{
        int16_t version = lc_conn_version(s->conn, LC_API_HEARTBEAT, LC_HEARTBEAT_MIN, LC_HEARTBEAT_MAX),
                error;
        lc_buf_t body = LC_BUF_INIT;
        lc_wire_reader_t r;
        int rc;

        if (version < 0) {
                no_version(s, "Heartbeat", err);
                return LC_STEP_FATAL;
        }
        lc_heartbeat_put(&body, version, s->group, s->generation, s->member_id);
        rc = lc_conn_call(s->conn, LC_API_HEARTBEAT, version, &body, timeout_ms, &r, err);
        lc_buf_free(&body);
        if (rc < 0 && err->code == ETIMEDOUT)
                snprintf(err->msg, sizeof(err->msg),
                         "session timed out without receiving a heartbeat response");
        if (rc < 0 || lc_error_get(&r, version, &error, err) < 0)
                return failed_call(s, err);
        return group_error(s, error, "Heartbeat", err);
}

void lc_session_leave(lc_group_session_t *s, const char *reason)
{
        int64_t end = lc_now_ms() + LEAVE_MS;
        lc_buf_t body = LC_BUF_INIT;
        lc_wire_reader_t r;
        lc_err_t err = {0};
        int16_t version, error = 0;
        int rc = -1;

        if (!*s->member_id || !s->host)
                return;
        lc_log(LC_INFO, "GROUP", "Member %s sending LeaveGroup request to coordinator %s:%d due to %s",
               s->member_id, s->host, s->port, reason);
        if (!s->conn) {
                s->hurried.connect_timeout_ms = LEAVE_MS / 2;
                s->hurried.request_timeout_ms = LEAVE_MS / 2;
                s->conn = lc_conn_open(&s->hurried, s->client_id, s->host, s->port, &s->wait, &err);
        }
        if (s->conn) {
                int64_t left = end - lc_now_ms();

                version =
                        lc_conn_version(s->conn, LC_API_LEAVE_GROUP, LC_LEAVE_GROUP_MIN, LC_LEAVE_GROUP_MAX);
                if (version == 2)
                        version = 1; /* 2 adds nothing */
                lc_leave_put(&body, version, s->group, s->member_id);
                rc = lc_conn_call(s->conn, LC_API_LEAVE_GROUP, version, &body, left > 1 ? left : 1, &r, &err);
                if (rc == 0)
                        rc = lc_error_get(&r, version, &error, &err);
        }
        if (rc < 0) {
                lc_log(LC_WARN, "GROUP", "LeaveGroup request failed: %s; the session times out by itself",
                       err.msg);
                lc_conn_close(s->conn);
                s->conn = NULL;
        } else if (error) {
                char buf[24];
                lc_log(LC_INFO, "GROUP", "LeaveGroup request failed with error: %s",
                       lc_kafka_error_name(error, buf));
        }
        lc_buf_free(&body);
        lc_session_reset(s, true, "consumer pro-actively leaving the group");
}
