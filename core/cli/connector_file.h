/*
 * connector_file.h - connector files on the command line of standalone mode: a JSON object of strings, a
 * JSON create request, or .properties, tried in this order whatever the file's name.
 *
 * Threads:   any.
 * Errors:    LC_FATAL with Java's texts.
 * Source:    reference standalone.md 3.   Tests: spec/unit/cli_spec.lua
 */
#ifndef LC_CLI_CONNECTOR_FILE_H
#define LC_CLI_CONNECTOR_FILE_H
#include "base/err.h"
#include "base/props.h"
#include "storage/config_store.h"

typedef struct lc_connector_file {
        char *name;
        lc_props_t *config;
        lc_target_state_t initial_state; /* LC_TARGET_NONE: not given */
} lc_connector_file_t;
int lc_connector_file_load(const char *path, lc_connector_file_t *out, lc_err_t *err);
void lc_connector_file_free(lc_connector_file_t *f);

#endif
