/*
 * client_table.h - one row a setting of Kafka's Java clients: its Java definition (for the override blocks
 * of validation) and what librdkafka makes of it. docs/configuration.md prints it.
 *
 * Threads: read-only once made.   Tests: spec/unit/client_config_spec.lua
 */
#ifndef LC_CONFIG_CLIENT_TABLE_H
#define LC_CONFIG_CLIENT_TABLE_H
#include <stdint.h>
#include "config/def.h"

typedef enum { LC_FAMILY_PRODUCER, LC_FAMILY_CONSUMER, LC_FAMILY_ADMIN, LC_FAMILIES } lc_client_family_t;
enum { LC_FOR_P = 1, LC_FOR_C = 2, LC_FOR_A = 4, LC_FOR_ALL = 7 }; /* 1 << family */

typedef enum {
        LC_MAP_SAME,      /* the value as it is, cut to lo..hi */
        LC_MAP_LOWER,     /* lower case */
        LC_MAP_KBYTES,    /* bytes to KiB, rounded up */
        LC_MAP_ASSIGNORS, /* class names to range, roundrobin, cooperative-sticky */
        LC_MAP_RESET,     /* auto.offset.reset */
        LC_MAP_TLS,       /* see client_security.c */
        LC_MAP_SASL,
        LC_MAP_OURS,  /* luaconnect does it itself; nothing for librdkafka */
        LC_MAP_FIXED, /* the value is always the one in `note`; another is warned about */
        LC_MAP_NONE   /* no counterpart: a warning with `note` */
} lc_client_map_t;

typedef struct lc_client_setting {
        const char *name;
        uint8_t families; /* Java clients that have it, LC_FOR_... */
        lc_config_type_t type;
        lc_importance_t importance;
        const char *def[LC_FAMILIES]; /* Java's defaults, NULL: null */
        lc_client_map_t map;
        const char *rd;      /* librdkafka's name */
        uint8_t rd_families; /* clients for which librdkafka takes it */
        double lo, hi;       /* librdkafka's range; hi 0: not cut */
        const char *note;    /* why not, or how; for docs, warnings and REST */
} lc_client_setting_t;

const lc_client_setting_t *lc_client_settings(int *n);
const lc_client_setting_t *lc_client_setting(lc_client_family_t family, const char *java_name);
bool lc_client_setting_known(const char *java_name); /* in any family */
/* The setting as a config row (validation of overrides), NULL: unknown. */
const lc_config_row_t *lc_client_row(lc_client_family_t family, const char *java_name);
const char *lc_client_map_name(lc_client_map_t map);

#endif
