/*
 * try_plugin.c - which connector `luaconnect try --source` and `--sink` run: a plugin named by its path or its class, or a
 * configuration that names one; and whether its configuration will do.
 *
 * Threads:   main.   Tests: spec/unit/try_connector_spec.lua
 */
#include "cli/try.h"
#include "base/alloc.h"
#include "base/log.h"
#include "config/connector_config.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool lc_try_is_class(const char *name)
{
        return !strpbrk(name, "/ ") && access(name, F_OK) != 0 && !lc_try_is_plugin(name) &&
               !strstr(name, ".json") && !strstr(name, ".properties");
}

bool lc_try_is_plugin(const char *path)
{
        size_t n = strlen(path);
        struct stat st;

        return (n > 4 && !strcmp(path + n - 4, ".lua")) || (!stat(path, &st) && S_ISDIR(st.st_mode));
}

/* The plugin's file or folder joins the plugin path, under its real name. */
static int add_plugin_path(lc_try_t *t, char **path, lc_err_t *err)
{
        char real[PATH_MAX];
        size_t n;

        if (!realpath(t->connector, real))
                return lc_err_set(err, LC_FATAL, errno, "cannot read %s: %s", t->connector, strerror(errno));
        n = strlen(real);
        if (n > 9 && !strcmp(real + n - 9, "/init.lua"))
                real[n - 9] = '\0';
        *path = lc_strdup(real);
        lc_strv_add(&t->plugin_path, real);
        return 0;
}

static bool is_of(const lc_plugin_t *p, const char *path)
{
        size_t n = strlen(path);

        return p->path && !strncmp(p->path, path, n) && (!p->path[n] || !strcmp(p->path + n, "/init.lua"));
}

/* connector.class for a plugin that was named by its path, unless -c says it. */
static int choose_class(lc_try_t *t, const char *path, lc_err_t *err)
{
        lc_plugin_type_t want = t->source ? LC_PLUGIN_SOURCE : LC_PLUGIN_SINK;
        const char *kind = t->source ? "source" : "sink";
        const lc_plugin_t *one = NULL;
        lc_buf_t others = LC_BUF_INIT;
        size_t n = 0;

        for (size_t i = 0; i < t->plugins->n; i++) {
                const lc_plugin_t *p = t->plugins->v[i];
                if (!is_of(p, path))
                        continue;
                if (p->error)
                        return lc_err_set(err, LC_FATAL, 0, "%s: %s", t->connector, p->error);
                if (p->type == want) {
                        one = p;
                        n++;
                } else {
                        lc_buf_printf(&others, "%s%s %s", others.len ? ", " : "",
                                      lc_plugin_type_name(p->type), p->class_name);
                }
        }
        if (n == 1 && !lc_props_has(t->config, "connector.class"))
                lc_props_set(t->config, "connector.class", one->class_name);
        else if (n > 1 && !lc_props_has(t->config, "connector.class"))
                lc_err_set(err, LC_FATAL, 0, "%s has several %ss: choose one by -c connector.class=NAME",
                           t->connector, kind);
        else if (!n && others.len)
                lc_err_set(err, LC_FATAL, 0, "%s is no %s: it is %s", t->connector, kind, others.p);
        else if (!n)
                lc_err_set(err, LC_FATAL, 0, "%s: no plugin in it (NAME.lua or NAME/init.lua)", t->connector);
        lc_buf_free(&others);
        return err->kind ? -1 : 0;
}

int lc_try_find_plugins(lc_try_t *t, lc_err_t *err)
{
        char *path = NULL;
        int rc = 0;

        if (lc_try_is_plugin(t->connector))
                rc = add_plugin_path(t, &path, err);
        if (!rc && !(t->home = lc_home_find(err)))
                rc = -1;
        if (!rc) {
                if (path) /* the error is told below */
                        lc_log_set_level("PLUGIN", "off");
                t->plugins = lc_plugins_scan(t->home, &t->plugin_path, err);
                rc = t->plugins ? 0 : -1;
        }
        if (!rc && path)
                rc = choose_class(t, path, err);
        free(path);
        return rc;
}

int lc_try_check_config(const lc_try_t *t, const lc_worker_config_t *config, lc_err_t *err)
{
        const lc_plugin_t *p;
        lc_config_infos_t *infos;
        char *text;

        p = lc_plugins_find(t->plugins, 1u << LC_PLUGIN_SOURCE | 1u << LC_PLUGIN_SINK,
                            lc_props_get_or(t->config, "connector.class", ""), err);
        if (!p) {
                lc_err_t why = *err;
                lc_err_clear(err);
                if (!lc_props_has(t->config, "connector.class"))
                        return lc_err_set(err, LC_FATAL, 0, "%s names no connector.class", t->connector);
                return lc_err_set(err, LC_FATAL, 0, "%s: %s", t->connector, why.msg);
        }
        if ((p->type == LC_PLUGIN_SOURCE) != t->source)
                return lc_err_set(err, LC_FATAL, 0, "%s is a %s: use --%s", p->class_name,
                                  t->source ? "sink" : "source", t->source ? "sink" : "source");
        infos = lc_connector_validate(config, t->plugins, t->config, err);
        if (!infos)
                return -1;
        text = lc_config_infos_rejection(infos);
        lc_config_infos_free(infos);
        if (text) {
                char *end = strstr(text, "\nYou can also find"); /* there is no REST here */
                lc_err_set(err, LC_FATAL, 0, "%.*s", end ? (int)(end - text) : (int)strlen(text), text);
                free(text);
                return -1;
        }
        return 0;
}
