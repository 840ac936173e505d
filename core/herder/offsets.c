/*
 * offsets.c - GET /connectors/{c}/offsets: of sources from the offset store, of sinks from their consumer
 * group. Both may wait for a broker, so they run on the worker's pool and answer from there.
 *
 * Threads:   begins on T, the job is a pool thread's.
 * Source:    rest.md 3.   Tests: spec/unit/herder_spec.lua (source), spec/kafka (sink)
 */
#include "base/alloc.h"
#include "base/log.h"
#include "config/client_config.h"
#include "config/connector_config.h"
#include "convert/json.h"
#include "herder/internal.h"
#include "kafka/admin.h"
#include <stdlib.h>
#include <string.h>

enum { GROUP_OFFSETS_MS = 60000 };

typedef struct out {
        lc_buf_t json;
        bool any;
} out_t;

static void separate(out_t *o)
{
        if (o->any)
                lc_buf_addc(&o->json, ',');
        o->any = true;
}

static void source_offset(void *arg, const char *partition, const char *offset)
{
        out_t *o = arg;

        if (!partition || !offset)
                return;
        separate(o);
        lc_buf_adds(&o->json, "{\"partition\":");
        lc_buf_adds(&o->json, partition);
        lc_buf_adds(&o->json, ",\"offset\":");
        lc_buf_adds(&o->json, offset);
        lc_buf_addc(&o->json, '}');
}

static void sink_offset(void *arg, const char *topic, int32_t partition, int64_t offset)
{
        out_t *o = arg;

        if (offset < 0)
                return;
        separate(o);
        lc_buf_printf(&o->json, "{\"partition\":{\"kafka_partition\":%d,\"kafka_topic\":", (int)partition);
        lc_json_write_string(&o->json, topic, strlen(topic));
        lc_buf_printf(&o->json, "},\"offset\":{\"kafka_offset\":%lld}}", (long long)offset);
}

static int sink_offsets(lc_herder_t *h, const char *name, const lc_props_t *raw, out_t *o, lc_err_t *err)
{
        lc_props_t *config = lc_config_resolve(h->deps.config, raw, err), *conf = NULL;
        char *client = lc_asprintf("connector-worker-adminclient-%s", name), *group = NULL;
        const char *override;
        lc_admin_t *admin = NULL;
        int rc = -1;

        if (!config)
                goto done;
        override = lc_props_get(config, "consumer.override.group.id");
        group = override ? lc_strdup(override) : lc_asprintf("connect-%s", name);
        conf = lc_client_config(h->deps.config, LC_CLIENT_ADMIN, config, client, err);
        if (conf)
                admin = lc_admin_new(conf, err);
        if (admin)
                rc = lc_admin_group_offsets(admin, group, GROUP_OFFSETS_MS, sink_offset, o, err);
done:
        lc_admin_free(admin);
        lc_props_free(conf);
        lc_props_free(config);
        free(group);
        free(client);
        return rc;
}

static void read_offsets(void *arg)
{
        lc_hev_t *ev = arg;
        lc_herder_t *h = ev->h;
        bool sink = !strcmp(lc_connector_type(h->deps.plugins, ev->config), "sink");
        out_t o = {.json = LC_BUF_INIT};
        lc_err_t err;
        int rc;

        lc_err_clear(&err);
        lc_buf_adds(&o.json, "{\"offsets\":[");
        if (!lc_hev_wanted(ev))
                rc = lc_err_set(&err, LC_FATAL, 0, LC_SHUTTING_DOWN);
        else if (sink)
                rc = sink_offsets(h, ev->name, ev->config, &o, &err);
        else
                rc = lc_worker_source_offsets(h->worker, ev->name, ev->config, &h->stop, source_offset, &o,
                                              &err);
        lc_buf_adds(&o.json, "]}");
        if (rc < 0)
                lc_log(LC_ERROR, "HERDER", "Cannot read the offsets of connector %s: %s", ev->name, err.msg);
        if (lc_hev_back(ev)) {
                if (rc >= 0 && lc_buf_ok(&o.json)) {
                        ev->req->offsets_json = lc_buf_take(&o.json, NULL);
                        lc_request_answer(ev->req, 200);
                } else if (sink) {
                        lc_request_fail(ev->req, 500,
                                        "Failed to retrieve consumer group offsets for sink connector %s",
                                        ev->name);
                } else {
                        lc_request_fail_err(ev->req, 500, &err);
                }
                lc_hev_free(ev);
                lc_herder_unref(h);
        }
        lc_buf_free(&o.json);
}

void lc_offsets_begin(lc_herder_t *h, lc_request_t *req)
{
        lc_config_snapshot_t *s = h->configs->ops->snapshot(h->configs);
        const lc_config_connector_t *c = lc_config_snapshot_find(s, req->connector);
        lc_hev_t *ev;

        if (!c || !c->config) {
                lc_request_fail(req, 404, "Connector %s not found", req->connector);
        } else {
                ev = lc_hev_new(h, LC_HEV_OFFSETS, req->connector);
                ev->req = req;
                ev->config = lc_props_copy(c->config);
                lc_hev_out(ev);
                lc_worker_run(h->worker, read_offsets, ev);
        }
        lc_config_snapshot_unref(s);
}
