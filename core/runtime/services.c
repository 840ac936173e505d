/* services.c - see services.h. */
#include "runtime/services.h"
#include "config/worker_checks.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/cond.h"
#include "base/log.h"
#include "script/script.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

lc_services_t *lc_services_new(const lc_worker_deps_t *deps)
{
        lc_services_t *s = lc_calloc(1, sizeof(*s));

        s->refs = 1;
        s->config = deps->config;
        s->plugins = lc_plugins_ref(deps->plugins);
        s->offsets = deps->offsets;
        s->statuses = deps->statuses;
        s->worker_id = lc_strdup(deps->worker_id);
        s->reconfigure = deps->reconfigure;
        s->failed = deps->failed;
        s->may_work = deps->may_work;
        s->fence = deps->fence;
        s->verify = deps->verify;
        s->exactly_once = !deps->local && lc_worker_config_eos(deps->config) == LC_EOS_ON;
        s->arg = deps->arg;
        s->local = deps->local;
        s->restarts = lc_restarts_new();
        s->track_topics = lc_worker_config_bool(deps->config, "topic.tracking.enable");
        s->flush_interval_ms = lc_worker_config_int(deps->config, "offset.flush.interval.ms");
        s->flush_timeout_ms = lc_worker_config_int(deps->config, "offset.flush.timeout.ms");
        s->graceful_ms = lc_worker_config_int(deps->config, "task.shutdown.graceful.timeout.ms");
        s->call_ms = (int)lc_worker_config_int(deps->config, "plugin.max.call.ms");
        s->connector_call_ms = (int)lc_worker_config_int(deps->config, "plugin.max.connector.call.ms");
        lc_script_max_memory((size_t)lc_worker_size(lc_worker_config_str(deps->config, "plugin.max.memory")));
        lc_script_max_files((int)lc_worker_config_int(deps->config, "plugin.max.files"));
        pthread_mutex_init(&s->lock, NULL);
        lc_cond_init(&s->changed);
        return s;
}

lc_services_t *lc_services_ref(lc_services_t *s)
{
        __atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
        return s;
}

void lc_services_unref(lc_services_t *s)
{
        if (!s || __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL))
                return;
        pthread_cond_destroy(&s->changed);
        pthread_mutex_destroy(&s->lock);
        lc_plugins_unref(s->plugins);
        lc_restarts_free(s->restarts);
        free(s->worker_id);
        free(s);
}

bool lc_services_wait_until(lc_services_t *s, int64_t end_ms)
{
        return lc_cond_wait_until(&s->changed, &s->lock, end_ms);
}

void lc_services_shut(lc_services_t *s)
{
        int64_t end = lc_now_ms() + 5000;

        pthread_mutex_lock(&s->lock);
        s->shut = true;
        while (s->inside && lc_services_wait_until(s, end))
                ;
        pthread_mutex_unlock(&s->lock);
}

bool lc_services_enter(lc_services_t *s)
{
        bool open;

        pthread_mutex_lock(&s->lock);
        open = !s->shut;
        if (open)
                s->inside++;
        pthread_mutex_unlock(&s->lock);
        return open;
}

void lc_services_leave(lc_services_t *s)
{
        pthread_mutex_lock(&s->lock);
        if (!--s->inside && s->shut)
                pthread_cond_broadcast(&s->changed);
        pthread_mutex_unlock(&s->lock);
}

bool lc_services_may_work(lc_services_t *s)
{
        bool yes;

        if (!s->may_work)
                return true;
        if (!lc_services_enter(s))
                return false;
        yes = s->may_work(s->arg);
        lc_services_leave(s);
        return yes;
}

void lc_services_status(lc_services_t *s, const char *connector, int task, lc_state_t state,
                        const char *trace, const char *version, const char *restart)
{
        char *shown = !restart && (state == LC_RUNNING || state == LC_PAUSED)
                              ? lc_restarts_shown(s->restarts, connector, task)
                              : NULL;
        lc_status_t st = {.task = task,
                          .state = state,
                          .worker_id = s->worker_id,
                          .trace = (char *)trace,
                          .version = (char *)version,
                          .restart = shown ? shown : (char *)restart,
                          .generation = __atomic_load_n(&s->generation, __ATOMIC_RELAXED)};

        /* who is or was out of the group does not know yet what the new owner wrote */
        if (state == LC_UNASSIGNED &&
            (__atomic_load_n(&s->outside, __ATOMIC_RELAXED) || !lc_services_may_work(s)))
                return;
        if (lc_services_enter(s)) {
                s->statuses->ops->put(s->statuses, connector, &st,
                                      state == LC_UNASSIGNED || state == LC_FAILED);
                lc_services_leave(s);
        }
        free(shown);
}

int64_t lc_services_failed(lc_services_t *s, const char *connector, int task, const lc_props_t *config,
                           const lc_err_t *err, int64_t ran_ms, char **shown)
{
        *shown = NULL;
        if (s->local) /* nobody restarts anything there */
                return 0;
        return lc_restarts_failed(s->restarts, connector, task, config, err, ran_ms, lc_now_ms(), shown);
}

void lc_services_tell_failed(lc_services_t *s)
{
        if (!s->failed || !lc_services_enter(s))
                return;
        s->failed(s->arg);
        lc_services_leave(s);
}

void lc_services_topic_used(lc_services_t *s, const char *connector, int task, const char *topic)
{
        if (!s->track_topics || !lc_services_enter(s))
                return;
        s->statuses->ops->topic_used(s->statuses, connector, task, topic);
        lc_services_leave(s);
}

int lc_services_offset_get(lc_services_t *s, const char *connector, const char *partition, lc_buf_t *out,
                           lc_err_t *err)
{
        int rc;

        if (!lc_services_enter(s))
                return lc_err_set(err, LC_FATAL, 0, "The worker has stopped");
        rc = s->offsets->ops->get(s->offsets, connector, partition, out, err);
        lc_services_leave(s);
        return rc;
}

lc_converter_t *lc_services_converter(const lc_services_t *s, const lc_plugins_t *plugins,
                                      const lc_props_t *connector_config, const char *role, lc_err_t *err)
{
        bool header = !strcmp(role, "header");
        const lc_props_t *from = connector_config;
        const lc_converter_class_t *cls;
        const lc_plugin_t *scripted = NULL;
        const char *name;
        char key[64], prefix[64];
        lc_converter_t *cv;
        lc_props_t *config;

        snprintf(key, sizeof(key), "%s.converter", role);
        snprintf(prefix, sizeof(prefix), "%s.converter.", role);
        name = lc_props_get(connector_config, key);
        if (!name) {
                name = lc_worker_config_str(s->config, key);
                from = lc_worker_config_originals(s->config);
        }
        cls = name ? lc_converter_class_find(name) : NULL;
        if (!cls && name)
                scripted = lc_plugins_find(plugins,
                                           1u << (header ? LC_PLUGIN_HEADER_CONVERTER : LC_PLUGIN_CONVERTER),
                                           name, err);
        if (!cls && !scripted) {
                if (err->kind && err->code != 404) /* there, but broken */
                        return NULL;
                lc_err_clear(err);
                lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                               "Invalid value %s for configuration %s: Class %s could not be found.",
                               name ? name : "null", key, name ? name : "null");
                return NULL;
        }
        if (cls && (header ? !cls->header_converter : !cls->converter)) {
                lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONNECT,
                               "Failed to find any class that implements %s and which name matches %s",
                               header ? "HeaderConverter" : "Converter", name);
                return NULL;
        }
        config = lc_props_prefixed(from, prefix);
        cv = cls ? cls->create(cls, config, role, err) : lc_script_converter_new(scripted, config, role, err);
        lc_props_free(config);
        if (cv)
                lc_log(LC_DEBUG, "TASK", "Set up the %s converter class %s using the %s config", role,
                       cv->cls->class_name, from == connector_config ? "connector" : "worker");
        return cv;
}

const lc_plugin_t *lc_services_connector_plugin(const lc_plugins_t *plugins, const lc_props_t *config,
                                                lc_err_t *err)
{
        const char *cls = lc_props_get(config, "connector.class");

        if (!cls) {
                lc_err_set_cls(
                        err, LC_FATAL, 0, LC_CLS_CONFIG,
                        "Missing required configuration \"connector.class\" which has no default value.");
                return NULL;
        }
        return lc_plugins_find(plugins, 1u << LC_PLUGIN_SINK | 1u << LC_PLUGIN_SOURCE, cls, err);
}
