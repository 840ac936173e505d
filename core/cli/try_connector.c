/*
 * try_connector.c - `luaconnect try --source` and `--sink`: the worker of runtime/ with one connector, whose
 * tasks write to stdout or read stdin instead of Kafka (kafka/local.h), with offsets in memory.
 *
 * Threads:   main starts and stops the worker; task threads come through the functions of `ends`, the pool
 *            through on_started and on_configs. A thread of its own waits for stdin, as a sink task waits for
 *            more than records.
 * Lock:      conn->lock guards what they share, a leaf but for stdout and stderr.
 * Tests:     spec/unit/try_connector_spec.lua
 */
#include "cli/try.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"
#include "cli/signals.h"
#include "cli/try_steps.h"
#include "config/worker_config.h"
#include "runtime/operator.h"
#include "runtime/worker.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Until a task that was asked to stop is given up; half of it until its script is ended. At the end of its input a
 * sink may have a lot to write and has so long before that; Ctrl-C ends this, and a second one all. */
enum { STOP_MS = 10000, SINK_END_MS = 110000 };

typedef struct offset { /* committed by a sink task */
        char *topic;
        int32_t partition;
        int64_t offset;
} offset_t;

typedef struct conn {
        lc_status_store_t statuses; /* first: a pointer to it is one to this */
        lc_try_t *t;
        const char *name;
        lc_worker_config_t *config;
        lc_worker_t *worker;
        lc_offset_store_t *offsets;
        lc_local_ends_t ends;
        lc_topic_partition_t *partitions;
        size_t npartitions;
        lc_strv_t topics;

        pthread_mutex_t lock;
        int64_t left;     /* records that may come yet, -1: any number */
        uint64_t records; /* so many came */
        bool started, configured, enough, ended, again, failed;
        lc_err_t err; /* of start and task configs */
        lc_props_t **configs;
        int nconfigs;
        int running; /* tasks that have not written their last status */
        offset_t *committed;
        size_t ncommitted;

        /* stdin */
        pthread_t watcher;
        bool watching;
        lc_waker_t arm;
        lc_waker_t *reader; /* the task's; NULL: nobody is to be woken */
        bool unwatched;     /* nobody will be */
} conn_t;

/* A late signal must find them. */
static volatile int stop;
static lc_waker_t waker = {-1};

static void wake(conn_t *c, bool *what)
{
        pthread_mutex_lock(&c->lock);
        *what = true;
        pthread_mutex_unlock(&c->lock);
        lc_waker_wake(&waker);
}

/* Lines of a trace, without those that name our own C files. */
static void print_trace(const char *what, const char *trace)
{
        bool first = true;

        for (const char *s = trace; s && *s;) {
                int n = (int)strcspn(s, "\n");
                if (strncmp(s, "\tat luaconnect(", 15) != 0)
                        fprintf(stderr, "%s%s%.*s\n", first ? what : "    ", first ? ": " : "", n, s);
                first = false;
                s += n + (s[n] == '\n');
        }
}

/* ---- what failed --------------------------------------------------------------------------------- */

static void put_status(lc_status_store_t *s, const char *connector, const lc_status_t *st, bool safe)
{
        conn_t *c = (conn_t *)s;
        char what[64];

        (void)connector;
        (void)safe;
        pthread_mutex_lock(&c->lock);
        if (st->task >= 0 && (st->state == LC_FAILED || (st->state == LC_UNASSIGNED && !st->trace))) {
                c->running--; /* its last */
                lc_waker_wake(&waker);
        }
        if (st->state != LC_FAILED) {
                pthread_mutex_unlock(&c->lock);
                return;
        }
        if (st->task < 0)
                snprintf(what, sizeof(what), "luaconnect: the connector failed");
        else
                snprintf(what, sizeof(what), "luaconnect: task %d failed", st->task);
        print_trace(what, st->trace);
        pthread_mutex_unlock(&c->lock);
        wake(c, &c->failed);
}

static void used(lc_status_store_t *s, const char *connector, int task, const char *topic)
{
        (void)s;
        (void)connector;
        (void)task;
        (void)topic;
}

static const lc_status_store_ops_t status_ops = {.put = put_status, .topic_used = used};

static void end_failed(void *arg, const char *what, const lc_err_t *err)
{
        conn_t *c = arg;
        char *trace = lc_err_trace(err), *text = lc_asprintf("luaconnect: %s failed", what);

        pthread_mutex_lock(&c->lock);
        print_trace(text, trace);
        pthread_mutex_unlock(&c->lock);
        free(trace);
        free(text);
        wake(c, &c->failed);
}

typedef struct reporter {
        lc_reporter_t base;
        conn_t *c;
} reporter_t;

static const char *short_class(const char *name)
{
        const char *dot = strrchr(name, '.');

        return dot ? dot + 1 : name;
}

/* A record that failed, whatever errors.tolerance makes of it. */
static void report(lc_reporter_t *base, const lc_failure_t *f)
{
        conn_t *c = ((reporter_t *)base)->c;
        const lc_record_t *r = f->record;

        pthread_mutex_lock(&c->lock);
        c->t->bad++;
        if (r && f->sink)
                fprintf(stderr, "%s:%" PRId64 ": ", c->t->in.name, r->u.snk.offset + 1);
        else if (r && r->u.src.partition)
                fprintf(stderr, "record of %s: ", r->u.src.partition->json);
        fprintf(stderr, "%s: ",
                f->stage == LC_STAGE_TASK_PUT ? "put"
                : f->class_name               ? short_class(f->class_name)
                                              : "?");
        fprintf(stderr, "%s%s%s\n", f->err->cls ? short_class(f->err->cls) : "", f->err->cls ? ": " : "",
                f->err->msg);
        pthread_mutex_unlock(&c->lock);
}

static void destroy_reporter(lc_reporter_t *r)
{
        free(r);
}

static lc_reporter_t *new_reporter(void *arg)
{
        reporter_t *r = lc_calloc(1, sizeof(*r));

        r->base.report = report;
        r->base.destroy = destroy_reporter;
        r->c = arg;
        return &r->base;
}

/* ---- a source's records, to stdout ---------------------------------------------------------------- */

static uint32_t write_records(void *arg, const lc_record_t *records, uint32_t n)
{
        conn_t *c = arg;
        lc_try_t *t = c->t;
        uint32_t i;

        pthread_mutex_lock(&c->lock);
        for (i = 0; i < n && c->left && !t->closed; i++) {
                lc_err_t err = {0};
                if (records[i].state != LC_REC_NEW)
                        continue;
                if (lc_try_output_record(&t->out, &records[i], &err)) {
                        t->bad++;
                        fprintf(stderr, "luaconnect: record %" PRIu64 ": output: %s\n", c->records + 1,
                                err.msg);
                }
                c->records++;
                c->left -= c->left > 0;
        }
        t->closed = t->closed || lc_try_output_flush(&t->out) < 0;
        if (t->closed || !c->left) {
                c->enough = true;
                lc_waker_wake(&waker);
        }
        pthread_mutex_unlock(&c->lock);
        return i;
}

/* ---- a sink's, from stdin -------------------------------------------------------------------------- */

static void *watch_input(void *arg)
{
        conn_t *c = arg;

        for (;;) {
                bool over;
                lc_waker_wait(&c->arm, -1);
                lc_waker_clear(&c->arm);
                pthread_mutex_lock(&c->lock);
                over = c->unwatched;
                pthread_mutex_unlock(&c->lock);
                if (over)
                        return NULL;
                if (!lc_waker_wait_fd(&c->arm, c->t->in.fd, -1))
                        continue;
                pthread_mutex_lock(&c->lock);
                if (c->reader)
                        lc_waker_wake(c->reader);
                c->reader = NULL;
                pthread_mutex_unlock(&c->lock);
        }
}

static int read_records(void *arg, lc_waker_t *reader, lc_batch_t **batch, lc_err_t *err)
{
        conn_t *c = arg;
        lc_try_input_t *in = &c->t->in;

        if (!c->left)
                return -1;
        if (lc_try_input_read(in, batch, err))
                return -1;
        if (!*batch && !in->waiting)
                return -1;
        if (!*batch) {
                pthread_mutex_lock(&c->lock);
                c->reader = c->unwatched ? NULL : reader;
                pthread_mutex_unlock(&c->lock);
                lc_waker_wake(&c->arm);
                return 0;
        }
        if (c->left > 0 && (*batch)->n > c->left)
                (*batch)->n = (uint32_t)c->left;
        c->left -= c->left > 0 ? (*batch)->n : 0;
        c->records += (*batch)->n;
        return 1;
}

static size_t first_partitions(void *arg, const lc_topic_partition_t **tps)
{
        conn_t *c = arg;

        *tps = c->partitions;
        return c->npartitions;
}

static void input_ended(void *arg)
{
        conn_t *c = arg;

        wake(c, &c->ended);
}

static void committed(void *arg, const lc_topic_partition_t *tps, size_t n)
{
        conn_t *c = arg;

        pthread_mutex_lock(&c->lock);
        for (size_t i = 0; i < n; i++) {
                size_t k = 0;
                while (k < c->ncommitted && (c->committed[k].partition != tps[i].partition ||
                                             strcmp(c->committed[k].topic, tps[i].topic) != 0))
                        k++;
                if (k == c->ncommitted) {
                        c->committed = lc_realloc(c->committed, (k + 1) * sizeof(*c->committed));
                        c->committed[c->ncommitted++] =
                                (offset_t){.topic = lc_strdup(tps[i].topic), .partition = tps[i].partition};
                }
                c->committed[k].offset = tps[i].offset;
        }
        pthread_mutex_unlock(&c->lock);
}

static void bad_line(void *arg, uint64_t line, const lc_err_t *err)
{
        conn_t *c = arg;

        pthread_mutex_lock(&c->lock);
        c->t->bad++;
        fprintf(stderr, "%s:%" PRIu64 ": %s%s%s\n", c->t->in.name, line,
                err->cls ? short_class(err->cls) : "", err->cls ? ": " : "", err->msg);
        pthread_mutex_unlock(&c->lock);
}

static int open_input(conn_t *c, lc_err_t *err)
{
        lc_try_input_t *in = &c->t->in;
        bool given = false;
        int rc;

        in->sink = in->no_wait = true;
        in->bad = bad_line;
        in->arg = c;
        lc_strv_split(&c->topics, lc_props_get_or(c->t->config, "topics", ""));
        for (size_t i = 0; i < c->topics.n; i++)
                given = given || !strcmp(c->topics.v[i], in->topic);
        if (!given)
                lc_strv_add(&c->topics, in->topic);
        c->partitions = lc_calloc(c->topics.n, sizeof(*c->partitions));
        for (size_t i = 0; i < c->topics.n; i++)
                if (*c->topics.v[i])
                        c->partitions[c->npartitions++] =
                                (lc_topic_partition_t){.topic = c->topics.v[i], .offset = -1001};
        if (lc_waker_init(&c->arm))
                return lc_err_set(err, LC_FATAL, errno, "no descriptor: %s", strerror(errno));
        rc = lc_thread_start(&c->watcher, 0, watch_input, c);
        c->watching = rc == 0;
        return rc ? lc_err_set(err, LC_FATAL, rc, "no thread: %s", strerror(rc)) : 0;
}

static void close_input(conn_t *c)
{
        if (!c->watching)
                return;
        pthread_mutex_lock(&c->lock);
        c->unwatched = true;
        c->reader = NULL;
        pthread_mutex_unlock(&c->lock);
        lc_waker_wake(&c->arm);
        pthread_join(c->watcher, NULL);
        c->watching = false;
}

/* ---- the connector ---------------------------------------------------------------------------------- */

/* A worker's settings as far as tasks ask for them. */
static lc_worker_config_t *worker_config(const lc_try_t *t, lc_err_t *err)
{
        static const char *const settings[][2] = {
                {"bootstrap.servers", "localhost:9092"}, /* nobody connects */
                {"key.converter", "org.apache.kafka.connect.json.JsonConverter"},
                {"value.converter", "org.apache.kafka.connect.json.JsonConverter"},
                {"offset.storage.file.filename", "/dev/null"},
                {"offset.flush.interval.ms", "1000"},
                {"topic.creation.enable", "false"},
                {NULL, NULL}};
        lc_props_t *props = lc_props_new();
        lc_worker_config_t *config;
        char text[16];

        snprintf(text, sizeof(text), "%d", t->sink ? SINK_END_MS + STOP_MS : STOP_MS);
        lc_props_set(props, "task.shutdown.graceful.timeout.ms", text);
        for (int i = 0; settings[i][0]; i++)
                lc_props_set(props, settings[i][0], settings[i][1]);
        config = lc_worker_config_new(props, LC_STANDALONE, err);
        lc_props_free(props);
        return config;
}

static int set_up(conn_t *c, lc_err_t *err)
{
        lc_try_t *t = c->t;

        if (lc_try_find_plugins(t, err) || !(c->config = worker_config(t, err)))
                return -1;
        if (!lc_props_has(t->config, "name"))
                lc_props_set(t->config, "name", "try");
        c->name = lc_props_get_or(t->config, "name", "try");
        if (t->sink && !lc_props_has(t->config, "topics") && !lc_props_has(t->config, "topics.regex"))
                lc_props_set(t->config, "topics", t->in.topic);
        if (lc_try_check_config(t, c->config, err))
                return -1;
        lc_try_warn_of_keys(t->config, t->plugins);
        if (waker.fd < 0 && lc_waker_init(&waker))
                return lc_err_set(err, LC_FATAL, errno, "no descriptor: %s", strerror(errno));
        if (lc_signals_start(&stop, &waker, err))
                return -1;
        return t->sink ? open_input(c, err) : 0;
}

/* On the worker's pool. */
static void on_started(void *arg, const char *connector, const lc_err_t *err)
{
        conn_t *c = arg;

        (void)connector;
        pthread_mutex_lock(&c->lock);
        if (err)
                c->err = *err;
        pthread_mutex_unlock(&c->lock);
        wake(c, &c->started);
}

static void on_configs(void *arg, const char *connector, lc_props_t **configs, int n, const lc_err_t *err)
{
        conn_t *c = arg;

        (void)connector;
        pthread_mutex_lock(&c->lock);
        if (err)
                c->err = *err;
        c->configs = configs;
        c->nconfigs = n;
        pthread_mutex_unlock(&c->lock);
        wake(c, &c->configured);
}

static void on_reconfigure(void *arg, const char *connector)
{
        conn_t *c = arg;

        (void)connector;
        wake(c, &c->again);
}

static bool is_set(conn_t *c, const bool *what)
{
        bool yes;

        pthread_mutex_lock(&c->lock);
        yes = *what;
        pthread_mutex_unlock(&c->lock);
        return yes;
}

static bool is_over(conn_t *c)
{
        return lc_stopped(&stop) || is_set(c, &c->failed) || is_set(c, &c->enough) || is_set(c, &c->ended);
}

/* Until `what`, or the end of it all. */
static bool wait_for(conn_t *c, const bool *what)
{
        while (!is_set(c, what) && !is_over(c)) {
                lc_waker_wait(&waker, -1);
                lc_waker_clear(&waker);
        }
        return is_set(c, what);
}

static void free_configs(conn_t *c)
{
        for (int i = 0; i < c->nconfigs; i++)
                lc_props_free(c->configs[i]);
        free(c->configs);
        c->configs = NULL;
        c->nconfigs = 0;
}

static int still_running(conn_t *c)
{
        int running;

        pthread_mutex_lock(&c->lock);
        running = c->running;
        pthread_mutex_unlock(&c->lock);
        return running;
}

static void wait_for_last_writes(conn_t *c)
{
        int64_t end = lc_now_ms() + SINK_END_MS, left;

        while (still_running(c) > 0 && !lc_stopped(&stop) && (left = end - lc_now_ms()) > 0) {
                lc_waker_wait(&waker, (int)left);
                lc_waker_clear(&waker);
        }
}

static void stop_tasks(conn_t *c, int n)
{
        lc_work_t ids = {0};

        for (int i = 0; i < n; i++)
                lc_work_add(&ids, c->name, i);
        lc_worker_ask_tasks(c->worker, &ids);
        if (c->t->sink)
                wait_for_last_writes(c);
        lc_worker_stop_tasks(c->worker, &ids);
        lc_work_free(&ids);
}

/* A thread that did not end in time may come back to what would be gone. */
static void leave_if_abandoned(conn_t *c)
{
        int running = still_running(c);

        if (running <= 0)
                return;
        fprintf(stderr, "luaconnect: %d task%s did not stop within %d s: given up\n", running,
                running > 1 ? "s" : "", STOP_MS / 1000);
        _exit(LC_KIT_FAILED);
}

/* Task configs, tasks, until the end or until the connector asks for other tasks. 1: again. */
static int run_tasks(conn_t *c, lc_err_t *err)
{
        int n, rc = 0;

        pthread_mutex_lock(&c->lock);
        c->configured = c->again = false;
        pthread_mutex_unlock(&c->lock);
        lc_worker_task_configs(c->worker, c->name, c->t->config, on_configs, c);
        if (!wait_for(c, &c->configured))
                return 0;
        if (c->err.kind) {
                *err = c->err;
                return -1;
        }
        n = c->nconfigs;
        if (c->t->sink && n > 1) {
                fprintf(stderr, "luaconnect: there is one input: of %d tasks the first one runs\n", n);
                n = 1;
        }
        pthread_mutex_lock(&c->lock);
        c->running += n;
        pthread_mutex_unlock(&c->lock);
        for (int i = 0; i < n && !rc; i++)
                rc = lc_worker_start_task(c->worker, c->name, i, c->t->config, n, c->configs[i],
                                          LC_TARGET_STARTED, err);
        if (!n)
                lc_err_set(err, LC_FATAL, 0, "the connector has no tasks");
        if (!rc && n && wait_for(c, &c->again))
                rc = 1;
        stop_tasks(c, n);
        free_configs(c);
        leave_if_abandoned(c);
        return n ? rc : -1;
}

static int run_worker(conn_t *c, lc_err_t *err)
{
        lc_worker_deps_t deps = {.config = c->config,
                                 .plugins = c->t->plugins,
                                 .offsets = c->offsets,
                                 .statuses = &c->statuses,
                                 .worker_id = "try",
                                 .reconfigure = on_reconfigure,
                                 .arg = c,
                                 .local = &c->ends};
        int rc = 1;

        c->worker = lc_worker_new(&deps, err);
        if (!c->worker)
                return -1;
        lc_worker_set_stop_ms(c->worker, STOP_MS);
        lc_worker_start_connector(c->worker, c->name, c->t->config, LC_TARGET_STARTED, on_started, c);
        if (!wait_for(c, &c->started))
                rc = 0;
        else if (c->err.kind)
                rc = -1; /* its status has told */
        while (rc > 0 && !is_over(c))
                rc = run_tasks(c, err);
        lc_worker_stop_connector(c->worker, c->name);
        close_input(c);
        return rc < 0 ? -1 : 0;
}

static void print_offset(void *arg, const char *partition, const char *offset)
{
        (void)arg;
        fprintf(stderr, "offset %s: %s\n", partition, offset ? offset : "null");
}

/* Where a next run would go on. */
static void print_offsets(conn_t *c)
{
        lc_err_t ignored = {0};

        if (c->t->source)
                c->offsets->ops->list(c->offsets, c->name, print_offset, NULL, &ignored);
        pthread_mutex_lock(&c->lock);
        for (size_t i = 0; i < c->ncommitted; i++)
                fprintf(stderr, "offset %s-%" PRId32 ": %" PRId64 "\n", c->committed[i].topic,
                        c->committed[i].partition, c->committed[i].offset);
        pthread_mutex_unlock(&c->lock);
}

int lc_try_run_connector(lc_try_t *t)
{
        conn_t *c = lc_calloc(1, sizeof(*c));
        lc_err_t err = {0};
        int code = LC_KIT_USAGE;

        c->t = t;
        c->left = t->most;
        c->statuses.ops = &status_ops;
        c->arm.fd = -1;
        pthread_mutex_init(&c->lock, NULL);
        t->out.source = t->source;
        c->ends = (lc_local_ends_t){.local = {.arg = c,
                                              .write = write_records,
                                              .partitions = first_partitions,
                                              .read = read_records,
                                              .ended = input_ended,
                                              .committed = committed},
                                    .reporter = new_reporter,
                                    .failed = end_failed,
                                    .arg = c};
        c->offsets = lc_offset_store_memory_new();
        if (!set_up(c, &err)) {
                code = LC_KIT_OK;
                if (t->most != 0 && run_worker(c, &err))
                        code = LC_KIT_FAILED;
                print_offsets(c);
        }
        close_input(c);
        if (err.kind)
                lc_command_error(NULL, &err);
        if (code == LC_KIT_OK && (t->bad || c->failed || t->out.failed))
                code = LC_KIT_FAILED;
        if (c->worker)
                lc_worker_free(c->worker);
        c->offsets->ops->stop(c->offsets);
        if (c->config)
                lc_worker_config_free(c->config);
        free_configs(c);
        for (size_t i = 0; i < c->ncommitted; i++)
                free(c->committed[i].topic);
        free(c->committed);
        free(c->partitions);
        lc_strv_free(&c->topics);
        if (c->arm.fd >= 0)
                lc_waker_close(&c->arm);
        pthread_mutex_destroy(&c->lock);
        free(c);
        return code;
}
