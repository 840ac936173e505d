/*
 * group.c - see group.h: the membership thread decides when to find, join, heartbeat and leave.
 *
 * Threads:   public functions set wishes under `lock` and ring `waker`; the thread looks at all wishes before
 *            it waits, so a cleared ring loses nothing. What stands behind "thread only" has no lock.
 * Lock:      `lock`, a leaf: nothing is called under it.
 *
 * The lease (lc_group_may_work): `work_until` is the time of asking plus session.timeout.ms, moved on by
 * every answer that says "you are a member of your generation", and in slices while a JoinGroup or SyncGroup
 * is out (the broker keeps a member that waits there). It runs out by itself. After a loss it is withheld
 * until the herder has applied the next assignment: by then whatever ran before has been stopped.
 */
#include "kafka/group.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/waker.h"
#include "kafka/group_session.h"
#include "kafka/wire/connect_protocol.h"
#include "kafka/wire/requests.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
        LONGEST_WAIT_MS = 60000,
        REPEAT_LOG_MS = 30000,
        STEADY_ATTEMPTS = 20,
        LIVELY_MS = 3000, /* after a rebalance another one often follows: work that was revoked is dealt */
        LIVELY_HEARTBEAT_MS = 100,
        LATE_MS = 1000 /* a wait that took this much longer: the process was stopped */
};

struct lc_group {
        lc_net_t *net;
        char *url;
        lc_group_events_t events;
        void *arg;
        lc_waker_t waker;
        pthread_t thread;
        bool started;
        atomic_llong last_tick;
        atomic_int last_generation;
        atomic_bool hung; /* left because the herder was silent */
        atomic_llong work_until;
        atomic_int withheld; /* generation whose lc_group_assignment_done() gives the lease; -1 none */

        pthread_mutex_t lock; /* the wishes */
        bool stop, leave, rejoin;
        int leave_backoff_ms;
        char *leave_reason, *rejoin_reason;
        int64_t config_offset;
        lc_work_t allocation;
        int32_t done_generation;

        /* thread only */
        lc_group_session_t s;
        bool leaving, failed;
        bool need_join, prepared;
        bool owner;      /* assigned something by a generation that was not lost since */
        bool must_apply; /* the next generation's lease comes when its assignment was applied */
        bool joining;    /* a JoinGroup or SyncGroup is out */
        int64_t lively_until;
        int64_t left_at;    /* LeaveGroup was sent and the work was kept; 0 no */
        bool must_be_empty; /* join only when the herder reported that nothing runs */
        int64_t empty_since;
        int32_t pending_generation; /* delivered, the herder is not done; -1 none */
        int64_t delivered_at;
        bool assignment_error; /* the last one asks for another round */
        lc_assignment_t *head; /* the last assignment without its work, NULL none */
        bool lost_said;
        int64_t unknown_since; /* coordinator; 0 while it is known */
        int64_t next_heartbeat, last_contact;
        int64_t not_before, away_until;
        int attempts;
        int64_t last_warning;
        char last_text[160];
};

/* ---- for the herder ---- */

static bool cancelled(void *arg)
{
        lc_group_t *g = arg;
        bool yes;

        if (g->leaving)
                return false; /* on the way out, bounded by a deadline of its own */
        pthread_mutex_lock(&g->lock);
        yes = g->stop || g->leave;
        pthread_mutex_unlock(&g->lock);
        return yes;
}

/* ---- the lease ---- */

bool lc_group_may_work(const lc_group_t *g)
{
        lc_group_t *m = (lc_group_t *)g;

        return lc_now_ms() < atomic_load(&m->work_until) && atomic_load(&m->withheld) == -1;
}

/* The coordinator answered what was asked at `asked`. */
static void renew_lease(lc_group_t *g, int64_t asked)
{
        if (g->owner && asked + g->s.session_ms > atomic_load(&g->work_until))
                atomic_store(&g->work_until, asked + g->s.session_ms);
}

/* No more of it: what runs may be stopped in good order until it runs out, and what was given up does not
 * start to write again with the next generation. */
static void stop_renewing(lc_group_t *g)
{
        g->owner = false;
        g->must_apply = true;
}

/* At once. */
static void end_lease(lc_group_t *g)
{
        atomic_store(&g->work_until, 0);
        stop_renewing(g);
}

/* While an answer is waited for. A gap as long as a session means that this process was stopped. */
static void on_slice(void *arg)
{
        lc_group_t *g = arg;
        int64_t now = lc_now_ms();

        if (g->joining && now < atomic_load(&g->work_until))
                renew_lease(g, now);
}

lc_group_t *lc_group_new(const lc_worker_config_t *wc, const char *url, const lc_group_events_t *events,
                         void *arg, lc_err_t *err)
{
        lc_group_t *g = lc_calloc(1, sizeof(*g));

        g->net = lc_net_new(wc, err);
        if (!g->net || lc_waker_init(&g->waker) < 0) {
                if (g->net)
                        lc_err_set(err, LC_FATAL, errno, "eventfd: %s", strerror(errno));
                lc_net_free(g->net);
                free(g);
                return NULL;
        }
        g->url = lc_strdup(url);
        g->events = *events;
        g->arg = arg;
        g->config_offset = -1;
        g->done_generation = g->pending_generation = -1;
        atomic_store(&g->last_generation, -1);
        atomic_store(&g->withheld, -1);
        pthread_mutex_init(&g->lock, NULL);
        g->s.wait = (lc_conn_wait_t){&g->waker, cancelled, g, on_slice};
        lc_session_init(&g->s, wc, g->net, url);
        g->need_join = true;
        return g;
}

static void touch(lc_group_t *g)
{
        atomic_store(&g->last_tick, lc_now_ms());
        if (atomic_load(&g->hung))
                lc_waker_wake(&g->waker);
}

void lc_group_tick(lc_group_t *g)
{
        touch(g);
}

void lc_group_set_state(lc_group_t *g, int64_t config_offset, const lc_work_t *allocation)
{
        touch(g);
        pthread_mutex_lock(&g->lock);
        g->config_offset = config_offset;
        lc_work_copy(&g->allocation, allocation);
        pthread_mutex_unlock(&g->lock);
        lc_waker_wake(&g->waker);
}

void lc_group_rejoin(lc_group_t *g, const char *reason)
{
        touch(g);
        pthread_mutex_lock(&g->lock);
        g->rejoin = true;
        free(g->rejoin_reason);
        g->rejoin_reason = lc_strdup(reason ? reason : "the herder asked for it");
        pthread_mutex_unlock(&g->lock);
        lc_waker_wake(&g->waker);
}

void lc_group_assignment_done(lc_group_t *g, int32_t generation)
{
        touch(g);
        pthread_mutex_lock(&g->lock);
        g->done_generation = generation;
        if (atomic_load(&g->withheld) == generation)
                atomic_store(&g->withheld, -1);
        pthread_mutex_unlock(&g->lock);
        lc_waker_wake(&g->waker);
}

void lc_group_leave(lc_group_t *g, int backoff_ms, const char *reason)
{
        touch(g);
        pthread_mutex_lock(&g->lock);
        g->leave = true;
        g->leave_backoff_ms = backoff_ms;
        free(g->leave_reason);
        g->leave_reason = lc_strdup(reason ? reason : "the herder asked for it");
        pthread_mutex_unlock(&g->lock);
        lc_waker_wake(&g->waker);
}

int32_t lc_group_last_generation(const lc_group_t *g)
{
        return atomic_load(&((lc_group_t *)g)->last_generation);
}

/* ---- the thread ---- */

/* Say it when it is new, or again after a while. */
static void warn(lc_group_t *g, const char *text)
{
        int64_t now = lc_now_ms();

        if (!strcmp(g->last_text, text) && now - g->last_warning < REPEAT_LOG_MS)
                return;
        snprintf(g->last_text, sizeof(g->last_text), "%s", text);
        g->last_warning = now;
        lc_log(LC_WARN, "GROUP", "Waiting for the coordinator of group %s: %s", g->s.group, text);
}

static void back_off(lc_group_t *g)
{
        int64_t ms = g->net->retry_backoff_ms > 10 ? g->net->retry_backoff_ms : 10; /* 0 would spin */

        /* a fresh cluster takes a second or two to make a coordinator: not slower before that */
        for (int i = STEADY_ATTEMPTS; i < g->attempts && ms < g->net->retry_backoff_max_ms; i++)
                ms *= 2;
        if (ms > g->net->retry_backoff_max_ms && g->net->retry_backoff_max_ms >= 10)
                ms = g->net->retry_backoff_max_ms;
        if (g->attempts < STEADY_ATTEMPTS + 30)
                g->attempts++;
        /* up to a fifth more or less, so that workers do not knock together */
        if (ms >= 10)
                ms += (lc_now_ms() * 7919 % 1000 - 500) * ms / 2500;
        g->not_before = lc_now_ms() + ms;
}

static void need_join(lc_group_t *g, const char *reason)
{
        if (!g->need_join && reason)
                lc_log(LC_INFO, "GROUP", "Request joining group due to: %s", reason);
        g->need_join = true;
}

static void fail(lc_group_t *g, const lc_err_t *err)
{
        g->failed = true;
        lc_log(LC_ERROR, "GROUP", "Group membership failed: %s", err->msg);
        if (g->s.conn)
                lc_session_drop(&g->s, "fatal error");
        g->events.error(g->arg, err);
}

/* The first search after a loss is at once, unless the broker said that the time has not come. */
static void coordinator_gone(lc_group_t *g, bool told)
{
        if (!g->unknown_since)
                g->unknown_since = lc_now_ms();
        if (told || g->attempts)
                back_off(g);
        else
                g->attempts = 1;
}

/* Others may run this member's work by now: all of it has to end before it joins again, and is then not
 * reported. (Java reports what it still runs and lets the leader revoke what is there twice.) */
static void give_up_work(lc_group_t *g)
{
        bool failed;

        g->left_at = 0;
        if (!g->head)
                return;
        failed = g->head->error != 0;
        lc_assignment_free(g->head);
        g->head = NULL;
        g->must_be_empty = true;
        g->empty_since = lc_now_ms();
        g->pending_generation = -1;
        if (!failed)
                lc_log(LC_INFO, "GROUP",
                       "Revoking previous assignment to avoid running tasks while not being a member of the "
                       "group");
        g->events.coordinator_lost(g->arg);
}

/* Does this answer say that the broker has put the member out of the group? */
static bool says_put_out(const lc_group_t *g, lc_step_t step, int code)
{
        if (step != LC_STEP_REJOIN && step != LC_STEP_RETRY)
                return false;
        return code == LC_KE_UNKNOWN_MEMBER_ID || (code == LC_KE_ILLEGAL_GENERATION && !lc_group_may_work(g));
}

/* What every step's result has in common. */
static void after_step(lc_group_t *g, lc_step_t step, const lc_err_t *err)
{
        if (says_put_out(g, step, err->code)) {
                if (g->head)
                        lc_log(LC_WARN, "GROUP",
                               "This member was put out of the group (%s): it was silent for longer than "
                               "session.timeout.ms (%d ms), or its coordinator has lost it",
                               err->msg, g->s.session_ms);
                end_lease(g);
                give_up_work(g);
        }
        switch (step) {
        case LC_STEP_OK:
                g->attempts = 0;
                break;
        case LC_STEP_RETRY:
                back_off(g);
                break;
        case LC_STEP_REJOIN:
                need_join(g, err->code == LC_KE_REBALANCE_IN_PROGRESS ? "group is already rebalancing"
                                                                      : err->msg);
                break;
        case LC_STEP_LOST:
                coordinator_gone(g, err->code == LC_KE_COORDINATOR_NOT_AVAILABLE ||
                                            err->code == LC_KE_NOT_COORDINATOR);
                break;
        case LC_STEP_STOPPED:
                break;
        case LC_STEP_FATAL:
                fail(g, err);
                break;
        }
}

/* Work may no longer run while the member is outside the group (reference 3, "coordinator lost"). */
static void check_lost(lc_group_t *g)
{
        if (g->lost_said || !g->head || lc_now_ms() - g->unknown_since < g->s.heartbeat_ms)
                return;
        g->lost_said = true;
        lc_log(LC_WARN, "GROUP", "Broker coordinator was unreachable for %dms", g->s.heartbeat_ms);
        need_join(g, NULL);
        stop_renewing(g);
        give_up_work(g);
}

static void find(lc_group_t *g)
{
        int64_t now = lc_now_ms(), limit = 0;
        lc_err_t err = {0};
        lc_step_t step;

        if (!g->unknown_since)
                g->unknown_since = now;
        if (g->head && !g->lost_said) { /* not too long in one attempt: the work has to stop in time */
                limit = g->unknown_since + g->s.heartbeat_ms - now;
                if (limit < 100)
                        limit = 100;
        }
        step = lc_session_find(&g->s, limit, &err);
        if (step == LC_STEP_OK) {
                g->unknown_since = 0;
                g->lost_said = false;
                g->next_heartbeat = lc_now_ms();
                g->last_contact = lc_now_ms();
                g->not_before = 0;
                g->last_text[0] = '\0';
                return; /* attempts count until a request succeeds */
        } else if (step == LC_STEP_LOST || step == LC_STEP_RETRY) {
                warn(g, err.msg);
                back_off(g);
                check_lost(g);
                return;
        }
        after_step(g, step, &err);
}

/* May the member join now? Else *ms is when to look again. */
static bool ready_to_join(lc_group_t *g, int64_t now, int64_t *ms)
{
        int64_t left;
        bool busy, empty;

        pthread_mutex_lock(&g->lock);
        if (g->pending_generation >= 0 && g->done_generation == g->pending_generation)
                g->pending_generation = -1;
        busy = g->pending_generation >= 0;
        empty = !g->allocation.n;
        pthread_mutex_unlock(&g->lock);
        if (busy) { /* what runs is not yet what the next JoinGroup would report */
                left = g->delivered_at + g->s.rebalance_ms - now;
                if (left > 0) {
                        *ms = left;
                        return false;
                }
                lc_log(LC_WARN, "GROUP",
                       "The assignment of generation %d was not applied within %d ms. Joining again",
                       g->pending_generation, g->s.rebalance_ms);
                g->pending_generation = -1;
        }
        if (!g->prepared) {
                lc_log(LC_INFO, "GROUP", "Rebalance started");
                g->prepared = true;
                if (g->s.protocol == 0 && g->head && !g->head->error) {
                        g->must_be_empty = true;
                        g->empty_since = now;
                }
                g->events.preparing(g->arg, g->s.protocol);
        }
        if (g->must_be_empty && !empty) {
                left = g->empty_since + g->s.rebalance_ms - now;
                if (left > 0) {
                        *ms = left;
                        return false;
                }
                lc_log(LC_WARN, "GROUP", "Revoked work did not stop within %d ms. Joining all the same",
                       g->s.rebalance_ms);
        }
        return true;
}

/* The work of a new generation. What ran without a lease is still running until the herder is done. */
static void take_lease(lc_group_t *g, int32_t generation)
{
        int64_t now = lc_now_ms();

        pthread_mutex_lock(&g->lock);
        g->done_generation = -1; /* a group that was removed and made again counts from the start */
        if (g->must_apply || (g->owner && now >= atomic_load(&g->work_until)) ||
            atomic_load(&g->withheld) >= 0)
                atomic_store(&g->withheld, generation);
        g->must_apply = false;
        pthread_mutex_unlock(&g->lock);
        g->owner = true;
        renew_lease(g, now);
        g->lively_until = now + LIVELY_MS;
}

static void deliver(lc_group_t *g, lc_assignment_t *a)
{
        lc_assignment_t *head = lc_calloc(1, sizeof(*head));

        head->error = a->error;
        head->leader = lc_strdup(a->leader);
        head->leader_url = lc_strdup(a->leader_url);
        head->config_offset = a->config_offset;
        head->delay_ms = a->delay_ms;
        lc_assignment_free(g->head);
        g->head = head;
        g->assignment_error = a->error != 0;
        g->pending_generation = a->generation;
        g->delivered_at = lc_now_ms();
        g->left_at = 0;
        atomic_store(&g->last_generation, a->generation);
        take_lease(g, a->generation);
        g->events.assigned(g->arg, a);
}

/* Soon after a rebalance members hear of the next one soon. Else at least a dozen times a session: a
 * member hears of a rebalance by the answer, and the slowest member holds up the others. */
static int64_t next_heartbeat(const lc_group_t *g, int64_t now)
{
        int32_t ms = g->s.session_ms / 12;

        if (now < g->lively_until && ms > LIVELY_HEARTBEAT_MS)
                ms = LIVELY_HEARTBEAT_MS;
        return now + (ms < g->s.heartbeat_ms ? ms : g->s.heartbeat_ms);
}

static void join(lc_group_t *g)
{
        lc_group_join_t j = {.url = g->url, .events = &g->events, .arg = g->arg};
        lc_assignment_t report = {0}, *got = NULL;
        lc_err_t err = {0};
        lc_step_t step;

        if (g->head)
                report = *g->head; /* strings are lent */
        pthread_mutex_lock(&g->lock);
        g->rejoin = false; /* what is wished for from now on needs another round */
        j.config_offset = g->config_offset;
        if (g->head && !g->must_be_empty)
                lc_work_copy(&report.assigned, &g->allocation);
        pthread_mutex_unlock(&g->lock);
        if (g->head)
                j.allocation = &report;
        g->joining = true;
        step = lc_session_join(&g->s, &j, &got, &err);
        g->joining = false;
        lc_work_free(&report.assigned);
        if (step == LC_STEP_OK) {
                g->need_join = false;
                g->prepared = false;
                g->must_be_empty = false;
                g->last_contact = lc_now_ms();
                g->not_before = 0;
                deliver(g, got);
                g->next_heartbeat = next_heartbeat(g, g->last_contact);
        }
        after_step(g, step, &err);
}

static void heartbeat(lc_group_t *g)
{
        int64_t now = lc_now_ms(), left = g->last_contact + g->s.session_ms - now;
        lc_err_t err = {0};
        lc_step_t step;

        g->next_heartbeat = next_heartbeat(g, now);
        step = lc_session_heartbeat(&g->s, left > 1 ? left : 1, &err);
        if (step == LC_STEP_OK || (step == LC_STEP_REJOIN && err.code == LC_KE_REBALANCE_IN_PROGRESS))
                renew_lease(g, now);
        if (step == LC_STEP_OK || step == LC_STEP_REJOIN || step == LC_STEP_RETRY)
                g->last_contact = lc_now_ms();
        if (step == LC_STEP_REJOIN && err.code == LC_KE_REBALANCE_IN_PROGRESS && !g->need_join)
                lc_log(LC_INFO, "GROUP", "Attempt to heartbeat failed since group is rebalancing");
        if (step == LC_STEP_RETRY) {
                lc_log(LC_INFO, "GROUP", "%s. Trying again", err.msg);
                back_off(g);
                g->next_heartbeat = g->not_before;
                return;
        }
        after_step(g, step, &err);
}

/* One thing to do. Returns how long there is nothing to do, 0: look again at once. */
static int64_t step(lc_group_t *g)
{
        int64_t now = lc_now_ms(), wait = LONGEST_WAIT_MS;
        bool member;

        if (g->failed || atomic_load(&g->hung))
                return wait;
        if (now < g->away_until)
                return g->away_until - now;
        if (g->left_at && now - g->left_at >= g->s.session_ms)
                give_up_work(g); /* as long as that, somebody else has it */
        if (!g->s.conn) {
                if (now < g->not_before)
                        return g->not_before - now;
                find(g);
                return 0;
        }
        if (g->assignment_error) { /* both sides have to read the config topic, then try again */
                int64_t ms;
                if (!g->need_join && ready_to_join(g, now, &ms)) {
                        g->assignment_error = false;
                        need_join(g, "assignment error");
                        g->not_before = now + g->net->retry_backoff_ms;
                }
        }
        if (g->need_join && now < g->not_before) {
                wait = g->not_before - now;
        } else if (g->need_join && ready_to_join(g, now, &wait)) {
                join(g);
                return 0;
        }
        member = g->s.generation >= 0 && *g->s.member_id;
        if (member && now >= g->next_heartbeat) {
                heartbeat(g);
                return 0;
        }
        if (member && g->next_heartbeat - now < wait)
                wait = g->next_heartbeat - now;
        return wait;
}

static void leave(lc_group_t *g, const char *reason)
{
        end_lease(g);
        g->left_at = lc_now_ms();
        g->leaving = true;
        lc_session_leave(&g->s, reason);
        g->leaving = false;
        g->prepared = false;
        need_join(g, NULL);
}

/* The herder's poll timeout (reference 1). Returns when to look again. */
static int64_t watch_herder(lc_group_t *g)
{
        int64_t silent = lc_now_ms() - atomic_load(&g->last_tick);
        lc_buf_t stage = LC_BUF_SURE;

        if (atomic_load(&g->hung)) {
                if (silent < g->s.rebalance_ms) {
                        atomic_store(&g->hung, false);
                        give_up_work(g);
                }
                return LONGEST_WAIT_MS;
        }
        if (g->failed || silent <= g->s.rebalance_ms)
                return g->failed ? LONGEST_WAIT_MS : g->s.rebalance_ms - silent + 1;
        if (g->events.stage)
                g->events.stage(g->arg, &stage);
        lc_log(LC_WARN, "GROUP",
               "worker poll timeout has expired. This means the time between subsequent calls to poll() in "
               "DistributedHerder tick() method was longer than the configured rebalance.timeout.ms. If you "
               "see "
               "this happening consistently, then it can be addressed by either adding more workers to the "
               "connect "
               "cluster or by increasing the rebalance.timeout.ms configuration value. Please note that "
               "rebalance.timeout.ms also controls the maximum allowed time for each worker to join the "
               "group once "
               "a rebalance has begun so the set value should not be very high. %s%s",
               stage.len ? "The last thing the worker was doing was: " : "", stage.len ? stage.p : "");
        lc_buf_free(&stage);
        atomic_store(&g->hung, true);
        leave(g, "worker poll timeout has expired.");
        return LONGEST_WAIT_MS;
}

/* Take the herder's wishes. False: stop. */
static bool take_wishes(lc_group_t *g)
{
        char *leave_reason = NULL, *rejoin_reason = NULL;
        bool stop;

        pthread_mutex_lock(&g->lock);
        stop = g->stop;
        if (g->leave) {
                leave_reason = g->leave_reason;
                g->leave_reason = NULL;
                g->leave = false;
                g->away_until = lc_now_ms() + g->leave_backoff_ms;
        }
        if (g->rejoin) {
                rejoin_reason = g->rejoin_reason;
                g->rejoin_reason = NULL;
                g->rejoin = false;
        }
        pthread_mutex_unlock(&g->lock);
        if (leave_reason && !stop)
                leave(g, leave_reason);
        if (rejoin_reason && !stop)
                need_join(g, rejoin_reason);
        free(leave_reason);
        free(rejoin_reason);
        return !stop;
}

/* A process that was stopped says nothing about its herder. */
static void after_wait(lc_group_t *g, int64_t late)
{
        if (late < LATE_MS)
                return;
        lc_log(LC_WARN, "GROUP", "This process did not run for %lld ms", (long long)late);
        touch(g);
}

static void *run(void *arg)
{
        lc_group_t *g = arg;
        char context[120];

        snprintf(context, sizeof(context), "Worker clientId=%s, groupId=%s", g->s.client_id, g->s.group);
        lc_log_context(context);
        for (;;) {
                int64_t wait, watch, before;

                lc_waker_clear(&g->waker);
                if (!take_wishes(g))
                        break;
                watch = watch_herder(g);
                wait = step(g);
                if (wait <= 0)
                        continue;
                if (watch < wait)
                        wait = watch;
                before = lc_now_ms();
                if (!g->s.conn) {
                        lc_waker_wait(&g->waker, (int)wait);
                } else if (lc_waker_wait_fd(&g->waker, lc_conn_fd(g->s.conn), (int)wait) &&
                           !lc_conn_alive(g->s.conn)) {
                        lc_session_drop(&g->s, "coordinator unavailable");
                        coordinator_gone(g, false);
                }
                after_wait(g, lc_now_ms() - before - wait);
        }
        leave(g, "the worker is stopping");
        return NULL;
}

int lc_group_start(lc_group_t *g, lc_err_t *err)
{
        int rc;

        touch(g);
        /* SIGPIPE, too, would come from OpenSSL's write */
        rc = lc_thread_start(&g->thread, 0, run, g);
        if (rc)
                return lc_err_set(err, LC_FATAL, rc, "Cannot start the membership thread: %s", strerror(rc));
        g->started = true;
        return 0;
}

void lc_group_quit(lc_group_t *g)
{
        if (!g->started)
                return;
        g->started = false;
        pthread_mutex_lock(&g->lock);
        g->stop = true;
        pthread_mutex_unlock(&g->lock);
        lc_waker_wake(&g->waker);
        pthread_join(g->thread, NULL);
}

void lc_group_stop(lc_group_t *g)
{
        if (!g)
                return;
        lc_group_quit(g);
        lc_session_free(&g->s);
        lc_net_free(g->net);
        lc_assignment_free(g->head);
        lc_work_free(&g->allocation);
        lc_waker_close(&g->waker);
        pthread_mutex_destroy(&g->lock);
        free(g->leave_reason);
        free(g->rejoin_reason);
        free(g->url);
        free(g);
}
