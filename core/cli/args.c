/* args.c - the options of subcommands, see command.h. Main thread. Spec: spec/unit/kit_spec.lua. */
#include "cli/command.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const lc_option_t *long_option(const lc_command_t *c, const char *name, size_t n)
{
        for (const lc_option_t *o = c->options; o && o->id; o++)
                if (o->name && strlen(o->name) == n && !memcmp(o->name, name, n))
                        return o;
        return NULL;
}

static const lc_option_t *short_option(const lc_command_t *c, char letter)
{
        for (const lc_option_t *o = c->options; o && o->id; o++)
                if (o->id == letter)
                        return o;
        return NULL;
}

static int wrong(lc_args_t *a, const char *fmt, const char *what)
{
        char text[256];

        snprintf(text, sizeof(text), fmt, what);
        lc_command_wrong(a->command, "%s", text);
        return LC_ARG_ERROR;
}

/* The next argument is the value of `o`. */
static int take_value(lc_args_t *a, const lc_option_t *o)
{
        if (a->at >= a->argc)
                return wrong(a, "option --%s needs a value", o->name);
        a->value = a->argv[a->at++];
        return o->id;
}

static int help(lc_args_t *a)
{
        lc_command_help(a->command);
        return LC_ARG_HELP;
}

static int next_letter(lc_args_t *a)
{
        char letter[2] = {*a->letters++, '\0'};
        const lc_option_t *o = short_option(a->command, letter[0]);
        const char *rest = a->letters;

        if (!*rest)
                a->letters = NULL;
        if (letter[0] == 'h' && !o)
                return help(a);
        if (!o)
                return wrong(a, "unknown option -%s", letter);
        if (!o->argument || o->argument[0] == '[')
                return o->id;
        a->letters = NULL;
        if (!*rest)
                return take_value(a, o);
        a->value = rest;
        return o->id;
}

static int next_long(lc_args_t *a, const char *text)
{
        size_t n = strcspn(text, "=");
        const lc_option_t *o = long_option(a->command, text, n);

        if (!o && !strcmp(text, "help"))
                return help(a);
        if (!o)
                return wrong(a, "unknown option --%s", text);
        if (text[n] == '=') {
                if (!o->argument)
                        return wrong(a, "option --%s takes no value", o->name);
                a->value = text + n + 1;
                return o->id;
        }
        return o->argument && o->argument[0] != '[' ? take_value(a, o) : o->id;
}

int lc_args_next(lc_args_t *a)
{
        const char *arg;

        a->value = NULL;
        if (a->letters)
                return next_letter(a);
        if (a->at >= a->argc)
                return LC_ARG_END;
        arg = a->argv[a->at++];
        if (!a->ended && !strcmp(arg, "--")) {
                a->ended = true;
                return lc_args_next(a);
        }
        if (a->ended || arg[0] != '-' || !arg[1]) {
                a->value = arg;
                return LC_ARG_OPERAND;
        }
        if (arg[1] == '-')
                return next_long(a, arg + 2);
        a->letters = arg + 1;
        return next_letter(a);
}

int lc_command_wrong(const lc_command_t *self, const char *fmt, ...)
{
        va_list ap;

        fprintf(stderr, "luaconnect %s: ", self->name);
        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
        fprintf(stderr, "; luaconnect %s --help tells more\n", self->name);
        return LC_KIT_USAGE;
}

void lc_command_error(const char *prefix, const lc_err_t *err)
{
        fprintf(stderr, "luaconnect: %s%s%s%s%s\n", prefix ? prefix : "", prefix ? ": " : "",
                err->cls ? err->cls : "", err->cls ? ": " : "", err->msg);
}

void lc_command_help(const lc_command_t *self)
{
        printf("Usage: luaconnect %s %s\n\n%s\n", self->name, self->arguments, self->help);
        if (self->options)
                printf("\n");
        for (const lc_option_t *o = self->options; o && o->id; o++) {
                char left[64], letter[8] = "    ";
                bool optional = o->argument && o->argument[0] == '[';

                if (o->id < LC_ARG_LONG)
                        snprintf(letter, sizeof(letter), "-%c%s", o->id, o->name ? ", " : "");
                snprintf(left, sizeof(left), "%s%s%s%s%s", letter, o->name ? "--" : "",
                         o->name ? o->name : "", o->argument && !optional ? " " : "",
                         o->argument ? o->argument : "");
                if (strlen(left) > 27)
                        printf("  %s\n  %-27s %s\n", left, "", o->help);
                else
                        printf("  %-27s %s\n", left, o->help);
        }
        if (self->more)
                printf("\n%s", self->more);
}
