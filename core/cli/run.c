/* run.c - see run.h. */
#include "cli/run.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/waker.h"
#include "base/watch.h"
#include "cli/connector_file.h"
#include "cli/embedded_broker.h"
#include "cli/signals.h"
#include "config/properties.h"
#include "herder/herder.h"
#include "http/http.h"
#include "rest/rest.h"
#include "script/script.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

enum { RELOAD_QUIET_MS = 300 };

typedef struct run {
        const lc_run_args_t *args;
        int64_t started_ms;
        lc_embedded_broker_t *broker;
        lc_worker_config_t *config;
        char *home;
        lc_plugins_t *plugins;
        lc_rest_t *rest;
        lc_buf_t url, worker_id;
        lc_http_t *http; /* to other workers; NULL in standalone mode */
        lc_herder_t *herder;
        lc_watch_t *watch;      /* plugin.reload */
        lc_request_t *creating; /* the connector file being created; the herder has it until created */
        lc_err_t fatal;         /* written before is_fatal is set */
} run_t;

/* Set by other threads: the signals' (stop), the herder's. They outlive the run: a late signal must find
 * them. */
static volatile int stop;
static lc_waker_t waker = {-1};
static int is_fatal, created;

static bool flag(const int *f)
{
        return __atomic_load_n(f, __ATOMIC_ACQUIRE) != 0;
}

/* As Connect prints an exception: each line of it a log line. */
static void log_error(const lc_err_t *err)
{
        const char *cls = err->cls ? err->cls : LC_CLS_CONNECT;
        const char *parts[2] = {err->msg, err->detail};
        bool first = true;

        for (int i = 0; i < 2; i++)
                for (const char *s = parts[i]; *s;) {
                        int n = (int)strcspn(s, "\n");
                        if (first)
                                lc_log(LC_ERROR, "MAIN", "%s: %.*s", cls, n, s);
                        else if (n)
                                lc_log(LC_ERROR, "MAIN", "%.*s", n, s);
                        first = false;
                        s += n + (s[n] == '\n');
                }
        if (first)
                lc_log(LC_ERROR, "MAIN", "%s", cls);
}

static int start_failed(const lc_err_t *err)
{
        lc_log(LC_ERROR, "MAIN", "Stopping due to error");
        log_error(err);
        return LC_EXIT_START;
}

/* A worker of 200 connectors has a thousand descriptors open. */
static void raise_descriptors(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= limit.rlim_max)
                return;
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit))
                lc_log(LC_WARN, "MAIN", "Cannot raise the limit of open files: %s", strerror(errno));
}

static void set_log_level(const run_t *r)
{
        const char *env = getenv("LUACONNECT_LOG_LEVEL");
        const char *level = env && *env ? env : lc_worker_config_str(r->config, "log.level");

        if (level && lc_log_set_level(NULL, level))
                lc_log(LC_WARN, "MAIN", "Unknown log level '%s' in LUACONNECT_LOG_LEVEL", level);
}

static int load_settings(run_t *r, lc_err_t *err)
{
        lc_props_t *props = NULL;

        if (!r->args->embedded_broker) {
                r->config = lc_worker_config_load(r->args->properties, r->args->mode, err);
                return r->config ? 0 : -1;
        }
        if (lc_properties_load(r->args->properties, &props, err))
                return -1;
        r->broker = lc_embedded_broker_new(&r->args->topics, err);
        if (r->broker) {
                lc_embedded_broker_configure(r->broker, props);
                r->config = lc_worker_config_new(props, r->args->mode, err);
        }
        lc_props_free(props);
        return r->config ? 0 : -1;
}

static int scan_plugins(run_t *r, lc_err_t *err)
{
        lc_strv_t path = {NULL, 0};

        r->home = lc_home_find(err);
        if (!r->home)
                return -1;
        lc_log(LC_INFO, "MAIN", "Scanning for plugins. Standard ones are in %s", r->home);
        lc_worker_config_list(r->config, "plugin.path", &path);
        r->plugins = lc_plugins_scan(r->home, &path, err);
        lc_strv_free(&path);
        return r->plugins ? 0 : -1;
}

/* The worker's converters are named in its file, but only the scan knows what there is. */
static int check_converters(const run_t *r, lc_err_t *err)
{
        static const struct {
                const char *key;
                lc_plugin_type_t type;
        } keys[] = {{"key.converter", LC_PLUGIN_CONVERTER},
                    {"value.converter", LC_PLUGIN_CONVERTER},
                    {"header.converter", LC_PLUGIN_HEADER_CONVERTER}};

        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
                const char *name = lc_worker_config_str(r->config, keys[i].key);
                lc_err_t why;
                lc_err_clear(&why);
                if (!name || lc_plugins_find(r->plugins, 1u << keys[i].type, name, &why))
                        continue;
                return lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                                      "Invalid value %s for configuration %s: "
                                      "Class %s could not be found.",
                                      name, keys[i].key, name);
        }
        return 0;
}

static void on_ready(void *arg)
{
        run_t *r = arg;

        lc_log(LC_INFO, "MAIN", "Worker is ready, %lld ms after its start",
               (long long)(lc_now_ms() - r->started_ms));
}

static void on_fatal(void *arg, const lc_err_t *err)
{
        run_t *r = arg;

        r->fatal = *err;
        __atomic_store_n(&is_fatal, 1, __ATOMIC_RELEASE);
        lc_waker_wake(&waker);
}

/* On the herder's thread. */
static void on_logger_level(void *arg, const char *logger, const char *level)
{
        run_t *r = arg;

        lc_rest_logger_level(r->rest, logger, level);
}

static void on_created(lc_request_t *req)
{
        (void)req;
        __atomic_store_n(&created, 1, __ATOMIC_RELEASE);
        lc_waker_wake(&waker);
}

/* Until a signal, the end of the herder, or (if asked for) the answer to a creation. */
static void wait_for(bool creation)
{
        while (!lc_stopped(&stop) && !flag(&is_fatal) && !(creation && flag(&created))) {
                lc_waker_wait(&waker, -1);
                lc_waker_clear(&waker);
        }
}

static const char *class_of_status(int status)
{
        switch (status) {
        case 400:
                return "org.apache.kafka.connect.runtime.rest.errors.BadRequestException";
        case 404:
                return "org.apache.kafka.connect.errors.NotFoundException";
        case 409:
                return "org.apache.kafka.connect.errors.AlreadyExistsException";
        default:
                return LC_CLS_CONNECT;
        }
}

/* 0: created, or a stop came first. */
static int create_connector(run_t *r, const char *file, lc_err_t *err)
{
        lc_connector_file_t c;
        lc_request_t *req;
        const char *text;

        if (lc_connector_file_load(file, &c, err))
                return -1;
        req = lc_request_new(LC_REQ_CREATE, c.name);
        req->config = c.config;
        req->initial_state = c.initial_state;
        req->forward = -1;
        req->deadline_ms = INT64_MAX;
        req->done = on_created;
        c.config = NULL;
        lc_connector_file_free(&c);
        created = 0;
        r->creating = req;
        lc_herder_submit(r->herder, req);
        wait_for(true);
        if (!flag(&created))
                return 0; /* the herder answers when it stops; the request is freed then */
        r->creating = NULL;
        if (req->status < 400) {
                lc_log(LC_INFO, "MAIN", "Created connector %s", req->connector);
                lc_request_free(req);
                return 0;
        }
        lc_log(LC_ERROR, "MAIN", "Failed to create connector for %s", file);
        text = req->error ? req->error : "null";
        lc_err_set_cls(err, LC_FATAL, req->status, "java.util.concurrent.ExecutionException", "%s: %s",
                       class_of_status(req->status), text);
        lc_err_cause(err, class_of_status(req->status), "%s", text);
        lc_request_free(req);
        return -1;
}

static int start_herder(run_t *r, lc_err_t *err)
{
        lc_herder_deps_t deps = {.config = r->config,
                                 .plugins = r->plugins,
                                 .on_ready = on_ready,
                                 .on_fatal = on_fatal,
                                 .arg = r,
                                 .logger_level = on_logger_level,
                                 .logger_arg = r};

        if (lc_worker_config_advertised(r->config, lc_rest_port(r->rest), &r->url, &r->worker_id, err))
                return -1;
        lc_log(LC_INFO, "MAIN", "Advertised URI: %s", r->url.p);
        deps.url = r->url.p;
        deps.worker_id = r->worker_id.p;
        if (r->args->mode == LC_DISTRIBUTED) {
                r->http = lc_http_new("kafka-connect", err);
                if (!r->http)
                        return -1;
                deps.http = r->http;
        }
        r->herder = r->args->mode == LC_DISTRIBUTED ? lc_herder_distributed_new(&deps, err)
                                                    : lc_herder_standalone_new(&deps, err);
        return r->herder ? lc_herder_start(r->herder, &stop, err) : -1;
}

static void on_reloaded(lc_request_t *req)
{
        lc_request_free(req);
}

/* On the watch's thread. */
static void on_plugins_changed(void *arg)
{
        run_t *r = arg;
        lc_request_t *req = lc_request_new(LC_REQ_RELOAD, NULL);

        req->forward = -1;
        req->deadline_ms = INT64_MAX;
        req->done = on_reloaded;
        lc_herder_submit(r->herder, req);
}

static int watch_plugins(run_t *r, lc_err_t *err)
{
        lc_strv_t path = {NULL, 0}, folders = {NULL, 0};

        if (!lc_worker_config_bool(r->config, "plugin.reload"))
                return 0;
        lc_worker_config_list(r->config, "plugin.path", &path);
        lc_plugins_folders(r->plugins, &path, true, &folders);
        r->watch = lc_watch_new(&folders, RELOAD_QUIET_MS, false, on_plugins_changed, r, err);
        lc_strv_free(&path);
        lc_strv_free(&folders);
        return r->watch ? 0 : -1;
}

static int start(run_t *r)
{
        lc_err_t err;

        lc_err_clear(&err);
        lc_log(LC_INFO, "MAIN", "Kafka Connect worker initializing ...");
        if (load_settings(r, &err))
                return start_failed(&err);
        set_log_level(r);
        if (r->broker)
                lc_log(LC_WARN, "MAIN", "Embedded broker on %s: its records are lost when this process ends",
                       lc_embedded_broker_bootstrap(r->broker));
        if (scan_plugins(r, &err) || check_converters(r, &err))
                return start_failed(&err);
        r->rest = lc_rest_new(r->config, &err);
        if (!r->rest)
                return start_failed(&err);
        lc_rest_hold_health(r->rest, r->args->nfiles > 0);
        if (start_herder(r, &err)) {
                if (lc_stopped(&stop))
                        return LC_EXIT_OK;
                if (err.code != LC_EXIT_CONNECT)
                        return start_failed(&err);
                lc_log(LC_ERROR, "MAIN", "Failed to start Connect");
                log_error(&err);
                return LC_EXIT_CONNECT;
        }
        if (watch_plugins(r, &err))
                return start_failed(&err);
        lc_rest_serve(r->rest, r->herder, r->http);
        lc_log(LC_INFO, "MAIN", "Kafka Connect worker initialization took %lldms",
               (long long)(lc_now_ms() - r->started_ms));
        for (int i = 0; i < r->args->nfiles && !lc_stopped(&stop) && !flag(&is_fatal); i++)
                if (create_connector(r, r->args->files[i], &err)) {
                        lc_log(LC_ERROR, "MAIN", "Stopping after connector error");
                        log_error(&err);
                        return LC_EXIT_CONNECT;
                }
        lc_rest_hold_health(r->rest, false);
        lc_log(LC_INFO, "MAIN", "Kafka Connect started");
        wait_for(false);
        if (!flag(&is_fatal))
                return LC_EXIT_OK;
        log_error(&r->fatal); /* the herder has said in which thread */
        return LC_EXIT_HERDER;
}

int lc_run_worker(const lc_run_args_t *args)
{
        run_t r = {.args = args, .started_ms = lc_now_ms()};
        lc_err_t err;
        int code;

        lc_err_clear(&err);
        if (waker.fd < 0 && lc_waker_init(&waker)) {
                lc_err_set(&err, LC_FATAL, errno, "Unable to create an event descriptor: %s",
                           strerror(errno));
                return start_failed(&err);
        }
        if (lc_signals_start(&stop, &waker, &err))
                return start_failed(&err);
        raise_descriptors();
        code = start(&r);
        lc_log(LC_INFO, "MAIN", "Kafka Connect stopping");
        /* No request any more; calls to other workers end, so that the herder does not wait for them; the
         * herder may use the client and the loggers until it has ended. */
        lc_watch_free(r.watch);
        lc_rest_stop(r.rest);
        lc_http_close(r.http);
        if (r.herder)
                lc_herder_stop(r.herder);
        lc_http_stop(r.http);
        lc_rest_free(r.rest);
        if (r.creating)
                lc_request_free(r.creating);
        if (r.plugins)
                lc_plugins_free(r.plugins);
        if (r.config)
                lc_worker_config_free(r.config);
        lc_embedded_broker_free(r.broker);
        lc_buf_free(&r.url);
        lc_buf_free(&r.worker_id);
        free(r.home);
        lc_log(LC_INFO, "MAIN", "Kafka Connect stopped");
        return code;
}
