/*
 * commands.h - the subcommands of the program: one table, from which the help is printed.
 *
 * Threads:   main.   Tests: spec/unit/cli_spec.lua
 */
#ifndef LC_CLI_COMMANDS_H
#define LC_CLI_COMMANDS_H

int lc_main(int argc, char **argv); /* the exit status */

#endif
