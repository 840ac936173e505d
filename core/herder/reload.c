/*
 * reload.c - plugins are loaded anew while work goes on: on the pool the files are looked at and a new set
 * becomes current; then, in its turn among the requests, each connector and task whose plugins are newer now
 * is stopped and started again, one by one. Nothing is written for it but statuses: no record, no rebalance.
 *
 * A request that comes while a reload is on is served by the next one, together with all others that came.
 * Threads:   T, and a pool thread for the load.   Tests: spec/unit/reload_spec.lua,
 * spec/kafka/reload_spec.lua
 */
#include "base/alloc.h"
#include "convert/json.h"
#include "herder/internal.h"
#include "herder/restart.h"
#include "script/script.h"
#include <stdlib.h>
#include <string.h>

static void write_string(lc_buf_t *out, const char *name, const char *s)
{
        lc_json_write_string(out, name, strlen(name));
        lc_buf_addc(out, ':');
        lc_json_write_string(out, s, strlen(s));
}

static void write_report(lc_buf_t *out, const lc_reload_report_t *report)
{
        lc_buf_addc(out, '[');
        for (size_t i = 0; i < report->n; i++) {
                const lc_reload_item_t *item = &report->v[i];
                lc_buf_adds(out, i ? ",{" : "{");
                write_string(out, "location", item->location);
                lc_buf_adds(out, ",\"classes\":[");
                for (size_t k = 0; k < item->classes.n; k++) {
                        lc_buf_adds(out, k ? "," : "");
                        lc_json_write_string(out, item->classes.v[k], strlen(item->classes.v[k]));
                }
                lc_buf_adds(out, "],");
                write_string(out, "result", item->result);
                if (item->reason) {
                        lc_buf_addc(out, ',');
                        write_string(out, "reason", item->reason);
                }
                lc_buf_addc(out, '}');
        }
        lc_buf_addc(out, ']');
}

/* On the pool. */
static void load(void *arg)
{
        lc_hev_t *ev = arg;
        lc_herder_t *h = ev->h;
        lc_reload_report_t report = {NULL, 0};
        lc_strv_t path = {NULL, 0};

        if (lc_hev_wanted(ev)) {
                lc_worker_config_list(h->deps.config, "plugin.path", &path);
                lc_plugins_reload(h->deps.plugins, &path,
                                  lc_worker_config_bool(h->deps.config, "plugin.reload"), &report);
                lc_strv_free(&path);
        }
        write_report(&ev->answer, &report);
        lc_reload_report_free(&report);
        lc_hev_back_push(ev);
}

static void start(lc_herder_t *h)
{
        lc_hev_t *ev = lc_hev_new(h, LC_HEV_RELOADED, NULL);

        h->reload.now = h->reload.next;
        h->reload.next = NULL;
        h->reload.busy = true;
        lc_hev_out(ev);
        lc_worker_run(h->worker, load, ev);
}

void lc_reload_begin(lc_herder_t *h, lc_request_t *req)
{
        req->next = h->reload.next;
        h->reload.next = req;
        if (!h->reload.busy)
                start(h);
}

static void finish(lc_herder_t *h, lc_hev_t *ev)
{
        lc_request_t *req;

        while ((req = h->reload.now)) {
                h->reload.now = req->next;
                req->reload_json = lc_strdup(ev->answer.p ? ev->answer.p : "[]");
                lc_request_answer(req, 200);
        }
        lc_hev_free(ev);
        h->reload.busy = false;
        if (h->reload.next)
                start(h);
}

bool lc_reload_step(lc_herder_t *h, lc_hev_t *ev)
{
        const lc_work_item_t *item = NULL;
        lc_work_t work = {0};
        bool waits;

        lc_worker_outdated(h->worker, &work);
        for (size_t i = 0; i < work.n && !item; i++)
                if (!lc_hconn_get(h, work.v[i].connector)->busy)
                        item = &work.v[i];
        waits = work.n && !item;
        if (item) {
                lc_restart_work(h, item,
                                item->task < 0 ? ": its plugin was loaded anew"
                                               : ": a plugin of it was loaded anew",
                                " with a new plugin");
                lc_pending_add(h, ev);
        } else if (!waits) {
                finish(h, ev);
        }
        lc_work_free(&work);
        return !waits;
}

static void shut(lc_request_t **list)
{
        lc_request_t *req;

        while ((req = *list)) {
                *list = req->next;
                lc_request_fail(req, 500, LC_SHUTTING_DOWN);
        }
}

void lc_reload_close(lc_herder_t *h)
{
        shut(&h->reload.now);
        shut(&h->reload.next);
}
