/*
 * cmd_author.c - the commands for authors that are written in Lua: new, test, lint, repl, docs. Options are read
 * here, so that --help and completion know them; lua/connect/cli/NAME.lua does the work.
 *
 * Threads:   main.   Tests: spec/unit/kit_author_spec.lua
 */
#include "cli/commands.h"
#include "base/alloc.h"
#include "base/log.h"
#include "script/script.h"
#include "script/tool.h"
#include <stdlib.h>

const lc_option_t lc_repl_options[] = {
        {'c', "config", "KEY=VALUE", "a setting of the plugin", ""},
        {0, NULL, NULL, NULL, NULL},
};

int lc_cmd_author(const lc_command_t *self, int argc, char **argv)
{
        lc_args_t args = {.command = self, .argc = argc, .argv = argv};
        char **operands = lc_calloc((size_t)argc * 2 + 1, sizeof(*operands)), *home = NULL;
        int n = 0, id, code = LC_KIT_USAGE;
        lc_err_t err = {0};

        while ((id = lc_args_next(&args)) == LC_ARG_OPERAND || id == 'c') {
                if (id == 'c')
                        operands[n++] = (char *)"-c";
                operands[n++] = (char *)args.value;
        }
        lc_log_set_fd(2); /* also what plugins print: stdout is a page, a report */
        if (id == LC_ARG_HELP) {
                code = LC_KIT_OK;
        } else if (id == LC_ARG_END) {
                home = lc_home_find(&err);
                if (!home || lc_tool_run(home, self->name, n, operands, &code, &err)) {
                        lc_command_error(self->name, &err);
                        code = LC_KIT_USAGE;
                }
        }
        free(home);
        free(operands);
        return code;
}
