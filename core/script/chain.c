/*
 * chain.c - the transform chain of a task: one Lua state that holds all its stages (script.h).
 *
 * One call runs all stages over all records of a batch (lua/connect/chain.lua); where it stopped is in xch.
 * Threads:   the task's.   Tests: spec/unit/chain_spec.lua, spec/golden/smt_spec.lua
 */
#include "script/encode.h"
#include "base/alloc.h"
#include "base/log.h"
#include "config/plugin.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct lc_script_chain {
        lc_state_t *st;
        char **classes; /* of the stages */
        size_t n;
};

struct building {
        lc_script_chain_t *c;
        const lc_plugins_t *plugins;
        const lc_props_t *config;
        const char *alias;
        const lc_plugin_t *plugin, *predicate;
        lc_props_t *own, *predicate_own;
        bool negate, source;
};

/* ---- making it ---------------------------------------------------------------------------------- */

/* The plugin that PREFIX.type names. */
static const lc_plugin_t *plugin_of(const lc_plugins_t *plugins, lc_plugin_type_t type,
                                    const lc_props_t *config, const char *group, const char *alias,
                                    lc_err_t *err)
{
        char *key = lc_asprintf("%s.%s.type", group, alias);
        const char *name = lc_props_get(config, key);
        const lc_plugin_t *p = name ? lc_plugins_find(plugins, 1u << type, name, err) : NULL;

        if (!name)
                lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                               "Missing required configuration \"%s\" which has no default value.", key);
        else if (p && !p->impl) {
                lc_err_set(err, LC_FATAL, 0, "Plugin %s has no Lua code", p->class_name);
                p = NULL;
        } else if (!p && err->code == 404) {
                lc_err_clear(err);
                lc_err_set_cls(err, LC_FATAL, 0, LC_CLS_CONFIG,
                               "Invalid value %s for configuration %s: Class %s could not be found.", name,
                               key, name);
        }
        free(key);
        return p;
}

/* path, root, folder, standard, index: where a declaration is. Pushes 5. */
static void push_plugin(lua_State *L, const lc_plugin_t *p)
{
        const lc_plugin_impl_t *impl = p->impl;

        lua_pushstring(L, impl->path);
        lua_pushstring(L, impl->root);
        lua_pushstring(L, impl->folder);
        lua_pushboolean(L, impl->standard);
        lua_pushinteger(L, impl->index);
}

/* What the declaration's Lua checks say against a config, raised as Java's ConfigDef does. */
static void check_config(lua_State *L, const lc_plugin_t *p, int config)
{
        const lc_plugin_impl_t *impl = p->impl;
        const lc_config_row_t *row = NULL;
        lc_state_t *st = lc_state_of(L);
        lc_err_t err = {0};
        const char *key, *text;

        if (!impl->has_validate)
                return;
        lc_state_function(L, "check");
        push_plugin(L, p);
        lua_pushvalue(L, config);
        lua_call(L, 6, 1);
        if (!lua_objlen(L, -1)) {
                lua_pop(L, 1);
                return;
        }
        lua_rawgeti(L, -1, 1);
        lua_getfield(L, -1, "key");
        lua_getfield(L, -2, "message");
        lua_getfield(L, -3, "whole");
        key = lua_tostring(L, -3);
        text = lua_tostring(L, -2);
        for (int i = 0; i < p->nrows && key; i++)
                if (!strcmp(p->rows[i].name, key))
                        row = &p->rows[i];
        lc_buf_clear(&st->scratch);
        if (lua_toboolean(L, -1) || !row) {
                lc_buf_adds(&st->scratch, text);
        } else {
                const char *value = NULL;
                lua_getfield(L, config, key);
                if (lua_istable(L, -1)) { /* a list, as text again */
                        luaL_Buffer b;
                        size_t n = lua_objlen(L, -1);
                        int list = lua_gettop(L);
                        luaL_buffinit(L, &b);
                        for (size_t i = 1; i <= n; i++) {
                                if (i > 1)
                                        luaL_addchar(&b, ',');
                                lua_rawgeti(L, list, (int)i);
                                luaL_addvalue(&b);
                        }
                        luaL_pushresult(&b);
                }
                value = lua_isnil(L, -1)       ? NULL
                        : lua_isboolean(L, -1) ? (lua_toboolean(L, -1) ? "true" : "false")
                                               : lua_tostring(L, -1);
                lc_config_invalid(&st->scratch, row->type, value, key, text);
        }
        lc_err_set_cls(&err, LC_FATAL, 0, LC_CLS_CONFIG, "%s", st->scratch.p ? st->scratch.p : "");
        lc_state_raise(L, &err);
}

/* An object of a plugin, configured: its number is pushed. */
static void make_object(lua_State *L, const lc_plugin_t *p, const lc_props_t *own)
{
        int config;

        lc_state_push_config(L, p, own, NULL);
        config = lua_gettop(L);
        check_config(L, p, config);
        lc_state_function(L, "make");
        push_plugin(L, p);
        lua_pushvalue(L, config);
        lua_call(L, 6, 1);
        lua_replace(L, config);
        lua_settop(L, config);
}

static void run_begin(lua_State *L, void *arg)
{
        struct building *b = arg;

        lc_state_function(L, "chain");
        lua_pushboolean(L, b->source);
        lua_call(L, 1, 0);
}

static void run_stage(lua_State *L, void *arg)
{
        struct building *b = arg;
        const lc_plugin_impl_t *impl = b->plugin->impl;
        int object, predicate = 0;

        make_object(L, b->plugin, b->own);
        object = lua_gettop(L);
        if (b->predicate) {
                make_object(L, b->predicate, b->predicate_own);
                predicate = lua_gettop(L);
        }
        lc_state_function(L, "stage");
        lua_pushvalue(L, object);
        lua_pushstring(L, impl->variant);
        if (predicate)
                lua_pushvalue(L, predicate);
        else
                lua_pushnil(L);
        lua_pushboolean(L, b->negate);
        lua_call(L, 4, 0);
}

static void run_finish(lua_State *L, void *arg)
{
        (void)arg;
        lc_state_function(L, "finish");
        lua_call(L, 0, 0);
        lua_gc(L, LUA_GCCOLLECT, 0);
}

/* One alias of `transforms`: its plugin, its part of the config, its predicate. */
static int add_stage(struct building *b, const char *alias, lc_err_t *err)
{
        char *prefix = lc_asprintf("transforms.%s.", alias);
        const char *predicate, *negate;
        lc_script_chain_t *c = b->c;
        int rc = -1;

        b->own = lc_props_prefixed(b->config, prefix);
        b->predicate = NULL;
        b->predicate_own = NULL;
        free(prefix);
        predicate = lc_props_get(b->own, "predicate");
        negate = lc_props_get(b->own, "negate");
        b->negate = negate && !strcasecmp(negate, "true");
        b->plugin = plugin_of(b->plugins, LC_PLUGIN_TRANSFORMATION, b->config, "transforms", alias, err);
        if (b->plugin && predicate) {
                prefix = lc_asprintf("predicates.%s.", predicate);
                b->predicate_own = lc_props_prefixed(b->config, prefix);
                free(prefix);
                b->predicate =
                        plugin_of(b->plugins, LC_PLUGIN_PREDICATE, b->config, "predicates", predicate, err);
        }
        lc_props_del(b->own, "predicate");
        lc_props_del(b->own, "negate");
        if (b->plugin && (!b->predicate_own || b->predicate)) {
                c->classes = lc_realloc(c->classes, (c->n + 1) * sizeof(*c->classes));
                c->classes[c->n++] = lc_strdup(b->plugin->class_name);
                rc = lc_state_run_limited(c->st, LC_LOAD_PHASE_MS, run_stage, b, err);
        }
        lc_props_free(b->own);
        lc_props_free(b->predicate_own);
        return rc;
}

lc_script_chain_t *lc_script_chain_new(const lc_plugins_t *plugins, const lc_props_t *config, bool source,
                                       const lc_script_host_t *host, lc_err_t *err)
{
        lc_script_chain_t *c = lc_calloc(1, sizeof(*c));
        struct building b = {.c = c, .plugins = plugins, .config = config, .source = source};
        const char *list = lc_props_get(config, "transforms");
        const lc_plugin_set_t *set = plugins->impl;
        lc_strv_t aliases = {0};
        int rc = 0;

        lc_strv_split(&aliases, list ? list : "");
        if (aliases.n) { /* a chain without stages needs no state */
                c->st = lc_state_new(set->code, set->home, host, NULL, NULL, false, err);
                rc = c->st ? lc_state_run(c->st, run_begin, &b, err) : -1;
                for (size_t i = 0; i < aliases.n && !rc; i++)
                        rc = add_stage(&b, aliases.v[i], err);
                if (!rc)
                        rc = lc_state_run(c->st, run_finish, NULL, err);
        }
        lc_strv_free(&aliases);
        if (rc < 0) {
                lc_script_chain_free(c);
                return NULL;
        }
        return c;
}

static void run_close(lua_State *L, void *arg)
{
        (void)arg;
        lc_state_function(L, "close_all");
        if (lua_isfunction(L, -1))
                lua_call(L, 0, 0);
}

void lc_script_chain_free(lc_script_chain_t *c)
{
        lc_err_t err = {0};

        if (!c)
                return;
        if (c->st && lc_state_run(c->st, run_close, NULL, &err) < 0)
                lc_log(LC_WARN, "SCRIPT", "Could not close a transformation: %s", err.msg);
        lc_state_free(c->st);
        for (size_t i = 0; i < c->n; i++)
                free(c->classes[i]);
        free(c->classes);
        free(c);
}

lc_state_t *lc_script_chain_state(lc_script_chain_t *c)
{
        return c->st;
}

size_t lc_script_chain_stages(const lc_script_chain_t *c)
{
        return c->n;
}

const char *lc_script_chain_class(const lc_script_chain_t *c, size_t stage)
{
        return c->classes[stage];
}

void lc_script_chain_counts(const lc_script_chain_t *c, uint64_t *decoded, uint64_t *encoded)
{
        *decoded = c->st ? c->st->xch.decoded : 0;
        *encoded = c->st ? c->st->xch.encoded : 0;
}

/* ---- running it --------------------------------------------------------------------------------- */

struct running {
        uint32_t from, to;
        size_t stage;
};

static void run_chain(lua_State *L, void *arg)
{
        struct running *r = arg;

        lc_state_function(L, "run");
        lua_pushinteger(L, (lua_Integer)r->from);
        lua_pushinteger(L, (lua_Integer)r->stage);
        lua_pushinteger(L, (lua_Integer)r->to);
        lua_call(L, 3, 0);
}

static void run_failed(lua_State *L, void *arg)
{
        (void)arg;
        lc_state_function(L, "run_failed");
        lua_call(L, 0, 0);
}

int lc_script_chain_run(lc_script_chain_t *c, lc_batch_t *batch, uint32_t from, size_t stage, uint32_t to,
                        uint32_t *at, size_t *failed_stage, lc_err_t *err)
{
        struct running r = {.from = from, .to = to, .stage = stage};
        lc_err_t ignored;
        int rc;

        *at = from;
        *failed_stage = stage;
        if (!c->n || from >= to)
                return 0;
        c->st->xch.batch = batch;
        c->st->xch.index = from;
        c->st->xch.stage = (uint32_t)stage;
        rc = lc_state_run(c->st, run_chain, &r, err);
        *at = c->st->xch.index;
        *failed_stage = c->st->xch.stage;
        if (rc < 0)
                lc_state_run(c->st, run_failed, NULL, &ignored);
        c->st->xch.batch = NULL;
        if (rc == 0 && lc_state_memory(c->st, err) < 0) {
                *at = to - 1;
                rc = -1;
        }
        return rc;
}

/* ---- what scripts give back --------------------------------------------------------------------- */

static lc_record_t *in_hand(lua_State *L)
{
        lc_state_t *st = lc_state_of(L);

        if (!st->xch.batch || st->xch.index >= st->xch.batch->n)
                luaL_error(L, "no record is being transformed");
        return &st->xch.batch->records[st->xch.index];
}

/* chain_value(slot, value, schema): schema nil keeps the record's, connect.null is none */
int lc_chain_set_value(lua_State *L)
{
        lc_record_t *r = in_hand(L);
        const char *slot = luaL_checkstring(L, 1);
        bool key = !strcmp(slot, "key");
        const lc_schema_t *schema = key ? r->key_schema : r->value_schema;
        lc_encoder_t e;
        lc_value_t v;

        lua_settop(L, 3);
        lc_encoder_init(&e, L, &r->batch->arena);
        e.blame = true;
        if (!lua_isnil(L, 3))
                schema = lc_encode_schema(&e, r->batch, 3, key ? "key_schema" : "value_schema");
        e.what = key ? "key" : "value";
        lc_encode_value(&e, 2, schema, &v);
        *(key ? &r->key : &r->value) = v;
        *(key ? &r->key_schema : &r->value_schema) = schema;
        return 0;
}

/* chain_null(slot): a tombstone; a schema that allows no null goes */
int lc_chain_set_null(lua_State *L)
{
        lc_record_t *r = in_hand(L);
        bool key = !strcmp(luaL_checkstring(L, 1), "key");
        const lc_schema_t **schema = key ? &r->key_schema : &r->value_schema;

        *(key ? &r->key : &r->value) = lc_value_null();
        if (*schema && !(*schema)->optional && !(*schema)->has_default)
                *schema = NULL;
        return 0;
}

/* chain_headers{headers = list} */
int lc_chain_set_headers(lua_State *L)
{
        lc_record_t *r = in_hand(L), made = *r;
        lc_encoder_t e;

        luaL_checktype(L, 1, LUA_TTABLE);
        lua_settop(L, 1);
        lc_encoder_init(&e, L, &r->batch->arena);
        e.blame = true;
        made.headers = NULL;
        made.nheaders = 0;
        lc_encode_headers(&e, r->batch, 1, &made);
        r->headers = made.headers;
        r->nheaders = made.nheaders;
        return 0;
}
