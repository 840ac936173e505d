/*
 * command.h - what a subcommand is: a row of the one table (commands.c) that drives dispatch, --help and the
 * completion; and the reader of its options.
 *
 * Threads:   main.   Tests: spec/unit/cli_spec.lua, kit_spec.lua
 */
#ifndef LC_CLI_COMMAND_H
#define LC_CLI_COMMAND_H
#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

typedef struct lc_option {
        int id;               /* what lc_args_next returns; a letter's is the letter: -t */
        const char *name;     /* long name without dashes */
        const char *argument; /* NULL: a flag; "[=X]": optional, only with = */
        const char *help;
        const char *complete; /* what completion offers: "file", "dir", or words apart by blanks */
} lc_option_t;

typedef struct lc_command lc_command_t;
struct lc_command {
        const char *name, *arguments, *help;                         /* help: one line */
        int (*run)(const lc_command_t *self, int argc, char **argv); /* argv[0] is the first argument */
        const lc_option_t *options;                                  /* ends with id 0, or NULL */
        const char *operands;                                        /* completion of what is no option */
        const char *more;                                            /* longer text of --help, or NULL */
        bool worker; /* as Connect's own: usage is status 1, also when asked for */
};
extern const lc_command_t lc_commands[]; /* ends with name NULL */

/* Statuses of the commands that are not a worker: worked; something that was tried failed; wrong call. */
enum { LC_KIT_OK = 0, LC_KIT_FAILED = 1, LC_KIT_USAGE = 2 };

void lc_command_help(const lc_command_t *self); /* on stdout */

/* Options in any order among operands; "--" ends them. --opt=X, --opt X, -o X, -oX. */
typedef struct lc_args {
        const lc_command_t *command;
        int argc;
        char **argv;
        int at;
        const char *value;   /* of the option, or the operand */
        const char *letters; /* what is left of -abc */
        bool ended;          /* after -- */
} lc_args_t;
enum { LC_ARG_ERROR = -1, LC_ARG_END = 0, LC_ARG_OPERAND = 1, LC_ARG_HELP = 2, LC_ARG_LONG = 256 };
/* LC_ARG_*, or an option's id (letters and above LC_ARG_LONG). An error is on stderr already; --help and -h
 * have printed their text. */
int lc_args_next(lc_args_t *a);
/* "luaconnect NAME: text" on stderr; returns LC_KIT_USAGE. */
int lc_command_wrong(const lc_command_t *self, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "luaconnect: [class: ]text" on stderr. */
void lc_command_error(const char *prefix, const lc_err_t *err);

#endif
