/*
 * status.c - names and memory of statuses (status_store.h), for every status store.   Threads: any.
 * Tests: spec/unit/status_store_spec.lua
 */
#include "storage/status_store.h"
#include <stdlib.h>
#include <string.h>

const char *lc_state_name(lc_state_t s)
{
        static const char *const names[] = {"UNASSIGNED", "RUNNING", "PAUSED",   "FAILED",
                                            "RESTARTING", "STOPPED", "DESTROYED"};

        return (unsigned)s < sizeof(names) / sizeof(*names) ? names[s] : "UNASSIGNED";
}

void lc_status_clear(lc_status_t *s)
{
        free(s->worker_id);
        free(s->trace);
        free(s->version);
        free(s->restart);
        memset(s, 0, sizeof(*s));
}
