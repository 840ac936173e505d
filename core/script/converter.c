/*
 * converter.c - a converter written in Lua behind lc_converter_class_t: a state for each instance.
 *
 * Threads:   the task's.
 * Ownership: schemas that a script returns are held until 16 others came: callers take a reference at once
 *            (lc_batch_hold_schema).
 * Tests:     spec/unit/script_converter_spec.lua
 */
#include "script/encode.h"
#include "base/alloc.h"
#include <stdlib.h>
#include <string.h>

enum { HELD = 16 };

typedef struct scripted {
        lc_converter_t base;
        lc_converter_class_t cls;
        const lc_plugin_t *plugin;
        lc_state_t *st;
        const lc_schema_t *held[HELD];
        unsigned next;
} scripted_t;

struct conversion {
        scripted_t *cv;
        const lc_props_t *config;
        const char *role, *topic, *header;
        const lc_schema_t *schema; /* in; out */
        const lc_value_t *value;
        lc_arena_t *arena;
        lc_slice_t bytes; /* in; out */
        lc_value_t made;
};

static void run_new(lua_State *L, void *arg)
{
        struct conversion *c = arg;

        lc_state_function(L, "converter");
        lc_state_push_config(L, c->cv->plugin, c->config, NULL);
        lua_pushstring(L, c->role);
        lua_call(L, 2, 0);
}

static void run_from(lua_State *L, void *arg)
{
        struct conversion *c = arg;
        const char *s;
        size_t n;

        lc_state_function(L, "from_connect");
        lua_pushstring(L, c->topic);
        lua_pushlightuserdata(L, (void *)c->schema);
        lua_pushlightuserdata(L, (void *)c->value);
        lua_pushstring(L, c->header);
        lua_call(L, 4, 1);
        c->bytes = (lc_slice_t){NULL, 0};
        if (lua_isnil(L, -1))
                return;
        s = luaL_checklstring(L, -1, &n);
        c->bytes.p = lc_arena_dup(c->arena, s, n);
        c->bytes.len = n;
        if (!c->bytes.p)
                luaL_error(L, "out of memory");
}

static void run_to(lua_State *L, void *arg)
{
        struct conversion *c = arg;
        lc_encoder_t e;
        int schema, value;

        lc_encoder_init(&e, L, c->arena);
        e.blame = true;
        lc_state_function(L, "to_connect");
        lua_pushstring(L, c->topic);
        if (c->bytes.p)
                lua_pushlstring(L, c->bytes.p, c->bytes.len);
        else
                lua_pushnil(L);
        lua_pushstring(L, c->header);
        lua_call(L, 3, 2);
        value = lua_gettop(L);
        schema = value - 1;
        c->schema = lc_encode_schema(&e, NULL, schema, "to_connect's schema");
        if (c->schema) { /* the Lua object may be collected */
                lc_schema_unref(c->cv->held[c->cv->next]);
                c->cv->held[c->cv->next] = lc_schema_ref(c->schema);
                c->cv->next = (c->cv->next + 1) % HELD;
        }
        e.what = "to_connect's value";
        lc_encode_value(&e, value, c->schema, &c->made);
}

static int from_connect(lc_converter_t *base, const char *topic, const char *header,
                        const lc_schema_t *schema, const lc_value_t *value, lc_arena_t *arena,
                        lc_slice_t *out, lc_err_t *err)
{
        struct conversion c = {.cv = (scripted_t *)base,
                               .topic = topic,
                               .header = header,
                               .schema = schema,
                               .value = value,
                               .arena = arena};

        if (lc_state_run(c.cv->st, run_from, &c, err) < 0)
                return -1;
        *out = c.bytes;
        return 0;
}

static int to_connect(lc_converter_t *base, const char *topic, const char *header, lc_slice_t in,
                      lc_arena_t *arena, const lc_schema_t **schema, lc_value_t *value, lc_err_t *err)
{
        struct conversion c = {
                .cv = (scripted_t *)base, .topic = topic, .header = header, .bytes = in, .arena = arena};

        if (lc_state_run(c.cv->st, run_to, &c, err) < 0)
                return -1;
        *schema = c.schema;
        *value = c.made;
        return 0;
}

static void destroy(lc_converter_t *base)
{
        scripted_t *cv = (scripted_t *)base;

        lc_state_free(cv->st);
        for (unsigned i = 0; i < HELD; i++)
                lc_schema_unref(cv->held[i]);
        free(cv);
}

lc_converter_t *lc_script_converter_new(const lc_plugin_t *plugin, const lc_props_t *config, const char *role,
                                        lc_err_t *err)
{
        scripted_t *cv = lc_calloc(1, sizeof(*cv));
        struct conversion c = {.cv = cv, .config = config, .role = role};

        cv->plugin = plugin;
        cv->cls = (lc_converter_class_t){.class_name = plugin->class_name,
                                         .converter = plugin->type == LC_PLUGIN_CONVERTER,
                                         .header_converter = plugin->type == LC_PLUGIN_HEADER_CONVERTER,
                                         .destroy = destroy,
                                         .from_connect = from_connect,
                                         .to_connect = to_connect,
                                         .rows = plugin->rows,
                                         .nrows = plugin->nrows,
                                         .arg = cv};
        cv->base.cls = &cv->cls;
        cv->st = lc_state_for_plugin(plugin, NULL, err);
        if (!cv->st || lc_state_run_limited(cv->st, LC_LOAD_PHASE_MS, run_new, &c, err) < 0) {
                destroy(&cv->base);
                return NULL;
        }
        return &cv->base;
}
