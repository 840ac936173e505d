/*
 * try.h - `luaconnect try`: what its parts share. try.c reads the call and runs records through transforms,
 * try_connector.c runs a connector, try_watch.c runs it all again when a file changes.
 *
 * Threads:   main; signals only set flags and wake it.
 * Tests:     spec/unit/kit_spec.lua
 */
#ifndef LC_CLI_TRY_H
#define LC_CLI_TRY_H
#include "cli/command.h"
#include "cli/try_input.h"
#include "cli/try_output.h"
#include "script/script.h"

typedef struct lc_try {
        const lc_command_t *command;
        const char *file, *input, *source, *sink; /* files of the call, or NULL */
        bool each, watch;
        int64_t most;    /* -n: records, or -1 */
        int64_t idle_ms; /* --idle: end after that long without a record, or -1 */
        lc_strv_t plugin_path, steps, predicates, settings; /* steps: -t, predicates: -p, settings: -c */
        lc_props_t *config;
        char *home, *topic;
        lc_plugins_t *plugins;
        lc_try_input_t in;
        lc_try_output_t out;
        lc_script_host_t host;
        lc_script_chain_t **chains; /* one; with each, one a step */
        size_t nchains;
        uint64_t bad; /* records that failed */
        bool closed;  /* stdout is */
} lc_try_t;

/* The whole of a connector file: a map, {"name":,"config":} or .properties. A new reference in *config. */
int lc_try_load_config(const char *path, lc_props_t **config, lc_err_t *err);
int lc_try_scan(lc_try_t *t, lc_err_t *err);
int lc_try_open_chain(lc_try_t *t, bool source, lc_err_t *err);
/* Transforms over the batch; what fails is told on stderr and becomes LC_REC_DROPPED. lines: of the records,
 * or NULL: they came from a source and are counted from `first`. */
void lc_try_transform(lc_try_t *t, lc_batch_t *b, const uint64_t *lines, uint64_t first);
/* One more bad record. where: the step, or NULL. */
void lc_try_bad(lc_try_t *t, bool is_line, uint64_t number, const char *where, const lc_err_t *err);
/* Every record of the batch that is not dropped, to stdout. */
void lc_try_print(lc_try_t *t, lc_batch_t *b, const uint64_t *lines, uint64_t first);

int lc_try_run_source(lc_try_t *t); /* the exit status */
int lc_try_run_sink(lc_try_t *t);
/* Runs run(t) in a child again and again as files change. The exit status. */
int lc_try_run_watched(lc_try_t *t, int (*run)(lc_try_t *t));

#endif
