/*
 * commands.h - the program: its subcommands and the functions that run them.
 *
 * Threads:   main.   Tests: spec/unit/cli_spec.lua
 */
#ifndef LC_CLI_COMMANDS_H
#define LC_CLI_COMMANDS_H
#include "cli/command.h"

int lc_main(int argc, char **argv); /* the exit status */

int lc_cmd_distributed(const lc_command_t *self, int argc, char **argv);
int lc_cmd_standalone(const lc_command_t *self, int argc, char **argv);
int lc_cmd_plugins(const lc_command_t *self, int argc, char **argv);
int lc_cmd_try(const lc_command_t *self, int argc, char **argv);
int lc_cmd_author(const lc_command_t *self, int argc, char **argv);
int lc_cmd_completion(const lc_command_t *self, int argc, char **argv);
extern const lc_option_t lc_try_options[], lc_plugins_options[], lc_repl_options[];
extern const char lc_try_more[];

#endif
