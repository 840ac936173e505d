/* commands.c - see commands.h: the one table of subcommands. */
#include "cli/commands.h"
#include "cli/run.h"
#include <errno.h>
#include <fcntl.h>
#include <librdkafka/rdkafka.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>

#ifndef LC_VERSION
#define LC_VERSION "unknown"
#endif

static int run_version(const lc_command_t *self, int argc, char **argv)
{
        lc_args_t args = {.command = self, .argc = argc, .argv = argv};
        int id = lc_args_next(&args);

        if (id != LC_ARG_END)
                return id == LC_ARG_HELP      ? LC_KIT_OK
                       : id == LC_ARG_OPERAND ? lc_command_wrong(self, "'%s' is not wanted", args.value)
                                              : LC_KIT_USAGE;
        printf("luaconnect %s (Kafka Connect 4.3.1, librdkafka %s, libmicrohttpd %s)\n", LC_VERSION,
               rd_kafka_version_str(), MHD_get_version());
        return LC_EXIT_OK;
}

static int run_help(const lc_command_t *self, int argc, char **argv)
{
        if (argc > 0) {
                for (const lc_command_t *c = lc_commands; c->name; c++)
                        if (!strcmp(c->name, argv[0]) || (!strcmp(argv[0], "--help") && c == self)) {
                                lc_command_help(c);
                                return LC_EXIT_OK;
                        }
                return lc_command_wrong(self, "there is no command '%s'", argv[0]);
        }
        puts("luaconnect - Kafka Connect without the JVM: connectors and transforms in Lua\n");
        puts("Usage: luaconnect COMMAND [ARGUMENTS]\n");
        for (const lc_command_t *c = lc_commands; c->name; c++)
                printf("  %s %s\n      %s\n", c->name, c->arguments, c->help);
        puts("\nluaconnect COMMAND --help tells more of each.");
        puts("Environment: LUACONNECT_HOME (folder with lua/ and connectors/), LUACONNECT_LOG_LEVEL (off, "
             "error,");
        puts("warn, info, debug, trace; else log.level in worker.properties).");
        return LC_EXIT_OK;
}

static const lc_option_t standalone_options[] = {
        {LC_ARG_LONG, "embedded-broker", "[=TOPIC,...]",
         "a broker inside this process, with these topics: needs no Kafka, keeps nothing", NULL},
        {0, NULL, NULL, NULL, NULL},
};

const lc_command_t lc_commands[] = {
        {.name = "distributed",
         .arguments = "worker.properties",
         .help = "run a worker of a Connect cluster",
         .run = lc_cmd_distributed,
         .operands = "file",
         .worker = true},
        {.name = "standalone",
         .arguments = "[--embedded-broker[=TOPIC,...]] worker.properties [connector1.properties "
                      "connector2.json ...]",
         .help = "run a worker by itself; --embedded-broker needs no Kafka and keeps nothing",
         .run = lc_cmd_standalone,
         .options = standalone_options,
         .operands = "file",
         .worker = true},
        {.name = "try",
         .arguments = "[OPTIONS] [connector.json|connector.properties]",
         .help = "records from stdin through transforms to stdout, or a source or sink, without Kafka",
         .run = lc_cmd_try,
         .options = lc_try_options,
         .operands = "file",
         .more = lc_try_more},
        {.name = "new",
         .arguments = "source|sink|transform|predicate|converter NAME [DIR]",
         .help = "make a folder NAME (below DIR, default here) with a plugin, its README and specs that pass",
         .run = lc_cmd_author,
         .operands = "source sink transform predicate converter"},
        {.name = "test",
         .arguments = "PATH...",
         .help = "run the examples of plugins and the specs (spec/*_spec.lua) beside them",
         .run = lc_cmd_author,
         .operands = "file",
         .more = "PATH is a plugin's file or folder, a spec, a folder with plugins in it, or the class of a "
                 "standard\n"
                 "plugin. Specs are busted's.\n"
                 "Status: 0; 1 when an example or a spec fails; 2 when a path or a plugin is wrong.\n"},
        {.name = "lint",
         .arguments = "PATH...",
         .help = "check plugins: that they load, rows, defaults, examples, globals; luacheck if it is there",
         .run = lc_cmd_author,
         .operands = "file"},
        {.name = "repl",
         .arguments = "[-c KEY=VALUE].. PLUGIN",
         .help = "Lua line by line with a plugin loaded: start it, poll, put, apply; :help there tells more",
         .run = lc_cmd_author,
         .options = lc_repl_options,
         .operands = "file",
         .more = "Lines are Lua, or commands that begin with ':'. connect, testing, plugin and config are "
                 "there.\n"
                 "Ctrl-C ends a script that runs, Ctrl-D or :quit the program. From a pipe there is no "
                 "prompt, and\n"
                 "the status is 1 if a line failed.\n\n"
                 "  printf ':start\\n:poll\\n' | luaconnect repl my-source -c topic=t\n"},
        {.name = "docs",
         .arguments = "PLUGIN",
         .help = "print the page of a plugin, as Markdown: a file, a folder, or the name of a standard one",
         .run = lc_cmd_author,
         .operands = "file"},
        {.name = "plugins",
         .arguments = "[--json] [--plugin-path=DIR,...] [worker.properties]",
         .help = "list connectors, transforms, predicates and converters, and where they were found",
         .run = lc_cmd_plugins,
         .options = lc_plugins_options,
         .operands = "file"},
        {.name = "completion",
         .arguments = "bash|zsh",
         .help = "print the completion of this program for a shell",
         .run = lc_cmd_completion,
         .operands = "bash zsh"},
        {.name = "version", .arguments = "", .help = "print the versions", .run = run_version},
        {.name = "help",
         .arguments = "[COMMAND]",
         .help = "print this, or more of a command",
         .run = run_help,
         .operands = "commands"},
        {.name = NULL},
};

/* What was printed must have come out; a reader that has left is no failure. */
static int check_stdout(void)
{
        errno = 0;
        if ((!fflush(stdout) && !ferror(stdout)) || errno == EPIPE)
                return LC_EXIT_OK;
        fprintf(stderr, "luaconnect: cannot write to stdout%s%s\n", errno ? ": " : "",
                errno ? strerror(errno) : "");
        return LC_KIT_FAILED;
}

int lc_main(int argc, char **argv)
{
        const char *name = argc > 1 ? argv[1] : NULL;

        for (int fd = 0; fd < 3; fd++) /* one that is closed must not become something else's */
                if (fcntl(fd, F_GETFD) < 0)
                        open("/dev/null", fd ? O_RDONLY : O_WRONLY);
        setvbuf(stdout, NULL, _IOLBF, 0);
        if (!name) {
                run_help(NULL, 0, NULL);
                return LC_EXIT_USAGE;
        }
        if (!strcmp(name, "--help") || !strcmp(name, "-h"))
                return run_help(NULL, 0, NULL);
        if (!strcmp(name, "--version"))
                name = "version";
        for (const lc_command_t *c = lc_commands; c->name; c++)
                if (!strcmp(c->name, name)) {
                        int status = c->run(c, argc - 2, argv + 2);
                        return status ? status : check_stdout();
                }
        fprintf(stderr, "luaconnect: unknown command '%s'; luaconnect help lists them\n", name);
        return LC_EXIT_USAGE;
}
