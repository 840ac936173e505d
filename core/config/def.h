/*
 * def.h - config definitions: one row a setting, for the worker, connectors, converters and plugins.
 * Parsing, checks, REST answers (ConfigInfos) and docs come from the rows. After Java's ConfigDef.
 *
 * Threads:   rows are read-only once made.
 * Errors:    texts are Java's (reference worker-config 1, connector-config 3).
 * Tests:     spec/unit/config_spec.lua
 */
#ifndef LC_CONFIG_DEF_H
#define LC_CONFIG_DEF_H
#include "base/buf.h"
#include "base/err.h"
#include "base/props.h"
#include "base/strv.h"

typedef enum {
        LC_CFG_BOOLEAN,
        LC_CFG_STRING,
        LC_CFG_INT,
        LC_CFG_SHORT,
        LC_CFG_LONG,
        LC_CFG_DOUBLE,
        LC_CFG_LIST,
        LC_CFG_CLASS,
        LC_CFG_PASSWORD
} lc_config_type_t;
typedef enum { LC_HIGH, LC_MEDIUM, LC_LOW } lc_importance_t;
typedef enum { LC_WIDTH_NONE, LC_WIDTH_SHORT, LC_WIDTH_MEDIUM, LC_WIDTH_LONG } lc_width_t;

typedef struct lc_config_row lc_config_row_t;
struct lc_config_row {
        const char *name;
        lc_config_type_t type;
        bool required;   /* no default */
        const char *def; /* default as text, NULL: null */
        lc_importance_t importance;
        const char *group; /* NULL: none */
        int order;         /* order_in_group; -1 without a group */
        lc_width_t width;
        const char *display; /* NULL: the name */
        const char *doc;
        /* Append the reason ("Value must be at least 1") when `value` (parsed text, NULL = null) is not
         * allowed. Returns true when it is fine. NULL: anything of the type. */
        bool (*check)(const lc_config_row_t *row, const char *value, lc_buf_t *reason);
        double min, max;           /* for check = lc_check_range */
        const char *const *one_of; /* for check = lc_check_one_of(_ci); ends with NULL */
        void *arg;                 /* for other checks and script/ */
        bool whole;                /* the check writes the whole message, not only the reason */
};
bool lc_check_range(const lc_config_row_t *row, const char *value, lc_buf_t *reason);
bool lc_check_at_least(const lc_config_row_t *row, const char *value, lc_buf_t *reason);
bool lc_check_one_of(const lc_config_row_t *row, const char *value, lc_buf_t *reason);
bool lc_check_one_of_ci(const lc_config_row_t *row, const char *value, lc_buf_t *reason);
bool lc_check_non_empty(const lc_config_row_t *row, const char *value, lc_buf_t *reason);
/* ValidList; rows with these have `whole` set. No null, no duplicates, no empty item; an empty list:
 * lc_check_list only. lc_check_list_or_null allows null, not an empty list. */
bool lc_check_list(const lc_config_row_t *row, const char *value, lc_buf_t *reason);
bool lc_check_list_non_empty(const lc_config_row_t *row, const char *value, lc_buf_t *reason);
bool lc_check_list_or_null(const lc_config_row_t *row, const char *value, lc_buf_t *reason);
/* Aliases: no null, no duplicates ("Duplicate alias provided."). */
bool lc_check_aliases(const lc_config_row_t *row, const char *value, lc_buf_t *reason);

const char *lc_config_type_name(lc_config_type_t t); /* "STRING" */

/* Only the type: *out is the canonical text of `raw`, NULL for null. 0, or -1 with the reason of
 * "Invalid value raw for configuration ..." appended. */
int lc_config_parse_type(lc_config_type_t type, const char *raw, char **out, lc_buf_t *reason);
/* The check's message for a parsed value, appended. True when it is fine. */
bool lc_config_check(const lc_config_row_t *row, const char *value, lc_buf_t *message);
/* A parsed value as Java prints it in messages: lists as [a, b], passwords as [hidden], null. Appends. */
void lc_config_value_text(lc_config_type_t type, const char *value, lc_buf_t *out);
/* "Invalid value V for configuration NAME: REASON". Appends. */
void lc_config_invalid(lc_buf_t *out, lc_config_type_t type, const char *value, const char *name,
                       const char *reason);

/* One row's value from its text (absent: the default applies). *out is the value's canonical text,
 * malloc'ed, or NULL for null; after a failed check too, NULL after a failed parse. On failure the
 * messages are added to `errors` (a bad type may add two, as Java does). Messages of types and missing
 * values carry full_name (the key in props), those of checks row->name. */
int lc_config_parse(const lc_config_row_t *row, const char *full_name, const lc_props_t *props, char **out,
                    lc_strv_t *errors);

/* Answer of validation (ConfigInfos), owned by the caller. */
typedef struct lc_config_value {
        const lc_config_row_t *row; /* NULL: unknown key */
        char *name;                 /* full name, prefix included */
        char *group, *display;      /* NULL: the row's (embedded blocks have their own) */
        char *def;                  /* NULL: the row's */
        int order;                  /* INT_MIN: the row's */
        char *value;                /* text, NULL null; PASSWORD already "[hidden]" */
        lc_strv_t errors, recommended;
        bool visible;
} lc_config_value_t;
typedef struct lc_config_infos {
        char *name;
        int error_count;
        lc_strv_t groups;
        lc_config_value_t *values;
        size_t n, cap;
        const struct lc_plugins *plugins; /* a reference to the set that the rows are of, or NULL */
} lc_config_infos_t;
lc_config_infos_t *lc_config_infos_new(const char *name);
/* The answer holds until the next add. */
lc_config_value_t *lc_config_infos_add(lc_config_infos_t *infos, const lc_config_row_t *row,
                                       const char *name);
/* First value of that name, or NULL. */
lc_config_value_t *lc_config_infos_find(lc_config_infos_t *infos, const char *name);
void lc_config_infos_free(lc_config_infos_t *infos);
/* "Connector configuration is invalid and contains the following N error(s):..." or NULL when none. */
char *lc_config_infos_rejection(const lc_config_infos_t *infos);

#endif
