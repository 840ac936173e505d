/*
 * connector_blocks.h - the parts of a validation answer that come with other plugins: transforms,
 * predicates, converters, client overrides. Used by connector_validate.c only.
 *
 * Threads: those of lc_connector_validate.   Tests: spec/unit/connector_config_spec.lua
 */
#ifndef LC_CONFIG_CONNECTOR_BLOCKS_H
#define LC_CONFIG_CONNECTOR_BLOCKS_H
#include "config/client_table.h"
#include "config/connector_config.h"

typedef struct lc_validation {
        const lc_worker_config_t *wc;
        const lc_plugins_t *plugins;
        const lc_props_t *props; /* resolved */
        const lc_plugin_t *connector;
        lc_config_infos_t *infos; /* the connector block, in definition order */
} lc_validation_t;

/* Parse one row into a new value of infos; def: default instead of the row's (copied), NULL: the row's. */
lc_config_value_t *lc_block_value(lc_config_infos_t *infos, const lc_config_row_t *row, const char *name,
                                  const lc_props_t *props, const char *def);
void lc_block_group(lc_config_infos_t *infos, const char *group); /* once each */
/* A CLASS value: its alias becomes the class name, or an error is added. NULL: bad or null. */
const lc_plugin_t *lc_block_class(const lc_validation_t *v, lc_config_value_t *value, const char *full_name,
                                  lc_plugin_type_t type);
/* Does p's version lie in range? If not, the message is added to both values. */
bool lc_block_version(const lc_plugin_t *p, const char *range, lc_config_value_t *class_value,
                      lc_config_value_t *version_value);
void lc_block_recommend(const lc_validation_t *v, lc_config_value_t *value, lc_plugin_type_t type);

/* "transforms" or "predicates". */
int lc_block_chain(lc_validation_t *v, lc_plugin_type_t type, lc_err_t *err);
/* Keys key.converter.* of a connector's own converter, appended to out. role "key", "value", "header". */
int lc_block_converter(lc_validation_t *v, const char *role, lc_config_infos_t *out, lc_err_t *err);
/* producer.override.* and the like, appended to out. */
int lc_block_overrides(lc_validation_t *v, lc_client_family_t family, lc_config_infos_t *out, lc_err_t *err);
/* Values of src to the end of dst, groups too. src is emptied. */
void lc_block_move(lc_config_infos_t *dst, lc_config_infos_t *src);

#endif
