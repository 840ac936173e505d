/* try_steps.c - see try_steps.h. */
#include "cli/try_steps.h"
#include "base/alloc.h"
#include "base/buf.h"
#include "base/strv.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Up to an unescaped `;`. Other backslashes stay as they are: regular expressions are full of them. */
static const char *take_part(const char *s, lc_buf_t *out)
{
        lc_buf_clear(out);
        lc_buf_adds(out, "");
        for (; *s && *s != ';'; s++) {
                if (*s == '\\' && (s[1] == ';' || s[1] == ':'))
                        s++;
                lc_buf_addc(out, *s);
        }
        return *s ? s + 1 : s;
}

/* key=value;key=value below `prefix`. */
static int add_settings(lc_props_t *config, const char *prefix, const char *text, const char *whole,
                        lc_err_t *err)
{
        lc_buf_t part = LC_BUF_INIT;
        int rc = 0;

        while (*text && !rc) {
                char *eq, *key;
                text = take_part(text, &part);
                if (!part.len)
                        continue;
                eq = strchr(part.p, '=');
                if (!eq || eq == part.p) {
                        rc = lc_err_set(err, LC_FATAL, 0,
                                        "'%s': '%s' is not key=value (write \\; for a ; within a value)",
                                        whole, part.p);
                        break;
                }
                *eq = '\0';
                key = lc_asprintf("%s%s", prefix, part.p);
                lc_props_set(config, key, eq + 1);
                free(key);
        }
        lc_buf_free(&part);
        return rc;
}

static void append_alias(lc_props_t *config, const char *list, const char *alias)
{
        const char *before = lc_props_get(config, list);
        char *all = before && *before ? lc_asprintf("%s,%s", before, alias) : lc_strdup(alias);

        lc_props_set(config, list, all);
        free(all);
}

static int add(lc_props_t *config, const char *group, const char *alias, const char *text, const char *whole,
               lc_err_t *err)
{
        size_t n = strcspn(text, ":");
        char *prefix, *type, *cls;
        int rc;

        if (!n || strcspn(text, "=;") < n)
                return lc_err_set(err, LC_FATAL, 0, "'%s' is not Class:key=value;key=value", whole);
        prefix = lc_asprintf("%s.%s.", group, alias);
        type = lc_asprintf("%stype", prefix);
        cls = lc_strndup(text, n);
        append_alias(config, group, alias);
        lc_props_set(config, type, cls);
        rc = add_settings(config, prefix, text[n] ? text + n + 1 : "", whole, err);
        free(cls);
        free(type);
        free(prefix);
        return rc;
}

int lc_try_add_step(lc_props_t *config, const char *text, lc_err_t *err)
{
        lc_strv_t have = {NULL, 0};
        char alias[32];
        int rc, i;

        lc_strv_split(&have, lc_props_get_or(config, "transforms", ""));
        i = (int)have.n;
        do /* names of the file's transforms may look the same */
                snprintf(alias, sizeof(alias), "t%d", ++i);
        while (lc_strv_has(&have, alias));
        lc_strv_free(&have);
        rc = add(config, "transforms", alias, text, text, err);
        return rc;
}

int lc_try_add_predicate(lc_props_t *config, const char *text, lc_err_t *err)
{
        size_t n = strcspn(text, "=");
        char *name;
        int rc;

        if (!n || !text[n] || memchr(text, ':', n))
                return lc_err_set(err, LC_FATAL, 0, "'%s' is not name=Class:key=value;key=value", text);
        name = lc_strndup(text, n);
        rc = add(config, "predicates", name, text + n + 1, text, err);
        free(name);
        return rc;
}

int lc_try_add_setting(lc_props_t *config, const char *text, lc_err_t *err)
{
        size_t n = strcspn(text, "=");
        char *key;

        if (!n || !text[n])
                return lc_err_set(err, LC_FATAL, 0, "'%s' is not key=value", text);
        key = lc_strndup(text, n);
        lc_props_set(config, key, text + n + 1);
        free(key);
        return 0;
}

static bool has_row(const lc_plugin_t *p, const char *key)
{
        for (int i = 0; i < p->nrows; i++)
                if (!strcmp(p->rows[i].name, key))
                        return true;
        return false;
}

/* The name of a transform that works on keys and on values, without saying which. */
static void hint(const lc_plugins_t *plugins, lc_plugin_type_t type, const char *cls)
{
        char *value = lc_asprintf("%s$Value", cls);
        lc_err_t err = {0};

        if (lc_plugins_find(plugins, 1u << type, value, &err))
                fprintf(stderr, "luaconnect: there are %s$Key and %s$Value\n", cls, cls);
        free(value);
}

static void warn_of_group(const lc_props_t *config, const lc_plugins_t *plugins, const char *group,
                          lc_plugin_type_t type)
{
        lc_strv_t names = {NULL, 0};

        lc_strv_split(&names, lc_props_get_or(config, group, ""));
        for (size_t i = 0; i < names.n; i++) {
                char *prefix = lc_asprintf("%s.%s.", group, names.v[i]);
                lc_props_t *own = lc_props_prefixed(config, prefix);
                const char *cls = lc_props_get(own, "type");
                lc_err_t err = {0};
                const lc_plugin_t *p = cls ? lc_plugins_find(plugins, 1u << type, cls, &err) : NULL;
                if (cls && !p)
                        hint(plugins, type, cls);
                for (size_t k = 0; p && k < lc_props_count(own); k++) {
                        const char *key = lc_props_key(own, k);
                        bool common = !strcmp(key, "type") ||
                                      (type == LC_PLUGIN_TRANSFORMATION &&
                                       (!strcmp(key, "predicate") || !strcmp(key, "negate")));
                        if (common || has_row(p, key))
                                continue;
                        fprintf(stderr, "luaconnect: warning: %s has no setting '%s', it is ignored; it has",
                                cls, key);
                        for (int r = 0; r < p->nrows; r++)
                                fprintf(stderr, "%s %s", r ? "," : "", p->rows[r].name);
                        fprintf(stderr, "%s\n", p->nrows ? "" : " none");
                }
                lc_props_free(own);
                free(prefix);
        }
        lc_strv_free(&names);
}

void lc_try_warn_of_keys(const lc_props_t *config, const lc_plugins_t *plugins)
{
        warn_of_group(config, plugins, "transforms", LC_PLUGIN_TRANSFORMATION);
        warn_of_group(config, plugins, "predicates", LC_PLUGIN_PREDICATE);
}
