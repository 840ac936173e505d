/* commands.c - see commands.h. */
#include "cli/commands.h"
#include "base/alloc.h"
#include "base/log.h"
#include "cli/run.h"
#include "config/properties.h"
#include "script/script.h"
#include <cjson/cJSON.h>
#include <librdkafka/rdkafka.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef LC_VERSION
#define LC_VERSION "unknown"
#endif

typedef struct command {
        const char *name, *arguments, *help;
        int (*run)(const struct command *self, int argc, char **argv); /* argv[0] is the first argument */
} command_t;
static const command_t commands[];

static int usage(const command_t *self)
{
        printf("Usage: luaconnect %s %s\n", self->name, self->arguments);
        return LC_EXIT_USAGE;
}

/* As Connect's: --help anywhere is a request for the usage. */
static bool wants_help(int argc, char **argv)
{
        for (int i = 0; i < argc; i++)
                if (!strcmp(argv[i], "--help"))
                        return true;
        return false;
}

static int run_distributed(const command_t *self, int argc, char **argv)
{
        lc_run_args_t args = {.mode = LC_DISTRIBUTED};

        if (argc < 1 || wants_help(argc, argv))
                return usage(self);
        args.properties = argv[0];
        return lc_run_worker(&args);
}

static int run_standalone(const command_t *self, int argc, char **argv)
{
        static const char option[] = "--embedded-broker";
        size_t n = sizeof(option) - 1;
        lc_run_args_t args = {.mode = LC_STANDALONE};
        int code;

        if (wants_help(argc, argv))
                return usage(self);
        while (argc > 0 && !strncmp(argv[0], "--", 2)) {
                if (strncmp(argv[0], option, n) || (argv[0][n] && argv[0][n] != '=')) {
                        fprintf(stderr, "luaconnect: unknown option %s\n", argv[0]);
                        return usage(self);
                }
                args.embedded_broker = true;
                if (argv[0][n] == '=')
                        lc_strv_split(&args.topics, argv[0] + n + 1);
                argc--;
                argv++;
        }
        if (argc < 1) {
                lc_strv_free(&args.topics);
                return usage(self);
        }
        args.properties = argv[0];
        args.files = argv + 1;
        args.nfiles = argc - 1;
        code = lc_run_worker(&args);
        lc_strv_free(&args.topics);
        return code;
}

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

static int run_plugins(const command_t *self, int argc, char **argv)
{
        lc_strv_t path = {NULL, 0};
        lc_plugins_t *set = NULL;
        char *home = NULL;
        bool json = false;
        lc_err_t err;
        int code = LC_EXIT_START;

        lc_err_clear(&err);
        if (wants_help(argc, argv))
                return usage(self);
        lc_log_set_fd(2); /* stdout is the list */
        lc_log_set_level(NULL, "warn");
        for (int i = 0; i < argc; i++) {
                if (!strcmp(argv[i], "--json")) {
                        json = true;
                } else if (!strncmp(argv[i], "--plugin-path=", 14)) {
                        lc_strv_split(&path, argv[i] + 14);
                } else if (argv[i][0] == '-') {
                        fprintf(stderr, "luaconnect: unknown option %s\n", argv[i]);
                        code = usage(self);
                        goto done;
                } else if (path_of_file(argv[i], &path, &err)) {
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
                code = LC_EXIT_OK;
        }
done:
        if (err.kind)
                fprintf(stderr, "luaconnect: %s%s%s\n", err.cls ? err.cls : "", err.cls ? ": " : "", err.msg);
        if (set)
                lc_plugins_free(set);
        free(home);
        lc_strv_free(&path);
        return code;
}

static int run_version(const command_t *self, int argc, char **argv)
{
        (void)self;
        (void)argc;
        (void)argv;
        printf("luaconnect %s (Kafka Connect 4.3.1, librdkafka %s, libmicrohttpd %s)\n", LC_VERSION,
               rd_kafka_version_str(), MHD_get_version());
        return LC_EXIT_OK;
}

static int run_help(const command_t *self, int argc, char **argv)
{
        (void)self;
        (void)argc;
        (void)argv;
        puts("luaconnect - Kafka Connect without the JVM: connectors and transforms in Lua\n");
        puts("Usage: luaconnect COMMAND [ARGUMENTS]\n");
        for (const command_t *c = commands; c->name; c++)
                printf("  %s %s\n      %s\n", c->name, c->arguments, c->help);
        puts("\nEnvironment: LUACONNECT_HOME (folder with lua/ and connectors/), LUACONNECT_LOG_LEVEL (off, "
             "error,");
        puts("warn, info, debug, trace; else log.level in worker.properties).");
        return LC_EXIT_OK;
}

static const command_t commands[] = {
        {"distributed", "worker.properties", "run a worker of a Connect cluster", run_distributed},
        {"standalone",
         "[--embedded-broker[=TOPIC,...]] worker.properties [connector1.properties connector2.json ...]",
         "run a worker by itself; --embedded-broker needs no Kafka and keeps nothing", run_standalone},
        {"plugins", "[--json] [--plugin-path=DIR,...] [worker.properties]",
         "list connectors, transforms, predicates and converters, and where they were found", run_plugins},
        {"version", "", "print the versions", run_version},
        {"help", "", "print this", run_help},
        {NULL, NULL, NULL, NULL}};

int lc_main(int argc, char **argv)
{
        const char *name = argc > 1 ? argv[1] : NULL;

        setvbuf(stdout, NULL, _IOLBF, 0);
        if (!name) {
                run_help(NULL, 0, NULL);
                return LC_EXIT_USAGE;
        }
        if (!strcmp(name, "--help") || !strcmp(name, "-h"))
                name = "help";
        if (!strcmp(name, "--version"))
                name = "version";
        for (const command_t *c = commands; c->name; c++)
                if (!strcmp(c->name, name))
                        return c->run(c, argc - 2, argv + 2);
        fprintf(stderr, "luaconnect: unknown command '%s'; luaconnect help lists them\n", name);
        return LC_EXIT_USAGE;
}
