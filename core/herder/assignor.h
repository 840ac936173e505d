/*
 * assignor.h - who runs what: the assignment a group leader computes, as Connect's own leader does
 * (IncrementalCooperativeAssignor for compatible and sessioned, EagerAssignor for default).
 *
 * A pure function of its arguments and of what it remembers of earlier rounds: no clock, no I/O, no log.
 * How the herder uses it, in lc_group_events_t.assign:
 *
 *     snapshot = config store's snapshot (the newest)
 *     work[i]  = { connector name, lc_config_connector_task_count() } for each configured connector
 *     lc_assignor_assign(a, &(lc_assignor_round_t){ .protocol = protocol, .generation = generation,
 *             .last_generation = lc_group_last_generation(g), .config_offset = snapshot->offset,
 *             .work = work, .nwork = n, .members = members, .nmembers = nmembers,
 *             .now_ms = lc_now_ms() }, out);
 *
 * out[i] (zeroed by the caller) gets error, config_offset, assigned, revoked, delay_ms; the group fills in
 * the rest (leader, leader_url, generation, member_id, protocol). Behind another member's config offset
 * everybody gets error 1 (CONFIG_MISMATCH) and no work, nothing is remembered and -1 is returned.
 * The answers are those of Connect's leader, members included that it takes in no particular order (it walks
 * over HashMaps); a member's work counts in natural order, as ours report it (Java members report the newest
 * first, which only decides what of a surplus they keep). With a connector that only some members can run,
 * work is spread as evenly as that allows, see placement.h. Keep the object as long as the worker lives, also
 * while another member leads: it notices by itself when it missed a round.
 *
 * Threads:   assign on the membership thread, owner_url from any: one internal lock, nothing called under it.
 * Ownership: out[i]'s work is the caller's (lc_work_free or lc_assignment_free).
 * Source:    reference group 4.1, 5.
 * Tests:     spec/golden/assignor_spec.lua (the real assignors' answers), spec/unit/assignor_spec.lua,
 *            spec/unit/assignor_can_run_spec.lua
 */
#ifndef LC_HERDER_ASSIGNOR_H
#define LC_HERDER_ASSIGNOR_H
#include "base/buf.h"
#include "kafka/group.h"

typedef struct lc_assignor lc_assignor_t;

typedef struct lc_assignor_work { /* one configured connector and its committed tasks 0..ntasks-1 */
        const char *connector;
        int ntasks;
} lc_assignor_work_t;

typedef struct lc_assignor_round {
        int16_t protocol;        /* 0 eager: everything is dealt anew; 1, 2: incremental cooperative */
        int32_t generation;      /* the one being formed */
        int32_t last_generation; /* the last one this member completed, -1 none: lc_group_last_generation() */
        int64_t config_offset;   /* of the snapshot that `work` comes from */
        const lc_assignor_work_t *work;
        size_t nwork;
        const lc_group_member_t *members; /* at least one */
        size_t nmembers;
        int64_t now_ms; /* monotonic */
        /* Can members[member] run this connector (and so its tasks)? NULL: everybody can. False keeps new
         * work away from it while another member can, and takes work from it that another member can run.
         * When nobody can, work is dealt as if all could: it must show up FAILED somewhere. */
        bool (*can_run)(void *arg, size_t member, const char *connector);
        void *arg;
} lc_assignor_round_t;

/* max_delay_ms: scheduled.rebalance.max.delay.ms; 0 = lost work is given away at once. */
lc_assignor_t *lc_assignor_new(int32_t max_delay_ms);
void lc_assignor_free(lc_assignor_t *a); /* NULL is fine */
int lc_assignor_assign(lc_assignor_t *a, const lc_assignor_round_t *round, lc_assignment_t *out);
/* Leader: REST URL of the member that owns a connector (task -1) or task after the last round, appended to
 * *url. false: nobody, or no round was computed here. lc_assignor_forget_owners() when a rebalance starts
 * ("null while a rejoin is pending"). */
bool lc_assignor_owner_url(lc_assignor_t *a, const char *connector, int32_t task, lc_buf_t *url);
void lc_assignor_forget_owners(lc_assignor_t *a);

#endif
