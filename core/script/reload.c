/*
 * reload.c - the next set of plugins: what did not change is copied, what did is loaded and has to pass its
 * examples.
 *
 * A changed file is tried with a bytecode table of its own, so that nothing of it is left behind when it
 * fails. Threads:   a pool thread; one reload at a time (the family's reload lock is held while user code
 * runs). Tests:     spec/unit/reload_spec.lua
 */
#include "script/plugins.h"
#include "base/alloc.h"
#include "base/log.h"
#include <stdlib.h>
#include <string.h>

typedef struct reload {
        const lc_plugins_t *old;
        const lc_plugin_set_t *was;
        lc_plugins_t *next;
        lc_plugin_set_t *impl; /* next's */
        lc_reload_report_t *report;
        bool standard, changed;
} reload_t;

/* In this order: a class may move from a file to another. */
enum { UNCHANGED, CHANGED, NEW };

static lc_reload_item_t *say(reload_t *r, const lc_entry_t *e, const char *result, const char *reason)
{
        lc_reload_report_t *rep = r->report;
        lc_reload_item_t *item;

        rep->v = lc_realloc(rep->v, (rep->n + 1) * sizeof(*rep->v));
        item = &rep->v[rep->n++];
        *item = (lc_reload_item_t){.location = lc_strdup(e->folder ? e->folder : e->path),
                                   .result = result,
                                   .reason = reason ? lc_strdup(reason) : NULL};
        return item;
}

static void name(lc_reload_item_t *item, const lc_plugin_t *p)
{
        if (!lc_strv_has(&item->classes, p->class_name))
                lc_strv_add(&item->classes, p->class_name);
}

static bool is_from(const lc_plugin_t *p, const lc_entry_t *e)
{
        return p->path && !strcmp(p->path, e->path);
}

/* Does the old set have code of this entry? */
static bool worked(const reload_t *r, const lc_entry_t *e)
{
        for (size_t i = 0; i < r->old->n; i++)
                if (is_from(r->old->v[i], e) && !r->old->v[i]->error)
                        return true;
        return false;
}

/* The old set's plugins of an entry into the next one. why: reload_error from now on, or NULL. */
static void keep(reload_t *r, const lc_entry_t *e, const char *why, lc_reload_item_t *item)
{
        for (size_t i = 0; i < r->old->n; i++) {
                const lc_plugin_t *p = r->old->v[i];
                lc_plugin_t *copy;
                if (!is_from(p, e))
                        continue;
                copy = lc_plugin_copy(p, r->impl);
                free(copy->reload_error);
                copy->reload_error = lc_strdup(why);
                lc_set_add(r->next, copy);
                if (item)
                        name(item, p);
        }
}

static void unchanged(reload_t *r, const lc_entry_t *e)
{
        bool restored = false;

        for (size_t i = 0; i < r->old->n; i++)
                restored = restored || (is_from(r->old->v[i], e) && r->old->v[i]->reload_error);
        if (restored) {
                r->changed = true;
                keep(r, e, NULL, say(r, e, "restored", NULL));
                lc_log(LC_INFO, "PLUGIN", "Plugin %s is again what was loaded", e->path);
        } else {
                keep(r, e, NULL, NULL);
        }
}

/* Another file that declares a class of this one: which of them is meant would be a matter of luck. */
static const lc_plugin_t *declared_elsewhere(const reload_t *r, const lc_declarations_t *found)
{
        for (size_t i = 0; i < found->n; i++) {
                const lc_plugin_t *p = found->v[i];
                for (size_t k = 0; k < r->next->n + r->old->n; k++) {
                        bool old = k >= r->next->n;
                        const lc_plugin_t *q = old ? r->old->v[k - r->next->n] : r->next->v[k];
                        if (old && q->path) /* its own, one loaded anew, or gone */
                                continue;
                        if (!q->error && q->type == p->type && !strcmp(q->class_name, p->class_name))
                                return q;
                }
        }
        return NULL;
}

/* Plugins of the trial's own file, then all others: a predicate's example needs Filter. */
static lc_plugins_t trial_set(const reload_t *r, lc_plugin_set_t *impl, const lc_declarations_t *found)
{
        lc_plugins_t set = {.v = lc_calloc(found->n + r->old->n + 1, sizeof(*set.v)), .impl = impl};

        for (size_t i = 0; i < found->n; i++)
                set.v[set.n++] = found->v[i];
        for (size_t i = 0; i < r->old->n; i++)
                set.v[set.n++] = r->old->v[i];
        return set;
}

static int try(reload_t *r, const lc_entry_t *e, lc_plugin_set_t *trial, lc_declarations_t *found,
               lc_err_t *err)
{
        const lc_plugin_t *twice;
        lc_plugins_t set;
        int rc;

        if (lc_set_load(trial, e, found, err))
                return -1;
        twice = declared_elsewhere(r, found);
        if (twice)
                return lc_err_set(err, LC_FATAL, 0, "class %s is declared by %s too", twice->class_name,
                                  twice->path ? twice->path : "the program");
        set = trial_set(r, trial, found);
        rc = lc_examples_run(&set, found->v, found->n, err);
        free(set.v);
        return rc;
}

/* Classes that the file had before and has no more, as a text; NULL: none. */
static char *classes_gone(const reload_t *r, const lc_entry_t *e, const lc_declarations_t *found)
{
        lc_buf_t b = LC_BUF_INIT;

        for (size_t i = 0; i < r->old->n; i++) {
                const lc_plugin_t *p = r->old->v[i];
                bool there = !is_from(p, e) || p->error;
                for (size_t k = 0; k < found->n && !there; k++)
                        there = found->v[k]->type == p->type &&
                                !strcmp(found->v[k]->class_name, p->class_name);
                if (!there)
                        lc_buf_printf(&b, "%s%s",
                                      b.len ? ", " : "no longer declared, what runs keeps its code: ",
                                      p->class_name);
        }
        return b.len ? lc_buf_take(&b, NULL) : NULL;
}

static void load_changed(reload_t *r, lc_entry_t *e, const lc_entry_t *before)
{
        lc_plugin_set_t trial = {.home = r->impl->home,
                                 .code = lc_code_copy(r->impl->code, e->path, e->folder)};
        bool had = before && worked(r, e);
        lc_declarations_t found = {0};
        lc_reload_item_t *item;
        lc_err_t err = {0};
        char *gone;

        r->changed = true;
        if (!try(r, e, &trial, &found, &err)) {
                gone = classes_gone(r, e, &found);
                item = say(r, e, had ? "reloaded" : "added", gone);
                for (size_t i = 0; i < found.n; i++)
                        name(item, found.v[i]);
                lc_log(LC_INFO, "PLUGIN", "Plugin %s was %s%s%s", e->path, item->result, gone ? "; " : "",
                       gone ? gone : "");
                free(gone);
                lc_code_take(r->impl->code, trial.code, e->path, e->folder);
                lc_set_take(r->next, &found);
        } else if (had) {
                lc_log(LC_ERROR, "PLUGIN", "Plugin %s has changed, but the code before the change stays: %s",
                       e->path, err.msg);
                keep(r, e, err.msg, say(r, e, "kept", err.msg));
                e->print = before->print; /* of what runs: the file is tried again each time */
        } else {
                item = say(r, e, "broken", err.msg);
                lc_set_add_broken(r->next, e, err.msg);
                lc_strv_add(&item->classes, e->root);
        }
        lc_declarations_free(&found);
        lc_code_free(trial.code);
}

static void say_removed(reload_t *r, const lc_entry_t *e)
{
        static const char text[] = "the file is gone; what runs keeps its code until it stops";
        lc_reload_item_t *item;

        r->changed = true;
        lc_code_drop(r->impl->code, e->path, e->folder);
        if (!worked(r, e)) /* it never was of use */
                return;
        item = say(r, e, "removed", text);
        for (size_t i = 0; i < r->old->n; i++)
                if (is_from(r->old->v[i], e))
                        name(item, r->old->v[i]);
        lc_log(LC_WARN, "PLUGIN", "Plugin %s: %s", e->path, text);
}

static void look_at(reload_t *r, lc_entry_t *e, int pass)
{
        const lc_entry_t *before = lc_entries_at(&r->was->entries, e->path);
        bool counts = r->standard || !e->standard;

        if (pass == UNCHANGED)
                e->print = counts || !before ? lc_entry_print(e) : before->print;
        if (!before) {
                if (pass == NEW && counts)
                        load_changed(r, e, NULL);
        } else if (before->print == e->print) {
                if (pass == UNCHANGED)
                        unchanged(r, e);
        } else if (pass == CHANGED) {
                load_changed(r, e, before);
        }
}

/* A shipped one that is not on disk any more, which nobody asked about. */
static void keep_entry(reload_t *r, const lc_entry_t *e)
{
        lc_entries_add(&r->impl->entries, e);
        keep(r, e, NULL, NULL);
}

void lc_plugins_reload(const lc_plugins_t *any, const lc_strv_t *plugin_path, bool standard,
                       lc_reload_report_t *report)
{
        reload_t r = {.report = report};

        if (!any->family) /* made by hand: there are no files */
                return;
        lc_plugins_reload_lock(any);
        r.old = lc_plugins_current(any);
        r.was = r.old->impl;
        r.next = lc_set_new(r.was->home, lc_code_copy(r.was->code, "", NULL));
        r.impl = r.next->impl;
        lc_entries_find(&r.impl->entries, r.was->home, plugin_path, false);
        r.standard = standard;
        for (int pass = UNCHANGED; pass <= NEW; pass++)
                for (size_t i = 0; i < r.impl->entries.n; i++)
                        look_at(&r, &r.impl->entries.v[i], pass);
        for (size_t i = 0; i < r.was->entries.n; i++) {
                const lc_entry_t *e = &r.was->entries.v[i];
                if (lc_entries_at(&r.impl->entries, e->path))
                        continue;
                if (e->standard && !standard)
                        keep_entry(&r, e);
                else
                        say_removed(&r, e);
        }
        if (r.changed) {
                lc_set_finish(r.next);
                lc_plugins_replace(any, r.next);
        } else {
                lc_plugins_unref(r.next);
        }
        lc_plugins_unref(r.old);
        lc_plugins_reload_unlock(any);
}

void lc_reload_report_free(lc_reload_report_t *report)
{
        for (size_t i = 0; i < report->n; i++) {
                free(report->v[i].location);
                free(report->v[i].reason);
                lc_strv_free(&report->v[i].classes);
        }
        free(report->v);
        *report = (lc_reload_report_t){NULL, 0};
}

void lc_plugins_folders(const lc_plugins_t *any, const lc_strv_t *plugin_path, bool standard, lc_strv_t *out)
{
        static const char *const ours[] = {"connectors", "lua/transforms", "lua/predicates"};
        const lc_plugin_set_t *impl = any->impl;

        for (size_t i = 0; standard && i < sizeof(ours) / sizeof(*ours); i++) {
                char *folder = lc_asprintf("%s/%s", impl->home, ours[i]);
                lc_strv_add(out, folder);
                free(folder);
        }
        for (size_t i = 0; i < plugin_path->n; i++)
                if (plugin_path->v[i][0])
                        lc_strv_add(out, plugin_path->v[i]);
}
