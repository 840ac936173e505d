/*
 * cmd_completion.c - `luaconnect completion bash|zsh`: made of the table of subcommands and their options.
 *
 * The zsh one is the bash one under bashcompinit: one set of rules.
 * Threads:   main.   Tests: spec/unit/kit_spec.lua
 */
#include "cli/commands.h"
#include <stdio.h>
#include <string.h>

static void print_words(const lc_command_t *c)
{
        for (const lc_option_t *o = c->options; o && o->id; o++) {
                if (o->id < LC_ARG_LONG)
                        printf("-%c ", o->id);
                if (o->name)
                        printf("--%s%s", o->name, o->argument && o->argument[0] == '[' ? "= " : " ");
        }
        printf("--help");
}

static void print_what(const char *what)
{
        if (!what)
                printf("COMPREPLY=()");
        else if (!strcmp(what, "file"))
                printf("COMPREPLY=($(compgen -f -- \"$cur\"))");
        else if (!strcmp(what, "commands"))
                printf("COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"))");
        else if (!strcmp(what, "dir"))
                printf("COMPREPLY=($(compgen -d -- \"$cur\"))");
        else
                printf("COMPREPLY=($(compgen -W '%s' -- \"$cur\"))", what);
}

static void print_command(const lc_command_t *c)
{
        printf("    %s)\n", c->name);
        printf("      case $prev in\n");
        for (const lc_option_t *o = c->options; o && o->id; o++) {
                if (!o->argument || o->argument[0] == '[')
                        continue;
                printf("        ");
                if (o->id < LC_ARG_LONG)
                        printf("-%c%s", o->id, o->name ? "|" : "");
                if (o->name)
                        printf("--%s", o->name);
                printf(") ");
                print_what(o->complete);
                printf("; return ;;\n");
        }
        printf("      esac\n");
        printf("      if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W '");
        print_words(c);
        printf("' -- \"$cur\"))\n      else ");
        print_what(c->operands);
        printf("; fi ;;\n");
}

int lc_cmd_completion(const lc_command_t *self, int argc, char **argv)
{
        lc_args_t args = {.command = self, .argc = argc, .argv = argv};
        const char *shell = NULL;
        bool zsh;
        int id;

        while ((id = lc_args_next(&args)) != LC_ARG_END) {
                if (id != LC_ARG_OPERAND)
                        return id == LC_ARG_HELP ? LC_KIT_OK : LC_KIT_USAGE;
                if (shell)
                        return lc_command_wrong(self, "one shell, please");
                shell = args.value;
        }
        if (!shell || (strcmp(shell, "bash") && strcmp(shell, "zsh")))
                return lc_command_wrong(self, "name a shell: bash or zsh");
        zsh = !strcmp(shell, "zsh");
        if (zsh)
                printf("#compdef luaconnect\nautoload -U +X bashcompinit && bashcompinit\n");
        printf("# %s completion of luaconnect\n", shell);
        printf("_%sluaconnect() {\n  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n",
               zsh ? "_" : "");
        printf("  local commands='");
        for (const lc_command_t *c = lc_commands; c->name; c++)
                printf("%s%s", c == lc_commands ? "" : " ", c->name);
        printf("'\n  if [[ $COMP_CWORD -eq 1 ]]; then\n");
        printf("    COMPREPLY=($(compgen -W \"$commands --help --version\" -- \"$cur\"))\n    return\n  "
               "fi\n");
        printf("  case ${COMP_WORDS[1]} in\n");
        for (const lc_command_t *c = lc_commands; c->name; c++)
                print_command(c);
        printf("  esac\n}\ncomplete -o filenames -F _%sluaconnect luaconnect\n", zsh ? "_" : "");
        if (zsh) /* loaded by its first use */
                printf("[[ $funcstack[1] = _luaconnect ]] && _bash_complete -o filenames -F __luaconnect\n");
        return LC_KIT_OK;
}
