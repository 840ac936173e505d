/*
 * try.h - `luaconnect try`: what its parts share. try.c reads the call and runs records through transforms,
 * try_connector.c runs a source or a sink (try_plugin.c finds it), try_watch.c runs it all again when a file changes.
 *
 * Threads:   main; signals only set flags and wake it.
 * Tests:     spec/unit/kit_spec.lua, try_connector_spec.lua
 */
#ifndef LC_CLI_TRY_H
#define LC_CLI_TRY_H
#include "cli/command.h"
#include "cli/try_input.h"
#include "cli/try_output.h"
#include "config/worker_config.h"
#include "script/script.h"

typedef struct lc_try {
        const lc_command_t *command;
        const char *file, *input; /* of the call, or NULL */
        const char *connector;    /* FILE of --source or --sink; then file is NULL */
        bool source, sink;        /* which of them */
        bool each, watch;
        int64_t most;                                       /* -n: records, or -1 */
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

/* The configuration in a file: JSON of both shapes, or .properties. -1 names the file. */
int lc_try_load_config(const char *path, lc_props_t **config, lc_err_t *err);
/* --source, --sink: t->config is the connector's, the plugins are scanned here. The exit status. */
int lc_try_run_connector(lc_try_t *t);
/* Is FILE of --source and --sink a plugin (else a configuration)? */
bool lc_try_is_plugin(const char *path);
bool lc_try_is_class(const char *name); /* or the class of a connector? */
/* t->plugins: those there are and the connector's; its class joins t->config where it is named by its path. */
int lc_try_find_plugins(lc_try_t *t, lc_err_t *err);
/* What POST /connectors would say of t->config. */
int lc_try_check_config(const lc_try_t *t, const lc_worker_config_t *config, lc_err_t *err);
/* Runs run(t) in a child again and again as files change. The exit status. */
int lc_try_run_watched(lc_try_t *t, int (*run)(lc_try_t *t));

#endif
