/*
 * examples.c - runs the examples of a plugin file (lua/connect/examples.lua): for `luaconnect test` and
 * `lint`, and before a reload takes it.
 *
 * Transforms and predicates run in a chain, converters in a state of their own, as they do in a task; of
 * connectors the config is validated. Each within the load phase's time.
 *
 * Threads:   the caller's.   Tests: spec/unit/reload_spec.lua, kit_author_spec.lua
 */
#include "script/plugins.h"
#include "base/alloc.h"
#include "base/clock.h"
#include <stdlib.h>
#include <string.h>

enum { ALL_MS = 5000 }; /* all examples of a file; each one as long as loading */
#define FILTER "org.apache.kafka.connect.transforms.Filter"

struct example {
        const lc_plugin_t *plugin;
        lc_props_t **configs; /* of all examples of the plugin */
        char **on;
        int n, i;
        char *problem;
};

static void free_examples(struct example *e)
{
        for (int i = 0; i < e->n; i++) {
                lc_props_free(e->configs[i]);
                free(e->on[i]);
        }
        free(e->configs);
        free(e->on);
        free(e->problem);
}

static void read_configs(lua_State *L, void *arg)
{
        struct example *e = arg;
        int n;

        lc_state_function(L, "example_configs");
        lua_call(L, 0, 1);
        n = (int)lua_objlen(L, -1);
        e->configs = lc_calloc((size_t)n + 1, sizeof(*e->configs));
        e->on = lc_calloc((size_t)n + 1, sizeof(*e->on));
        for (int i = 0; i < n; i++) {
                lua_rawgeti(L, -1, i + 1);
                e->configs[i] = lc_props_new();
                e->n = i + 1;
                lua_getfield(L, -1, "on");
                e->on[i] = lc_strdup(lua_tostring(L, -1));
                lua_pop(L, 1);
                lua_getfield(L, -1, "config");
                for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
                        lc_props_set(e->configs[i], lua_tostring(L, -2), lua_tostring(L, -1));
                lua_pop(L, 2);
        }
}

/* nil or what is wrong, on top of the stack */
static void take_problem(lua_State *L, struct example *e)
{
        if (!lua_isnil(L, -1))
                e->problem = lc_strdup(lua_tostring(L, -1) ? lua_tostring(L, -1) : "it fails");
}

static void run_validate(lua_State *L, void *arg)
{
        struct example *e = arg;

        lc_state_function(L, "validate");
        lc_state_push_config(L, e->plugin, e->configs[e->i], NULL);
        lua_newtable(L);
        lua_call(L, 2, 1);
        if (!lua_objlen(L, -1))
                return;
        lua_rawgeti(L, -1, 1);
        lua_getfield(L, -1, "key");
        lua_getfield(L, -2, "message");
        lua_pushfstring(L, "config: %s: %s", lua_tostring(L, -2), lua_tostring(L, -1));
        take_problem(L, e);
}

static void run_converter(lua_State *L, void *arg)
{
        struct example *e = arg;
        bool header = e->plugin->type == LC_PLUGIN_HEADER_CONVERTER;

        lc_state_function(L, "converter");
        lc_state_push_config(L, e->plugin, e->configs[e->i], NULL);
        lua_pushstring(L, header ? "header" : e->on[e->i] ? e->on[e->i] : "value");
        lua_call(L, 2, 0);
        lc_state_function(L, "example_converter");
        lua_pushinteger(L, e->i + 1);
        lua_call(L, 1, 1);
        take_problem(L, e);
}

static void run_chain(lua_State *L, void *arg)
{
        struct example *e = arg;
        const lc_plugin_impl_t *impl = e->plugin->impl;

        lc_state_function(L, "example_chain");
        lua_pushstring(L, impl->path);
        lua_pushstring(L, impl->root);
        lua_pushstring(L, impl->folder);
        lua_pushboolean(L, impl->standard);
        lua_pushinteger(L, impl->index);
        lua_pushinteger(L, e->i + 1);
        lua_call(L, 6, 1);
        take_problem(L, e);
}

/* The connector config whose chain runs the example. */
static lc_props_t *chain_config(const struct example *e)
{
        bool predicate = e->plugin->type == LC_PLUGIN_PREDICATE;
        const char *prefix = predicate ? "predicates.example." : "transforms.example.";
        const lc_props_t *own = e->configs[e->i];
        lc_props_t *config = lc_props_new();

        lc_props_set(config, "transforms", "example");
        lc_props_set(config, "transforms.example.type", predicate ? FILTER : e->plugin->class_name);
        if (predicate) {
                lc_props_set(config, "transforms.example.predicate", "example");
                lc_props_set(config, "predicates", "example");
                lc_props_set(config, "predicates.example.type", e->plugin->class_name);
        }
        for (size_t i = 0; i < lc_props_count(own); i++) {
                char *key = lc_asprintf("%s%s", prefix, lc_props_key(own, i));
                lc_props_set(config, key, lc_props_value(own, i));
                free(key);
        }
        return config;
}

static int run_one(const lc_plugins_t *set, struct example *e, int ms, lc_err_t *err)
{
        lc_plugin_type_t type = e->plugin->type;
        int rc = -1;

        if (type == LC_PLUGIN_TRANSFORMATION || type == LC_PLUGIN_PREDICATE) {
                lc_props_t *config = chain_config(e);
                lc_script_host_t host = {.connector = "example", .task = 0};
                lc_script_chain_t *chain = lc_script_chain_new(set, config, true, &host, err);
                if (chain)
                        rc = lc_state_run_limited(lc_script_chain_state(chain), ms, run_chain, e, err);
                lc_script_chain_free(chain);
                lc_props_free(config);
        } else {
                lc_state_t *st = lc_state_for_plugin(e->plugin, NULL, err);
                bool connector = type == LC_PLUGIN_SINK || type == LC_PLUGIN_SOURCE;
                if (st)
                        rc = lc_state_run_limited(st, ms, connector ? run_validate : run_converter, e, err);
                lc_state_free(st);
        }
        if (rc < 0 || !e->problem)
                return rc;
        return lc_err_set(err, LC_FATAL, 0, "%s", e->problem);
}

/* One declaration stands in the list once for each variant: an example is of the one it names, or of the
 * values'. */
static bool is_of(const lc_plugin_t *p, lc_plugin_t *const *v, size_t n, const char *on)
{
        const lc_plugin_impl_t *impl = p->impl;

        if (p->type == LC_PLUGIN_HEADER_CONVERTER) {
                for (size_t i = 0; i < n; i++) /* that of the converter beside it */
                        if (v[i]->type == LC_PLUGIN_CONVERTER && !strcmp(v[i]->class_name, p->class_name))
                                return false;
                return true;
        }
        if (!impl->variant)
                return true;
        if (on)
                return !strcmp(on, impl->variant);
        if (!strcmp(impl->variant, "value"))
                return true;
        for (size_t i = 0; i < n; i++) {
                const lc_plugin_impl_t *other = v[i]->impl;
                if (v[i] != p && other->index == impl->index)
                        return false;
        }
        return true;
}

typedef struct runner {
        const lc_plugins_t *set;
        lc_plugin_t *const *v;
        size_t n;
        int64_t end; /* of all, 0: never */
        lc_example_fn *done;
        void *arg;
} runner_t;

/* 0; 1: `done` does not want more; -1: they cannot be read. */
static int run_all(const runner_t *r, const lc_plugin_t *p, lc_err_t *err)
{
        struct example e = {.plugin = p};
        lc_state_t *st = lc_state_for_plugin(p, NULL, err);
        int rc = st ? lc_state_run_limited(st, LC_LOAD_PHASE_MS, read_configs, &e, err) : -1;
        lc_err_t why;

        lc_state_free(st);
        for (; rc == 0 && e.i < e.n; e.i++) {
                int64_t left = r->end ? r->end - lc_now_ms() : LC_LOAD_PHASE_MS;
                int ms = left < LC_LOAD_PHASE_MS ? (int)left : LC_LOAD_PHASE_MS;
                if (!is_of(p, r->v, r->n, e.on[e.i]))
                        continue;
                lc_err_clear(&why);
                if (left <= 0)
                        lc_err_set(&why, LC_FATAL, 0, "the examples take longer than %d ms", ALL_MS);
                else
                        run_one(r->set, &e, ms, &why);
                free(e.problem);
                e.problem = NULL;
                rc = r->done(r->arg, p, e.i + 1, why.kind ? &why : NULL);
        }
        free_examples(&e);
        return rc;
}

int lc_examples_each(const lc_plugins_t *set, lc_plugin_t *const *v, size_t n, lc_example_fn *done, void *arg,
                     lc_err_t *err)
{
        runner_t r = {.set = set, .v = v, .n = n, .done = done, .arg = arg};
        int rc = 0;

        for (size_t i = 0; i < n && !rc; i++)
                rc = run_all(&r, v[i], err);
        return rc < 0 ? -1 : 0;
}

static int stop_at_failure(void *arg, const lc_plugin_t *p, int number, const lc_err_t *why)
{
        lc_err_t *err = arg;

        if (!why)
                return 0;
        lc_err_set(err, LC_FATAL, 0, "example %d of %s: %s", number, p->class_name, why->msg);
        return 1;
}

int lc_examples_run(const lc_plugins_t *set, lc_plugin_t *const *v, size_t n, lc_err_t *err)
{
        runner_t r = {
                .set = set, .v = v, .n = n, .end = lc_now_ms() + ALL_MS, .done = stop_at_failure, .arg = err};

        for (size_t i = 0; i < n; i++)
                if (run_all(&r, v[i], err))
                        return -1;
        return 0;
}
