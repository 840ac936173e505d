/* fault.c - see fault.h. */
#include "base/fault.h"
#ifdef LC_FAULTS
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct order {
        const char *variable;
        int signal;
        char name[64];
        atomic_int left;
} order_t;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static order_t orders[] = {{.variable = "LC_FAULT_KILL", .signal = SIGKILL},
                           {.variable = "LC_FAULT_TERM", .signal = SIGTERM}};

static void read_environment(void)
{
        for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
                order_t *o = &orders[i];
                const char *text = getenv(o->variable);
                const char *colon = text ? strrchr(text, ':') : NULL;

                if (!text)
                        continue;
                snprintf(o->name, sizeof(o->name), "%.*s", (int)(colon ? colon - text : (long)strlen(text)),
                         text);
                o->left = colon ? atoi(colon + 1) : 1;
        }
}

void lc_fault_point(const char *name)
{
        pthread_once(&once, read_environment);
        for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
                order_t *o = &orders[i];
                if (o->name[0] && !strcmp(name, o->name) && atomic_fetch_sub(&o->left, 1) == 1)
                        kill(getpid(), o->signal);
        }
}
#else
typedef int lc_fault_unused_t; /* ISO C forbids an empty translation unit */
#endif
