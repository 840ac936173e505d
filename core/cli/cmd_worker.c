/*
 * cmd_worker.c - `luaconnect distributed` and `luaconnect standalone`. --help anywhere prints the
 * usage, with status 1, as Connect's main classes have it.
 *
 * Threads:   main.   Tests: spec/unit/cli_spec.lua
 */
#include "cli/commands.h"
#include "cli/run.h"
#include <stdio.h>
#include <string.h>

static int usage(const lc_command_t *self)
{
        lc_command_help(self);
        return LC_EXIT_USAGE;
}

static bool wants_help(int argc, char **argv)
{
        for (int i = 0; i < argc; i++)
                if (!strcmp(argv[i], "--help"))
                        return true;
        return false;
}

int lc_cmd_distributed(const lc_command_t *self, int argc, char **argv)
{
        lc_run_args_t args = {.mode = LC_DISTRIBUTED};

        if (wants_help(argc, argv))
                return usage(self);
        if (argc < 1)
                return usage(self);
        args.properties = argv[0];
        return lc_run_worker(&args);
}

int lc_cmd_standalone(const lc_command_t *self, int argc, char **argv)
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
