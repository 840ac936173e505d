/* declaration.c - see declaration.h. The caller's thread. Spec: spec/unit/plugins_spec.lua. */
#include "script/declaration.h"
#include "base/alloc.h"
#include "base/log.h"
#include <stdlib.h>
#include <string.h>

static bool ends_with(const char *s, const char *tail)
{
        size_t n = strlen(s), t = strlen(tail);

        return n > t && !strcmp(s + n - t, tail);
}

void lc_plugin_add_aliases(lc_plugin_t *p)
{
        static const char *const endings[] = {"Connector", "Connector", "Transformation",
                                              "Predicate", "Converter", "HeaderConverter"};
        const char *simple = strrchr(p->class_name, '.');
        char *pruned;

        simple = simple ? simple + 1 : p->class_name;
        if (!lc_strv_has(&p->aliases, simple))
                lc_strv_add(&p->aliases, simple);
        /* Java's simple name of a nested class would be Key or Value, which is never unique: ours is Cast$Key
         */
        if (strchr(simple, '$') || !ends_with(simple, endings[p->type]))
                return;
        pruned = lc_strndup(simple, strlen(simple) - strlen(endings[p->type]));
        if (!lc_strv_has(&p->aliases, pruned))
                lc_strv_add(&p->aliases, pruned);
        free(pruned);
}

static void free_rows(lc_config_row_t *rows, int n)
{
        for (int i = 0; i < n; i++) {
                lc_config_row_t *r = &rows[i];
                free((char *)r->name);
                free((char *)r->def);
                free((char *)r->group);
                free((char *)r->display);
                free((char *)r->doc);
                for (size_t k = 0; r->one_of && r->one_of[k]; k++)
                        free((char *)r->one_of[k]);
                free((void *)r->one_of);
        }
        free(rows);
}

void lc_plugin_free(lc_plugin_t *p)
{
        lc_plugin_impl_t *impl;

        if (!p)
                return;
        impl = p->impl;
        if (impl) { /* else the rows are a C converter's */
                free_rows((lc_config_row_t *)p->rows, p->nrows);
                free(impl->path);
                free(impl->folder);
                free(impl->root);
                free(impl->variant);
                free(impl);
        }
        free(p->class_name);
        free(p->task_class);
        free(p->version);
        free(p->location);
        free(p->path);
        free(p->error);
        free(p->reload_error);
        lc_strv_free(&p->aliases);
        free(p);
}

static lc_config_row_t *copy_rows(const lc_config_row_t *rows, int n)
{
        lc_config_row_t *out = lc_calloc(n ? (size_t)n : 1, sizeof(*out));

        for (int i = 0; i < n; i++) {
                const lc_config_row_t *r = &rows[i];
                const char **list = NULL;
                size_t items = 0;

                while (r->one_of && r->one_of[items])
                        items++;
                if (r->one_of)
                        list = lc_calloc(items + 1, sizeof(*list));
                for (size_t k = 0; k < items; k++)
                        list[k] = lc_strdup(r->one_of[k]);
                out[i] = *r;
                out[i].name = lc_strdup(r->name);
                out[i].def = lc_strdup(r->def);
                out[i].group = lc_strdup(r->group);
                out[i].display = lc_strdup(r->display);
                out[i].doc = lc_strdup(r->doc);
                out[i].one_of = list;
        }
        return out;
}

lc_plugin_t *lc_plugin_copy(const lc_plugin_t *p, lc_plugin_set_t *set)
{
        lc_plugin_t *out = lc_malloc(sizeof(*out));
        const lc_plugin_impl_t *impl = p->impl;

        *out = *p;
        out->class_name = lc_strdup(p->class_name);
        out->task_class = lc_strdup(p->task_class);
        out->version = lc_strdup(p->version);
        out->location = lc_strdup(p->location);
        out->path = lc_strdup(p->path);
        out->error = lc_strdup(p->error);
        out->reload_error = lc_strdup(p->reload_error);
        out->aliases = (lc_strv_t){NULL, 0};
        for (size_t i = 0; i < p->aliases.n; i++)
                lc_strv_add(&out->aliases, p->aliases.v[i]);
        if (impl) {
                lc_plugin_impl_t *copy = lc_malloc(sizeof(*copy));
                *copy = *impl;
                copy->set = set;
                copy->path = lc_strdup(impl->path);
                copy->folder = lc_strdup(impl->folder);
                copy->root = lc_strdup(impl->root);
                copy->variant = lc_strdup(impl->variant);
                out->impl = copy;
                out->rows = copy_rows(p->rows, p->nrows);
        }
        return out;
}

void lc_declarations_free(lc_declarations_t *d)
{
        for (size_t i = 0; i < d->n; i++)
                lc_plugin_free(d->v[i]);
        free(d->v);
        lc_strv_free(&d->modules);
        d->v = NULL;
        d->n = 0;
}

/* ---- reading boot.lua's description (already checked there) ------------------------------------- */

static char *text_field(lua_State *L, int idx, const char *name)
{
        char *s;

        lua_getfield(L, idx, name);
        s = lc_strdup(lua_tostring(L, -1));
        lua_pop(L, 1);
        return s;
}

static bool bool_field(lua_State *L, int idx, const char *name)
{
        bool b;

        lua_getfield(L, idx, name);
        b = lua_toboolean(L, -1);
        lua_pop(L, 1);
        return b;
}

static int index_field(lua_State *L, int idx, const char *name, const char *const *names, int other)
{
        const char *s;
        int found = other;

        lua_getfield(L, idx, name);
        s = lua_tostring(L, -1);
        for (int i = 0; s && names[i]; i++)
                if (!strcmp(names[i], s))
                        found = i;
        lua_pop(L, 1);
        return found;
}

static void read_one_of(lua_State *L, int idx, lc_config_row_t *row)
{
        const char **list;
        size_t n;

        lua_getfield(L, idx, "one_of");
        if (lua_istable(L, -1)) {
                n = lua_objlen(L, -1);
                row->one_of = list = lc_calloc(n + 1, sizeof(*list));
                for (size_t i = 0; i < n; i++) {
                        lua_rawgeti(L, -1, (int)i + 1);
                        list[i] = lc_strdup(lua_tostring(L, -1));
                        lua_pop(L, 1);
                }
                row->check = bool_field(L, idx, "any_case") ? lc_check_one_of_ci : lc_check_one_of;
        }
        lua_pop(L, 1);
}

static void read_range(lua_State *L, int idx, lc_config_row_t *row)
{
        lua_getfield(L, idx, "min");
        lua_getfield(L, idx, "max");
        if (lua_isnumber(L, -2)) {
                row->min = lua_tonumber(L, -2);
                row->check = lua_isnumber(L, -1) ? lc_check_range : lc_check_at_least;
                row->max = lua_isnumber(L, -1) ? lua_tonumber(L, -1) : 0;
        }
        lua_pop(L, 2);
}

static void read_row(lua_State *L, int idx, lc_config_row_t *row)
{
        static const char *const types[] = {"boolean", "string", "int",   "short",    "long",
                                            "double",  "list",   "class", "password", NULL};
        static const char *const importances[] = {"high", "medium", "low", NULL};
        static const char *const widths[] = {"none", "short", "medium", "long", NULL};

        row->name = text_field(L, idx, "name");
        row->type = (lc_config_type_t)index_field(L, idx, "type", types, LC_CFG_STRING);
        row->required = bool_field(L, idx, "required");
        row->def = text_field(L, idx, "default");
        row->importance = (lc_importance_t)index_field(L, idx, "importance", importances, LC_MEDIUM);
        row->group = text_field(L, idx, "group");
        lua_getfield(L, idx, "order");
        row->order = lua_isnumber(L, -1) ? (int)lua_tonumber(L, -1) : -1;
        lua_pop(L, 1);
        row->width = (lc_width_t)index_field(L, idx, "width", widths, LC_WIDTH_NONE);
        row->display = text_field(L, idx, "display");
        row->doc = text_field(L, idx, "doc");
        if (bool_field(L, idx, "distinct")) {
                row->check = bool_field(L, idx, "non_empty") ? lc_check_list_non_empty : lc_check_list;
                row->whole = true;
        } else if (bool_field(L, idx, "non_empty")) {
                row->check = lc_check_non_empty;
        }
        read_range(L, idx, row);
        read_one_of(L, idx, row);
}

static void read_plugin(lua_State *L, int idx, const lc_declarations_t *d, lc_plugin_t *p)
{
        static const char *const kinds[] = {"sink",      "source",           "transform", "predicate",
                                            "converter", "header_converter", NULL};
        lc_plugin_impl_t *impl = p->impl;
        lc_config_row_t *rows;
        size_t n;

        p->type = (lc_plugin_type_t)index_field(L, idx, "kind", kinds, LC_PLUGIN_SOURCE);
        p->class_name = text_field(L, idx, "class");
        p->task_class = text_field(L, idx, "task_class");
        p->version = d->version ? lc_strdup(d->version) : text_field(L, idx, "version");
        p->location = lc_strdup(d->location);
        p->path = lc_strdup(d->path);
        p->loaded = d->loaded;
        impl->set = d->set;
        impl->path = lc_strdup(d->path);
        impl->folder = lc_strdup(d->folder);
        impl->root = lc_strdup(d->root);
        lua_getfield(L, idx, "index");
        impl->index = (int)lua_tonumber(L, -1);
        lua_pop(L, 1);
        impl->variant = text_field(L, idx, "variant");
        impl->standard = d->version != NULL;
        impl->has_validate = bool_field(L, idx, "validate");
        impl->has_exactly_once = bool_field(L, idx, "exactly_once");
        p->validate = impl->has_validate ? lc_declaration_validate : NULL;
        p->exactly_once = impl->has_exactly_once ? lc_declaration_exactly_once : NULL;
        p->boundaries = bool_field(L, idx, "boundaries") ? lc_declaration_boundaries : NULL;
        lua_getfield(L, idx, "aliases");
        n = lua_objlen(L, -1);
        for (size_t i = 1; i <= n; i++) {
                lua_rawgeti(L, -1, (int)i);
                lc_strv_add(&p->aliases, lua_tostring(L, -1));
                lua_pop(L, 1);
        }
        lua_pop(L, 1);
        lc_plugin_add_aliases(p);
        lua_getfield(L, idx, "rows");
        n = lua_objlen(L, -1);
        p->rows = rows = lc_calloc(n ? n : 1, sizeof(*rows));
        for (size_t i = 0; i < n; i++) {
                lua_rawgeti(L, -1, (int)i + 1);
                p->nrows = (int)i + 1;
                read_row(L, lua_gettop(L), &rows[i]);
                lua_pop(L, 1);
        }
        lua_pop(L, 1);
}

static void read_all(lua_State *L, void *arg)
{
        lc_declarations_t *d = arg;
        size_t n;

        lc_state_function(L, "load");
        lua_pushstring(L, d->path);
        lua_pushstring(L, d->root);
        lua_pushstring(L, d->folder);
        lua_pushboolean(L, d->version != NULL);
        lua_call(L, 4, 0);
        lc_state_function(L, "describe");
        lua_call(L, 0, 1);
        n = lua_objlen(L, -1);
        d->v = lc_calloc(n ? n : 1, sizeof(*d->v));
        for (size_t i = 0; i < n; i++) {
                d->v[i] = lc_calloc(1, sizeof(**d->v));
                d->v[i]->impl = lc_calloc(1, sizeof(lc_plugin_impl_t));
                d->n = i + 1;
                lua_rawgeti(L, -1, (int)i + 1);
                read_plugin(L, lua_gettop(L), d, d->v[i]);
                lua_pop(L, 1);
        }
}

/* All modules of a folder are compiled now, so that one that is first required later is of the same age as
 * the rest. One that does not compile is an error for who requires it. */
static void keep_modules(lua_State *L, void *arg)
{
        lc_declarations_t *d = arg;

        lc_strv_free(&d->modules);
        lc_entry_files(d->folder, &d->modules);
        for (size_t i = 0; i < d->modules.n; i++) {
                lc_err_t ignored = {0};
                if (lc_code_push(d->set->code, L, d->modules.v[i], !d->version, &ignored) == 0)
                        lua_pop(L, 1);
        }
}

static uint64_t loads; /* atomic */

int lc_declarations_load(lc_declarations_t *d, lc_err_t *err)
{
        bool ours = d->version && d->set->scan; /* what ships shares a state while it is scanned */
        lc_state_t *st =
                ours ? d->set->scan
                     : lc_state_new(d->set->code, d->set->home, NULL, d->root, d->folder, false, err);
        lc_err_t ignored;
        int rc;

        if (!st)
                return -1;
        d->loaded = __atomic_add_fetch(&loads, 1, __ATOMIC_RELAXED);
        rc = lc_state_run_limited(st, LC_LOAD_PHASE_MS, read_all, d, err);
        if (!rc && d->folder)
                lc_state_run(st, keep_modules, d, &ignored);
        if (!ours)
                lc_state_free(st);
        return rc;
}

/* ---- states of a plugin ------------------------------------------------------------------------- */

static void load_and_select(lua_State *L, void *arg)
{
        const lc_plugin_impl_t *impl = arg;

        lc_state_function(L, "load");
        lua_pushstring(L, impl->path);
        lua_call(L, 1, 0);
        lc_state_function(L, "select");
        lua_pushinteger(L, impl->index);
        lua_call(L, 1, 0);
        lua_gc(L, LUA_GCCOLLECT, 0); /* what loading left behind: idle states are many */
}

lc_state_t *lc_state_for_plugin(const lc_plugin_t *plugin, const lc_script_host_t *host, lc_err_t *err)
{
        lc_plugin_impl_t *impl = plugin->impl;
        lc_state_t *st;

        if (!impl || plugin->error) {
                lc_err_set(err, LC_FATAL, 0, "Plugin %s %s%s", plugin->class_name,
                           plugin->error ? "could not be loaded: " : "has no Lua code",
                           plugin->error ? plugin->error : "");
                return NULL;
        }
        st = lc_state_new(impl->set->code, impl->set->home, host, impl->root, impl->folder, impl->standard,
                          err);
        if (st && lc_state_run_limited(st, LC_LOAD_PHASE_MS, load_and_select, impl, err) < 0) {
                lc_state_free(st);
                return NULL;
        }
        return st;
}

static void push_typed(lua_State *L, const lc_config_row_t *row, const char *text)
{
        lc_strv_t *texts = &lc_state_of(L)->texts;
        double d;

        switch (row->type) {
        case LC_CFG_BOOLEAN:
                lua_pushboolean(L, !strcmp(text, "true"));
                return;
        case LC_CFG_LONG:
                d = strtod(text, NULL);
                if (d <= -9007199254740992.0 || d >= 9007199254740992.0) { /* the next digits may be lost */
                        lc_state_function(L, "int64");
                        lua_pushstring(L, text);
                        lua_call(L, 1, 1);
                        return;
                }
                lua_pushnumber(L, d);
                return;
        case LC_CFG_INT:
        case LC_CFG_SHORT:
        case LC_CFG_DOUBLE:
                lua_pushnumber(L, strtod(text, NULL));
                return;
        case LC_CFG_LIST:
                lc_strv_free(texts);
                lc_strv_split(texts, text);
                lua_createtable(L, (int)texts->n, 0);
                for (size_t i = 0; i < texts->n; i++) {
                        lua_pushstring(L, texts->v[i]);
                        lua_rawseti(L, -2, (int)i + 1);
                }
                lua_getfield(L, LUA_REGISTRYINDEX, "connect.types"); /* an array, also when it is empty */
                if (lua_istable(L, -1)) {
                        lua_getfield(L, -1, "array");
                        lua_setmetatable(L, -3);
                }
                lua_pop(L, 1);
                return;
        default:
                lua_pushstring(L, text);
        }
}

/* Java's ConfigDef.parse() takes duplicates out of lists that must have none; validation refuses them. One
 * property with the rest, or NULL: the row has no such list, or there is nothing to do. */
static lc_props_t *without_duplicates(const lc_config_row_t *row, const lc_props_t *config)
{
        const char *text = lc_props_get(config, row->name);
        lc_strv_t kept = {NULL, 0};
        lc_props_t *out = NULL;

        if (!text || (row->check != lc_check_list && row->check != lc_check_list_non_empty))
                return NULL;
        lc_strv_split(&kept, text);
        if (lc_strv_unique(&kept)) {
                lc_buf_t b = LC_BUF_INIT;
                for (size_t i = 0; i < kept.n; i++) {
                        lc_buf_adds(&b, i ? "," : "");
                        lc_buf_adds(&b, kept.v[i]);
                }
                lc_log(LC_WARN, "SCRIPT",
                       "Configuration key \"%s\" contains duplicate values. Duplicates will be removed. The "
                       "original value is: %s, the updated value is: %s",
                       row->name, text, b.p ? b.p : "");
                out = lc_props_new();
                lc_props_set(out, row->name, b.p ? b.p : "");
                lc_buf_free(&b);
        }
        lc_strv_free(&kept);
        return out;
}

void lc_state_push_config(lua_State *L, const lc_plugin_t *plugin, const lc_props_t *config, lc_strv_t *bad)
{
        lc_state_t *st = lc_state_of(L);
        lc_err_t err = {0};

        lua_createtable(L, 0, (int)lc_props_count(config));
        for (size_t i = 0; i < lc_props_count(config); i++) {
                lua_pushstring(L, lc_props_value(config, i));
                lua_setfield(L, -2, lc_props_key(config, i));
        }
        for (int i = 0; i < plugin->nrows; i++) {
                const lc_config_row_t *row = &plugin->rows[i];
                lc_props_t *distinct = bad ? NULL : without_duplicates(row, config);
                int rc;

                lc_strv_free(&st->texts);
                free(st->text);
                st->text = NULL;
                rc = lc_config_parse(row, row->name, distinct ? distinct : config, &st->text, &st->texts);
                lc_props_free(distinct);
                if (rc < 0) {
                        if (!bad) {
                                lc_err_set_cls(&err, LC_FATAL, 0, LC_CLS_CONFIG, "%s",
                                               st->texts.n ? st->texts.v[0] : "");
                                lc_state_raise(L, &err);
                        }
                        lc_strv_add(bad, row->name);
                        lua_pushnil(L);
                } else if (st->text) {
                        push_typed(L, row, st->text);
                } else {
                        lua_pushnil(L);
                }
                lua_setfield(L, -2, row->name);
        }
}

/* ---- lc_plugin_t's functions -------------------------------------------------------------------- */

struct validation {
        const lc_plugin_t *plugin;
        const lc_props_t *config;
        lc_config_infos_t *infos;
        lc_strv_t bad;
        const char *question; /* of boot.lua */
        lc_eos_t eos;
};

static const lc_config_row_t *row_of(const lc_plugin_t *plugin, const char *name)
{
        for (int i = 0; i < plugin->nrows; i++)
                if (!strcmp(plugin->rows[i].name, name))
                        return &plugin->rows[i];
        return NULL;
}

static void add_error(struct validation *v, const char *key, const char *text, bool raw)
{
        lc_config_value_t *value = lc_config_infos_find(v->infos, key);
        const lc_config_row_t *row = row_of(v->plugin, key);
        lc_buf_t message = LC_BUF_INIT;

        if (!value)
                value = lc_config_infos_add(v->infos, row, key);
        if (raw || !row)
                lc_buf_adds(&message, text);
        else
                lc_config_invalid(&message, row->type, value->value, key, text);
        lc_strv_add(&value->errors, message.p ? message.p : "");
        lc_buf_free(&message);
}

/* validate(config, bad) -> list of {key, message, whole} */
static void run_validate(lua_State *L, void *arg)
{
        struct validation *v = arg;
        size_t n;

        lc_state_function(L, "validate");
        lc_state_push_config(L, v->plugin, v->config, &v->bad);
        lua_createtable(L, 0, (int)v->bad.n);
        for (size_t i = 0; i < v->bad.n; i++) {
                lua_pushboolean(L, 1);
                lua_setfield(L, -2, v->bad.v[i]);
        }
        lua_call(L, 2, 1);
        n = lua_objlen(L, -1);
        for (size_t i = 1; i <= n; i++) {
                lua_rawgeti(L, -1, (int)i);
                lua_getfield(L, -1, "key");
                lua_getfield(L, -2, "message");
                lua_getfield(L, -3, "whole");
                add_error(v, luaL_checkstring(L, -3), luaL_checkstring(L, -2), lua_toboolean(L, -1));
                lua_pop(L, 4);
        }
}

int lc_declaration_validate(const lc_plugin_t *plugin, const lc_props_t *config, lc_config_infos_t *infos,
                            lc_err_t *err)
{
        struct validation v = {.plugin = plugin, .config = config, .infos = infos};
        lc_state_t *st = lc_state_for_plugin(plugin, NULL, err);
        int rc = -1;

        if (st)
                rc = lc_state_run_limited(st, LC_LOAD_PHASE_MS, run_validate, &v, err);
        lc_state_free(st);
        lc_strv_free(&v.bad);
        return rc;
}

static void run_answer(lua_State *L, void *arg)
{
        struct validation *v = arg;

        lc_state_function(L, v->question);
        lc_state_push_config(L, v->plugin, v->config, &v->bad);
        lua_call(L, 1, 1);
        v->eos = lua_isnil(L, -1)       ? LC_EOS_NULL
                 : lua_toboolean(L, -1) ? LC_EOS_SUPPORTED
                                        : LC_EOS_UNSUPPORTED;
}

static lc_eos_t answer(const lc_plugin_t *plugin, const char *question, const lc_props_t *config,
                       lc_err_t *err)
{
        struct validation v = {.plugin = plugin, .config = config, .question = question, .eos = LC_EOS_NULL};
        lc_state_t *st = lc_state_for_plugin(plugin, NULL, err);

        if (st && lc_state_run_limited(st, LC_LOAD_PHASE_MS, run_answer, &v, err) < 0)
                v.eos = LC_EOS_NULL;
        lc_state_free(st);
        lc_strv_free(&v.bad);
        return v.eos;
}

lc_eos_t lc_declaration_exactly_once(const lc_plugin_t *plugin, const lc_props_t *config, lc_err_t *err)
{
        return answer(plugin, "exactly_once", config, err);
}

lc_eos_t lc_declaration_boundaries(const lc_plugin_t *plugin, const lc_props_t *config, lc_err_t *err)
{
        return answer(plugin, "boundaries", config, err);
}
