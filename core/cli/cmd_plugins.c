/*
 * cmd_plugins.c - `luaconnect plugins`: a table of what is found where, or the same as JSON.
 *
 * Threads:   main.   Tests: spec/unit/cli_spec.lua
 */
#include "cli/commands.h"
#include "base/log.h"
#include "cli/run.h"
#include "config/properties.h"
#include "script/script.h"
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_json(const lc_plugins_t *set)
{
        cJSON *list = cJSON_CreateArray();
        char *text;

        for (size_t i = 0; i < set->n; i++) {
                const lc_plugin_t *p = set->v[i];
                cJSON *item = cJSON_CreateObject();
                cJSON *aliases = cJSON_CreateArray();
                cJSON_AddStringToObject(item, "type", lc_plugin_type_name(p->type));
                cJSON_AddStringToObject(item, "class", p->class_name);
                cJSON_AddStringToObject(item, "version", p->version ? p->version : "undefined");
                cJSON_AddStringToObject(item, "location", p->location ? p->location : "");
                for (size_t a = 0; a < p->aliases.n; a++)
                        cJSON_AddItemToArray(aliases, cJSON_CreateString(p->aliases.v[a]));
                cJSON_AddItemToObject(item, "aliases", aliases);
                if (p->error)
                        cJSON_AddStringToObject(item, "error", p->error);
                cJSON_AddItemToArray(list, item);
        }
        text = cJSON_Print(list);
        puts(text ? text : "[]");
        cJSON_free(text);
        cJSON_Delete(list);
}

static void print_table(const lc_plugins_t *set)
{
        int width = 5;
        size_t broken = 0;

        for (size_t i = 0; i < set->n; i++) {
                int n = (int)strlen(set->v[i]->class_name);
                if (n > width)
                        width = n;
                broken += set->v[i]->error != NULL;
        }
        printf("%-16s  %-*s  %-10s  %s\n", "TYPE", width, "CLASS", "VERSION", "LOCATION");
        for (size_t i = 0; i < set->n; i++) {
                const lc_plugin_t *p = set->v[i];
                if (!p->error)
                        printf("%-16s  %-*s  %-10s  %s\n", lc_plugin_type_name(p->type), width, p->class_name,
                               p->version ? p->version : "undefined", p->location ? p->location : "");
        }
        if (broken)
                printf("\nnot usable:\n");
        for (size_t i = 0; i < set->n; i++)
                if (set->v[i]->error)
                        printf("  %s (%s): %s\n", set->v[i]->class_name,
                               set->v[i]->location ? set->v[i]->location : "", set->v[i]->error);
}

/* plugin.path of a worker.properties, which needs no other key here. */
static int path_of_file(const char *file, lc_strv_t *path, lc_err_t *err)
{
        lc_props_t *props = NULL;

        if (lc_properties_load(file, &props, err))
                return -1;
        if (lc_props_get(props, "plugin.path"))
                lc_strv_split(path, lc_props_get(props, "plugin.path"));
        lc_props_free(props);
        return 0;
}

enum { OPT_JSON = LC_ARG_LONG, OPT_PATH };
const lc_option_t lc_plugins_options[] = {
        {OPT_JSON, "json", NULL, "a JSON array instead of a table", NULL},
        {OPT_PATH, "plugin-path", "DIR,...", "folders with plugins", "dir"},
        {0, NULL, NULL, NULL, NULL},
};

int lc_cmd_plugins(const lc_command_t *self, int argc, char **argv)
{
        lc_args_t args = {.command = self, .argc = argc, .argv = argv};
        lc_strv_t path = {NULL, 0};
        lc_plugins_t *set = NULL;
        char *home = NULL;
        bool json = false;
        lc_err_t err;
        int code = LC_KIT_USAGE, id;

        lc_err_clear(&err);
        lc_log_set_fd(2); /* stdout is the list */
        lc_log_set_level(NULL, "warn");
        while ((id = lc_args_next(&args)) != LC_ARG_END) {
                if (id == OPT_JSON) {
                        json = true;
                } else if (id == OPT_PATH) {
                        lc_strv_split(&path, args.value);
                } else if (id != LC_ARG_OPERAND) {
                        code = id == LC_ARG_HELP ? LC_KIT_OK : LC_KIT_USAGE;
                        goto done;
                } else if (path_of_file(args.value, &path, &err)) {
                        goto done;
                }
        }
        home = lc_home_find(&err);
        if (home)
                set = lc_plugins_scan(home, &path, &err);
        if (set) {
                if (json)
                        print_json(set);
                else
                        print_table(set);
                code = LC_KIT_OK;
        }
done:
        if (err.kind)
                lc_command_error(NULL, &err);
        if (set)
                lc_plugins_free(set);
        free(home);
        lc_strv_free(&path);
        return code;
}
